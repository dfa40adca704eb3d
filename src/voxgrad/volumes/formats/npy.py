# SPDX-License-Identifier: Apache-2.0
"""NumPy's .npy and .npz. Data are mapped, not read; of a packed .npz, one array is unpacked when it is first used."""

from __future__ import annotations

import struct
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

from voxgrad.formats.tensor_files import bad_file, find_member, read_header, read_member
from voxgrad.volumes.axes import Array, Index, Layout, default_axes
from voxgrad.volumes.store import New, Store, check_dtype, mapped, settled


def open_store(path: Path, member: str, axes: str | None, write: bool) -> Store:
    """The array of a .npy file, or one of a .npz file."""
    if path.suffix.lower() == ".npz":
        return _open_npz(path, member, axes, write)
    with path.open("rb") as stream:
        shape, fortran, dtype = read_header(stream, path.stat().st_size, str(path))
        offset = stream.tell()
    layout = Layout(axes or default_axes(len(shape)), shape)
    array = mapped(path, shape, dtype, offset, "F" if fortran else "C", write)

    def fetch(index: Index) -> Array:
        return np.array(array[index])

    return Store(path, layout, check_dtype(path, dtype), fetch, array.__setitem__ if write else None, kind=".npy",
                 settle=settled(array))  # fmt: skip


def _open_npz(path: Path, member: str, axes: str | None, write: bool) -> Store:
    if write:
        raise bad_file(path, "be a file that can be written in parts", "a .npz archive", "Write .npy or .zarr.")
    info = find_member(path, member or None)
    with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        shape, fortran, dtype = read_header(stream, info.file_size, f"{path}:{info.filename}")
        header = stream.tell()

    @cache
    def array() -> Array:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            return read_member(path, info)
        return mapped(path, shape, dtype, _data_offset(path, info) + header, "F" if fortran else "C", False)

    def fetch(index: Index) -> Array:
        return np.array(array()[index])

    name = info.filename.removesuffix(".npy")
    layout = Layout(axes or default_axes(len(shape)), shape)
    return Store(path, layout, check_dtype(path, dtype), fetch, member=name, kind=".npz")


def _data_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a member begin: behind its own header, whose two last lengths differ from the directory's."""
    with path.open("rb") as stream:
        stream.seek(info.header_offset)
        start = stream.read(30)
    if len(start) < 30 or start[:4] != b"PK\x03\x04":
        raise bad_file(path, "be a .npz file", "a member without a header")
    name, extra = struct.unpack("<HH", start[26:30])
    return info.header_offset + 30 + int(name) + int(extra)


def create(path: Path, member: str, new: New) -> None:
    """A .npy file of zeros."""
    if path.suffix.lower() == ".npz":
        raise bad_file(path, "be a file that can be written in parts", "a .npz archive", "Write .npy or .zarr.")
    layout = Layout.holding(new.axes or "NDHWC", new.shape)
    np.lib.format.open_memmap(path, mode="w+", dtype=new.dtype, shape=layout.sizes).flush()
