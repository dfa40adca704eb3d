# SPDX-License-Identifier: Apache-2.0
"""Memory of large results, recycled: touching fresh pages costs as much as the kernels that fill them.

A result of a megabyte or more lives in a block that is aligned to huge pages. When the last array that looks at the
block is gone, the block waits for the next result of about its size. What waits is bounded, and given back by
`release_memory()`.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections import deque
from typing import Any

import numpy as np

from voxgrad.arrays.limits import free_memory
from voxgrad.kernels import cpu

Array = np.ndarray[Any, Any]

SMALLEST = 2**20
"""Smaller results come from NumPy's own allocator, which recycles them well."""

_HUGE = 2**21

# Shared memory, the default, has no huge pages, and processes that forked would write into each other's results.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class _Region:
    """Pages of memory, aligned to the size of a huge page."""

    def __init__(self, size: int):
        self.size = size
        self.pages = mmap.mmap(-1, size + _HUGE, **_PRIVATE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self.pages.madvise(mmap.MADV_HUGEPAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.address = (base + _HUGE - 1) // _HUGE * _HUGE


class _Lease:
    """A region while arrays look at it; NumPy keeps the lease alive as their base."""

    def __init__(self, region: _Region, shape: tuple[int, ...], numpy_type: np.dtype[Any]):
        self._region = region
        # ml_dtypes' bfloat16 has no code in the interface; its bits travel as integers and are viewed again.
        code = "<u2" if numpy_type.kind == "V" else numpy_type.str
        self.__array_interface__ = {"data": (region.address, False), "shape": shape, "typestr": code, "version": 3}

    def __del__(self) -> None:
        _take_back(self._region)


_waiting: deque[_Region] = deque()
"""Regions that nobody looks at, the last one that was given back at the end.

No lock guards them. The collector gives regions back whenever it likes, also while its own thread looks for one, and a
signal handler may ask for one then; a child that was forked would find a lock held for ever by a thread that it does
not have. Instead, who looks through them takes them out first, each at one stroke, and puts back what it does not need.
"""


def _taken_out() -> list[_Region]:
    found = []
    while True:
        try:
            found.append(_waiting.popleft())
        except IndexError:
            return found


def empty(shape: tuple[int, ...], numpy_type: np.dtype[Any]) -> Array:
    """An array whose elements nobody has written yet."""
    size = math.prod(shape) * numpy_type.itemsize
    if size < SMALLEST:
        return np.empty(shape, numpy_type)
    lease = _Lease(_region_for(size), shape, numpy_type)
    return np.asarray(lease).view(numpy_type)


def _region_for(size: int) -> _Region:
    """A waiting region that is large enough and at most a quarter too large, or a fresh one.

    Of several, the one that was given back last: some of it may still be in the caches.
    """
    found = _taken_out()
    fitting = [region for region in reversed(found) if size <= region.size <= size + size // 4 + _HUGE]
    best = min(fitting, key=lambda region: region.size, default=None)
    _waiting.extend(region for region in found if region is not best)
    return _Region(-(-size // _HUGE) * _HUGE) if best is None else best


def _most_waiting() -> int:
    """An eighth of the free memory may wait, and never more than a gigabyte."""
    return min(2**30, free_memory() // 8)


_UNASKED = 2**28
"""Bytes that may wait on any machine."""


def _take_back(region: _Region) -> None:
    # At the end of the program the module's names may be gone already.
    if _waiting is None or region.size > 2**29:
        return
    _waiting.append(region)
    found = _taken_out()
    size = sum(one.size for one in found)
    limit = _UNASKED if size <= _UNASKED else _most_waiting()
    while size > limit and found:
        size -= found.pop(0).size
    _waiting.extend(found)


def release_memory() -> int:
    """Give the memory that waits for the next call back to the system; returns how many bytes that were."""
    return sum(region.size for region in _taken_out()) + cpu.release_scratch()
