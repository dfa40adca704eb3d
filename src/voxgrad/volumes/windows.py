# SPDX-License-Identifier: Apache-2.0
"""What a range of a result needs along one axis, for every op of the family: the cells and windows, in integers."""

from __future__ import annotations

from dataclasses import dataclass

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS

Range = tuple[int, int]
EMPTY: Range = (0, 0)
CELLS, WINDOWS, WHOLE = "cells", "windows", "whole"

_FORWARD = ("conv3d", "avg_pool", "max_pool", "max_pool_grad_grad", "conv3d_filter")
_LARGE = ("input", "orig_input")


@dataclass(frozen=True, slots=True)
class Segment:
    """A chunk of one axis: the cells and windows it works on, and the part of the result that is kept."""

    cells: Range
    windows: Range
    kept: Range
    axis: Axis


def is_forward(problem: Problem) -> bool:
    """True where chunks of the result are made of windows, False where they are made of cells."""
    return problem.kernel in _FORWARD


def sides(problem: Problem) -> list[str]:
    """What each input of the op lies along: the cells of the large side, the windows of the small one, or neither."""
    large = (*_LARGE, "grad") if problem.kernel == "max_pool_grad_grad" else _LARGE
    return [
        WHOLE if item.layout != "data" else CELLS if item.name in large else WINDOWS for item in OPS[problem.op].inputs
    ]


def segment(kernel: str, axis: Axis, kept: Range) -> Segment:
    """What a range of the result, windows or cells, needs along one axis."""
    if kernel in _FORWARD:
        cells = _clip(geometry.input_box(axis, *kept), axis.size)
        return Segment(cells, kept, kept, geometry.part(axis, cells, kept))
    windows = _covering(axis, kept)
    cells = kept
    if kernel == "max_pool_grad":
        # The first of several equal cells wins, so a window is looked at whole.
        cells = hull(kept, _covered(axis, windows))
    return Segment(cells, windows, kept, geometry.part(axis, cells, windows))


def hull(a: Range, b: Range) -> Range:
    """The smallest range that holds both; an empty one adds nothing."""
    if a[1] <= a[0] or b[1] <= b[0]:
        return b if a[1] <= a[0] else a
    return min(a[0], b[0]), max(a[1], b[1])


def _covering(axis: Axis, cells: Range) -> Range:
    if axis.overreach and axis.window > axis.size:
        return 0, axis.out
    return geometry.output_box(axis, *cells)


def _covered(axis: Axis, windows: Range) -> Range:
    if windows[1] <= windows[0]:
        return EMPTY
    return axis.span(windows[0])[0], axis.span(windows[1] - 1)[1]


def _clip(range_: Range, size: int) -> Range:
    lo = min(max(range_[0], 0), size)
    return lo, max(lo, min(range_[1], size))
