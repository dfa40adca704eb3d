# SPDX-License-Identifier: Apache-2.0
"""Runs a job: its passes one after the other, each going on from the sums and the volumes that those before it left.

The folder of the job holds one for every pass but the last. Each pass that has ended left its sums there, sealed, and
volumes for later passes, whose checksums are looked at before a run that was stopped goes on from them. A volume that
no later pass reads is removed at once.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.graph.block import Output
from voxgrad.graph.session import ClientSession
from voxgrad.volumes.executors import Executor, Workers
from voxgrad.volumes.job import Job, load_sealed, read_head, save_job, save_sealed
from voxgrad.volumes.one_pass import (
    Progress,
    believed,
    check_files,
    check_free,
    check_marks,
    check_same,
    places_of,
    run_pass,
    run_small,
)
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.passes import Passes
from voxgrad.volumes.record import damaged, only_run, room_in
from voxgrad.volumes.stores import open_volume

Array = np.ndarray[Any, Any]


def run_job(job: Job, folder: Path, executor: Executor, progress: Progress | None) -> dict[Output, Any]:
    """Do what is left of a job; returns every result, opened files and arrays."""
    passes = job.passes()
    check_files(job, passes.survey)
    with room_in(folder), only_run(folder, job.outputs.values()):
        if read_head(folder) is None:
            check_free(job)
        with executor.kept() if isinstance(executor, Workers) else nullcontext():
            return _run_passes(job, passes, folder, executor, progress)


def _run_passes(
    job: Job, passes: Passes, folder: Path, executor: Executor, progress: Progress | None
) -> dict[Output, Any]:
    """Do the passes one after the other; the last one makes the results. What others left goes when it has ended."""
    if len(passes.each) == 1:
        return run_pass(job, job.plan(), folder, executor, progress)
    place, whole = folder / "passes", job
    counts = [len(PagePlan(one.layout, job.chunks)) for one in passes.each]
    told = [_told(progress, sum(counts[:number]), sum(counts)) for number in range(len(counts))]
    job, head = _prepared(job, passes, place)
    ended = [load_sealed(place / str(number) / "found") for number in range(len(counts) - 1)]
    start = ended.index(None) if None in ended else len(ended)
    for number, one in enumerate(passes.each[:-1]):
        found, here = ended[number], _part(job, passes, number, place)
        if found is None:
            check_marks(folder, whole, head)
            values = run_pass(here, here.plan(), place / str(number), executor, told[number])
            found = {output.path: values[output] for output in one.sums}
            save_sealed(place / str(number) / "found", found)
        left = [output for output in one.keeps if passes.is_read(output, max(number, start - 1))]
        if number < start and left:
            _check_kept(here, PagePlan(one.layout, job.chunks), place / str(number))
        job = _behind(job, found, {output: here.outputs[output] for output in left})
        for output in one.reads & job.scratch if number >= start else ():
            if not passes.is_read(output, number):
                Path(str(job.volumes[output].path)).unlink(missing_ok=True)
    check_marks(folder, whole, head)
    last = _reading(job, passes, len(counts) - 1)
    results = run_pass(last, last.plan(), folder, executor, told[-1])
    for number in range(len(counts) - 1):
        shutil.rmtree(place / str(number), ignore_errors=True)
    return results


def _told(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The progress of one pass, as that of all of them."""
    return None if progress is None else lambda done, _, seconds: progress(before + done, total, seconds)


def _prepared(job: Job, passes: Passes, place: Path) -> tuple[Job, dict[str, Any]]:
    """A job of several passes: what none of them may draw again is fed, and where its results lie is worked out.

    With what was recorded of the job as a whole when it began, to which a run that goes on is held.
    """
    head = read_head(place)
    if head is None:
        save_job(job, place, {})
        head = read_head(place)
    assert head is not None
    check_same(place.parent, place, job, head)
    early = load_sealed(place / "early")
    if early is None:
        values = run_small(ClientSession(job.page), passes.early, {**job.feeds, **passes.survey.known})
        early = {output.path: value for output, value in zip(passes.early, values, strict=True)}
        save_sealed(place / "early", early)
    feeds = job.feeds | {job.page.output(name): value for name, value in early.items()}
    return replace(job, feeds=feeds, places=places_of(job, passes.survey)), head


def _reading(job: Job, passes: Passes, number: int) -> Job:
    """The job with its own volumes, of which a pass may want the shape alone, and those of others that it reads."""
    one = passes.each[number]
    volumes = {
        output: store for output, store in job.volumes.items() if output in one.reads or output not in job.scratch
    }
    return replace(job, volumes=volumes, roles=passes.roles(one))


def _part(job: Job, passes: Passes, number: int, place: Path) -> Job:
    """The job of a pass that is not the last: what it keeps goes into files of its own."""
    one = passes.each[number]
    outputs = {output: str(place / str(number) / f"{at}.npy") for at, output in enumerate(one.keeps)}
    return replace(
        _reading(job, passes, number), outputs=outputs, fetches=[*one.sums, *one.keeps], types={}, lasting=False,
        run=uuid.uuid4().hex,
    )  # fmt: skip


def _behind(job: Job, found: Mapping[str, Array], kept: Mapping[Output, str]) -> Job:
    """The job with what a pass has found."""
    feeds = {job.page.output(name): value for name, value in found.items()}
    volumes = {output: open_volume(path) for output, path in kept.items()}
    return replace(
        job, feeds=job.feeds | feeds, volumes=job.volumes | volumes, scratch=job.scratch | frozenset(volumes)
    )


def _check_kept(here: Job, plan: PagePlan, place: Path) -> None:
    """What a pass that ended has left must be what it wrote: what it was made of may be gone."""
    if len(believed(plan, here, place, set(range(len(plan))))) < len(plan):
        raise damaged(place, "a volume of an earlier pass, changed or gone")
