# SPDX-License-Identifier: Apache-2.0
"""Tensors as TensorFlow writes them down: TensorProto messages, read and written."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.kernels.element_types import numpy_type
from voxgrad.kernels.wire import Message, as_signed, broken, field_of, number_of, read_varint, varint

Array = np.ndarray[Any, Any]

MAX_BYTES = 2**31
_TYPES = {dtype.enum: dtype for dtype in (*dtypes.ALL, *dtypes.QUANTISED)}
_REF = 100
"""References to a type have its number plus this."""

_VALUE_FIELDS: dict[int, tuple[int, str]] = {
    dtypes.FLOAT32.enum: (5, "<f4"),
    dtypes.FLOAT64.enum: (6, "<f8"),
    dtypes.COMPLEX64.enum: (9, "<c8"),
    dtypes.COMPLEX128.enum: (12, "<c16"),
}
"""Types whose values stand in a field of their own as bytes."""
_INTEGER_FIELDS = {dtypes.INT64.enum: 10, dtypes.BOOL.enum: 11, dtypes.UINT32.enum: 16, dtypes.UINT64.enum: 17}
_HALF_FIELD, _INT_FIELD, _STRING_FIELD = 13, 7, 8


def type_of(number: int, source: str) -> DType:
    """The element type with a number of TensorFlow's enum."""
    found = _TYPES.get(number - _REF if number > _REF else number)
    if found is None:
        raise broken(source, f"the element type {number}")
    return found


def is_reference(message: Message) -> bool:
    """Whether a TensorProto is of a reference, which only a graph may hold."""
    return message.number(1) > _REF


def shape(message: Message) -> list[int | None] | None:
    """A TensorShapeProto; None for an open rank, None inside for an open size."""
    if message.number(3):
        return None
    sizes = [dim.signed(1) for dim in message.messages(2)]
    return [None if size < 0 else size for size in sizes]


def tensor(message: Message) -> Array:
    """A TensorProto. A value that is given once stands for all elements, as TensorFlow shortens it."""
    dtype = type_of(message.number(1), message.source)
    sizes = shape(message.message(2))
    if sizes is None or any(size is None for size in sizes):
        raise broken(message.source, "a constant of open shape")
    known = [size for size in sizes if size is not None]
    count = math.prod(known)
    if count * max(dtype.itemsize, 8) > MAX_BYTES or len(known) > 32:
        raise broken(message.source, f"a constant of shape {known[:40]}")
    if dtype == dtypes.STRING:
        return _strings(message, count).reshape(known)
    if dtype == dtypes.RESOURCE:
        raise broken(message.source, "a constant that is a resource")
    wanted = numpy_type(dtype)
    content = message.chunk(4)
    if content:
        if len(content) != count * dtype.itemsize:
            raise broken(message.source, f"{len(content)} bytes for a constant of {count * dtype.itemsize}")
        if dtype == dtypes.BOOL and max(content) > 1:
            raise broken(message.source, f"a byte {max(content)} for True or False")
        return np.frombuffer(content, dtype=wanted.newbyteorder("<")).reshape(known).astype(wanted)
    return _spread(_values(message, dtype), count, message.source).astype(wanted, copy=False).reshape(known)


def _values(message: Message, dtype: DType) -> Array:
    if dtype.enum in _VALUE_FIELDS:
        key, form = _VALUE_FIELDS[dtype.enum]
        data = b"".join(message.chunks.get(key, ()))
        return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype=form)
    if dtype in (dtypes.HALF, dtypes.BFLOAT16):
        bits = np.array([one & 0xFFFF for one in message.packed(_HALF_FIELD)], dtype=np.uint16)
        return bits.view(numpy_type(dtype))
    numbers = message.packed(_INTEGER_FIELDS.get(dtype.enum, _INT_FIELD))
    info = None if dtype == dtypes.BOOL else np.iinfo(numpy_type(dtype))
    made = [as_signed(one) if info is None or info.min < 0 else one for one in numbers]
    if info is not None and any(not info.min <= one <= info.max for one in made):
        raise broken(message.source, f"a constant that {dtype} cannot hold")
    return np.array(made, dtype=numpy_type(dtype))


def _strings(message: Message, count: int) -> Array:
    content = message.chunk(4)
    given = _listed_strings(content, count, message.source) if content else message.chunks.get(_STRING_FIELD, [b""])
    found: Array = np.empty(len(given), dtype=object)
    found[:] = given
    return _spread(found, count, message.source)


def _listed_strings(content: bytes, count: int, source: str) -> list[bytes]:
    """Texts in one field: their lengths, then their letters."""
    lengths, at = list[int](), 0
    for _ in range(count):
        length, at = read_varint(content, at, source)
        lengths.append(length)
    if at + sum(lengths) != len(content):
        raise broken(source, f"{len(content) - at} letters for texts of {sum(lengths)}")
    ends = np.cumsum([at, *lengths]).tolist()
    return [content[begin:end] for begin, end in itertools.pairwise(ends)]


def _spread(found: Array, count: int, source: str) -> Array:
    """As many values as there are cells: those that are too many are not looked at."""
    if len(found) >= count:
        return found[:count]
    if len(found) > 1 and count > max(2**20, 64 * len(found)):
        raise broken(source, f"{len(found)} values for a constant of {count}")
    # The last value that is given stands for all that follow; none stands for zeros. Where it is the only one, the
    # array is a view of it: what is done with it knows its size first.
    last = found[-1:] if len(found) else np.zeros(1, found.dtype)
    rest = np.broadcast_to(last, count - len(found))
    return np.concatenate([found, rest]) if len(found) > 1 else np.broadcast_to(last, count)


def tensor_bytes(values: Array, dtype: DType, *, listed: bool = True) -> bytes:
    """An array as a TensorProto, its values as bytes; texts in one field, or not `listed`, in a field each."""
    sizes = b"".join(field_of(2, number_of(1, size)) for size in values.shape)
    made = number_of(1, dtype.enum) + field_of(2, sizes)
    if dtype == dtypes.STRING and not listed:
        return made + b"".join(field_of(_STRING_FIELD, one) for one in values.ravel())
    if not values.size:
        return made
    if dtype == dtypes.STRING:
        texts = values.ravel().tolist()
        return made + field_of(4, b"".join([*(varint(len(one)) for one in texts), *texts]))
    return made + field_of(4, np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).tobytes())


def listed(message: Message, dtype: DType) -> Array:
    """The elements of a TensorProto one by one, as a checkpoint lists them, whose type and shape are told elsewhere."""
    if dtype == dtypes.STRING:
        found: Array = np.empty(len(message.chunks.get(_STRING_FIELD, ())), dtype=object)
        found[:] = message.chunks.get(_STRING_FIELD, [])
        return found
    return _values(message, dtype).astype(numpy_type(dtype), copy=False)


def listed_bytes(values: Array, dtype: DType) -> bytes:
    """Elements as `listed` reads them."""
    flat = np.ascontiguousarray(values).ravel()
    if dtype == dtypes.STRING:
        return b"".join(field_of(_STRING_FIELD, one) for one in flat.tolist())
    if not flat.size:
        return b""
    if dtype.enum in _VALUE_FIELDS:
        key, form = _VALUE_FIELDS[dtype.enum]
        return field_of(key, flat.astype(form).tobytes())
    if dtype in (dtypes.HALF, dtypes.BFLOAT16):
        return field_of(_HALF_FIELD, b"".join(map(varint, flat.view(np.uint16).tolist())))
    return field_of(_INTEGER_FIELDS.get(dtype.enum, _INT_FIELD), b"".join(map(varint, flat.tolist())))
