# SPDX-License-Identifier: Apache-2.0
"""Displays of many numbers: curves over cycles, and how often values occur."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from voxgrad.formats.picture.marks import LETTERS, WIDE, Mark, Point, cut, line, outline, rect, text
from voxgrad.formats.picture.scales import Range, as_numbers, ends, short
from voxgrad.formats.picture.windows import NOTHING, PAD, Box, first_value, panel
from voxgrad.graph.displays import Display, Shown
from voxgrad.graph.readings import Curve, Readings

Named = list[tuple[str, Curve]]


def draw_trend(display: Display, readings: Readings) -> list[Mark]:
    """Curves over cycles."""
    marks, top = panel(display)
    curves = _curves(display, readings)
    width, height = display.size
    legend = min(width / 3, 12 + max((len(name) for name, _ in curves), default=0) * LETTERS * WIDE) if curves else 0.0
    log = bool(display.value("log"))
    values = _range(display, curves, log)
    left = PAD + 4 + max(len(short(one)) for one in values) * LETTERS * WIDE
    box = (left, top + 4, width - left - PAD - legend, height - top - 24)
    if box[2] < 20 or box[3] < 12:
        return marks
    marks.append(outline(*box))
    if not curves:
        return [*marks, text(box[0] + box[2] / 2, box[1] + box[3] / 2, NOTHING, "muted", anchor="middle")]
    cycles = [cycle for _, curve in curves for cycle, _ in curve]
    span = min(cycles), max(max(cycles), min(cycles) + 1)
    place = _placing(box, values, span, log)
    for at, (name, curve) in enumerate(curves):
        points = [place(*one) for one in _thinned(curve, box[2]) if math.isfinite(one[1]) and (not log or one[1] > 0)]
        style = f"curve{at % 6}"
        marks += [line(points, style, 1.6)] if len(points) > 1 else [Mark("circle", (one,), style, 2) for one in points]
        x, y = box[0] + box[2] + 6, box[1] + 10 + 14 * at
        if y < box[1] + box[3]:
            marks += [rect(x, y - 8, 6, 8, style), text(x + 9, y, cut(name, legend - 8))]
    return [*marks, *_axes(box, values, span)]


def _range(display: Display, curves: Named, log: bool) -> Range:
    numbers = np.array([number for _, curve in curves for _, number in curve if not log or number > 0])
    low, high = ends(numbers, display.value("low"), display.value("high"))
    if not log or low > 0:
        return low, high
    # Zero has no place on a logarithmic scale.
    return (high / 1e6, high) if high > 0 else (0.1, 1.0)


def _placing(box: Box, values: Range, span: tuple[int, int], log: bool) -> Callable[[int, float], Point]:
    """Where a number of a cycle lies in a box."""
    (low, high), (first, last) = values, span

    def place(cycle: int, number: float) -> Point:
        part = math.log(number / low) / math.log(high / low) if log else (number - low) / (high - low)
        return (
            box[0] + (cycle - first) / (last - first) * box[2],
            box[1] + (1 - min(1.0, max(0.0, part))) * box[3],
        )

    return place


def _axes(box: Box, values: Range, cycles: tuple[int, int]) -> list[Mark]:
    x, y, width, height = box
    return [
        text(x - 4, y + 9, short(values[1]), "muted", anchor="end"),
        text(x - 4, y + height, short(values[0]), "muted", anchor="end"),
        text(x, y + height + 13, str(cycles[0]), "muted"),
        text(x + width, y + height + 13, str(cycles[1]), "muted", anchor="end"),
    ]


def _curves(display: Display, readings: Readings) -> Named:
    """The curves of a trend with their names, cut to the cycles that are wanted."""
    found = []
    for one in display.of:
        for index, curve in readings.curves(one).items():
            found.append((one.label + index if one.label else _curve_name(one) + index, curve))
    span = int(display.value("span"))
    newest = max((curve[-1][0] for _, curve in found if curve), default=0)
    if span:
        found = [(name, [point for point in curve if point[0] > newest - span]) for name, curve in found]
    return [(name, curve) for name, curve in found if curve]


def _curve_name(shown: Shown) -> str:
    return shown.output.block.name + "".join(f"[{one}]" for one in shown.at)


def _thinned(curve: Curve, width: float) -> Curve:
    """No more points than a line can show."""
    step = max(1, math.ceil(len(curve) / max(1, 2 * width)))
    return curve[::step] if step == 1 or (len(curve) - 1) % step == 0 else [*curve[::step], curve[-1]]


def draw_histogram(display: Display, readings: Readings) -> list[Mark]:
    """How often values occur."""
    marks, top = panel(display)
    width, height = display.size
    value = first_value(display, readings)
    numbers = None if value is None else as_numbers(value)
    finite = np.zeros(0) if numbers is None else numbers[np.isfinite(numbers)]
    box = (PAD, top + 2, width - 2 * PAD, height - top - 20)
    if finite.size == 0 or box[3] < 4:
        return [*marks, outline(*box), text(width / 2, height / 2, NOTHING, "muted", anchor="middle")]
    low, high = ends(finite, None, None)
    counts, _ = np.histogram(finite, int(display.value("bins")), (low, high))
    bar = box[2] / len(counts)
    tall = counts / max(1, int(counts.max())) * box[3]
    marks += [
        rect(box[0] + at * bar, box[1] + box[3] - one, max(0.5, bar - 0.5), float(one), "curve0")
        for at, one in enumerate(tall)
        if one > 0
    ]
    y = height - 6
    return [*marks, text(PAD, y, short(low), "muted"), text(width - PAD, y, short(high), "muted", anchor="end")]
