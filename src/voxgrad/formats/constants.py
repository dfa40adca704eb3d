# SPDX-License-Identifier: Apache-2.0
"""Arrays in a page file: small ones in the text, large ones in .npy files beside it, named by their checksum.

{"tensor": {"dtype": "float32", "shape": [2, 2], "values": [1, 2, 3, 4]}}
{"tensor": {"dtype": "float32", "shape": [64, 64, 64], "file": "page.data/0123456789abcdef.npy", "sha256": "..."}}
{"tensor": {"dtype": "float32", "shape": [64, 64, 64], "base64": "..."}}      inside of pictures
{"float": "nan"}                                                              a number that JSON does not have
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import math
import os
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of, numpy_type
from voxgrad.arrays.locks import make_lock
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.errors import Faults, VoxgradError
from voxgrad.formats import json_text
from voxgrad.formats.tensor_files import read_npy, replace_file

Array = np.ndarray[Any, Any]

INLINE_ELEMENTS = 1024
"""Arrays up to this size stand in the text of the page."""
MAX_RANK = 32
FILE_NAME = re.compile(r"[^/\\:\0]{1,200}\.data/[0-9a-f]{16}\.npy")
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_TENSOR_KEYS = {"dtype", "shape", "values", "file", "sha256", "base64"}


class Arrays:
    """Arrays that were read before, for those who read the same page again and again; the oldest go first."""

    def __init__(self, max_bytes: int = 2**30):
        self._max_bytes = max_bytes
        self._found: OrderedDict[tuple[str, str], Array] = OrderedDict()
        self._entries: dict[int, tuple[str, str]] = {}
        self._lock = make_lock()

    def get(self, file: str, sha256: str) -> Array | None:
        """The array of a file with this checksum; not to be changed."""
        with self._lock:
            found = self._found.get((file, sha256))
            if found is not None:
                self._found.move_to_end((file, sha256))
            return found

    def put(self, file: str, sha256: str, array: Array) -> None:
        """Remember an array."""
        if array.nbytes > self._max_bytes:
            return
        array.flags.writeable = False
        with self._lock:
            self._found[file, sha256] = array
            self._entries[id(array)] = (file, sha256)
            while sum(one.nbytes for one in self._found.values()) > self._max_bytes:
                _, gone = self._found.popitem(last=False)
                self._entries.pop(id(gone), None)

    def entry(self, array: Array) -> dict[str, str] | None:
        """Where an array was read from."""
        with self._lock:
            key = self._entries.get(id(array))
            return {"file": key[0], "sha256": key[1]} if key is not None and self._found[key] is array else None


class Writer:
    """Turns values of a page into JSON values. With a folder, large arrays go there; without, everything is inline."""

    def __init__(self, folder: Path | None, known: Arrays | None = None):
        self.folder = folder
        self.known = known
        self.files: set[str] = set()

    def encode(self, value: Any) -> Any:
        """The JSON form of an attribute or typed value."""
        if isinstance(value, np.ndarray):
            return {"tensor": self._tensor(value)}
        if isinstance(value, (list, tuple)):
            return [self.encode(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        faults = Faults("Page")
        faults.add("VG002", "value", wanted="be plain data or an array", got=f"{type(value).__name__} {value!r}")
        raise faults.error()

    def _tensor(self, array: Array) -> dict[str, Any]:
        dtype = dtypes.STRING if array.dtype.kind in "OSU" else dtype_of(array.dtype)
        if dtype is None:
            faults = Faults("Page")
            faults.add("VG011", "value", wanted="have an element type that a page can hold", got=array.dtype)
            raise faults.error()
        head = {"dtype": dtype.name, "shape": list(array.shape)}
        if array.size <= INLINE_ELEMENTS or dtype == dtypes.STRING:
            return head | {"values": [_to_json(item, dtype) for item in array.ravel().tolist()]}
        if self.known is not None and (entry := self.known.entry(array)) is not None:
            return head | entry
        dense = np.ascontiguousarray(array, dtype=numpy_type(dtype).newbyteorder("<"))
        if self.folder is None:
            return head | {"base64": base64.b64encode(dense.tobytes()).decode()}
        return head | self._file(dense)

    def _file(self, array: Array) -> dict[str, str]:
        """Write an array under its checksum, so that a file never changes once a page speaks of it."""
        assert self.folder is not None
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=False)
        digest = hashlib.sha256(buffer.getbuffer()).hexdigest()
        name = f"{digest[:16]}.npy"
        self.files.add(name)
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / name).exists():
            replace_file(self.folder / name, buffer.getbuffer())
        return {"file": f"{self.folder.name}/{name}", "sha256": digest}


def _to_json(item: Any, dtype: DType) -> Any:
    if dtype.kind == "float":
        if not math.isfinite(item):
            return str(float(item))
        # The shortest text that gives the same number in its own precision: 0.1, not 0.10000000149011612.
        short = float(str(np.float32(item))) if dtype != dtypes.FLOAT64 else item
        return int(short) if short.is_integer() and abs(short) < 2**53 and math.copysign(1, short) > 0 else short
    if dtype.kind == "complex":
        return [_to_json(item.real, dtypes.FLOAT64), _to_json(item.imag, dtypes.FLOAT64)]
    if dtype == dtypes.STRING:
        return _text_to_json(item)
    return item


def _text_to_json(item: Any) -> Any:
    data = item if isinstance(item, bytes) else str(item).encode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class Reader:
    """Turns JSON values into values of a page; notes every fault with its place. Reads no file outside of `folder`."""

    def __init__(
        self, folder: Path | None, note: Callable[[json_text.Path, str, object], None], known: Arrays | None = None
    ):
        self.folder = folder
        self.note = note
        self.known = known

    def decode(self, value: Any, path: json_text.Path) -> Any:
        """The value of an attribute or a typed value."""
        if isinstance(value, list):
            return [self.decode(item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if set(value) == {"tensor"}:
            return self._tensor(value["tensor"], (*path, "tensor"))
        if set(value) == {"float"} and value["float"] in _NUMBERS:
            return _NUMBERS[value["float"]]
        self.note(path, 'be a plain value, {"tensor": ...} or {"float": "nan"}', f"an object with {sorted(value)[:6]}")
        return None

    def _tensor(self, data: Any, path: json_text.Path) -> Array | None:
        head = self._head(data, path)
        if head is None:
            return None
        dtype, shape = head
        stored = [key for key in ("values", "file", "base64") if key in data]
        if len(stored) != 1:
            self.note(path, "hold one of values, file and base64", stored or "none")
            return None
        read = {"values": self._values, "file": self._from_file, "base64": self._from_base64}[stored[0]]
        flat = read(data, dtype, math.prod(shape), (*path, stored[0]))
        return flat if flat is None or flat.shape == shape else flat.reshape(shape)

    def _head(self, data: Any, path: json_text.Path) -> tuple[DType, tuple[int, ...]] | None:
        if not isinstance(data, dict):
            self.note(path, "be an object", type(data).__name__)
            return None
        for key in data:
            if key not in _TENSOR_KEYS:
                self.note((*path, key), f"be one of {', '.join(sorted(_TENSOR_KEYS))}", "an unknown entry")
        shape = data.get("shape")
        if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(_is_size(size) for size in shape):
            self.note((*path, "shape"), f"be a list of at most {MAX_RANK} sizes from 0 to 2**31-1", shape)
            return None
        name = data.get("dtype")
        dtype = dtypes.named(name) if isinstance(name, str) else None
        if dtype is None or dtype == dtypes.RESOURCE:
            self.note((*path, "dtype"), "name an element type", repr(name))
            return None
        return dtype, tuple(shape)

    def _values(self, data: Any, dtype: DType, count: int, path: json_text.Path) -> Array | None:
        values = data["values"]
        if not isinstance(values, list) or len(values) != count:
            got = f"{len(values)}" if isinstance(values, list) else type(values).__name__
            self.note(path, f"be a list of {count} values", got)
            return None
        made = [_from_json(value, dtype) for value in values]
        for index, one in enumerate(made):
            if one is None:
                self.note((*path, index), f"be a value of type {dtype}", repr(values[index])[:60])
                return None
        if dtype == dtypes.STRING:
            texts: Array = np.empty(count, dtype=object)
            texts[:] = made
            return texts
        with np.errstate(over="ignore"):
            return np.array(made, dtype=numpy_type(dtype))

    def _from_base64(self, data: Any, dtype: DType, count: int, path: json_text.Path) -> Array | None:
        try:
            raw = base64.b64decode(data["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            self.note(path, "be base64 text", error)
            return None
        if len(raw) != count * dtype.itemsize or dtype == dtypes.STRING:
            self.note(path, f"hold {count * dtype.itemsize} bytes", len(raw))
            return None
        flat: Array = np.frombuffer(raw, dtype=numpy_type(dtype).newbyteorder("<"))
        return flat.astype(numpy_type(dtype), copy=False)

    def _from_file(self, data: Any, dtype: DType, count: int, path: json_text.Path) -> Array | None:
        name = data["file"]
        if self.folder is None:
            self.note(path, "not be there: a page inside of another file has no folder", name)
            return None
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name) or name.startswith("."):
            self.note(path, "be FOLDER.data/CHECKSUM.npy, beside the page", repr(name)[:80])
            return None
        found = self.known.get(name, str(data.get("sha256"))) if self.known is not None else None
        if found is not None and list(found.shape) == data["shape"] and dtype_of(found.dtype) == dtype:
            return found
        file = self.folder / name
        if not file.is_file() or not _is_inside(file, self.folder):
            self.note(path, "be a file in the folder of the page", f"{name}, which is not there")
            return None
        return self._checked_file(file, data, dtype, count, path)

    def _checked_file(self, file: Path, data: Any, dtype: DType, count: int, path: json_text.Path) -> Array | None:
        size = file.stat().st_size
        if abs(size - count * dtype.itemsize) > 4096:
            self.note(path, f"hold {count * dtype.itemsize:,} bytes of data", f"a file of {size:,} bytes")
            return None
        raw = file.read_bytes()
        if hashlib.sha256(raw).hexdigest() != data.get("sha256"):
            self.note(path, "have the checksum that the page states", f"another; {file.name} was changed or cut off")
            return None
        try:
            array = read_npy(io.BytesIO(raw), len(raw), file.name)
        except VoxgradError as error:
            self.note(path, "be a .npy file", error.faults[0].got)
            return None
        if list(array.shape) != data["shape"] or dtype_of(array.dtype) != dtype:
            self.note(path, f"hold {dtype} {data['shape']}", f"{array.dtype} {list(array.shape)}")
            return None
        made = array.astype(numpy_type(dtype), copy=False)
        if self.known is not None:
            self.known.put(data["file"], data["sha256"], made)
        return made


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**31


def _is_inside(file: Path, folder: Path) -> bool:
    """True where no link leads out of the folder."""
    real = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(file), real]) == real


def _from_json(value: Any, dtype: DType) -> Any:
    """One element, or None if the JSON value does not stand for one of this type."""
    if dtype.kind == "bool":
        return value if isinstance(value, bool) else None
    if dtype == dtypes.STRING:
        return _text_from_json(value)
    if dtype.kind == "complex":
        return _complex_from_json(value)
    if isinstance(value, str) and dtype.kind == "float":
        return _NUMBERS.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if dtype.kind == "float":
        return float(value) if isinstance(value, float) or abs(value) < 2**1000 else None
    info = np.iinfo(numpy_type(dtype))
    return value if isinstance(value, int) and info.min <= value <= info.max else None


def _complex_from_json(value: Any) -> complex | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    parts = [_from_json(part, dtypes.FLOAT64) for part in value]
    return None if None in parts else complex(*parts)


def _text_from_json(value: Any) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            return None
    return None
