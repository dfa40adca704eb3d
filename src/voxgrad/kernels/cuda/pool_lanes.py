# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM108 - Triton: capitals are constants, branches on them no expressions, tuples are added
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

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_common import Pool, channel_block, covered, inside, level, steps


@dataclass(frozen=True, slots=True)
class Lanes:
    """The part of the work one program does: lanes, numbers per lane, rows per lane, steps along depth, warps."""

    lanes: int
    numbers: int
    rows: int
    chunk: int
    warps: int = 4
    line: bool = False


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


def choose_lanes(pool: Pool, size: int, rows: int, chunk: int, *, threads: int = 128, width: int = 16) -> Lanes:
    """Lanes for `threads` threads with accesses `width` bytes wide, given the bytes of a number."""
    cells = max(2, min(8, width // size))
    if _is_line(pool, cells):
        return Lanes(threads, cells // pool.strides[2], rows, chunk, threads // 32, line=True)
    if pool.channels == 1:
        return Lanes(threads, 1, rows, chunk, threads // 32)
    numbers = channel_block(pool.channels, 128)
    return Lanes(max(1, threads * cells // numbers), numbers, rows, chunk, threads // 32)


Geometry = tuple[tuple[int], tuple[int, ...], dict[str, Any]]


def laid_out(pool: Pool, lanes: Lanes, along: int, rows: int, width: int) -> Geometry:
    """Grid, integers and constants of a kernel whose lanes cover rows times a width, `along` deep."""
    chunk = min(lanes.chunk, along)
    units = width // lanes.numbers if lanes.line else width
    tiles, chunks = steps(steps(rows, lanes.rows) * units, lanes.lanes), steps(along, chunk)
    tiles_c = 1 if lanes.line else steps(pool.channels, lanes.numbers)
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    ints = (*pool.sizes, pool.channels, *pool.outs, *pool.befores[:2], units, tiles, tiles_c, chunks)
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "BEFORE": pool.befores[2], "R": lanes.rows,
        "X": lanes.numbers, "L": lanes.lanes, "CHUNK": chunk, "LINE": lanes.line,
        "WHOLE": pool.channels % lanes.numbers == 0, "num_warps": lanes.warps,
    }  # fmt: skip
    return (pool.images * chunks * tiles * tiles_c,), ints, constants


def element_size(dtype: torch.dtype) -> int:
    """Bytes of a number."""
    return int(torch.empty(0, dtype=dtype).element_size())


@triton.jit
def spot(units, tiles, tiles_c, chunks, L: tl.constexpr):
    """Image (64 bits), chunk of depth and tile of channels of this program; row group and width unit of its lanes."""
    pid = tl.program_id(0)
    tc = pid % tiles_c
    pid = pid // tiles_c
    lane = pid % tiles * L + tl.arange(0, L)[:, None]
    pid = pid // tiles
    return (pid // chunks).to(tl.int64), pid % chunks, tc, lane // units, lane % units


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
def fetch(source, at, there, other, ZERO: tl.constexpr):
    """Load; where nothing is `there`, `other` (ZERO), or whatever a position moved into the data holds."""
    if ZERO:
        value = tl.load(source + at, mask=there, other=other)
    else:
        value = tl.load(source + at)
    return value


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
              X: tl.constexpr, LINE: tl.constexpr, ZERO: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The KW cells of every window in one row of cells."""
    taps = ()
    if LINE:
        line = fetch(source, row + at[0], row_there & there[0], other, ZERO).to(ACC)
        first = line
        if SW == 2:
            L: tl.constexpr = line.shape[0]
            first, second = tl.split(tl.reshape(line, [L, X, 2]))
        if BEFORE == 1:
            left = fetch(source, row + at[1], row_there & there[1], other, ZERO).to(ACC)
            taps = taps + (behind(line, left, X),)
        taps = taps + (first,)
        if SW == 2 and KW > 1:
            taps = taps + (second,)
        if KW - BEFORE - SW == 1:
            right = fetch(source, row + at[2], row_there & there[2], other, ZERO).to(ACC)
            taps = taps + (ahead(first, right, X),)
    else:
        for j in tl.static_range(KW):
            taps = taps + (fetch(source, row + at[j], row_there & there[j], other, ZERO).to(ACC),)
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
        line = fetch(source, row + at[0], row_there & there[0], other, ZERO).to(ACC)
        if FIRST == 1:
            right = fetch(source, row + at[2], row_there & there[2], other, ZERO).to(ACC)
            taps = taps + (ahead(line, right, X),)
        taps = taps + (line,)
        if JW - FIRST == 2:
            left = fetch(source, row + at[1], row_there & there[1], other, ZERO).to(ACC)
            taps = taps + (behind(line, left, X),)
    else:
        for j in tl.static_range(JW):
            taps = taps + (fetch(source, row + at[j], row_there & there[j], other, ZERO).to(ACC),)
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
