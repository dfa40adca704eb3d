# SPDX-License-Identifier: Apache-2.0
"""The short way for a call like one before: same op, names, shapes, types and attributes, on plain NumPy arrays.

A call that went the long way leaves a `Ready` here under its signature. The short way skips only work whose result is
known (validation, the problem, the C struct) and runs the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from marshal import dumps
from operator import itemgetter
from typing import Any

import numpy as np

from voxgrad.arrays import memory
from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.limits import UNCHECKED, limit_in_force
from voxgrad.arrays.plan import Plan
from voxgrad.catalog.model import Op
from voxgrad.catalog.semantics import current_semantics
from voxgrad.kernels import cpu, nonfinite

Array = np.ndarray[Any, Any]
MISS = object()
_ARRAY = np.ndarray
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Ready:
    """A validated call that waits for its arrays."""

    shape: tuple[int, ...]
    type: np.dtype[Any]
    empty: Callable[..., Array]
    prepared: cpu.Prepared
    finite: bool
    """Whether what the kernel looks at must be finite for it alone to be right."""


Names = tuple[str, ...]


class _Named:
    """Calls of an op with the same arguments named, in the same order."""

    def __init__(self, op: Op, names: Names):
        self.tensors = tuple(item.name for item in op.inputs if not item.host and item.name in names)
        known = {item.name for item in op.parameters}
        self.rest = itemgetter(*(name for name in names if name in known and name not in self.tensors))
        self.ready: dict[Any, Ready] = {}

    def key(self, arguments: Mapping[str, Any], arrays: list[Array]) -> Any:
        """What tells calls apart, and their tensors in `arrays`; None where the short way is not for a call."""
        key: tuple[Any, ...] = ()
        for name in self.tensors:
            array = arguments[name]
            if type(array) is not _ARRAY:
                return None
            arrays.append(array)
            key = (array.dtype, array.shape, key)
        try:
            # Bytes tell 1 from True and 1.0, which are equal as values.
            return current_semantics(), dumps(self.rest(arguments), 2), key
        except ValueError:
            return None


Known = dict[Names, _Named]
_known: dict[str, Known] = {}


def known(op: Op) -> Known:
    """The calls of an op that went the long way, for `call`."""
    return _known.setdefault(op.name, {})


def forget() -> None:
    """Drop every signature."""
    global _table_bytes
    for calls in tuple(_known.values()):
        for named in tuple(calls.values()):
            named.ready.clear()  # whoever is about to add to it has it in hand
        calls.clear()
    _table_bytes = 0


_table_bytes = 0
"""Of the tables that the signatures keep: those of long axes are large."""


def _make_room(size: int) -> None:
    global _table_bytes
    if _table_bytes + size > cpu.KEPT_BYTES:
        forget()
    _table_bytes += size


def call(calls: Known, arguments: dict[str, Any]) -> Any:
    """The result of a call whose like is among those of its op, else MISS."""
    named = calls.get(tuple(arguments))
    if named is None:
        return MISS
    arrays: list[Array] = []
    ready = named.ready.get(named.key(arguments, arrays))
    if ready is None or limit_in_force() is not None:
        return MISS
    try:
        result = ready.empty(ready.shape, ready.type)
    except (MemoryError, OSError):
        return MISS
    status = cpu.run_arrays(ready.prepared, (*arrays, result))
    if status and (status != cpu.NOT_FINITE or ready.finite):
        return MISS
    return result


def remember(plan: Plan, arguments: Mapping[str, Any]) -> None:
    """Keep a call that went the long way, if the short way can repeat it."""
    problem = plan.problem
    tensors = {id(array) for array in plan.tensors.values()}
    if (
        not cpu.sees_arrays()
        or not all(id(value) in tensors or is_plain(value) for value in arguments.values())
        or plan.copies
        or problem.output_dtype != problem.dtype
        or nonfinite.is_hidden(problem)
        or not 0 < problem.output_bytes <= UNCHECKED
        or (prepared := cpu.prepare(problem)).bytes > cpu.KEPT_BYTES
    ):
        return
    calls, names = known(plan.op), tuple(arguments)
    named = calls.get(names) or _Named(plan.op, names)
    key = named.key(arguments, [])
    if key is None:
        return
    if len(calls) >= _LARGEST or len(named.ready) >= _LARGEST:
        forget()
    empty = np.empty if problem.output_bytes < memory.SMALLEST else memory.empty
    finite = nonfinite.must_be_finite(problem)
    _make_room(prepared.bytes)
    calls[names] = named
    named.ready[key] = Ready(problem.output_shape, numpy_type(problem.dtype), empty, prepared, finite)


def is_plain(value: Any) -> bool:
    """A text, None or a list of true integers: attributes that a signature tells apart."""
    if type(value) in (list, tuple):
        return all(type(item) is int for item in value)
    return value is None or type(value) is str
