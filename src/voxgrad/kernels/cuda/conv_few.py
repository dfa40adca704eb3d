# SPDX-License-Identifier: Apache-2.0
"""Convolutions of few channels: taps become channels or columns first, so that tensor cores have enough to multiply.

A row of taps is unfolded into channels for Conv3D and its filter gradient. An input gradient is products with dy for
many taps at once, of which every cell then gathers its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton

from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.conv_common import (
    FEW_CHANNELS,
    Config,
    Run,
    data_strides,
    is_big,
    new_filter,
    parts_of,
    sum_dtype,
    sum_type,
    tiling_of,
    window_constants,
)
from voxgrad.kernels.cuda.conv_filter import in_boxes
from voxgrad.kernels.cuda.conv_gemm import conv_positions
from voxgrad.kernels.cuda.conv_phases import Phase, input_phases, table_of
from voxgrad.kernels.cuda.gemm_few import conv_direct, depth_sums, gather_taps, unfold_width
from voxgrad.kernels.cuda.launch import Launch
from voxgrad.kernels.cuda.parts import bf16_parts, launched
from voxgrad.kernels.cuda.paths import Fork, Need, Needs, Path

MOST_PRODUCTS = 2**30
"""The most products of taps with dy that are kept at once, 4 bytes each."""


FEW = Need("at most 4 channels", lambda problem, bk: problem.in_channels <= FEW_CHANNELS)
_SHORT = Need("no float64", lambda problem, bk: problem.dtype.itemsize <= 4)


def _unfolds(need: Need) -> Need:
    """A need of boxes, of the problem in which the taps of a row are channels."""
    return replace(need, holds=lambda problem, bk: need.holds(_in_rows(problem, _unfolded(problem)), bk))


def _unfolded(problem: Problem) -> int:
    """Channels after the taps of a row have become channels."""
    return int(triton.next_power_of_2(problem.axes[2].window * problem.in_channels))


def fits_unfolding(boxed: str) -> Needs:
    """What "unfold" needs: channels last in memory, enough taps in a row to fill 32 or 64, and what boxes need."""
    return (
        FEW, _SHORT, Need("channels last", lambda problem, bk: problem.channels_last),
        Need("rows with more than 16 taps and channels", lambda problem, bk: _unfolded(problem) > 16),
        Need("rows with at most 64", lambda problem, bk: _unfolded(problem) <= 64),
        *map(_unfolds, boxes.FITS[boxed]),
    )  # fmt: skip


def _in_rows(problem: Problem, channels: int) -> Problem:
    """The problem after the taps of a row have become channels: windows of one cell in width."""
    d, h, w = problem.axes
    return replace(problem, in_channels=channels, axes=(d, h, Axis(w.out, w.out, 1)))


def _unfold(problem: Problem, channels: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Write the taps of every row as channels, padded with zeros to a given number of them."""
    (d, h, w), ci = problem.axes, problem.in_channels
    block = 64
    tiles = triton.cdiv(w.out, block)
    scalars = (d.size, h.size, w.size, w.out, w.before, *data_strides(problem.input_extent, True), tiles)
    constants = {
        "CI": ci, "K_W": w.window, "S_W": w.stride, "L_W": w.dilation, "LANES": triton.next_power_of_2(channels),
        "ROW": channels, "BLOCK": block,
    }  # fmt: skip
    launch = Launch(unfold_width, (problem.batch * d.size * h.size * tiles,), scalars, constants)

    def run(x: torch.Tensor) -> torch.Tensor:
        out = x.new_empty((problem.batch, d.size, h.size, w.out, channels))
        launch(x, out)
        return out

    return run


def direct(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype) -> Run:
    """Conv3D as a sum of outer products, where channels and taps are too few for tensor cores."""
    axes = problem.axes
    o = data_strides(problem.output_extent, problem.channels_last)
    bm = min(config.bm, triton.next_power_of_2(axes[2].out))
    tiles, columns = triton.cdiv(axes[2].out, bm), triton.cdiv(problem.out_channels, config.bn)
    scalars = (
        axes[1].size, axes[2].size, *s, *o, problem.out_channels, *(axis.out for axis in axes), axes[0].size,
        *(axis.before for axis in axes), tiles, columns,
    )  # fmt: skip
    constants = window_constants(problem) | {
        "CI": problem.in_channels, "ACC": sum_type(dtype), "BM": bm, "BN": config.bn, "num_warps": config.warps,
    }  # fmt: skip
    grid = (problem.batch * axes[0].out * axes[1].out * tiles * columns,)
    return Launch(conv_direct, grid, scalars, constants)


def unfolded_forward(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """Conv3D of a row of taps as channels."""
    window, channels = problem.axes[2].window * problem.in_channels, _unfolded(problem)
    inner, unfold = _in_rows(problem, channels), _unfold(problem, channels)
    outs = data_strides(problem.output_extent, True)
    terms = math.prod(problem.filter_shape) // problem.out_channels
    run = launched(boxes.positions(inner, tiling_of(config), outs, False), dtype, terms=terms, tf32=config.tf32)

    def both(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
        rows = w.reshape(*w.shape[:2], window, problem.out_channels)
        run(unfold(x), torch.nn.functional.pad(rows, (0, 0, 0, channels - window)), y)

    return both


def unfolded_filter(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """The filter gradient of a row of taps as channels."""
    taps, ci = problem.axes[2].window, problem.in_channels
    channels = _unfolded(problem)
    inner, unfold = _in_rows(problem, channels), _unfold(problem, channels)
    run = in_boxes(inner, config, dtype)

    def both(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        padded = new_filter(inner, x)
        run(unfold(x), dy, padded)
        rows: Any = padded[:, :, 0, : taps * ci]
        dw.copy_(rows.unflatten(2, (taps, ci)))

    return both


def _products(problem: Problem) -> int:
    """How many products `input_of_few` keeps."""
    taps = math.prod(axis.window for axis in problem.axes) * problem.in_channels
    if COLUMNS["all"].needs[0].holds(taps):
        return taps * math.prod(problem.output_extent) // problem.out_channels
    rows = problem.batch * problem.axes[0].size * problem.axes[1].size * problem.axes[2].out
    return rows * problem.axes[2].window * problem.in_channels


FITS_GATHERING: Needs = (
    FEW, boxes.ONE_GROUP,
    Need("at most 2**30 products", lambda problem, bk: _products(problem) <= MOST_PRODUCTS, huge=True),
)  # fmt: skip
FITS_ROWS_OF_TAPS: Needs = (
    *FITS_GATHERING, _SHORT, boxes.WHOLE_BLOCKS,
    Need("no depth or height with a stride and a dilation", lambda problem, bk: all(
        axis.stride == 1 or axis.dilation == 1 for axis in problem.axes[:2])),
)  # fmt: skip
FITS_PLANES: Needs = (
    *FITS_GATHERING,
    Need("stride 1 along depth", lambda problem, bk: problem.axes[0].stride == 1),
    Need("no dilation along depth", lambda problem, bk: problem.axes[0].dilation == 1),
    Need("at most 3 taps deep", lambda problem, bk: problem.axes[0].window <= 3),
    Need("at most 16 taps and channels in a plane", lambda problem, bk: _plane(problem) <= 16),
    Need("a block with all output channels", lambda problem, bk: problem.out_channels <= bk),
)  # fmt: skip
"""What "few", "few boxes" and "planes" need."""

COLUMNS = Fork(
    "columns", "which taps are the columns of the product in an input gradient of few channels",
    Path("all", (Need("at most 32 taps and channels", lambda taps: taps <= 32),)),
    Path("rows"),
)  # fmt: skip


def _plane(problem: Problem) -> int:
    return problem.axes[1].window * problem.axes[2].window * problem.in_channels


@dataclass(frozen=True, slots=True)
class _ProductShape:
    """What `input_of_few` multiplies: the positions of dy with all taps at once, or with the taps of a row."""

    once: bool
    images: int
    positions: int
    phases: list[list[Phase]]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    outs: tuple[int, ...]
    steps: tuple[int, int]
    taps: tuple[Axis, Axis, Axis]
    """The taps that are columns, as windows over the products."""


def _product_shape(problem: Problem, s: tuple[int, ...]) -> _ProductShape:
    """All taps at once where they make up to 32 columns."""
    d, h, w = problem.axes
    if COLUMNS.takes("all", math.prod(axis.window for axis in problem.axes) * problem.in_channels):
        positions, point = problem.batch * d.out * h.out * w.out, [Phase(1, 0, 1, 0, 0, 1, 0)]
        phases = [point, point, [Phase(1, 0, 1, 0, 0, positions, 0)]]
        strides = (0, 0, 0, problem.out_channels, 1)
        return _ProductShape(
            True, 1, positions, phases, (1, 1, positions), strides, (0, 0, 0, 1), (1, 1), problem.axes
        )  # fmt: skip
    plane = h.size * w.out
    phases = [input_phases(d), input_phases(h), [Phase(1, 0, 1, 0, 0, w.out, 0)]]
    taps = (Axis(d.size, d.size, 1), Axis(h.size, h.size, 1), w)
    outs = (d.size * plane, plane, w.out, 1)
    return _ProductShape(
        False, problem.batch, problem.batch * d.size * plane, phases, (d.out, h.out, w.out), s, outs,
        (d.stride, h.stride), taps,
    )  # fmt: skip


def input_of_few(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Run:
    """dx over few channels: products with dy for many taps at once as columns, then every cell gathers its own.

    Where all taps make few columns, dy is read once for all of them. Otherwise the taps of one row of the window are
    the columns, and depth and height are summed in the product.
    """
    shape, co = _product_shape(problem, s), problem.out_channels
    once, positions, images = shape.once, shape.positions, shape.images
    columns = math.prod(axis.window for axis in shape.taps) * problem.in_channels
    table, count, largest = table_of(shape.phases, device)
    parts, blocks = parts_of(dtype), triton.cdiv(columns, config.bn)
    scalars = (
        images, *shape.sizes, *shape.strides, *shape.outs, positions, columns * co, 1, co,
        math.prod(problem.filter_shape), columns, 1 if once else problem.axes[1].window, 1, 0, 0, 0, blocks, count,
    )  # fmt: skip
    # Read once, dy is taken apart on the way; read for every row of taps, that is done before.
    constants = {
        "src_part": 0 if once or parts == 1 else math.prod(problem.output_extent), "CI": co, "STEP_D": 1, "STEP_H": 1,
        "STEP_W": 1, "OUT_D": shape.steps[0], "OUT_H": shape.steps[1], "OUT_W": 1, "BM": config.bm,
        "BN": config.bn, "BK": config.bk, "PARTS": parts, "STRIP": 0, "ACC": sum_type(dtype),
        "BIG": positions * columns >= 2**31 or is_big(problem), "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    grid = (triton.cdiv(largest * images, config.bm) * blocks * count,)
    product = Launch(conv_positions, grid, scalars, constants)
    gather = _gather(problem, shape.taps, positions, dtype)

    def run(dy: torch.Tensor, w: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=sum_dtype(dtype), device=dy.device)
        product(dy if once else bf16_parts(dy), bf16_parts(w.contiguous()), z, table)
        gather(z, dx)

    return run


def input_in_rows(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """`input_of_few` with the taps of a row as columns, in boxes."""
    d, h, w = problem.axes
    columns = w.window * problem.in_channels
    positions = problem.batch * d.size * h.size * w.out
    outs = (positions // problem.batch, h.size * w.out, w.out, 1, positions)
    product = boxes.positions(_in_rows(problem, columns), tiling_of(config), outs, False)
    run = launched(product, dtype, terms=math.prod(problem.filter_shape) // problem.in_channels, tf32=config.tf32)
    gather = _gather(problem, (Axis(d.size, d.size, 1), Axis(h.size, h.size, 1), w), positions, dtype)

    def both(dy: torch.Tensor, taps: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=torch.float32, device=dy.device)
        run(dy, taps.contiguous(), z)
        gather(z, dx)

    return both


def input_in_planes(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """`input_of_few` with the taps of a plane as columns; those of depth are summed on the way along it."""
    (d, h, w), co = problem.axes, problem.out_channels
    columns, plane, chunk = h.window * w.window * problem.in_channels, h.out * w.out, min(32, d.size)
    positions = problem.batch * d.size * plane
    tiles, chunks = triton.cdiv(plane, config.bm), triton.cdiv(d.size, chunk)
    scalars = (d.size, d.out, co, plane, d.before, positions, tiles, chunks)
    constants = {
        "COLUMNS": columns, "K_D": d.window, "PARTS": parts_of(dtype), "ACC": sum_type(dtype), "BM": config.bm,
        "BN": config.bn, "BK": config.bk, "CHUNK": chunk, "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    product = Launch(depth_sums, (problem.batch * tiles * chunks,), scalars, constants)
    gather = _gather(problem, (Axis(d.size, d.size, 1), h, w), positions, dtype)

    def run(dy: torch.Tensor, taps: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=sum_dtype(dtype), device=dy.device)
        product(dy, taps.contiguous(), z)
        gather(z, dx)

    return run


def _gather(problem: Problem, taps: tuple[Axis, Axis, Axis], positions: int, dtype: torch.dtype) -> Launch:
    """Every cell adds the products of the taps that fall on it."""
    d, h, w = problem.axes
    bw = min(128, triton.next_power_of_2(w.size))
    bh = max(1, min(512 // bw, triton.next_power_of_2(h.size)))
    tiles = (triton.cdiv(h.size, bh), triton.cdiv(w.size, bw))
    scalars = (
        positions, d.size, h.size, w.size, *(axis.out for axis in taps), *(axis.before for axis in taps),
        problem.in_channels, *tiles, *data_strides(problem.input_extent, problem.channels_last),
    )  # fmt: skip
    windows = window_constants(replace(problem, axes=taps))
    grid = (problem.batch * d.size * tiles[0] * tiles[1], problem.in_channels)
    return Launch(gather_taps, grid, scalars, windows | {"ACC": sum_type(dtype), "BH": bh, "BW": bw})
