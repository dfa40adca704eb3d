# SPDX-License-Identifier: Apache-2.0
"""Where everything of a page stands on a drawing: boxes, pins, wires, texts. Both kinds of pictures draw this."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Spec
from voxgrad.formats.picture.displays import draw_display
from voxgrad.formats.picture.marks import Mark
from voxgrad.formats.picture.palette import type_class
from voxgrad.formats.picture.routes import Plane, route
from voxgrad.graph.block import Block, Output, Source
from voxgrad.graph.displays import Display
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings

Point = tuple[float, float]
Rect = tuple[float, float, float, float]

ADVANCE = 6.6
"""Width of a character of 11 px in a monospaced font."""
ROW = 16.0
HEAD = 34.0
PAD = 10.0
GAP = 76.0
MARGIN = 28.0
MAX_TEXT = 44
_SCALES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
_WIDEST = 8
"""Columns of blocks that nobody has placed."""


@dataclass(frozen=True, slots=True)
class PinMark:
    """A pin: where it is, what form its type gives it, and the text beside it."""

    at: Point
    type: str
    form: str
    label: str
    right: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A block on the drawing."""

    x: float
    y: float
    width: float
    height: float
    title: str
    subtitle: str
    pins: tuple[PinMark, ...]
    lines: tuple[str, ...]
    wrong: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A wire as level and upright lines; dashed for gradients, dotted for control edges."""

    points: tuple[Point, ...]
    type: str
    dashed: bool
    control: bool = False


@dataclass(slots=True)
class Drawing:
    """A whole page, in pixels from the top left corner."""

    title: str
    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: list[tuple[Point, str]] = field(default_factory=list)
    under: list[Mark] = field(default_factory=list)
    """Frames, behind everything."""
    over: list[Mark] = field(default_factory=list)
    """All other displays."""


def lay_out(page: Page, readings: Readings | None = None, told: Mapping[str, str] | None = None) -> Drawing:
    """The drawing of a page; its displays show what was read in a run, its blocks what is told of their outputs."""
    inference = page.infer()
    wrong = {problem.block for problem in page.problems()}
    blocks = page.blocks
    rows = {block: _rows(block, inference.spec, told or {}) for block in blocks}
    sizes = {block: _block_size(block, rows[block]) for block in blocks}
    shown = [(*display.position, *display.size) for display in page.displays]
    places, scale = _places(blocks, sizes, max((y + height for _, y, _, height in shown), default=0.0))
    drawing = Drawing(page.name)
    pins: dict[tuple[Block, str, bool], Point] = {}
    for block in blocks:
        titles = block.name, _subtitle(block)
        box = _box(*titles, places[block], sizes[block], rows[block], block.name in wrong)
        drawing.boxes.append(box)
        names = [*_input_names(block), *block.output_names]
        for name, pin in zip(names, box.pins, strict=True):
            pins[block, name, pin.right] = pin.at
    plane = Plane.of((box.x, box.y, box.width, box.height) for box in drawing.boxes)
    drawing.lines = [*_wires(blocks, pins, inference.spec, plane), *_control_lines(blocks, drawing.boxes, plane)]
    points = _extent(drawing)
    _place_displays(drawing, list(page.displays), readings or Readings(), scale, points)
    _place_notes(drawing, page.notes, scale, points)
    _finish(drawing, points)
    return drawing


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of a block that stands alone: its label, and the type that colours it; `host` for a vector of sizes."""

    label: str
    dtype: DType | None = None
    host: bool = False


def lay_out_block(
    title: str, subtitle: str, inputs: Sequence[Pin], outputs: Sequence[Pin], lines: Sequence[str]
) -> Drawing:
    """The drawing of a block that stands alone, as a library shows it."""
    rows = _Rows(tuple(map(_pin_row, inputs)), tuple(map(_pin_row, outputs)), tuple(map(_cut, lines)))
    drawing = Drawing("")
    drawing.boxes = [_box(title, subtitle, (0.0, 0.0), _size(title, subtitle, rows), rows, False)]
    _finish(drawing, _extent(drawing))
    return drawing


def _pin_row(pin: Pin) -> tuple[str, str, str]:
    kind = type_class(pin.dtype)
    return _cut(pin.label), kind, "diamond" if pin.host else _form(kind)


def arrange(page: Page) -> None:
    """Give every block a position: columns from left to right, each block right of all that it reads."""
    spec_of = page.infer().spec
    sizes = {block: _block_size(block, _rows(block, spec_of, {})) for block in page.blocks}
    for block, place in _columns(page.blocks, sizes).items():
        block.position = place


@dataclass(frozen=True, slots=True)
class _Rows:
    inputs: tuple[tuple[str, str, str], ...]
    """Per input pin: label, type class, form."""
    outputs: tuple[tuple[str, str, str], ...]
    lines: tuple[str, ...]


def _input_names(block: Block) -> list[str]:
    declared = list(block.own_input_names)
    return [*declared, *(name for name in block.own.sources if name not in declared)]


def _rows(block: Block, spec_of: Any, told: Mapping[str, str]) -> _Rows:
    hosts = {item.name for item in block.own.op.inputs if item.host} if block.own.op else set()
    inputs = []
    for name in _input_names(block):
        sources = block.own.sources.get(name, [])
        typed = [one for one in sources if not isinstance(one, Output)]
        label = f"{name} = {_short(typed[0].value)}" if len(sources) == 1 and typed else name
        first = next((spec_of(one) for one in sources if isinstance(one, Output)), Spec())
        kind = type_class(first.dtype)
        inputs.append((_cut(label), kind, "diamond" if name in hosts else _form(kind)))
    outputs = []
    for index, name in enumerate(block.output_names):
        spec = spec_of(Output(block, index))
        kind = type_class(spec.dtype)
        outputs.append((_cut(f"{name} {_spec_text(spec)}".strip()), kind, _form(kind)))
    lines = tuple(_cut(f"{name}: {_short(value)}") for name, value in block.own.attrs.items())
    values = [(name, told.get(f"{block.name}.{name}")) for name in block.output_names]
    lines += tuple(_cut(f"{name} = {value}") for name, value in values if value is not None)
    return _Rows(tuple(inputs), tuple(outputs), lines)


def _form(kind: str) -> str:
    return {"float": "circle", "int": "square", "bool": "ring"}.get(kind, "circle")


def _spec_text(spec: Spec) -> str:
    """The type and shape of an output as the chip beside its pin shows them."""
    if spec.dtype is None:
        return ""
    return f"{spec.dtype.name}" + (
        "" if spec.shape is None else f"[{','.join(_size_text(size) for size in spec.shape)}]"
    )


def _size_text(size: Any) -> str:
    return "?" if size is None else str(size)


def _short(value: Any) -> str:
    """A value in few characters."""
    if isinstance(value, np.ndarray):
        if value.size > 6:
            return f"{value.dtype.name} [{','.join(map(str, value.shape))}]"
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(_short(item) for item in value) + "}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def _block_size(block: Block, rows: _Rows) -> tuple[float, float]:
    return _size(block.name, _subtitle(block), rows)


def _subtitle(block: Block) -> str:
    """What a block is, and whether it does its work."""
    own = block.own.op_name or f"page {block.own.uses}"
    return f"{own}, {block.mode}" if block.mode else own


def _size(title: str, subtitle: str, rows: _Rows) -> tuple[float, float]:
    """Width and height of the box that holds all its texts."""
    pairs = max(len(rows.inputs), len(rows.outputs))
    widths = [len(_cut(title)) * ADVANCE * 1.1, len(subtitle) * ADVANCE]
    for index in range(pairs):
        left = len(rows.inputs[index][0]) if index < len(rows.inputs) else 0
        right = len(rows.outputs[index][0]) if index < len(rows.outputs) else 0
        widths.append((left + right) * ADVANCE + (16 if left and right else 0))
    widths += [len(line) * ADVANCE for line in rows.lines]
    return max(96.0, max(widths) + 2 * PAD), HEAD + ROW * (pairs + len(rows.lines)) + PAD


def _box(title: str, subtitle: str, place: Point, size: tuple[float, float], rows: _Rows, wrong: bool) -> Box:
    x, y = place
    pins = [
        PinMark((x, y + HEAD + ROW * (index + 0.5)), kind, form, label, right=False)
        for index, (label, kind, form) in enumerate(rows.inputs)
    ] + [
        PinMark((x + size[0], y + HEAD + ROW * (index + 0.5)), kind, form, label, right=True)
        for index, (label, kind, form) in enumerate(rows.outputs)
    ]
    return Box(x, y, *size, _cut(title), subtitle, tuple(pins), rows.lines, wrong)


def _places(
    blocks: Sequence[Block], sizes: dict[Block, tuple[float, float]], bottom: float
) -> tuple[dict[Block, Point], float | None]:
    """The stored positions, spread by a factor until no boxes overlap; without them, columns from left to right.

    Blocks that have no position among others that have, such as those of gradients, stand below these and below
    `bottom`, where the displays end.
    """
    placed = [block for block in blocks if block.position is not None]
    for scale in _SCALES if placed else ():
        spread = {block: _scaled(block.position, scale) for block in placed}
        if not _overlap([(*spread[block], *sizes[block]) for block in placed]):
            lost = [block for block in blocks if block.position is None]
            lowest = max(bottom * scale, *(spread[block][1] + sizes[block][1] for block in placed))
            return spread | _below(lost, sizes, min(x for x, _ in spread.values()), lowest), scale
    return _columns(blocks, sizes), None


def _below(
    blocks: Sequence[Block], sizes: dict[Block, tuple[float, float]], left: float, lowest: float
) -> dict[Block, Point]:
    """Columns by depth; a long chain goes on below, as in the studio."""
    depths = _depths(blocks)
    rows: dict[int, list[Block]] = {}
    for block in blocks:
        rows.setdefault(depths[block] // _WIDEST, []).append(block)
    places: dict[Block, Point] = {}
    for _, row in sorted(rows.items()):
        made = _columns(row, sizes)
        places |= {block: (x + left, y + lowest + GAP) for block, (x, y) in made.items()}
        lowest = max(places[block][1] + sizes[block][1] for block in row)
    return places


def _scaled(position: Point | None, scale: float) -> Point:
    assert position is not None
    return position[0] * scale, position[1] * scale


def _overlap(boxes: list[Rect]) -> bool:
    """True if any two boxes touch; boxes are compared in the order of x, so few pairs are looked at."""
    active: list[Rect] = []
    for box in sorted(boxes):
        active = [one for one in active if one[0] + one[2] + 8 > box[0]]
        if any(_touch(one, box) for one in active):
            return True
        active.append(box)
    return False


def _columns(blocks: Sequence[Block], sizes: dict[Block, tuple[float, float]]) -> dict[Block, Point]:
    """Every block right of all that it reads; within a column, near the middle of what it reads."""
    depth = _depths(blocks)
    columns: dict[int, list[Block]] = {}
    for block in blocks:
        columns.setdefault(depth[block], []).append(block)
    places: dict[Block, Point] = {}
    x = 0.0
    for _, column in sorted(columns.items()):
        column.sort(key=lambda block: _wish(block, places))
        y = 0.0
        for block in column:
            places[block] = (x, y)
            y += sizes[block][1] + 22
        x += max(sizes[block][0] for block in column) + GAP
    return places


def _wish(block: Block, places: dict[Block, Point]) -> float:
    rows = [places[one.block][1] for one in _read_by(block) if one.block in places]
    return sum(rows) / len(rows) if rows else 0.0


def _read_by(block: Block) -> Iterable[Output]:
    return (one for sources in block.own.sources.values() for one in sources if isinstance(one, Output))


def _depths(blocks: Sequence[Block]) -> dict[Block, int]:
    """The length of the longest path to each block; wires that close a ring are not followed."""
    depth: dict[Block, int] = {}
    for start in blocks:
        stack: list[tuple[Block, bool]] = [(start, False)]
        open_: set[Block] = set()
        while stack:
            block, ready = stack.pop()
            if ready:
                open_.discard(block)
                depth[block] = max((depth.get(one, -1) for one in _before(block)), default=-1) + 1
            elif block not in depth and block not in open_:
                open_.add(block)
                stack.append((block, True))
                stack += [(one, False) for one in _before(block) if one not in depth]
    return depth


def _before(block: Block) -> list[Block]:
    return [*(one.block for one in _read_by(block)), *block.control]


def _wires(
    blocks: Sequence[Block], pins: dict[tuple[Block, str, bool], Point], spec_of: Any, plane: Plane
) -> list[Line]:
    """The wires, each with its way; short ones take theirs first, and those into one block turn beside each other."""
    found = []
    for block in blocks:
        wired = [
            (name, source, start)
            for name, sources in block.own.sources.items()
            for source in sources
            if isinstance(source, Output) and (start := _start(source, pins)) is not None
        ]
        found += [
            (lane, block, start, pins[block, name, False], source) for lane, (name, source, start) in enumerate(wired)
        ]
    lines = []
    for lane, block, start, end, source in sorted(found, key=lambda one: math.dist(one[2], one[3])):
        dashed = "gradients" in block.name.split("/")[0]
        way = route(start, end, plane, source.path, lane)
        lines.append(Line(way, type_class(spec_of(source).dtype), dashed))
    return lines


def _start(source: Source, pins: dict[tuple[Block, str, bool], Point]) -> Point | None:
    return pins.get((source.block, source.pin, True)) if isinstance(source, Output) else None


def _control_lines(blocks: Sequence[Block], boxes: Sequence[Box], plane: Plane) -> list[Line]:
    box_of = dict(zip(blocks, boxes, strict=True))
    lines = []
    for block in blocks:
        for other in block.control:
            one, two = box_of[other], box_of[block]
            start, end = (one.x + one.width, one.y + HEAD / 2), (two.x, two.y + HEAD / 2)
            lines.append(Line(route(start, end, plane, f"^{other.name}", 0), "other", True, control=True))
    return lines


def _extent(drawing: Drawing) -> list[Point]:
    points = [(box.x, box.y) for box in drawing.boxes]
    points += [(box.x + box.width, box.y + box.height) for box in drawing.boxes]
    return points + [point for line in drawing.lines for point in line.points]


def _place_displays(
    drawing: Drawing, displays: list[Display], readings: Readings, scale: float | None, points: list[Point]
) -> None:
    """Displays stand where they are among the blocks; where these have no places, below them."""
    if not displays:
        return
    left, top = (min(display.position[axis] for display in displays) for axis in (0, 1))
    below = scale is None and bool(drawing.boxes)
    spread = scale or 1.0
    shift = (min(x for x, _ in points) - left, max(y for _, y in points) + 24 - top) if below else (0.0, 0.0)
    for display in displays:
        x, y = display.position[0] * spread + shift[0], display.position[1] * spread + shift[1]
        marks = [mark.moved(x, y, spread) for mark in draw_display(display, readings)]
        (drawing.under if display.kind.name == "frame" else drawing.over).extend(marks)
        points += [(x, y), (x + display.size[0] * spread, y + display.size[1] * spread)]


def _finish(drawing: Drawing, points: list[Point]) -> None:
    """Move everything into view and set the size of the picture."""
    left = min((x for x, _ in points), default=0.0) - MARGIN
    top = min((y for _, y in points), default=0.0) - MARGIN - 24
    _shift(drawing, -left, -top)
    drawing.width = math.ceil(max((x for x, _ in points), default=200.0) - left + MARGIN)
    drawing.height = math.ceil(max((y for _, y in points), default=40.0) - top + MARGIN)


def _place_notes(drawing: Drawing, notes: Sequence[Any], scale: float | None, points: list[Point]) -> None:
    """Notes stand where they were written, or below the blocks where they would hide something."""
    bottom = max((y for _, y in points), default=0.0) + 24
    left = min((x for x, _ in points), default=0.0)
    taken = [(box.x, box.y, box.width, box.height) for box in drawing.boxes]
    for note in notes:
        text, position = (note.get("text"), note.get("position")) if isinstance(note, dict) else (None, None)
        if not isinstance(text, str) or not text.strip():
            continue
        lines = "".join(char if char.isprintable() or char == "\n" else " " for char in text).strip("\n").splitlines()
        width, height = max(map(len, lines)) * ADVANCE, ROW * len(lines)
        place = None if scale is None else _note_place(position, scale)
        if place is None or any(_touch((*place, width, height), box) for box in taken):
            place = (left, bottom)
            bottom += height + 8
        taken.append((*place, width, height))
        points += [place, (place[0] + width, place[1] + height)]
        drawing.notes.append(((place[0], place[1] + 12), "\n".join(lines)))


def _touch(one: Rect, other: Rect) -> bool:
    apart_x = one[0] + one[2] + 8 <= other[0] or other[0] + other[2] + 8 <= one[0]
    return not apart_x and one[1] < other[1] + other[3] + 8 and other[1] < one[1] + one[3] + 8


def _note_place(value: Any, scale: float) -> Point | None:
    is_point = (
        isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(one, (int, float)) for one in value)
    )
    return (float(value[0]) * scale, float(value[1]) * scale) if is_point else None


def _shift(drawing: Drawing, dx: float, dy: float) -> None:
    def moved(point: Point) -> Point:
        return point[0] + dx, point[1] + dy

    drawing.boxes = [
        Box(
            box.x + dx, box.y + dy, box.width, box.height, box.title, box.subtitle,
            tuple(PinMark(moved(pin.at), pin.type, pin.form, pin.label, pin.right) for pin in box.pins),
            box.lines, box.wrong,
        )
        for box in drawing.boxes
    ]  # fmt: skip
    drawing.lines = [
        Line(tuple(map(moved, line.points)), line.type, line.dashed, line.control) for line in drawing.lines
    ]
    drawing.notes = [(moved(point), text) for point, text in drawing.notes]
    drawing.under = [mark.moved(dx, dy) for mark in drawing.under]
    drawing.over = [mark.moved(dx, dy) for mark in drawing.over]
