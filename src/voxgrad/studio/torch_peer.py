# SPDX-License-Identifier: Apache-2.0
"""The windowed family in torch's own functions; its gradients by torch's autograd. A peer to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from voxgrad.catalog import geometry
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


def _gradient(function: Callable[[Tensor], Tensor], x: Tensor, dy: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        (found,) = torch.autograd.grad(function(leaf), leaf, dy)
    return found


def _conv_input(problem: Problem, w: Tensor, dy: Tensor) -> Tensor:
    x = torch.zeros(problem.input_extent, dtype=dy.dtype)
    return _gradient(lambda one: _conv(problem, one, w), x, dy)


def _conv_filter(problem: Problem, x: Tensor, dy: Tensor) -> Tensor:
    w = torch.zeros(problem.filter_shape, dtype=dy.dtype)
    return _gradient(lambda one: _conv(problem, x, one), w, dy)


def _avg_grad(problem: Problem, dy: Tensor) -> Tensor:
    x = torch.zeros(problem.input_extent, dtype=dy.dtype)
    return _gradient(lambda one: _avg(problem, one), x, dy)


def _max_grad(problem: Problem, x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    return _gradient(lambda one: _max(problem, one), x, dy)


def _max_grad_grad(problem: Problem, x: Tensor, y: Tensor, grad: Tensor) -> Tensor:
    windows, strides = [axis.window for axis in problem.axes], [axis.stride for axis in problem.axes]
    data = _padded(problem, _inside(problem, x), -torch.inf)
    _, places = functional.max_pool3d(data, windows, strides, return_indices=True)
    picked = _padded(problem, _inside(problem, grad), 0.0).flatten(2).gather(2, places.flatten(2))
    return _outside(problem, picked.reshape(places.shape))


KERNELS: dict[str, Callable[..., Tensor]] = {
    "conv3d": _conv,
    "conv3d_input": _conv_input,
    "conv3d_filter": _conv_filter,
    "avg_pool": _avg,
    "avg_pool_grad": _avg_grad,
    "max_pool": _max,
    "max_pool_grad": _max_grad,
    "max_pool_grad_grad": _max_grad_grad,
}
