# SPDX-License-Identifier: Apache-2.0
"""Runs a call of an ordinary op on the arrays that came. The modules that compute are imported at the first call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from voxgrad.arrays import deferred
from voxgrad.arrays import execute as windowed
from voxgrad.arrays.kinds import NUMPY, TORCH, Kind, kind_of
from voxgrad.arrays.limits import check_repeated, check_size, passed_limit
from voxgrad.arrays.literals import Unfit, make_arrays, refuses, to_array, type_of, written
from voxgrad.catalog import attributes, dtypes
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Input, Op, Spec
from voxgrad.catalog.problem import check_types
from voxgrad.catalog.semantics import current_semantics
from voxgrad.catalog.shapes import FOLDED, memory_of, size_of
from voxgrad.errors import Faults, show
from voxgrad.loading import LOADING

_NATIVE = (NUMPY, TORCH)
"""Kinds whose arrays the functions take as they are; others travel as NumPy."""


@dataclass(frozen=True, slots=True)
class OrdinaryPlan:
    """What a call would do; `print(plan)` says it in words."""

    op: Op
    values: list[Any]
    attrs: Mapping[str, Any]
    kind: Kind
    like: Any
    results: tuple[Spec, ...]

    def __str__(self) -> str:
        made = ", ".join(_shown(spec) for spec in self.results) or "nothing that is known before it runs"
        given = [
            f"  {item.name + ':':<11}{_shown(_one_spec(item, one))}"
            for item, value in zip(self.op.inputs, self.values, strict=True)
            for one in (value if item.many else [value])
        ]
        runs = "torch" if self.kind is TORCH else "NumPy"
        lines = [
            f"{self.op.name} -> {self.kind.name} {made}",
            f"  computed:  by functions of {runs} ({self.op.kernel})",
            *given,
        ]
        return "\n".join(lines)


def _shown(spec: Spec) -> str:
    return f"{spec.dtype} {show(list(spec.shape))}" if spec.shape is not None else f"{spec.dtype} of any shape"


def execute(op: Op, arguments: Mapping[str, Any]) -> Any:
    """Validate and run; the result is of the kind of the arrays that came: one, or a named tuple of several."""
    later = deferred.planner(arguments)
    if later is not None:
        return later(op, arguments)
    plan = make_plan(op, arguments)
    kind, like = plan.kind, plan.like
    evaluate, context = _arraywise()
    inputs = [_beside(value, like) for value in plan.values]
    results = evaluate(op, inputs, plan.attrs, context(windowed=windowed.execute, passed_limit=passed_limit))
    wrapped = [_wrapped(result, kind, like) for result in own(results, [*plan.values, *plan.attrs.values()])]
    if len(wrapped) < 2:
        return wrapped[0] if wrapped else None
    return result_type(op.name, *(output.name for output in op.outputs))(*wrapped)


@cache
def _arraywise() -> tuple[Any, Any]:
    """What computes ordinary ops, and the context of a run; who calls none need not wait for it to load."""
    with LOADING:
        from voxgrad.kernels.arraywise import Context, evaluate
    return evaluate, Context


def make_plan(op: Op, arguments: Mapping[str, Any]) -> OrdinaryPlan:
    """Validate a call; raises everything that is wrong with it."""
    faults = Faults(op.name)
    attrs = attributes.canonical(op, arguments, faults)
    make_arrays(op, attrs, faults)
    kind, like = _common_kind(op, arguments, faults)
    faults.raise_if_any()
    values = _taken(op, arguments, faults)
    results = check_call(op, values, attrs, faults)
    return OrdinaryPlan(op, values, attrs, kind, like, results)


@cache
def result_type(name: str, *fields: str) -> Any:
    """The named tuple of an op with several outputs."""
    return namedtuple(name, fields)


def own(results: Any, inputs: Iterable[Any]) -> list[Any]:
    """Results in memory of their own, copied where they share it with an input or with another result.

    Ops that only name an array anew (Identity, Reshape, Split, ...) give views; a caller may write to what comes back.
    """
    taken = [one for value in inputs for one in (value if isinstance(value, list) else (value,))]
    made: list[Any] = []
    for result in results:
        if isinstance(result, (list, tuple)):
            made.append(tuple(own(result, taken)))
            taken.extend(made[-1])
            continue
        shared = _repeats(result) or any(_shares(result, other) for other in taken)
        made.append(_copied(result) if shared else result)
        taken.append(made[-1])
    return made


def _repeats(result: Any) -> bool:
    """True for an array that shows one element at several places, or that cannot be written."""
    if isinstance(result, np.ndarray):
        return not result.flags.writeable
    return TORCH.matches(result) and 0 in result.stride() and result.numel() > 1


def _shares(result: Any, other: Any) -> bool:
    if isinstance(result, np.ndarray):
        # A result with memory of its own shares none; of others, bounds that overlap are enough to be careful.
        view = result.base is not None and isinstance(other, np.ndarray)
        return result is other or (view and np.may_share_memory(result, other))
    if not (TORCH.matches(result) and TORCH.matches(other)):
        return False
    return bool(result.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def _copied(array: Any) -> Any:
    return array.copy() if isinstance(array, np.ndarray) else array.clone()


def check_call(op: Op, values: Sequence[Any], attrs: Mapping[str, Any], faults: Faults) -> tuple[Spec, ...]:
    """Types and shapes fit, and results fit into memory, as the values themselves say before anything is computed."""
    specs = {item.name: _spec(item, value) for item, value in zip(op.inputs, values, strict=True)}
    check_types(op, specs, faults)
    for item, value in zip(op.inputs, values, strict=True):
        check_repeated(op.name, item.name, value, faults)
    faults.raise_if_any()
    made = op.infer(Call(op, specs, attrs, current_semantics()), faults) if op.infer is not None else ()
    faults.raise_if_any()
    flat = [spec for entry in made or () for spec in (entry if isinstance(entry, tuple) else (entry,))]
    check_size(op.name, sum(memory_of(spec) for spec in flat if spec.dtype and all_known(spec.shape)), faults)
    faults.raise_if_any()
    return tuple(flat)


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


def _taken(op: Op, arguments: Mapping[str, Any], faults: Faults) -> list[Any]:
    """The inputs as arrays: first those that are, which decide the types of numbers and lists."""
    bound: dict[str, DType] = {}
    taken: list[Any] = []
    for item in op.inputs:
        arrays = [_array(value, item.name, faults) for value in _each(item, arguments[item.name])]
        for array in arrays:
            if array is not None and isinstance(item.type, str) and not item.mixed:
                bound.setdefault(item.type, type_of(array))
        taken.append(arrays)
    faults.raise_if_any()
    for index, item in enumerate(op.inputs):
        given = _each(item, arguments[item.name])
        arrays = [
            array if array is not None else written(op, item, value, bound, faults)
            for array, value in zip(taken[index], given, strict=True)
        ]
        taken[index] = arrays if item.many else arrays[0]
    faults.raise_if_any()
    return taken


def _array(value: Any, name: str, faults: Faults) -> Any:
    """A value that is an array, native or as NumPy; None for what has no type of its own yet, and what is refused."""
    own = kind_of(value)
    if own is None or isinstance(value, np.generic) or refuses(own, value, name, faults):
        return None
    if own is not NUMPY:
        return value if own in _NATIVE else own.view(value)
    try:
        plain = type(value) is np.ndarray and value.dtype.isnative and value.dtype.kind not in "SUO"
        return value if plain else to_array(value)
    except Unfit as error:
        return error.tell(faults, name)


def _spec(item: Input, value: Any) -> Any:
    if item.many:
        return tuple(_one_spec(item, one) for one in value)
    return _one_spec(item, value)


def _one_spec(item: Input, array: Any) -> Spec:
    if item.type is dtypes.RESOURCE:
        return Spec(dtypes.RESOURCE)
    shape = tuple(int(size) for size in array.shape)
    values = None
    if item.host and size_of(shape) <= FOLDED:
        values = tuple(np.asarray(array if isinstance(array, np.ndarray) else array.cpu()).ravel().tolist())
    return Spec(type_of(array), shape, values)


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
