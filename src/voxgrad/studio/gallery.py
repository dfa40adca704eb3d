# SPDX-License-Identifier: Apache-2.0
"""The examples as cards."""

from __future__ import annotations

import shutil
from functools import cache, partial
from pathlib import Path

import voxgrad
from voxgrad.arrays.locks import make_lock
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.page_file import SUFFIX, load
from voxgrad.formats.picture import draw_svg
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.studio import messages

PLACES = (Path(voxgrad.__file__).with_name("examples"), Path(voxgrad.__file__).resolve().parents[2] / "examples")
"""In an installed package, and in a clone."""


def _files() -> dict[str, Path]:
    folder = next((place for place in PLACES if place.is_dir() and any(place.glob(f"*{SUFFIX}"))), None)
    found = [] if folder is None else sorted(folder.glob(f"*{SUFFIX}"), key=_rank)
    return {path.name.removesuffix(SUFFIX): path for path in found}


def _rank(path: Path) -> tuple[bool, str]:
    """What shows most in a minute comes first: a page with a mistake that one click repairs."""
    return "mistake" not in path.name, path.name


def cards() -> list[messages.Card]:
    """All examples, with a drawing of each, which is made once, also where several windows ask at once."""
    with _lock:
        return _cards()


_lock = make_lock()


@cache
def _cards() -> list[messages.Card]:
    return [_card(name, load(path)) for name, path in _files().items()]


def _card(name: str, page: Page) -> messages.Card:
    notes = [note["text"] for note in page.notes if isinstance(note, dict) and isinstance(note.get("text"), str)]
    return messages.Card(
        id=name, title=page.name, summary=notes[0] if notes else "", picture_svg=draw_svg(page, embed=False)
    )


def bring_files(page: Page, files: Files) -> None:
    """Copy the volumes that the blocks of an example read; files of the same name that are there are kept."""
    for block in page.blocks:
        name = block.attrs.get("path") if block.op_name == "Volume" else None
        try:
            if name and not (target := files.find(name, write=True)).path.exists():
                with page.files.find(name).open() as source:
                    target.replace(partial(shutil.copyfileobj, source))
        except NotAllowed as error:
            raise error.error("studio", "files") from None


def page(name: str) -> Page:
    """A fresh copy of an example."""
    files = _files()
    if name not in files:
        raise InvalidArgumentError(
            Fault("VG050", "studio", "example", f"be one of {', '.join(files) or 'none'}", repr(name[:80]))
        )
    return load(files[name])
