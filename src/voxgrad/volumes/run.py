# SPDX-License-Identifier: Apache-2.0
"""Runs ops and pages from store to store, chunk by chunk, and goes on where an earlier run stopped.

A folder beside the first output holds the job and records every chunk whose data is written. A chunk counts as done
when it is recorded and its data has the checksum that was recorded with it (`record`). An op is a page of one block.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.catalog.model import Input, Op
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, Faults, InvalidArgumentError, VoxgradError
from voxgrad.formats.text import parse_type
from voxgrad.graph.block import Output, is_variable
from voxgrad.graph.build import add_block
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.kernels.element_types import dtype_of, numpy_type
from voxgrad.volumes.chunk import index_of, is_some
from voxgrad.volumes.executors import Executor, executor_for
from voxgrad.volumes.grids import own_spaces, spaces
from voxgrad.volumes.job import Job, load_values, opened, read_head, save_job
from voxgrad.volumes.layout import VOLUME
from voxgrad.volumes.page_plan import PagePlan, Root
from voxgrad.volumes.record import Digests, Done, digest, only_run, room_in
from voxgrad.volumes.stores import Store, create_volume, is_there, open_volume, read_type, result_type, save_volume
from voxgrad.volumes.sums import Sums
from voxgrad.volumes.watch import Record, folder_of

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int, float], None]
CHUNKS = (128, 128, 128)


@checked
def apply(
    op: str,
    inputs: Mapping[str, Any],
    output: str | Path,
    *,
    chunks: Sequence[int] = CHUNKS,
    workers: int | Executor | None = None,
    client: Any = None,
    device: str = "cpu",
    dtype: str | None = None,
    output_dtype: str | None = None,
    progress: Progress | None = None,
    **attrs: Any,
) -> Store:
    """Run an op on volumes in files and write its result to a file; returns the opened result.

        vg.volumes.apply("MaxPool3D", {"input": "scan.zarr"}, "half.zarr", ksize=[1, 2, 2, 2, 1],
                         strides=[1, 2, 2, 2, 1], padding="SAME")

    `inputs` are paths, or lists of integers for shape vectors; `dtype` is the type to read volumes as, where it is not
    that of the file, `output_dtype` the one to write, into which every value must fit. Integers that an op does not
    take are read as floats; maxima of them are written as what they were. The same call again goes on where this one
    stopped. `workers` and `client` as in `run_page`.
    """
    job = op_job(
        op, inputs, output, chunks=chunks, device=device, dtype=dtype, output_dtype=output_dtype, **attrs
    )  # fmt: skip
    run_in(job, None, executor_for(workers, client), progress)
    return open_volume(output)


def op_job(
    op: str, inputs: Mapping[str, Any], output: str | Path, *, chunks: Sequence[int] = CHUNKS, device: str = "cpu",
    dtype: str | None = None, output_dtype: str | None = None, **attrs: Any,
) -> Job:  # fmt: skip
    """The job of one op: a page with a placeholder per file and one block."""
    declared = find(op)
    page = Page(op, semantics=current_semantics())
    given: list[Any] = []
    volumes, feeds, stored = {}, {}, {}
    for item in declared.inputs:
        value = inputs.get(item.name)
        if value is None:
            raise InvalidArgumentError(Fault("VG001", op, item.name, "be given", "no file", item.doc))
        if item.host:
            given.append([int(size) for size in value])
            continue
        store = opened(value)
        stored[item.name] = store.dtype
        given.append(_placeholder(page, declared, item, store, dtype))
        if item.layout == "filter":
            feeds[item.name] = store.read()
        else:
            volumes[item.name] = store
    add_block(page, declared, tuple(given), attrs, "result")
    job = Job.make(page, volumes, feeds, {"result": output}, [], chunks, device)
    kept = result_type(declared, stored) if dtype is None else None
    kind = np.dtype(numpy_type(parse_type(output_dtype, "output_dtype", op))) if output_dtype else kept
    job.types = {} if kind is None else {job.names["result"]: kind.name}
    return job


def _placeholder(page: Page, op: Op, item: Input, store: Store, dtype: str | None) -> Output:
    kind = dtype or dtype_of(read_type(op, item, store.dtype).newbyteorder("="))
    if kind is None:
        raise InvalidArgumentError(Fault("VG011", op.name, item.name, "hold numbers", str(store.dtype)))
    made: Output = add_block(page, find("Placeholder"), (), {"dtype": kind, "shape": list(store.shape)}, item.name)
    return made


@checked
def plan_op(op: str, inputs: Mapping[str, Any], *, chunks: Sequence[int] = CHUNKS, **more: Any) -> PagePlan:
    """The plan of `apply`, without running it: `vg.volumes.cost(plan)` says what it takes."""
    return op_job(op, inputs, "", chunks=chunks, **more).plan()


@checked
def plan_page(
    page: Page | str | Path,
    volumes: Mapping[str, Any],
    fetches: Sequence[str],
    *,
    feeds: Mapping[Any, Any] | None = None,
    chunks: Sequence[int] = CHUNKS,
) -> PagePlan:
    """The plan of `run_page`, without running it: results in files and sums over the volume alike are in `fetches`."""
    return Job.make(page_of(page), volumes, feeds or {}, {}, fetches, chunks).plan()


def page_of(page: Page | str | Path) -> Page:
    """A page, or the one in a file."""
    return page if isinstance(page, Page) else Page.load(page)


@checked
def run_page(
    page: Page | str | Path,
    volumes: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    fetches: Sequence[str] = (),
    *,
    feeds: Mapping[Any, Any] | None = None,
    chunks: Sequence[int] = CHUNKS,
    workers: int | Executor | None = None,
    client: Any = None,
    device: str = "cpu",
    progress: Progress | None = None,
    folder: str | Path | None = None,
) -> dict[str, Any]:
    """Run a page over volumes in files; returns its results by name: opened files, and arrays for `fetches`.

        vg.volumes.run_page(page, {"x": "scan.zarr"}, {"y": "features.zarr"}, fetches=["loss"], workers=4)

    `volumes` gives files to placeholders, which are read chunk by chunk, as those of Volume blocks are; `feeds` gives
    values that every worker holds. `outputs` names the results that are written to files, `fetches` those that come
    back: sums and means over the volume, filter gradients and what follows from them. `chunks` cuts the largest result:
    depth, height, width.

    Chunks are done by `workers` processes (0: in this one; None: one per processor; or a `Workers` that stays for
    several runs), or by a Dask `client` (or the address of its scheduler), whose workers must see the same files. The
    same call again goes on where this one stopped: its record is in `folder`, beside the first output if not given.
    """
    job = Job.make(page_of(page), volumes or {}, feeds or {}, outputs or {}, fetches, chunks, device)
    found = run_in(job, None if folder is None else Path(folder), executor_for(workers, client), progress)
    return {name: found[output] for name, output in job.names.items()}


def run_in(job: Job, folder: Path | None, executor: Executor, progress: Progress | None) -> dict[Output, Any]:
    """Run a job with its record in a folder: the given one, else beside the first output, else one for now only."""
    if folder is None and not job.outputs:
        with tempfile.TemporaryDirectory(prefix="voxgrad-") as temporary:
            return run_job(job, Path(temporary) / "run", executor, progress)
    return run_job(job, folder or folder_of(next(iter(job.outputs.values()))), executor, progress)


def run_job(job: Job, folder: Path, executor: Executor, progress: Progress | None) -> dict[Output, Any]:
    """Do what is left of a job; returns every result, opened files and arrays."""
    plan = job.plan()
    _check_files(job, plan)
    with room_in(folder), only_run(folder, job.outputs.values()):
        return _run_alone(job, plan, folder, executor, progress)


def _run_alone(
    job: Job, plan: PagePlan, folder: Path, executor: Executor, progress: Progress | None
) -> dict[Output, Any]:
    head = read_head(folder)
    _check_free(job) if head is None else _check_same(folder, job, head)
    session = ClientSession(job.page)
    if head is None:
        save_job(job, folder, _wholes(plan, job, session))
        head = read_head(folder)
    assert head is not None
    job.run = head["run"]
    recorded = Done(folder)
    recorded.keep(_believed(plan, job, folder, recorded.numbers))
    sums = Sums(folder / "sums", len(plan)) if plan.layout.sinks else None
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
        executor.go(str(folder.resolve()), job.run, todo, done)
    _check_marks(folder, job, head)
    return _results(plan, job, session, load_values(folder), {} if sums is None else sums.totals())


def _believed(plan: PagePlan, job: Job, folder: Path, recorded: set[int]) -> set[int]:
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
        if digest(parts) in known[number]:
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


def _check_files(job: Job, plan: PagePlan) -> None:
    faults = Faults("volumes")
    for output, slot in plan.layout.fetches.items():
        if plan.layout.kinds[slot] == VOLUME and output not in job.outputs:
            remedy = f"Name a file for it: outputs={{{output.block.name!r}: 'result.zarr'}}, or --output."
            faults.add("VG001", output.path, wanted="be written to a file: it is a volume", got="none", remedy=remedy)
    faults.raise_if_any()


def _create_outputs(plan: PagePlan, job: Job) -> None:
    """New files for the volumes that are made, cut so that every chunk of a file belongs to one task."""
    volumes = own_spaces(job.page) | {output: store.space for output, store in job.volumes.items()}
    placed = spaces(plan.layout.inference, volumes, list(job.outputs))
    for output, path in job.outputs.items():
        slot = plan.layout.fetches[output]
        root = next((root for root in plan.roots if root.piece is None and root.slot == slot), None)
        if root is None:
            continue
        spec = plan.layout.specs[slot]
        assert spec.dtype is not None
        assert spec.shape is not None
        roles = plan.layout.roles[slot]
        cut = [size if role is None else root.chunks[role] for role, size in zip(roles, spec.shape, strict=True)]
        kind = job.written_type(output, spec.dtype)
        create_volume(path, spec.shape, kind, [max(1, size) for size in cut], like=placed.get(output))


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
        values = _run(session, [layout.sources[slot] for slot in rest], {**job.feeds, **layout.known})
        found.update(zip(rest, values, strict=True))
    return found


def _run(session: ClientSession, fetches: Sequence[Output], feeds: Mapping[Output, Array]) -> list[Array]:
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
    values = dict(zip(late, _run(session, late, feeds), strict=True)) if late else {}
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
    made: Array = np.zeros(spec.shape) if total is None else total
    if piece.adds == "mean":
        source = plan.layout.specs[piece.inputs[0]].shape or ()
        made = made / (np.prod(source, dtype=np.float64) / max(made.size, 1))
    with np.errstate(over="ignore"):
        return made.astype(numpy_type(spec.dtype)).reshape(spec.shape)


def _save_value(path: str, value: Array) -> None:
    if Path(path).suffix == ".npy":
        np.save(path, value)
    else:
        save_volume(path, value)


def _check_free(job: Job) -> None:
    """A run that starts must not write over anything."""
    for path in job.outputs.values():
        if is_there(path):
            fault = Fault("VG051", job.page.name, "output", "not exist yet", path, "Remove it or choose another name.")
            raise InvalidArgumentError(fault)


def _check_same(folder: Path, job: Job, head: Mapping[str, Any]) -> None:
    """A run that goes on must be the one that was begun, on the data that it was begun with."""
    remove = f"remove {folder} and the output"
    if head["job"] != job.described() or not _same_page(folder, job):
        remedy = f"Finish that run with its own arguments, or {remove}."
        fault = Fault(
            "VG051", job.page.name, "output", "belong to this very run", "the manifest of another one", remedy
        )
        raise InvalidArgumentError(fault)
    _check_marks(folder, job, head)


def _check_marks(folder: Path, job: Job, head: Mapping[str, Any]) -> None:
    """Volumes must be what they were when the run began: before it goes on, and when it has read all of them."""
    marks, faults = job.marks(), Faults(job.page.name)
    for name, mark in head["marks"].items():
        if marks[name] != mark:
            path, _ = head["job"]["volumes"][name]
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
