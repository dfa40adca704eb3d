# SPDX-License-Identifier: Apache-2.0
"""`voxgrad import`: pages and projects of enuSpace-Tensorflow, and graphs of TensorFlow."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.formats.enuspace import import_page, import_project
from voxgrad.formats.graphdef import import_graph
from voxgrad.formats.page_file import SUFFIX
from voxgrad.formats.report import Report
from voxgrad.graph.page import Page

DESCRIPTION = """\
Import a page of enuSpace-Tensorflow (*.svg, with its .dat), a whole project (*.enup, or its folder), or a TensorFlow
graph (*.pb).

  voxgrad import old.svg -o new.vox.json
  voxgrad import frozen_graph.pb -o graph.vox.json
  voxgrad import project.enup -o FOLDER
  voxgrad import PROJECT_FOLDER -o FOLDER

Blocks keep their ids as names. What runs, what was changed, which files are missing and where to put them, what scripts
did and what could not be kept is told on standard error; --json has it with the edits that repair it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad import`."""
    parser.add_argument(
        "file", metavar="OLD", help="a page (*.svg), a project (*.enup or a folder) or a GraphDef (*.pb)"
    )
    parser.add_argument("-o", "--output", metavar="PAGE", help="the page file, or the folder for a project")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if something could not be kept")
    parser.add_argument("--json", action="store_true", help="what was changed, as JSON on standard output")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Import, save, report."""
    source = Path(arguments.file)
    if source.is_dir() or source.suffix.lower() == ".enup":
        reports = _import_project(source, arguments.output)
    else:
        target = Path(arguments.output or source.with_suffix(SUFFIX))
        reports = _save(*_read(source, target.parent), target)
    if arguments.json:
        print(json.dumps({name: report.as_data() for name, report in reports.items()}, indent=1))
    lost = any(report.lost for report in reports.values())
    return exits.WRONG if lost and arguments.strict else exits.OK


def _import_project(source: Path, output: str | None) -> dict[str, Report]:
    """A folder of pages, and last what is to tell about all of them."""
    folder = Path(output) if output else source if source.is_dir() else source.parent
    pages, report = import_project(source, folder)
    folder.mkdir(parents=True, exist_ok=True)
    reports: dict[str, Report] = {}
    for name, found in pages.items():
        reports |= _save(found.page, found.report, folder / f"{name}{SUFFIX}")
    print(report, file=sys.stderr)
    return reports | {source.name: report}


def _read(source: Path, target: Path) -> tuple[Page, Report]:
    if source.suffix.lower() == ".pb":
        return import_graph(source)
    found = import_page(source, target)
    return found.page, found.report


def _save(page: Page, report: Report, target: Path) -> dict[str, Report]:
    page.save(target)
    print(f"{target}: {len(page)} blocks, {len(page.wires)} wires", file=sys.stderr)
    if report.remarks:
        print(report, file=sys.stderr)
    return {target.name: report}
