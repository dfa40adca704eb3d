# SPDX-License-Identifier: Apache-2.0
"""A kernel with everything but its tensors: prepared once per problem, launched in a few microseconds after that."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, reduce, wraps
from importlib import import_module
from operator import or_
from typing import Any, TypeVar

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import driver

T = TypeVar("T")
_core: Any = torch._C
_stream: Any = getattr(_core, "_cuda_getCurrentRawStream", None)
_device: Any = getattr(_core, "_cuda_getDevice", None)
"""The stream and the device that torch works on, as numbers: asked directly, as other ways take longer."""


try:
    _at_once: Any = getattr(import_module("torch._C._dynamo.guards"), "_empty_strided_cuda", None)
except ImportError:
    _at_once = None
"""Memory on the current device, as code that torch compiles asks for it: in a third of the time of other ways."""


@lru_cache(maxsize=4096)
def _dense(extent: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps."""
    return tuple(math.prod(extent[axis + 1 :]) for axis in range(len(extent)))


def empty(like: torch.Tensor, extent: tuple[int, ...], strides: tuple[int, ...] | None = None) -> torch.Tensor:
    """Memory for a tensor of the type and on the device of another; without gaps, unless strides are given."""
    laid = _dense(extent) if strides is None else strides
    index = like.get_device()
    if index >= 0 and _at_once is not None and index == _device():
        result: torch.Tensor = _at_once(extent, laid, like.dtype)
        return result
    return torch.empty_strided(extent, laid, dtype=like.dtype, device=like.device)


def _listeners(name: str) -> Any:
    """Who wants to hear of launches, a profiler say. Only Triton's own launcher tells them."""
    chain = getattr(getattr(getattr(triton, "knobs", None), "runtime", None), name, None)
    return getattr(chain, "calls", ("of a Triton that keeps them elsewhere",))


_entering, _leaving = _listeners("launch_enter_hook"), _listeners("launch_exit_hook")
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
        entry = kept.get(key)
        if entry is None:
            if len(kept) >= _MOST:
                kept.clear()
            entry = kept[key] = (problem, make(problem, *rest))
        return entry[1]

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
        self._entries: dict[int, driver.Entry | None] = {}

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run the kernel on these tensors, all on one device."""
        index = tensors[0].get_device()
        entry = self._entries.get(index)
        if entry is None:
            self._launch(index, tensors)
        elif index != _device():
            with torch.cuda.device(index):
                self(*tensors)
        else:
            addresses = [tensor.data_ptr() for tensor in tensors]
            if reduce(or_, addresses) & 15 or _entering or _leaving or not entry(addresses, _stream(index)):
                self._launch(index, tensors)

    def _launch(self, index: int, tensors: tuple[torch.Tensor, ...]) -> None:
        """The long way: Triton picks the specialisation."""
        if _postponed is not None and index >= 0:
            _postponed.setdefault(self._key(tensors), (self, index, [_stand_in(one) for one in tensors]))
            return
        arguments = [boxes.of(tensor) for boxes, tensor in zip(self.boxes, tensors, strict=False)]
        given = (*arguments, *tensors[len(self.boxes) :], *self.scalars)
        if index < 0:
            self.kernel[self.grid](*given, **self.constants)
            return
        with torch.cuda.device(index):
            compiled = self.kernel[self.grid](*given, **self.constants)
        if index not in self._entries and not any(tensor.data_ptr() & 15 for tensor in tensors):
            shapes = [(boxes.shape, boxes.block) for boxes in self.boxes]
            self._entries[index] = driver.entry(compiled, self.grid, self.scalars, shapes)

    def _key(self, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        """What Triton compiles one kernel for: numbers that are 1 or multiples of 16 count as such."""
        kinds = tuple(1 if one == 1 else one % 16 == 0 if isinstance(one, int) else type(one) for one in self.scalars)
        types = tuple((one.dtype, one.data_ptr() % 16 == 0) for one in tensors)
        return (
            self.kernel,
            kinds,
            tuple(map(str, self.constants.items())),
            types,
            tuple(one.block for one in self.boxes),
        )

    def compile(self, index: int, tensors: list[torch.Tensor]) -> None:
        """Have the kernel ready for tensors like these; nothing is launched."""
        arguments = [boxes.of(tensor) for boxes, tensor in zip(self.boxes, tensors, strict=False)]
        with torch.cuda.device(index):
            self.kernel.warmup(*arguments, *tensors[len(self.boxes) :], *self.scalars, grid=self.grid, **self.constants)


_postponed: dict[tuple[Any, ...], tuple[Launch, int, list[torch.Tensor]]] | None = None
"""Kernels that wait to be compiled together. Of all threads: gradients have their own."""


def _stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """A small tensor for which Triton compiles the same."""
    whole = torch.empty(32, dtype=tensor.dtype, device=tensor.device)
    return whole if tensor.data_ptr() % 16 == 0 else whole[1:]


@contextmanager
def compiled_together() -> Iterator[None]:
    """Kernels that are not compiled yet are not launched in the block: when it ends, they are compiled side by side.

    What they would have written is anything, so the results of the block are for nobody.
    """
    global _postponed
    if _postponed is not None:
        yield
        return
    waiting = _postponed = {}
    try:
        yield
    finally:
        _postponed = None
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            made = [threads.submit(launch.compile, index, tensors) for launch, index, tensors in waiting.values()]
        for one in made:
            one.exception()  # A kernel that does not compile says so where it is launched.
