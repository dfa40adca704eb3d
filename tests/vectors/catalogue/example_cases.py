# SPDX-License-Identifier: Apache-2.0
"""The recorded calls of ops that read examples."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from voxgrad.kernels.wire import field_of, varint

from .cases import Array, Case


def _texts(*values: bytes) -> Array:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _one(value: bytes) -> Array:
    return _texts(value).reshape(())


def _feature(values: list[Any]) -> bytes:
    """A feature: of texts, of floats one by one, or of packed integers."""
    if values and isinstance(values[0], bytes):
        return field_of(1, b"".join(field_of(1, one) for one in values))
    if values and isinstance(values[0], float):
        return field_of(2, b"".join(b"\x0d" + struct.pack("<f", one) for one in values))
    return field_of(3, field_of(1, b"".join(varint(one) for one in values)))


def _features(**values: list[Any]) -> bytes:
    return b"".join(field_of(1, field_of(1, key.encode()) + field_of(2, _feature(one))) for key, one in values.items())


def _steps(*values: list[Any]) -> bytes:
    return b"".join(field_of(1, _feature(one)) for one in values)


def examples() -> Iterator[Case]:
    rows = _texts(field_of(1, _features(a=[1, -2], t=[b"x"], f=[1.5, 2.0], v=[1.0])), b"",
                  field_of(1, _features(a=[7], f=[3.0, -4.0], v=[5.0, 6.0, 7.0])))  # fmt: skip
    keys = {"sparse_keys": [_one(b"a"), _one(b"t")], "dense_keys": [_one(b"f"), _one(b"v")]}
    defaults = [np.array([[0.5], [9]], np.float32), np.array([-1], np.float32)]
    attrs = {"sparse_types": ["int64", "string"], "dense_shapes": [[2, 1], [None]]}
    for given in (rows, rows[:0]):
        yield Case("ParseExample", {"serialized": given, "names": _texts(), **keys, "dense_defaults": defaults}, attrs)
    names = _texts(b"{}", b'{"features": {"feature": {"b": {"int64List": {"value": ["1", 2]}}, "a": {}, "c": '
                   b'{"float_list": {"value": [1.5, "NaN"]}}, "d": {"bytesList": {"value": ["YWI="]}}}}}')  # fmt: skip
    yield Case("DecodeJSONExample", {"json_examples": names})


def sequences() -> Iterator[Case]:
    lists = {"s": _steps([1], [], [2, 3]), "d": _steps([1.0, 2.0], [3.0, 4.0]), "w": _steps([b"a"], [b"b"])}
    packed = b"".join(field_of(1, field_of(1, key.encode()) + field_of(2, one)) for key, one in lists.items())
    whole = field_of(1, _features(n=[4], t=[b"x", b"y"])) + field_of(2, packed)
    attrs = {"context_sparse_types": ["string"], "context_dense_shapes": [[1], [2]],
             "feature_list_sparse_types": ["int64"], "feature_list_dense_types": ["float32", "string", "int64"],
             "feature_list_dense_shapes": [[2], [], [3]]}  # fmt: skip
    inputs = {
        "serialized": _one(whole), "feature_list_dense_missing_assumed_empty": _texts(b"gone"),
        "context_sparse_keys": [_one(b"t")], "context_dense_keys": [_one(b"n"), _one(b"m")],
        "feature_list_sparse_keys": [_one(b"s")], "feature_list_dense_keys": [_one(b"d"), _one(b"w"), _one(b"gone")],
        "context_dense_defaults": [np.array([0]), np.array([1.5, 2.5], np.float32)], "debug_name": _one(b""),
    }  # fmt: skip
    yield Case("ParseSingleSequenceExample", inputs, attrs)


GROUPS = (examples, sequences)
