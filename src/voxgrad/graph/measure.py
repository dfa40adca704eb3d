# SPDX-License-Identifier: Apache-2.0
"""A page run with nothing kept from before, once or several times: what it gave, and how long it took.

A first run loads libraries and touches memory that is new. Where there are several, its time stands apart, and the
median and the spread are those of the others.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from voxgrad.catalog import dtypes
from voxgrad.graph.block import Block, Output
from voxgrad.graph.lint import left_out
from voxgrad.graph.page import Page
from voxgrad.graph.report import Progress
from voxgrad.graph.values import Array


class Session(Protocol):
    """What runs a page: `ClientSession`, or the same of another framework."""

    on_progress: Callable[[Progress], None] | None

    def loop(
        self, count: int, fetches: Sequence[Output], feeds: Mapping[str, Any], targets: Sequence[Block], /
    ) -> list[Array]:
        """The results of the last cycle."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of several runs, each with nothing kept from before. `first` is None where there was only one."""

    runs: tuple[float, ...] = ()
    first: float | None = None

    @staticmethod
    def of(seconds: Sequence[float]) -> Times:
        """The first apart, where others follow."""
        return Times(tuple(seconds[1:]), seconds[0]) if len(seconds) > 1 else Times(tuple(seconds))

    @property
    def median(self) -> float | None:
        """The middle of the runs."""
        return statistics.median(self.runs) if self.runs else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The shortest and the longest run, where there were several."""
        return (min(self.runs), max(self.runs)) if len(self.runs) > 1 else None


@dataclass(frozen=True, slots=True)
class Work:
    """What is run: outputs by name (none: what the page shows), feeds by name, cycles of one run, and runs to time."""

    fetches: tuple[str, ...] = ()
    feeds: Mapping[str, Any] = field(default_factory=dict)
    cycles: int = 1
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What the last run gave, by the paths of outputs, and the times of all: of the whole and of its blocks."""

    results: dict[str, Array]
    times: Times
    blocks: dict[str, Times]


def shown_outputs(page: Page) -> list[Output]:
    """What a run of a page shows where nobody says: its outputs, else those that no block reads."""
    named = list(page.outputs.values())
    if not named:
        idle = {*page.initializers, *left_out(page.infer())}
        ends = [block for block in page.blocks if not block.readers and block not in idle]
        named = [output for block in ends for output in block.outputs]
    return [output for output in named if output.dtype != dtypes.RESOURCE]


def measure(page: Page, open_session: Callable[[Page], Session], work: Work) -> Measured:
    """Run a page in a new session, and again in others where several runs are to be timed."""
    fetches = [page.output(name) for name in work.fetches] or shown_outputs(page)
    whole: list[float] = []
    blocks: dict[str, list[float]] = {}
    values: list[Array] = []
    for _ in range(work.repeats + 1 if work.repeats > 1 else 1):
        session = open_session(page)
        values, seconds, took = timed(
            session, lambda session=session: session.loop(work.cycles, fetches, work.feeds, page.targets)
        )
        whole.append(seconds)
        for name, one in took.items():
            blocks.setdefault(name, []).append(one)
    results = {output.path: value for output, value in zip(fetches, values, strict=True)}
    return Measured(results, Times.of(whole), {name: Times.of(seconds) for name, seconds in blocks.items()})


def timed(session: Session, run: Callable[[], list[Array]]) -> tuple[list[Array], float, dict[str, float]]:
    """What a run of a session gave, the seconds that it took, and those of its blocks."""
    took: dict[str, float] = {}
    session.on_progress = lambda event: _note(took, event)
    started = time.perf_counter()
    values = run()
    return values, time.perf_counter() - started, took


def _note(took: dict[str, float], event: Progress) -> None:
    """Of several cycles, the time of a block is that of all of them."""
    if event.state == "done":
        took[event.block] = took.get(event.block, 0.0) + event.seconds
