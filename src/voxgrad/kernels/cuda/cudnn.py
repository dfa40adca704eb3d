# SPDX-License-Identifier: Apache-2.0
"""The three convolutions through torch and cuDNN: the other side of every tuned choice.

cuDNN pads both ends alike, so asymmetric padding needs a padded copy here, and its gradient a cropped one. That is
counted against it when the choice is measured.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from voxgrad.catalog.geometry import missing_cells
from voxgrad.catalog.problem import Problem


def supports(problem: Problem) -> bool:
    """cuDNN indexes with 32 bits and knows no window that starts late."""
    sizes = (problem.input_extent, problem.output_extent)
    small = all(torch.Size(size).numel() < 2**31 for size in sizes)
    return small and all(axis.before >= 0 and axis.out > 0 and axis.size > 0 for axis in problem.axes)


def _pads(problem: Problem) -> tuple[list[int], list[int] | None]:
    """Symmetric padding for the call, and the padding to write into a copy first where it is not symmetric."""
    both = []
    for axis in problem.axes:
        missing = missing_cells(axis.size, axis.out, axis.window, axis.stride, axis.dilation)
        both.append((axis.before, max(0, missing - axis.before)))
    if all(before == after for before, after in both):
        return [before for before, _ in both], None
    return [0, 0, 0], [value for pair in reversed(both) for value in pair]


def _channels_first(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The data as torch sees it, without a copy."""
    return x.permute(0, 4, 1, 2, 3) if problem.channels_last else x


def _back(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    return (x.permute(0, 2, 3, 4, 1) if problem.channels_last else x).contiguous()


def _filter(problem: Problem, w: torch.Tensor) -> torch.Tensor:
    order = torch.channels_last_3d if problem.channels_last else torch.contiguous_format
    return w.permute(4, 3, 0, 1, 2).contiguous(memory_format=order)


def _geometry(problem: Problem) -> tuple[list[int], list[int]]:
    return [axis.stride for axis in problem.axes], [axis.dilation for axis in problem.axes]


def conv3d(problem: Problem, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y = correlation of x with the filter."""
    padding, copied = _pads(problem)
    data = _channels_first(problem, x)
    if copied is not None:
        data = F.pad(data, copied)
    strides, dilations = _geometry(problem)
    return _back(problem, F.conv3d(data, _filter(problem, w), None, strides, padding, dilations, problem.groups))


def _backward(problem: Problem, dy: torch.Tensor, data: torch.Tensor, w: torch.Tensor, padding: list[int],
              wanted: list[bool]) -> Any:  # fmt: skip
    strides, dilations = _geometry(problem)
    return torch.ops.aten.convolution_backward(
        dy, data, w, None, strides, padding, dilations, False, [0, 0, 0], problem.groups, wanted
    )


def conv3d_input(problem: Problem, w: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """dx = the transpose of `conv3d` in x, applied to dy."""
    padding, copied = _pads(problem)
    like = _channels_first(problem, dy.new_empty(problem.input_extent))
    if copied is not None:
        sizes = [like.shape[at] + copied[2 * (4 - at)] + copied[2 * (4 - at) + 1] for at in (2, 3, 4)]
        shape = (like.shape[0], like.shape[1], *sizes)
        order = torch.channels_last_3d if problem.channels_last else torch.contiguous_format
        like = torch.empty(shape, dtype=dy.dtype, device=dy.device, memory_format=order)
    dx = _backward(problem, _channels_first(problem, dy), like, _filter(problem, w), padding, [True, False, False])[0]
    if copied is not None:
        d, h, w_ = (slice(axis.before, axis.before + axis.size) for axis in problem.axes)
        dx = dx[:, :, d, h, w_]
    return _back(problem, dx)


def conv3d_filter(problem: Problem, x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """dw = the transpose of `conv3d` in the filter, applied to dy."""
    padding, copied = _pads(problem)
    data = _channels_first(problem, x)
    if copied is not None:
        data = F.pad(data, copied)
    like = _filter(problem, x.new_empty(problem.filter_shape))
    dw = _backward(problem, _channels_first(problem, dy), data, like, padding, [False, True, False])[1]
    turned: torch.Tensor = dw.permute(2, 3, 4, 1, 0).contiguous()
    return turned
