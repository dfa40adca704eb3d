# SPDX-License-Identifier: Apache-2.0
"""Random chains of ops on volumes that lie anywhere: marked voxels of the result are where windows, written down here
once more and one cell at a time, put them. SimpleITK, nibabel, h5py and tifffile read where that is, in the file that
went in and in the one that came out."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import open_volume, save_volume

itk = pytest.importorskip("SimpleITK", reason="SimpleITK is an optional extra")
nibabel = pytest.importorskip("nibabel")
h5py = pytest.importorskip("h5py")
tifffile = pytest.importorskip("tifffile")
pytest.importorskip("zarr")
MARKS = 50
Back = Callable[[list[Fraction]], list[Fraction]]
"""Takes the place of a voxel, counted in cells of the result, to the one counted in cells of the input."""


class Chain:
    """A page that grows op by op, and the way back from its result to the volume."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.sizes = [int(size) for size in self.rng.integers(6, 12, 3)]
        self.page = vg.Page(f"chain {seed}")
        self.shape = [1, *self.sizes, 1]
        self.value = vg.ops.Placeholder(self.page, dtype="float32", shape=self.shape, name="x")
        self.backs: list[Back] = []
        self.chunked = True
        for _ in range(int(self.rng.integers(1, 6))):
            self.add(int(self.rng.integers(12)))
        vg.ops.Identity(self.page, self.value, name="y")

    def pick(self, low: int, high: int) -> list[int]:
        return [int(one) for one in self.rng.integers(low, high + 1, 3)]

    def source(self, place: list[Fraction]) -> list[Fraction]:
        for back in reversed(self.backs):
            place = back(place)
        return place

    def add(self, kind: int) -> None:
        [self.pool, self.convolution, self.upwards, self.upwards, self.pool, self.there_and_back, self.cut, self.stride,
         self.pad, self.turn, self.transpose, self.join][kind]()  # fmt: skip

    def windows(self, dilate: bool) -> tuple[dict[str, Any], list[int], list[int], list[int], list[Fraction]]:
        """Attributes, sizes of the result, windows, strides, and the centre of window 0 along each axis."""
        window, stride = self.pick(1, 3), self.pick(1, 3)
        dilation = self.pick(1, 2) if dilate else [1, 1, 1]
        if dilate and self.rng.random() < 0.5:
            stride = [1, 1, 1]
        elif dilate:
            dilation = [1, 1, 1]
        reach = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
        same = bool(self.rng.integers(2)) or any(r > n for r, n in zip(reach, self.sizes, strict=True))
        made, centres = [], []
        for n, r, s in zip(self.sizes, reach, stride, strict=True):
            count = -(-n // s) if same else (n - r) // s + 1
            missing = max(0, (count - 1) * s + r - n) if same else 0
            made.append(count)
            centres.append(Fraction(r - 1, 2) - missing // 2)
        attrs: dict[str, Any] = {"strides": [1, *stride, 1], "padding": "SAME" if same else "VALID"}
        if dilate:
            attrs["dilations"] = [1, *dilation, 1]
        return attrs, made, window, stride, centres

    def moved(self, sizes: list[int], starts: list[Any], steps: list[Any]) -> None:
        """The result has cells at `start + i * step` of what was there."""
        pairs = list(zip(starts, steps, strict=True))
        self.backs.append(lambda place: [a + b * i for i, (a, b) in zip(place, pairs, strict=True)])
        self.sizes = sizes

    def pool(self) -> None:
        attrs, sizes, window, stride, centres = self.windows(False)
        op = vg.ops.AvgPool3D if self.rng.random() < 0.5 else vg.ops.MaxPool3D
        self.value = op(self.page, self.value, ksize=[1, *window, 1], **attrs)
        self.moved(sizes, centres, stride)

    def convolution(self) -> None:
        attrs, sizes, window, stride, centres = self.windows(True)
        self.value = vg.ops.Conv3D(self.page, self.value, np.ones((*window, 1, 1), np.float32), **attrs)
        self.moved(sizes, centres, stride)

    def upwards(self) -> None:
        """A transposed op: its result lies on the cells whose windows were there."""
        stride, window = self.pick(1, 2), self.pick(1, 3)
        if np.prod(self.sizes) * np.prod(stride) > 20000:
            return
        sizes, centres = [], []
        for n, k, s in zip(self.sizes, window, stride, strict=True):
            # A size that SAME windows with this stride make n of.
            size = n * s - int(self.rng.integers(s))
            missing = max(0, (n - 1) * s + k - size)
            sizes.append(size)
            centres.append(Fraction(k - 1, 2) - missing // 2)
        attrs: dict[str, Any] = {"strides": [1, *stride, 1], "padding": "SAME"}
        shape = [1, *sizes, 1]
        if self.rng.random() < 0.5:
            self.value = vg.ops.AvgPool3DGrad(self.page, shape, self.value, ksize=[1, *window, 1], **attrs)
        else:
            taps = np.ones((*window, 1, 1), np.float32)
            self.value = vg.ops.Conv3DBackpropInputV2(self.page, shape, taps, self.value, **attrs)
        # Cell i lies at window (i - centre) / stride.
        starts = [-c / s for c, s in zip(centres, stride, strict=True)]
        self.moved(sizes, starts, [Fraction(1, s) for s in stride])

    def there_and_back(self) -> None:
        """Gradients of a max pool: on its cells, then on its windows again."""
        attrs, sizes, window, stride, centres = self.windows(False)
        attrs["ksize"] = [1, *window, 1]
        x = self.value
        y = vg.ops.MaxPool3D(self.page, x, **attrs)
        cells = vg.ops.MaxPool3DGrad(self.page, x, y, y, **attrs)
        if self.rng.random() < 0.5:
            self.value = cells
        else:
            self.value = vg.ops.MaxPool3DGradGrad(self.page, x, y, cells, **attrs)
            self.moved(sizes, centres, stride)

    def cut(self) -> None:
        begin = [int(self.rng.integers(max(1, n // 2))) for n in self.sizes]
        sizes = [n - b - int(self.rng.integers(2)) * (n - b > 1) for n, b in zip(self.sizes, begin, strict=True)]
        if self.rng.random() < 0.5:
            self.value = vg.ops.Slice(self.page, self.value, [0, *begin, 0], [1, *sizes, 1])
            self.moved(sizes, begin, [1, 1, 1])
        else:
            first = max(1, self.sizes[1] // 2)
            rest = self.sizes[1] - first
            if rest:
                parts = vg.ops.SplitV(self.page, self.value, [first, -1], 2, num_split=2)
                self.value = parts[1]
                self.moved([self.sizes[0], rest, self.sizes[2]], [0, first, 0], [1, 1, 1])

    def stride(self) -> None:
        steps = [int(self.rng.choice([1, 2, -1, -2])) for _ in range(3)]
        starts = [0 if step > 0 else n - 1 for step, n in zip(steps, self.sizes, strict=True)]
        sizes = [-(-n // abs(step)) for step, n in zip(steps, self.sizes, strict=True)]
        self.value = vg.ops.StridedSlice(self.page, self.value, [0, *starts, 0], [0] * 5, [1, *steps, 1], begin_mask=17,
                                         end_mask=31)  # fmt: skip
        self.moved(sizes, starts, steps)

    def pad(self) -> None:
        before, behind = self.pick(0, 2), self.pick(0, 2)
        if min(self.sizes) < 3:
            return
        paddings = [[0, 0], *([a, b] for a, b in zip(before, behind, strict=True)), [0, 0]]
        if self.rng.random() < 0.5:
            self.value = vg.ops.Pad(self.page, self.value, paddings)
        else:
            # It may need all of every direction.
            self.chunked = False
            self.value = vg.ops.MirrorPad(self.page, self.value, paddings, mode="REFLECT")
        sizes = [n + a + b for n, a, b in zip(self.sizes, before, behind, strict=True)]
        self.moved(sizes, [-a for a in before], [1, 1, 1])

    def turn(self) -> None:
        axis = int(self.rng.integers(3))
        self.value = vg.ops.ReverseV2(self.page, vg.ops.Relu(self.page, self.value), [axis + 1])
        starts, steps = [0, 0, 0], [1, 1, 1]
        starts[axis], steps[axis] = self.sizes[axis] - 1, -1
        self.moved(list(self.sizes), starts, steps)

    def transpose(self) -> None:
        self.chunked = False
        order = [int(one) for one in self.rng.permutation(3)]
        self.value = vg.ops.Transpose(self.page, self.value, [0, *(one + 1 for one in order), 4])
        self.sizes = [self.sizes[one] for one in order]
        self.backs.append(lambda place: [place[order.index(axis)] for axis in range(3)])

    def join(self) -> None:
        front = np.zeros((1, 2, *self.sizes[1:], 1), np.float32)
        self.value = vg.ops.ConcatV2(self.page, [front, self.value], 1)
        self.moved([self.sizes[0] + 2, *self.sizes[1:]], [-2, 0, 0], [1, 1, 1])


def affine_of(rng: Any, askew: bool) -> Any:
    """Turned, flipped, with three spacings, anywhere; where asked for, with axes that are not at right angles."""
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    affine = np.eye(4)
    if askew:
        turn = turn @ (np.eye(3) + np.triu(rng.uniform(-0.4, 0.4, (3, 3)), 1))
    affine[:3, :3] = turn * rng.uniform(0.3, 3, 3)
    affine[:3, 3] = rng.uniform(-50, 50, 3)
    return affine


Place = Callable[[Any], Any]
"""From the place of a voxel in a file, x, y, z, to millimetres, to the left and to the back."""
LPS = np.array([-1.0, -1.0, 1.0])


def along(columns: Any, corner: Any) -> Place:
    return lambda place: corner + columns @ np.asarray(place, float)


def world(path: Path, wanted: Place | None = None) -> Place:
    """Where voxels are, as other libraries than ours read the file. Files without directions say where voxels are
    along the axes of the volume; those are turned as `wanted` turns them."""
    name = path.name
    if name.endswith((".nii", ".nii.gz")):
        image = nibabel.load(path)
        affine = image.affine
        # Both of NIfTI's ways to say it, where it has both.
        if image.header["qform_code"] > 0:
            ends = np.array([[*at, 1] for at in np.ndindex(2, 2, 2)]).T * [[one - 1] for one in (*image.shape[:3], 2)]
            apart = np.abs((image.header.get_qform() - affine) @ ends).max()
            assert apart < 1e-3 * min(image.header.get_zooms()[:3]), path
        return along(LPS[:, None] * affine[:3, :3], LPS * affine[:3, 3])
    if name.endswith((".mha", ".mhd", ".nrrd")):
        picture = itk.ReadImage(str(path))
        return lambda place: np.array(picture.TransformContinuousIndexToPhysicalPoint([float(one) for one in place]))
    if name.endswith(".h5"):
        with h5py.File(path) as file:
            told = json.loads(file["volume"].attrs["voxgrad_space"])
            sizes = np.array(file["volume"].attrs["element_size_um"])
        np.testing.assert_allclose(sizes / 1e3, told["spacing"])
        return along(LPS[:, None] * np.array(told["affine"])[:3, :3], LPS * np.array(told["affine"])[:3, 3])
    assert wanted is not None
    corner = wanted([0, 0, 0])
    columns = np.stack([wanted(one) - corner for one in np.eye(3)], 1)
    scale, shift = steps_of(path)
    turned = columns / np.linalg.norm(columns, axis=0)
    return along(turned * scale, turned @ shift)


def steps_of(path: Path) -> tuple[Any, Any]:
    """The size of a voxel, and where the first one is, along x, y and z, as the file's own standard says it."""
    if path.name.endswith(".zarr"):
        attributes = json.loads((path / "zarr.json").read_text())["attributes"]
        steps = attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"]
        scale, shift = (np.array((steps[at][kind] if at < len(steps) else [0.0] * 3)[::-1])
                        for at, kind in enumerate(("scale", "translation")))  # fmt: skip
        return scale, shift
    with tifffile.TiffFile(path) as file:
        if file.is_ome:
            pixels = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
            assert {pixels[f"PhysicalSize{axis}Unit"] for axis in "XYZ"} == {"mm"}
            first = pixels.get("Plane", [])
            first = first[0] if isinstance(first, list) and first else first
            return (np.array([float(pixels[f"PhysicalSize{axis}"]) for axis in "XYZ"]),
                    np.array([float(first[f"Position{axis}"]) if first else 0.0 for axis in "XYZ"]))  # fmt: skip
        told, tags = file.imagej_metadata, file.pages[0].tags
        sizes = [tags[name].value[1] / tags[name].value[0] for name in ("XResolution", "YResolution")]
        scale = np.array([*sizes, told["spacing"]])
        return scale, -np.array([told.get(f"{axis}origin", 0.0) for axis in "xyz"]) * scale


def check_chain(folder: Path, seed: int, suffix: str) -> None:
    chain = Chain(seed)
    rng = np.random.default_rng(seed)
    affine = affine_of(rng, askew=seed % 5 == 0)
    stem = f"{seed}"
    source = folder / f"{stem}-in.{('nii', 'mha', 'nrrd')[seed % 3]}"
    save_volume(source, rng.random(chain.shape, np.float32), like=placed(affine))
    before = world(source)
    np.testing.assert_allclose(before([3, 2, 1]), LPS * (affine @ [3, 2, 1, 1])[:3], rtol=1e-5, atol=1e-4)
    if suffix == ".tif" and chain.sizes[2] == 1:
        # ImageJ has no images of one column, and a plain TIFF no word for depth.
        suffix = ".ome.tif"
    target = folder / f"{stem}{suffix}"
    if chain.chunked and suffix != ".nii.gz":
        vg.volumes.run_page(chain.page, {"x": source}, {"y": target}, chunks=(4, 5, 3), workers=0)
    else:
        chain.page.save(folder / f"{stem}.vox.json")
        feeds = ["--feed", f"x={source}"]
        assert main(["run", str(folder / f"{stem}.vox.json"), *feeds, "--fetch", "y", "--save", str(target)]) == 0
    assert list(open_volume(target).shape) == [1, *chain.sizes, 1]

    def wanted(place: Any) -> Any:
        return before([float(one) for one in chain.source([Fraction(one) for one in place][::-1])[::-1]])

    after = world(target, wanted)
    voxel = min(np.linalg.norm(wanted(one) - wanted([0, 0, 0])) for one in np.eye(3, dtype=int).tolist())
    for _ in range(MARKS):
        mark = [int(rng.integers(size)) for size in chain.sizes[::-1]]
        np.testing.assert_allclose(
            after(mark), wanted(mark), atol=1e-4 * voxel, rtol=0, err_msg=f"chain {seed}{suffix}, voxel {mark}"
        )


FORMATS = (".nii", ".mha", ".nrrd", ".h5", ".ome.zarr", ".tif", ".nii.gz", ".mhd", ".ome.tif")


def test_the_quaternion_of_a_tilted_half_turn(tmp_path: Path) -> None:
    """As scanners tilt: its first number is small, is not in the file, and took up all roundings of the others."""
    rng = np.random.default_rng(0)
    written = [0, 0]
    for number in range(60):
        half = number % 2
        angles = np.array([half * np.pi - rng.uniform(0, 0.003), *rng.uniform(-0.02, 0.02, 2)])
        turn = itk.Euler3DTransform((0, 0, 0), angles[1], angles[2], angles[0])
        affine = np.eye(4)
        affine[:3, :3] = np.reshape(turn.GetMatrix(), (3, 3)) * [0.9, 0.9, 3.0]
        save_volume(tmp_path / f"{number}.nii", np.zeros((1, 24, 128, 128, 1), np.uint8), like=placed(affine))
        image = nibabel.load(tmp_path / f"{number}.nii")
        np.testing.assert_allclose(image.get_sform(), affine, atol=1e-6)
        if image.header["qform_code"] > 0:
            written[half] += 1
            apart = (image.header.get_qform() - affine) @ [127, 127, 23, 1]
            assert np.abs(apart).max() < 1e-3 * 0.9, number
    assert written[0] == 30
    assert 0 < written[1] < 30, "what is not in the file is not claimed"


def test_chains(tmp_path: Path) -> None:
    for seed in range(30):
        check_chain(tmp_path, seed, FORMATS[seed % len(FORMATS)])


@pytest.mark.slow
def test_two_thousand_chains(tmp_path: Path) -> None:
    for seed in range(100, 2100):
        check_chain(tmp_path, seed, FORMATS[seed % len(FORMATS)])
