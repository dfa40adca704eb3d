# SPDX-License-Identifier: Apache-2.0
"""Random pages of three layers over a volume: windows, activations, joins; every stride, dilation and padding."""

from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.graph.block import Output
from voxgrad.testing import SeededChooser

Array = np.ndarray[Any, Any]


def spread(values: list[int], last: bool) -> list[int]:
    return [1, *values, 1] if last else [1, 1, *values]


def random_page(choose: SeededChooser, dtype: type, style: str) -> tuple[vg.Page, Array]:
    """A page whose output is "y" and whose volume is "x", and a volume for it."""
    last = choose.integer(0, 1) == 1
    random = np.random.default_rng(choose.integer(0, 10**6))
    batch, channels = choose.integer(1, 2), choose.integer(1, 3)
    sizes = [choose.integer(5, 14) for _ in range(3)]
    shape = (batch, *sizes, channels) if last else (batch, channels, *sizes)
    page = vg.Page("random")
    x = vg.ops.Placeholder(page, dtype=np.dtype(dtype).name, shape=[None] * 5, name="x")
    at = x
    for index in range(3):
        at, channels = layer(page, choose, random, at, channels, last, dtype, style, f"l{index}", list(shape))
    page.expose({"y": at})
    return page, values(random, shape, dtype, style)


def values(random: np.random.Generator, shape: Any, dtype: type, style: str) -> Array:
    made = random.integers(-3, 4, shape) if style == "integers" else random.standard_normal(shape)
    return made.astype(dtype)


def layer(
    page: vg.Page, choose: SeededChooser, random: np.random.Generator, x: Output, channels: int, last: bool,
    dtype: type, style: str, name: str, shape: list[int],
) -> tuple[Output, int]:  # fmt: skip
    scope = page.sub(name)
    layout = "NDHWC" if last else "NCDHW"
    window = [choose.integer(1, 3) for _ in range(3)]
    strides = [choose.integer(1, 2) for _ in range(3)]
    same = choose.integer(0, 2) > 0
    more = {"padding": "SAME" if same else "VALID", "data_format": layout}
    kind = choose.integer(0, 5)
    if not same:
        window, strides = [min(one, 2) for one in window], [1, 1, 1]
    if kind <= 1:
        dilations = [choose.integer(1, 2) if same else 1 for _ in range(3)]
        outs = choose.integer(1, 3)
        w = vg.ops.Const(scope, values(random, (*window, channels, outs), dtype, style), np.dtype(dtype).name)
        y = vg.ops.Conv3D(scope, x, w, strides=spread(strides, last), dilations=spread(dilations, last), **more)
        y = vg.ops.Relu(scope, y) if choose.integer(0, 1) else y
        return y, outs
    pool = {"ksize": spread(window, last), "strides": spread(strides, last), **more}
    if kind == 2:
        return vg.ops.MaxPool3D(scope, x, **pool), channels
    if kind == 3:
        bias = vg.ops.Const(scope, values(random, (channels,), dtype, style), np.dtype(dtype).name)
        y = vg.ops.AvgPool3D(scope, x, **pool)
        return (
            vg.ops.BiasAdd(scope, y, bias) if last else vg.ops.BiasAdd(scope, y, bias, data_format="NCHW")
        ), channels
    # A join: two ways through windows of one grid, added or put side by side.
    pool["ksize"] = spread([3, 2, 3] if same else [1, 1, 1], last)
    left = vg.ops.MaxPool3D(scope, x, **pool)
    w = vg.ops.Const(scope, values(random, (*((2, 3, 1) if same else (1, 1, 1)), channels, channels), dtype, style),
                     np.dtype(dtype).name)  # fmt: skip
    right = vg.ops.Conv3D(scope, x, w, strides=pool["strides"], **more)
    if kind == 4:
        return vg.ops.Add(scope, left, right), channels
    return vg.ops.ConcatV2(scope, [left, right], -1 if last else 1), 2 * channels
