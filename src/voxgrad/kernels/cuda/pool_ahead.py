# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, RUF005 - Triton: capitals are constants, branches on them no expressions, tuples are added
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: disable-error-code="assignment, misc, var-annotated"
"""What lanes will read soon is brought nearer: prefetched into the second-level cache, or loaded into the first.

No result depends on it; where lanes wait for memory most of the time, it is a fifth of the time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from voxgrad.kernels.cuda.pool_lanes import nearest, spot
from voxgrad.kernels.cuda.pool_words import INTERPRETED


@triton.jit
def own_lines(source, units, tiles, tiles_c, chunks, H, W, C, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
              X: tl.constexpr, L: tl.constexpr, ACROSS: tl.constexpr, LINE: tl.constexpr,
              REVERSED: tl.constexpr = False):  # fmt: skip
    """Where in [H, W, C] the cache lines with the numbers of lanes begin, in bytes; lanes in one line name it once.

    A row group is ROWS rows, a width unit COLUMNS places of X numbers, or X * COLUMNS numbers of a line.
    """
    SIZE: tl.constexpr = source.dtype.element_ty.primitive_bitwidth // 8
    NUMBERS: tl.constexpr = X * COLUMNS if LINE else X
    EVERY: tl.constexpr = min(max(128 // (NUMBERS * SIZE), 1), L) if LINE else 1
    PLACES: tl.constexpr = 1 if LINE else COLUMNS
    PIECES: tl.constexpr = max(NUMBERS * SIZE // 128, 1)
    _image, _chunk, tc, group, unit = spot(units, tiles, tiles_c, chunks, L, ACROSS, EVERY, REVERSED)
    k = tl.arange(0, ROWS * PLACES * PIECES)[None, :]
    row = tl.minimum(group * ROWS + k // (PLACES * PIECES), H - 1) * W
    if LINE:
        place = row + unit * NUMBERS
    else:
        place = (row + tl.minimum(unit * COLUMNS + k // PIECES % COLUMNS, W - 1)) * C + tc * X
    return place * SIZE + k % PIECES * 128


@triton.constexpr_function
def _prefetch_assembly(count: int) -> str:
    """Assembly that prefetches a block of so many addresses. Of a small one further threads hold copies: not those."""
    first = f"mov.u32 t, %tid.x; setp.lt.u32 p, t, {count};"
    return f"{{ .reg .pred p; .reg .u32 t; {first} @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }}"


@triton.jit
def prefetch(source, lines):
    """Have these lines, bytes from `source` on, brought into the second-level cache: they will be read soon."""
    if not INTERPRETED:
        at = source.to(tl.int64) + lines
        tl.inline_asm_elementwise(_prefetch_assembly(at.numel), "=r,l", [at], tl.int32, False, 1)


@triton.jit
def tile_pieces(row, ROWS: tl.constexpr, height, row_pitch, column, COLUMNS: tl.constexpr, width, column_pitch,
                X: tl.constexpr, SIZE: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """Where the pieces of 32 bytes begin of ROWS x COLUMNS places of X numbers, in bytes, a few for each of T threads.

    Positions outside are their nearest ones inside.
    """
    EACH: tl.constexpr = X * SIZE // 32
    ALL: tl.constexpr = ROWS * COLUMNS * EACH
    pieces = ()
    for b in tl.static_range((ALL + T - 1) // T):
        n = tl.minimum(tl.arange(0, T) + b * T, ALL - 1)
        at = nearest(row + n // (COLUMNS * EACH), height) * row_pitch
        at += nearest(column + n // EACH % COLUMNS, width) * column_pitch
        pieces = pieces + (at * SIZE + n % EACH * 32,)
    return pieces


@triton.jit
def touch(source, pieces, before, nothing):
    """Begin to load pieces, bytes from `source` on, into the first-level cache; those touched `before` are there now.

    What is returned is to be given to the next touch, or to `touched`. `nothing` is zero, and the compiler does not
    know that.
    """
    after = ()
    for b in tl.static_range(len(pieces)):
        if INTERPRETED:
            after = after + (before[b],)
        else:
            at = (source.to(tl.int64) + pieces[b] + before[b]).to(tl.pointer_type(tl.int32))
            after = after + (tl.load(at) & nothing,)
    return after


@triton.jit
def touched(before):
    """Make use of what the last touch returned, which is zero: the compiler leaves out loads that nothing needs."""
    if not INTERPRETED:
        for b in tl.static_range(len(before)):
            tl.inline_asm_elementwise(
                "{ .reg .pred p; setp.ne.s32 p, $1, 0; @p trap; mov.b32 $0, 0; }", "=r,r", [before[b]], tl.int32,
                False, 1,
            )  # fmt: skip


@triton.jit
def prefetch_planes(source, lines, first, COUNT: tl.constexpr, size, pitch):
    """Prefetch lines of COUNT planes, of `size`, from `first` on."""
    for j in tl.static_range(COUNT):
        prefetch(source + nearest(first + j, size) * pitch, lines)
