# SPDX-License-Identifier: Apache-2.0
"""Which files the blocks of a page may touch: those in one folder, and what a person has granted besides.

The name of a file that a page states becomes a file here and nowhere else. Its parts are opened one inside the other
and no link is followed, so nothing can be exchanged on the way.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from voxgrad.errors import Fault, InvalidArgumentError

FOLDER = "files"
"""The folder beside a page whose files its blocks may touch."""
MOST_PARTS = 32
MOST_CHARACTERS = 1024
"""Of a name; longer ones are an attack or a mistake."""
REMEDY = f"Put the file into {FOLDER}/ beside the page, or allow its folder: --allow-files FOLDER, allow_files=FOLDER."

_NO_LINK = "not be a link, nor lie behind one or hold one"
_FOLDER_FLAGS = getattr(os, "O_DIRECTORY", 0)


class NotAllowed(Exception):  # noqa: N818 - an answer; whoever asked makes a fault of it
    """A file that a page may not touch: what its name would have to be, and what it is."""

    def __init__(self, wanted: str, got: str, remedy: str = REMEDY):
        super().__init__(wanted, got, remedy)
        self.wanted = wanted
        self.got = got
        self.remedy = remedy

    def error(self, op: str, argument: str) -> InvalidArgumentError:
        """The same as the error of an op."""
        return InvalidArgumentError(Fault("VG056", op, argument, self.wanted, self.got, self.remedy))


class Grant(NamedTuple):
    """A folder with all that lies in it, or one file, that a person lets the blocks of a page touch."""

    path: Path
    """As the system knows it: whole, without links."""
    write: bool = True


@dataclass(frozen=True, slots=True)
class Files:
    """What the blocks of a page may touch: the page's own folder, where it has one, and what was granted.

    Plain names are looked up in the own folder, then in granted ones, in their order; new files are made in the first.
    Names with `..` and whole paths lead to granted places only. Whoever serves others sets `apart`: what a file says of
    itself is then read in a child process, which the file may crash.
    """

    own: Path | None = None
    granted: tuple[Grant, ...] = ()
    apart: bool = False

    @staticmethod
    def beside(page: str | os.PathLike[str]) -> Files:
        """What a page in a file may touch if nobody says otherwise: the folder `files` beside it."""
        return Files(Path(os.path.realpath(page)).with_name(FOLDER))

    def allowing(self, *places: str | os.PathLike[str]) -> Files:
        """The same, and some folders or files besides."""
        more = [Grant(Path(os.path.realpath(place))) for place in places]
        return replace(self, granted=tuple(dict.fromkeys((*self.granted, *more))))

    def __bool__(self) -> bool:
        return self.own is not None or bool(self.granted)

    def as_data(self) -> list[Any]:
        """As plain data, for another process."""
        return [None if self.own is None else str(self.own), [[str(one.path), one.write] for one in self.granted]]

    @staticmethod
    def from_data(data: list[Any]) -> Files:
        """What `as_data` described."""
        own, granted = data
        return Files(None if own is None else Path(own), tuple(Grant(Path(path), write) for path, write in granted))

    def folders(self, write: bool = False) -> list[Path]:
        """Where plain names are looked up, in this order."""
        if not self:
            remedy = "Load the page from a file, or name a folder: --allow-files FOLDER, allow_files=FOLDER."
            raise NotAllowed("lie in a folder that the page may use", "a page without one", remedy)
        granted = [one.path for one in self.granted if (one.write or not write) and not one.path.is_file()]
        return granted if self.own is None else [self.own, *granted]

    def find(self, name: str, write: bool = False) -> Place:
        """Where a name leads, whether something is there or not; what may not be touched is refused."""
        folders, parts = self.folders(write), plain_parts(name)
        if parts is None:
            return self._granted(name, write)
        places = [Place(folder, parts) for folder in folders]
        if not places:
            raise NotAllowed("lie in a folder that the page may use", repr(name))
        return next((one for one in places if os.path.lexists(one.path)), places[0])

    def _granted(self, name: str, write: bool) -> Place:
        """The granted place of a name that leaves its folder, is hidden or a whole path."""
        wanted = f"be the name of a file inside {self.folders(write)[0]}, without '..' and not hidden"
        if not self.granted or not name or not name.isprintable() or len(name) > 4 * MOST_CHARACTERS:
            raise NotAllowed(wanted, repr(name))
        path = Path(os.path.realpath(self.folders()[0] / name))
        for grant in self.granted:
            if (grant.write or not write) and path.is_relative_to(grant.path):
                inside = path.relative_to(grant.path).parts
                if not any(part.startswith(".") for part in inside):
                    return Place(grant.path, inside) if inside else Place(path.parent, (path.name,))
        raise NotAllowed(wanted, repr(name))

    def matching(self, pattern: str) -> set[str]:
        """The names of all files that fit a pattern: `*.bin`, `data/*`, `**/*.txt`; hidden files and links do not."""
        parts = plain_parts(pattern)
        if parts is None:
            raise NotAllowed("be a pattern inside the folder of the page", repr(pattern))
        found: set[str] = set()
        for folder in self.folders():
            with contextlib.suppress(FileNotFoundError), _held(_opened(folder, _FOLDER_FLAGS)) as at:
                found.update(_matching(at, parts, {0}, ""))
        return found


_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that are devices on some systems, in every folder."""


def plain_parts(name: str) -> tuple[str, ...] | None:
    """The parts of a name that stays where it starts, on every system; None for all others.

    Others are whole paths, `..`, hidden files, devices, and names that cannot be shown.
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    bad = not parts or name.startswith("/") or "\\" in name or not name.isprintable()
    bad = bad or any(part.startswith(".") or _DEVICE.fullmatch(part) for part in parts)
    return None if bad or len(parts) > MOST_PARTS or len(name) > MOST_CHARACTERS else parts


@dataclass(frozen=True, slots=True)
class Place:
    """A file that may be touched: a folder that a person chose, and the way from there, which may not hold links."""

    base: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Its path. Whoever opens it has to ask `checked` first."""
        return self.base.joinpath(*self.parts)

    def open(self) -> IO[bytes]:
        """The file, to be read. Pipes and devices, which may never end, are refused."""
        with self._folder() as folder:
            file = os.fdopen(_opened(self.parts[-1], os.O_RDONLY | os.O_NONBLOCK, folder), "rb")
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
        raise NotAllowed("be a plain file", str(self.path), "")

    def replace(self, write: Callable[[IO[bytes]], Any]) -> None:
        """Write a file beside this one, then put it in its place: complete, or as before."""
        name, temporary = self.parts[-1], f".{self.parts[-1][:100]}.{secrets.token_hex(4)}.tmp"
        with self._folder(make=True) as folder:
            _refuse_link(name, folder)
            made = _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
            try:
                with os.fdopen(made, "wb") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise

    def remove(self) -> None:
        """Delete the file."""
        with self._folder() as folder:
            _refuse_link(self.parts[-1], folder)
            os.unlink(self.parts[-1], dir_fd=folder)

    def remove_empty_folder(self) -> None:
        """Delete the folder of the file, where it is empty and not the chosen one itself."""
        if len(self.parts) > 1:
            with contextlib.suppress(OSError), Place(self.base, self.parts[:-1])._folder() as folder:
                os.rmdir(self.parts[-2], dir_fd=folder)

    def checked(self) -> Path:
        """The path, for a library that opens files itself: no part of it is a link, and nothing that lies in it is."""
        with contextlib.suppress(FileNotFoundError), self._folder() as folder:
            _refuse_link(self.parts[-1], folder)
            mode = os.lstat(self.parts[-1], dir_fd=folder).st_mode
            if stat.S_ISDIR(mode):
                with _held(_opened(self.parts[-1], _FOLDER_FLAGS, folder)) as inner:
                    _refuse_links(inner, str(self.path))
            elif not stat.S_ISREG(mode):
                raise NotAllowed("be a plain file or a folder", str(self.path), "")
        return self.path

    @contextlib.contextmanager
    def _folder(self, make: bool = False) -> Iterator[int]:
        """The folder that the file lies in, opened part by part."""
        if make:
            _refuse_link(self.base, None)
            self.base.mkdir(exist_ok=True)
        at = _opened(self.base, _FOLDER_FLAGS)
        try:
            for part in self.parts[:-1]:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                inner = _opened(part, _FOLDER_FLAGS, at)
                os.close(at)
                at = inner
            yield at
        finally:
            os.close(at)


def _opened(name: str | Path, flags: int, folder: int | None = None) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError:
        _refuse_link(name, folder)
        raise


def _refuse_link(name: str | Path, folder: int | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise NotAllowed(_NO_LINK, str(name))


def _refuse_links(folder: int, path: str, depth: int = 0) -> None:
    """Refuse what holds a link at any depth, as a chunk of a Zarr array may be one."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or depth > MOST_PARTS:
                raise NotAllowed(_NO_LINK, f"{path}/{entry.name}")
            if entry.is_dir(follow_symlinks=False):
                with _held(_opened(entry.name, _FOLDER_FLAGS, folder)) as inner:
                    _refuse_links(inner, f"{path}/{entry.name}", depth + 1)


@contextlib.contextmanager
def _held(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _matching(folder: int, parts: tuple[str, ...], at: set[int], before: str) -> Iterator[str]:
    """The files below a folder that fit. `at` holds every place in the pattern that has been reached there."""
    reached = set(at)
    for index, part in enumerate(parts):
        if index in reached and part == "**":
            reached.add(index + 1)
    with os.scandir(folder) as entries:
        listed = [entry for entry in entries if not entry.name.startswith(".")]
    for entry in listed:
        ahead = {one for one in reached if one < len(parts) and parts[one] == "**"}
        ahead |= {one + 1 for one in reached if one < len(parts) and fnmatch.fnmatchcase(entry.name, parts[one])}
        if entry.is_file(follow_symlinks=False) and len(parts) in ahead:
            yield before + entry.name
        elif entry.is_dir(follow_symlinks=False) and ahead and before.count("/") < MOST_PARTS:
            with _held(_opened(entry.name, _FOLDER_FLAGS, folder)) as inner:
                yield from _matching(inner, parts, ahead, f"{before}{entry.name}/")
