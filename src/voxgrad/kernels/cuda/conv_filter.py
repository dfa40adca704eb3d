# SPDX-License-Identifier: Apache-2.0
"""The filter gradient as sums over splits of the positions, which are added in a fixed order."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.conv_common import (
    FEW_CHANNELS,
    Config,
    Run,
    channels_last_copy,
    is_big,
    source_strides,
    sum_dtype,
    sum_type,
    tiling_of,
    window_constants,
)
from voxgrad.kernels.cuda.gemm_filter import add_splits, conv_filter_rows, conv_filter_sums
from voxgrad.kernels.cuda.launch import Launch
from voxgrad.kernels.cuda.parts import Make, launched
from voxgrad.kernels.cuda.paths import Fork, Need, Path

SPLITS = Fork(
    "splits", "where the sums of a filter gradient go",
    Path("one", (Need("one split", lambda splits: splits == 1),)),
    Path("several", (Need("several splits", lambda splits: splits > 1),)),
)  # fmt: skip


def in_splits(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """Tap by tap, or by the three taps of a row. One split of a tiny problem writes the gradient itself."""
    whole = config.kind == "whole"
    few = problem.in_channels <= FEW_CHANNELS
    make = _rows if config.kind == "rows" else _sums
    kernel, splits, rows, co = make(problem, config, dtype, few)
    launch = launched(kernel, dtype, terms=_terms(problem), tf32=config.tf32, whole=whole)
    if whole and SPLITS.takes("one", splits):
        return launch
    groups = problem.groups
    add = _adding(problem, rows, co, splits, dtype)

    def run(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        source = x if few or whole else channels_last_copy(problem, x)
        sums = torch.empty((groups, splits, rows, co), dtype=sum_dtype(dtype), device=x.device)
        launch(source, dy if whole else channels_last_copy(problem, dy), sums)
        add(sums, dw)

    return run


def in_boxes(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """Boxes of positions. One split writes the gradient itself."""
    co = problem.out_channels
    rows = math.prod(problem.filter_shape) // co
    splits = max(1, config.splits)
    one = SPLITS.takes("one", splits)
    placed = _placed(problem, rows, co)[:2] if one else (co, 1)
    kernel = (boxes.fan if config.kind == "unfold" else boxes.filters)(problem, tiling_of(config), placed, splits)
    run = launched(kernel, dtype, terms=_terms(problem), tf32=config.tf32)
    add = _adding(problem, rows, co, splits, dtype)

    def both(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        data = channels_last_copy(problem, x), channels_last_copy(problem, dy)
        if one:
            run(*data, dw)
            return
        sums = torch.empty((splits, rows, co), dtype=sum_dtype(dtype), device=x.device)
        run(*data, sums)
        add(sums, dw)

    return both


def _terms(problem: Problem) -> int:
    """How many products a number of a filter gradient sums."""
    return problem.batch * math.prod(axis.out for axis in problem.axes)


def _placed(problem: Problem, rows: int, co: int) -> tuple[int, int, int]:
    """Where a filter gradient keeps its rows, columns and groups, in elements."""
    return (1, rows, co * rows) if problem.channels_last else (problem.out_channels, 1, co)


def _adding(problem: Problem, rows: int, co: int, splits: int, dtype: torch.dtype) -> Launch:
    """The launch that adds the splits of a filter gradient."""
    block = _sum_block(splits, rows, co)
    grid = (triton.cdiv(rows, block["BR"]) * triton.cdiv(co, block["BC"]), problem.groups)
    scalars = (rows, splits, co, *_placed(problem, rows, co), splits * rows * co)
    return Launch(add_splits, grid, scalars, {"ACC": sum_type(dtype)} | block)


def _sum_block(splits: int, rows: int, columns: int) -> dict[str, int]:
    """Splits, rows and columns that one program adds at a time: about 1024 numbers, so that many are on their way."""
    bs = min(16, triton.next_power_of_2(splits))
    bc = min(32, triton.next_power_of_2(columns))
    return {"BS": bs, "BR": max(1, min(1024 // (bs * bc), triton.next_power_of_2(rows))), "BC": bc}


def _sums(problem: Problem, config: Config, dtype: torch.dtype, few: bool) -> tuple[Make, int, int, int]:
    """The partial sums of all splits: the launch, splits, filter rows and columns of one group."""
    groups, axes, whole = problem.groups, problem.axes, config.kind == "whole"
    ci, co = problem.in_channels // groups, problem.out_channels // groups
    s = source_strides(problem.input_extent, problem.channels_last, turned=not few and not whole)
    y = source_strides(problem.output_extent, problem.channels_last, turned=not whole)
    rows = math.prod(axis.window for axis in axes) * ci
    positions = problem.batch * math.prod(axis.out for axis in axes)
    columns = triton.cdiv(co, config.bn)
    blocks = triton.cdiv(rows, config.bm) * columns
    splits, per_split = _split(positions, blocks * groups, config)
    placed = _placed(problem, rows, co) if whole and splits == 1 else (co, 1, splits * rows * co)
    scalars = (
        *(axis.size for axis in axes), *s, *y, math.prod(problem.input_extent), math.prod(problem.output_extent),
        positions, per_split, rows, co, *(axis.before for axis in axes), ci * s[4], co * y[4], *placed, columns,
    )  # fmt: skip
    windows = {name: value for name, value in window_constants(problem).items() if name != "K_D"}
    windows["KH"], windows["KW"] = windows.pop("K_H"), windows.pop("K_W")
    constants = windows | {
        "CI": ci, "OD": axes[0].out, "OH": axes[1].out, "OW": axes[2].out, "BM": config.bm, "BN": config.bn,
        "BK": config.bk, "ACC": sum_type(dtype), "BIG": is_big(problem), "num_warps": config.warps,
        "num_stages": config.stages,
    }  # fmt: skip

    def launch(how: Any, _: int) -> Launch:
        return Launch(conv_filter_sums, (blocks, splits, groups), scalars, constants | {"HOW": how})

    return launch, splits, rows, co


def _rows(problem: Problem, config: Config, dtype: torch.dtype, few: bool) -> tuple[Make, int, int, int]:
    """`_sums` with the three width taps at once."""
    axes, ci, co = problem.axes, problem.in_channels, problem.out_channels
    s = source_strides(problem.input_extent, problem.channels_last, turned=True)
    y = source_strides(problem.output_extent, problem.channels_last, turned=True)
    rows = axes[0].window * axes[1].window * ci
    positions = problem.batch * axes[0].out * axes[1].out * axes[2].size
    columns = triton.cdiv(co, config.bn)
    blocks = triton.cdiv(rows, config.bm) * columns
    splits, per_split = _split(positions, blocks, config)
    scalars = (
        *(axis.size for axis in axes), *s[:4], *y[:4], math.prod(problem.input_extent),
        math.prod(problem.output_extent), positions, per_split, rows, co, *(axis.before for axis in axes), axes[2].out,
        columns,
    )  # fmt: skip
    constants = {
        "CI": ci, "KH": axes[1].window, "L_D": axes[0].dilation, "L_H": axes[1].dilation, "S_D": 1, "S_H": 1,
        "OD": axes[0].out, "OH": axes[1].out, "WIDTH": axes[2].size, "BM": config.bm, "BN": config.bn,
        "BK": config.bk, "ACC": sum_type(dtype), "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip

    def launch(how: Any, _: int) -> Launch:
        return Launch(conv_filter_rows, (blocks, splits), scalars, constants | {"HOW": how})

    return launch, splits, 3 * rows, co


def _split(positions: int, blocks: int, config: Config) -> tuple[int, int]:
    """How many splits fill the machine, and positions per split, a whole number of inner tiles."""
    wanted = config.splits or max(1, (4 * 132) // blocks)
    steps = triton.cdiv(positions, config.bk)
    per = triton.cdiv(steps, min(wanted, steps))
    return triton.cdiv(steps, per), per * config.bk
