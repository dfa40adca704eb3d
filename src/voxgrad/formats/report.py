# SPDX-License-Identifier: Apache-2.0
"""What an import did with the parts of a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from voxgrad.errors import visible
from voxgrad.graph.problems import Fix

CHANGED, NOTED, LOST = "changed", "noted", "lost"
"""`changed`: it is there and means the same, in another form. `noted`: it was drawing only. `lost`: it could not be
kept, and the page may not do what it did."""
RUNS, STOPS, MISSING = "runs", "stops", "missing"
"""`runs`: what a run of the page does. `stops`: why it cannot run as it is. `missing`: a file that it reads."""
SCRIPT = "script"
"""What a script of the document did: it is not executed, and the remark says what does the same here."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to tell: what happened to which part, and why. `page.apply` carries out one of its fixes."""

    kind: str
    place: str
    text: str
    fixes: tuple[Fix, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        told = [f"{self.kind}: {self.place}: {self.text}", *(f"  fix: {fix.title}" for fix in self.fixes)]
        return "\n".join(map(visible, told))


@dataclass(slots=True)
class Report:
    """Everything to tell about one import, in the order of the document."""

    remarks: list[Remark] = field(default_factory=list)
    _told: set[Remark] = field(default_factory=set)

    def add(self, kind: str, place: str, text: str, fixes: tuple[Fix, ...] = ()) -> None:
        """Remember something; the same is told once."""
        remark = Remark(kind, place, text, fixes)
        if remark not in self._told:
            self._told.add(remark)
            self.remarks.append(remark)

    @property
    def lost(self) -> list[Remark]:
        """What could not be kept."""
        return [remark for remark in self.remarks if remark.kind == LOST]

    @property
    def missing(self) -> list[Remark]:
        """Files that the page reads and that are not there yet."""
        return [remark for remark in self.remarks if remark.kind == MISSING]

    def as_data(self) -> list[dict[str, Any]]:
        """The remarks as plain data."""
        return [
            {"kind": one.kind, "place": one.place, "text": one.text, "fixes": [fix.as_dict() for fix in one.fixes]}
            for one in self.remarks
        ]

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks))
