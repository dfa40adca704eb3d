# SPDX-License-Identifier: Apache-2.0
"""A call, its problem and its float64 truth."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad import reference
from voxgrad.arrays.execute import compute
from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.plan import dense, make_plan
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.testing import assert_close, terms_of

Array = np.ndarray[Any, Any]


def run(op: str, call: dict[str, Any]) -> Array:
    result: Array = getattr(vg.raw_ops, op)(**call)
    return result


@dataclass(frozen=True)
class Truth:
    """The reference's answer, and what it is made of: how many terms a sum has, and how large they are."""

    problem: Problem
    value: Array
    tensors: list[Array]

    @cached_property
    def scale(self) -> float:
        """How large the terms are, where they may cancel."""
        if not terms_of(self.problem) or self.problem.map.selects:
            return 0.0
        with np.errstate(all="ignore"):
            sizes = [np.abs(np.nan_to_num(array.astype(np.float64), posinf=0, neginf=0)) for array in self.tensors]
            largest = float(reference.evaluate(self.problem, *sizes).max(initial=0))
        return largest / math.sqrt(terms_of(self.problem))

    def check(self, result: Array, *, exact: bool = False, label: str = "") -> None:
        """`exact` demands the very number, as for integers in float tensors."""
        terms, scale = (0, 0.0) if exact else (terms_of(self.problem), self.scale)
        assert_close(result, self.value, terms=terms, scale=scale, label=label)


def truth(op: str, call: dict[str, Any]) -> Truth:
    """The truth of a call in the semantics in force."""
    plan = make_plan(OPS[op], call)
    tensors = list(plan.tensors.values())
    with np.errstate(all="ignore"):
        value = reference.evaluate(plan.problem, *tensors)
    return Truth(plan.problem, value, tensors)


def run_poisoned(op: str, call: dict[str, Any]) -> Array:
    """The kernel's result in memory that was full of NaN (of a rare integer), so that an unwritten element shows."""
    plan = make_plan(OPS[op], call)
    kind = numpy_type(plan.problem.dtype)
    result = np.full(plan.problem.output_shape, np.nan if kind.kind in "fV" else 99, kind)
    compute(plan.problem, [dense(plan.problem, array) for array in plan.tensors.values()], result)
    return result.astype(numpy_type(plan.problem.output_dtype))
