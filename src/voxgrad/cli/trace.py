# SPDX-License-Identifier: Apache-2.0
"""`voxgrad trace`: where an element of a result comes from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page
from voxgrad.cli.run import read_feeds, run_page
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.reach import Reached
from voxgrad.graph.session import ClientSession
from voxgrad.graph.trace import Traced, Window

DESCRIPTION = """\
Say where an element of a result comes from: its window in every input, padding, and where a max pool found it.

  voxgrad trace page.vox.json pool 0,3,3,3,0             the window of one element
  voxgrad trace page.vox.json y 0,3,3,3,0 --depth 9      ... and all that lies behind it, nine blocks far
  voxgrad trace page.vox.json pool 0,3,3,3,0 --run       run the page first: of max pools the winner, and ties
  voxgrad trace page.vox.json x 0,3,3,3,0 --forward      where it goes: the elements of other blocks that read it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad trace`."""
    add_page(parser)
    parser.add_argument("output", metavar="OUTPUT", help="block or block.output")
    parser.add_argument("index", metavar="INDEX", help="an element of it, as 0,3,3,3,0")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="how many blocks far (default 1)")
    parser.add_argument("--run", action="store_true", help="run the page first, for the values that it reads")
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=FILE", help="as for voxgrad run")
    parser.add_argument("--forward", action="store_true", help="what reads the element, in place of what it reads")
    parser.add_argument("--json", action="store_true", help="the windows as JSON")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Trace, and print."""
    page = open_page(arguments)
    if arguments.forward:
        reached = page.reach(arguments.output, _index(arguments.index), arguments.depth)
        told = [asdict(one) for one in reached] if arguments.json else [_reached(one) for one in reached]
        print(json.dumps(told) if arguments.json else "\n".join(map(str, told)))
        return exits.OK
    values = {}
    if arguments.run or arguments.feed:
        results = run_page(ClientSession(page), [], read_feeds(page, arguments.feed))
        values = {f"{block}.{pin}": value for block, pins in results.items() for pin, value in pins.items()}
    found = page.trace(arguments.output, _index(arguments.index), arguments.depth, values)
    print(json.dumps(asdict(found)) if arguments.json else "\n".join(_told(found)))
    return exits.OK


def _index(text: str) -> list[int]:
    try:
        return [int(one) for one in text.strip("[]").split(",") if one.strip()]
    except ValueError:
        fault = Fault("VG052", "trace", "INDEX", "be numbers with commas between them", repr(text)[:80])
        raise InvalidArgumentError(fault) from None


def _told(found: Traced) -> Iterator[str]:
    for window in found.windows:
        indent = "  " * (window.depth - 1)
        yield f"{indent}{window.block}.{window.pin} reads {_cells(window)} of {window.source}{_winner(window)}"
    yield from found.notes


def _reached(one: Reached) -> str:
    count = f"{one.count} {'element' if one.count == 1 else 'elements'}"
    return f"{'  ' * (one.depth - 1)}{one.output} [{_box(one)}], {count}, through {one.block}.{one.pin}"


def _box(one: Window | Reached) -> str:
    grid = zip(one.lo, one.hi, one.steps, strict=True)
    return ",".join(f"{lo}:{hi}" + (f":{step}" if step > 1 else "") for lo, hi, step in grid)


def _cells(window: Window) -> str:
    beyond = sum(window.padding.before) + sum(window.padding.after)
    return f"[{_box(window)}], {window.count} {'cell' if window.count == 1 else 'cells'}" + (
        " beside padding," if beyond else ""
    )


def _winner(window: Window) -> str:
    if window.winner is None:
        return ""
    ties = f", the first of {len(window.ties)}" if window.ties else ""
    return f": the maximum is at [{','.join(map(str, window.winner))}]{ties}"
