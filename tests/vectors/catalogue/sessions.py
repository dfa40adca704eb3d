# SPDX-License-Identifier: Apache-2.0
"""Recorded steps of ops that change variables: what every variable holds after one and after two steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import RESOURCE
from voxgrad.catalog.registry import OPS

from .cases import Array, ramp


@dataclass(frozen=True)
class Step:
    """An op, the first values of its variables, its other inputs, its attributes."""

    op: str
    variables: dict[str, Array]
    inputs: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


_VALUES = {"alpha": 0.1, "lr": 0.1, "momentum": 0.9, "beta1_power": 0.9, "beta2_power": 0.999, "beta1": 0.9,
           "beta2": 0.999,
           "epsilon": 1e-3, "rho": 0.8, "l1": 0.05, "l2": 0.02, "lr_power": -0.5}  # fmt: skip


def _optimiser(op: str, dtype: str, **attrs: Any) -> Step:
    variables, inputs = {}, {}
    for index, item in enumerate(OPS[op].inputs):
        if item.ref or item.type is RESOURCE:
            start = ramp(dtype, 2, 3, start=0.5)
            # mg * mg must stay below ms, or the centred divisor is no number.
            variables[item.name] = (
                start * np.asarray(0.1, start.dtype)
                if item.name == "mg"
                else np.abs(start) + np.asarray(index, start.dtype)
            )
        elif item.name == "global_step":
            inputs[item.name] = np.array(2, np.int64)
        elif item.name == "indices":
            inputs[item.name] = np.array([1, 0, 1], np.int32)
        elif item.name in ("grad", "delta"):
            inputs[item.name] = ramp(dtype, 3 if "Sparse" in op else 2, 3, start=-1)
        else:
            inputs[item.name] = np.asarray(_VALUES[item.name]).astype(ramp(dtype, 1).dtype)
    return Step(op, variables, inputs, attrs)


def all_steps() -> list[Step]:
    """Every step, in a fixed order."""
    steps = [
        _optimiser(op.name, dtype) for op in OPS.values() if op.group == "training" for dtype in ("float32", "float64")
    ]
    steps += [_optimiser("ApplyMomentum", "float32", use_nesterov=True),
              _optimiser("ApplyAdam", "float32", use_nesterov=True),
              _optimiser("ApplyAdagrad", "float32", update_slots=False),
              _optimiser("ResourceSparseApplyMomentum", "float32", use_nesterov=True),
              _optimiser("SparseApplyAdagrad", "float32", update_slots=False),
              _optimiser("SparseApplyFtrl", "float64", multiply_linear_by_lr=True),
              _optimiser("ApplyFtrl", "float32", multiply_linear_by_lr=True)]  # fmt: skip
    rows, places = np.array([2, 0, 2], np.int32), np.array([[2, 0], [0, 1]], np.int32)
    for dtype in ("float32", "int32"):
        ref, more = ramp(dtype, 3, 2, start=4), ramp(dtype, 3, 2, start=1)
        steps += [Step(op, {"ref": ref}, {"value": more}) for op in ("Assign", "AssignAdd", "AssignSub")]
        more = more + np.asarray(more == 0, more.dtype)
        for op in ("ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterUpdate"):
            steps.append(
                Step(
                    op,
                    {"ref": ref},
                    {
                        "indices": rows if op != "ScatterUpdate" else rows[:2],
                        "updates": more[: 3 if op != "ScatterUpdate" else 2],
                    },
                )
            )
        for op in ("ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"):
            steps.append(Step(op, {"ref": ref}, {"indices": places, "updates": ramp(dtype, 2, start=1)}))
    for dtype in ("int32", "int8", "uint8"):
        ref = np.array([-7, 7, 100, -100]).astype(dtype)
        by = np.array([2, -2, 3, 3, 2]).astype(dtype)
        steps.append(Step("ScatterDiv", {"ref": ref}, {"indices": np.array([0, 1, 2, 3, 3], np.int32), "updates": by}))
    steps.append(Step("CountUpTo", {"ref": np.array(3, np.int32)}, {}, {"limit": 9}))
    return steps
