# SPDX-License-Identifier: Apache-2.0
"""How a call will run: the kernel, the copies it needs and why. Nothing here computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.arrays.intake import take
from voxgrad.arrays.kinds import TORCH, Kind, numpy_type
from voxgrad.arrays.limits import check_size
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Call, Op
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Faults
from voxgrad.kernels import cpu
from voxgrad.kernels.paths import taken

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Plan:
    """What a call would do; `print(plan)` says it in words."""

    op: Op
    problem: Problem
    kind: Kind
    tensors: dict[str, Array]
    semantics: str
    kernel: str
    copies: tuple[str, ...]
    copied_bytes: int = 0
    """Of all copies together."""

    def __str__(self) -> str:
        problem = self.problem
        axes = ", ".join(
            f"{name} {axis.size}->{axis.out} (window {axis.window}, stride {axis.stride}, pad {axis.before})"
            for name, axis in zip(("depth", "height", "width"), problem.axes, strict=True)
        )
        lines = [
            f"{self.op.name} -> {self.kind.name} {problem.output_dtype} {list(problem.output_shape)}, "
            f"{problem.output_bytes:,} bytes",
            f"  kernel:    {self.kernel}",
            *([f"  paths:     {', '.join(taken(problem)) or 'the general one'}"] if cpu.computes(problem.op) else []),
            f"  semantics: {self.semantics}",
            f"  axes:      {axes}",
            *(f"  copy:      {copy}" for copy in self.copies or ("none",)),
        ]
        return "\n".join(lines)


def make_plan(op: Op, arguments: Mapping[str, Any], known: Call | None = None) -> Plan:
    """Validate a call and decide how it runs; raises everything that is wrong with it.

    `known` is the call as inference saw it: if the inputs are what it says, its problem is that of this call.
    """
    faults = Faults(op.name)
    intake = take(op, arguments, faults)
    tensors = {item.name: _view(intake.arrays[item.name], item.name, faults) for item in op.inputs if not item.host}
    faults.raise_if_any()
    semantics = current_semantics()
    if known is not None and known.semantics == semantics and known.inputs == intake.specs:
        problem: Problem = door.solve(known)
    else:
        attrs = {attr.name: arguments[attr.name] for attr in op.attrs if attr.name in arguments}
        problem = door.parse(op, intake.specs, attrs, semantics)
    copies = _copies(problem, tensors)
    copied = sum(size for size, _ in copies)
    check_size(op.name, problem.output_bytes, faults, copied=copied)
    faults.raise_if_any()
    native = f"native {cpu.isa_name()}, {cpu.get_num_threads()} threads"
    kernel = native if cpu.computes(op.name) else "NumPy reference"
    return Plan(op, problem, intake.kind, tensors, semantics, kernel, tuple(note for _, note in copies), copied)


def _view(array: Any, name: str, faults: Faults) -> Array:
    """An array in the memory of the host."""
    if not isinstance(array, np.ndarray) and array.is_cuda:
        got = f"a tensor on {array.device}"
        faults.add("VG032", name, wanted="be on the CPU", got=got, remedy=f"Pass {name}.cpu().")
        return np.empty(0)
    return array if isinstance(array, np.ndarray) else np.asarray(TORCH.view(array))


def _copies(problem: Problem, tensors: Mapping[str, Array]) -> list[tuple[int, str]]:
    """The bytes of every copy, and what is told of it."""
    wanted = numpy_type(problem.dtype)
    notes = []
    for name, array in tensors.items():
        reasons = []
        if array.dtype != wanted:
            reasons.append("byte order" if array.dtype.newbyteorder("=") == wanted else f"{array.dtype} to {wanted}")
        if not array.flags.c_contiguous:
            reasons.append("strides")
        if reasons:
            size = array.size * wanted.itemsize
            notes.append((size, f"{name}, {size:,} bytes ({' and '.join(reasons)})"))
    return notes


def dense(problem: Problem, array: Array) -> Array:
    """The array as kernels need it: C order, native bytes, the type to compute in; itself where it is that already."""
    made: Array = np.ascontiguousarray(array, dtype=numpy_type(problem.dtype))
    return made
