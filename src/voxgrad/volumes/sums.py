# SPDX-License-Identifier: Apache-2.0
"""Sums over chunks, added in a tree that only the number of chunks decides: the same chunks give the same bits.

Node i of a level is the sum of nodes 2i and 2i + 1 below it; level 0 holds what the chunks brought. A node is a file,
and takes the place of the two it was made of, so that few files stand beside a long run, and a run that was killed goes
on with what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Sums:
    """The tree of a run with `count` chunks, in a folder."""

    def __init__(self, folder: Path, count: int):
        self.folder = folder
        self.widths = [count]
        while self.widths[-1] > 1:
            self.widths.append(-(-self.widths[-1] // 2))

    def put(self, number: int, parts: Sequence[Array | None]) -> None:
        """What a chunk adds to each sum; None where it adds nothing. Whoever is killed leaves all of it or nothing."""
        self.folder.mkdir(exist_ok=True)
        self._write(0, number, {str(at): part for at, part in enumerate(parts) if part is not None})

    def _file(self, level: int, index: int) -> Path:
        return self.folder / f"{level}-{index}.npz"

    def _write(self, level: int, index: int, parts: dict[str, Array]) -> None:
        file = self._file(level, index)
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, **parts)  # type: ignore[arg-type]
        unfinished.replace(file)

    def holds(self, number: int) -> bool:
        """True where what a chunk brought is there, by itself or in a sum."""
        return any(self._file(level, number >> level).exists() for level in range(len(self.widths)))

    def clean(self) -> None:
        """After a run that was killed: parts of a sum that is there are not counted twice."""
        for level in range(len(self.widths) - 1, 0, -1):
            for file in self.folder.glob(f"{level}-*.npz"):
                if not file.name.endswith(".part.npz"):
                    self._drop_below(level, int(file.stem.partition("-")[2]))

    def _drop_below(self, level: int, index: int) -> None:
        for lower in range(level - 1, -1, -1):
            for child in range(index << (level - lower), (index + 1) << (level - lower)):
                self._file(lower, child).unlink(missing_ok=True)

    def add(self, number: int) -> None:
        """A chunk is recorded: add up whatever is complete because of it."""
        index = number
        for level in range(len(self.widths) - 1):
            pair = [one for one in (index & ~1, index | 1) if one < self.widths[level]]
            if not all(self._file(level, one).exists() for one in pair):
                return
            self._join(level, pair)
            index >>= 1

    def _join(self, level: int, pair: Sequence[int]) -> None:
        total: dict[str, Array] = {}
        for one in pair:
            for name, part in self._read(level, one).items():
                total[name] = total[name] + part if name in total else part
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
