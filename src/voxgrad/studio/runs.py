# SPDX-License-Identifier: Apache-2.0
"""Runs: a bounded queue per engine, in front of a worker process that can be stopped, killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import voxgrad
from voxgrad.catalog import registry
from voxgrad.errors import Fault, ResourceExhaustedError, VoxgradError
from voxgrad.graph.measure import Times
from voxgrad.graph.readings import Readings
from voxgrad.studio import frames, messages
from voxgrad.studio.displays import PageCurves, point_of
from voxgrad.studio.frames import Frame
from voxgrad.studio.history import History
from voxgrad.studio.limits import RunLimits
from voxgrad.studio.project import Project
from voxgrad.studio.run_curves import Curves, kept
from voxgrad.studio.tensors import TensorStore

GRACE_SECONDS = 1.0
"""How long a run may take to stop by itself before its worker is killed."""


class QueueFull(ResourceExhaustedError):  # noqa: N818 - a state of the server
    """More runs than may wait."""


@dataclass(eq=False)
class Job:
    """Something that a worker does. `run` is None for what is not kept in the history."""

    frame: Frame
    engine: str
    done: asyncio.Future[Frame]
    run: messages.RunData | None = None
    stopping: bool = False
    began: float = 0.0
    blocks: dict[str, messages.BlockRun] = field(default_factory=dict)
    curves: Readings = field(default_factory=Readings)
    at: messages.BlockEvent | None = None
    """The block that runs now."""

    @property
    def id(self) -> str:
        """The name of the job."""
        return str(self.frame["job"])


class Runs:
    """Takes runs, hands them to workers, tells everybody what happens. All methods belong to the event loop."""

    def __init__(
        self,
        project: Project,
        history: History,
        tensors: TensorStore,
        limits: RunLimits,
        publish: Callable[[Any], None],
    ):
        self._project = project
        self._history = history
        self._tensors = tensors
        self._limits = limits
        self._publish = publish
        self.curves = PageCurves()
        self._lanes: dict[str, _Lane] = {}
        self._active: dict[str, Job] = {}

    def submit(self, ask: messages.AskRun, roots: list[str], files: list[Any]) -> str:
        """Queue a run; its name."""
        name = secrets.token_hex(8)
        frame = {
            "kind": "run", "job": name, "page": ask.page_id, "document": ask.document, "roots": roots,
            "cycles": ask.cycles, "engine": ask.engine, "session": ask.session, "feeds": ask.feeds,
            "files": files, "repeats": ask.repeats,
        }  # fmt: skip
        run = messages.RunData(
            id=name,
            page_id=ask.page_id,
            engine=ask.engine,
            state="queued",
            started=time.time(),
            seconds=None,
            cycles=ask.cycles,
        )
        job = Job(frame, ask.engine, asyncio.get_running_loop().create_future(), run)
        self._lane(ask.engine).put(job)
        self._history.start(run)
        self._active[name] = job
        if not ask.repeats:
            self.curves.start(ask.page_id, ask.session == "keep")
        self._tell(job)
        return name

    async def check(self, ask: messages.AskCheck, files: list[Any]) -> Frame:
        """Check gradients; the frame that ends the job."""
        return await self.put("check", "cpu", {"files": files, **ask.model_dump()}).done

    def put(self, kind: str, engine: str, entries: Frame) -> Job:
        """Queue something for the worker of an engine that is no run of the history."""
        frame = {**entries, "kind": kind, "job": secrets.token_hex(8), "engine": engine}
        job = Job(frame, engine, asyncio.get_running_loop().create_future())
        self._lane(engine).put(job)
        return job

    async def forget(self, page: str) -> None:
        """Drop the sessions of a page in all workers."""
        await asyncio.gather(*(self.put("forget", engine, {"page": page}).done for engine in self._lanes))

    def cancel(self, name: str) -> messages.RunState:
        """Stop a run: at once where it waits, else by asking, and by force a second later."""
        job = self._active.get(name)
        if job is None or job.run is None:
            found = self._history.run(name)
            if found is None:
                raise no_such_run(name)
            return found.state
        self.stop(job)
        return job.run.state

    def stop(self, job: Job) -> None:
        """Stop a job: at once where it waits."""
        job.stopping = True
        lane = self._lane(job.engine)
        if lane.drop(job):
            self.end(job, {"state": "cancelled", "error": None})
        else:
            lane.stop(job)

    def get(self, name: str) -> messages.RunData:
        """A run with what is known of its blocks."""
        job = self._active.get(name)
        if job is not None and job.run is not None:
            return job.run.model_copy(update={"blocks": list(job.blocks.values())})
        found = self._history.run(name)
        if found is None:
            raise no_such_run(name)
        return found

    def curves_of(self, name: str) -> Curves:
        """The numbers over the cycles of a run, also of one under way."""
        job = self._active.get(name)
        if job is not None:
            return kept(job.curves.over)
        self.get(name)
        return self._history.curves(name)

    def recent(self, page: str | None, limit: int) -> list[messages.RunData]:
        """The newest runs, those under way as they are now."""
        known = self._history.runs(page, limit)
        active = {name: job.run for name, job in self._active.items() if job.run is not None}
        return [active.get(run.id, run) for run in known]

    def begin(self, job: Job) -> None:
        """A worker starts with a job."""
        if job.run is not None:
            job.run.state = "running"
            job.began = time.monotonic()
            self._tell(job)

    def event(self, job: Job, data: Frame) -> None:
        """A worker tells something about a job."""
        if data["type"] == "block":
            event = messages.BlockEvent.model_validate(data)
            if event.state == "started":
                job.at = event
            elif job.at is not None and job.at.block == event.block:
                job.at = None
            if event.state in ("done", "cached", "failed"):
                # The newest comes last, so that the history has the order of the run.
                job.blocks.pop(event.block, None)
                job.blocks[event.block] = messages.BlockRun(
                    **event.model_dump(include=set(messages.BlockRun.model_fields))
                )
            self._publish(event)
        elif data["type"] == "scalar":
            number = messages.ScalarEvent.model_validate(data)
            if not job.frame["repeats"]:
                self.curves.note(str(job.frame["page"]), number)
            job.curves.note(*point_of(number))
            self._publish(number)
        elif data["type"] == "repeat":
            self._tell(job, data["number"])
        elif data["type"] == "log":
            self._publish(messages.LogEvent.model_validate(data))

    def end(self, job: Job, frame: Frame) -> None:
        """A job has ended, in whatever way."""
        run = job.run
        if frame.get("lost") and job.at is not None:
            frame = self._blame(job, job.at, frame)
        if run is not None and self._active.pop(job.id, None) is not None:
            run.state = "cancelled" if job.stopping and frame["state"] != "done" else frame["state"]
            # Waiting in the queue, and for a worker that starts, is not the time of the run.
            run.seconds = time.monotonic() - job.began if job.began else None
            run.error = None if frame["error"] is None else messages.ErrorData.model_validate(frame["error"])
            if frame.get("result") is not None:
                _take_times(run, job.blocks, frame["result"])
            # What a run gave that failed is never shown as a result of it; its blocks say how far it came.
            run.blocks = list(job.blocks.values())
            self._history.finish(run)
            if curves := kept(job.curves.over):
                self._history.keep_curves(run.id, curves)
            self._tell(job)
            asyncio.get_running_loop().run_in_executor(None, self._tensors.trim)
        if not job.done.done():
            job.done.set_result(frame)

    def _blame(self, job: Job, at: messages.BlockEvent, frame: Frame) -> Frame:
        """The end of a run whose worker died or was killed, as an error of the block that it was at."""
        op = op_at(job.frame["document"], at.block)
        found = None if op is None else registry.get(op)
        whose = f" of the package {found.package}" if found is not None and found.package else ""
        fault = Fault(**frame["error"]["faults"][0])
        fault = replace(fault, op=op or fault.op, argument=at.block, got=f"{fault.got}, in this block{whose}")
        error: Frame = {"message": str(fault), "faults": [fault.as_dict()]}
        failed = messages.BlockEvent.model_validate(at.model_dump() | {"state": "failed", "error": error})
        job.blocks[at.block] = messages.BlockRun(**failed.model_dump(include=set(messages.BlockRun.model_fields)))
        self._publish(failed)
        return {**frame, "error": error}

    def _tell(self, job: Job, repeat: int | None = None) -> None:
        assert job.run is not None
        run = job.run
        self._publish(
            messages.RunEvent(
                run=run.id, page=run.page_id, engine=run.engine, state=run.state, seconds=run.seconds, error=run.error,
                repeat=repeat,
            )  # fmt: skip
        )

    def _lane(self, engine: str) -> _Lane:
        if engine not in self._lanes:
            self._lanes[engine] = _Lane(self, engine, self._project, self._limits)
        return self._lanes[engine]

    async def close(self) -> None:
        """Stop all workers."""
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))


class _Lane:
    """The queue of one engine and its worker."""

    def __init__(self, runs: Runs, engine: str, project: Project, limits: RunLimits):
        self._runs = runs
        self._engine = engine
        self._project = project
        self._limits = limits
        self._waiting: list[Job] = []
        self._wake = asyncio.Event()
        self._current: Job | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.get_running_loop().create_task(self._serve())
        self._killer: asyncio.TimerHandle | None = None

    def put(self, job: Job) -> None:
        """Queue a job, if there is room."""
        if len(self._waiting) >= self._limits.queue:
            remedy = "Wait for one of them, or cancel it."
            raise QueueFull(
                Fault("VG021", "studio", "runs", f"wait in a queue of {self._limits.queue}", "one more", remedy)
            )
        self._waiting.append(job)
        self._wake.set()

    def drop(self, job: Job) -> bool:
        """Take a job out of the queue; False where it does not wait there."""
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        return True

    def stop(self, job: Job) -> None:
        """Ask a running job to stop; its worker is killed if it does not."""
        if self._current is not job or self._process is None:
            return
        with contextlib.suppress(ConnectionError, RuntimeError):
            assert self._process.stdin is not None
            self._process.stdin.write(frames.packed({"kind": "cancel", "job": job.id}))
        if self._killer is None:
            self._killer = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """End the worker."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._kill()
        if self._process is not None:
            await self._process.wait()

    async def _serve(self) -> None:
        while True:
            await self._wake.wait()
            if not self._waiting:
                self._wake.clear()
                continue
            job = self._waiting.pop(0)
            self._current = job
            try:
                frame = await self._do(job)
            except OSError as error:
                frame = _ended("failed", "VG068", f"start: {error}")
            finally:
                self._current = None
                if self._killer is not None:
                    self._killer.cancel()
                    self._killer = None
            self._runs.end(job, frame)

    async def _do(self, job: Job) -> Frame:
        """Hand a job to the worker and follow it to its end."""
        process = await self._worker()
        if process is None:
            return _ended("failed", "VG068", f"it did not start; is {self._engine} installed?")
        assert process.stdin is not None and process.stdout is not None
        if job.stopping:  # while the worker started
            return _ended("cancelled", "VG040", "a request to stop")
        self._runs.begin(job)
        try:
            process.stdin.write(frames.packed(job.frame))
            await process.stdin.drain()
            async with asyncio.timeout(self._limits.seconds):
                return await self._follow(job, process.stdout)
        except TimeoutError:
            self.stop(job)
            frame = await self._follow(job, process.stdout)
            return (
                frame
                if frame["state"] == "done"
                else _ended("failed", "VG021", f"more than {self._limits.seconds:g} seconds", lost=True)
            )
        except ConnectionError:
            return _ended("failed", "VG068", "it was gone")

    async def _follow(self, job: Job, stream: asyncio.StreamReader) -> Frame:
        while (frame := await frames.read_async(stream)) is not None:
            if frame.get("job") != job.id:
                continue
            if frame["kind"] == "end":
                return frame
            self._runs.event(job, frame["event"])
        process, self._process = self._process, None
        code = await process.wait() if process is not None else None
        if job.stopping:
            return _ended("cancelled", "VG040", "a worker that had to be killed")
        return _ended("failed", "VG068", f"exit code {code}", lost=True)

    async def _worker(self) -> asyncio.subprocess.Process | None:
        """The worker; a new one where there is none, or where it has died."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        source = str(Path(voxgrad.__file__).resolve().parents[1])
        path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "voxgrad.studio.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=os.environ | {"PYTHONPATH": path},
            limit=2**20,
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        settings = {
            "engine": self._engine, "memory": self._limits.memory, "state": str(self._project.state),
            "files": str(self._project.files),
        }  # fmt: skip
        self._process.stdin.write(frames.packed(settings))
        hello = await frames.read_async(self._process.stdout)
        if hello is None:
            self._process = None
        return self._process


_WANTED = {
    "VG040": "run to its end",
    "VG021": "end in time",
    "VG068": "have a worker that lives",
}


def _take_times(run: messages.RunData, blocks: dict[str, messages.BlockRun], measured: Frame) -> None:
    """The times of a run that was measured. The first run behind it showed the values, and is not among them."""
    run.times = times_data(Times(tuple(measured["whole"])))
    for name, seconds in measured["blocks"].items():
        if name in blocks:
            blocks[name].times = times_data(Times(tuple(seconds)))


def times_data(times: Times) -> messages.TimesData | None:
    """Times for a client; None where nothing was timed."""
    if times.median is None:
        return None
    low, high = times.spread or (times.median, times.median)
    return messages.TimesData(count=len(times.runs), median=times.median, low=low, high=high, first=times.first)


def _ended(state: str, code: str, got: str, lost: bool = False) -> Frame:
    """The end of a job that its worker does not tell; `lost` where it was at a block."""
    fault = Fault(code, "studio", "run", _WANTED[code], got)
    error: dict[str, Any] = {"message": str(fault), "faults": [fault.as_dict()]}
    return {"state": state, "error": error, "result": None, "lost": lost}


def op_at(document: messages.Document, name: str) -> str | None:
    """The op of a block by its name in a run, in which those of inner pages begin with the block that stands for it."""
    for block in document.get("blocks", ()):
        if block.get("name") == name:
            found: str | None = block.get("op")
            return found
        if "page" in block and name.startswith(f"{block['name']}/"):
            inner = document.get("pages", {}).get(block["page"], {})
            return op_at(inner, name.removeprefix(f"{block['name']}/"))
    return None


def no_such_run(name: str) -> VoxgradError:
    """The error for a run that nobody knows."""
    return VoxgradError(Fault("VG050", "studio", "run", "be one that is known", repr(name[:80])))
