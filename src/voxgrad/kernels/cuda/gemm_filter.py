# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM102, SIM109, PIE808 - Triton: capitals are compile-time constants, as are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""The filter gradient as one implicit matrix product: rows are taps and input channels, the sum runs over positions.

Splits of the positions are summed apart and added in order, so that the same bits come out every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_parts import BF16X6, FP16X3, ONE, leaves, products, whole


@triton.jit
def conv_filter_sums(x, dy, sums, guard, D, H, W, s_n, s_d, s_h, s_w, s_c, y_n, y_d, y_h, y_w, y_c, x_part, y_part,
                     positions, per_split, rows, CO, b_d, b_h, b_w, group_x, group_y, sums_row, sums_column,
                     group_sums, column_blocks,
                     CI: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr,
                     S_W: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr, L_W: tl.constexpr, OD: tl.constexpr,
                     OH: tl.constexpr, OW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                     HOW: tl.constexpr, ACC: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """sums[split, tap * CI + c, co] = sum over the split's positions of x[position, tap, c] * dy[position, co]."""
    if HOW == FP16X3 or HOW == BF16X6:
        if leaves(guard, HOW):
            return
    split = tl.program_id(1)
    group = tl.program_id(2)
    x += group.to(tl.int64) * group_x
    dy += group.to(tl.int64) * group_y
    sums += group.to(tl.int64) * group_sums
    block = tl.program_id(0)
    j = block // column_blocks * BM + tl.arange(0, BM)
    co = block % column_blocks * BN + tl.arange(0, BN)
    if BIG:
        j = j.to(tl.int64)
    c = j % CI
    t = j // CI
    d = t // (KH * KW) * L_D - b_d
    h = t // KW % KH * L_H - b_h
    v = t % KW * L_W - b_w
    column = d * s_d + h * s_h + v * s_w + c * s_c
    acc = tl.zeros([BM, BN], ACC)
    low = acc
    for k in range(0, tl.cdiv(per_split, BK)):
        begin = split * per_split
        if BIG:
            begin = split.to(tl.int64) * per_split
        p = begin + k * BK + tl.arange(0, BK)
        alive = (p < positions) & (k * BK + tl.arange(0, BK) < per_split)
        o_w = p % OW
        o_h = p // OW % OH
        o_d = p // (OW * OH) % OD
        image = p // (OW * OH * OD)
        in_d = (o_d * S_D)[:, None] + d[None, :]
        in_h = (o_h * S_H)[:, None] + h[None, :]
        in_w = (o_w * S_W)[:, None] + v[None, :]
        mask = (in_d >= 0) & (in_d < D) & (in_h >= 0) & (in_h < H) & (in_w >= 0) & (in_w < W)
        mask &= alive[:, None] & (j < rows)[None, :]
        a_at = x + ((image * s_n + o_d * S_D * s_d + o_h * S_H * s_h + o_w * S_W * s_w)[:, None] + column[None, :])
        b_at = dy + ((image * y_n + o_d * y_d + o_h * y_h + o_w * y_w)[:, None] + (co * y_c)[None, :])
        b_mask = alive[:, None] & (co < CO)[None, :]
        a = tl.load(a_at, mask=mask, other=0.0)
        b = tl.load(b_at, mask=b_mask, other=0.0)
        a1 = a
        b1 = b
        a2 = a
        b2 = b
        if HOW != ONE:
            a1 = tl.load(a_at + x_part, mask=mask, other=0.0)
            b1 = tl.load(b_at + y_part, mask=b_mask, other=0.0)
        if HOW == BF16X6:
            a2 = tl.load(a_at + 2 * x_part, mask=mask, other=0.0)
            b2 = tl.load(b_at + 2 * y_part, mask=b_mask, other=0.0)
        acc, low = products(tl.trans(a), tl.trans(a1), tl.trans(a2), b, b1, b2, acc, low, HOW)
    acc = whole(acc, low, guard, HOW)
    at = sums + split.to(tl.int64) * rows * CO + (j[:, None] * sums_row + co[None, :] * sums_column)
    tl.store(at, acc.to(sums.dtype.element_ty), mask=(j < rows)[:, None] & (co < CO)[None, :])


@triton.jit
def add_splits(sums, out, rows, splits, CO, out_row, out_column, group_out, group_sums, ACC: tl.constexpr,
               BS: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):  # fmt: skip
    """out[row, column] = the sums of all splits. BS are added side by side and then together: always in one order."""
    group = tl.program_id(1)
    blocks = tl.cdiv(CO, BC)
    r = (tl.program_id(0) // blocks * BR + tl.arange(0, BR))[None, :, None]
    c = (tl.program_id(0) % blocks * BC + tl.arange(0, BC))[None, None, :]
    s = tl.arange(0, BS)[:, None, None]
    inside = (r < rows) & (c < CO)
    at = sums + group.to(tl.int64) * group_sums + (s.to(tl.int64) * rows * CO + r * CO + c)
    acc = tl.zeros([BS, BR, BC], ACC)
    for first in range(0, splits, BS):
        acc += tl.load(at, mask=inside & (s + first < splits), other=0.0)
        at += BS * rows * CO
    total = tl.sum(acc, axis=0)[None, :, :]
    tl.store(out + group * group_out + (r * out_row + c * out_column), total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _in_parts(at, part, mask, HOW: tl.constexpr):
    """The parts of a block that HOW asks for, one `part` after the other; the others are copies that nobody reads."""
    first = tl.load(at, mask=mask, other=0.0)
    second = first
    third = first
    if HOW != ONE:
        second = tl.load(at + part, mask=mask, other=0.0)
    if HOW == BF16X6:
        third = tl.load(at + 2 * part, mask=mask, other=0.0)
    return first, second, third


@triton.jit
def _one_shift(a, a1, a2, b_at, y_part, alive, o_w, OW, own, acc, low, HOW: tl.constexpr):
    """The sums and the product of source cells with dy at the outputs that one tap of width makes of them."""
    mask = (alive & (o_w >= 0) & (o_w < OW))[:, None] & own[None, :]
    b, b1, b2 = _in_parts(b_at, y_part, mask, HOW)
    return products(a, a1, a2, b, b1, b2, acc, low, HOW)


@triton.jit
def conv_filter_rows(x, dy, sums, guard, D, H, W, s_n, s_d, s_h, s_w, y_n, y_d, y_h, y_w, x_part, y_part, positions,
                     per_split, rows, CO, b_d, b_h, b_w, OW, column_blocks, CI: tl.constexpr, KH: tl.constexpr,
                     L_D: tl.constexpr, L_H: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr, OD: tl.constexpr,
                     OH: tl.constexpr, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                     HOW: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """`conv_filter_sums` for windows 3 wide with stride 1: a source row meets dy at its three shifts."""
    if HOW == FP16X3 or HOW == BF16X6:
        if leaves(guard, HOW):
            return
    split = tl.program_id(1)
    block = tl.program_id(0)
    j = block // column_blocks * BM + tl.arange(0, BM)
    co = block % column_blocks * BN + tl.arange(0, BN)
    c = j % CI
    t = j // CI
    d = t // KH * L_D - b_d
    h = t % KH * L_H - b_h
    column = d * s_d + h * s_h + c
    acc0 = tl.zeros([BM, BN], ACC)
    acc1 = acc0
    acc2 = acc0
    low0 = acc0
    low1 = acc0
    low2 = acc0
    for k in range(0, tl.cdiv(per_split, BK)):
        p = split * per_split + k * BK + tl.arange(0, BK)
        alive = (p < positions) & (k * BK + tl.arange(0, BK) < per_split)
        i_w = p % WIDTH
        o_h = p // WIDTH % OH
        o_d = p // (WIDTH * OH) % OD
        image = (p // (WIDTH * OH * OD)).to(tl.int64)
        in_d = (o_d * S_D)[:, None] + d[None, :]
        in_h = (o_h * S_H)[:, None] + h[None, :]
        mask = (in_d >= 0) & (in_d < D) & (in_h >= 0) & (in_h < H) & alive[:, None] & (j < rows)[None, :]
        a_at = x + ((image * s_n + o_d * S_D * s_d + o_h * S_H * s_h + i_w * s_w)[:, None] + column[None, :])
        b_at = dy + ((image * y_n + o_d * y_d + o_h * y_h + (i_w + b_w) * y_w)[:, None] + co[None, :])
        a, a1, a2 = _in_parts(a_at, x_part, mask, HOW)
        a, a1, a2 = tl.trans(a), tl.trans(a1), tl.trans(a2)
        o_w = i_w + b_w
        acc0, low0 = _one_shift(a, a1, a2, b_at, y_part, alive, o_w, OW, co < CO, acc0, low0, HOW)
        acc1, low1 = _one_shift(a, a1, a2, b_at - y_w, y_part, alive, o_w - 1, OW, co < CO, acc1, low1, HOW)
        acc2, low2 = _one_shift(a, a1, a2, b_at - 2 * y_w, y_part, alive, o_w - 2, OW, co < CO, acc2, low2, HOW)
    at = sums + split.to(tl.int64) * rows * 3 * CO + ((t * 3 * CI + c)[:, None] * CO + co[None, :])
    mask = (j < rows)[:, None] & (co < CO)[None, :]
    tl.store(at, whole(acc0, low0, guard, HOW), mask=mask)
    tl.store(at + CI * CO, whole(acc1, low1, guard, HOW), mask=mask)
    tl.store(at + 2 * CI * CO, whole(acc2, low2, guard, HOW), mask=mask)
