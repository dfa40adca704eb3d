# SPDX-License-Identifier: Apache-2.0
"""What a page of enuSpace shows, as displays where it stood: texts, frames, pictures, trends, heat maps, gadgets.

What a gadget shows is told by its variable, by a link from a `result_` pin, or by a page's script, which is read and
never executed. What has no counterpart stays a note, and the report says so.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace.bindings import Meant, Read, meaning_of
from voxgrad.formats.enuspace.computed import Computed
from voxgrad.formats.enuspace.convert import Converter
from voxgrad.formats.enuspace.placement import length
from voxgrad.formats.enuspace.sheet import RESULT, Drawn, Node
from voxgrad.formats.report import CHANGED, MISSING, NOTED
from voxgrad.graph.display_kinds import KINDS, MANY, MOST_TEXT
from voxgrad.graph.displays import FARTHEST, Shown
from voxgrad.graph.names import checked_path

_VARIABLE = re.compile(r"#?([A-Za-z_]\w*)\.(\w+)((?:\[[0-9]{1,9}\]){0,8})")
_FOLDED = re.compile(r"\w+\*([0-9]{1,6})\+\w+")
_RUNS = re.compile(r"\b\w*(?:run|start|play|step|task)\w*\s*\(", re.IGNORECASE)
_GADGETS = {
    "trend": ("TREND", "CHART"), "gauge": ("GAUGE", "METER", "BAR"), "lamp": ("LAMP", "LED"),
    "table": ("TABLE", "ARRAY", "ARAAY", "GRID"), "value": ("",),
}  # fmt: skip
"""Per kind of display, what the names of gadgets hold that become one; any other gadget with a wire shows a value."""
_SIZES = {"trend": (260.0, 100.0), "table": (160.0, 100.0)}
"""Gadgets lie close to each other on original pages, whose libraries, with their sizes, are not there."""
_LETTER = 0.6


def make_displays(converter: Converter, folder: Path) -> None:
    """Put everything that a sheet shows on its page."""
    maker = _Maker(converter, folder)
    for drawn in converter.sheet.drawn:
        maker.draw(drawn)
    for node in converter.sheet.nodes.values():
        if node.is_gadget:
            maker.gadget(node)
    maker.computed.finish()


class _Maker:
    def __init__(self, converter: Converter, folder: Path):
        self.converter, self.folder = converter, folder
        self.page, self.report = converter.page, converter.report
        self.meant: Meant = meaning_of(converter.sheet.scripts)
        self.computed = Computed(converter)
        self._do = {
            "text": self._text, "pg-text": self._text, "rect": self._rect, "image": self._image,
            "pg-trend": self._trend, "pg-trend-contour": self._contour, "pg-editbox": self._edit,
            "pg-button": self._button,
        }  # fmt: skip

    def draw(self, drawn: Drawn) -> None:
        """One element of the sheet."""
        self._do[drawn.element.name](drawn)

    def _add(self, kind: str, drawn: Drawn, attrs: dict[str, Any], of: list[Shown] | None = None) -> None:
        """A display in the box of an element; of the size of its kind where the element has none."""
        x, y, width, height = drawn.box
        size = (width, height) if width >= 1 and height >= 1 else KINDS[kind].size
        self._place(kind, drawn.element.get("id"), (x, y), size, attrs, of or [])

    def _place(
        self, kind: str, id_: str, at: tuple[float, float], size: tuple[float, float], attrs: dict[str, Any],
        of: list[Shown],
    ) -> None:  # fmt: skip
        given = {name: value for name, value in attrs.items() if value not in (None, "")}
        place = [min(FARTHEST, max(-FARTHEST, one)) for one in at]
        sized = [min(FARTHEST, max(1.0, one)) for one in size]
        self.page.displays.add(kind, of, given, name=_name(id_, kind), position=place, size=sized)

    # Texts, frames, pictures

    def _text(self, drawn: Drawn) -> None:
        element = drawn.element
        points = min(400.0, max(4.0, length(element.get("font-size")) or 14.0))
        text = element.text.strip("\r\n\t ")[:MOST_TEXT]
        read = self.meant.reads.get(element.get("id")) or _variable(element.get("variable"))
        of = self._shown(read) if read else []
        if not text and not of:
            return
        rows = text.splitlines() or [""]
        # The origin of a text is where its first line stands.
        x, y = drawn.box[0] + length(element.get("dx")), drawn.box[1] + length(element.get("dy")) - points
        wide = max(len(row) for row in rows) * points * _LETTER + 4
        size = (wide, points * 1.2 * len(rows) + 6)
        if of and read:
            written = {"format": element.get("pg-format") or read.format, "title": " "}
            self._place("value", element.get("id"), (x, y), (max(wide, 60.0), max(size[1], 24.0)), written, of)
            return
        attrs = {"text": text, "points": points, "bold": element.get("font-weight") in ("bold", "bolder")}
        self._place("text", element.get("id"), (x, y), size, attrs, [])

    def _rect(self, drawn: Drawn) -> None:
        """A rectangle; one that starts a task when it is clicked is a button."""
        element = drawn.element
        script = "".join(one.text for one in element.children if one.name == "script")
        if element.get("onmousedown") and _RUNS.search(re.sub(r"function\s+\w+\s*\(", "", script)):
            self._add("button", drawn, {})
            self.report.add(CHANGED, element.get("id"), "a click started a task there; here it runs the page")
            return
        if element.get("onmousedown"):
            self.report.add(NOTED, element.get("id"), "a click ran a script there, which is not executed: now a frame")
        self._add("frame", drawn, {})

    def _button(self, drawn: Drawn) -> None:
        self._add("button", drawn, {"title": drawn.element.get("text") or drawn.element.text.strip()})
        self.report.add(CHANGED, drawn.element.get("id"), "a button: here it runs the page")

    def _image(self, drawn: Drawn) -> None:
        """A picture of the page's own folder; only PNG is read."""
        element = drawn.element
        name = element.get("href").replace("\\", "/").rpartition("/")[2]
        file = self.folder / name
        try:
            inside = bool(name) and file.resolve().parent == self.folder.resolve() and file.is_file()
            data = file.read_bytes() if inside and file.stat().st_size < MOST_TEXT // 2 else b""
        except (OSError, ValueError):
            data = b""
        if not data.startswith(b"\x89PNG"):
            self.report.add(MISSING, name or "<image>", "a picture; put it beside the page, as PNG, and import again")
            self._add("frame", drawn, {"title": name})
            return
        self._add("picture", drawn, {"png": base64.b64encode(data).decode()})

    # Charts

    def _trend(self, drawn: Drawn) -> None:
        element = drawn.element
        parts = {child.name: child for child in element.children}
        series = [child for child in element.children if child.name == "pg-trendseries"][:MANY]
        of = []
        for one in series:
            read = _variable(one.get("variable"))
            found = self._shown(read, one.get("id")) if read else []
            of += found
            if not found:
                place = f"{element.get('id')}.{one.get('id')}"
                self.report.add(
                    NOTED, place, f"shows {one.get('variable') or 'numbers of its own'}, which no block gives"
                )
        fixed = element.get("auto-scale") == "off"
        low, high = (length(element.get(f"yview-{end}")) for end in ("min", "max"))
        title = parts["pg-trendtitle"].get("title") if "pg-trendtitle" in parts else ""
        ends = {"low": low, "high": high} if fixed and low < high else {}
        self._add("trend", drawn, {"title": title, **ends}, of)

    def _contour(self, drawn: Drawn) -> None:
        element = drawn.element
        id_ = element.get("id")
        low, high = (length(element.get(f"{end}Elevation")) for end in ("min", "max"))
        joined = self.meant.joined.get(id_)
        read = self.meant.reads.get(id_) or (joined.first if joined else None)
        of = self.computed.shown(_name(id_, "heat"), joined) if joined else self._shown(read) if read else []
        rows = int(length(element.get("subdivision").partition(",")[0])) if read and _is_folded(read) else 0
        if not of:
            sums = "what a script made of several blocks" if joined else "numbers of its own"
            self.report.add(NOTED, id_, f"shows {sums}: bind the heat map to a block that computes them")
        scale = element.get("legend-visible") == "visible"
        lines = 8 if "line" in element.get("contourType") else 0
        ends = {"low": low, "high": high} if low < high else {}
        self._add("heat", drawn, {"title": " ", **ends, "rows": rows, "scale": scale, "lines": lines}, of)

    def _edit(self, drawn: Drawn) -> None:
        """An edit box, bound to the block that a script gives its text to."""
        element = drawn.element
        block, pin = self.meant.writes.get(element.get("id"), ("", ""))
        output = self.converter.shown(block, "output") if block in self.converter.blocks else None
        if output is None:
            self.report.add(NOTED, element.get("id"), f"held {element.get('text')!r} for a script: bind it to a block")
        entry = {"val": "value"}.get(pin, pin) if output else ""
        self._add("edit", drawn, {"title": " ", "entry": entry}, [Shown(output)] if output else [])

    def gadget(self, node: Node) -> None:
        """A block of the host that shows what is wired to it."""
        of = [
            one
            for link in self.converter.incoming.get(node.id, ())
            for one in self._linked(link.from_id, link.from_pin)
        ]
        if not of:
            self.page.notes.append({"text": node.symbol, "position": list(node.position)})
            self.report.add(NOTED, node.id, f"the gadget {node.symbol} shows nothing of a block; it is kept as a note")
            return
        kind = next(kind for kind, words in _GADGETS.items() if any(word in node.symbol.upper() for word in words))
        settings = node.settings
        low, high = settings.get("m_min", ""), settings.get("m_max", "")
        ends = {"low": length(low), "high": length(high)} if low and high and length(low) < length(high) else {}
        attrs = {"title": settings.get("m_labelname"), "unit": settings.get("m_unit"), **ends}
        known = {one.name for one in KINDS[kind].attrs}
        given = {name: value for name, value in attrs.items() if name in known}
        self._place(kind, node.id, node.position, _SIZES.get(kind, KINDS[kind].size), given, of[: KINDS[kind].takes])
        self.report.add(CHANGED, node.id, f"the gadget {node.symbol} is now a display: {kind}")

    def _linked(self, id_: str, pin: str) -> list[Shown]:
        """What a link to a gadget brings: an output, or through a gadget that parts a list, one of its elements."""
        node = self.converter.sheet.nodes.get(id_)
        if node is None or not node.is_gadget:
            output = self.converter.shown(id_, pin)
            return [Shown(output)] if output else []
        outs = [name for name in node.pins if name.startswith("out")]
        at = (outs.index(pin),) if pin in outs else ()
        sources = self.converter.incoming.get(id_, [])
        plain = [link for link in sources if link.from_id in self.converter.blocks]
        outputs = [self.converter.shown(link.from_id, link.from_pin) for link in plain]
        return [Shown(one, at) for one in outputs if one is not None]

    def _shown(self, read: Read, label: str = "") -> list[Shown]:
        """What a variable of the original means; nothing where no block has it."""
        output = self.converter.shown(read.block, read.pin)
        if output is None:
            return []
        return [Shown(output, tuple(int(one) for one in read.index if one.isdecimal()), label)]


def _variable(text: str) -> Read | None:
    """`ID.result_y[0][1]`, as series of trends and texts name what they show."""
    found = _VARIABLE.fullmatch(text.strip())
    if found is None or not found[2].startswith(RESULT):
        return None
    return Read(found[1], found[2], tuple(re.findall(r"\[([0-9]+)\]", found[3])))


def _is_folded(read: Read) -> bool:
    """True where a script unfolds a list into rows: `result_ref[0][i*28+j]`."""
    return any(_FOLDED.fullmatch(one) for one in read.index)


def _name(id_: str, kind: str) -> str:
    plain = "".join(char if char.isprintable() and char not in ":/^" else "_" for char in id_).strip()[:200]
    try:
        return checked_path(plain or kind)
    except VoxgradError:
        return kind
