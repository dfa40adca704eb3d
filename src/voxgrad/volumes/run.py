# SPDX-License-Identifier: Apache-2.0
"""Runs an op from store to store, chunk by chunk, in worker processes, and goes on where an earlier run stopped.

A manifest beside the output records the job and every chunk whose data is written. A chunk counts as done when it is in
the manifest, never because its data is there. Workers may die: their chunks are given to others.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.execute import compute
from voxgrad.arrays.intake import host_spec
from voxgrad.arrays.kinds import dtype_of, numpy_type
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Spec
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels import cpu
from voxgrad.volumes.plan import Box, Plan, Task
from voxgrad.volumes.stores import Index, Store, create_volume, open_volume
from voxgrad.volumes.watch import Record, folder_of

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int, float], None]
_MOST_DEATHS = 100


@dataclass(frozen=True)
class Job:
    """What a worker needs to know, as plain data."""

    op: str
    inputs: dict[str, str]
    host: dict[str, list[int]]
    attrs: dict[str, Any]
    output: str
    chunks: tuple[int, ...]
    semantics: str


def apply(
    op: str,
    inputs: Mapping[str, Any],
    output: str | Path,
    *,
    chunks: tuple[int, int, int] = (128, 128, 128),
    workers: int | None = None,
    progress: Progress | None = None,
    **attrs: Any,
) -> Store:
    """Run an op on volumes in files and write its result to a file; returns the opened result.

        vg.volumes.apply("MaxPool3D", {"input": "scan.zarr"}, "half.zarr", ksize=[1, 2, 2, 2, 1],
                         strides=[1, 2, 2, 2, 1], padding="SAME")

    `inputs` are paths, or lists of integers for shape vectors. The same call again goes on where this one stopped.
    """
    declared = find(op)
    host = {item.name: [int(size) for size in inputs[item.name]] for item in declared.inputs if item.host}
    paths = {item.name: str(inputs[item.name]) for item in declared.inputs if not item.host}
    job = Job(op, paths, host, attrs, str(output), chunks, current_semantics())
    plan = Plan(_problem(job), chunks)
    manifest = Manifest(Path(output), job)
    if manifest.fresh:
        _create_output(plan, job)
    todo = [number for number in range(len(plan)) if number not in manifest.done]
    with Record(manifest.folder).run([len(axis) for axis in plan.segments], plan.chunks):
        _run(job, todo, len(plan), manifest, workers or len(os.sched_getaffinity(0)), progress)
        if plan.is_partial:
            _add_partials(plan, manifest, job)
    return open_volume(output)


def _problem(job: Job) -> Problem:
    """The whole problem, from the shapes in the files."""
    op = find(job.op)
    specs: dict[str, Spec] = {name: host_spec(op, name, values) for name, values in job.host.items()}
    for name, path in job.inputs.items():
        store = open_volume(path)
        specs[name] = Spec(dtype_of(store.dtype), store.shape)
    return door.parse(op, specs, job.attrs, job.semantics)


def _create_output(plan: Plan, job: Job) -> None:
    problem = plan.problem
    shape = problem.output_shape
    chunks: tuple[int, ...] = (1, *plan.chunks, shape[-1]) if problem.channels_last else (1, shape[1], *plan.chunks)
    create_volume(job.output, shape, numpy_type(problem.output_dtype), shape if plan.is_partial else chunks)


class Manifest:
    """The record of a run: the job, and the numbers of the chunks whose data is written."""

    def __init__(self, output: Path, job: Job):
        self.folder = folder_of(output)
        text = json.dumps(asdict(job), sort_keys=True, default=list)
        self.fresh = not (self.folder / "job.json").exists()
        if self.fresh:
            if output.exists():
                fault = Fault(
                    "VG051", job.op, "output", "not exist yet", str(output), "Remove it or choose another name."
                )
                raise InvalidArgumentError(fault)
            self.folder.mkdir(parents=True)
            (self.folder / "job.json").write_text(text)
        elif (self.folder / "job.json").read_text() != text:
            remedy = f"Finish that run with its own arguments, or remove {self.folder} and the output."
            fault = Fault("VG051", job.op, "output", "belong to this very run", "the manifest of another one", remedy)
            raise InvalidArgumentError(fault)
        self._log = self.folder / "done"
        self.done = set(self._read())

    def _read(self) -> Iterator[int]:
        if self._log.exists():
            for line in self._log.read_text().splitlines():
                # A line that was cut off by a crash was not recorded.
                if line.endswith(";") and line[:-1].isdecimal():
                    yield int(line[:-1])

    def record(self, numbers: list[int]) -> None:
        """Remember chunks, durably."""
        with self._log.open("a") as log:
            log.write("".join(f"\n{number};" for number in numbers))
            log.flush()
            os.fsync(log.fileno())
        self.done.update(numbers)


def _run(job: Job, todo: list[int], total: int, manifest: Manifest, workers: int, progress: Progress | None) -> None:
    """Give chunks to worker processes until all are recorded; a dead worker's chunks go round again."""
    start, waiting, deaths = time.monotonic(), list(reversed(todo)), 0
    if progress:
        progress(total - len(todo), total, 0.0)
    while waiting:
        lost: list[int] = []
        with _pool(job, workers) as pool:
            running: dict[Future[int], int] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < 2 * workers:
                        # Taken off the list only when a worker has it: the pool may break right here.
                        running[pool.submit(_work, waiting[-1])] = waiting[-1]
                        waiting.pop()
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    manifest.record([future.result() for future in finished])
                    for future in finished:
                        del running[future]
                    if progress:
                        progress(len(manifest.done), total, time.monotonic() - start)
            except BrokenProcessPool:
                deaths += 1
                lost = [number for number in running.values() if number not in manifest.done]
        waiting += lost
        if deaths > _MOST_DEATHS:
            raise InvalidArgumentError(Fault("VG071", job.op, "workers", "stay alive", f"{deaths} that died"))


def _pool(job: Job, workers: int) -> ProcessPoolExecutor:
    # Started afresh rather than forked: a fork would copy threads and locks of whoever calls this.
    context = multiprocessing.get_context("spawn")
    threads = max(1, cpu.get_num_threads() // workers)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(job, threads))


_worker: dict[str, Any] = {}


def _start_worker(job: Job, threads: int) -> None:
    cpu.set_num_threads(threads)
    plan = Plan(_problem(job), job.chunks)
    stores = {name: open_volume(path) for name, path in job.inputs.items()}
    folder = folder_of(job.output)
    output = None if plan.is_partial else open_volume(job.output, write=True)
    _worker.update(plan=plan, stores=stores, output=output, folder=folder)


def _work(number: int) -> int:
    """One chunk in a worker: read its windows, compute, write its own region."""
    plan: Plan = _worker["plan"]
    with Record(_worker["folder"]).chunk(number):
        task = plan.task(number)
        result = compute_task(task, read_task(task, _worker["stores"]))
        if task.writes is None:
            part = _worker["folder"] / f"partial-{number}.npy"
            np.save(part.with_suffix(".part.npy"), result)
            part.with_suffix(".part.npy").replace(part)
        else:
            _worker["output"].write(index_of(task.writes, plan.problem), result)
    return number


def compute_task(task: Task, tensors: Sequence[Array]) -> Array:
    """The result of a task on the boxes it reads, cut to what it writes."""
    problem = task.problem
    dense = [np.ascontiguousarray(array, dtype=numpy_type(problem.dtype)) for array in tensors]
    result = np.empty(problem.output_shape, numpy_type(problem.dtype))
    compute(problem, dense, result)
    cut = result if task.crop is None else result[index_of(task.crop, problem)]
    return cut.astype(numpy_type(problem.output_dtype), copy=False)


def read_task(task: Task, stores: Mapping[str, Store]) -> list[Array]:
    """The boxes of a task, from their files."""
    whole = (slice(None),) * 5
    return [
        stores[name].read(whole if box is None else index_of(box, task.problem)) for name, box in task.reads.items()
    ]


def index_of(box: Box, problem: Problem) -> Index:
    """The slices of a five-dimensional array that a spatial box stands for."""
    spatial = tuple(slice(a, b) for a, b in box)
    whole = slice(None)
    return (whole, *spatial, whole) if problem.channels_last else (whole, whole, *spatial)


def _add_partials(plan: Plan, manifest: Manifest, job: Job) -> None:
    """Add the partial filter gradients in a tree that only the chunks decide, in float64."""
    level = [np.load(manifest.folder / f"partial-{number}.npy").astype(np.float64) for number in range(len(plan))]
    while len(level) > 1:
        level = [level[i] if i + 1 == len(level) else level[i] + level[i + 1] for i in range(0, len(level), 2)]
    output = open_volume(job.output, write=True)
    assert output.write is not None
    output.write((slice(None),) * 5, level[0].astype(numpy_type(plan.problem.output_dtype)))
