# SPDX-License-Identifier: Apache-2.0
"""Where the voxels of a volume lie: their size, where the first one is, and how the axes are turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from voxgrad.catalog.geometry import Axis, centre

Array = np.ndarray[Any, Any]
Triple = tuple[float, float, float]
TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
"""DICOM, NRRD and MetaImage count to the left and to the back, an affine to the right and to the front."""
MILLIMETRES = {"m": 1e3, "mm": 1.0, "um": 1e-3, "nm": 1e-6}


@dataclass(frozen=True, slots=True)
class Along:
    """A dimension that runs along one of a volume: cell i lies at cell `start + i * step` of axis 0, 1 or 2 there.

    `volume` tells volumes that lie differently apart. In fractions: the way to a cell does not change where it is.
    """

    volume: int
    axis: int
    start: Fraction = Fraction(0)
    step: Fraction = Fraction(1)

    def moved(self, start: Fraction | int, step: Fraction | int) -> Along:
        """Along every `step`th of these cells, from cell `start` on."""
        return Along(self.volume, self.axis, self.start + self.step * start, self.step * step)

    def windows(self, axis: Axis) -> Along:
        """Along the windows over these cells: each lies at its centre, padding counted."""
        return self.moved(centre(axis), axis.stride)

    def cells(self, axis: Axis) -> Along:
        """Along the cells under these windows."""
        return self.moved(-centre(axis) / axis.stride, Fraction(1, axis.stride))


@dataclass(frozen=True, eq=False)
class Space:
    """The place of a volume. `spacing` is the size of a voxel along depth, height and width, in `unit`.

    `affine`, where a file has one, takes voxel indices x, y, z to millimetres, as NIfTI has it. `origin` is where
    the centre of the first voxel is along depth, height and width, for files that know no directions. `lost` says why
    a result has no place, where the volumes that it was made of had one.
    """

    spacing: Triple = (1.0, 1.0, 1.0)
    unit: str = ""
    affine: Array | None = None
    origin: Triple = (0.0, 0.0, 0.0)
    lost: str = ""

    @property
    def is_known(self) -> bool:
        """False where nothing is known of space."""
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
        steps = [abs(float(one.step)) * self.spacing[one.axis] for one in dims]
        ahead = [one.axis for one in dims] == [0, 1, 2] and all(one.step > 0 for one in dims)
        if self.affine is None and ahead:
            origin = [self.origin[one.axis] + float(one.start) * self.spacing[one.axis] for one in dims]
            return Space(triple(steps), self.unit, None, triple(origin))
        # An affine counts x, y, z, and these dimensions are depth, height, width.
        to_source = np.diag([0.0, 0.0, 0.0, 1.0])
        for at, one in enumerate(dims):
            to_source[2 - one.axis, 2 - at] = float(one.step)
            to_source[2 - one.axis, 3] = float(one.start)
        return Space(triple(steps), self.unit, self.matrix @ to_source)

    def boxed(self, box: Sequence[int]) -> Space:
        """The space of a box of the volume, from its first cell on; of no box, this one."""
        if not box or not self.is_known:
            return self
        return self.resampled([Along(0, axis, Fraction(box[2 * axis])) for axis in range(3)])

    @property
    def matrix(self) -> Array:
        """The affine; of a file without directions, one along its axes."""
        if self.affine is not None:
            return self.affine
        made = np.diag([*self.spacing[::-1], 1.0])
        made[:3, 3] = self.origin[::-1]
        return made

    @property
    def corner(self) -> Triple:
        """Where the first voxel is along the volume's own axes, for files without directions."""
        if self.affine is None:
            return self.origin
        return triple(np.linalg.solve(self.directions, self.affine[:3, 3])[::-1])

    @property
    def directions(self) -> Array:
        """The directions of x, y and z as columns of length 1."""
        matrix = self.matrix[:3, :3]
        return np.asarray(matrix / np.linalg.norm(matrix, axis=0))

    @property
    def in_millimetres(self) -> Space:
        """The same place for files that know no other unit. What has no unit is taken as it is."""
        factor = MILLIMETRES.get(self.unit, 1.0)
        if factor == 1.0:
            return self
        affine = None if self.affine is None else np.diag([factor, factor, factor, 1.0]) @ self.affine
        scaled = [triple([one * factor for one in some]) for some in (self.spacing, self.origin)]
        return replace(self, spacing=scaled[0], unit="mm", affine=affine, origin=scaled[1])

    def as_data(self) -> dict[str, Any]:
        """All of it as plain data, for files that have room for it."""
        affine = None if self.affine is None else self.affine.tolist()
        return {"spacing": list(self.spacing), "unit": self.unit, "origin": list(self.origin), "affine": affine,
                "lost": self.lost}  # fmt: skip

    @staticmethod
    def from_data(told: Mapping[str, Any]) -> Space:
        """What `as_data` wrote."""
        affine = None if told["affine"] is None else sound(np.array(told["affine"], float).reshape(4, 4))
        spacing, origin = (triple(np.array(told[name], float).reshape(3)) for name in ("spacing", "origin"))
        return Space(spacing, str(told["unit"]), affine, origin, str(told.get("lost", "")))


def placed(affine: Array, unit: str = "mm") -> Space:
    """The space of an affine: its columns are as long as voxels."""
    return Space(triple(np.linalg.norm(affine[:3, 2::-1], axis=0)), unit, np.asarray(affine, float))


def sound(affine: Array) -> Array | None:
    """An affine, or None for one that takes different voxels to one place, or to none at all."""
    return affine if np.isfinite(affine).all() and abs(np.linalg.det(affine)) > 0 else None


LOST = "no place: "
"""What files that have room for a line of text say of a result without a place, before the reason."""


def lost_in(text: str) -> str:
    """The reason in such a line."""
    return text.removeprefix(LOST).strip("\0 ") if text.startswith(LOST) else ""


def triple(values: Any) -> Triple:
    """Three numbers, of depth, height and width."""
    depth, height, width = values
    return float(depth), float(height), float(width)


NOWHERE = Space()
"""What a file says that says nothing of space."""
