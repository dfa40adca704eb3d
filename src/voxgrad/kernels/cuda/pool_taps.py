# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""What lanes load and store: the cells of their windows, the windows of their cells, as numbers or in words.

The width taps of a line come out of registers, and only the one number on each side of it is loaded; its other taps,
and those of channels, are loads at the same addresses from a few lanes, which the first-level cache answers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_common import covered, inside
from voxgrad.kernels.cuda.pool_lanes import depth_there, span
from voxgrad.kernels.cuda.pool_words import as_word, firsts, paired, seconds, shifted, widened


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
    weights = ()
    for i in tl.static_range(count):
        weights = weights + (1.0 / tl.maximum(covered((first + i) * stride - before, window, size), 1).to(ACC),)
    return weights


@triton.jit
def put_rows(dx, cells, d, group, unit, tc, D, H, W, C, bh, SH: tl.constexpr, SW: tl.constexpr, BEFORE: tl.constexpr,
              R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """Store the cells of one depth that the lanes made."""
    plane = dx + tl.maximum(d, 0).to(tl.int64) * H * W * C
    d_there = depth_there(d, group, D)
    for r in tl.static_range(R * SH):
        h = (group * R + r // SH + bh // SH) * SH + r % SH - bh
        put_cells(plane, cells, r * SW, h * W * C, unit, tc, W, C, d_there & inside(h, H), SW, BEFORE, X, LINE)
