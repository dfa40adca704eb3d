# SPDX-License-Identifier: Apache-2.0
"""Files of enuSpace: a page with its .dat, and a project with its pages."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace.convert import Converter, Imported
from voxgrad.formats.enuspace.gadgets import make_displays
from voxgrad.formats.enuspace.needed import FOLDER, files_read
from voxgrad.formats.enuspace.palette import is_palette, palette_page
from voxgrad.formats.enuspace.scripts import tell_scripts
from voxgrad.formats.enuspace.sheet import expected_values, read_sheet
from voxgrad.formats.enuspace.xml_tree import MAX_BYTES, parse_xml
from voxgrad.formats.report import CHANGED, LOST, MISSING, NOTED, RUNS, STOPS, Report
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.page import Page

MAX_DATA = 2**30
MAX_PAGES = 1000
NO_PAGES = {"task", "web", "global"}
"""Folders of a project whose drawings are no pages."""
_STATES = {RUNS: "run", STOPS: "do not run as they are", MISSING: "need files"}


def import_page(path: str | PathLike[str], target: str | PathLike[str] | None = None) -> Imported:
    """A page SVG, with the .dat file of the same name where there is one; a task, as a page of notes.

    `target` is the folder that the page is going to, in whose `files/` it looks for files; without it, that of `path`.
    """
    file = Path(path)
    if file.suffix.lower() == ".dat":
        beside = file.with_suffix(".svg").name
        raise bad_file(
            file, "be a page", "the values of one", remedy=f"Import {beside}, which reads it from beside it."
        )
    report = Report()
    root = parse_xml(_read(file, MAX_BYTES), file.name)
    if is_palette(root):
        return Imported(palette_page(root, file.stem, report), report, {})
    sheet = read_sheet(root, file.name, report)
    values = file.with_suffix(".dat")
    data = _read(values, MAX_DATA) if values.is_file() else b""
    if not data and any(pin.binary_at is not None for node in sheet.nodes.values() for pin in node.pins.values()):
        report.add(NOTED, values.name, "is not there; arrays that it holds are missing")
    tell_scripts(root, sheet, report)
    expected = expected_values(sheet, data, report)
    converter = Converter(sheet, data, file.stem, report)
    page = converter.convert()
    make_displays(converter, file.parent)
    named = {converter.blocks[id_]: names for id_, names in converter.values.files.items()}
    for name, told in files_read(page, named).items():
        if not (Path(target or file.parent) / FOLDER / name).is_file():
            report.add(MISSING, name, told)
    _tell_what_runs(page, report)
    return Imported(page, report, expected)


def _tell_what_runs(page: Page, report: Report) -> None:
    problems = page.problems()
    for problem in problems:
        place = f"{problem.block}.{problem.pin}" if problem.pin else problem.block
        report.add(STOPS, place, str(problem), problem.fixes)
    if problems:
        return
    parts = {"fetches": list(page.outputs), "executes": [block.name for block in page.targets]}
    told = [f"{verb} {', '.join(names)}" for verb, names in parts.items() if names]
    started = f"; variables with a first value: {len(page.initializers)}" if page.initializers else ""
    report.add(RUNS, page.name, (" and ".join(told) or "computes every block") + started)


def import_project(
    path: str | PathLike[str], target: str | PathLike[str] | None = None
) -> tuple[dict[str, Imported], Report]:
    """All pages of a project, by name, and what is to tell about the project itself.

    A project is a file *.enup, which lists pages of its folder, or a folder, with such a list or without. `target` is
    the folder that the pages are going to; without it, that of the project.
    """
    place, report = Path(path), Report()
    folder = place if place.is_dir() else place.parent
    lists = sorted(folder.glob("*.enup")) if place.is_dir() else [place]
    if len(lists) > 1:
        names = ", ".join(one.name for one in lists)
        raise bad_file(place, "hold one project", names, remedy="Import one of them by its name.")
    pages: dict[str, Imported] = {}
    for file in _listed_pages(lists[0], report) if lists else _pages_in(folder):
        _add_page(file, target or folder, pages, report)
    if not pages and not report.lost:
        report.add(LOST, place.name, "it has no pages")
    _tell_what_is_there(place.name, pages, report)
    return pages, report


def _listed_pages(list_file: Path, report: Report) -> list[Path]:
    """The pages that a project names, as files or without their ending; all of its folder where it names none."""
    root = parse_xml(_read(list_file, MAX_BYTES), list_file.name)
    texts = {text: one.line for one in root.walk() for text in (*one.attributes.values(), one.text.strip())}
    inside = _pages_in(list_file.parent)
    stems = {file.stem: file for file in reversed(inside)}
    found: dict[Path, None] = {}
    for text, line in texts.items():
        page = _page_file(list_file.parent, text) if text.lower().endswith(".svg") else stems.get(text)
        if page is not None:
            found[page] = None
        elif text.lower().endswith(".svg"):
            report.add(LOST, text, f"line {line}: there is no such page in the folder of the project")
    if not found and inside and not report.lost:
        report.add(NOTED, list_file.name, "it names no page: all pages of its folder were taken")
        return inside
    return list(found)


def _pages_in(folder: Path) -> list[Path]:
    """The pages in a folder and below it; the libraries of tasks, the web forms and the global symbols are none."""
    root = folder.resolve()
    files = sorted(file for one in root.rglob("*.svg") if (file := one.resolve()).is_relative_to(root))
    beside = {file: {part.lower() for part in file.relative_to(root).parts[:-1]} for file in files}
    return [file for file in files if not beside[file] & NO_PAGES][:MAX_PAGES]


def _add_page(file: Path, target: str | PathLike[str], pages: dict[str, Imported], report: Report) -> None:
    try:
        found = import_page(file, target)
    except VoxgradError as error:
        report.add(LOST, file.name, f"cannot be read: {error}")
        return
    name, number = file.stem, 2
    while name in pages:
        name, number = f"{file.stem} {number}", number + 1
    if name != file.stem:
        report.add(CHANGED, str(Path(file.parent.name, file.name)), f"is called {name}: there is another {file.stem}")
    pages[name] = found


def _tell_what_is_there(name: str, pages: Mapping[str, Imported], report: Report) -> None:
    told: dict[str, list[str]] = {kind: [] for kind in _STATES}
    for page, found in pages.items():
        for kind in {remark.kind for remark in found.report.remarks} & told.keys():
            told[kind].append(page)
    parts = [f"{len(pages)} pages"] + [
        f"{words}: {', '.join(told[kind])}" for kind, words in _STATES.items() if told[kind]
    ]
    if pages:
        report.add(RUNS, name, "; ".join(parts))


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
