# SPDX-License-Identifier: Apache-2.0
"""Small shapes on every path of the native kernels, compared with the reference bit for bit.

    python3 run test --sweep [SECONDS] [--shapes N] [--seed SEED] [--jobs N] [--case K]

A case is a shape, from a sequence that the seed decides (today's date, where none is given): all single axes of 1-20
cells, windows of 1-9, strides 1-4, dilations 1-3 and all paddings in an order of their own, random triples of axes, and
shapes at the edges of the paths' conditions. Each runs on integers, through all kernels of its family, in some types
and layouts, on every instruction set of the machine: as the library decides, then with each possible path forced or
avoided, then with random paths, threads and blocks. The results lie in poisoned memory between guards. A path that no
case enters, or that is never left though it could be taken, fails the run.

With --shapes so many are run, each through one kernel in one type and layout: as the library decides and on two random
choices of paths, on every instruction set. That is about a hundred times as many shapes in the same time.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from voxgrad.catalog import geometry, registry
from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, FLOAT64, HALF, INT8, INT16, INT32, INT64, DType
from voxgrad.catalog.geometry import SAME, VALID, Axis
from voxgrad.catalog.problem import Problem
from voxgrad.kernels import cpu, names, paths
from voxgrad.kernels.element_types import numpy_type
from voxgrad.reference import evaluate, pooling

Array = np.ndarray[Any, Any]
FLOATS, INTEGERS = (HALF, BFLOAT16, FLOAT32, FLOAT64), (INT8, INT16, INT32, INT64)
CHANNELS = (
    *range(1, 18), 23, 24, 25, 31, 32, 33, 39, 40, 47, 48, 49, 63, 64, 65, 66, 79, 80, 95, 96, 97, 127, 128, 129, 130,
)  # fmt: skip
IDLE = Axis(1, 1, 1)


@dataclass(frozen=True)
class Case:
    """A shape. A pool has as many output channels as it has input channels."""

    family: str
    axes: tuple[Axis, Axis, Axis]
    batch: int = 1
    channels: int = 1
    outs: int = 1
    groups: int = 1
    near_ties: bool = False

    def problem(self, kernel: str, dtype: DType = FLOAT64, channels_last: bool = True) -> Problem:
        op = registry.OPS[OPS[kernel]]
        outs = self.outs if self.family == "conv" else self.channels
        problem = Problem(
            op.name, op.map, dtype, dtype, (), channels_last, self.batch, self.channels, outs, self.groups, self.axes,
            self.near_ties and kernel == "max_pool_grad",
        )  # fmt: skip
        return problem.part(self.axes)


OPS = {kernel: op for op, kernel in names.KERNELS.items()}
KERNELS = (*OPS, "max_pool_positions", "max_pool_grad_positions", "max_pool_grad_grad_positions")


# ---- shapes ----


@cache
def single_axes() -> tuple[Axis, ...]:
    """All short axes; `before` and `out` of the explicit ones are anything a caller may ask for."""
    found = []
    for size, window, stride, dilation in product(range(1, 21), range(1, 10), range(1, 5), range(1, 4)):
        for padding in (SAME, VALID):
            axis = geometry.axis(size, window, stride, dilation, padding)
            if axis.out > 0:
                found.append(axis)
        found.append(explicit(size, window, stride, dilation, size * 7 + window * 3 + stride + dilation))
    return tuple(found)


def explicit(size: int, window: int, stride: int, dilation: int, salt: int) -> Axis:
    """Cells before the first one in any number that some window needs, or the first window late; any number behind."""
    reach = geometry.reach(window, dilation)
    before = salt % (reach + 3) - 2
    out = max(1, (size + before + salt // 5 % (reach + 2) - reach) // stride + 1)
    return Axis(size, out, window, stride, dilation, before)


def random_axis(choose: random.Random, most: int = 9) -> Axis:
    size, window = choose.randint(1, most), choose.choice((1, 1, 2, 2, 3, 3, 3, 4, 5, 7))
    stride, dilation = choose.choice((1, 1, 1, 2, 2, 3)), choose.choice((1, 1, 1, 2, 3))
    padding = choose.choice((SAME, VALID, ""))
    if padding:
        axis = geometry.axis(size, window, stride, dilation, padding)
        if axis.out > 0:
            return axis
    return explicit(size, window, stride, dilation, choose.randint(0, 999))


def regular(size: int, window: int, stride: int = 1, padding: str = SAME, dilation: int = 1) -> Axis:
    axis = geometry.axis(size, window, stride, dilation, padding)
    assert axis.out > 0
    return axis


def _whole(windows: tuple[int, int, int], more: int) -> tuple[Axis, Axis, Axis]:
    depth, height, width = (regular(window + more, window) for window in windows)
    return depth, height, width


def edges() -> Iterator[Case]:
    """Shapes on both sides of the constants in the paths' conditions that the axes above do not reach."""

    def pool(d: Axis, h: Axis, w: Axis, channels: int, **more: Any) -> Case:
        return Case("pool", (d, h, w), channels=channels, **more)

    def conv(d: Axis, h: Axis, w: Axis, channels: int, outs: int, **more: Any) -> Case:
        return Case("conv", (d, h, w), channels=channels, outs=outs, **more)

    three, two = regular(5, 3), regular(4, 2, 2)
    for rows in ((4, 4), (3, 5), (2, 8), (1, 16), (1, 17), (2, 9), (16, 1), (17, 1)):  # of a window: up to 16
        yield pool(regular(rows[0] + 1, rows[0]), regular(rows[1] + 2, rows[1]), regular(6, 2), 16)
    for window, stride in ((4, 1), (5, 1), (8, 2), (9, 2), (12, 3), (13, 3), (16, 4), (17, 4)):  # wider than 4 strides
        for windows in (1, 2, 3, 5):
            for channels in (8, 16):
                yield pool(IDLE, IDLE, regular(window + (windows - 1) * stride, window, stride, VALID), channels)
    for window, stride in ((3, 2), (3, 3), (5, 4), (4, 1)):  # alike in the part; one counts a cell before it
        for channels in (3, 8, 16):
            cut = Axis(stride + window - 2, 2, window, stride, before=1, below=1)
            yield pool(IDLE, regular(2, 2), cut, channels)
    for size in (4, 6, 7, 8, 9):  # cells behind the last window, near maxima
        for window, stride in ((1, 2), (1, 3), (2, 3), (2, 4)):
            yield pool(IDLE, regular(3, 2), regular(size, window, stride, VALID), size, near_ties=True)
    for cells in ((2, 127, 1), (1, 255, 1), (1, 128, 2), (2, 2, 63), (2, 2, 64), (6, 6, 7), (4, 8, 8)):  # 254 in a byte
        yield pool(*_whole(cells, 1), channels=5)
    for window in (31, 32, 33, 34):  # rows of the ring
        yield pool(regular(3, 2), regular(window + 2, window), regular(3, 3), 3)
    for window in (63, 64, 65, 66):  # taps of a flat row
        yield pool(IDLE, IDLE, regular(window + 3, window), 3)
    for window in (7, 8, 9):  # taps of a fold, on any axis
        for axes in ((window, 2, 2), (2, window, 2), (2, 2, window)):
            yield pool(*_whole(axes, 2), channels=9)
    for channels in (63, 64, 65, 127, 128, 129, 192, 511, 513):  # cut channels
        yield pool(three, regular(3, 2), regular(3, 2), channels)
        yield pool(regular(4, 2), regular(16, 2, 1, VALID), two, channels)
    for channels in (1023, 1024, 1025, 2047, 2048, 2049, 2111):  # blocks of channels
        yield pool(IDLE, regular(2, 2), regular(3, 2), channels)
    for size in (2, 3, 4, 5, 6, 7, 8, 9):  # three planes at a time, in pairs, all rests
        for channels in (8, 16, 31, 32, 33, 64):
            yield pool(regular(size, 3), regular(3, 3), regular(4, 3), channels)
            yield pool(regular(size, 3, 2), regular(9, 3, 2), regular(4, 3, 2), channels)
    for channels in (3, 4, 5, 7, 8, 9, 16, 17):  # listed, few, one block
        for outs in (1, 3, 4, 5, 8, 11, 12, 13, 24, 25):
            yield conv(regular(3, 2), three, regular(9, 3), channels, outs)
    for channels in (63, 64, 65, 95, 96, 97):  # in place
        for axis in (regular(9, 3), regular(9, 3, 2), regular(9, 1), regular(9, 3, padding=VALID)):
            yield conv(IDLE, regular(2, 2), axis, channels, 16)
    for cells in ((4, 8, 8), (4, 8, 9), (9, 9, 9)):  # 2048 products of a listed sum
        for channels in (1, 2, 3, 7, 8):
            yield conv(*_whole(cells, 0), channels=channels, outs=9)
    yield conv(IDLE, regular(3, 3), regular(6, 6), 256, 256)  # a large filter for few voxels
    for width in range(1, 31):  # the tiles of all shapes
        yield conv(IDLE, regular(width % 7 + 1, 3), regular(width, 3), 17, (8, 16, 24, 32, 40, 48)[width % 6])
        yield conv(IDLE, regular(width % 5 + 1, 2), regular(width, 2), 5, (4, 8, 12, 16, 48, 64)[width % 6])
        yield conv(IDLE, IDLE, regular(width, 1), 19, (3, 8, 16, 24, 32, 64)[width % 6])
    for groups, channels, outs in ((2, 8, 8), (3, 9, 6), (4, 32, 64), (8, 8, 8), (16, 16, 32), (5, 40, 5)):
        yield conv(regular(3, 2), regular(4, 3), regular(7, 3), channels, outs, groups=groups, batch=2)
    for before in range(-2, 5):  # a single cell under several windows, channels first
        for window in (1, 2, 3):
            yield conv(IDLE, IDLE, Axis(1, 3, window, before=before), 16, 8, batch=2)


def empties() -> Iterator[Case]:
    """Nothing along an axis, no images, no channels."""
    for axis in (Axis(2, 0, 3), Axis(0, 2, 3, before=1), Axis(0, 0, 1)):
        for axes in ((axis, IDLE, IDLE), (IDLE, axis, IDLE), (IDLE, regular(2, 2), axis)):
            yield Case("pool", axes, channels=17)
            yield Case("conv", axes, channels=5, outs=17)
    axes = (regular(2, 2), regular(3, 2), regular(4, 3))
    yield from (Case("pool", axes, channels=0), Case("pool", axes, batch=0, channels=9))
    yield from (Case("conv", axes, 0, 3, 4), Case("conv", axes, 1, 0, 4), Case("conv", axes, 1, 3, 0))


@dataclass
class Shapes:
    """The sequence of cases of a seed; any of them can be made again."""

    seed: str
    edges: list[Case] = field(init=False)
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.edges = [*edges(), *empties()]
        self.order = list(range(6 * len(single_axes())))  # three places in two families
        shuffler = random.Random(self.seed)
        shuffler.shuffle(self.edges)
        shuffler.shuffle(self.order)

    def __getitem__(self, index: int) -> Case:
        choose = random.Random(f"{self.seed}/{index}")
        kind = index % 4
        if kind == 0 and index // 4 < len(self.edges):
            return self.edges[index // 4]
        if kind < 2:
            return self._random(choose)
        return self._single(choose, self.order[(index // 4 * 2 + kind - 2) % len(self.order)])

    def _single(self, choose: random.Random, number: int) -> Case:
        axis, family, place = single_axes()[number // 6], ("pool", "conv")[number % 2], number // 2 % 3
        axes = [
            IDLE if choose.random() < 0.5 else regular(choose.randint(1, 3), choose.randint(1, 2)) for _ in range(3)
        ]
        axes[place] = axis
        return self._case(choose, family, axes)

    def _random(self, choose: random.Random) -> Case:
        most = choose.choice((4, 5, 6, 9))
        return self._case(choose, choose.choice(("pool", "conv")), [random_axis(choose, most) for _ in range(3)])

    @staticmethod
    def _case(choose: random.Random, family: str, axes: Sequence[Axis]) -> Case:
        work = math.prod(axis.out * axis.window for axis in axes)
        allowed = [count for count in CHANNELS if count * work <= 60_000] or [1, 2, 3]
        first, second, third = (*axes,) if family == "conv" else tuple(_part(choose, axis) for axis in axes)
        batch = choose.choice((1, 1, 1, 2, 3))
        channels = choose.choice(allowed)
        if family == "pool":
            return Case(family, (first, second, third), batch, channels, near_ties=choose.random() < 0.25)
        groups = choose.choice((1, 1, 1, 1, 2, 3, 4, channels))
        outs = choose.choice([count for count in allowed if count * channels * work <= 600_000] or [1, 2])
        channels, outs = -(-channels // groups) * groups, -(-outs // groups) * groups
        return Case(family, (first, second, third), batch, channels, outs, groups)


def _part(choose: random.Random, axis: Axis) -> Axis:
    """Pools have no dilation, but may be a part of a longer axis, and their windows may overreach (quirk B3)."""
    axis = replace(axis, dilation=1)
    kind = choose.random()
    if kind < 0.1:
        return replace(axis, below=choose.randint(0, 3), above=choose.randint(0, 3))
    return replace(axis, overreach=True) if kind < 0.15 else axis


# ---- what is computed, and what should come out ----


@dataclass(frozen=True)
class Job:
    """A kernel, its inputs and outputs as [N, D, H, W, C] or as filters, in float64 (positions: uint8)."""

    kernel: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    positions: bool = False
    rounds: str = ""
    """mean: what float32 divides; sum: of so many roundings, all of one sign."""

    @property
    def name(self) -> str:
        return f"{self.kernel}{'_positions' if self.positions else ''}"


Jobs = list[Callable[[], Job]]
"""The kernels of a family; what the reference makes of their inputs is computed when it is asked for."""


def integers(random: np.random.Generator, low: int, high: int, shape: Sequence[int]) -> Array:
    return random.integers(low, high, tuple(shape), endpoint=True).astype(np.float64)


def jobs_of(case: Case, seed: int) -> Jobs:
    """All kernels of a family."""
    random = np.random.default_rng(seed)
    return _conv_jobs(case, random) if case.family == "conv" else _pool_jobs(case, random)


def _conv_jobs(case: Case, random: np.random.Generator) -> Jobs:
    problem = case.problem("conv3d")
    x, w = integers(random, -3, 3, problem.input_extent), integers(random, -3, 3, problem.filter_shape)
    dy = integers(random, -3, 3, problem.output_extent)
    inputs = {"conv3d": (x, w), "conv3d_input": (w, dy), "conv3d_filter": (x, dy)}

    def job(kernel: str) -> Job:
        return Job(kernel, inputs[kernel], (evaluate(case.problem(kernel), *inputs[kernel]),))

    return [partial(job, kernel) for kernel in inputs]


def _pool_jobs(case: Case, random: np.random.Generator) -> Jobs:
    problem = case.problem("avg_pool")
    x, grad = integers(random, -8, 8, problem.input_extent), integers(random, -8, 8, problem.input_extent)
    dy, shares = integers(random, -4, 4, problem.output_extent), integers(random, 1, 9, problem.output_extent)
    others, chosen = integers(random, -8, 8, dy.shape), random.random(dy.shape) < 0.2
    lacking = random.random() < 0.3  # a window may lack the maximum that it is given
    top = cache(lambda: evaluate(case.problem("max_pool"), x))
    places = cache(lambda: _places(problem, x, top()))

    def average() -> Job:
        means, counts = evaluate(problem, x), [np.subtract(*geometry.spans(axis)[::-1]) for axis in case.axes]
        means[:, np.multiply.outer(np.multiply.outer(*counts[:2]), counts[2]) <= 0] = 0
        return Job("avg_pool", (x,), (means,), rounds="mean")

    def average_gradient() -> Job:
        counts = (hi - lo for axis in case.axes for lo, hi in zip(*geometry.spans(axis), strict=True))
        exact = all(count.bit_count() == 1 for count in counts)
        wanted = evaluate(case.problem("avg_pool_grad"), shares)
        return Job("avg_pool_grad", (shares,), (wanted,), rounds="" if exact else "sum")

    def selection(kernel: str, read: Array) -> Job:
        given = np.where(chosen, others, top()) if lacking else top()
        return Job(kernel, (x, given, read), (evaluate(case.problem(kernel), x, given, read),))

    def selection_by_places(kernel: str, read: Array) -> Job:
        wanted = evaluate(replace(case, near_ties=False).problem(kernel), x, top(), read)
        return Job(kernel, (places(), read), (wanted,), True)

    back, second = ("max_pool_grad", dy), ("max_pool_grad_grad", grad)
    found: Jobs = [average, average_gradient, lambda: Job("max_pool", (x,), (top(),))]
    found += [partial(selection, *back), partial(selection, *second)]
    if math.prod(axis.window for axis in case.axes) <= 254 and not any(axis.overreach for axis in case.axes):
        found.append(lambda: Job("max_pool", (x,), (top(), places()), True))
        found += [partial(selection_by_places, *back), partial(selection_by_places, *second)]
    return found


def _places(problem: Problem, x: Array, top: Array) -> Array:
    """Which cell of its window each maximum is."""
    places = np.full(top.shape, 255, np.uint8)
    for output, cells, _ in pooling.windows(problem):
        match = pooling.first_match(problem, x[cells], top[output])
        if match.size:
            places[output] = match.reshape(len(match), -1, match.shape[-1]).argmax(axis=1)
    return places


def adjoint_faults(case: Case, jobs: Sequence[Job], results: dict[str, Array]) -> list[str]:
    """What the kernels themselves say in float64: both sides of a linear map, and that nothing is lost."""
    inputs = {job.name: job.inputs for job in jobs}
    if case.family == "conv":
        (x, w), dy = inputs["conv3d"], inputs["conv3d_input"][1]
        dots = {
            (results["conv3d"] * dy).sum(),
            (results["conv3d_input"] * x).sum(),
            (results["conv3d_filter"] * w).sum(),
        }
        return [f"no adjoints: {dots}"] if len(dots) > 1 else []
    (x,), (shares,) = inputs["avg_pool"], inputs["avg_pool_grad"]
    forth, back = (results["avg_pool"] * shares).sum(), (results["avg_pool_grad"] * x).sum()
    size = np.abs(shares).sum() * 8 + 1
    return [f"AvgPool3D and its gradient are no adjoints: {forth} {back}"] if abs(forth - back) > 1e-11 * size else []


# ---- running ----


@dataclass
class Report:
    """What a sweep has seen."""

    cases: int = 0
    runs: int = 0
    faults: list[str] = field(default_factory=list)
    seen: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """How often by instruction set, kernel, path and side of its condition."""

    def add(self, other: Report) -> None:
        self.cases, self.runs = self.cases + other.cases, self.runs + other.runs
        self.faults += other.faults
        self.seen += other.seen

    def gaps(self, isas: Sequence[str]) -> list[str]:
        """Paths that were never entered or never left, on an instruction set and in a kernel that has them; sides of a
        condition that no shape lies on."""
        found = []
        sides_seen = {(name, side) for (_, _, name, side), count in self.seen.items() if count}
        for path in paths.catalogue().values():
            wanted = [(path.name, side) for side in SIDES[: 4 if path.worth else 2]]
            if any(path.vectors & VECTORS[isa] for isa in isas):
                missing = set(wanted) - sides_seen - LARGE - (set() if "avx512" in isas else WIDE)
                found += [f"{name}: no shape lies on the side where it is {side}" for name, side in sorted(missing)]
        for isa, kernel, path in product(isas, KERNELS, paths.catalogue().values()):
            if path.concerns(kernel) and path.vectors & VECTORS[isa]:
                sides = [side for side in ("taken", "left") if not self.seen[isa, kernel, path.name, side]]
                if path.name == "near":
                    sides = [side for side in sides if side == "taken"]
                found += [f"{isa} {kernel}: {path.name} was never {side}" for side in sides]
        return found


VECTORS = {"baseline": 16, "avx2": 32, "avx512": 64}
SIDES = ("possible", "impossible", "worth", "unworthy", "taken", "left")


LARGE = {("past", "worth"), ("half_vectors", "worth"), ("half_vectors", "impossible")}
"""What takes more than small shapes, or another machine. Speed alone depends on what is worth it."""
WIDE = {("carry_once", "worth"), ("one_vector", "worth")}
"""What only vectors of 64 bytes make worth it."""


class Memory:
    """An array of results between guards; all poisoned before each run."""

    def __init__(self, want: Array, shift: int) -> None:
        size = want.nbytes
        self.want = want
        self._all = np.empty(size + 4 * 64, np.uint8)
        start = 64 - self._all.ctypes.data % 64 + 64 + shift * want.itemsize
        self._part = self._all[start - 64 : start + size + 64]
        self.poison = 0xFF if want.dtype.kind != "i" else 0x81
        self._bytes = bytes([self.poison]) * 64 + want.tobytes() + bytes([self.poison]) * 64
        self.array = self._all[start : start + size].view(want.dtype).reshape(want.shape)
        self.address = ctypes.c_void_p(self.array.ctypes.data)

    def clear(self) -> None:
        self._part.fill(self.poison)

    def is_right(self) -> bool:
        """All bits as wanted; a zero may have either sign."""
        now = self._part.tobytes()
        if now == self._bytes:
            return True
        return now[:64] + now[-64:] == self._bytes[:64] * 2 and bool(np.array_equal(self.array, self.want))

    def is_near(self, truth: Array, bound: float) -> bool:
        """Within a relative bound of what it is before any rounding, for sums of numbers of one sign."""
        now = self._part.tobytes()
        if now[:64] + now[-64:] != self._bytes[:64] * 2:
            return False
        return bool((np.abs(self.array.astype(np.float64) - truth) <= bound * np.abs(truth)).all())


def turned(array: Array, dtype: np.dtype[Any], is_data: bool, channels_last: bool) -> Array:
    if array.dtype == np.uint8:
        dtype = array.dtype
    laid = array if channels_last or not is_data else np.moveaxis(array, -1, 1)
    # A mean is divided in float32 before it is rounded to 16 bits.
    laid = laid.astype(np.float32) if dtype.itemsize == 2 and dtype.kind != "i" else laid
    return np.ascontiguousarray(laid.astype(dtype))


class Sweep:
    """Runs cases on the paths of all instruction sets."""

    def __init__(self, seed: str, isas: Sequence[str] | None = None) -> None:
        loaded = cpu.library()
        assert loaded is not None, "the sweep needs the native library"
        self._use_isa = loaded.vg_use_isa
        named = os.environ.get("VOXGRAD_ISA")
        self.isas = list(isas or ([named] if named else cpu.instruction_sets()))
        self.seed, self.report = seed, Report()
        self._masks: Counter[tuple[str, str, tuple[int, ...]]] = Counter()

    def run(self, case: Case, label: str) -> None:
        """A case in all its ways."""
        choose = random.Random(f"{self.seed}/{label}")
        with np.errstate(all="ignore"):
            jobs = [job() for job in jobs_of(case, choose.getrandbits(32))]
        variants = [(choose.choice((FLOAT32, FLOAT64)), choose.random() < 0.6)]
        variants.append((choose.choice(FLOATS), choose.random() < 0.6))
        results = {}
        for job in jobs:
            for dtype, channels_last in variants:
                self._variant(case, job, dtype, channels_last, choose, label)
            if job.kernel == "max_pool_grad_grad" and choose.random() < 0.5:
                self._variant(case, job, choose.choice(INTEGERS), choose.random() < 0.7, choose, label)
            if not job.positions:
                results[job.name] = self._variant(case, job, FLOAT64, True, choose, label, _default)
        for fault in adjoint_faults(case, jobs, results):
            self.report.faults.append(f"{label}: {case}: {fault}")
        self.report.cases += 1

    def glance(self, case: Case, label: str) -> None:
        """One kernel of a case, in one type and layout."""
        choose = random.Random(f"{self.seed}/{label}")
        with np.errstate(all="ignore"):
            job = choose.choice(jobs_of(case, choose.getrandbits(32)))()
        types = (*FLOATS, *INTEGERS) if job.kernel == "max_pool_grad_grad" else FLOATS
        self._variant(case, job, choose.choice(types), choose.random() < 0.6, choose, label, _few_ways)
        self.report.cases += 1

    def _variant(
        self, case: Case, job: Job, dtype: DType, channels_last: bool, choose: random.Random, label: str,
        ways: Ways | None = None,
    ) -> Array:  # fmt: skip
        kind = numpy_type(dtype)
        problem = case.problem(job.kernel, dtype, channels_last)
        with np.errstate(all="ignore"):
            inputs = [
                turned(one, kind, not _is_filter(job, index), channels_last) for index, one in enumerate(job.inputs)
            ]
            wanted = [turned(one, kind, job.kernel != "conv3d_filter", channels_last) for one in job.outputs]
        truth = turned(job.outputs[0], np.dtype(np.float64), True, channels_last)
        memories = [Memory(one, choose.choice((0, 0, 0, 1, 3))) for one in wanted]
        addresses = [ctypes.c_void_p(one.ctypes.data) for one in inputs] + [one.address for one in memories]
        terms = 4 + math.prod(-(-axis.window // axis.stride) for axis in case.axes)
        exact = {2: 2.0**-10 if dtype is HALF else 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}[max(dtype.itemsize, 2)]
        bound = 0 if job.rounds != "sum" else exact / 2 * 1.01 + terms * (2.0**-52 if dtype is FLOAT64 else 2.0**-23)
        forced = paths.Forced(problem, positions=job.positions)
        for isa in self.isas:
            self._use_isa(cpu.ISA_NAMES.index(isa))
            for force, avoid, grain, threads in (ways or _all_ways)(choose, forced):
                for memory in memories:
                    memory.clear()
                status = forced(addresses, force=force, avoid=avoid, grain=grain, threads=threads)
                seen = forced.seen
                key = (
                    seen.possible,
                    seen.impossible,
                    seen.worth,
                    seen.unworthy,
                    seen.taken,
                    seen.possible & ~seen.taken,
                )
                self._masks[isa, job.name, key] += 1
                self.report.runs += 1
                if status or not all(one.is_near(truth, bound) if bound else one.is_right() for one in memories):
                    what = "" if status >= 0 else " wrote behind its scratch memory"
                    self.report.faults.append(
                        f"{label}: {job.name} {isa} {dtype} {'NDHWC' if channels_last else 'NCDHW'}{what}, threads "
                        f"{threads}, grain {grain}, forced {paths.names(force)}, avoided {paths.names(avoid)}, "
                        f"took {paths.names(seen.taken)}, status {status}: {case}"
                    )
        return memories[0].array.copy()

    def finish(self) -> Report:
        """The report, with the sides of the paths that were seen."""
        self._use_isa(cpu.ISA_NAMES.index(os.environ["VOXGRAD_ISA"]) if os.environ.get("VOXGRAD_ISA") else -1)
        for (isa, kernel, masks), count in self._masks.items():
            for side, mask in zip(SIDES, masks, strict=True):
                for name in paths.names(mask):
                    self.report.seen[isa, kernel, name, side] += count
        self._masks.clear()
        return self.report


def _is_filter(job: Job, index: int) -> bool:
    return (job.kernel, index) in (("conv3d", 1), ("conv3d_input", 0))


Ways = Callable[[random.Random, paths.Forced], Iterator[tuple[int, int, int, int]]]
"""How a problem is run: forced paths, avoided ones, grain, threads."""


def _default(*_: Any) -> Iterator[tuple[int, int, int, int]]:
    """As the library decides."""
    yield 0, 0, 0, 1


def _at_random(choose: random.Random, times: int) -> Iterator[tuple[int, int, int, int]]:
    every = paths.catalogue()["threads"].bit
    for _ in range(times):
        force, avoid = choose.getrandbits(64), choose.getrandbits(64)
        threads = choose.choice((1, 1, 1, 2, 3, 8))
        force |= every if threads > 1 and choose.random() < 0.8 else 0
        yield force & ~avoid | force & every, avoid & ~force, choose.choice((0, 1, 1, 2, 3, 5)), threads


def _few_ways(choose: random.Random, forced: paths.Forced) -> Iterator[tuple[int, int, int, int]]:
    yield from _default()
    yield from _at_random(choose, 2)


def _all_ways(choose: random.Random, forced: paths.Forced) -> Iterator[tuple[int, int, int, int]]:
    """As the library decides; each path that it could have taken or left; then anything."""
    yield from _default()
    possible, taken = forced.seen.possible, forced.seen.taken
    for path in paths.catalogue().values():
        if possible & path.bit:
            yield (0, path.bit, 0, 1) if taken & path.bit else (path.bit, 0, 0, 1)
    yield from _at_random(choose, 4)


def sweep(seed: str, seconds: float, start: int = 0, step: int = 1) -> Report:
    """Every `step`-th case from `start` on until the time is over, but all edges at least once."""
    end, shapes, one = time.monotonic() + seconds, Shapes(seed), Sweep(seed)
    index = start
    while (time.monotonic() < end or index < 4 * len(shapes.edges)) and len(one.report.faults) < 200:
        one.run(shapes[index], str(index))
        index += step
    return one.finish()


def glances(seed: str, count: int, start: int = 0, step: int = 1) -> Report:
    """Every `step`-th of so many cases, from `start` on, thinly."""
    shapes, one = Shapes(seed), Sweep(seed)
    for index in range(start, count, step):
        one.glance(shapes[index], str(index))
        if len(one.report.faults) >= 200:
            break
    return one.finish()


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        "run test --sweep", description="Small shapes on every path of the native kernels."
    )
    parser.add_argument("seconds", nargs="?", type=float, default=100, help="how long to go on (default: 100 seconds)")
    parser.add_argument("--seed", default=date.today().isoformat(), help="any text; the default changes every day")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: one per CPU)"
    )
    parser.add_argument("--shapes", type=int, help="so many shapes instead, through one kernel each")
    parser.add_argument("--case", type=int, help="only this case of the seed")
    parser.add_argument("--paths", action="store_true", help="list the paths and how often each side was seen")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    report = Report()
    if options.case is not None:
        one = Sweep(options.seed)
        print(case := Shapes(options.seed)[options.case])
        (one.glance if options.shapes else one.run)(case, str(options.case))
        report = one.finish()
    else:
        share = (
            partial(glances, options.seed, options.shapes)
            if options.shapes
            else partial(sweep, options.seed, options.seconds)
        )
        with ProcessPoolExecutor(options.jobs) as pool:
            for job in [pool.submit(share, k, options.jobs) for k in range(options.jobs)]:
                report.add(job.result())
    isas = sorted({isa for isa, *_ in report.seen}, key=cpu.ISA_NAMES.index)
    gaps = [] if options.shapes or options.case is not None else report.gaps(isas)
    if options.paths:
        print_paths(report)
    for line in [*report.faults[:20], *gaps]:
        print(line)
    print(
        f"{report.cases} shapes, {report.runs} runs on {', '.join(isas)} in {time.monotonic() - began:.0f} s: "
        f"{len(report.faults)} wrong, {len(gaps)} gaps; seed {options.seed}"
    )
    return 1 if report.faults or gaps else 0


def print_paths(report: Report) -> None:
    """A table: for each path its condition, and how often each side of it was seen."""
    for path in paths.catalogue().values():
        counts = {
            side: sum(n for (_, _, name, s), n in report.seen.items() if (name, s) == (path.name, side))
            for side in SIDES
        }
        print(f"{path.name}: {path.possible}" + (f"; worth it: {path.worth}" if path.worth else ""))
        print("    " + ", ".join(f"{side} {count}" for side, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
