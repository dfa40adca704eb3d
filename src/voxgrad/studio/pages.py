# SPDX-License-Identifier: Apache-2.0
"""The pages of a folder: by id and revision, with drafts that survive a crash, snapshots and a trash.

The revision of a page belongs to the content of its file. A save that was killed half-way has either not happened, or
it has and the next look at the file counts it: nothing has to be repaired.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.formats import page_file
from voxgrad.formats.page_file import SUFFIX
from voxgrad.graph.page import Page
from voxgrad.studio import messages
from voxgrad.studio.documents import Documents
from voxgrad.studio.history import History
from voxgrad.studio.journal import Journal
from voxgrad.studio.messages import Document
from voxgrad.studio.project import Project, file_stem


class StaleRevision(VoxgradError):  # noqa: N818 - a state of the page, not a defect
    """A save of a page that somebody else has saved meanwhile."""

    def __init__(self, wanted: int, given: int):
        remedy = "Open the page again, or save under another name."
        super().__init__(Fault("VG055", "studio", "revision", f"be {wanted}, the newest", str(given), remedy))
        self.revision = wanted


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a file that looked like this when it was read."""

    look: tuple[int, int, int]
    revision: int
    name: str
    error: str | None


class PageStore:
    """All pages of a project. Every method can be called from any thread."""

    def __init__(self, project: Project, documents: Documents, history: History):
        self._project = project
        self._documents = documents
        self._history = history
        self._lock = threading.RLock()
        self._known: dict[str, _Known] = {}
        self._journals: dict[str, Journal] = {}

    def entries(self) -> list[messages.PageEntry]:
        """Every page file of the folder, also those that cannot be opened."""
        with self._lock:
            return [self._entry(page, path) for page, path in self._paths().items()]

    def get(self, page: str) -> messages.PageData:
        """A page with its document, and with its draft where that says something else."""
        with self._lock:
            path = self._path(page)
            known = self._look(page, path)
            document = self._documents.write(page_file.load(path))
            draft = self._draft(page, document)
            return messages.PageData(
                id=page,
                name=known.name,
                file=self._shown(path),
                revision=known.revision,
                document=document,
                draft=draft,
            )

    def create(self, name: str, document: Document | None = None) -> messages.PageData:
        """A new page file."""
        page = Page(name) if document is None else self._documents.read(document)
        page.name = name
        return self.add(page)

    def add(self, page: Page) -> messages.PageData:
        """A new page file with this page in it."""
        with self._lock:
            path = self._project.new_file(page.name, SUFFIX)
            page.save(path)
            return self.get(self._id(path))

    def save(self, page: str, revision: int, document: Document) -> messages.Saved:
        """Write a page that was opened at this revision."""
        made = self._documents.read(document)
        with self._lock:
            path = self._path(page)
            known = self._look(page, path)
            if known.revision != revision and not self._is_there(made, path):
                raise StaleRevision(known.revision, revision)
            if known.revision == revision:
                made.save(path)
            self._journal(page).end()
            return messages.Saved(revision=self._look(page, path).revision, modified=path.stat().st_mtime)

    def keep_draft(self, page: str, base_revision: int, document: Document) -> messages.DraftSaved:
        """Put what is typed on the disk; it need not be a valid page."""
        with self._lock:
            self._path(page)
            journal = self._journal(page)
        saved_at = time.time()
        journal.append({"saved_at": saved_at, "base_revision": base_revision, "document": document})
        return messages.DraftSaved(saved_at=saved_at)

    def drop_draft(self, page: str) -> None:
        """What was typed is not wanted."""
        with self._lock:
            self._path(page)
            self._journal(page).end()

    def delete(self, page: str) -> None:
        """Move a page, with its constants, to the trash."""
        with self._lock:
            path = self._path(page)
            place = self._project.trash / f"{time.time_ns()}"
            place.mkdir()
            path.replace(place / path.name)
            data = path.with_name(f"{path.name.removesuffix(SUFFIX)}.data")
            if data.is_dir() and not data.is_symlink():
                shutil.move(data, place / data.name)
            self._journal(page).end()
            self._known.pop(page, None)
            self._history.forget_page(page)

    def snapshot(self, page: str, name: str) -> messages.Snapshot:
        """Keep the saved page under a name."""
        with self._lock:
            path = self._path(page)
            folder = self._project.snapshots / page
            folder.mkdir(exist_ok=True)
            number = max((one.number for one in self.snapshots(page)), default=0) + 1
            page_file.load(path).save(folder / f"{number}{SUFFIX}")
            made = messages.Snapshot(number=number, name=name, saved_at=time.time())
            (folder / f"{number}.name").write_text(made.model_dump_json())
            return made

    def snapshots(self, page: str) -> list[messages.Snapshot]:
        """The named states of a page, the oldest first."""
        self._path(page)
        names = (self._project.snapshots / page).glob("*.name")
        found = [messages.Snapshot.model_validate_json(path.read_text()) for path in names]
        return sorted(found, key=lambda one: one.number)

    def snapshot_document(self, page: str, number: int) -> Document:
        """The document of a named state."""
        if number not in {one.number for one in self.snapshots(page)}:
            raise _no_such("snapshot", str(number))
        return self._documents.write(page_file.load(self._project.snapshots / page / f"{number}{SUFFIX}"))

    def stem(self, page: str) -> str:
        """The name of a page as that of a file that is handed out."""
        return file_stem(self._look(page, self._path(page)).name)

    def changes(self) -> dict[str, int | None]:
        """The pages whose files are not what they were at the last look, with their revisions; None: gone."""
        with self._lock:
            before = {page: known.revision for page, known in self._known.items()}
            paths = self._paths()
            now = {page: self._look(page, path).revision for page, path in paths.items()}
            for page in before.keys() - now.keys():
                del self._known[page]
            changed: dict[str, int | None] = {page: now[page] for page in now if before.get(page) != now[page]}
            return changed | {page: None for page in before if page not in now}

    def _paths(self) -> dict[str, Path]:
        return {self._id(path): path for path in self._project.find(SUFFIX)}

    def _id(self, path: Path) -> str:
        shown = self._shown(path).encode()
        return hashlib.blake2b(shown, digest_size=8).hexdigest()

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._project.root).as_posix()

    def _path(self, page: str) -> Path:
        found = self._paths().get(page)
        if found is None:
            raise _no_such("page", page)
        return found

    def _journal(self, page: str) -> Journal:
        return self._journals.setdefault(page, Journal(self._project.drafts / f"{page}.journal"))

    def _look(self, page: str, path: Path) -> _Known:
        """The state of a file; it is read only if it looks different from the last time."""
        stat = path.stat()
        look = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._known.get(page)
        if known is not None and known.look == look:
            return known
        data = path.read_bytes()
        revision = self._history.revision(page, hashlib.sha256(data).hexdigest())
        name, error = _name_of(data, path)
        known = self._known[page] = _Known(look, revision, name, error)
        return known

    def _entry(self, page: str, path: Path) -> messages.PageEntry:
        known = self._look(page, path)
        return messages.PageEntry(
            id=page, name=known.name, file=self._shown(path), revision=known.revision, modified=path.stat().st_mtime,
            has_draft=self._journal(page).last() is not None, error=known.error,
        )  # fmt: skip

    def _draft(self, page: str, document: Document) -> messages.Draft | None:
        record = self._journal(page).last()
        if record is None:
            return None
        try:
            same = self._documents.write(self._documents.read(record["document"])) == document
        except VoxgradError:
            same = False
        if same:
            # The page was saved and the server killed before the journal ended.
            self._journal(page).end()
            return None
        return messages.Draft.model_validate(record)

    def _is_there(self, made: Page, path: Path) -> bool:
        """True if the file holds just this page: a client repeats a save whose answer it never got."""
        return self._documents.write(made) == self._documents.write(page_file.load(path))


def _name_of(data: bytes, path: Path) -> tuple[str, str | None]:
    """The title of a page without reading all of it, and why it is none."""
    try:
        head = json.loads(data)
        name = head.get("name")
        if head.get("format") == page_file.FORMAT and isinstance(name, str):
            return name, None
        return path.name, "It is not a page."
    except (ValueError, AttributeError, RecursionError) as error:
        return path.name, f"It cannot be read: {error}"


def _no_such(what: str, given: str) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG050", "studio", what, "be one that is there", repr(given[:80])))
