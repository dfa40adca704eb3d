# SPDX-License-Identifier: Apache-2.0
"""What a range of a result needs along one axis, for every op of the family: the cells and windows, in integers."""

from __future__ import annotations

from dataclasses import dataclass

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Map, Side
from voxgrad.catalog.problem import Problem

Range = tuple[int, int]
EMPTY: Range = (0, 0)


@dataclass(frozen=True, slots=True)
class Segment:
    """A chunk of one axis: the cells and windows it works on, and the part of the result that is kept."""

    cells: Range
    windows: Range
    kept: Range
    axis: Axis

    def on(self, side: Side | None) -> Range:
        """The range of a tensor that lies there."""
        return self.cells if side is Side.CELLS else self.windows


def sizes_of(problem: Problem) -> list[int]:
    """What is cut into chunks: the cells of a result that lies there, else windows, over which taps are summed."""
    return [axis.size if problem.map.output is Side.CELLS else axis.out for axis in problem.axes]


def segment(map_: Map, axis: Axis, kept: Range) -> Segment:
    """What a range of cells or windows needs along one axis."""
    if map_.output is not Side.CELLS:
        cells = clip(geometry.input_box(axis, *kept), axis.size)
        return Segment(cells, kept, kept, geometry.part(axis, cells, kept))
    windows = _covering(axis, kept)
    cells = kept
    if map_.needs_whole_windows:
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


def clip(range_: Range, size: int) -> Range:
    """The part of a range that lies on an axis of this size."""
    lo = min(max(range_[0], 0), size)
    return lo, max(lo, min(range_[1], size))
