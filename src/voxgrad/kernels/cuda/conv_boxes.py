# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM102, SIM109, SIM300 - Triton: capitals are compile-time constants, and so are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""Convolutions that read boxes: the copy engine of a GPU fetches a box of cells and fills in zeros past the border.

A tile of outputs is a box of positions, so what one tap reads is a box as well, at other coordinates. Nothing of it is
computed by threads: no addresses, no masks. With strides the axes of the source are taken apart into (cell / stride,
cell % stride), which is the same memory seen with more axes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.box_reads import (
    all_cells,
    all_taps,
    cells,
    gathered,
    multiplied,
    next_step,
    phase_of,
    positions_of,
    put,
    settled,
    spread,
    taps,
    tile_of,
    upright,
    zeros,
)
from voxgrad.kernels.cuda.conv_gemm import moved
from voxgrad.kernels.cuda.conv_parts import BF16X6, FP16X3, ONE, dot, leaves, products, whole


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
    if HOW == FP16X3 or HOW == BF16X6:
        if leaves(guard, HOW):
            return
    BM: tl.constexpr = BD * BH * BW
    TAPS: tl.constexpr = K_D * K_H * K_W
    column = tl.program_id(0) % column_blocks * BN
    x, y, z, block = tile_of(tl.program_id(0) // column_blocks, tiles_w, tiles_h, tiles_d, BW, BH, BD)
    image = block % images
    phase = block // images
    f_w = phase % S_W
    f_h = phase // S_W % S_H
    f_d = phase // (S_W * S_H)
    r_d, w_d, n_d = phase_of(f_d, b_d, K_D, S_D)
    r_h, w_h, n_h = phase_of(f_h, b_h, K_H, S_H)
    r_w, w_w, n_w = phase_of(f_w, b_w, K_W, S_W)
    acc = zeros(BM, BN, ACROSS, ACC)
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
        settled(c, SETTLE)
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
        a, a1, a2 = all_cells(src, image, images, depth, d, h, v, c, CI, S_H, S_W, FLAT, BM, BK, HOW)
        b, b1, b2 = all_taps(w, tap, c, column, CI, CO, TAPS, FORWARD, TURNED, HOW)
        if ACC == tl.float64:
            a, b = spread(a, b, FORWARD == TURNED)
        acc, low = multiplied(a, a1, a2, b, b1, b2, acc, low, ACROSS, HOW)
        c, t_d, t_h, t_w = next_step(c, t_d, t_h, t_w, n_h, n_w, CI, BK)
    q_d, q_h, q_w = positions_of(x, y, z, BD, BH, BW)
    if not FORWARD:
        q_w = q_w * S_W + r_w
        q_h = q_h * S_H + r_h
        q_d = q_d * S_D + r_d
    mask = (q_w < e_w) & (q_h < e_h) & (q_d < e_d)
    acc = upright(whole(acc, low, guard, HOW), ACROSS)
    if ACC == tl.float64:
        acc = gathered(acc, FORWARD == TURNED)
    put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask, CO, BN)


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
    column = tl.program_id(0) % column_blocks * BN
    x, y, z, block = tile_of(tl.program_id(0) // column_blocks, tiles_w, tiles_h, tiles_d, BW, BH, BD)
    image = block % images
    phase = block // images
    f_h = phase % S_H
    f_d = phase // S_H
    r_d, w_d, n_d = phase_of(f_d, b_d, K_D, S_D)
    r_h, w_h, n_h = phase_of(f_h, b_h, K_H, S_H)
    r_w = b_w % 2
    w_w = (r_w + b_w) // 2
    ends = zeros(BM, BN, ACROSS, ACC)
    middle = ends
    c = phase * 0
    t_d = c
    t_h = c
    t_w = c
    for _ in range(n_d * n_h * (CI // BK)):
        settled(c, SETTLE)
        tap = ((f_d + t_d * S_D) * K_H + f_h + t_h * S_H) * 3
        d = z + w_d - t_d
        h = y + w_h - t_h
        a = cells(src, 0, image, images, 0, d, h, x + w_w, c, CI, 1, 1, False, BM, BK)
        left = cells(src, 0, image, images, 0, d, h, x + w_w - 1, c, CI, 1, 1, False, BM, BK)
        b = taps(w, 0, tap, c, column, CI, CO, TAPS, False, TURNED)
        b1 = taps(w, 0, tap + 1, c, column, CI, CO, TAPS, False, TURNED)
        b2 = taps(w, 0, tap + 2, c, column, CI, CO, TAPS, False, TURNED)
        if ACROSS:
            ends = dot(tl.trans(b), tl.trans(a), ends)
            ends = dot(tl.trans(b2), tl.trans(left), ends)
            middle = dot(tl.trans(b1), tl.trans(left if LATE else a), middle)
        else:
            ends = dot(a, b, ends)
            ends = dot(left, b2, ends)
            middle = dot(left if LATE else a, b1, middle)
        c, t_d, t_h, t_w = next_step(c, t_d, t_h, t_w, n_h, 1, CI, BK)
    q_d, q_h, q_w = positions_of(x, y, z, BD, BH, BW)
    other = q_w * 2 + 1 - r_w
    q_w = q_w * 2 + r_w
    q_h = q_h * S_H + r_h
    q_d = q_d * S_D + r_d
    mask = (q_h < e_h) & (q_d < e_d)
    ends = upright(ends, ACROSS)
    middle = upright(middle, ACROSS)
    put(ends, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, column, mask & (q_w < e_w), CO, BN)
    put(middle, out, image, q_d, q_h, other, o_n, o_d, o_h, o_w, o_c, column, mask & (other < e_w), CO, BN)


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
    x, y, z, image = tile_of(tl.program_id(0), tiles_w, tiles_h, tiles_d, BW, 4, BD)
    h = y + lead_h
    acc0 = tl.zeros([BM, BN], ACC)
    acc1 = acc0
    acc2 = acc0
    acc3 = acc0
    for k in range(K_D * K_W * (CI // BK)):
        settled(k, SETTLE)
        c = k % (CI // BK) * BK
        t = k // (CI // BK)
        tap = FIRST + SIGN * (t // K_W * 3 * K_W + t % K_W)
        d = z + lead_d + t // K_W * L_D
        v = x + lead_w + t % K_W * L_W
        b0 = taps(w, 0, tap, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        b1 = taps(w, 0, tap + SIGN * K_W, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        b2 = taps(w, 0, tap + SIGN * 2 * K_W, c, 0, CI, CO, TAPS, FORWARD, TURNED)
        a = cells(src, 0, image, images, 0, d, h, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b0, acc0)
        a = cells(src, 0, image, images, 0, d, h + 1, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b1, acc0)
        acc1 = dot(a, b0, acc1)
        a = cells(src, 0, image, images, 0, d, h + 2, v, c, CI, 1, 1, False, BM, BK)
        acc0 = dot(a, b2, acc0)
        acc1 = dot(a, b1, acc1)
        acc2 = dot(a, b0, acc2)
        a = cells(src, 0, image, images, 0, d, h + 3, v, c, CI, 1, 1, False, BM, BK)
        acc1 = dot(a, b2, acc1)
        acc2 = dot(a, b1, acc2)
        acc3 = dot(a, b0, acc3)
        a = cells(src, 0, image, images, 0, d, h + 4, v, c, CI, 1, 1, False, BM, BK)
        acc2 = dot(a, b2, acc2)
        acc3 = dot(a, b1, acc3)
        a = cells(src, 0, image, images, 0, d, h + 5, v, c, CI, 1, 1, False, BM, BK)
        acc3 = dot(a, b2, acc3)
    q_d, q_h, q_w = positions_of(x, y, z, BD, 1, BW)
    mask = (q_w < e_w) & (q_d < e_d)
    put(acc0, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h < e_h), CO, BN)
    put(acc1, out, image, q_d, q_h + 1, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 1 < e_h), CO, BN)
    put(acc2, out, image, q_d, q_h + 2, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 2 < e_h), CO, BN)
    put(acc3, out, image, q_d, q_h + 3, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask & (q_h + 3 < e_h), CO, BN)


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
    if HOW == FP16X3 or HOW == BF16X6:
        if leaves(guard, HOW):
            return
    BM: tl.constexpr = BD * BH * BW
    x, y, z, image = tile_of(tl.program_id(0), tiles_w, tiles_h, tiles_d, step, BH, BD)
    begin = tl.where(step < BW, x + lead_w, 0)
    acc2 = tl.zeros([BM, 2 * BN], ACC)
    acc1 = tl.zeros([BM, BN], ACC)
    low2 = acc2
    low1 = acc1
    BLOCKS: tl.constexpr = CI // BK
    ROWS: tl.constexpr = K_D * K_H * CI
    for k in range(K_D * K_H * BLOCKS):
        settled(k, SETTLE)
        t = k // BLOCKS
        c = k % BLOCKS * BK
        d = z + lead_d + t // K_H * L_D
        h = y + lead_h + t % K_H * L_H
        a, a1, a2 = all_cells(src, image, images, 0, d, h, begin, c, CI, 1, 1, False, BM, BK, HOW)
        b = two.load([t * CI + c, 0])
        e = one.load([t * CI + c, 2 * CO])
        b1 = b
        b2 = b
        e1 = e
        e2 = e
        if HOW != ONE:
            b1 = two.load([ROWS + t * CI + c, 0])
            e1 = one.load([ROWS + t * CI + c, 2 * CO])
        if HOW == BF16X6:
            b2 = two.load([2 * ROWS + t * CI + c, 0])
            e2 = one.load([2 * ROWS + t * CI + c, 2 * CO])
        acc2, low2 = products(a, a1, a2, b, b1, b2, acc2, low2, HOW)
        acc1, low1 = products(a, a1, a2, e, e1, e2, acc1, low1, HOW)
    first, second = whole(acc2, low2, guard, HOW).reshape(BM, 2, BN).permute(0, 2, 1).split()
    third = whole(acc1, low1, guard, HOW)
    shift = x + lead_w - begin
    acc = moved(first, shift, BW, BM, BN) + moved(second, shift + 1, BW, BM, BN) + moved(third, shift + 2, BW, BM, BN)
    q_d, q_h, q_w = positions_of(x, y, z, BD, BH, BW)
    mask = (tl.arange(0, BM) % BW < step) & (q_w < e_w) & (q_h < e_h) & (q_d < e_d)
    put(acc, out, image, q_d, q_h, q_w, o_n, o_d, o_h, o_w, o_c, 0, mask, CO, BN)
