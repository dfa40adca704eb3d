# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""Numbers in parts: what tensor cores of 16 bits make of float32. HOW says in which, by type and products:

    ONE     as they are
    FP16X3  float32 as two float16, the second 2**11 times larger than what it stands for; three products, 22 to 24 bits
    BF16X6  float32 as three bfloat16; six products, 24 bits
    BF16X3  float32 as two bfloat16; three products, 16 bits, where TF32 is allowed

FP16X3 holds numbers within a factor of 2**24 or so. A `guard` says whether the data is like that, and so which of the
two kernels for real float32 leaves at once. See `_judged`.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

WIDEN: tl.constexpr = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
"""Triton's interpreter multiplies the bits of bfloat16 as integers: there, and only there, operands are widened."""

ONE, FP16X3, BF16X6, BF16X3 = (tl.constexpr(how) for how in range(4))


@triton.jit
def dot(a, b, acc):
    """acc + a @ b on the tensor cores; of float32, without them."""
    if WIDEN:
        return acc + tl.dot(a.to(acc.dtype), b.to(acc.dtype), input_precision="ieee", out_dtype=acc.dtype)
    return tl.dot(a, b, acc, input_precision="ieee", out_dtype=acc.dtype)


@triton.jit
def parts_dot(a0, a1, a2, b0, b1, b2, acc):
    """The product of two numbers in three parts each, smallest terms first.

    Tensor cores cut off what they add instead of rounding it, so long sums drift. Callers start from zero every few
    steps and add the result with ordinary additions.
    """
    acc = dot(a2, b0, acc)
    acc = dot(a0, b2, acc)
    acc = dot(a1, b1, acc)
    acc = dot(a1, b0, acc)
    acc = dot(a0, b1, acc)
    return dot(a0, b0, acc)


@triton.jit
def three(value):
    """A float32 as the sum of three bfloat16.

    What is not finite is the third part alone: that is multiplied with the first part of the other number only, which
    is 0 only if the number is. So inf * 2 stays inf, and inf * 0 is NaN.
    """
    first = value.to(tl.bfloat16).to(tl.float32)
    fine = tl.abs(first) < float("inf")
    first = tl.where(fine, first, 0.0)
    rest = tl.where(fine, value - first, 0.0)
    second = rest.to(tl.bfloat16)
    third = tl.where(fine, rest - second.to(tl.float32), value)
    return first.to(tl.bfloat16), second, third.to(tl.bfloat16)


@triton.jit
def leaves(guard, HOW: tl.constexpr):
    """Is this the kernel for data of the other kind?"""
    wild = tl.load(guard + 2) != 0.0
    return wild == (HOW == FP16X3)


@triton.jit
def products(a, a1, a2, b, b1, b2, acc, low, HOW: tl.constexpr):
    """One step of the inner loop. As FP16X3, `acc` is the negated sum, and `low` of what is 2**11 times too large."""
    if HOW == ONE:
        acc = dot(a, b, acc)
    elif HOW == BF16X3:
        acc = dot(a, b, dot(a, b1, dot(a1, b, acc)))
    elif HOW == FP16X3:
        low = dot(a, b1, dot(a1, b, low))
        # Tensor cores cut off what they add, so the large part is summed outside of them, as in `parts_dot`. Triton
        # would make an addition part of the product again; it leaves a subtraction alone.
        acc -= dot(a, b, tl.zeros(acc.shape, acc.dtype))
    else:
        acc += parts_dot(a, a1, a2, b, b1, b2, tl.zeros(acc.shape, acc.dtype))
    return acc, low


@triton.jit
def whole(acc, low, guard, HOW: tl.constexpr):
    """The sums in the scale of the data."""
    if HOW == FP16X3:
        return (low * (1.0 / 2048) - acc) * (tl.load(guard) * tl.load(guard + 1))
    return acc


@triton.jit
def split_parts(x, parts, count, BLOCK: tl.constexpr):
    """Float32 as three planes of bfloat16."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    first, second, third = three(tl.load(x + at, mask=mask, other=0.0))
    tl.store(parts + at, first, mask=mask)
    tl.store(parts + count + at, second, mask=mask)
    tl.store(parts + 2 * count + at, third, mask=mask)


@triton.jit
def largest_bits(a, b, stats, count_a, count_b, per_a, per_b, shares_a, SHARES: tl.constexpr, ROWS: tl.constexpr,
                 BLOCK: tl.constexpr):  # fmt: skip
    """Of a share of a, or of b: the largest number, and the smallest of the largest of every BLOCK not all zeros.

    As bits: magnitudes compare like integers, with what is not finite on top.
    """
    share = tl.program_id(0)
    if share < shares_a:
        top, bottom = _extremes(a, share, count_a, per_a, ROWS, BLOCK)
    else:
        top, bottom = _extremes(b, share - shares_a, count_b, per_b, ROWS, BLOCK)
        share += SHARES - shares_a
    tl.store(stats + share, top)
    tl.store(stats + 2 * SHARES + share, bottom)


@triton.jit
def _extremes(x, share, count, per_share, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = share.to(tl.int64) * per_share
    top = tl.zeros([ROWS], tl.int32)
    bottom = top + 0x7FFFFFFF
    inside = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    for begin in range(0, per_share, ROWS * BLOCK):
        at = first + begin + inside
        bits = tl.load(x + at, mask=at < count, other=0.0).to(tl.int32, bitcast=True) & 0x7FFFFFFF
        most = tl.max(bits, axis=1)
        top = tl.maximum(top, most)
        bottom = tl.where(most > 0, tl.minimum(bottom, most), bottom)
    return tl.max(top, axis=0), tl.min(bottom, axis=0)


@triton.jit
def _judged(stats, shares, PLACE: tl.constexpr, SHARES: tl.constexpr):
    """The exponent of the largest number of an operand, and whether it suits float16.

    It does if the largest lies between 2**-55 and 2**55 and no block of numbers that stand together in memory is
    smaller than 2**-24 of that. Scaled to a largest number of 2**14 to 2**15, every number is then held to 22 bits, or
    to 2**-26 of the largest in its block.
    """
    share = tl.arange(0, SHARES)
    at = stats + PLACE * SHARES + share
    top = tl.max(tl.load(at, mask=share < shares, other=0), axis=0) >> 23
    bottom = tl.min(tl.load(at + 2 * SHARES, mask=share < shares, other=0x7FFFFFFF), axis=0) >> 23
    return top, (top >= 127 - 55) & (top <= 127 + 55) & (bottom >= top - 24)


@triton.jit
def split_both(a, b, parts_a, halves_a, parts_b, halves_b, guard, stats, count_a, count_b, blocks_a, shares_a,
               shares_b, SHARES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Two float32 operands as FP16X3 where both suit that, else as BF16X6, in the same memory.

    guard: the factors back to the data of either, and whether FP16X3 were not possible.
    """
    top_a, tame_a = _judged(stats, shares_a, 0, SHARES)
    top_b, tame_b = _judged(stats, shares_b, 1, SHARES)
    tame = tame_a & tame_b
    up_a = tl.where(tame, 127 + 141 - top_a, 127)
    up_b = tl.where(tame, 127 + 141 - top_b, 127)
    program = tl.program_id(0)
    if program == 0:
        tl.store(guard, ((254 - up_a) << 23).to(tl.float32, bitcast=True))
        tl.store(guard + 1, ((254 - up_b) << 23).to(tl.float32, bitcast=True))
        tl.store(guard + 2, tl.where(tame, 0.0, 1.0))
    if program < blocks_a:
        _split(a, parts_a, halves_a, program, count_a, tame, (up_a << 23).to(tl.float32, bitcast=True), BLOCK)
    else:
        block = program - blocks_a
        _split(b, parts_b, halves_b, block, count_b, tame, (up_b << 23).to(tl.float32, bitcast=True), BLOCK)


@triton.jit
def _split(x, parts, halves, block, count, tame, factor, BLOCK: tl.constexpr):
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    value = tl.load(x + at, mask=mask, other=0.0)
    if tame:
        value *= factor
        high = value.to(tl.float16)
        tl.store(halves + at, high, mask=mask)
        tl.store(halves + count + at, ((value - high.to(tl.float32)) * 2048).to(tl.float16), mask=mask)
    else:
        first, second, third = three(value)
        tl.store(parts + at, first, mask=mask)
        tl.store(parts + count + at, second, mask=mask)
        tl.store(parts + 2 * count + at, third, mask=mask)


@triton.jit
def split_pair(x, parts, count, BLOCK: tl.constexpr):
    """Float32 as two bfloat16."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    first, second, third = three(tl.load(x + at, mask=mask, other=0.0))
    tl.store(parts + at, first, mask=mask)
    # The third part holds what is not finite, or else nothing that is wanted.
    tl.store(parts + count + at, tl.where(tl.abs(third.to(tl.float32)) < float("inf"), second, third), mask=mask)
