# SPDX-License-Identifier: Apache-2.0
"""Which part of the inputs a part of the result needs: exact windows, in integers, for every op of the family.

A plan cuts the result of a problem into chunks. For each it names the box of every input to read and the smaller
problem that computes the chunk from these boxes alone: what the whole problem would give there (filter gradients are
partial sums, to be added in the order of the chunks). Nothing here reads data or knows who runs a task: threads,
processes, Dask or a GPU take the same tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS

Range = tuple[int, int]
Box = tuple[Range, Range, Range]
"""Depth, height and width of a part of a volume."""

_FORWARD = ("conv3d", "avg_pool", "max_pool", "max_pool_grad_grad", "conv3d_filter")


@dataclass(frozen=True, slots=True)
class Segment:
    """A chunk of one axis: the cells and windows it works on, and the part of the result that is kept."""

    cells: Range
    windows: Range
    kept: Range
    axis: Axis


@dataclass(frozen=True, slots=True)
class Task:
    """One chunk: what to read, what to compute, and where the result goes."""

    number: int
    problem: Problem
    reads: dict[str, Box | None]
    """The box of every tensor input; None for a whole tensor (a filter)."""
    writes: Box | None
    """The box of the result; None for a partial sum of the whole result (a filter gradient)."""
    crop: Box | None
    """The part of the computed box that is the result, where more had to be computed."""


class Plan:
    """All tasks of a problem for given chunk sizes. Made at once; tasks are made as they are asked for."""

    def __init__(self, problem: Problem, chunks: Sequence[int]):
        self.problem = problem
        self.forward = self.is_forward(problem)
        sizes = [axis.out if self.forward else axis.size for axis in problem.axes]
        self.chunks = tuple(max(1, min(chunk, size)) for chunk, size in zip(chunks, sizes, strict=True))
        self.segments = tuple(
            tuple(self._segment(axis, (at, min(at + chunk, size))) for at in range(0, size, chunk))
            for axis, chunk, size in zip(problem.axes, self.chunks, sizes, strict=True)
        )

    @staticmethod
    def is_forward(problem: Problem) -> bool:
        """True where chunks are made of windows, False where they are made of cells."""
        return problem.kernel in _FORWARD

    def _segment(self, axis: Axis, kept: Range) -> Segment:
        """What a range of the result, windows or cells, needs along one axis."""
        if self.forward:
            cells = _clip(geometry.input_box(axis, *kept), axis.size)
            return Segment(cells, kept, kept, geometry.part(axis, cells, kept))
        windows = self._covering(axis, kept)
        cells = kept
        if self.problem.kernel == "max_pool_grad":
            # The first of several equal cells wins, so a window is looked at whole.
            cells = _union(kept, self._covered(axis, windows))
        return Segment(cells, windows, kept, geometry.part(axis, cells, windows))

    def _covering(self, axis: Axis, cells: Range) -> Range:
        if axis.overreach and axis.window > axis.size:
            return 0, axis.out
        return geometry.output_box(axis, *cells)

    def _covered(self, axis: Axis, windows: Range) -> Range:
        if windows[1] <= windows[0]:
            return 0, 0
        return axis.span(windows[0])[0], axis.span(windows[1] - 1)[1]

    def __len__(self) -> int:
        return math.prod(len(axis) for axis in self.segments)

    def __iter__(self) -> Iterator[Task]:
        for number, segments in enumerate(product(*self.segments)):
            yield self._task(number, segments)

    def task(self, number: int) -> Task:
        """The task with this number."""
        depth, height, width = (len(axis) for axis in self.segments)
        at = (number // (height * width) % depth, number // width % height, number % width)
        return self._task(number, tuple(axis[i] for axis, i in zip(self.segments, at, strict=True)))

    def _task(self, number: int, segments: Sequence[Segment]) -> Task:
        cells, windows, kept = (
            (getattr(segments[0], name), getattr(segments[1], name), getattr(segments[2], name))
            for name in ("cells", "windows", "kept")
        )
        axes = (segments[0].axis, segments[1].axis, segments[2].axis)
        small = replace(self.problem, axes=axes, output_shape=())
        shape = small.filter_shape if self.is_partial else small.output_extent if self.forward else small.input_extent
        crop = None
        if not self.forward and kept != cells:
            crop = tuple((a - c, b - c) for (a, b), (c, _) in zip(kept, cells, strict=True))
        return Task(
            number,
            replace(small, output_shape=shape),
            self._reads(cells, windows),
            None if self.is_partial else kept,
            crop,  # type: ignore[arg-type]
        )

    @property
    def is_partial(self) -> bool:
        """True for filter gradients, whose chunks are added up."""
        return self.problem.kernel == "conv3d_filter"

    def _reads(self, cells: Box, windows: Box) -> dict[str, Box | None]:
        """The box of every tensor input: large ones follow the cells, small ones the windows."""
        large = {"input", "orig_input"} | ({"grad"} if self.problem.kernel == "max_pool_grad_grad" else set())
        reads: dict[str, Box | None] = {}
        for item in OPS[self.problem.op].inputs:
            if not item.host:
                reads[item.name] = None if item.layout == "filter" else cells if item.name in large else windows
        return reads

    def cost(self) -> Cost:
        """What the run takes: bytes read and written, and the most memory that one task needs."""
        itemsize = self.problem.dtype.itemsize
        channels = max(self.problem.in_channels, self.problem.out_channels) * self.problem.batch * itemsize
        read = peak = 0
        for segments in product(*self.segments):
            size = sum(
                math.prod(b - a for a, b in (getattr(one, name) for one in segments)) for name in ("cells", "windows")
            )
            read += size * channels
            peak = max(peak, size * channels)
        return Cost(len(self), read, self.problem.output_bytes, peak)


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate of a run."""

    tasks: int
    bytes_read: int
    bytes_written: int
    peak_bytes: int


def _clip(range_: Range, size: int) -> Range:
    lo = min(max(range_[0], 0), size)
    return lo, max(lo, min(range_[1], size))


def _union(a: Range, b: Range) -> Range:
    return a if b[1] <= b[0] else (min(a[0], b[0]), max(a[1], b[1]))
