# SPDX-License-Identifier: Apache-2.0
"""One chunk, in whatever process was given it: the job is in its folder, the data in the stores."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from voxgrad.arrays.locks import make_lock
from voxgrad.graph.block import Output
from voxgrad.graph.device import device_named
from voxgrad.kernels import cpu
from voxgrad.volumes.chunk import Array, Chunks, Index, index_of, is_some
from voxgrad.volumes.job import open_job
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.record import Digests, room_in
from voxgrad.volumes.stores import Store, fitted, open_volume
from voxgrad.volumes.sums import Sums
from voxgrad.volumes.watch import Record


class Worker:
    """A job, opened: its plan, its volumes and the files that it writes."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.job, values = open_job(folder)
        self.plan: PagePlan = self.job.plan()
        slots = self.plan.layout.fetches
        self.targets = {slots[output]: path for output, path in self.job.outputs.items()}
        self._stores: dict[str, tuple[Store, Any]] = {}
        self.sums = Sums(folder / "sums", len(self.plan))
        self.digests = Digests(folder)
        self.chunks = Chunks(self.plan, values, self._read, device_named(self.job.device))
        self._boxes: dict[Any, Array] = {}
        self._ahead: tuple[int, Future[dict[Any, Array]]] | None = None
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="voxgrad-reader")

    def _read(self, output: Output, index: Index) -> Array:
        return self._boxes.pop(_key(output, index))

    def _boxes_of(self, number: int) -> dict[Any, Array]:
        """What a chunk reads."""
        at, found = self.plan.at(number), {}
        for output, slot in self.plan.layout.volumes.items():
            if is_some(box := self.plan.box(slot, at)):
                index = index_of(box)
                found[_key(output, index)] = self.job.volumes[output].read(index)
        return found

    def _take(self, number: int, following: int | None) -> None:
        """Have the boxes of a chunk at hand, and those of the one that follows read while it is computed.

        No two threads read at a time: libraries of formats need not stand it.
        """
        known, self._ahead = self._ahead, None
        found = known[1].result() if known is not None else {}
        self._boxes = found if known is not None and known[0] == number else self._boxes_of(number)
        if following is not None:
            self._ahead = following, self._reader.submit(self._boxes_of, following)

    def close(self) -> None:
        """Read no further."""
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _store(self, path: str) -> Store:
        store, files = self._stores.get(path, (None, ()))
        if store is None or _files(store) != files:
            # What is mapped stays mapped when another file takes its name, as after a run whose output was removed.
            store = open_volume(path, write=True)
            self._stores[path] = store, _files(store)
        return store

    def do(self, number: int, following: int | None = None) -> None:
        """Compute a chunk and write its part of every result; `following` is the one that may be asked for next."""
        self._take(number, following)
        parts = self.chunks.compute(number)
        at = self.plan.at(number)
        summed = [part for root, part in zip(self.plan.roots, parts, strict=True) if root.piece is not None]
        written = []
        for root, part in zip(self.plan.roots, parts, strict=True):
            box = self.plan.root_box(root, at)
            if root.piece is None and part is not None and is_some(box):
                store = self._store(self.targets[root.slot])
                part = fitted(part, store.dtype, store.name)
                store.write(index_of(box), part)
                if self.job.lasting:
                    store.sync()
                written.append(part)
        if summed:
            self.sums.put(number, summed)
        if written:
            self.digests.note(number, written, self.job.lasting)


def _key(output: Output, index: Index) -> Any:
    return output, tuple((one.start, one.stop) for one in index)


def _files(store: Store) -> list[tuple[int, int]]:
    """The files that a store has mapped."""
    paths = [*([store.path] if isinstance(store.path, Path) and store.path.is_file() else []), *store.beside]
    return [(seen.st_dev, seen.st_ino) for seen in (one.stat() for one in paths)]


_open: dict[str, Worker] = {}
_lock = make_lock()
_MOST_OPEN = 4


def worker_of(folder: str, run: str) -> Worker:
    """The opened job of a folder, kept while this process works on it."""
    with _lock:
        key = f"{folder}\n{run}"
        if key not in _open:
            while len(_open) >= _MOST_OPEN:
                _open.pop(next(iter(_open))).close()
            _open[key] = Worker(Path(folder))
        return _open[key]


def forget(folder: str) -> None:
    """Let go of the job of a folder, with all that is open because of it."""
    with _lock:
        for key in [one for one in _open if one.startswith(f"{folder}\n")]:
            _open.pop(key).close()


def work(folder: str, run: str, number: int, following: int | None = None) -> int:
    """Do one chunk of the job in a folder; what `following` reads is read meanwhile."""
    worker = worker_of(folder, run)
    with Record(worker.folder).chunk(number), room_in(worker.folder):
        worker.do(number, following)
    return number


def work_alone(folder: str, run: str, number: int) -> int:
    """Do one chunk where many run side by side on a machine that is shared: each kernel takes one thread."""
    cpu.set_num_threads(1)
    return work(folder, run, number)
