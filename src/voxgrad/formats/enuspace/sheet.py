# SPDX-License-Identifier: Apache-2.0
"""A page SVG of enuSpace as data: blocks with the texts of their pins, links, and what is drawing only."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.errors import Fault
from voxgrad.formats.enuspace.placement import Placement, length, walk_placed
from voxgrad.formats.enuspace.xml_tree import Element, bad_document
from voxgrad.formats.report import LOST, NOTED, Report
from voxgrad.formats.text import TextError, parse_flat, parse_shape
from voxgrad.formats.text.values import Array

TASKS = ("tensorflow", "enu_tensorflow2_0")
RESULT = "result_"
VARIABLE_TYPES = {
    "double": dtypes.FLOAT64,
    "float": dtypes.FLOAT32,
    "int": dtypes.INT32,
    "bool": dtypes.BOOL,
    "string": dtypes.STRING,
}
_PIN = re.compile(r"#?([^\[\]]+)((?:\[[0-9]+\])*)")
_SHOWN = {"text", "rect", "image", "pg-text", "pg-trend", "pg-trend-contour", "pg-editbox", "pg-button"}
"""What becomes a display."""
_DRAWN = {"line", "ellipse", "path", "circle", "polygon", "pie"}
_LINK = {"id", "from-id", "param-from", "to-id", "param-to", "hidden", "type"}
_MAX_ELEMENTS = 2**26


@dataclass(frozen=True, slots=True)
class PinText:
    """What a page stores of a pin: a text, or a place in the .dat file, with a type and a shape."""

    name: str
    type: str
    shape: str
    value: str
    binary_at: int | None


@dataclass(slots=True)
class Node:
    """A `use`: one block, or one gadget of the host."""

    id: str
    symbol: str
    is_gadget: bool
    position: tuple[float, float]
    line: int
    pins: dict[str, PinText] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between two pins. `from_index` is the member of a list of outputs, None where none was named."""

    from_id: str
    from_pin: str
    from_index: int | None
    to_id: str
    to_pin: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """Something that the page shows: its element, and the upright box around it, whichever way it is turned."""

    element: Element
    box: tuple[float, float, float, float]


@dataclass(slots=True)
class Sheet:
    """A page as its file has it."""

    version: str
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)


def read_sheet(root: Element, source: str, report: Report) -> Sheet:
    """The sheet of a page SVG."""
    if root.name != "svg" or not any(element.name in ("use", "pg-link") for element in root.walk()):
        raise bad_document(source, root.line, "be a page of enuSpace: an svg with use elements", f"<{root.name}>")
    sheet = Sheet(root.get("enuspace-version"))
    hidden = 0
    # What stands inside of a block is its own picture, as the web form repeats it in every block; what stands in defs
    # is drawn nowhere by itself.
    for element, placement in walk_placed(root, closed=("use", "defs")):
        if element.name == "use":
            _add_node(sheet, element, placement, source)
        elif element.name == "pg-link":
            hidden += element.get("hidden").lower() == "true"
            _add_link(sheet, element, report)
        elif element.name in _SHOWN:
            sheet.drawn.append(Drawn(element, _box(element, placement)))
        elif element.name == "script":
            sheet.scripts.append(element.text)
        elif element.name in _DRAWN:
            report.add(NOTED, f"<{element.name}>", "is drawing only and was left out")
    if hidden:
        report.add(NOTED, "links", f"{hidden} hidden links are drawn")
    return sheet


def _box(element: Element, placement: Placement) -> tuple[float, float, float, float]:
    x, y, width, height = (length(element.get(name)) for name in ("x", "y", "width", "height"))
    corners = [placement.at(a, b) for a in (x, x + width) for b in (y, y + height)]
    (left, right), (top, bottom) = ((min(ends), max(ends)) for ends in zip(*corners, strict=True))
    return left, top, right - left, bottom - top


def _add_node(sheet: Sheet, element: Element, placement: Placement, source: str) -> None:
    name = element.get("id")
    if not name or not element.get("href"):
        raise bad_document(source, element.line, "give every use an id and a href", sorted(element.attributes)[:8])
    if name in sheet.nodes:
        raise bad_document(source, element.line, "give every block its own id", name)
    gadget = element.get("type") not in TASKS
    position = placement.at(length(element.get("x")), length(element.get("y")))
    node = Node(name, element.get("href").removeprefix("#"), gadget, position, element.line)
    for child in element.children:
        if child.name in ("pg-set-pin", "pg-pin"):
            pin = _pin_text(child, source)
            node.pins[pin.name] = pin
        elif child.name in ("pg-set-attribute", "pg-attribute"):
            node.settings[child.get("variable").removeprefix("#")] = child.get("value") or child.get("initial")
    sheet.nodes[name] = node


def _pin_text(element: Element, source: str) -> PinText:
    match = _PIN.fullmatch(element.get("variable"))
    if match is None:
        raise bad_document(source, element.line, "name a pin as #name[2][2]", element.get("variable")[:60])
    binary = element.get("save-type") == "binary"
    at = element.get("binary-pos", "0")
    if binary and not at.isdecimal():
        raise bad_document(source, element.line, "have a number as binary-pos", at[:60])
    type_ = element.get("var-type") or element.get("type")
    shape = element.get("shape") or match[2]
    # Pages say "value"; their web form, made of the pins of the library, says "initial".
    value = element.get("value") or element.get("initial")
    return PinText(match[1], type_, shape, value, int(at[:18]) if binary else None)


def _add_link(sheet: Sheet, element: Element, report: Report) -> None:
    more = {name: text for name, text in element.attributes.items() if name not in _LINK and text}
    if more:
        shown = ", ".join(f"{name}={text!r}" for name, text in more.items())
        told = f"line {element.line}: {shown} is not known here: the value passes as it is, in the unit that it has"
        report.add(NOTED, f"link {element.get('id')}", told)
    ends = [element.get(name) for name in ("from-id", "param-from", "to-id", "param-to")]
    match = re.fullmatch(r"(.+?)(?:\[([0-9]{1,6})\])?", ends[1])
    if not all(ends) or match is None:
        report.add(LOST, f"link {element.get('id')}", f"line {element.line}: it does not name both of its ends")
        return
    index = int(match[2]) if match[2] else None
    sheet.links.append(Link(ends[0], match[1], index, ends[2], ends[3]))


def array_of(pin: PinText, data: bytes, dtype: DType | None = None) -> Array:
    """The array that a pin holds, from its text or from the .dat file. Raises TextError for a text that is none."""
    stored = VARIABLE_TYPES.get(pin.type, dtypes.STRING)
    shape = parse_shape(pin.shape, "shape", pin.name) or ()
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape) or math.prod(sizes) > _MAX_ELEMENTS:
        raise _no_array(pin, "have a shape of known, moderate sizes", pin.shape)
    if pin.binary_at is None and stored == dtypes.STRING:
        return _texts(pin, sizes)
    if pin.binary_at is not None:
        array = _from_data(pin, data, stored, sizes)
    else:
        array = parse_flat(_spelled(pin.value, stored), stored, sizes, pin.name)
    return array if dtype is None else array.astype(numpy_type(dtype), copy=False)


def _texts(pin: PinText, sizes: list[int]) -> Array:
    """Texts are separated by ;, or stand in braces as version 4 writes lists; without a shape the whole is one."""
    parts = pin.value.removesuffix(";").split(";") if sizes else [pin.value]
    if len(parts) != math.prod(sizes) and pin.value.startswith("{"):
        return parse_flat(pin.value, dtypes.STRING, sizes, pin.name)
    if len(parts) != math.prod(sizes):
        raise _no_array(pin, f"hold {math.prod(sizes)} texts", f"{len(parts)}")
    made: Array = np.empty(len(parts), dtype=object)
    made[:] = [part.encode() for part in parts]
    return made.reshape(sizes)


def _spelled(text: str, dtype: DType) -> str:
    """Integers were stored as decimals in places."""
    return re.sub(r"\.0+(?=$|[;,}\s])", "", text) if dtype.kind == "int" else text


def _from_data(pin: PinText, data: bytes, dtype: DType, sizes: list[int]) -> Array:
    assert pin.binary_at is not None
    if dtype == dtypes.STRING:
        raise _no_array(pin, "be a number type to stand in the .dat file", pin.type)
    count = math.prod(sizes)
    # No copy: any number of pins may name the same bytes.
    raw = memoryview(data)[pin.binary_at : pin.binary_at + count * dtype.itemsize]
    if len(raw) != count * dtype.itemsize:
        raise _no_array(pin, f"find {count * dtype.itemsize} bytes in the .dat file", f"{len(raw)}")
    found: Array = np.frombuffer(raw, dtype=numpy_type(dtype).newbyteorder("<")).reshape(sizes)
    return found.astype(numpy_type(dtype), copy=False)


def _no_array(pin: PinText, wanted: str, got: str) -> TextError:
    return TextError(Fault("VG054", "enuSpace", pin.name, wanted, got), pin.value, 0)


def expected_values(sheet: Sheet, data: bytes, report: Report) -> dict[str, dict[str, Array]]:
    """The values of the last run that the page stores, by block and output. They are no part of a page here."""
    found: dict[str, dict[str, Array]] = {}
    for node in sheet.nodes.values():
        for pin in node.pins.values():
            if node.is_gadget or not pin.name.startswith(RESULT) or (not pin.value and pin.binary_at is None):
                continue
            try:
                found.setdefault(node.id, {})[pin.name.removeprefix(RESULT)] = array_of(pin, data)
            except TextError as error:
                report.add(NOTED, f"{node.id}.{pin.name}", f"a stored result must {error.faults[0].wanted}")
    return found
