# SPDX-License-Identifier: Apache-2.0
"""A kernel with everything but its tensors: prepared once per problem, launched in a few microseconds after that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from voxgrad.catalog.problem import Problem

T = TypeVar("T")
_core: Any = torch._C
_stream: Any = getattr(_core, "_cuda_getCurrentRawStream", None)
_device: Any = getattr(_core, "_cuda_getDevice", None)
"""The stream and the device that torch works on, as numbers: asked directly, as other ways take longer."""


_MOST = 4096


def per_problem(make: Callable[..., T]) -> Callable[..., T]:
    """Cache a function of a problem and a few small values.

    A problem is a deep value and costs microseconds to hash; callers that repeat a call keep the object, so the
    object itself is the key. It is held here, so that its id stays its own.
    """
    kept: dict[tuple[Any, ...], tuple[Problem, T]] = {}

    @wraps(make)
    def cached(problem: Problem, *rest: Any) -> T:
        key = (id(problem), *rest)
        found = kept.get(key)
        if found is None:
            if len(kept) >= _MOST:
                kept.clear()
            found = kept[key] = (problem, make(problem, *rest))
        return found[1]

    return cached


@dataclass(frozen=True, slots=True)
class Boxes:
    """A tensor without gaps as a kernel sees it that reads boxes of one size: up to five axes, whatever its own."""

    shape: tuple[int, ...]
    block: tuple[int, ...]

    def of(self, tensor: torch.Tensor) -> TensorDescriptor:
        """What the copy engine wants to know of a tensor."""
        strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        return TensorDescriptor(tensor, list(self.shape), strides, list(self.block))

    @staticmethod
    def another(like: TensorDescriptor, tensor: torch.Tensor) -> TensorDescriptor:
        """The same of another tensor, without the checks, which take longer than a launch."""
        made = object.__new__(TensorDescriptor)
        made.base, made.shape, made.strides, made.block_shape = tensor, like.shape, like.strides, like.block_shape
        return made


class Launch:
    """Grid, scalars and constants of one kernel. Calling it with the tensors launches on their current stream.

    Triton looks at every argument of every launch to pick a specialisation. Here only the tensors change, so the
    compiled kernel is kept; it may be reused as long as all tensors are aligned as they were. The first tensors may be
    read in boxes.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], scalars: tuple[Any, ...], constants: Mapping[str, Any],
                 boxes: tuple[Boxes, ...] = ()):  # fmt: skip
        self.kernel, self.scalars, self.constants, self.boxes = kernel, scalars, dict(constants), boxes
        self.grid = (*grid, 1, 1)[:3]
        self._described: list[TensorDescriptor] = []
        self._compiled: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run the kernel on these tensors, all on one device."""
        device = tensors[0].device
        if device.type != "cuda":
            self.kernel[self.grid](*self._arguments(tensors), *self.scalars, **self.constants)
        elif device.index == _device():
            self._launch(device.index, tensors)
        else:
            with torch.cuda.device(device):
                self._launch(device.index, tensors)

    def _launch(self, index: int, tensors: tuple[torch.Tensor, ...]) -> None:
        for tensor in tensors:
            if tensor.data_ptr() & 15:
                self.kernel[self.grid](*self._arguments(tensors), *self.scalars, **self.constants)
                return
        kept = self._compiled.get(index)
        if kept is None:
            compiled = self.kernel[self.grid](*self._arguments(tensors), *self.scalars, **self.constants)
            names = self.kernel.arg_names[len(tensors) + len(self.scalars) :]
            tail = (*self.scalars, *(self.constants[name] for name in names))
            self._compiled[index] = (compiled[self.grid], tail)
            return
        kept[0](*self._arguments(tensors), *kept[1], stream=_stream(index))

    def _arguments(self, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        if not self.boxes:
            return tensors
        if not self._described:
            self._described = [boxes.of(tensor) for boxes, tensor in zip(self.boxes, tensors, strict=False)]
        again = (Boxes.another(like, tensor) for like, tensor in zip(self._described, tensors, strict=False))
        return (*again, *tensors[len(self.boxes) :])
