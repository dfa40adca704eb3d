# SPDX-License-Identifier: Apache-2.0
"""Where an element comes from: its window in every input, block by block, with winners and ties of max-pools.

The cells come from `voxgrad.catalog.geometry`, as in the kernels; nothing here knows what SAME means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog import geometry
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.locality import tensors_of
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem, solve
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.page import Page
from voxgrad.graph.shares import Share, shares

Array = np.ndarray[Any, Any]
MAX_WINDOWS = 400
MAX_TIES = 64

Range = tuple[int, int]
Values = Callable[[Output], Any]
"""The value of an output in a run, where there is one."""


@dataclass(frozen=True, slots=True)
class Region:
    """A box of a tensor, which may reach outside of it; `steps` between the cells that count."""

    ranges: tuple[Range, ...]
    steps: tuple[int, ...]

    def clipped(self, shape: tuple[int, ...]) -> tuple[Range, ...]:
        """The part that exists; the first and last cell that count stay on the grid of the steps."""
        found = []
        for (lo, hi), step, size in zip(self.ranges, self.steps, shape, strict=True):
            first = lo if lo >= 0 else lo + -(lo // step) * step
            end = min(hi, size)
            # Taps with gaps between them can miss all cells there are.
            none = min(first, size)
            found.append((first, first + (end - 1 - first) // step * step + 1) if end > first else (none, none))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Read:
    """A region of an input that a region of the output depends on."""

    pin: str
    region: Region
    weights: Box | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor that enters through a pin; `steps` between the elements that count."""

    pin: str
    lo: list[int]
    hi: list[int]
    steps: list[int]


@dataclass(frozen=True, slots=True)
class Padding:
    """Cells of a window outside of the tensor, per axis."""

    before: list[int]
    after: list[int]


@dataclass(slots=True)
class Window:
    """The cells of a tensor that an element depends on, through one input of one block."""

    block: str
    pin: str
    source: str
    depth: int
    lo: list[int]
    hi: list[int]
    steps: list[int]
    padding: Padding
    count: int
    weights: Box | None = None
    winner: list[int] | None = None
    ties: list[list[int]] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Traced:
    """All windows, the nearest first, and what is not known more closely."""

    windows: list[Window]
    notes: list[str]


def trace(page: Page, output: Output, index: Sequence[int], depth: int, values: Values) -> Traced:
    """All windows behind an element, the nearest first, as far back as asked."""
    inference = page.infer()
    shape = shape_of(inference, output)
    if shape is None or len(index) != len(shape) or not all(0 <= at < n for at, n in zip(index, shape, strict=True)):
        known = "an index of its output" if shape is None else f"an index below [{','.join(map(str, shape))}]"
        got = str(list(index))
        raise InvalidArgumentError(Fault("VG012", output.block.op_name, output.path, f"be read at {known}", got))
    start = Region(tuple((at, at + 1) for at in index), (1,) * len(index))
    return _Tracer(inference, values).walk(output, start, depth)


class _Tracer:
    def __init__(self, inference: Inference, values: Values):
        self.inference = inference
        self.values = values
        self.windows: list[Window] = []
        self.notes: dict[str, None] = {}

    def walk(self, output: Output, start: Region, depth: int) -> Traced:
        """Breadth first, so that the nearest windows come first; regions that meet in one output are joined."""
        level = {output: start}
        for far in range(1, depth + 1):
            behind: dict[Output, Region] = {}
            for reader, region in level.items():
                for source, read in self._reads(reader, region, far):
                    behind[source] = joined(behind[source], read) if source in behind else read
            level = behind
            if not level or len(self.windows) >= MAX_WINDOWS:
                break
        return Traced(windows=self.windows[:MAX_WINDOWS], notes=list(self.notes))

    def _reads(self, output: Output, region: Region, depth: int) -> Iterator[tuple[Output, Region]]:
        block = output.block
        problem = problem_of(self.inference, block)
        reads = _window_reads(problem, region) if problem is not None else self._ordinary_reads(output, region)
        for read in reads:
            for source, pin in _sources(block, read.pin):
                shape = shape_of(self.inference, source)
                if shape is None or len(shape) != len(read.region.ranges):
                    continue
                window = self._window(block, pin, source, read, shape, depth)
                if problem is not None and depth == 1:
                    self._look_inside(problem, block, region, window)
                self.windows.append(window)
                yield source, Region(read.region.clipped(shape), read.region.steps)

    def _window(self, block: Block, pin: str, source: Output, read: Read, shape: tuple[int, ...], depth: int) -> Window:
        clipped, region = read.region.clipped(shape), read.region
        count = math.prod(max(0, -(-(hi - lo) // step)) for (lo, hi), step in zip(clipped, region.steps, strict=True))
        padding = Padding(
            before=[
                max(0, -(lo // step)) if lo < 0 else 0
                for (lo, _), step in zip(region.ranges, region.steps, strict=True)
            ],
            after=[
                max(0, (hi - 1 - max(lo, n - 1 - (n - 1 - lo) % step)) // step) if hi > n else 0
                for (lo, hi), step, n in zip(region.ranges, region.steps, shape, strict=True)
            ],
        )
        return Window(
            block=block.name, pin=pin, source=source.path, depth=depth, lo=[lo for lo, _ in clipped],
            hi=[hi for _, hi in clipped], steps=list(region.steps), padding=padding, count=count, weights=read.weights,
        )  # fmt: skip

    def _ordinary_reads(self, output: Output, region: Region) -> Iterator[Read]:
        """The place that a dimension follows, where the op declares that it does; else all of the dimension."""
        block, places = output.block, self._followed(output)
        at = 0
        for pin in block.inputs:
            first, at = at, at + len(pin.sources)
            if pin.host or not pin.sources or not isinstance(pin.sources[0], Output):
                continue
            shape = shape_of(self.inference, pin.sources[0])
            if shape is None:
                continue
            if places is None:
                self.notes[f"{block.name} is taken to depend on all of {pin.name}."] = None
            followed = None if places is None else places[first]
            yield Read(pin.name, _at_places(region, shape, followed if isinstance(followed, tuple) else None))

    def _followed(self, output: Output) -> Sequence[Any] | None:
        """Of every tensor, which dimensions of the result its own follow; None where nobody says so."""
        call, shape = self.inference.calls.get(output.block), shape_of(self.inference, output)
        if call is None or call.op.follows is None or shape is None:
            return None
        if output.index or not all(all_known(spec.shape) for spec in tensors_of(call)):
            return None
        return call.op.follows(call, shape)

    def _look_inside(self, problem: Problem, block: Block, region: Region, window: Window) -> None:
        """What the cells of the window behind a single element count for, and which of them has won."""
        if problem.map.selects:
            self._find_winner(problem, block, region, window)
        grid = [range(lo, hi, step) for lo, hi, step in zip(window.lo, window.hi, window.steps, strict=True)]
        index = [lo for lo, _ in region.ranges]
        window.shares = shares(problem, window.pin, index, grid, lambda pin: self._value(block, pin))

    def _find_winner(self, problem: Problem, block: Block, region: Region, window: Window) -> None:
        """The cell of a single window that won, and all that are as large."""
        op = OPS[problem.op]
        item = op.input(window.pin)
        if problem.map.output is not Side.WINDOWS or item.side is not Side.CELLS or item.name in op.linear_in:
            return
        found = self._value(block, window.pin)
        if found is None or not window.count:
            return
        box = tuple(slice(lo, hi) for lo, hi in zip(window.lo, window.hi, strict=True))
        cells = np.asarray(found[box], np.float64)
        best = np.fmax.reduce(cells, axis=None, initial=-np.inf)
        if op.maxima:
            pooled = self._value(block, op.maxima)
            if pooled is None:
                return
            best = np.float64(pooled[tuple(lo for lo, _ in region.ranges)])
        # Depth, height, width order: the order of the axes in both layouts, as batch and channel are single here.
        hits = [[int(at) + lo for at, lo in zip(hit, window.lo, strict=True)] for hit in np.argwhere(cells == best)]
        window.winner = hits[0] if hits else None
        window.ties = hits[:MAX_TIES] if len(hits) > 1 else []

    def _value(self, block: Block, pin: str) -> Array | None:
        sources = block.sources.get(pin, [])
        source = sources[0] if sources else None
        if isinstance(source, Output):
            found = self.values(source)
            return np.asarray(found) if found is not None else _constant(source)
        return None


def _constant(source: Output) -> Array | None:
    value = source.block.attrs.get("value") if source.block.op_name == "Const" else None
    return value if isinstance(value, np.ndarray) else None


def shape_of(inference: Inference, output: Output) -> tuple[int, ...] | None:
    """The shape, where all sizes are numbers."""
    shape = inference.spec(output).shape
    return shape if shape is not None and all(isinstance(size, int) for size in shape) else None


def problem_of(inference: Inference, block: Block) -> Problem | None:
    """The windowed problem that a block solves, where it solves one."""
    call = inference.calls.get(block)
    if call is None or call.op.problem is None:
        return None
    problem = solve(call)
    return problem if isinstance(problem, Problem) and len(problem.output_shape) == 5 else None


def _sources(block: Block, pin: str) -> Iterator[tuple[Output, str]]:
    for at, source in enumerate(block.sources.get(pin, [])):
        if isinstance(source, Output):
            many = block.op is not None and any(item.name == pin and item.many for item in block.op.inputs)
            yield source, f"{pin}[{at}]" if many else pin


def joined(a: Region, b: Region) -> Region:
    """A box around both; with steps where both have the same."""
    ranges = tuple((min(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a.ranges, b.ranges, strict=True))
    return Region(ranges, tuple(1 if p != q else p for p, q in zip(a.steps, b.steps, strict=True)))


def _at_places(region: Region, shape: tuple[int, ...], places: Sequence[int | None] | None) -> Region:
    """The region of an input whose dimensions follow those of the result at these places."""
    pairs = list(zip(shape, places or (None,) * len(shape), strict=True))
    return Region(
        tuple((0, size) if place is None else region.ranges[place] for size, place in pairs),
        tuple(1 if place is None else region.steps[place] for _, place in pairs),
    )


# The windowed family


@dataclass(frozen=True, slots=True)
class Place:
    """A region of a rank-5 tensor, in parts: batch, three spatial ranges, channels."""

    batch: Range
    spatial: tuple[Range, ...]
    channels: Range


Places = tuple[dict[Side, Region], "list[Comb]"]
"""What is read of a tensor on each side, and the taps that weigh it."""


def _window_reads(problem: Problem, region: Region) -> Iterator[Read]:
    """What a region of the result reads of every tensor, which depends on where both lie."""
    find = {Side.WINDOWS: _of_windows, Side.CELLS: _of_cells, Side.TAPS: _of_taps}[problem.map.output]
    regions, taps = find(problem, region)
    tensors = [item for item in OPS[problem.op].inputs if not item.host]
    weights = next((_box(item.name, taps) for item in tensors if item.side is Side.TAPS), None)
    for item in tensors:
        if item.side is Side.TAPS and weights is not None:
            yield Read(item.name, _region(weights))
        elif item.side is not None:
            yield Read(item.name, regions[item.side], weights)


def _of_windows(problem: Problem, region: Region) -> Places:
    """From windows to the cells that they cover."""
    place = parts_of(problem, region)
    spatial = tuple(covered(axis, lo, hi) for axis, (lo, hi) in zip(problem.axes, place.spatial, strict=True))
    # Between the taps of one window only; several windows fill the gaps of each other.
    steps = tuple(
        axis.dilation if hi - lo == 1 else 1 for axis, (lo, hi) in zip(problem.axes, place.spatial, strict=True)
    )
    taps = [_taps_of_windows(axis, *one) for axis, one in zip(problem.axes, place.spatial, strict=True)]
    inside, channels = group_of(problem, place.channels, problem.out_channels, problem.in_channels)
    cells = whole_of(problem, Place(place.batch, spatial, channels), steps)
    return {Side.CELLS: cells, Side.WINDOWS: region}, [*taps, _dense((0, inside)), _dense(place.channels)]


def _of_cells(problem: Problem, region: Region) -> Places:
    """From cells to the windows that have them under a tap, to these taps, and to all cells of the windows."""
    place = parts_of(problem, region)
    met = [meetings(axis, *one) for axis, one in zip(problem.axes, place.spatial, strict=True)]
    windows, taps = [one for one, _ in met], [one for _, one in met]
    _, channels = group_of(problem, place.channels, problem.in_channels, problem.out_channels)
    per_group = problem.in_channels // problem.groups
    single = place.channels[1] - place.channels[0] == 1
    first = place.channels[0] % per_group if single else 0
    spatial, steps = tuple(one for one, _ in windows), tuple(step for _, step in windows)
    small = whole_of(problem, Place(place.batch, spatial, channels), steps)
    cells = tuple(covered(axis, lo, hi) for axis, (lo, hi) in zip(problem.axes, spatial, strict=True))
    large = whole_of(problem, Place(place.batch, cells, place.channels), (1, 1, 1))
    combs = [*taps, _dense((first, first + 1 if single else per_group)), _dense(channels)]
    return {Side.CELLS: large, Side.WINDOWS: small}, combs


Comb = tuple[Range, int]
"""A range, and the step between its members."""


def _dense(one: Range) -> Comb:
    return one, 1


def _comb(members: set[int]) -> Comb:
    """The members of a set as a range with a step; exact for the sets that windows make of one cell."""
    if not members:
        return (0, 0), 1
    low = min(members)
    return (low, max(members) + 1), math.gcd(*(one - low for one in members)) or 1


def _taps_of_windows(axis: Axis, lo: int, hi: int) -> Comb:
    """The taps that fall on a real cell in some window."""
    return _comb({tap for tap in range(axis.window) if _overlap(axis.outputs_of_tap(tap), (lo, hi))})


def _overlap(a: Range, b: Range) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])


def covered(axis: Axis, lo: int, hi: int) -> Range:
    """The cells under windows lo..hi-1, with the padding among them."""
    first, end = geometry.input_box(axis, lo, hi)
    return first, max(end, axis.size) if _ends_with_axis(axis) and hi > lo else end


def _ends_with_axis(axis: Axis) -> bool:
    return axis.overreach and axis.window > axis.size


def meetings(axis: Axis, lo: int, hi: int) -> tuple[Comb, Comb]:
    """The windows and taps that meet in a cell of a range."""
    if _ends_with_axis(axis):
        first, end = geometry.coverings(axis)
        return _dense((first[lo], end[hi - 1])), _dense((0, axis.window))
    if hi - lo > 1:
        return (geometry.output_box(axis, lo, hi), 1), ((0, axis.window), 1)
    pairs = [
        (window, tap)
        for window in range(*geometry.output_box(axis, lo, hi))
        for tap in range(axis.window)
        if axis.start(window) + tap * axis.dilation == lo
    ]
    return _comb({window for window, _ in pairs}), _comb({tap for _, tap in pairs})


def _of_taps(problem: Problem, region: Region) -> Places:
    """An element of a filter's gradient meets, in every window, the cell under its tap."""
    taps, inputs, outputs = region.ranges[:3], region.ranges[3], region.ranges[4]
    cells, windows, steps = [], [], []
    for axis, (lo, hi) in zip(problem.axes, taps, strict=True):
        first, end = _windows_of_taps(axis, lo, hi)
        windows.append((first, end))
        cells.append(
            (axis.start(first) + lo * axis.dilation, axis.start(end - 1) + (hi - 1) * axis.dilation + 1)
            if end > first
            else (0, 0)
        )
        steps.append(axis.stride if hi - lo == 1 else 1)
    per_group = problem.out_channels // problem.groups
    group = outputs[0] // per_group
    base = group * (problem.in_channels // problem.groups)
    channels = (base + inputs[0], base + inputs[1])
    batch = (0, problem.batch)
    large = whole_of(problem, Place(batch, tuple(cells), channels), tuple(steps))
    return {Side.CELLS: large, Side.WINDOWS: whole_of(problem, Place(batch, tuple(windows), outputs), (1, 1, 1))}, []


def _windows_of_taps(axis: Axis, lo: int, hi: int) -> Range:
    found = [axis.outputs_of_tap(tap) for tap in range(lo, hi)]
    real = [(first, end) for first, end in found if end > first]
    return (min(first for first, _ in real), max(end for _, end in real)) if real else (0, 0)


def group_of(problem: Problem, channels: Range, mine: int, others: int) -> tuple[int, Range]:
    """Channels of the other side that belong to the groups of these: how many per group, and which."""
    if not problem.map.has_taps:
        return 1, channels
    own, other = mine // problem.groups, others // problem.groups
    return other, (channels[0] // own * other, ((channels[1] - 1) // own + 1) * other)


def _box(pin: str, combs: list[Comb]) -> Box:
    return Box(
        pin=pin,
        lo=[lo for (lo, _), _ in combs],
        hi=[hi for (_, hi), _ in combs],
        steps=[step for _, step in combs],
    )


def _region(box: Box) -> Region:
    return Region(tuple(zip(box.lo, box.hi, strict=True)), tuple(box.steps))


def parts_of(problem: Problem, region: Region) -> Place:
    """A region of a rank-5 tensor by its batch, its place in space and its channels."""
    ranges = region.ranges
    if problem.channels_last:
        return Place(ranges[0], ranges[1:4], ranges[4])
    return Place(ranges[0], ranges[2:5], ranges[1])


def whole_of(problem: Problem, place: Place, steps: tuple[int, ...]) -> Region:
    """The region of these parts, in the order of the problem's layout."""
    if problem.channels_last:
        return Region((place.batch, *place.spatial, place.channels), (1, *steps, 1))
    return Region((place.batch, place.channels, *place.spatial), (1, 1, *steps))
