# SPDX-License-Identifier: Apache-2.0
"""What the convolutions on a GPU share: the configuration of a kernel, and how data and filters lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.paths import ADDRESSES

FEW_CHANNELS = 4
"""Up to this many channels an input gradient is one product per position, and a gather of its taps."""

Run = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
"""Fills the last tensor from the first two."""


@dataclass(frozen=True, slots=True)
class Config:
    """Tile of a product (positions or filter rows, output channels, inner), warps, pipeline stages, splits.

    `kind` is the kernel: "taps" takes tap by tap ("whole" too, with float32 as it is), "rows" the three width taps of a
    row at once (stride 1), "strip" one row of taps of few channels per step, "direct" sums outer products without
    tensor cores. With "boxes" the copy engine fetches boxes of cells, in "box rows", "box stack" and "box pairs" for
    several products at once; `tf32` lets those take float32 for less than it is, `across` turns their products over.
    "unfold" writes the taps of a row as channels first, where these are few. "few" and "few boxes" multiply for many
    taps of few channels at once and gather; "planes" carries what the taps of depth make from plane to plane. What each
    needs stands in `conv3d.CONVS`.
    """

    bm: int = 128
    bn: int = 64
    bk: int = 32
    warps: int = 4
    stages: int = 3
    splits: int = 0
    kind: str = "taps"
    tf32: bool = False
    across: bool = False


def data_strides(shape: tuple[int, ...], channels_last: bool) -> tuple[int, int, int, int, int]:
    """Element strides of a contiguous tensor in the order batch, depth, height, width, channels."""
    if channels_last:
        _, d, h, w, c = shape
        return d * h * w * c, h * w * c, w * c, c, 1
    _, c, d, h, w = shape
    return c * d * h * w, h * w, w, 1, d * h * w


def source_strides(shape: tuple[int, ...], channels_last: bool, *, turned: bool) -> tuple[int, int, int, int, int]:
    """Strides of the data as the kernels get it: `turned` data has its channels last whatever came."""
    if turned and not channels_last:
        shape = (shape[0], *shape[2:], shape[1])
    return data_strides(shape, channels_last or turned)


def channels_last_copy(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """NDHWC data; the products want the inner index contiguous, which pays for one transposing copy."""
    return x if problem.channels_last else x.permute(0, 2, 3, 4, 1).contiguous()


def new_filter(problem: Problem, like: torch.Tensor) -> torch.Tensor:
    """An empty filter gradient: with channels last it lies in memory as the weights of torch's channels_last_3d."""
    if not problem.channels_last:
        return like.new_empty(problem.filter_shape)
    return like.new_empty((problem.out_channels, *problem.filter_shape[:4])).permute(1, 2, 3, 4, 0)


def sum_type(dtype: torch.dtype) -> Any:
    """The type to accumulate in."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """The same as torch has it."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def parts_of(dtype: torch.dtype) -> int:
    """How many bfloat16 a number is taken apart into where its range is not looked at."""
    return 3 if dtype == torch.float32 else 1


def is_big(problem: Problem) -> bool:
    """Are there more elements than 32 bits count?"""
    return ADDRESSES.takes("wide", boxes.elements(problem))


def window_constants(problem: Problem) -> dict[str, int]:
    """Windows, strides and dilations under the names that the kernels have for them."""
    names = ("D", "H", "W")
    return {f"K_{name}": axis.window for name, axis in zip(names, problem.axes, strict=True)} | {
        f"{letter}_{name}": value
        for name, axis in zip(names, problem.axes, strict=True)
        for letter, value in (("S", axis.stride), ("L", axis.dilation))
    }


def tiling_of(config: Config) -> boxes.Tiling:
    """The tile of a configuration, for the kernels of boxes."""
    return boxes.Tiling(config.bm, config.bn, config.bk, config.warps, config.stages, config.across)
