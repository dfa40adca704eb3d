# SPDX-License-Identifier: Apache-2.0
"""Several values in one text, as a sweep takes them: `SAME,VALID`, `{1,2,2,2,1},{1,3,3,3,1}`, `range(0, 1, 0.25)`."""

from __future__ import annotations

import re

from voxgrad.formats.text.lists import CLOSING
from voxgrad.formats.text.reader import Reader
from voxgrad.formats.text.values import parse_value

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_RANGE = re.compile(r"\s*range\s*\([^()]*\)\s*")


def split_values(text: str, argument: str = "values") -> list[str]:
    """The values of a text, between commas outside of braces and quotes; `range(...)` alone stands for its numbers."""
    if _RANGE.fullmatch(text):
        # 0.1 * 3 is 0.30000000000000004: nobody typed that.
        return [f"{one:.12g}" if isinstance(one, float) else str(one) for one in parse_value(text).tolist()]
    reader = Reader(text, argument, "text")
    found: list[str] = []
    open_: list[str] = []
    start = 0
    while not reader.done:
        if reader.char == '"' and reader.match(_QUOTED) is not None:
            continue
        if reader.char in CLOSING:
            open_.append(CLOSING[reader.char])
        elif reader.char in CLOSING.values() and (not open_ or open_.pop() != reader.char):
            reader.fail("close the braces that are open")
        elif reader.char == "," and not open_:
            found.append(text[start : reader.at])
            start = reader.at + 1
        reader.at += 1
    if open_:
        reader.fail(f"close the braces with {open_[-1]}")
    values = [one.strip() for one in (*found, text[start:])]
    if "" in values:
        reader.fail("have a value between two commas, and one behind the last", "Write SAME,VALID.")
    return values
