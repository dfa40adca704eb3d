# SPDX-License-Identifier: Apache-2.0
"""Results lie where they belong. The data tells: averages of voxels that hold their own place in millimetres are the
places of the results, and the header of the result must say the same."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_stores import write_slice
from voxgrad.cli import main
from voxgrad.volumes.space import Space
from voxgrad.volumes.stores import open_volume, save_volume

nibabel = pytest.importorskip("nibabel", reason="nibabel is an optional extra")
OFFSET = np.array([5.0, -60.0, 33.0])


def affine_of(seed: int) -> Any:
    """Turned, flipped, with three spacings."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    affine = np.eye(4)
    affine[:3, :3] = turn * rng.uniform(0.5, 3, 3)
    affine[:3, 3] = OFFSET
    return affine


def places(affine: Any, shape: tuple[int, ...]) -> Any:
    """[1, D, H, W, 3]: x, y, z in millimetres of every voxel."""
    depth, height, width = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij")
    voxels = np.stack([width, height, depth], -1).reshape(-1, 3)
    return nibabel.affines.apply_affine(affine, voxels).reshape(1, *shape, 3)


def write_places(path: Path, affine: Any, shape: tuple[int, ...]) -> Any:
    """A NIfTI file of places, x, y, z, t, c."""
    data = places(affine, shape)
    nibabel.save(nibabel.Nifti1Image(data.transpose(3, 2, 1, 0, 4), affine, dtype=np.float64), path)
    return data


def check_inside(path: Path, values: Any, margin: int) -> None:
    """Away from the padding, the places that the header tells are those that were averaged."""
    image = nibabel.load(path)
    told = places(image.affine, image.shape[2::-1])
    inner = (slice(None), *(slice(margin, size - margin) for size in values.shape[1:4]))
    assert values[inner].size
    np.testing.assert_allclose(told[inner], values[inner], atol=1e-4)
    np.testing.assert_allclose(image.header.get_zooms()[:3], np.linalg.norm(image.affine[:3, :3], axis=0), rtol=1e-5)
    assert np.allclose(image.get_qform(), image.affine, atol=1e-3)


POOLS = list(itertools.product((1, 2, 3, 5), (1, 2, 3), ("SAME", "VALID")))


@pytest.mark.parametrize(("window", "stride", "padding"), POOLS)
@pytest.mark.parametrize("chunked", [False, True])
def test_pools(tmp_path: Path, window: int, stride: int, padding: str, chunked: bool) -> None:
    affine = affine_of(window * 10 + stride)
    write_places(tmp_path / "scan.nii", affine, (17, 19, 16))
    attrs = {"ksize": f"1,{window},{window},{window},1", "strides": f"1,{stride},{stride},{stride},1"}
    words = [word for name, text in attrs.items() for word in (f"--{name}", text)]
    more = ["--chunks", "4,5,6", "--workers", "0"] if chunked else []
    out = tmp_path / "out.nii"
    command = ["apply", "AvgPool3D", "--input", str(tmp_path / "scan.nii"), "--output", str(out), *words]
    assert main([*command, "--padding", padding, *more]) == 0
    check_inside(out, open_volume(out).read(), margin=0 if padding == "VALID" else 2)


def test_the_pool_of_a_scan_has_whole_voxels(tmp_path: Path) -> None:
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(np.zeros((33, 41, 25), np.int16), affine), tmp_path / "scan.nii.gz")
    for op, more in (("MaxPool3D", ["--padding", "SAME"]), ("AvgPool3D", ["--padding", "VALID"])):
        out = tmp_path / f"{op}.nii.gz"
        shape = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", *more]
        assert main(["apply", op, "--input", str(tmp_path / "scan.nii.gz"), "--output", str(out), *shape]) == 0
        image = nibabel.load(out)
        assert image.header.get_zooms()[:3] == (4.0, 4.0, 4.0)
        np.testing.assert_allclose(image.affine[:3, 3], 1.0)


@pytest.mark.parametrize(("window", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (2, 2, 1), (3, 1, 2), (1, 3, 1)])
def test_convolutions_there_and_back(tmp_path: Path, window: int, stride: int, dilation: int) -> None:
    affine = affine_of(7)
    data = write_places(tmp_path / "scan.nii", affine, (19, 17, 18))
    taps = np.zeros((window,) * 3 + (3, 3))
    taps[...] = np.eye(3) / window**3
    page = vg.Page("there and back")
    x = vg.ops.Placeholder(page, dtype="float64", shape=list(data.shape), name="x")
    attrs: dict[str, Any] = {
        "strides": [1, *[stride] * 3, 1], "dilations": [1, *[dilation] * 3, 1], "padding": "VALID",
    }  # fmt: skip
    y = vg.ops.Conv3D(page, x, taps, name="y", **attrs)
    vg.ops.Conv3DBackpropInputV2(page, list(data.shape), taps, y, name="back", **attrs)
    outputs = {name: tmp_path / f"{name}.nii" for name in ("y", "back")}
    found = vg.volumes.run_page(page, {"x": tmp_path / "scan.nii"}, outputs, chunks=(5, 4, 6), workers=0)
    check_inside(outputs["y"], found["y"].read(), margin=0)
    np.testing.assert_allclose(found["back"].affine, affine, atol=1e-5)


def test_geometry_survives_what_keeps_it_and_goes_with_what_does_not(tmp_path: Path) -> None:
    affine = affine_of(3)
    write_places(tmp_path / "scan.nii", affine, (6, 7, 8))
    other = affine @ np.diag([2.0, 1, 1, 1])
    write_places(tmp_path / "other.nii", other, (6, 7, 8))
    page = vg.Page("kept")
    x, z = (vg.ops.Placeholder(page, dtype="float64", shape=[1, 6, 7, 8, 3], name=name) for name in "xz")
    vg.ops.Relu(page, vg.ops.AddV2(page, x, 1.0), name="kept")
    vg.ops.AddV2(page, x, z, name="mixed")
    vg.ops.Conv3D(page, x, np.ones((1, 1, 1, 3, 2)), strides=[1] * 5, padding="SAME", name="channels")
    names = ("kept", "mixed", "channels")
    files = {"x": tmp_path / "scan.nii", "z": tmp_path / "other.nii"}
    outputs = {name: tmp_path / f"{name}.nii" for name in names}
    found = vg.volumes.run_page(page, files, outputs, chunks=(3, 3, 3), workers=0)
    np.testing.assert_allclose(found["kept"].affine, affine, atol=1e-5)
    np.testing.assert_allclose(found["channels"].affine, affine, atol=1e-5)
    assert found["mixed"].affine is None
    same = vg.volumes.run_page(page, files | {"z": tmp_path / "scan.nii"}, {"mixed": tmp_path / "m.nii"}, workers=0)
    np.testing.assert_allclose(same["mixed"].affine, affine, atol=1e-5)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.h5", "a.ome.zarr"])
def test_every_format_that_holds_a_place_keeps_it(tmp_path: Path, name: str) -> None:
    if not name.startswith("a.nii"):
        pytest.importorskip({"a.h5": "h5py", "a.ome.zarr": "zarr"}[name])
    affine = np.diag([1.5, 2.0, 3.0, 1.0])
    affine[:3, 3] = OFFSET
    write_places(tmp_path / "scan.nii", affine, (6, 8, 10))
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    if name.endswith(".gz"):
        words = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "VALID"]
        files = ["--input", str(tmp_path / "scan.nii"), "--output", str(tmp_path / name)]
        assert main(["apply", "MaxPool3D", *files, *words]) == 0
        made = open_volume(tmp_path / name)
    else:
        made = vg.volumes.apply("MaxPool3D", {"input": tmp_path / "scan.nii"}, tmp_path / name, workers=0, **attrs)
    assert made.spacing == (6.0, 4.0, 3.0)
    first = made.affine[2::-1, 3] if made.affine is not None else made.space.origin
    np.testing.assert_allclose(first, np.add(OFFSET[::-1], [1.5, 1.0, 0.75]))


def test_a_volume_of_another_size_lends_no_place(tmp_path: Path) -> None:
    write_places(tmp_path / "scan.nii", affine_of(1), (4, 4, 4))
    scan = open_volume(tmp_path / "scan.nii")
    with pytest.raises(vg.VoxgradError, match=r"like must have the depth, height and width .* \[2, 4, 4\]"):
        save_volume(tmp_path / "a.nii", np.zeros((1, 2, 4, 4, 1), np.float32), like=scan)
    assert not (tmp_path / "a.nii").exists()
    save_volume(tmp_path / "a.nii", np.zeros((1, 2, 4, 4, 1), np.float32), like=Space((2.0, 1.0, 1.0), "mm"))
    assert open_volume(tmp_path / "a.nii").spacing == (2.0, 1.0, 1.0)


def test_millimetres_are_not_micrometres_in_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    save_volume(tmp_path / "a.h5", np.zeros((1, 2, 2, 2, 1), np.float32), like=Space((2.0, 1.0, 0.5), "mm"))
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_allclose(file["volume"].attrs["element_size_um"], [2000, 1000, 500])
    assert open_volume(tmp_path / "a.h5").unit == "mm"


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("stored", "read"), [(np.uint8, np.float32), (np.int16, np.float32), (np.int32, np.float64)])
def test_integers_are_read_as_floats_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stored: Any, read: Any, chunked: bool
) -> None:
    nibabel.save(nibabel.Nifti1Image(np.arange(64, dtype=stored).reshape(4, 4, 4), np.eye(4)), tmp_path / "scan.nii")
    more = ["--chunks", "2,2,2", "--workers", "0"] if chunked else []
    files = ["--input", str(tmp_path / "scan.nii"), "--output", str(tmp_path / "out.nii")]
    shape = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "VALID"]
    assert main(["apply", "AvgPool3D", *files, *shape, *more]) == 0
    assert open_volume(tmp_path / "out.nii").dtype == read
    assert f"{np.dtype(stored)}, read as {np.dtype(read)}" in capsys.readouterr().err


@pytest.mark.parametrize("chunked", [False, True])
def test_a_dicom_series_keeps_its_place(tmp_path: Path, chunked: bool) -> None:
    folder = tmp_path / "series"
    folder.mkdir()
    for at in range(4):
        write_slice(folder, f"{at}.dcm", np.zeros((6, 8), np.int16), 3.0 * at)
    more = ["--chunks", "2,2,2", "--workers", "0"] if chunked else []
    files = ["--input", str(folder), "--output", str(tmp_path / "out.nii")]
    shape = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "VALID"]
    assert main(["apply", "MaxPool3D", *files, *shape, *more]) == 0
    scan = open_volume(folder)
    # The first voxel of the result is in the middle of the first eight of the scan.
    wanted = scan.affine @ [[2, 0, 0, 0.5], [0, 2, 0, 0.5], [0, 0, 2, 0.5], [0, 0, 0, 1]]
    np.testing.assert_allclose(nibabel.load(tmp_path / "out.nii").affine, wanted, atol=1e-5)
