# SPDX-License-Identifier: Apache-2.0
"""Displays of words and single numbers, and those that a person operates."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from voxgrad.formats.picture.marks import LETTERS, WIDE, Mark, Point, cut, line, outline, rect, text
from voxgrad.formats.picture.scales import short, written
from voxgrad.formats.picture.windows import NOTHING, PAD, brief, first_number, first_value, fitted, panel
from voxgrad.graph.block import Output
from voxgrad.graph.displays import Display
from voxgrad.graph.readings import Readings
from voxgrad.graph.values import Array
from voxgrad.kernels.arraywise import png as png_files

ROW = 16.0
_MOST_CELLS = 64
_MOST_PIXELS = 2**24


def draw_text(display: Display, readings: Readings) -> list[Mark]:
    """Lines of text."""
    size = float(display.value("points"))
    rows = str(display.value("text")).splitlines()
    heavy = "heavy" if display.value("bold") else "text"
    return [text(0, size * (1 + 1.2 * at), row, heavy, size) for at, row in enumerate(rows)]


def draw_frame(display: Display, readings: Readings) -> list[Mark]:
    """A rectangle with a title."""
    width, height = display.size
    marks = [outline(0, 0, width, height)]
    title = str(display.value("title"))
    return [*marks, text(PAD, 15, cut(title, width - 2 * PAD, 12), "muted", 12)] if title else marks


def draw_picture(display: Display, readings: Readings) -> list[Mark]:
    """A picture that the page holds."""
    width, height = display.size
    pixels = _pixels(str(display.value("png")))
    if pixels is None:
        return [*panel(display)[0], text(width / 2, height / 2, NOTHING, "muted", anchor="middle")]
    return [fitted(pixels, (0, 0, width, height))]


def _pixels(encoded: str) -> Any:
    """The pixels of a PNG file in base64; None for one that is damaged or huge."""
    try:
        found = png_files.read_header(base64.b64decode(encoded, validate=True))
        small = found.width * found.height <= _MOST_PIXELS
        return np.asarray(png_files.read_pixels(found, 3, False), dtype=np.uint8) if small else None
    except (ValueError, binascii.Error):
        return None


def draw_value(display: Display, readings: Readings) -> list[Mark]:
    """One value, as large as fits."""
    marks, top = panel(display)
    width, height = display.size
    value = first_value(display, readings)
    said = NOTHING if value is None else brief(value, str(display.value("format")))
    unit = str(display.value("unit"))
    whole = f"{said} {unit}".strip()
    size = max(8.0, min(height - top - PAD, (width - 2 * PAD) / (WIDE * max(1, len(whole))), 28.0))
    middle = top + (height - top) / 2 + size / 3
    return [*marks, text(width / 2, middle, cut(whole, width - PAD, size), "text", size, "middle")]


def draw_table(display: Display, readings: Readings) -> list[Mark]:
    """Values in rows and columns; what does not fit is left out."""
    marks, top = panel(display)
    width, height = display.size
    format_ = str(display.value("format"))
    if len(display.of) > 1:
        columns = [[one.label or one.path, *_cells(readings.value(one), format_)] for one in display.of]
        rows = [[column[at] if at < len(column) else "" for column in columns] for at in range(max(map(len, columns)))]
    else:
        rows = _rows(first_value(display, readings), format_)
    wide = max((len(cell) for row in rows for cell in row), default=1) * LETTERS * WIDE + 10
    fits = max(1, int((width - PAD) / wide)), max(1, int((height - top - 2) / ROW))
    for at, row in enumerate(rows[: fits[1]]):
        last = at == fits[1] - 1 and len(rows) > fits[1]
        cells = ["…" for _ in row] if last else row
        cells = [*cells[: fits[0] - 1], "…"] if len(cells) > fits[0] else cells
        y = top + ROW * (at + 0.8)
        style = "muted" if len(display.of) > 1 and at == 0 else "text"
        marks += [text(PAD + wide * at_ - 10, y, cell, style, anchor="end") for at_, cell in enumerate(cells, 1)]
    return marks


def _cells(value: Array | None, format_: str) -> list[str]:
    return [NOTHING] if value is None else [written(one, format_) for one in value.reshape(-1)[:_MOST_CELLS]]


def _rows(value: Array | None, format_: str) -> list[list[str]]:
    if value is None or value.size == 0:
        return [[NOTHING]]
    grid = value.reshape(-1, 1) if value.ndim < 2 else value.reshape(-1, value.shape[-1])
    return [[written(cell, format_) for cell in row[:_MOST_CELLS]] for row in grid[:_MOST_CELLS]]


def draw_gauge(display: Display, readings: Readings) -> list[Mark]:
    """A number between two ends."""
    number = first_number(display, readings)
    low, high = float(display.value("low")), float(display.value("high"))
    place = 0.0 if number is None or not high > low else min(1.0, max(0.0, (number - low) / (high - low)))
    said = NOTHING if number is None else f"{written(number, str(display.value('format')))} {display.value('unit')}"
    draw = _dial if display.value("form") == "dial" else _bar
    return draw(display, place if number is not None and math.isfinite(number) else None, said.strip())


def _bar(display: Display, place: float | None, said: str) -> list[Mark]:
    marks, top = panel(display)
    width, height = display.size
    room = width - 2 * PAD
    tall = max(6.0, min(18.0, height - top - 2 * ROW))
    marks += [rect(PAD, top + 2, room, tall, "track")]
    if place is not None:
        marks.append(rect(PAD, top + 2, room * place, tall, "curve0"))
    y = top + tall + 15
    low, high = short(float(display.value("low"))), short(float(display.value("high")))
    ends_ = [text(PAD, y, low, "muted"), text(width - PAD, y, high, "muted", anchor="end")]
    return [*marks, *ends_, text(width / 2, y, cut(said, room), anchor="middle")]


def _dial(display: Display, place: float | None, said: str) -> list[Mark]:
    marks, top = panel(display)
    width, height = display.size
    radius = max(8.0, min((width - 2 * PAD) / 2, height - top - 22))
    centre = (width / 2, top + radius + 2)

    def at(part: float, reach: float) -> Point:
        angle = math.pi * (1 - part)
        return centre[0] + reach * radius * math.cos(angle), centre[1] - reach * radius * math.sin(angle)

    def arc(until: float) -> list[Point]:
        return [at(until * step / 24, 0.9) for step in range(25)]

    marks.append(line(arc(1.0), "track", 8))
    if place is not None:
        marks += [line(arc(place), "curve0", 8), line([centre, at(place, 0.72)], "text", 2)]
    y = centre[1] + 14
    low, high = short(float(display.value("low"))), short(float(display.value("high")))
    ends_ = [text(at(end, 0.9)[0], y, said_, "muted", anchor="middle") for end, said_ in ((0, low), (1, high))]
    return [*marks, *ends_, text(width / 2, y, cut(said, radius * 1.4), anchor="middle")]


def draw_lamp(display: Display, readings: Readings) -> list[Mark]:
    """Lit or not."""
    width, height = display.size
    number = first_number(display, readings)
    lit = number is not None and number > float(display.value("above"))
    radius = min(width, height) / 2 - PAD
    marks = [rect(0, 0, width, height, "panel"), outline(0, 0, width, height)]
    marks.append(Mark("circle", ((PAD + radius, height / 2),), "lit" if lit else "track", max(3.0, radius)))
    marks.append(Mark("ring", ((PAD + radius, height / 2),), "frame", max(3.0, radius)))
    title = str(display.value("title")) or (display.of[0].output.block.name if display.of else "")
    return [*marks, text(3 * PAD + 2 * radius, height / 2 + 4, cut(title, width - 4 * PAD - 2 * radius))]


def draw_edit(display: Display, readings: Readings) -> list[Mark]:
    """A box with the value that it would change."""
    marks, top = panel(display)
    width, height = display.size
    said = entry_text(display)
    box = (PAD, top, width - 2 * PAD, max(8.0, min(22.0, height - top - 4)))
    return [*marks, rect(*box, "track"), text(2 * PAD, top + 15, cut(said, width - 4 * PAD))]


def entry_text(display: Display) -> str:
    """The value that an edit box would change, in few letters."""
    value = _entry(display)
    return NOTHING if value is None else " ".join(_cells(value, "%.6g")[:8])


def _entry(display: Display) -> Array | None:
    """The value that a display writes; None where it writes none, or what is fed."""
    if not display.of:
        return None
    block, entry = display.of[0].output.block, str(display.value("entry"))
    typed = [one.value for one in block.sources.get(entry, ()) if not isinstance(one, Output)]
    value = block.attrs.get(entry, typed[0] if typed else None)
    return None if value is None else np.asarray(value)


def draw_slider(display: Display, readings: Readings) -> list[Mark]:
    """A knob where the number is that it sets; of a placeholder, where the number is that was fed."""
    marks, top = panel(display)
    width, height = display.size
    low, high = float(display.value("low")), float(display.value("high"))
    number = _one_number(_entry(display), first_number(display, readings))
    said = NOTHING if number is None else f"{short(number)} {display.value('unit')}"
    middle = top + max(8.0, (height - top - ROW) / 2)
    marks += [line([(PAD, middle), (width - PAD, middle)], "track", 5)]
    if number is not None and high > low and math.isfinite(number):
        knob = PAD + (width - 2 * PAD) * min(1.0, max(0.0, (number - low) / (high - low)))
        marks += [line([(PAD, middle), (knob, middle)], "curve0", 5), Mark("circle", ((knob, middle),), "text", 7)]
    y = height - 6
    ends = [text(PAD, y, short(low), "muted"), text(width - PAD, y, short(high), "muted", anchor="end")]
    return [*marks, *ends, text(width / 2, y, cut(said.strip(), width - 4 * PAD), anchor="middle")]


def _one_number(entry: Array | None, fed: float | None) -> float | None:
    """The number that all elements are; None where they differ, or are none."""
    if entry is None:
        return fed
    flat = entry.reshape(-1)
    if flat.dtype.kind not in "biuf" or not flat.size or (flat != flat[0]).any():
        return None
    return float(flat[0])


def draw_button(display: Display, readings: Readings) -> list[Mark]:
    """A button."""
    width, height = display.size
    marks = [rect(0, 0, width, height, "track"), outline(0, 0, width, height)]
    return [*marks, text(width / 2, height / 2 + 4, cut(str(display.value("title")), width - PAD), anchor="middle")]
