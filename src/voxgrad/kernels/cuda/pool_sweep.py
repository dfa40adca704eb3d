# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM108 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""Pools with windows of at most 3 and strides of at most 2, where nearly all pools are.

Programs walk along depth with the planes that the next window needs in registers; a lane does R rows at once, so
that a row of taps serves up to three windows. What is left to load per number is so little that memory is the limit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_ahead import own_lines, prefetch, prefetch_planes
from voxgrad.kernels.cuda.pool_common import covered
from voxgrad.kernels.cuda.pool_lanes import depth_there, lengths, nearest, own_places, span, spot
from voxgrad.kernels.cuda.pool_taps import (
    cell_columns,
    cell_taps,
    put_rows,
    shares,
    window_columns,
    window_taps,
)
from voxgrad.kernels.cuda.pool_words import last_of


@triton.jit
def _reduced(acc, value, MAX: tl.constexpr):
    return tl.maximum(acc, value) if MAX else acc + value


@triton.jit
def _window_planes(x, d, group, D, H, W, C, rows, there, at, present, KH: tl.constexpr, KW: tl.constexpr,
                   SH: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, MAX: tl.constexpr, ACC: tl.constexpr,
                   R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr, ONCE: tl.constexpr):  # fmt: skip
    """The R windows of every lane reduced over the plane of depth d."""
    plane = x + nearest(d, D) * H * W * C
    d_there = depth_there(d, group, D)
    lines = ()
    for i in tl.static_range((R - 1) * SH + KH):
        taps = cell_taps(plane, rows[i], there[i] & d_there, at, present, 0.0, KW, SW, BEFORE, X, LINE, not MAX, ACC,
                         ONCE)  # fmt: skip
        line = taps[0]
        for j in tl.static_range(1, KW):
            line = _reduced(line, taps[j], MAX)
        lines = lines + (line,)
    sums = ()
    for r in tl.static_range(R):
        acc = lines[r * SH]
        for i in tl.static_range(1, KH):
            acc = _reduced(acc, lines[r * SH + i], MAX)
        sums = sums + (acc,)
    return sums


@triton.jit
def _finished(acc, cells, share, others, MAX: tl.constexpr, EXACT: tl.constexpr, ACC: tl.constexpr):
    """The mean or maximum of windows, given its sum or maximum and their cells, in width and along the other axes."""
    if MAX:
        acc = tl.maximum(acc, float("-inf"))  # where all are NaN
    elif EXACT:
        acc = acc / (cells * others).to(ACC)
    else:  # Types of few bits do not see the difference, and this is most of the arithmetic.
        acc = acc * (share * (1.0 / others.to(ACC)))
    return acc


@triton.jit
def sweep_windows(x, y, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                  KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                  BEFORE: tl.constexpr, MAX: tl.constexpr, EXACT: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr,
                  X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr,
                  CHUNK: tl.constexpr, LINE: tl.constexpr, WHOLE: tl.constexpr,
                  FLAT: tl.constexpr = False):  # fmt: skip
    """y = mean or maximum over every window. A cell outside counts as its nearest neighbour inside for the maximum."""
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, FLAT=FLAT)
    W, OW, C = lengths(units, W, OW, C, SW, X, ACROSS, LINE)
    x += image * D * H * W * C
    y += image * OD * OH * OW * C
    rows, there = span(group * (R * SH) - bh, (R - 1) * SH + KH, H, W * C)
    at, present = cell_columns(unit, tc, W, C, KW, SW, BEFORE, X, LINE, WHOLE)
    place, mask = own_places(unit, tc, OW, C, X, LINE)
    cells = covered((place if LINE else unit) * SW - BEFORE, KW, W)
    share = 1.0 / cells.to(ACC)
    # Measured: it helps numbers of 16 bits only.
    ONCE: tl.constexpr = KD <= SD and KH <= SH and KW <= SW and x.dtype.element_ty.primitive_bitwidth == 16
    KEEP: tl.constexpr = max(KD - SD, 0)
    start = chunk * CHUNK * SD - bd
    kept = ()
    for j in tl.static_range(KEEP):
        kept = kept + (_window_planes(x, start + j, group, D, H, W, C, rows, there, at, present, KH, KW, SH, SW,
                                      BEFORE, MAX, ACC, R, X, LINE, ONCE),)  # fmt: skip
    lines = own_lines(x, units, tiles, tiles_c, chunks, H, W, C, R * SH, SW, X, L, ACROSS, LINE)
    for i in tl.range(CHUNK, num_stages=STAGES):
        od = chunk * CHUNK + i
        if AHEAD:
            prefetch_planes(x, lines, (od + AHEAD) * SD - bd + KEEP, KD - KEEP, D, H * W * C)
        planes = kept
        for j in tl.static_range(KEEP, KD):
            planes = planes + (_window_planes(x, od * SD - bd + j, group, D, H, W, C, rows, there, at, present, KH,
                                              KW, SH, SW, BEFORE, MAX, ACC, R, X, LINE, ONCE),)  # fmt: skip
        deep = covered(od * SD - bd, KD, D)
        for r in tl.static_range(R):
            oh = group * R + r
            acc = planes[0][r]
            for j in tl.static_range(1, KD):
                acc = _reduced(acc, planes[j][r], MAX)
            acc = _finished(acc, cells, share, covered(oh * SH - bh, KH, H) * deep, MAX, EXACT, ACC)
            to = y + od.to(tl.int64) * OH * OW * C + (oh * OW * C + place)
            keep = mask & (oh < OH) & depth_there(od, group, OD)
            tl.store(to, acc.to(y.dtype.element_ty), mask=keep)
        kept = last_of(planes, KEEP, STAGES)


@triton.jit
def _shared_planes(dy, rows, there, at, present, d_there, heights, widths, deep, KH: tl.constexpr, KW: tl.constexpr,
                   SH: tl.constexpr, SW: tl.constexpr, JH: tl.constexpr, JW: tl.constexpr, FIRST: tl.constexpr,
                   ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """What one plane of windows gives to the R * SH * SW cells of every lane, their phase in width fastest."""
    lines = ()
    for i in tl.static_range(R + JH - 1):
        taps = window_taps(dy, rows[i], there[i] & d_there, at, present, 0.0, JW, FIRST, X, LINE, True, ACC)
        weight = heights[i] * deep
        for p in tl.static_range(SW):
            line = tl.zeros_like(taps[0])
            for j in tl.static_range(JW):
                if p + j * SW < KW:
                    line += taps[j] * widths[j]
            lines = lines + (line * weight,)
    sums = ()
    for at_r in tl.static_range(R * SH * SW):
        acc = tl.zeros_like(lines[0])
        for j in tl.static_range(JH):
            if at_r // SW % SH + j * SH < KH:
                acc += lines[(at_r // (SH * SW) + JH - 1 - j) * SW + at_r % SW]
        sums = sums + (acc,)
    return sums


@triton.jit
def sweep_spread(dy, dx, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                 KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                 BEFORE: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
                 ACROSS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr, CHUNK: tl.constexpr,
                 LINE: tl.constexpr, WHOLE: tl.constexpr, FLAT: tl.constexpr = False):  # fmt: skip
    """dx = every window's gradient over its count, summed over the windows of a cell."""
    JD: tl.constexpr = (KD + SD - 1) // SD
    JH: tl.constexpr = (KH + SH - 1) // SH
    JW: tl.constexpr = (KW + SW - 1) // SW
    FIRST: tl.constexpr = BEFORE // SW
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, FLAT=FLAT)
    W, OW, C = lengths(units, W, OW, C, SW, X, ACROSS, LINE)
    dy += image * OD * OH * OW * C
    dx += image * D * H * W * C
    row = group * R + bh // SH - (JH - 1)
    rows, there = span(row, R + JH - 1, OH, OW * C)
    at, present = window_columns(unit, tc, OW, C, JW, FIRST, X, LINE, WHOLE)
    heights = shares(row, R + JH - 1, KH, SH, bh, H, ACC)
    if LINE:
        place = unit * X + tl.arange(0, X)[None, :] + FIRST
    else:
        place = unit + FIRST
    widths = ()
    for j in tl.static_range(JW):
        widths = widths + (1.0 / tl.maximum(covered((place - j) * SW - BEFORE, KW, W), 1).to(ACC),)
    first = bd // SD + chunk * CHUNK
    kept = ()
    for j in tl.static_range(JD - 1):
        kept = kept + (_shared_plane_at(dy, first - (JD - 1) + j, group, rows, there, at, present, heights, widths, D,
                                        OD, OH * OW * C, bd, KD, KH, KW, SD, SH, SW, JH, JW, FIRST, ACC, R, X,
                                        LINE),)  # fmt: skip
    lines = own_lines(dy, units, tiles, tiles_c, chunks, OH, OW, C, R, 1, X, L, ACROSS, LINE)
    for i in tl.range(CHUNK, num_stages=STAGES):
        q = first + i
        if AHEAD:
            prefetch(dy + tl.minimum(q + AHEAD, OD - 1).to(tl.int64) * OH * OW * C, lines)
        planes = kept + (_shared_plane_at(dy, q, group, rows, there, at, present, heights, widths, D, OD,
                                          OH * OW * C, bd, KD, KH, KW, SD, SH, SW, JH, JW, FIRST, ACC, R, X,
                                          LINE),)  # fmt: skip
        for p in tl.static_range(SD):
            d = q * SD + p - bd
            cells = ()
            for at_r in tl.static_range(R * SH * SW):
                acc = tl.zeros_like(planes[0][0])
                for j in tl.static_range(JD):
                    if p + j * SD < KD:
                        acc += planes[JD - 1 - j][at_r]
                cells = cells + (acc,)
            put_rows(dx, cells, d, group, unit, tc, D, H, W, C, bh, SH, SW, BEFORE, R, X, LINE)
        kept = last_of(planes, JD - 1, STAGES)


@triton.jit
def _shared_plane_at(dy, q, group, rows, there, at, present, heights, widths, D, OD, pitch, bd, KD: tl.constexpr,
                     KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                     JH: tl.constexpr, JW: tl.constexpr, FIRST: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr,
                     X: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """`_shared_planes` of the windows of depth q, divided by their cells along depth."""
    deep = 1.0 / tl.maximum(covered(q * SD - bd, KD, D), 1).to(ACC)
    plane = dy + nearest(q, OD) * pitch
    return _shared_planes(plane, rows, there, at, present, depth_there(q, group, OD), heights, widths, deep, KH, KW,
                          SH, SW, JH, JW, FIRST, ACC, R, X, LINE)  # fmt: skip
