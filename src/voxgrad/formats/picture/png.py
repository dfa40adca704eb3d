# SPDX-License-Identifier: Apache-2.0
"""The drawing as PNG, painted into an array and packed with zlib alone."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from voxgrad.errors import Faults
from voxgrad.formats.picture import font
from voxgrad.formats.picture.embed import PNG_SIGNATURE, png_chunk, png_text
from voxgrad.formats.picture.layout import ADVANCE, HEAD, PAD, ROW, Box, Drawing, Line, PinMark, Point, lay_out
from voxgrad.formats.picture.marks import LETTERS, WIDE, Mark
from voxgrad.formats.picture.palette import THEMES, Palette, style_colour
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

MAX_PIXELS = 100_000_000
_PLAIN = str.maketrans({"…": "~", "—": "-"})
"""Signs of displays that the font does not have."""


def draw_png(
    page: Page, theme: str = "light", scale: int = 2, embed: bool = True, readings: Readings | None = None
) -> bytes:
    """The page as a PNG file; `scale` pixels per unit of the drawing, fewer where the picture would be huge."""
    drawing = lay_out(page, readings)
    while scale > 1 and drawing.width * drawing.height * scale**2 > MAX_PIXELS:
        scale -= 1
    if drawing.width * drawing.height * scale**2 > MAX_PIXELS:
        faults = Faults("draw")
        got = f"{drawing.width:g} x {drawing.height:g}"
        faults.add("VG020", "page", wanted=f"fit into {MAX_PIXELS:,} pixels", got=got, remedy="Draw it as SVG.")
        raise faults.error()
    painter = _Painter(drawing, THEMES[theme], scale)
    painter.paint(drawing)
    chunks = [png_chunk(b"iTXt", png_text(page))] if embed else []
    return _png(painter.pixels, chunks)


def _png(pixels: Pixels, chunks: list[bytes]) -> bytes:
    height, width, _ = pixels.shape
    # Every row is led by the number of its filter; 0 is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = png_chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
    return b"".join([PNG_SIGNATURE, head, *chunks, body, png_chunk(b"IEND", b"")])


def _rgb(colour: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.uint8)


class _Painter:
    """Paints shapes in the units of the drawing."""

    def __init__(self, drawing: Drawing, palette: Palette, scale: int):
        self.palette = palette
        self.scale = scale
        height, width = int(drawing.height * scale), int(drawing.width * scale)
        self.pixels: Pixels = np.empty((max(height, 1), max(width, 1), 3), dtype=np.uint8)
        self.pixels[:] = _rgb(palette.page)

    def paint(self, drawing: Drawing) -> None:
        """Paint everything, wires first."""
        self.text((PAD, 12), drawing.title, self.palette.text)
        for mark in drawing.under:
            self.mark(mark)
        for line in drawing.lines:
            self.line(line)
        for box in drawing.boxes:
            self.box(box)
        for mark in drawing.over:
            self.mark(mark)
        for (x, y), text in drawing.notes:
            for index, row in enumerate(text.splitlines()):
                self.text((x, y - 8 + ROW * index), row, self.palette.note)

    def rect(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle; what lies outside of the picture is left out."""
        s = self.scale
        top, left = max(0, round(y * s)), max(0, round(x * s))
        self.pixels[top : max(0, round((y + height) * s)), left : max(0, round((x + width) * s))] = _rgb(colour)

    def text(self, at: Point, text: str, colour: str, right: bool = False) -> None:
        """A line of text; `at` is its top left corner, or its top right one."""
        s = self.scale
        x = at[0] - (len(text) * ADVANCE if right else 0)
        for index, char in enumerate(text):
            shape = np.kron(font.glyph(char), np.ones((s, s), dtype=bool))
            top, left = round(at[1] * s), round((x + index * ADVANCE) * s)
            target = self.pixels[max(top, 0) : top + shape.shape[0], max(left, 0) : left + shape.shape[1]]
            target[shape[: target.shape[0], : target.shape[1]]] = _rgb(colour)

    def mark(self, mark: Mark) -> None:
        """A part of a display."""
        colour = style_colour(self.palette, mark.style)
        points = np.array(mark.points)
        if mark.form == "rect":
            (x, y), (right, bottom) = mark.points
            self.rect(x, y, right - x, bottom - y, colour)
        elif mark.form == "line":
            for start, end in pairwise(points):
                self._stroke(start, end, mark.size, colour)
        elif mark.form == "area":
            self._area(points, colour)
        elif mark.form in ("circle", "ring"):
            turn = np.linspace(0, 2 * np.pi, 33)
            rim = points[0] + mark.size * np.stack([np.cos(turn), np.sin(turn)], axis=1)
            if mark.form == "circle":
                self._area(rim, colour)
            for start, end in pairwise(rim):
                self._stroke(start, end, 1.0, colour)
        elif mark.form == "image":
            self._image(mark)
        else:
            self._letters(mark, colour)

    def _stroke(self, start: Any, end: Any, width: float, colour: str) -> None:
        """A straight line, as many small squares."""
        count = max(2, int(np.abs(end - start).max() * self.scale) + 1)
        where = np.round((start + np.linspace(0, 1, count)[:, None] * (end - start)) * self.scale).astype(int)
        thick = max(1, round(width * self.scale))
        for dx in range(thick):
            for dy in range(thick):
                self._dots(where[:, 0] + dx - thick // 2, where[:, 1] + dy - thick // 2, colour)

    def _area(self, points: Any, colour: str) -> None:
        """A polygon: the pixels that an odd number of its edges lies right of."""
        edges = points * self.scale
        left, top = np.floor(edges.min(axis=0)).astype(int)
        right, bottom = np.ceil(edges.max(axis=0)).astype(int)
        y, x = np.mgrid[top : bottom + 1, left : right + 1]
        inside = np.zeros(x.shape, bool)
        for (x0, y0), (x1, y1) in zip(edges, np.roll(edges, -1, axis=0), strict=True):
            if y0 != y1:
                crosses = (y0 > y) != (y1 > y)
                inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        self._dots(x[inside], y[inside], colour)

    def _image(self, mark: Mark) -> None:
        """Pixels, each as large as the place allows."""
        assert mark.pixels is not None
        (left, top), (right, bottom) = (np.round(np.array(one) * self.scale).astype(int) for one in mark.points)
        height, width = self.pixels.shape[:2]
        y, x = np.mgrid[max(top, 0) : min(bottom, height), max(left, 0) : min(right, width)]
        rows, columns = mark.pixels.shape[:2]
        row, column = (y - top) * rows // max(1, bottom - top), (x - left) * columns // max(1, right - left)
        self.pixels[y, x] = mark.pixels[row, column]

    def _letters(self, mark: Mark, colour: str) -> None:
        """A text in letters of its size, to the nearest pixel."""
        s = max(1, round(self.scale * mark.size / LETTERS))
        advance = mark.size * WIDE * self.scale
        back = {"end": 1.0, "middle": 0.5}.get(mark.anchor, 0.0) * advance * len(mark.text)
        x, y = mark.points[0][0] * self.scale - back, mark.points[0][1] * self.scale - font.HEIGHT * s
        for index, char in enumerate(mark.text.translate(_PLAIN)):
            rows, columns = np.nonzero(np.kron(font.glyph(char), np.ones((s, s), dtype=bool)))
            self._dots(columns + round(x + index * advance), rows + round(y), colour)

    def line(self, line: Line) -> None:
        """Lines, as many small squares."""
        points = np.array(line.points)
        ends = np.concatenate([[0.0], np.abs(np.diff(points, axis=0)).sum(axis=1).cumsum()])
        along = np.linspace(0, ends[-1], max(2, int(ends[-1] * self.scale)))
        curve = np.stack([np.interp(along, ends, points[:, axis]) for axis in (0, 1)], axis=1)
        if line.dashed:
            curve = curve[along % 10 < (3 if line.control else 6)]
        where = np.round(curve * self.scale).astype(int)
        for dx in range(self.scale):
            for dy in range(self.scale):
                self._dots(where[:, 0] + dx, where[:, 1] + dy, self.palette.types[line.type])

    def _dots(self, x: Any, y: Any, colour: str) -> None:
        inside = (x >= 0) & (y >= 0) & (x < self.pixels.shape[1]) & (y < self.pixels.shape[0])
        self.pixels[y[inside], x[inside]] = _rgb(colour)

    def box(self, box: Box) -> None:
        """A block with its pins and texts."""
        palette = self.palette
        border = 2.0 if box.wrong else 1.0
        self.rect(box.x, box.y, box.width, box.height, palette.wrong if box.wrong else palette.frame)
        self.rect(box.x + border, box.y + border, box.width - 2 * border, box.height - 2 * border, palette.block)
        self.rect(box.x + border, box.y + border, box.width - 2 * border, HEAD - 4, palette.head)
        self.text((box.x + PAD, box.y + 6), box.title, palette.text)
        self.text((box.x + PAD, box.y + 19), box.subtitle, palette.muted)
        for pin in box.pins:
            self.pin(pin)
        rows = max([sum(not pin.right for pin in box.pins), sum(pin.right for pin in box.pins)])
        for index, line in enumerate(box.lines):
            self.text((box.x + PAD, box.y + HEAD + ROW * (rows + index) + 5), line, palette.muted)

    def pin(self, pin: PinMark) -> None:
        """The mark of a pin, in the form of its type, and its label."""
        x, y = pin.at
        s = self.scale
        radius = 4 if pin.form == "square" else 5
        dy, dx = np.mgrid[-radius * s : radius * s + 1, -radius * s : radius * s + 1] / s
        distance = {
            "square": np.maximum(np.abs(dx), np.abs(dy)) / 4,
            "diamond": (np.abs(dx) + np.abs(dy)) / 5,
        }.get(pin.form, np.hypot(dx, dy) / 4)
        inside = distance <= 1
        if pin.form == "ring":
            inside &= distance >= 0.5
        rows, columns = np.nonzero(inside)
        left, top = round(x * s) - radius * s, round(y * s) - radius * s
        self._dots(columns + left, rows + top, self.palette.types[pin.type])
        self.text((x - PAD if pin.right else x + PAD, y - 3.5), pin.label, self.palette.text, right=pin.right)
