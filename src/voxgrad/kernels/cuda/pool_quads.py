# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""Quads: four numbers next to each other, each in a block of its own, and the word with a byte of answers for each.

What the bytes say is written in `pool_stages`. Every answer lets a sum be added to another, or not. The GPU moves
seven bits of a byte at once to where it decides by them, if all questions to the byte are asked next to each other:
that is half the instructions, so a quad is one piece of assembly. Triton's interpreter, and float64, take the same
steps one by one.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_taps import ahead, behind
from voxgrad.kernels.cuda.pool_words import INTERPRETED, halves, paired


@triton.constexpr_function
def by_steps(acc: Any) -> bool:
    """Is there no assembly for sums of this type?"""
    return bool(INTERPRETED) or acc != tl.float32


@triton.constexpr_function
def _ask(code: str, byte: int, bits: tuple[int, ...]) -> str:
    """Assembly that sets predicate p<bit> to a bit of a byte of the code."""
    return "".join(f"and.b32 t, {code}, {1 << 8 * byte + bit}; setp.ne.s32 p{bit}, t, 0; " for bit in bits)


@triton.constexpr_function
def _number(words: list[str], kind: Any, n: int) -> str:
    """Assembly that sets a to number n of a quad, given its words."""
    if kind == tl.bfloat16:
        part = f"shl.b32 t, {words[n // 2]}, 16;" if n % 2 == 0 else f"and.b32 t, {words[n // 2]}, 0xffff0000;"
        return f"{part} mov.b32 a, t; "
    if kind == tl.float16:
        half = "lh"[n % 2]
        return f"{{ .reg .b16 l, h; mov.b32 {{l, h}}, {words[n // 2]}; cvt.f32.f16 a, {half}; }} "
    return f"mov.b32 a, {words[n]}; "


@triton.constexpr_function
def _rows_assembly(kind: Any, count: int, first: bool, second: bool, third: bool) -> str:
    """What numbers got from three depths, given on to up to three rows: outputs by row, then code, words, sums."""
    outs = count * (first + second + third)
    each = 2 if kind in (tl.bfloat16, tl.float16) else count
    words = [f"${outs + 1 + at}" for at in range(3 * each)]
    held = outs + 1 + 3 * each
    bits = (0, 1, 2, *(bit for bit, wanted in ((3, first), (4, second), (5, third)) if wanted))
    text = "{ .reg .pred p<6>; .reg .b32 t; .reg .f32 s, a; "
    for n in range(count):
        text += _ask(f"${outs}", n, bits)
        text += _number(words[:each], kind, n) + "selp.f32 s, 0.0, a, p0; "
        text += _number(words[each : 2 * each], kind, n) + "@p1 add.f32 s, s, a; "
        text += _number(words[2 * each :], kind, n) + "@p2 add.f32 s, s, a; "
        for at, takes in enumerate(takes for takes, wanted in (("@!p3", first), ("@p4", second)) if wanted):
            text += f"mov.f32 a, ${held + at * count + n}; {takes} add.f32 a, a, s; mov.f32 ${at * count + n}, a; "
        if third:
            text += f"selp.f32 ${outs - count + n}, s, 0.0, p5; "
    return text + "}"


@triton.constexpr_function
def _operands(outs: int, words: int, word: str, sums: int) -> str:
    """The operands of a piece of assembly: outputs, code, words, sums."""
    return ",".join(["=&f"] * outs + ["r"] + [word] * words + ["f"] * sums)


@triton.constexpr_function
def _sums(count: int) -> tuple[Any, ...]:
    """The types of outputs."""
    return (tl.float32,) * count


@triton.jit
def _asked(code, BIT: tl.constexpr, BYTE: tl.constexpr):
    """Has this byte of the code the BIT?"""
    # As a signed number, so that the type stays int32.
    ONE: tl.constexpr = ((BIT << 8 * BYTE) ^ 0x80000000) - 0x80000000
    return (code & ONE) != 0


@triton.jit
def load_quad(source, at, Q: tl.constexpr, KIND: tl.constexpr):
    """Q quads from the one at `at` on, as words: of pairs two blocks [L, Q], else four."""
    if paired(KIND):
        both = tl.load(source.to(tl.pointer_type(tl.int32), bitcast=True) + (at * 2 + tl.arange(0, 2 * Q)[None, :]))
        words = tl.split(tl.reshape(both, [both.shape[0], Q, 2]))
    else:
        four = tl.load(source + (at * 4 + tl.arange(0, 4 * Q)[None, :])).to(KIND)
        even, odd = tl.split(tl.reshape(four, [four.shape[0], 2 * Q, 2]))
        a, c = tl.split(tl.reshape(even, [four.shape[0], Q, 2]))
        b, d = tl.split(tl.reshape(odd, [four.shape[0], Q, 2]))
        words = (a, b, c, d)
    return words


@triton.jit
def put_quad(target, at, quad, mask, Q: tl.constexpr):
    """Store Q quads from the one at `at` on. Nobody here reads them again: they leave room in the cache."""
    TYPE: tl.constexpr = target.dtype.element_ty
    L: tl.constexpr = quad[0].shape[0]
    even = tl.reshape(tl.join(quad[0].to(TYPE), quad[2].to(TYPE)), [L, 2 * Q])
    odd = tl.reshape(tl.join(quad[1].to(TYPE), quad[3].to(TYPE)), [L, 2 * Q])
    four = tl.reshape(tl.join(even, odd), [L, 4 * Q])
    tl.store(target + (at * 4 + tl.arange(0, 4 * Q)[None, :]), four, mask=mask, eviction_policy="evict_first")


@triton.jit
def _numbers(words, KIND: tl.constexpr):
    """The numbers of words."""
    numbers = ()
    for n in tl.static_range(len(words)):
        numbers = numbers + (halves(words[n], KIND) if paired(KIND) else (words[n],))
    return numbers


@triton.jit
def _rows_by_steps(code, given, first, second, THIRD: tl.constexpr, COUNT: tl.constexpr, KIND: tl.constexpr):
    """`give_rows` in steps."""
    EACH: tl.constexpr = len(given) // 3
    below = _numbers(given[:EACH], KIND)
    same = _numbers(given[EACH : 2 * EACH], KIND)
    above = _numbers(given[2 * EACH :], KIND)
    to_first = ()
    to_second = ()
    to_third = ()
    for n in tl.static_range(COUNT):
        won = tl.where(_asked(code, 1, n), 0.0, below[n])
        won = tl.where(_asked(code, 2, n), won + same[n], won)
        won = tl.where(_asked(code, 4, n), won + above[n], won)
        if len(first) > 0:
            to_first = to_first + (tl.where(_asked(code, 8, n), first[n], first[n] + won),)
        if len(second) > 0:
            to_second = to_second + (tl.where(_asked(code, 16, n), second[n] + won, second[n]),)
        if THIRD:
            to_third = to_third + (tl.where(_asked(code, 32, n), won, 0.0),)
    return to_first, to_second, to_third


@triton.jit
def give_rows(code, given, first, second, THIRD: tl.constexpr, COUNT: tl.constexpr, KIND: tl.constexpr,
              ACC: tl.constexpr):  # fmt: skip
    """What COUNT numbers got from the windows one deeper, of their depth, one less deep, given on to rows.

    The sums of the row that is the first of its windows, if wanted, those of the second, if wanted, and what there is
    for the third.
    """
    if by_steps(ACC):
        to_first, to_second, to_third = _rows_by_steps(code, given, first, second, THIRD, COUNT, KIND)
    else:
        A: tl.constexpr = len(first)
        B: tl.constexpr = len(first) + len(second)
        N: tl.constexpr = B + (COUNT if THIRD else 0)
        sums = tl.inline_asm_elementwise(
            _rows_assembly(KIND, COUNT, A > 0, B > A, THIRD),
            _operands(N, len(given), "r" if paired(KIND) else "f", B),
            (code,) + given + first + second, _sums(N), True, 1,
        )  # fmt: skip
        to_first = sums[:A]
        to_second = sums[A:B]
        to_third = sums[B:]
    return to_first, to_second, to_third


@triton.constexpr_function
def _cells_assembly() -> str:
    """What rows won, given on to three cells: outputs by cell, then code, won, the sums of the first two."""
    text = "{ .reg .pred p<4>; .reg .b32 t, c; .reg .f32 a; shr.u32 c, $12, 4; "
    for n in range(4):
        won, first, second = f"${13 + n}", f"${17 + n}", f"${21 + n}"
        text += _ask("c", n, (2, 3)) + f"mov.f32 a, {first}; @!p2 add.f32 a, a, {won}; mov.f32 ${n}, a; "
        text += f"mov.f32 a, {second}; @p2 add.f32 a, a, {won}; @p3 mov.f32 a, {second}; mov.f32 ${4 + n}, a; "
        text += f"selp.f32 ${8 + n}, {won}, 0.0, p3; "
    return text + "}"


@triton.jit
def give_cells(code, won, first, second, ACC: tl.constexpr):
    """What rows won, given on to cells: the sums of their first and second ones, and what there is for the third."""
    to_first = ()
    to_second = ()
    to_third = ()
    if by_steps(ACC):
        for n in tl.static_range(4):
            late = _asked(code, 64, n)
            last = _asked(code, 128, n)
            to_first = to_first + (tl.where(late, first[n], first[n] + won[n]),)
            to_second = to_second + (tl.where(late & (last == 0), second[n] + won[n], second[n]),)
            to_third = to_third + (tl.where(last, won[n], 0.0),)
    else:
        sums = tl.inline_asm_elementwise(
            _cells_assembly(), _operands(12, 0, "r", 12), (code,) + won + first + second, _sums(12), True, 1
        )
        to_first = sums[0:4]
        to_second = sums[4:8]
        to_third = sums[8:12]
    return to_first, to_second, to_third


@triton.constexpr_function
def _line_assembly() -> str:
    """Four cells of a line after what their rows won, and what goes to the cell before and behind: then code, won."""
    text = "{ .reg .pred p<4>; .reg .b32 t, c; .reg .f32 m<5>, a, b; shr.u32 c, $6, 4; "
    text += "mov.f32 m0, 0.0; "
    for n in range(4):
        won = f"${7 + n}"
        text += _ask("c", n, (2, 3)) + f"mov.f32 a, m{n}; @p2 add.f32 a, a, {won}; @!p3 mov.f32 m{n}, a; "
        text += f"@!p2 add.f32 m{n - 1}, m{n - 1}, {won}; " if n else f"selp.f32 b, 0.0, {won}, p2; "
        text += f"selp.f32 m{n + 1}, {won}, 0.0, p3; "
    return text + "".join(f"mov.f32 ${n}, m{n}; " for n in range(4)) + "mov.f32 $4, b; mov.f32 $5, m4; }"


@triton.jit
def give_line(code, won, ends, end_code, Q: tl.constexpr, ACC: tl.constexpr):
    """The cells of a line of quads after what their rows won, and the two rows next to the line."""
    if by_steps(ACC):
        none = (tl.zeros_like(won[0]),) * 4
        to_first, to_second, to_third = give_cells(code, won, none, none, ACC)
        cells = (
            to_second[0] + to_first[1],
            to_second[1] + to_third[0] + to_first[2],
            to_second[2] + to_third[1] + to_first[3],
            to_second[3] + to_third[2],
        )
        to_left = to_first[0]
        to_right = to_third[3]
    else:
        sums = tl.inline_asm_elementwise(_line_assembly(), _operands(6, 0, "r", 4), (code,) + won, _sums(6), True, 1)
        cells = sums[0:4]
        to_left = sums[4]
        to_right = sums[5]
    left = tl.where(_asked(end_code, 128, 0), ends[0], 0.0)
    right = tl.where(_asked(end_code, 64, 1), 0.0, ends[1])
    return cells[0] + behind(to_right, left, Q), cells[1], cells[2], cells[3] + ahead(to_left, right, Q)
