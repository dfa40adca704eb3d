# SPDX-License-Identifier: Apache-2.0
"""Runs a call of the windowed family on the arrays that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from voxgrad import reference
from voxgrad.arrays import fast, memory
from voxgrad.arrays.kinds import NUMPY, numpy_type
from voxgrad.arrays.plan import Plan, dense, make_plan
from voxgrad.catalog.model import Op
from voxgrad.catalog.problem import Problem
from voxgrad.errors import Faults
from voxgrad.kernels import cpu
from voxgrad.kernels.nonfinite import run_convolution

Array = np.ndarray[Any, Any]


def execute(op: Op, arguments: Mapping[str, Any], cancel: cpu.CancelFlag | None = None) -> Any:
    """Validate, plan, run; the result is of the kind of the arrays that came."""
    plan = make_plan(op, arguments)
    result = plan.intake.kind.wrap(run_plan(plan, cancel), plan.intake.like)
    if plan.intake.kind is NUMPY and cpu.library() is not None:
        fast.remember(plan, arguments)
    return result


def run_plan(plan: Plan, cancel: cpu.CancelFlag | None = None) -> Array:
    """The result of a plan as a NumPy array."""
    tensors = [dense(plan.problem, array) for array in plan.intake.tensors.values()]
    result = _allocate(plan)
    compute(plan.problem, tensors, result, cancel)
    return result.astype(numpy_type(plan.problem.output_dtype), copy=False)


def compute(problem: Problem, tensors: list[Array], result: Array, cancel: cpu.CancelFlag | None = None) -> None:
    """Fill `result` from dense tensors, with the native kernel where there is one."""
    if result.size == 0:
        return
    if cpu.library() is None:
        with np.errstate(over="ignore", invalid="ignore"):
            result[...] = reference.evaluate(problem, *tensors)
        return

    def kernel(tensors: list[Array]) -> None:
        cpu.run(problem, [array.ctypes.data for array in (*tensors, result)], cancel)

    if problem.kernel.startswith("conv"):
        run_convolution(problem, tensors, result, kernel)
    else:
        kernel(tensors)


def _allocate(plan: Plan) -> Array:
    try:
        return memory.empty(plan.problem.output_shape, numpy_type(plan.problem.dtype))
    except (MemoryError, OSError):
        faults = Faults(plan.op.name)
        faults.add("VG020", "output", wanted="fit into memory", got=f"a result of {plan.problem.output_bytes:,} bytes")
        raise faults.error() from None
