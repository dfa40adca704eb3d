# SPDX-License-Identifier: Apache-2.0
"""The plan of a call, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxgrad.arrays.gpu import GpuPlan, is_for_gpu, plan_on_gpu
from voxgrad.arrays.plan import Plan, make_plan
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import find


def explain(op: str | Callable[..., Any], **arguments: Any) -> Plan | GpuPlan:
    """What a call would do, without doing it: kernel, semantics, windows, copies.

        print(vg.explain(vg.raw_ops.AvgPool3D, input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"))

    Raises what the call itself would raise.
    """
    declared = getattr(op, "op", None)
    found = declared if isinstance(declared, Op) else find(str(op))
    return plan_on_gpu(found, arguments) if is_for_gpu(found, arguments) else make_plan(found, arguments)
