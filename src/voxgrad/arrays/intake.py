# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call, from what the caller wrote to NumPy views and specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import NUMPY, Kind, dtype_of, is_masked, kind_of
from voxgrad.arrays.literals import type_of, written
from voxgrad.catalog import dtypes
from voxgrad.catalog.attributes import INT32_MAX
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op, Spec
from voxgrad.errors import Faults

Array = np.ndarray[Any, Any]


@dataclass
class Intake:
    """Arguments that were understood: views of the tensors, specs of all inputs, and the kind to give back."""

    kind: Kind = NUMPY
    like: Any = None
    tensors: dict[str, Array] = field(default_factory=dict)
    specs: dict[str, Spec] = field(default_factory=dict)


def take(op: Op, arguments: Mapping[str, Any]) -> Intake:
    """Recognise every tensor of a call, or raise all that is wrong with them."""
    faults = Faults(op.name)
    intake = Intake()
    _choose_kind(op, arguments, intake, faults)
    bound: dict[str, DType] = {}
    found: dict[str, Array | None] = {}
    # Arrays first: they decide the types of numbers and lists.
    for item in sorted(op.inputs, key=lambda item: kind_of(arguments[item.name]) is None):
        if item.host:
            intake.specs[item.name] = _host_vector(item, arguments[item.name], faults)
        else:
            found[item.name] = _tensor(op, item, arguments[item.name], bound, faults)
    faults.raise_if_any()
    intake.tensors = {item.name: array for item in op.inputs if (array := found.get(item.name)) is not None}
    intake.specs |= {name: Spec(type_of(array), array.shape) for name, array in intake.tensors.items()}
    return intake


def _choose_kind(op: Op, arguments: Mapping[str, Any], intake: Intake, faults: Faults) -> None:
    """All arrays of a call are of one kind; lists and numbers go with any."""
    first = ""
    for item in op.inputs:
        value = arguments[item.name]
        kind = None if item.host else kind_of(value)
        if kind is None or isinstance(value, np.generic):
            continue
        if not first:
            first, intake.kind, intake.like = item.name, kind, value
        elif kind is not intake.kind:
            remedy = "Convert one of them: nothing is copied between kinds silently."
            wanted = f"be of the kind of {first}, {intake.kind.name}"
            faults.add("VG030", item.name, wanted=wanted, got=f"a {kind.name} array", remedy=remedy)


def _tensor(op: Op, item: Input, value: Any, bound: dict[str, DType], faults: Faults) -> Array | None:
    kind = kind_of(value)
    is_text = kind is NUMPY and value.dtype.kind in "SUO" and not is_masked(value)
    if kind is None or isinstance(value, np.generic) or is_text:
        return written(op, item, value, bound, faults)
    if kind.refuse(value, item.name, faults):
        return None
    view = kind.view(value)
    dtype = dtype_of(view.dtype)
    if isinstance(item.type, str) and dtype is not None:
        bound.setdefault(item.type, dtype)
    return view


def host_spec(op: Op, name: str, values: Any) -> Spec:
    """The spec of a shape vector; raises what is wrong with it."""
    faults = Faults(op.name)
    spec = _host_vector(op.input(name), values, faults)
    faults.raise_if_any()
    return spec


def _host_vector(item: Input, value: Any, faults: Faults) -> Spec:
    """A small vector of integers, read to Python at once: it decides shapes."""
    kind = kind_of(value)
    if kind is not None and kind.refuse(value, item.name, faults):
        return Spec()
    if kind is None and not isinstance(value, (list, tuple, int)):
        faults.add("VG002", item.name, wanted="be a vector of integers", got=f"{type(value).__name__} {value!r:.60}")
        return Spec()
    try:
        array = np.asarray(value if kind is None else kind.view(value))
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        faults.add("VG002", item.name, wanted="be a vector of integers", got=str(error).splitlines()[0])
        return Spec()
    if array.size == 0:
        array = np.empty(array.shape, np.int32)
    if array.dtype.kind not in "iu" or (kind is not None and array.dtype not in (np.int32, np.int64)):
        faults.add("VG011", item.name, wanted="hold int32 or int64", got=f"dtype {array.dtype}")
        return Spec()
    values = tuple(array.ravel().tolist()) if array.size <= 16 else ()
    if any(abs(size) > INT32_MAX for size in values) and item.type == dtypes.INT32:
        faults.add("VG005", item.name, wanted="hold 32-bit integers", got=values)
        return Spec()
    # The door checks rank and length; only the values of a plausible vector are worth passing on.
    return Spec(None, array.shape, values if array.ndim == 1 else None)
