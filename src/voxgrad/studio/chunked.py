# SPDX-License-Identifier: Apache-2.0
"""Volumes of the folder, and pages that run over them chunk by chunk, each run in a process of its own.

What a run has done is told by the records beside its output, so runs of other programs are shown too, and a run that
was stopped, or whose studio has died, goes on when it is started again.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import voxgrad
from voxgrad.errors import Fault, InvalidArgumentError, VoxgradError
from voxgrad.graph.volume_files import header, headers
from voxgrad.kernels.arraywise.files import Files, NotAllowed
from voxgrad.studio import messages
from voxgrad.studio.grants import Grants
from voxgrad.studio.limits import RunLimits
from voxgrad.studio.project import MAX_DEPTH, Project
from voxgrad.volumes.stores import SUFFIXES
from voxgrad.volumes.watch import SUFFIX, State, watch

MOST_VOLUMES = 200
MOST_RUNS = 50
MOST_CELLS = (24, 24, 24)
MOST_FAILURES = 20
START_SECONDS = 30.0
"""How long a new run may take to make its records, or to say why not."""
_OUTPUT = re.compile(r"\w[\w .-]{0,80}\.(npy|zarr|nii|tif|tiff|h5|hdf5)")


@dataclass
class _Child:
    """A run that this studio has started."""

    process: subprocess.Popen[bytes]
    error: list[Fault] = field(default_factory=list)
    told: threading.Event = field(default_factory=threading.Event)
    """Set when what it said at its end is in `error`."""

    @property
    def running(self) -> bool:
        return self.process.poll() is None


class ChunkedRuns:
    """Lists volumes and runs, starts and stops runs. Any thread may use it."""

    def __init__(self, project: Project, limits: RunLimits, grants: Grants):
        self._project = project
        self._files = Files(project.files, apart=True)
        self._limits = limits
        self._grants = grants
        self._children: dict[str, _Child] = {}
        self._lock = threading.Lock()

    # What there is

    def volumes(self) -> messages.Volumes:
        """The volumes of the folder, from their headers."""
        names = list(itertools.islice(self._names(), MOST_VOLUMES))
        told = headers(self._files, names)
        return messages.Volumes(volumes=[self._volume(name, one) for name, one in zip(names, told, strict=True)])

    def _volume(self, name: str, told: dict[str, Any] | VoxgradError) -> messages.VolumeData:
        if isinstance(told, VoxgradError):
            return messages.VolumeData(name=name, error=str(told.faults[0]).replace(str(self._project.files), "files"))
        return messages.VolumeData(name=name, **{key: told[key] for key in told if key not in ("path", "affine")})

    def _names(self) -> Iterator[str]:
        """Volumes by name, in a fixed order; slices of a series are one volume, under the name of their folder."""
        series: set[str] = set()
        for entry in self._entries():
            name, path = entry.name.lower(), str(Path(entry.path).relative_to(self._project.files))
            folder = str(Path(path).parent)
            if name.endswith(".dcm") and folder != ".":
                if folder not in series:
                    series.add(folder)
                    yield folder
            elif name.endswith(SUFFIXES) and (entry.is_file() or name.endswith(".zarr")):
                yield path

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        waiting = [] if self._project.files.is_symlink() else [(self._project.files, 0)]
        while waiting:
            folder, depth = waiting.pop(0)
            with contextlib.suppress(OSError):
                for entry in sorted(os.scandir(folder), key=lambda one: one.name):
                    if entry.name.startswith(".") or entry.is_symlink():
                        continue
                    yield entry
                    if entry.is_dir() and depth < MAX_DEPTH and not entry.name.endswith((".zarr", SUFFIX)):
                        waiting.append((Path(entry.path), depth + 1))

    def runs(self) -> messages.ChunkedRuns:
        """All runs that have records in the folder, the newest first."""
        folders = [Path(entry.path) for entry in self._entries() if entry.name.endswith(SUFFIX) and entry.is_dir()]
        folders.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
        found = []
        for folder in folders[:MOST_RUNS]:
            with contextlib.suppress(VoxgradError):
                found.append(self._data(folder, watch(folder)))
        return messages.ChunkedRuns(runs=found)

    def _data(self, folder: Path, state: State) -> messages.ChunkedRun:
        name = str(folder.relative_to(self._project.files)).removesuffix(SUFFIX)
        child = self._children.get(_id(name))
        shown, cells = state.picture(MOST_CELLS)
        failed = [
            messages.FailedChunk(chunk=chunk, message=told)
            for chunk, told in sorted(state.failed.items())[:MOST_FAILURES]
        ]
        return messages.ChunkedRun(
            id=_id(name), name=name, phase=state.phase, grid=list(state.grid), chunks=list(state.chunks),
            shown=list(shown), cells=cells, total=state.total, done=len(state.done), running=len(state.running),
            failed=failed, rate=state.rate, seconds=state.seconds, seconds_left=state.seconds_left,
            stoppable=child is not None and child.running and not state.finished,
            error=None if child is None or not child.error else str(child.error[0]),
        )  # fmt: skip

    # Starting and stopping

    def start(self, ask: messages.AskChunkedRun) -> messages.ChunkedRun:
        """Start a run, or go on with one; the answer comes when it has begun, or says why it did not."""
        outputs = {block: self._output(name) for block, name in ask.outputs.items()}
        # A Volume block that names the file itself also says how to read it: its axes, its box.
        own = {(str(block.get("name")), str(block["attrs"].get("path"))) for block in _volume_blocks(ask.document)}
        given = {block: name for block, name in ask.volumes.items() if (block, name) not in own}
        volumes = {block: header(self._files, name, "")["path"] for block, name in given.items()}
        files = self._files.allowing(*self._grants.folders(ask.document))
        name = next(iter(ask.outputs.values()))
        with self._lock:
            known = self._children.get(_id(name))
            if known is not None and known.running:
                raise InvalidArgumentError(Fault("VG051", "studio", "outputs", "not be written by a run", repr(name)))
            child = self._children[_id(name)] = self._spawn({
                "document": ask.document, "volumes": volumes, "outputs": outputs, "chunks": ask.chunks,
                "workers": ask.workers, "state": str(self._project.state), "files": files.as_data(),
                "memory": self._limits.memory,
            })  # fmt: skip
        folder = self._project.files / (name + SUFFIX)
        before = time.time()
        while child.running and time.time() - before < START_SECONDS:
            with contextlib.suppress(VoxgradError):
                if watch(folder).since >= before - 1:
                    return self._data(folder, watch(folder))
            time.sleep(0.05)
        child.told.wait(1.0)
        if child.error:
            raise InvalidArgumentError(child.error)
        return self._data(folder, watch(folder))

    def _output(self, name: str) -> str:
        """The path of a result; neither it nor the records beside it may be links to something else."""
        if not _OUTPUT.fullmatch(name):
            wanted = "be a plain name that ends in .zarr, .npy, .nii, .tif or .h5"
            raise InvalidArgumentError(Fault("VG051", "studio", "outputs", wanted, repr(name[:80])))
        try:
            self._files.find(name + SUFFIX, write=True).checked()
            path = self._files.find(name, write=True).checked()
        except NotAllowed as error:
            raise error.error("studio", "outputs") from None
        path.parent.mkdir(exist_ok=True)
        return str(path)

    def _spawn(self, job: dict[str, Any]) -> _Child:
        source = str(Path(voxgrad.__file__).resolve().parents[1])
        path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen(
            [sys.executable, "-m", "voxgrad.studio.chunked_job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip
        child = _Child(process)
        threading.Thread(target=_follow, args=(child, json.dumps(job).encode()), daemon=True).start()
        return child

    def stop(self, run: str) -> messages.ChunkedRun:
        """Stop a run that this studio has started. What is recorded stays."""
        child = self._children.get(run)
        if child is None:
            raise VoxgradError(Fault("VG050", "studio", "run", "be one that this studio has started", repr(run[:40])))
        _kill(child)
        for found in self.runs().runs:
            if found.id == run:
                return found
        raise VoxgradError(Fault("VG050", "studio", "run", "be one that is known", repr(run[:40])))

    def close(self) -> None:
        """Stop everything that was started here."""
        for child in self._children.values():
            _kill(child)


def _volume_blocks(document: messages.Document) -> Iterator[dict[str, Any]]:
    """The Volume blocks of a document, which is not checked yet."""
    blocks = document.get("blocks")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("op") == "Volume" and isinstance(block.get("attrs"), dict):
            yield block


def _follow(child: _Child, job: bytes) -> None:
    """Give a process its job, and keep what it says at its end."""
    told, _ = child.process.communicate(job)
    try:
        child.error[:] = [Fault(**fault) for fault in json.loads(told)["faults"]]
    except (ValueError, TypeError, KeyError):
        if child.process.returncode != -signal.SIGKILL:
            got = f"exit code {child.process.returncode}"
            child.error[:] = [Fault("VG068", "studio", "run", "have a process that lives", got)]
    child.told.set()


def _kill(child: _Child) -> None:
    """End a run and its workers; any moment will do."""
    if child.running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait(5.0)


def _id(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
