# SPDX-License-Identifier: Apache-2.0
"""Changes the sources in small ways and runs the tests against each change.

python3 run mutants [--count 300] [--area geometry ...] [--seed 17] [--jobs 1] [--list] [--resume]
                   [--again [--first tests/graph/test_dims.py::test_sizes ...]]

A comparison is turned, a bound moved by one, a sign changed, operands exchanged, a condition dropped. Every change is
made in a copy of the tree (build/mutants), built where it is native, and tested up to the first test that fails. What
survives is listed with its place and its diff. Changes that cost only speed or change nothing stand with their reason
in tools/mutants/excused.json and are not counted. The same seed makes the same changes of the same sources.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.mutants.areas import AREAS, ROOT
from tools.mutants.change import Change, Excused
from tools.mutants.lanes import Lane
from tools.mutants.native import NativeLane

PLACE = ROOT / "build" / "mutants"
NOT_COUNTED = ("excused", "stillborn", "equivalent")
OPEN = ("survived", "stalled")


@dataclass(frozen=True)
class Result:
    """A change, and what became of it."""

    area: str
    file: str
    line: int
    kind: str
    before: str
    after: str
    diff: str
    state: str
    by: str
    """The test that noticed, or the reason why it is not counted."""

    @classmethod
    def of(cls, area: str, change: Change, state: str, by: str) -> Result:
        """What became of a change."""
        return cls(area, change.path, change.line, change.kind, *change.lines, change.diff(), state, by)

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a change from others, also after other lines of its file were edited."""
        return self.file, self.before, self.after


Pick = Callable[[str, Path], list[Change]]
"""The changes of an area of a tree that are to be tried out."""


def sample(count: int, seed: int) -> Pick:
    """Changes from all over the lines: one of each, so that lines with many operators do not rule.

    Each is drawn by its own text, so that an edit of one line leaves the changes of the others as they are.
    """
    whole = sum(area.share for area in AREAS.values())

    def draw(change: Change) -> bytes:
        return hashlib.sha256(repr((seed, change.path, change.lines)).encode()).digest()

    def pick(name: str, tree: Path) -> list[Change]:
        lines: dict[tuple[str, int], list[Change]] = {}
        for change in AREAS[name].changes(tree):
            lines.setdefault((change.path, change.line), []).append(change)
        drawn = sorted((min(changes, key=draw) for changes in lines.values()), key=lambda one: draw(one)[::-1])
        return drawn[: -(-count * AREAS[name].share // whole)]

    return pick


def same(name: str, tree: Path) -> list[Change]:
    """Those that were tried the last time, as far as the lines are still there."""
    wanted = {one.key for one in known(name)}
    found = {(change.path, *change.lines): change for change in AREAS[name].changes(tree)}
    return [change for key, change in found.items() if key in wanted]


def known(name: str) -> list[Result]:
    """The results when an area was last tried."""
    path = PLACE / f"{name}.json"
    return [Result(**one) for one in json.loads(path.read_text())["results"]] if path.exists() else []


def known_time(name: str) -> float:
    """Seconds of a processor that the same tests took when an area was last tried; 0 where that is not known."""
    path = PLACE / f"{name}.json"
    last = json.loads(path.read_text()) if path.exists() else {}
    return float(last["seconds"]) if last.get("tests") == list(AREAS[name].tests) else 0.0


class Round:
    """The changes of one area, tried out in several copies of the tree."""

    def __init__(self, name: str, pick: Pick, given: argparse.Namespace):
        self.name = name
        self.seed = given.seed
        self.apart = given.again
        self.first = given.first
        self.taken = known_time(name) if given.resume or given.again else 0.0
        kind = NativeLane if name == "native" else Lane
        self.lanes = [kind(PLACE / f"{name}-{number}", AREAS[name]) for number in range(given.jobs)]
        excused = Excused()
        again = OPEN if given.again else ()
        settled = {one.key: one for one in known(name) if one.state not in again} if given.again or given.resume else {}
        # From the copy: the tree itself may go on changing.
        changes = pick(name, self.lanes[0].folder)
        self.total = len(changes)
        self.results: list[Result] = []
        self.waiting: queue.SimpleQueue[Change] = queue.SimpleQueue()
        for change in changes:
            key = (change.path, *change.lines)
            if reason := excused.reason_of(*key):
                self.results.append(Result.of(name, change, "excused", reason))
            elif key in settled:
                self.results.append(settled[key])
            else:
                self.waiting.put(change)

    def go(self) -> list[Result]:
        """Try all of them out."""
        if not self.waiting.empty():
            taken = self.lanes[0].begin(self.taken)
            for lane in self.lanes[1:]:
                lane.adopt(self.lanes[0])
            self.taken = taken
            say(f"{self.name}: {self.total} changes; the tests take {taken:.0f} s of a processor without one")
            threads = [threading.Thread(target=self._work, args=(lane,)) for lane in self.lanes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self._keep()
        return self.results

    def _work(self, lane: Lane) -> None:
        while True:
            try:
                change = self.waiting.get_nowait()
            except queue.Empty:
                return lane.end()
            began = time.monotonic()
            result = Result.of(self.name, change, *lane.try_out(change, self._keenest(change), self.apart))
            self.results.append(result)
            line = f"{change.path}:{change.line} {change.kind}: {result.state} in {time.monotonic() - began:.0f} s"
            say(f"{self.name} {len(self.results)}/{self.total} {line} {result.by}")
            if result.state in OPEN:
                say(result.diff)
            self._keep()

    def _keenest(self, change: Change) -> list[str]:
        """The tests that were asked for, then those that noticed most changes so far, those of the same file first."""
        killed = [one for one in self.results if one.state == "killed"]
        counts = Counter(one.by for one in killed) + Counter(
            {one.by: 1000 for one in killed if one.file == change.path}
        )
        return [*self.first, *(name for name, _ in counts.most_common())]

    def _keep(self) -> None:
        """A run that is ended early goes on with --resume."""
        kept = {
            "seed": self.seed,
            "seconds": self.taken,
            "tests": list(AREAS[self.name].tests),
            **score(self.results).get(self.name, {}),
            "results": list(map(asdict, self.results)),
        }
        part = PLACE / f"{self.name}.json.part"
        part.write_text(json.dumps(kept, indent=1))
        part.replace(PLACE / f"{self.name}.json")


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
    parser.add_argument("--resume", action="store_true", help="go on with a run that was ended early")
    parser.add_argument("--again", action="store_true", help="only what survived the last time; the rest is kept")
    parser.add_argument("--first", action="append", default=[], help="the start of the names of tests to begin with")
    return parser.parse_args()


def main() -> int:
    """The command."""
    given = options()
    pick = same if given.again else sample(given.count, given.seed)
    results = []
    for name in given.area or AREAS:
        if given.list:
            for change in pick(name, ROOT):
                say(f"{name} {change.path}:{change.line} {change.kind}\n{change.diff()}")
        else:
            results += Round(name, pick, given).go()
    return report(results) if results else 0


def report(results: list[Result]) -> int:
    """The survivors and the score; 1 where an area is below its bar."""
    for result in results:
        if result.state in OPEN:
            say(f"\n{result.state.upper()} {result.file}:{result.line} {result.kind}\n{result.diff}")
    found = score(results)
    say("")
    for name, one in found.items():
        say(f"{name:10} {one['killed']} of {one['counted']} killed, {one['score']} % (bar {one['bar']} %); "
            f"{one['excused']} excused, {one['equivalent']} equivalent, {one['stillborn']} stillborn")  # fmt: skip
    say(f"details: {PLACE}")
    return int(any(one["score"] < one["bar"] for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
