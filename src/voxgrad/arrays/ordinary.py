# SPDX-License-Identifier: Apache-2.0
"""Runs a call of an ordinary op on the arrays that came. The modules that compute are imported at the first call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from voxgrad.arrays import deferred
from voxgrad.arrays import execute as windowed
from voxgrad.arrays.intake import Intake, take
from voxgrad.arrays.kinds import TORCH, Kind
from voxgrad.arrays.limits import check_repeated, check_size, passed_limit
from voxgrad.arrays.literals import make_arrays, native
from voxgrad.catalog import attributes
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.model import Call, Op, Spec
from voxgrad.catalog.problem import check_types
from voxgrad.catalog.semantics import current_semantics
from voxgrad.catalog.shapes import memory_of
from voxgrad.errors import Faults, show
from voxgrad.loading import LOADING


@dataclass(frozen=True, slots=True)
class OrdinaryPlan:
    """What a call would do; `print(plan)` says it in words."""

    op: Op
    intake: Intake
    attrs: Mapping[str, Any]
    results: tuple[Spec, ...]

    def __str__(self) -> str:
        made = ", ".join(_shown(spec) for spec in self.results) or "nothing that is known before it runs"
        given = [
            f"  {name + ':':<11}{_shown(one)}"
            for name, spec in self.intake.specs.items()
            for one in (spec if isinstance(spec, tuple) else [spec])
        ]
        runs = "torch" if any(TORCH.matches(array) for array in self.intake.arrays.values()) else "NumPy"
        lines = [
            f"{self.op.name} -> {self.intake.kind.name} {made}",
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
    evaluate, context = _arraywise()
    values = [
        [native(one) for one in value] if isinstance(value, list) else native(value)
        for value in plan.intake.arrays.values()
    ]
    results = evaluate(op, values, plan.attrs, context(windowed=windowed.execute, passed_limit=passed_limit))
    wrapped = [_wrapped(result, plan.intake.kind) for result in own(results, [*values, *plan.attrs.values()])]
    if len(wrapped) < 2:
        return wrapped[0] if wrapped else None
    return result_type(op.name.rpartition(".")[2], *(output.name for output in op.outputs))(*wrapped)


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
    intake = take(op, arguments, faults)
    return OrdinaryPlan(op, intake, attrs, check_call(op, intake.arrays, intake.specs, attrs, faults))


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


def check_call(
    op: Op, values: Mapping[str, Any], specs: Mapping[str, Any], attrs: Mapping[str, Any], faults: Faults
) -> tuple[Spec, ...]:
    """Types and shapes fit, and results fit into memory, as the values themselves say before anything is computed."""
    for name, value in values.items():
        check_repeated(op.name, name, value, faults)
    faults.raise_if_any()  # before anything is as long as a view says that it is
    check_types(op, specs, faults)
    made = op.infer(Call(op, specs, attrs, current_semantics()), faults) if op.infer is not None else ()
    faults.raise_if_any()
    flat = [spec for entry in made or () for spec in (entry if isinstance(entry, tuple) else (entry,))]
    given = [one for value in values.values() for one in (value if isinstance(value, list) else (value,))]
    copied = sum(one.nbytes for one in given if isinstance(one, np.ndarray) and not one.dtype.isnative)
    wanted = sum(memory_of(spec) for spec in flat if spec.dtype and all_known(spec.shape))
    check_size(op.name, wanted, faults, copied=copied)
    faults.raise_if_any()
    return tuple(flat)


def _wrapped(result: Any, kind: Kind) -> Any:
    if isinstance(result, tuple):
        return [_wrapped(one, kind) for one in result]
    numbers = result.dtype != object if isinstance(result, np.ndarray) else TORCH.matches(result)
    return kind.wrap(result) if numbers else result
