# SPDX-License-Identifier: Apache-2.0
"""Max pools that remember where they found their maxima, one byte each, for gradients that come later.

The gradients of max pooling are given the pool's input and output and look for the matches anew. Who runs both, as a
session does, keeps the positions instead: the gradients then read a byte per window rather than all of its cells.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.arrays.execute import allocate, execute
from voxgrad.arrays.kinds import NUMPY
from voxgrad.arrays.plan import Plan, dense, make_plan
from voxgrad.catalog.model import Call, Op
from voxgrad.catalog.problem import Problem
from voxgrad.kernels import cpu

Array = np.ndarray[Any, Any]
_MOST_CELLS = 254


@dataclass(frozen=True, slots=True)
class _Kept:
    x: weakref.ref[Array]
    y: weakref.ref[Array]
    windows: Any
    positions: Array


class Positions:
    """What was found so far. An entry goes with the output that it belongs to.

    Where a cell lies in few windows, looking anew is quicker than keeping: `least_overlap` is how many it must be.
    """

    def __init__(self, least_overlap: float = 2) -> None:
        self._kept: dict[int, _Kept] = {}
        self._least_overlap = least_overlap

    def execute(
        self, op: Op, arguments: Mapping[str, Any], cancel: cpu.CancelFlag | None = None, known: Call | None = None
    ) -> Any:
        """Like `execute` of the arrays, which it calls for all that is not a max pool or its gradient."""
        inputs: list[Any] = [arguments.get(item.name) for item in op.inputs]
        if not op.selects or not cpu.computes(op.name) or not all(map(_is_plain, inputs)):
            return execute(op, arguments, cancel, known)
        if not op.of:
            return self._pool(make_plan(op, arguments, known), arguments, cancel, known)
        x, y, given = inputs
        kept = self._kept.get(id(y))
        if kept is None or kept.y() is not y or kept.x() is not x:
            return execute(op, arguments, cancel, known)
        plan = make_plan(op, arguments, known)
        if not self._fits(plan) or _windows(plan.problem) != kept.windows:
            return execute(op, arguments, cancel, known)
        grad, result = dense(plan.problem, given), allocate(plan)
        cpu.run(plan.problem, [kept.positions, grad, result], cancel, positions=True)
        return result

    def _pool(
        self, plan: Plan, arguments: Mapping[str, Any], cancel: cpu.CancelFlag | None, known: Call | None
    ) -> Array:
        x = arguments["input"]
        if not self._fits(plan):
            result: Array = execute(plan.op, arguments, cancel, known)
            return result
        y, positions = allocate(plan), np.empty(plan.problem.output_shape, np.uint8)
        cpu.run(plan.problem, [dense(plan.problem, x), y, positions], cancel, positions=True)
        key = id(y)
        gone = weakref.ref(y, lambda _: self._kept.pop(key, None))
        self._kept[key] = _Kept(weakref.ref(x), gone, _windows(plan.problem), positions)
        return y

    def _fits(self, plan: Plan) -> bool:
        """True where bytes can name the cells of a window, the first of equal cells counts, and it is worth it."""
        problem = plan.problem
        cells = math.prod(axis.window for axis in problem.axes)
        return (
            plan.kind is NUMPY
            and problem.dtype.is_floating
            and problem.output_dtype == problem.dtype
            and not problem.near_ties
            and plan.semantics == "documented"
            and self._least_overlap * math.prod(axis.stride for axis in problem.axes) <= cells <= _MOST_CELLS
            and math.prod(problem.output_shape) > 0
        )


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray


def _windows(problem: Problem) -> Any:
    return problem.dtype, problem.channels_last, problem.batch, problem.in_channels, problem.axes
