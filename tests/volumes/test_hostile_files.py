# SPDX-License-Identifier: Apache-2.0
"""Broken and hostile files: an error that names the file, or numbers; never another exception, never code."""

import json
import pickle
import random
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_stores import library, numbers, write_slice
from voxgrad.formats.tensor_files import read_array
from voxgrad.volumes.stores import open_volume, save_volume

NAMES = ["a.npy", "a.npz", "a.zarr", "a.ome.zarr", "a.nii", "a.nii.gz", "a.tif", "a.ome.tif", "a.h5", "a.dcm"]


def make(folder: Path, name: str) -> Path:
    for suffix, module in {"zarr": "zarr", "nii": "nibabel", "gz": "nibabel", "tif": "tifffile", "h5": "h5py"}.items():
        if name.endswith(suffix):
            library(module)
    if name == "a.dcm":
        write_slice(folder, name, numbers(6, 7, dtype=np.int16), 0.0)
    else:
        save_volume(folder / name, numbers(1, 4, 6, 7, 1))
    return folder / name


def try_it(path: Path) -> None:
    try:
        store = open_volume(path)
        if store.nbytes < 2**24:
            store.read()
    except vg.VoxgradError as error:
        assert path.name in str(error) or "open_volume" in str(error)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files(tmp_path: Path, name: str, caplog: Any) -> None:
    good = make(tmp_path, name)
    pick = random.Random(name)
    files = sorted(one for one in good.rglob("*") if one.is_file()) if good.is_dir() else [good]
    kept = {file: file.read_bytes() for file in files}
    for round_ in range(60):
        file = pick.choice(files)
        data = bytearray(kept[file])
        if round_ % 3 == 0:
            data = data[: pick.randrange(len(data))]
        else:
            for _ in range(pick.choice([1, 4, 32])):
                # Most of what can go wrong is in the header.
                data[pick.randrange(min(len(data), pick.choice([128, 400, len(data)])))] = pick.randrange(256)
        file.write_bytes(data)
        try_it(good)
        file.write_bytes(kept[file])
    open_volume(good).read()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [b"", b"\0" * 600, b"\xff" * 600, b"PK\x03\x04", b"MM\0*\0\0\0\x08\xff\xff", b"{}"])
def test_files_that_are_something_else(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    library({"a.h5": "h5py", "a.dcm": "pydicom", "a.tif": "tifffile", "a.ome.tif": "tifffile"}.get(name, "nibabel"))
    path.write_bytes(data)
    with pytest.raises(vg.VoxgradError, match=name):
        open_volume(path).read()


def test_missing_files_and_unknown_ones(tmp_path: Path) -> None:
    with pytest.raises(vg.VoxgradError, match=r"VG051 file: .*gone\.nii must exist"):
        open_volume(tmp_path / "gone.nii")
    (tmp_path / "a.bmp").write_bytes(b"BM")
    with pytest.raises(vg.VoxgradError, match=r"a\.bmp must end in one of \.npy, .*, or be a folder of DICOM"):
        open_volume(tmp_path / "a.bmp")
    (tmp_path / "empty").mkdir()
    library("pydicom")
    with pytest.raises(vg.VoxgradError, match="empty must hold DICOM images; got none"):
        open_volume(tmp_path / "empty")


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_pickle_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bomb = np.empty((1, 2, 2, 2, 1), dtype=object)
    bomb[...] = Bomb(mark)
    np.save(tmp_path / "a.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "b.npz", x=bomb)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Bomb(mark)))
    for name in ("a.npy", "b.npz", "c.npy"):
        with pytest.raises(vg.VoxgradError, match=name):
            open_volume(tmp_path / name).read()
    assert not mark.exists()


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_a_zarr_array_cannot_name_pickle(tmp_path: Path, place: str) -> None:
    library("zarr")
    mark, path = tmp_path / "mark", tmp_path / "a.zarr"
    path.mkdir()
    header: dict[str, Any] = {
        "zarr_format": 2, "shape": [1, 2, 2, 2, 1], "chunks": [1, 2, 2, 2, 1], "dtype": "<f4", "fill_value": 0,
        "order": "C", "compressor": None, "filters": None,
    }  # fmt: skip
    codec = {"id": "pickle", "protocol": 5}
    header[place] = [codec] if place == "filters" else codec
    (path / ".zarray").write_text(json.dumps(header))
    (path / "0.0.0.0.0").write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(vg.VoxgradError, match=r"a\.zarr"):
        open_volume(path).read()
    assert not mark.exists()


def test_headers_that_no_array_has(tmp_path: Path) -> None:
    """Sizes without end, more axes than NumPy has, brackets and texts that are not closed; also where it is fed."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    shapes = ["-1, 2, 2", "1000000, 1000000, 1000000", "2, 2, 10**9", "9" * 30 + ", 1, 1", "1, " * 70, "(2, 2, 2", "'2"]
    for at, shape in enumerate(shapes):
        text = (header % shape).ljust(117).encode() + b"\n"
        path = tmp_path / f"{at}.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(64))
        for read in (open_volume, lambda path: read_array(str(path))):
            with pytest.raises(vg.VoxgradError, match=f"{path.name}|open_volume"):
                read(path)


def test_nifti_sizes(tmp_path: Path) -> None:
    good = make(tmp_path, "a.nii").read_bytes()
    for sizes in ((3, -4, 6, 7), (3, 30000, 30000, 30000), (7, 1, 1, 1, 1, 1, 2, 2)):
        data = bytearray(good)
        struct.pack_into(f"<{len(sizes)}h", data, 40, *sizes)
        (tmp_path / "b.nii").write_bytes(data)
        with pytest.raises(vg.VoxgradError, match=r"b\.nii"):
            open_volume(tmp_path / "b.nii").read()


def test_a_packed_file_unpacks_to_no_more_than_it_declares(tmp_path: Path) -> None:
    import gzip

    good = make(tmp_path, "a.nii").read_bytes()
    with gzip.open(tmp_path / "b.nii.gz", "wb") as stream:
        stream.write(good)
        stream.write(bytes(10**8))
    assert open_volume(tmp_path / "b.nii.gz").read().shape == (1, 4, 6, 7, 1)


def test_more_than_memory_is_refused(tmp_path: Path) -> None:
    zarr = library("zarr")
    zarr.create_array(store=str(tmp_path / "a.zarr"), shape=(10**6, 10**6, 10**6), chunks=(64, 64, 64), dtype="f4")
    store = open_volume(tmp_path / "a.zarr")
    assert store[0, :2, :2, :2].shape == (2, 2, 2, 1)
    with pytest.raises(vg.ResourceExhaustedError, match="VG020"):
        store.read()


def test_a_member_of_an_archive_is_not_taken_for_another(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=numbers(2, 3, 4))
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data[:20] + b"\xff\xff\xff\xff" + data[24:])
    try_it(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("x.npy", b"no array")
    with pytest.raises(vg.VoxgradError, match=r"b\.npz"):
        open_volume(tmp_path / "b.npz")


@pytest.mark.parametrize(("name", "module"), [("a.zarr", "zarr"), ("a.nii", "nibabel"), ("a.tif", "tifffile"),
                                              ("a.h5", "h5py"), ("a.dcm", "pydicom")])  # fmt: skip
def test_a_missing_library_is_one_line(tmp_path: Path, name: str, module: str, monkeypatch: Any) -> None:
    make(tmp_path, name)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(vg.VoxgradError) as caught:
        open_volume(tmp_path / name)
    told = str(caught.value)
    assert told.startswith("VG070") and "\n" not in told
    assert "pip install 'voxgrad[volumes]'" in told and f"pip install {module}" in told
    shutil.rmtree(tmp_path, ignore_errors=True)
