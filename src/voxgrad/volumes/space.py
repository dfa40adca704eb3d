# SPDX-License-Identifier: Apache-2.0
"""Where the voxels of a volume lie: their size, where the first one is, and how the axes are turned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from voxgrad.catalog.geometry import Axis, reach

Array = np.ndarray[Any, Any]
Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Along:
    """A dimension that runs along one of a volume: cell i lies at cell `start + i * step` of axis 0, 1 or 2 there.

    `volume` tells volumes that lie differently apart. In fractions: the way to a cell does not change where it is.
    """

    volume: int
    axis: int
    start: Fraction = Fraction(0)
    step: Fraction = Fraction(1)

    def windows(self, axis: Axis) -> Along:
        """Along the windows over these cells: each lies at its centre, padding counted."""
        return Along(self.volume, self.axis, self.start + self.step * _centre(axis), self.step * axis.stride)

    def cells(self, axis: Axis) -> Along:
        """Along the cells under these windows."""
        step = self.step / axis.stride
        return Along(self.volume, self.axis, self.start - step * _centre(axis), step)


def _centre(axis: Axis) -> Fraction:
    """The centre of window 0, counted in cells."""
    return Fraction(reach(axis.window, axis.dilation) - 1, 2) - axis.before


@dataclass(frozen=True, eq=False)
class Space:
    """The place of a volume. `spacing` is the size of a voxel along depth, height and width, in `unit`.

    `affine`, where a file has one, takes voxel indices x, y, z to millimetres, as NIfTI has it. `origin` is where
    the centre of the first voxel is along depth, height and width, for files that know no directions.
    """

    spacing: Triple = (1.0, 1.0, 1.0)
    unit: str = ""
    affine: Array | None = None
    origin: Triple = (0.0, 0.0, 0.0)

    @property
    def is_known(self) -> bool:
        """False where a file says nothing of space."""
        return not self.equals(NOWHERE)

    def equals(self, other: Space) -> bool:
        """True where every voxel lies at the same place."""
        if (self.spacing, self.unit, self.origin) != (other.spacing, other.unit, other.origin):
            return False
        if self.affine is None or other.affine is None:
            return self.affine is other.affine
        return np.array_equal(self.affine, other.affine)

    def resampled(self, dims: Sequence[Along]) -> Space:
        """The space of a volume whose depth, height and width run along those of this one."""
        steps = [float(one.step) * self.spacing[one.axis] for one in dims]
        origin = [self.origin[one.axis] + float(one.start) * self.spacing[one.axis] for one in dims]
        return Space(_triple(steps), self.unit, self._turned(dims), _triple(origin))

    def _turned(self, dims: Sequence[Along]) -> Array | None:
        if self.affine is None:
            return None
        # An affine counts x, y, z, and these dimensions are depth, height, width.
        to_source = np.diag([0.0, 0.0, 0.0, 1.0])
        for at, one in enumerate(dims):
            to_source[2 - one.axis, 2 - at] = float(one.step)
            to_source[2 - one.axis, 3] = float(one.start)
        return np.asarray(self.affine @ to_source)

    @property
    def corner(self) -> Triple:
        """Where the first voxel is, for files without directions: an affine tells where its axes are not turned."""
        if self.affine is None:
            return self.origin
        plain = np.allclose(self.affine[:3, :3], np.diag(self.spacing[::-1]), rtol=1e-5, atol=1e-9)
        return _triple(self.affine[2::-1, 3].tolist()) if plain else self.origin


def _triple(values: Sequence[float]) -> Triple:
    depth, height, width = values
    return float(depth), float(height), float(width)


NOWHERE = Space()
"""What a file says that says nothing of space."""
