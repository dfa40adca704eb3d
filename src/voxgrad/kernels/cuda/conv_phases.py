# SPDX-License-Identifier: Apache-2.0
"""The taps of a convolution, or of its transpose by the phase of a cell within the stride, as the kernels read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from voxgrad.catalog.geometry import Axis


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


def table_of(per_axis: list[list[Phase]], device: torch.device) -> tuple[torch.Tensor, int, int]:
    """All phases as 21 integers each, their number, and the positions of the largest."""
    rows = [
        [value for phase in (a, b, c) for value in _numbers(phase)]
        for a in per_axis[0] for b in per_axis[1] for c in per_axis[2]
    ]  # fmt: skip
    largest = max(math.prod(row[at] for at in (5, 12, 19)) for row in rows)
    return torch.tensor(rows, dtype=torch.int32, device=device), len(rows), largest


def _numbers(phase: Phase) -> tuple[int, ...]:
    return (phase.taps, phase.first, phase.tap_step, phase.offset, phase.offset_step, phase.extent, phase.shift)
