# SPDX-License-Identifier: Apache-2.0
"""The drawing as SVG: plain shapes and texts, a style for each theme, no script."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from voxgrad.formats.picture.embed import svg_metadata
from voxgrad.formats.picture.layout import HEAD, PAD, ROW, Box, Drawing, Line, PinMark, lay_out
from voxgrad.formats.picture.marks import STYLES, Mark
from voxgrad.formats.picture.palette import DARK, LIGHT, THEMES, Palette, style_colour
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings
from voxgrad.kernels.arraywise import png as png_files

_CLASS = re.compile(r"\bv[gd]-\w+")
_FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:11px"


def draw_svg(page: Page, theme: str = "auto", embed: bool = True, readings: Readings | None = None) -> str:
    """The page as SVG text. The theme is "light", "dark", or "auto": whichever the viewer prefers."""
    return svg_of(lay_out(page, readings), theme, svg_metadata(page) if embed else "")


def svg_of(drawing: Drawing, theme: str = "auto", metadata: str = "") -> str:
    """A drawing as SVG text."""
    body = [
        f'<text class="vg-title" x="{PAD}" y="22">{escape(drawing.title)}</text>' if drawing.title else "",
        *map(_mark, drawing.under),
        *(_line(line) for line in drawing.lines),
        *(_box(box) for box in drawing.boxes),
        *map(_mark, drawing.over),
        *(_note(point, text) for point, text in drawing.notes),
    ]
    size = f'width="{drawing.width:g}" height="{drawing.height:g}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    label = _quoted(_summary(drawing))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="vg" {size} role="img" aria-label="{label}">',
        f"<title>{escape(drawing.title)}</title>",
        f"<style>{_style(theme, ''.join(body))}</style>",
        metadata,
        '<rect class="vg-page" width="100%" height="100%"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _summary(drawing: Drawing) -> str:
    return f"{drawing.title}: {len(drawing.boxes)} blocks, {len(drawing.lines)} wires"


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _style(theme: str, body: str) -> str:
    """The rules for what is drawn."""
    used = frozenset(_CLASS.findall(body)) | {"vg-page"}
    if theme != "auto":
        return _rules(THEMES[theme], used)
    return f"{_rules(LIGHT, used)}@media (prefers-color-scheme: dark){{{_rules(DARK, used)}}}"


def _rules(palette: Palette, used: frozenset[str]) -> str:
    rules = {
        ".vg text": f"{_FONT};fill:{palette.text}",
        ".vg .vg-title": "font-weight:600;font-size:14px",
        ".vg .vg-page": f"fill:{palette.page}",
        ".vg .vg-box": f"fill:{palette.block};stroke:{palette.frame}",
        ".vg .vg-head": f"fill:{palette.head}",
        ".vg .vg-name": "font-weight:600",
        ".vg .vg-muted": f"fill:{palette.muted}",
        ".vg .vg-note": f"fill:{palette.note}",
        ".vg .vg-wrong": f"stroke:{palette.wrong};stroke-width:2",
        ".vg .vg-wire": "fill:none;stroke-width:1.6",
        ".vg .vg-ring": f"fill:{palette.block};stroke-width:2",
    }
    rules |= {f".vg .vg-{name}": f"--vg:{colour}" for name, colour in palette.types.items()}
    rules |= {f".vg .vd-{style}": f"--vd:{style_colour(palette, style)}" for style in STYLES}
    rules |= {".vg .vd-fill": "fill:var(--vd)", ".vg .vd-line": "fill:none;stroke:var(--vd)"}
    rules[".vg .vd-heavy"] += ";font-weight:700"
    text = "".join(
        f"{selector}{{{body}}}" for selector, body in rules.items() if selector == ".vg text" or selector[5:] in used
    )
    return text + ".vg .vg-wire,.vg .vg-ring{stroke:var(--vg)}.vg .vg-pin{fill:var(--vg)}"


def _line(line: Line) -> str:
    dash = ' stroke-dasharray="2 4"' if line.control else ' stroke-dasharray="6 4"' if line.dashed else ""
    return f'<path class="vg-wire vg-{line.type}" d="{_rounded(line.points)}"{dash}/>'


_ROUND = 6.0


def _rounded(points: Sequence[tuple[float, float]]) -> str:
    """Lines with round corners, as the studio draws them."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        radius = min(_ROUND, math.dist(before, (x, y)) / 2, math.dist((x, y), after) / 2)
        (x0, y0), (x1, y1) = _towards((x, y), before, radius), _towards((x, y), after, radius)
        path.append(f"L{x0:.1f} {y0:.1f}Q{x:.1f} {y:.1f} {x1:.1f} {y1:.1f}")
    return "".join([*path, f"L{points[-1][0]:.1f} {points[-1][1]:.1f}"])


def _towards(start: tuple[float, float], end: tuple[float, float], length: float) -> tuple[float, float]:
    whole = math.dist(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * length / whole, start[1] + (end[1] - start[1]) * length / whole


def _box(box: Box) -> str:
    wrong = " vg-wrong" if box.wrong else ""
    x, y, width = box.x, box.y, box.width
    rows = max([sum(not pin.right for pin in box.pins), sum(pin.right for pin in box.pins)])
    parts = [
        "<g>",
        f'<rect class="vg-box{wrong}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{box.height:.1f}" rx="6"/>',
        f'<rect class="vg-head" x="{x + 1:.1f}" y="{y + 1:.1f}" width="{width - 2:.1f}" height="{HEAD - 4}" rx="5"/>',
        _text("vg-name", x + PAD, y + 13, box.title),
        _text("vg-muted", x + PAD, y + 26, box.subtitle),
        *(_pin(pin) for pin in box.pins),
        *(
            _text("vg-muted", x + PAD, y + HEAD + ROW * (rows + index) + 12, line)
            for index, line in enumerate(box.lines)
        ),
        "</g>",
    ]
    return "".join(parts)


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _pin(pin: PinMark) -> str:
    x, y = pin.at
    anchor = ' text-anchor="end"' if pin.right else ""
    text_x = x - PAD if pin.right else x + PAD
    text = f'<text x="{text_x:.1f}" y="{y + 4:.1f}"{anchor}>{escape(pin.label)}</text>'
    if pin.form == "square":
        mark = f'<rect class="vg-pin vg-{pin.type}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    elif pin.form == "diamond":
        points = f"{x - 5:.1f},{y:.1f} {x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f}"
        mark = f'<polygon class="vg-pin vg-{pin.type}" points="{points}"/>'
    else:
        style = "vg-ring" if pin.form == "ring" else "vg-pin"
        mark = f'<circle class="{style} vg-{pin.type}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return mark + text


def _mark(mark: Mark) -> str:
    """A part of a display."""
    (x, y), colour = mark.points[0] if mark.points else (0.0, 0.0), f"vd-{mark.style}"
    own = f' style="--vd:{mark.style}"' if mark.style.startswith("#") else ""
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in mark.points)
    fill, stroke = f'class="vd-fill {colour}"{own}', f'class="vd-line {colour}"{own}'
    if mark.form == "rect":
        (right, bottom) = mark.points[1]
        return f'<rect {fill} x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}"/>'
    if mark.form == "line":
        return f'<polyline {stroke} stroke-width="{mark.size:g}" points="{path}"/>'
    if mark.form == "area":
        return f'<polygon {fill} points="{path}"/>'
    if mark.form in ("circle", "ring"):
        return f'<circle {fill if mark.form == "circle" else stroke} cx="{x:.1f}" cy="{y:.1f}" r="{mark.size:g}"/>'
    if mark.form == "image":
        (right, bottom) = mark.points[1]
        place = f'x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}"'
        return f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" href="{data_uri(mark)}"/>'
    size = f'style="font-size:{mark.size:g}px" text-anchor="{mark.anchor}" xml:space="preserve"'
    return f'<text class="vd-fill {colour}" x="{x:.1f}" y="{y:.1f}" {size}>{escape(mark.text)}</text>'


def data_uri(mark: Mark) -> str:
    """The pixels of an image mark as a PNG inside a text."""
    return "data:image/png;base64," + base64.b64encode(png_files.write(mark.pixels, 6)).decode()


def _note(point: tuple[float, float], text: str) -> str:
    spans = "".join(
        f'<tspan x="{point[0]:.1f}" y="{point[1] + ROW * index:.1f}" xml:space="preserve">{escape(line) or " "}</tspan>'
        for index, line in enumerate(text.splitlines())
    )
    return f'<text class="vg-note">{spans}</text>'
