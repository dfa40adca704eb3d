# SPDX-License-Identifier: Apache-2.0
"""Runs a call of an ordinary op on the arrays that came. The modules that compute are imported at the first call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from voxgrad.arrays import execute as windowed
from voxgrad.arrays.kinds import NUMPY, TORCH, Kind, kind_of
from voxgrad.arrays.limits import check_size
from voxgrad.catalog import attributes, dtypes
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Input, Op, Spec
from voxgrad.catalog.problem import check_types
from voxgrad.catalog.semantics import current_semantics
from voxgrad.catalog.shapes import FOLDED, size_of
from voxgrad.errors import Faults
from voxgrad.kernels.element_types import dtype_of, numpy_type

_NATIVE = (NUMPY, TORCH)
"""Kinds whose arrays the functions take as they are; others travel as NumPy."""


def execute(op: Op, arguments: Mapping[str, Any]) -> Any:
    """Validate and run; the result is of the kind of the arrays that came: one, or a named tuple of several."""
    faults = Faults(op.name)
    attrs = attributes.canonical(op, arguments, faults)
    kind, like = _common_kind(op, arguments, faults)
    faults.raise_if_any()
    values = _taken(op, arguments, kind, faults)
    specs = {item.name: _spec(item, value) for item, value in zip(op.inputs, values, strict=True)}
    check_types(op, specs, faults)
    faults.raise_if_any()
    _check_results(op, Call(op, specs, attrs, current_semantics()), faults)
    from voxgrad.kernels.arraywise import Context, evaluate

    results = evaluate(op, [_beside(value, like) for value in values], attrs, Context(windowed=windowed.execute))
    wrapped = [_wrapped(result, kind, like) for result in results]
    if len(wrapped) < 2:
        return wrapped[0] if wrapped else None
    return result_type(op.name, *(output.name for output in op.outputs))(*wrapped)


@cache
def result_type(name: str, *fields: str) -> Any:
    """The named tuple of an op with several outputs."""
    return namedtuple(name, fields)


def _check_results(op: Op, call: Call, faults: Faults) -> None:
    """Shapes fit and results fit into memory, before anything is computed."""
    made = op.infer(call, faults) if op.infer is not None else ()
    faults.raise_if_any()
    flat = [spec for entry in made or () for spec in (entry if isinstance(entry, tuple) else (entry,))]
    sizes = [size_of(spec.shape or ()) * spec.dtype.itemsize for spec in flat if spec.dtype and all_known(spec.shape)]
    check_size(op.name, sum(sizes), faults)
    faults.raise_if_any()


def _each(item: Input, value: Any) -> list[Any]:
    return list(value) if item.many and isinstance(value, (list, tuple)) else [value]


def _common_kind(op: Op, arguments: Mapping[str, Any], faults: Faults) -> tuple[Kind, Any]:
    """All arrays of a call are of one kind; lists, numbers and host values go with any."""
    first, found, like = "", NUMPY, None
    for item in op.inputs:
        for value in _each(item, arguments[item.name]):
            kind = kind_of(value)
            if kind is None or isinstance(value, np.generic) or (item.host and first):
                continue
            if not first or (op.input(first).host and kind is not found):
                first, found, like = item.name, kind, value
            elif kind is not found:
                remedy = "Convert one of them: nothing is copied between kinds silently."
                wanted = f"be of the kind of {first}, {found.name}"
                faults.add("VG030", item.name, wanted=wanted, got=f"a {kind.name} array", remedy=remedy)
    return found, like


def _taken(op: Op, arguments: Mapping[str, Any], kind: Kind, faults: Faults) -> list[Any]:
    """The inputs as arrays: first those that are, which decide the types of numbers and lists."""
    bound: dict[str, DType] = {}
    taken: list[Any] = []
    for item in op.inputs:
        arrays = [_array(value, kind) for value in _each(item, arguments[item.name])]
        for array in arrays:
            if array is not None and isinstance(item.type, str) and not item.mixed:
                bound.setdefault(item.type, _type_of(array))
        taken.append(arrays)
    for index, item in enumerate(op.inputs):
        given = _each(item, arguments[item.name])
        arrays = [
            array if array is not None else _from_python(op, item, value, bound, faults)
            for array, value in zip(taken[index], given, strict=True)
        ]
        taken[index] = arrays if item.many else arrays[0]
    faults.raise_if_any()
    return taken


def _array(value: Any, kind: Kind) -> Any:
    """A value that is an array, native or as NumPy; None for Python values."""
    own = kind_of(value)
    if own is None:
        return None
    if own is NUMPY:
        return _text(value) if value.dtype.kind in "SUO" else _native(np.asarray(value))
    return value if own in _NATIVE else own.view(value)


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _text(values: Any) -> Any:
    from voxgrad.kernels.arraywise.core import text_array

    return text_array(np.asarray(values))


def _type_of(array: Any) -> DType:
    if isinstance(array, np.ndarray):
        return dtype_of(array.dtype) or dtypes.STRING
    return dtypes.named(str(array.dtype).rpartition(".")[2]) or dtypes.STRING


def _from_python(op: Op, item: Input, value: Any, bound: dict[str, DType], faults: Faults) -> Any:
    """Numbers and lists take the type that the arrays ask for, else TensorFlow's default for them."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        faults.add(
            "VG002", item.name, wanted="be an array or nested lists of equal lengths", got=str(error).splitlines()[0]
        )
        return None
    if array.dtype.kind not in "biufcSU":
        faults.add("VG030", item.name, wanted="be an array or nested lists of numbers", got=type(value).__name__)
        return None
    if array.dtype.kind in "SU":
        return _text(array if array.dtype.kind == "U" else np.array(value, dtype=object))
    allowed = op.allowed(item.type)
    wanted = _wanted_type(op, item, bound) or _default_type(array, allowed)
    unfit = wanted.kind in ("string", "resource") or (array.dtype.kind == "f" and wanted.kind in ("int", "uint"))
    if unfit and array.size:
        faults.add("VG011", item.name, wanted=f"hold values of type {wanted}", got=f"{value!r:.60}")
        return None
    if isinstance(item.type, str) and not item.mixed:
        bound.setdefault(item.type, wanted)
    try:
        with np.errstate(over="ignore"):
            return array.astype(numpy_type(wanted))
    except (ValueError, TypeError, OverflowError) as error:
        faults.add("VG002", item.name, wanted=f"hold values of type {wanted}", got=str(error))
        return None


def _wanted_type(op: Op, item: Input, bound: dict[str, DType]) -> DType | None:
    if isinstance(item.type, DType):
        return item.type
    return None if item.mixed else bound.get(item.type)


def _default_type(array: Any, allowed: tuple[DType, ...]) -> DType:
    by_kind = {"b": dtypes.BOOL, "i": dtypes.INT32, "u": dtypes.INT32, "f": dtypes.FLOAT32, "c": dtypes.COMPLEX128}
    first = by_kind[array.dtype.kind]
    if array.dtype.kind in "iu" and array.size and int(np.abs(array).max()) > attributes.INT32_MAX:
        first = dtypes.INT64
    return next((dtype for dtype in (first, dtypes.FLOAT32) if dtype in allowed), allowed[0])


def _spec(item: Input, value: Any) -> Any:
    if item.many:
        return tuple(_one_spec(item, one) for one in value)
    return _one_spec(item, value)


def _one_spec(item: Input, array: Any) -> Spec:
    shape = tuple(int(size) for size in array.shape)
    values = None
    if item.host and size_of(shape) <= FOLDED:
        values = tuple(np.asarray(array if isinstance(array, np.ndarray) else array.cpu()).ravel().tolist())
    return Spec(_type_of(array), shape, values)


def _beside(value: Any, like: Any) -> Any:
    """Constants made of Python values join tensors of another library."""
    if like is None or not TORCH.matches(like):
        return value
    if isinstance(value, list):
        return [_beside(one, like) for one in value]
    if isinstance(value, np.ndarray) and value.dtype != object:
        from voxgrad.kernels.arraywise.namespace import moved_to

        return moved_to(value, like)
    return value


def _wrapped(result: Any, kind: Kind, like: Any) -> Any:
    if isinstance(result, tuple):
        return [_wrapped(one, kind, like) for one in result]
    if kind not in _NATIVE and isinstance(result, np.ndarray) and result.dtype != object:
        return kind.wrap(result, like)
    if kind is TORCH and isinstance(result, np.ndarray) and result.dtype != object:
        return TORCH.wrap(result, like)
    return result
