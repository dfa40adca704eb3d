# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants, and branches on them are no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""AvgPool3D and AvgPool3DGrad.

The gradient gathers: a cell sums the windows that cover it. Programs walk along depth over blocks of one stride; a
plane of weighted gradients is summed once and serves all cells of its stride and, where windows overlap, the next.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace

import torch
import triton
import triton.language as tl

from voxgrad.catalog.geometry import part
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import Launch, empty, per_problem
from voxgrad.kernels.cuda.paths import ADDRESSES, Fork, Need, Path
from voxgrad.kernels.cuda.pool_ahead import prefetch
from voxgrad.kernels.cuda.pool_common import (
    UNROLLED,
    Pool,
    Tile,
    canonical,
    choose_tile,
    compute_type,
    covered,
    divisor,
    inside,
    level,
    locate,
    quotient,
    steps,
    tile_rows,
)  # fmt: skip
from voxgrad.kernels.cuda.pool_lanes import BESIDE, SMALL, Lanes, choose_lanes, element_size, laid_out, with_prefetch
from voxgrad.kernels.cuda.pool_sweep import sweep_spread
from voxgrad.kernels.cuda.pool_windows import plan, pool_windows


@triton.jit
def _window_row(row, d_ok, oh, ow, c, OH, OW, C, ACC: tl.constexpr):
    """The gradients of windows (oh, ow) of a plane, 0 where there is no such window."""
    mask = d_ok & inside(oh, OH) & inside(ow, OW) & (c < C)
    return tl.load(row + (oh * OW + ow) * C + c, mask=mask, other=0.0).to(ACC)


@triton.jit
def _share(acc, plane, d_ok, qh, ph, qw, pw, c, j, H, W, C, OH, OW, bh, bw, KH: tl.constexpr, KW: tl.constexpr,
           SH: tl.constexpr, SW: tl.constexpr, JW: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The sum after window (qh - jh, qw - jw) of every cell, j = jh * JW + jw, divided by its height and width."""
    jh = j // JW
    jw = j % JW
    oh = tl.where(ph + jh * SH < KH, qh - jh, -1)
    ow = tl.where(pw + jw * SW < KW, qw - jw, -1)
    cells = covered(oh * SH - bh, KH, H) * covered(ow * SW - bw, KW, W)
    weight = 1.0 / tl.maximum(cells, 1).to(ACC)
    return acc + _window_row(plane, d_ok, oh, ow, c, OH, OW, C, ACC) * weight


@triton.jit
def _plane(dy, q, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
           SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr,
           ACC: tl.constexpr, R: tl.constexpr, BC: tl.constexpr, UNROLL: tl.constexpr):  # fmt: skip
    """What the windows of depth q give to one cell of each of the rows, [R, BC]."""
    plane = dy + q.to(tl.int64) * OH * OW * C
    d_ok = inside(level(q, h), OD)
    # A GPU divides towards zero: where windows start late, a stride more keeps what is divided from being negative.
    qh = (h + bh + SH) // SH - 1
    ph = (h + bh + SH) % SH
    qw = (w + bw + SW) // SW - 1
    pw = (w + bw + SW) % SW
    acc = tl.zeros([R, BC], ACC)
    if UNROLL:
        for j in tl.static_range(JH * JW):
            acc = _share(acc, plane, d_ok, qh, ph, qw, pw, c, j, H, W, C, OH, OW, bh, bw, KH, KW, SH, SW, JW, ACC)
    else:
        for j in range(JH * JW):
            acc = _share(acc, plane, d_ok, qh, ph, qw, pw, c, j, H, W, C, OH, OW, bh, bw, KH, KW, SH, SW, JW, ACC)
    return acc / tl.maximum(covered(q * SD - bd, KD, D), 1).to(ACC)


@triton.jit
def spread_windows(dy, dx, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
                   KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                   SW: tl.constexpr, JD: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr, ACC: tl.constexpr,
                   BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr, CHUNK: tl.constexpr, KEEP: tl.constexpr,
                   UNROLL: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """dx = every window's gradient over its count, summed over the windows of a cell. KEEP = JD - 1 planes stay."""
    image, chunk, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    h, w = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    dy += image * OD * OH * OW * C
    dx += image * D * H * W * C
    rows = (h < H) & (w < W) & (c < C)
    first = (bd + SD) // SD - 1 + chunk * CHUNK
    R: tl.constexpr = BH * BW
    p0 = tl.zeros([R, BC], ACC)
    p1 = p0
    p2 = p0
    for j in tl.static_range(KEEP):
        p1 = p0
        p0 = _plane(dy, first - KEEP + j, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw, KD, KH, KW, SD, SH, SW, JH, JW,
                    ACC, R, BC, UNROLL)  # fmt: skip
    for i in range(CHUNK):
        q = first + i
        p2 = p1
        p1 = p0
        p0 = _plane(dy, q, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw, KD, KH, KW, SD, SH, SW, JH, JW, ACC, R, BC,
                    UNROLL)  # fmt: skip
        for p in range(SD):
            acc = tl.where(p < KD, p0, 0.0)
            if JD <= 3:
                if KEEP >= 1:
                    acc += tl.where(p + SD < KD, p1, 0.0)
                if KEEP == 2:
                    acc += tl.where(p + 2 * SD < KD, p2, 0.0)
            else:
                for j in range(1, JD):
                    more = _plane(dy, q - j, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw, KD, KH, KW, SD, SH, SW, JH,
                                  JW, ACC, R, BC, UNROLL)  # fmt: skip
                    acc += tl.where(p + j * SD < KD, more, 0.0)
            d = q * SD + p - bd
            at = dx + d.to(tl.int64) * H * W * C + (h * W + w) * C + c
            tl.store(at, acc.to(dx.dtype.element_ty), mask=rows & inside(level(d, h), D))


_LINES = tl.constexpr(32)
"""Cache lines of 128 bytes that a program of `repeat_windows` writes."""


@triton.jit
def repeat_windows(dy, dx, lanes, lines, H, W, units, by_units, units_shift, by_width, width_shift, by_height,
                   height_shift, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, ACC: tl.constexpr,
                   X: tl.constexpr, L: tl.constexpr, LINE: tl.constexpr, AHEAD: tl.constexpr):  # fmt: skip
    """dx of windows side by side that hold all cells and nothing else: every number, divided, again and again.

    A lane is X cells of a row (LINE, of windows that are 2 wide) or X channels of a place, and lanes follow each other
    as in memory: what is written is written in one go. What the program AHEAD of this one reads, of so many cache
    lines, is prefetched; a program reads as many bytes as it writes, divided by the cells of a window.
    """
    TAPS: tl.constexpr = KD * KH * KW
    pid = tl.program_id(0)
    if AHEAD:
        soon = (pid + AHEAD) // TAPS * _LINES
        if (pid % TAPS == 0) & (soon < lines):
            prefetch(dy, tl.minimum(soon + tl.arange(0, _LINES), lines - 1).to(tl.int64) * 128)
    lane = (pid * L + tl.arange(0, L))[:, None]
    place = quotient(lane, by_units, units_shift)
    unit = lane - place * units
    row = place if LINE else quotient(place, by_width, width_shift)
    depth = quotient(row, by_height, height_shift)
    line = depth // KD * (H // KH) + (row - depth * H) // KH
    mask = lane < lanes
    if LINE:
        at = (line * units + unit).to(tl.int64) * (X // 2) + tl.arange(0, X // 2)[None, :]
        share = tl.load(dy + at, mask=mask, other=0.0).to(ACC) / TAPS
        cells = tl.reshape(tl.join(share, share), [L, X])
    else:
        window = line * (W // KW) + (place - row * W) // KW
        at = (window * units + unit).to(tl.int64) * X + tl.arange(0, X)[None, :]
        cells = tl.load(dy + at, mask=mask, other=0.0).to(ACC) / TAPS
    to = dx + (lane.to(tl.int64) * X + tl.arange(0, X)[None, :])
    tl.store(to, cells.to(dx.dtype.element_ty), mask=mask)


def _along(pool: Pool) -> int:
    """Numbers that follow each other in memory in the gradients of windows as well as of cells."""
    return pool.channels if pool.channels > 1 else pool.sizes[2] if pool.windows[2] == 2 else 1


def _piece(pool: Pool, size: int) -> int:
    """Cells or channels of a lane of `repeat_windows`: 32 bytes of them, or 16."""
    return (32 if _along(pool) * size % 32 == 0 else 16) // size


def _repeated(pool: Pool, dtype: torch.dtype) -> Launch:
    """The launch of `repeat_windows`: 4 KiB a program, prefetched 12 MiB ahead, as measured on an H200."""
    size, line = element_size(dtype), pool.channels == 1
    numbers = _piece(pool, size)
    units = (pool.sizes[2] if line else pool.channels) // numbers
    lanes = pool.numbers // numbers
    together = _LINES.value * 128 // (size * numbers)
    kd, kh, kw = pool.windows
    # Prefetching much would fill the cache, and a large plane is not read in the order in which it is prefetched.
    few_read, in_turn = pool.taps >= 4, math.prod(pool.sizes[1:]) * pool.channels * size <= 2**22
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "ACC": compute_type(dtype), "X": numbers, "L": together, "LINE": line,
        "AHEAD": 3072 if few_read and in_turn else 0, "num_warps": 4,
    }  # fmt: skip
    lines = lanes * numbers * size // (pool.taps * 128)
    by = (*divisor(units), *divisor(pool.sizes[2]), *divisor(pool.sizes[1]))
    return Launch(repeat_windows, (steps(lanes, together),), (lanes, lines, *pool.sizes[1:], units, *by), constants)


def _in_lanes(pool: Pool, dtype: torch.dtype) -> Launch:
    """Windows of at most 3: `pool_sweep`."""
    grid, ints, shared = laid_out(pool, _lanes(pool, element_size(dtype)), *pool.stride_blocks)
    return Launch(sweep_spread, grid, ints, shared | {"ACC": compute_type(dtype)})


def _in_tiles(pool: Pool, dtype: torch.dtype) -> Launch:
    """Windows of any size."""
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    jd, jh, jw = triton.cdiv(kd, sd), triton.cdiv(kh, sh), triton.cdiv(kw, sw)
    keep = jd - 1 if KEPT.takes("kept", jd) else 0
    tile = _tile(pool, keep)
    chunk = min(tile.chunk, pool.stride_blocks[0])
    tiles = (steps(pool.sizes[1], tile.bh), steps(pool.sizes[2], tile.bw), steps(pool.channels, tile.bc))
    chunks = steps(pool.stride_blocks[0], chunk)
    scalars = (*pool.sizes, pool.channels, *pool.outs, *pool.befores, *tiles, chunks)
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "JD": jd, "JH": jh, "JW": jw,
        "ACC": compute_type(dtype), "BH": tile.bh, "BW": tile.bw, "BC": tile.bc, "CHUNK": chunk, "KEEP": keep,
        "UNROLL": UNROLLED.takes("unrolled", jh * jw), "BIG": ADDRESSES.takes("wide", pool.plane),
        "num_warps": tile.warps,
    }  # fmt: skip
    return Launch(spread_windows, (pool.images * chunks * tiles[0] * tiles[1] * tiles[2],), scalars, constants)


def _splits_lines(pool: Pool, size: int) -> bool:
    """Would lanes write cells of a window that are apart from each other, in halves of a cache line?"""
    beside = _lanes(pool, size).across == BESIDE.value
    return not pool.overlaps and not beside and (pool.channels > 1 or size > 2)


KEPT = Fork(
    "planes of gradients", "what windows along depth give to the next cells",
    Path("kept", (Need("at most three windows to a cell", lambda count: count <= 3),)),
    Path("read again"),
)  # fmt: skip
SPREAD = Fork(
    "spread", "AvgPool3DGrad",
    Path("repeat", (
        Need("windows as long as strides", lambda pool, size: pool.windows == pool.strides),
        Need("no padding before", lambda pool, size: not any(pool.befores)),
        Need("windows that hold all cells and nothing else",
             lambda pool, size: pool.sizes == tuple(map(operator.mul, pool.outs, pool.strides))),
        Need("channels, or rows of windows 2 wide, in pieces of 16 bytes",
             lambda pool, size: _along(pool) * size % 16 == 0),
        Need("fewer than 2**31 pieces", lambda pool, size: pool.numbers < 2**31 * _piece(pool, size), huge=True),
    ), make=_repeated),
    Path("lanes", SMALL, (Need("cells of a window that are written together",
                               lambda pool, size: not _splits_lines(pool, size)),), _in_lanes),
    Path("tiles", make=_in_tiles),
)  # fmt: skip


@per_problem
def _plan(problem: Problem, dtype: torch.dtype) -> Launch:
    """The launch of a gradient."""
    pool = canonical(problem)
    launch: Launch = SPREAD.taken(pool, element_size(dtype)).make(pool, dtype)
    return launch


def _tile(pool: Pool, keep: int) -> Tile:
    """Tiles as measured on an H200."""
    if not keep:
        return choose_tile(pool.channels, pool.sizes[1:], 1024 if pool.channels == 1 else 2048, 1)
    if pool.channels == 1:
        return choose_tile(1, pool.sizes[1:], 512, 16)
    return choose_tile(pool.channels, pool.sizes[1:], 1024, 8 if pool.strides[0] > 1 else 16, square=True)


def _lanes(pool: Pool, size: int) -> Lanes:
    """Lanes as measured on an H200."""
    if not pool.overlaps:
        return choose_lanes(pool, size, 1, 1, threads=64)
    if pool.strides[1] > 1:
        return choose_lanes(pool, size, 1, 8, width=16 if size == 2 else 8)
    if pool.channels > 1 and size > 2:
        return with_prefetch(pool, choose_lanes(pool, size, 4, 64, width=8), size, 1)
    return with_prefetch(pool, choose_lanes(pool, size, 4, 64 if size == 2 else 32), size, 1)


def avg_pool(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The mean of every window of a contiguous tensor."""
    return pool_windows(problem, x, maximum=False)


@per_problem
def _whole(problem: Problem) -> tuple[Problem, tuple[slice, ...] | None]:
    """The gradient with all cells of its windows, which share what these give; and where in it the wanted cells are.

    Only of a part of a volume are there windows with cells outside of it.
    """
    axes, wanted = [], []
    for axis in problem.axes:
        spans = [axis.span(o) for o in range(axis.out)]
        first, end = min([0, *(lo for lo, _ in spans)]), max([axis.size, *(hi for _, hi in spans)])
        axes.append(part(axis, (first, end), (0, axis.out)))
        wanted.append(slice(-first, axis.size - first))
    if WHOLE.takes("as it is", [one.size for one in axes], [axis.size for axis in problem.axes]):
        return problem, None
    d, h, w = axes
    every = (slice(None), *wanted) if problem.channels_last else (slice(None), slice(None), *wanted)
    return replace(problem, axes=(d, h, w)), every


WHOLE = Fork(
    "cells of windows",
    "which cells an AvgPool3DGrad is computed for",
    Path("as it is", (Need("windows without cells outside of the part of a volume", operator.eq),)),
    Path("all of them"),
)


def plan_mean(problem: Problem, x: torch.Tensor) -> Launch:
    """What `avg_pool` launches."""
    return plan(problem, False, x.dtype)


def plan_gradient(problem: Problem, dy: torch.Tensor) -> Launch:
    """What `avg_pool_grad` launches."""
    return _plan(_whole(problem)[0], dy.dtype)


def avg_pool_grad(problem: Problem, dy: torch.Tensor) -> torch.Tensor:
    """The transpose of `avg_pool`, applied to a contiguous tensor."""
    whole, wanted = _whole(problem)
    dx = empty(dy, whole.input_extent)
    if dx.numel():
        _plan(whole, dy.dtype)(dy, dx)
    return dx if wanted is None else dx[wanted].contiguous()
