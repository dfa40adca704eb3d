# SPDX-License-Identifier: Apache-2.0
"""`voxgrad import`: pages and projects of enuSpace-Tensorflow."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.formats.enuspace import Imported, Report, import_page, import_project
from voxgrad.formats.page_file import SUFFIX

DESCRIPTION = """\
Import a page of enuSpace-Tensorflow (*.svg, with its .dat), or a whole project (*.enup).

  voxgrad import old.svg -o new.vox.json
  voxgrad import project.enup -o FOLDER

Blocks keep their ids as names. What was changed, and what could not be kept, is told on standard error.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad import`."""
    parser.add_argument("file", metavar="OLD", help="a page (*.svg) or a project (*.enup)")
    parser.add_argument("-o", "--output", metavar="PAGE", help="the page file, or the folder for a project")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if something could not be kept")
    parser.add_argument("--json", action="store_true", help="what was changed, as JSON on standard output")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Import, save, report."""
    source = Path(arguments.file)
    if source.suffix.lower() == ".enup":
        pages, report = import_project(source)
        folder = Path(arguments.output) if arguments.output else source.parent
        folder.mkdir(parents=True, exist_ok=True)
        reports = {source.name: report}
        for name, found in pages.items():
            reports |= _save(found, folder / f"{name}{SUFFIX}")
    else:
        reports = _save(import_page(source), Path(arguments.output or source.with_suffix(SUFFIX)))
    if arguments.json:
        print(json.dumps({name: report.as_data() for name, report in reports.items()}, indent=1))
    lost = any(report.lost for report in reports.values())
    return exits.WRONG if lost and arguments.strict else exits.OK


def _save(found: Imported, target: Path) -> dict[str, Report]:
    found.page.save(target)
    print(f"{target}: {len(found.page)} blocks, {len(found.page.wires)} wires", file=sys.stderr)
    if found.report.remarks:
        print(found.report, file=sys.stderr)
    return {target.name: found.report}
