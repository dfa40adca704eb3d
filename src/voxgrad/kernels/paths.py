# SPDX-License-Identifier: Apache-2.0
"""The paths of the native kernels: ways to compute the same numbers, chosen by shape, size and instruction set.

The list of them is the library's (native/src/kernels/paths.hpp). `taken` says which a problem takes; tests run a
problem on each path that is possible, also on those that are only worth it for sizes no test has time for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import numpy as np

from voxgrad.catalog.problem import Problem
from voxgrad.kernels import cpu
from voxgrad.kernels.names import KERNELS

GUARD = 64
"""Bytes behind the scratch memory of a forced call that it must leave alone."""
_POISON = 0xFF


@dataclass(frozen=True, slots=True)
class Path:
    """One path: the bytes of the vectors that have it, the kernels that ask for it, and its condition in words."""

    name: str
    bit: int
    vectors: int
    kernels: tuple[str, ...]
    possible: str
    worth: str

    def concerns(self, kernel: str) -> bool:
        """True if this kernel asks for it."""
        return any(fnmatchcase(kernel, pattern) for pattern in self.kernels)


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("vectors", ctypes.c_int64),
        ("kernels", ctypes.c_char_p),
        ("possible", ctypes.c_char_p),
        ("worth", ctypes.c_char_p),
    ]


class _Run(ctypes.Structure):
    _fields_ = [
        ("threads", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("cancel", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
    ]


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Path]:
    """All paths by name; none without the native library."""
    loaded, count = cpu.library(), ctypes.c_int32()
    if loaded is None:
        return {}
    loaded.vg_paths.restype = ctypes.POINTER(_Entry)
    entries = loaded.vg_paths(ctypes.byref(count))[: count.value]
    return {
        one.name.decode(): Path(
            one.name.decode(), 1 << index, one.vectors, tuple(one.kernels.decode().split()),
            one.possible.decode(), one.worth.decode(),
        )
        for index, one in enumerate(entries)
    }  # fmt: skip


def bits(names: Iterable[str]) -> int:
    """Paths as bits."""
    return sum(catalogue()[name].bit for name in set(names))


def names(found: int) -> tuple[str, ...]:
    """The paths whose bits are set."""
    return tuple(path.name for path in catalogue().values() if found & path.bit)


class Forced:
    """A problem that is run on chosen paths, with scratch memory of exactly the size it asked for."""

    def __init__(self, problem: Problem, *, positions: bool = False) -> None:
        loaded = cpu.library()
        assert loaded is not None
        self.name = f"{KERNELS[problem.op]}{'_positions' if positions else ''}"
        self._function, self._size = getattr(loaded, f"vg_{self.name}"), getattr(loaded, f"vg_{self.name}_scratch")
        self._size.restype = ctypes.c_int64
        self._struct, self._keep = cpu.struct_of(problem)
        self.seen = cpu.Seen()
        self._how = self._struct.how
        self._how.seen = ctypes.pointer(self.seen)
        self._pointer = ctypes.byref(self._struct)
        self._run = _Run()
        self._memory = np.empty(0, np.uint8)

    def decide(self, *, force: int = 0, avoid: int = 0, grain: int = 0, threads: int = 1) -> cpu.Seen:
        """What the paths' conditions say and which are taken, without computing anything; results are aligned."""
        stop = ctypes.c_int32(1)
        self._set(force, avoid, grain, threads, ctypes.addressof(stop))
        count = {"max_pool_grad": 4, "max_pool_grad_grad": 4, "avg_pool": 2, "avg_pool_grad": 2, "max_pool": 2}
        nowhere = [ctypes.c_void_p(self._run.scratch or 64)] * count.get(self.name, 3)
        self._function(self._pointer, *nowhere, ctypes.byref(self._run))
        return self.seen

    def __call__(
        self, addresses: Sequence[Any], *, force: int = 0, avoid: int = 0, grain: int = 0, threads: int = 1
    ) -> int:
        """Run on memory (see cpu.run). The status; -1 where memory behind the scratch memory was written to."""
        size = self._set(force, avoid, grain, threads, None)
        status: int = self._function(self._pointer, *addresses, ctypes.byref(self._run))
        end = self._memory[self._start + size : self._start + size + GUARD]
        return status if (end == _POISON).all() else -1

    def _set(self, force: int, avoid: int, grain: int, threads: int, cancel: int | None) -> int:
        how, run = self._how, self._run
        how.force, how.avoid, how.grain = force, avoid, grain
        ctypes.memset(ctypes.byref(self.seen), 0, ctypes.sizeof(self.seen))
        size: int = self._size(self._pointer, threads)
        if self._memory.size < size + 2 * GUARD:
            self._memory = np.empty(size + 2 * GUARD, np.uint8)
            self._start = -self._memory.ctypes.data % GUARD
        self._memory[: self._start + size + GUARD] = _POISON  # what is read before it was written is no number
        run.threads, run.cancel, run.scratch = threads, cancel, self._memory.ctypes.data + self._start
        return size


def taken(problem: Problem) -> tuple[str, ...]:
    """The paths that a problem takes with the threads and instructions in use.

    >>> from voxgrad.catalog.avg_pool3d import AVG_POOL3D as pool
    >>> from voxgrad.catalog.geometry import axis
    >>> from voxgrad.catalog.dtypes import FLOAT32 as F
    >>> axes = (axis(8, 2, 2, 1, "SAME"),) * 3
    >>> "sweep" in taken(Problem(pool.name, pool.map, F, F, (1, 4, 4, 4, 64), True, 1, 64, 64, 1, axes))
    True
    """
    return names(Forced(problem).decide(threads=cpu.get_num_threads()).taken)
