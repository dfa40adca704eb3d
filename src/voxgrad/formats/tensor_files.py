# SPDX-License-Identifier: Apache-2.0
"""Arrays in .npy and .npz files. Never pickle; sizes are checked against the file before memory is taken."""

from __future__ import annotations

import contextlib
import io
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np

from voxgrad.arrays.limits import current_limit
from voxgrad.errors import Fault, VoxgradError, show

Array = np.ndarray[Any, Any]
MAX_RANK = 64
_MAX_HEADER = 10_000
"""As NumPy has it."""


def bad_file(path: object, wanted: str, got: object, remedy: str = "", code: str = "VG051") -> VoxgradError:
    """The error for a file that is not what it should be."""
    return VoxgradError(Fault(code, "file", str(path), wanted, str(got), remedy))


def is_array_file(name: str) -> bool:
    """True for the names that `read_array` takes."""
    return name.endswith((".npy", ".npz")) or ".npz:" in name


def read_array(name: str) -> Array:
    """The array in a file: `a.npy`, `a.npz` with one array, `a.npz:name`."""
    path, _, member = name.partition(".npz:")
    if member:
        return _read_npz(Path(f"{path}.npz"), member)
    file = Path(name)
    try:
        if file.suffix == ".npy":
            with file.open("rb") as stream:
                return read_npy(stream, file.stat().st_size, name)
        if file.suffix == ".npz":
            return _read_npz(file, None)
    except OSError as error:
        raise bad_file(name, "be a file that can be read", error.strerror or error) from None
    raise bad_file(name, "be a .npy or .npz file", file.suffix or "no suffix")


def read_npy(stream: IO[bytes], size: int, name: str) -> Array:
    """An array from a .npy stream of `size` bytes."""
    shape, fortran, dtype = read_header(stream, size, name)
    wanted = math.prod(shape) * dtype.itemsize
    if wanted > current_limit():
        raise bad_file(name, f"need at most {current_limit():,} bytes", f"{wanted:,} bytes")
    flat: Array = np.frombuffer(stream.read(wanted), dtype=dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def read_header(stream: IO[bytes], size: int, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type of a .npy stream of `size` bytes, which then stands at its data.

    Object arrays, which would need pickle, are refused, and streams that hold less than they declare.
    """
    header_error = None
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        length = stream.read(2 if version == (1, 0) else 4)
        # NumPy reads as much as is told here, and complains afterwards.
        head = stream.read(min(int.from_bytes(length, "little"), _MAX_HEADER + 1))
        shape, fortran, dtype = read(io.BytesIO(length + head), max_header_size=_MAX_HEADER)
    except Exception as error:  # NumPy raises whatever its parser of Python does
        header_error = str(error) or type(error).__name__
    if header_error is not None:
        raise bad_file(name, "be a .npy file of version 1 or 2", header_error.splitlines()[0][:120])
    if dtype.hasobject or dtype.kind not in "biufcV":
        raise bad_file(
            name, "hold numbers", f"dtype {dtype}", "Arrays of Python objects need pickle, which is not read."
        )
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise bad_file(name, f"have at most {MAX_RANK} dimensions, of 0 cells or more", f"shape {show(list(shape))}")
    wanted = math.prod(shape) * dtype.itemsize
    if stream.tell() + wanted > size:
        got = f"{size - stream.tell():,} for shape {list(shape)}"
        raise bad_file(name, f"hold {wanted:,} bytes of data", got, "The file is cut off.")
    return shape, fortran, _known(dtype, name)


def _known(dtype: np.dtype[Any], name: str) -> Any:
    """NumPy writes bfloat16 as two nameless bytes."""
    if dtype.kind != "V":
        return dtype
    if dtype.itemsize == 2 and dtype.fields is None and dtype.subdtype is None:
        return np.dtype(ml_dtypes.bfloat16)
    raise bad_file(name, "hold numbers", f"dtype {dtype}")


def _read_npz(path: Path, member: str | None) -> Array:
    return read_member(path, find_member(path, member))


def find_member(path: Path, member: str | None) -> zipfile.ZipInfo:
    """The array of this name in a .npz file, or the only one."""
    arrays = open_npz(path)
    if member is None and len(arrays) != 1:
        listed = ", ".join(arrays) or "none"
        raise bad_file(path, "hold one array", f"{len(arrays)}: {listed}", f"Write {path}:NAME.")
    name = next(iter(arrays)) if member is None else member
    if name not in arrays:
        raise bad_file(path, f"hold an array {name!r}", ", ".join(arrays) or "none")
    return arrays[name]


def open_npz(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The arrays in a .npz file, by name, without reading them."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise bad_file(path, "be a .npz file", error) from None
    except OSError as error:
        raise bad_file(path, "be a file that can be read", error.strerror or error) from None
    return {info.filename.removesuffix(".npy"): info for info in infos}


def read_member(path: Path, info: zipfile.ZipInfo) -> Array:
    """One array of a .npz file. No more is unpacked than its header declares."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
            return read_npy(stream, info.file_size, f"{path}:{info.filename}")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, UnicodeError) as error:
        raise bad_file(path, "be a .npz file", error) from None


def write_array(name: str, array: Array) -> None:
    """Write an array as .npy or .npz, in one step: a reader sees the old file or the new one."""
    path = Path(name)
    if path.suffix == ".npz":
        write_npz(path, {"output": array})
        return
    if path.suffix != ".npy":
        raise bad_file(name, "end in .npy or .npz", path.suffix or "no suffix")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    replace_file(path, buffer.getbuffer())


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write several arrays into one .npz file."""
    replace_file(path, npz_bytes(arrays))


def npz_bytes(arrays: Mapping[str, Array]) -> memoryview:
    """The contents of a .npz file with these arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getbuffer()


def replace_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()
        raise bad_file(path, "be a file that can be written", getattr(error, "strerror", "") or error) from None
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, where the system lets a folder be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
