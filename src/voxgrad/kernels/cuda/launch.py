# SPDX-License-Identifier: Apache-2.0
"""A kernel with everything but its tensors: prepared once per problem, launched in a few microseconds after that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import torch

from voxgrad.catalog.problem import Problem

T = TypeVar("T")


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


class Launch:
    """Grid, scalars and constants of one kernel. Calling it with the tensors launches on their current stream.

    Triton looks at every argument of every launch to pick a specialisation. Here only the tensors change, so the
    compiled kernel is kept; it may be reused as long as all tensors are aligned as they were.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], scalars: tuple[Any, ...], constants: Mapping[str, Any]):
        self.kernel, self.scalars, self.constants = kernel, scalars, dict(constants)
        self.grid = (*grid, 1, 1)[:3]
        self._compiled: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run the kernel on these tensors, all on one device."""
        device = tensors[0].device
        if device.type != "cuda":
            self.kernel[self.grid](*tensors, *self.scalars, **self.constants)
        elif device.index == torch.cuda.current_device():
            self._launch(device.index, tensors)
        else:
            with torch.cuda.device(device):
                self._launch(device.index, tensors)

    def _launch(self, index: int, tensors: tuple[torch.Tensor, ...]) -> None:
        for tensor in tensors:
            if tensor.data_ptr() & 15:
                self.kernel[self.grid](*tensors, *self.scalars, **self.constants)
                return
        kept = self._compiled.get(index)
        if kept is None:
            compiled = self.kernel[self.grid](*tensors, *self.scalars, **self.constants)
            names = self.kernel.arg_names[len(tensors) + len(self.scalars) :]
            tail = (*self.scalars, *(self.constants[name] for name in names))
            self._compiled[index] = (compiled[self.grid], tail)
            return
        kept[0](*tensors, *kept[1])
