# SPDX-License-Identifier: Apache-2.0
"""What `voxgrad apply --chunks` and `voxgrad run --volume` share: from file to file, for volumes larger than memory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxgrad.catalog.attributes import canonical
from voxgrad.catalog.model import Op
from voxgrad.cli.show import tell_lost, tell_type
from voxgrad.errors import Fault, Faults, InvalidArgumentError
from voxgrad.formats.text import parse_attr, parse_attrs, parse_ints
from voxgrad.volumes.stores import open_volume, read_type

if TYPE_CHECKING:
    from voxgrad.volumes.job import Job

TEACHING = """\
Each chunk of the result is one task, which reads exactly the box it needs, computes, and writes its own region. The
same command again goes on where it stopped; `voxgrad watch OUTPUT` shows how far it is.
"""
INNER = "write a Zarr in shards, one for each chunk, with chunks of this size in them"
_WIDTH = 30


def add_arguments(parser: argparse.ArgumentParser, *, device: bool) -> argparse._ArgumentGroup:
    """What a chunked run asks for besides its own files; the group, for those."""
    group = parser.add_argument_group(
        "volumes larger than memory (any volume in; .npy, .zarr, .nii, .tif, .h5, .nrrd, .mha out)", TEACHING
    )
    group.add_argument("--chunks", metavar="D,H,W", help="the size of a chunk of the result (default 128,128,128)")
    group.add_argument("--inner-chunks", metavar="D,H,W", help=INNER)
    group.add_argument(
        "--memory", metavar="1.5GiB", help="choose the largest chunks whose tasks fit into this much memory"
    )
    group.add_argument("--plan", action="store_true", help="say what the run would read, compute and hold; do not run")
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes to use; 0: this one (default: one per processor)"
    )
    group.add_argument(
        "--scheduler", metavar="tcp://HOST:8786", help="work on a Dask cluster, whose workers see the same files"
    )
    if device:
        group.add_argument("--device", default="cpu", help="where workers compute: cpu or cuda (default cpu)")
    return group


def is_asked_for(given: argparse.Namespace) -> bool:
    """True where one of the arguments means a chunked run."""
    named = (given.chunks, given.inner_chunks, given.memory, given.scheduler, given.workers)
    return given.plan or any(one is not None for one in named)


def op_job(op: Op, given: argparse.Namespace, sources: dict[str, list[str]]) -> Job:
    """The job of `voxgrad apply`."""
    # Loaded here because it brings processes and pages, which the other commands do without.
    from voxgrad.volumes.run import op_job as make

    if given.output is None and not given.plan:
        raise InvalidArgumentError(Fault("VG001", op.name, "--output", "be given for a run in chunks", "no file"))
    attrs = dict(parse_attrs(op, given.attrs) or {})
    for attr in op.attrs:
        text = getattr(given, attr.name)
        if text is not None:
            attrs[attr.name] = parse_attr(attr, text, op.name)
    faults = Faults(op.name)
    for item in op.inputs:
        if item.name not in sources:
            faults.add("VG001", item.name, wanted="be given", got="no file", remedy=item.doc)
    values = canonical(op, attrs, faults)
    faults.raise_if_any()
    inputs = {
        item.name: parse_ints(sources[item.name][0], item.name, op.name) if item.host else sources[item.name][0]
        for item in op.inputs
    }
    if given.dtype is None:
        for item in op.inputs:
            if not item.host:
                stored = open_volume(sources[item.name][0]).dtype
                tell_type(sources[item.name][0], stored, read_type(op, item, stored))
    types = {"dtype": given.dtype, "output_dtype": given.output_dtype}
    return make(op.name, inputs, given.output or "", device=given.device, **types, **values)


def go(job: Job, given: argparse.Namespace, folder: Path | None) -> dict[Any, Any] | None:
    """Settle the chunks of a job, then say what it costs, or run it; None where it was not run."""
    from voxgrad.volumes.costs import cost
    from voxgrad.volumes.executors import executor_for
    from voxgrad.volumes.run import run_in
    from voxgrad.volumes.store import Store
    from voxgrad.volumes.trial import chunks_within, measured

    advice = None
    executor = executor_for(given.workers, given.scheduler, job.device)
    job.inner = parse_inner(given.inner_chunks, job.page.name)
    if given.chunks is not None:
        job.chunks = parse_chunks(given.chunks, job.page.name)
    elif given.memory is not None:
        job.chunks, advice = chunks_within(job, given.memory, folder, executor)
    if given.plan:
        print(advice or cost(job.plan(), measured(job, executor)))
        return None
    bar = show if sys.stderr.isatty() else None
    found = run_in(job, folder, executor, bar)
    if bar:
        sys.stderr.write("\n")
    for value in found.values():
        if isinstance(value, Store):
            tell_lost(value.name, value.space)
    return found


def parse_chunks(text: str, name: str, argument: str = "--chunks") -> tuple[int, ...]:
    """What `--chunks` says."""
    sizes = tuple(parse_ints(text, argument, name))
    if len(sizes) != 3 or min(sizes) < 1:
        raise InvalidArgumentError(
            Fault("VG004", name, argument, "be depth, height, width, 1 or more each", repr(text))
        )
    return sizes


def parse_inner(text: str | None, name: str) -> tuple[int, ...]:
    """What `--inner-chunks` says."""
    return () if text is None else parse_chunks(text, name, "--inner-chunks")


def show(done: int, total: int, seconds: float) -> None:
    """A bar with the rate and the time that is left."""
    filled = _WIDTH * done // max(total, 1)
    rate = done / seconds if seconds else 0.0
    left = f"{(total - done) / rate:.0f} s left" if rate else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{total} chunks  {rate:.1f}/s  {left}   ")
    sys.stderr.flush()
