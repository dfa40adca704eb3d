# SPDX-License-Identifier: Apache-2.0
"""Conv3D, Conv3DBackpropInputV2 and Conv3DBackpropFilterV2 on a GPU with voxgrad's own kernels.

Every function here runs them with a given configuration; `tune` chooses it, or cuDNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes, conv_few, conv_filter, conv_taps
from voxgrad.kernels.cuda.conv_common import (
    FEW_CHANNELS,
    Config,
    Run,
    channels_last_copy,
    data_strides,
    new_filter,
    source_strides,
    tiling_of,
)
from voxgrad.kernels.cuda.launch import empty, per_problem
from voxgrad.kernels.cuda.parts import aligned, launched, thirds

BOXES = ("boxes", "box rows", "box stack", "box pairs")
"""The kinds of `conv_boxes`."""


def conv3d(problem: Problem, x: torch.Tensor, w: torch.Tensor, config: Config) -> torch.Tensor:
    """y = correlation of x with the filter."""
    return prepared(problem, config, x.dtype, x.device)(x, w)


def conv3d_input(problem: Problem, w: torch.Tensor, dy: torch.Tensor, config: Config) -> torch.Tensor:
    """dx = the transpose of `conv3d` in x, applied to dy."""
    return prepared(problem, config, dy.dtype, dy.device)(w, dy)


def conv3d_filter(problem: Problem, x: torch.Tensor, dy: torch.Tensor, config: Config) -> torch.Tensor:
    """dw = the transpose of `conv3d` in the filter, applied to dy. Splits are added in a fixed order."""
    return prepared(problem, config, x.dtype, x.device)(x, dy)


@per_problem
def prepared(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device) -> Callable[..., torch.Tensor]:
    """A convolution with everything but its tensors: what is worked out once is not on the way of a call."""
    extents = problem.input_extent, problem.filter_shape, problem.output_extent
    forward, back = problem.kernel == "conv3d", problem.kernel == "conv3d_input"
    extent = extents[2 if forward else 0 if back else 1]
    if not all(map(math.prod, extents)):
        return lambda *tensors: tensors[0].new_zeros(extent)
    make, few = _forward if forward else _input, problem.in_channels <= FEW_CHANNELS
    if not forward and not back:
        return _filter_call(problem, _filter(problem, config, dtype))
    runs: list[Run | None] = [None, None]

    def call(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        w, data = (second, first) if forward else (first, second)
        taps, turned = (w, False) if w.is_contiguous() else filter_memory(w.contiguous() if forward and few else w)
        run = runs[turned]
        if run is None:
            run = runs[turned] = make(problem, config, dtype, device, turned)
        out = empty(data, extent)
        run(data, taps, out)
        return out

    return call


def _filter_call(problem: Problem, run: Run) -> Callable[..., torch.Tensor]:
    """A filter gradient into new memory, which lies as `new_filter` says."""
    shape, strides = problem.filter_shape, new_filter(problem, torch.empty(0, device="meta")).stride()

    def call(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dw = empty(x, shape, strides)
        run(x, dy, dw)
        return dw

    return call


def filter_memory(w: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """A filter without gaps, and whether its output channels come first in memory, as in torch's channels_last_3d."""
    if w.is_contiguous():
        return w, False
    turned = w.permute(4, 0, 1, 2, 3).is_contiguous()
    return (w, True) if turned else (w.contiguous(), False)


def _forward(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    as_it_lies = problem.in_channels <= FEW_CHANNELS or config.kind == "whole"
    strides = source_strides(problem.input_extent, problem.channels_last, turned=not as_it_lies)
    if config.kind == "direct":
        return conv_few.direct(problem, config, strides, dtype)
    if config.kind == "unfold":
        return conv_few.unfolded_forward(problem, config, dtype)
    if config.kind in BOXES:
        run_boxes = _boxes(problem, config, dtype, turned)
        return lambda x, w, y: run_boxes(channels_last_copy(problem, x), w, y)
    make = conv_taps.rows if config.kind == "rows" else conv_taps.positions
    launch = make(problem, config, strides, dtype, device, turned, forward=True)
    if config.kind == "whole":
        return launch
    if as_it_lies:
        return lambda x, w, y: launch(thirds(x), thirds(w), y)
    return lambda x, w, y: launch(thirds(channels_last_copy(problem, x)), thirds(w), y)


def _input(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    whole = config.kind == "whole"
    strides = source_strides(problem.output_extent, problem.channels_last, turned=not whole)
    make = conv_taps.rows if config.kind == "rows" else conv_taps.positions
    if whole:
        return make(problem, config, strides, dtype, device, turned, forward=False)
    if problem.in_channels <= FEW_CHANNELS and conv_few.fits_gathering(problem):
        run = conv_few.input_of_few(problem, config, strides, dtype, device)
    elif config.kind in BOXES:
        run = _boxes(problem, config, dtype, turned)
    else:
        launch = make(problem, config, strides, dtype, device, turned, forward=False)
        return lambda dy, w, dx: launch(thirds(channels_last_copy(problem, dy)), thirds(w), dx)
    return lambda dy, w, dx: run(channels_last_copy(problem, dy), w, dx)


def _boxes(problem: Problem, config: Config, dtype: torch.dtype, turned: bool) -> Run:
    """Boxes of cells: the forward convolution, or all phases of its transpose."""
    forward = problem.kernel == "conv3d"
    outs = data_strides(problem.output_extent if forward else problem.input_extent, problem.channels_last)
    tiling, columns = tiling_of(config), problem.out_channels if forward else problem.in_channels
    terms = math.prod(problem.filter_shape) // columns
    if config.kind == "boxes":
        return launched(boxes.positions(problem, tiling, outs, turned), dtype, terms=terms, tf32=config.tf32)
    if config.kind != "box rows":
        launch = (boxes.stack if config.kind == "box stack" else boxes.pairs)(problem, tiling, outs, turned)
        return lambda x, w, y: launch(aligned(x), aligned(w), y)
    run = launched(boxes.rows(problem, tiling, outs), dtype, terms=terms, tf32=config.tf32, reads=2)
    return lambda x, w, y: run(x, boxes.side_by_side(problem, w), y)


def _filter(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    if config.kind == "boxes":
        return conv_filter.in_boxes(problem, config, dtype)
    if config.kind == "unfold":
        return conv_few.unfolded_filter(problem, config, dtype)
    return conv_filter.in_splits(problem, config, dtype)
