# SPDX-License-Identifier: Apache-2.0
"""Where the axes of a tensor lead in a patient: sizes of voxels, directions as letters, places in millimetres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voxgrad.volumes.grids import Lattice
from voxgrad.volumes.space import Along, Array

LETTERS = (("L", "R"), ("P", "A"), ("I", "S"))
"""The ends of x, y and z as an affine counts them: to the right, to the front, upwards."""
OBLIQUE = 0.25
"""A direction that leans this much towards another axis, as the sine of the angle, has its letter, too."""


@dataclass(frozen=True, slots=True)
class Leading:
    """An axis of a tensor in space: how far an element is from the next, and the first from the volume's origin.

    `step` is that way as x, y, z, `low` and `high` are the letters at the ends of the axis; of a volume without
    directions, they are empty.
    """

    spacing: float
    first: float
    step: tuple[float, ...]
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor in space, axis by axis; `origin` is the place of its first element, where all of it is known."""

    unit: str
    axes: tuple[Leading | None, ...]
    origin: tuple[float, ...]
    lost: str


def placed_axes(lattice: Lattice) -> Placed:
    """Where the axes of a tensor lead."""
    space = lattice.space
    axes = tuple(None if one is None else _leading(lattice, one) for one in lattice.dims)
    there = [one for one in lattice.dims if one is not None]
    origin: tuple[float, ...] = ()
    if space.affine is not None and {one.axis for one in there} == {0, 1, 2}:
        first = np.array([0.0, 0.0, 0.0, 1.0])
        for one in there:
            first[2 - one.axis] = float(one.start)
        origin = tuple(float(one) for one in (space.affine @ first)[:3])
    return Placed(space.unit, axes, origin, lattice.lost)


def _leading(lattice: Lattice, along: Along) -> Leading:
    space = lattice.space
    spacing = abs(float(along.step)) * space.spacing[along.axis]
    first = space.origin[along.axis] + float(along.start) * space.spacing[along.axis]
    if space.affine is None:
        return Leading(spacing, first, (), "", "")
    step = space.affine[:3, 2 - along.axis] * float(along.step)
    low, high = ends(step)
    return Leading(spacing, first, tuple(float(one) for one in step), low, high)


def ends(step: Sequence[float] | Array) -> tuple[str, str]:
    """The letters at both ends of an axis that leads this way: the largest part first, then others that count.

    >>> ends([-1.0, 0.0, 0.0]), ends([0.0, 0.8, -0.6])
    (('R', 'L'), ('PS', 'AI'))
    """
    way = np.asarray(step, float)
    length = float(np.linalg.norm(way))
    if not length > 0:
        return "", ""
    parts = way / length
    named = [int(axis) for axis in np.argsort(-np.abs(parts), kind="stable") if abs(parts[axis]) >= OBLIQUE]
    pairs = [LETTERS[axis] if parts[axis] > 0 else LETTERS[axis][::-1] for axis in named]
    return "".join(low for low, _ in pairs), "".join(high for _, high in pairs)
