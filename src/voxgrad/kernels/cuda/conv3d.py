# SPDX-License-Identifier: Apache-2.0
"""Conv3D, Conv3DBackpropInputV2 and Conv3DBackpropFilterV2 on a GPU with voxgrad's own kernels.

Every function here runs them with a given configuration; `tune` chooses it, or cuDNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from voxgrad.catalog.model import Side
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
from voxgrad.kernels.cuda.parts import aligned, bf16_parts, launched
from voxgrad.kernels.cuda.paths import Fork, Path
from voxgrad.kernels.names import KERNELS


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
    forward, back = problem.map.output is Side.WINDOWS, problem.map.output is Side.CELLS
    extent = extents[2 if forward else 0 if back else 1]
    if not all(map(math.prod, extents)):
        return lambda *tensors: tensors[0].new_zeros(extent)
    path = CONVS[KERNELS[problem.op]].given(config.kind, problem, config.bk)
    few = problem.in_channels <= FEW_CHANNELS
    if not forward and not back:
        return _filter_call(problem, path.make(problem, config, dtype, device, False))
    runs: list[Run | None] = [None, None]

    def call(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        w, data = (second, first) if forward else (first, second)
        taps, turned = (w, False) if w.is_contiguous() else filter_memory(w.contiguous() if forward and few else w)
        run = runs[turned]
        if run is None:
            run = runs[turned] = path.make(problem, config, dtype, device, turned)
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


def _forward_taps(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    """Tap by tap, by the taps of a row, or by those of a strip of few channels."""
    as_it_lies = problem.in_channels <= FEW_CHANNELS or config.kind == "whole"
    strides = source_strides(problem.input_extent, problem.channels_last, turned=not as_it_lies)
    make = conv_taps.rows if config.kind == "rows" else conv_taps.positions
    launch = make(problem, config, strides, dtype, device, turned, forward=True)
    if config.kind == "whole":
        return launch
    if as_it_lies:
        return lambda x, w, y: launch(bf16_parts(x), bf16_parts(w), y)
    return lambda x, w, y: launch(bf16_parts(channels_last_copy(problem, x)), bf16_parts(w), y)


def _direct(problem: Problem, config: Config, dtype: torch.dtype, *_: Any) -> Run:
    return conv_few.direct(problem, config, data_strides(problem.input_extent, problem.channels_last), dtype)


def _input_taps(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    """Tap by tap, or by the taps of a row."""
    whole = config.kind == "whole"
    strides = source_strides(problem.output_extent, problem.channels_last, turned=not whole)
    make = conv_taps.rows if config.kind == "rows" else conv_taps.positions
    launch = make(problem, config, strides, dtype, device, turned, forward=False)
    if whole:
        return launch
    return lambda dy, w, dx: launch(bf16_parts(channels_last_copy(problem, dy)), bf16_parts(w), dx)


def _input_few(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, *_: Any) -> Run:
    strides = source_strides(problem.output_extent, problem.channels_last, turned=True)
    return _channels_last(problem, conv_few.input_of_few(problem, config, strides, dtype, device))


def _channels_last(problem: Problem, run: Run) -> Run:
    """What runs on data with its channels last, on data as it comes."""
    return lambda data, w, out: run(channels_last_copy(problem, data), w, out)


def _boxes(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    """Boxes of cells: the forward convolution, or all phases of its transpose."""
    forward = problem.map.output is Side.WINDOWS
    outs = data_strides(problem.output_extent if forward else problem.input_extent, problem.channels_last)
    tiling, terms = tiling_of(config), math.prod(problem.filter_shape) // boxes.columns_of(problem)
    if config.kind == "boxes":
        run = launched(boxes.positions(problem, tiling, outs, turned), dtype, terms=terms, tf32=config.tf32)
        return _channels_last(problem, run)
    if config.kind != "box rows":
        launch = (boxes.stack if config.kind == "box stack" else boxes.pairs)(problem, tiling, outs, turned)
        return _channels_last(problem, lambda x, w, y: launch(aligned(x), aligned(w), y))
    rows = launched(boxes.rows(problem, tiling, outs), dtype, terms=terms, tf32=config.tf32, reads=2)
    return _channels_last(problem, lambda x, w, y: rows(x, boxes.side_by_side(problem, w), y))


def _filter(make: Callable[[Problem, Config, torch.dtype], Run]) -> Callable[..., Run]:
    """A filter gradient, which reads no filter."""
    return lambda problem, config, dtype, device, turned: make(problem, config, dtype)


def _few(make: Callable[[Problem, Config, torch.dtype], Run]) -> Callable[..., Run]:
    """An input gradient of few channels that gathers products."""
    return lambda problem, config, dtype, device, turned: _channels_last(problem, make(problem, config, dtype))


def _unfold(problem: Problem, config: Config, dtype: torch.dtype, *_: Any) -> Run:
    return conv_few.unfolded_forward(problem, config, dtype)


_WHOLE_ROWS = (*conv_taps.FITS_ROWS[:-1], boxes.WHOLE_BLOCKS)
_FEW = (conv_few.FEW, boxes.ONE_GROUP)
CONVS = {
    "conv3d": Fork(
        "conv3d", "Conv3D",
        Path("direct", _FEW, make=_direct),
        Path("strip", _FEW, make=_forward_taps),
        Path("unfold", conv_few.fits_unfolding("conv3d"), make=_unfold),
        Path("box stack", boxes.FITS_STACK, make=_boxes),
        Path("box rows", boxes.FITS_ROWS, make=_boxes),
        Path("boxes", boxes.FITS["conv3d"], make=_boxes),
        Path("rows", _WHOLE_ROWS, make=_forward_taps),
        Path("whole", make=_forward_taps),
        Path("taps", make=_forward_taps),
    ),
    "conv3d_input": Fork(
        "conv3d_input", "Conv3DBackpropInputV2",
        Path("planes", conv_few.FITS_PLANES, make=_few(conv_few.input_in_planes)),
        Path("few boxes", conv_few.FITS_ROWS_OF_TAPS, make=_few(conv_few.input_in_rows)),
        Path("few", conv_few.FITS_GATHERING, make=_input_few),
        Path("box stack", boxes.FITS_STACK, make=_boxes),
        Path("box pairs", boxes.FITS_PAIRS, make=_boxes),
        Path("box rows", boxes.FITS_ROWS, make=_boxes),
        Path("boxes", boxes.FITS["conv3d_input"], make=_boxes),
        Path("rows", _WHOLE_ROWS, make=_input_taps),
        Path("whole", make=_input_taps),
        Path("taps", make=_input_taps),
    ),
    "conv3d_filter": Fork(
        "conv3d_filter", "Conv3DBackpropFilterV2",
        Path("unfold", conv_few.fits_unfolding("filter_fan"), make=_filter(conv_few.unfolded_filter)),
        Path("boxes", boxes.FITS["conv3d_filter"], make=_filter(conv_filter.in_boxes)),
        Path("rows", conv_taps.FITS_ROWS, make=_filter(conv_filter.in_splits)),
        Path("whole", make=_filter(conv_filter.in_splits)),
        Path("taps", make=_filter(conv_filter.in_splits)),
    ),
}  # fmt: skip
"""The kinds of a configuration. Which of those that are possible is worth it, `tune` knows or measures."""
