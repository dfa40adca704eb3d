# SPDX-License-Identifier: Apache-2.0
"""Padding is made of real zeros: 0 * inf and 0 * NaN are NaN, also at a border.

Kernels skip the taps that fall into the padding, which is right as long as the other factor is finite. Where it is
not, the skipped products are NaN, and this adds them. Finite data, the usual case, costs one look at the filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from voxgrad.catalog.problem import Problem

Array = np.ndarray[Any, Any]


def add_skipped_products(problem: Problem, tensors: list[Array], result: Array) -> None:
    """Put NaN where a padded cell meets a value that is not finite."""
    if problem.kernel == "conv3d" and not (finite := np.isfinite(tensors[1])).all():
        _spoil_outputs(problem, np.asarray(~finite.all(axis=3)), result)
    elif problem.kernel == "conv3d_filter":
        # Without dilation every window has a real cell, so a value in dy that is not finite shows in the small result.
        dilated = any(axis.dilation > 1 for axis in problem.axes)
        if dilated or not np.isfinite(result).all():
            _spoil_taps(problem, ~np.isfinite(tensors[1]), result)


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
    """`bad[t, q]` marks filter columns with a value that is not finite."""
    view = y if problem.channels_last else np.moveaxis(y, 1, -1)
    for tap, mask in _skipped(problem):
        columns = np.flatnonzero(bad[tap])
        for column in columns:
            view[..., column][:, mask] = np.nan


def _spoil_taps(problem: Problem, bad: Array, dw: Array) -> None:
    """`bad` marks the values of dy that are not finite."""
    view = bad if problem.channels_last else np.moveaxis(bad, 1, -1)
    per_position = np.asarray(view.any(axis=0))
    for tap, mask in _skipped(problem):
        dw[tap][:, per_position[mask].any(axis=0)] = np.nan


def has_padding(problem: Problem) -> bool:
    """True where some window reaches beyond the data."""
    return math.prod(problem.output_extent) > 0 and any(
        axis.before > 0 or axis.start(axis.out - 1) + (axis.window - 1) * axis.dilation >= axis.size
        for axis in problem.axes
    )
