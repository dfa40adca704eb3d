# SPDX-License-Identifier: Apache-2.0
"""Convolution as a sum over taps: y[o] += x[cell under tap t of window o] * w[t]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxgrad.catalog.problem import Problem

Array = NDArray[Any]
Slices = tuple[slice, ...]


def conv3d(problem: Problem, x: Array, w: Array) -> Array:
    """y[n, o, q] = sum over taps t and channels c of x[n, cell(o, t), c] * w[t, c, q]."""
    y = np.zeros((problem.batch, *(axis.out for axis in problem.axes), problem.out_channels))
    for tap, outputs, cells in taps(problem):
        for data, filters in channel_groups(problem):
            y[(slice(None), *outputs, filters)] += x[(slice(None), *cells, data)] @ w[tap][:, filters]
    return y


def conv3d_input(problem: Problem, w: Array, dy: Array) -> Array:
    """The transpose of conv3d in x."""
    dx = np.zeros((problem.batch, *(axis.size for axis in problem.axes), problem.in_channels))
    for tap, outputs, cells in taps(problem):
        for data, filters in channel_groups(problem):
            dx[(slice(None), *cells, data)] += dy[(slice(None), *outputs, filters)] @ w[tap][:, filters].T
    return dx


def conv3d_filter(problem: Problem, x: Array, dy: Array) -> Array:
    """The transpose of conv3d in w."""
    dw = np.zeros(problem.filter_shape)
    for tap, outputs, cells in taps(problem):
        for data, filters in channel_groups(problem):
            read, back = x[(slice(None), *cells, data)], dy[(slice(None), *outputs, filters)]
            dw[tap][:, filters] = np.einsum("ndhwc,ndhwq->cq", read, back)
    return dw


def taps(problem: Problem) -> Iterator[tuple[tuple[int, int, int], Slices, Slices]]:
    """Every tap with the windows in which it falls on real cells, and those cells."""
    for tap in np.ndindex(*(axis.window for axis in problem.axes)):
        outputs, cells = [], []
        for axis, t in zip(problem.axes, tap, strict=True):
            first, end = axis.outputs_of_tap(t)
            start = axis.start(first) + t * axis.dilation
            outputs.append(slice(first, end))
            cells.append(slice(start, start + (end - first - 1) * axis.stride + 1, axis.stride) if end > first else slice(0, 0))
        yield tap, tuple(outputs), tuple(cells)  # type: ignore[misc]


def channel_groups(problem: Problem) -> Iterator[tuple[slice, slice]]:
    """The input and output channels of every group."""
    data, filters = problem.in_channels // problem.groups, problem.out_channels // problem.groups
    for group in range(problem.groups):
        yield slice(group * data, (group + 1) * data), slice(group * filters, (group + 1) * filters)
