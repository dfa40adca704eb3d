# SPDX-License-Identifier: Apache-2.0
"""How the cycles of a run follow each other: step by step, at a rate, until it is stopped."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from voxgrad.errors import Fault, InvalidArgumentError

FOREVER = "forever"
ASKED = "cycle {0}: Enter for the next, r to run on, q to end: "
Results = TypeVar("Results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of a run that say how its cycles follow each other."""
    parser.add_argument(
        "--cycles",
        type=_cycles,
        default=1,
        metavar="N",
        help=f"how often to run (default 1), or {FOREVER}: until Ctrl-C",
    )
    parser.add_argument("--period", type=_seconds, default=0.0, metavar="SECONDS", help="start a cycle every so often")
    parser.add_argument("--every-cycle", action="store_true", help="show the results of every cycle, not only the last")
    parser.add_argument("--step", action="store_true", help="show the results of a cycle, and wait for Enter")


def _cycles(text: str) -> int | None:
    """A number of cycles, None for no end."""
    if text == FOREVER:
        return None
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, or {FOREVER}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("must be 0 or more seconds")
    return value


@dataclass(slots=True)
class Pace:
    """How many cycles there are, None for no end, how many seconds apart they start, and what is between them."""

    cycles: int | None
    period: float
    shows: bool
    asks: bool

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Pace | None:
        """What the arguments say; None for cycles one after the other, of which the last is shown."""
        shows = arguments.every_cycle or arguments.step
        if shows and arguments.json:
            raise InvalidArgumentError(
                Fault("VG052", "run", "--json", "be of the last cycle alone", "--every-cycle, --step")
            )
        if arguments.cycles is not None and not (shows or arguments.period):
            return None
        # A step is taken until somebody says that it was the last.
        count = None if arguments.step and arguments.cycles == 1 else arguments.cycles
        return cls(count, arguments.period, shows, arguments.step)

    def run(self, cycle: Callable[[], Results], show: Callable[[Results], None]) -> Results:
        """The results of the last whole cycle. Ctrl-C freezes a run without an end, and stops any other."""
        results: Results | None = None
        try:
            for number in itertools.count(1):
                started = time.monotonic()
                results = cycle()
                if self.shows:
                    print(f"cycle {number}:")
                    show(results)
                if number == self.cycles or self._is_over(number):
                    break
                time.sleep(max(0.0, started + self.period - time.monotonic()))
        except KeyboardInterrupt:
            if self.cycles is not None or results is None:
                raise
            print(f"frozen in cycle {number}", file=sys.stderr)
        assert results is not None
        return results

    def _is_over(self, number: int) -> bool:
        if not self.asks:
            return False
        print(ASKED.format(number), end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        self.asks = answer.strip().lower() != "r"
        return not answer or answer.strip().lower() == "q"
