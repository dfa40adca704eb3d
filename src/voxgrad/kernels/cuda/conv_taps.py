# SPDX-License-Identifier: Apache-2.0
"""Conv3D and its input gradient tap by tap, or by the three taps of a row: launches of the kernels of `conv_gemm`."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import triton

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.conv_common import Config, data_strides, is_big, parts_of, sum_type
from voxgrad.kernels.cuda.conv_gemm import conv_positions, conv_rows
from voxgrad.kernels.cuda.conv_phases import forward_phases, input_phases, row_phase, table_of
from voxgrad.kernels.cuda.launch import Launch
from voxgrad.kernels.cuda.paths import Need, Needs


def positions(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device,
              turned: bool, *, forward: bool) -> Callable[..., None]:  # fmt: skip
    """Tap by tap: the forward convolution, or all phases of its transpose."""
    groups, axes = problem.groups, problem.axes
    inner, outer = problem.in_channels // groups, problem.out_channels // groups
    ci, co = (inner, outer) if forward else (outer, inner)
    phases_of = forward_phases if forward else input_phases
    table, phases, largest = table_of([phases_of(axis) for axis in axes], device)
    source, out = (problem.input_extent, problem.output_extent)[:: 1 if forward else -1]
    o = data_strides(out, problem.channels_last)
    parts, strides = 1 if config.kind == "whole" else parts_of(dtype), [axis.stride for axis in axes]
    tap, row, column = _filter_strides(problem, turned)
    columns = triton.cdiv(co, config.bn)
    reading, writing = (strides, [1, 1, 1])[:: 1 if forward else -1]
    strip = axes[2].window if config.kind == "strip" else 0
    scalars = (
        problem.batch, *(axis.size if forward else axis.out for axis in axes), *s, *o, tap,
        *((row, column) if forward else (column, row)), math.prod(problem.filter_shape), co, axes[1].window,
        axes[2].window, ci * s[4], outer * column, co * o[4], columns, phases,
    )  # fmt: skip
    constants = {
        "src_part": math.prod(source) if parts == 3 else 0, "CI": ci, "STEP_D": reading[0], "STEP_H": reading[1],
        "STEP_W": reading[2], "OUT_D": writing[0], "OUT_H": writing[1], "OUT_W": writing[2], "BM": config.bm,
        "BN": config.bn, "BK": triton.next_power_of_2(max(16, strip * ci)) if strip else config.bk, "PARTS": parts,
        "STRIP": strip, "ACC": sum_type(dtype), "BIG": is_big(problem), "num_warps": config.warps,
        "num_stages": config.stages,
    }  # fmt: skip
    grid = (triton.cdiv(largest * problem.batch, config.bm) * columns * phases, groups)
    launch = Launch(conv_positions, grid, scalars, constants)
    return lambda source, w, out: launch(source, w, out, table)


def _filter_strides(problem: Problem, turned: bool) -> tuple[int, int, int]:
    """Elements between the taps, the input and the output channels of a filter."""
    inner, total = problem.in_channels // problem.groups, problem.out_channels
    if turned:
        return inner, 1, inner * math.prod(axis.window for axis in problem.axes)
    return inner * total, total, 1


FITS_ROWS: Needs = (
    boxes.ONE_GROUP, boxes.FEWER,
    Need("windows 3 wide", lambda problem, bk: problem.axes[2].window == 3),
    Need("no dilation in width", lambda problem, bk: problem.axes[2].dilation == 1),
    Need("stride 1", lambda problem, bk: all(axis.stride == 1 for axis in problem.axes)),
    Need("a multiple of 16 channels", lambda problem, bk: problem.in_channels % 16 == 0),
)  # fmt: skip
"""What "rows" needs of a filter gradient; of others, blocks that divide the channels of the source."""


def rows(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device,
         turned: bool, *, forward: bool) -> Callable[..., None]:  # fmt: skip
    """The three width taps at once."""
    axes = problem.axes
    ci, co = (problem.in_channels, problem.out_channels)[:: 1 if forward else -1]
    tap, row, column = _filter_strides(problem, turned)
    phases_of = forward_phases if forward else input_phases
    table, _, _ = table_of([*(phases_of(axis) for axis in axes[:2]), [row_phase(axes[2], forward)]], device)
    source, out = (problem.input_extent, problem.output_extent)[:: 1 if forward else -1]
    extents = [axis.size if forward else axis.out for axis in axes]
    outs = [axis.out if forward else axis.size for axis in axes]
    bw, step = boxes.row_tile(max(extents[2], outs[2]))
    origin = 0 if step == bw else row_phase(axes[2], forward).offset
    lines = problem.batch * outs[0] * outs[1]
    tiles = triton.cdiv(outs[2], step)
    bm = max(config.bm, bw)
    scalars = (
        *extents, *s[:4], *data_strides(out, problem.channels_last), tap,
        *((row, column) if forward else (column, row)), math.prod(source), math.prod(problem.filter_shape), co,
        axes[1].window, lines, tiles, step, origin,
    )  # fmt: skip
    constants = {
        "CI": ci, "BW": bw, "BM": bm, "BN": config.bn, "BK": config.bk, "PARTS": parts_of(dtype),
        "ACC": sum_type(dtype), "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    launch = Launch(conv_rows, (triton.cdiv(lines, bm // bw) * tiles, triton.cdiv(co, config.bn)), scalars, constants)
    return lambda source, w, out: launch(source, w, out, table)
