# SPDX-License-Identifier: Apache-2.0
"""One chunk, in whatever process was given it: the job is in its folder, the data in the stores."""

from __future__ import annotations

from pathlib import Path

from voxgrad.arrays.locks import make_lock
from voxgrad.graph.block import Output
from voxgrad.graph.device import device_named
from voxgrad.kernels import cpu
from voxgrad.volumes.chunk import Array, Chunks, Index, index_of, is_some
from voxgrad.volumes.job import open_job
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.stores import Store, open_volume
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
        self._stores: dict[str, Store] = {}
        self.sums = Sums(folder / "sums", len(self.plan))
        self.chunks = Chunks(self.plan, values, self._read, device_named(self.job.device))

    def _read(self, output: Output, index: Index) -> Array:
        return self.job.volumes[output].read(index)

    def _store(self, path: str) -> Store:
        if path not in self._stores:
            self._stores[path] = open_volume(path, write=True)
        return self._stores[path]

    def do(self, number: int) -> None:
        """Compute a chunk and write its part of every result."""
        parts = self.chunks.compute(number)
        at = self.plan.at(number)
        summed = [part for root, part in zip(self.plan.roots, parts, strict=True) if root.piece is not None]
        for root, part in zip(self.plan.roots, parts, strict=True):
            box = self.plan.root_box(root, at)
            if root.piece is None and part is not None and is_some(box):
                self._store(self.targets[root.slot]).write(index_of(box), part)
        if summed:
            self.sums.put(number, summed)


_open: dict[str, Worker] = {}
_lock = make_lock()
_MOST_OPEN = 4


def worker_of(folder: str, run: str) -> Worker:
    """The opened job of a folder, kept while this process works on it."""
    with _lock:
        key = f"{folder}\n{run}"
        if key not in _open:
            while len(_open) >= _MOST_OPEN:
                _open.pop(next(iter(_open)))
            _open[key] = Worker(Path(folder))
        return _open[key]


def work(folder: str, run: str, number: int) -> int:
    """Do one chunk of the job in a folder."""
    worker = worker_of(folder, run)
    with Record(worker.folder).chunk(number):
        worker.do(number)
    return number


def work_alone(folder: str, run: str, number: int) -> int:
    """Do one chunk where many run side by side on a machine that is shared: each kernel takes one thread."""
    cpu.set_num_threads(1)
    return work(folder, run, number)
