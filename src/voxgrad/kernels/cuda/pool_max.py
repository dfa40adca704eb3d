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
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog import dtypes
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
    first_equal,
    inside,
    level,
    locate,
    steps,
    tile_rows,
)  # fmt: skip
from voxgrad.kernels.cuda.pool_lanes import SMALL, Lanes, choose_lanes, element_size, laid_out, with_prefetch
from voxgrad.kernels.cuda.pool_stages import stage_gather, stage_gather_lines, stage_winners
from voxgrad.kernels.cuda.pool_windows import plan, pool_windows
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
    winner = first_equal(top, x, g, image * D * H * W * C, oh * SH - bh, ow * SW - bw, c, od * SD - bd, D, H, W, C,
                        taps, KD, KH, KW, VALUE, FLOAT, ACC, NONE, BH * BW, BC, UNROLL)  # fmt: skip
    tl.store(out + at, winner.to(out.dtype.element_ty), mask=mask)


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
    # A GPU divides towards zero: where windows start late, a stride more keeps what is divided from being negative.
    d += bd + SD
    h += bh + SH
    w += bw + SW
    for j in range(JD * JH * JW):
        tap_d = d % SD + j // (JH * JW) * SD
        tap_h = h % SH + j // JW % JH * SH
        tap_w = w % SW + j % JW * SW
        od = d // SD - 1 - j // (JH * JW)
        oh = h // SH - 1 - j // JW % JH
        ow = w // SW - 1 - j % JW
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

Run = Callable[..., None]
"""Fills its last tensor from the others."""

Parts = tuple[tuple[int], tuple[int, ...], dict[str, Any]]


def _parts(pool: Pool, along: int, rows: tuple[int, int], tile: Tile) -> Parts:
    """Grid, integer arguments and the constants that every kernel of this file takes."""
    chunk = min(tile.chunk, along)
    tiles = (steps(rows[0], tile.bh), steps(rows[1], tile.bw), steps(pool.channels, tile.bc))
    chunks = steps(along, chunk)
    (kd, kh, kw), (sd, sh, sw) = pool.windows, pool.strides
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SD": sd, "SH": sh, "SW": sw, "BH": tile.bh, "BW": tile.bw, "BC": tile.bc,
        "BIG": ADDRESSES.takes("wide", pool.plane), "num_warps": tile.warps,
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
        return with_prefetch(pool, lanes, size, 1)
    lanes = _with(choose_lanes(pool, size, 2, 32), size, stages=2 if small else 1)
    return with_prefetch(pool, lanes, size, 1, registers=128 if small else 0)


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
        return with_prefetch(pool, _with(lanes, size, registers=128), size, 2)
    if small:
        lanes = _with(choose_lanes(pool, size, 2, 64), size, stages=3, registers=128)
        return with_prefetch(pool, lanes, size, lanes.stages + 1)
    return with_prefetch(pool, _with(choose_lanes(pool, size, 1, 64, width=width), size, registers=96), size, 2)


def _back_lanes(pool: Pool, size: int) -> Lanes:
    """Lanes of the way back axis by axis, as measured on an H200."""
    last, small, width = pool.channels > 1, size == 2, max(16, 4 * size)
    if last and small:
        lanes = choose_lanes(pool, size, 4, 64, width=8, across=4, whole=True)
        if lanes.numbers * size >= 128 and pool.sizes[0] >= 8:
            # Places that are whole cache lines: a large tile reads few of its neighbours', and these a step ahead.
            lanes = replace(choose_lanes(pool, size, 4, 32, width=8, threads=512, across=4, whole=True), touch=True)
        return with_prefetch(pool, _with(lanes, size, registers=128), size, 2 if lanes.touch else 1)
    if last:
        lanes = choose_lanes(pool, size, 4, 64, width=width, across=4, whole=True)
        return with_prefetch(pool, _with(lanes, size, stages=2, registers=128), size, 2)
    lanes = choose_lanes(pool, size, 2, 64, width=width)
    return with_prefetch(pool, _with(lanes, size, registers=128 if small else 80), size, 1)


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


WORDS = Fork(
    "words", "how the numbers of a search are compared",
    Path("pairs", (
        Need("16 bits each, aligned to pairs, on a Hopper GPU", lambda pool, lanes, paired: paired),
        Need("lanes of a multiple of 4 numbers", lambda pool, lanes, paired: lanes.numbers % 4 == 0),
        Need("lines, or lanes that divide the channels",
             lambda pool, lanes, paired: lanes.line or pool.channels % lanes.numbers == 0),
    )),
    Path("singles"),
)  # fmt: skip


def _word_constants(pool: Pool, lanes: Lanes, dtype: torch.dtype, paired: bool) -> dict[str, Any]:
    """The constants of a search in words: the type to search in, of 16 bits for pairs, and the words of a lane."""
    if WORDS.takes("pairs", pool, lanes, paired):
        return {"KIND": _PAIRS[dtype], "X": lanes.numbers // 2}
    return {"KIND": compute_type(dtype)}


@per_problem
def _search_plan(problem: Problem, dtype: torch.dtype, paired: bool) -> Launch:
    """The search for the winners of all stages."""
    pool = canonical(problem)
    lanes = _stage_lanes(pool, element_size(dtype))
    grid, ints, constants = laid_out(pool, lanes, *pool.sizes)
    constants |= {"EVEN": pool.sizes[1] % lanes.rows == 0}
    return Launch(stage_winners, grid, ints, constants | _word_constants(pool, lanes, dtype, paired))


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


def _search(
    problem: Problem, dtype: torch.dtype, paired: bool, value: bool, none: int, guards: int = 0, early: bool = False
) -> Launch:
    """The search for winners in lanes, their gradients (value) or their taps; or what guards so many programs."""
    pool = canonical(problem)
    lanes = _search_lanes(pool, element_size(dtype), value)
    grid, ints, constants = laid_out(pool, replace(lanes, chunk=_ALL) if guards else lanes, *pool.outs)
    constants |= {"VALUE": value, "NONE": none, "GUARD": guards > 0} | _word_constants(pool, lanes, dtype, paired)
    return _early(Launch(sweep_winners, grid, (pool.taps, guards, *ints), constants), early)


def _search_in_lanes(problem: Problem, dtype: torch.dtype, paired: bool, value: bool, none: int) -> Run:
    launch = _search(problem, dtype, paired, value, none)
    return lambda x, y, g, out: launch(x, y, g, out, x)  # without guards nobody reads the last


def _search_in_tiles(problem: Problem, dtype: torch.dtype, paired: bool, value: bool, none: int) -> Run:
    pool = canonical(problem)
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], _plain_tile(pool, pool.outs[1:]))
    constants |= {"VALUE": value, "NONE": none, "FLOAT": dtype.is_floating_point, "ACC": compute_type(dtype)}
    unrolled = UNROLLED.takes("unrolled", pool.taps)
    return Launch(select_first, grid, (pool.taps, *ints), constants | {"UNROLL": unrolled})


SEARCH = Fork(
    "search",
    "the winners of windows: MaxPool3DGradGrad, and MaxPool3DGrad of windows that overlap",
    Path("lanes", (*SMALL, Need("floating point", lambda pool, dtype: dtype.is_floating_point)), (), _search_in_lanes),
    Path("tiles", make=_search_in_tiles),
)


@per_problem
def _found(problem: Problem, dtype: torch.dtype, paired: bool, value: bool, none: int) -> Run:
    """The search for winners of a pool."""
    run: Run = SEARCH.taken(canonical(problem), dtype).make(problem, dtype, paired, value, none)
    return run


def _give_in_lanes(pool: Pool, dtype: torch.dtype) -> Launch:
    grid, ints, constants = laid_out(pool, choose_lanes(pool, element_size(dtype), 1, 1), *pool.outs)
    return Launch(sweep_give, grid, ints, constants | {"ACC": compute_type(dtype)})


def _give_in_tiles(pool: Pool, dtype: torch.dtype) -> Launch:
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], _plain_tile(pool, pool.outs[1:]))
    del constants["CHUNK"]
    more = {"UNROLL": UNROLLED.takes("unrolled", pool.taps), "ACC": compute_type(dtype)}
    return Launch(give_first, grid, ints, constants | more)


GIVE = Fork(
    "give",
    "MaxPool3DGrad of windows that do not overlap",
    # Windows that cover every cell without an overlap are as long as strides, and start in time.
    Path(
        "lanes",
        (SMALL[1], *SMALL[3:], Need("windows that cover every cell", lambda pool: pool.covers)),
        make=_give_in_lanes,
    ),
    Path("tiles", make=_give_in_tiles),
)


def _accumulator(problem: Problem, dtype: torch.dtype) -> Any:
    return compute_type(torch.float64 if problem.dtype == dtypes.FLOAT64 else dtype)


def _gather(problem: Problem, dtype: torch.dtype, none: int, guards: int = 0, early: bool = False) -> Launch:
    """The gather in lanes of what cells won; or what guards so many programs of a search."""
    pool = canonical(problem)
    lanes = _gather_lanes(pool, element_size(dtype))
    grid, ints, constants = laid_out(pool, replace(lanes, chunk=_ALL) if guards else lanes, *pool.stride_blocks)
    constants |= {"NONE": none, "GUARD": guards > 0, "ACC": _accumulator(problem, dtype)}
    return _early(Launch(sweep_gather, grid, (guards, *ints), constants), early)


def _gather_in_lanes(problem: Problem, dtype: torch.dtype, none: int) -> Run:
    launch = _gather(problem, dtype, none)
    return lambda best, dy, dx: launch(best, dy, dx, dy)  # without guards nobody reads the last


def _gather_in_tiles(problem: Problem, dtype: torch.dtype, none: int) -> Run:
    launch = _any(problem, dtype, none)
    return lambda best, dy, dx: launch(dy, dy, best, dy, dx)  # only what is near reads data and maxima


def _any(problem: Problem, dtype: torch.dtype, none: int) -> Launch:
    """`gather_any`: windows of any size, or what comes near their maxima."""
    pool, acc = canonical(problem), _accumulator(problem, dtype)
    jd, jh, jw = (triton.cdiv(k, s) for k, s in zip(pool.windows, pool.strides, strict=True))
    grid, ints, constants = _parts(pool, pool.sizes[0], pool.sizes[1:], _plain_tile(pool, pool.sizes[1:]))
    del constants["CHUNK"]
    rounded, bound = _nearness(problem, acc)
    more = {"JD": jd, "JH": jh, "JW": jw, "NEAR": problem.near_ties, "ROUND": rounded, "NONE": none, "ACC": acc}
    return Launch(gather_any, grid, (bound, *ints), constants | more)


GATHER = Fork(
    "gather",
    "MaxPool3DGrad, given the winners of windows",
    Path("lanes", SMALL, (), _gather_in_lanes),
    Path("tiles", make=_gather_in_tiles),
)


def _nearness(problem: Problem, acc: Any) -> tuple[Any, float]:
    """The type that differences are rounded to, and 1e-5 in it."""
    names = {dtypes.HALF: (tl.float16, torch.float16), dtypes.BFLOAT16: (tl.bfloat16, torch.bfloat16)}
    default = (acc, torch.float64 if problem.dtype == dtypes.FLOAT64 else torch.float32)
    rounded, storage = names.get(problem.dtype, default)
    return rounded, float(torch.tensor(1e-5, dtype=storage))


def max_pool(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The maximum of every window of a contiguous tensor; -inf where a window holds NaN alone."""
    return pool_windows(problem, x, maximum=True)


def _near_grad(problem: Problem, compared: torch.dtype, given: torch.dtype) -> Run:
    """To all cells close to the maximum."""
    launch = _any(problem, given, 0)
    return lambda x, y, dy, dx: launch(x, y, x, dy, dx)


def _apart_grad(problem: Problem, compared: torch.dtype, given: torch.dtype) -> Run:
    """Window by window."""
    pool = canonical(problem)
    launch: Launch = GIVE.taken(pool).make(pool, compared)
    return launch


def _winners(problem: Problem) -> tuple[int, torch.dtype]:
    """What stands for no winner, and the type of winners' taps."""
    return (255, torch.uint8) if TAPS.takes("bytes", canonical(problem).taps) else (-1, torch.int32)


def _won_grad(problem: Problem, compared: torch.dtype, given: torch.dtype) -> Run:
    """First the winners, then what cells won."""
    none, stored = _winners(problem)
    gather: Run = GATHER.taken(canonical(problem)).make(problem, given, none)

    def run(x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor, dx: torch.Tensor) -> None:
        best = torch.empty(y.shape, dtype=stored, device=y.device)
        _found(problem, compared, _paired(x, y), False, none)(x, y, x, best)
        gather(best, dy, dx)

    return run


def _staged_grad(problem: Problem, compared: torch.dtype, given: torch.dtype) -> Run:
    """Axis by axis, which is right where y is the maximum; if it is not, once more by comparison.

    Only the device knows, and most often the last two kernels have nothing to do: they are launched early.
    """

    def run(x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor, dx: torch.Tensor) -> None:
        early = x.is_cuda and _is_hopper(x.get_device())
        search, back, again, gather = _stages(problem, compared, given, _paired(x, y), _paired(dy), early)
        best = torch.empty(y.shape, dtype=torch.uint8, device=y.device)
        flags = torch.empty(math.prod(search.grid), dtype=torch.int32, device=y.device)
        search(x, y, best, flags)
        back(best, dy, dx)
        again(x, y, x, best, flags)
        gather(best, dy, dx, flags)

    return run


@per_problem
def _stages(
    problem: Problem, compared: torch.dtype, given: torch.dtype, pairs: bool, given_pairs: bool, early: bool
) -> tuple[Launch, Launch, Launch, Launch]:
    """The launches of `_staged_grad`."""
    search = _search_plan(problem, compared, pairs)
    guards = math.prod(search.grid)
    back = _back_plan(problem, given, given_pairs, early)
    again = _search(problem, compared, pairs, False, 255, guards, early)
    return search, back, again, _gather(problem, given, 255, guards, early)


TAPS = Fork(
    "winners", "how the tap of a winner is kept",
    Path("bytes", (Need("fewer than 255 taps", lambda taps: taps < 255),)),
    Path("integers", (Need("more than 27 taps, which lanes do not search", lambda taps: taps > 27),)),
)  # fmt: skip
_FIRST = Need("gradients that go to the first of equal cells", lambda pool, near: not near)
GRAD = Fork(
    "max_pool_grad", "MaxPool3DGrad",
    Path("near", (Need("gradients that go to all cells near the maximum", lambda pool, near: near),), (), _near_grad),
    Path("apart", (_FIRST, Need("windows that do not overlap", lambda pool, near: not pool.overlaps)), (), _apart_grad),
    Path("stages", (
        _FIRST,
        Need("windows of 3 x 3 x 3", lambda pool, near: pool.windows == (3, 3, 3)),
        Need("stride 1", lambda pool, near: pool.strides == (1, 1, 1)),
        Need("one cell of padding before", lambda pool, near: pool.befores == (1, 1, 1)),
        Need("as many windows as cells", lambda pool, near: pool.outs == pool.sizes),
        Need("a multiple of 4 channels, or one channel and rows of a multiple of 8 cells",
             lambda pool, near: pool.channels % 4 == 0 or (pool.channels == 1 and pool.sizes[2] % 8 == 0)),
        SMALL[-1],
    ), (), _staged_grad),
    Path("winners", (_FIRST,), (), _won_grad),
)  # fmt: skip


@per_problem
def _grad_plan(problem: Problem, compared: torch.dtype, given: torch.dtype) -> Run:
    """What fills the gradient, given data and maxima of one type and gradients of another."""
    run: Run = GRAD.taken(canonical(problem), problem.near_ties).make(problem, compared, given)
    return run


def plan_maximum(problem: Problem, x: torch.Tensor) -> Launch:
    """What `max_pool` launches."""
    return plan(problem, True, x.dtype)


def plan_gradient(problem: Problem, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> Run:
    """What `max_pool_grad` runs."""
    return _grad_plan(problem, x.dtype, dy.dtype)


def plan_second(problem: Problem, x: torch.Tensor, y: torch.Tensor, g: torch.Tensor) -> Run:
    """What `max_pool_grad_grad` runs."""
    return _found(problem, x.dtype, _paired(x, y, g), True, 0)


def max_pool_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """The gradient of every window to the first of its cells that equals y, or (near_ties) to all close to it."""
    if not dy.numel():
        return dy.new_zeros(problem.input_extent)
    pool = canonical(problem)
    sparse = not pool.overlaps and not pool.covers
    dx = dy.new_zeros(problem.input_extent) if sparse else empty(dy, problem.input_extent)
    plan_gradient(problem, x, y, dy)(x, y, dy, dx)
    return dx


def max_pool_grad_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Per window, the value of g at the first cell that equals y; 0 without one."""
    out = empty(g, problem.output_extent)
    if out.numel():
        plan_second(problem, x, y, g)(x, y, g, out)
    return out
