# SPDX-License-Identifier: Apache-2.0
"""Sums over chunks (products, maxima too), in a tree that only the number of chunks decides: one set of bits.

Node i of a level is the sum of nodes 2i and 2i + 1 below it; level 0 holds what the chunks brought. A node is a file,
and takes the place of the two it was made of, so that few files stand beside a long run, and a run that was killed goes
on with what is there.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_JOINS: dict[str, Any] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "all": np.logical_and,
    "any": np.logical_or,
}  # fmt: skip
"""What makes one of two parts, by the name that an op gives it in the catalogue."""


def wide(array: Array) -> Array:
    """Parts are kept in the widest type of their kind."""
    kinds = {"b": array.dtype, "u": np.uint64, "i": np.int64, "c": np.complex128}
    return array.astype(kinds.get(array.dtype.kind, np.float64), copy=False)


def nothing_in(adds: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing where it is added."""
    if adds in ("max", "min"):
        ends = np.iinfo(dtype) if dtype.kind in "iu" else None
        low, high = (-np.inf, np.inf) if ends is None else (ends.min, ends.max)
        return low if adds == "max" else high
    return _JOINS[adds].identity


def joined(adds: str, part: Array, other: Array) -> Array:
    """One of two parts."""
    made: Array = _JOINS[adds](part, other)
    return made


_ROW = 2**10
"""Cells of the rows that are added up where only the last dimension stays: long enough to be added side by side."""


def sum_over(array: Array, axes: Sequence[int]) -> Array:
    """The sum over axes; a row of few channels is added with those that lie behind it."""
    kept = [at for at in range(array.ndim) if at not in axes and array.shape[at] > 1]
    if kept != [array.ndim - 1] or not array.flags.c_contiguous:
        return np.asarray(np.add.reduce(array, axis=tuple(axes)))
    channels = array.shape[-1]
    rows = array.reshape(-1, channels)
    beside = max(1, _ROW // channels)
    even = len(rows) // beside * beside
    long = np.add.reduce(rows[:even].reshape(-1, beside * channels), axis=0)
    rest = np.add.reduce(rows[even:], axis=0)
    total = np.add.reduce(long.reshape(beside, channels), axis=0) + rest
    return np.asarray(total).reshape([size for at, size in enumerate(array.shape) if at not in axes])


_SYNCED = 4
"""The disk is not waited for with sums of fewer than 2^4 chunks: should the machine stop, these are done again."""


class Sums:
    """The tree of a run with `count` chunks, in a folder; `adds` says how each of its sums is made."""

    def __init__(self, folder: Path, count: int, adds: Sequence[str] = ()):
        self.folder = folder
        self.adds = tuple(adds)
        self.widths = [count]
        while self.widths[-1] > 1:
            self.widths.append(-(-self.widths[-1] // 2))
        self._ready: set[int] = set()

    def put(self, number: int, parts: Sequence[Array | None]) -> None:
        """What a chunk adds to each sum; None where it adds nothing. Whoever is killed leaves all of it or nothing."""
        self.folder.mkdir(exist_ok=True)
        self._write(0, number, {str(at): part for at, part in enumerate(parts) if part is not None})

    def _file(self, level: int, index: int) -> Path:
        return self.folder / f"{level}-{index}.npz"

    def _write(self, level: int, index: int, parts: dict[str, Array]) -> None:
        file = self._file(level, index)
        unfinished = file.with_suffix(".part.npz")
        with unfinished.open("wb") as stream:
            np.savez(stream, **parts)  # type: ignore[arg-type]
            if level >= _SYNCED:
                stream.flush()
                os.fsync(stream.fileno())
        unfinished.replace(file)

    def go_on(self, recorded: Iterable[int]) -> set[int]:
        """After a run that was killed: the recorded chunks whose sums are there. Nothing is counted twice or forgotten.

        A sum may still stand beside its parts, two parts may wait for each other, and a chunk may have brought its part
        without being recorded: it will bring it again.
        """
        there = self._there()
        for level, index in sorted(there, reverse=True):
            if level and (level, index) in there:
                there -= self._drop_below(level, index, there)
        self._ready = {number for number in recorded if self._holds(number, there)}
        for level, index in sorted(there):
            if not level and index not in self._ready:
                self._file(level, index).unlink(missing_ok=True)
            else:
                self._climb(level, index)
        return set(self._ready)

    def _there(self) -> set[tuple[int, int]]:
        names = [file.stem for file in self.folder.glob("*-*.npz") if not file.name.endswith(".part.npz")]
        there = {(int(level), int(index)) for level, _, index in (name.partition("-") for name in names)}
        return {one for one in there if self._is_sound(*one)}

    def _is_sound(self, level: int, index: int) -> bool:
        """False for a file that was damaged: it is taken away, and what it held is done again."""
        try:
            self._read(level, index)
        except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError):
            self._file(level, index).unlink(missing_ok=True)
            return False
        return True

    def _holds(self, number: int, there: set[tuple[int, int]]) -> bool:
        return any((level, number >> level) in there for level in range(len(self.widths)))

    def _drop_below(self, level: int, index: int, there: set[tuple[int, int]]) -> set[tuple[int, int]]:
        below = {(lower, child) for lower, child in there if lower < level and child >> (level - lower) == index}
        for lower, child in below:
            self._file(lower, child).unlink(missing_ok=True)
        return below

    def add(self, number: int) -> None:
        """A chunk is recorded: add up whatever is complete because of it."""
        self._ready.add(number)
        self._climb(0, number)

    def _climb(self, level: int, index: int) -> None:
        while level < len(self.widths) - 1:
            pair = [one for one in (index & ~1, index | 1) if one < self.widths[level]]
            # A part counts once its chunk is recorded: one that is not may be brought again.
            if not all(self._file(level, one).exists() and (level or one in self._ready) for one in pair):
                return
            self._join(level, pair)
            level, index = level + 1, index >> 1

    def _join(self, level: int, pair: Sequence[int]) -> None:
        total: dict[str, Array] = {}
        for one in pair:
            for name, part in self._read(level, one).items():
                total[name] = joined(self.adds[int(name)], total[name], part) if name in total else part
        self._write(level + 1, pair[0] // 2, total)
        for one in pair:
            self._file(level, one).unlink(missing_ok=True)

    def _read(self, level: int, index: int) -> dict[str, Array]:
        with np.load(self._file(level, index), allow_pickle=False) as file:
            return dict(file)

    def totals(self) -> dict[int, Array]:
        """The sums over all chunks, by their number; none where no chunk brought anything."""
        top = len(self.widths) - 1
        return {int(name): part for name, part in self._read(top, 0).items()} if self.widths[0] else {}
