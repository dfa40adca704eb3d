# SPDX-License-Identifier: Apache-2.0
"""Convolution as a sum over taps: y[o] += x[cell under tap t of window o] * w[t]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxgrad.catalog import geometry
from voxgrad.catalog.problem import Problem

Array = NDArray[Any]
Slices = tuple[slice, ...]


def conv3d(problem: Problem, x: Array, w: Array) -> Array:
    """y[n, o, q] = sum over taps t and channels c of x[n, cell(o, t), c] * w[t, c, q]."""
    y = np.zeros((problem.batch, *(axis.out for axis in problem.axes), problem.out_channels))
    for tap, outputs, cells in taps(problem):
        read = under_tap(problem, x, outputs, cells)
        for data, filters in channel_groups(problem):
            y[..., filters] += read[..., data] @ w[tap][:, filters]
    return y


def conv3d_input(problem: Problem, w: Array, dy: Array) -> Array:
    """The transpose of conv3d in x: what falls into the padding is dropped."""
    dx = np.zeros((problem.batch, *(axis.size for axis in problem.axes), problem.in_channels))
    for tap, outputs, cells in taps(problem):
        for data, filters in channel_groups(problem):
            dx[cells][..., data] += dy[outputs][..., filters] @ w[tap][:, filters].T
    return dx


def conv3d_filter(problem: Problem, x: Array, dy: Array) -> Array:
    """The transpose of conv3d in w."""
    dw = np.zeros(problem.filter_shape)
    for tap, outputs, cells in taps(problem):
        read = under_tap(problem, x, outputs, cells)
        for data, filters in channel_groups(problem):
            dw[tap][:, filters] = np.einsum("ndhwc,ndhwq->cq", read[..., data], dy[..., filters])
    return dw


def taps(problem: Problem) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """Every tap with the windows in which it falls on real cells, and those cells."""
    for tap in np.ndindex(*(axis.window for axis in problem.axes)):
        outputs, cells = geometry.tap_slices(problem.axes, tap)
        yield tap, (slice(None), *outputs), (slice(None), *cells)


def under_tap(problem: Problem, x: Array, outputs: Slices, cells: Slices) -> Array:
    """What a tap reads in every window; the padding is a real zero, so 0 * inf is NaN there too."""
    read = np.zeros((problem.batch, *(axis.out for axis in problem.axes), problem.in_channels))
    read[outputs] = x[cells]
    return read


def channel_groups(problem: Problem) -> Iterator[tuple[slice, slice]]:
    """The input and output channels of every group."""
    data, filters = problem.in_channels // problem.groups, problem.out_channels // problem.groups
    for group in range(problem.groups):
        yield slice(group * data, (group + 1) * data), slice(group * filters, (group + 1) * filters)
