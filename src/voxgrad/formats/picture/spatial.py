# SPDX-License-Identifier: Apache-2.0
"""Displays in space: terrains, clouds of points and volumes, seen without perspective."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.formats.picture.marks import Mark, Pixels, line
from voxgrad.formats.picture.scales import as_numbers, coarse, ends, plane, viridis, volume_of
from voxgrad.formats.picture.windows import Box, first_value, fitted, inside, panel
from voxgrad.graph.displays import Display
from voxgrad.graph.readings import Readings
from voxgrad.graph.values import Array

_MOST_CELLS = 36
_MOST_DOTS = 2000
_RAYS = 64
_REACH = 1.5
"""How far the rays reach that look through a volume, of half its longest side."""


def draw_surface(display: Display, readings: Readings) -> list[Mark]:
    """A terrain."""
    marks, top = panel(display)
    value = first_value(display, readings)
    grid = None if value is None else plane(value, int(display.value("rows")))
    return marks if grid is None else [*marks, *_surface(display, grid, inside(display, top))]


def draw_scatter(display: Display, readings: Readings) -> list[Mark]:
    """A cloud of points."""
    marks, top = panel(display)
    value = first_value(display, readings)
    numbers = None if value is None else as_numbers(value)
    if numbers is None or numbers.ndim < 2 or numbers.shape[-1] < 3 or numbers.size == 0:
        return marks
    rows = numbers.reshape(-1, numbers.shape[-1])
    return [*marks, *_scatter(display, rows, inside(display, top))]


def draw_volume(display: Display, readings: Readings) -> list[Mark]:
    """A volume, looked through."""
    marks, top = panel(display)
    value = first_value(display, readings)
    volume = None if value is None else volume_of(value)
    return marks if volume is None else [*marks, fitted(_volume(display, volume), inside(display, top))]


def _view(display: Display) -> Array:
    """The axes of the screen (to the right, down, towards the eye) in those of the data (x, y, height)."""
    turn, tilt = (math.radians(float(display.value(name))) for name in ("turn", "tilt"))
    right = [math.cos(turn), math.sin(turn), 0.0]
    down = [-math.sin(turn) * math.sin(tilt), math.cos(turn) * math.sin(tilt), -math.cos(tilt)]
    near = [-math.sin(turn) * math.cos(tilt), math.cos(turn) * math.cos(tilt), math.sin(tilt)]
    return np.array([right, down, near])


def _onto(points: Array, box: Box, reach: float = 1.5) -> Array:
    """Points on the screen, of which none is farther from the middle than `reach`, in a box."""
    x, y, width, height = box
    scale = min(width, height) / (2 * reach)
    made: Array = points[..., :2] * scale + np.array([x + width / 2, y + height / 2])
    return made


def _surface(display: Display, grid: Array, box: Box) -> list[Mark]:
    """A terrain: cells from the farthest to the nearest."""
    grid = coarse(grid, _MOST_CELLS)
    low, high = ends(grid, display.value("low"), display.value("high"))
    rows, columns = grid.shape
    if rows < 2 or columns < 2:
        return []
    heights = np.clip(np.nan_to_num((grid - low) / (high - low)), 0, 1)
    y, x = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    seen = np.stack([x, y, heights * 1.2 - 0.6], axis=-1) @ _view(display).T
    flat, depth = _onto(seen, box, float(np.abs(seen[..., :2]).max()) * 1.05), seen[..., 2]
    colours = viridis((grid[:-1, :-1] + grid[1:, 1:]) / 2, (low, high))
    cells = [(r, c) for r in range(rows - 1) for c in range(columns - 1)]
    cells.sort(key=lambda at: float(depth[at[0] : at[0] + 2, at[1] : at[1] + 2].sum()))
    made = []
    for r, c in cells:
        corners = (flat[r, c], flat[r, c + 1], flat[r + 1, c + 1], flat[r + 1, c])
        made.append(Mark("area", tuple((float(a), float(b)) for a, b in corners), _hex(colours[r, c])))
    return made


def _scatter(display: Display, rows: Array, box: Box) -> list[Mark]:
    """Points in a box of edges, the farthest first."""
    rows = rows[np.isfinite(rows[:, :3]).all(axis=1)]
    rows = rows[:: max(1, math.ceil(len(rows) / _MOST_DOTS))]
    view = _view(display)
    made = [line([(float(x), float(y)) for x, y in _onto(edge @ view.T, box)], "frame") for edge in _edges()]
    if not len(rows):
        return made
    spans = [ends(rows[:, axis], None, None) for axis in range(3)]
    unit = np.stack([(rows[:, axis] - low) / (high - low) * 2 - 1 for axis, (low, high) in enumerate(spans)], axis=-1)
    seen = unit @ view.T
    tints = rows[:, 3] if rows.shape[1] > 3 else rows[:, 2]
    colours, flat = viridis(tints, ends(tints, None, None)), _onto(seen, box)
    for at in np.argsort(seen[:, 2], kind="stable"):
        made.append(Mark("circle", ((float(flat[at, 0]), float(flat[at, 1])),), _hex(colours[at]), 2.0))
    return made


def _edges() -> list[Any]:
    """The twelve edges of a cube."""
    ends_ = [-1.0, 1.0]
    found = []
    for axis in range(3):
        for a in ends_:
            for b in ends_:
                found.append(np.array([np.insert([a, b], axis, end) for end in ends_]))
    return found


def _volume(display: Display, volume: Array) -> Pixels:
    """The greatest value on each ray through a volume."""
    small = volume[tuple(slice(None, None, math.ceil(size / 128)) for size in volume.shape)]
    range_ = ends(small, display.value("low"), display.value("high"))
    step = np.linspace(-_REACH, _REACH, _RAYS)
    down, right, near = np.meshgrid(step, step, step, indexing="ij")
    # A row of the view is an axis of the screen in the axes of the data, so its transpose leads back.
    x, y, height = np.moveaxis(np.stack([right, down, near], axis=-1) @ _view(display), -1, 0)
    longest = max(small.shape)
    places = [
        np.round((one * longest / size + 1) / 2 * (size - 1)).astype(int)
        for one, size in ((-height, small.shape[0]), (y, small.shape[1]), (x, small.shape[2]))
    ]
    inside = np.logical_and.reduce([(at >= 0) & (at < size) for at, size in zip(places, small.shape, strict=True)])
    values = np.where(inside, small[tuple(np.where(inside, at, 0) for at in places)], -np.inf)
    brightest = np.nan_to_num(values, nan=-np.inf).max(axis=2)
    return viridis(np.maximum(brightest, range_[0]), range_)


def _hex(colour: Any) -> str:
    return "#" + "".join(f"{int(one):02x}" for one in colour)
