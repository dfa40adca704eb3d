# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM108 - Triton: capitals are compile-time constants, and branches on them are no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""MaxPool3D, MaxPool3DGrad and MaxPool3DGradGrad.

The winner of a window is the first cell, in depth, height, width order, that equals the given maximum. It is found
again from the data, never stored, where windows do not overlap; where they do, one pass writes the winner's position
as a byte and the next lets every cell gather from the windows it won. Nothing is scattered, so nothing races.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog import dtypes
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import Launch, per_problem
from voxgrad.kernels.cuda.pool_common import (
    UNROLLED_TAPS,
    Pool,
    Tile,
    canonical,
    choose_tile,
    compute_type,
    inside,
    level,
    locate,
    steps,
    tile_rows,
)  # fmt: skip
from voxgrad.kernels.cuda.pool_windows import pool_windows

SWEEP_TAPS = 3
"""A cell that is compared more often than this is worth a walk along depth that shares the planes' maxima."""


@triton.jit
def _first_tap(found, top, x, g, base, h0, w0, c, t, D, H, W, C, d0, KH: tl.constexpr, KW: tl.constexpr,
               VALUE: tl.constexpr, FLOAT: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """`found` after tap t = (kd * KH + kh) * KW + kw; called with falling t, so that the first match stays."""
    d = d0 + t // (KH * KW)
    h = h0 + t // KW % KH
    w = w0 + t % KW
    mask = inside(level(d, h), D) & inside(h, H) & inside(w, W) & (c < C)
    at = base + d.to(tl.int64) * H * W * C + ((h * W + w) * C + c)
    if FLOAT:
        hit = tl.load(x + at, mask=mask, other=float("nan")).to(ACC) == top
    else:
        hit = (tl.load(x + at, mask=mask, other=0) == top) & mask
    if VALUE:
        found = tl.where(hit, tl.load(g + at, mask=mask, other=0), found)
    else:
        found = tl.where(hit, t, found)
    return found


@triton.jit
def _first(top, x, g, base, h0, w0, c, d0, D, H, W, C, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
           VALUE: tl.constexpr, FLOAT: tl.constexpr, ACC: tl.constexpr, NONE: tl.constexpr, R: tl.constexpr,
           BC: tl.constexpr, UNROLL: tl.constexpr):  # fmt: skip
    """Per window, the value of g at its first cell equal to `top`, or that cell's tap; 0 or NONE without one."""
    if VALUE:
        found = tl.zeros([R, BC], g.dtype.element_ty)
    else:
        found = tl.full([R, BC], NONE, tl.int32)
    if UNROLL:
        for back in tl.static_range(KD * KH * KW):
            found = _first_tap(found, top, x, g, base, h0, w0, c, KD * KH * KW - 1 - back, D, H, W, C, d0, KH, KW,
                               VALUE, FLOAT, ACC)  # fmt: skip
    else:
        for back in range(KD * KH * KW):
            found = _first_tap(found, top, x, g, base, h0, w0, c, KD * KH * KW - 1 - back, D, H, W, C, d0, KH, KW,
                               VALUE, FLOAT, ACC)  # fmt: skip
    return found


@triton.jit
def select_first(x, y, g, out, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
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
    found = _first(top, x, g, image * D * H * W * C, oh * SH - bh, ow * SW - bw, c, od * SD - bd, D, H, W, C, KD, KH,
                   KW, VALUE, FLOAT, ACC, NONE, BH * BW, BC, UNROLL)  # fmt: skip
    tl.store(out + at, found.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _plane_best(x, g, base, d, h0, w0, c, D, H, W, C, KH: tl.constexpr, KW: tl.constexpr, VALUE: tl.constexpr,
                ACC: tl.constexpr, NONE: tl.constexpr, R: tl.constexpr, BC: tl.constexpr):  # fmt: skip
    """The maximum of one plane of every window, with the value of g or the tap of its first cell."""
    best = tl.full([R, BC], float("-inf"), ACC)
    if VALUE:
        found = tl.zeros([R, BC], g.dtype.element_ty)
    else:
        found = tl.full([R, BC], NONE, tl.int32)
    plane = base + d.to(tl.int64) * H * W * C
    for back in tl.static_range(KH * KW):
        t = KH * KW - 1 - back
        h = h0 + t // KW
        w = w0 + t % KW
        mask = inside(level(d, h), D) & inside(h, H) & inside(w, W) & (c < C)
        at = plane + ((h * W + w) * C + c)
        value = tl.load(x + at, mask=mask, other=float("nan")).to(ACC)
        better = value >= best
        best = tl.where(better, value, best)
        if VALUE:
            found = tl.where(better, tl.load(g + at, mask=mask, other=0), found)
        else:
            found = tl.where(better, t, found)
    return best, found


@triton.jit
def _earlier(best, found, more, where, shift: tl.constexpr, VALUE: tl.constexpr):
    """The better of two planes; `more` is the earlier one and wins a tie. `shift` makes a plane's tap a window's."""
    better = more >= best
    return tl.where(better, more, best), tl.where(better, where if VALUE else where + shift, found)


@triton.jit
def select_sweep(x, y, g, out, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
                 KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                 SW: tl.constexpr, VALUE: tl.constexpr, ACC: tl.constexpr, NONE: tl.constexpr, BH: tl.constexpr,
                 BW: tl.constexpr, BC: tl.constexpr, CHUNK: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """`select_first` for 2 or 3 planes that overlap along depth: every plane is searched once for its maximum.

    That finds the winner where y is the maximum. A tile in which y is anything else, or -inf, is done again by
    comparison with y, which is what the op means.
    """
    image, chunk, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    oh, ow = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    mask = (oh < OH) & (ow < OW) & (c < C)
    h0 = oh * SH - bh
    w0 = ow * SW - bw
    R: tl.constexpr = BH * BW
    base = image * D * H * W * C
    y += image * OD * OH * OW * C
    out += image * OD * OH * OW * C
    rows = (oh * OW + ow) * C + c
    start = chunk * CHUNK * SD - bd
    PLANE: tl.constexpr = KH * KW
    m1, f1 = _plane_best(x, g, base, start + KD - SD - 1, h0, w0, c, D, H, W, C, KH, KW, VALUE, ACC, NONE, R, BC)
    m0, f0 = m1, f1
    if KD - SD == 2:
        m0, f0 = _plane_best(x, g, base, start, h0, w0, c, D, H, W, C, KH, KW, VALUE, ACC, NONE, R, BC)
    odd = tl.zeros([R, BC], tl.int32)
    for i in range(CHUNK):
        od = chunk * CHUNK + i
        last = od * SD - bd + KD - 1
        best, found = _plane_best(x, g, base, last, h0, w0, c, D, H, W, C, KH, KW, VALUE, ACC, NONE, R, BC)
        m3, f3 = best, found
        if not VALUE:
            found += (KD - 1) * PLANE
        if SD == 2:
            m2, f2 = _plane_best(x, g, base, last - 1, h0, w0, c, D, H, W, C, KH, KW, VALUE, ACC, NONE, R, BC)
            best, found = _earlier(best, found, m2, f2, (KD - 2) * PLANE, VALUE)
        best, found = _earlier(best, found, m1, f1, (KD - SD - 1) * PLANE, VALUE)
        if KD - SD == 2:
            best, found = _earlier(best, found, m0, f0, 0, VALUE)
            m0, f0 = m1, f1
        m1, f1 = m3, f3
        at = od.to(tl.int64) * OH * OW * C + rows
        keep = mask & (level(od, oh) < OD)
        top = tl.load(y + at, mask=keep, other=0.0).to(ACC)
        odd |= (keep & ((best != top) | (top == float("-inf")))).to(tl.int32)
        tl.store(out + at, found.to(out.dtype.element_ty), mask=keep)
    if tl.max(tl.max(odd, axis=1), axis=0) > 0:
        for i in range(CHUNK):
            od = chunk * CHUNK + i
            at = od.to(tl.int64) * OH * OW * C + rows
            keep = mask & (level(od, oh) < OD)
            top = tl.load(y + at, mask=keep, other=0.0).to(ACC)
            found = _first(top, x, g, base, h0, w0, c, od * SD - bd, D, H, W, C, KD, KH, KW, VALUE, True, ACC, NONE, R,
                           BC, False)  # fmt: skip
            tl.store(out + at, found.to(out.dtype.element_ty), mask=keep)


@triton.jit
def _give_tap(taken, x, dx, at, mask, top, grad, ACC: tl.constexpr):
    """One tap of windows that do not overlap: its cells take the gradient where nobody before them did."""
    hit = (tl.load(x + at, mask=mask, other=float("nan")).to(ACC) == top) & (taken == 0)
    tl.store(dx + at, tl.where(hit, grad, 0.0).to(dx.dtype.element_ty), mask=mask)
    return taken | hit.to(tl.int32)


@triton.jit
def _give_pair(taken, x, dx, base, d, th, tw, kh, D, H, W, OH, bh, bw, top, grad, SH: tl.constexpr, ACC: tl.constexpr,
               BH: tl.constexpr, BW: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """Both cells of a row of the window at once, for one channel: wide loads and stores."""
    h, w = tile_rows(th, tw, BH, 2 * BW, BIG)
    mask = inside(level(d, h), D) & (h < OH) & inside(h * SH - bh + kh, H) & inside(w - bw, W)
    at = base + d.to(tl.int64) * H * W + ((h * SH - bh + kh) * W + (w - bw))
    value = tl.load(x + at, mask=mask, other=float("nan")).to(ACC)
    left, right = tl.split(tl.reshape(value, [BH * BW, 2]))
    hit = (left[:, None] == top) & (taken == 0)
    taken = taken | hit.to(tl.int32)
    again = (right[:, None] == top) & (taken == 0)
    taken = taken | again.to(tl.int32)
    both = tl.join(tl.where(hit, grad, 0.0), tl.where(again, grad, 0.0))
    tl.store(dx + at, tl.reshape(both, [2 * BH * BW, 1]).to(dx.dtype.element_ty), mask=mask)
    return taken


@triton.jit
def give_first(x, y, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
               KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
               SW: tl.constexpr, ACC: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr,
               UNROLL: tl.constexpr, PAIR: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
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
    if PAIR:
        for t in tl.static_range(KD * KH):
            taken = _give_pair(taken, x, dx, base, od * SD - bd + t // KH, th, tw, t % KH, D, H, W, OH, bh, bw, top,
                               grad, SH, ACC, BH, BW, BIG)  # fmt: skip
    elif UNROLL:
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
def _won(best, dy, plane, d_ok, qh, ph, qw, pw, c, j, C, OH, OW, KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr,
         SW: tl.constexpr, JW: tl.constexpr, NONE: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """Of window (qh - jh, qw - jw) of a plane: the winner's tap less the cell's, and the gradient."""
    jh = j // JW
    jw = j % JW
    tap_h = ph + jh * SH
    tap_w = pw + jw * SW
    mask = d_ok & (tap_h < KH) & (tap_w < KW) & inside(qh - jh, OH) & inside(qw - jw, OW) & (c < C)
    at = plane + (((qh - jh) * OW + (qw - jw)) * C + c)
    tap = tl.load(best + at, mask=mask, other=NONE).to(tl.int32)
    return tap - (tap_h * KW + tap_w), tl.load(dy + at, mask=mask, other=0.0).to(ACC)


@triton.jit
def _gather_phase(best, dy, dx, base, first, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw, P_H: tl.constexpr,
                  P_W: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr,
                  SH: tl.constexpr, SW: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr, NONE: tl.constexpr,
                  ACC: tl.constexpr, R: tl.constexpr, BC: tl.constexpr, CHUNK: tl.constexpr,
                  KEEP: tl.constexpr):  # fmt: skip
    """The cells (h, w) of a chunk of depth. Where P_H or P_W say their phase, taps that cannot reach it are skipped."""
    rows = inside(h, H) & inside(w, W) & (c < C)
    qh = (h + bh) // SH
    ph = (h + bh) % SH
    qw = (w + bw) // SW
    pw = (w + bw) % SW
    PLANE: tl.constexpr = KH * KW
    zero = tl.zeros([R, BC], ACC)
    next1 = zero
    next2 = zero
    for i in range(-KEEP, CHUNK):
        q = first + i
        plane = base + q.to(tl.int64) * OH * OW * C
        there = inside(level(q, h), OD)
        a0 = zero
        a1 = zero
        a2 = zero
        for j in tl.static_range(JH * JW):
            if (P_H < 0 or P_H + j // JW * SH < KH) and (P_W < 0 or P_W + j % JW * SW < KW):
                tap, grad = _won(best, dy, plane, there, qh, ph, qw, pw, c, j, C, OH, OW, KH, KW, SH, SW, JW, NONE, ACC)
                a0 += tl.where(tap == 0, grad, 0.0)
                if KD > 1:
                    a1 += tl.where(tap == PLANE, grad, 0.0)
                if KD > 2:
                    a2 += tl.where(tap == 2 * PLANE, grad, 0.0)
        for p in tl.static_range(SD):
            if p == 0:
                acc = a0 + next1
            elif p == 1 and KD > 1:
                acc = a1
            elif p == 2 and KD > 2:
                acc = a2
            else:
                acc = zero
            d = q * SD + p - bd
            at = dx + d.to(tl.int64) * H * W * C + (h * W + w) * C + c
            tl.store(at, acc.to(dx.dtype.element_ty), mask=rows & inside(level(d, h), D) & (level(i, h) >= 0))
        if SD == 1:
            next1 = next2 + a1
            next2 = a2
        elif KD > SD:
            next1 = a2


@triton.jit
def gather_won(best, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, bw, tiles_h, tiles_w, tiles_c, chunks,
               KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
               SW: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr, NONE: tl.constexpr, ACC: tl.constexpr,
               BH: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr, CHUNK: tl.constexpr, KEEP: tl.constexpr,
               PH: tl.constexpr, PW: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """dx = sum of dy over the windows a cell won, for at most 3 planes per window. KEEP sums wait for later planes.

    With PH or PW > 1 a tile covers the lattice of windows, and the cells of each phase are done one after another.
    """
    image, chunk, th, tw, tc = locate(tiles_h, tiles_w, tiles_c, chunks)
    at_h, at_w = tile_rows(th, tw, BH, BW, BIG)
    c = tc * BC + tl.arange(0, BC)[None, :]
    base = image * OD * OH * OW * C
    dx += image * D * H * W * C
    first = bd // SD + chunk * CHUNK
    for phase in tl.static_range(PH * PW):
        h = at_h
        w = at_w
        if PH > 1:
            h = (at_h + bh // SH) * SH + phase // PW - bh
        if PW > 1:
            w = (at_w + bw // SW) * SW + phase % PW - bw
        _gather_phase(best, dy, dx, base, first, h, w, c, D, H, W, C, OD, OH, OW, bd, bh, bw,
                      phase // PW if PH > 1 else -1, phase % PW if PW > 1 else -1, KD, KH, KW, SD, SH, SW, JH, JW,
                      NONE, ACC, BH * BW, BC, CHUNK, KEEP)  # fmt: skip


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


Parts = tuple[tuple[int], tuple[int, ...], dict[str, Any]]


def _parts(pool: Pool, along: int, rows: tuple[int, int], tile: Tile) -> Parts:
    """Grid, integer arguments and the constants that every kernel of this file takes."""
    chunk = min(tile.chunk, along)
    tiles = (steps(rows[0], tile.bh), steps(rows[1], tile.bw), steps(pool.channels, tile.bc))
    chunks = steps(along, chunk)
    (kd, kh, kw), (_, sh, sw) = pool.windows, pool.strides
    constants = {
        "KD": kd, "KH": kh, "KW": kw, "SH": sh, "SW": sw, "BH": tile.bh, "BW": tile.bw, "BC": tile.bc,
        "BIG": not pool.plane_fits, "num_warps": tile.warps,
    }  # fmt: skip
    ints = (*pool.sizes, pool.channels, *pool.outs, *pool.befores, *tiles, chunks)
    return (pool.images * chunks * tiles[0] * tiles[1] * tiles[2],), ints, constants | {"CHUNK": chunk}


def _per_cell(pool: Pool) -> float:
    """How often a cell is compared when every window looks at all of its cells."""
    return pool.taps / (pool.strides[0] * pool.strides[1] * pool.strides[2])


def _small(pool: Pool) -> int:
    """Elements of a tile: fewer where one channel makes every lane compute its own addresses."""
    return 512 if pool.channels == 1 else 1024


def _sweep_tile(pool: Pool, rows: tuple[int, int]) -> Tile:
    """Tiles of the walks along depth, as measured on an H200."""
    if pool.strides[0] == 1:
        return choose_tile(pool.channels, rows, _small(pool), 16, square=True)
    if pool.channels == 1:
        return choose_tile(1, rows, 256, 16, square=True)
    return choose_tile(pool.channels, rows, 1024, 8, warps=8, square=True)


@per_problem
def _select_plan(problem: Problem, dtype: torch.dtype, value: bool, none: int, tile: Tile | None) -> Launch:
    """The search for winners: their gradients (value) or their taps."""
    pool = canonical(problem)
    kd, kh, kw = pool.windows
    floating = dtype.is_floating_point
    shared = {"VALUE": value, "ACC": compute_type(dtype), "NONE": none}
    sd = pool.strides[0]
    sweeps = kd in (2, 3) and sd in (1, 2) and kd > sd and kh * kw <= UNROLLED_TAPS
    if floating and sweeps and _per_cell(pool) > SWEEP_TAPS:
        tile = tile or _sweep_tile(pool, pool.outs[1:])
        grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], tile)
        return Launch(select_sweep, grid, ints, constants | shared | {"SD": sd})
    tile = replace(tile or choose_tile(pool.channels, pool.outs[1:], _small(pool), 1), chunk=1)
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], tile)
    more = {"SD": pool.strides[0], "FLOAT": floating, "UNROLL": pool.taps <= UNROLLED_TAPS}
    return Launch(select_first, grid, ints, constants | shared | more)


@per_problem
def _give_plan(problem: Problem, acc: Any, tile: Tile | None) -> Launch:
    pool = canonical(problem)
    tile = replace(tile or choose_tile(pool.channels, pool.outs[1:], _small(pool), 1), chunk=1)
    grid, ints, constants = _parts(pool, pool.outs[0], pool.outs[1:], tile)
    del constants["CHUNK"]
    unroll = pool.taps <= UNROLLED_TAPS
    pair = unroll and pool.channels == 1 and pool.windows[2] == pool.strides[2] == 2
    return Launch(
        give_first, grid, ints, constants | {"SD": pool.strides[0], "UNROLL": unroll, "PAIR": pair, "ACC": acc}
    )


@per_problem
def _gather_plan(problem: Problem, dtype: torch.dtype, none: int, tile: Tile | None) -> Launch:
    """The kernel in which cells gather from the windows they won."""
    pool = canonical(problem)
    jd, jh, jw = (triton.cdiv(k, s) for k, s in zip(pool.windows, pool.strides, strict=True))
    sd = pool.strides[0]
    acc = compute_type(torch.float64 if problem.dtype == dtypes.FLOAT64 else dtype)
    shared = {"SD": sd, "JH": jh, "JW": jw, "NONE": none, "ACC": acc}
    if problem.near_ties or pool.windows[0] > 3 or jh * jw > UNROLLED_TAPS or sd > 8:
        tile = replace(tile or choose_tile(pool.channels, pool.sizes[1:], _small(pool), 1), chunk=1)
        grid, ints, constants = _parts(pool, pool.sizes[0], pool.sizes[1:], tile)
        del constants["CHUNK"]
        rounded, bound = _nearness(problem, acc)
        more = {"JD": jd, "NEAR": problem.near_ties, "ROUND": rounded}
        return Launch(gather_any, grid, (bound, *ints), constants | shared | more)
    lattice = [(n - 1 + b) // st - b // st + 1 for n, b, st in zip(pool.sizes, pool.befores, pool.strides, strict=True)]
    sh, sw = pool.strides[1:]
    ph = sh if 1 < sh <= 3 else 1
    # One channel has its cells side by side in memory: there a phase in width would tear them apart.
    pw = sw if 1 < sw <= 3 and pool.channels > 1 else 1
    rows = (lattice[1] if ph > 1 else pool.sizes[1], lattice[2] if pw > 1 else pool.sizes[2])
    tile = tile or (_sweep_tile(pool, rows) if jd > 1 else choose_tile(pool.channels, rows, _small(pool), 1))
    grid, ints, constants = _parts(pool, lattice[0], rows, tile)
    return Launch(gather_won, grid, ints, constants | shared | {"KEEP": jd - 1, "PH": ph, "PW": pw})


def _nearness(problem: Problem, acc: Any) -> tuple[Any, float]:
    """The type that differences are rounded to, and 1e-5 in it."""
    names = {dtypes.HALF: (tl.float16, torch.float16), dtypes.BFLOAT16: (tl.bfloat16, torch.bfloat16)}
    default = (acc, torch.float64 if problem.dtype == dtypes.FLOAT64 else torch.float32)
    rounded, storage = names.get(problem.dtype, default)
    return rounded, float(torch.tensor(1e-5, dtype=storage))


def max_pool(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The maximum of every window of a contiguous tensor; -inf where a window holds NaN alone."""
    return pool_windows(problem, x, maximum=True)


def max_pool_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
                  tiles: tuple[Tile | None, Tile | None] = (None, None)) -> torch.Tensor:  # fmt: skip
    """The gradient of every window to the first of its cells that equals y, or (near_ties) to all close to it."""
    pool = canonical(problem)
    if not pool.overlaps and not problem.near_ties:
        dx = dy.new_empty(problem.input_extent) if pool.covers else dy.new_zeros(problem.input_extent)
        if dx.numel() and dy.numel():
            _give_plan(problem, compute_type(x.dtype), tiles[0])(x, y, dy, dx)
        return dx
    dx = dy.new_empty(problem.input_extent)
    if not dx.numel():
        return dx
    none = 255 if pool.taps < 255 else -1
    best = dy.new_empty(() if problem.near_ties else y.shape, dtype=torch.uint8 if none == 255 else torch.int32)
    if not problem.near_ties and y.numel():
        _select_plan(problem, x.dtype, False, none, tiles[0])(x, y, x, best)
    gather = _gather_plan(problem, dy.dtype, none, tiles[1])
    gather(*((best, dy, dx) if gather.kernel is gather_won else (x, y, best, dy, dx)))
    return dx


def max_pool_grad_grad(problem: Problem, x: torch.Tensor, y: torch.Tensor, g: torch.Tensor,
                       tile: Tile | None = None) -> torch.Tensor:  # fmt: skip
    """Per window, the value of g at the first cell that equals y; 0 without one."""
    out = g.new_empty(problem.output_extent)
    if out.numel():
        _select_plan(problem, x.dtype, True, 0, tile)(x, y, g, out)
    return out
