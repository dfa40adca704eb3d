# SPDX-License-Identifier: Apache-2.0
"""Volumes in files: what other libraries wrote is read rightly, and what is written they read rightly."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from voxgrad.volumes.axes import Layout
from voxgrad.volumes.space import Space
from voxgrad.volumes.stores import Store, create_volume, open_volume, save_volume

BOX = (slice(None), slice(1, 3), slice(2, 5), slice(0, 6, 2), slice(None))


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).integers(0, 200, shape).astype(dtype)


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is an optional extra")


def check(store: Store, five: Any) -> None:
    """All of it, a box, an index and the array protocol show the same numbers."""
    assert store.shape == five.shape
    assert store.dtype == five.dtype.newbyteorder("=")
    assert store.read().dtype == store.dtype
    np.testing.assert_array_equal(store.read(), five)
    np.testing.assert_array_equal(store.read(BOX), five[BOX])
    np.testing.assert_array_equal(np.asarray(store), five)
    np.testing.assert_array_equal(store[0, -1, ..., ::-1, 0], five[0, -1, ..., ::-1, 0])
    np.testing.assert_array_equal(store[..., 1:1, :], five[..., 1:1, :])


# Axes


@pytest.mark.parametrize("axes", ["zyx", "xyzt", "tczyx", "NDHWC", "cxyz", "DHWC", "xy", "szxyb"])
def test_any_order_of_axes_is_turned_and_turned_back(axes: str) -> None:
    letters = {"t": 0, "n": 0, "b": 0, "z": 1, "d": 1, "y": 2, "h": 2, "x": 3, "w": 3, "c": 4, "s": 4}
    data = numbers(*range(2, 2 + len(axes)))
    layout = Layout(axes, data.shape)
    five = layout.to_five(data)
    assert five.ndim == 5
    for at in np.ndindex(data.shape):
        place = [0] * 5
        for letter, i in zip(axes.lower(), at, strict=True):
            place[letters[letter]] = i
        assert five[tuple(place)] == data[at]
    np.testing.assert_array_equal(layout.to_own(five), data)
    assert Layout.holding(axes, five.shape) == layout


@pytest.mark.parametrize(("axes", "code"), [("zyxx", "VG003"), ("zy?", "VG003"), ("zyxc", "VG004")])
def test_axes_that_cannot_be(axes: str, code: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", numbers(2, 3, 4))
    with pytest.raises(vg.InvalidArgumentError, match=f"{code} open_volume: axes"):
        open_volume(tmp_path / "a.npy", axes=axes)


# NumPy


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", ">i2", "uint8", "float64"])
def test_npy(tmp_path: Path, order: Any, dtype: str) -> None:
    data = np.asarray(numbers(3, 5, 7, dtype=dtype), order=order)
    np.save(tmp_path / "a.npy", data)
    check(open_volume(tmp_path / "a.npy"), data[None, ..., None])
    check(open_volume(tmp_path / "a.npy", axes="zyx"), data[None, ..., None])
    turned = open_volume(tmp_path / "a.npy", axes="xyz")
    assert turned.axes == "xyz"
    check(turned, data.T[None, ..., None]) if data.shape[2] > 4 else None


def test_bfloat16_npy(tmp_path: Path) -> None:
    data = numbers(1, 3, 5, 6, 2).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "a.npy", data)
    check(open_volume(tmp_path / "a.npy"), data)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    one, two = numbers(3, 5, 7), numbers(1, 4, 5, 6, 2, dtype=np.int16)
    save(tmp_path / "both.npz", one=one, two=two)
    save(tmp_path / "single.npz", one)
    check(open_volume(tmp_path / "single.npz"), one[None, ..., None])
    check(open_volume(f"{tmp_path}/both.npz:two"), two)
    with pytest.raises(vg.VoxgradError, match=r"both\.npz must hold one array; got 2: one, two"):
        open_volume(tmp_path / "both.npz")
    with pytest.raises(vg.VoxgradError, match="'three'"):
        open_volume(f"{tmp_path}/both.npz:three")


# Zarr


def test_zarr_with_shards_and_names(tmp_path: Path) -> None:
    zarr = library("zarr")
    data = numbers(8, 6, 4)
    made = zarr.create_array(
        store=str(tmp_path / "a.zarr"), data=data, chunks=(2, 3, 2), shards=(4, 6, 4), dimension_names=["x", "y", "z"]
    )
    assert made.shards
    store = open_volume(tmp_path / "a.zarr")
    check(store, data.T[None, ..., None])
    assert store.chunks == (1, 4, 6, 4, 1)
    assert store.axes == "xyz"


def test_zarr_version_2(tmp_path: Path) -> None:
    zarr = library("zarr")
    data = numbers(1, 3, 5, 7, 2)
    zarr.create_array(store=str(tmp_path / "a.zarr"), data=data, zarr_format=2)
    check(open_volume(tmp_path / "a.zarr"), data)


def ome_axes(letters: str) -> list[dict[str, str]]:
    kinds = {"t": "time", "c": "channel"}
    return [{"name": one, "type": kinds.get(one, "space"), "unit": "micrometer"} for one in letters]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_ome_zarr_in(tmp_path: Path, version: str) -> None:
    zarr = library("zarr")
    data = numbers(2, 3, 5, 6, 7, dtype=np.uint16)
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2 if version == "0.4" else 3)
    group.create_array("full", data=data)
    group.create_array("half", data=data[..., ::2, ::2])
    scale = [{"type": "scale", "scale": [1.0, 1.0, 2.0, 0.5, 0.25]}]
    half = [{"type": "scale", "scale": [1.0, 1.0, 2.0, 1.0, 0.5]}]
    images = [{
        "axes": ome_axes("tczyx"),
        "datasets": [{"path": "full", "coordinateTransformations": scale},
                     {"path": "half", "coordinateTransformations": half}],
        "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 10.0, 1.0, 1.0]}],
    }]  # fmt: skip
    group.attrs.update(
        {"multiscales": images} if version == "0.4" else {"ome": {"version": "0.5", "multiscales": images}}
    )
    store = open_volume(tmp_path / "a.zarr")
    check(store, data.transpose(0, 2, 3, 4, 1))
    assert store.spacing == (20.0, 0.5, 0.25)
    assert store.unit == "um"
    coarse = open_volume(f"{tmp_path}/a.zarr:half")
    assert coarse.shape == (2, 5, 3, 4, 3)
    assert coarse.spacing == (20.0, 1.0, 0.5)


def test_ome_zarr_out(tmp_path: Path) -> None:
    zarr = library("zarr")
    five = numbers(1, 4, 6, 7, 3)
    np.save(tmp_path / "like.npy", five)
    like = open_volume(tmp_path / "like.npy")
    like = replace(like, space=Space((3.0, 2.0, 1.0), "um"))
    save_volume(tmp_path / "a.ome.zarr", five, like=like, chunks=(1, 2, 3, 7, 3))
    group = zarr.open_group(str(tmp_path / "a.ome.zarr"), mode="r")
    ome = json.loads((tmp_path / "a.ome.zarr" / "zarr.json").read_text())["attributes"]["ome"]
    assert ome["version"] == "0.5"
    (image,) = ome["multiscales"]
    assert [(axis["name"], axis["type"]) for axis in image["axes"]] == [
        ("c", "channel"), ("z", "space"), ("y", "space"), ("x", "space"),
    ]  # fmt: skip
    assert image["axes"][1]["unit"] == "micrometer"
    assert image["datasets"] == [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 3.0, 2.0, 1.0]}]}
    ]
    assert group["0"].chunks == (3, 2, 3, 7)
    np.testing.assert_array_equal(group["0"][...], five[0].transpose(3, 0, 1, 2))
    check(open_volume(tmp_path / "a.ome.zarr"), five)
    assert open_volume(tmp_path / "a.ome.zarr").spacing == (3.0, 2.0, 1.0)


# NIfTI


def test_nifti_is_turned(tmp_path: Path) -> None:
    nibabel = library("nibabel")
    path = Path(nibabel.__file__).parent / "tests" / "data" / "example4d.nii.gz"
    store, image = open_volume(path), nibabel.load(path)
    data = np.asarray(image.dataobj)
    assert store.shape == (2, 24, 96, 128, 1)
    assert np.allclose(store.spacing, image.header.get_zooms()[:3][::-1])
    np.testing.assert_array_equal(store.affine, image.affine)
    part = store.read((slice(1, 2), slice(3, 5), slice(10, 20), slice(0, 7), slice(None)))
    assert np.array_equal(part[0, :, :, :, 0], data[0:7, 10:20, 3:5, 1].transpose(2, 1, 0))
    assert open_volume(path, axes="xyzc").shape == (1, 24, 96, 128, 2)


def test_nifti_of_the_other_byte_order() -> None:
    nibabel = library("nibabel")
    path = Path(nibabel.__file__).parent / "tests" / "data" / "anatomical.nii"
    data = np.asarray(nibabel.load(path).dataobj)
    assert data.dtype == ">i2"
    check(open_volume(path), data.T[None, ..., None])


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", ["Nifti1Image", "Nifti2Image"])
def test_nifti_slope_and_intercept(tmp_path: Path, suffix: str, kind: str) -> None:
    nibabel = library("nibabel")
    image = getattr(nibabel, kind)(numbers(7, 6, 5, dtype=np.int16), np.diag([1.0, 2.0, 3.0, 1.0]))
    image.header.set_slope_inter(0.5, -7.0)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, tmp_path / f"a{suffix}")
    store = open_volume(tmp_path / f"a{suffix}")
    assert store.dtype == np.float32
    assert store.unit == "mm"
    assert store.spacing == (3.0, 2.0, 1.0)
    wanted = nibabel.load(tmp_path / f"a{suffix}").get_fdata()
    np.testing.assert_array_equal(store.read()[0, ..., 0], wanted.T.astype(np.float32))


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("shape", [(1, 5, 6, 7, 1), (2, 5, 6, 7, 1), (2, 5, 6, 7, 3)])
def test_nifti_round_trip_keeps_the_affine(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    nibabel = library("nibabel")
    affine = np.array([[0, -2.0, 0, 5], [1.5, 0, 0, 6], [0, 0, 3.0, 7], [0, 0, 0, 1]])
    nibabel.save(nibabel.Nifti1Image(numbers(7, 6, 5), affine), tmp_path / "from.nii")
    five = numbers(*shape)
    save_volume(tmp_path / f"to{suffix}", five, like=open_volume(tmp_path / "from.nii"))
    image = nibabel.load(tmp_path / f"to{suffix}")
    np.testing.assert_allclose(image.affine, affine)
    assert image.get_data_dtype() == np.float32
    np.testing.assert_array_equal(image.get_fdata().reshape(7, 6, 5, shape[0], shape[4]), five.transpose(3, 2, 1, 0, 4))
    check(open_volume(tmp_path / f"to{suffix}"), five)


# TIFF


def test_a_plain_tiff_stack_is_mapped(tmp_path: Path) -> None:
    tifffile = library("tifffile")
    data = numbers(4, 6, 8, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", data, photometric="minisblack")
    check(open_volume(tmp_path / "a.tif"), data[None, ..., None])


def test_an_imagej_hyperstack(tmp_path: Path) -> None:
    tifffile = library("tifffile")
    data = numbers(2, 4, 3, 6, 8, dtype=np.uint16)
    metadata = {"axes": "TZCYX", "spacing": 3.5, "unit": "um"}
    tifffile.imwrite(tmp_path / "a.tif", data, imagej=True, resolution=(4.0, 2.0), metadata=metadata)
    store = open_volume(tmp_path / "a.tif")
    check(store, data.transpose(0, 1, 3, 4, 2))
    assert store.spacing == (3.5, 0.5, 0.25)
    assert store.unit == "um"
    assert store.axes == "TZCYX"


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"tile": (16, 16), "compression": "zlib"}])
def test_an_ome_tiff_packed_or_not(tmp_path: Path, options: dict[str, Any]) -> None:
    tifffile = library("tifffile")
    library("zarr")
    data = numbers(3, 4, 40, 36, dtype=np.float32)
    metadata = {"axes": "CZYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 3.0}
    tifffile.imwrite(tmp_path / "a.ome.tif", data, ome=True, metadata=metadata, photometric="minisblack", **options)
    store = open_volume(tmp_path / "a.ome.tif")
    check(store, data.transpose(1, 2, 3, 0)[None])
    assert store.spacing == (3.0, 0.5, 0.25)
    assert store.unit == "um"
    assert (store.chunks is not None) == bool(options)


def test_tiff_pages_of_a_packed_stack_are_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile = library("tifffile")
    library("zarr")
    tifffile.imwrite(tmp_path / "a.tif", numbers(9, 32, 32, dtype=np.uint8), compression="zlib")
    store = open_volume(tmp_path / "a.tif")
    assert store.chunks == (1, 1, 32, 32, 1)
    assert store[0, 4].shape == (32, 32, 1)


@pytest.mark.parametrize("name", ["a.tif", "a.ome.tif"])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "float64", "int32"])
@pytest.mark.parametrize("shape", [(1, 4, 6, 8, 1), (2, 4, 6, 8, 3)])
def test_tiff_out(tmp_path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    tifffile = library("tifffile")
    nibabel = library("nibabel")
    nibabel.save(nibabel.Nifti1Image(numbers(8, 6, 4), np.diag([0.25, 0.5, 3.0, 1.0])), tmp_path / "from.nii")
    five = numbers(*shape, dtype=dtype)
    save_volume(tmp_path / name, five, like=open_volume(tmp_path / "from.nii"))
    read = tifffile.imread(tmp_path / name)
    np.testing.assert_array_equal(read.reshape(five.transpose(0, 1, 4, 2, 3).shape), five.transpose(0, 1, 4, 2, 3))
    store = open_volume(tmp_path / name)
    check(store, five)
    known = store.spacing if name == "a.ome.tif" or dtype in ("float32", "uint16") else store.spacing[1:]
    assert np.allclose(known, (3.0, 0.5, 0.25)[-len(known) :])


def test_a_large_tiff_is_a_bigtiff(tmp_path: Path) -> None:
    tifffile = library("tifffile")
    store = create_volume(tmp_path / "a.tif", (1, 70000, 256, 256, 1), np.uint8)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        assert file.is_bigtiff
    one = (slice(None), slice(69998, 69999), slice(7, 8), slice(9, 10), slice(None))
    store.write(one, np.full((1, 1, 1, 1, 1), 200, np.uint8))
    again = open_volume(tmp_path / "a.tif")
    assert again.shape == (1, 70000, 256, 256, 1)
    assert again.read(one).item() == 200


# HDF5


def test_hdf5(tmp_path: Path) -> None:
    h5py = library("h5py")
    plain, cut = numbers(4, 6, 8), numbers(2, 3, 4, 6, 8, dtype=np.int16)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t0/plain"] = plain
        made = file.create_dataset("t0/cut", data=cut, chunks=(1, 1, 2, 3, 4), compression="gzip")
        for dimension, letter in zip(made.dims, "tczyx", strict=True):
            dimension.label = letter
        made.attrs["element_size_um"] = [3.0, 0.5, 0.25]
        file["text"] = "a note"
    check(open_volume(f"{tmp_path}/a.h5:/t0/plain"), plain[None, ..., None])
    store = open_volume(f"{tmp_path}/a.h5:t0/cut")
    check(store, cut.transpose(0, 2, 3, 4, 1))
    assert store.chunks == (1, 2, 3, 4, 1)
    assert store.spacing == (3.0, 0.5, 0.25)
    with pytest.raises(vg.VoxgradError, match=r"a\.h5 must hold one dataset; got 2: /t0/cut, /t0/plain"):
        open_volume(tmp_path / "a.h5")
    with pytest.raises(vg.VoxgradError, match=r"hold a dataset /nothing; got /t0/cut, /t0/plain"):
        open_volume(f"{tmp_path}/a.h5:/nothing")


def test_hdf5_out(tmp_path: Path) -> None:
    h5py = library("h5py")
    five = numbers(2, 4, 6, 8, 3)
    save_volume(f"{tmp_path}/a.h5:/deep/down", five)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["deep/down"][...], five)
        assert [dimension.label for dimension in file["deep/down"].dims] == list("NDHWC")
    check(open_volume(tmp_path / "a.h5"), five)


def test_hdf5_stays_in_its_file(tmp_path: Path) -> None:
    h5py = library("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = numbers(4, 6, 8)
    np.asarray(numbers(4, 6, 8)).tofile(tmp_path / "raw")
    layout = h5py.VirtualLayout(shape=(4, 6, 8), dtype="f4")
    layout[...] = h5py.VirtualSource(tmp_path / "other.h5", "x", shape=(4, 6, 8))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "/x")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("raw", (4, 6, 8), "f4", external=[(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)])
    for name in ("link", "virtual", "raw"):
        with pytest.raises(vg.VoxgradError, match="must hold its own data"):
            open_volume(f"{tmp_path}/a.h5:/{name}")


# DICOM


def write_slice(folder: Path, name: str, pixels: Any, position: float, **changed: Any) -> None:
    pydicom = library("pydicom")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = f"1.2.3.{int(position * 10) % 10000 + 1}"
    data = pydicom.dataset.FileDataset(str(folder / name), {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID = "1.2.3"
    data.Rows, data.Columns = pixels.shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation = 15, int(pixels.dtype.kind == "i")
    data.PixelSpacing = [0.5, 0.25]
    data.ImageOrientationPatient = [0, 1, 0, 0, 0, -1]
    # The normal of these rows and columns is -x.
    data.ImagePositionPatient = [-position, 10.0, 20.0]
    data.SliceThickness = 99.0
    for key, value in changed.items():
        setattr(data, key, value)
    data.PixelData = pixels.tobytes()
    data.save_as(folder / name, enforce_file_format=True)


def test_a_dicom_series_is_put_in_order(tmp_path: Path) -> None:
    volume = numbers(5, 6, 7, dtype=np.int16) - 100
    for at, name in enumerate(["d", "a", "e", "c", "b"]):
        write_slice(tmp_path, f"{name}.dcm", volume[at], 3.0 * at)
    (tmp_path / "notes.txt").write_text("not an image")
    store = open_volume(tmp_path)
    check(store, volume[None, ..., None])
    assert store.dtype == np.int16
    assert store.spacing == (3.0, 0.5, 0.25)
    assert store.unit == "mm"
    told = library("nibabel.nicom.dicomwrappers").wrapper_from_file(tmp_path / "d.dcm").affine
    # That library counts rows first and keeps DICOM's axes; the directions and the origin are the same.
    turned = np.diag([-1.0, -1.0, 1.0, 1.0]) @ told
    assert store.affine is not None
    np.testing.assert_allclose(store.affine[:, [1, 0, 3]], turned[:, [0, 1, 3]])
    np.testing.assert_allclose(store.affine[:3, 2], [3.0, 0.0, 0.0])


def test_dicom_slope_and_intercept(tmp_path: Path) -> None:
    volume = numbers(3, 6, 7, dtype=np.uint16)
    for at in range(3):
        write_slice(tmp_path, f"{at}.dcm", volume[at], float(at), RescaleSlope=at + 1, RescaleIntercept=-1024)
    wanted = volume * np.array([1, 2, 3]).reshape(3, 1, 1) - 1024.0
    check(open_volume(tmp_path), wanted[None, ..., None].astype(np.float32))


def test_dicom_series_that_are_no_volume(tmp_path: Path) -> None:
    image = numbers(6, 7, dtype=np.int16)
    for at in (0, 1, 2, 4, 5):
        write_slice(tmp_path, f"{at}.dcm", image, float(at))
    with pytest.raises(vg.VoxgradError, match=r"4\.dcm must follow the slice before it.*A slice is missing"):
        open_volume(tmp_path)
    write_slice(tmp_path, "3.dcm", image, 3.0)
    assert open_volume(tmp_path).shape == (1, 6, 6, 7, 1)
    write_slice(tmp_path, "again.dcm", image, 3.0)
    with pytest.raises(vg.VoxgradError, match="a place of its own"):
        open_volume(tmp_path)
    write_slice(tmp_path, "again.dcm", image, 3.0, SeriesInstanceUID="1.2.4")
    with pytest.raises(vg.VoxgradError, match=r"hold one series; got 2: 1\.2\.3 \(6 files\), 1\.2\.4 \(1 files\)"):
        open_volume(tmp_path)
    assert open_volume(f"{tmp_path}:1.2.3").shape == (1, 6, 6, 7, 1)
    write_slice(tmp_path, "again.dcm", image[:3], 6.0)
    with pytest.raises(vg.VoxgradError, match="have Rows 6"):
        open_volume(tmp_path)


def dicom_example(name: str) -> Path:
    path = Path(library("pydicom").__file__).parent / "data" / "test_files" / name
    if not path.exists():
        pytest.skip("this pydicom has no examples")
    return path


def test_a_dicom_file_of_many_frames() -> None:
    path = dicom_example("rtdose.dcm")
    frames = library("pydicom").dcmread(path).pixel_array
    check(open_volume(path), frames[None, ..., None])


def test_a_dicom_file_that_nothing_here_unpacks() -> None:
    path = dicom_example("examples_ybr_color.dcm")
    store = open_volume(path)
    assert store.shape == (1, 30, 240, 320, 3)
    try:
        frames = library("pydicom").pixels.pixel_array(path)
    except RuntimeError:
        with pytest.raises(vg.VoxgradError, match=r"VG070 .*examples_ybr_color\.dcm must be unpacked.*pip install"):
            store.read()
    else:
        np.testing.assert_array_equal(store[0, 7:9, 10:20], frames[7:9, 10:20])


# Writing in parts


@pytest.mark.parametrize("name", ["a.npy", "a.zarr", "a.ome.zarr", "a.nii", "a.tif", "a.ome.tif", "a.h5"])
def test_boxes_are_written_where_they_belong(tmp_path: Path, name: str) -> None:
    for module in {"zarr": "zarr", "nii": "nibabel", "tif": "tifffile", "h5": "h5py"}.items():
        if name.endswith(module[0]):
            library(module[1])
    five = numbers(2, 6, 6, 8, 2)
    create_volume(tmp_path / name, five.shape, five.dtype, (1, 3, 6, 4, 2))
    for at in np.ndindex(2, 2, 1, 2, 1):
        # Each box by an opening of its own, as separate workers do.
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, (1, 3, 6, 4, 2), strict=True))
        open_volume(tmp_path / name, write=True).write(box, five[box])
    check(open_volume(tmp_path / name), five)


@pytest.mark.parametrize("name", ["a.npz", "a.nii.gz", "a.dcm"])
def test_formats_that_are_written_whole_or_not_at_all(tmp_path: Path, name: str) -> None:
    with pytest.raises(vg.VoxgradError, match=f"{name} must be a f"):
        create_volume(tmp_path / name, (1, 2, 2, 2, 1), np.float32)


def test_what_is_only_read_is_not_written(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", numbers(2, 3, 4))
    with pytest.raises(vg.VoxgradError, match=r"a\.npy must be open for writing"):
        open_volume(tmp_path / "a.npy").write((slice(None),) * 5, numbers(1, 2, 3, 4, 1))
    with pytest.raises(vg.VoxgradError, match="must be open for writing"):
        open_volume(tmp_path / "a.npy", write=True).astype(np.float64).write((slice(None),) * 5, numbers(1, 2, 3, 4, 1))


def test_a_volume_tells_what_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", numbers(64, 64, 65))
    assert repr(vg.open_volume(tmp_path / "a.npy")) == (
        "<Store a.npy (.npy): float32 [1, 64, 64, 65, 1], 1.0 MiB, axes DHW, voxels 1 x 1 x 1>"
    )
