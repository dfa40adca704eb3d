# SPDX-License-Identifier: Apache-2.0
"""The three convolutions through torch and cuDNN: the other side of every tuned choice.

Nothing is copied that torch would not copy: data with its channels last is torch's channels_last_3d, and a filter that
lies in memory as torch's does is passed on as it is. cuDNN pads both ends alike, so asymmetric padding needs a padded
copy here, and its gradient a cropped one. That is counted against it when the choice is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from voxgrad.catalog.geometry import Axis, missing_cells
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda.launch import per_problem
from voxgrad.kernels.cuda.paths import Need, Needs


@dataclass(frozen=True, slots=True)
class Switches:
    """What cuDNN may do: algorithms that repeat their bits only, TF32 for float32.

    They are part of what torch remembers its measurements by, so for other types TF32 is whatever torch has.
    """

    deterministic: bool = False
    tf32: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of torch's calls for one problem, worked out once."""

    strides: list[int]
    dilations: list[int]
    padding: list[int]
    copied: list[int] | None
    """The padding to write into a copy first where it is not symmetric, in F.pad's order."""
    whole: tuple[int, ...]
    """The shape of the data, that padding included, channels first."""
    missing: list[int]
    """Cells that a transposed convolution must add at the end to come out with that shape."""
    crop: tuple[slice, ...]
    order: torch.memory_format


def _each(holds: Callable[[Axis], bool]) -> Callable[..., bool]:
    return lambda problem, *_: all(map(holds, problem.axes))


NEEDS: Needs = (
    Need("fewer than 2**31 numbers", lambda problem, *_: max(
        math.prod(problem.input_extent), math.prod(problem.output_extent)) < 2**31, huge=True),
    Need("no window that starts late", _each(lambda axis: axis.before >= 0)),
    Need("some cells and windows", _each(lambda axis: axis.out > 0 and axis.size > 0)),
)  # fmt: skip
"""cuDNN indexes with 32 bits and knows no window that starts late."""


@per_problem
def _call(problem: Problem) -> _Call:
    axes = problem.axes
    both = []
    for axis in axes:
        missing = missing_cells(axis.size, axis.out, axis.window, axis.stride, axis.dilation)
        both.append((axis.before, max(0, missing - axis.before)))
    even = all(before == after for before, after in both)
    padding = [before if even else 0 for before, _ in both]
    sizes = [axis.size + (0 if even else sum(pair)) for axis, pair in zip(axes, both, strict=True)]
    expected = [
        (axis.out - 1) * axis.stride - 2 * pad + axis.dilation * (axis.window - 1) + 1
        for axis, pad in zip(axes, padding, strict=True)
    ]
    return _Call(
        [axis.stride for axis in axes],
        [axis.dilation for axis in axes],
        padding,
        None if even else [value for pair in reversed(both) for value in pair],
        (problem.batch, problem.in_channels, *sizes),
        [size - out for size, out in zip(sizes, expected, strict=True)],
        (slice(None), slice(None), *(slice(axis.before, axis.before + axis.size) for axis in axes)),
        torch.channels_last_3d if problem.channels_last else torch.contiguous_format,
    )


def _channels_first(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    """The data as torch sees it, without a copy."""
    return x.permute(0, 4, 1, 2, 3) if problem.channels_last else x


def _back(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    return (x.permute(0, 2, 3, 4, 1) if problem.channels_last else x).contiguous()


def _filter(call: _Call, w: torch.Tensor) -> torch.Tensor:
    """The filter as torch has it; not copied where it lies in memory like that."""
    return w.permute(4, 3, 0, 1, 2).contiguous(memory_format=call.order)


def _padded(call: _Call, data: torch.Tensor) -> torch.Tensor:
    return data if call.copied is None else F.pad(data, call.copied)


def conv3d(problem: Problem, x: torch.Tensor, w: torch.Tensor, may: Switches) -> torch.Tensor:
    """y = correlation of x with the filter."""
    call = _call(problem)
    data = _padded(call, _channels_first(problem, x))
    y = torch.cudnn_convolution(
        data, _filter(call, w), call.padding, call.strides, call.dilations, problem.groups, True,
        may.deterministic, may.tf32,
    )  # fmt: skip
    return _back(problem, y)


def conv3d_input(problem: Problem, w: torch.Tensor, dy: torch.Tensor, may: Switches) -> torch.Tensor:
    """dx = the transpose of `conv3d` in x, applied to dy."""
    call = _call(problem)
    grad, taps = _channels_first(problem, dy), _filter(call, w)
    if all(0 <= cells < stride for cells, stride in zip(call.missing, call.strides, strict=True)):
        dx = torch.cudnn_convolution_transpose(
            grad, taps, call.padding, call.missing, call.strides, call.dilations, problem.groups, True,
            may.deterministic, may.tf32,
        )  # fmt: skip
    else:
        like = torch.empty(call.whole, dtype=dy.dtype, device=dy.device, memory_format=call.order)
        dx = _backward(problem, call, grad, like, taps, may, [True, False, False])[0]
    return _back(problem, dx if call.copied is None else dx[call.crop])


def conv3d_filter(problem: Problem, x: torch.Tensor, dy: torch.Tensor, may: Switches) -> torch.Tensor:
    """dw = the transpose of `conv3d` in the filter, applied to dy. In memory as torch's filter is, if channels last."""
    call = _call(problem)
    like = _filter_like(problem, x.dtype, x.device)
    data = _padded(call, _channels_first(problem, x))
    dw = _backward(problem, call, _channels_first(problem, dy), data, like, may, [False, True, False])[1]
    filters: torch.Tensor = dw.permute(2, 3, 4, 1, 0)
    return filters if problem.channels_last else filters.contiguous()


@per_problem
def _filter_like(problem: Problem, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A filter as torch has it, for its shape alone."""
    d, h, w, inner, outer = problem.filter_shape
    return torch.empty((outer, inner, d, h, w), dtype=dtype, device=device, memory_format=_call(problem).order)


def _backward(problem: Problem, call: _Call, dy: torch.Tensor, data: torch.Tensor, w: torch.Tensor, may: Switches,
              wanted: list[bool]) -> Any:  # fmt: skip
    with _flags(may, dy.dtype == torch.float32):
        return _convolution_backward(
            dy, data, w, None, call.strides, call.padding, call.dilations, False, [0, 0, 0], problem.groups, wanted
        )


_convolution_backward: Any = torch.ops.aten.convolution_backward.default
_core: Any = torch._C
_FLAGS = {
    "benchmark": (_core._get_cudnn_benchmark, _core._set_cudnn_benchmark),
    "deterministic": (_core._get_cudnn_deterministic, _core._set_cudnn_deterministic),
    "tf32": (_core._get_cudnn_allow_tf32, _core._set_cudnn_allow_tf32),
}


class _flags:  # noqa: N801 - used like a function, as a context manager
    """cuDNN's benchmark mode with given switches; `torch.backends.cudnn.flags` takes longer than a small kernel."""

    def __init__(self, may: Switches, single: bool):
        self.wanted = {"benchmark": True, "deterministic": may.deterministic}
        if single:
            self.wanted["tf32"] = may.tf32
        self.before: list[tuple[str, bool]] = []

    def __enter__(self) -> None:
        for name, value in self.wanted.items():
            get, put = _FLAGS[name]
            if (old := get()) != value:
                self.before.append((name, old))
                put(value)

    def __exit__(self, *error: object) -> None:
        for name, value in self.before:
            _FLAGS[name][1](value)


@lru_cache(maxsize=4)
def _switches(deterministic: bool, tf32: bool) -> Switches:
    return Switches(deterministic, tf32)


def switches(dtype: torch.dtype, *, deterministic: bool) -> Switches:
    """The switches for data of a type."""
    return _switches(deterministic, allows_tf32() if dtype == torch.float32 else _FLAGS["tf32"][0]())


def allows_tf32() -> bool:
    """TF32 only on request: torch.set_float32_matmul_precision("high") and cuDNN's own switch both say yes."""
    return bool(torch.get_float32_matmul_precision() != "highest" and _FLAGS["tf32"][0]())
