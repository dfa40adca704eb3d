# SPDX-License-Identifier: Apache-2.0
"""`voxgrad draw`: a page as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page
from voxgrad.formats.picture import draw_png, draw_svg
from voxgrad.formats.picture.palette import THEMES
from voxgrad.formats.tensor_files import bad_file, replace_file

DESCRIPTION = """\
Draw a page. The page is inside the picture, so that the picture can be opened again as a page.

  voxgrad draw page.vox.json -o page.svg
  voxgrad draw page.vox.json -o page.png --theme dark
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad draw`."""
    add_page(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="page.svg or page.png; without it, SVG is printed")
    parser.add_argument("--theme", choices=[*THEMES, "auto"], default="auto", help="default auto (PNG: light)")
    parser.add_argument("--no-page", action="store_true", help="leave the page out of the picture")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Draw."""
    page = open_page(arguments)
    embed = not arguments.no_page
    suffix = Path(arguments.output).suffix.lower() if arguments.output else ".svg"
    if suffix == ".png":
        theme = "light" if arguments.theme == "auto" else arguments.theme
        replace_file(Path(arguments.output), draw_png(page, theme, embed=embed))
    elif suffix == ".svg":
        text = draw_svg(page, arguments.theme, embed=embed)
        if arguments.output:
            replace_file(Path(arguments.output), text.encode())
        else:
            sys.stdout.write(text)
    else:
        raise bad_file(arguments.output, "end in .svg or .png", suffix or "no suffix")
    return exits.OK
