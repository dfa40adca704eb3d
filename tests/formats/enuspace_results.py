# SPDX-License-Identifier: Apache-2.0
"""Which stored result of an original page belongs to which output, by the rules of the original's session.

It fetched the outputs that are wired to the session, each followed by all that it needs: pin by pin in the order of the
library, every block once, so that of a block with several outputs one has a result. It wrote the values in that order,
and passed over a handle without passing over its block: from there on every value lies one block further to the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.formats.enuspace import Imported, library
from voxgrad.formats.enuspace.sheet import Link, Sheet, read_sheet
from voxgrad.formats.enuspace.xml_tree import parse_xml
from voxgrad.formats.report import Report

Array = np.ndarray[Any, Any]
Results = dict[str, dict[str, Array]]

PASSED_ON = ("InputList", "AddSymbolicGradients")
"""Blocks that are followed and have no result."""
OPERATIONS = ("FIFOQueue", "Operation")
"""Blocks whose output was declared an operation, which is not fetched."""


def stored_results(path: Path, found: Imported) -> Results:
    """The results of the last run, each at the output that it is the value of."""
    sheet = read_sheet(parse_xml(path.read_bytes(), path.name), path.name, Report())
    fetched = list(dict.fromkeys(_fetched(sheet)))
    values = [(id_, pin) for id_, pin in fetched if not _is_handle(found, id_)]
    made: Results = {}
    for (id_, pin), (written_id, written_pin) in zip(values, fetched, strict=False):
        made.setdefault(id_, {})[pin] = found.expected[written_id][written_pin]
    return made


def _is_handle(found: Imported, id_: str) -> bool:
    return found.page[id_].output(0).dtype == dtypes.RESOURCE


def _fetched(sheet: Sheet) -> Iterator[tuple[str, str]]:
    into: dict[str, list[Link]] = {}
    for link in sheet.links:
        into.setdefault(link.to_id, []).append(link)
    seen: set[str] = set()

    def followed(link: Link) -> Iterator[tuple[str, str]]:
        symbol = sheet.nodes[link.from_id].symbol
        if symbol in OPERATIONS or link.from_id in seen:
            return
        if symbol not in PASSED_ON:
            seen.add(link.from_id)
            yield link.from_id, link.from_pin
        pins = library()[symbol].inputs
        for one in sorted(into.get(link.from_id, []), key=lambda one: pins.index(one.to_pin)):
            yield from followed(one)

    sessions = [node.id for node in sheet.nodes.values() if node.symbol == "ClientSession"]
    for link in sheet.links:
        if link.to_id in sessions and link.to_pin == "fetch_outputs":
            yield from followed(link)


def differing(results: Results, stored: Results, version: str = "3", slack: float = 0.0) -> list[str]:
    """The outputs whose result is not what was stored."""
    return [
        f"{block}.{pin}"
        for block, pins in stored.items()
        for pin, value in pins.items()
        if not _agrees(results.get(block, {}).get(pin), value, version, slack)
    ]


def _agrees(result: Array | None, stored: Array, version: str, slack: float) -> bool:
    """Texts as they were shown. Numbers were written with six decimals; the web form of version 4 has six digits
    of them, and of an array the first element alone."""
    # A result whose size did not change kept the shape that the pin had before: [1][2] for {2,1}.
    if result is None or result.size != stored.size:
        return False
    if stored.dtype == object:
        return shown(result) == stored.ravel().tolist()
    made, wanted = result.ravel().astype(float), stored.ravel().astype(float)
    if version == "4":
        return f"{float(f'{made[0]:.6f}'):g}" == f"{wanted[0]:g}"
    rounding = 4 * np.finfo(np.float32).eps if result.dtype == np.float32 else 1e-12
    return bool(np.all(np.abs(made - wanted) <= 5e-7 + rounding * np.maximum(1, np.abs(wanted)) + slack))


def shown(texts: Array) -> list[bytes]:
    """Texts as results show them: in hexadecimal where one of them holds a control byte. A char was signed."""
    items: list[bytes] = texts.ravel().tolist()
    if all(byte >= 0x20 or byte in b"\n\r\t" for item in items for byte in item):
        return items
    return ["".join(f"{byte:02x}" if byte < 0x80 else f"ffffff{byte:02x}" for byte in item).encode() for item in items]
