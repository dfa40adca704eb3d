# SPDX-License-Identifier: Apache-2.0
"""Pools window by window, all batches and channels of a window at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from voxgrad.catalog import geometry
from voxgrad.catalog.problem import Problem

Array = NDArray[Any]
Index = tuple[Any, ...]

NEAR = 1e-5
"""How close to the maximum a cell must be to take its gradient in the tf_cpu semantics."""


def avg_pool(problem: Problem, x: Array) -> Array:
    """The mean of the cells of a window that exist."""
    y = np.zeros(_pooled(problem))
    for output, cells, count in windows(problem):
        y[output] = x[cells].sum(axis=(1, 2, 3)) / count
    return y


def avg_pool_grad(problem: Problem, dy: Array) -> Array:
    """Every cell of a window receives dy / count."""
    dx = np.zeros(_full(problem))
    for output, cells, count in windows(problem):
        dx[cells] += (dy[output] / count)[:, None, None, None, :]
    return dx


def max_pool(problem: Problem, x: Array) -> Array:
    """The largest cell of a window; NaN never wins."""
    y = np.full(_pooled(problem), -np.inf)
    for output, cells, _ in windows(problem):
        y[output] = np.fmax.reduce(x[cells], axis=(1, 2, 3), initial=-np.inf)
    return y


def max_pool_grad(problem: Problem, x: Array, y: Array, dy: Array) -> Array:
    """dy goes to the first cell that equals y, or to every cell near it."""
    dx = np.zeros(_full(problem))
    for output, cells, _ in windows(problem):
        match = _near if problem.near_ties else first_match
        takes = match(problem, x[cells], y[output])
        dx[cells] += np.where(takes, dy[output][:, None, None, None, :], 0)
    return dx


def max_pool_grad_grad(problem: Problem, x: Array, y: Array, grad: Array) -> Array:
    """The value of grad at the first cell that equals y; 0 where none does."""
    out = np.zeros(_pooled(problem), grad.dtype)
    for output, cells, _ in windows(problem):
        out[output] = np.where(first_match(problem, x[cells], y[output]), grad[cells], 0).sum(
            axis=(1, 2, 3), dtype=grad.dtype
        )
    return out


def first_match(problem: Problem, window: Array, value: Array) -> Array:
    """True at the first cell, in depth, height, width order, that equals `value`; per batch and channel."""
    batch, depth, height, width, channels = window.shape
    equal = (window == value[:, None, None, None, :]).reshape(batch, depth * height * width, channels)
    first: Array = equal & (equal.cumsum(axis=1) == 1)
    return first.reshape(batch, depth, height, width, channels)


def _near(problem: Problem, window: Array, value: Array) -> Array:
    """The comparison of TensorFlow's CPU kernel: in the precision of the data, 1e-5 excluded."""
    precision = {"half": np.float16, "bfloat16": ml_dtypes.bfloat16}.get(problem.dtype.name, problem.dtype.name)
    with np.errstate(invalid="ignore"):
        distance = (window - value[:, None, None, None, :]).astype(precision)
    near: Array = np.abs(distance) < np.asarray(NEAR, precision)
    return near


def windows(problem: Problem) -> Iterator[tuple[Index, Index, int]]:
    """Every window: the index of its output, the index of its cells, and their number."""
    tables = [list(zip(*geometry.spans(axis), strict=True)) for axis in problem.axes]
    for od, (d0, d1) in enumerate(tables[0]):
        for oh, (h0, h1) in enumerate(tables[1]):
            for ow, (w0, w1) in enumerate(tables[2]):
                # Of a part of a volume a window may reach beyond what is in memory; all its cells count.
                cells = (slice(None), *(slice(max(a, 0), max(b, 0)) for a, b in ((d0, d1), (h0, h1), (w0, w1))))
                yield (slice(None), od, oh, ow), cells, (d1 - d0) * (h1 - h0) * (w1 - w0)


def _pooled(problem: Problem) -> tuple[int, ...]:
    return (problem.batch, *(axis.out for axis in problem.axes), problem.out_channels)


def _full(problem: Problem) -> tuple[int, ...]:
    return (problem.batch, *(axis.size for axis in problem.axes), problem.in_channels)
