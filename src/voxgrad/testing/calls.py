# SPDX-License-Identifier: Apache-2.0
"""Random valid calls of the windowed family, small enough to be checked, odd enough to matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from voxgrad import reference
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import geometry, problem
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.registry import OPS

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")

STYLES = ("integers", "normal", "ties", "special")
"""Small integers (exact sums), random numbers, few distinct values (many ties), and NaN, infinities, signed zeros."""


class Chooser(Protocol):
    """Where the random choices come from."""

    def integer(self, low: int, high: int) -> int: ...  # noqa: D102
    def pick(self, items: Sequence[Item]) -> Item: ...  # noqa: D102


class SeededChooser:
    """Choices from a seed."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.integer(0, len(items) - 1)]


def draw_call(
    op: Op, choose: Chooser, *, dtype: DType, style: str | None = None, dilate: bool = True, group: bool = True,
    largest: int = 4,
    formats: Sequence[str] = problem.DATA_FORMATS,
) -> dict[str, Any]:  # fmt: skip
    """Keyword arguments of a valid call of `op` on NumPy arrays, with windows of up to `largest` taps an axis."""
    style = style or choose.pick(STYLES)
    random = np.random.default_rng(choose.integer(0, 2**31))
    layout = choose.pick(tuple(formats))
    is_conv = op.kernel.startswith("conv")
    axes = [_axis(choose, dilate and is_conv, largest) for _ in range(3)]
    padding = choose.pick(geometry.PADDINGS)
    sizes = [size if padding == geometry.SAME else max(size, geometry.reach(k, d)) for size, k, _, d in axes]
    attrs: dict[str, Any] = {
        "strides": _ordered([s for _, _, s, _ in axes], layout),
        "padding": padding,
        "data_format": layout,
    }
    groups = choose.pick((1, 1, 2, 3)) if group and is_conv else 1
    batch, inner, outer = choose.integer(1, 3), choose.integer(1, 3), choose.integer(1, 3)
    channels = inner * groups
    data = (batch, *sizes, channels) if layout == problem.DATA_FORMATS[0] else (batch, channels, *sizes)
    if is_conv:
        attrs["dilations"] = _ordered([d for *_, d in axes], layout)
        tensors = _conv_tensors(
            op, attrs, data, (*(k for _, k, *_ in axes), inner, outer * groups), dtype, style, random
        )
    else:
        attrs["ksize"] = _ordered([k for _, k, *_ in axes], layout)
        tensors = _pool_tensors(op, attrs, data, dtype, style, random)
    return tensors | attrs


def _axis(choose: Chooser, dilate: bool, largest: int) -> tuple[int, int, int, int]:
    """Size, window, stride, dilation; a third of the windows are larger than the axis, or smaller than the stride."""
    return choose.integer(1, 7), choose.integer(1, largest), choose.integer(1, 4), choose.integer(1, 3) if dilate else 1


def _ordered(spatial: list[int], layout: str) -> list[int]:
    return [1, *spatial, 1] if layout == problem.DATA_FORMATS[0] else [1, 1, *spatial]


def values(shape: tuple[int, ...], dtype: DType, style: str, random: np.random.Generator) -> Array:
    """Random numbers of a style."""
    kind = numpy_type(dtype)
    if not dtype.is_floating:
        return random.integers(0, 5, shape).astype(kind)
    if style == "normal":
        return random.standard_normal(shape).astype(kind)
    if style == "ties":
        return (random.integers(-1, 2, shape) * 0.5).astype(kind)
    small = random.integers(-4, 5, shape).astype(np.float64)
    if style == "special":
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
        small = np.where(random.random(shape) < 0.15, odd[random.integers(0, len(odd), shape)], small)
    return small.astype(kind)


def _conv_tensors(
    op: Op, attrs: dict[str, Any], data: tuple[int, ...], taps: tuple[int, ...], dtype: DType, style: str,
    random: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    forward = problem.parse(
        OPS["Conv3D"], {"input": Spec(dtype, data), "filter": Spec(dtype, taps)}, attrs, "documented"
    )
    shapes = {"input": data, "filter": taps, "out_backprop": forward.output_shape}
    stated = {"input_sizes": list(data), "filter_sizes": list(taps)}
    return {
        item.name: stated[item.name] if item.host else values(shapes[item.name], dtype, style, random)
        for item in op.inputs
    }


def _pool_tensors(
    op: Op, attrs: dict[str, Any], data: tuple[int, ...], dtype: DType, style: str, random: np.random.Generator
) -> dict[str, Any]:
    pooled = problem.parse(OPS["MaxPool3D"], {"input": Spec(_floating(dtype), data)}, attrs, "documented")
    made: dict[str, Any] = {}
    for item in op.inputs:
        if item.host:
            made[item.name] = list(data)
        elif item.name == "orig_output":
            made[item.name] = _pooled(pooled, made["orig_input"], random)
        else:
            full = item.name in ("input", "orig_input") or op.kernel == "max_pool_grad_grad"
            made[item.name] = values(data if full else pooled.output_shape, dtype, style, random)
    return made


def _floating(dtype: DType) -> DType:
    return dtype if dtype.is_floating else OPS["MaxPool3D"].types["T"][2]


def _pooled(pooled: problem.Problem, data: Array, random: np.random.Generator) -> Array:
    """Mostly the true maximum; sometimes another tensor, which the gradients must survive."""
    true = reference.evaluate(pooled, data.astype(np.float64))
    with np.errstate(invalid="ignore"):
        return (true if random.random() < 0.8 else np.round(true / 2)).astype(data.dtype)
