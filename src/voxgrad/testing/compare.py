# SPDX-License-Identifier: Apache-2.0
"""One comparison for everything: against a float64 truth, per element type, with the worst elements named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of
from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, FLOAT64, HALF
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem

Array = np.ndarray[Any, Any]

EPSILON = {HALF: 2.0**-10, BFLOAT16: 2.0**-7, FLOAT32: 2.0**-23, FLOAT64: 2.0**-52}
"""The distance from 1 to the next number of each type."""

_SMALLEST = {HALF: 2.0**-24, BFLOAT16: 2.0**-133, FLOAT32: 2.0**-149, FLOAT64: 2.0**-1074}


def terms_of(problem: Problem) -> int:
    """How many products or values an element of the result sums at most; 0 where it is only selected."""
    windows = [axis.window for axis in problem.axes]
    # With dilation neighbouring taps may all hit one cell; without it only every stride-th does.
    hits = [axis.window if axis.dilation > 1 else -(-axis.window // axis.stride) for axis in problem.axes]
    covers = [min(hit, axis.out) for hit, axis in zip(hits, problem.axes, strict=True)]
    to, has_taps = problem.map.output, problem.map.has_taps
    if problem.map.selects and to is Side.WINDOWS:
        return 0
    if to is Side.TAPS:
        count = problem.batch * math.prod(axis.out for axis in problem.axes)
    elif to is Side.CELLS:
        count = math.prod(hits) * problem.out_channels // problem.groups if has_taps else math.prod(covers)
    elif has_taps:
        count = math.prod(windows) * problem.in_channels // problem.groups
    else:
        count = math.prod(min(axis.window, axis.size) for axis in problem.axes)
    return max(1, count)


def assert_close(actual: Array, expected: Array, *, terms: int = 0, scale: float = 0.0, label: str = "") -> None:
    """Every element of `actual` is what rounding allows.

    terms=0 demands equality (after one rounding to the type of `actual`). Otherwise the elements are sums of `terms`
    products: float32 and float64 may be off by 2 units in the last place of the largest element, times sqrt(terms);
    half and bfloat16 by one rounding of their own beyond that error of a float32 sum. `scale` stands in for the largest
    element where the terms of a sum cancel. Never scaled by the array's size, so that one wrong face of a volume
    shows. NaN and infinities must be in the same places.
    """
    assert actual.shape == expected.shape, f"{label}: shape {actual.shape}, expected {expected.shape}"
    truth = np.asarray(expected, dtype=np.float64) if expected.dtype.kind not in "iu" else expected
    value = np.asarray(actual, dtype=np.float64) if actual.dtype.kind not in "iu" else actual
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = truth.astype(actual.dtype).astype(value.dtype)
        special = ~(np.isfinite(rounded) & np.isfinite(truth))
        same = (value == rounded) | (np.isnan(value) & np.isnan(rounded))
        allowed = np.where(special, 0.0, _tolerance(actual, truth, terms, scale))
        close = same | (np.abs(value - truth) <= allowed) & ~special if terms else same
    if not close.all():
        raise AssertionError(f"{label}: {_worst(value, truth, close, allowed)}")


def _tolerance(actual: Array, truth: Array, terms: int, scale: float) -> Array:
    dtype = dtype_of(actual.dtype)
    assert dtype is not None and (dtype.is_floating or not terms)
    if not terms or truth.size == 0:
        return np.zeros(truth.shape)
    finite = np.abs(np.where(np.isfinite(truth), truth, 0.0))
    sum_type = FLOAT64 if dtype == FLOAT64 else FLOAT32
    error = 2 * math.sqrt(terms) * EPSILON[sum_type] * finite.max(initial=scale)
    if dtype in (HALF, BFLOAT16):
        own = np.maximum(2.0 ** np.floor(np.log2(np.maximum(finite, 2.0**-140))) * EPSILON[dtype], _SMALLEST[dtype])
        return np.asarray(own + error)
    return np.full(truth.shape, error)


def _worst(value: Array, truth: Array, close: Array, allowed: Array, count: int = 5) -> str:
    with np.errstate(invalid="ignore"):
        distance = np.abs(value.astype(np.float64) - truth.astype(np.float64))
    rank = np.where(close, -1.0, np.where(np.isnan(distance), np.inf, distance))
    order = np.argsort(rank, axis=None)[::-1][:count]
    lines = []
    for flat in order:
        index = np.unravel_index(flat, value.shape)
        if not close[index]:
            where = [int(i) for i in index]
            lines.append(f"  {where}: {value[index]!r}, expected {truth[index]!r}, allowed {allowed[index]:.3g}")
    rms = math.sqrt(float(np.nanmean(np.where(np.isfinite(distance), distance, 0) ** 2)))
    return f"{(~close).sum()} of {close.size} elements differ (rms {rms:.3g}); the worst:\n" + "\n".join(lines)
