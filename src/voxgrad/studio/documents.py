# SPDX-License-Identifier: Apache-2.0
"""Documents of clients as pages and back. What comes in is untrusted: its depth is checked before it is walked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats import json_text, migrations, page_file
from voxgrad.formats.constants import Arrays, Reader
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio.grants import Grants
from voxgrad.studio.messages import Document

MAX_BLOCKS = 20_000
KEPT_PAGES = 8


class Documents:
    """Reads and writes documents. Large constants of them lie in one folder, under their checksums.

    `files` are those that their blocks may touch.
    """

    def __init__(self, blobs: Path, files: Files, grants: Grants | None = None):
        self._blobs = blobs
        self._files = files
        self._grants = grants
        self._arrays = Arrays()
        self._seen: OrderedDict[bytes, Page] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, document: Document) -> Page:
        """The page that a client sent; everything that is malformed in it is one error."""
        check_depth(document)
        blocks = document.get("blocks")
        if isinstance(blocks, list) and len(blocks) > MAX_BLOCKS:
            raise _malformed("blocks", f"be at most {MAX_BLOCKS:,}", f"{len(blocks):,}")
        head = {"format": page_file.FORMAT, "version": migrations.VERSION}
        page = page_file.from_data(head | document, "page", self._blobs.parent, known=self._arrays)
        page.files = self._files
        if self._grants is not None:
            page.allow_files(*self._grants.folders(document))
        return page

    def values(self, note: Callable[[json_text.Path, str, object], None]) -> Reader:
        """What reads values that a client sent besides its page; large ones lie where those of documents do."""
        return Reader(self._blobs.parent, note, self._arrays)

    def look(self, document: Document) -> Page:
        """The page that a client sent, inferred and not to be changed: the same one for the same document.

        An editor asks about one document many times, at every move of the mouse.
        """
        check_depth(document)
        granted = self._grants.folders(document) if self._grants is not None else []
        key = hashlib.blake2b(json.dumps([document, granted]).encode(), digest_size=16).digest()
        with self._lock:
            page = self._seen.pop(key, None)
            if page is None:
                page = self.read(document)
                page.problems()
            self._seen[key] = page
            while len(self._seen) > KEPT_PAGES:
                self._seen.popitem(last=False)
            return page

    def edit(self, document: Document, path: list[str], edits: list[dict[str, Any]]) -> tuple[Document, list[str]]:
        """The document after edits of the page at a path, and the names of the blocks that are new there."""
        check_depth(edits)
        page = self.read(document)
        edited = page_at(page, path)
        before = set(edited.blocks)
        edited.apply(page_file.edits_from_data(edits, self._blobs.parent, self._arrays))
        return self.write(page), [one.name for one in edited.blocks if one not in before]

    def write(self, page: Page) -> Document:
        """The page for a client."""
        return page_file.to_data(page, self._blobs, self._arrays)


def page_at(page: Page, path: list[str]) -> Page:
    """The page inside of pages that a path names."""
    for name in path:
        if name not in page.pages:
            raise _malformed("path", "name pages that are there", repr(name)[:80])
        page = page.pages[name]
    return page


def check_depth(value: Any, limit: int = json_text.MAX_DEPTH) -> None:
    """Refuse what is nested so deep that walking it would be a danger."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise _malformed("document", f"be nested at most {limit} deep", "more")


def _malformed(argument: str, wanted: str, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG053", "studio", argument, wanted, got))
