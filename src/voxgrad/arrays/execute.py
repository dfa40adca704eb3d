# SPDX-License-Identifier: Apache-2.0
"""Runs a call of the windowed family on the arrays that came."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from voxgrad import reference
from voxgrad.arrays import deferred, fast, gpu, memory
from voxgrad.arrays.kinds import NUMPY, Unfit, is_on_gpu, numpy_type
from voxgrad.arrays.plan import Plan, dense, make_plan
from voxgrad.catalog.model import Call, Op
from voxgrad.catalog.problem import Problem
from voxgrad.errors import Fault, Faults, ResourceExhaustedError, VoxgradError
from voxgrad.kernels import cpu, interrupt
from voxgrad.kernels.nonfinite import run_convolution

Array = np.ndarray[Any, Any]


def execute(
    op: Op, arguments: Mapping[str, Any], cancel: cpu.CancelFlag | None = None, known: Call | None = None
) -> Any:
    """Validate, plan, run; the result is of the kind of the arrays that came. `known` is as in `make_plan`."""
    later = deferred.planner(arguments)
    if later is not None:
        return later(op, arguments)
    if gpu.is_for_gpu(op, arguments):
        return gpu.execute_on_gpu(op, arguments)
    plan = make_plan(op, arguments, known)
    result = plan.kind.wrap(run_plan(plan, cancel))
    if plan.kind is NUMPY and cpu.computes(op.name):
        fast.remember(plan, arguments)
    return result


def execute_into(op: Op, arguments: Mapping[str, Any], out: Any) -> Any:
    """Like `execute`, but writes to an array of the caller's, which comes back."""
    plan = make_plan(op, arguments)
    faults = Faults(op.name)
    target = _buffer(plan, out, faults)
    faults.raise_if_any()
    tensors = dense_tensors(plan)
    if target.dtype == numpy_type(plan.problem.dtype):
        # The memory is the caller's: nobody writes to it once an interrupt has come back.
        compute(plan.problem, tensors, target, patience=math.inf)
    else:
        target[...] = run_plan(plan)
    return out


def _buffer(plan: Plan, out: Any, faults: Faults) -> Array:
    """The memory behind `out`, if it fits the result: kind, type, shape, dense, writable, apart from the inputs."""
    kind, problem = plan.kind, plan.problem
    wrong_kind = Unfit("VG033", f"be a {kind.name} array", type(out).__name__)
    why = kind.refuse(out, "out") if kind.matches(out) else wrong_kind
    if why is None and is_on_gpu(out):
        why = Unfit("VG033", "be on the CPU, as the inputs are", f"an array on {out.device}")
    if why is not None:
        why.tell(faults, "out")
        raise faults.error()
    target: Array = kind.view(out)
    wanted = numpy_type(problem.output_dtype)
    if target.dtype != wanted or target.shape != problem.output_shape:
        shown = f"{problem.output_dtype} {list(problem.output_shape)}"
        faults.add("VG033", "out", wanted=f"be {shown}", got=f"{target.dtype} {list(target.shape)}")
    if not (target.flags.c_contiguous and target.flags.writeable):
        faults.add("VG033", "out", wanted="be dense and writable", got="strided or read-only memory")
    for name, array in plan.tensors.items():
        if np.may_share_memory(target, array):
            faults.add("VG033", "out", wanted=f"not share memory with {name}", got="overlapping memory")
    return target


def run_plan(plan: Plan, cancel: cpu.CancelFlag | None = None) -> Array:
    """The result of a plan as a NumPy array."""
    tensors = dense_tensors(plan)
    result = allocate(plan)
    compute(plan.problem, tensors, result, cancel)
    return result.astype(numpy_type(plan.problem.output_dtype), copy=False)


def dense_tensors(plan: Plan) -> list[Array]:
    """The tensors of a plan as kernels need them."""
    try:
        return [dense(plan.problem, array) for array in plan.tensors.values()]
    except MemoryError:
        raise _no_memory(plan, f"copies of inputs of {plan.copied_bytes:,} bytes") from None


def compute(
    problem: Problem,
    tensors: list[Array],
    result: Array,
    cancel: cpu.CancelFlag | None = None,
    patience: float = interrupt.PATIENCE,
) -> None:
    """Fill `result` from dense tensors, with the native kernel where there is one; `patience` as in `cpu.run`."""
    if result.size == 0:
        return
    if not cpu.computes(problem.op):
        with np.errstate(over="ignore", invalid="ignore"):
            result[...] = reference.evaluate(problem, *tensors)
        return

    def kernel(tensors: list[Array]) -> bool:
        return cpu.run(problem, [*tensors, result], cancel, patience=patience)

    if problem.map.has_taps:
        run_convolution(problem, tensors, result, kernel)
    else:
        kernel(tensors)


def allocate(plan: Plan) -> Array:
    """Memory for the result of a plan."""
    try:
        return memory.empty(plan.problem.output_shape, numpy_type(plan.problem.dtype))
    except (MemoryError, OSError):
        raise _no_memory(plan, f"a result of {plan.problem.output_bytes:,} bytes") from None


def _no_memory(plan: Plan, got: str) -> VoxgradError:
    return ResourceExhaustedError(Fault("VG020", plan.op.name, "output", "fit into memory", got))
