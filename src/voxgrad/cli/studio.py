# SPDX-License-Identifier: Apache-2.0
"""`voxgrad studio`: the block editor in the browser."""

from __future__ import annotations

import argparse
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from voxgrad.cli import exits

if TYPE_CHECKING:
    from voxgrad.studio.studio import Studio

DESCRIPTION = """\
Open the block editor on a folder of pages, and print an address that lets one browser in.

  voxgrad studio                   pages of the current folder
  voxgrad studio scans --port 9000 --no-browser

It listens on 127.0.0.1 only, and answers to nobody who was not let in. An address that was used is followed by a new
one when somebody opens it again. Programs read the secret in FOLDER/.voxgrad/token and send it as
`Authorization: Bearer SECRET`; the API lives under /api.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad studio`."""
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="where the pages are (default: here)")
    add_serving(parser)


def add_serving(parser: argparse.ArgumentParser) -> None:
    """How a studio is served, whatever it shows."""
    parser.add_argument("--port", type=_port, metavar="N", help="the port (default: 8741, or a free one)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument("--memory", type=_positive, metavar="GIB", help="memory that a run may take, in GiB")
    parser.add_argument("--time-limit", type=_positive, metavar="S", help="seconds that a run may take (default: 900)")


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value < 65536:
        raise argparse.ArgumentTypeError("must be below 65536")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a positive number")
    return value


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Serve until stopped."""
    serve_studio(opened(Path(arguments.folder), arguments), arguments)
    return exits.OK


def opened(folder: Path, arguments: argparse.Namespace, shown: Path | None = None) -> Studio:
    """A studio on a folder, with the limits that were asked for; its pages may read `shown`, too."""
    for package in ("fastapi", "uvicorn", "websockets"):
        if importlib.util.find_spec(package) is None:
            raise exits.MissingPackage(f"the studio needs {package}: pip install 'voxgrad[studio]'")
    from voxgrad.studio.limits import RunLimits
    from voxgrad.studio.studio import Studio

    limits = RunLimits.of_this_machine()
    if arguments.memory is not None:
        limits = replace(limits, memory=int(arguments.memory * 2**30))
    if arguments.time_limit is not None:
        limits = replace(limits, seconds=arguments.time_limit)
    return Studio(folder, limits, shown)


def serve_studio(studio: Studio, arguments: argparse.Namespace, view: str | None = None) -> None:
    """Serve a studio until it is stopped; with the values of the page `view` in front."""
    from voxgrad.studio.server import serve

    serve(studio, arguments.port, not arguments.no_browser, lambda text: print(text, flush=True), view)
