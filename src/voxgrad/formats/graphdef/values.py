# SPDX-License-Identifier: Apache-2.0
"""Attribute values of a GraphDef: numbers, texts, types, shapes and tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.formats.graphdef.wire import Message, as_signed, broken, decoded, floats
from voxgrad.kernels.element_types import numpy_type

Array = np.ndarray[Any, Any]

MAX_BYTES = 2**31
_TYPES = {dtype.enum: dtype for dtype in dtypes.ALL}
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


def attribute(message: Message) -> Any:
    """The value of an AttrValue, as plain data: types by name, shapes as lists, tensors as arrays."""
    if 8 in message.chunks:
        return tensor(message.message(8))
    if 1 in message.chunks:
        return _listed(message.message(1))
    if 7 in message.chunks:
        return shape(message.message(7))
    if 6 in message.numbers:
        return type_of(message.number(6), message.source).name
    if 2 in message.chunks:
        return decoded(message.chunk(2), message.source)
    if 3 in message.numbers:
        return message.signed(3)
    if 4 in message.chunks:
        return floats([message.chunk(4)])[0]
    return bool(message.number(5)) if 5 in message.numbers else None


def _listed(message: Message) -> list[Any]:
    if message.chunks.get(8):
        return [tensor(one) for one in message.messages(8)]
    if message.chunks.get(7):
        return [shape(one) for one in message.messages(7)]
    if types := message.packed(6):
        return [type_of(one, message.source).name for one in types]
    if message.chunks.get(2):
        return [decoded(one, message.source) for one in message.chunks[2]]
    if numbers := message.packed(3):
        return [as_signed(one) for one in numbers]
    if message.chunks.get(4):
        return list(floats(message.chunks[4]))
    return [bool(one) for one in message.packed(5)]


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
    found: Array = np.empty(len(message.chunks.get(_STRING_FIELD, ())), dtype=object)
    found[:] = message.chunks.get(_STRING_FIELD, [])
    return _spread(found, count, message.source)


def _spread(found: Array, count: int, source: str) -> Array:
    if len(found) == count:
        return found
    endless = len(found) > 1 and count > max(2**20, 64 * len(found))
    if len(found) > count or (len(found) == 0 and found.dtype == object) or endless:
        raise broken(source, f"{len(found)} values for a constant of {count}")
    # The last value that is given stands for all that follow; none stands for zeros. Where it is the only one, the
    # array is a view of it: what is done with it knows its size first.
    last = found[-1:] if len(found) else np.zeros(1, found.dtype)
    rest = np.broadcast_to(last, count - len(found))
    return np.concatenate([found, rest]) if len(found) > 1 else np.broadcast_to(last, count)
