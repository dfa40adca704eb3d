# SPDX-License-Identifier: Apache-2.0
"""The windowed family in torch's own functions; its gradients by torch's autograd. A peer to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from voxgrad.catalog import geometry
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem

Tensor = Any


def _inside(problem: Problem, x: Tensor) -> Tensor:
    """The data as torch orders it: [N, C, D, H, W]."""
    return x.permute(0, 4, 1, 2, 3) if problem.channels_last else x


def _outside(problem: Problem, y: Tensor) -> Tensor:
    return y.permute(0, 2, 3, 4, 1).contiguous() if problem.channels_last else y.contiguous()


def _padded(problem: Problem, x: Tensor, value: float) -> Tensor:
    """The data with what its windows reach beyond it; cells behind the last window are cut off."""
    pads: list[int] = []
    for axis in reversed(problem.axes):
        wanted = geometry.input_box(axis, 0, axis.out)[1]
        pads += [axis.before, wanted - axis.size]
    return functional.pad(x, pads, value=value)


def _conv(problem: Problem, x: Tensor, w: Tensor) -> Tensor:
    strides = [axis.stride for axis in problem.axes]
    dilations = [axis.dilation for axis in problem.axes]
    kernel = w.permute(4, 3, 0, 1, 2)
    y = functional.conv3d(
        _padded(problem, _inside(problem, x), 0.0), kernel, None, strides, 0, dilations, problem.groups
    )
    return _outside(problem, y)


def _avg(problem: Problem, x: Tensor) -> Tensor:
    windows, strides = [axis.window for axis in problem.axes], [axis.stride for axis in problem.axes]
    data = _inside(problem, x)
    sums = functional.avg_pool3d(_padded(problem, data, 0.0), windows, strides)
    counts = functional.avg_pool3d(_padded(problem, torch.ones_like(data[:1, :1]), 0.0), windows, strides)
    return _outside(problem, sums / counts)


def _max(problem: Problem, x: Tensor) -> Tensor:
    windows, strides = [axis.window for axis in problem.axes], [axis.stride for axis in problem.axes]
    return _outside(problem, functional.max_pool3d(_padded(problem, _inside(problem, x), -torch.inf), windows, strides))


FORWARD: dict[str, Callable[..., Tensor]] = {"Conv3D": _conv, "AvgPool3D": _avg, "MaxPool3D": _max}
"""The forward ops; what is transposed of them, or selected by them, torch's own derivatives tell."""


def compute(problem: Problem, *tensors: Tensor) -> Tensor:
    """The result of a problem for the op's tensor inputs in order."""
    map_, given = problem.map, dict(zip(problem.map.inputs, tensors, strict=True))
    forward = FORWARD[map_.of]
    if map_.output is Side.WINDOWS:
        if Side.WINDOWS not in map_.inputs:
            return forward(problem, *tensors)
        return _selected(problem, tensors[0], tensors[-1])
    like = torch.zeros(problem.extent(map_.output), dtype=tensors[-1].dtype)
    # Where a map selects, its cells say which; a linear one is the same everywhere.
    at = {map_.output: like} | {side: one for side, one in given.items() if side is not Side.WINDOWS}
    leaf = at[map_.output].detach().requires_grad_()
    with torch.enable_grad():
        y = forward(problem, *(leaf if side is map_.output else at[side] for side in Side if side in at))
        (found,) = torch.autograd.grad(y, leaf, tensors[-1])
    return found


def _selected(problem: Problem, x: Tensor, grad: Tensor) -> Tensor:
    """The values of grad at the maxima of x."""
    windows, strides = [axis.window for axis in problem.axes], [axis.stride for axis in problem.axes]
    data = _padded(problem, _inside(problem, x), -torch.inf)
    _, places = functional.max_pool3d(data, windows, strides, return_indices=True)
    picked = _padded(problem, _inside(problem, grad), 0.0).flatten(2).gather(2, places.flatten(2))
    return _outside(problem, picked.reshape(places.shape))
