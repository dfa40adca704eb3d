# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM108 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""MaxPool3DGrad of windows 3 x 3 x 3 with stride 1 and SAME padding, axis by axis.

The maximum of a window is that of three plane maxima, each of three row maxima, each of three cells, and neighbouring
windows share planes and rows. So the way back goes axis by axis as well, three questions each, nine instead of 27: what
windows gave to a plane goes to the row that won there, and then to the cell that won in the row. One byte per place
holds the answers: bit 0 that the window one deeper did not take its first plane, which is this one; 1 that the window
of this depth took its second and 2 that the window one less deep took its third; bit 3 that the windows of this plane
and place did not take their first row, 4 that they took the second, 5 the third; bits 6 and 7 that they took the second
or third cell of their row. A window that is not there took nothing.

On the way back four bytes are one word, and with it go four gradients (a quad), each a block of its own. A question is
one bit of the word: all questions to a byte are asked next to each other, as the GPU can move seven bits at once to
where it decides by them.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from voxgrad.kernels.cuda.pool_ahead import own_lines, prefetch, tile_pieces, touch, touched
from voxgrad.kernels.cuda.pool_common import level
from voxgrad.kernels.cuda.pool_lanes import lengths, nearest, span, spot
from voxgrad.kernels.cuda.pool_quads import by_steps, give_cells, give_line, give_rows, load_quad, put_quad
from voxgrad.kernels.cuda.pool_taps import word_columns, word_taps
from voxgrad.kernels.cuda.pool_words import (
    TWICE,
    as_word,
    carried,
    largest,
    nothing_like,
    packed,
    paired,
    unlike,
    waiting_for,
    words,
)


@triton.jit
def _joined_bits(bits, first, second, SECOND: tl.constexpr, THIRD: tl.constexpr, KIND: tl.constexpr):
    """Bits and those for the second or third, given masks that the first and the second are not the largest."""
    if paired(KIND):
        code = bits | (first & ((second & (THIRD * TWICE)) | (~second & (SECOND * TWICE))))
    else:
        code = bits | tl.where(first, tl.where(second, THIRD, SECOND), 0)
    return code


@triton.jit
def _unless(value, out, KIND: tl.constexpr):
    """Words, NaN where `out`: no cell is like that."""
    if paired(KIND):
        word = value | tl.where(out, -1, 0)
    else:
        word = tl.where(out, float("nan"), value)
    return word


@triton.jit
def _none_of(values, out, KIND: tl.constexpr):
    """`_unless` of several blocks."""
    words = ()
    for n in tl.static_range(len(values)):
        words = words + (_unless(values[n], out, KIND),)
    return words


@triton.jit
def _with_bit(code, other, BIT: tl.constexpr):
    """A code with this bit of every byte from another."""
    ALL: tl.constexpr = BIT * 0x01010101
    return (code & ~ALL) | (other & ALL)


@triton.jit
def _plane_winners(
    x, rows, at, top_out, fixed, KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr
):
    """Of one plane and R rows of places: the maximum of 3 x 3 cells, and the winners of its row and of the plane."""
    tops = ()
    cells = ()
    for i in tl.static_range(R + 2):
        taps = word_taps(x, rows[i], at, 3, 1, 1, X, LINE, KIND)
        top = largest(taps[0], taps[1], taps[2], KIND)
        if i > 0 and i <= R:
            miss = unlike(top, taps[0], KIND)
            cells = cells + (_joined_bits(fixed, miss, unlike(top, taps[1], KIND), 64, 64 | 128, KIND),)
        tops = tops + (_unless(top, top_out, KIND) if i == 0 else top,)
    best = ()
    codes = ()
    for r in tl.static_range(R):
        top = largest(tops[r], tops[r + 1], tops[r + 2], KIND)
        best = best + (top,)
        miss = unlike(top, tops[r], KIND)
        code = _joined_bits(cells[r], miss, unlike(top, tops[r + 1], KIND), 8 | 16, 8 | 32, KIND)
        codes = codes + (code,)
    return best, codes


@triton.jit
def _word_rows(unit, tc, units, W, C, X: tl.constexpr, LINE: tl.constexpr, KIND: tl.constexpr):
    """Words of a row and of a place, where in a row the words of lanes begin, and bits that all their codes have."""
    if LINE:
        W = units * X
        place = unit * X
        fixed = tl.where(unit * X + tl.arange(0, X)[None, :] == 0, 64, 0)
    else:
        C = C // 2 if paired(KIND) else C
        place = unit * C + tc * X
        fixed = tl.where(unit == 0, 64 * TWICE if paired(KIND) else 64, 0)
    # The first cell of a row that begins outside is its second one again: the winner then is not the first.
    return W, C, place, fixed


@triton.jit
def _nothing_won(group, place, W, C, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr, E: tl.constexpr):
    """For R rows of lanes: codes of no winner, twice, and where in a plane of codes, four to a word, theirs are."""
    codes = ()
    rows = ()
    for r in tl.static_range(R):
        codes = codes + (tl.zeros([L, X * E // 4], tl.int32),)
        rows = rows + (((((group * R + r) * W * C + place) * E) >> 2) + tl.arange(0, X * E // 4)[None, :],)
    return codes, codes, rows


@triton.jit
def _put_last(plane, quad_rows, pending, previous, row, H):
    """Store the codes of the last plane, from `row` on: there is no window one deeper to take it as its first."""
    for r in tl.static_range(len(quad_rows)):
        whole = _with_bit(pending[r], previous[r], 4) | 0x01010101
        tl.store(plane + quad_rows[r], whole, mask=row + r < H)


@triton.jit
def stage_winners(x, y, codes, flags, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                  KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                  BEFORE: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
                  ACROSS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr, CHUNK: tl.constexpr,
                  LINE: tl.constexpr, WHOLE: tl.constexpr, EVEN: tl.constexpr):  # fmt: skip
    """The winners of all stages as bytes, and a flag of every program: is y not the maximum? Then they mean nothing.

    EVEN says that lanes have all their rows or none.
    """
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    E: tl.constexpr = 2 if paired(KIND) else 1
    k = tl.arange(0, X)[None, :]
    _W, _OW, C = lengths(units, W, OW, C, SW, X * E, ACROSS, LINE)
    W, C, place, fixed = _word_rows(unit, tc, units, W, C, X, LINE, KIND)
    pitch = H * W * C
    x = words(x, KIND) + image * D * pitch
    y = words(y, KIND) + image * D * pitch
    quads = (codes + image * D * pitch * E).to(tl.pointer_type(tl.int32), bitcast=True)
    rows, _there = span(group * R - 1, R + 2, H, W * C)
    at = word_columns(unit, tc, W, C, 3, 1, 1, X, LINE, WHOLE, KIND)
    top_out = group == 0
    lines = own_lines(x, units, tiles, tiles_c, chunks, H, W, C, R, 1, X, L, ACROSS, LINE)
    # A byte is whole when the window one deeper is: it is stored one step later, and a chunk has a window more.
    first = chunk * CHUNK
    start = tl.maximum(first - 1, 0)
    top0, _codes = _plane_winners(x + tl.maximum(start - 1, 0).to(tl.int64) * pitch, rows, at, top_out, fixed, KIND, R,
                                 X, LINE)  # fmt: skip
    top1, code1 = _plane_winners(x + start.to(tl.int64) * pitch, rows, at, top_out, fixed, KIND, R, X, LINE)
    top0 = _none_of(top0, level(start, unit) == 0, KIND)
    odd = tl.zeros([L, X], tl.int32)
    pending, previous, quad_rows = _nothing_won(group, place, W, C, R, X, L, E)
    quad_pitch = pitch * E // 4
    for i in tl.range(tl.minimum(first + CHUNK + 1, D) - start, num_stages=STAGES):
        d = start + i
        if AHEAD:  # noqa: SIM102 - one is decided at compile time
            if d + AHEAD < D:
                prefetch(x + (d + AHEAD).to(tl.int64) * pitch, lines)
                prefetch(y + (d + AHEAD).to(tl.int64) * pitch, lines)
        top2, code2 = _plane_winners(x + tl.minimum(d + 1, D - 1).to(tl.int64) * pitch, rows, at, top_out, fixed, KIND,
                                     R, X, LINE)  # fmt: skip
        # What is read once and what the next kernel reads leave room for what was prefetched.
        y_plane = y + d.to(tl.int64) * pitch
        quad_plane = quads + (d - 1).to(tl.int64) * quad_pitch
        next_pending = ()
        for r in tl.static_range(R):
            h = group * R + r
            best = largest(top0[r], top1[r], top2[r], KIND)
            given = as_word(tl.load(y_plane + (rows[r + 1] + (place + k)), eviction_policy="evict_first"), KIND)
            differs = unlike(best, given, KIND).to(tl.int32)
            odd |= differs if EVEN else differs & tl.where(h < H, -1, 0)
            miss = unlike(best, top0[r], KIND)
            code = packed(_joined_bits(code1[r], miss, unlike(best, top1[r], KIND), 1 | 2, 1 | 4, KIND), X, KIND)
            whole = _with_bit(_with_bit(pending[r], code, 1), previous[r], 4)
            keep = (h < H) & (level(d, unit) > first)
            tl.store(quad_plane + quad_rows[r], whole, mask=keep, eviction_policy="evict_first")
            next_pending = next_pending + (code,)
        top0 = carried(top1, STAGES)
        top1 = top2
        code1 = code2
        previous = carried(pending, STAGES)
        pending = next_pending
    if first + CHUNK >= D:
        _put_last(quads + tl.maximum(D - 1, 0).to(tl.int64) * quad_pitch, quad_rows, pending, previous, group * R, H)
    odd = (odd != 0) & (group * R < H)
    tl.store(flags + tl.program_id(0), tl.max(tl.max(odd.to(tl.int32), axis=1), axis=0))


@triton.jit
def _windows_of(source, at, d, D, pitch, Q: tl.constexpr, KIND: tl.constexpr):
    """The quads at `at` of the windows one deeper, of the same depth, one less deep."""
    quads = ()
    for j in tl.static_range(3):
        plane = source + nearest(d + 1 - j, D) * pitch
        quads = quads + load_quad(plane, at, Q, KIND)
    return quads


@triton.jit
def _of_each_load(given):
    """One word of each plane of windows."""
    words = ()
    for n in tl.static_range(3):
        words = words + (given[n * len(given) // 3],)
    return words


@triton.jit
def _rows_at(quads, dy, rows, there, column, d, D, pitch, Q: tl.constexpr, R: tl.constexpr, EVEN: tl.constexpr,
             KIND: tl.constexpr):  # fmt: skip
    """The codes of R + 2 rows in one column, what their windows have to give, and a word of each load but the first."""
    owns = ()
    given = ()
    loads = ()
    for j in tl.static_range(R + 2):
        at = rows[j] + column
        words = _windows_of(dy, at, d, D, pitch, Q, KIND)
        k = at + tl.arange(0, Q)[None, :]
        if EVEN and j > 0 and j <= R:
            own = tl.load(quads + k)
        else:  # Rows that are not there give nothing.
            own = tl.load(quads + k, mask=there[j], other=0x08080808)
        if j > 0:
            loads = loads + _of_each_load(words) + (own,)
        owns = owns + (own,)
        given = given + (words,)
    return owns, given, loads


@triton.jit
def _won_by_rows(owns, given, R: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr):
    """What R rows won from the windows of theirs and of the two next to them, given codes and gradients of all."""
    won = ()
    for j in tl.static_range(R + 2):
        above = won[j - 2] if j > 1 else ()
        same = won[j - 1] if j > 0 and j <= R else ()
        above, same, below = give_rows(owns[j], given[j], above, same, j < R, 4, KIND, ACC)
        won = (won[: j - 2] + (above,) if j > 1 else ()) + ((same,) if j > 0 and j <= R else ()) + (below,)
    return won


@triton.jit
def _pieces(dy, units, tiles, tiles_c, chunks, D, H, W, C, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
            ACROSS: tl.constexpr, TOUCH: tl.constexpr):  # fmt: skip
    """What a program of `stage_gather` reads in a step, in pieces: of gradients and of codes; nothing without TOUCH."""
    grads = ()
    codes = ()
    if TOUCH:
        SIZE: tl.constexpr = dy.dtype.element_ty.primitive_bitwidth // 8
        _image, _chunk, _tc, depth, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, EVERY=L)
        depth = tl.max(tl.max(depth, axis=1), axis=0)
        row = tl.max(tl.max(unit, axis=1), axis=0) * R - 1
        DEEP: tl.constexpr = L // ACROSS
        HIGH: tl.constexpr = ACROSS * R + 2
        grads = tile_pieces(depth - 1, DEEP + 2, D, H * W * C, row, HIGH, H, W * C, X, SIZE, L * X // 4)
        codes = tile_pieces(depth, DEEP, D, H * W * C, row, HIGH, H, W * C, X, 1, L * X // 4)
    return grads, codes


@triton.jit
def stage_gather(codes, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                 KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                 BEFORE: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr,
                 L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr, AHEAD: tl.constexpr, CHUNK: tl.constexpr,
                 LINE: tl.constexpr, WHOLE: tl.constexpr, EVEN: tl.constexpr, TOGETHER: tl.constexpr,
                 TOUCH: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """dx from the winners of all stages, channels last. A lane is R rows of one depth and walks along width.

    EVEN says that lanes have all their rows or none; so many steps are prefetched TOGETHER. With TOUCH the next step is
    loaded into the first-level cache before this one is done.
    """
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    image, chunk, tc, d, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    _W, _OW, C = lengths(units, W, OW, C, SW, X, ACROSS, LINE)
    Q: tl.constexpr = X // 4
    pitch = H * W * C
    at_d = tl.minimum(d, D - 1).to(tl.int64) * pitch
    dx += image * D * pitch + at_d
    codes += image * D * pitch
    quads = (codes + at_d).to(tl.pointer_type(tl.int32), bitcast=True)
    dy += image * D * pitch
    # To cache lines, depths are rows and rows are places.
    row_pitch = (W * C).to(tl.int64)
    dy_lines = own_lines(dy, units, tiles, tiles_c, chunks, D, H, row_pitch, 1, R, X * TOGETHER, L, ACROSS, False)
    code_lines = own_lines(codes, units, tiles, tiles_c, chunks, D, H, row_pitch, 1, R, X * TOGETHER, L, ACROSS, False)
    rows, there = span(unit * R - 1, R + 2, H, W * (C // 4))
    nothing = nothing_like(unit)
    none = tl.zeros([L, Q], ACC)
    done = ()
    for _r in tl.static_range(R):
        done = done + ((none, none, none, none),)
    soon = done
    first = chunk * CHUNK
    start = tl.maximum(first - 1, 0)
    dy_pieces, code_pieces = _pieces(dy, units, tiles, tiles_c, chunks, D, H, W, C, R, X, L, ACROSS, TOUCH)
    zero = nothing_like(tl.arange(0, L * Q))
    dy_touched = (zero,) * len(dy_pieces)
    codes_touched = (zero,) * len(code_pieces)
    for i in tl.range(tl.minimum(first + CHUNK + 1, W) - start, num_stages=STAGES):
        w = start + i
        column = w * (C // 4) + tc * Q
        if AHEAD:  # noqa: SIM102 - one is decided at compile time
            if (w % TOGETHER == 0) & (w + AHEAD + TOGETHER <= W):
                prefetch(dy + (w + AHEAD) * C, dy_lines)
                prefetch(codes + (w + AHEAD) * C, code_lines)
        near = tl.minimum(w + 1, W - 1) * C + tc * X
        dy_touched = touch(dy + near, dy_pieces, dy_touched, zero)
        codes_touched = touch(codes + near, code_pieces, codes_touched, zero)
        owns, given, loads = _rows_at(quads, dy, rows, there, column, d, D, pitch, Q, R, EVEN, KIND)
        if STAGES == 1 and not by_steps(ACC):
            owns = (waiting_for(owns[0], loads, nothing),) + owns[1:]
        won = _won_by_rows(owns, given, R, KIND, ACC)
        next_done = ()
        next_soon = ()
        for r in tl.static_range(R):
            cell, now, later = give_cells(owns[r + 1], won[r], done[r], soon[r], ACC)
            keep = there[r + 1] & (d < D) & (level(w, unit) > first)
            put_quad(dx, rows[r + 1] + column - C // 4, cell, keep, Q)
            next_done = next_done + (now,)
            next_soon = next_soon + (later,)
        done = next_done
        soon = next_soon
    touched(dy_touched)
    touched(codes_touched)
    if first + CHUNK >= W:
        for r in tl.static_range(R):
            put_quad(dx, rows[r + 1] + (W - 1) * (C // 4) + tc * Q, done[r], there[r + 1] & (d < D), Q)


@triton.jit
def _line_at(codes, dy, h, unit, units, d, D, H, pitch, Q: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr):
    """The codes of lines in row h, what their windows have to give, and both of the two places next to a line.

    A row past the end gives nothing, nor does a place that is not there.
    """
    row = tl.minimum(h, H - 1) * units + unit
    real = level(h, unit) < H
    quads = codes.to(tl.pointer_type(tl.int32), bitcast=True)
    own = tl.load(quads + (row * Q + tl.arange(0, Q)[None, :]), mask=real, other=0x09090909)
    has_left = unit > 0
    has_right = unit < units - 1
    left = tl.where(has_left, row * (4 * Q) - 1, row * (4 * Q))
    right = tl.where(has_right, row * (4 * Q) + 4 * Q, row * (4 * Q))
    end_own = tl.load(codes + left, mask=has_left & real, other=9).to(tl.int32)
    end_own |= tl.load(codes + right, mask=has_right & real, other=9).to(tl.int32) << 8
    ends = ()
    for j in tl.static_range(3):
        plane = dy + nearest(d + 1 - j, D) * pitch
        ends = ends + (tl.load(plane + left).to(ACC), tl.load(plane + right).to(ACC))
    return own, _windows_of(dy, row * Q, d, D, pitch, Q, KIND), end_own, ends


@triton.jit
def stage_gather_lines(codes, dy, dx, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks,
                       KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                       SW: tl.constexpr, BEFORE: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr,
                       X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr,
                       AHEAD: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
                       WHOLE: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """dx from the winners of all stages, one channel. A lane is a line of one depth and walks along height.

    It takes R rows at a time: short rows lie next to each other, and memory likes to be asked for them together.
    """
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()
    image, chunk, _tc, d, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, REVERSED=True)
    Q: tl.constexpr = X // 4
    W = units * X
    pitch = H * W
    at_d = tl.minimum(d, D - 1).to(tl.int64) * pitch
    dx += image * D * pitch + at_d
    all_codes = codes + image * D * pitch
    codes = all_codes + at_d
    dy += image * D * pitch
    plane = pitch.to(tl.int64)  # To cache lines, depths are rows.
    SIZE: tl.constexpr = dy.dtype.element_ty.primitive_bitwidth // 8
    lines = own_lines(dy, units, tiles, tiles_c, chunks, D, plane, 1, 1, 1, X, L, ACROSS, True, REVERSED=True) // SIZE
    steps = tl.arange(0, R)[None, :]
    nothing = nothing_like(unit)
    none = tl.zeros([L, Q], ACC)
    done = (none, none, none, none)
    soon = done
    cells = tl.zeros([L, Q], tl.int32)
    end_done = (tl.zeros([L, 1], ACC), tl.zeros([L, 1], ACC))
    end_soon = end_done
    end_cells = tl.zeros([L, 1], tl.int32)
    first = chunk * CHUNK
    last = tl.minimum(first + CHUNK, H)
    start = tl.maximum(first - 1, 0)
    for i in tl.range((last - start + R) // R, num_stages=STAGES):
        if AHEAD:
            soon_lines = lines + tl.minimum(start + (i + AHEAD) * R + steps, H - 1) * W
            prefetch(dy, soon_lines * SIZE)
            prefetch(all_codes, soon_lines)
        held = ()
        loads = ()
        for r in tl.static_range(R):
            line = _line_at(codes, dy, start + i * R + r, unit, units, d, D, H, pitch, Q, KIND, ACC)
            loads = loads + _of_each_load(line[1]) + line[3] + (line[2],)
            if r > 0:
                loads = loads + (line[0],)
            held = held + (line,)
        for r in tl.static_range(R):
            own, given, end_own, end_given = held[r]
            if r == 0 and STAGES == 1 and not by_steps(ACC):
                own = waiting_for(own, loads, nothing)
            won, done, soon = give_rows(own, given, done, soon, True, 4, KIND, ACC)
            end_won, end_done, end_soon = give_rows(end_own, end_given, end_done, end_soon, True, 2, ACC, ACC)
            line_cells = give_line(cells, won, end_won, end_cells, Q, ACC)
            h = start + i * R + r
            keep = (d < D) & (level(h, unit) > first) & (level(h, unit) <= last)
            put_quad(dx, ((h - 1) * units + unit) * Q, line_cells, keep, Q)
            cells = own
            end_cells = end_own
