# SPDX-License-Identifier: Apache-2.0
"""Runs ops and pages from store to store, chunk by chunk, and goes on where an earlier run stopped.

A folder beside the first output holds the job and records every chunk whose data is written (`run_job`). An op is a
page of one block.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.catalog.model import Input, Op
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.text import parse_type
from voxgrad.graph.block import Output
from voxgrad.graph.build import add_block
from voxgrad.graph.page import Page
from voxgrad.kernels.element_types import dtype_of, numpy_type
from voxgrad.volumes.executors import Executor, executor_for
from voxgrad.volumes.job import Job, opened
from voxgrad.volumes.one_pass import Progress as Progress
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.run_job import run_job
from voxgrad.volumes.stores import Store, open_volume, read_type, result_type
from voxgrad.volumes.watch import folder_of

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
    inner_chunks: Sequence[int] = (),
    progress: Progress | None = None,
    **attrs: Any,
) -> Store:
    """Run an op on volumes in files and write its result to a file; returns the opened result.

        vg.volumes.apply("MaxPool3D", {"input": "scan.zarr"}, "half.zarr", ksize=[1, 2, 2, 2, 1],
                         strides=[1, 2, 2, 2, 1], padding="SAME")

    `inputs` are paths, or lists of integers for shape vectors; `dtype` is the type to read volumes as, where it is not
    that of the file, `output_dtype` the one to write, into which every value must fit. Integers that an op does not
    take are read as floats; maxima of them are written as what they were. The same call again goes on where this one
    stopped. `workers`, `client` and `inner_chunks` as in `run_page`.
    """
    job = op_job(
        op, inputs, output, chunks=chunks, device=device, dtype=dtype, output_dtype=output_dtype,
        inner_chunks=inner_chunks, **attrs,
    )  # fmt: skip
    run_in(job, None, executor_for(workers, client, device), progress)
    return open_volume(output)


def op_job(
    op: str, inputs: Mapping[str, Any], output: str | Path, *, chunks: Sequence[int] = CHUNKS, device: str = "cpu",
    dtype: str | None = None, output_dtype: str | None = None, inner_chunks: Sequence[int] = (), **attrs: Any,
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
    job.inner = inner_of(inner_chunks)
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
    inner_chunks: Sequence[int] = (),
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

    A Zarr is cut as the tasks are. With `inner_chunks` a task writes one shard instead, with chunks of that size in it,
    which are read one by one.
    """
    job = Job.make(page_of(page), volumes or {}, feeds or {}, outputs or {}, fetches, chunks, device)
    job.inner = inner_of(inner_chunks)
    found = run_in(job, None if folder is None else Path(folder), executor_for(workers, client, device), progress)
    return {name: found[output] for name, output in job.names.items()}


def inner_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """The chunks inside of shards: depth, height and width, or none."""
    if len(sizes) not in (0, 3) or min(sizes, default=1) < 1:
        wanted = "be depth, height, width, 1 or more each"
        raise InvalidArgumentError(Fault("VG004", "volumes", "inner_chunks", wanted, str(list(sizes))))
    return tuple(int(size) for size in sizes)


def run_in(job: Job, folder: Path | None, executor: Executor, progress: Progress | None) -> dict[Output, Any]:
    """Run a job with its record in a folder: the given one, else beside the first output, else one for now only."""
    if folder is None and not job.outputs:
        with tempfile.TemporaryDirectory(prefix="voxgrad-") as temporary:
            return run_job(job, Path(temporary) / "run", executor, progress)
    return run_job(job, folder or folder_of(next(iter(job.outputs.values()))), executor, progress)
