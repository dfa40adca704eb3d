# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM108, PIE808 - Triton: capitals are compile-time constants, as are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""Conv3D and its input gradient as one implicit matrix product; `gemm_filter` has the filter gradient as another.

Rows are positions, columns are output channels, and the inner index runs over taps and source channels; padding,
strides and dilations are address arithmetic and masks, so nothing is padded, cropped or unfolded in memory. The
input gradient is taken apart by the phase of a cell within the stride: a phase is an ordinary convolution of dy with
the taps that reach it, so no inserted zero is ever multiplied.

Float32 is three bfloat16 parts per number and six products per pair: 24 bits, at the tensor cores' rate.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_parts import dot, parts_dot, three


@triton.jit
def _axis(table, axis):
    """Of one axis of a phase: taps, first tap, tap step, first offset, offset step, positions, output offset."""
    at = table + axis * 7
    return (tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3), tl.load(at + 4), tl.load(at + 5),
            tl.load(at + 6))  # fmt: skip


@triton.jit
def _step(k, lane, count_h, count_w, CI: tl.constexpr, BK: tl.constexpr, STRIP: tl.constexpr):
    """Of one step of the inner loop: its taps, their channels, and the place of the taps in depth, height and width."""
    if STRIP > 0:
        t = k * STRIP + lane // CI
        c = lane % CI
        t_w = lane // CI
        t_h = k % count_h
        t_d = k // count_h
    else:
        if CI % BK == 0:
            t = k // (CI // BK)
            c = k % (CI // BK) * BK + lane
        else:
            t = (k * BK + lane) // CI
            c = (k * BK + lane) % CI
        t_w = t % count_w
        t_h = t // count_w % count_h
        t_d = t // (count_w * count_h)
    return t, c, t_d, t_h, t_w


@triton.jit
def _masks(i_d, i_h, i_w, d, h, v, D, H, W, alive, own, t, taps, lane, CI: tl.constexpr, BK: tl.constexpr,
           STRIP: tl.constexpr):  # fmt: skip
    """Which cells that a step reads, and which numbers of its filters, are there."""
    if CI % BK == 0 and STRIP == 0:
        in_d = i_d + d
        in_h = i_h + h
        in_w = i_w + v
        keep = (in_d >= 0) & (in_d < D) & (in_h >= 0) & (in_h < H) & (in_w >= 0) & (in_w < W) & alive
        mask = keep[:, None]
        w_mask = own[None, :]
    elif STRIP > 0:
        in_d = i_d + d
        in_h = i_h + h
        in_w = i_w[:, None] + v[None, :]
        keep = (in_d >= 0) & (in_d < D) & (in_h >= 0) & (in_h < H) & alive
        mask = keep[:, None] & (in_w >= 0) & (in_w < W) & (lane < STRIP * CI)[None, :]
        w_mask = own[None, :] & (lane < STRIP * CI)[:, None]
    else:
        in_d = i_d[:, None] + d[None, :]
        in_h = i_h[:, None] + h[None, :]
        in_w = i_w[:, None] + v[None, :]
        mask = (in_d >= 0) & (in_d < D) & (in_h >= 0) & (in_h < H) & (in_w >= 0) & (in_w < W) & alive[:, None]
        mask &= (t < taps)[None, :]
        w_mask = own[None, :] & (t < taps)[:, None]
    return mask, w_mask


@triton.jit
def conv_positions(src, w, out, table, positions, D, H, W, s_n, s_d, s_h, s_w, s_c, o_n, o_d, o_h, o_w, o_c, w_t, w_k,
                   w_n, w_part, CO, KH, KW, group_src, group_w, group_out, column_blocks, phases,
                   src_part: tl.constexpr, CI: tl.constexpr, STEP_D: tl.constexpr, STEP_H: tl.constexpr,
                   STEP_W: tl.constexpr, OUT_D: tl.constexpr, OUT_H: tl.constexpr, OUT_W: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, PARTS: tl.constexpr, STRIP: tl.constexpr, ACC: tl.constexpr,
                   BIG: tl.constexpr):  # fmt: skip
    """out[q * OUT + r] = sum over taps of src[q * STEP + offset] @ w[tap], for every position q of a phase.

    A step of the inner loop covers channels of one tap where BK divides them, with STRIP > 0 the STRIP taps of one
    row of the window (few channels, next to each other in memory), else whatever taps and channels come next.
    """
    count_d, first_d, tap_d, off_d, step_d, extent_d, shift_d = _axis(table + tl.program_id(0) % phases * 21, 0)
    count_h, first_h, tap_h, off_h, step_h, extent_h, shift_h = _axis(table + tl.program_id(0) % phases * 21, 1)
    count_w, first_w, tap_w, off_w, step_w, extent_w, shift_w = _axis(table + tl.program_id(0) % phases * 21, 2)
    group = tl.program_id(1)
    src += group.to(tl.int64) * group_src
    w += group.to(tl.int64) * group_w
    out += group.to(tl.int64) * group_out
    # Phases of the same place run together, so that what they share is in the cache.
    block = tl.program_id(0) // phases
    first = block // column_blocks
    if BIG:
        first = first.to(tl.int64)
    m = first * BM + tl.arange(0, BM)
    co = block % column_blocks * BN + tl.arange(0, BN)
    if BIG:
        co = co.to(tl.int64)
    extent = extent_d * extent_h * extent_w
    image = m // extent
    alive = m < extent * positions
    q_w = m % extent_w
    q_h = m // extent_w % extent_h
    q_d = m // (extent_w * extent_h) % extent_d
    i_d = q_d * STEP_D
    i_h = q_h * STEP_H
    i_w = q_w * STEP_W
    row = image * s_n + i_d * s_d + i_h * s_h + i_w * s_w
    acc = tl.zeros([BM, BN], ACC)
    taps = count_d * count_h * count_w
    lane = tl.arange(0, BK)
    if STRIP > 0:
        steps = count_d * count_h
    else:
        steps = tl.cdiv(taps * CI, BK)
    for k in range(0, steps):
        t, c, t_d, t_h, t_w = _step(k, lane, count_h, count_w, CI, BK, STRIP)
        d = off_d + t_d * step_d
        h = off_h + t_h * step_h
        v = off_w + t_w * step_w
        tap = ((first_d + t_d * tap_d) * KH + first_h + t_h * tap_h) * KW + first_w + t_w * tap_w
        mask, w_mask = _masks(i_d, i_h, i_w, d, h, v, D, H, W, alive, co < CO, t, taps, lane, CI, BK, STRIP)
        a_at = src + (row[:, None] + (d * s_d + h * s_h + v * s_w + c * s_c)[None, :])
        b_at = w + ((tap * w_t + c * w_k)[:, None] + (co * w_n)[None, :])
        a = tl.load(a_at, mask=mask, other=0.0)
        b = tl.load(b_at, mask=w_mask, other=0.0)
        if PARTS == 3:
            if src_part == 0:
                a, a1, a2 = three(a)
            else:
                a1 = tl.load(a_at + src_part, mask=mask, other=0.0)
                a2 = tl.load(a_at + 2 * src_part, mask=mask, other=0.0)
            b1 = tl.load(b_at + w_part, mask=w_mask, other=0.0)
            b2 = tl.load(b_at + 2 * w_part, mask=w_mask, other=0.0)
            acc += parts_dot(a, a1, a2, b, b1, b2, tl.zeros([BM, BN], ACC))
        else:
            acc = dot(a, b, acc)
    to = image * o_n + (q_d * OUT_D + shift_d) * o_d + (q_h * OUT_H + shift_h) * o_h + (q_w * OUT_W + shift_w) * o_w
    tl.store(out + (to[:, None] + (co * o_c)[None, :]), acc.to(out.dtype.element_ty),
             mask=alive[:, None] & (co < CO)[None, :])  # fmt: skip


@triton.jit
def moved(acc, by, BW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Rows of a tile moved along width: row u of every BW takes row u + by, 0 where that leaves the BW."""
    m = tl.arange(0, BM)
    u = m % BW + by
    keep = (u >= 0) & (u < BW)
    index = tl.where(keep, m + by, 0)[:, None] + tl.zeros([BM, BN], tl.int32)
    return tl.where(keep[:, None], tl.gather(acc, index, 0), 0.0)


@triton.jit
def _one_tap(a, a1, a2, b_at, w_part, mask, acc, PARTS: tl.constexpr):
    """acc and the product of source cells with the filters of one tap."""
    b = tl.load(b_at, mask=mask, other=0.0)
    if PARTS == 3:
        b1 = tl.load(b_at + w_part, mask=mask, other=0.0)
        b2 = tl.load(b_at + 2 * w_part, mask=mask, other=0.0)
        acc += parts_dot(a, a1, a2, b, b1, b2, tl.zeros(acc.shape, acc.dtype))
    else:
        acc = dot(a, b, acc)
    return acc


@triton.jit
def conv_rows(src, w, out, table, D, H, W, s_n, s_d, s_h, s_w, o_n, o_d, o_h, o_w, o_c, w_t, w_k, w_n, src_part,
              w_part, CO, KH, rows, width_tiles, step, origin, CI: tl.constexpr, BW: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """Windows 3 wide with stride 1: every source row is read once per (depth, height) tap, not once per tap.

    A tile of source positions is multiplied by the filters of all three width taps; only at the end the three sums
    are moved along width by one and added. `step` outputs per tile of BW sources, the first one `origin` behind it.
    """
    count_d, first_d, tap_d, off_d, step_d, extent_d, _sd = _axis(table, 0)
    count_h, first_h, tap_h, off_h, step_h, extent_h, _sh = _axis(table, 1)
    _cw, first_w, tap_w, _ow, _stw, extent_w, _sw = _axis(table, 2)
    m = tl.arange(0, BM)
    row = tl.program_id(0) // width_tiles * (BM // BW) + m // BW
    tile = tl.program_id(0) % width_tiles * step
    i_w = tile + origin + m % BW
    q_h = row % extent_h
    q_d = row // extent_h % extent_d
    image = (row // (extent_h * extent_d)).to(tl.int64)
    alive = (row < rows) & (i_w >= 0) & (i_w < W)
    base = image * s_n + q_d * s_d + q_h * s_h + i_w * s_w
    co = tl.program_id(1) * BN + tl.arange(0, BN)
    acc0 = tl.zeros([BM, BN], ACC)
    acc1 = acc0
    acc2 = acc0
    lane = tl.arange(0, BK)
    for k in range(0, count_d * count_h * (CI // BK)):
        t = k // (CI // BK)
        c = k % (CI // BK) * BK + lane
        t_h = t % count_h
        t_d = t // count_h
        d = off_d + t_d * step_d
        h = off_h + t_h * step_h
        keep = alive & (q_d + d >= 0) & (q_d + d < D) & (q_h + h >= 0) & (q_h + h < H)
        tap = ((first_d + t_d * tap_d) * KH + first_h + t_h * tap_h) * 3 + first_w
        a_at = src + (base[:, None] + (d * s_d + h * s_h + c)[None, :])
        b_at = w + ((tap * w_t + c * w_k)[:, None] + (co * w_n)[None, :])
        b_mask = (co < CO)[None, :] & (c >= 0)[:, None]
        a = tl.load(a_at, mask=keep[:, None], other=0.0)
        a1 = a
        a2 = a
        if PARTS == 3:
            a1 = tl.load(a_at + src_part, mask=keep[:, None], other=0.0)
            a2 = tl.load(a_at + 2 * src_part, mask=keep[:, None], other=0.0)
        acc0 = _one_tap(a, a1, a2, b_at, w_part, b_mask, acc0, PARTS)
        acc1 = _one_tap(a, a1, a2, b_at + tap_w * w_t, w_part, b_mask, acc1, PARTS)
        acc2 = _one_tap(a, a1, a2, b_at + 2 * tap_w * w_t, w_part, b_mask, acc2, PARTS)
    _c, _f, _t, off_w, _st, _e, _s = _axis(table, 2)
    shift = off_w - origin
    acc = moved(acc0, shift, BW, BM, BN) + moved(acc1, shift + 1, BW, BM, BN) + moved(acc2, shift + 2, BW, BM, BN)
    o = tile + m % BW
    to = image * o_n + q_d * o_d + q_h * o_h + o * o_w
    mask = (row < rows) & (m % BW < step) & (o < extent_w)
    tl.store(
        out + (to[:, None] + (co * o_c)[None, :]), acc.to(out.dtype.element_ty), mask=mask[:, None] & (co < CO)[None, :]
    )
