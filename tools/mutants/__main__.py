# SPDX-License-Identifier: Apache-2.0
"""Changes the sources in small ways and runs the tests against each change.

python3 run mutants [--count 300] [--area geometry ...] [--seed 17] [--jobs 1] [--list] [--again]

A comparison is turned, a bound moved by one, a sign changed, operands exchanged, a condition dropped. Every change is
made in a copy of the tree (build/mutants), built where it is native, and tested up to the first test that fails. What
survives is listed with its place and its diff. Changes that cost only speed or change nothing stand with their reason
in tools/mutants/excused.json and are not counted. The same seed makes the same changes of the same sources.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.mutants.areas import AREAS, ROOT
from tools.mutants.change import Change, Excused
from tools.mutants.lanes import Lane
from tools.mutants.native import NativeLane

PLACE = ROOT / "build" / "mutants"
NOT_COUNTED = ("excused", "stillborn", "equivalent")


@dataclass(frozen=True)
class Result:
    """A change, and what became of it."""

    area: str
    change: Change
    state: str
    by: str
    """The test that noticed, or the reason why it is not counted."""

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        before, after = self.change.lines
        return {"area": self.area, "file": self.change.path, "line": self.change.line, "kind": self.change.kind,
                "before": before, "after": after, "state": self.state, "by": self.by}  # fmt: skip


Pick = Callable[[str, Path], list[Change]]
"""The changes of an area of a tree that are to be tried out."""


def sample(count: int, seed: int) -> Pick:
    """Changes from all over the lines: one of each, so that lines with many operators do not rule."""
    whole = sum(area.share for area in AREAS.values())

    def pick(name: str, tree: Path) -> list[Change]:
        chance = random.Random(seed)
        lines: dict[tuple[str, int], list[Change]] = {}
        for change in AREAS[name].changes(tree):
            lines.setdefault((change.path, change.line), []).append(change)
        places = list(lines.values())
        chance.shuffle(places)
        return [chance.choice(changes) for changes in places[: -(-count * AREAS[name].share // whole)]]

    return pick


def survivors(name: str, tree: Path) -> list[Change]:
    """What survived when an area was last tried, as far as the same line is still there."""
    path = PLACE / f"{name}.json"
    known = json.loads(path.read_text())["results"] if path.exists() else []
    wanted = {(one["file"], one["before"], one["after"]) for one in known if one["state"] == "survived"}
    return [change for change in AREAS[name].changes(tree) if (change.path, *change.lines) in wanted]


class Round:
    """The changes of one area, tried out in several copies of the tree."""

    def __init__(self, name: str, pick: Pick, jobs: int):
        self.name = name
        kind = NativeLane if name == "native" else Lane
        self.lanes = [kind(PLACE / f"{name}-{number}", AREAS[name]) for number in range(jobs)]
        # From the copy: the tree itself may go on changing.
        changes = pick(name, self.lanes[0].folder)
        self.total = len(changes)
        excused = Excused()
        reasons = [(change, excused.reason(change)) for change in changes]
        self.results = [Result(name, change, "excused", reason) for change, reason in reasons if reason]
        self.waiting: queue.SimpleQueue[Change] = queue.SimpleQueue()
        for change, reason in reasons:
            if not reason:
                self.waiting.put(change)

    def go(self) -> list[Result]:
        """Try all of them out."""
        taken = self.lanes[0].begin()
        for lane in self.lanes[1:]:
            lane.adopt(self.lanes[0])
        say(f"{self.name}: {self.total} changes; the tests take {taken:.0f} s without one")
        threads = [threading.Thread(target=self._work, args=(lane,)) for lane in self.lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.results

    def _work(self, lane: Lane) -> None:
        while True:
            try:
                change = self.waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            result = Result(self.name, change, *lane.try_out(change))
            self.results.append(result)
            line = f"{change.path}:{change.line} {change.kind}: {result.state} in {time.monotonic() - began:.0f} s"
            say(f"{self.name} {len(self.results)}/{self.total} {line} {result.by}")
            if result.state == "survived":
                say(change.diff())


def say(text: str) -> None:
    """A line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def score(results: list[Result]) -> dict[str, dict[str, Any]]:
    """Counts by area."""
    made = {}
    for name in dict.fromkeys(result.area for result in results):
        states = [result.state for result in results if result.area == name]
        counted = [state for state in states if state not in NOT_COUNTED]
        killed = sum(state in ("killed", "hung") for state in counted)
        made[name] = {"changes": len(states), "counted": len(counted), "killed": killed,
                      "survived": len(counted) - killed, **{one: states.count(one) for one in NOT_COUNTED},
                      "score": round(100 * killed / max(1, len(counted)), 1), "bar": AREAS[name].bar}  # fmt: skip
    return made


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="run mutants", description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=330, help="how many changes over all areas")
    parser.add_argument("--area", action="append", choices=AREAS, help="only this one; may be given several times")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work at the same time")
    parser.add_argument("--list", action="store_true", help="only say what would be changed")
    parser.add_argument("--again", action="store_true", help="only what survived the last time")
    return parser.parse_args()


def main() -> int:
    """The command."""
    given = options()
    pick = survivors if given.again else sample(given.count, given.seed)
    results = []
    for name in given.area or AREAS:
        if given.list:
            for change in pick(name, ROOT):
                say(f"{name} {change.path}:{change.line} {change.kind}\n{change.diff()}")
            continue
        found = Round(name, pick, given.jobs).go()
        results += found
        kept = {"seed": given.seed, **score(found).get(name, {}), "results": [one.as_data() for one in found]}
        path = PLACE / f"{name}.{'again.' if given.again else ''}json"
        path.write_text(json.dumps(kept, indent=1))
    return report(results) if results else 0


def report(results: list[Result]) -> int:
    """The survivors and the score; 1 where an area is below its bar."""
    for result in results:
        if result.state == "survived":
            say(f"\nSURVIVED {result.change.path}:{result.change.line} {result.change.kind}")
            say(result.change.diff())
    found = score(results)
    say("")
    for name, one in found.items():
        say(f"{name:10} {one['killed']} of {one['counted']} killed, {one['score']} % (bar {one['bar']} %); "
            f"{one['excused']} excused, {one['equivalent']} equivalent, {one['stillborn']} stillborn")  # fmt: skip
    say(f"details: {PLACE}")
    return int(any(one["score"] < one["bar"] for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
