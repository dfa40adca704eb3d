# SPDX-License-Identifier: Apache-2.0
"""Files of enuSpace: a page with its .dat, and a project with its pages."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace.convert import Converter, Imported
from voxgrad.formats.enuspace.palette import is_palette, palette_page
from voxgrad.formats.enuspace.sheet import expected_values, read_sheet
from voxgrad.formats.enuspace.xml_tree import MAX_BYTES, parse_xml
from voxgrad.formats.report import LOST, MISSING, NOTED, RUNS, STOPS, Report
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.page import Page

MAX_DATA = 2**30


def import_page(path: str | PathLike[str]) -> Imported:
    """A page SVG, with the .dat file of the same name where there is one; a task, as a page of notes."""
    file = Path(path)
    report = Report()
    root = parse_xml(_read(file, MAX_BYTES), file.name)
    if is_palette(root):
        return Imported(palette_page(root, file.stem, report), report, {})
    sheet = read_sheet(root, file.name, report)
    beside = file.with_suffix(".dat")
    data = _read(beside, MAX_DATA) if beside.is_file() else b""
    if not data and any(pin.binary_at is not None for node in sheet.nodes.values() for pin in node.pins.values()):
        report.add(NOTED, beside.name, "is not there; arrays that it holds are missing")
    expected = expected_values(sheet, data, report)
    converter = Converter(sheet, data, file.stem, report)
    page = converter.convert()
    for name, block in converter.files_read().items():
        if not (file.parent / "files" / name).is_file():
            report.add(MISSING, name, f"{block} reads it; put it into files/ beside the page")
    _tell_what_runs(page, report)
    return Imported(page, report, expected)


def _tell_what_runs(page: Page, report: Report) -> None:
    problems = page.problems()
    if problems:
        text = f"does not run as it is; `voxgrad check` tells what to do. The first of {len(problems)}: {problems[0]}"
        report.add(STOPS, page.name, text)
        return
    parts = {"fetches": list(page.outputs), "executes": [block.name for block in page.targets]}
    told = [f"{verb} {', '.join(names)}" for verb, names in parts.items() if names]
    started = f"; variables with a first value: {len(page.initializers)}" if page.initializers else ""
    report.add(RUNS, page.name, (" and ".join(told) or "computes every block") + started)


def import_project(path: str | PathLike[str]) -> tuple[dict[str, Imported], Report]:
    """All pages of a project (.enup), by name, and what is to tell about the project itself."""
    file = Path(path)
    report = Report()
    root = parse_xml(_read(file, MAX_BYTES), file.name)
    pages: dict[str, Imported] = {}
    for element in root.walk():
        for text in (*element.attributes.values(), element.text.strip()):
            if not text.lower().endswith(".svg"):
                continue
            page = _page_file(file.parent, text)
            if page is None:
                report.add(LOST, text, f"line {element.line}: there is no such page in the folder of the project")
            elif page.stem not in pages:
                _add_page(page, pages, report)
    if not pages and not report.lost:
        report.add(LOST, file.name, "it lists no pages")
    return pages, report


def _add_page(page: Path, pages: dict[str, Imported], report: Report) -> None:
    try:
        pages[page.stem] = import_page(page)
    except VoxgradError as error:
        report.add(LOST, page.name, f"cannot be read: {error}")


def _page_file(folder: Path, name: str) -> Path | None:
    """A page that a project names: a file inside the project's folder, and nothing else."""
    plain = name.replace("\\", "/").removeprefix("./")
    root = folder.resolve()
    for candidate in (plain, plain.rpartition("/")[2]):
        try:
            file = (root / candidate).resolve()
            if file.is_relative_to(root) and file.is_file():
                return file
        except (OSError, ValueError):
            continue
    return None


def _read(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise bad_file(file, "be a file that can be read", getattr(error, "strerror", None) or error) from None
    if len(data) > limit:
        raise bad_file(file, f"have at most {limit:,} bytes", "more")
    return data
