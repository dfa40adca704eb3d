# SPDX-License-Identifier: Apache-2.0
"""Displays as marks, in their own coordinates from their upper left corner: one function per kind.

Where nothing was computed yet a display shows its frame and its title.
"""

from __future__ import annotations

from collections.abc import Callable

from voxgrad.formats.picture import charts, plain, planes, spatial
from voxgrad.formats.picture.marks import Mark
from voxgrad.formats.picture.windows import brief
from voxgrad.graph.displays import Display
from voxgrad.graph.readings import Readings


def draw_display(display: Display, readings: Readings) -> list[Mark]:
    """The marks of a display, the lowest first."""
    return _DRAW[display.kind.name](display, readings)


def spoken(display: Display, readings: Readings) -> str:
    """What a display shows, in one line of text."""
    if display.kind.name == "text":
        return str(display.value("text"))
    format_ = str(display.value("format") or "%.6g")
    said = [f"{one.label or one.path} = {brief(readings.value(one), format_)}" for one in display.of]
    return ", ".join(said[:8])


_DRAW: dict[str, Callable[[Display, Readings], list[Mark]]] = {
    "text": plain.draw_text,
    "frame": plain.draw_frame,
    "picture": plain.draw_picture,
    "value": plain.draw_value,
    "table": plain.draw_table,
    "gauge": plain.draw_gauge,
    "lamp": plain.draw_lamp,
    "edit": plain.draw_edit,
    "slider": plain.draw_slider,
    "button": plain.draw_button,
    "trend": charts.draw_trend,
    "histogram": charts.draw_histogram,
    "image": planes.draw_image,
    "slice": planes.draw_slice,
    "heat": planes.draw_heat,
    "surface": spatial.draw_surface,
    "scatter": spatial.draw_scatter,
    "volume": spatial.draw_volume,
}
