# SPDX-License-Identifier: Apache-2.0
"""Opening pages for commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace import import_page
from voxgrad.formats.page_file import load
from voxgrad.graph.page import Page

HELP = "a page file (*.vox.json), a picture drawn from a page, or a page of enuSpace (*.svg)"


def add_page(parser: argparse.ArgumentParser) -> None:
    """The argument that names the page."""
    parser.add_argument("page", metavar="PAGE", help=HELP)


def open_page(name: str) -> Page:
    """The page in a file. A page of enuSpace is imported on the way, and what could not be kept is told."""
    try:
        return load(name)
    except VoxgradError as error:
        if Path(name).suffix.lower() != ".svg" or error.faults[0].got != "a picture without one":
            raise
    found = import_page(name)
    for remark in found.report.lost:
        print(remark, file=sys.stderr)
    return found.page
