# SPDX-License-Identifier: Apache-2.0
"""A change of one place of one file, and the list of those that cannot change a result."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

EXCUSED = Path(__file__).with_name("excused.json")


@dataclass(frozen=True)
class Change:
    """Bytes `start..end-1` of a file, replaced. `kind` says in a word what was done."""

    path: str
    source: bytes = field(repr=False)
    start: int
    end: int
    new: str
    kind: str

    @property
    def line(self) -> int:
        """Where it is, counted from 1."""
        return self.source.count(b"\n", 0, self.start) + 1

    @property
    def changed(self) -> bytes:
        """The changed file."""
        return self.source[: self.start] + self.new.encode() + self.source[self.end :]

    @cached_property
    def lines(self) -> tuple[str, str]:
        """What is taken away and what comes instead, whole lines, without their indentation."""
        first = self.source.rfind(b"\n", 0, self.start) + 1
        last = self.source.find(b"\n", self.end)
        old, new = self.source[first:last], self.changed[first : last + len(self.changed) - len(self.source)]
        before, after = ("\n".join(map(str.strip, one.decode().splitlines())) for one in (old, new))
        return before, after

    def diff(self) -> str:
        """As people read changes."""
        before, after = (one.decode().splitlines() for one in (self.source, self.changed))
        return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])


class Excused:
    """Changes that only make a call slower, or that change nothing, each with the reason; found by the text of lines.

    An entry without "after" stands for every change of its line.
    """

    def __init__(self, path: Path = EXCUSED):
        self._reasons: dict[tuple[str, str, str], str] = {}
        for entry in json.loads(path.read_text()):
            self._reasons[entry["file"], entry["before"], entry.get("after", "")] = entry["reason"]

    def reason_of(self, path: str, before: str, after: str) -> str:
        """Why a change of these lines is not counted, or nothing."""
        return self._reasons.get((path, before, after)) or self._reasons.get((path, before, "")) or ""
