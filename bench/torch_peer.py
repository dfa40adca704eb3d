# SPDX-License-Identifier: Apache-2.0
"""The rows in torch: SAME padding by arguments where torch can express it, else by F.pad inside the timed call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from bench.rows import Row
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.cpu import get_num_threads

Array = np.ndarray[Any, Any]
Call = tuple[Callable[[], Any], Callable[[Any], Array]]
ATEN = torch.ops.aten


def torch_call(row: Row, call: dict[str, Any], *, last: bool) -> Call:
    """The row on NCDHW tensors whose memory is channels-last or channels-first."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", get_num_threads())))
    axes = make_plan(OPS[row.op], call).problem.axes
    pads = [(axis.before, max(0, axis.start(axis.out - 1) + axis.window - axis.size)) for axis in axes]
    tensors = {
        name: _tensor(value, last) for name, value in call.items() if isinstance(value, np.ndarray) and name != "filter"
    }
    make = _conv if row.op.startswith("Conv") else _pool
    run, is_filter = make(row, call, tensors, pads, last)
    return run, (lambda y: _numpy(y.permute(2, 3, 4, 1, 0))) if is_filter else (
        lambda y: _numpy(y.permute(0, 2, 3, 4, 1))
    )


def _tensor(array: Array, last: bool) -> torch.Tensor:
    plain = (
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        if array.dtype.kind == "V"
        else torch.from_numpy(array)
    )
    turned = plain.permute(0, 4, 1, 2, 3)
    return turned if last else turned.contiguous()


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.contiguous().float().numpy() if tensor.dtype is torch.bfloat16 else tensor.contiguous().numpy()


def _conv(
    row: Row, call: dict[str, Any], tensors: dict[str, torch.Tensor], pads: list[tuple[int, int]], last: bool
) -> Any:
    even = all(a == b for a, b in pads)
    flat = [value for pair in reversed(pads) for value in pair]
    padding = [a for a, _ in pads] if even else [0, 0, 0]
    stride, one = list(row.stride), [1, 1, 1]
    memory = torch.channels_last_3d if last else torch.contiguous_format
    shape = (row.out_channels, row.channels, *row.window)
    w = None
    if "filter" in call:
        kind = (
            torch.from_numpy(call["filter"].view(np.int16)).view(torch.bfloat16)
            if call["filter"].dtype.kind == "V"
            else torch.from_numpy(call["filter"])
        )
        w = kind.permute(4, 3, 0, 1, 2).contiguous(memory_format=memory)
    if row.op == "Conv3D":
        x = tensors["input"]
        return (lambda: F.conv3d(x if even else F.pad(x, flat), w, stride=stride, padding=padding)), False
    dy = tensors["out_backprop"]
    like = torch.empty((row.batch, row.channels, *row.spatial), dtype=dy.dtype).contiguous(memory_format=memory)
    if row.op == "Conv3DBackpropInputV2":
        wide = like if even else F.pad(like, flat)

        def input_gradient() -> torch.Tensor:
            dx = ATEN.convolution_backward(
                dy, wide, w, None, stride, padding, one, False, [0, 0, 0], 1, [True, False, False]
            )[0]
            return dx if even else F.pad(dx, [-value for value in flat])

        return input_gradient, False
    x, any_filter = tensors["input"], torch.empty(shape, dtype=dy.dtype).contiguous(memory_format=memory)

    def filter_gradient() -> torch.Tensor:
        wide = x if even else F.pad(x, flat)
        return ATEN.convolution_backward(
            dy, wide, any_filter, None, stride, padding, one, False, [0, 0, 0], 1, [False, True, False]
        )[1]

    return filter_gradient, True


def _pool(
    row: Row, call: dict[str, Any], tensors: dict[str, torch.Tensor], pads: list[tuple[int, int]], last: bool
) -> Any:
    k, s, p = list(row.window), list(row.stride), [a for a, _ in pads]
    if any(2 * a > window for a, window in zip(p, k, strict=True)) or any(b - a not in (0, 1) for a, b in pads):
        raise ValueError("torch cannot express this padding without a copy")
    ceil = any(a != b for a, b in pads)
    if row.op == "AvgPool3D":
        x = tensors["input"]
        return (lambda: F.avg_pool3d(x, k, s, p, ceil_mode=ceil, count_include_pad=False)), False
    if row.op == "AvgPool3DGrad":
        dy = tensors["grad"]
        like = torch.empty((row.batch, row.channels, *row.spatial), dtype=dy.dtype)
        like = like.contiguous(memory_format=torch.channels_last_3d if last else torch.contiguous_format)
        return (lambda: ATEN.avg_pool3d_backward(dy, like, k, s, p, ceil, False, None)), False
    if row.op == "MaxPool3D":
        x = tensors["input"]
        return (lambda: F.max_pool3d(x, k, s, p, ceil_mode=ceil)), False
    x, grad, one = tensors["orig_input"], tensors["grad"], [1, 1, 1]
    if row.op == "MaxPool3DGrad":
        # TensorFlow's op is not given positions, so they are found anew, as ours must.
        def gradient() -> torch.Tensor:
            _, index = ATEN.max_pool3d_with_indices(x, k, s, p, one, ceil)
            return ATEN.max_pool3d_with_indices_backward(grad, x, k, s, p, one, ceil, index)

        return gradient, False

    def second() -> torch.Tensor:
        _, index = ATEN.max_pool3d_with_indices(x, k, s, p, one, ceil)
        return grad.flatten(2).gather(2, index.flatten(2)).view(index.shape)

    return second, False
