# SPDX-License-Identifier: Apache-2.0
"""Packed pieces of a file may hold no more than its header promises: how much that is, is found out before they are
unpacked by a library that believes them."""

from __future__ import annotations

import bz2
import lzma
import math
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.limits import check_size, limit_in_force
from voxgrad.errors import Faults
from voxgrad.formats.tensor_files import bad_file
from voxgrad.volumes.axes import Array
from voxgrad.volumes.store import mapped

RATIO = 1032
"""No deflated byte becomes more."""
_SLACK = 2**16
_STEP = 2**20
_WINDOWS = {"gzip": zlib.MAX_WBITS + 16, "zlib": zlib.MAX_WBITS, "deflate": -zlib.MAX_WBITS}


def is_harmless(stored: int, promised: int) -> bool:
    """True where a deflated piece of so many bytes cannot hold much more than it should, whatever is in it."""
    limit = limit_in_force()
    return stored * RATIO <= max(2 * promised + _SLACK, 2**30 if limit is None else min(limit, 2**30))


def check_piece(path: object, codec: str, data: bytes, promised: int) -> None:
    """Refuse a piece that would unpack to more than `promised` bytes, and the little that checksums take."""
    most = promised + _SLACK
    if codec in _WINDOWS and is_harmless(len(data), promised):
        return
    size = _SIZES[codec](data, most) if codec in _SIZES else 0
    if size > most:
        raise bad_file(path, f"hold {promised:,} bytes in a packed piece", f"{size:,} or more", code="VG020")


def check_chunks(path: object, chunk_bytes: int, count: int = 1) -> None:
    """Refuse chunks that do not fit into memory, however little of them is asked for, and more than can be handled."""
    faults = Faults("open_volume")
    check_size("open_volume", chunk_bytes + 4096 * count, faults, argument=str(path))
    faults.raise_if_any()


def check_inside(path: str, root: str) -> None:
    """Refuse a file that a link brings from outside of a folder. `root` is a real path."""
    real = os.path.realpath(path)
    if os.path.commonpath([real, root]) != root:
        raise bad_file(path, "hold its own data", "a link to elsewhere", "Links are not followed.", "VG056")


def unpacked_map(
    path: Path, pieces: Callable[[], Iterable[bytes]], sizes: Sequence[int], dtype: np.dtype[Any], order: str
) -> Callable[[], Array]:
    """The data of a packed file as a function, so that opening it unpacks nothing: once, into a temporary file.

    No more is unpacked than the header declares, whatever the pieces hold, nor more than the disk does.
    """

    @cache
    def unpacked() -> Array:
        wanted = math.prod(sizes) * dtype.itemsize
        _check_room(path, wanted)
        # Windows cannot take the name away from a file that is mapped.
        kept = os.name == "nt"
        with tempfile.NamedTemporaryFile(prefix="voxgrad-", delete=not kept) as file:
            left = wanted
            for piece in pieces():
                file.write(piece[:left])
                left -= len(piece)
                if left <= 0:
                    break
            file.flush()
            # The map keeps the bytes when the name goes.
            return mapped(Path(file.name), sizes, dtype, 0, order, False)

    return unpacked


def _check_room(path: Path, wanted: int) -> None:
    """Refuse what a file of this size cannot hold, and what the disk cannot."""
    there, free = path.stat().st_size, shutil.disk_usage(tempfile.gettempdir()).free
    if wanted > there * RATIO:
        raise bad_file(path, f"hold {wanted:,} bytes of data", f"{there:,} packed ones", "The file is cut off.")
    if wanted > free:
        raise bad_file(path, f"unpack into the {free:,} bytes that are free for temporary files", f"{wanted:,}")


def unpacked_size(make: Callable[[], Any], data: bytes, most: int) -> int:
    """How much a stream unpacks to, or something above `most`; what comes out is not kept. What is broken has none."""
    try:
        stream, total = make(), 0
        while total <= most and not stream.eof:
            part = stream.decompress(data, _STEP)
            total += len(part)
            data = stream.unconsumed_tail if hasattr(stream, "unconsumed_tail") else b""
            if not part and not data:
                break
        return total
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
        return 0


def _blosc(data: bytes, most: int) -> int:
    return int(struct.unpack_from("<I", data, 4)[0]) if len(data) >= 16 else 0


def _lz4(data: bytes, most: int) -> int:
    return int(struct.unpack_from("<I", data)[0]) if len(data) >= 4 else 0


def _zstd(data: bytes, most: int) -> int:
    """From the head of the frame; a frame without its size is unpacked into as much room as there may be."""
    if len(data) < 6 or data[:4] != b"\x28\xb5\x2f\xfd":
        return 0
    mark = data[4]
    at = 5 + (0 if mark & 0x20 else 1) + (0, 1, 2, 4)[mark & 3]
    width = {0: 1 if mark & 0x20 else 0, 1: 2, 2: 4, 3: 8}[mark >> 6]
    if width:
        return int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
    from numcodecs import zstd

    try:
        zstd.decompress(data, bytearray(most))
    except RuntimeError:
        return most + 1
    return 0


_SIZES: dict[str, Callable[[bytes, int], int]] = {
    name: lambda data, most, bits=bits: unpacked_size(lambda: zlib.decompressobj(bits), data, most)
    for name, bits in _WINDOWS.items()
} | {
    "bz2": lambda data, most: unpacked_size(bz2.BZ2Decompressor, data, most),
    "lzma": lambda data, most: unpacked_size(lzma.LZMADecompressor, data, most),
    "blosc": _blosc,
    "lz4": _lz4,
    "zstd": _zstd,
}
