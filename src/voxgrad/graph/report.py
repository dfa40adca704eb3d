# SPDX-License-Identifier: Apache-2.0
"""What a run did with every block, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

RAN, CACHED, FED, DEAD, FAILED, WAITING, UNNEEDED = "ran", "cached", "fed", "dead", "failed", "waiting", "not needed"
"""The states of a block after a run; `waiting` blocks were not reached, because the run failed or was cancelled."""


@dataclass(frozen=True, slots=True)
class BlockReport:
    """What happened to one block: its state, the reason in words, and how long it took."""

    block: str
    state: str
    reason: str
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        took = f" in {self.seconds * 1e3:.3g} ms" if self.state == RAN else ""
        return f"{self.block}: {self.state}{took} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of a run: a block was queued, started, done, cached, dead or failed."""

    block: str
    state: str
    index: int
    total: int
    seconds: float = 0.0
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The event as plain data, for JSON."""
        return asdict(self)
