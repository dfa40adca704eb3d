# SPDX-License-Identifier: Apache-2.0
"""Sweeps in the studio: points of `voxgrad.graph.sweep`, each a job of its engine's worker, so that one that is killed,
too large or too slow costs its own row. Sweeps are kept until the studio ends; the page is never changed by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from anyio import to_thread

from voxgrad.errors import Fault, VoxgradError
from voxgrad.formats.text import split_values
from voxgrad.graph.measure import Work
from voxgrad.graph.sweep import ENGINE, Point, Row, Sweep
from voxgrad.graph.sweep_table import Table, csv_line
from voxgrad.studio import gate, messages
from voxgrad.studio.documents import Documents
from voxgrad.studio.frames import Frame
from voxgrad.studio.limits import RunLimits
from voxgrad.studio.peers import check_engines
from voxgrad.studio.runs import Job, QueueFull, Runs, times_data

KEPT = 16
FULL_SECONDS = 0.2
"""How long a point waits before it asks again for a place in a queue that is full."""


@dataclass(eq=False)
class _Sweep:
    """A sweep under way, or one that has ended."""

    id: str
    ask: messages.AskSweep
    sweep: Sweep
    work: Work
    started: float
    began: float
    state: messages.RunState = "running"
    seconds: float = 0.0
    stopping: bool = False
    job: Job | None = None
    rows: list[Row] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class Sweeps:
    """Takes sweeps and runs their points one after the other. All methods belong to the event loop, but `plan`."""

    def __init__(self, documents: Documents, runs: Runs, limits: RunLimits, publish: Callable[[Any], None]):
        self._documents = documents
        self._runs = runs
        self._limits = limits
        self._publish = publish
        self._known: OrderedDict[str, _Sweep] = OrderedDict()

    def plan(self, ask: messages.AskSweep) -> messages.SweepPlan:
        """What a sweep will run; everything that is wrong with names and values is one error."""
        return _plan(*self._made(ask))

    async def start(self, ask: messages.AskSweep) -> messages.SweepData:
        """Begin a sweep."""
        sweep, work = await to_thread.run_sync(lambda: self._made(ask))
        one = _Sweep(secrets.token_hex(8), ask, sweep, work, time.time(), time.monotonic())
        self._known[one.id] = one
        for old in [name for name, kept in self._known.items() if kept.state != "running"][: len(self._known) - KEPT]:
            del self._known[old]
        self._tell(one, None)
        one.task = asyncio.get_running_loop().create_task(self._run(one))
        return _told(one)

    def get(self, name: str) -> messages.SweepData:
        """A sweep with its rows so far."""
        one = self._one(name)
        return _told(one).model_copy(update={"rows": [_row(one, row) for row in one.rows]})

    def recent(self, page: str | None) -> list[messages.SweepData]:
        """The sweeps of a page, or of all, without rows."""
        return [_told(one) for one in reversed(self._known.values()) if page in (None, one.ask.page_id)]

    def cancel(self, name: str) -> messages.SweepData:
        """Stop a sweep, and the point that runs; its rows stay."""
        one = self._one(name)
        if one.state == "running":
            one.stopping = True
            if one.job is not None:
                self._runs.stop(one.job)
        return _told(one)

    def export(self, name: str, kind: str) -> str:
        """The rows so far, as the command line writes them."""
        one = self._one(name)
        if kind == "json":
            return json.dumps({"points": len(one.sweep), "rows": [row.as_dict() for row in one.rows]})
        table = Table(one.sweep, one.work)
        return "".join(map(csv_line, [table.columns, *map(table.cells, one.rows)]))

    async def close(self) -> None:
        """Stop all of them."""
        for one in self._known.values():
            if one.task is not None:
                one.task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await one.task

    def _one(self, name: str) -> _Sweep:
        if name not in self._known:
            raise VoxgradError(Fault("VG050", "studio", "sweep", "be one that is known", repr(name[:80])))
        return self._known[name]

    def _made(self, ask: messages.AskSweep) -> tuple[Sweep, Work]:
        varied = {name: split_values(text, name) for name, text in ask.variations.items()}
        check_engines(varied.get(ENGINE, []), ENGINE)
        sweep = Sweep(self._documents.read(ask.document), varied, zipped=ask.zipped)
        return sweep, sweep.work(Work(tuple(ask.fetch), {}, ask.cycles, ask.repeats))

    async def _run(self, one: _Sweep) -> None:
        try:
            for point in one.sweep:
                row = None if one.stopping else await self._row(one, point)
                if row is None:
                    break
                one.rows.append(row)
                self._tell(one, row)
        finally:
            one.state = "cancelled" if len(one.rows) < len(one.sweep) else "done"
            one.seconds = time.monotonic() - one.began
            self._tell(one, None)

    async def _row(self, one: _Sweep, point: Point) -> Row | None:
        """The row of a point; None for one that was stopped."""
        try:
            frame = await to_thread.run_sync(lambda: self._frame(one, point))
        except VoxgradError as error:
            return Row(point, faults=error.faults)
        one.job = await self._queued(one, point.values.get(ENGINE, one.ask.engine), frame)
        if one.job is None:
            return None
        found = await one.job.done
        one.job = None
        if found["state"] == "done":
            return Row.of(point, found["result"])
        if one.stopping:
            return None
        return Row(point, faults=tuple(Fault(**fault) for fault in found["error"]["faults"]))

    def _frame(self, one: _Sweep, point: Point) -> Frame:
        """What the worker needs for a point, if the page of the point may run. Its files are those of the page swept."""
        page = one.sweep.page_of(point)
        roots = [page.output(path).block.name for path in one.work.fetches] + [block.name for block in page.targets]
        gate.allowed(page, self._limits, roots)
        return {
            "document": self._documents.write(page), "files": page.files.as_data(), "feeds": one.ask.feeds,
            "fetches": list(one.work.fetches), "cycles": one.work.cycles, "repeats": one.work.repeats,
        }  # fmt: skip

    async def _queued(self, one: _Sweep, engine: str, frame: Frame) -> Job | None:
        """The job of a point, as soon as there is room for it; None where the sweep is stopped before."""
        while not one.stopping:
            try:
                return self._runs.put("point", engine, frame)
            except QueueFull:
                await asyncio.sleep(FULL_SECONDS)
        return None

    def _tell(self, one: _Sweep, row: Row | None) -> None:
        self._publish(
            messages.SweepEvent(
                sweep=one.id, page=one.ask.page_id, state=one.state, done=len(one.rows), points=len(one.sweep),
                seconds=_seconds(one), row=None if row is None else _row(one, row),
            )  # fmt: skip
        )


def _seconds(one: _Sweep) -> float:
    return one.seconds if one.state != "running" else time.monotonic() - one.began


def _plan(sweep: Sweep, work: Work) -> messages.SweepPlan:
    values = {name: list(texts) for name, texts in sweep.variations.items()}
    return messages.SweepPlan(points=len(sweep), values=values, fetches=list(work.fetches))


def _told(one: _Sweep) -> messages.SweepData:
    return messages.SweepData(
        id=one.id, page_id=one.ask.page_id, state=one.state, started=one.started, seconds=_seconds(one),
        plan=_plan(one.sweep, one.work), repeats=one.work.repeats, done=len(one.rows), rows=[],
    )  # fmt: skip


def _row(one: _Sweep, row: Row) -> messages.SweepRow:
    return messages.SweepRow(
        index=row.point.index,
        values=dict(row.point.values),
        engine=row.point.values.get(ENGINE, one.ask.engine),
        results={path: messages.ReadingData(**asdict(reading)) for path, reading in row.results.items()},
        times=times_data(row.times),
        faults=[messages.FaultData(**fault.as_dict()) for fault in row.faults],
        edits=[dict(edit) for edit in row.point.edits],
    )
