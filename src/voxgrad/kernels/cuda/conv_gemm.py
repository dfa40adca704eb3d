# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM102, SIM108, SIM109, PIE808 - Triton: capitals are compile-time constants, as are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""Conv3D and its input gradient as one implicit matrix product; the filter gradient as another.

Rows are positions, columns are output channels, and the inner index runs over taps and source channels; padding,
strides and dilations are address arithmetic and masks, so nothing is padded, cropped or unfolded in memory. The
input gradient is taken apart by the phase of a cell within the stride: a phase is an ordinary convolution of dy with
the taps that reach it, so no inserted zero is ever multiplied.

Float32 is three bfloat16 parts per number and six products per pair: 24 bits, at the tensor cores' rate.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_parts import HALVES, ONE, THIRDS, dot, leaves, parts_dot, products, three, whole


@triton.jit
def _axis(table, axis):
    """Of one axis of a phase: taps, first tap, tap step, first offset, offset step, lattice extent, output offset."""
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
    """out[q * OUT + r] = sum over taps of src[q * STEP + offset] @ w[tap], for every position q of a phase's lattice.

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
def conv_filter_sums(x, dy, sums, guard, D, H, W, s_n, s_d, s_h, s_w, s_c, y_n, y_d, y_h, y_w, y_c, x_part, y_part,
                     positions, per_split, rows, CO, b_d, b_h, b_w, group_x, group_y, sums_row, sums_column,
                     group_sums, column_blocks,
                     CI: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr,
                     S_W: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr, L_W: tl.constexpr, OD: tl.constexpr,
                     OH: tl.constexpr, OW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                     HOW: tl.constexpr, ACC: tl.constexpr, BIG: tl.constexpr):  # fmt: skip
    """sums[split, tap * CI + c, co] = sum over the split's positions of x[position, tap, c] * dy[position, co]."""
    if HOW == HALVES or HOW == THIRDS:
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
        if HOW == THIRDS:
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
def gather_taps(z, dx, z_row, D, H, W, OD, OH, OW, b_d, b_h, b_w, CI, tiles_h, tiles_w, d_n, d_d, d_h, d_w, d_c,
                K_D: tl.constexpr, K_H: tl.constexpr, K_W: tl.constexpr, S_D: tl.constexpr, S_H: tl.constexpr,
                S_W: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr, L_W: tl.constexpr, ACC: tl.constexpr,
                BH: tl.constexpr, BW: tl.constexpr):  # fmt: skip
    """dx[cell, c] = sum over taps of z[tap * CI + c, the window whose tap falls on the cell], for few channels."""
    pid = tl.program_id(0)
    tw = pid % tiles_w
    pid = pid // tiles_w
    th = pid % tiles_h
    pid = pid // tiles_h
    d = pid % D
    image = (pid // D).to(tl.int64)
    c = tl.program_id(1)
    h = th * BH + tl.arange(0, BH)[:, None]
    w = tw * BW + tl.arange(0, BW)[None, :]
    acc = tl.zeros([BH, BW], ACC)
    for kd in range(K_D):
        e_d = d + b_d - kd * L_D
        if (e_d >= 0) & (e_d % S_D == 0) & (e_d // S_D < OD):
            for kh in range(K_H):
                e_h = h + b_h - kh * L_H
                in_h = (e_h >= 0) & (e_h % S_H == 0) & (e_h // S_H < OH)
                for kw in range(K_W):
                    e_w = w + b_w - kw * L_W
                    mask = in_h & (e_w >= 0) & (e_w % S_W == 0) & (e_w // S_W < OW)
                    tap = ((kd * K_H + kh) * K_W + kw) * CI + c
                    at = tap.to(tl.int64) * z_row + ((image * OD + e_d // S_D) * OH) * OW
                    acc += tl.load(z + at + (e_h // S_H * OW + e_w // S_W), mask=mask, other=0.0)
    at = dx + image * d_n + d.to(tl.int64) * d_d + c * d_c + (h * d_h + w * d_w)
    tl.store(at, acc.to(dx.dtype.element_ty), mask=(h < H) & (w < W))


@triton.jit
def depth_sums(dy, w, z, D, OD, CO, plane, b_d, z_row, tiles, chunks, COLUMNS: tl.constexpr, K_D: tl.constexpr,
               PARTS: tl.constexpr, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               CHUNK: tl.constexpr):  # fmt: skip
    """z[column, image, d, position] = sum over taps of depth of dy[image, d + b_d - tap, position] @ w[tap, column].

    Columns are the taps of a plane and few channels. A program walks along depth: it multiplies a plane of dy with the
    filters of all taps of depth at once, and carries what the next cells get of it.
    """
    tile = tl.program_id(0) % tiles
    chunk = tl.program_id(0) // tiles % chunks
    image = (tl.program_id(0) // tiles // chunks).to(tl.int64)
    m = tile * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    n = tl.arange(0, 4 * BN)
    column = tl.arange(0, BN)
    inside = (m < plane)[:, None] & (k < CO)[None, :]
    own = (m < plane)[:, None] & (column < COLUMNS)[None, :]
    taps = w + ((n // BN * COLUMNS + n % BN) * CO)[None, :] + k[:, None]
    b = tl.load(taps, mask=((n // BN < K_D) & (n % BN < COLUMNS))[None, :] & (k < CO)[:, None], other=0.0)
    if PARTS == 3:
        b, b1, b2 = three(b)
    src = dy + image * OD * plane * CO + (m[:, None] * CO + k[None, :])
    to = z + image * D * plane + (column.to(tl.int64) * z_row)[None, :] + m[:, None]
    next1 = tl.zeros([BM, BN], ACC)
    next2 = next1
    for i in range(1 - K_D, CHUNK):
        d = chunk * CHUNK + i
        o = d + b_d + m * 0
        read = inside & ((o >= 0) & (o < OD))[:, None]
        a = tl.load(src + (d + b_d).to(tl.int64) * plane * CO, mask=read, other=0.0)
        if PARTS == 3:
            a, a1, a2 = three(a)
            made = parts_dot(a, a1, a2, b, b1, b2, tl.zeros([BM, 4 * BN], ACC))
        else:
            made = dot(a, b, tl.zeros([BM, 4 * BN], ACC))
        even, odd = made.reshape(BM, 2, 2, BN).permute(0, 3, 1, 2).split()
        first, third = even.split()
        second, _ = odd.split()
        written = own & ((i + m * 0 >= 0) & (d + m * 0 < D))[:, None]
        tl.store(to + d.to(tl.int64) * plane, next1 + first, mask=written)
        next1 = next2 + second
        next2 = third


@triton.jit
def unfold_width(x, out, D, H, W, OW, before, s_n, s_d, s_h, s_w, s_c, tiles, CI: tl.constexpr, K_W: tl.constexpr,
                 S_W: tl.constexpr, L_W: tl.constexpr, LANES: tl.constexpr, ROW: tl.constexpr,
                 BLOCK: tl.constexpr):  # fmt: skip
    """out[row, o, tap * CI + c] = x[row, the cell of tap of window o, c]: a row of taps as channels."""
    row = tl.program_id(0) // tiles
    o = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)[:, None]
    lane = tl.arange(0, LANES)[None, :]
    cell = o * S_W - before + lane // CI * L_W
    inside = (cell >= 0) & (cell < W) & (lane < K_W * CI) & (o < OW)
    line = x + (row // (H * D)).to(tl.int64) * s_n + (row // H % D).to(tl.int64) * s_d + (row % H).to(tl.int64) * s_h
    value = tl.load(line + (cell * s_w + lane % CI * s_c), mask=inside, other=0.0)
    tl.store(out + row.to(tl.int64) * OW * ROW + (o * ROW + lane), value, mask=(o < OW) & (lane < ROW))


@triton.jit
def conv_direct(x, w, y, H, W, s_n, s_d, s_h, s_w, s_c, o_n, o_d, o_h, o_w, o_c, CO, OD, OH, OW, D, b_d, b_h, b_w,
                row_tiles, column_blocks, CI: tl.constexpr, K_D: tl.constexpr, K_H: tl.constexpr, K_W: tl.constexpr,
                S_D: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr, L_D: tl.constexpr, L_H: tl.constexpr,
                L_W: tl.constexpr, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # fmt: skip
    """Few channels and taps: a row of outputs is a sum of outer products, too thin for tensor cores."""
    pid = tl.program_id(0)
    co = pid % column_blocks * BN + tl.arange(0, BN)
    pid = pid // column_blocks
    o = pid % row_tiles * BM + tl.arange(0, BM)
    pid = pid // row_tiles
    oh = pid % OH
    od = pid // OH % OD
    image = (pid // OH // OD).to(tl.int64)
    acc = tl.zeros([BM, BN], ACC)
    for row in tl.static_range(K_D * K_H):
        d = od * S_D - b_d + row // K_H * L_D
        h = oh * S_H - b_h + row % K_H * L_H
        line = x + image * s_n + d.to(tl.int64) * s_d + h.to(tl.int64) * s_h
        for tap in tl.static_range(K_W * CI):
            i = o * S_W - b_w + tap // CI * L_W
            keep = (
                (i >= 0) & (i < W) & (o < OW) & (d + i * 0 >= 0) & (d + i * 0 < D) & (h + i * 0 >= 0) & (h + i * 0 < H)
            )
            value = tl.load(line + i * s_w + tap % CI * s_c, mask=keep, other=0.0).to(ACC)
            filters = tl.load(w + (row * K_W * CI + tap) * CO + co, mask=co < CO, other=0.0).to(ACC)
            acc += value[:, None] * filters[None, :]
    at = y + image * o_n + od.to(tl.int64) * o_d + oh.to(tl.int64) * o_h
    tl.store(at + ((o * o_w)[:, None] + (co * o_c)[None, :]), acc.to(y.dtype.element_ty),
             mask=(o < OW)[:, None] & (co < CO)[None, :])  # fmt: skip


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


@triton.jit
def _in_parts(at, part, mask, HOW: tl.constexpr):
    """The parts of a block that HOW asks for, one `part` after the other; the others are copies that nobody reads."""
    first = tl.load(at, mask=mask, other=0.0)
    second = first
    third = first
    if HOW != ONE:
        second = tl.load(at + part, mask=mask, other=0.0)
    if HOW == THIRDS:
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
    if HOW == HALVES or HOW == THIRDS:
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
