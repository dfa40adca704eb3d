# SPDX-License-Identifier: Apache-2.0
"""What a person has allowed a page to touch outside of its folder, and what a page asks for.

A grant holds for one page as it is: for what its blocks say, in the folder where it lies. A page that was changed, or
put elsewhere, asks again. Grants lie with the settings of the person, never in a page or beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.studio import messages
from voxgrad.studio.keys import write_private

MOST = 1000
"""Grants that are remembered; the oldest go first."""
_PINS = ("filename", "file_pattern", "prefix")
_WRITERS = ("WriteFile", "Save", "SaveV2")


def settings_folder() -> Path:
    """Where the settings of the person lie."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "voxgrad"


class Grants:
    """The grants for pages of one folder. Any thread may use it."""

    def __init__(self, root: Path, file: Path | None = None):
        self._root = str(root)
        self._file = file or settings_folder() / "grants.json"
        self._lock = threading.Lock()

    def folders(self, document: Mapping[str, Any]) -> list[str]:
        """The folders that the page in a document may use besides."""
        kept = self._kept()
        if not any(one["root"] == self._root for one in kept):
            return []
        content = digest(document)
        return next((one["folders"] for one in kept if (one["root"], one["content"]) == (self._root, content)), [])

    def allow(self, document: Mapping[str, Any], folders: list[str]) -> None:
        """Let the page in a document use these folders, and no others."""
        whole = [_checked(folder) for folder in folders]
        content = digest(document)
        with self._lock:
            kept = [one for one in self._kept() if (one["root"], one["content"]) != (self._root, content)]
            if whole:
                kept.append({"root": self._root, "content": content, "folders": whole})
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._file, json.dumps({"version": 1, "grants": kept[-MOST:]}, indent=1))

    def _kept(self) -> list[dict[str, Any]]:
        try:
            found = json.loads(self._file.read_text())["grants"]
            return [one for one in found if {"root", "content", "folders"} <= one.keys()]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []


def _checked(folder: str) -> str:
    path = Path(os.path.expanduser(folder))
    if "\0" in folder or not path.is_absolute() or not path.is_dir() or path.resolve() == Path(path.anchor):
        wanted = "be the whole path of a folder that is there, and not of all folders"
        raise InvalidArgumentError(Fault("VG051", "studio", "folders", wanted, repr(folder[:200])))
    return str(path.resolve())


def digest(document: Mapping[str, Any]) -> str:
    """What the blocks of a page say, in one number; where they stand on it does not matter."""
    return hashlib.sha256(json.dumps(_said(document), sort_keys=True).encode()).hexdigest()


_LOOKS = ("position", "notes", "displays", "groups")
"""What of a page changes only how it looks."""


def _said(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _said(value) for key, value in data.items() if key not in _LOOKS}
    return [_said(one) for one in data] if isinstance(data, (list, tuple)) else data


def wanted(page: Page, files: Files) -> list[messages.WantedFile]:
    """The files that blocks name and may not touch, as far as their names are known before a run."""
    found = []
    for path, block in _blocks(page, ""):
        for name in _names(block):
            write = block.op_name in _WRITERS
            try:
                files.find(name, write)
            except NotAllowed:
                folder, op = _folder(files, name), block.op_name
                found.append(messages.WantedFile(block=path, op=op, name=name, write=write, folder=folder))
    return found


def _blocks(page: Page, before: str) -> Iterator[tuple[str, Block]]:
    for block in page.blocks:
        yield before + block.name, block
        if block.used_page is not None:
            yield from _blocks(block.used_page, f"{before}{block.name}/")


def _names(block: Block) -> Iterator[str]:
    if block.op_name == "Volume" and isinstance(block.attrs.get("path"), str):
        yield block.attrs["path"]
    for pin in _PINS if block.op is not None and block.op.stateful else ():
        for source in block.sources.get(pin, ()):
            value: Any
            if isinstance(source, Output):
                value = source.block.attrs.get("value") if source.block.op_name == "Const" else None
            else:
                value = source.value
            for one in np.asarray(value, dtype=object).ravel().tolist() if value is not None else ():
                text = one.decode(errors="replace") if isinstance(one, bytes) else one
                if isinstance(text, str):
                    yield text


def _folder(files: Files, name: str) -> str:
    """The folder that would have to be allowed; nothing where that would not help, as for hidden files."""
    if files.own is None or not name.isprintable():
        return ""
    path = Path(os.path.realpath(files.own / name))
    folder = path.parent
    return str(folder) if folder.is_dir() and not path.name.startswith(".") and folder != Path(folder.anchor) else ""
