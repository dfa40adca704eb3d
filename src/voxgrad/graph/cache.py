# SPDX-License-Identifier: Apache-2.0
"""Results by content: the key of a result is a hash of its op, attributes and the keys of its inputs."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from voxgrad.arrays.locks import make_lock

DEFAULT_BYTES = 2**28


class Cache:
    """Results of blocks, the least recently used ones dropped first. Sessions and threads may share one."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES):
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[bytes, tuple[tuple[Any, ...], int]] = OrderedDict()
        self._lock = make_lock()

    def get(self, key: bytes) -> tuple[Any, ...] | None:
        """The results under a key, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: bytes, results: tuple[Any, ...]) -> None:
        """Keep results, if they fit."""
        size = 256
        for result in results:
            size += _bytes(result)
        if size > self.max_bytes:
            return
        with self._lock:
            self._drop(key)
            self._entries[key] = (results, size)
            self.bytes += size
            while self.bytes > self.max_bytes:
                self._drop(next(iter(self._entries)))

    def drop(self, key: bytes) -> None:
        """Let one entry go."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry[1]

    def clear(self) -> None:
        """Let everything go."""
        with self._lock:
            self._entries.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)


def _bytes(result: Any) -> int:
    if isinstance(result, np.ndarray):
        return result.nbytes
    size = getattr(result, "nbytes", None)
    if isinstance(size, int):
        return size
    return sum(_bytes(one) for one in result) if isinstance(result, (tuple, list)) else 64
