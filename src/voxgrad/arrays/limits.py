# SPDX-License-Identifier: Apache-2.0
"""How much memory a call may ask for, checked before anything is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import Any

from voxgrad.arguments import checked
from voxgrad.errors import Fault, Faults, InvalidArgumentError

UNCHECKED = 64 * 2**20
"""Results up to this size are not worth a look at the machine's free memory."""

_COPIED = 2**16
"""Views up to this size are not worth a look at what they would be as copies."""

_limit: ContextVar[int | None] = ContextVar("voxgrad_limit_bytes", default=None)
limit_in_force = _limit.get
"""The limit of the innermost `limits` block, or None. The variable's own method: every call of an op asks for it."""


@checked
class limits:  # noqa: N801 - used like a function, as a context manager
    """Refuse calls whose result, with the copies that inputs need, is larger than `bytes` in a block of code.

    Without it the limit is what the machine has free.

    >>> with limits(bytes=2**20):
    ...     current_limit()
    1048576
    """

    def __init__(self, *, bytes: int):
        if not isinstance(bytes, int) or bytes < 0:
            raise InvalidArgumentError(Fault("VG003", "limits", "bytes", "be an integer, 0 or more", repr(bytes)))
        self.bytes = bytes
        self._tokens: list[Token[int | None]] = []

    def __enter__(self) -> limits:
        self._tokens.append(_limit.set(self.bytes))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _limit.reset(self._tokens.pop())


def current_limit(free: Callable[[], int] | None = None) -> int:
    """The limit in force, in bytes; without one, what `free` says of the memory of another device than the host."""
    limit = limit_in_force()
    return (free or free_memory)() if limit is None else limit


def free_memory() -> int:
    """Bytes that this process could still use, as far as the machine tells."""
    free = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            free.append(int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    except (OSError, ValueError):
        pass
    if not free and hasattr(os, "sysconf"):
        free.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(0, min(free, default=2**63 - 1))


def passed_limit(wanted: int, free: Callable[[], int] | None = None) -> int | None:
    """The limit that `wanted` bytes pass, None where they may be taken. `free` is as in `current_limit`."""
    if wanted <= UNCHECKED and limit_in_force() is None:
        return None
    limit = current_limit(free)
    return limit if wanted > limit else None


def check_size(
    op: str,
    wanted: int,
    faults: Faults,
    free: Callable[[], int] | None = None,
    *,
    copied: int = 0,
    argument: str = "output",
) -> None:
    """Note a fault if a result of `wanted` bytes, and copies of inputs, pass the limit. `free`: see `current_limit`."""
    limit = passed_limit(wanted + copied, free)
    if limit is not None:
        what = "a result" if argument == "output" else "an array"
        copies = f" and copies of inputs of {copied:,} bytes" if copied else ""
        remedy = "Check the sizes for a typo, or raise the limit with vg.limits(bytes=...)."
        got = f"{what} of {wanted:,} bytes{copies}"
        faults.add("VG020", argument, wanted=f"need at most {limit:,} bytes", got=got, remedy=remedy)


def check_repeated(op: str, argument: str, value: Any, faults: Faults) -> None:
    """Note a fault for an array that is more than it holds, where what it stands for passes the limit.

    That is a view that repeats its elements, and an empty array with endless rows.
    """
    for array in value if isinstance(value, (list, tuple)) else (value,):
        size = getattr(array, "nbytes", _COPIED)
        if size > _COPIED and 0 in (array.strides if hasattr(array, "strides") else array.stride()):
            check_size(op, size, faults, argument=argument)
        elif not size:
            check_size(op, math.prod(size or 1 for size in array.shape) * array.itemsize, faults, argument=argument)
