# SPDX-License-Identifier: Apache-2.0
"""Opening pages for commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace import import_page
from voxgrad.formats.page_file import load
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files

HELP = "a page file (*.vox.json), a picture drawn from a page, or a page of enuSpace (*.svg)"


def add_page(parser: argparse.ArgumentParser) -> None:
    """The arguments that name the page and what it may touch."""
    parser.add_argument("page", metavar="PAGE", help=HELP)
    parser.add_argument(
        "--allow-files", action="append", default=[], metavar="FOLDER",
        help="let its blocks read and write files of this folder, besides those in files/ beside the page; repeatable",
    )  # fmt: skip


def open_page(arguments: argparse.Namespace) -> Page:
    """The page that the arguments name, with the files that it may touch."""
    page = _opened(arguments.page)
    page.allow_files(*arguments.allow_files)
    return page


def save_page(page: Page, arguments: argparse.Namespace) -> None:
    """Write the page where the arguments say, or where it came from; no picture is replaced by a page file."""
    target = Path(arguments.output or arguments.page)
    if target.suffix.lower() in (".svg", ".png"):
        raise bad_file(target, "be a page file, *.vox.json", "a picture", remedy="Say where the page goes: -o FILE.")
    page.save(target)


def _opened(name: str) -> Page:
    """The page in a file. A page of enuSpace is imported on the way, and what could not be kept is told."""
    try:
        return load(name)
    except VoxgradError as error:
        if Path(name).suffix.lower() != ".svg" or error.faults[0].got != "a picture without one":
            raise
    found = import_page(name)
    for remark in found.report.lost:
        print(remark, file=sys.stderr)
    found.page.files = Files.beside(name)
    return found.page
