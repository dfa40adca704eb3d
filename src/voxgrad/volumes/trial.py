# SPDX-License-Identifier: Apache-2.0
"""Tries a chunk of every pass of a job, and says what a unit of its work takes on this machine.

Rates of a machine would not say it: one convolution multiplies at twice the rate of another, and volumes unpack as
quickly as their voxels let them. So a chunk is read, computed and written beside the result, and timed; of a later
pass, whose volumes are not there yet, on noise. Where chunks are large, a part of one tells enough.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad import ops
from voxgrad.errors import VoxgradError
from voxgrad.graph.block import Output
from voxgrad.graph.device import device_named
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.kernels import cpu
from voxgrad.kernels.element_types import numpy_type
from voxgrad.volumes.amounts import fetched, rows_of
from voxgrad.volumes.chunk import Array, Chunks, Held, Index
from voxgrad.volumes.costs import Advice, advise, cost
from voxgrad.volumes.executors import Executor, ThisProcess, Workers
from voxgrad.volumes.job import Job, read_head
from voxgrad.volumes.layout import SMALL
from voxgrad.volumes.one_pass import run_small
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.record import Digests
from voxgrad.volumes.run_job import run_job
from voxgrad.volumes.stores import Store, create_volume
from voxgrad.volumes.tiles import Stretch, stretches
from voxgrad.volumes.times import PassRates, Rates, Took, work_of
from voxgrad.volumes.watch import folder_of

_FEW = 8
"""The chunks of a run over next to nothing."""
_MOST = 2**27
"""The most bytes of a chunk that is tried."""


def chunks_within(
    job: Job, memory: int | str, folder: Path | None, executor: Executor | None
) -> tuple[tuple[int, ...], Advice | None]:
    """The chunks for a limit of memory; of a run that goes on, those that it began with, whatever a trial says now.

    With an executor they are the quickest, as a trial has it, else the largest.
    """
    place = folder or (folder_of(next(iter(job.outputs.values()))) if any(job.outputs.values()) else None)
    begun = None if place is None else read_head(place / "passes") or read_head(place)
    if begun is not None:
        return tuple(begun["job"]["chunks"]), None
    plan = job.plan()
    advice = advise(plan, memory, job.alignment(plan), None if executor is None else measured(job, executor))
    return advice.chunks, advice


def measured(job: Job, executor: Executor) -> Rates | None:
    """Try a chunk of each pass of a job; None where it runs elsewhere, or cannot run on noise."""
    workers, threads = _shares(executor)
    if not workers or job.device != "cpu":
        return None
    plan = job.plan()
    began = time.perf_counter()
    job.plan()
    planned = time.perf_counter() - began
    own = cpu.get_num_threads()
    cpu.set_num_threads(threads)
    try:
        with tempfile.TemporaryDirectory(dir=_beside(job), prefix=".voxgrad-trial-") as place:
            beside = _besides(Path(place), executor)
            # Workers do chunks of their own side by side: what one takes is shared.
            passes = tuple(_tried(job, one, Path(place), beside.chunk * workers) for one in (*plan.before, plan))
    except VoxgradError:
        return None
    finally:
        cpu.set_num_threads(own)
    cuts = {output: store.chunks for output, store in job.volumes.items() if store.chunks is not None}
    return Rates(passes, workers, threads, max(own, workers * threads), beside.start, beside.begin + 2 * planned, cuts)


def _shares(executor: Executor) -> tuple[int, int]:
    if isinstance(executor, Workers):
        return executor.count, executor.threads
    return (1, cpu.get_num_threads()) if isinstance(executor, ThisProcess) else (0, 0)


@dataclass(frozen=True)
class _Besides:
    """What a run takes beside its work: until workers are there, before a pass, and for each chunk."""

    start: float
    begin: float
    chunk: float


def _besides(place: Path, executor: Executor) -> _Besides:
    """Of a run over next to nothing, in two passes: the first starts the workers, the third has more chunks."""
    page = Page("nothing")
    x = ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    page.expose({"y": ops.Sub(page, x, ops.Mean(page, x, [1, 2, 3], keep_dims=True))})
    np.save(place / "x.npy", np.zeros((1, _FEW, 1, 1, 1), np.float32))
    seconds = []
    with executor.kept() if isinstance(executor, Workers) else nullcontext():
        for at, depth in enumerate((_FEW, _FEW, 1)):
            began = time.perf_counter()
            job = Job.make(page, {"x": place / "x.npy"}, {}, {"y": place / f"{at}.npy"}, [], (depth, 1, 1))
            run_job(job, place / f"run{at}", executor, None)
            seconds.append(time.perf_counter() - began)
    first, few, many = seconds
    return _Besides(max(0.0, first - few), few / 2, max(0.0, many - few) / (2 * _FEW - 2))


def _beside(job: Job) -> Path | None:
    """A folder on the disk of the result, or any."""
    paths = [Path(path).parent for path in job.outputs.values() if path and "://" not in path]
    return next((path for path in paths if path.is_dir()), None)


def _tried(job: Job, whole: PagePlan, place: Path, each_chunk: float) -> PassRates:
    plan, is_last = _smaller(whole), set(job.fetches) == set(whole.layout.fetches)
    at = tuple(count // 2 for count in plan.grid)
    number = 0
    for count, one in zip(plan.grid, at, strict=True):
        number = number * count + one
    trial = _Trial(job, plan, at, place)
    parts = trial.computed(number)
    write = {}
    for root, part in zip(plan.roots, parts, strict=True):
        if root.piece is None and part is not None and part.size:
            write[root.slot] = trial.written(root.slot, part, is_last)
    return PassRates(trial.read, trial.rates(), write, each_chunk)


def _smaller(plan: PagePlan) -> PagePlan:
    """A pass in its own chunks, or in halves of them that are quickly done."""
    chunks = list(plan.chunks[1:])
    alone = PagePlan(plan.layout, chunks)
    while cost(alone).peak_bytes > _MOST and max(chunks) > 1:
        longest = chunks.index(max(chunks))
        chunks[longest] = -(-chunks[longest] // 2)
        alone = PagePlan(plan.layout, chunks)
    return alone


class _Trial:
    """One chunk of a pass: its volumes as they are where they are there, else noise; its stretches timed."""

    def __init__(self, job: Job, plan: PagePlan, at: Sequence[int], place: Path):
        self.job, self.plan, self.place = job, plan, place
        self.rows = rows_of(plan, at)
        self.read: dict[int, Took] = {}
        self._amounts: dict[int, tuple[int, Took]] = {}
        self._parts: dict[Output, Array] = {}
        self.chunks = _Timed(plan, _values(job, plan), self._read)

    def _read(self, output: Output, index: Index) -> Array:
        slot = self.plan.layout.volumes[output]
        if output not in self._parts:
            if output in self.job.volumes:
                store, box = self.job.volumes[output], index
                size = fetched(self.plan, slot, store.chunks, self.rows)
            else:
                store, box = self._stored(slot, index)
                size = fetched(self.plan, slot, None, self.rows)
            with _timed() as took:
                self._parts[output] = store.read(box)
            self._amounts[slot] = size, took[0]
        return self._parts[output]

    def _stored(self, slot: int, index: Index) -> tuple[Store, Index]:
        """Noise in a file, as an earlier pass leaves its volumes."""
        dtype = self.plan.layout.specs[slot].dtype
        assert dtype is not None
        shape = [one.stop - one.start for one in index]
        store = create_volume(
            self.place / f"{slot}-{len(self._amounts)}-{len(self.plan.layout.pieces)}.npy", shape, numpy_type(dtype)
        )
        whole = tuple(slice(0, size) for size in shape)
        store.write(whole, np.random.default_rng(0).standard_normal(shape, np.float32).astype(numpy_type(dtype)))
        return store, whole

    def computed(self, number: int) -> list[Any]:
        """What the chunk makes; what it takes beside its stretches (volumes come in other types, say) is reading."""
        self.chunks.compute(number)
        began = time.perf_counter()
        parts = self.chunks.compute(number)
        beside = max(0.0, time.perf_counter() - began - sum(self.chunks.seconds.values()))
        for slot, (amount, took) in self._amounts.items():
            self.read[slot] = (took + Took(beside / len(self._amounts))) * (1 / max(amount, 1))
        return parts

    def written(self, slot: int, part: Array, is_last: bool) -> Took:
        """What a byte of a result takes until it is written and recorded."""
        outputs = [output for output, one in self.plan.layout.fetches.items() if one == slot]
        path = next((self.job.outputs[one] for one in outputs if is_last and self.job.outputs.get(one)), "y.npy")
        kept = part.astype(self.job.written_type(outputs[0], self.plan.layout.specs[slot].dtype), copy=False)
        name = "y.npy" if "://" in path else Path(path).name
        place = self.place / f"written-{slot}-{is_last}"
        place.mkdir(exist_ok=True)
        store = create_volume(place / name, kept.shape, kept.dtype, kept.shape)
        with _timed() as took:
            store.write(tuple(slice(0, size) for size in kept.shape), kept)
            if is_last:
                store.sync()
            Digests(place).note(0, [kept], is_last)
        return took[0] * (1 / max(part.nbytes, 1))

    def rates(self) -> dict[int, float]:
        """Seconds of an operation of each stretch."""
        found = {}
        for stretch in stretches(self.plan):
            work = work_of(self.plan, stretch, self.rows)
            found[stretch.pieces[0]] = self.chunks.seconds.get(stretch.pieces[0], 0.0) / max(work, 1)
        return found


class _Timed(Chunks):
    """Notes what each stretch takes, each time anew: the first time is that of memory that was never touched."""

    def __init__(self, plan: PagePlan, values: Mapping[int, Array], read: Any):
        super().__init__(plan, values, read, device_named("cpu"))
        self.seconds: dict[int, float] = {}

    def run(self, stretch: Stretch, at: Sequence[int], held: Held, sums: dict[int, Array]) -> None:
        """Run a stretch."""
        began = time.perf_counter()
        super().run(stretch, at, held, sums)
        self.seconds[stretch.pieces[0]] = time.perf_counter() - began


def _values(job: Job, plan: PagePlan) -> dict[int, Array]:
    """What is not cut: as it is where it is known before the run; sums of earlier passes are ones."""
    layout, found = plan.layout, dict[int, Array]()
    session = ClientSession(job.page)
    for slot in layout.wholes:
        source, spec = layout.sources.get(slot), layout.specs[slot]
        if slot in layout.plan.constants:
            found[slot] = layout.plan.constants[slot][0]
            continue
        with suppress(VoxgradError):
            if source is not None:
                (found[slot],) = run_small(session, [source], {**job.feeds, **layout.known})
        if slot not in found or layout.kinds[slot] != SMALL:
            assert spec.dtype is not None
            found[slot] = np.ones(spec.shape or (), numpy_type(spec.dtype))
    return found


@contextmanager
def _timed() -> Iterator[list[Took]]:
    """Puts into a list what is done meanwhile: seconds of this process, and seconds in which it waited."""
    took: list[Took] = []
    clock, worked = time.perf_counter(), time.process_time()
    yield took
    seconds, busy = time.perf_counter() - clock, time.process_time() - worked
    took.append(Took(min(busy, seconds), max(0.0, seconds - busy)))
