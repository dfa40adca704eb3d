# SPDX-License-Identifier: Apache-2.0
"""Small files that unpack to more than they promise, or promise what they cannot hold."""

from __future__ import annotations

import gzip
import io
import json
import struct
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_stores import library, numbers, write_slice
from voxgrad.volumes.stores import open_volume, save_volume

BOMB = 2**31
"""Bytes that the bombs unpack to; packed they have two million."""
ROOM = 2**28


def endless(before: bytes = b"", count: int = BOMB) -> bytes:
    """A deflated stream of some bytes and so many zeros: one piece of it, again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + piece * (count >> 20) + packer.flush()


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    heads = {"gzip": gzip.compress(b"")[:10], "zlib": b"\x78\xda", "deflate": b""}
    return {codec: head + endless() + bytes(8) for codec, head in heads.items()}


def refused(path: Path, code: str = "VG") -> str:
    """The file is an error that names it, and takes neither memory nor time."""
    tracemalloc.start()
    begun = time.process_time()
    try:
        with pytest.raises(vg.VoxgradError, match=code) as caught:
            open_volume(path).read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < ROOM
    assert time.process_time() - begun < 10
    assert path.name in str(caught.value) or "open_volume" in str(caught.value)
    return str(caught.value)


def test_nifti_data_behind_a_long_gap(tmp_path: Path, bombs: dict[str, bytes]) -> None:
    library("nibabel")
    save_volume(tmp_path / "a.nii", numbers(1, 4, 4, 4, 1))
    head = bytearray((tmp_path / "a.nii").read_bytes()[:352])
    struct.pack_into("<f", head, 108, float(BOMB - 4096))
    path = tmp_path / "b.nii.gz"
    path.write_bytes(gzip.compress(bytes(head)) + bombs["gzip"])
    assert "an offset of" in refused(path)


def test_nifti_sizes_that_no_packed_file_has(tmp_path: Path) -> None:
    library("nibabel")
    save_volume(tmp_path / "a.nii", numbers(1, 4, 4, 4, 1))
    data = bytearray((tmp_path / "a.nii").read_bytes())
    struct.pack_into("<4h", data, 40, 3, 2000, 2000, 100)
    path = tmp_path / "b.nii.gz"
    path.write_bytes(gzip.compress(bytes(data)))
    assert "cut off" in refused(path)


def zarr_v2(path: Path, compressor: Any, chunk: bytes, chunks: tuple[int, ...] = (1, 4, 4, 4, 1)) -> Path:
    path.mkdir()
    header = {
        "zarr_format": 2, "shape": [1, 4, 4, 4, 1], "chunks": list(chunks), "dtype": "<f4", "fill_value": 0,
        "order": "C", "compressor": compressor, "filters": None,
    }  # fmt: skip
    (path / ".zarray").write_text(json.dumps(header))
    (path / "0.0.0.0.0").write_bytes(chunk)
    return path


@pytest.mark.parametrize("codec", ["gzip", "zlib"])
def test_zarr_chunks(tmp_path: Path, bombs: dict[str, bytes], codec: str) -> None:
    library("zarr")
    path = zarr_v2(tmp_path / "a.zarr", {"id": codec, "level": 9}, bombs[codec])
    assert "packed piece" in refused(path, "VG020")


def test_zarr_chunks_that_state_their_size(tmp_path: Path) -> None:
    library("zarr")
    from numcodecs import LZ4, Blosc, Zstd

    for codec in (Zstd(), Blosc(), LZ4()):
        name = codec.codec_id
        data = codec.encode(np.zeros(2**26, np.uint8))
        assert "packed piece" in refused(zarr_v2(tmp_path / f"{name}.zarr", codec.get_config(), data), "VG020")
        good = codec.encode(np.arange(64, dtype=np.float32))
        store = open_volume(zarr_v2(tmp_path / f"{name}_good.zarr", codec.get_config(), good))
        assert store.read().ravel().tolist() == list(range(64))


def test_zarr_chunks_beyond_the_array(tmp_path: Path) -> None:
    library("zarr")
    path = zarr_v2(tmp_path / "a.zarr", None, b"", (1, 4000, 4000, 4000, 4))
    with vg.limits(bytes=2**30):
        refused(path, "VG020")


def test_zarr_follows_no_links(tmp_path: Path) -> None:
    library("zarr")
    path, outside = tmp_path / "a.zarr", tmp_path / "secret"
    save_volume(path, numbers(1, 4, 4, 4, 1))
    (chunk,) = [one for one in path.rglob("*") if one.is_file() and one.name != "zarr.json"]
    outside.write_bytes(chunk.read_bytes())
    chunk.unlink()
    chunk.symlink_to(outside)
    assert "link" in refused(path, "VG056")
    with pytest.raises(vg.VoxgradError, match="VG056"):
        open_volume(path, write=True).write((slice(None),) * 5, numbers(1, 4, 4, 4, 1))
    chunk.unlink()
    chunk.write_bytes(outside.read_bytes())
    (tmp_path / "link.zarr").symlink_to(path)
    np.testing.assert_array_equal(open_volume(tmp_path / "link.zarr").read(), numbers(1, 4, 4, 4, 1))


def test_hdf5_chunks(tmp_path: Path, bombs: dict[str, bytes]) -> None:
    h5py = library("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (4, 4, 4), "f4", chunks=(4, 4, 4), compression="gzip")
        data.id.write_direct_chunk((0, 0, 0), bombs["zlib"])
    assert "packed piece" in refused(path, "VG020")
    path = tmp_path / "b.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (4000, 4000, 4000), "f4", chunks=(1000, 1000, 1000), compression="gzip")
    with vg.limits(bytes=2**30), pytest.raises(vg.VoxgradError, match="VG020"):
        open_volume(path)[0, :2, :2, :2]


def test_tiff_strips(tmp_path: Path, bombs: dict[str, bytes]) -> None:
    tifffile = library("tifffile")
    library("zarr")
    path, good = tmp_path / "a.tif", numbers(4, 8, 8, dtype=np.uint8)
    pages = iter([bombs["zlib"]] + [zlib.compress(page.tobytes()) for page in good[1:]])
    tifffile.imwrite(path, pages, shape=good.shape, dtype=good.dtype, compression="zlib", photometric="minisblack")
    assert "packed piece" in refused(path, "VG020")


def test_a_dicom_file_with_endless_frames(tmp_path: Path) -> None:
    pydicom = library("pydicom")
    write_slice(tmp_path, "a.dcm", numbers(6, 7, dtype=np.int16), 0.0)
    header = pydicom.dcmread(tmp_path / "a.dcm")
    header.NumberOfFrames = 2**31 - 1
    header.save_as(tmp_path / "a.dcm")
    assert "frames" in refused(tmp_path / "a.dcm")


def test_a_deflated_dicom_file(tmp_path: Path, bombs: dict[str, bytes]) -> None:
    pydicom = library("pydicom")
    cells = numbers(6, 7, dtype=np.int16)
    write_slice(tmp_path, "a.dcm", cells, 0.0)
    header = pydicom.dcmread(tmp_path / "a.dcm")
    header.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    header.save_as(tmp_path / "a.dcm", enforce_file_format=True)
    np.testing.assert_array_equal(open_volume(tmp_path / "a.dcm").read().reshape(6, 7), cells)
    data = (tmp_path / "a.dcm").read_bytes()
    begin = 144 + int(pydicom.filereader.read_file_meta_info(tmp_path / "a.dcm").FileMetaInformationGroupLength)
    (tmp_path / "b.dcm").write_bytes(data[:begin] + bombs["deflate"])
    refused(tmp_path / "b.dcm")
    # The header is real, and what follows the pixels is not.
    body = zlib.decompress(data[begin:], -15)
    long = endless(body)
    (tmp_path / "b.dcm").write_bytes(data[:begin] + long)
    tracemalloc.start()
    np.testing.assert_array_equal(open_volume(tmp_path / "b.dcm").read().reshape(6, 7), cells)
    assert tracemalloc.get_traced_memory()[1] < ROOM
    tracemalloc.stop()


def test_npz_headers_and_members(tmp_path: Path) -> None:
    path, whole, most = tmp_path / "a.npz", io.BytesIO(), 2**26
    np.lib.format.write_array_header_1_0(whole, {"descr": "<f4", "fortran_order": False, "shape": (1, 4, 4, 4, 1)})
    long = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2 * most)
    for head in (long, whole.getvalue()):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("x.npy", head + bytes(2 * most + 100))
        tracemalloc.start()
        try:
            assert open_volume(path).read().shape == (1, 4, 4, 4, 1)
        except vg.VoxgradError as error:
            assert head == long and "a.npz" in str(error)
        assert tracemalloc.get_traced_memory()[1] < most
        tracemalloc.stop()
