# SPDX-License-Identifier: Apache-2.0
"""A task of enuSpace: the file of a library window, which defines blocks and wires none."""

from __future__ import annotations

from voxgrad.formats.enuspace.library import HELPERS, library, op_of
from voxgrad.formats.enuspace.xml_tree import Element
from voxgrad.formats.report import NOTED, Report
from voxgrad.graph.page import Page

_COLUMNS = 4
_STEP = (520.0, 60.0)


def is_palette(root: Element) -> bool:
    """True for a document that defines blocks and places none."""
    names = {element.name for element in root.walk()}
    return root.name == "svg" and "symbol" in names and not names & {"use", "pg-link"}


def palette_page(root: Element, title: str, report: Report) -> Page:
    """A page of notes, one per block with its pins: a task has nothing that could run."""
    page = Page(title or "task")
    symbols = [element for element in root.walk() if element.name == "symbol"]
    for number, symbol in enumerate(symbols):
        row, column = divmod(number, _COLUMNS)
        page.notes.append({"text": _described(symbol), "position": [column * _STEP[0], row * _STEP[1]]})
    unknown = [name for name in (symbol.get("id") for symbol in symbols) if not _is_here(name)]
    report.add(NOTED, title, f"is a task, a list of {len(symbols)} blocks, and no page: each is a note, nothing runs")
    if unknown:
        report.add(NOTED, title, f"blocks of it that are not here: {', '.join(unknown)}")
    return page


def _is_here(name: str) -> bool:
    known = library().get(name)
    return name in HELPERS or (known is not None and op_of(known) is not None)


def _described(symbol: Element) -> str:
    """A block in one line: its name, what goes in, what comes out."""
    pins = [element for element in symbol.walk() if element.name == "pg-pin"]

    def named(kind: str) -> str:
        # Version 4 calls the name of a pin its variable. The scope is the page, and no wire enters it.
        names = (pin.get("name") or pin.get("variable") for pin in pins if pin.get("pin-type") == kind)
        return ", ".join(name for name in names if name != "scope")

    return f"{symbol.get('id')}: {named('input')} -> {named('output')}"
