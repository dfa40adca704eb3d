# SPDX-License-Identifier: Apache-2.0
"""The plan of a call, for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from voxgrad.arguments import checked
from voxgrad.arrays.deferred import planner
from voxgrad.arrays.functions import bind
from voxgrad.arrays.gpu import GpuPlan, is_for_gpu, plan_on_gpu
from voxgrad.arrays.ordinary import OrdinaryPlan
from voxgrad.arrays.ordinary import make_plan as plan_ordinary
from voxgrad.arrays.plan import Plan, make_plan
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import find
from voxgrad.errors import Fault, InvalidArgumentError, show


@dataclass(frozen=True, slots=True)
class LazyPlan:
    """What a call on lazy arrays would do; `print(plan)` says it in words."""

    op: Op
    result: Any

    def __str__(self) -> str:
        made = self.result
        head = f"{self.op.name} -> lazy {made.dtype} {list(made.shape)}, {made.nbytes:,} bytes when it is computed"
        return f"{head}\n  kernel:    one task for each of {made.npartitions} chunks"


@checked
def explain(op: str | Callable[..., Any], **arguments: Any) -> Plan | GpuPlan | OrdinaryPlan | LazyPlan:
    """What a call would do, without doing it: kernel, semantics, windows, copies; of ordinary ops types and shapes.

        print(vg.explain(vg.raw_ops.AvgPool3D, input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"))

    Raises what the call itself would raise.
    """
    declared = getattr(op, "op", None)
    found = declared if isinstance(declared, Op) else find(op if isinstance(op, str) else show(op))
    if found.stateful or found.name == "Placeholder":
        remedy = "Put it on a page: page.estimate() tells what it costs."
        raise InvalidArgumentError(
            Fault("VG003", "explain", "op", "be an op that computes at once", found.name, remedy)
        )
    bind(found, (), arguments)
    later = planner(arguments)
    if later is not None:
        return LazyPlan(found, later(found, arguments))
    if found.problem is None:
        return plan_ordinary(found, arguments)
    return plan_on_gpu(found, arguments) if is_for_gpu(found, arguments) else make_plan(found, arguments)
