# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants, and branches on them are no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""The reduction of windows to their mean or maximum: AvgPool3D and MaxPool3D are one kernel.

Where windows overlap along depth a program keeps the plane sums that the next window needs in registers, so every
plane of a tile is read once; the overlap inside a plane comes out of the first-level cache.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import triton
import triton.language as tl

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import Launch, empty, per_problem
from voxgrad.kernels.cuda.paths import ADDRESSES, Fork, Need, Path
from voxgrad.kernels.cuda.pool_common import (
    UNROLLED,
    Pool,
    Tile,
    canonical,
    choose_tile,
    compute_type,
    covered,
    inside,
    level,
    locate,
    steps,
    tile_rows,
)  # fmt: skip
from voxgrad.kernels.cuda.pool_lanes import BESIDE, SMALL, Lanes, choose_lanes, element_size, laid_out, with_prefetch
from voxgrad.kernels.cuda.pool_sweep import sweep_windows


@triton.jit
def _reduced(acc, value, MAX: tl.constexpr):
    return tl.maximum(acc, value) if MAX else acc + value


@triton.jit
def _tap(acc, plane, d_ok, h0, w0, c, t, H, W, C, KW: tl.constexpr, MAX: tl.constexpr, ACC: tl.constexpr):
    """The accumulator after tap t = kh * KW + kw of every window of the tile."""
    h = h0 + t // KW
    w = w0 + t % KW
    mask = d_ok & inside(h, H) & inside(w, W) & (c < C)
    value = tl.load(plane + (h * W + w) * C + c, mask=mask, other=float("-inf") if MAX else 0.0)
    return _reduced(acc, value.to(ACC), MAX)


@triton.jit
def _plane(x, d, h0, w0, c, D, H, W, C, KH: tl.constexpr, KW: tl.constexpr, MAX: tl.constexpr, ACC: tl.constexpr,
           BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr, UNROLL: tl.constexpr):  # fmt: skip
    """The windows of the tile reduced over one depth plane, [BH * BW, BC]."""
    plane = x + d.to(tl.int64) * H * W * C
    d_ok = inside(level(d, h0), D)
    acc = tl.full([BH * BW, BC], float("-inf") if MAX else 0.0, ACC)
    if UNROLL:
        for t in tl.static_range(KH * KW):
            acc = _tap(acc, plane, d_ok, h0, w0, c, t, H, W, C, KW, MAX, ACC)
    else:
        for t in range(KH * KW):
            acc = _tap(acc, plane, d_ok, h0, w0, c, t, H, W, C, KW, MAX, ACC)
    return acc


@triton.jit
def reduce_windows(x, y, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
                   KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                   SW: tl.constexpr, MAX: tl.constexpr, ACC: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
                   BC: tl.constexpr, CHUNK: tl.constexpr, KEEP: tl.constexpr, UNROLL: tl.constexpr,
                   BIG: tl.constexpr):  # fmt: skip
    """y = mean or maximum over every window. KEEP planes are shared with the next window along depth."""
    image, chunk, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    oh, ow = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    h0 = oh * SH - bh
    w0 = ow * SW - bw
    x += image * D * H * W * C
    y += image * OD * OH * OW * C
    mask = (oh < OH) & (ow < OW) & (c < C)
    cells = covered(h0, KH, H) * covered(w0, KW, W)
    start = chunk * CHUNK * SD - bd
    p0 = tl.full([BH * BW, BC], float("-inf") if MAX else 0.0, ACC)
    p1 = p0
    for j in tl.static_range(KEEP):
        p0 = p1
        p1 = _plane(x, start + j, h0, w0, c, D, H, W, C, KH, KW, MAX, ACC, BH, BW, BC, UNROLL)
    for i in range(CHUNK):
        od = chunk * CHUNK + i
        acc = tl.full([BH * BW, BC], float("-inf") if MAX else 0.0, ACC)
        if KEEP == 2:
            acc = _reduced(p0, p1, MAX)
        elif KEEP == 1:
            acc = p1
        if UNROLL:
            for j in tl.static_range(KD - KEEP):
                p0 = p1
                p1 = _plane(x, od * SD - bd + KEEP + j, h0, w0, c, D, H, W, C, KH, KW, MAX, ACC, BH, BW, BC, UNROLL)
                acc = _reduced(acc, p1, MAX)
        else:
            for j in range(KD):
                plane = _plane(x, od * SD - bd + j, h0, w0, c, D, H, W, C, KH, KW, MAX, ACC, BH, BW, BC, UNROLL)
                acc = _reduced(acc, plane, MAX)
        if not MAX:
            acc = acc / tl.maximum(cells * covered(od * SD - bd, KD, D), 1).to(ACC)
        at = y + od.to(tl.int64) * OH * OW * C + (oh * OW + ow) * C + c
        tl.store(at, acc.to(y.dtype.element_ty), mask=mask & (level(od, oh) < OD))


def _in_lanes(pool: Pool, maximum: bool, dtype: torch.dtype) -> Launch:
    """Windows of at most 3: `pool_sweep`."""
    lanes = _lanes(pool, element_size(dtype), maximum)
    grid, ints, shared = laid_out(pool, lanes, *pool.outs)
    exact = element_size(dtype) > 2 or not lanes.line
    return Launch(sweep_windows, grid, ints, shared | {"MAX": maximum, "EXACT": exact, "ACC": compute_type(dtype)})


def _in_tiles(pool: Pool, maximum: bool, dtype: torch.dtype) -> Launch:
    """Windows of any size."""
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    unroll = UNROLLED.takes("unrolled", kh * kw) and kd <= 8
    keep = kd - sd if KEPT.takes("kept", unroll, kd - sd) else 0
    tile = _tile(pool, keep)
    chunk = min(tile.chunk, pool.outs[0])
    tiles = (steps(pool.outs[1], tile.bh), steps(pool.outs[2], tile.bw), steps(pool.channels, tile.bc))
    chunks = steps(pool.outs[0], chunk)
    scalars = (*pool.sizes, pool.channels, *pool.outs, *pool.befores, *tiles, chunks)
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "MAX": maximum, "ACC": compute_type(dtype),
        "BH": tile.bh, "BW": tile.bw, "BC": tile.bc, "CHUNK": chunk, "KEEP": keep, "UNROLL": unroll,
        "BIG": ADDRESSES.takes("wide", pool.plane), "num_warps": tile.warps,
    }  # fmt: skip
    return Launch(reduce_windows, (pool.images * chunks * tiles[0] * tiles[1] * tiles[2],), scalars, constants)


KEPT = Fork(
    "planes of windows", "what the next window along depth needs of the planes of this one",
    Path("kept", (
        Need("unrolled taps, at most 8 planes", lambda unroll, shared: unroll),
        Need("windows that share planes", lambda unroll, shared: shared > 0),
        Need("at most two of them", lambda unroll, shared: shared <= 2),
    )),
    Path("read again"),
)  # fmt: skip
WINDOWS = Fork(
    "windows", "AvgPool3D and MaxPool3D",
    Path("lanes", SMALL, make=_in_lanes),
    Path("tiles", make=_in_tiles),
)  # fmt: skip


@per_problem
def plan(problem: Problem, maximum: bool, dtype: torch.dtype) -> Launch:
    """The launch of a pool."""
    pool = canonical(problem)
    launch: Launch = WINDOWS.taken(pool).make(pool, maximum, dtype)
    return launch


def _tile(pool: Pool, keep: int) -> Tile:
    """Tiles as measured on an H200: small where one channel makes every lane compute its own addresses."""
    if pool.channels == 1:
        return choose_tile(1, pool.outs[1:], 512, 16 if keep else 1)
    return choose_tile(pool.channels, pool.outs[1:], 1024, 16 if keep else 1, square=keep > 0)


def _lanes(pool: Pool, size: int, maximum: bool) -> Lanes:
    """Lanes as measured on an H200."""
    last, small = pool.channels > 1, size == 2
    if not pool.overlaps and small and maximum:
        return replace(choose_lanes(pool, size, 1, 1, width=8, threads=64 if last else 128), flat=True)
    if not pool.overlaps:
        return replace(choose_lanes(pool, size, 1, 1), flat=True, registers=64 if small and not last else 0)
    if pool.strides[1] > 1:
        lanes = choose_lanes(pool, size, 1, 8)
        return replace(lanes, registers=128) if last and small else lanes
    shared = choose_lanes(pool, size, 2, 32)
    if shared.across == BESIDE.value:
        return replace(shared, registers=(128 if small else 96) if size <= 4 else 0)
    if last and small:
        return with_prefetch(pool, choose_lanes(pool, size, 4, 32, width=8), size, 2, registers=128)
    if last:
        return with_prefetch(pool, choose_lanes(pool, size, 4, 32), size, 1)
    if small and maximum:
        return with_prefetch(pool, choose_lanes(pool, size, 4, 16), size, 1, registers=168)
    if small:
        return with_prefetch(pool, choose_lanes(pool, size, 2, 32), size, 1, registers=128)
    lanes = choose_lanes(pool, size, 4, 32)
    return lanes if maximum else with_prefetch(pool, lanes, size, 1)


def pool_windows(problem: Problem, x: torch.Tensor, *, maximum: bool) -> torch.Tensor:
    """The mean or the maximum of every window of a contiguous tensor."""
    y = empty(x, problem.output_extent)
    if y.numel():
        plan(problem, maximum, x.dtype)(x, y)
    return y
