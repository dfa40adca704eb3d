# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""Lanes: how the kernels for small windows lay a plane over threads.

A lane is one place of a plane, R rows high, with X numbers in registers: the channels of the place where these come
last, else (LINE) X places side by side. The width taps of a line come out of registers, and only the one number on
each side of it is loaded; its other taps, and those of channels, are loads at the same addresses from a few lanes,
which the first-level cache answers. Blocks are [L lanes, X].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_common import Pool, channel_block, covered, inside, level, steps
from voxgrad.kernels.cuda.pool_words import INTERPRETED, as_word, firsts, paired, seconds, shifted, widened

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


def fits_lanes(pool: Pool) -> bool:
    """Windows of at most 3 and strides of at most 2, all with a cell in the data."""
    sound = all(
        1 <= k <= 3 and s <= 2 and 0 <= b < k and out > 0 and (out - 1) * s - b < n
        for n, out, k, s, b in zip(pool.sizes, pool.outs, pool.windows, pool.strides, pool.befores, strict=True)
    )
    return sound and pool.plane_fits


def _is_line(pool: Pool, cells: int) -> bool:
    """Can lanes hold lines of `cells` cells? One channel, whole lines, at most one foreign number on each side."""
    k, s, b = pool.windows[2], pool.strides[2], pool.befores[2]
    whole = pool.channels == 1 and pool.sizes[2] == pool.outs[2] * s and pool.sizes[2] % cells == 0
    return whole and ((b <= 1 and k - 1 - b <= 1) if s == 1 else b == 0)


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
    if _is_line(pool, cells):
        return Lanes(threads, cells // pool.strides[2], rows, chunk, threads // 32, line=True)
    if pool.channels == 1:
        return Lanes(threads, 1, rows, chunk, threads // 32)
    numbers = channel_block(pool.channels, 128)
    if whole and pool.channels % 4 == 0:
        numbers = min(pool.channels & -pool.channels, 128)
    own = pool.channels & -pool.channels
    if own >= 4 and (pool.channels % 16 or (numbers < pool.channels and numbers * size < 64)):
        return Lanes(threads, min(own, cells), rows, chunk, threads // 32, across=BESIDE.value)
    lanes = max(1, threads * cells // numbers)
    return Lanes(lanes, numbers, rows, chunk, threads // 32, across=min(across, lanes))


_LONG_ROW = 64
"""Places of a row from which lines of it are announced."""


def foreseeing(pool: Pool, lanes: Lanes, size: int, ahead: int, registers: int = 0) -> Lanes:
    """Lanes that announce what they will read, with the registers measured for that, if cache lines are their own.

    Where several lanes or programs read parts of one line it would be asked for again and again.
    """
    own = lanes.numbers * size
    apart = own >= 128 or (own >= 64 and lanes.numbers == pool.channels)
    if size > 4 or not (pool.sizes[2] >= _LONG_ROW if lanes.line else apart):
        return lanes
    return replace(lanes, ahead=ahead, registers=registers or lanes.registers)


_FLAGS = tl.constexpr(512)
"""Flags that a program looks at together."""

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
    if lanes.flat and lanes.line and every % lanes.lanes == 0 and every < 2**31:
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
def fetch(source, at, there, other, ZERO: tl.constexpr, ONCE: tl.constexpr = False):
    """Load; where nothing is `there`, `other` (ZERO), or whatever a position moved into the data holds.

    What is read only ONCE need not stay in the cache.
    """
    KEEP: tl.constexpr = "evict_first" if ONCE else ""
    if ZERO:
        value = tl.load(source + at, mask=there, other=other, eviction_policy=KEEP)
    else:
        value = tl.load(source + at, eviction_policy=KEEP)
    return value


@triton.jit
def own_lines(source, units, tiles, tiles_c, chunks, H, W, C, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
              X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, LINE: tl.constexpr,
              REVERSED: tl.constexpr = False):  # fmt: skip
    """Where in [H, W, C] the cache lines with the numbers of lanes begin, in bytes; lanes in one line name it once.

    A row group is ROWS rows, a width unit COLUMNS places of X numbers, or X * COLUMNS numbers of a line.
    """
    SIZE: tl.constexpr = source.dtype.element_ty.primitive_bitwidth // 8
    NUMBERS: tl.constexpr = X * COLUMNS if LINE else X
    EVERY: tl.constexpr = min(max(128 // (NUMBERS * SIZE), 1), L) if LINE else 1
    PLACES: tl.constexpr = 1 if LINE else COLUMNS
    PIECES: tl.constexpr = max(NUMBERS * SIZE // 128, 1)
    _image, _chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, EVERY, REVERSED)
    k = tl.arange(0, ROWS * PLACES * PIECES)[None, :]
    row = tl.minimum(group * ROWS + k // (PLACES * PIECES), H - 1) * W
    if LINE:
        place = row + unit * NUMBERS
    else:
        place = (row + tl.minimum(unit * COLUMNS + k // PIECES % COLUMNS, W - 1)) * C + tc * X
    return place * SIZE + k % PIECES * 128


@triton.constexpr_function
def _prefetch(count: int) -> str:
    """Assembly that prefetches a block of so many addresses. Of a small one further threads hold copies: not those."""
    first = f"mov.u32 t, %tid.x; setp.lt.u32 p, t, {count};"
    return f"{{ .reg .pred p; .reg .u32 t; {first} @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }}"


@triton.jit
def announce(source, lines):
    """Have these lines, bytes from `source` on, brought into the second-level cache: they will be read soon."""
    if not INTERPRETED:
        at = source.to(tl.int64) + lines
        tl.inline_asm_elementwise(_prefetch(at.numel), "=r,l", [at], tl.int32, False, 1)


@triton.jit
def tile_pieces(row, ROWS: tl.constexpr, height, row_pitch, column, COLUMNS: tl.constexpr, width, column_pitch,
                X: tl.constexpr, SIZE: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Where the pieces of 32 bytes begin of ROWS x COLUMNS places of X numbers, in bytes, a few for each of T threads.

    Positions outside are their nearest ones inside.
    """
    EACH: tl.constexpr = X * SIZE // 32
    ALL: tl.constexpr = ROWS * COLUMNS * EACH
    made = ()
    for b in tl.static_range((ALL + T - 1) // T):
        n = tl.minimum(tl.arange(0, T) + b * T, ALL - 1)
        at = nearest(row + n // (COLUMNS * EACH), height) * row_pitch
        at += nearest(column + n // EACH % COLUMNS, width) * column_pitch
        made = made + (at * SIZE + n % EACH * 32,)
    return made


@triton.jit
def touch(source, pieces, before, nothing):
    """Begin to load pieces, bytes from `source` on, into the first-level cache; those touched `before` are there now.

    What is returned is to be given to the next touch, or to `touched`. `nothing` is zero, and the compiler does not
    know that.
    """
    made = ()
    for b in tl.static_range(len(pieces)):
        if INTERPRETED:
            made = made + (before[b],)
        else:
            at = (source.to(tl.int64) + pieces[b] + before[b]).to(tl.pointer_type(tl.int32))
            made = made + (tl.load(at) & nothing,)
    return made


@triton.jit
def touched(before):
    """Make use of what the last touch returned, which is zero: the compiler leaves out loads that nothing needs."""
    if not INTERPRETED:
        for b in tl.static_range(len(before)):
            tl.inline_asm_elementwise(
                "{ .reg .pred p; setp.ne.s32 p, $1, 0; @p trap; mov.b32 $0, 0; }", "=r,r", [before[b]], tl.int32,
                False, 1,
            )  # fmt: skip


@triton.jit
def any_set(flags, count):
    """Is one of so many flags set?"""
    found = tl.zeros([_FLAGS], tl.int32)
    for first in range(0, count, _FLAGS):
        at = first + tl.arange(0, _FLAGS)
        found |= tl.load(flags + at, mask=at < count, other=0)
    return tl.max(found, axis=0) != 0


@triton.jit
def ahead(line, edge, X: tl.constexpr):
    """A line moved by one: every place has what its right neighbour had, the last one `edge`. Moves no data."""
    L: tl.constexpr = line.shape[0]
    if X == 1:
        moved = edge
    else:
        even, odd = tl.split(tl.reshape(line, [L, X // 2, 2]))
        moved = tl.reshape(tl.join(odd, ahead(even, edge, X // 2)), [L, X])
    return moved


@triton.jit
def behind(line, edge, X: tl.constexpr):
    """A line moved by one the other way: the first place gets `edge`."""
    L: tl.constexpr = line.shape[0]
    if X == 1:
        moved = edge
    else:
        even, odd = tl.split(tl.reshape(line, [L, X // 2, 2]))
        moved = tl.reshape(tl.join(behind(odd, edge, X // 2), even), [L, X])
    return moved


@triton.jit
def channels(tc, C, X: tl.constexpr, WHOLE: tl.constexpr):
    """The channels of a tile, [1, X]; those past the end are the last one, unless X divides them (WHOLE)."""
    c = tc * X + tl.arange(0, X)[None, :]
    if not WHOLE:
        c = tl.minimum(c, C - 1)
    return c


@triton.jit
def cell_columns(unit, tc, W, C, KW: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, X: tl.constexpr,
                 LINE: tl.constexpr, WHOLE: tl.constexpr):  # fmt: skip
    """Offsets in a row, and whether they are there, that `cell_taps` needs: of every tap, or of a line and its ends."""
    if LINE:
        first = unit * (X * SW)
        at = (first + tl.arange(0, X * SW)[None, :], tl.maximum(first - 1, 0), tl.minimum(first + X * SW, W - 1))
        there = (first >= 0, first > 0, first + X * SW < W)
    else:
        c = channels(tc, C, X, WHOLE)
        places, there = span(unit * SW - BEFORE, KW, W, C)
        at = ()
        for j in tl.static_range(KW):
            at = at + (places[j] + c,)
    return at, there


@triton.jit
def cell_taps(source, row, row_there, at, there, other, KW: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr,
              X: tl.constexpr, LINE: tl.constexpr, ZERO: tl.constexpr, ACC: tl.constexpr,
              ONCE: tl.constexpr = False):  # fmt: skip
    """The KW cells of every window in one row of cells."""
    # For a maximum (not ZERO) the compiler itself sees to it that little is converted.
    taps = ()
    if LINE:
        line = widened(fetch(source, row + at[0], row_there & there[0], other, ZERO, ONCE), ACC, ZERO)
        first = line
        if SW == 2:
            L: tl.constexpr = line.shape[0]
            first, second = tl.split(tl.reshape(line, [L, X, 2]))
        if BEFORE == 1:
            left = fetch(source, row + at[1], row_there & there[1], other, ZERO, ONCE).to(ACC)
            taps = taps + (behind(line, left, X),)
        taps = taps + (first,)
        if SW == 2 and KW > 1:
            taps = taps + (second,)
        if KW - BEFORE - SW == 1:
            right = fetch(source, row + at[2], row_there & there[2], other, ZERO, ONCE).to(ACC)
            taps = taps + (ahead(first, right, X),)
    else:
        for j in tl.static_range(KW):
            taps = taps + (widened(fetch(source, row + at[j], row_there & there[j], other, ZERO, ONCE), ACC, ZERO),)
    return taps


@triton.jit
def word_columns(unit, tc, W, C, KW: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, X: tl.constexpr,
                 LINE: tl.constexpr, WHOLE: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """`cell_columns` in words, for `word_taps`; the ends of a line of pairs in numbers."""
    at, _there = cell_columns(unit, tc, W, C, KW, SW, BEFORE, X, LINE, WHOLE)
    if LINE and paired(KIND):
        first = unit * (X * SW)
        at = (at[0], tl.maximum(2 * first - 1, 0), tl.minimum(2 * (first + X * SW), 2 * W - 1))
    return at


@triton.jit
def word_taps(source, row, at, KW: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, X: tl.constexpr,
              LINE: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """The KW cells of every window in one row of cells, in words; cells outside are their neighbours inside."""
    taps = ()
    if LINE and paired(KIND):
        ends = source.to(tl.pointer_type(tl.int16), bitcast=True) + 2 * row
        line = tl.load(source + (row + at[0]))
        first = line
        if SW == 2:
            L: tl.constexpr = line.shape[0]
            word, later = tl.split(tl.reshape(line, [L, X, 2]))
            first = firsts(word, later)
        if BEFORE == 1:
            left = tl.load(ends + at[1]).to(tl.int32) << 16
            taps = taps + (shifted(behind(line, left, X), line),)
        taps = taps + (first,)
        if SW == 2 and KW > 1:
            taps = taps + (seconds(word, later),)
        if KW - BEFORE - SW == 1:
            right = tl.load(ends + at[2]).to(tl.int32)
            taps = taps + (shifted(first, ahead(first, right, X)),)
    elif LINE:
        taps = cell_taps(source, row, row >= 0, at, (row >= 0,) * 3, 0.0, KW, SW, BEFORE, X, LINE, False, KIND)
    else:
        for j in tl.static_range(KW):
            taps = taps + (as_word(tl.load(source + (row + at[j])), KIND),)
    return taps


@triton.jit
def window_columns(unit, tc, OW, C, JW: tl.constexpr, FIRST: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr,
                   WHOLE: tl.constexpr):  # fmt: skip
    """`cell_columns` of windows: those that cover the cells of a unit are FIRST + unit - j for j below JW."""
    if LINE:
        first = unit * X
        at = (first + tl.arange(0, X)[None, :], tl.maximum(first - 1, 0), tl.minimum(first + X, OW - 1))
        there = (first >= 0, first > 0, first + X < OW)
    else:
        c = channels(tc, C, X, WHOLE)
        places, present = span(unit + FIRST - (JW - 1), JW, OW, C)
        at = ()
        there = ()
        for j in tl.static_range(JW):
            at = at + (places[JW - 1 - j] + c,)
            there = there + (present[JW - 1 - j],)
    return at, there


@triton.jit
def window_taps(source, row, row_there, at, there, other, JW: tl.constexpr, FIRST: tl.constexpr, X: tl.constexpr,
                LINE: tl.constexpr, ZERO: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """What the JW windows of one row that cover a cell hold, the last window first."""
    taps = ()
    if LINE:
        line = widened(fetch(source, row + at[0], row_there & there[0], other, ZERO), ACC, JW > 1)
        if FIRST == 1:
            right = fetch(source, row + at[2], row_there & there[2], other, ZERO).to(ACC)
            taps = taps + (ahead(line, right, X),)
        taps = taps + (line,)
        if JW - FIRST == 2:
            left = fetch(source, row + at[1], row_there & there[1], other, ZERO).to(ACC)
            taps = taps + (behind(line, left, X),)
    else:
        for j in tl.static_range(JW):
            taps = taps + (widened(fetch(source, row + at[j], row_there & there[j], other, ZERO), ACC, JW > 1),)
    return taps


@triton.jit
def put_cells(target, tiles, first: tl.constexpr, at, unit, tc, W, C, mask, SW: tl.constexpr, BEFORE: tl.constexpr,
              X: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """Store the SW phases of the cells of a row, tiles[first] and on, `at` being the row's place."""
    KIND: tl.constexpr = target.dtype.element_ty
    if LINE and SW == 2:
        L: tl.constexpr = tiles[first].shape[0]
        both = tl.reshape(tl.join(tiles[first].to(KIND), tiles[first + 1].to(KIND)), [L, 2 * X])
        tl.store(target + (at + unit * (2 * X) + tl.arange(0, 2 * X)[None, :]), both, mask=mask)
    elif LINE:
        tl.store(target + (at + unit * X + tl.arange(0, X)[None, :]), tiles[first].to(KIND), mask=mask)
    else:
        c = tc * X + tl.arange(0, X)[None, :]
        for p in tl.static_range(SW):
            w = (unit + BEFORE // SW) * SW + p - BEFORE
            tl.store(target + (at + w * C + c), tiles[first + p].to(KIND), mask=mask & inside(w, W) & (c < C))


@triton.jit
def shares(first, count: tl.constexpr, window: tl.constexpr, stride: tl.constexpr, before, size, ACC: tl.constexpr):
    """One over the cells along an axis of the `count` windows from `first`."""
    made = ()
    for i in tl.static_range(count):
        made = made + (1.0 / tl.maximum(covered((first + i) * stride - before, window, size), 1).to(ACC),)
    return made


@triton.jit
def depth_there(d, lanes, D):
    """Is the depth a plane? As a column like the lanes."""
    return inside(level(d, lanes), D)
