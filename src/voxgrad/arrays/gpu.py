# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU: torch CUDA tensors, and CuPy and JAX arrays through DLPack, without a copy.

A call whose tensors live on a GPU is answered there, with an array of the same kind on the same device and stream.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from marshal import dumps
from operator import itemgetter
from typing import Any

from voxgrad.arrays.fast import MISS, is_plain
from voxgrad.arrays.intake import take
from voxgrad.arrays.kinds import Kind, is_on_gpu
from voxgrad.arrays.limits import check_size, limit_in_force
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Faults, safe_repr
from voxgrad.kernels.names import KERNELS


def is_for_gpu(op: Op, arguments: Mapping[str, Any]) -> bool:
    """Does a tensor of the call live on a GPU?"""
    return any(is_on_gpu(arguments[item.name]) for item in op.inputs if not item.host)


@dataclass(frozen=True)
class GpuPlan:
    """A call on a GPU, validated; `print(plan)` says what it does."""

    op: Op
    problem: Problem
    kind: Kind
    tensors: tuple[Any, ...]
    semantics: str

    @property
    def kernel(self) -> str:
        """The kernel that runs it."""
        from voxgrad.kernels.cuda import dispatch

        return dispatch.describe(self.problem, *self.tensors)

    def __str__(self) -> str:
        problem = self.problem
        copies = [
            f"  copy:      {item.name}, {tensor.numel() * tensor.element_size():,} bytes (strides)"
            for item, tensor in zip((item for item in self.op.inputs if not item.host), self.tensors, strict=True)
            if not tensor.is_contiguous()
        ]
        head = f"{self.op.name} -> {self.kind.name} {problem.output_dtype} {list(problem.output_shape)}"
        lines = [f"{head}, {problem.output_bytes:,} bytes", f"  device:    {self.tensors[0].device}"]
        return "\n".join([*lines, f"  kernel:    {self.kernel}", f"  semantics: {self.semantics}", *copies])


_SETTINGS = {"VOXGRAD_CUDA_ENGINE": ("voxgrad", "cudnn", "cudnn deterministic"), "VOXGRAD_CUDA_TUNE": ("0", "1")}
"""What the variables that choose among kernels may say."""


def _check_settings(faults: Faults) -> None:
    for name, known in _SETTINGS.items():
        if (said := os.environ.get(name, "")) not in ("", *known):
            listed = " or ".join(map(repr, known))
            faults.add("VG003", name, wanted=f"be {listed} in the environment", got=safe_repr(said))
    faults.raise_if_any()


def plan_on_gpu(op: Op, arguments: Mapping[str, Any]) -> GpuPlan:
    """Validate a call whose tensors are on a GPU, or raise all that is wrong with it."""
    faults = Faults(op.name)
    _check_settings(faults)
    if op.name not in KERNELS:
        faults.add("VG032", op.inputs[-1].name, wanted="have a kernel on GPUs", got="none", unimplemented=True)
        raise faults.error()
    intake = take(op, arguments, faults)
    for item in op.inputs:
        if not item.host and not is_on_gpu(array := intake.arrays[item.name]):
            remedy = "Move it there: nothing is copied between devices or kinds silently."
            wanted = f"be a {intake.kind.name} array on the GPU"
            faults.add("VG032", item.name, wanted=wanted, got=type(array).__name__, remedy=remedy)
    faults.raise_if_any()
    tensors = [intake.arrays[item.name].detach() for item in op.inputs if not item.host]
    problem = kept(op).problem(op, arguments, tensors, intake.specs)
    copied = sum(tensor.numel() * tensor.element_size() for tensor in tensors if not tensor.is_contiguous())
    check_size(op.name, problem.output_bytes, faults, lambda: _free_memory(tensors[0].device), copied=copied)
    faults.raise_if_any()
    return GpuPlan(op, problem, intake.kind, tuple(tensors), current_semantics())


def _free_memory(device: Any) -> int:
    """Bytes that torch could still hand out on a device."""
    cuda = sys.modules["torch"].cuda
    return int(cuda.mem_get_info(device)[0]) + int(cuda.memory_reserved(device)) - int(cuda.memory_allocated(device))


_MOST = 1024


class Kept:
    """The problems of an op's calls so far, each under what tells its call from others.

    A call like one before need not be validated again, and runs on the same object, by which kernels keep what they
    have prepared.
    """

    def __init__(self, op: Op):
        self.tensors = tuple(item.name for item in op.inputs if not item.host)
        self._problems: dict[Any, Problem] = {}
        self._others: dict[tuple[str, ...], Callable[[Mapping[str, Any]], Any]] = {}
        self._torch: Any = None
        self._run: Any = None

    def key(self, arguments: Mapping[str, Any], tensors: Sequence[Any]) -> Any:
        """What tells calls apart; None where their attributes do not."""
        names = tuple(arguments)
        others = self._others.get(names)
        if others is None:
            rest = [name for name in names if name not in self.tensors]
            others = self._others[names] = itemgetter(*rest) if rest else lambda _: ()
        key: tuple[Any, ...] = ()
        for tensor in tensors:
            key = (tensor.dtype, tensor.shape, key)
        try:
            # Bytes tell 1 from True and 1.0, which are equal as values.
            return current_semantics(), names, dumps(others(arguments), 2), key
        except ValueError:
            return None

    def problem(
        self, op: Op, arguments: Mapping[str, Any], tensors: Sequence[Any], specs: Mapping[str, Spec]
    ) -> Problem:
        """The problem of a call: the same object for the same call."""
        key = self.key(arguments, tensors)
        found = self._problems.get(key)
        if found is None:
            attrs = {attr.name: arguments[attr.name] for attr in op.attrs if attr.name in arguments}
            found = door.parse(op, specs, attrs, current_semantics())
            plain = all(is_plain(value) for name, value in arguments.items() if name not in self.tensors)
            if key is not None and plain:
                if len(self._problems) >= _MOST:
                    self._problems.clear()
                self._problems[key] = found
        return found

    def open(self, torch: Any, run: Callable[..., Any]) -> None:
        """Let calls on torch's tensors take the short way, to `run`."""
        self._torch, self._run = torch, run

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """The result of a call on torch's tensors whose like went the long way, else MISS."""
        torch = self._torch
        if torch is None or limit_in_force() is not None:
            return MISS
        kind, device = torch.Tensor, -1
        tensors: list[Any] = []
        for name in self.tensors:
            value: Any = arguments.get(name)
            # A subclass may mean something else by an operation, and a gradient is refused the long way.
            if type(value) is not kind or not value.is_cuda or value.requires_grad:
                return MISS
            index = value.get_device()
            if index != device and tensors:
                return MISS
            device = index
            tensors.append(value)
        problem = self._problems.get(self.key(arguments, tensors))
        if problem is None:
            return MISS
        try:
            return self._run(problem, *tensors)
        except torch.cuda.OutOfMemoryError:
            return MISS


_kept: dict[str, Kept] = {}


def kept(op: Op) -> Kept:
    """The calls of an op that went the long way."""
    return _kept.setdefault(op.name, Kept(op))


def execute_on_gpu(op: Op, arguments: Mapping[str, Any]) -> Any:
    """The result of a call whose tensors are on a GPU, as an array of their kind."""
    plan = plan_on_gpu(op, arguments)
    import torch

    from voxgrad.kernels.cuda import dispatch

    try:
        with torch.no_grad():
            result = dispatch.run(plan.problem, *plan.tensors)
    except torch.cuda.OutOfMemoryError:
        faults = Faults(op.name)
        wanted = f"fit into the memory of {plan.tensors[0].device}"
        faults.add("VG020", "output", wanted=wanted, got=f"a result of {plan.problem.output_bytes:,} bytes")
        raise faults.error() from None
    kept(op).open(torch, dispatch.run)
    return plan.kind.wrap(result)
