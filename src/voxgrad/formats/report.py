# SPDX-License-Identifier: Apache-2.0
"""What an import did with the parts of a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from voxgrad.errors import visible

CHANGED, NOTED, LOST = "changed", "noted", "lost"
"""`changed`: it is there and means the same, in another form. `noted`: it was drawing only. `lost`: it could not be
kept, and the page may not do what it did."""
RUNS, STOPS, MISSING = "runs", "stops", "missing"
"""`runs`: what a run of the page does. `stops`: why it cannot run as it is. `missing`: a file that it reads."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to tell: what happened to which part, and why."""

    kind: str
    place: str
    text: str

    def __str__(self) -> str:
        return visible(f"{self.kind}: {self.place}: {self.text}")


@dataclass(slots=True)
class Report:
    """Everything to tell about one import, in the order of the document."""

    remarks: list[Remark] = field(default_factory=list)
    _told: set[Remark] = field(default_factory=set)

    def add(self, kind: str, place: str, text: str) -> None:
        """Remember something; the same is told once."""
        remark = Remark(kind, place, text)
        if remark not in self._told:
            self._told.add(remark)
            self.remarks.append(remark)

    @property
    def lost(self) -> list[Remark]:
        """What could not be kept."""
        return [remark for remark in self.remarks if remark.kind == LOST]

    def as_data(self) -> list[dict[str, Any]]:
        """The remarks as plain data."""
        return [{"kind": one.kind, "place": one.place, "text": one.text} for one in self.remarks]

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks))
