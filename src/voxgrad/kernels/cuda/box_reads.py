# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM108 - Triton: capitals are compile-time constants, and so are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""What kernels that read boxes are made of: the boxes of a source, a filter or a gradient, their products, the stores.

A tensor core takes its left operand from registers or from shared memory, its right one from shared memory alone. Of a
box, Triton makes a left operand in registers, and loads the next one while products that read it may be under way: see
`settled`. A right operand is the box where it lies. So where there are 64 columns or more, which is the number of rows
that tensor cores want, the product may be turned over (ACROSS): columns are its rows and positions its columns.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_parts import BF16X6, ONE, WIDEN, products

_LIFT = tl.constexpr(2**20)
"""Added before a division, so that what lies before an axis is not rounded towards it."""


@triton.jit
def tile_of(block, tiles_w, tiles_h, tiles_d, BW: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    """The first position of a tile in width, height and depth, and what is left of the program's number."""
    x = block % tiles_w * BW
    block = block // tiles_w
    y = block % tiles_h * BH
    block = block // tiles_h
    return x, y, block % tiles_d * BD, block // tiles_d


@triton.jit
def positions_of(x, y, z, BD: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    """Depth, height and width of every position of a tile that begins at x, y, z."""
    m = tl.arange(0, BD * BH * BW)
    return z + m // (BW * BH), y + m // BW % BH, x + m % BW


@triton.jit
def phase_of(f, b, K: tl.constexpr, S: tl.constexpr):
    """Of the cells that tap f reaches first: their remainder, the window that reads cell 0 with it, and their taps."""
    r = (f + K * S - b) % S
    return r, (r + b - f) // S, (K - f + S - 1) // S


@triton.jit
def next_step(c, t_d, t_h, t_w, n_h, n_w, CI, BK: tl.constexpr):
    """The block of channels and the tap after these. Counted, as divisions take longer than a step of the product."""
    c += BK
    roll = (c == CI).to(tl.int32)
    c -= roll * CI
    t_w += roll
    roll = (t_w == n_w).to(tl.int32)
    t_w -= roll * n_w
    t_h += roll
    roll = (t_h == n_h).to(tl.int32)
    t_h -= roll * n_h
    return c, t_d + roll, t_h, t_w


@triton.jit
def settled(x, SETTLE: tl.constexpr):
    """x, once no product is under way any more: what comes next may load registers that they read."""
    if SETTLE and not WIDEN:
        x = tl.inline_asm_elementwise(
            "wgmma.wait_group.sync.aligned 0; mov.b32 $0, $1;", "=r,r", [x], tl.int32, False, 1
        )
    return x


@triton.jit
def cells(src, part, image, images, depth, d, h, v, c, CI: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
          FLAT: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """A box of the source that begins at a cell, as a matrix of positions and channels."""
    at = part * images + image
    if FLAT:
        plane = tl.where((d >= 0) & (d < depth), at * depth + d, -1)
        up = h + S_H * _LIFT
        left = v + S_W * _LIFT
        box = src.load([plane, up // S_H - _LIFT, up % S_H, left // S_W - _LIFT, left % S_W * CI + c])
    else:
        box = src.load([at, d, h, v, c])
    return box.reshape(BM, BK)


@triton.jit
def taps(w, part, tap, c, column, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, FORWARD: tl.constexpr,
         TURNED: tl.constexpr):  # fmt: skip
    """The filter of one tap from a block of source channels to a block of output channels."""
    if FORWARD and TURNED:
        block = tl.trans(w.load([part * CO + column, tap * CI + c]))
    elif FORWARD:
        block = w.load([(part * TAPS + tap) * CI + c, column])
    elif TURNED:
        block = w.load([part * CI + c, tap * CO + column])
    else:
        block = tl.trans(w.load([(part * TAPS + tap) * CO + column, c]))
    return block


@triton.jit
def all_cells(src, image, images, depth, d, h, v, c, CI: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
              FLAT: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    """The parts of a box that HOW asks for; the others are copies that nobody reads."""
    first = cells(src, 0, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    second = first
    third = first
    if HOW != ONE:
        second = cells(src, 1, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    if HOW == BF16X6:
        third = cells(src, 2, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    return first, second, third


@triton.jit
def all_taps(w, tap, c, column, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, FORWARD: tl.constexpr,
             TURNED: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    """The parts of a filter that HOW asks for."""
    first = taps(w, 0, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    second = first
    third = first
    if HOW != ONE:
        second = taps(w, 1, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    if HOW == BF16X6:
        third = taps(w, 2, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    return first, second, third


@triton.jit
def all_lines(lines, at, rows, column, HOW: tl.constexpr):
    """The parts of a block of a matrix of positions and channels, turned over."""
    first = tl.trans(lines.load([at, column]))
    second = first
    third = first
    if HOW != ONE:
        second = tl.trans(lines.load([rows + at, column]))
    if HOW == BF16X6:
        third = tl.trans(lines.load([2 * rows + at, column]))
    return first, second, third


@triton.jit
def spread_rows(rows):
    """A matrix of float64 with the even ones of every eight rows first.

    Tensor cores take float64 from registers, and half a warp loads 32 bytes of each of four rows at once. The copy
    engine shuffles a box by pairs of its rows, of 128 bytes each: of four rows next to each other, two share banks.
    """
    return rows.reshape(rows.shape[0] // 8, 4, 2, rows.shape[1]).permute(0, 2, 1, 3).reshape(rows.shape)


@triton.jit
def spread(a, b, STANDING: tl.constexpr):
    """Both operands of a product of float64, their positions and columns in an order in which loads share no banks.

    The inner index of a lies last in memory, and so does that of b if STANDING. Else columns do, of which half a warp
    loads four from each of four rows: two, and two that are 64 bytes further.
    """
    if STANDING:
        b = tl.trans(spread_rows(tl.trans(b)))
    else:
        b = b.reshape(b.shape[0], b.shape[1] // 16, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(b.shape)
    return spread_rows(a), b


@triton.jit
def gathered(acc, STANDING: tl.constexpr):
    """The product of what was `spread`, its positions and columns in their own order again."""
    acc = acc.reshape(acc.shape[0] // 8, 2, 4, acc.shape[1]).permute(0, 2, 1, 3).reshape(acc.shape)
    if STANDING:
        acc = acc.reshape(acc.shape[0], acc.shape[1] // 8, 2, 4).permute(0, 1, 3, 2).reshape(acc.shape)
    else:
        acc = acc.reshape(acc.shape[0], acc.shape[1] // 16, 4, 2, 2).permute(0, 1, 3, 2, 4).reshape(acc.shape)
    return acc


@triton.jit
def zeros(BM: tl.constexpr, BN: tl.constexpr, ACROSS: tl.constexpr, ACC: tl.constexpr):
    """Zeros for a tile of BM positions and BN columns."""
    if ACROSS:
        block = tl.zeros([BN, BM], ACC)
    else:
        block = tl.zeros([BM, BN], ACC)
    return block


@triton.jit
def multiplied(a, a1, a2, b, b1, b2, acc, low, ACROSS: tl.constexpr, HOW: tl.constexpr):
    """`products`, turned over where ACROSS."""
    if ACROSS:
        acc, low = products(tl.trans(b), tl.trans(b1), tl.trans(b2), tl.trans(a), tl.trans(a1), tl.trans(a2), acc, low,
                            HOW)  # fmt: skip
    else:
        acc, low = products(a, a1, a2, b, b1, b2, acc, low, HOW)
    return acc, low


@triton.jit
def upright(acc, ACROSS: tl.constexpr):
    """A tile with its positions as rows."""
    if ACROSS:
        acc = tl.trans(acc)
    return acc


@triton.jit
def put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask, CO: tl.constexpr, BN: tl.constexpr):
    """Store a tile at its cells."""
    to = image.to(tl.int64) * o_n + q_d.to(tl.int64) * o_d + q_h.to(tl.int64) * o_h + q_w * o_w
    co = column + tl.arange(0, BN)
    at = to[:, None] + (co.to(tl.int64) * o_c)[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=mask[:, None] & (co < CO)[None, :])
