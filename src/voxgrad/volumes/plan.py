# SPDX-License-Identifier: Apache-2.0
"""Which part of the inputs a part of the result needs: exact windows, in integers, for every op of the family.

A plan cuts the result of a problem into chunks. For each it names the box of every input to read and the smaller
problem that computes the chunk from these boxes alone: what the whole problem would give there (filter gradients are
partial sums, to be added in the order of the chunks). Nothing here reads data or knows who runs a task: threads,
processes, Dask or a GPU take the same tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.volumes.windows import Range, Segment, segment, sizes_of

Box = tuple[Range, Range, Range]
"""Depth, height and width of a part of a volume."""


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
        sizes = sizes_of(problem)
        self.chunks = tuple(max(1, min(chunk, size)) for chunk, size in zip(chunks, sizes, strict=True))
        self.segments = tuple(
            tuple(segment(problem.map, axis, (at, min(at + chunk, size))) for at in range(0, size, chunk))
            for axis, chunk, size in zip(problem.axes, self.chunks, sizes, strict=True)
        )

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
        kept, made = _box(one.kept for one in segments), _box_on(self.problem.map.output, segments)
        crop = None if made == kept else _box((a - c, b - c) for (a, b), (c, _) in zip(kept, made, strict=True))
        axes = (segments[0].axis, segments[1].axis, segments[2].axis)
        reads = {
            item.name: None if item.side is Side.TAPS else _box_on(item.side, segments)
            for item in OPS[self.problem.op].inputs
            if not item.host
        }
        return Task(number, self.problem.part(axes), reads, None if self.is_partial else kept, crop)

    @property
    def is_partial(self) -> bool:
        """True for filter gradients, whose chunks are added up."""
        return self.problem.map.output is Side.TAPS


def _box_on(side: Side | None, segments: Sequence[Segment]) -> Box:
    """The box of a tensor that lies there."""
    return _box(one.on(side) for one in segments)


def _box(ranges: Iterable[Range]) -> Box:
    depth, height, width = ranges
    return depth, height, width
