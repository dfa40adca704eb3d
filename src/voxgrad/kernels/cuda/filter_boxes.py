# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM102, SIM109, SIM300 - Triton: capitals are compile-time constants, and so are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False, disable-error-code=assignment
"""Filter gradients that read boxes: see `conv_boxes`."""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.box_reads import (
    all_cells,
    all_lines,
    next_step,
    settled,
    spread_rows,
    tile_of,
    upright,
    zeros,
)
from voxgrad.kernels.cuda.conv_parts import BF16X6, FP16X3, leaves, products, whole


@triton.jit
def filter_boxes(x, dy, out, guard, images, depth, boxes, per_split, b_d, b_h, b_w, tiles_d, tiles_h, tiles_w,
                 out_split, out_row, out_column, row_blocks, column_blocks, CI: tl.constexpr, CO: tl.constexpr,
                 K_H: tl.constexpr, K_W: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,
                 L_D: tl.constexpr, L_H: tl.constexpr, L_W: tl.constexpr, FLAT: tl.constexpr, BD: tl.constexpr,
                 BH: tl.constexpr, BW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ACROSS: tl.constexpr,
                 SETTLE: tl.constexpr, HOW: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The filter gradient of one tap, some channels and one split of the positions, which come in boxes.

    Boxes tile the outputs without overhang: past the border there is no product, so no infinity meets a zero. ACROSS,
    a box is one piece of the memory of dy, which is read as a matrix then.
    """
    if HOW == FP16X3 or HOW == BF16X6:
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
    acc = zeros(BM, BN, ACROSS, ACC)
    low = acc
    first = split * per_split
    v, h, d, image = tile_of(first, tiles_w, tiles_h, tiles_d, 1, 1, 1)
    for n in range(first, tl.minimum(boxes, first + per_split)):
        settled(n, SETTLE)
        i_d = d * BD * S_D + t_d
        i_h = h * BH * S_H + t_h
        i_w = v * BW * S_W + t_w
        a, a1, a2 = all_cells(x, image, images, depth, i_d, i_h, i_w, row, CI, S_H, S_W, FLAT, BK, BM, HOW)
        if ACROSS:
            b, b1, b2 = all_lines(dy, n * BK, boxes * BK, column, HOW)
            acc, low = products(b, b1, b2, a, a1, a2, acc, low, HOW)
        else:
            b, b1, b2 = all_cells(dy, image, images, 0, d * BD, h * BH, v * BW, column, CO, 1, 1, False, BK, BN, HOW)
            if ACC == tl.float64:
                a, b = spread_rows(a), spread_rows(b)
            acc, low = products(tl.trans(a), tl.trans(a1), tl.trans(a2), b, b1, b2, acc, low, HOW)
        v, image, d, h = next_step(v, image, d, h, tiles_d, tiles_h, tiles_w, 1)
    acc = upright(whole(acc, low, guard, HOW), ACROSS)
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
    if HOW == FP16X3 or HOW == BF16X6:
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
    v, h, d, image = tile_of(first, tiles_w, tiles_h, tiles_d, 1, 1, 1)
    for n in range(first, tl.minimum(boxes, first + per_split)):
        settled(n, SETTLE)
        if ACROSS:
            a, a1, a2 = all_lines(dy, n * BK, boxes * BK, column, HOW)
        else:
            a, a1, a2 = all_cells(dy, image, images, 0, d, h * BH, v * BW, column, CO, 1, 1, False, BK, BN, HOW)
            a, a1, a2 = tl.trans(a), tl.trans(a1), tl.trans(a2)
        i_d = d * S_D + tap * L_D - b_d
        high = ()
        rest = ()
        for j in tl.static_range(K_H):
            i_h = h * BH * S_H + j * L_H - b_h
            b, b1, b2 = all_cells(x, image, images, depth, i_d, i_h, v * BW, 0, CI, S_H, 1, True, BK, CI, HOW)
            acc, low = products(a, a1, a2, b, b1, b2, accs[j], lows[j], HOW)
            high = high + (acc,)
            rest = rest + (low,)
        accs = high
        lows = rest
        v, image, d, h = next_step(v, image, d, h, tiles_d, tiles_h, tiles_w, 1)
    co = column + tl.arange(0, BN)[:, None]
    ci = tl.arange(0, CI)[None, :]
    for j in tl.static_range(K_H):
        at = split.to(tl.int64) * out_split + ((tap * K_H + j) * CI + ci).to(tl.int64) * out_row
        acc = whole(accs[j], lows[j], guard, HOW)
        tl.store(out + (at + co.to(tl.int64) * out_column), acc.to(out.dtype.element_ty), mask=co < CO)
