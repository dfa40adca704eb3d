# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers that are rounded to steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxgrad.catalog import dtypes

from .draw import Draw


def _fake(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4) if "Channel" in d.op.name else d.shape()
    outer = shape[-1:] if "Channel" in d.op.name else ()
    made: dict[str, Any] = {"inputs": d.array(dtypes.FLOAT32, shape), "num_bits": d.pick(8, 8, 2, 4, 16)}
    if "gradients" in {item.name for item in d.op.inputs}:
        made["gradients"] = d.array(dtypes.FLOAT32, shape)
    low, width = d.rng.uniform(-3, 0.5, outer), d.rng.uniform(0.1, 4, outer)
    if "Args" in d.op.name:
        return {**made, "min": float(low), "max": float(low + width)}
    if d.chance(0.1):
        low, width = low * 0, width * 0
    return {**made, "min": d.number(low, dtypes.FLOAT32), "max": d.number(low + width, dtypes.FLOAT32)}


def _stepped(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4)
    # Of a range per slice, TensorFlow has no results.
    axis = -1 if d.smooth else d.pick(-1, -1, d.integer(0, len(shape) - 1))
    outer = () if axis == -1 else (shape[axis],)
    low = d.rng.uniform(-3, 0.5, outer)
    return {"input": d.array(d.type("T"), shape, d.pick("normal", "ties", "wide")), "axis": axis, "num_bits": d.pick(
        8, 4, 2, 16), "input_min": d.number(low, "T"), "input_max": d.number(low + 2.5, "T")}  # fmt: skip


ROUNDING: dict[str, dict[str, Callable[[Draw], Any]]] = {
    **{f"FakeQuantWithMinMax{name}": {"": _fake} for name in (
        "Args", "ArgsGradient", "Vars", "VarsGradient", "VarsPerChannel", "VarsPerChannelGradient")},
    "QuantizeAndDequantizeV2": {"": _stepped},
}  # fmt: skip
"""By op, by argument."""
