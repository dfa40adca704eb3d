# SPDX-License-Identifier: Apache-2.0
"""A call, its problem and its float64 truth."""

from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad import reference
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS

Array = np.ndarray[Any, Any]


def run(op: str, call: dict[str, Any]) -> Array:
    result: Array = getattr(vg.raw_ops, op)(**call)
    return result


def truth(op: str, call: dict[str, Any]) -> tuple[Problem, Array]:
    """The problem of a call and the reference's answer, in the semantics in force."""
    plan = make_plan(OPS[op], call)
    with np.errstate(all="ignore"):
        return plan.problem, reference.evaluate(plan.problem, *plan.intake.tensors.values())
