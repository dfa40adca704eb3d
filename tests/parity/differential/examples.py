# SPDX-License-Identifier: Apache-2.0
"""Hints for Example messages: features of all types, present, missing, of a wrong type or a wrong size."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.parsing import VALUES
from voxgrad.kernels.wire import field_of, varint

from .draw import Draw
from .values import text_array

Arguments = dict[str, Any]
KEYS = (b"a", b"b", b"\xc3\xa9", b"long name")


def feature(d: Draw, kind: Any, count: int) -> bytes:
    """A feature of so many values, packed or one by one."""
    if kind is dtypes.STRING:
        values = [d.pick(b"", b"x", b"\xff\x00", b"text") for _ in range(count)]
        return field_of(1, b"".join(field_of(1, one) for one in values))
    packed = d.chance(0.5)
    if kind is dtypes.FLOAT32:
        parts = [struct.pack("<f", d.pick(0.0, 1.5, -2.25, 1e30)) for _ in range(count)]
        return field_of(2, field_of(1, b"".join(parts)) if packed else b"".join(b"\x0d" + one for one in parts))
    numbers = [varint(d.pick(0, 1, -1, 2**40, -(2**63))) for _ in range(count)]
    return field_of(3, field_of(1, b"".join(numbers)) if packed else b"".join(b"\x08" + one for one in numbers))


def _drawn(d: Draw, kind: Any, count: int, wrong: float = 0.03) -> bytes | None:
    """Mostly a feature of a type and a size; at times none, an empty one, another type or size."""
    if d.chance(0.12):
        return d.pick(None, b"")
    kind = d.pick(*VALUES) if d.chance(wrong) else kind
    return feature(d, kind, count + 1 if d.chance(wrong) else count)


def _map(entries: list[tuple[bytes, bytes | None]]) -> bytes:
    return b"".join(field_of(1, field_of(1, key) + field_of(2, one)) for key, one in entries if one is not None)


def _damaged(d: Draw, data: bytes) -> bytes:
    return data if d.chance(0.97) else data[: d.integer(0, len(data))]


def _names(d: Draw, count: int) -> list[Any]:
    return [text_array([key], ()) for key in KEYS[:count]]


def _sizes(d: Draw) -> list[int]:
    return d.pick([], [2], [1, 2], [0], [3])


def _default(d: Draw, kind: Any, shape: list[Any]) -> Any:
    return d.array(kind, (0,) if d.chance(0.3) else tuple(1 if size in (None, -1) else size for size in shape))


def examples(d: Draw) -> Arguments:
    """ParseExample."""
    sparse, dense, count = d.integer(0, 2), d.integer(0, 2), d.integer(0, 3)
    types, kinds = [d.pick(*VALUES) for _ in range(sparse)], [d.pick(*VALUES) for _ in range(dense)]
    shapes: list[Any] = [[-1, *d.pick([], [2])] if d.chance(0.2) else _sizes(d) for _ in kinds]
    rows = []
    for _ in range(count):
        entries = [(KEYS[at], _drawn(d, kind, d.integer(0, 3))) for at, kind in enumerate(types)]
        for at, (kind, shape) in enumerate(zip(kinds, shapes, strict=True)):
            size = int(np.prod([d.integer(0, 2) if one == -1 else one for one in shape]))
            entries.append((KEYS[2 + at], _drawn(d, kind, size)))
        entries += entries[:1] if d.chance(0.1) else []
        rows.append(_damaged(d, field_of(1, _map(entries))))
    return {
        "serialized": text_array(rows, (count,)), "names": text_array([b"n"] * d.pick(0, count), (-1,)),
        "sparse_keys": _names(d, sparse), "dense_keys": [text_array([key], ()) for key in KEYS[2 : 2 + dense]],
        "dense_defaults": [_default(d, kind, shape) for kind, shape in zip(kinds, shapes, strict=True)],
        "sparse_types": types, "dense_shapes": shapes,
    }  # fmt: skip


def sequences(d: Draw) -> Arguments:
    """ParseSingleSequenceExample."""
    counts = [d.integer(0, 2) for _ in range(4)]
    kinds = [[d.pick(*VALUES) for _ in range(count)] for count in counts]
    own, listed = ([_sizes(d) for _ in kinds[at]] for at in (1, 3))
    context = [(b"s" + KEYS[at], _drawn(d, kind, d.integer(0, 3))) for at, kind in enumerate(kinds[0])]
    context += [(b"d" + KEYS[at], _drawn(d, kind, int(np.prod(shape)))) for at, (kind, shape) in enumerate(
        zip(kinds[1], own, strict=True))]  # fmt: skip
    lists: list[tuple[bytes, bytes | None]] = []
    for at, kind in enumerate(kinds[2]):
        steps = [_drawn(d, kind, d.integer(0, 3), 0.02) or b"" for _ in range(d.integer(0, 3))]
        lists.append((b"s" + KEYS[at], None if d.chance(0.1) else b"".join(field_of(1, one) for one in steps)))
    for at, (kind, shape) in enumerate(zip(kinds[3], listed, strict=True)):
        steps = [feature(d, kind, int(np.prod(shape))) for _ in range(d.integer(0, 3))]
        steps += [b""] if d.chance(0.05) else []
        lists.append((b"d" + KEYS[at], None if d.chance(0.1) else b"".join(field_of(1, one) for one in steps)))
    may = [b"d" + KEYS[0]] if d.chance(0.5) else []

    def keys(start: bytes, count: int) -> list[Any]:
        return [text_array([start + key], ()) for key in KEYS[:count]]

    return {
        "serialized": text_array([_damaged(d, field_of(1, _map(context)) + field_of(2, _map(lists)))], ()),
        "feature_list_dense_missing_assumed_empty": text_array(may, (len(may),)),
        "context_sparse_keys": keys(b"s", counts[0]), "context_dense_keys": keys(b"d", counts[1]),
        "feature_list_sparse_keys": keys(b"s", counts[2]), "feature_list_dense_keys": keys(b"d", counts[3]),
        "context_dense_defaults": [_default(d, kind, shape) for kind, shape in zip(kinds[1], own, strict=True)],
        "debug_name": text_array([b"n"], ()), "context_sparse_types": kinds[0], "context_dense_shapes": own,
        "feature_list_sparse_types": kinds[2], "feature_list_dense_types": kinds[3],
        "feature_list_dense_shapes": listed,
    }  # fmt: skip


def _json_values(d: Draw) -> dict[str, Any]:
    return {
        d.pick("int64List", "int64_list"): {"value": [d.pick(1, "2", -3, 4.0) for _ in range(d.integer(0, 2))]},
        d.pick("floatList", "float_list"): {"value": [d.pick(1.5, 2, "NaN", "-Infinity") for _ in range(2)]},
        d.pick("bytesList", "bytes_list"): {"value": [d.pick("", "YWJj", "_-8=", "YQ") for _ in range(2)]},
    }


def in_json(d: Draw) -> Arguments:
    """DecodeJSONExample."""

    def one() -> bytes:
        made: dict[str, Any] = {}
        for name in ("a", "\u00e9", "z")[: d.integer(0, 3)]:
            kind, values = d.pick(*_json_values(d).items())
            made[name] = d.pick({}, {kind: {}}, {kind: values}, {kind: values}, {kind: values})
        text = json.dumps({"features": {"feature": made}}) if d.chance(0.9) else d.pick(
            "{}", '{"x": 1}', "nope", '{"features": null}', "[]", '{"features": {"feature": {"a": {"int64List": 1}}}}',
            '{"features": {"feature": {"a": {"int64List": {"value": [1.5]}}}}}')  # fmt: skip
        return text.encode()

    shape = d.shape(0, 2)
    return {"json_examples": text_array([one() for _ in range(int(np.prod(shape)))], shape)}


EXAMPLES = {"ParseExample": {"": examples}, "ParseSingleSequenceExample": {"": sequences},
            "DecodeJSONExample": {"": in_json}}  # fmt: skip
"""Calls of the ops that read examples."""
