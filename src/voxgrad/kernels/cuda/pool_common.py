# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803, SIM108 - Triton: capitals are compile-time constants, and branches on them are no expressions
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""What the pool kernels share: the canonical pool, its tiles, and the jitted pieces of address arithmetic.

Data is [images, D, H, W, C]. A channels-first pool is the same with batch * channels images of one channel, so no
layout needs a transposing copy. A program owns a tile of rows (h, w) times channels and walks along depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import per_problem
from voxgrad.kernels.cuda.paths import Fork, Need, Path

UNROLLED = Fork(
    "taps", "how the taps of a window are gone through",
    Path("unrolled", worth=(Need("at most 64 of them", lambda count: count <= 64),)),
    Path("looped"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as its kernels see it: images of `channels` channels and, per axis, six integers."""

    images: int
    channels: int
    sizes: tuple[int, int, int]
    outs: tuple[int, int, int]
    windows: tuple[int, int, int]
    strides: tuple[int, int, int]
    befores: tuple[int, int, int]
    overlaps: bool = field(init=False)
    """Can a cell belong to more than one window?"""
    covers: bool = field(init=False)
    """Does every cell belong to a window (of a pool without overlap)?"""

    def __post_init__(self) -> None:
        """Work out once what every call asks."""
        axes = list(zip(self.sizes, self.outs, self.windows, self.strides, self.befores, strict=True))
        overlaps = any(window > stride for _, _, window, stride, _ in axes)
        covers = all(
            window == stride and before >= 0 and out * stride - before >= size
            for size, out, window, stride, before in axes
        )
        object.__setattr__(self, "overlaps", overlaps)
        object.__setattr__(self, "covers", covers)

    @property
    def plane(self) -> int:
        """The numbers of a depth plane, of cells or of windows."""
        return max(self.sizes[1] * self.sizes[2], self.outs[1] * self.outs[2]) * self.channels

    @property
    def numbers(self) -> int:
        """The numbers of all cells."""
        return self.images * math.prod(self.sizes) * self.channels

    @property
    def stride_blocks(self) -> tuple[int, int, int]:
        """Per axis, the number of blocks of one stride that hold the cells."""
        return _three(
            (size - 1 + before) // stride - before // stride + 1
            for size, before, stride in zip(self.sizes, self.befores, self.strides, strict=True)
        )

    @property
    def taps(self) -> int:
        """Cells of a window."""
        return self.windows[0] * self.windows[1] * self.windows[2]


@per_problem
def canonical(problem: Problem) -> Pool:
    """The pool of a problem; channels-first data becomes more images of one channel."""
    images, channels = problem.batch, problem.in_channels
    if not problem.channels_last:
        images, channels = images * channels, 1
    axes = problem.axes
    return Pool(
        images,
        channels,
        _three(axis.size for axis in axes),
        _three(axis.out for axis in axes),
        _three(_window(axis) for axis in axes),
        _three(axis.stride for axis in axes),
        _three(axis.before for axis in axes),
    )


def _three(values: Any) -> tuple[int, int, int]:
    first, second, third = values
    return first, second, third


def _window(axis: Axis) -> int:
    """The window of an axis; an overreaching one always extends to the end, so it is as long as that takes."""
    whole = axis.below + axis.size + axis.above
    return axis.size + axis.above + axis.before if axis.overreach and axis.window > whole else axis.window


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of the work one program does: BH x BW rows, BC channels, `chunk` steps along depth."""

    bh: int
    bw: int
    bc: int
    chunk: int
    warps: int = 4


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def channel_block(channels: int, most: int) -> int:
    """Channels per tile: a power of two that divides them where a wide one does, so that no lane idles."""
    block = most
    while block >= 16:
        if channels % block == 0:
            return block
        block //= 2
    return min(power_of_two(channels), most)


def choose_tile(
    channels: int, rows: tuple[int, int], elements: int, chunk: int, warps: int = 4, square: bool = False
) -> Tile:
    """A tile of about `elements` elements over the given rows (height, width): wide first, square where asked."""
    bc = channel_block(channels, 128)
    room = max(1, elements // bc)
    width = power_of_two(rows[1])
    if square and bc > 1:
        width = min(width, max(1, 1 << ((room.bit_length() - 1 + 1) // 2)))
    bw = min(width, room)
    bh = min(power_of_two(rows[0]), max(1, room // bw))
    return Tile(bh, bw, bc, chunk, warps)


def compute_type(dtype: torch.dtype) -> Any:
    """The type to compare and sum in."""
    if not dtype.is_floating_point:
        return {torch.bool: tl.int1}.get(dtype) or getattr(tl, str(dtype).removeprefix("torch."))
    return tl.float64 if dtype == torch.float64 else tl.float32


def steps(pool_size: int, tile: int) -> int:
    """Tiles along an axis."""
    return int(triton.cdiv(pool_size, tile))


def divisor(n: int) -> tuple[int, int]:
    """The factor and the shift with which `quotient` divides by n."""
    shift = (n - 1).bit_length()
    return -(-(1 << 31 + shift) // n), shift


@triton.jit
def quotient(number, factor, shift):
    """A number below 2**31 divided by n: a product, where a GPU would take a dozen instructions to divide."""
    return (tl.umulhi(number.to(tl.uint32) * 2, factor.to(tl.uint32)) >> shift).to(tl.int32)


@triton.jit
def locate(tiles_h, tiles_w, tiles_c, chunks):
    """The tile of this program: image (64 bits), chunk of depth, tile of height, of width, of channels."""
    pid = tl.program_id(0)
    tc = pid % tiles_c
    pid = pid // tiles_c
    tw = pid % tiles_w
    pid = pid // tiles_w
    th = pid % tiles_h
    pid = pid // tiles_h
    return (pid // chunks).to(tl.int64), pid % chunks, th, tw, tc


@triton.jit
def tile_rows(th, tw, BH: tl.constexpr, BW: tl.constexpr, BIG: tl.constexpr):
    """Heights and widths of the rows of a tile, as columns [BH * BW, 1]."""
    r = tl.arange(0, BH * BW)[:, None]
    h = th * BH + r // BW
    w = tw * BW + r % BW
    if BIG:
        h = h.to(tl.int64)
        w = w.to(tl.int64)
    return h, w


@triton.jit
def inside(at, size):
    """Is the position a cell?"""
    return (at >= 0) & (at < size)


@triton.jit
def covered(start, window, size):
    """Cells of the window that begins at `start`, padding cut away."""
    lo = tl.minimum(tl.maximum(start, 0), size)
    return tl.maximum(tl.minimum(start + window, size) - lo, 0)


@triton.jit
def level(at, like):
    """A depth as a column like the rows: Triton's interpreter cannot combine a scalar truth with a block of them."""
    return at + tl.zeros_like(like)


@triton.jit
def _first_tap(winner, top, x, g, base, h0, w0, c, t, D, H, W, C, d0, KH: tl.constexpr, KW: tl.constexpr,
               VALUE: tl.constexpr, FLOAT: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """`winner` after tap t = (kd * KH + kh) * KW + kw; called with falling t, so that the first match stays."""
    d = d0 + t // (KH * KW)
    h = h0 + t // KW % KH
    w = w0 + t % KW
    mask = inside(level(d, h), D) & inside(h, H) & inside(w, W) & (c < C)
    at = base + d.to(tl.int64) * H * W * C + ((h * W + w) * C + c)
    if FLOAT:
        hit = tl.load(x + at, mask=mask, other=float("nan")).to(ACC) == top
    else:
        hit = (tl.load(x + at, mask=mask, other=0) == top) & mask
    if VALUE:
        winner = tl.where(hit, tl.load(g + at, mask=mask, other=0), winner)
    else:
        winner = tl.where(hit, t, winner)
    return winner


@triton.jit
def first_equal(top, x, g, base, h0, w0, c, d0, D, H, W, C, taps, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
           VALUE: tl.constexpr, FLOAT: tl.constexpr, ACC: tl.constexpr, NONE: tl.constexpr, R: tl.constexpr,
           BC: tl.constexpr, UNROLL: tl.constexpr):  # fmt: skip
    """Per window, the value of g at its first cell equal to `top`, or that cell's tap; 0 or NONE without one."""
    if VALUE:
        winner = tl.zeros([R, BC], g.dtype.element_ty)
    else:
        winner = tl.full([R, BC], NONE, tl.int32)
    if UNROLL:
        for back in tl.static_range(KD * KH * KW):
            winner = _first_tap(winner, top, x, g, base, h0, w0, c, KD * KH * KW - 1 - back, D, H, W, C, d0, KH, KW,
                               VALUE, FLOAT, ACC)  # fmt: skip
    else:
        # As an argument, so that the compiler cannot unroll the loop after all.
        for back in range(taps):
            winner = _first_tap(winner, top, x, g, base, h0, w0, c, taps - 1 - back, D, H, W, C, d0, KH, KW,
                               VALUE, FLOAT, ACC)  # fmt: skip
    return winner


_FLAGS = tl.constexpr(512)
"""Flags that a program looks at together."""


@triton.jit
def any_set(flags, count):
    """Is one of so many flags set?"""
    seen = tl.zeros([_FLAGS], tl.int32)
    for first in range(0, count, _FLAGS):
        at = first + tl.arange(0, _FLAGS)
        seen |= tl.load(flags + at, mask=at < count, other=0)
    return tl.max(seen, axis=0) != 0
