# SPDX-License-Identifier: Apache-2.0
"""Convolutions with values that are not finite, where it matters which zeros are multiplied.

Padding is made of real zeros, so 0 * inf is NaN at a border of Conv3D and of its filter gradient, as in TensorFlow.
The input gradient has no padding: what would fall outside is dropped. The kernels may skip padded taps, or fill them
with zeros; with finite numbers both are the same. Here the difference is made good. Kernels look at the filter, or at
its gradient, as it passes through their registers, so finite data, the usual case, costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem

Array = np.ndarray[Any, Any]
Kernel = Callable[[list[Array]], bool]
"""Fills the result; True where the filter, or its gradient, is finite."""


def must_be_finite(problem: Problem) -> bool:
    """True where a kernel alone is right only if the filter, or its gradient, is finite."""
    return problem.map.has_taps and (problem.map.output is Side.CELLS or _has_padding(problem))


def is_hidden(problem: Problem) -> bool:
    """True where a kernel may not meet a value in the filter, or in its gradient dy, that is not finite.

    Without dilation, and without a window that lies in stated padding alone, every window has a real cell.
    """
    if problem.map.output is Side.CELLS or not _has_padding(problem):
        return False
    dilated = problem.map.output is Side.TAPS and any(axis.dilation > 1 for axis in problem.axes)
    return dilated or any(map(_has_empty_window, problem.axes))


def _has_empty_window(axis: Axis) -> bool:
    """True where the first or the last window may have no cell."""
    reach = geometry.reach(axis.window, axis.dilation)
    return axis.size == 0 or axis.before >= reach or axis.start(axis.out - 1) >= axis.size


def run_convolution(problem: Problem, tensors: list[Array], result: Array, kernel: Kernel) -> None:
    """Run a kernel that fills `result` from tensors, and treat what is not finite as the definition does."""
    finite = kernel(tensors)
    if is_hidden(problem):
        finite = bool(np.isfinite(tensors[1]).all())
    if finite or not must_be_finite(problem):
        return
    if problem.map.output is Side.CELLS:
        _redo_channels(problem, tensors, result)
    elif problem.map.output is Side.WINDOWS:
        _spoil_outputs(problem, ~np.isfinite(tensors[1]), result)
    else:
        _spoil_taps(problem, ~np.isfinite(tensors[1]), result)


def _redo_channels(problem: Problem, tensors: list[Array], dx: Array) -> None:
    """Channels whose filters are not finite are computed tap by tap, so that only real products are taken."""
    w, dy = tensors
    rows = np.flatnonzero(~np.isfinite(w).all(axis=(0, 1, 2, 4)))
    cells, outputs = (a if problem.channels_last else np.moveaxis(a, 1, -1) for a in (dx, dy))
    group_in, group_out = problem.in_channels // problem.groups, problem.out_channels // problem.groups
    for group in range(problem.groups):
        filters = slice(group * group_out, (group + 1) * group_out)
        weights = w[:, :, :, rows, filters].astype(np.float64)
        cells[..., group * group_in + rows] = _by_taps(problem, weights, outputs[..., filters].astype(np.float64))


def _by_taps(problem: Problem, w: Array, dy: Array) -> Array:
    """The input gradient of a few channels as a plain sum."""
    dx = np.zeros((problem.batch, *(axis.size for axis in problem.axes), w.shape[3]))
    with np.errstate(invalid="ignore", over="ignore"):
        for tap in np.ndindex(*w.shape[:3]):
            windows, places = geometry.tap_slices(problem.axes, tap)
            dx[(slice(None), *places)] += dy[(slice(None), *windows)] @ w[tap].T
    return dx


def _skipped(problem: Problem) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Every tap with a mask [D', H', W'] of the windows in which it lies in the padding."""
    for tap in np.ndindex(*(axis.window for axis in problem.axes)):
        inside = np.ones([axis.out for axis in problem.axes], bool)
        for index, (axis, t) in enumerate(zip(problem.axes, tap, strict=True)):
            first, end = axis.outputs_of_tap(t)
            row = np.arange(axis.out)
            inside &= ((row >= first) & (row < end)).reshape([-1 if i == index else 1 for i in range(3)])
        if not inside.all():
            yield tap, ~inside


def _spoil_outputs(problem: Problem, bad: Array, y: Array) -> None:
    """`bad` marks the values of the filter that are not finite."""
    view = y if problem.channels_last else np.moveaxis(y, 1, -1)
    columns = np.asarray(bad.any(axis=3))
    for tap, mask in _skipped(problem):
        for column in np.flatnonzero(columns[tap]):
            view[..., column][:, mask] = np.nan


def _spoil_taps(problem: Problem, bad: Array, dw: Array) -> None:
    """`bad` marks the values of dy that are not finite."""
    view = bad if problem.channels_last else np.moveaxis(bad, 1, -1)
    per_position = np.asarray(view.any(axis=0))
    for tap, mask in _skipped(problem):
        dw[tap][:, per_position[mask].any(axis=0)] = np.nan


def _has_padding(problem: Problem) -> bool:
    """True where some window reaches beyond the data."""
    return math.prod(problem.output_extent) > 0 and any(
        axis.before > 0 or axis.start(axis.out - 1) + (axis.window - 1) * axis.dilation >= axis.size
        for axis in problem.axes
    )
