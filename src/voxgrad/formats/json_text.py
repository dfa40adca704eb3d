# SPDX-License-Identifier: Apache-2.0
"""JSON as text: strict reading with the place of an error, and a canonical layout with small diffs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from voxgrad.errors import Fault, VoxgradError, show
from voxgrad.formats.text.reader import point_at

WIDTH = 120
MAX_BYTES = 64 * 2**20
"""The largest JSON document that is read."""
MAX_DEPTH = 64

Path = tuple[str | int, ...]
"""Where a value stands: keys and indices from the root."""


def pointer(path: Path) -> str:
    """A path as a JSON pointer, `/blocks/3/attrs`."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def broken(
    source: str, wanted: str, got: object, *, path: Path = (), text: str | Places = "", remedy: str = ""
) -> Fault:
    """A fault of a document. With its text, the message shows the line."""
    places = text if isinstance(text, Places) else Places(text)
    at = places.of(path) if places.text else None
    line = "" if at is None else f":{places.text.count(chr(10), 0, at) + 1}"
    where = "" if at is None else point_at(places.text, at)
    return Fault("VG053", f"{source}{line}", pointer(path) or "the document", wanted, str(got), remedy, where)


def read_json(data: bytes, source: str) -> tuple[Any, str]:
    """The value of a JSON document and its text. Duplicate keys, NaN and deep nesting are errors."""
    if len(data) > MAX_BYTES:
        raise VoxgradError(broken(source, f"have at most {MAX_BYTES:,} bytes", f"{len(data):,}"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise VoxgradError(broken(source, "be UTF-8 text", f"byte {data[error.start]:#04x} at {error.start}")) from None
    _check_depth(text, source)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), text
    except json.JSONDecodeError as error:
        raise VoxgradError(_syntax(source, text, error.pos, error.msg)) from None
    except (ValueError, RecursionError) as error:
        raise VoxgradError(broken(source, "be JSON", str(error) or type(error).__name__)) from None


def _syntax(source: str, text: str, at: int, reason: str) -> Fault:
    line = text.count("\n", 0, at) + 1
    return Fault("VG053", f"{source}:{line}", "the document", "be JSON", reason, "", point_at(text, at))


def _check_depth(text: str, source: str) -> None:
    """Refuse deep nesting before the parser recurses into it."""
    depth = 0
    for match in re.finditer(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise VoxgradError(_syntax(source, text, match.start(), f"more than {MAX_DEPTH} levels of nesting"))
        elif mark in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        # A set's add gives None: the first name that was seen before.
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {show(repr(twice))} twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name}, which JSON does not have")


_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Places:
    """Where the values of a valid JSON text stand. Each object and list is looked through once, however many ask."""

    def __init__(self, text: str):
        self.text = text
        self._inside: dict[int, dict[str | int, int]] = {}

    def of(self, path: Path) -> int:
        """The index in the text of the value at a path, or of the nearest value around it."""
        at = _skip(self.text, 0)
        for part in path:
            if at not in self._inside:
                self._inside[at] = dict(_entries(self.text, at))
            if part not in self._inside[at]:
                break
            at = self._inside[at][part]
        return at


def locate(text: str, path: Path) -> int:
    """As `Places.of`, for one path."""
    return Places(text).of(path)


def _entries(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Keys or indices, and where their values start, of the object or list that starts at `at`."""
    named = text[at : at + 1] == "{"
    if not named and text[at : at + 1] != "[":
        return
    at = _skip(text, at + 1)
    index = 0
    while at < len(text) and text[at] not in "]}":
        name: str | int = index
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield name, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        index += 1


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def write_json(value: Any) -> str:
    """Canonical text: what fits on a line stands on one, the rest is broken entry by entry, in the order given."""
    return _laid_out(value, 0, 0) + "\n"


def _laid_out(value: Any, indent: int, used: int) -> str:
    compact = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value:
        return compact
    top = indent == 0
    if not top and indent + used + len(compact) <= WIDTH:
        return compact
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        return _filled(value, indent)
    inner = " " * (indent + 1)
    if isinstance(value, dict) and len(value) == 1:
        ((key, item),) = value.items()
        head = json.dumps(key, ensure_ascii=False) + ": "
        return "{" + head + _laid_out(item, indent, used + len(head) + 1) + "}"
    if isinstance(value, dict):
        rows = []
        for key, item in value.items():
            head = json.dumps(key, ensure_ascii=False) + ": "
            rows.append(inner + head + _laid_out(item, indent + 1, len(head)))
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    items = [inner + _laid_out(item, indent + 1, 1) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"


def _filled(items: Sequence[Any], indent: int) -> str:
    """A long list of plain values: as many on a line as fit."""
    lines: list[str] = []
    line = ""
    for item in items:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False) + ","
        if line and indent + 2 + len(line) + len(text) > WIDTH:
            lines.append(line)
            line = text
        else:
            line = f"{line} {text}" if line else text
    lines.append(line.removesuffix(","))
    inner = "\n" + " " * (indent + 1)
    return f"[{inner}{inner.join(lines)}\n{' ' * indent}]"
