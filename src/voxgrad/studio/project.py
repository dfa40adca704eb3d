# SPDX-License-Identifier: Apache-2.0
"""The folder that a studio works in: its pages, and what the studio keeps beside them in `.voxgrad/`.

Clients speak of pages by id. An id is looked up among the files that are there; it is never made into a path.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

from voxgrad.errors import Fault, VoxgradError

STATE = ".voxgrad"
MAX_DEPTH = 6
MAX_FILES = 5000


class Project:
    """A folder with pages. One studio at a time: the second one is told."""

    TENSORS = "tensors"
    BLOBS = "blobs.data"

    def __init__(self, folder: Path):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.root = folder.resolve(strict=True)
            self.state = self.root / STATE
            for place in (self.state, self.drafts, self.snapshots, self.trash, self.tensors, self.uploads):
                place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise VoxgradError(
                Fault(
                    "VG051", "studio", str(folder), "be a folder that can be written to", error.strerror or str(error)
                )
            ) from None
        self._lock = self.state / "lock"
        self._descriptor = self._take_lock()
        ignore = self.state / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")

    @property
    def drafts(self) -> Path:
        """Journals of what is not saved."""
        return self.state / "drafts"

    @property
    def snapshots(self) -> Path:
        """Named states of pages."""
        return self.state / "snapshots"

    @property
    def trash(self) -> Path:
        """Pages that were deleted."""
        return self.state / "trash"

    @property
    def tensors(self) -> Path:
        """Results by content."""
        return self.state / self.TENSORS

    @property
    def uploads(self) -> Path:
        """Files that are being brought in."""
        return self.state / "uploads"

    @property
    def blobs(self) -> Path:
        """Large constants of documents that are being edited; the folder is made by the first of them."""
        return self.state / self.BLOBS

    @property
    def files(self) -> Path:
        """The only place where blocks may read and write files."""
        return self.root / "files"

    def _take_lock(self) -> int:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                remedy = "Use its window, or stop it first."
                raise VoxgradError(
                    Fault("VG051", "studio", str(self.root), "be open in one studio", "another one has it", remedy)
                ) from None
        return descriptor

    def close(self) -> None:
        """Let another studio have the folder."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def find(self, suffix: str) -> list[Path]:
        """All files with this ending, without links and hidden folders, in a fixed order."""
        found: list[Path] = []
        waiting = [(self.root, 0)]
        while waiting and len(found) < MAX_FILES:
            folder, depth = waiting.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                if entry.is_dir() and depth < MAX_DEPTH and not entry.name.endswith(".data"):
                    waiting.append((Path(entry.path), depth + 1))
                elif entry.name.endswith(suffix) and entry.is_file():
                    found.append(Path(entry.path))
        return found

    def new_file(self, title: str, suffix: str) -> Path:
        """A path in the folder for a page with this title, which no file has yet."""
        stem = file_stem(title)
        for number in range(1, 10000):
            path = self.root / (f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}")
            if not path.exists() and not path.is_symlink():
                return path
        raise VoxgradError(Fault("VG060", "studio", "name", "be one that few pages have", repr(title)))


_RESERVED = {"con", "prn", "aux", "nul", *(f"{device}{n}" for device in ("com", "lpt") for n in range(1, 10))}


def file_stem(title: str) -> str:
    """A title as the name of a file on any system: letters and digits stay, everything else becomes a dash."""
    stem = re.sub(r"[^\w]+", "-", title, flags=re.UNICODE).strip("-_")[:60].rstrip("-_").lower()
    return f"page-{stem}".rstrip("-") if not stem or stem in _RESERVED else stem
