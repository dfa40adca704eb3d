# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005, SIM108, SIM300 - Triton: capitals are constants, branches on them no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc"
"""Words: what the searches for maxima compute in.

KIND is the type that is compared. float32 and float64 are one number to a word. bfloat16 and float16 are two, in an
int32 as they lie in memory: the GPU compares both at once, and nothing is converted. A comparison gives a mask, one bit
for a number or sixteen for each half of a pair, and masks choose between words.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
"""Triton's interpreter knows no assembly: there a pair is taken apart instead, for the same numbers."""

TWICE = tl.constexpr(0x10001)
"""Times a small number: that number in both halves."""


@triton.constexpr_function
def paired(kind: Any) -> bool:
    """Are numbers of this type two to a word?"""
    return kind in (tl.bfloat16, tl.float16)


@triton.jit
def words(source, KIND: tl.constexpr):
    """A pointer to numbers as a pointer to words."""
    if paired(KIND):
        source = source.to(tl.pointer_type(tl.int32), bitcast=True)
    return source


@triton.jit
def as_word(value, KIND: tl.constexpr):
    """What was loaded, in the type to compare in."""
    if not paired(KIND):
        value = value.to(KIND)
    return value


@triton.jit
def widened(value, ACC: tl.constexpr, MANY: tl.constexpr):
    """Numbers in the type to sum in. Where there are MANY to convert, a bfloat16 is one instruction from float32."""
    if MANY and value.dtype == tl.bfloat16 and ACC == tl.float32 and not INTERPRETED:
        bits = tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;", "=r,=r,r", [value], tl.int32, True, 2
        )
        wide = bits.to(tl.float32, bitcast=True)
    else:
        wide = value.to(ACC)
    return wide


@triton.jit
def halves(word, KIND: tl.constexpr):
    """Both numbers of a pair in float32, the first in memory first."""
    if KIND == tl.bfloat16:
        low = (word << 16).to(tl.float32, bitcast=True)
        high = (word & -65536).to(tl.float32, bitcast=True)
    else:
        low = (word & 65535).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        high = (word >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
    return low, high


@triton.jit
def _joined(low, high):
    """A word from two halves; only the low one's low half counts."""
    return (low & 65535) | (high << 16)


@triton.jit
def _largest_half(a, b, c, KIND: tl.constexpr):
    return tl.maximum(tl.maximum(a, b), c).to(KIND).to(tl.int16, bitcast=True).to(tl.int32)


@triton.jit
def largest(a, b, c, KIND: tl.constexpr):
    """The maximum of three words, number by number. NaN never is, next to a number."""
    if paired(KIND):
        if INTERPRETED:
            a0, a1 = halves(a, KIND)
            b0, b1 = halves(b, KIND)
            c0, c1 = halves(c, KIND)
            top = _joined(_largest_half(a0, b0, c0, KIND), _largest_half(a1, b1, c1, KIND))
        elif KIND == tl.bfloat16:
            top = tl.inline_asm_elementwise(
                "{.reg .b32 t; max.bf16x2 t, $1, $2; max.bf16x2 $0, t, $3;}", "=r,r,r,r", [a, b, c], tl.int32, True, 1
            )
        else:
            top = tl.inline_asm_elementwise(
                "{.reg .b32 t; max.f16x2 t, $1, $2; max.f16x2 $0, t, $3;}", "=r,r,r,r", [a, b, c], tl.int32, True, 1
            )
    else:
        top = tl.maximum(tl.maximum(a, b), c)
    return top


@triton.jit
def unlike(a, b, KIND: tl.constexpr):
    """The mask of the numbers of two words that differ; NaN differs from all."""
    if paired(KIND):
        if INTERPRETED:
            a0, a1 = halves(a, KIND)
            b0, b1 = halves(b, KIND)
            mask = tl.where(a0 != b0, 65535, 0) | tl.where(a1 != b1, -65536, 0)
        elif KIND == tl.bfloat16:
            mask = tl.inline_asm_elementwise("set.neu.u32.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], tl.int32, True, 1)
        else:
            mask = tl.inline_asm_elementwise("set.neu.u32.f16x2 $0, $1, $2;", "=r,r,r", [a, b], tl.int32, True, 1)
    else:
        mask = a != b
    return mask


@triton.jit
def pick(mask, a, b, KIND: tl.constexpr):
    """The numbers of a where the mask says so, else those of b."""
    if paired(KIND):
        chosen = (mask & a) | (~mask & b)
    else:
        chosen = tl.where(mask, a, b)
    return chosen


@triton.jit
def best_of(values, payloads, KIND: tl.constexpr):
    """The largest of one, two or three words and what goes with it, the first of equals."""
    top = values[0]
    payload = payloads[0]
    if len(values) == 2:
        top = largest(values[0], values[1], values[1], KIND)
        payload = pick(unlike(top, values[0], KIND), payloads[1], payload, KIND)
    if len(values) == 3:
        top = largest(values[0], values[1], values[2], KIND)
        later = pick(unlike(top, values[1], KIND), payloads[2], payloads[1], KIND)
        payload = pick(unlike(top, values[0], KIND), later, payload, KIND)
    return top, payload


@triton.jit
def opaque(block):
    """The same block, which the compiler knows nothing about."""
    if not INTERPRETED:
        if block.dtype == tl.float32:
            block = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [block], tl.float32, True, 1)
        elif block.dtype == tl.int32:
            block = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [block], tl.int32, True, 1)
    return block


@triton.jit
def waiting_for(word, loads, nothing):
    """The same words, which seem to need the loads as well: the compiler then begins all of them before it goes on.

    `nothing` is zero, and the compiler does not know that.
    """
    all_of = loads[0].to(tl.int32, bitcast=True)
    for n in tl.static_range(1, len(loads)):
        all_of = all_of | loads[n].to(tl.int32, bitcast=True)
    return word | (all_of & nothing)


@triton.jit
def nothing_like(block):
    """Zero of a block of numbers that are not negative, which the compiler does not know."""
    if INTERPRETED:
        zero = tl.zeros_like(block)
    else:
        zero = tl.inline_asm_elementwise("shr.u32 $0, $1, 31;", "=r,r", [block], tl.int32, True, 1)
    return zero


@triton.jit
def carried(some, STAGES: tl.constexpr):
    """Blocks that a loop hands on unchanged. Triton prefetches (STAGES) only for loops that do no such thing."""
    blocks = ()
    for n in tl.static_range(len(some)):
        blocks = blocks + (opaque(some[n]) if STAGES > 1 else some[n],)
    return blocks


@triton.jit
def last_of(planes, KEEP: tl.constexpr, STAGES: tl.constexpr):
    """The KEEP last of one to three planes, each some blocks, which the next step of a loop begins with."""
    if KEEP == 2:
        kept = (carried(planes[1], STAGES), planes[2])
    else:
        kept = planes[len(planes) - KEEP :]
    return kept


@triton.jit
def shifted(word, later):
    """The second number of a pair and the first of the one behind it, as a pair."""
    return ((word >> 16) & 65535) | (later << 16)


@triton.jit
def firsts(word, later):
    """The first numbers of two pairs, as a pair."""
    return _joined(word, later)


@triton.jit
def seconds(word, later):
    """The second numbers of two pairs, as a pair."""
    return ((word >> 16) & 65535) | (later & -65536)


@triton.jit
def _bytes_of(word, later):
    """Four small numbers, in two pairs, as the bytes of one word."""
    if INTERPRETED:
        packed = (word & 255) | ((word >> 8) & 65280) | ((later & 255) << 16) | ((later >> 16) << 24)
    else:
        packed = tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, 0x6420;", "=r,r,r", [word, later], tl.int32, True, 1)
    return packed


@triton.jit
def packed(small, X: tl.constexpr, KIND: tl.constexpr):
    """Small numbers, X words of a lane, as bytes, four to a word."""
    L: tl.constexpr = small.shape[0]
    even, odd = tl.split(tl.reshape(small, [L, X // 2, 2]))
    if paired(KIND):
        word = _bytes_of(even, odd)
    else:
        low, high = tl.split(tl.reshape(even + odd * 256, [L, X // 4, 2]))
        word = low + high * 65536
    return word


@triton.jit
def put_bytes(target, at, small, keep, mask, X: tl.constexpr, KIND: tl.constexpr):
    """Store small numbers, X words from column `at` on, as bytes, where `keep` (lanes) and, of singles, `mask` say."""
    if paired(KIND):
        to = target.to(tl.pointer_type(tl.int32), bitcast=True)
        tl.store(to + (at // 2 + tl.arange(0, X // 2)[None, :]), packed(small, X, KIND), mask=keep)
    else:
        tl.store(target + (at + tl.arange(0, X)[None, :]), small.to(tl.uint8), mask=keep & mask)
