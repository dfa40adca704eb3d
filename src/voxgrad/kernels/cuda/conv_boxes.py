# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM102, SIM108, SIM109 - Triton: capitals are compile-time constants, and so are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False, disable-error-code=assignment
"""Convolutions that read boxes: the copy engine of a GPU fetches a box of cells and fills in zeros past the border.

A tile of outputs is a box of positions, so what one tap reads is a box as well, at other coordinates. Nothing of it is
computed by threads: no addresses, no masks. With strides the axes of the source are taken apart into (cell / stride,
cell % stride), which is the same memory seen with more axes.

A tensor core takes its left operand from registers or from shared memory, its right one from shared memory alone. Of a
box, Triton makes a left operand in registers, and loads the next one while products that read it may be under way: see
`_settled`. A right operand is the box where it lies. So where there are 64 columns or more, which is the number of rows
that tensor cores want, the product may be turned over (ACROSS): columns are its rows and positions its columns.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_gemm import moved
from voxgrad.kernels.cuda.conv_parts import HALVES, ONE, THIRDS, WIDEN, dot, leaves, products, whole

_LIFT = tl.constexpr(2**20)
"""Added before a division, so that what lies before an axis is not rounded towards it."""


@triton.jit
def _cells(src, part, image, images, depth, d, h, v, c, CI: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
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
def _next(c, t_d, t_h, t_w, n_h, n_w, CI, BK: tl.constexpr):
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
def _phase(f, b, K: tl.constexpr, S: tl.constexpr):
    """Of the cells that tap f reaches first: their remainder, the window that reads cell 0 with it, and their taps."""
    r = (f + K * S - b) % S
    return r, (r + b - f) // S, (K - f + S - 1) // S


@triton.jit
def _put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask, CO: tl.constexpr, BN: tl.constexpr):
    """Store a tile at its cells."""
    to = image.to(tl.int64) * o_n + q_d.to(tl.int64) * o_d + q_h.to(tl.int64) * o_h + q_w * o_w
    co = column + tl.arange(0, BN)
    at = to[:, None] + (co.to(tl.int64) * o_c)[None, :]
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=mask[:, None] & (co < CO)[None, :])


@triton.jit
def _taps(w, part, tap, c, column, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, FORWARD: tl.constexpr,
          TURNED: tl.constexpr):  # fmt: skip
    """The filter of one tap from a block of source channels to a block of output channels."""
    if FORWARD and TURNED:
        found = tl.trans(w.load([part * CO + column, tap * CI + c]))
    elif FORWARD:
        found = w.load([(part * TAPS + tap) * CI + c, column])
    elif TURNED:
        found = w.load([part * CI + c, tap * CO + column])
    else:
        found = tl.trans(w.load([(part * TAPS + tap) * CO + column, c]))
    return found


@triton.jit
def _tile(block, tiles_w, tiles_h, tiles_d, BW: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    """The first position of a tile in width, height and depth, and what is left of the program's number."""
    x = block % tiles_w * BW
    block = block // tiles_w
    y = block % tiles_h * BH
    block = block // tiles_h
    return x, y, block % tiles_d * BD, block // tiles_d


@triton.jit
def _settled(x, SETTLE: tl.constexpr):
    """x, once no product is under way any more: what comes next may load registers that they read."""
    if SETTLE and not WIDEN:
        x = tl.inline_asm_elementwise(
            "wgmma.wait_group.sync.aligned 0; mov.b32 $0, $1;", "=r,r", [x], tl.int32, False, 1
        )
    return x


@triton.jit
def _all_cells(src, image, images, depth, d, h, v, c, CI: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
               FLAT: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    """The parts of a box that HOW asks for; the others are copies that nobody reads."""
    first = _cells(src, 0, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    second = first
    third = first
    if HOW != ONE:
        second = _cells(src, 1, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    if HOW == THIRDS:
        third = _cells(src, 2, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK)
    return first, second, third


@triton.jit
def _all_taps(w, tap, c, column, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, FORWARD: tl.constexpr,
              TURNED: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    """The parts of a filter that HOW asks for."""
    first = _taps(w, 0, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    second = first
    third = first
    if HOW != ONE:
        second = _taps(w, 1, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    if HOW == THIRDS:
        third = _taps(w, 2, tap, c, column, CI, CO, TAPS, FORWARD, TURNED)
    return first, second, third


@triton.jit
def _all_lines(lines, at, rows, column, HOW: tl.constexpr):
    """The parts of a block of a matrix of positions and channels, turned over."""
    first = tl.trans(lines.load([at, column]))
    second = first
    third = first
    if HOW != ONE:
        second = tl.trans(lines.load([rows + at, column]))
    if HOW == THIRDS:
        third = tl.trans(lines.load([2 * rows + at, column]))
    return first, second, third


@triton.jit
def _multiplied(a, a1, a2, b, b1, b2, acc, low, ACROSS: tl.constexpr, HOW: tl.constexpr):
    """`products`, turned over where ACROSS."""
    if ACROSS:
        acc, low = products(tl.trans(b), tl.trans(b1), tl.trans(b2), tl.trans(a), tl.trans(a1), tl.trans(a2), acc, low,
                            HOW)  # fmt: skip
    else:
        acc, low = products(a, a1, a2, b, b1, b2, acc, low, HOW)
    return acc, low


@triton.jit
def _sums(BM: tl.constexpr, BN: tl.constexpr, ACROSS: tl.constexpr, ACC: tl.constexpr):
    """Zeros for a tile of BM positions and BN columns."""
    if ACROSS:
        made = tl.zeros([BN, BM], ACC)
    else:
        made = tl.zeros([BM, BN], ACC)
    return made


@triton.jit
def _upright(acc, ACROSS: tl.constexpr):
    """A tile with its positions as rows."""
    if ACROSS:
        acc = tl.trans(acc)
    return acc


@triton.jit
def conv_boxes(src, w, out, guard, images, depth, e_d, e_h, e_w, b_d, b_h, b_w, o_n, o_d, o_h, o_w, o_c, tiles_d,
               tiles_h, tiles_w, column_blocks, CI: tl.constexpr, CO: tl.constexpr, K_D: tl.constexpr,
               K_H: tl.constexpr, K_W: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
               L_D: tl.constexpr, L_H: tl.constexpr, L_W: tl.constexpr, FORWARD: tl.constexpr, FLAT: tl.constexpr,
               TURNED: tl.constexpr, BD: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr, ACROSS: tl.constexpr, SETTLE: tl.constexpr, HOW: tl.constexpr,
               ACC: tl.constexpr):  # fmt: skip
    """A convolution, or its transpose phase by phase: phases with most taps first, so that the last to end are short.

    The phase of a cell is told by the first tap f that reaches it. The filter is a matrix: of (tap, source channel)
    rows, or TURNED, of rows as torch's channels_last_3d has them.
    """
    if HOW == HALVES or HOW == THIRDS:
        if leaves(guard, HOW):
            return
    BM: tl.constexpr = BD * BH * BW
    TAPS: tl.constexpr = K_D * K_H * K_W
    block = tl.program_id(0)
    column = block % column_blocks * BN
    block = block // column_blocks
    x, y, z, block = _tile(block, tiles_w, tiles_h, tiles_d, BW, BH, BD)
    image = block % images
    phase = block // images
    f_w = phase % S_W
    f_h = phase // S_W % S_H
    f_d = phase // (S_W * S_H)
    r_d, w_d, n_d = _phase(f_d, b_d, K_D, S_D)
    r_h, w_h, n_h = _phase(f_h, b_h, K_H, S_H)
    r_w, w_w, n_w = _phase(f_w, b_w, K_W, S_W)
    acc = _sums(BM, BN, ACROSS, ACC)
    low = acc
    c = phase * 0
    t_d = c
    t_h = c
    t_w = c
    # A forward convolution has phase 0 alone, but all taps.
    if FORWARD:
        n_d = c + K_D
        n_h = c + K_H
        n_w = c + K_W
    for _ in range(n_d * n_h * n_w * (CI // BK)):
        _settled(c, SETTLE)
        if FORWARD:
            tap = (t_d * K_H + t_h) * K_W + t_w
            d = z * S_D + t_d * L_D - b_d
            h = y * S_H + t_h * L_H - b_h
            v = x * S_W + t_w * L_W - b_w
        else:
            tap = ((f_d + t_d * S_D) * K_H + f_h + t_h * S_H) * K_W + f_w + t_w * S_W
            d = z + w_d - t_d * L_D
            h = y + w_h - t_h * L_H
            v = x + w_w - t_w * L_W
        a, a1, a2 = _all_cells(src, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK, HOW)
        b, b1, b2 = _all_taps(w, tap, c, column, CI, CO, TAPS, FORWARD, TURNED, HOW)
        acc, low = _multiplied(a, a1, a2, b, b1, b2, acc, low, ACROSS, HOW)
        c, t_d, t_h, t_w = _next(c, t_d, t_h, t_w, n_h, n_w, CI, BK)
    m = tl.arange(0, BM)
    q_w = x + m % BW
    q_h = y + m // BW % BH
    q_d = z + m // (BW * BH)
    if not FORWARD:
        q_w = q_w * S_W + r_w
        q_h = q_h * S_H + r_h
        q_d = q_d * S_D + r_d
    mask = (q_w < e_w) & (q_h < e_h) & (q_d < e_d)
    acc = _upright(whole(acc, low, guard, HOW), ACROSS)
    _put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask, CO, BN)


@triton.jit
def conv_box_pairs(src, w, out, images, e_d, e_h, e_w, b_d, b_h, b_w, o_n, o_d, o_h, o_w, o_c, tiles_d, tiles_h,
                   tiles_w, column_blocks, CI: tl.constexpr, CO: tl.constexpr, K_D: tl.constexpr, K_H: tl.constexpr,
                   S_D: tl.constexpr, S_H: tl.constexpr, LATE: tl.constexpr, TURNED: tl.constexpr, BD: tl.constexpr,
                   BH: tl.constexpr, BW: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACROSS: tl.constexpr,
                   SETTLE: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The transpose of a convolution with windows 3 wide and stride 2 in width, both phases of the width at once.

    Taps 0 and 2 reach the cells of one phase from windows q and q - 1, tap 1 those of the other from q, or from q - 1
    if LATE: two boxes are read for three products.
    """
    BM: tl.constexpr = BD * BH * BW
    TAPS: tl.constexpr = K_D * K_H * 3
    block = tl.program_id(0)
    column = block % column_blocks * BN
    block = block // column_blocks
    x, y, z, block = _tile(block, tiles_w, tiles_h, tiles_d, BW, BH, BD)
    image = block % images
    phase = block // images
    f_h = phase % S_H
    f_d = phase // S_H
    r_d, w_d, n_d = _phase(f_d, b_d, K_D, S_D)
    r_h, w_h, n_h = _phase(f_h, b_h, K_H, S_H)
    r_w = b_w % 2
    w_w = (r_w + b_w) // 2
    ends = _sums(BM, BN, ACROSS, ACC)
    middle = ends
    c = phase * 0
    t_d = c
    t_h = c
    t_w = c
    for _ in range(n_d * n_h * (CI // BK)):
        _settled(c, SETTLE)
        tap = ((f_d + t_d * S_D) * K_H + f_h + t_h * S_H) * 3
        d = z + w_d - t_d
        h = y + w_h - t_h
        a = _cells(src, 0, image, images, 0, d, h, x + w_w, c, CI, 1, 1, False, BM, BK)
        left = _cells(src, 0, image, images, 0, d, h, x + w_w - 1, c, CI, 1, 1, False, BM, BK)
        b = _taps(w, 0, tap, c, column, CI, CO, TAPS, False, TURNED)
        b1 = _taps(w, 0, tap + 1, c, column, CI, CO, TAPS, False, TURNED)
        b2 = _taps(w, 0, tap + 2, c, column, CI, CO, TAPS, False, TURNED)
        if ACROSS:
            ends = dot(tl.trans(b), tl.trans(a), ends)
            ends = dot(tl.trans(b2), tl.trans(left), ends)
            middle = dot(tl.trans(b1), tl.trans(left if LATE else a), middle)
        else:
            ends = dot(a, b, ends)
            ends = dot(left, b2, ends)
            middle = dot(left if LATE else a, b1, middle)
        c, t_d, t_h, t_w = _next(c, t_d, t_h, t_w, n_h, 1, CI, BK)
    m = tl.arange(0, BM)
    q_w = (x + m % BW) * 2 + r_w
    other = (x + m % BW) * 2 + 1 - r_w
    q_h = (y + m // BW % BH) * S_H + r_h
    q_d = (z + m // (BW * BH)) * S_D + r_d
    mask = (q_h < e_h) & (q_d < e_d)
    ends = _upright(ends, ACROSS)
    middle = _upright(middle, ACROSS)
    _put(ends, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask & (q_w < e_w), CO, BN)
    _put(middle, out, image, q_d, q_h, other, o_n, o_d, o_h, o_w, o_c, column, mask & (other < e_w), CO, BN)


@triton.jit
def conv_box_stack(src, w, out, images, e_d, e_h, e_w, lead_d, lead_h, lead_w, o_n, o_d, o_h, o_w, o_c, tiles_d,
                   tiles_h, tiles_w, CI: tl.constexpr, CO: tl.constexpr, K_D: tl.constexpr, K_W: tl.constexpr,
                   L_D: tl.constexpr, L_W: tl.constexpr, FORWARD: tl.constexpr, TURNED: tl.constexpr,
                   BD: tl.constexpr, BW: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SETTLE: tl.constexpr,
                   ACC: tl.constexpr):  # fmt: skip
    """Windows 3 high with stride 1 and few columns: four rows of outputs, one below the other, read six rows of cells.

    Taps go in the order of the cells; in the transpose that is from the last to the first.
    """
    BM: tl.constexpr = BD * BW
    TAPS: tl.constexpr = K_D * 3 * K_W
    SIGN: tl.constexpr = 1 if FORWARD else -1
    FIRST: tl.constexpr = 0 if FORWARD else TAPS - 1
    x, y, z, image = _tile(tl.program_id(0), tiles_w, tiles_h, tiles_d, BW, 4, BD)
    h = y + lead_h
    acc0 = tl.zeros([BM, BN], ACC)
    acc1 = acc0
    acc2 = acc0
    acc3 = acc0
    for k in range(K_D * K_W * (CI // BK)):
        _settled(k, SETTLE)
        c = k % (CI // BK) * BK
        t = k // (CI // BK)
        tap = FIRST + SIGN * (t // K_W * 3 * K_W + t % K_W)
        d = z + lead_d + t // K_W * L_D
        v = x + lead_w + t % K_W * L_W
        b0 = _taps(w, 0, tap, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        b1 = _taps(w, 0, tap + SIGN * K_W, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        b2 = _taps(w, 0, tap + SIGN * 2 * K_W, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        a = _cells(src, 0, image, images, 0, d, h, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b0, acc0)
        a = _cells(src, 0, image, images, 0, d, h + 1, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b1, acc0)
        acc1 = dot(a, b0, acc1)
        a = _cells(src, 0, image, images, 0, d, h + 2, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b2, acc0)
        acc1 = dot(a, b1, acc1)
        acc2 = dot(a, b0, acc2)
        a = _cells(src, 0, image, images, 0, d, h + 3, v, c, CI, 1, 1, False, BM, BK)
        acc1 = dot(a, b2, acc1)
        acc2 = dot(a, b1, acc2)
        acc3 = dot(a, b0, acc3)
        a = _cells(src, 0, image, images, 0, d, h + 4, v, c, CI, 1, 1, False, BM, BK)
        acc2 = dot(a, b2, acc2)
        acc3 = dot(a, b1, acc3)
        a = _cells(src, 0, image, images, 0, d, h + 5, v, c, CI, 1, 1, False, BM, BK)
        acc3 = dot(a, b2, acc3)
    m = tl.arange(0, BM)
    q_w = x + m % BW
    q_h = y + m * 0
    q_d = z + m // BW
    mask = (q_w < e_w) & (q_d < e_d)
    _put(acc0, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h < e_h), CO, BN)
    _put(acc1, out, image, q_d, q_h + 1, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 1 < e_h), CO, BN)
    _put(acc2, out, image, q_d, q_h + 2, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 2 < e_h), CO, BN)
    _put(acc3, out, image, q_d, q_h + 3, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 3 < e_h), CO, BN)


@triton.jit
def conv_box_rows(src, two, one, out, guard, images, e_d, e_h, e_w, lead_d, lead_h, lead_w, o_n, o_d, o_h, o_w, o_c,
                  tiles_d, tiles_h, tiles_w, step, CI: tl.constexpr, CO: tl.constexpr, K_D: tl.constexpr,
                  K_H: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr, BD: tl.constexpr, BH: tl.constexpr,
                  BW: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SETTLE: tl.constexpr, HOW: tl.constexpr,
                  ACC: tl.constexpr):  # fmt: skip
    """Windows 3 wide with stride 1 and few columns: a box is read once for its three width taps.

    The filters of the three taps stand side by side (`two` and `one` read the first two and the third), and only at
    the end the three sums are moved along width and added. A tile of BW cells makes `step` outputs; if these are
    fewer, the tile begins with the first cell that they need.
    """
    if HOW == HALVES or HOW == THIRDS:
        if leaves(guard, HOW):
            return
    BM: tl.constexpr = BD * BH * BW
    x, y, z, image = _tile(tl.program_id(0), tiles_w, tiles_h, tiles_d, step, BH, BD)
    begin = tl.where(step < BW, x + lead_w, 0)
    acc2 = tl.zeros([BM, 2 * BN], ACC)
    acc1 = tl.zeros([BM, BN], ACC)
    low2 = acc2
    low1 = acc1
    BLOCKS: tl.constexpr = CI // BK
    ROWS: tl.constexpr = K_D * K_H * CI
    for k in range(K_D * K_H * BLOCKS):
        _settled(k, SETTLE)
        t = k // BLOCKS
        c = k % BLOCKS * BK
        d = z + lead_d + t // K_H * L_D
        h = y + lead_h + t % K_H * L_H
        a, a1, a2 = _all_cells(src, image, images, 0, d, h, begin, c, CI, 1, 1, False, BM, BK, HOW)
        b = two.load([t * CI + c, 0])
        e = one.load([t * CI + c, 2 * CO])
        b1 = b
        b2 = b
        e1 = e
        e2 = e
        if HOW != ONE:
            b1 = two.load([ROWS + t * CI + c, 0])
            e1 = one.load([ROWS + t * CI + c, 2 * CO])
        if HOW == THIRDS:
            b2 = two.load([2 * ROWS + t * CI + c, 0])
            e2 = one.load([2 * ROWS + t * CI + c, 2 * CO])
        acc2, low2 = products(a, a1, a2, b, b1, b2, acc2, low2, HOW)
        acc1, low1 = products(a, a1, a2, e, e1, e2, acc1, low1, HOW)
    first, second = whole(acc2, low2, guard, HOW).reshape(BM, 2, BN).permute(0, 2, 1).split()
    third = whole(acc1, low1, guard, HOW)
    shift = x + lead_w - begin
    acc = moved(first, shift, BW, BM, BN) + moved(second, shift + 1, BW, BM, BN) + moved(third, shift + 2, BW, BM, BN)
    m = tl.arange(0, BM)
    q_w = x + m % BW
    q_h = y + m // BW % BH
    q_d = z + m // (BW * BH)
    mask = (m % BW < step) & (q_w < e_w) & (q_h < e_h) & (q_d < e_d)
    _put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask, CO, BN)


@triton.jit
def filter_boxes(x, dy, out, guard, images, depth, boxes, per_split, b_d, b_h, b_w, tiles_d, tiles_h, tiles_w,
                 out_split, out_row, out_column, row_blocks, column_blocks, CI: tl.constexpr, CO: tl.constexpr,
                 K_H: tl.constexpr, K_W: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
                 L_D: tl.constexpr,
                 L_H: tl.constexpr, L_W: tl.constexpr, FLAT: tl.constexpr, BD: tl.constexpr, BH: tl.constexpr,
                 BW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ACROSS: tl.constexpr, SETTLE: tl.constexpr,
                 HOW: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The filter gradient of one tap, some channels and one split of the positions, which come in boxes.

    Boxes tile the outputs without overhang: past the border there is no product, so no infinity meets a zero. ACROSS,
    a box is one piece of the memory of dy, which is read as a matrix then.
    """
    if HOW == HALVES or HOW == THIRDS:
        if leaves(guard, HOW):
            return
    BK: tl.constexpr = BD * BH * BW
    block = tl.program_id(0)
    column = block % column_blocks * BN
    block = block // column_blocks
    row = block % row_blocks * BM
    tap = block // row_blocks
    t_d = tap // (K_H * K_W) * L_D - b_d
    t_h = tap // K_W % K_H * L_H - b_h
    t_w = tap % K_W * L_W - b_w
    split = tl.program_id(1)
    acc = _sums(BM, BN, ACROSS, ACC)
    low = acc
    first = split * per_split
    v = first % tiles_w
    h = first // tiles_w % tiles_h
    d = first // (tiles_w * tiles_h) % tiles_d
    image = first // (tiles_w * tiles_h * tiles_d)
    for n in range(first, tl.minimum(boxes, first + per_split)):
        _settled(n, SETTLE)
        i_d = d * BD * S_D + t_d
        i_h = h * BH * S_H + t_h
        i_w = v * BW * S_W + t_w
        a, a1, a2 = _all_cells(x, image, images, depth, i_d, i_h, i_w, row, CI, S_H, S_W, FLAT, BK, BM, HOW)
        if ACROSS:
            b, b1, b2 = _all_lines(dy, n * BK, boxes * BK, column, HOW)
            acc, low = products(b, b1, b2, a, a1, a2, acc, low, HOW)
        else:
            b, b1, b2 = _all_cells(dy, image, images, 0, d * BD, h * BH, v * BW, column, CO, 1, 1, False, BK, BN, HOW)
            acc, low = products(tl.trans(a), tl.trans(a1), tl.trans(a2), b, b1, b2, acc, low, HOW)
        v, image, d, h = _next(v, image, d, h, tiles_d, tiles_h, tiles_w, 1)
    acc = _upright(whole(acc, low, guard, HOW), ACROSS)
    ci = row + tl.arange(0, BM)
    co = column + tl.arange(0, BN)
    at = out + split.to(tl.int64) * out_split + ((tap * CI + ci).to(tl.int64) * out_row)[:, None]
    at += (co.to(tl.int64) * out_column)[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(ci < CI)[:, None] & (co < CO)[None, :])


@triton.jit
def filter_fan(x, dy, out, guard, images, depth, boxes, per_split, b_d, b_h, tiles_d, tiles_h, tiles_w, out_split,
               out_row, out_column, column_blocks, CI: tl.constexpr, CO: tl.constexpr, K_H: tl.constexpr,
               S_D: tl.constexpr, S_H: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr, BH: tl.constexpr,
               BW: tl.constexpr, BN: tl.constexpr, ACROSS: tl.constexpr, SETTLE: tl.constexpr, HOW: tl.constexpr,
               ACC: tl.constexpr):  # fmt: skip
    """`filter_boxes` for few channels and windows of one cell in width: all heights of the window meet a box of dy.

    Channels are the columns here and output channels the rows, for rows are wide on tensor cores.
    """
    if HOW == HALVES or HOW == THIRDS:
        if leaves(guard, HOW):
            return
    BK: tl.constexpr = BH * BW
    column = tl.program_id(0) % column_blocks * BN
    tap = tl.program_id(0) // column_blocks
    split = tl.program_id(1)
    accs = ()
    lows = ()
    for _ in tl.static_range(K_H):
        accs = accs + (tl.zeros([BN, CI], ACC),)
        lows = lows + (tl.zeros([BN, CI], ACC),)
    first = split * per_split
    v = first % tiles_w
    h = first // tiles_w % tiles_h
    d = first // (tiles_w * tiles_h) % tiles_d
    image = first // (tiles_w * tiles_h * tiles_d)
    for n in range(first, tl.minimum(boxes, first + per_split)):
        _settled(n, SETTLE)
        if ACROSS:
            a, a1, a2 = _all_lines(dy, n * BK, boxes * BK, column, HOW)
        else:
            a, a1, a2 = _all_cells(dy, image, images, 0, d, h * BH, v * BW, column, CO, 1, 1, False, BK, BN, HOW)
            a, a1, a2 = tl.trans(a), tl.trans(a1), tl.trans(a2)
        i_d = d * S_D + tap * L_D - b_d
        high = ()
        rest = ()
        for j in tl.static_range(K_H):
            i_h = h * BH * S_H + j * L_H - b_h
            b, b1, b2 = _all_cells(x, image, images, depth, i_d, i_h, v * BW, 0, CI, S_H, 1, True, BK, CI, HOW)
            acc, low = products(a, a1, a2, b, b1, b2, accs[j], lows[j], HOW)
            high = high + (acc,)
            rest = rest + (low,)
        accs = high
        lows = rest
        v, image, d, h = _next(v, image, d, h, tiles_d, tiles_h, tiles_w, 1)
    co = column + tl.arange(0, BN)[:, None]
    ci = tl.arange(0, CI)[None, :]
    for j in tl.static_range(K_H):
        at = split.to(tl.int64) * out_split + ((tap * K_H + j) * CI + ci).to(tl.int64) * out_row
        acc = whole(accs[j], lows[j], guard, HOW)
        tl.store(out + (at + co.to(tl.int64) * out_column), acc.to(out.dtype.element_ty), mask=co < CO)
