# SPDX-License-Identifier: Apache-2.0
"""Which axis of a file is which: the one place that turns any order of axes into [N, D, H, W, C], and back.

Axes are letters, one for each dimension of the file, in its order: `zyx`, `tczyx` (OME), `xyzt` (NIfTI), `NDHWC`. Time
goes with the batch, samples and channels are C. An axis that the file does not have is of size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError

Array = np.ndarray[Any, Any]
Index = tuple[slice, ...]
"""Slices of the five dimensions of a volume."""

FIVE = "NDHWC"
WHOLE: Index = (slice(None),) * 5
_LETTERS = {"N": "ntb", "D": "dz", "H": "hy", "W": "wx", "C": "cs"}
_MEANING = {letter: ours for ours, letters in _LETTERS.items() for letter in letters}
_BY_RANK = {3: "DHW", 4: "DHWC", 5: "NDHWC"}


def default_axes(rank: int) -> str:
    """What a file of this rank usually holds, where it does not say: an image, channels last, a batch of such."""
    if rank not in _BY_RANK:
        remedy = "Name its dimensions, as in axes='yx'." if rank < 3 else ""
        fault = Fault("VG010", "open_volume", "path", "hold 3, 4 or 5 dimensions", f"{rank} dimensions", remedy)
        raise InvalidArgumentError(fault)
    return _BY_RANK[rank]


def told_axes(letters: str, rank: int) -> str:
    """The axes that a file names, if they can be understood, else the usual ones."""
    found = [_MEANING.get(letter.lower()) for letter in letters]
    understood = len(found) == rank and None not in found and len(set(found)) == rank
    return letters if understood else default_axes(rank)


@dataclass(frozen=True, slots=True)
class Layout:
    """The axes of a file with their sizes, in the file's own order."""

    axes: str
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        found = [_MEANING.get(letter.lower()) for letter in self.axes]
        if None in found or len(set(found)) != len(found):
            wanted = "be letters, at most one for each of batch (n, t), depth (z, d), height (y, h), width (x, w), "
            fault = Fault("VG003", "open_volume", "axes", f"{wanted}channels (c, s)", repr(self.axes))
            raise InvalidArgumentError(fault)
        if len(self.sizes) != len(self.axes):
            wanted = f"name the {len(self.sizes)} dimensions of the file, {list(self.sizes)}"
            raise InvalidArgumentError(Fault("VG004", "open_volume", "axes", wanted, repr(self.axes)))

    @classmethod
    def holding(cls, axes: str, shape: Sequence[int]) -> Layout:
        """The layout of a new file with these axes for a volume [N, D, H, W, C]."""
        sizes = dict(zip(FIVE, shape, strict=True))
        made = cls(axes, tuple(sizes.get(_MEANING.get(letter.lower(), ""), 0) for letter in axes))
        if made.five() != tuple(shape):
            wanted = f"have a letter for each dimension of {list(shape)} that is not 1"
            raise InvalidArgumentError(Fault("VG012", "create_volume", "axes", wanted, repr(axes)))
        return made

    @property
    def _places(self) -> tuple[int | None, ...]:
        """The dimension of the file for each of N, D, H, W, C."""
        ours = [_MEANING[letter.lower()] for letter in self.axes]
        return tuple(ours.index(letter) if letter in ours else None for letter in FIVE)

    def five(self, values: Sequence[Any] | None = None, missing: Any = 1) -> tuple[Any, ...]:
        """Values of the file's dimensions (its sizes, unless others are given), as [N, D, H, W, C]."""
        given = self.sizes if values is None else values
        return tuple(missing if at is None else given[at] for at in self._places)

    def own(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Values for [N, D, H, W, C] in the order of the file, without the axes that it does not have."""
        chosen = {at: value for at, value in zip(self._places, values, strict=True) if at is not None}
        return tuple(chosen[at] for at in sorted(chosen))

    def to_five(self, part: Array, index: Index = WHOLE) -> Array:
        """A part of the file, read at `index`, as [N, D, H, W, C]."""
        places = self._places
        turned = np.transpose(part, [at for at in places if at is not None])
        full = turned[tuple(None if at is None else slice(None) for at in places)]
        cut = tuple(index[i] if at is None else slice(None) for i, at in enumerate(places))
        return full[cut]

    def to_own(self, part: Array) -> Array:
        """A part as [N, D, H, W, C] in the order of the file."""
        places = self._places
        missing = tuple(i for i, at in enumerate(places) if at is None)
        kept = [at for at in places if at is not None]
        return np.transpose(part.squeeze(missing), np.argsort(kept))
