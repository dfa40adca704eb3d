# SPDX-License-Identifier: Apache-2.0
"""The drawing as PNG, painted into an array and packed with zlib alone."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from voxgrad.errors import Faults
from voxgrad.formats.picture import font
from voxgrad.formats.picture.embed import PNG_SIGNATURE, png_text
from voxgrad.formats.picture.layout import ADVANCE, HEAD, PAD, ROW, Box, Drawing, Line, PinMark, Point, lay_out
from voxgrad.formats.picture.palette import THEMES, Palette
from voxgrad.graph.page import Page

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

MAX_PIXELS = 100_000_000


def draw_png(page: Page, theme: str = "light", scale: int = 2, embed: bool = True) -> bytes:
    """The page as a PNG file; `scale` pixels per unit of the drawing, fewer where the picture would be huge."""
    drawing = lay_out(page)
    while scale > 1 and drawing.width * drawing.height * scale**2 > MAX_PIXELS:
        scale -= 1
    if drawing.width * drawing.height * scale**2 > MAX_PIXELS:
        faults = Faults("draw")
        got = f"{drawing.width:g} x {drawing.height:g}"
        faults.add("VG020", "page", wanted=f"fit into {MAX_PIXELS:,} pixels", got=got, remedy="Draw it as SVG.")
        raise faults.error()
    painter = _Painter(drawing, THEMES[theme], scale)
    painter.paint(drawing)
    chunks = [_chunk(b"iTXt", png_text(page))] if embed else []
    return _png(painter.pixels, chunks)


def _png(pixels: Pixels, chunks: list[bytes]) -> bytes:
    height, width, _ = pixels.shape
    # Every row is led by the number of its filter; 0 is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
    return b"".join([PNG_SIGNATURE, head, *chunks, body, _chunk(b"IEND", b"")])


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


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
        for line in drawing.lines:
            self.line(line)
        for box in drawing.boxes:
            self.box(box)
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

    def line(self, line: Line) -> None:
        """A curve, as many small squares."""
        points = np.array(line.points)
        length = float(np.abs(np.diff(points, axis=0)).sum())
        count = max(2, int(length * self.scale))
        t = np.linspace(0, 1, count)[:, None]
        a, b, c, d = points
        curve = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
        if line.dashed:
            along = np.linspace(0, length, count)
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
