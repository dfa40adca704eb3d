# SPDX-License-Identifier: Apache-2.0
"""What all displays have in common: a window with a title, and the values that it is bound to."""

from __future__ import annotations

from typing import Any

from voxgrad.formats.picture.marks import Mark, cut, outline, rect, text
from voxgrad.formats.picture.scales import as_numbers, written
from voxgrad.graph.displays import Display
from voxgrad.graph.readings import Readings
from voxgrad.graph.values import Array

Box = tuple[float, float, float, float]

PAD = 6.0
HEAD = 18.0
NOTHING = "—"


def panel(display: Display) -> tuple[list[Mark], float]:
    """The window of a display with its title, and where the rest begins."""
    width, height = display.size
    marks = [rect(0, 0, width, height, "panel"), outline(0, 0, width, height)]
    title = str(display.value("title") or "")
    if not title and len(display.of) == 1:
        title = display.of[0].label or display.of[0].output.block.name
    if not title.strip() or height < 2 * HEAD:
        return marks, PAD
    return [*marks, text(PAD, 13, cut(title, width - 2 * PAD), "muted")], HEAD


def first_value(display: Display, readings: Readings) -> Array | None:
    """What the first output that it shows has given."""
    return readings.value(display.of[0]) if display.of else None


def first_number(display: Display, readings: Readings) -> float | None:
    """The first number of the first output."""
    value = first_value(display, readings)
    numbers = None if value is None else as_numbers(value)
    return float(numbers.reshape(-1)[0]) if numbers is not None and numbers.size else None


def brief(value: Array | None, format_: str) -> str:
    """A value in one line: itself, or its type and shape."""
    if value is None:
        return NOTHING
    if value.size == 1:
        return written(value.reshape(-1)[0], format_)
    return f"{value.dtype.name} [{','.join(map(str, value.shape))}]"


def inside(display: Display, top: float) -> Box:
    """The room below the title."""
    width, height = display.size
    return 2.0, top, max(1.0, width - 4), max(1.0, height - top - 2)


def fitted(pixels: Any, box: Box) -> Mark:
    """An image in the middle of a box, as large as fits."""
    x, y, width, height = box
    scale = min(width / pixels.shape[1], height / pixels.shape[0])
    w, h = pixels.shape[1] * scale, pixels.shape[0] * scale
    left, top = x + (width - w) / 2, y + (height - h) / 2
    return Mark("image", ((left, top), (left + w, top + h)), "none", pixels=pixels)
