# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants, as are branches on them
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""Convolutions of few channels, where a matrix product would be mostly padding.

The taps of a row are unfolded first, or every tap is taken by itself; gradients are summed along depth on the way.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.conv_parts import dot, parts_dot, three


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
            product = parts_dot(a, a1, a2, b, b1, b2, tl.zeros([BM, 4 * BN], ACC))
        else:
            product = dot(a, b, tl.zeros([BM, 4 * BN], ACC))
        even, odd = product.reshape(BM, 2, 2, BN).permute(0, 3, 1, 2).split()
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
