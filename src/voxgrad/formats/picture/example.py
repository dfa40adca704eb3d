# SPDX-License-Identifier: Apache-2.0
"""The example of an op as a drawing: large values on the left, the blocks, and what a run gives on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Input, Op, Output
from voxgrad.formats.picture.layout import ROW, Drawing, Pin, arrange, lay_out, lay_out_block
from voxgrad.formats.picture.marks import LETTERS, WIDE
from voxgrad.formats.picture.scales import written
from voxgrad.formats.picture.windows import HEAD, PAD
from voxgrad.formats.text.shown import shown_element
from voxgrad.graph.block import Output as Wire
from voxgrad.graph.example import MOST_TYPED, ExamplePage
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings
from voxgrad.graph.values import Array

_APART = 40.0
_MOST_ROWS = 20
_MOST_WIDE = 460.0
_FORMAT = "%.6g"


def lay_out_example(example: ExamplePage, values: Mapping[str, Array]) -> Drawing:
    """The page of an example with its values; its blocks get places, its outputs displays."""
    page, readings = example.page, Readings()
    readings.last |= {path: _readable(value) for path, value in values.items()}
    arrange(page)
    boxes = lay_out(page).boxes
    left = min(block.position[0] for block in page.blocks if block.position is not None)
    right = left + max(box.x + box.width for box in boxes) - min(box.x for box in boxes)
    large = [
        (one.output(0), np.asarray(one.attrs["value"])) for one in page.blocks if _is_large(one.attrs.get("value"))
    ]
    _stack(page, large, left, aside=-1)
    _stack(page, [(one, readings.last[one.path]) for one in example.shown if one.path in values], right, aside=1)
    return lay_out(page, readings)


def _readable(value: Array) -> Array:
    """Texts as they could be typed: bytes of a picture have no letters."""
    if value.dtype != object:
        return value
    said = np.empty(value.shape, object)
    said.ravel()[:] = [shown_element(one).encode() for one in value.ravel().tolist()]
    return said


def _is_large(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.size > MOST_TYPED


def _stack(page: Page, shown: Sequence[tuple[Wire, Array]], edge: float, aside: int) -> None:
    """Tables one below the other, beside the blocks."""
    y = 0.0
    for output, value in shown:
        size = _room(output.path, value)
        x = edge - _APART - size[0] if aside < 0 else edge + _APART
        title = output.block.name if aside < 0 else output.path
        page.displays.add("table", [output], {"title": title, "format": _FORMAT}, position=(x, y), size=size)
        y += size[1] + ROW


def _room(title: str, value: Array) -> tuple[float, float]:
    """The size of a table that shows a whole value."""
    columns = value.shape[-1] if value.ndim > 1 else 1
    rows = value.size // columns if columns else 1
    widest = max((len(written(one, _FORMAT)) for one in value.ravel().tolist()), default=1)
    wide = max(columns, 1) * (widest * LETTERS * WIDE + 10) + 2 * PAD
    return max(min(wide, _MOST_WIDE), len(title) * LETTERS * WIDE + 3 * PAD), HEAD + ROW * min(
        max(rows, 1), _MOST_ROWS
    ) + PAD


def lay_out_op(op: Op) -> Drawing:
    """The block of an op with its pins and attributes, as a library shows it."""
    inputs = [Pin(item.name + ("…" if item.many else ""), _first(op, item), item.host) for item in op.inputs]
    outputs = [Pin(item.name + ("…" if item.many else ""), _first(op, item)) for item in op.outputs]
    return lay_out_block(op.name, op.group, inputs, outputs, [_attr_line(attr) for attr in op.attrs])


def _first(op: Op, item: Input | Output) -> DType | None:
    """The type that colours a pin; none where it may be any."""
    allowed = op.types.get(item.type, ()) if isinstance(item.type, str) else (item.type,)
    kinds = {one.kind for one in allowed}
    return allowed[0] if allowed and not {"string", "float"} <= kinds else None


def _attr_line(attr: Attr) -> str:
    if attr.required:
        named = " or ".join(map(str, attr.choices)) if attr.kind == "string" else ""
        return f"{attr.name}: {named or attr.kind}"
    default = attr.default
    return f"{attr.name}: {'{' + ','.join(map(str, default)) + '}' if isinstance(default, tuple) else default}"
