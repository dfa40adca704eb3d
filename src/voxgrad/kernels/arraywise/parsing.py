# SPDX-License-Identifier: Apache-2.0
"""Features by name, from the bytes of TensorFlow's messages or from JSON."""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from voxgrad.catalog.dtypes import FLOAT32, INT64, STRING, DType
from voxgrad.catalog.parsing import open_shape
from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, to_numpy
from voxgrad.kernels.element_types import numpy_type
from voxgrad.kernels.wire import FIXED32, VARINT, Message, as_signed, field_of, floats, parse, varint

Values = np.ndarray[Any, Any]
Feature = tuple[DType, Values] | None
"""The type and the values of a feature; None where it says nothing."""
_LISTS = {1: STRING, 2: FLOAT32, 3: INT64}


def _text(value: Array) -> bytes:
    found: bytes = to_numpy(value).reshape(()).item()
    return found


def _kind(message: Message) -> Feature:
    for key, dtype in _LISTS.items():
        if key in message.chunks:
            listed = message.message(key)
            if dtype is STRING:
                values = np.empty(len(listed.chunks.get(1, [])), dtype=object)
                values[:] = listed.chunks.get(1, [])
                return dtype, values
            found = floats(listed.chunks.get(1, [])) if dtype is FLOAT32 else map(as_signed, listed.packed(1))
            return dtype, np.array(list(found), numpy_type(dtype))
    return None


def _by_name(message: Message) -> dict[bytes, bytes]:
    """The entries of a map; the last of several of one name counts."""
    return {entry.chunk(1): entry.chunk(2) for entry in message.messages(1)}


def _read(run: Run, data: bytes, what: str, read: Callable[[Message], Any]) -> Any:
    try:
        return read(parse(data, run.op.name))
    except VoxgradError as error:
        run.fail("serialized", wanted=f"hold the bytes of {what}", got=error.faults[0].got, code="VG053")


def _of_type(run: Run, key: bytes, found: Feature, dtype: DType) -> Values | None:
    if found is None:
        return None
    if found[0] is not dtype:
        wanted = f"hold {key.decode(errors='replace')} as {dtype}"
        run.fail("serialized", wanted=wanted, got=found[0].name, code="VG053")
    return found[1]


def _shaped(run: Run, key: bytes, values: Values, shape: Sequence[int]) -> Values:
    if values.size != math.prod(shape):
        wanted = f"hold {math.prod(shape)} values of {key.decode(errors='replace')}, of shape {list(shape)}"
        run.fail("serialized", wanted=wanted, got=values.size, code="VG053")
    return values.reshape(shape)


def _default(run: Run, key: bytes, given: Array) -> Values:
    default = to_numpy(given)
    if not default.size:
        remedy = "Give it a default that is not empty."
        wanted = f"hold {key.decode(errors='replace')}, which has no default"
        run.fail("serialized", wanted=wanted, got="an example without it", code="VG053", remedy=remedy)
    return default


def _sparse(run: Run, rows: Sequence[Values | None], dtype: DType, rank: int) -> tuple[Array, Array, Array]:
    """Values with their places: row and number, or the number alone."""
    counts = [0 if one is None else one.size for one in rows]
    places = np.array([(row, at) for row, count in enumerate(counts) for at in range(count)], np.int64).reshape(-1, 2)
    values = np.concatenate([np.empty(0, numpy_type(dtype)), *(one for one in rows if one is not None)])
    shape = [len(rows), max(counts, default=0)]
    return run.make(places[:, 2 - rank :], INT64), run.make(values, dtype), run.make(shape[2 - rank :], INT64)


def _columns(made: list[tuple[Array, Array, Array]]) -> tuple[Any, Any, Any]:
    columns = [tuple(one[at] for one in made) for at in range(3)]
    return columns[0], columns[1], columns[2]


@kernel(name="parse")
def parse_examples(run: Run, serialized: Array, names: Array, sparse_keys: list[Array], dense_keys: list[Array],
                   defaults: list[Array]) -> Any:  # fmt: skip
    """Features of examples, a row for each."""
    texts = to_numpy(serialized).tolist()
    if names.shape[0] not in (0, len(texts)):
        run.fail("names", wanted=f"hold a name for each of {len(texts)} examples, or none", got=names.shape[0])
    examples = [_read(run, one, "an Example", lambda message: _by_name(message.message(1))) for one in texts]

    def column(key: bytes, dtype: DType) -> list[Values | None]:
        return [_of_type(run, key, _read(run, one.get(key, b""), "a Feature", _kind), dtype)
                for one in examples]  # fmt: skip

    sparse = [_sparse(run, column(key, dtype), dtype, 2)
              for key, dtype in zip(map(_text, sparse_keys), run.attrs["sparse_types"], strict=True)]  # fmt: skip
    shapes = map(open_shape, run.attrs["dense_shapes"])
    dense = [_dense(run, key, column(key, element_type(default)), default, shape)
             for key, default, shape in zip(map(_text, dense_keys), defaults, shapes, strict=True)]  # fmt: skip
    return (*_columns(sparse), tuple(dense))


def _dense(run: Run, key: bytes, rows: list[Values | None], default: Array, shape: tuple[Any, ...]) -> Array:
    dtype = element_type(default)
    if not shape or shape[0] is not None:
        run.room("dense_shapes", (len(rows), *shape), np.empty(0, numpy_type(dtype)))
        made = np.empty((len(rows), *shape), numpy_type(dtype))
        for index, one in enumerate(rows):
            row = _default(run, key, default) if one is None else _shaped(run, key, one, shape)
            made[index : index + 1] = row.reshape(1, *shape)
        return run.make(made, dtype)
    step = math.prod(shape[1:])
    if any(one is not None and (one.size % step if step else one.size) for one in rows):
        run.fail("serialized", wanted=f"hold rows of {step} values of {key.decode(errors='replace')}", got="others",
                 code="VG053")  # fmt: skip
    most = max((one.size for one in rows if one is not None), default=0)
    run.room("serialized", (len(rows), most), np.empty(0, numpy_type(dtype)))
    made = np.empty((len(rows), most), numpy_type(dtype))
    made[:] = to_numpy(default).reshape(-1)
    for index, one in enumerate(rows):
        if one is not None:
            made[index, : one.size] = one
    return run.make(made.reshape(len(rows), most // step if step else 0, *shape[1:]), dtype)


def _no_values(run: Run, key: bytes) -> NoReturn:
    """In a sequence a dense feature that is there has values."""
    wanted = f"hold values of {key.decode(errors='replace')}"
    run.fail("serialized", wanted=wanted, got="a feature that says nothing", code="VG053")


@kernel()
def parse_sequence(run: Run, serialized: Array, may_miss: Array, *given: Any) -> Any:
    """Features of an example and of the steps of its lists."""
    own_sparse, own_dense, lists_sparse, lists_dense, defaults, _ = given
    attrs, may = run.attrs, set(to_numpy(may_miss).tolist())
    context, lists = _read(run, _text(serialized), "a SequenceExample", lambda message: (
        _by_name(message.message(1)), _by_name(message.message(2))))  # fmt: skip

    def own(key: bytes, dtype: DType) -> Values | None:
        return _of_type(run, key, _read(run, context.get(key, b""), "a Feature", _kind), dtype)

    def steps(key: bytes, dtype: DType) -> list[Values | None]:
        found = _read(run, lists.get(key, b""), "a FeatureList", lambda message: [
            _kind(one) for one in message.messages(1)])  # fmt: skip
        return [_of_type(run, key, one, dtype) for one in found]

    sparse = [_sparse(run, [own(key, dtype)], dtype, 1)
              for key, dtype in zip(map(_text, own_sparse), attrs["context_sparse_types"], strict=True)]  # fmt: skip
    dense = []
    for key, default, shape in zip(map(_text, own_dense), defaults, attrs["context_dense_shapes"], strict=True):
        values = own(key, element_type(default))
        if values is None and key in context:
            _no_values(run, key)
        made = _default(run, key, default) if values is None else _shaped(run, key, values, shape)
        dense.append(run.make(made.reshape(shape), element_type(default)))
    types = attrs["feature_list_sparse_types"]
    ragged = [_sparse(run, steps(key, dtype), dtype, 2)
              for key, dtype in zip(map(_text, lists_sparse), types, strict=True)]  # fmt: skip
    rows = []
    for key, dtype, shape in zip(map(_text, lists_dense), attrs["feature_list_dense_types"],
                                 attrs["feature_list_dense_shapes"], strict=True):  # fmt: skip
        if key not in lists and key not in may:
            wanted = f"hold the list {key.decode(errors='replace')}"
            run.fail("serialized", wanted=wanted, got="an example without it", code="VG053",
                     remedy="Name it in feature_list_dense_missing_assumed_empty.")  # fmt: skip
        found = [_no_values(run, key) if one is None else _shaped(run, key, one, shape) for one in steps(key, dtype)]
        whole = np.concatenate([np.empty((0, *shape), numpy_type(dtype)), *(one.reshape(1, *shape) for one in found)])
        rows.append(run.make(whole, dtype))
    return (*_columns(sparse), tuple(dense), *_columns(ragged), tuple(rows))


# JSON, in the order in which it is written

Pairs = list[tuple[str, Any]]


class _Unfit(Exception):  # noqa: N818 - an answer; the op makes a fault of it
    """What is no example."""


def _fields(value: Any, known: dict[str, Callable[[Any], bytes]], what: str) -> bytes:
    """The fields of a message in their order; null says nothing."""
    if value is None:
        return b""
    if not isinstance(value, _Object):
        raise _Unfit(f"{what} that is no object")
    made = b""
    for name, one in value.pairs:
        if name not in known:
            raise _Unfit(f"an unknown field {name!r} of {what}")
        made += known[name](one) if one is not None else b""
    return made


class _Object:
    def __init__(self, pairs: Pairs):
        self.pairs = pairs


def _values(item: Callable[[Any], bytes]) -> dict[str, Callable[[Any], bytes]]:
    def listed(values: Any) -> bytes:
        if not isinstance(values, list):
            raise _Unfit("values that are no list")
        return b"".join(map(item, values))

    return {"value": listed}


def _integer(value: Any) -> bytes:
    try:
        number = int(value) if isinstance(value, (int, str)) else int(float(value))
    except (ValueError, TypeError, OverflowError):
        raise _Unfit(f"no integer, {value!r}") from None
    if isinstance(value, bool) or (isinstance(value, float) and number != value) or not -(2**63) <= number < 2**63:
        raise _Unfit(f"no integer of 64 bits, {value!r}")
    return varint(1 << 3 | VARINT) + varint(number)


def _float(value: Any) -> bytes:
    names = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    try:
        number = names[value] if value in names else float(value)
        if isinstance(value, bool):
            raise ValueError
        return varint(1 << 3 | FIXED32) + struct.pack("<f", number)
    except (ValueError, TypeError, OverflowError):
        raise _Unfit(f"no number, {value!r}") from None


def _bytes(value: Any) -> bytes:
    try:
        plain = value.replace("-", "+").replace("_", "/").rstrip("=")
        return field_of(1, base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except (AttributeError, ValueError, binascii.Error):
        raise _Unfit(f"no base64, {value!r}") from None


def _list_field(key: int, item: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: field_of(key, _fields(value, _values(item), "a list"))


_FEATURE = {name: _list_field(key, item) for key, item, names in (
    (1, _bytes, ("bytesList", "bytes_list")), (2, _float, ("floatList", "float_list")),
    (3, _integer, ("int64List", "int64_list"))) for name in names}  # fmt: skip


def _map(value: Any) -> bytes:
    if not isinstance(value, _Object):
        raise _Unfit("features that are no object")
    return b"".join(field_of(1, field_of(1, name.encode()) + field_of(2, _fields(one, _FEATURE, "a feature")))
                    for name, one in value.pairs)  # fmt: skip


def _example(value: Any) -> bytes:
    features: dict[str, Callable[[Any], bytes]] = {"feature": _map}
    return _fields(value, {"features": lambda one: field_of(1, _fields(one, features, "features"))}, "an example")


def _no_constant(name: str) -> Any:
    raise _Unfit(f"{name} without quotes")


@kernel()
def decode_json(run: Run, examples: Array) -> Array:
    """The bytes of examples in JSON."""
    data = to_numpy(examples)
    made = np.empty(data.size, dtype=object)
    for index, one in enumerate(data.ravel().tolist()):
        try:
            found = json.loads(one.decode(), object_pairs_hook=_Object, parse_constant=_no_constant)
            if found is None:
                raise _Unfit("null")
            made[index] = _example(found)
        except (ValueError, RecursionError, _Unfit) as error:
            run.fail("json_examples", wanted="hold examples in JSON", got=str(error)[:200], code="VG053")
    return made.reshape(data.shape)
