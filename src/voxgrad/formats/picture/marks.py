# SPDX-License-Identifier: Apache-2.0
"""What displays are drawn with: a few plain forms that SVG, PNG and the studio's canvas all can show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Point = tuple[float, float]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]

LETTERS = 11.0
WIDE = 0.6
"""Width of a monospaced letter, of its size."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle (two corners), line, filled area, circle, text or image (two corners), in the units of the drawing.

    `style` is a colour by its meaning (`STYLES`) or as #rrggbb; `size` the size of letters, the width of a line or a
    radius.
    """

    form: str
    points: tuple[Point, ...]
    style: str
    size: float = 1.0
    text: str = ""
    anchor: str = "start"
    pixels: Pixels | None = None

    def moved(self, x: float, y: float, scale: float = 1.0) -> Mark:
        """The mark at another place."""
        return replace(self, points=tuple((a * scale + x, b * scale + y) for a, b in self.points))


STYLES = (
    "text", "heavy", "muted", "frame", "panel", "track", "lit", "wrong", "curve0", "curve1", "curve2", "curve3",
    "curve4", "curve5",
)  # fmt: skip


def rect(x: float, y: float, width: float, height: float, style: str) -> Mark:
    """A filled rectangle."""
    return Mark("rect", ((x, y), (x + width, y + height)), style)


def outline(x: float, y: float, width: float, height: float, style: str = "frame") -> Mark:
    """The border of a rectangle."""
    corners = ((x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y))
    return Mark("line", corners, style)


def line(points: list[Point], style: str, width: float = 1.0) -> Mark:
    """A line through points."""
    return Mark("line", tuple(points), style, width)


def text(x: float, y: float, said: str, style: str = "text", size: float = LETTERS, anchor: str = "start") -> Mark:
    """A line of text; y is where its letters stand."""
    plain = "".join(char if char.isprintable() else " " for char in said)
    return Mark("text", ((x, y),), style, size, plain, anchor)


def cut(said: str, width: float, size: float = LETTERS) -> str:
    """A text that fits."""
    most = max(1, int(width / (size * WIDE)))
    return said if len(said) <= most else said[: max(0, most - 1)] + "…"
