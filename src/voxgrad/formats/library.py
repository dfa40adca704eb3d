# SPDX-License-Identifier: Apache-2.0
"""Pages kept to be used as blocks: a folder of page files, and the one of the person.

    library = vg.Library("library")
    library.keep(page["layer"].used_page, "residual")
    y = other.use(library.page("residual"), {"x": x})

A page that is used is copied, so no page depends on a folder; it remembers its name here and its version, which is that
of its blocks and wires wherever they stand. Nothing here is code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from voxgrad.catalog.model import Spec
from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.formats import page_file
from voxgrad.formats.page_file import SUFFIX
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.data import undrawn
from voxgrad.graph.nesting import with_pins
from voxgrad.graph.page import Origin, Page
from voxgrad.graph.problems import Fix, PinProblem

FOLDER = "library"
"""Beside pages, and in the folder of a studio."""
_VARIABLE = "VOXGRAD_PAGES"


@dataclass(frozen=True, slots=True)
class Kept:
    """A page of a library as a block: what is known of its pins, its version; `error` says why it cannot be used."""

    name: str
    file: Path
    version: str = ""
    inputs: Mapping[str, Spec] = field(default_factory=dict)
    outputs: Mapping[str, Spec] = field(default_factory=dict)
    about: str = ""
    error: str = ""


class Library:
    """Folders of pages. The first is where pages are kept, and goes before the others where names are the same."""

    def __init__(self, *folders: str | os.PathLike[str]):
        self.folders = tuple(map(Path, folders)) or (personal(),)
        self._found: Path | None = None
        """A folder that nobody has named: it may have come with the pages beside it."""

    @staticmethod
    def beside(place: str | os.PathLike[str]) -> Library:
        """The library in a folder, and behind it the one of the person."""
        made = Library(Path(place) / FOLDER, personal())
        made._found = made.folders[0]
        return made

    def entries(self) -> list[Kept]:
        """Every page that is kept, by name; also those that cannot be opened."""
        return [_entry(name, path) for name, path in sorted(self._files().items())]

    def page(self, name: str) -> Page:
        """A page to use as a block. It says where it comes from."""
        files = self._files()
        if name not in files:
            listed = ", ".join(sorted(files)) or "none"
            raise InvalidArgumentError(Fault("VG050", "Library", "name", f"be one of {listed}", repr(name)[:80]))
        page = page_file.load(files[name])
        with_pins(page)
        page.origin = Origin(name, version_of(page))
        return page

    def keep(self, page: Page, name: str = "", replace: bool = False) -> Kept:
        """Write a page into the first folder. One of that name that says something else is replaced only if asked."""
        name = checked_name(name or page.name)
        copy = Page.from_dict(page.to_dict())
        with_pins(copy)
        copy.name, copy.origin = name, None
        target = self.folders[0] / f"{name}{SUFFIX}"
        if target.is_symlink() or (self.folders[0] == self._found and self._found.is_symlink()):
            raise bad_file(target, "be a file in a folder", "a link, which is not followed", code="VG056")
        if target.exists() and not replace and _entry(name, target).version != version_of(copy):
            remedy = "Keep it under another name, or replace that one."
            raise InvalidArgumentError(Fault("VG060", "Library", "name", "be a new one", repr(name), remedy))
        target.parent.mkdir(parents=True, exist_ok=True)
        copy.save(target)
        return _entry(name, target)

    def newer(self, page: Page) -> list[PinProblem]:
        """A warning for every block whose page has another version here, with the update as its fix."""
        files = self._files()
        found = {name: inner.origin for name, inner in page.pages.items() if inner.origin is not None}
        return list(self._outdated(page, {name: one for name, one in found.items() if one.name in files}))

    def _outdated(self, page: Page, origins: dict[str, Origin]) -> Iterator[PinProblem]:
        for name, origin in origins.items():
            entry = _entry(origin.name, self._files()[origin.name])
            users = [block for block in page.blocks if block.uses == name]
            if entry.error or entry.version == origin.version or not users:
                continue
            newest = self.page(origin.name)
            own = version_of(page.pages[name])
            if own == entry.version:
                continue
            changed = "" if own == origin.version else "; what was changed in it here is lost then"
            title = f"Update {name} from the library{changed}"
            fix = Fix(title, ({"do": "define", "pages": {name: newest.to_dict()}},))
            yield PinProblem(
                users[0].name, "", name, "VG085", f"be the newest {origin.name!r} of the library", "an older version",
                "Update it, or leave it as it is.", (fix,),
            )  # fmt: skip

    def _files(self) -> dict[str, Path]:
        """The files by name; links are not followed, and what begins with a dot is left alone."""
        found: dict[str, Path] = {}
        for folder in reversed(self.folders):
            if folder == self._found and folder.is_symlink():
                continue
            for path in folder.glob(f"*{SUFFIX}") if folder.is_dir() else ():
                if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                    found[path.name.removesuffix(SUFFIX)] = path
        return found


def personal() -> Path:
    """The library of this person: VOXGRAD_PAGES, or voxgrad/library where programs keep data."""
    named = os.environ.get(_VARIABLE)
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(named) if named else data / "voxgrad" / FOLDER


def checked_name(name: str) -> str:
    """A name that a file and a block can have."""
    good = 0 < len(name) <= 100 and name.isprintable() and not set(name) & set('/\\:^<>"|?*')
    if good and name == name.strip() and not name.startswith("."):
        return name
    wanted = 'be the name of a file: printable, up to 100 letters, without / \\ : ^ < > " | ? * or a dot at its begin'
    raise InvalidArgumentError(Fault("VG061", "Library", "name", wanted, repr(name)[:80]))


def version_of(page: Page) -> str:
    """The version of a page: what its blocks and wires say, wherever they stand and whatever it is called."""
    data = undrawn(page.to_dict()) | {"name": FOLDER}
    data.pop("displays", None)
    copy = Page.from_dict(data)
    with_pins(copy)
    return hashlib.sha256(page_file.dumps(copy).encode()).hexdigest()[:16]


_ENTRIES: dict[tuple[Path, int, int], Kept] = {}
"""What was read of files that have not changed since."""


def _entry(name: str, path: Path) -> Kept:
    try:
        stat = path.stat()
        key = (path, stat.st_mtime_ns, stat.st_size)
        if key not in _ENTRIES:
            _ENTRIES[key] = _read(name, path)
        return _ENTRIES[key]
    except (OSError, VoxgradError) as error:
        return Kept(name, path, error=str(error))


def _read(name: str, path: Path) -> Kept:
    page = page_file.load(path)
    with_pins(page)
    notes = [note["text"] for note in page.notes if isinstance(note, dict) and isinstance(note.get("text"), str)]
    about = notes[0] if notes else ""
    inputs = {pin: block.output(0).spec for pin, block in zip(page.input_names, page.input_blocks, strict=True)}
    outputs = {pin: output.spec for pin, output in page.outputs.items()}
    return Kept(name, path, version_of(page), inputs, outputs, about)
