# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""MaxPool3DGrad of windows 3 x 3 x 3 with stride 1 and SAME padding, axis by axis.

The maximum of a window is that of three plane maxima, each of three row maxima, each of three cells, and neighbouring
windows share planes and rows. So the way back goes axis by axis as well, three questions each, nine instead of 27: what
windows gave to a plane goes to the row that won there, and then to the cell that won in the row. One byte per place
holds the winners: bit 0 that it is not the first plane of its window, 1 that it is the second, 2 the third; bits 3 to 5
so the row of its plane; bits 6 and 7 that it is the second or third cell of its row.

On the way back four bytes are one word, and with it go four gradients (a quad), each a block of its own: a question is
one bit of the word, and the answer for a window that is not there is no, because the bits asked for are none.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_common import inside, level
from voxgrad.kernels.cuda.pool_lanes import ahead, behind, depth_there, span, spot, word_columns, word_taps
from voxgrad.kernels.cuda.pool_words import (
    TWICE,
    all_bits,
    as_word,
    carried,
    halves,
    largest,
    paired,
    put_bytes,
    unlike,
    words,
)


@triton.jit
def _code(first, second, third, low, TWO: tl.constexpr, THREE: tl.constexpr, KIND: tl.constexpr):
    """The largest of three and a code for which, 0 for the first; of equals the first.

    Where `low`, the first repeats the second, and is not meant.
    """
    top = largest(first, second, third, KIND)
    if paired(KIND):
        other = unlike(top, second, KIND)
        code = (unlike(top, first, KIND) | low) & ((other & (THREE * TWICE)) | (~other & (TWO * TWICE)))
    else:
        code = tl.where(unlike(top, second, KIND), THREE, TWO)
        code = tl.where(unlike(top, first, KIND) | (low != 0), code, 0)
    return top, code


@triton.jit
def _plane_winners(x, rows, at, low_h, low_w, KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, LINE: tl.constexpr):
    """Of one plane and R rows of places: the maximum of 3 x 3 cells, and the winners of its row and of the plane."""
    tops = ()
    cells = ()
    for i in tl.static_range(R + 2):
        taps = word_taps(x, rows[i], at, 3, 1, 1, X, LINE, KIND)
        top, cell = _code(taps[0], taps[1], taps[2], low_w, 64, 128, KIND)
        tops = tops + (top,)
        cells = cells + (cell,)
    best = ()
    codes = ()
    for r in tl.static_range(R):
        top, row = _code(tops[r], tops[r + 1], tops[r + 2], low_h[r], 8 | 16, 8 | 32, KIND)
        best = best + (top,)
        codes = codes + (cells[r + 1] | row,)
    return best, codes


@triton.jit
def stage_winners(x, y, codes, flag, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                  KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                  BEFORE: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
                  ACROSS: tl.constexpr, STAGES: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
                  WHOLE: tl.constexpr):  # fmt: skip
    """The winners of all stages as bytes; a flag where y is not the maximum: then they mean nothing."""
    image, chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    E: tl.constexpr = 2 if paired(KIND) else 1
    k = tl.arange(0, X)[None, :]
    if LINE:
        W = units * X
        place = unit * X
        # Of a pair at the edge only the first number is there.
        low_w = tl.where(unit * X + k == 0, 65535, 0)
    else:
        C = C // E
        place = unit * C + tc * X
        low_w = tl.where(unit == 0, -1, 0)
    pitch = H * W * C
    x = words(x, KIND) + image * D * pitch
    y = words(y, KIND) + image * D * pitch
    codes += image * D * pitch * E
    rows, _there = span(group * R - 1, R + 2, H, W * C)
    at = word_columns(unit, tc, W, C, 3, 1, 1, X, LINE, WHOLE, KIND)
    low_h = ()
    for r in tl.static_range(R):
        low_h = low_h + (tl.where(group * R + r == 0, -1, 0),)
    first = chunk * CHUNK
    top0, _codes = _plane_winners(x + tl.maximum(first - 1, 0).to(tl.int64) * pitch, rows, at, low_h, low_w, KIND, R, X,
                                 LINE)  # fmt: skip
    top1, code1 = _plane_winners(x + first.to(tl.int64) * pitch, rows, at, low_h, low_w, KIND, R, X, LINE)
    odd = tl.zeros([L, X], tl.int32)
    for i in tl.range(CHUNK, num_stages=STAGES):
        d = first + i
        top2, code2 = _plane_winners(x + tl.minimum(d + 1, D - 1).to(tl.int64) * pitch, rows, at, low_h, low_w, KIND, R,
                                     X, LINE)  # fmt: skip
        low_d = tl.where(level(d, unit) == 0, -1, 0)
        for r in tl.static_range(R):
            best, plane = _code(top0[r], top1[r], top2[r], low_d, 1 | 2, 1 | 4, KIND)
            h = group * R + r
            keep = (h < H) & depth_there(d, group, D)
            to = d.to(tl.int64) * pitch + (h * W * C + place)
            given = as_word(tl.load(y + (to + k), mask=keep, other=0), KIND)
            odd |= unlike(best, given, KIND).to(tl.int32) & tl.where(keep, -1, 0)
            put_bytes(codes, to, code1[r] | plane, keep, keep, X, KIND)
        top0 = carried(top1, STAGES)
        top1 = top2
        code1 = code2
    if tl.max(tl.max((odd != 0).to(tl.int32), axis=1), axis=0) > 0:
        tl.store(flag, 1)


@triton.jit
def _quad(source, at, Q: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr):
    """Q quads of gradients from the one at `at` on, four blocks [L, Q]."""
    if paired(KIND):
        both = tl.load(source.to(tl.pointer_type(tl.int32), bitcast=True) + (at * 2 + tl.arange(0, 2 * Q)[None, :]))
        word, later = tl.split(tl.reshape(both, [both.shape[0], Q, 2]))
        a, b = halves(word, KIND)
        c, d = halves(later, KIND)
    else:
        four = tl.load(source + (at * 4 + tl.arange(0, 4 * Q)[None, :])).to(ACC)
        even, odd = tl.split(tl.reshape(four, [four.shape[0], 2 * Q, 2]))
        a, c = tl.split(tl.reshape(even, [four.shape[0], Q, 2]))
        b, d = tl.split(tl.reshape(odd, [four.shape[0], Q, 2]))
    return a, b, c, d


@triton.jit
def _put_quad(target, at, quad, mask, Q: tl.constexpr):
    """Store Q quads from the one at `at` on."""
    TYPE: tl.constexpr = target.dtype.element_ty
    L: tl.constexpr = quad[0].shape[0]
    even = tl.reshape(tl.join(quad[0].to(TYPE), quad[2].to(TYPE)), [L, 2 * Q])
    odd = tl.reshape(tl.join(quad[1].to(TYPE), quad[3].to(TYPE)), [L, 2 * Q])
    four = tl.reshape(tl.join(even, odd), [L, 4 * Q])
    tl.store(target + (at * 4 + tl.arange(0, 4 * Q)[None, :]), four, mask=mask)


@triton.jit
def _asked(code, bits, BIT: tl.constexpr, BYTE: tl.constexpr):
    """Has this byte of the code the BIT, or for a negative one none of its bits? No where it is not asked for."""
    # As a signed number, so that the type stays int32.
    ONE: tl.constexpr = (((BIT if BIT > 0 else -BIT) << 8 * BYTE) ^ 0x80000000) - 0x80000000
    if BIT == -192:
        answer = (code & ONE) == 0
    elif BIT < 0:
        answer = (~code & bits & ONE) != 0
    else:
        answer = (code & bits & ONE) != 0
    return answer


@triton.jit
def _share(quad, code, bits, BIT: tl.constexpr):
    """What each of a quad gives where its byte of the code says so."""
    made = ()
    for n in tl.static_range(len(quad)):
        made = made + (tl.where(_asked(code, bits, BIT, n), quad[n], 0.0),)
    return made


@triton.jit
def _gain(quad, more, code, bits, BIT: tl.constexpr):
    """A quad plus what each of another gives where its byte of the code says so."""
    made = ()
    for n in tl.static_range(len(quad)):
        made = made + (tl.where(_asked(code, bits, BIT, n), quad[n] + more[n], quad[n]),)
    return made


@triton.jit
def _windows_of(source, d, D, pitch):
    """The planes of the windows one deeper, of the same depth, one less deep: they took planes 0, 1, 2 to get to d."""
    made = ()
    for j in tl.static_range(3):
        made = made + (source + tl.minimum(tl.maximum(d + 1 - j, 0), D - 1).to(tl.int64) * pitch,)
    return made


@triton.jit
def _bits_of(d, D):
    """The bits to ask of these windows: none of one that is not there."""
    return (
        all_bits(inside(d + 1, D) & (d < D)),
        all_bits(d < D),
        all_bits(inside(d - 1, D) & (d < D)),
    )


@triton.jit
def _won_here(codes, grads, bits, at, Q: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr):
    """What the quads from the one at `at` on got from the windows of three planes, and their own code."""
    k = at + tl.arange(0, Q)[None, :]
    sums = _share(_quad(grads[0], at, Q, KIND, ACC), tl.load(codes[0] + k), bits[0], -1)
    own = tl.load(codes[1] + k)
    sums = _gain(sums, _quad(grads[1], at, Q, KIND, ACC), own, bits[1], 2)
    sums = _gain(sums, _quad(grads[2], at, Q, KIND, ACC), tl.load(codes[2] + k), bits[2], 4)
    return sums, own


@triton.jit
def stage_gather(codes, dy, dx, flag, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks, KD: tl.constexpr,
                 KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
                 BEFORE: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr, X: tl.constexpr,
                 L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr, CHUNK: tl.constexpr, LINE: tl.constexpr,
                 WHOLE: tl.constexpr):  # fmt: skip
    """dx from the winners of all stages, channels last. A lane is R rows of one depth and walks along width."""
    image, chunk, tc, d, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    Q: tl.constexpr = X // 4
    pitch = H * W * C
    dx += image * D * pitch + tl.minimum(d, D - 1).to(tl.int64) * pitch
    quads = (codes + image * D * pitch).to(tl.pointer_type(tl.int32), bitcast=True)
    code_planes = _windows_of(quads, d, D, pitch // 4)
    grad_planes = _windows_of(dy + image * D * pitch, d, D, pitch)
    there = _bits_of(d, D)
    first = chunk * CHUNK
    rows, inside_rows = span(unit * R - 1, R + 2, H, W * (C // 4))
    row_bits = ()
    for at_row in tl.static_range(R + 2):
        row_bits = row_bits + (all_bits(inside_rows[at_row]),)
    none = tl.zeros([L, Q], ACC)
    done = ()
    for _r in tl.static_range(R):
        done = done + ((none, none, none, none),)
    soon = done
    if tl.load(flag) == 0:
        for i in tl.range(-1, CHUNK + 1, num_stages=STAGES):
            w = first + i
            column = tl.minimum(tl.maximum(w, 0), W - 1) * (C // 4) + tc * Q
            here = tl.where(inside(level(w, unit), W), -1, 0)
            bits = (there[0] & here, there[1] & here, there[2] & here)
            sums = ()
            owns = ()
            for at_row in tl.static_range(R + 2):
                won, own = _won_here(code_planes, grad_planes, bits, rows[at_row] + column, Q, KIND, ACC)
                sums = sums + (won,)
                owns = owns + (own,)
            next_done = ()
            next_soon = ()
            for r in tl.static_range(R):
                won = _share(sums[r + 2], owns[r + 2], row_bits[r + 2], -8)
                won = _gain(won, sums[r + 1], owns[r + 1], -1, 16)
                won = _gain(won, sums[r], owns[r], row_bits[r], 32)
                cell = _gain(done[r], won, owns[r + 1], -1, -192)
                keep = inside_rows[r + 1] & (d < D) & (level(w, unit) <= W) & (level(i, unit) > 0)
                _put_quad(dx, rows[r + 1] + (w - 1) * (C // 4) + tc * Q, cell, keep, Q)
                next_done = next_done + (_gain(soon[r], won, owns[r + 1], -1, 64),)
                next_soon = next_soon + (_share(won, owns[r + 1], -1, 128),)
            done = next_done
            soon = next_soon


@triton.jit
def _end(codes, grads, bits, at, there, ACC: tl.constexpr):
    """`_won_here` of the one place next to a line, if it is `there`, as a quad of one; codes are bytes."""
    at = tl.maximum(at, 0)
    own = tl.load(codes[1] + at).to(tl.int32)
    sums = _share((tl.load(grads[1] + at).to(ACC),), own, bits[1] & there, 2)
    below = tl.load(codes[0] + at).to(tl.int32)
    sums = _gain(sums, (tl.load(grads[0] + at).to(ACC),), below, bits[0] & there, -1)
    above = tl.load(codes[2] + at).to(tl.int32)
    return _gain(sums, (tl.load(grads[2] + at).to(ACC),), above, bits[2] & there, 4), own


@triton.jit
def _next_row(done, soon, won, own):
    """The sums of a row that is done, and those that go on, after what its windows won."""
    return _gain(done, won, own, -1, -8), _gain(soon, won, own, -1, 16), _share(won, own, -1, 32)


@triton.jit
def stage_gather_lines(codes, dy, dx, flag, D, H, W, C, OD, OH, OW, bd, bh, units, tiles, tiles_c, chunks,
                       KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr,
                       SW: tl.constexpr, BEFORE: tl.constexpr, KIND: tl.constexpr, ACC: tl.constexpr, R: tl.constexpr,
                       X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, STAGES: tl.constexpr,
                       CHUNK: tl.constexpr, LINE: tl.constexpr, WHOLE: tl.constexpr):  # fmt: skip
    """dx from the winners of all stages, one channel. A lane is a line of one depth and walks along height."""
    image, chunk, _tc, d, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS)
    Q: tl.constexpr = X // 4
    W = units * X
    pitch = H * W
    dx += image * D * pitch + tl.minimum(d, D - 1).to(tl.int64) * pitch
    byte_planes = _windows_of(codes + image * D * pitch, d, D, pitch)
    quads = (codes + image * D * pitch).to(tl.pointer_type(tl.int32), bitcast=True)
    code_planes = _windows_of(quads, d, D, pitch // 4)
    grad_planes = _windows_of(dy + image * D * pitch, d, D, pitch)
    there = _bits_of(d, D)
    first = chunk * CHUNK
    none = tl.zeros([L, Q], ACC)
    done = (none, none, none, none)
    soon = done
    cells = tl.zeros([L, Q], tl.int32)
    not_first = all_bits(unit > 0)
    not_last = all_bits(unit < units - 1)
    step = tl.where(unit < units - 1, X, 0)
    left_done = (tl.zeros([L, 1], ACC),)
    left_soon = left_done
    left_cell = tl.zeros([L, 1], tl.int32)
    right_done = left_done
    right_soon = left_done
    right_cell = left_cell
    if tl.load(flag) == 0:
        for i in tl.range(-1, CHUNK + 1, num_stages=STAGES):
            h = first + i
            row = tl.minimum(tl.maximum(h, 0), H - 1) * units + unit
            here = tl.where(inside(level(h, unit), H), -1, 0)
            bits = (there[0] & here, there[1] & here, there[2] & here)
            won, own = _won_here(code_planes, grad_planes, bits, row * Q, Q, KIND, ACC)
            left_won, left_own = _end(byte_planes, grad_planes, bits, row * X - 1, not_first, ACC)
            right_won, right_own = _end(byte_planes, grad_planes, bits, row * X + step, not_last, ACC)
            sums, done, soon = _next_row(done, soon, won, own)
            left, left_done, left_soon = _next_row(left_done, left_soon, left_won, left_own)
            right, right_done, right_soon = _next_row(right_done, right_soon, right_won, right_own)
            firsts = _share(sums, cells, -1, -192)
            seconds = _share(sums, cells, -1, 64)
            thirds = _share(sums, cells, -1, 128)
            before = behind(thirds[3], _share(left, left_cell, -1, 128)[0], Q)
            after = ahead(firsts[0], _share(right, right_cell, -1, -192)[0], Q)
            made = (
                seconds[0] + before + firsts[1],
                seconds[1] + thirds[0] + firsts[2],
                seconds[2] + thirds[1] + firsts[3],
                seconds[3] + thirds[2] + after,
            )
            keep = (d < D) & (level(h, unit) <= H) & (level(i, unit) > 0)
            _put_quad(dx, ((h - 1) * units + unit) * Q, made, keep, Q)
            cells = own
            left_cell = left_own
            right_cell = right_own
