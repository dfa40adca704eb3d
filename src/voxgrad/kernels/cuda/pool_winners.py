# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM108, SIM300 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""The winners of windows of at most 3 with strides of at most 2: found, given their gradients, or giving theirs.

The sweeps are those of `pool_sweep`: along depth, with the planes that the next window needs in registers.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from voxgrad.kernels.cuda.pool_ahead import own_lines, prefetch_planes
from voxgrad.kernels.cuda.pool_common import any_set, first_equal
from voxgrad.kernels.cuda.pool_lanes import depth_there, lengths, nearest, own_places, span, spot
from voxgrad.kernels.cuda.pool_taps import (
    cell_columns,
    cell_taps,
    put_rows,
    window_columns,
    window_taps,
    word_columns,
    word_taps,
)
from voxgrad.kernels.cuda.pool_words import TWICE, as_word, best_of, last_of, paired, put_bytes, unlike, words


@triton.jit
def _tap_word(low, tap: tl.constexpr, LINE: tl.constexpr, KIND: tl.constexpr):
    """The number of a tap, for all numbers of a word; where cells outside are their neighbours inside, at least low."""
    if paired(KIND):
        if LINE:  # Only the first number of a line can have such a neighbour, and only one.
            word = low if tap == 0 else tl.zeros_like(low) + tap * TWICE
        else:
            word = tl.maximum(low, tap) * TWICE
    else:
        word = tl.maximum(low, tap)
    return word


@triton.jit
def _best_planes(x, g, rows, at, low_h, low_w, KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                 BEFORE: tl.constexpr, VALUE: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr,
                 LINE: tl.constexpr):  # fmt: skip
    """The largest cell of one plane of R windows, with the value of g or the tap of the first such cell.

    Cells outside are their nearest neighbours inside, so a tap before the data (below low_h, low_w) means those.
    """
    tops = ()
    payloads = ()
    for i in tl.static_range((R - 1) * SH + KH):
        taps = word_taps(x, rows[i], at, KW, SW, BEFORE, X, LINE, KIND)
        given = ()
        if VALUE:
            given = word_taps(g, rows[i], at, KW, SW, BEFORE, X, LINE, KIND)
        else:
            for j in tl.static_range(KW):
                given = given + (_tap_word(low_w, j, LINE, KIND),)
        top, payload = best_of(taps, given, KIND)
        tops = tops + (top,)
        payloads = payloads + (payload,)
    best = ()
    best_payloads = ()
    for r in tl.static_range(R):
        given = ()
        for i in tl.static_range(KH):
            payload = payloads[r * SH + i]
            if not VALUE:
                payload += _tap_word(low_h[r], i, False, KIND) * KW
            given = given + (payload,)
        top, payload = best_of(tops[r * SH : r * SH + KH], given, KIND)
        best = best + (top,)
        best_payloads = best_payloads + (payload,)
    return best, best_payloads


@triton.jit
def _and_planes(tops, payloads, x, g, first, COUNT: tl.constexpr, D, pitch, rows, at, low_h, low_w, KH: tl.constexpr,
                KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, VALUE: tl.constexpr,
                KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """The best of planes, and those of COUNT planes more, from depth `first` on."""
    for j in tl.static_range(COUNT):
        plane = nearest(first + j, D) * pitch
        top, payload = _best_planes(x + plane, g + plane, rows, at, low_h, low_w, KH, KW, SH, SW, BEFORE, VALUE, KIND,
                                    R, X, LINE)  # fmt: skip
        tops = tops + (top,)
        payloads = payloads + (payload,)
    return tops, payloads


@triton.jit
def _best_plane(tops, payloads, low, r: tl.constexpr, KD: tl.constexpr, TAPS: tl.constexpr, VALUE: tl.constexpr,
                KIND: tl.constexpr):  # fmt: skip
    """The best of the KD planes of row r, with what was found there."""
    values = ()
    given = ()
    for j in tl.static_range(KD):
        payload = payloads[j][r]
        if not VALUE:
            payload += _tap_word(low, j, False, KIND) * TAPS
        values = values + (tops[j][r],)
        given = given + (payload,)
    return best_of(values, given, KIND)


@triton.jit
def _first_taps(first, before, stride: tl.constexpr, COUNT: tl.constexpr):
    """Of COUNT windows along an axis, from `first` on: the first tap that is in the data."""
    lows = ()
    for n in tl.static_range(COUNT):
        lows = lows + (tl.maximum(before - (first + n) * stride, 0),)
    return lows


@triton.jit
def _word_places(unit, tc, W, C, KW: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr, X: tl.constexpr,
                 LINE: tl.constexpr, WHOLE: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """Of windows, in words: the columns of their taps, their place in a row, which are there, and their first tap."""
    E: tl.constexpr = 2 if paired(KIND) else 1
    k = tl.arange(0, X)[None, :]
    if LINE:
        at = word_columns(unit, tc, W // E, C, KW, SW, BEFORE, X, LINE, WHOLE, KIND)
        place = unit * X
        mask = unit >= 0
        low = tl.maximum(BEFORE - (unit * X + k) * SW, 0)
    else:
        at = word_columns(unit, tc, W, C // E, KW, SW, BEFORE, X, LINE, WHOLE, KIND)
        place = unit * (C // E) + tc * X
        mask = tc * X + k < C // E
        low = tl.maximum(BEFORE - unit * SW, 0)
    return at, place, mask, low


@triton.jit
def _word_lines(x, y, units, tiles, tiles_c, chunks, H, W, C, OH, OW, SH: tl.constexpr, SW: tl.constexpr,
                R: tl.constexpr, X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, LINE: tl.constexpr,
                KIND: tl.constexpr):  # fmt: skip
    """The cache lines of lanes in a plane of cells and in one of windows."""
    E: tl.constexpr = 2 if paired(KIND) else 1
    if LINE:
        W = W // E
        OW = OW // E
    else:
        C = C // E
    cells = own_lines(x, units, tiles, tiles_c, chunks, H, W, C, R * SH, SW, X, L, ACROSS, LINE)
    return cells, own_lines(y, units, tiles, tiles_c, chunks, OH, OW, C, R, 1, X, L, ACROSS, LINE)


@triton.jit
def sweep_winners(x, y, g, out, flags, taps, count, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks,
                  KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                  SW: tl.constexpr, BEFORE: tl.constexpr, VALUE: tl.constexpr, NONE: tl.constexpr, GUARD: tl.constexpr,
                  KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr,
                  STAGES: tl.constexpr, AHEAD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
                  WHOLE: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """out = g at the winner of every window (VALUE), or the winner's tap.

    That finds the winner where y is the maximum. A tile in which y is anything else is done again by comparison with
    y, which is what the op means. With GUARD only if one of `count` flags is set.
    """
    if EARLY:
        gdc_wait()
    if GUARD:  # noqa: SIM102 - one is decided at compile time
        if not any_set(flags, count):
            return
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    E: tl.constexpr = 2 if paired(KIND) else 1
    W, OW, C = lengths(units, W, OW, C, SW, X * E, ACROSS, LINE)
    x += image * D * H * W * C
    g += image * D * H * W * C
    y += image * OD * OH * OW * C
    out += image * OD * OH * OW * C
    x_words = words(x, KIND)
    g_words = words(g, KIND)
    y_words = words(y, KIND)
    out_words = words(out, KIND)
    rows, _there = span(group * (R * SH) - bh, (R - 1) * SH + KH, H, W * C // E)
    at, place, mask, low_w = _word_places(unit, tc, W, C, KW, SW, BEFORE, X, LINE, WHOLE, KIND)
    k = tl.arange(0, X)[None, :]
    low_h = _first_taps(group * R, bh, SH, R)
    KEEP: tl.constexpr = max(KD - SD, 0)
    start = chunk * CHUNK * SD - bd
    pitch = H * W * C // E
    tops, payloads = _and_planes((), (), x_words, g_words, start, KEEP, D, pitch, rows, at, low_h, low_w, KH, KW, SH,
                                 SW, BEFORE, VALUE, KIND, R, X, LINE)  # fmt: skip
    lines, y_lines = _word_lines(x_words, y_words, units, tiles, tiles_c, chunks, H, W, C, OH, OW, SH, SW, R, X, L,
                                 ACROSS, LINE, KIND)  # fmt: skip
    odd = tl.zeros([L, X], tl.int32)
    for i in tl.range(CHUNK, num_stages=STAGES):
        od = chunk * CHUNK + i
        if AHEAD:
            soon = (od + AHEAD) * SD - bd + KEEP
            prefetch_planes(x_words, lines, soon, KD - KEEP, D, pitch)
            if VALUE:
                prefetch_planes(g_words, lines, soon, KD - KEEP, D, pitch)
            prefetch_planes(y_words, y_lines, od + AHEAD, 1, OD, OH * OW * C // E)
        all_tops, all_payloads = _and_planes(tops, payloads, x_words, g_words, od * SD - bd + KEEP, KD - KEEP, D, pitch,
                                             rows, at, low_h, low_w, KH, KW, SH, SW, BEFORE, VALUE, KIND, R, X,
                                             LINE)  # fmt: skip
        low = tl.maximum(bd - od * SD, 0)
        for r in tl.static_range(R):
            best, payload = _best_plane(all_tops, all_payloads, low, r, KD, KH * KW, VALUE, KIND)
            oh = group * R + r
            keep = (oh < OH) & depth_there(od, group, OD)
            to = od.to(tl.int64) * (OH * OW * C // E) + (oh * (OW * C // E) + place)
            given = as_word(tl.load(y_words + (to + k), mask=keep & mask, other=0), KIND)
            odd |= unlike(best, given, KIND).to(tl.int32) & tl.where(keep & mask, -1, 0)
            if VALUE:
                tl.store(out_words + (to + k), payload, mask=keep & mask)
            else:
                put_bytes(out, to, payload, keep, mask, X, KIND)
        tops = last_of(all_tops, KEEP, STAGES)
        payloads = last_of(all_payloads, KEEP, STAGES)
    if tl.max(tl.max((odd != 0).to(tl.int32), axis=1), axis=0) > 0:
        _compare(x, y, g, out, taps, chunk * CHUNK, group * R, unit, tc, D, H, W, C, OD, OH, OW, bd, bh, KD, KH, KW,
                 SD, SH, SW, BEFORE, VALUE, NONE, tl.float64 if KIND == tl.float64 else tl.float32, R, X * E, L,
                 CHUNK, LINE)  # fmt: skip


@triton.jit
def _compare(x, y, g, out, taps, first_d, first_h, unit, tc, D, H, W, C, OD, OH, OW, bd, bh, KD: tl.constexpr,
             KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
             BEFORE: tl.constexpr, VALUE: tl.constexpr, NONE: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr,
             X: tl.constexpr, L: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """`sweep_winners` by comparison with y, window by window, number by number."""
    n = tl.arange(0, X)[None, :]
    ow = unit * X + n if LINE else unit
    c = tl.zeros([1, 1], tl.int32) if LINE else tc * X + n
    for i in range(CHUNK * R):
        od = first_d + i // R
        oh = first_h + i % R
        keep = (ow < OW) & (c < C) & (oh < OH) & depth_there(od, oh, OD)
        to = od.to(tl.int64) * OH * OW * C + (oh * OW * C + ow * C + c)
        top = tl.load(y + to, mask=keep, other=0.0).to(ACC)
        winner = first_equal(top, x, g, 0, oh * SH - bh, ow * SW - BEFORE, c, od * SD - bd, D, H, W, C, taps, KD, KH,
                             KW, VALUE, True, ACC, NONE, L, X, False)  # fmt: skip
        tl.store(out + to, winner.to(out.dtype.element_ty), mask=keep)


@triton.jit
def _won(codes, grads, kd: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
         JH: tl.constexpr, JW: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """What the R * SH * SW cells of every lane won from plane kd of the windows of one depth."""
    sums = ()
    for r in tl.static_range(R):
        for ph in tl.static_range(SH):
            for pw in tl.static_range(SW):
                acc = tl.zeros_like(grads[0])
                for jh in tl.static_range(JH):
                    for jw in tl.static_range(JW):
                        if ph + jh * SH < KH and pw + jw * SW < KW:
                            mine = codes[(r + JH - 1 - jh) * JW + jw] == (kd * KH + ph + jh * SH) * KW + pw + jw * SW
                            acc = tl.where(mine, acc + grads[(r + JH - 1 - jh) * JW + jw], acc)
                sums = sums + (acc,)
    return sums


@triton.jit
def _plus(some, more):
    sums = ()
    for i in tl.static_range(len(some)):
        sums = sums + (some[i] + more[i],)
    return sums


@triton.jit
def sweep_gather(codes, dy, dx, flags, count, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks,
                 KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                 SW: tl.constexpr, BEFORE: tl.constexpr, NONE: tl.constexpr, GUARD: tl.constexpr, ACC: tl.constexpr,
                 R: tl.constexpr, X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr,
                 AHEAD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr, WHOLE: tl.constexpr,
                 EARLY: tl.constexpr = False):  # fmt: skip
    """dx = sum of dy over the windows a cell won, given the winners' taps. Sums wait in registers for later planes."""
    if EARLY:
        gdc_wait()
    if GUARD:  # noqa: SIM102 - one is decided at compile time
        if not any_set(flags, count):
            return
    JD: tl.constexpr = (KD + SD - 1) // SD
    JH: tl.constexpr = (KH + SH - 1) // SH
    JW: tl.constexpr = (KW + SW - 1) // SW
    FIRST: tl.constexpr = BEFORE // SW
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    W, OW, C = lengths(units, W, OW, C, SW, X, ACROSS, LINE)
    codes += image * OD * OH * OW * C
    dy += image * OD * OH * OW * C
    dx += image * D * H * W * C
    rows, there = span(group * R + bh // SH - (JH - 1), R + JH - 1, OH, OW * C)
    at, present = window_columns(unit, tc, OW, C, JW, FIRST, X, LINE, WHOLE)
    first = bd // SD + chunk * CHUNK
    zeros = ()
    for _r in tl.static_range(R * SH * SW):
        zeros = zeros + (tl.zeros([L, X], ACC),)
    wait1 = zeros
    wait2 = zeros
    for i in tl.range(1 - JD, CHUNK, num_stages=STAGES):
        q = first + i
        plane = nearest(q, OD) * OH * OW * C
        taps = ()
        grads = ()
        for row in tl.static_range(R + JH - 1):
            ok = there[row] & depth_there(q, group, OD)
            taps = taps + window_taps(
                codes + plane, rows[row], ok, at, present, NONE, JW, FIRST, X, LINE, True, tl.int32
            )
            grads = grads + window_taps(dy + plane, rows[row], ok, at, present, 0.0, JW, FIRST, X, LINE, False, ACC)
        won = (_won(taps, grads, 0, KH, KW, SH, SW, JH, JW, R),)
        for kd in tl.static_range(1, KD):
            won = won + (_won(taps, grads, kd, KH, KW, SH, SW, JH, JW, R),)
        for p in tl.static_range(SD):
            d = q * SD + p - bd
            if p == 0:
                cells = _plus(won[0], wait1) if JD > 1 else won[0]
            elif p < KD:
                cells = won[p]
            else:
                cells = zeros
            put_rows(dx, cells, tl.where(i >= 0, d, -1), group, unit, tc, D, H, W, C, bh, SH, SW, BEFORE, R, X, LINE)
        if JD == 3:
            wait1 = _plus(won[1], wait2)
            wait2 = won[2]
        elif JD == 2:
            wait1 = won[SD]


@triton.jit
def sweep_give(x, y, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
               KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
               BEFORE: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
               ACROSS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
               WHOLE: tl.constexpr):  # fmt: skip
    """dx of windows as long as their stride that cover everything: all cells are read, then all are written."""
    image, od, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    W, OW, C = lengths(units, W, OW, C, SW, X, ACROSS, LINE)
    x += image * D * H * W * C
    dx += image * D * H * W * C
    place, mask = own_places(unit, tc, OW, C, X, LINE)
    at, present = cell_columns(unit, tc, W, C, KW, SW, BEFORE, X, LINE, WHOLE)
    rows, there = span(group * SH - bh, KH, H, W * C)
    cells = ()
    for t in tl.static_range(KD * KH):
        d = od * SD - bd + t // KH
        ok = there[t % KH] & depth_there(d, group, D)
        plane = x + nearest(d, D) * H * W * C
        cells = cells + cell_taps(
            plane, rows[t % KH], ok, at, present, float("nan"), KW, SW, BEFORE, X, LINE, True, ACC
        )
    own = mask & (group < OH)
    to = (image * OD + od) * OH * OW * C + (group * OW * C + place)
    top = tl.load(y + to, mask=own, other=0.0).to(ACC)
    grad = tl.load(dy + to, mask=own, other=0.0)
    cell_grads = ()
    for t in tl.static_range(KD * KH * KW):
        hit = cells[t] == top
        cell_grads = cell_grads + (tl.where(hit, grad, 0.0).to(dx.dtype.element_ty),)
        # Nothing equals NaN: who found its winner looks for no other.
        top = tl.where(hit, float("nan"), top)
    for d in tl.static_range(KD):
        put_rows(dx, cell_grads[d * KH * KW : (d + 1) * KH * KW], od * SD + d - bd, group, unit, tc, D, H, W, C, bh, SH,
                 SW, BEFORE, 1, X, LINE)  # fmt: skip
