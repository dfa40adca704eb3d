# SPDX-License-Identifier: Apache-2.0
"""Uses one build in random ways until the time is over, and says at once what went wrong.

python3 run soak [--minutes 60] [--seed 1] [--kind forks ...] [--sanitize]
python3 run soak --forks 10000 --collections 1000000 [--minutes 120]

Every round is one kind (tools/soak/kinds.py) with a seed of its own, in a process of its own: a crash or a hang of it
is seen, and `--kind forks --seed 12 --rounds 1` is the same round again. Everything happens in temporary folders and on
the loopback address. With numbers of forks and collections, only their rounds are run, until both are reached; time
that is over before, or a round that goes wrong, ends it and fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.soak.kinds import KINDS

COUNTED = {"forks": "many_forks forks", "collections": "collections collections"}
"""What can be asked for in numbers: the kind that does it and the name under which it counts them."""

HANGS_AFTER = 600.0
"""Seconds; a round takes a few, with sanitizers a few dozen."""


def say(text: str) -> None:
    """A line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def play(kind: str, seed: int) -> None:
    """One round, in this process: its counts as a line of JSON."""
    with tempfile.TemporaryDirectory(prefix=f"soak-{kind}-") as folder:
        say(json.dumps(KINDS[kind](random.Random(seed), Path(folder))))


def watch(kind: str, seed: int) -> tuple[dict[str, int], str]:
    """One round in a process of its own: its counts, and what went wrong."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tools.soak", "--play", kind, "--seed", str(seed)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wrong = ""
    try:
        output, errors = child.communicate(timeout=HANGS_AFTER)
    except subprocess.TimeoutExpired:
        wrong = f"hangs after {HANGS_AFTER:.0f} s\n"
        child.send_signal(signal.SIGABRT)  # faulthandler says where every thread stands
        time.sleep(1)
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
    if child.returncode:
        wrong += f"exit status {child.returncode}\n{errors[-6000:]}"
    return (json.loads(output.splitlines()[-1]) if not wrong else {}), wrong


def missing(given: argparse.Namespace, total: Counter[str]) -> dict[str, int]:
    """What was asked for in numbers and is not reached, and how many of it."""
    asked = {counted: getattr(given, name) for name, counted in COUNTED.items()}
    return {counted: most - total[counted] for counted, most in asked.items() if total[counted] < most}


def schedule(given: argparse.Namespace, total: Counter[str], failed: list[str]) -> Iterator[str]:
    """The kind of the next round, until all is over."""
    end, by_number = time.monotonic() + 60 * given.minutes, bool(missing(given, total))
    kinds: list[str] = given.kind or list(KINDS)
    for number in range(given.rounds):
        if by_number:
            kinds = [] if failed else [counted.split()[0] for counted in missing(given, total)]
        if not kinds or time.monotonic() >= end:
            return
        yield kinds[number % len(kinds)]


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="run soak", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each has the next one")
    parser.add_argument("--kind", action="append", choices=KINDS)
    for name in COUNTED:
        parser.add_argument(f"--{name}", type=int, default=0, help=f"only such rounds, until there were so many {name}")
    parser.add_argument("--play", choices=KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Rounds until the time is over; 1 where one of them went wrong."""
    given = arguments()
    if given.play:
        play(given.play, given.seed)
        return 0
    total: Counter[str] = Counter()
    failed: list[str] = []
    for number, kind in enumerate(schedule(given, total, failed)):
        seed, began = given.seed + number, time.monotonic()
        counts, wrong = watch(kind, seed)
        total.update({f"{kind} rounds": 1} | {f"{kind} {name}": count for name, count in counts.items()})
        shown = ", ".join(f"{count} {name}" for name, count in counts.items())
        say(f"{number + 1} {kind} seed {seed}: {shown or 'FAILED'} in {time.monotonic() - began:.1f} s")
        if wrong:
            failed.append(f"--kind {kind} --seed {seed} --rounds 1")
            say(wrong)
    say("total: " + ", ".join(f"{count} {name}" for name, count in total.items()))
    failed += [f"{left} {counted} are missing" for counted, left in missing(given, total).items()]
    say("failed: " + "; ".join(failed) if failed else "nothing went wrong")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
