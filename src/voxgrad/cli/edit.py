# SPDX-License-Identifier: Apache-2.0
"""`voxgrad edit`: the edits of the studio, and of `Page.apply`, on a page file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxgrad.cli import exits
from voxgrad.cli.pages import add_page, open_page, save_page
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats import json_text, page_file
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.edits import NAMES

DESCRIPTION = """\
Change a page, by edits as data: an object, or a list of them that is carried out whole or not at all.

  voxgrad edit page.vox.json '{"do": "rename", "block": "x", "name": "scan"}'
  voxgrad edit page.vox.json '{"do": "set_text", "block": "pool", "name": "ksize", "text": "1,2,2,2,1"}'
  voxgrad edit page.vox.json '{"do": "gradients", "of": ["pool"]}' -o with_gradients.vox.json
  voxgrad edit page.vox.json '[{"do": "remove", "block": "a"}, {"do": "fold", "blocks": ["b", "c"], "name": "layer"}]'
  voxgrad edit page.vox.json @edits.json --inside layer

Edits, whose entries docs/graphs.md shows:
  {edits}
""".replace("{edits}", ", ".join(NAMES))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad edit`."""
    add_page(parser)
    parser.add_argument(
        "edit",
        metavar="EDIT",
        help="an edit, or a list of edits, as JSON; @FILE for a file with them, - for standard input",
    )
    parser.add_argument(
        "--inside", action="append", default=[], metavar="NAME", help="edit this inner page; repeatable"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the changed page goes (default: the page itself)")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Edit, and save."""
    page = edited = open_page(arguments)
    for name in arguments.inside:
        if name not in edited.pages:
            known = ", ".join(edited.pages) or "none"
            raise InvalidArgumentError(Fault("VG050", "voxgrad edit", "--inside", f"be one of {known}", repr(name)))
        edited = edited.pages[name]
    data, _ = json_text.read_json(_given(arguments.edit), "EDIT")
    edited.apply(page_file.edits_from_data(data, Path(arguments.page).resolve().parent))
    save_page(page, arguments)
    return exits.OK


def _given(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise bad_file(text[1:], "be a file that can be read", error.strerror or error) from None
