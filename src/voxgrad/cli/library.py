# SPDX-License-Identifier: Apache-2.0
"""`voxgrad library`: pages that are kept to be used as blocks."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page, save_page
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.library import Kept, Library
from voxgrad.graph.page import Page

DESCRIPTION = """\
Keep pages as blocks for other pages, and put them there. A page that is used is copied: it needs no library to run.

  voxgrad library list                                   the pages that are kept, with their pins
  voxgrad library keep model.vox.json --inside layer     the inner page `layer`, under its name
  voxgrad library keep layer.vox.json --name residual --replace
  voxgrad library add page.vox.json residual             puts it on the page, as a block that nothing is wired to yet
  voxgrad library update page.vox.json                   newer versions of what it uses, in their places

Pages lie in library/ beside the page (of `list`, in the folder where you are), and behind it in the library of the
person: VOXGRAD_PAGES, or voxgrad/library where programs keep their data. --folder names another place.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad library`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|keep|add|update")
    listed = actions.add_parser("list", help="the pages that are kept")
    keep = actions.add_parser("keep", help="keep a page, or a page inside it")
    add = actions.add_parser("add", help="put a page that is kept on another, as a block")
    update = actions.add_parser("update", help="put newer versions in the place of those that a page uses")
    for parser_ in (keep, add, update):
        add_page(parser_)
    for parser_ in (listed, keep, add, update):
        parser_.add_argument("--folder", metavar="FOLDER", help="where the library lies")
    add.add_argument("name", metavar="NAME", help="the page in the library")
    for parser_ in (add, update):
        parser_.add_argument("-o", "--output", metavar="FILE", help="where the page goes (default: the page itself)")
    keep.add_argument("--inside", action="append", default=[], metavar="NAME", help="keep this inner page; repeatable")
    keep.add_argument("--name", default="", help="what it is called in the library")
    keep.add_argument("--replace", action="store_true", help="replace one of that name")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Do what was asked."""
    beside = Path(arguments.page).resolve().parent if arguments.action != "list" else Path()
    library = Library(arguments.folder) if arguments.folder else Library.beside(beside)
    if arguments.action == "list":
        entries = library.entries()
        print("\n".join(map(_line, entries)) if entries else f"no pages in {', '.join(map(str, library.folders))}")
        return exits.OK
    page = open_page(arguments)
    if arguments.action == "keep":
        inner = _inside(page, arguments.inside)
        name = arguments.name or (arguments.inside[-1] if arguments.inside else "")
        print(_line(library.keep(inner, name, arguments.replace)))
        return exits.OK
    if arguments.action == "add":
        print(page.use(library.page(arguments.name)).name)
    else:
        for found in library.newer(page):
            assert found.fix is not None
            page.apply(found.fix)
            print(found.fix.title)
    save_page(page, arguments)
    return exits.OK


def _inside(page: Page, path: list[str]) -> Page:
    for name in path:
        if name not in page.pages:
            known = ", ".join(page.pages) or "none"
            raise InvalidArgumentError(Fault("VG050", "voxgrad library", "--inside", f"be one of {known}", repr(name)))
        page = page.pages[name]
    return page


def _line(kept: Kept) -> str:
    if kept.error:
        return f"{kept.name}: {kept.error}"
    about = f"  {kept.about.splitlines()[0]}" if kept.about else ""
    return f"{kept.name} {kept.version[:8]}: {', '.join(kept.inputs) or '-'} -> {', '.join(kept.outputs) or '-'}{about}"
