# SPDX-License-Identifier: Apache-2.0
"""`voxgrad sweep`: a page with other attributes, values, semantics and engines, point by point."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page
from voxgrad.cli.run import read_feeds
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.tensor_files import bad_file
from voxgrad.formats.text import split_values
from voxgrad.graph.measure import Session, Work
from voxgrad.graph.page import Page
from voxgrad.graph.sweep import ENGINE, SEMANTICS, Row, Sweep
from voxgrad.graph.sweep_table import Table, csv_line

DESCRIPTION = """\
Run a page with other values, point by point: a row for each. The page itself is never changed.

  voxgrad sweep page.vox.json --set pool.padding=SAME,VALID                      two points
  voxgrad sweep page.vox.json --set 'pool.ksize={1,2,2,2,1},{1,3,3,3,1}' --set half.y=0.5,1,2
                                                                                 2 x 3 points
  voxgrad sweep train.vox.json --set 'rate.value=range(0.1, 1, 0.1)' --cycles 100 --fetch loss --csv rates.csv
  voxgrad sweep page.vox.json --semantics documented,tf_cpu --engine cpu,tensorflow
  voxgrad sweep page.vox.json --engine cpu,torch --repeat 5                      times: median, least, greatest

Values stand between commas, as a person types them; lists are in braces. A result of several numbers shows its least,
mean and greatest. What is wrong with one point is in its row, and the others go on; Ctrl-C keeps the rows so far.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad sweep`."""
    add_page(parser)
    parser.add_argument(
        "--set", action="append", default=[], metavar="BLOCK.NAME=VALUES", help="an attribute or an input; repeatable"
    )
    parser.add_argument("--semantics", metavar="NAMES", help="documented,tf_cpu")
    parser.add_argument(
        "--engine", "--device", dest="engine", metavar="NAMES", help="of cpu, cuda, cuda:1, tensorflow, torch"
    )
    parser.add_argument("--zip", action="store_true", help="the first values of all, the second of all, ...")
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=FILE", help="as `voxgrad run`; repeatable")
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME", help="block or block.output")
    parser.add_argument("--cycles", type=_positive, default=1, metavar="N", help="cycles of each point (default 1)")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="time each point so often, cold")
    parser.add_argument("--csv", metavar="FILE", help="write the rows there as they come")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--count", action="store_true", help="only say how many points there are")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Run the points; rows are printed and written as they come."""
    page = open_page(arguments)
    sweep = Sweep(page, variations_of(arguments), zipped=arguments.zip)
    if arguments.count:
        print(len(sweep))
        return exits.OK
    feeds = {output.path: value for output, value in read_feeds(page, arguments.feed).items()}
    work = sweep.work(Work(tuple(arguments.fetch), feeds, arguments.cycles, arguments.repeat))
    table = Table(sweep, work)
    shows = not (arguments.json or arguments.csv == "-")
    rows: list[Row] = []
    stopped = False
    with _written(arguments.csv) as file:
        _write(file, table.columns)
        if shows:
            print(table.head())
        try:
            for row in sweep.rows(work, _open):
                rows.append(row)
                _write(file, table.cells(row))
                if shows:
                    print(table.line(row), flush=True)
        except KeyboardInterrupt:
            stopped = True
            print(f"stopped: {len(rows)} of {len(sweep)} points are done", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"points": len(sweep), "rows": [row.as_dict() for row in rows]}))
    return exits.CANCELLED if stopped else exits.WRONG if rows and all(row.faults for row in rows) else exits.OK


def variations_of(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """What varies, from the command line."""
    from voxgrad.studio.peers import check_engines

    found: dict[str, list[str]] = {}
    given = [_pair(text) for text in arguments.set]
    given += [(name, text) for name in (SEMANTICS, ENGINE) if (text := getattr(arguments, name)) is not None]
    for name, text in given:
        if name in found:
            raise InvalidArgumentError(Fault("VG052", "sweep", "--set", "name each thing once", name))
        found[name] = split_values(text, name)
    check_engines(found.get(ENGINE, []), "--engine")
    return found


def _pair(text: str) -> tuple[str, str]:
    name, found, values = text.partition("=")
    if not found:
        raise InvalidArgumentError(Fault("VG052", "sweep", "--set", "be BLOCK.NAME=VALUES", repr(text)))
    return name.strip(), values


def _open(page: Page, engine: str) -> Session:
    from voxgrad.studio.peers import open_session

    return open_session(page, engine)


@contextlib.contextmanager
def _written(name: str | None) -> Iterator[TextIO | None]:
    """The file for the rows, if there is one: what is in it is whole after every row."""
    if name is None or name == "-":
        yield None if name is None else sys.stdout
        return
    try:
        file = open(name, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below
    except OSError as error:
        raise bad_file(name, "be a file that can be written", error.strerror or error) from None
    with file:
        yield file


def _write(file: TextIO | None, cells: list[Any]) -> None:
    if file is not None:
        file.write(csv_line(cells))
        file.flush()
