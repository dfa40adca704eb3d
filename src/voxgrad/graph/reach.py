# SPDX-License-Identifier: Apache-2.0
"""Where an element goes: the elements of other outputs that read it, block by block. The other way round from `trace`.

A box holds every element that can change when this one does; where one element of a windowed op is followed, `steps`
leave out those between that cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from voxgrad.catalog.dims import all_known
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.locality import tensors_of
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.page import Page
from voxgrad.graph.trace import (
    MAX_WINDOWS,
    Comb,
    Place,
    Region,
    covered,
    group_of,
    joined,
    meetings,
    parts_of,
    problem_of,
    shape_of,
    whole_of,
)  # fmt: skip


@dataclass(slots=True)
class Reached:
    """The elements of an output that read an element through one input of its block."""

    block: str
    pin: str
    output: str
    depth: int
    lo: list[int]
    hi: list[int]
    steps: list[int]
    count: int


def reach(page: Page, output: Output, index: Sequence[int], depth: int) -> list[Reached]:
    """All that an element has a say in, the nearest first, as many blocks on as asked."""
    inference = page.infer()
    shape = shape_of(inference, output)
    if shape is None or len(index) != len(shape) or not all(0 <= at < n for at, n in zip(index, shape, strict=True)):
        known = "an index of its output" if shape is None else f"an index below [{','.join(map(str, shape))}]"
        fault = Fault("VG012", output.block.op_name, output.path, f"be read at {known}", str(list(index)))
        raise InvalidArgumentError(fault)
    level = {output: Region(tuple((at, at + 1) for at in index), (1,) * len(index))}
    found: list[Reached] = []
    for far in range(1, depth + 1):
        ahead: dict[Output, Region] = {}
        for source, region in level.items():
            for pin, made, part in _readers(inference, source, region):
                found.append(_told(pin, made, part, far))
                ahead[made] = joined(ahead[made], part) if made in ahead else part
        level = ahead
        if not level or len(found) >= MAX_WINDOWS:
            break
    return found[:MAX_WINDOWS]


def _told(pin: str, made: Output, part: Region, depth: int) -> Reached:
    count = math.prod(len(range(lo, hi, step)) for (lo, hi), step in zip(part.ranges, part.steps, strict=True))
    lo, hi = ([one[side] for one in part.ranges] for side in (0, 1))
    return Reached(made.block.name, pin, made.path, depth, lo, hi, list(part.steps), count)


def _readers(inference: Inference, source: Output, region: Region) -> Iterator[tuple[str, Output, Region]]:
    """Every output that is made of this one, through which pin, and the part that reads the region."""
    for block in source.block.readers:
        for name, pin, at in _pins(block, source):
            for made in block.outputs:
                shape = shape_of(inference, made)
                if shape is None:
                    continue
                part = _part(inference, made, shape, (pin, at), region)
                ranges = part.clipped(shape)
                if all(hi > lo for lo, hi in ranges):
                    yield name, made, Region(ranges, part.steps)


def _pins(block: Block, source: Output) -> Iterator[tuple[str, str, int]]:
    """Every pin that an output enters: its name with its place in a list, without, and its number among all tensors."""
    first = 0
    for pin in block.inputs:
        for at, one in enumerate(pin.sources):
            if one == source and not pin.host:
                yield f"{pin.name}[{at}]" if pin.many else pin.name, pin.name, first + at
        first += len(pin.sources)


def _part(
    inference: Inference, made: Output, shape: tuple[int, ...], through: tuple[str, int], region: Region
) -> Region:
    """The part of a result that reads a region of a tensor; all of it where nobody says more."""
    block, (pin, at) = made.block, through
    problem, call = problem_of(inference, block), inference.calls.get(block)
    if problem is not None:
        return _windowed(problem, shape, pin, region)
    ranges, steps = [(0, size) for size in shape], [1] * len(shape)
    known = call is not None and not made.index and all(all_known(spec.shape) for spec in tensors_of(call))
    if call is not None and call.op.follows is not None and known:
        places = call.op.follows(call, shape)
        followed = None if places is None else places[at]
        for dim, place in enumerate(followed if isinstance(followed, tuple) else ()):
            if place is not None:
                ranges[place], steps[place] = region.ranges[dim], region.steps[dim]
    return Region(tuple(ranges), tuple(steps))


def _windowed(problem: Problem, shape: tuple[int, ...], pin: str, region: Region) -> Region:
    """The part of a windowed op's result that reads a region of one of its tensors; of a filter, all of it does."""
    side, to = OPS[problem.op].input(pin).side, problem.map.output
    if side not in (Side.CELLS, Side.WINDOWS) or to is Side.TAPS:
        return Region(tuple((0, size) for size in shape), (1,) * len(shape))
    place = parts_of(problem, region)
    combs = [_along(axis, side, to, *one) for axis, one in zip(problem.axes, place.spatial, strict=True)]
    channels = place.channels
    if side is not to:
        large, small = problem.in_channels, problem.out_channels
        mine, others = (large, small) if side is Side.CELLS else (small, large)
        _, channels = group_of(problem, channels, mine, others)
    spatial, steps = tuple(one for one, _ in combs), tuple(step for _, step in combs)
    return whole_of(problem, Place(place.batch, spatial, channels), steps)


def _along(axis: Axis, side: Side, to: Side, lo: int, hi: int) -> Comb:
    """Along one axis: from cells to windows over them, from windows to cells under them, or there and back."""
    if side is Side.CELLS and to is Side.WINDOWS:
        return meetings(axis, lo, hi)[0]
    if side is Side.WINDOWS and to is Side.CELLS:
        return covered(axis, lo, hi), axis.dilation if hi - lo == 1 else 1
    if to is Side.CELLS:
        (windows, _), _ = meetings(axis, lo, hi)
        return covered(axis, *windows), 1
    return (lo, hi), 1
