# SPDX-License-Identifier: Apache-2.0
"""What a worker can do: run a page, check its gradients, forget a session. Values go to the tensor store at once."""

from __future__ import annotations

import itertools
import math
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from voxgrad.catalog.logging import SUMMARY
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats import events
from voxgrad.graph.block import Block
from voxgrad.graph.cache import Cache
from voxgrad.graph.displays import Shown
from voxgrad.graph.lint import left_out
from voxgrad.graph.measure import Session, Work, timed
from voxgrad.graph.page import Page
from voxgrad.graph.readings import numbers_of, part_of, watched
from voxgrad.graph.report import Progress
from voxgrad.graph.sweep import Point, run_point
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio import messages
from voxgrad.studio.documents import Documents
from voxgrad.studio.frames import Frame
from voxgrad.studio.peers import open_session
from voxgrad.studio.project import Project
from voxgrad.studio.summaries import brief
from voxgrad.studio.tensors import Array, TensorStore

KEPT_SESSIONS = 8
SHOWN_SECONDS = 0.2
"""In a loop, results are shown this often; scalars more often, for the trend charts."""
SCALAR_SECONDS = 0.01
MOST_TAGS = 64
"""Of a summary so many numbers are told: more are no chart."""
WHOLE_CYCLES = 300
"""The scalars of so many first cycles are all told: a short run has curves of all its points."""


class Jobs:
    """The sessions of a worker, and the jobs that use them."""

    def __init__(self, state: Path, files: Files, memory: int, tell: Callable[[Frame], None]):
        self._documents = Documents(state / Project.BLOBS, files)
        self._tensors = TensorStore(state / Project.TENSORS)
        self._tell = tell
        self._cache = Cache(min(memory // 4, 2**31))
        self._sessions: OrderedDict[str, Any] = OrderedDict()
        self._counts: dict[str, int] = {}
        self._running: Any = None
        self._do = {"run": self._run, "point": self._point, "check": self._check, "forget": self._forget}

    def do(self, frame: Frame) -> Any:
        """Do a job; what it returns goes back to the server."""
        return self._do[frame["kind"]](frame)

    def cancel(self) -> None:
        """Stop what runs now, from another thread."""
        if self._running is not None:
            self._running.cancel()

    def _forget(self, frame: Frame) -> None:
        self._sessions.pop(frame["page"], None)
        self._counts.pop(frame["page"], None)

    def _page(self, frame: Frame) -> Page:
        """The page of a job, with the files that the person lets it touch."""
        page = self._documents.read(frame["document"])
        page.files = Files.from_data(frame["files"])
        return page

    def _check(self, frame: Frame) -> list[Frame]:
        from voxgrad.graph.check_gradients import check_gradients

        page = self._page(frame)
        names = frame["of"]
        ys = None if names is None else [page.block(name).output(0) for name in names]
        checks = check_gradients(page, ys, feeds=self._feeds(frame))
        return [check.as_dict() for check in checks if names is None or check.block in names]

    def _run(self, frame: Frame) -> Frame | None:
        page = self._page(frame)
        report = _Report(frame["job"], page, self._tensors, self._tell)
        if frame["repeats"] > 0:
            return self._measured(frame, page, report)
        session = self._session(frame, page, report)
        self._running = session
        try:
            roots, feeds = [page.block(name) for name in frame["roots"]], self._feeds(frame)
            report.feeds(page, feeds)
            self._cycles(frame, session, report, roots, feeds)
        finally:
            self._running = None
            session.on_progress = session.on_values = None
        return None

    def _measured(self, frame: Frame, page: Page, report: _Report) -> Frame:
        """Several cold runs for their times, behind one that loads, warms and shows the values; no session is kept."""
        engine, cycles, count = frame["engine"], frame["cycles"], frame["repeats"]
        roots, feeds = [page.block(name) for name in frame["roots"]], self._feeds(frame)
        hooks: dict[str, Any] = {"on_progress": report.progress, "on_values": report.values, "log": report.log}
        blocks: dict[str, list[float]] = {}
        whole: list[float] = []

        def begin(cycle: int) -> Frame:
            report.begin(cycle, cycle in (0, cycles - 1))
            return feeds

        try:
            self._running = open_session(page, engine, cache=False, **hooks)
            report.feeds(page, feeds)
            self._running.loop(cycles, (), begin, roots)
            for at in range(count):
                self._tell({"kind": "event", "job": frame["job"], "event": {"type": "repeat", "number": at + 1}})
                self._running = open_session(page, engine, cache=False, log=lambda text: None)
                _, seconds, took = timed(cast(Session, self._running), cycles, (), feeds, roots)
                whole.append(seconds)
                for name, one in took.items():
                    blocks.setdefault(name, []).append(one)
        finally:
            self._running = None
        return {"whole": whole, "blocks": blocks}

    def _point(self, frame: Frame) -> Frame:
        """One point of a sweep: the page as the server has made it, cold, once or several times."""
        page, engine = self._page(frame), frame["engine"]
        work = Work(tuple(frame["fetches"]), self._feeds(frame), frame["cycles"], frame["repeats"])

        def opened(page: Page, engine: str) -> Session:
            self._running = open_session(page, engine)
            return cast(Session, self._running)

        try:
            return run_point(Point(0, {}, (), engine), lambda: page, work, opened).as_dict()
        finally:
            self._running = None

    def _cycles(self, frame: Frame, session: Any, report: _Report, roots: list[Block], feeds: Frame) -> None:
        """Run as often as asked; the numbers go on where the last run of the session has stopped."""
        first, count = self._counts.get(frame["page"], 0), frame["cycles"]

        def begin(cycle: int) -> Frame:
            report.begin(first + cycle, cycle in (0, count - 1))
            self._counts[frame["page"]] = first + cycle + 1
            return feeds

        session.loop(count, (), begin, roots)

    def _session(self, frame: Frame, page: Page, report: _Report) -> Any:
        """A session for a run: a new one, or one that continues where the last run of the page has stopped."""
        key = frame["page"]
        earlier = self._sessions.pop(key, None)
        session = self._new_session(frame["engine"], page, report)
        if earlier is not None and (frame["session"] == "keep" or not _keeps_state(page)):
            session.continue_from(earlier)
        if earlier is None or frame["session"] == "new":
            self._counts[key] = 0
        self._sessions[key] = session
        while len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _new_session(self, engine: str, page: Page, report: _Report) -> Any:
        hooks: dict[str, Any] = {"on_progress": report.progress, "on_values": report.values, "log": report.log}
        return open_session(page, engine, cache=self._cache, **hooks)

    def _feeds(self, frame: Frame) -> dict[str, Any]:
        wrong: list[Fault] = []

        def note(path: tuple[str | int, ...], wanted: str, got: object) -> None:
            wrong.append(Fault("VG067", "studio", str(path[0]), wanted, str(got)))

        reader = self._documents.values(note)
        found = {
            name: self._tensors.open(value["hash"])
            if isinstance(value, dict) and set(value) == {"hash"}
            else reader.decode(value, (name,))
            for name, value in frame.get("feeds", {}).items()
        }
        if wrong:
            raise InvalidArgumentError(wrong)
        return found


class _Report:
    """Turns what a session tells into events for the server, and stores the values on the way."""

    def __init__(self, run: str, page: Page, tensors: TensorStore, tell: Callable[[Frame], None]):
        self._run = run
        self._tensors = tensors
        self._tell = tell
        self._blocks = _named_blocks(page, "")
        self._aliases = _aliases(page, "")
        self._curves = _curves(page, "")
        self._parts: dict[str, dict[int, messages.OutputData]] = {}
        self._outputs: dict[str, list[messages.OutputData]] = {}
        self._cycle = self._begun = 0
        self._shown = True
        self._last_shown = -math.inf
        self._last_scalar: dict[str, float] = {}

    def begin(self, cycle: int, edge: bool) -> None:
        """A cycle begins; in a quick loop only some are shown whole, the first and the last of them always."""
        now = time.monotonic()
        self._cycle = cycle
        self._begun += 1
        self._shown = edge or now - self._last_shown > SHOWN_SECONDS
        if self._shown:
            self._last_shown = now

    def feeds(self, page: Page, values: dict[str, Any]) -> None:
        """What was fed is shown like a result."""
        for name, value in values.items():
            block = page.output(name).block
            if isinstance(value, np.ndarray):
                self.values(block.name, [value])
                self._send(block.name, "done", 0.0, "a value was fed")

    def values(self, name: str, results: list[Array | None]) -> None:
        """A block has results."""
        block = self._blocks.get(name)
        if block is None:
            return
        self._scalar(name, block, results)
        if not self._shown:
            return
        found = []
        for pin, value in zip(block.output_names, results, strict=False):
            if value is not None:
                found.append(self._stored(pin, value))
        self._outputs[name] = found

    def _stored(self, pin: str, value: Array) -> messages.OutputData:
        known = _STORED.get(id(value))
        if known is not None and known[0]() is value and self._tensors.has(known[1].hash):
            return known[1].model_copy(update={"name": pin})
        stored = self._tensors.put(value)
        data = messages.OutputData(
            name=pin,
            hash=None if stored is None else stored.hash,
            dtype="string" if stored is None else stored.dtype,
            shape=list(value.shape),
            summary=brief(value),
        )
        if len(_STORED) > 4096:
            _STORED.clear()
        _STORED[id(value)] = (weakref.ref(value), data)
        return data

    def _scalar(self, name: str, block: Block, results: list[Array | None]) -> None:
        """Numbers for the trend charts: those that can change, and not more of them than a chart can show."""
        if block.op is not None and not block.op.inputs and not block.op.stateful:
            return
        now = time.monotonic()
        quick = now - self._last_scalar.get(name, -math.inf) < SCALAR_SECONDS
        if quick and not self._shown and self._begun > WHOLE_CYCLES:
            return
        self._last_scalar[name] = now
        self._tell_curves(name, results)
        if block.op is not None and SUMMARY in block.op.outputs and results[0] is not None:
            for tag, number in itertools.islice(events.numbers_of(results[0].item()), MOST_TAGS):
                self._tell_number(name, tag, number)
        for pin, value in zip(block.output_names, results, strict=False):
            if value is None or value.size != 1 or value.dtype.kind not in "fiubV" or value.dtype == object:
                continue
            self._tell_number(name, pin, float(value.reshape(-1)[0]))

    def _tell_curves(self, name: str, results: list[Array | None]) -> None:
        """Elements that trends show; a result of one number is told anyway."""
        for index, value in enumerate(results):
            for block, shown in self._curves.get((name, index), ()):
                pin = shown.path.removeprefix(f"{shown.output.block.name}.")
                for place, number in numbers_of(part_of(value, shown.at)):
                    if value is not None and (value.size > 1 or block != name):
                        self._tell_number(block, pin + place, number)

    def _tell_number(self, block: str, output: str, number: float) -> None:
        value = number if math.isfinite(number) else None
        self._event(messages.ScalarEvent(run=self._run, cycle=self._cycle, block=block, output=output, value=value))

    def progress(self, told: Progress) -> None:
        """A block has changed its state."""
        if told.state == "failed":
            self._send(told.block, "failed", told.seconds, error=told.message)
        elif self._shown:
            # A block on a branch that was not taken is done, without results; its reason says why.
            self._send(told.block, "done" if told.state == "dead" else told.state, told.seconds, told.message)

    def _send(self, name: str, state: str, seconds: float, reason: str = "", error: str = "") -> None:
        outputs = self._outputs.pop(name, []) if state in ("done", "cached") else []
        event = messages.BlockEvent.model_validate(
            {
                "run": self._run, "cycle": self._cycle, "block": name, "state": state, "reason": reason,
                "seconds": seconds if state in ("done", "cached", "failed") else None,
                "outputs": outputs, "error": {"message": error} if error else None,
            }
        )  # fmt: skip
        self._event(event)
        if state in ("done", "cached"):
            self._pass_on(name, state, outputs)

    def _pass_on(self, name: str, state: str, outputs: list[messages.OutputData]) -> None:
        """The results of a block inside a page are those of the block that stands for the page."""
        for outer, index, count, at in self._aliases.get(name, ()):
            pin = self._blocks[outer].output_name(index)
            made = next((one for one in outputs if one.name == self._blocks[name].output_name(at)), None)
            if made is None:
                continue
            parts = self._parts.setdefault(outer, {})
            parts[index] = made.model_copy(update={"name": pin})
            if len(parts) == count:
                self._outputs[outer] = [parts[one] for one in sorted(parts)]
                del self._parts[outer]
                self._send(
                    outer, state, 0.0, "the blocks inside were run" if state == "done" else "nothing inside changed"
                )

    def log(self, text: str) -> None:
        """A block prints."""
        self._event(messages.LogEvent(run=self._run, text=text[:4000]))

    def _event(self, event: messages.BlockEvent | messages.ScalarEvent | messages.LogEvent) -> None:
        self._tell({"kind": "event", "job": self._run, "event": event.model_dump()})


_STORED: dict[int, tuple[Callable[[], Any], messages.OutputData]] = {}
"""What was stored before, by the array: a result that the session kept is not hashed again."""


def _keeps_state(page: Page) -> bool:
    return any(block.op is not None and block.op.stateful for block in _named_blocks(page, "").values())


def _named_blocks(page: Page, prefix: str) -> dict[str, Block]:
    found: dict[str, Block] = {}
    for block in page.blocks:
        found[prefix + block.name] = block
        if block.used_page is not None:
            found |= _named_blocks(block.used_page, f"{prefix}{block.name}/")
    return found


Alias = tuple[str, int, int, int]
"""The block outside, its output, how many it has, and the output inside."""


def _aliases(page: Page, prefix: str) -> dict[str, list[Alias]]:
    """For every block inside a page whose output leaves it: where it comes out."""
    found: dict[str, list[Alias]] = {}
    for block in page.blocks:
        used = block.used_page
        if used is None:
            continue
        name = prefix + block.name
        for index, output in enumerate(used.outputs.values()):
            found.setdefault(f"{name}/{output.block.name}", []).append((name, index, len(used.outputs), output.index))
        found |= _aliases(used, f"{name}/")
    return found


def _curves(page: Page, prefix: str) -> dict[tuple[str, int], list[tuple[str, Shown]]]:
    """Per block and output in a run: what trends show of it, and the block that they are bound to."""
    found: dict[tuple[str, int], list[tuple[str, Shown]]] = {}
    for (name, index), many in watched(page, "trend").items():
        found[prefix + name, index] = [(prefix + one.output.block.name, one) for one in many]
    for block in page.blocks:
        if block.used_page is not None:
            for source, inner in _curves(block.used_page, f"{prefix}{block.name}/").items():
                found.setdefault(source, []).extend(inner)
    return found


def roots_of(page: Page) -> list[str]:
    """The blocks that a run of the whole page executes: its targets and outputs, or everything that is wired on it.

    An editor shows the value of every block; but where blocks change a state, only those run that the page names.
    """
    if page.targets or (page.outputs and _keeps_state(page)):
        wanted = [*page.targets, *(output.block for output in page.outputs.values())]
        return list(dict.fromkeys(block.name for block in wanted))
    idle = {*page.initializers, *left_out(page.infer())}
    return [block.name for block in page.blocks if block not in idle] or [block.name for block in page.blocks]
