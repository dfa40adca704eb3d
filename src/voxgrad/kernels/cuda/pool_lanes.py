# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""Lanes: how the kernels for small windows lay a plane over threads.

A lane is one place of a plane, R rows high, with X numbers in registers: the channels of the place where these come
last, else (LINE) X places side by side. Blocks are [L lanes, X]. `pool_taps` has what lanes load and store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.kernels.cuda.paths import Fork, Need, Needs, Path, met
from voxgrad.kernels.cuda.pool_common import Pool, channel_block, inside, level, steps

BESIDE = tl.constexpr(-1)
"""Instead of lanes across: those of one place, which share its channels, are side by side."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The part of the work one program does, and how it is compiled."""

    lanes: int
    numbers: int
    """Numbers of a lane."""
    rows: int
    chunk: int
    """Steps along the axis that lanes walk."""
    warps: int = 4
    line: bool = False
    across: int = 0
    """Lanes side by side along width; 0 for as many as there are, or BESIDE."""
    stages: int = 1
    """More than 1: loads of the next step go through shared memory meanwhile."""
    registers: int = 0
    """Registers of a thread, 0 for what the compiler finds; told a number, it also loads earlier."""
    ahead: int = 0
    """Steps before it is read that memory is asked to bring something nearer; 0 for never."""
    touch: bool = False
    """Is the next step loaded into the first-level cache meanwhile?"""
    flat: bool = False
    """Do lanes of one program follow each other over rows, depths and images, if programs then are full?"""


def _each(holds: Callable[[int, int, int, int, int], bool]) -> Callable[..., bool]:
    """A question to every axis of a pool: size, windows, their length, stride, padding before."""

    def asked(pool: Pool, *_: Any) -> bool:
        return all(map(holds, pool.sizes, pool.outs, pool.windows, pool.strides, pool.befores))

    return asked


SMALL: Needs = (
    Need("windows of at most 3", _each(lambda n, out, k, s, b: k <= 3)),
    Need("strides of at most 2", _each(lambda n, out, k, s, b: s <= 2)),
    Need("no window that starts late", _each(lambda n, out, k, s, b: b >= 0)),
    Need("a first window with cells", _each(lambda n, out, k, s, b: b < k)),
    Need("a last window with cells", _each(lambda n, out, k, s, b: out > 0 and (out - 1) * s - b < n)),
    Need("planes of fewer than 2**31 numbers", lambda pool, *_: pool.plane < 2**31, huge=True),
)
"""What pools in lanes must be like: `pool_sweep`, `pool_winners`."""


def _owned(pool: Pool) -> int:
    """The largest power of two that divides the channels."""
    return pool.channels & -pool.channels


def _block(pool: Pool, whole: bool) -> int:
    """The channels of a lane that has as many as make sense."""
    return min(_owned(pool), 128) if whole and pool.channels % 4 == 0 else channel_block(pool.channels, 128)


_ONE = Need("one channel", lambda pool, *_: pool.channels == 1)
_WHOLE_LINE = (
    Need("rows of whole windows", lambda pool, *_: pool.sizes[2] == pool.outs[2] * pool.strides[2]),
    Need("rows of whole lanes", lambda pool, size, cells, whole: pool.sizes[2] % cells == 0),
    Need(
        "at most one foreign number on each side of a lane, none with stride 2",
        lambda pool, *_: (
            pool.befores[2] <= 1 and pool.windows[2] - 1 - pool.befores[2] <= 1
            if pool.strides[2] == 1
            else pool.befores[2] == 0
        ),
    ),
)
LAYOUT = Fork(
    "layout", "what the numbers of a lane are",
    Path("line", (_ONE, *_WHOLE_LINE)),
    Path("one", (_ONE, Need("no line", lambda *case: not met(_WHOLE_LINE, *case)))),
    Path("beside",
         (Need("a multiple of 4 channels", lambda pool, *_: pool.channels % 4 == 0),),
         (Need("channels that are no multiple of 16, or lanes with less than 64 bytes of a place",
               lambda pool, size, cells, whole: pool.channels % 16 != 0
               or _block(pool, whole) < min(pool.channels, 64 // size)),)),
    Path("block", (Need("several channels", lambda pool, *_: pool.channels > 1),)),
)  # fmt: skip


def choose_lanes(
    pool: Pool,
    size: int,
    rows: int,
    chunk: int,
    *,
    threads: int = 128,
    width: int = 16,
    across: int = 0,
    whole: bool = False,
) -> Lanes:
    """Lanes for `threads` threads with accesses `width` bytes wide, given the bytes of a number.

    `whole` asks for lanes that divide the channels, if four numbers or more do. Where that leaves little, or the
    compiler could not see where numbers are aligned, lanes are one access wide and lie BESIDE each other.
    """
    cells = max(2, min(8, width // size))
    layout = LAYOUT.taken(pool, size, cells, whole).name
    if layout == "line":
        return Lanes(threads, cells // pool.strides[2], rows, chunk, threads // 32, line=True)
    if layout == "one":
        return Lanes(threads, 1, rows, chunk, threads // 32)
    if layout == "beside":
        return Lanes(threads, min(_owned(pool), cells), rows, chunk, threads // 32, across=BESIDE.value)
    numbers = _block(pool, whole)
    lanes = max(1, threads * cells // numbers)
    return Lanes(lanes, numbers, rows, chunk, threads // 32, across=min(across, lanes))


def with_prefetch(pool: Pool, lanes: Lanes, size: int, ahead: int, registers: int = 0) -> Lanes:
    """Lanes that prefetch what they will read, with the registers measured for that, if cache lines are their own.

    Where several lanes or programs read parts of one line it would be asked for again and again.
    """
    if AHEAD.takes("at once", pool, lanes, size):
        return lanes
    return replace(lanes, ahead=ahead, registers=registers or lanes.registers)


def _has_lines(pool: Pool, lanes: Lanes, size: int) -> bool:
    own = lanes.numbers * size
    return own >= 128 or (own >= 64 and lanes.numbers == pool.channels)


AHEAD = Fork(
    "ahead", "when memory is asked for what lanes read",
    Path("prefetched", worth=(
        Need("numbers of at most 32 bits", lambda pool, lanes, size: size <= 4),
        Need("rows of at least 64 places, or lanes with cache lines of their own",
             lambda pool, lanes, size: pool.sizes[2] >= 64 if lanes.line else _has_lines(pool, lanes, size)),
    )),
    Path("at once"),
)  # fmt: skip
FLAT = Fork(
    "programs", "what the lanes of a program follow",
    Path("flat", (
        Need("lanes that want it", lambda lanes, every: lanes.flat),
        Need("lines", lambda lanes, every: lanes.line),
        Need("full programs", lambda lanes, every: every % lanes.lanes == 0),
        Need("fewer than 2**31 lanes", lambda lanes, every: every < 2**31, huge=True),
    )),
    Path("planes"),
)  # fmt: skip


Geometry = tuple[tuple[int], tuple[int, ...], dict[str, Any]]

_FEW = 256
"""Programs that a GPU should have to do: with fewer, lanes walk less far."""


def laid_out(pool: Pool, lanes: Lanes, along: int, rows: int, width: int) -> Geometry:
    """Grid, integers and constants of a kernel whose lanes cover rows times a width, `along` deep."""
    units = width // lanes.numbers if lanes.line else width
    groups = steps(rows, lanes.rows)
    tiles_c = 1 if lanes.line else steps(pool.channels, lanes.numbers)
    apart = tiles_c
    if lanes.across == BESIDE.value:
        tiles, apart = steps(groups * units * tiles_c, lanes.lanes), 1
    elif lanes.across:
        tiles = steps(groups, lanes.lanes // lanes.across) * steps(units, lanes.across)
    else:
        tiles = steps(groups * units, lanes.lanes)
    chunk = min(lanes.chunk, along)
    while chunk > 4 and pool.images * tiles * apart * steps(along, chunk) < _FEW:
        chunk //= 2
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    chunks = steps(along, chunk)
    ints = (*pool.sizes, pool.channels, *pool.outs, *pool.befores[:2], units, tiles, tiles_c, chunks)
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "BEFORE": pool.befores[2], "R": lanes.rows,
        "X": lanes.numbers, "L": lanes.lanes, "ACROSS": lanes.across, "CHUNK": chunk, "LINE": lanes.line,
        "STAGES": lanes.stages, "AHEAD": lanes.ahead, "WHOLE": pool.channels % lanes.numbers == 0,
        "num_warps": lanes.warps,
    }  # fmt: skip
    if lanes.registers:
        constants["maxnreg"] = lanes.registers
    every = pool.images * chunks * groups * units
    if FLAT.takes("flat", lanes, every):
        ints = (*ints[:-3], groups, tiles_c, chunks)
        return (every // lanes.lanes,), ints, constants | {"FLAT": True}
    return (pool.images * chunks * tiles * apart,), ints, constants


def element_size(dtype: torch.dtype) -> int:
    """Bytes of a number."""
    return int(torch.empty(0, dtype=dtype).element_size())


@triton.jit
def spot(units, tiles, tiles_c, chunks, L: tl.constexpr, ACROSS: tl.constexpr, EVERY: tl.constexpr = 1,
         REVERSED: tl.constexpr = False, FLAT: tl.constexpr = False):  # fmt: skip
    """Image (64 bits), chunk of depth and tile of channels of this program; row group and width unit of its lanes.

    Lanes follow the rows, or are ACROSS of a row, as many of the next, and so on: tiles that share more with their
    neighbours in the first-level cache. A lane past the end of its rows has a row group past all. EVERY leaves out all
    but every so manyth lane. Programs are REVERSED to begin with what a kernel before them wrote last. FLAT lanes go on
    over depths and images, which then are columns as well, and `tiles` is the number of row groups.
    """
    pid = tl.program_id(0)
    if REVERSED:
        pid = tl.num_programs(0) - 1 - pid
    lane = tl.arange(0, L // EVERY)[:, None] * EVERY
    if ACROSS == BESIDE:
        lane += pid % tiles * L
        tc = lane % tiles_c
    else:
        tc = pid % tiles_c
        pid = pid // tiles_c
    if ACROSS == BESIDE:
        group = lane // tiles_c // units
        unit = lane // tiles_c % units
    elif FLAT:
        lane += pid * L
        group = lane // units % tiles
        unit = lane % units
        pid = lane // units
    elif ACROSS:
        wide = (units + ACROSS - 1) // ACROSS
        unit = pid % tiles % wide * ACROSS + lane % ACROSS
        group = tl.where(unit < units, pid % tiles // wide * (L // ACROSS) + lane // ACROSS, 1 << 24)
    else:
        lane += pid % tiles * L
        group = lane // units
        unit = lane % units
    pid = pid // tiles
    return (pid // chunks).to(tl.int64), pid % chunks, tc, group, unit


@triton.jit
def lengths(units, W, OW, C, SW: tl.constexpr, X: tl.constexpr, ACROSS: tl.constexpr, LINE: tl.constexpr):
    """Cells and windows of a row, and channels: in such a way that the compiler knows of what they are multiples."""
    if LINE:
        OW = units * X
        W = OW * SW
    if ACROSS == BESIDE:
        C = C // X * X
    return W, OW, C


@triton.jit
def own_places(unit, tc, OW, C, X: tl.constexpr, LINE: tl.constexpr):
    """Where in a row of windows the numbers of lanes are, and whether they are there."""
    k = tl.arange(0, X)[None, :]
    if LINE:
        place = unit * X + k
        mask = place < OW
    else:
        place = unit * C + tc * X + k
        mask = tc * X + k < C
    return place, mask


@triton.jit
def nearest(at, size):
    """A position, or the nearest one inside (64 bits)."""
    return tl.minimum(tl.maximum(at, 0), size - 1).to(tl.int64)


@triton.jit
def span(first, count: tl.constexpr, size, pitch):
    """The `count` positions from `first`, moved into the data and in elements, and which of them were there."""
    at = ()
    there = ()
    for i in tl.static_range(count):
        at = at + (tl.minimum(tl.maximum(first + i, 0), size - 1) * pitch,)
        there = there + (inside(first + i, size),)
    return at, there


@triton.jit
def depth_there(d, lanes, D):
    """Is the depth a plane? As a column like the lanes."""
    return inside(level(d, lanes), D)
