# SPDX-License-Identifier: Apache-2.0
"""NRRD and MetaImage, as SimpleITK writes and reads them; addresses of volumes elsewhere; results without a place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_stores import check, numbers, write_slice
from voxgrad.cli import main
from voxgrad.volumes.space import Space, placed
from voxgrad.volumes.stores import create_volume, open_volume, save_volume

itk = pytest.importorskip("SimpleITK", reason="SimpleITK is an optional extra")
SUFFIXES = (".mha", ".mhd", ".nrrd")


def turned(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    affine = np.eye(4)
    affine[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0] * [0.5, 1.5, 3.0]
    affine[:3, 3] = [10.0, -20.0, 33.0]
    return affine


def in_world(image: Any, x: int, y: int, z: int) -> Any:
    """To the right and to the front, as an affine counts."""
    return np.array(image.TransformIndexToPhysicalPoint((x, y, z))) * [-1, -1, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "float64"])
def test_what_simpleitk_writes(tmp_path: Path, suffix: str, packed: bool, dtype: str) -> None:
    data = numbers(5, 6, 7, dtype=dtype)
    image = itk.GetImageFromArray(data)
    image.SetSpacing((0.5, 1.5, 3.0))
    image.SetDirection((0, 1, 0, 0, 0, -1, -1, 0, 0))
    image.SetOrigin((1.0, 2.0, 3.0))
    itk.WriteImage(image, str(tmp_path / f"a{suffix}"), packed)
    store = open_volume(tmp_path / f"a{suffix}")
    check(store, data[None, ..., None])
    assert store.spacing == (3.0, 1.5, 0.5)
    assert store.affine is not None
    for place in ((0, 0, 0), (6, 5, 4), (1, 4, 2)):
        np.testing.assert_allclose((store.affine @ [*place, 1])[:3], in_world(image, *place), atol=1e-9)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(1, 5, 6, 7, 1), (1, 5, 6, 7, 3), (2, 5, 6, 7, 1), (2, 3, 4, 5, 2)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_what_simpleitk_reads(tmp_path: Path, suffix: str, shape: tuple[int, ...], dtype: str) -> None:
    five = numbers(*shape, dtype=dtype)
    path = tmp_path / f"a{suffix}"
    save_volume(path, five, like=placed(turned()))
    store = open_volume(path)
    check(store, five)
    np.testing.assert_allclose(store.affine, turned(), atol=1e-12)
    if suffix == ".nrrd" and shape[0] > 1:
        return  # ITK takes the time of a NRRD file to be a list of channels
    image = itk.ReadImage(str(path))
    wanted = five[0] if shape[0] == 1 else five
    np.testing.assert_array_equal(itk.GetArrayFromImage(image), wanted if shape[4] > 1 else wanted[..., 0])
    if shape[0] == 1:
        np.testing.assert_allclose((turned() @ [1, 2, 3, 1])[:3], in_world(image, 1, 2, 3), atol=1e-9)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".nii", ".h5", ".ome.zarr", ".zarr", ".tif", ".ome.tif"])
def test_every_format_says_that_a_result_has_no_place(tmp_path: Path, suffix: str) -> None:
    lost = "y (Reshape) does not keep voxels at their places"
    save_volume(tmp_path / f"a{suffix}", numbers(1, 2, 3, 4, 1), like=Space(lost=lost))
    space = open_volume(tmp_path / f"a{suffix}").space
    assert not space.is_known
    assert space.lost == lost
    if suffix in SUFFIXES:
        image = itk.ReadImage(str(tmp_path / f"a{suffix}"))
        assert image.GetSpacing() == (1.0, 1.0, 1.0)
        assert image.GetOrigin() == (0.0, 0.0, 0.0)
    if suffix == ".nii":
        nibabel = pytest.importorskip("nibabel")
        header = nibabel.load(tmp_path / "a.nii").header
        assert (int(header["qform_code"]), int(header["sform_code"])) == (0, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("suffix", [".tif", ".ome.tif", ".zarr", ".ome.zarr", ".h5", ".nii", *SUFFIXES])
def test_every_format_keeps_a_place(tmp_path: Path, suffix: str, dtype: str) -> None:
    five = numbers(1, 2, 3, 4, 1, dtype=dtype)
    save_volume(tmp_path / f"a{suffix}", five, like=placed(turned()))
    store = open_volume(tmp_path / f"a{suffix}")
    np.testing.assert_allclose(store.affine, turned(), atol=1e-5)
    np.testing.assert_allclose(store.spacing, (3.0, 1.5, 0.5), rtol=1e-5)
    assert store.unit == "mm"
    plain = Space((3.0, 2.0, 0.5), "um", None, (7.0, 8.0, 9.0))
    save_volume(tmp_path / f"b{suffix}", five, like=plain)
    found = open_volume(tmp_path / f"b{suffix}").space
    if found.affine is not None:
        # MetaImage counts in millimetres, to the left and to the back; NIfTI has micrometres.
        factor, signs = ({"mm": 1e-3}.get(found.unit, 1.0), [1, 1, 1] if suffix == ".nii" else [-1, -1, 1])
        np.testing.assert_allclose(found.affine[:3, 3], np.multiply(signs, [9.0, 8.0, 7.0]) * factor)
        np.testing.assert_allclose(found.spacing, np.array(plain.spacing) * factor)
    else:
        np.testing.assert_allclose((found.spacing, found.origin), (plain.spacing, plain.origin), rtol=1e-5)
        assert found.unit == "um"


META = b"NDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\n"
NRRD = b"NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 2\n"
LOCAL = b"ElementDataFile = LOCAL\n"
BAD = {
    "a.mha": [b"", b"ObjectType = Image\n", META + LOCAL, META.replace(b"2 2 2", b"-2 -2 2") + LOCAL + b"0" * 64,
              META.replace(b"2 2 2", b"2 2") + LOCAL + b"0" * 64, META + b"CompressedData = True\n" + LOCAL + b"zz",
              META + b"ElementDataFile = ../b.raw\n", META + b"ElementDataFile = link.raw\n"],
    "a.nrrd": [b"", b"NRRD0004\n", NRRD + b"encoding: raw\n\n", NRRD + b"encoding: gzip\n\nzz",
               NRRD.replace(b"uchar", b"block") + b"encoding: raw\n\n" + b"0" * 64,
               NRRD + b"encoding: raw\ndata file: /etc/passwd\n\n"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_bad_files_are_told(tmp_path: Path, name: str, text: bytes) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "b.raw").write_bytes(b"0" * 8)
    (folder / "link.raw").symlink_to(tmp_path / "b.raw")
    (folder / name).write_bytes(text)
    with pytest.raises(vg.VoxgradError, match=r"VG05[16] file: .*(a\.|link\.raw)"):
        open_volume(folder / name).read()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    head = META.replace(b"2 2 2", b"4096 4096 4096") + b"CompressedData = True\n" + LOCAL
    (tmp_path / "a.mha").write_bytes(head + b"\0" * 100)
    with pytest.raises(vg.VoxgradError):
        open_volume(tmp_path / "a.mha")[0, 0, 0, 0]


def test_volumes_at_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zarr")
    pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    five = numbers(1, 6, 6, 6, 1)
    save_volume("memory://bucket/a.ome.zarr", five, like=Space((3.0, 2.0, 1.0), "mm", None, (1.0, 2.0, 3.0)))
    store = open_volume("memory://bucket/a.ome.zarr")
    check(store, five)
    assert store.name == "memory://bucket/a.ome.zarr"
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    made = vg.volumes.apply("MaxPool3D", {"input": "memory://bucket/a.ome.zarr"}, "memory://bucket/b.ome.zarr",
                            chunks=(2, 2, 2), workers=0, **attrs)  # fmt: skip
    np.testing.assert_array_equal(made.read(), vg.raw_ops.MaxPool3D(input=five, **attrs))
    assert made.space.origin == (2.5, 3.0, 3.5)
    with pytest.raises(vg.VoxgradError, match=r"not exist yet; got memory://bucket/b\.ome\.zarr"):
        _again(attrs)
    with pytest.raises(vg.VoxgradError, match=r"file: gs://bucket/a\.zarr must"):
        open_volume("gs://bucket/a.zarr")
    save_volume("a.zarr", five)
    check(open_volume(f"file://{tmp_path}/a.zarr"), five)


def _again(attrs: dict[str, Any]) -> None:
    page = vg.Page("again")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 6, 6, 6, 1], name="x")
    vg.ops.MaxPool3D(page, x, name="y", **attrs)
    vg.volumes.run_page(page, {"x": "memory://bucket/a.ome.zarr"}, {"y": "memory://bucket/b.ome.zarr"}, workers=0,
                        folder="elsewhere")  # fmt: skip


def test_slices_that_lie_askew(tmp_path: Path) -> None:
    """A tilted gantry: every slice lies further along, and higher than the one before."""
    for at in range(4):
        write_slice(tmp_path, f"{at}.dcm", np.zeros((6, 8), np.int16), 3.0 * at,
                    ImagePositionPatient=[-3.0 * at, 10.0 + 1.0 * at, 20.0])  # fmt: skip
    store = open_volume(tmp_path)
    for z in range(4):
        first = np.array([-3.0 * z, 10.0 + z, 20.0])
        place = first + 2 * 0.25 * np.array([0, 1, 0]) + 5 * 0.5 * np.array([0, 0, -1])
        np.testing.assert_allclose((store.affine @ [2, 5, z, 1])[:3], place * [-1, -1, 1], atol=1e-9)


def test_save_writes_what_its_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nibabel = pytest.importorskip("nibabel")
    save_volume(tmp_path / "scan.mha", numbers(1, 6, 6, 6, 1), like=placed(turned()))
    page = vg.Page("p")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 6, 6, 6, 1], name="x")
    vg.ops.Reshape(page, x, [1, 3, 12, 6, 1], name="mixed")
    vg.ops.AvgPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", name="y")
    page.save(tmp_path / "p.vox.json")
    run = ["run", str(tmp_path / "p.vox.json"), "--feed", f"x={tmp_path / 'scan.mha'}"]
    assert main([*run, "--fetch", "y", "--save", str(tmp_path / "y.nii.gz")]) == 0
    image = nibabel.load(tmp_path / "y.nii.gz")
    middle = turned() @ [0.5, 0.5, 0.5, 1]
    np.testing.assert_allclose(image.affine[:, 3], middle, atol=1e-5)
    np.testing.assert_allclose(image.get_qform()[:, 3], middle, atol=1e-5)
    assert main([*run, "--fetch", "mixed", "--save", str(tmp_path / "m.mha")]) == 0
    assert "m.mha: its voxels have no place: mixed (Reshape) does not keep" in capsys.readouterr().err
    assert main([*run, "--save", str(tmp_path / "all.nii.gz")]) == 1
    assert "--save must name one result" in capsys.readouterr().err
    assert not (tmp_path / "all.nii.gz").exists()


def test_a_box_of_a_volume_lies_where_it_was_cut(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    save_volume(tmp_path / "files" / "scan.nrrd", numbers(1, 6, 6, 6, 1), like=placed(turned()))
    page = vg.Page("p")
    vg.ops.Volume(page, path="scan.nrrd", box=[1, 4, 2, 5, 3, 6], name="x")
    page.save(tmp_path / "p.vox.json")
    assert main(["run", str(tmp_path / "p.vox.json"), "--fetch", "x", "--save", str(tmp_path / "box.mha")]) == 0
    image = itk.ReadImage(str(tmp_path / "box.mha"))
    np.testing.assert_allclose(in_world(image, 0, 0, 0), (turned() @ [3, 2, 1, 1])[:3], atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1, 5, 4, 1), (1, 3, 1, 4, 1), (1, 3, 5, 1, 1)])
@pytest.mark.parametrize("suffix", [".tif", ".nii", ".mha", ".nrrd"])
def test_axes_of_one_cell(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    five = numbers(*shape)
    save_volume(tmp_path / f"a{suffix}", five)
    np.testing.assert_array_equal(open_volume(tmp_path / f"a{suffix}").read(), five)


def test_parts_of_new_files_are_written(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        store = create_volume(tmp_path / f"a{suffix}", (1, 4, 4, 4, 1), np.uint16)
        store.write((slice(None), slice(1, 3), slice(0, 2), slice(2, 4), slice(None)), np.ones((1, 2, 2, 2, 1)))
        found = itk.GetArrayFromImage(itk.ReadImage(str(tmp_path / f"a{suffix}")))
        assert found.sum() == 8
        assert found[1:3, 0:2, 2:4].all()
