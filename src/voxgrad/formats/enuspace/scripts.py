# SPDX-License-Identifier: Apache-2.0
"""Scripts of a page, in Lua or JavaScript: none is executed; the report says what each did, and what does it here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from voxgrad.formats.enuspace.sheet import RESULT, Sheet
from voxgrad.formats.enuspace.xml_tree import Element
from voxgrad.formats.report import SCRIPT, Report

EVENTS = {
    "_oninit": "at the start", "_onload": "at the start", "_onunload": "at the end", "_ontask": "in every cycle",
    "_ontaskview": "at every drawing", "_onmousedown": "on a click", "_onmouseup": "on a click",
    "_onvaluechange": "when a value changed",
}  # fmt: skip
"""When the host called a function of a script."""

MAX_SCRIPT = 100_000
"""Characters of a script that are looked at."""
_MAX_SHOWN = 6
_FUNCTION = re.compile(r"function\s+([\w.:]+)\s*\([^)]*\)?[\s{]*")
_WRITTEN = re.compile(r"(?:local\s+|var\s+|let\s+)?([A-Za-z_]\w*(?:\.\w+)+)(?:\[[^\]]*\])*\s*=(?!=)(.*)")
_CALLED = re.compile(r"([A-Za-z_][\w.:]*)\s*\(")
_NAMED = re.compile(r"[A-Za-z_]\w*\.\w+")
_WORDS = {"if", "elseif", "for", "while", "until", "return", "function", "switch"}


@dataclass(slots=True)
class _Function:
    """What a function of a script writes, reads and calls, each once and in order."""

    name: str
    written: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    called: dict[str, None] = field(default_factory=dict)


def tell_scripts(root: Element, sheet: Sheet, report: Report) -> None:
    """A remark for every function of every script on the page."""
    ids = {element.get("id") for element in root.walk(closed="use")}
    for element in root.walk(closed="use"):
        if element.name == "script" and element.text.strip():
            for function in _functions(element.text[:MAX_SCRIPT]):
                function.read = {name: None for name in function.read if name.partition(".")[0] in ids}
                text = f"{_told(function)}. It is not executed{_instead(function, sheet, ids)}"
                report.add(SCRIPT, f"{element.get('id')} {function.name}".strip(), text)


def _functions(text: str) -> Iterator[_Function]:
    """The functions of a script that do something; what stands outside of them has no name."""
    made = [_Function("")]
    for line in re.split(r"[\n;]", text):
        statement = line.strip()
        start = _FUNCTION.match(statement)
        if start is not None:
            made.append(_Function(start[1]))
            statement = statement[start.end() :]
        if not statement.startswith(("--", "//")):
            _read_statement(statement, made[-1])
    return (function for function in made if function.written or function.called)


def _read_statement(statement: str, function: _Function) -> None:
    written = _WRITTEN.match(statement)
    if written is not None:
        function.written[written[1]] = None
        function.read |= dict.fromkeys(_NAMED.findall(written[2]))
        return
    called = _CALLED.match(statement)
    if called is not None and called[1] not in _WORDS:
        function.called[called[1]] = None


def _told(function: _Function) -> str:
    parts = []
    if function.written:
        source = f" from {_listed(function.read)}" if function.read else ""
        parts.append(f"wrote {_listed(function.written)}{source}")
    if function.called:
        parts.append(f"called {_listed(function.called)}")
    when = EVENTS.get(function.name, "when it was called" if function.name else "at the start")
    return f"{when} it {' and '.join(parts)}"


def _instead(function: _Function, sheet: Sheet, ids: Collection[str]) -> str:
    """What does the same here: a feed for a pin that was written, a display for what was shown, else a program."""
    fed = [name for name in function.written if _is_block(name, sheet)]
    if fed:
        return f": give {_listed(fed)} a value with --feed or session.run(feeds=...), a new one each cycle with loop"
    if function.written and not any(name.partition(".")[0] in ids for name in function.written):
        return "; what it wrote is not on the page"
    shown = [name.replace(f".{RESULT}", ".") for name in function.read if f".{RESULT}" in name]
    if shown:
        return f": a display of {_listed(shown)} shows it"
    return ", and changed drawings alone" if function.written else ": call from Python, between the cycles of a loop"


def _is_block(name: str, sheet: Sheet) -> bool:
    node = sheet.nodes.get(name.partition(".")[0])
    return node is not None and not node.is_gadget


def _listed(names: Collection[str]) -> str:
    shown = ", ".join([*names][:_MAX_SHOWN])
    return f"{shown} and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else shown
