# SPDX-License-Identifier: Apache-2.0
"""One pass over all chunks of a job: what an earlier run left of it is believed or done again, then what is missing.

A chunk counts as done when it is recorded and its data has the checksum that was recorded with it (`record`).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.errors import Fault, Faults, InvalidArgumentError, VoxgradError
from voxgrad.graph.block import Output, is_variable
from voxgrad.graph.session import ClientSession
from voxgrad.kernels.element_types import numpy_type
from voxgrad.volumes.chunk import index_of, is_some
from voxgrad.volumes.executors import Executor
from voxgrad.volumes.grids import own_spaces, spaces
from voxgrad.volumes.job import Job, load_values, read_head, save_job
from voxgrad.volumes.layout import VOLUME, Layout
from voxgrad.volumes.page_plan import PagePlan, Root
from voxgrad.volumes.record import Digests, Done, checksum
from voxgrad.volumes.space import Space
from voxgrad.volumes.stores import Store, begin, create_volume, finish, is_there, open_volume, save_volume
from voxgrad.volumes.sums import Sums, nothing_in, wide
from voxgrad.volumes.watch import Record

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int, float], None]


def run_pass(
    job: Job, plan: PagePlan, folder: Path, executor: Executor, progress: Progress | None
) -> dict[Output, Any]:
    """Do what is left of a job of one pass; returns every result, opened files and arrays."""
    head = read_head(folder)
    if head is not None:
        check_same(folder, folder, job, head)
    session = ClientSession(job.page)
    if head is None:
        save_job(job, folder, _wholes(plan, job, session))
        head = read_head(folder)
    assert head is not None
    job.run = head["run"]
    recorded = Done(folder)
    recorded.keep(believed(plan, job, folder, recorded.numbers))
    adds = [piece.adds for piece in plan.layout.sinks]
    sums = Sums(folder / "sums", len(plan), adds) if adds else None
    if sums is not None:
        recorded.keep(sums.go_on(recorded.numbers))
    start = time.monotonic()

    def done(numbers: list[int]) -> None:
        recorded.record(numbers)
        if sums is not None:
            for number in numbers:
                sums.add(number)
        if progress is not None:
            progress(len(recorded.numbers), len(plan), time.monotonic() - start)

    batch, depth, height, width = plan.grid
    with Record(folder).run((batch * depth, height, width), plan.chunks[1:]):
        done([])
        todo = [number for number in range(len(plan)) if number not in recorded.numbers]
        written = [
            path for output, path in job.outputs.items() if plan.layout.kinds[plan.layout.fetches[output]] == VOLUME
        ]
        for path in written if todo else ():
            begin(path)
        executor.go(str(folder.resolve()), job.run, todo, done)
        for path in written:
            finish(path)
    check_marks(folder, job, head)
    return _results(plan, job, session, load_values(folder), {} if sums is None else sums.totals())


def believed(plan: PagePlan, job: Job, folder: Path, recorded: set[int]) -> set[int]:
    """The recorded chunks whose data is in the outputs, as their checksums say; new outputs where one is gone."""
    roots = {root: path for root in plan.roots for output, path in job.outputs.items()
             if root.piece is None and plan.layout.fetches[output] == root.slot}  # fmt: skip
    if not roots:
        return {number for number in recorded if number < len(plan)}
    stores = {root: _written(job, plan, root, path) for root, path in roots.items()} if recorded else {}
    if not recorded or None in stores.values():
        _create_outputs(plan, job)
        return set()
    known, believed = Digests(folder).read(), set()
    for number in sorted(one for one in recorded if one < len(plan) and one in known):
        boxes = [(store, plan.root_box(root, plan.at(number))) for root, store in stores.items()]
        parts = [store.read(index_of(box)) for store, box in boxes if store is not None and is_some(box)]
        if checksum(parts) in known[number]:
            believed.add(number)
    return believed


def _written(job: Job, plan: PagePlan, root: Root, path: str) -> Store | None:
    """An output of an earlier run, or None where it is gone or broken; a file of something else is left alone."""
    try:
        store = open_volume(path)
    except VoxgradError:
        return None
    spec = plan.layout.specs[root.slot]
    output = next(output for output, slot in plan.layout.fetches.items() if slot == root.slot)
    if store.shape != spec.shape or store.dtype != job.written_type(output, spec.dtype):
        fault = Fault("VG051", "volumes", "output", "be the file that this run began", f"{path}, another volume")
        raise InvalidArgumentError(fault)
    return store


def check_files(job: Job, layout: Layout) -> None:
    """Results that are volumes must have a file to go to."""
    faults = Faults("volumes")
    for output, slot in layout.fetches.items():
        if layout.kinds[slot] == VOLUME and output not in job.outputs:
            remedy = f"Name a file for it: outputs={{{output.block.name!r}: 'result.zarr'}}, or --output."
            faults.add("VG001", output.path, wanted="be written to a file: it is a volume", got="none", remedy=remedy)
    faults.raise_if_any()


def _create_outputs(plan: PagePlan, job: Job) -> None:
    """New files for the volumes that are made, cut so that every chunk of a file belongs to one task."""
    placed = job.places or places_of(job, plan.layout)
    for output, path in job.outputs.items():
        slot = plan.layout.fetches[output]
        root = next((root for root in plan.roots if root.piece is None and root.slot == slot), None)
        if root is None:
            continue
        spec = plan.layout.specs[slot]
        assert spec.dtype is not None
        assert spec.shape is not None
        roles = plan.layout.roles[slot]
        cut = [
            max(1, size if role is None else root.chunks[role]) for role, size in zip(roles, spec.shape, strict=True)
        ]
        parts = sharded(cut, spec.shape, roles, job.inner) if job.inner else {"chunks": cut}
        create_volume(path, spec.shape, job.written_type(output, spec.dtype), like=placed.get(output), **parts)


def sharded(
    cut: Sequence[int], shape: Sequence[Any], roles: Sequence[int | None], inner: Sequence[int]
) -> dict[str, Any]:
    """Shards of the size of a task's part, with smaller chunks in them, which readers take one by one."""
    chunks = [
        part if role is None or role == 0 else min(inner[role - 1], part) for role, part in zip(roles, cut, strict=True)
    ]
    shards = [-(-part // chunk) * chunk for part, chunk in zip(cut, chunks, strict=True)]
    if any(shard != part < size for shard, part, size in zip(shards, cut, shape, strict=True)):
        wanted = f"divide the chunks of the result, {list(cut)}: a shard is what a task writes"
        raise InvalidArgumentError(Fault("VG003", "volumes", "inner_chunks", wanted, str(list(inner))))
    return {"chunks": chunks, "shards": shards}


def places_of(job: Job, layout: Layout) -> dict[Output, Space]:
    """Where the results lie."""
    volumes = own_spaces(job.page) | {output: store.space for output, store in job.volumes.items()}
    return spaces(layout.inference, volumes, list(job.outputs))


def _wholes(plan: PagePlan, job: Job, session: ClientSession) -> dict[int, Array]:
    """The values that are not cut: constants, feeds, and what the page computes from them and its variables."""
    layout = plan.layout
    found: dict[int, Array] = {}
    for slot in layout.wholes:
        if slot in layout.plan.constants:
            found[slot] = layout.plan.constants[slot][0]
        elif (source := layout.sources[slot]) in job.feeds:
            found[slot] = job.feeds[source]
        elif source in layout.known:
            found[slot] = layout.known[source]
    rest = [slot for slot in layout.wholes if slot not in found]
    if rest:
        values = run_small(session, [layout.sources[slot] for slot in rest], {**job.feeds, **layout.known})
        found.update(zip(rest, values, strict=True))
    return found


def run_small(session: ClientSession, fetches: Sequence[Output], feeds: Mapping[Output, Array]) -> list[Array]:
    """The part of the page that is not cut. Variables start before they are fed: their Assign needs the variable."""
    session.run([], feeds={output: value for output, value in feeds.items() if not is_variable(output)})
    values: list[Array] = session.run(fetches, feeds=feeds)
    return values


def _results(
    plan: PagePlan, job: Job, session: ClientSession, wholes: Mapping[int, Array], totals: Mapping[int, Array]
) -> dict[Output, Any]:
    """The results of a finished run: what stands behind the sums is computed from them."""
    layout = plan.layout
    feeds: dict[Output, Array] = {**job.feeds, **layout.known}
    feeds |= {layout.sources[slot]: value for slot, value in wholes.items() if slot in layout.sources}
    for at, piece in enumerate(layout.sinks):
        feeds[layout.sources[piece.outputs[0]]] = _total(plan, at, totals.get(at))
    late = [output for output, slot in layout.fetches.items() if layout.kinds[slot] != VOLUME]
    values = dict(zip(late, run_small(session, late, feeds), strict=True)) if late else {}
    for output in late:
        if output in job.outputs:
            _save_value(job.outputs[output], values[output])
    return {output: values[output] if output in values else open_volume(job.outputs[output]) for output in job.fetches}


def _total(plan: PagePlan, at: int, total: Array | None) -> Array:
    """A sum over all chunks, in the type that the page gives it."""
    piece = plan.layout.sinks[at]
    spec = plan.layout.specs[piece.outputs[0]]
    assert spec.dtype is not None
    assert spec.shape is not None
    kind = np.dtype(numpy_type(spec.dtype))
    made: Array = wide(np.zeros(spec.shape, kind)) if total is None else total
    if total is None:
        made = np.full_like(made, nothing_in(piece.adds, made.dtype))
    if piece.adds == "mean":
        count = math.prod(plan.layout.specs[piece.inputs[0]].shape or ()) // max(made.size, 1)
        made = _divided(made, count)
    with np.errstate(over="ignore"):
        return made.astype(kind).reshape(spec.shape)


def _divided(total: Array, count: int) -> Array:
    """A mean; of integers, towards zero, and of nothing 0."""
    if total.dtype.kind in "iu":
        sizes = np.abs(total) // max(count, 1)
        return np.where(total < 0, -sizes, sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / count)


def _save_value(path: str, value: Array) -> None:
    if Path(path).suffix == ".npy":
        np.save(path, value)
    else:
        save_volume(path, value)


def check_free(job: Job) -> None:
    """A run that starts must not write over anything."""
    for path in job.outputs.values():
        if is_there(path):
            fault = Fault("VG051", job.page.name, "output", "not exist yet", path, "Remove it or choose another name.")
            raise InvalidArgumentError(fault)


def check_same(folder: Path, place: Path, job: Job, head: Mapping[str, Any]) -> None:
    """A run that goes on must be the one that was begun, whose job is saved in `place`, on the data of that time."""
    remove = f"remove {folder} and the output"
    if head["job"] != job.described() or not _same_page(place, job):
        remedy = f"Finish that run with its own arguments, or {remove}."
        fault = Fault(
            "VG051", job.page.name, "output", "belong to this very run", "the manifest of another one", remedy
        )
        raise InvalidArgumentError(fault)
    check_marks(folder, job, head)


def check_marks(folder: Path, job: Job, head: Mapping[str, Any]) -> None:
    """Volumes must be what they were when the run began: before it goes on, and when it has read all of them."""
    marks, faults = job.marks(), Faults(job.page.name)
    for name, mark in head["marks"].items():
        if marks[name] != mark:
            path, *_ = head["job"]["volumes"][name]
            remedy = (
                "Its chunks would not fit together: put the old file back, or "
                f"remove {folder} and the output and start again."
            )
            faults.add("VG051", name, wanted="be what it was when the run began", got=f"{path}, changed", remedy=remedy)
    faults.raise_if_any()


def _same_page(folder: Path, job: Job) -> bool:
    """The saved page and the given one say the same; the order in which they say it does not count."""
    with tempfile.TemporaryDirectory() as place:
        job.page.save(Path(place) / "page.vox.json")
        return (Path(place) / "page.vox.json").read_bytes() == (folder / "page.vox.json").read_bytes()
