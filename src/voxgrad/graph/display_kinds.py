# SPDX-License-Identifier: Apache-2.0
"""The kinds of displays, declared once: what each shows and which attributes it has.

The schema of page files, the studio's menu and its fields, the table in docs/pages.md and every check of a display are
made from this table; `voxgrad.formats.picture.displays` draws them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from voxgrad.errors import show

MANY = 64
"""As many curves as a trend can have, and columns as a table can."""
MOST_TEXT = 2**20
"""Letters in one attribute; a picture is base64."""


@dataclass(frozen=True, slots=True)
class DisplayAttr:
    """An attribute: text, lines, number, int, bool, choice or png. A default of None leaves it to the values."""

    name: str
    type: str
    default: str | float | bool | None
    doc: str
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf

    def fault(self, value: Any) -> tuple[str, str] | None:
        """What was wanted and what came, where a value does not fit."""
        wanted, fits = self._test(value)
        return None if fits or (value is None and self.default is None) else (wanted, show(value))

    def _test(self, value: Any) -> tuple[str, bool]:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if self.type == "bool":
            return "be true or false", isinstance(value, bool)
        if self.type == "choice":
            return f"be one of {', '.join(self.choices)}", isinstance(value, str) and value in self.choices
        if self.type in ("text", "lines", "png"):
            return f"be a text of at most {MOST_TEXT:,} letters", isinstance(value, str) and len(value) <= MOST_TEXT
        if not is_number or (self.type == "int" and not isinstance(value, int)):
            return f"be {'an integer' if self.type == 'int' else 'a number'}", False
        between = "" if self.least == -math.inf else f" from {self.least:g} to {self.most:g}"
        return f"be finite{between}", math.isfinite(value) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class DisplayKind:
    """A kind of display: how many outputs it takes, its attributes and the size of a new one."""

    name: str
    doc: str
    takes: int
    size: tuple[float, float]
    attrs: tuple[DisplayAttr, ...]
    writes: bool = False
    """True where it writes to the block that it is bound to, and so belongs beside it."""

    def attr(self, name: str) -> DisplayAttr | None:
        """The attribute of this name."""
        return next((one for one in self.attrs if one.name == name), None)


def _title(default: str = "") -> DisplayAttr:
    return DisplayAttr("title", "text", default, "What stands above it.")


_FORMAT = DisplayAttr("format", "text", "%.6g", "How a number is written, as C and Lua do: %d, %.3f, %8.2e.")
_UNIT = DisplayAttr("unit", "text", "", "What stands behind the number.")
_LOW = DisplayAttr("low", "number", None, "The value at the lower end; without it, the least that is shown.")
_HIGH = DisplayAttr("high", "number", None, "The value at the upper end; without it, the greatest that is shown.")
_ROWS = DisplayAttr(
    "rows", "int", 0, "Folds a list of values into so many rows; 0 takes the shape as it is.", (), 0, 65536
)
_TURN = DisplayAttr("turn", "number", 30.0, "Degrees around the upright axis.", (), -360, 360)
_TILT = DisplayAttr("tilt", "number", 30.0, "Degrees from which it is seen from above.", (), -90, 90)

KINDS = {
    kind.name: kind
    for kind in (
        DisplayKind("text", "Lines of text.", 0, (240, 40), (
            DisplayAttr("text", "lines", "", "The lines."),
            DisplayAttr("points", "number", 14.0, "The size of the letters, in pixels.", (), 4, 400),
            DisplayAttr("bold", "bool", False, "Heavy letters."),
        )),
        DisplayKind("frame", "A rectangle with a title, behind everything else.", 0, (320, 200), (_title(),)),
        DisplayKind("picture", "A picture that the page holds.", 0, (160, 120), (
            _title(),
            DisplayAttr("png", "png", "", "A PNG file, in base64."),
        )),
        DisplayKind("value", "One value, written out.", 1, (140, 56), (_title(), _FORMAT, _UNIT)),
        DisplayKind("table", "All values in rows and columns.", MANY, (260, 160), (_title(), _FORMAT)),
        DisplayKind("gauge", "A number between two ends.", 1, (160, 110), (
            _title(), _FORMAT, _UNIT,
            DisplayAttr("low", "number", 0.0, "The lower end."),
            DisplayAttr("high", "number", 1.0, "The upper end."),
            DisplayAttr("form", "choice", "dial", "A dial with a needle, or a bar.", ("dial", "bar")),
        )),
        DisplayKind("lamp", "Lit where a number is large enough.", 1, (110, 44), (
            _title(),
            DisplayAttr("above", "number", 0.5, "Lit where the value is greater than this."),
        )),
        DisplayKind("edit", "A box to type a value of a block into.", 1, (160, 56), (
            _title(),
            DisplayAttr("entry", "text", "value", "The attribute or the input of the block that is written."),
        ), writes=True),
        DisplayKind("slider", "A knob on a scale that sets a number of a block.", 1, (220, 72), (
            _title(), _UNIT,
            DisplayAttr("low", "number", 0.0, "The number at the left end."),
            DisplayAttr("high", "number", 1.0, "The number at the right end."),
            DisplayAttr("step", "number", 0.0, "The distance of numbers; 0: a hundredth of the scale.", (), 0, 1e12),
            DisplayAttr("entry", "text", "value", "The attribute or the input of the block that is set."),
            DisplayAttr("runs", "bool", False, "Runs the page whenever it has been moved."),
        ), writes=True),
        DisplayKind("button", "Runs the page.", 0, (120, 40), (
            _title("Run"),
            DisplayAttr("does", "choice", "run", "Run afresh, one cycle more, many cycles, or stop.",
                        ("run", "step", "loop", "stop")),
            DisplayAttr("cycles", "int", 100, "How many cycles a loop has.", (), 1, 10**6),
        )),
        DisplayKind("trend", "Numbers over the cycles of a run, a curve each.", MANY, (360, 220), (
            _title(), _LOW, _HIGH,
            DisplayAttr("log", "bool", False, "A logarithmic scale."),
            DisplayAttr("span", "int", 0, "So many of the last cycles; 0 shows all.", (), 0, 10**9),
        )),
        DisplayKind("histogram", "How often values occur.", 1, (300, 160), (
            _title(),
            DisplayAttr("bins", "int", 32, "Bars between the least and the greatest value.", (), 1, 512),
        )),
        DisplayKind("image", "A picture from values: [H, W], [H, W, 3] or the first of [N, H, W, C].", 1, (200, 200), (
            _title(), _LOW, _HIGH, _ROWS,
        )),
        DisplayKind("slice", "A plane of a volume.", 1, (220, 220), (
            _title(), _LOW, _HIGH,
            DisplayAttr("axis", "choice", "depth", "The axis across the plane.", ("depth", "height", "width")),
            DisplayAttr("place", "int", -1, "Where on that axis; -1 is the middle.", (), -1, 2**31),
        )),
        DisplayKind("heat", "Values as colours, with lines of equal height.", 1, (240, 220), (
            _title(), _LOW, _HIGH, _ROWS,
            DisplayAttr("lines", "int", 0, "Contour lines between the ends.", (), 0, 64),
            DisplayAttr("scale", "bool", True, "Shows which colour is which value."),
        )),
        DisplayKind("surface", "Values as a terrain.", 1, (300, 240), (_title(), _LOW, _HIGH, _ROWS, _TURN, _TILT)),
        DisplayKind("scatter", "Points in space: rows of three numbers, of a fourth their colour.", 1, (280, 240), (
            _title(), _TURN, _TILT,
        )),
        DisplayKind("volume", "A volume, looked through: the greatest value on each ray.", 1, (260, 260), (
            _title(), _LOW, _HIGH, _TURN, _TILT,
        )),
    )
}  # fmt: skip
"""Per name its kind, in the order of menus."""


def schema() -> dict[str, Any]:
    """The part of the page file's schema that describes a display: one form per kind."""
    return {
        "description": "What the drawing shows besides blocks, under a name that no other display has.",
        "oneOf": [_kind_schema(kind) for kind in KINDS.values()],
    }


def _kind_schema(kind: DisplayKind) -> dict[str, Any]:
    pair = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    shown = {"of": {"type": "array", "items": {"$ref": "#/$defs/shown"}, "maxItems": kind.takes}} if kind.takes else {}
    attrs = {one.name: _attr_schema(one) for one in kind.attrs}
    return {
        "description": kind.doc,
        "type": "object",
        "required": ["name", "kind", "position", "size"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "kind": {"const": kind.name},
            **shown,
            "attrs": {"type": "object", "required": [], "properties": attrs, "additionalProperties": False},
            "position": pair,
            "size": pair,
        },
        "additionalProperties": False,
    }


def _attr_schema(attr: DisplayAttr) -> dict[str, Any]:
    names = {"bool": "boolean", "int": "integer", "number": "number"}
    plain = names.get(attr.type, "string")
    made: dict[str, Any] = {"description": attr.doc, "type": plain if attr.default is not None else [plain, "null"]}
    if attr.choices:
        made = {"description": attr.doc, "enum": list(attr.choices)}
    if plain == "string" and not attr.choices:
        made["maxLength"] = MOST_TEXT
    if attr.least > -math.inf:
        made |= {"minimum": attr.least, "maximum": attr.most}
    return made
