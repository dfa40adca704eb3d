# SPDX-License-Identifier: Apache-2.0
"""`voxgrad watch`: a chunked run as a grid of its chunks, live."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time

from voxgrad.cli import exits
from voxgrad.errors import visible
from voxgrad.volumes.watch import State, watch

DESCRIPTION = """\
Show how far a chunked run is: a picture of its chunks, slab by slab, the rate and the time that is left.

  voxgrad watch half.zarr              until it ends
  voxgrad watch half.zarr --once       once; --json for programs

It reads the records beside the output, so it works from any machine that sees them, while the run goes on or after it.
"""
_MARKS = {"d": ("█", 32), "r": ("▒", 33), "f": ("x", 31), "0": ("·", 90)}
_PARTS = "·▁▂▃▄▄▅▆▇▇"
_INTERVAL = 0.5
_SLABS, _ROWS, _COLUMNS = 24, 16, 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad watch`."""
    parser.add_argument("output", metavar="OUTPUT", help="the output of the run")
    parser.add_argument("--once", action="store_true", help="show it once and end")
    parser.add_argument("--json", action="store_true", help="the state as JSON, once")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Show the run until it ends; the exit code tells whether it did so well."""
    state = watch(arguments.output)
    if arguments.json:
        print(json.dumps(state.as_dict()))
        return exits.OK
    live = sys.stdout.isatty() and not arguments.once
    while True:
        lines = draw(state, shutil.get_terminal_size().columns, sys.stdout.isatty())
        print("\n".join(lines))
        if not live or not state.alive:
            return exits.OK if state.phase in ("finished", "running") else exits.WRONG
        time.sleep(_INTERVAL)
        state = watch(arguments.output)
        # Back to where the picture began; what was below it is gone.
        sys.stdout.write(f"\033[{len(lines)}F\033[J")


def draw(state: State, columns: int, colour: bool) -> list[str]:
    """The picture and the figures, as lines."""
    (depth, height, width), letters = state.picture((_SLABS, _ROWS, _COLUMNS))
    slabs = [letters[at * height * width : (at + 1) * height * width] for at in range(depth)]
    across = max(1, (columns + 2) // (width + 2))
    lines = []
    for first in range(0, depth, across):
        row = slabs[first : first + across]
        for at in range(0, height * width, width):
            lines.append("  ".join("".join(_mark(one, colour) for one in slab[at : at + width]) for slab in row))
        lines.append("")
    return [*lines, *figures(state)]


def _mark(letter: str, colour: bool) -> str:
    mark, code = _MARKS.get(letter, (_PARTS[int(letter)] if letter.isdecimal() else "?", 36))
    return f"\033[{code}m{mark}\033[0m" if colour else mark


def figures(state: State) -> list[str]:
    """How many chunks are in which state, how fast it goes, and what failed."""
    left = state.seconds_left
    parts = [f"{len(state.done)}/{state.total} chunks", f"{len(state.running)} running"]
    parts += [f"{len(state.failed)} failed"] if state.failed else []
    parts += [f"{state.rate:,.0f}/s" if state.rate >= 10 else f"{state.rate:.2g}/s"] if state.rate else []
    parts += [f"{_time(left)} left"] if left is not None else [f"{state.phase} after {_time(state.seconds)}"]
    failed = [visible(f"  chunk {number}: {told}") for number, told in sorted(state.failed.items())[:5]]
    return ["  ".join(parts), *failed]


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
