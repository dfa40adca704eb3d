# SPDX-License-Identifier: Apache-2.0
"""Smaller copies of a volume, the levels of an OME-Zarr: along every long axis half as many cells as the level before.

Floats are means of the cells that they stand for; integers, which may be labels, are the first of them. Levels are made
when all voxels are there, and struck off the list before any are written again: what is listed was made of what is
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.volumes.axes import Index
from voxgrad.volumes.formats import zarr
from voxgrad.volumes.space import Along, Space
from voxgrad.volumes.store import Address, Store, reading

Array = np.ndarray[Any, Any]
LONG = 64
"""An axis with more cells than this is halved."""


def strike_levels(path: Path | Address) -> None:
    """List the full resolution alone, of which cells will be written."""
    with reading(str(path), "OME-Zarr"):
        zarr.strike_levels(path)


def make_levels(path: Path | Address) -> None:
    """Make and list those levels that are not listed. Whoever is killed here goes on with the one that was begun."""
    with reading(str(path), "OME-Zarr"):
        listed = zarr.listed_levels(path)
        above = zarr.open_store(path, listed[-1], None, False)
        while steps := _steps(above.shape[1:4]):
            name, space = str(len(listed)), _space(above, steps)
            sizes = [-(-size // step) for size, step in zip(above.shape[1:4], steps, strict=True)]
            below = zarr.new_level(path, name, (above.shape[0], *sizes, above.shape[4]), space)
            for box in boxes(below.shape, below.chunks or below.shape):
                below.write(box, _halved(above, box, steps))
            zarr.list_level(path, name, space)
            listed.append(name)
            above = zarr.open_store(path, name, None, False)


def _steps(sizes: Sequence[int]) -> list[int]:
    """How many cells become one along each axis; nothing where the volume is small."""
    steps = [2 if size > LONG else 1 for size in sizes]
    return steps if max(steps) > 1 else []


def _space(above: Store, steps: Sequence[int]) -> Space:
    """A mean lies between the cells that it is made of, the first of them where it was."""
    if not above.space.is_known:
        return above.space
    middle = Fraction(0) if _takes_first(above) else Fraction(1, 2)
    return above.space.resampled(
        [Along(0, axis, middle * (step - 1), Fraction(step)) for axis, step in enumerate(steps)]
    )


def _takes_first(store: Store) -> bool:
    return store.dtype.kind in "biu"


def boxes(shape: Sequence[int], cuts: Sequence[int]) -> Iterator[Index]:
    """The parts of a volume that is cut so."""
    for at in product(*(range(-(-size // cut)) for size, cut in zip(shape, cuts, strict=True))):
        yield tuple(
            slice(one * cut, min((one + 1) * cut, size)) for one, cut, size in zip(at, cuts, shape, strict=True)
        )


def _halved(above: Store, box: Index, steps: Sequence[int]) -> Array:
    """A box of a level, from the level above."""
    every = (1, *steps, 1)
    spans = tuple(slice(one.start * step, min(one.stop * step, size))
                  for one, step, size in zip(box, every, above.shape, strict=True))  # fmt: skip
    part = above.read(spans)
    if _takes_first(above):
        return part[tuple(slice(None, None, step) for step in every)]
    made = part.astype(np.promote_types(part.dtype, np.float32), copy=False)
    for axis, step in enumerate(every):
        made = _mean_of_pairs(made, axis) if step == 2 else made
    return made.astype(part.dtype, copy=False)


def _mean_of_pairs(values: Array, axis: int) -> Array:
    """The means of neighbours along an axis; of a last cell without a neighbour, the cell."""
    before = (slice(None),) * axis
    made = np.array(values[(*before, slice(None, None, 2))])
    pairs = made[(*before, slice(values.shape[axis] // 2))]
    pairs += values[(*before, slice(1, None, 2))]
    pairs *= 0.5
    return made
