# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants, and branches on them are no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""MaxPool3D, MaxPool3DGrad and MaxPool3DGradGrad.

The winner of a window is the first cell, in depth, height, width order, that equals the given maximum. It is found
again from the data, never stored, where windows do not overlap; where they do, one pass writes the winner's position
as a byte and the next lets every cell gather from the windows it won. Nothing is scattered, so nothing races.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog import dtypes
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import Launch, empty, per_problem
from voxgrad.kernels.cuda.pool_common import (
    UNROLLED_TAPS,
    Pool,
    Tile,
    canonical,
    choose_tile,
    compute_type,
    first_equal,
    inside,
    level,
    locate,
    steps,
    tile_rows,
)  # fmt: skip
from voxgrad.kernels.cuda.pool_lanes import Lanes, choose_lanes, element_size, fits_lanes, foreseeing, laid_out
from voxgrad.kernels.cuda.pool_stages import stage_gather, stage_gather_lines, stage_winners
from voxgrad.kernels.cuda.pool_windows import pool_windows
from voxgrad.kernels.cuda.pool_winners import sweep_gather, sweep_give, sweep_winners


@triton.jit
def select_first(x, y, g, out, taps, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
                 KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                 SW: tl.constexpr, VALUE: tl.constexpr, FLOAT: tl.constexpr, ACC: tl.constexpr, NONE: tl.constexpr,
                 BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr, CHUNK: tl.constexpr, UNROLL: tl.constexpr,
                 BIG: tl.constexpr):  # fmt: skip
    """out = g at the winner of every window (VALUE), or the winner's tap."""
    image, od, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    oh, ow = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    mask = (oh < OH) & (ow < OW) & (c < C)
    at = (image * OD + od) * OH * OW * C + ((oh * OW + ow) * C + c)
    top = tl.load(y + at, mask=mask, other=0)
    if FLOAT:
        top = top.to(ACC)
    found = first_equal(top, x, g, image * D * H * W * C, oh * SH - bh, ow * SW - bw, c, od * SD - bd, D, H, W, C,
                        taps, KD, KH, KW, VALUE, FLOAT, ACC, NONE, BH * BW, BC, UNROLL)  # fmt: skip
    tl.store(out + at, found.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _give_tap(taken, x, dx, at, mask, top, grad, ACC: tl.constexpr):
    """One tap of windows that do not overlap: its cells take the gradient where nobody before them did."""
    hit = (tl.load(x + at, mask=mask, other=float("nan")).to(ACC) == top) & (taken == 0)
    tl.store(dx + at, tl.where(hit, grad, 0.0).to(dx.dtype.element_ty), mask=mask)
    return taken | hit.to(tl.int32)


@triton.jit
def give_first(x, y, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
               KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
               SW: tl.constexpr, ACC: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr,
               UNROLL: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """dx of windows that do not overlap, window by window. Cells outside all windows are not written."""
    image, od, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    oh, ow = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    own = (oh < OH) & (ow < OW) & (c < C)
    at = (image * OD + od) * OH * OW * C + ((oh * OW + ow) * C + c)
    top = tl.load(y + at, mask=own, other=0.0).to(ACC)
    grad = tl.load(dy + at, mask=own, other=0.0)
    base = image * D * H * W * C
    taken = tl.zeros([BH * BW, BC], tl.int32)
    if UNROLL:
        for t in tl.static_range(KD * KH * KW):
            d = od * SD - bd + t // (KH * KW)
            h = oh * SH - bh + t // KW % KH
            w = ow * SW - bw + t % KW
            mask = own & inside(level(d, h), D) & inside(h, H) & inside(w, W)
            cell = base + d.to(tl.int64) * H * W * C + ((h * W + w) * C + c)
            taken = _give_tap(taken, x, dx, cell, mask, top, grad, ACC)
    else:
        for t in range(KD * KH * KW):
            d = od * SD - bd + t // (KH * KW)
            h = oh * SH - bh + t // KW % KH
            w = ow * SW - bw + t % KW
            mask = own & inside(level(d, h), D) & inside(h, H) & inside(w, W)
            cell = base + d.to(tl.int64) * H * W * C + ((h * W + w) * C + c)
            taken = _give_tap(taken, x, dx, cell, mask, top, grad, ACC)


@triton.jit
def gather_any(x, y, best, dy, dx, bound, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
               KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
               SW: tl.constexpr, JD: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr, NEAR: tl.constexpr,
               ROUND: tl.constexpr, NONE: tl.constexpr, ACC: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
               BC: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """dx = sum of dy over the windows a cell won, for windows of any size; or, NEAR, over those it comes close to."""
    image, d, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    h, w = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    rows = (h < H) & (w < W) & (c < C)
    cell = (image * D + d) * H * W * C + ((h * W + w) * C + c)
    acc = tl.zeros([BH * BW, BC], ACC)
    if NEAR:
        value = tl.load(x + cell, mask=rows, other=0.0).to(ACC)
    for j in range(JD * JH * JW):
        tap_d = (d + bd) % SD + j // (JH * JW) * SD
        tap_h = (h + bh) % SH + j // JW % JH * SH
        tap_w = (w + bw) % SW + j % JW * SW
        od = (d + bd) // SD - j // (JH * JW)
        oh = (h + bh) // SH - j // JW % JH
        ow = (w + bw) // SW - j % JW
        mask = (
            rows
            & inside(level(od, h), OD)
            & inside(oh, OH)
            & inside(ow, OW)
            & (level(tap_d, h) < KD)
            & (tap_h < KH)
            & (tap_w < KW)
        )
        at = (image * OD + od) * OH * OW * C + ((oh * OW + ow) * C + c)
        grad = tl.load(dy + at, mask=mask, other=0.0).to(ACC)
        if NEAR:
            top = tl.load(y + at, mask=mask, other=float("nan")).to(ACC)
            takes = tl.abs((value - top).to(ROUND).to(ACC)) < bound
        else:
            takes = tl.load(best + at, mask=mask, other=NONE).to(tl.int32) == (tap_d * KH + tap_h) * KW + tap_w
        acc += tl.where(takes & mask, grad, 0.0)
    tl.store(dx + cell, acc.to(dx.dtype.element_ty), mask=rows)


_ALL = 1 << 30
"""A chunk as long as the depth: few programs, for kernels that most often have nothing to do."""

Parts = tuple[tuple[int], tuple[int, ...], dict[str, Any]]


def _parts(pool: Pool, along: int, rows: tuple[int, int], tile: Tile) -> Parts:
    """Grid, integer arguments and the constants that every kernel of this file takes."""
    chunk = min(tile.chunk, along)
    tiles = (steps(rows[0], tile.bh), steps(rows[1], tile.bw), steps(pool.channels, tile.bc))
    chunks = steps(along, chunk)
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "BH": tile.bh, "BW": tile.bw, "BC": tile.bc,
        "BIG": not pool.plane_fits, "num_warps": tile.warps,
    }  # fmt: skip
    ints = (*pool.sizes, pool.channels, *pool.outs, *pool.befores, *tiles, chunks)
    return (pool.images * chunks * tiles[0] * tiles[1] * tiles[2],), ints, constants | {"CHUNK": chunk}


def _plain_tile(pool: Pool, rows: tuple[int, int]) -> Tile:
    """A tile of one depth: smaller where one channel makes every lane compute its own addresses."""
    return choose_tile(pool.channels, rows, 512 if pool.channels == 1 else 1024, 1)


def _search_lanes(pool: Pool, size: int, value: bool) -> Lanes:
    """Lanes of a search for winners, as measured on an H200."""
    last, small = pool.channels > 1, size == 2
    if not pool.overlaps:
        return choose_lanes(pool, size, 1, 1, width=8 if small and last else 16, whole=True)
    if pool.strides[0] > 1 and value:
        return choose_lanes(pool, size, 1, 8 if last and not small else 16, whole=True)
    if pool.strides[0] > 1 and last and size == 4:
        return replace(choose_lanes(pool, size, 1, 8, whole=True), registers=128)
    if pool.strides[0] > 1 and last:
        return choose_lanes(pool, size, 2, 8, width=8 if small else 16, whole=True)
    if pool.strides[0] > 1:
        return choose_lanes(pool, size, 1, 8 if small else 16)
    if last:
        lanes = _with(choose_lanes(pool, size, 1, 64, across=4, whole=True), size, registers=128)
        return foreseeing(pool, lanes, size, 1)
    lanes = _with(choose_lanes(pool, size, 2, 32), size, stages=2 if small else 1)
    return foreseeing(pool, lanes, size, 1, registers=128 if small else 0)


def _with(lanes: Lanes, size: int, *, stages: int = 1, registers: int = 0) -> Lanes:
    """Lanes with what was measured for numbers of 16 and 32 bits; larger ones are left to the compiler."""
    return replace(lanes, stages=stages, registers=registers) if size <= 4 else lanes


def _gather_lanes(pool: Pool, size: int) -> Lanes:
    """Lanes of a gather, as measured on an H200."""
    if size == 4 and pool.channels > 1:
        return replace(choose_lanes(pool, size, 1, 4), registers=80)
    return choose_lanes(pool, size, 1, 16, width=8 if size == 2 and pool.channels > 1 else 16)


def _stage_lanes(pool: Pool, size: int) -> Lanes:
    """Lanes of the search axis by axis, as measured on an H200."""
    last, small, width = pool.channels > 1, size == 2, max(16, 4 * size)
    if last:
        across = 8 if small else 4
        lanes = choose_lanes(pool, size, 2, 64, width=width, threads=256, across=across, whole=True)
        return foreseeing(pool, _with(lanes, size, registers=128), size, 2)
    if small:
        lanes = _with(choose_lanes(pool, size, 2, 64), size, stages=3, registers=128)
        return foreseeing(pool, lanes, size, lanes.stages + 1)
    return foreseeing(pool, _with(choose_lanes(pool, size, 1, 64, width=width), size, registers=96), size, 2)


def _back_lanes(pool: Pool, size: int) -> Lanes:
    """Lanes of the way back axis by axis, as measured on an H200."""
    last, small, width = pool.channels > 1, size == 2, max(16, 4 * size)
    if last and small:
        lanes = choose_lanes(pool, size, 4, 64, width=8, across=4, whole=True)
        if lanes.numbers * size >= 128 and pool.sizes[0] >= 8:
            # Places that are whole cache lines: a large tile reads few of its neighbours', and these a step ahead.
            lanes = replace(choose_lanes(pool, size, 4, 32, width=8, threads=512, across=4, whole=True), touch=True)
        return foreseeing(pool, _with(lanes, size, registers=128), size, 2 if lanes.touch else 1)
    if last:
        lanes = choose_lanes(pool, size, 4, 64, width=width, across=4, whole=True)
        return foreseeing(pool, _with(lanes, size, stages=2, registers=128), size, 2)
    lanes = choose_lanes(pool, size, 2, 64, width=width)
    return foreseeing(pool, _with(lanes, size, registers=128 if small else 80), size, 1)


def _is_staged(pool: Pool) -> bool:
    """Is this a pool for the kernels that go axis by axis, four places or channels to a word?"""
    same = (pool.windows, pool.strides, pool.befores) == ((3, 3, 3), (1, 1, 1), (1, 1, 1)) and fits_lanes(pool)
    return same and (pool.channels % 4 == 0 or (pool.channels == 1 and pool.sizes[2] % 8 == 0))


_PAIRS = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
"""The types that are taken two at a time."""


@cache
def _is_hopper(device: int) -> bool:
    """Can this GPU compare two bfloat16 at once, and launch kernels early? Both came with Hopper."""
    return bool(torch.cuda.get_device_capability(device) >= (9, 0))


def _paired(*tensors: torch.Tensor) -> bool:
    """Do the tensors hold numbers of 16 bits that lie so that two of them are a word, where that is of use?"""
    if tensors[0].dtype not in _PAIRS:
        return False
    index = tensors[0].device.index
    if not all(tensor.dtype in _PAIRS and tensor.data_ptr() % 4 == 0 for tensor in tensors):
        return False
    return index is None or _is_hopper(index)


def _early(launch: Launch, early: bool) -> Launch:
    """A kernel that may be launched before the one in front of it has ended, and waits for that itself."""
    if not early:
        return launch
    return Launch(launch.kernel, launch.grid, launch.scalars, launch.constants | {"EARLY": True, "launch_pdl": True})


def _worded(pool: Pool, lanes: Lanes, dtype: torch.dtype, paired: bool) -> dict[str, Any]:
    """The constants of a search in words: the type to search in, of 16 bits for pairs, and the words of a lane."""
    whole = lanes.numbers % 4 == 0 and (lanes.line or pool.channels % lanes.numbers == 0)
    if paired and whole:
        return {"KIND": _PAIRS[dtype], "X": lanes.numbers // 2}
    return {"KIND": compute_type(dtype)}


@per_problem
def _search_plan(problem: Problem, dtype: torch.dtype, paired: bool) -> Launch:
    """The search for the winners of all stages."""
    pool = canonical(problem)
    lanes = _stage_lanes(pool, element_size(dtype))
    grid, ints, constants = laid_out(pool, lanes, *pool.sizes)
    constants |= {"EVEN": pool.sizes[1] % lanes.rows == 0}
    return Launch(stage_winners, grid, ints, constants | _worded(pool, lanes, dtype, paired))


@per_problem
def _back_plan(problem: Problem, dtype: torch.dtype, paired: bool, early: bool) -> Launch:
    """The way back through all stages."""
    pool = canonical(problem)
    lanes = _back_lanes(pool, element_size(dtype))
    depth, height, width = pool.sizes
    acc = compute_type(dtype)
    kind = _PAIRS[dtype] if paired else acc
    groups = (height, depth, width) if lanes.line else (width, depth, steps(height, lanes.rows))
    grid, ints, constants = laid_out(pool, replace(lanes, rows=1), *groups)
    constants |= {"KIND": kind, "ACC": acc, "R": lanes.rows}
    if lanes.line:
        return _early(Launch(stage_gather_lines, grid, ints, constants), early)
    # Memory likes to be asked for 256 bytes at a time; the channels of a tile end where those of the next begin.
    together = max(256 // (lanes.numbers * element_size(dtype)), 1) if lanes.numbers == pool.channels else 1
    constants |= {"EVEN": height % lanes.rows == 0, "TOGETHER": together, "TOUCH": lanes.touch}
    return _early(Launch(stage_gather, grid, ints, constants), early)


@per_problem
def _select_plan(
    problem: Problem, dtype: torch.dtype, paired: bool, value: bool, none: int, guards: int = 0, early: bool = False
) -> Launch:
    """The search for winners, their gradients (value) or their taps; or what guards so many programs of one."""
    pool = canonical(problem)
    shared = {"VALUE": value, "NONE": none}
    if dtype.is_floating_point and fits_lanes(pool):
        lanes = _search_lanes(pool, element_size(dtype), value)
        grid, ints, constants = laid_out(pool, replace(lanes, chunk=_ALL) if guards else lanes, *pool.outs)
        constants |= shared | {"GUARD": guards > 0} | _worded(pool, lanes, dtype, paired)
        return _early(Launch(sweep_winners, grid, (pool.taps, guards, *ints), constants), early)
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], _plain_tile(pool, pool.outs[1:]))
    more = {"FLOAT": dtype.is_floating_point, "UNROLL": pool.taps <= UNROLLED_TAPS, "ACC": compute_type(dtype)}
    return Launch(select_first, grid, (pool.taps, *ints), constants | shared | more)


@per_problem
def _give_plan(problem: Problem, dtype: torch.dtype) -> Launch:
    """The gradient of windows that do not overlap."""
    pool = canonical(problem)
    if fits_lanes(pool) and pool.covers:
        grid, ints, constants = laid_out(pool, choose_lanes(pool, element_size(dtype), 1, 1), *pool.outs)
        return Launch(sweep_give, grid, ints, constants | {"ACC": compute_type(dtype)})
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], _plain_tile(pool, pool.outs[1:]))
    del constants["CHUNK"]
    return Launch(
        give_first, grid, ints, constants | {"UNROLL": pool.taps <= UNROLLED_TAPS, "ACC": compute_type(dtype)}
    )


@per_problem
def _gather_plan(problem: Problem, dtype: torch.dtype, none: int, guards: int = 0, early: bool = False) -> Launch:
    """The kernel in which cells gather from the windows they won; or what guards so many programs of a search."""
    pool = canonical(problem)
    acc = compute_type(torch.float64 if problem.dtype == dtypes.FLOAT64 else dtype)
    if fits_lanes(pool) and not problem.near_ties:
        lanes = _gather_lanes(pool, element_size(dtype))
        grid, ints, constants = laid_out(pool, replace(lanes, chunk=_ALL) if guards else lanes, *pool.lattice)
        constants |= {"NONE": none, "GUARD": guards > 0, "ACC": acc}
        return _early(Launch(sweep_gather, grid, (guards, *ints), constants), early)
    jd, jh, jw = (triton.cdiv(k, s) for k, s in zip(pool.windows, pool.strides, strict=True))
    grid, ints, constants = _parts(pool, pool.sizes[0], pool.sizes[1:], _plain_tile(pool, pool.sizes[1:]))
    del constants["CHUNK"]
    rounded, bound = _nearness(problem, acc)
    more = {"JD": jd, "JH": jh, "JW": jw, "NEAR": problem.near_ties, "ROUND": rounded, "NONE": none, "ACC": acc}
    return Launch(gather_any, grid, (bound, *ints), constants | more)


def _nearness(problem: Problem, acc: Any) -> tuple[Any, float]:
    """The type that differences are rounded to, and 1e-5 in it."""
    names = {dtypes.HALF: (tl.float16, torch.float16), dtypes.BFLOAT16: (tl.bfloat16, torch.bfloat16)}
    default = (acc, torch.float64 if problem.dtype == dtypes.FLOAT64 else torch.float32)
    rounded, storage = names.get(problem.dtype, default)
    return rounded, float(torch.tensor(1e-5, dtype=storage))


def max_pool(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The maximum of every window of a contiguous tensor; -inf where a window holds NaN alone."""
    return pool_windows(problem, x, maximum=True)


def max_pool_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """The gradient of every window to the first of its cells that equals y, or (near_ties) to all close to it."""
    pool = canonical(problem)
    if not pool.overlaps and not problem.near_ties:
        dx = empty(dy, problem.input_extent) if pool.covers else dy.new_zeros(problem.input_extent)
        if dx.numel() and dy.numel():
            _give_plan(problem, x.dtype)(x, y, dy, dx)
        return dx
    dx = empty(dy, problem.input_extent)
    if not dx.numel():
        return dx
    if problem.near_ties:
        _gather_plan(problem, dy.dtype, 0)(x, y, x, dy, dx)
        return dx
    none = 255 if pool.taps < 255 else -1
    best = torch.empty(y.shape, dtype=torch.uint8 if none == 255 else torch.int32, device=y.device)
    if _is_staged(pool):
        _staged_grad(problem, x, y, dy, dx, best, none)
        return dx
    if y.numel():
        select = _select_plan(problem, x.dtype, _paired(x, y), False, none)
        select(*((x, y, x, best, x) if select.kernel is sweep_winners else (x, y, x, best)))
    gather = _gather_plan(problem, dy.dtype, none)
    gather(*((best, dy, dx, x) if gather.kernel is sweep_gather else (x, y, best, dy, dx)))
    return dx


def _staged_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor, dx: torch.Tensor,
                 best: torch.Tensor, none: int) -> None:  # fmt: skip
    """`max_pool_grad` axis by axis, which is right where y is the maximum; if it is not, once more by comparison.

    Only the device knows, and most often the last two kernels have nothing to do: they are launched early.
    """
    paired, early = _paired(x, y), x.is_cuda and _is_hopper(x.get_device())
    search = _search_plan(problem, x.dtype, paired)
    guards = math.prod(search.grid)
    flags = torch.empty(guards, dtype=torch.int32, device=y.device)
    search(x, y, best, flags)
    _back_plan(problem, dy.dtype, _paired(dy), early)(best, dy, dx)
    _select_plan(problem, x.dtype, paired, False, none, guards, early)(x, y, x, best, flags)
    _gather_plan(problem, dy.dtype, none, guards, early)(best, dy, dx, flags)


def max_pool_grad_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Per window, the value of g at the first cell that equals y; 0 without one."""
    out = empty(g, problem.output_extent)
    if out.numel():
        select = _select_plan(problem, x.dtype, _paired(x, y, g), True, 0)
        select(*((x, y, g, out, x) if select.kernel is sweep_winners else (x, y, g, out)))
    return out
