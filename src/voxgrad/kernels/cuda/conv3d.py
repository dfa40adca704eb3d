# SPDX-License-Identifier: Apache-2.0
"""Conv3D, Conv3DBackpropInputV2 and Conv3DBackpropFilterV2 on a GPU with the kernels of `conv_gemm`.

Every function here runs voxgrad's own kernels with a given configuration; `tune` chooses it, or cuDNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.conv_gemm import (
    add_splits,
    conv_direct,
    conv_filter_rows,
    conv_filter_sums,
    conv_positions,
    conv_rows,
    depth_sums,
    gather_taps,
    unfold_width,
)  # fmt: skip
from voxgrad.kernels.cuda.launch import Launch, empty, per_problem
from voxgrad.kernels.cuda.parts import Make, aligned, launched, thirds

MOST_PRODUCTS = 2**30
"""The most products of taps with dy that are kept at once, 4 bytes each."""

BOXES = ("boxes", "box rows", "box stack", "box pairs")
"""The kinds of `conv_boxes`."""

FEW_CHANNELS = 4
"""Up to this many channels an input gradient is one product per position, and a gather of its taps."""


@dataclass(frozen=True, slots=True)
class Config:
    """Tile of a product (positions or filter rows, output channels, inner), warps, pipeline stages, splits.

    `kind` is the kernel: "taps" takes tap by tap ("whole" too, with float32 as it is), "rows" the three width taps of a
    row at once (stride 1), "strip" one row of taps of few channels per step, "direct" sums outer products without
    tensor cores. With "boxes" the copy engine fetches boxes of cells, in "box rows", "box stack" and "box pairs" for
    several products at once; `tf32` lets those take float32 for less than it is, `across` turns their products over.
    "unfold" writes the taps of a row as channels first, where these are few; "planes" carries what the taps of depth
    make of few channels from plane to plane.
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


@dataclass(frozen=True, slots=True)
class Phase:
    """The taps of one axis that reach the cells of one phase, and where they read."""

    taps: int
    first: int
    tap_step: int
    offset: int
    offset_step: int
    extent: int
    shift: int


def forward_phases(axis: Axis) -> list[Phase]:
    """A forward convolution has one phase: all taps."""
    return [Phase(axis.window, 0, 1, -axis.before, axis.dilation, axis.out, 0)]


def input_phases(axis: Axis) -> list[Phase]:
    """Cell q * stride + r is read by window q + (r + before - t * dilation) / stride, for the taps t that divide."""
    stride, dilation = axis.stride, axis.dilation
    step = stride // math.gcd(stride, dilation)
    phases = []
    for r in range(min(stride, axis.size)):
        taps = [t for t in range(axis.window) if (r + axis.before - t * dilation) % stride == 0]
        first = taps[0] if taps else 0
        offset = (r + axis.before - first * dilation) // stride
        phases.append(
            Phase(len(taps), first, step, offset, -(step * dilation // stride), -(-(axis.size - r) // stride), r)
        )
    return phases


def row_phase(axis: Axis, forward: bool) -> Phase:
    """The three taps of an axis of stride 1 in the order of the cells they read."""
    if forward:
        return Phase(3, 0, 1, -axis.before, 1, axis.out, 0)
    return Phase(3, 2, -1, axis.before - 2, 1, axis.size, 0)


def _table(per_axis: list[list[Phase]], device: torch.device) -> tuple[torch.Tensor, int, int]:
    """All phases as 21 integers each, their number, and the positions of the largest."""
    rows = [
        [value for phase in (a, b, c) for value in _numbers(phase)]
        for a in per_axis[0] for b in per_axis[1] for c in per_axis[2]
    ]  # fmt: skip
    largest = max(math.prod(row[at] for at in (5, 12, 19)) for row in rows)
    return torch.tensor(rows, dtype=torch.int32, device=device), len(rows), largest


def _numbers(phase: Phase) -> tuple[int, ...]:
    return (phase.taps, phase.first, phase.tap_step, phase.offset, phase.offset_step, phase.extent, phase.shift)


def data_strides(shape: tuple[int, ...], channels_last: bool) -> tuple[int, int, int, int, int]:
    """Element strides of a contiguous tensor in the order batch, depth, height, width, channels."""
    if channels_last:
        _, d, h, w, c = shape
        return d * h * w * c, h * w * c, w * c, c, 1
    _, c, d, h, w = shape
    return c * d * h * w, h * w, w, 1, d * h * w


def sum_type(dtype: torch.dtype) -> Any:
    """The type to accumulate in."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def channels_last_copy(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """NDHWC data; the products want the inner index contiguous, which pays for one transposing copy."""
    return x if problem.channels_last else x.permute(0, 2, 3, 4, 1).contiguous()


Run = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
"""Fills the last tensor from the first two."""


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
    if not all(map(_count, extents)):
        return lambda *tensors: tensors[0].new_zeros(extent)
    make, few = _forward if forward else _input, problem.in_channels <= FEW_CHANNELS
    if not forward and not back:
        return _filter_call(problem, _filter(problem, config, dtype, device))
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


def new_filter(problem: Problem, like: torch.Tensor) -> torch.Tensor:
    """An empty filter gradient: with channels last it lies in memory as the weights of torch's channels_last_3d."""
    if not problem.channels_last:
        return like.new_empty(problem.filter_shape)
    return like.new_empty((problem.out_channels, *problem.filter_shape[:4])).permute(1, 2, 3, 4, 0)


@per_problem
def _forward(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    as_it_lies = problem.in_channels <= FEW_CHANNELS or config.kind == "whole"
    strides = _strides(problem.input_extent, problem.channels_last, turned=not as_it_lies)
    if config.kind == "direct":
        return _direct(problem, config, strides, dtype)
    if config.kind == "unfold":
        return _unfolded_forward(problem, config, dtype)
    if config.kind in BOXES:
        run_boxes = _boxes(problem, config, dtype, turned)
        return lambda x, w, y: run_boxes(channels_last_copy(problem, x), w, y)
    make = _rows if config.kind == "rows" else _positions
    launch = make(problem, config, strides, dtype, device, turned, forward=True)
    if config.kind == "whole":
        return launch
    if as_it_lies:
        return lambda x, w, y: launch(thirds(x), thirds(w), y)
    return lambda x, w, y: launch(thirds(channels_last_copy(problem, x)), thirds(w), y)


@per_problem
def _input(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device, turned: bool) -> Run:
    whole = config.kind == "whole"
    strides = _strides(problem.output_extent, problem.channels_last, turned=not whole)
    make = _rows if config.kind == "rows" else _positions
    if whole:
        return make(problem, config, strides, dtype, device, turned, forward=False)
    few = problem.in_channels <= FEW_CHANNELS and problem.groups == 1
    if few and _products(problem) <= MOST_PRODUCTS:
        run = _input_of_few(problem, config, strides, dtype, device)
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
    tiling, columns = _tiling(config), problem.out_channels if forward else problem.in_channels
    terms = _count(problem.filter_shape) // columns
    if config.kind == "boxes":
        return launched(boxes.positions(problem, tiling, outs, turned), dtype, terms=terms, tf32=config.tf32)
    if config.kind != "box rows":
        launch = (boxes.stack if config.kind == "box stack" else boxes.pairs)(problem, tiling, outs, turned)
        return lambda x, w, y: launch(aligned(x), aligned(w), y)
    run = launched(boxes.rows(problem, tiling, outs), dtype, terms=terms, tf32=config.tf32, reads=2)
    return lambda x, w, y: run(x, boxes.side_by_side(problem, w), y)


def fits_unfolding(problem: Problem, bk: int) -> bool:
    """Can "unfold" do it? Few channels, last in memory, and enough taps in a row to fill 32 or 64."""
    columns = problem.axes[2].window * problem.in_channels
    fits = problem.groups == 1 and problem.channels_last and 16 < columns <= 64 and not _big(problem)
    return fits and boxes.fits(_in_rows(problem, triton.next_power_of_2(columns)), bk)


def fits_rows_of_taps(problem: Problem, bk: int) -> bool:
    """Can "boxes" do the input gradient of few channels? Whole blocks of output channels, no dilation with strides."""
    plain = all(axis.stride == 1 or axis.dilation == 1 for axis in problem.axes[:2])
    return plain and problem.groups == 1 and problem.out_channels % bk == 0 and _products(problem) <= MOST_PRODUCTS


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


def _unfolded_forward(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    window = problem.axes[2].window * problem.in_channels
    channels = triton.next_power_of_2(window)
    inner, unfold = _in_rows(problem, channels), _unfold(problem, channels)
    outs = data_strides(problem.output_extent, True)
    terms = _count(problem.filter_shape) // problem.out_channels
    run = launched(boxes.positions(inner, _tiling(config), outs, False), dtype, terms=terms, tf32=config.tf32)

    def both(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
        rows = w.reshape(*w.shape[:2], window, problem.out_channels)
        run(unfold(x), torch.nn.functional.pad(rows, (0, 0, 0, channels - window)), y)

    return both


def _unfolded_filter(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    taps, ci = problem.axes[2].window, problem.in_channels
    channels = triton.next_power_of_2(taps * ci)
    inner, unfold = _in_rows(problem, channels), _unfold(problem, channels)
    run = _filter_boxes(inner, config, dtype)

    def both(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        padded = new_filter(inner, x)
        run(unfold(x), dy, padded)
        dw.copy_(padded[:, :, 0, : taps * ci].unflatten(2, (taps, ci)))

    return both


def _tiling(config: Config) -> boxes.Tiling:
    return boxes.Tiling(config.bm, config.bn, config.bk, config.warps, config.stages, config.across)


def _strides(shape: tuple[int, ...], channels_last: bool, *, turned: bool) -> tuple[int, int, int, int, int]:
    """Strides of the data as the kernels get it: `turned` data has its channels last whatever came."""
    if turned and not channels_last:
        shape = (shape[0], *shape[2:], shape[1])
    return data_strides(shape, channels_last or turned)


def _parts(dtype: torch.dtype) -> int:
    return 3 if dtype == torch.float32 else 1


def _count(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def _big(problem: Problem) -> bool:
    return max(_count(problem.input_extent), _count(problem.output_extent)) >= 2**31


def _positions(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device,
               turned: bool, *, forward: bool) -> Callable[..., None]:  # fmt: skip
    """Tap by tap: the forward convolution, or all phases of its transpose."""
    groups, axes = problem.groups, problem.axes
    inner, outer = problem.in_channels // groups, problem.out_channels // groups
    ci, co = (inner, outer) if forward else (outer, inner)
    table, phases, largest = _table([forward_phases(axis) if forward else input_phases(axis) for axis in axes], device)
    source, out = (problem.input_extent, problem.output_extent)[:: 1 if forward else -1]
    o = data_strides(out, problem.channels_last)
    parts, strides = 1 if config.kind == "whole" else _parts(dtype), [axis.stride for axis in axes]
    tap, row, column = _filter_strides(problem, turned)
    columns = triton.cdiv(co, config.bn)
    reading, writing = (strides, [1, 1, 1])[:: 1 if forward else -1]
    strip = axes[2].window if config.kind == "strip" else 0
    scalars = (
        problem.batch, *(axis.size if forward else axis.out for axis in axes), *s, *o, tap,
        *((row, column) if forward else (column, row)), _count(problem.filter_shape), co, axes[1].window,
        axes[2].window, ci * s[4], outer * column, co * o[4], columns, phases,
    )  # fmt: skip
    constants = {
        "src_part": _count(source) if parts == 3 else 0, "CI": ci, "STEP_D": reading[0], "STEP_H": reading[1],
        "STEP_W": reading[2], "OUT_D": writing[0], "OUT_H": writing[1], "OUT_W": writing[2], "BM": config.bm,
        "BN": config.bn, "BK": triton.next_power_of_2(max(16, strip * ci)) if strip else config.bk, "PARTS": parts,
        "STRIP": strip, "ACC": sum_type(dtype), "BIG": _big(problem), "num_warps": config.warps,
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


def fits_rows(problem: Problem, *, channels: int) -> bool:
    """Can "rows" do it? Windows 3 wide, stride 1, no dilation in width, `channels` of the source in whole blocks."""
    axes = problem.axes
    thin = axes[2].window == 3 and axes[2].dilation == 1 and all(axis.stride == 1 for axis in axes)
    return thin and problem.groups == 1 and channels % 16 == 0 and not _big(problem) and axes[2].out > 0


def _rows(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device,
          turned: bool, *, forward: bool) -> Callable[..., None]:  # fmt: skip
    """The three width taps at once."""
    axes = problem.axes
    ci, co = (problem.in_channels, problem.out_channels)[:: 1 if forward else -1]
    tap, row, column = _filter_strides(problem, turned)
    table, _, _ = _table(
        [
            *([(forward_phases if forward else input_phases)(axis)[0]] for axis in axes[:2]),
            [row_phase(axes[2], forward)],
        ],
        device,
    )
    source, out = (problem.input_extent, problem.output_extent)[:: 1 if forward else -1]
    extents = [axis.size if forward else axis.out for axis in axes]
    made = [axis.out if forward else axis.size for axis in axes]
    whole = extents[2] <= 128 and made[2] <= 128
    bw = triton.next_power_of_2(max(extents[2], made[2])) if whole else 128
    step, origin = (bw, 0) if whole else (bw - 2, row_phase(axes[2], forward).offset)
    rows = problem.batch * made[0] * made[1]
    tiles = triton.cdiv(made[2], step)
    bm = max(config.bm, bw)
    scalars = (
        *extents, *s[:4], *data_strides(out, problem.channels_last), tap,
        *((row, column) if forward else (column, row)), _count(source), _count(problem.filter_shape), co,
        axes[1].window, rows, tiles, step, origin,
    )  # fmt: skip
    constants = {
        "CI": ci, "BW": bw, "BM": bm, "BN": config.bn, "BK": config.bk, "PARTS": _parts(dtype),
        "ACC": sum_type(dtype), "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    launch = Launch(conv_rows, (triton.cdiv(rows, bm // bw) * tiles, triton.cdiv(co, config.bn)), scalars, constants)
    return lambda source, w, out: launch(source, w, out, table)


def _direct(problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype) -> Run:
    axes = problem.axes
    o = data_strides(problem.output_extent, problem.channels_last)
    bm = min(config.bm, triton.next_power_of_2(axes[2].out))
    tiles, columns = triton.cdiv(axes[2].out, bm), triton.cdiv(problem.out_channels, config.bn)
    scalars = (
        axes[1].size, axes[2].size, *s, *o, problem.out_channels, *(axis.out for axis in axes), axes[0].size,
        *(axis.before for axis in axes), tiles, columns,
    )  # fmt: skip
    constants = _window_constants(problem) | {
        "CI": problem.in_channels, "ACC": sum_type(dtype), "BM": bm, "BN": config.bn, "num_warps": config.warps,
    }  # fmt: skip
    grid = (problem.batch * axes[0].out * axes[1].out * tiles * columns,)
    return Launch(conv_direct, grid, scalars, constants)


def _window_constants(problem: Problem) -> dict[str, int]:
    names = ("D", "H", "W")
    return {f"K_{name}": axis.window for name, axis in zip(names, problem.axes, strict=True)} | {
        f"{letter}_{name}": value
        for name, axis in zip(names, problem.axes, strict=True)
        for letter, value in (("S", axis.stride), ("L", axis.dilation))
    }


def _products(problem: Problem) -> int:
    """How many products `_input_of_few` keeps."""
    taps = math.prod(axis.window for axis in problem.axes) * problem.in_channels
    if taps <= 32:
        return taps * _count(problem.output_extent) // problem.out_channels
    rows = problem.batch * problem.axes[0].size * problem.axes[1].size * problem.axes[2].out
    return rows * problem.axes[2].window * problem.in_channels


@dataclass(frozen=True, slots=True)
class _Lattice:
    """What `_input_of_few` multiplies: the positions of dy with all taps at once, or with the taps of a row."""

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


def _few_lattice(problem: Problem, s: tuple[int, ...]) -> _Lattice:
    d, h, w = problem.axes
    if math.prod(axis.window for axis in problem.axes) * problem.in_channels <= 32:
        positions, point = problem.batch * d.out * h.out * w.out, [Phase(1, 0, 1, 0, 0, 1, 0)]
        phases = [point, point, [Phase(1, 0, 1, 0, 0, positions, 0)]]
        strides = (0, 0, 0, problem.out_channels, 1)
        return _Lattice(
            True, 1, positions, phases, (1, 1, positions), strides, (0, 0, 0, 1), (1, 1), problem.axes
        )  # fmt: skip
    plane = h.size * w.out
    phases = [input_phases(d), input_phases(h), [Phase(1, 0, 1, 0, 0, w.out, 0)]]
    taps = (Axis(d.size, d.size, 1), Axis(h.size, h.size, 1), w)
    outs = (d.size * plane, plane, w.out, 1)
    return _Lattice(
        False, problem.batch, problem.batch * d.size * plane, phases, (d.out, h.out, w.out), s, outs,
        (d.stride, h.stride), taps,
    )  # fmt: skip


def _input_of_few(
    problem: Problem, config: Config, s: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Run:
    """dx over few channels: products with dy for many taps at once as columns, then every cell gathers its own.

    Where all taps make few columns, dy is read once for all of them. Otherwise the taps of one row of the window are
    the columns, and depth and height are summed in the product.
    """
    if config.kind == "boxes":
        return _input_in_rows(problem, config, dtype)
    if config.kind == "planes":
        return _input_in_planes(problem, config, dtype)
    lattice, co = _few_lattice(problem, s), problem.out_channels
    once, positions, images = lattice.once, lattice.positions, lattice.images
    columns = math.prod(axis.window for axis in lattice.taps) * problem.in_channels
    table, count, largest = _table(lattice.phases, device)
    parts, blocks = _parts(dtype), triton.cdiv(columns, config.bn)
    scalars = (
        images, *lattice.sizes, *lattice.strides, *lattice.outs, positions, columns * co, 1, co,
        _count(problem.filter_shape), columns, 1 if once else problem.axes[1].window, 1, 0, 0, 0, blocks, count,
    )  # fmt: skip
    # Read once, dy is taken apart on the way; read for every row of taps, that is done before.
    constants = {
        "src_part": 0 if once or parts == 1 else _count(problem.output_extent), "CI": co, "STEP_D": 1, "STEP_H": 1,
        "STEP_W": 1, "OUT_D": lattice.steps[0], "OUT_H": lattice.steps[1], "OUT_W": 1, "BM": config.bm,
        "BN": config.bn, "BK": config.bk, "PARTS": parts, "STRIP": 0, "ACC": sum_type(dtype),
        "BIG": positions * columns >= 2**31 or _big(problem), "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    grid = (triton.cdiv(largest * images, config.bm) * blocks * count,)
    product = Launch(conv_positions, grid, scalars, constants)
    gather = _gather(problem, lattice.taps, positions, dtype)
    acc = torch.float64 if dtype == torch.float64 else torch.float32

    def run(dy: torch.Tensor, w: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=acc, device=dy.device)
        product(dy if once else thirds(dy), thirds(w.contiguous()), z, table)
        gather(z, dx)

    return run


def _input_in_rows(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """`_input_of_few` with the taps of a row as columns, in boxes."""
    d, h, w = problem.axes
    columns = w.window * problem.in_channels
    positions = problem.batch * d.size * h.size * w.out
    outs = (positions // problem.batch, h.size * w.out, w.out, 1, positions)
    product = boxes.positions(_in_rows(problem, columns), _tiling(config), outs, False)
    run = launched(product, dtype, terms=_count(problem.filter_shape) // problem.in_channels, tf32=config.tf32)
    gather = _gather(problem, (Axis(d.size, d.size, 1), Axis(h.size, h.size, 1), w), positions, dtype)

    def both(dy: torch.Tensor, taps: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=torch.float32, device=dy.device)
        run(dy, taps.contiguous(), z)
        gather(z, dx)

    return both


def _input_in_planes(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """`_input_of_few` with the taps of a plane as columns; those of depth are summed on the way along it."""
    (d, h, w), co = problem.axes, problem.out_channels
    columns, plane, chunk = h.window * w.window * problem.in_channels, h.out * w.out, min(32, d.size)
    positions = problem.batch * d.size * plane
    tiles, chunks = triton.cdiv(plane, config.bm), triton.cdiv(d.size, chunk)
    scalars = (d.size, d.out, co, plane, d.before, positions, tiles, chunks)
    constants = {
        "COLUMNS": columns, "K_D": d.window, "PARTS": _parts(dtype), "ACC": sum_type(dtype), "BM": config.bm,
        "BN": config.bn, "BK": config.bk, "CHUNK": chunk, "num_warps": config.warps, "num_stages": config.stages,
    }  # fmt: skip
    product = Launch(depth_sums, (problem.batch * tiles * chunks,), scalars, constants)
    gather = _gather(problem, (Axis(d.size, d.size, 1), h, w), positions, dtype)
    acc = torch.float64 if dtype == torch.float64 else torch.float32

    def run(dy: torch.Tensor, taps: torch.Tensor, dx: torch.Tensor) -> None:
        z = torch.empty((columns, positions), dtype=acc, device=dy.device)
        product(dy, taps.contiguous(), z)
        gather(z, dx)

    return run


def fits_planes(problem: Problem) -> bool:
    """Can "planes" do the input gradient of few channels? Up to 3 taps deep with stride 1, 16 columns, 64 channels."""
    deep, columns = problem.axes[0], problem.axes[1].window * problem.axes[2].window * problem.in_channels
    plain = deep.stride == deep.dilation == 1 and deep.window <= 3 and problem.groups == 1
    return plain and columns <= 16 and problem.out_channels <= 64 and _products(problem) <= MOST_PRODUCTS


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
    windows = _window_constants(replace(problem, axes=taps))
    grid = (problem.batch * d.size * tiles[0] * tiles[1], problem.in_channels)
    return Launch(gather_taps, grid, scalars, windows | {"ACC": sum_type(dtype), "BH": bh, "BW": bw})


@per_problem
def _filter(problem: Problem, config: Config, dtype: torch.dtype, device: torch.device) -> Run:
    if config.kind == "boxes":
        return _filter_boxes(problem, config, dtype)
    if config.kind == "unfold":
        return _unfolded_filter(problem, config, dtype)
    whole = config.kind == "whole"
    few = problem.in_channels <= FEW_CHANNELS
    make = _filter_rows if config.kind == "rows" else _filter_sums
    kernel, splits, rows, co = make(problem, config, dtype, few)
    launch = launched(kernel, dtype, terms=_terms(problem), tf32=config.tf32, whole=whole)
    if whole and splits == 1:
        return launch
    groups = problem.groups
    acc = torch.float64 if dtype == torch.float64 else torch.float32
    add = _adding(problem, rows, co, splits, dtype)

    def run(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        source = x if few or whole else channels_last_copy(problem, x)
        sums = torch.empty((groups, splits, rows, co), dtype=acc, device=x.device)
        launch(source, dy if whole else channels_last_copy(problem, dy), sums)
        add(sums, dw)

    return run


def _filter_boxes(problem: Problem, config: Config, dtype: torch.dtype) -> Run:
    """Boxes of positions. One split writes the gradient itself."""
    co = problem.out_channels
    rows = _count(problem.filter_shape) // co
    splits = max(1, config.splits)
    placed = _placed(problem, rows, co)[:2] if splits == 1 else (co, 1)
    kernel = (boxes.fan if config.kind == "unfold" else boxes.filters)(problem, _tiling(config), placed, splits)
    run = launched(kernel, dtype, terms=_terms(problem), tf32=config.tf32)
    add = _adding(problem, rows, co, splits, dtype)
    acc = torch.float64 if dtype == torch.float64 else torch.float32

    def both(x: torch.Tensor, dy: torch.Tensor, dw: torch.Tensor) -> None:
        data = channels_last_copy(problem, x), channels_last_copy(problem, dy)
        if splits == 1:
            run(*data, dw)
            return
        sums = torch.empty((splits, rows, co), dtype=acc, device=x.device)
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


def _filter_sums(problem: Problem, config: Config, dtype: torch.dtype, few: bool) -> tuple[Make, int, int, int]:
    """The partial sums of all splits: the launch, splits, filter rows and columns of one group."""
    groups, axes, whole = problem.groups, problem.axes, config.kind == "whole"
    ci, co = problem.in_channels // groups, problem.out_channels // groups
    s = _strides(problem.input_extent, problem.channels_last, turned=not few and not whole)
    y = _strides(problem.output_extent, problem.channels_last, turned=not whole)
    rows = math.prod(axis.window for axis in axes) * ci
    positions = problem.batch * math.prod(axis.out for axis in axes)
    columns = triton.cdiv(co, config.bn)
    blocks = triton.cdiv(rows, config.bm) * columns
    splits, per_split = _split(positions, blocks * groups, config)
    # One split of a tiny problem writes the gradient itself.
    placed = _placed(problem, rows, co) if whole and splits == 1 else (co, 1, splits * rows * co)
    scalars = (
        *(axis.size for axis in axes), *s, *y, _count(problem.input_extent), _count(problem.output_extent), positions,
        per_split, rows, co, *(axis.before for axis in axes), ci * s[4], co * y[4], *placed, columns,
    )  # fmt: skip
    windows = {name: value for name, value in _window_constants(problem).items() if name != "K_D"}
    windows["KH"], windows["KW"] = windows.pop("K_H"), windows.pop("K_W")
    constants = windows | {
        "CI": ci, "OD": axes[0].out, "OH": axes[1].out, "OW": axes[2].out, "BM": config.bm, "BN": config.bn,
        "BK": config.bk, "ACC": sum_type(dtype), "BIG": _big(problem), "num_warps": config.warps,
        "num_stages": config.stages,
    }  # fmt: skip

    def launch(how: Any, _: int) -> Launch:
        return Launch(conv_filter_sums, (blocks, splits, groups), scalars, constants | {"HOW": how})

    return launch, splits, rows, co


def _filter_rows(problem: Problem, config: Config, dtype: torch.dtype, few: bool) -> tuple[Make, int, int, int]:
    """`_filter_sums` with the three width taps at once."""
    axes, ci, co = problem.axes, problem.in_channels, problem.out_channels
    s = _strides(problem.input_extent, problem.channels_last, turned=True)
    y = _strides(problem.output_extent, problem.channels_last, turned=True)
    rows = axes[0].window * axes[1].window * ci
    positions = problem.batch * axes[0].out * axes[1].out * axes[2].size
    columns = triton.cdiv(co, config.bn)
    blocks = triton.cdiv(rows, config.bm) * columns
    splits, per_split = _split(positions, blocks, config)
    scalars = (
        *(axis.size for axis in axes), *s[:4], *y[:4], _count(problem.input_extent), _count(problem.output_extent),
        positions, per_split, rows, co, *(axis.before for axis in axes), axes[2].out, columns,
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
