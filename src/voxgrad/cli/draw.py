# SPDX-License-Identifier: Apache-2.0
"""`voxgrad draw`: a page as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page
from voxgrad.cli.run import read_feeds, run_page
from voxgrad.formats.picture import draw_png, draw_svg
from voxgrad.formats.picture.palette import THEMES
from voxgrad.formats.tensor_files import bad_file, replace_file
from voxgrad.graph.page import Page
from voxgrad.graph.readings import Readings
from voxgrad.graph.session import ClientSession

DESCRIPTION = """\
Draw a page. The page is inside the picture, so that the picture can be opened again as a page.

  voxgrad draw page.vox.json -o page.svg
  voxgrad draw page.vox.json -o page.png --theme dark
  voxgrad draw page.vox.json -o page.svg --run --cycles 100       with values in its displays
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad draw`."""
    add_page(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="page.svg or page.png; without it, SVG is printed")
    parser.add_argument("--theme", choices=[*THEMES, "auto"], default="auto", help="default auto (PNG: light)")
    parser.add_argument("--run", action="store_true", help="run the page first; its displays show what it gave")
    parser.add_argument("--cycles", type=_positive, default=1, metavar="N", help="how often to run (default 1)")
    parser.add_argument(
        "--feed", action="append", default=[], metavar="NAME=VALUE", help="as `voxgrad run`; repeatable"
    )
    parser.add_argument("--no-page", action="store_true", help="leave the page out of the picture")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Draw."""
    page = open_page(arguments)
    embed, readings = not arguments.no_page, _readings(page, arguments) if arguments.run else None
    suffix = Path(arguments.output).suffix.lower() if arguments.output else ".svg"
    if suffix == ".png":
        theme = "light" if arguments.theme == "auto" else arguments.theme
        replace_file(Path(arguments.output), draw_png(page, theme, embed=embed, readings=readings))
    elif suffix == ".svg":
        text = draw_svg(page, arguments.theme, embed=embed, readings=readings)
        if arguments.output:
            replace_file(Path(arguments.output), text.encode())
        else:
            sys.stdout.write(text)
    else:
        raise bad_file(arguments.output, "end in .svg or .png", suffix or "no suffix")
    return exits.OK


def _readings(page: Page, arguments: argparse.Namespace) -> Readings:
    session = ClientSession(page)
    run_page(session, [], read_feeds(page, arguments.feed), arguments.cycles, every=False)
    return session.readings
