# SPDX-License-Identifier: Apache-2.0
"""Random valid calls of the windowed family, small enough to be checked, odd enough to matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from voxgrad import reference
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import geometry, problem
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Op, Side, Spec
from voxgrad.catalog.registry import OPS

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")
Shapes = Mapping[Side, tuple[int, ...]]

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
    explicit: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Keyword arguments of a valid call of `op` on NumPy arrays, with windows of up to `largest` taps an axis.

    `explicit`: also with padding in numbers, which TensorFlow has not.
    """
    style = style or choose.pick(STYLES)
    random = np.random.default_rng(choose.integer(0, 2**31))
    layout = choose.pick(tuple(formats))
    has_taps = op.map.has_taps
    axes = [_axis(choose, dilate and has_taps, largest) for _ in range(3)]
    padding = choose.pick((*geometry.PADDINGS, _stated(choose, axes, has_taps)) if explicit else geometry.PADDINGS)
    sizes = [size if padding == geometry.SAME else max(size, geometry.reach(k, d)) for size, k, _, d in axes]
    outs = [
        geometry.output_size(size, k, s, d, one)
        for size, (_, k, s, d), one in zip(sizes, axes, geometry.paddings(padding), strict=True)
    ]
    _, windows, strides, dilations = ([*one] for one in zip(*axes, strict=True))
    listed = {"ksize": windows, "strides": strides, "dilations": dilations}
    attrs: dict[str, Any] = {"padding": padding, "data_format": layout}
    attrs |= {attr.name: _ordered(listed[attr.name], layout) for attr in op.attrs if attr.name in listed}
    groups = choose.pick((1, 1, 2, 3)) if group and has_taps else 1
    batch, inner, outer = choose.integer(1, 3), choose.integer(1, 3), choose.integer(1, 3)
    shapes = {
        Side.CELLS: tuple(_ordered(sizes, layout, batch, inner * groups)),
        Side.WINDOWS: tuple(_ordered(outs, layout, batch, outer * groups if has_taps else inner)),
        Side.TAPS: (*windows, inner, outer * groups),
    }
    drawn = operands(
        op, shapes, lambda shape: values(shape, dtype, style, random),
        lambda data: _maxima(OPS[op.map.of], attrs, data, random),
    )  # fmt: skip
    return drawn | attrs


def _axis(choose: Chooser, dilate: bool, largest: int) -> tuple[int, int, int, int]:
    """Size, window, stride, dilation; a third of the windows are larger than the axis, or smaller than the stride."""
    return choose.integer(1, 7), choose.integer(1, largest), choose.integer(1, 4), choose.integer(1, 3) if dilate else 1


def _stated(choose: Chooser, axes: Sequence[tuple[int, ...]], beyond: bool) -> str:
    """Padding in numbers: of a pool less than its windows, of a convolution up to two cells beyond them."""
    most = [window + 1 if beyond else window - 1 for _, window, _, _ in axes]
    return ",".join(f"{choose.integer(0, one)}:{choose.integer(0, one)}" for one in most)


def _ordered(spatial: list[int], layout: str, batch: int = 1, channels: int = 1) -> list[int]:
    return [batch, *spatial, channels] if layout == problem.DATA_FORMATS[0] else [batch, channels, *spatial]


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


def operands(op: Op, shapes: Shapes, draw: Callable[[Any], Any], maxima: Callable[[Any], Any]) -> dict[str, Any]:
    """Every input, by the side on which it lies: a stated shape, the `maxima` of the data, or what `draw` makes."""
    made: dict[str, Any] = {}
    for item in op.inputs:
        assert item.side is not None
        if item.name == op.maxima:
            made[item.name] = maxima(made[op.inputs[0].name])
        else:
            made[item.name] = list(shapes[item.side]) if item.host else draw(shapes[item.side])
    return made


def _maxima(pool: Op, attrs: dict[str, Any], data: Array, random: np.random.Generator) -> Array:
    """Mostly the true maximum; sometimes another tensor, which the gradients must survive."""
    (item,) = pool.inputs
    pooled = problem.parse(pool, {item.name: Spec(pool.allowed(item.type)[0], data.shape)}, attrs, "documented")
    true = reference.evaluate(pooled, data.astype(np.float64))
    with np.errstate(invalid="ignore"):
        return (true if random.random() < 0.8 else np.round(true / 2)).astype(data.dtype)
