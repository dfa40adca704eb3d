# SPDX-License-Identifier: Apache-2.0
"""The parts of a studio, put together for one folder."""

from __future__ import annotations

import re
import shutil
import threading
from collections import OrderedDict
from pathlib import Path

from voxgrad.formats.library import Library
from voxgrad.kernels.arraywise.files import Files, Grant
from voxgrad.studio import packages, summaries
from voxgrad.studio.chunked import ChunkedRuns
from voxgrad.studio.documents import Documents
from voxgrad.studio.events import Hub
from voxgrad.studio.grants import Grants
from voxgrad.studio.history import History
from voxgrad.studio.limits import RunLimits
from voxgrad.studio.pages import PageStore
from voxgrad.studio.planes import Planes
from voxgrad.studio.project import Project
from voxgrad.studio.runs import Runs
from voxgrad.studio.sweeps import Sweeps
from voxgrad.studio.tensors import TensorStore

KEPT_SUMMARIES = 512


class Studio:
    """Everything that the routes use."""

    def __init__(self, folder: Path, limits: RunLimits | None = None, shown: Path | None = None):
        """`shown` is a file or a folder elsewhere that its pages may read besides."""
        packages.try_all_first()
        self.project = Project(folder)
        self.limits = limits if limits is not None else RunLimits.of_this_machine()
        self.grants = Grants(self.project.root)
        granted = () if shown is None else (Grant(shown, write=False),)
        self.documents = Documents(self.project.blobs, Files(self.project.files, granted, apart=True), self.grants)
        self.library = Library.beside(self.project.root)
        self.history = History(self.project.state / "studio.sqlite")
        self.tensors = TensorStore(self.project.tensors)
        self.planes = Planes(self.tensors)
        self.pages = PageStore(self.project, self.documents, self.history)
        self.hub = Hub()
        self.runs = Runs(self.project, self.history, self.tensors, self.limits, self.hub.publish)
        self.sweeps = Sweeps(self.documents, self.runs, self.limits, self.hub.publish)
        self.chunked = ChunkedRuns(self.project, self.limits, self.grants)
        self._summaries: OrderedDict[object, str] = OrderedDict()
        self._lock = threading.Lock()
        self._sweep()

    def _sweep(self) -> None:
        """Take away what a killed studio has left: uploads, and constants that no draft speaks of."""
        for path in self.project.uploads.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if self.project.blobs.is_dir():
            text = b"".join(path.read_bytes() for path in self.project.drafts.glob("*.journal"))
            used = set(re.findall(rb"blobs\.data/([0-9a-f]{16}\.npy)", text))
            for path in self.project.blobs.iterdir():
                if path.name.encode() not in used:
                    path.unlink(missing_ok=True)

    def summary(self, name: str, axes: tuple[int, int] | None, at: tuple[int, ...]) -> str:
        """The summary of a tensor as JSON; it never changes, so it is kept."""
        key = (name, axes, at)
        with self._lock:
            if key in self._summaries:
                self._summaries.move_to_end(key)
                return self._summaries[key]
        made = summaries.summary(name, self.tensors.open(name), axes, at).model_dump_json()
        with self._lock:
            self._summaries[key] = made
            while len(self._summaries) > KEPT_SUMMARIES:
                self._summaries.popitem(last=False)
        return made

    def close(self) -> None:
        """Let the folder go."""
        self.history.close()
        self.project.close()
