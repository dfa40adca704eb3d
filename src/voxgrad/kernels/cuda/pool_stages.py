# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""MaxPool3DGrad of windows 3 x 3 x 3 with stride 1 and SAME padding, axis by axis.

The maximum of a window is that of three plane maxima, each of three row maxima, each of three cells, and neighbouring
windows share planes and rows. So the way back goes axis by axis as well, three questions each, nine instead of 27: what
windows gave to a plane goes to the row that won there, and then to the cell that won in the row. One byte per place
holds the winners: bits 0 to 2 which plane of its window, 3 to 5 which row of its plane, 6 and 7 second or third cell.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_common import inside, level
from voxgrad.kernels.cuda.pool_lanes import ahead, behind, cell_columns, cell_taps, channels, depth_there, span, spot


@triton.jit
def _winner(first, second, third, low, ONE: tl.constexpr, TWO: tl.constexpr, THREE: tl.constexpr):
    """The largest of three and a code for which, the first of equals; where `low`, the first repeats the second."""
    best = tl.maximum(first, second)
    # A maximum ignores NaN, and NaN is unequal to all: so NaN never wins.
    which = tl.where(best != first, TWO, tl.where(low > 0, TWO, ONE))
    top = tl.maximum(best, third)
    return top, tl.where(top != best, THREE, which)


@triton.jit
def _plane_winners(x, rows, at, present, low_h, low_w, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr,
                   LINE: tl.constexpr):  # fmt: skip
    """Of one plane and R rows of places: the maximum of 3 x 3 cells, and the winners of its row and of the plane."""
    tops = ()
    cells = ()
    for i in tl.static_range(R + 2):
        taps = cell_taps(x, rows[i], rows[i] >= 0, at, present, 0.0, 3, 1, 1, X, LINE, False, ACC)
        top, cell = _winner(taps[0], taps[1], taps[2], low_w, 0, 64, 128)
        tops = tops + (top,)
        cells = cells + (cell,)
    best = ()
    codes = ()
    for r in tl.static_range(R):
        top, row = _winner(tops[r], tops[r + 1], tops[r + 2], low_h[r], 8, 16, 32)
        best = best + (top,)
        codes = codes + (cells[r + 1] | row,)
    return best, codes


@triton.jit
def stage_winners(x, y, codes, flag, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                  KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                  BEFORE: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
                  CHUNK: tl.constexpr, LINE: tl.constexpr, WHOLE: tl.constexpr):  # fmt: skip
    """The winners of all stages as bytes; a flag where y is not the maximum: then they mean nothing."""
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L)
    if LINE:
        W = units * X
    x += image * D * H * W * C
    y += image * D * H * W * C
    codes += image * D * H * W * C
    rows, _there = span(group * R - 1, R + 2, H, W * C)
    at, present = cell_columns(unit, tc, W, C, 3, 1, 1, X, LINE, WHOLE)
    k = tl.arange(0, X)[None, :]
    if LINE:
        place = unit * X + k
        low_w = (place == 0).to(tl.int32)
        mask = place < W
    else:
        place = unit * C + tc * X + k
        low_w = (unit == 0).to(tl.int32)
        mask = tc * X + k < C
    low_h = ()
    for r in tl.static_range(R):
        low_h = low_h + ((group * R + r == 0).to(tl.int32),)
    first = chunk * CHUNK
    top0, _code = _plane_winners(x + tl.maximum(first - 1, 0).to(tl.int64) * H * W * C, rows, at, present, low_h,
                                 low_w, ACC, R, X, LINE)  # fmt: skip
    top1, code1 = _plane_winners(x + first.to(tl.int64) * H * W * C, rows, at, present, low_h, low_w, ACC, R, X, LINE)
    odd = tl.zeros([L, X], tl.int1)
    for i in range(CHUNK):
        d = first + i
        top2, code2 = _plane_winners(x + tl.minimum(d + 1, D - 1).to(tl.int64) * H * W * C, rows, at, present, low_h,
                                     low_w, ACC, R, X, LINE)  # fmt: skip
        for r in tl.static_range(R):
            best, plane = _winner(top0[r], top1[r], top2[r], (d == 0).to(tl.int32), 1, 2, 4)
            h = group * R + r
            keep = mask & (h < H) & depth_there(d, group, D)
            to = d.to(tl.int64) * H * W * C + (h * W * C + place)
            given = tl.load(y + to, mask=keep, other=0.0).to(ACC)
            odd |= keep & (best != given)
            tl.store(codes + to, (code1[r] | plane).to(tl.uint8), mask=keep)
        top0 = top1
        top1 = top2
        code1 = code2
    if tl.max(tl.max(odd.to(tl.int32), axis=1), axis=0) > 0:
        tl.store(flag, 1)


@triton.jit
def _positions(unit, tc, W, C, X: tl.constexpr, P: tl.constexpr, LINE: tl.constexpr, WHOLE: tl.constexpr):
    """Offsets in a row, and whether they are there: of the P places of a lane and one on each side, or of a line."""
    if LINE:
        first = unit * X
        at = (tl.maximum(first - 1, 0), first + tl.arange(0, X)[None, :], tl.minimum(first + X, W - 1))
        there = (first > 0, first >= 0, first + X < W)
    else:
        c = channels(tc, C, X, WHOLE)
        places, there = span(unit * P - 1, P + 2, W, C)
        at = ()
        for p in tl.static_range(P + 2):
            at = at + (places[p] + c,)
    return at, there


@triton.jit
def _took(code, BITS: tl.constexpr, grad):
    """The gradient where a bit of the code is set; for no BITS, where the cell is the first one."""
    return tl.where((code & BITS) != 0 if BITS else (code & 192) == 0, grad, 0.0)


@triton.jit
def stage_gather(codes, dy, dx, flag, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks,
                 KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                 SW: tl.constexpr, BEFORE: tl.constexpr, ACC: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
                 X: tl.constexpr, L: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
                 WHOLE: tl.constexpr):  # fmt: skip
    """dx from the winners of all stages. A lane is P places of one depth and walks along height, row by row."""
    image, chunk, tc, d, unit = spot(units, tiles, tiles_c, chunks, L)
    if LINE:
        W = units * X
    codes += image * D * H * W * C
    dy += image * D * H * W * C
    dx += image * D * H * W * C
    at, there = _positions(unit, tc, W, C, X, P, LINE, WHOLE)
    PLACES: tl.constexpr = 3 if LINE else P + 2
    # Of the windows one deeper, of the same depth, one less deep: they took planes 0, 1, 2 to get here.
    offsets = ()
    present = ()
    for j in tl.static_range(3):
        offsets = offsets + (tl.minimum(tl.maximum(d + 1 - j, 0), D - 1).to(tl.int64) * H * W * C,)
        present = present + (inside(d + 1 - j, D) & (d < D),)
    first = chunk * CHUNK
    done = ()
    soon = ()
    cells = ()
    for p in tl.static_range(PLACES):
        none = tl.zeros_like(at[p]).to(ACC)
        done = done + (none,)
        soon = soon + (none,)
        cells = cells + (tl.zeros_like(at[p]),)
    if tl.load(flag) == 0:
        for i in range(-1, CHUNK + 1):
            h = first + i
            row = tl.minimum(tl.maximum(h, 0), H - 1) * W * C
            h_there = inside(level(h, unit), H)
            sums = ()
            next_done = ()
            next_soon = ()
            next_cells = ()
            for p in tl.static_range(PLACES):
                grad = tl.zeros_like(done[p])
                for j in tl.static_range(3):
                    to = offsets[j] + (row + at[p])
                    code = tl.load(codes + to, mask=present[j] & h_there & there[p], other=0).to(tl.int32)
                    grad += _took(code, 1 << j, tl.load(dy + to).to(ACC))
                    if j == 1:
                        own = code
                sums = sums + (done[p] + _took(own, 8, grad),)
                next_done = next_done + (soon[p] + _took(own, 16, grad),)
                next_soon = next_soon + (_took(own, 32, grad),)
                next_cells = next_cells + (own,)
            _put_row(dx, sums, cells, d, h - 1, (i > 0) & (h - 1 < H), unit, tc, D, H, W, C, P, X, LINE)
            done = next_done
            soon = next_soon
            cells = next_cells


@triton.jit
def _put_row(dx, sums, cells, d, h, wanted, unit, tc, D, H, W, C, P: tl.constexpr, X: tl.constexpr,
             LINE: tl.constexpr):  # fmt: skip
    """Hand what a row of places won to their cells, and store it."""
    KIND: tl.constexpr = dx.dtype.element_ty
    base = dx + tl.minimum(d, D - 1).to(tl.int64) * H * W * C + tl.maximum(h, 0).to(tl.int64) * W * C
    mask = (d < D) & (level(wanted.to(tl.int32), d) > 0)
    if LINE:
        acc = _took(cells[1], 64, sums[1])
        acc += ahead(_took(cells[1], 0, sums[1]), _took(cells[2], 0, sums[2]), X)
        acc += behind(_took(cells[1], 128, sums[1]), _took(cells[0], 128, sums[0]), X)
        tl.store(base + (unit * X + tl.arange(0, X)[None, :]), acc.to(KIND), mask=mask)
    else:
        c = tc * X + tl.arange(0, X)[None, :]
        for p in tl.static_range(P):
            acc = _took(cells[p + 2], 0, sums[p + 2]) + _took(cells[p + 1], 64, sums[p + 1])
            acc += _took(cells[p], 128, sums[p])
            w = unit * P + p
            tl.store(base + (w * C + c), acc.to(KIND), mask=mask & (w < W) & (c < C))
