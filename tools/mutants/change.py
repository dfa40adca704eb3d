# SPDX-License-Identifier: Apache-2.0
"""A change of one place of one file, and the list of those that cannot change a result."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from pathlib import Path

EXCUSED = Path(__file__).with_name("excused.json")


@dataclass(frozen=True)
class Change:
    """Bytes `start..end-1` of a file, replaced. `kind` says in a word what was done."""

    path: str
    line: int
    start: int
    end: int
    new: str
    kind: str

    def apply(self, text: bytes) -> bytes:
        """The changed file."""
        return text[: self.start] + self.new.encode() + text[self.end :]

    def lines(self, text: bytes) -> tuple[str, str]:
        """What is taken away and what comes instead, whole lines, without their indentation."""
        before, after = (one.decode().splitlines() for one in (text, self.apply(text)))
        _, a, b, c, d = next(part for part in difflib.SequenceMatcher(None, before, after, False).get_opcodes()
                             if part[0] != "equal")  # fmt: skip
        return "\n".join(map(str.strip, before[a:b])), "\n".join(map(str.strip, after[c:d]))

    def diff(self, text: bytes) -> str:
        """As people read changes."""
        before, after = (one.decode().splitlines() for one in (text, self.apply(text)))
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])


class Excused:
    """Changes that only make a call slower, or that change nothing, each with the reason; found by the text of lines.

    An entry without "after" stands for every change of its line.
    """

    def __init__(self, path: Path = EXCUSED):
        self._reasons: dict[tuple[str, str, str], str] = {}
        for entry in json.loads(path.read_text()):
            self._reasons[entry["file"], entry["before"], entry.get("after", "")] = entry["reason"]

    def reason(self, change: Change, text: bytes) -> str:
        """Why a change is not counted, or nothing."""
        before, after = change.lines(text)
        found = self._reasons.get((change.path, before, after)) or self._reasons.get((change.path, before, ""))
        return found or ""
