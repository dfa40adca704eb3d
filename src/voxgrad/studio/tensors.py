# SPDX-License-Identifier: Apache-2.0
"""Results as files named by their content, in safetensors framing: a length, a JSON header, raw little-endian bytes.

The worker writes them, the server maps them into memory: a slice of a large volume costs what the slice is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of, numpy_type
from voxgrad.catalog import dtypes
from voxgrad.errors import Fault, InvalidArgumentError

Array = np.ndarray[Any, Any]

_NAMES = {
    "half": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32",
    "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
    "complex64": "C64", "complex128": "C128",
}  # fmt: skip
_TYPES = {short: dtypes.named(name) for name, short in _NAMES.items()}
_HEADER_LIMIT = 4096
_HASH = re.compile(r"[0-9a-f]{64}")
SUFFIX = ".safetensors"


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor that was stored: what others need to speak of it."""

    hash: str
    dtype: str
    shape: tuple[int, ...]


def framed_header(array: Array) -> bytes:
    """The bytes before the data: the length of the header, and the header, padded so that the data is aligned."""
    dtype = dtype_of(array.dtype)
    assert dtype is not None
    entry = {"dtype": _NAMES[dtype.name], "shape": list(array.shape), "data_offsets": [0, array.nbytes]}
    text = json.dumps({"tensor": entry}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def plain(array: Array) -> Array:
    """The array in C order and little-endian bytes."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


class TensorStore:
    """Tensors in a folder, by content. The least recently used ones go when there are too many bytes."""

    def __init__(self, folder: Path, max_bytes: int = 4 * 2**30):
        self.folder = folder
        self.max_bytes = max_bytes
        self._lock = threading.Lock()

    def put(self, array: Array) -> Stored | None:
        """Store a tensor; None for text, which has no framing."""
        dtype = dtype_of(array.dtype)
        if dtype is None or dtype.name not in _NAMES:
            return None
        dense = plain(array)
        header, data = framed_header(dense), dense.reshape(-1).view(np.uint8).data
        digest = hashlib.sha256(header)
        digest.update(data)
        name = digest.hexdigest()
        path = self.folder / f"{name}{SUFFIX}"
        if not self.has(name):
            temporary = self.folder / f".{name}.{os.getpid()}.tmp"
            with temporary.open("wb") as stream:
                stream.write(header)
                stream.write(data)
            # Not synced: a result can be computed again, and a file that a power cut has cut is not opened.
            os.replace(temporary, path)
        return Stored(name, dtype.name, tuple(array.shape))

    def has(self, name: str | None) -> bool:
        """True if it is stored, which makes it recently used."""
        try:
            os.utime(self.folder / f"{name}{SUFFIX}")
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str) -> Array:
        """A stored tensor, mapped and not to be changed; an error for one that is not there any more."""
        if not _HASH.fullmatch(name):
            raise missing(name)
        path = self.folder / f"{name}{SUFFIX}"
        try:
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                dtype, shape, start = _read_header(stream.read(_HEADER_LIMIT), size)
            os.utime(path)
        except (FileNotFoundError, ValueError):
            raise missing(name) from None
        if start == size:
            return np.empty(shape, dtype)
        mapped = np.memmap(path, dtype, "r", start, (math.prod(shape),))
        return mapped.reshape(shape).view(np.ndarray)

    def trim(self) -> int:
        """Delete what was used longest ago until the rest fits; the number of bytes that went."""
        with self._lock:
            found = sorted(
                (entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(self.folder)
            )
            excess = sum(size for _, size, _ in found) - self.max_bytes
            gone = 0
            for _, size, path in found:
                if gone >= excess:
                    break
                Path(path).unlink(missing_ok=True)
                gone += size
            return gone


def _read_header(head: bytes, size: int) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Type, shape and start of the data; ValueError for anything that does not fit the file exactly."""
    if len(head) < 8:
        raise ValueError("no header")
    (length,) = struct.unpack("<Q", head[:8])
    if length > len(head) - 8:
        raise ValueError("a header that is too long")
    entry = json.loads(head[8 : 8 + length])["tensor"]
    dtype = _TYPES[entry["dtype"]]
    assert dtype is not None
    numpy, shape = numpy_type(dtype), tuple(entry["shape"])
    if 8 + length + math.prod(shape) * numpy.itemsize != size:
        raise ValueError("cut off")
    return numpy, shape, 8 + length


def missing(name: str) -> InvalidArgumentError:
    """The error for a tensor that is not stored, or not any more."""
    remedy = "Run the page again: old results are dropped when there are too many."
    return InvalidArgumentError(Fault("VG050", "studio", "tensor", "be stored here", repr(name[:80]), remedy))


_PART = re.compile(r"(-?\d{1,18})|(-?\d{1,18})?:(-?\d{1,18})?(?::(\d{1,18}))?")


def cut(array: Array, text: str) -> Array:
    """A slice written as `0:1,:,3`: integers drop their axis, steps are positive."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) > array.ndim:
        raise _bad_slice(f"have at most {array.ndim} parts", text)
    index: list[int | slice] = []
    for axis, part in enumerate(parts):
        match = _PART.fullmatch(part)
        if match is None or match[4] == "0":
            raise _bad_slice("have parts such as 3, 0:8 or 0:8:2", text)
        if match[1] is not None:
            at = int(match[1])
            if not -array.shape[axis] <= at < array.shape[axis]:
                raise _bad_slice(f"stay below {array.shape[axis]} in part {axis}", text)
            index.append(at)
        else:
            start, stop, step = (None if one is None else int(one) for one in match.group(2, 3, 4))
            index.append(slice(start, stop, step))
    return np.asarray(array[tuple(index)])


def _bad_slice(wanted: str, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG052", "studio", "slice", wanted, repr(text[:80])))


def framed(array: Array) -> bytes:
    """A tensor in safetensors framing, as one piece."""
    dense = plain(array)
    return framed_header(dense) + dense.tobytes()


TEXT_LETTERS = 200
"""Letters of a text that are told."""


def texts(values: Sequence[Any]) -> list[str]:
    """Numbers as the shortest text that gives the same number in their own type: 0.1, nan, -inf."""
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")[:TEXT_LETTERS]
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    text = str(value)
    return text.removesuffix(".0") if isinstance(value, (float, np.floating)) or hasattr(value, "dtype") else text[:TEXT_LETTERS]
