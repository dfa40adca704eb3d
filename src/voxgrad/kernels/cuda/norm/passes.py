# SPDX-License-Identifier: Apache-2.0
"""The launches of a norm on a GPU: planned once per shape, the same chunks on every device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import triton

from voxgrad.kernels.cuda.launch import Launch
from voxgrad.kernels.cuda.norm import kernels
from voxgrad.kernels.cuda.norm.plain import Given, Norm

_FIELDS: int = kernels.FIELDS.value
_MEAN: int = kernels.MEAN.value
_VARIANCE: int = kernels.VARIANCE.value
_RATE: int = kernels.RATE.value
_WEIGHT: int = kernels.WEIGHT.value

MOST_IN_A_GROUP = 4096
"""Channels of a group that share a mean: more than a program of `finish_statistics` holds."""

_PROGRAMS = 2048
"""Programs that a pass over the data is cut into, if it is large enough."""

_REDUCED, _APPLIED, _FINISHED = 2048, 4096, 2048
"""Numbers of a tile: of a pass that sums, of one that writes, of what puts chunks together."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """Data as the kernels see them: [images, cells, channels] in memory, channels last or not."""

    images: int
    cells: int
    channels: int
    last: bool

    @property
    def steps(self) -> tuple[int, int]:
        """From cell to cell and from channel to channel."""
        return (self.channels, 1) if self.last else (1, self.cells)

    def tile(self, numbers: int) -> tuple[int, int]:
        """Rows of cells and columns of channels of a tile of so many numbers."""
        if self.last:
            columns = min(64, triton.next_power_of_2(self.channels))
            return numbers // columns, columns
        rows = min(numbers, max(16, triton.next_power_of_2(self.cells)))
        return rows, min(numbers // rows, triton.next_power_of_2(self.channels))


def volumes(x: torch.Tensor) -> tuple[torch.Tensor, Volumes]:
    """Data [N, C, ...] as they lie, or as a copy without gaps."""
    images, channels, *spatial = x.shape
    last = not x.is_contiguous()
    if last and not x.movedim(1, -1).is_contiguous():
        x, last = x.contiguous(), False
    return x, Volumes(images, math.prod(spatial), channels, last)


def like(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A gradient in memory as `other` lies."""
    if x.stride() == other.stride():
        return x
    if other.is_contiguous():
        return x.contiguous()
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


_constants: dict[tuple[int, float, torch.dtype, torch.device], torch.Tensor] = {}
"""Vectors of one number. They are kept for good: a CUDA graph may read them."""


def _filled(channels: int, value: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    key = (channels, value, dtype, device)
    if key not in _constants:
        made = torch.full((channels,), value, dtype=dtype, device=device)
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return made  # which is filled when the graph runs, and belongs to it
        _constants[key] = made
    return _constants[key]


class Passes:
    """All launches of a norm of data of one shape, one type and one layout."""

    def __init__(self, data: Volumes, how: Norm, slope_step: int, sloped: bool):
        self.data, self.how, self.sloped = data, how, sloped
        images = data.images if how.over == "image" else 1
        self.lines = images
        reduced, written = (_Chunks(data, size, many) for size, many in ((_REDUCED, _PROGRAMS), (_APPLIED, 0)))
        self.parts = (data.images, reduced.count)
        each = {"ROWS": reduced.rows, "COLUMNS": reduced.columns, "num_warps": 4}
        behind = {"ACTIVATION": how.activation}
        grouped = how.over == "image" and how.groups > 0
        width = data.channels // how.groups if grouped else min(8, triton.next_power_of_2(data.channels))
        columns = triton.next_power_of_2(width)
        blocks, lines = triton.cdiv(data.channels, width), data.images // images * reduced.count
        # Few sizes, so that few kernels are compiled.
        rows = max(1, (_FINISHED if lines > 16 else 128) // columns)
        few = {"GROUPED": grouped, "ROWS": rows, "COLUMNS": columns}
        step = int(how.over == "image")
        cells = data.cells * (data.images // images)
        self.statistics = Launch(kernels.statistics, reduced.grid, reduced.scalars, each)
        scalars = (data.cells, reduced.per_chunk, reduced.count, lines, data.channels, width, slope_step)
        self.finish = Launch(kernels.finish_statistics, (images * blocks,), scalars, few | {"EPSILON": how.epsilon})
        self.stated = Launch(
            kernels.stated_statistics, (triton.cdiv(data.channels, 128),), (data.channels, slope_step),
            {"EPSILON": how.epsilon, "COLUMNS": 128},
        )  # fmt: skip
        size = {"ROWS": written.rows, "COLUMNS": written.columns, "num_warps": 4}
        self.apply = Launch(kernels.apply, written.grid, (*written.scalars, step), behind | size)
        self.sums = Launch(kernels.sums, reduced.grid, (*reduced.scalars, step), behind | {"SLOPED": sloped} | each)
        self.finish_sums = Launch(
            kernels.finish_sums, (blocks,), (cells, lines, images, data.channels, width, step),
            {"SLOPED": sloped} | few,
        )  # fmt: skip
        self.apply_back = Launch(
            kernels.apply_back, written.grid, (*written.scalars, step),
            behind | {"STATED": how.over == "stated"} | size,
        )  # fmt: skip


class _Chunks:
    """How a pass cuts the data into programs."""

    def __init__(self, data: Volumes, numbers: int, programs: int):
        self.rows, self.columns = data.tile(numbers)
        blocks = triton.cdiv(data.channels, self.columns)
        tiles = triton.cdiv(data.cells, self.rows)
        chunks = min(tiles, max(1, programs // (blocks * data.images))) if programs else tiles
        self.per_chunk = self.rows * triton.cdiv(tiles, chunks)
        self.count = triton.cdiv(data.cells, self.per_chunk)
        self.grid = (data.images * self.count * blocks,)
        self.scalars = (data.cells, self.per_chunk, self.count, data.channels, *data.steps)


@lru_cache(maxsize=1024)
def _passes(data: Volumes, how: Norm, slope_step: int, sloped: bool, types: tuple[torch.dtype, ...]) -> Passes:
    """The launches for tensors of these types: a launch keeps what was compiled for the first ones."""
    del types
    return Passes(data, how, slope_step, sloped)


def _vectors(given: Given, how: Norm, data: Volumes, like: torch.Tensor) -> Sequence[torch.Tensor]:
    """Weight, bias, shift and slope, with those that are not given."""
    missing = (1.0, 0.0, 0.0, how.slope)
    found = (given.weight, given.bias, given.shift, given.slope)
    return [
        _filled(data.channels, value, like.dtype, like.device) if one is None else one.contiguous()
        for one, value in zip(found, missing, strict=True)
    ]


def _planned(data: Volumes, x: torch.Tensor, given: Given, how: Norm) -> Passes:
    step = 0 if given.slope is not None and given.slope.numel() == 1 else 1
    types = (x.dtype, *(torch.bool if one is None else one.dtype for one in given.tensors))
    return _passes(data, how, step, given.slope is not None, types)


def forward(x: torch.Tensor, given: Given, how: Norm) -> tuple[torch.Tensor, torch.Tensor]:
    """The result and the table of its channels."""
    x, data = volumes(x)
    plan = _planned(data, x, given, how)
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    table = torch.empty((plan.lines, _FIELDS, data.channels), dtype=kind, device=x.device)
    vectors = _vectors(given, how, data, table)
    if how.over == "stated":
        assert given.mean is not None and given.variance is not None
        plan.stated(given.mean.contiguous(), given.variance.contiguous(), *vectors, table)
    else:
        parts = torch.empty((*plan.parts, 2, data.channels), dtype=kind, device=x.device)
        plan.statistics(x, parts)
        plan.finish(parts, *vectors, table)
    y = torch.empty_like(x, dtype=how.dtype or x.dtype)
    plan.apply(x, table, y)
    return y, table


@dataclass(frozen=True, slots=True)
class Gradients:
    """Of x and of what is given beside it."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    shift: torch.Tensor
    slope: torch.Tensor


def backward(dy: torch.Tensor, x: torch.Tensor, table: torch.Tensor, given: Given, how: Norm) -> Gradients:
    """The gradients of `forward`, from its x and the table that it made."""
    x, data = volumes(x)
    dy, plan = like(dy, x), _planned(data, x, given, how)
    parts = torch.empty((*plan.parts, 3, data.channels), dtype=table.dtype, device=x.device)
    levels = torch.empty((plan.lines, 2, data.channels), dtype=table.dtype, device=x.device)
    sums = torch.empty((3, data.channels), dtype=table.dtype, device=x.device)
    dx = torch.empty_like(x)
    plan.sums(x, dy, table, parts)
    plan.finish_sums(parts, table, levels, sums)
    plan.apply_back(x, dy, table, levels, dx)
    bias, weight, slope = sums.unbind()
    # A norm of its own mean does not change with what is added to x.
    shift = bias * table[0, _RATE] * table[0, _WEIGHT] if how.over == "stated" else torch.zeros_like(bias)
    return Gradients(dx, weight, bias, shift, slope)


def statistics(table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance (over n) of every line and channel of a table."""
    return table[:, _MEAN], table[:, _VARIANCE]


_TYPES = frozenset([torch.float16, torch.bfloat16, torch.float32, torch.float64])


def runs(x: torch.Tensor, how: Norm) -> bool:
    """Are there kernels for data like these?"""
    grouped = how.groups and x.shape[1] // how.groups > MOST_IN_A_GROUP
    return x.dtype in _TYPES and x.dim() >= 3 and x.numel() > 0 and not grouped
