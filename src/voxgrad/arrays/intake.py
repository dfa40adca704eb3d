# SPDX-License-Identifier: Apache-2.0
"""The inputs of a call, from what the caller has to arrays: one way for raw ops, the family, pages and lazy calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import NUMPY, TORCH, Kind, Unfit, kind_of
from voxgrad.arrays.literals import has_type, taken, to_array, type_of, written
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op, Spec
from voxgrad.catalog.shapes import FOLDED, size_of
from voxgrad.errors import Faults

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Intake:
    """Inputs that were understood: arrays of NumPy or torch, what is known of them, and the kind to give back."""

    kind: Kind
    arrays: dict[str, Any]
    specs: dict[str, Any]


def take(op: Op, arguments: Mapping[str, Any], faults: Faults) -> Intake:
    """The inputs of a call that computes at once, or an error with all that is wrong with them."""
    given = {item.name: each(item, arguments[item.name]) for item in op.inputs}
    kind = _common_kind(op, given, faults)
    arrays: dict[str, Any] = read(op, given, faults)
    faults.raise_if_any()
    specs = {}
    for item in op.inputs:
        if not item.many:
            (arrays[item.name],) = arrays[item.name]
        specs[item.name] = spec_at(op, item, arrays[item.name])
    return Intake(kind, arrays, specs)


def each(item: Input, value: Any) -> list[Any]:
    """What was given for an input: the entries of a list of tensors, or the one value."""
    return list(value) if item.many and isinstance(value, (list, tuple)) else [value]


def read(op: Op, given: Mapping[str, Sequence[Any]], faults: Faults) -> dict[str, list[Any]]:
    """Arrays of what was given for each input. Those that come as arrays decide the types of numbers and lists.

    A Spec stands for what is not here yet, a wire or a lazy array, and stays; None for what is unfit, and noted.
    """
    bound: dict[str, DType] = {}
    for item in op.inputs:
        for value in given[item.name]:
            dtype = value.dtype if isinstance(value, Spec) else type_of(value) if has_type(value) else None
            if dtype is not None and isinstance(item.type, str) and not item.mixed:
                bound.setdefault(item.type, dtype)
    return {item.name: [_read(op, item, value, bound, faults) for value in given[item.name]] for item in op.inputs}


def _read(op: Op, item: Input, value: Any, bound: dict[str, DType], faults: Faults) -> Any:
    if isinstance(value, Spec):
        return value
    if not has_type(value):
        return written(op, item, value, bound, faults)
    try:
        array = taken(value, item.name)
        if item.host and item.type is dtypes.INT32 and type_of(array) is dtypes.INT64:
            # Sizes come as int64 from NumPy and torch: TensorFlow too takes them for int32 where they fit.
            return to_array(array, dtypes.INT32)
        return array
    except Unfit as error:
        return error.tell(faults, item.name)


def _common_kind(op: Op, given: Mapping[str, Sequence[Any]], faults: Faults) -> Kind:
    """All arrays of a call are of one kind and on one device; lists, numbers, text and host values go with any."""
    first, found = "", NUMPY
    like: Any = None
    for item in op.inputs:
        for value in given[item.name]:
            kind = kind_of(value)
            is_text = kind is NUMPY and value.dtype.kind in "SUO"  # which other libraries do not have
            if kind is None or is_text or isinstance(value, np.generic) or (item.host and first):
                continue
            if not first or (op.input(first).host and kind is not found):
                first, found, like = item.name, kind, value
            elif kind is not found:
                remedy = "Convert one of them: nothing is copied between kinds silently."
                wanted = f"be of the kind of {first}, {found.name}"
                faults.add("VG030", item.name, wanted=wanted, got=f"a {kind.name} array", remedy=remedy)
            elif kind is TORCH and not op.input(first).host and value.device != like.device:
                remedy = "Move one of them: nothing is copied between devices silently."
                wanted = f"be on the device of {first}, {like.device}"
                faults.add("VG032", item.name, wanted=wanted, got=f"a tensor on {value.device}", remedy=remedy)
    return found


def spec_at(op: Op, item: Input, value: Any) -> Any:
    """What is known of an input, of each entry of a list of tensors."""
    if item.many:
        return tuple(_spec(op, item, one) for one in value)
    return _spec(op, item, value)


def _spec(op: Op, item: Input, array: Any) -> Spec:
    if item.type is dtypes.RESOURCE or (item.ref and item.type is dtypes.STRING):
        return Spec(item.type)  # a handle: barriers and accumulators travel as TensorFlow's variables of texts
    spec = spec_of(array)
    few = item.host and spec.value is None and size_of(spec.shape or ()) <= FOLDED
    return Spec(spec.dtype, spec.shape, _elements(array)) if few and spec.dtype in op.allowed(item.type) else spec


def spec_of(array: Any) -> Spec:
    """What is known of an array of NumPy or torch: of few integers, which may be sizes, also their values."""
    dtype, shape = type_of(array), tuple(array.shape)
    folded = dtype.kind in ("int", "uint") and size_of(shape) <= FOLDED
    return Spec(dtype, shape, _elements(array) if folded and not getattr(array, "is_cuda", False) else None)


def _elements(array: Any) -> tuple[Any, ...]:
    return tuple((array if isinstance(array, np.ndarray) else array.cpu()).ravel().tolist())
