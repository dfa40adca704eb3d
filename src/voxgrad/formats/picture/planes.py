# SPDX-License-Identifier: Apache-2.0
"""Displays of planes of numbers: images, slices, heat maps with lines of equal height."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.formats.picture.marks import Mark, line, text
from voxgrad.formats.picture.scales import Range, as_numbers, coarse, ends, plane, short, viridis, volume_of
from voxgrad.formats.picture.windows import PAD, first_value, fitted, inside, panel
from voxgrad.graph.displays import Display
from voxgrad.graph.readings import Readings
from voxgrad.graph.values import Array

_RAMP = 66.0
"""Room for the scale of colours beside a heat map."""


def draw_image(display: Display, readings: Readings) -> list[Mark]:
    """A picture from values."""
    marks, top = panel(display)
    value = first_value(display, readings)
    numbers = None if value is None else as_numbers(value)
    if value is None or numbers is None or numbers.size == 0:
        return marks
    pixels = _colours(display, value.dtype, numbers)
    return marks if pixels is None else [*marks, fitted(pixels, inside(display, top))]


def _colours(display: Display, dtype: Any, numbers: Array) -> Any:
    """Grey or colour, as the last axis says; bytes as they are, other numbers between the ends."""
    while numbers.ndim > 3:
        numbers = numbers[0]
    rows = int(display.value("rows"))
    colour = not rows and numbers.ndim == 3 and numbers.shape[-1] in (3, 4)
    grid = numbers[..., :3] if colour else plane(numbers, rows)
    if grid is None:
        return None
    whole = dtype == np.uint8 and display.value("low") is None and display.value("high") is None
    low, high = (0.0, 255.0) if whole else ends(grid, display.value("low"), display.value("high"))
    levels = np.clip(np.nan_to_num((coarse(grid) - low) / (high - low)), 0, 1) * 255
    bytes_ = np.round(levels).astype(np.uint8)
    return bytes_ if colour else np.repeat(bytes_[..., None], 3, axis=2)


def draw_slice(display: Display, readings: Readings) -> list[Mark]:
    """A plane of a volume."""
    marks, top = panel(display)
    value = first_value(display, readings)
    volume = None if value is None else volume_of(value)
    if volume is None:
        return marks
    axis = ("depth", "height", "width").index(str(display.value("axis")))
    size = volume.shape[axis]
    place = int(display.value("place"))
    at = size // 2 if place < 0 else min(place, size - 1)
    grid = np.take(volume, at, axis=axis)
    pixels = viridis(coarse(grid), ends(grid, display.value("low"), display.value("high")))
    where = f"{display.value('axis')} {at}/{size - 1}"
    said = text(display.size[0] - PAD, 13, where, "muted", anchor="end")
    return [*marks, *([said] if top > PAD else []), fitted(pixels, inside(display, top))]


def draw_heat(display: Display, readings: Readings) -> list[Mark]:
    """Values as colours."""
    marks, top = panel(display)
    value = first_value(display, readings)
    grid = None if value is None else plane(value, int(display.value("rows")))
    if grid is None:
        return marks
    range_ = ends(grid, display.value("low"), display.value("high"))
    grid = coarse(grid)
    x, y, width, height = inside(display, top)
    scaled = bool(display.value("scale")) and width > 120 and height > 60
    box = (x, y, width - (_RAMP if scaled else 0), height)
    image = fitted(viridis(grid, range_), box)
    marks.append(image)
    marks += _contours(coarse(grid, 64), range_, int(display.value("lines")), image)
    if scaled:
        ramp = viridis(np.linspace(range_[1], range_[0], 64)[:, None], range_)
        left = x + width - _RAMP + 4
        marks.append(Mark("image", ((left, y + 4), (left + 8, y + height - 4)), "none", pixels=ramp))
        marks.append(text(left + 11, y + 12, short(range_[1]), "muted"))
        marks.append(text(left + 11, y + height - 5, short(range_[0]), "muted"))
    return marks


def _contours(grid: Array, range_: Range, count: int, image: Mark) -> list[Mark]:
    """Lines of equal height over an image: where each cell between four values is crossed."""
    (left, top), (right, bottom) = image.points
    rows, columns = grid.shape
    if count == 0 or rows < 2 or columns < 2:
        return []
    marks = []
    for level in np.linspace(*range_, count + 2)[1:-1]:
        for y0, x0, y1, x1 in _crossings(grid, float(level)):
            ends_ = [((x + 0.5) / columns * (right - left) + left, (y + 0.5) / rows * (bottom - top) + top)
                     for y, x in ((y0, x0), (y1, x1))]  # fmt: skip
            marks.append(line(ends_, "panel"))
    return marks


def _crossings(grid: Array, level: float) -> list[tuple[float, float, float, float]]:
    found = []
    with np.errstate(invalid="ignore"):
        above = grid > level
    mixed = above[:-1, :-1].astype(int) + above[1:, :-1] + above[:-1, 1:] + above[1:, 1:]
    for row, column in np.argwhere((mixed > 0) & (mixed < 4)):
        corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        cuts = []
        for (r0, c0), (r1, c1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if above[r0, c0] != above[r1, c1]:
                part = (level - grid[r0, c0]) / (grid[r1, c1] - grid[r0, c0])
                cuts.append((r0 + part * (r1 - r0), c0 + part * (c1 - c0)))
        found += [(*cuts[at], *cuts[at + 1]) for at in range(0, len(cuts) - 1, 2)]
    return found
