# SPDX-License-Identifier: Apache-2.0
"""A session runs a page: it keeps variables, random state, queues and what was computed before.

session = vg.ClientSession(page)
y, dx = session.run([y, dx], feeds={"x": volume})
for line in session.report: print(line)      # y: cached (nothing changed since run 1)
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.arrays.execute import execute
from voxgrad.arrays.kinds import Unfit
from voxgrad.arrays.limits import limit_in_force, passed_limit
from voxgrad.arrays.locks import make_lock
from voxgrad.arrays.positions import Positions
from voxgrad.catalog.model import Call, Op, Spec
from voxgrad.catalog.semantics import semantics
from voxgrad.doors import through
from voxgrad.errors import Faults
from voxgrad.graph import report as states
from voxgrad.graph.block import Block, Output
from voxgrad.graph.cache import Cache
from voxgrad.graph.device import Device, device_named
from voxgrad.graph.feeds import Feeds, check_feed, collected, feed_arrays, too_large, unfed
from voxgrad.graph.modes import MUTED, muted_outputs, working
from voxgrad.graph.order import order
from voxgrad.graph.page import Page, inside
from voxgrad.graph.plan import Plan, make_plan
from voxgrad.graph.readings import Readings, watched
from voxgrad.graph.report import BlockReport, Progress
from voxgrad.graph.run import Event, Host, Memory, Run, flattened
from voxgrad.graph.values import Array, spec_of, to_array
from voxgrad.graph.volume_files import open_in
from voxgrad.kernels.arraywise import DEAD, Context, State, evaluate, value_of
from voxgrad.kernels.cpu import CancelFlag

Fetch = Output | Block | str
_MAX_PLANS = 64
_GLANCE = 0.05
"""Seconds between two looks whether a loop that waits was cancelled."""


@checked
class ClientSession:
    """Runs a page, as often as wanted.

    `device` is where tensors live: "cpu", or "cuda" with torch. `cache` can be shared between sessions, so that a page
    that was loaded again finds its results; `cache=None` makes a new one, `cache=False` keeps nothing. `allow_files`
    names a folder, or several, whose files blocks may read and write, besides those in `files/` beside the file that
    the page was loaded from; a page that was made in a program has none of its own. `on_progress` is called with a
    `Progress` for every block, from the thread that runs; `on_values` before it with the name of a block that has
    results and the results, which are not to be changed: NumPy arrays, None where there is no tensor.

    Runs of one session wait for each other; `cancel` and `report` can be used from any thread.
    """

    def __init__(
        self,
        page: Page,
        device: str = "cpu",
        *,
        cache: Cache | bool | None = None,
        allow_files: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        on_progress: Callable[[Progress], None] | None = None,
        on_values: Callable[[str, list[Array | None]], None] | None = None,
        log: Callable[[str], None] | None = None,
    ):
        self.page = page.store.root
        self.device: Device = device_named(device)
        self.cache = cache if isinstance(cache, Cache) else None if cache is False else Cache()
        self.state = State()
        self.on_progress = on_progress
        self.on_values = on_values
        self.page.allow_files(*([allow_files] if isinstance(allow_files, (str, PathLike)) else allow_files))
        self._log = log
        self._lock = make_lock()
        self._flag = CancelFlag()
        self._looping = False
        self._started = False
        self._plans: dict[Any, tuple[Any, Plan]] = {}
        self._memory = Memory()
        self._plan = Plan()
        self._events: list[Event] = []
        self._positions = Positions()
        self._keeps_positions = False
        self._cycle = 0
        self.readings = Readings()
        """What the displays of the page show."""

    # Running

    def run(
        self, fetches: Fetch | Sequence[Fetch] = (), feeds: Feeds | None = None, targets: Sequence[Fetch] = ()
    ) -> Any:
        """Compute outputs and return them as NumPy arrays: one for one fetch, a list for a list.

        `feeds` gives values to Placeholders, or to any other output, by name or Output. `targets` are run without a
        result. The page's initializers go before the first run. Everything that is wrong with the blocks that are
        needed is raised together before any of them runs.
        """
        single = isinstance(fetches, (Output, Block, str))
        wanted: Sequence[Fetch] = [fetches] if isinstance(fetches, (Output, Block, str)) else fetches
        with self._lock:
            if not self._looping:
                self._flag = CancelFlag()
            if not self._started and self.page.initializers:
                self._run([], feeds or {}, self.page.initializers)
            self._started = True
            results = self._run(wanted, feeds or {}, targets)
            self._cycle += 1
        return results[0] if single else results

    def assign(self, variable: Fetch, value: Any) -> None:
        """Give a variable a value, as an Assign block would."""
        output = self.page.output(variable)
        inference, faults = self.page.infer(), Faults("ClientSession")
        call = inference.calls.get(output.block)
        if call is None or not call.op.outputs or not call.op.outputs[0].ref or call.op.inputs:
            faults.add("VG067", output.block.name, wanted="be a variable", got=output.block.op_name)
            raise faults.error()
        try:
            array = to_array(value, inference.spec(output).dtype, output.block.name)
        except Unfit as error:
            error.tell(faults, output.block.name)
            raise faults.error() from None
        check_feed(output, array, inference.spec(output), {}, faults)
        faults.raise_if_any()
        with self._lock:
            (ref,) = evaluate(call.op, [], call.attrs, Context(self.state, output.block.name))
            ref.assign(self.device.put(np.array(array)))

    def run_to(self, block: Block | Output | str, feeds: Feeds | None = None) -> list[Array]:
        """Run what a block needs and the block itself; returns all of its outputs."""
        found = self.page.block(block)
        if not found.output_names:
            self.run([], feeds, [found])
            return []
        results: list[Array] = self.run(list(found.outputs), feeds)
        return results

    def loop(
        self,
        count: int | None,
        fetches: Fetch | Sequence[Fetch] = (),
        feeds: Feeds | Callable[[int], Feeds] | None = None,
        targets: Sequence[Fetch] = (),
        until: Callable[[Any], bool] | None = None,
        on_cycle: Callable[[int, Any], None] | None = None,
        period: float = 0.0,
    ) -> Any:
        """Run again and again: at most `count` times, without end for None, and not after `until(results)` is true.

        `feeds` may be a function of the number of the cycle. Cycles start `period` seconds apart, or one after the
        other where they take longer. Returns the results of the last cycle; `cancel` ends the whole loop, and a further
        loop goes on with the variables as they are.
        """
        results: Any = None
        started = 0.0
        with self._lock:
            self._flag = CancelFlag()
            self._looping = True
            try:
                for cycle in itertools.count() if count is None else range(count):
                    if cycle:
                        self._wait(started + period)
                    started = time.monotonic()
                    results = self.run(fetches, feeds(cycle) if callable(feeds) else feeds, targets)
                    if on_cycle is not None:
                        on_cycle(cycle, results)
                    if until is not None and until(results):
                        break
            finally:
                self._looping = False
        return results

    def _wait(self, moment: float) -> None:
        """Sleep until then; a loop that is cancelled does not sleep on."""
        while (left := moment - time.monotonic()) > 0 and not self._flag.is_set():
            time.sleep(min(left, _GLANCE))

    def cancel(self) -> None:
        """Stop the run that is under way, from any thread: between blocks, and inside native kernels."""
        self._flag.set()

    def _run(self, fetches: Sequence[Fetch], feeds: Feeds, targets: Sequence[Fetch]) -> list[Array]:
        outputs, blocks = self._resolve(fetches, targets)
        values = feed_arrays(self.page, feeds)
        self._events = []
        self._plan = plan = self._planned(tuple(outputs), tuple(blocks), values)
        self._memory.runs += 1
        self._keeps_positions = any(step.windowed and step.op.selects and step.op.of for step in plan.steps)
        context = Context(self.state, "", self.page.files, self._flag, self.device.place, self._windowed)
        context.log = self._log or context.log
        context.open_volume = open_in
        context.passed_limit = passed_limit
        with semantics(self.page.semantics):
            watches = self._started and len(self.page.displays) > 0
            on_values = self._watching(values) if watches else self.on_values
            host = Host(self.device, self.cache, self._memory, self.on_progress, on_values, self._events, self._leave)
            run = Run(host, plan, context)
            slots = run.go(values)
        return self._fetched(outputs, plan, slots, run.muted)

    def _watching(self, feeds: Mapping[Output, Array]) -> Callable[[str, list[Array | None]], None]:
        """Takes down what displays show, and tells who asked."""
        shown, cycle, tell = watched(self.page), self._cycle, self.on_values
        for output, value in feeds.items():
            self.readings.take(shown.get((output.block.name, output.index), ()), cycle, value)

        def take(name: str, results: list[Array | None]) -> None:
            for index, value in enumerate(results):
                if value is not None and (name, index) in shown:
                    self.readings.take(shown[name, index], cycle, value)
            if tell is not None:
                tell(name, results)

        return take

    def _leave(self, before: State) -> None:
        """Stop what runs; a block that does not stop writes to variables that nobody reads any more."""
        self._flag.set()
        self.state = before

    def _windowed(self, op: Op, arguments: Mapping[str, Any], known: Call | None = None) -> Any:
        if self.device.place is not None:
            # Sizes decide shapes, so they are read on the host, wherever they were computed.
            sizes = {item.name: self.device.to_host(arguments[item.name]) for item in op.inputs if item.host}
            arguments = {**arguments, **sizes}
        elif self._keeps_positions:
            return self._positions.execute(op, arguments, self._flag, known)
        return execute(op, arguments, self._flag, known)

    def _resolve(self, fetches: Sequence[Fetch], targets: Sequence[Fetch]) -> tuple[list[Output], list[Block]]:
        faults = Faults("ClientSession")
        outputs: list[Output] = []
        blocks: list[Block] = []
        for which in fetches:
            with collected(faults):
                output = self.page.output(which)
                if output.index >= output.block.output_count:
                    remedy = "" if output.block.output_count else "Name it in targets to run it."
                    faults.add(
                        "VG067",
                        output.block.name,
                        wanted="have such an output to fetch",
                        got=output.name,
                        remedy=remedy,
                    )
                outputs.append(output)
        for which in targets:
            with collected(faults):
                blocks.append(self.page.output(which).block if isinstance(which, str) else self.page.block(which))
        faults.raise_if_any()
        return outputs, blocks

    def _planned(self, fetches: tuple[Output, ...], targets: tuple[Block, ...], feeds: dict[Output, Array]) -> Plan:
        """The plan of a run, remade where the page or the shapes of the feeds have changed."""
        # Small fed integers decide shapes, so they are part of what a plan was checked for.
        specs = {output: spec_of(array) for output, array in feeds.items()}
        signature = tuple((output, spec.dtype, spec.shape, spec.value) for output, spec in specs.items())
        key = (fetches, targets, signature, limit_in_force())
        revision = tuple(store.revision for store in inside(self.page.store))
        found = self._plans.get(key)
        if found is not None and found[0] == revision:
            return found[1]
        plan = self._checked_plan(fetches, targets, specs)
        if len(self._plans) >= _MAX_PLANS:
            self._plans.pop(next(iter(self._plans)))
        self._plans[key] = (revision, plan)
        return plan

    def _checked_plan(self, fetches: tuple[Output, ...], targets: tuple[Block, ...], specs: dict[Output, Spec]) -> Plan:
        inference = self.page.infer()
        if specs:
            inference = inference.given(specs)
        given = {**specs, **dict.fromkeys(muted_outputs(self.page.store))}
        roots = [*(output.block for output in fetches if output not in given), *working(targets)]
        found = order(roots, fed=given)
        faults = Faults("ClientSession")
        faults.found.extend(problem.fault for problem in inference.problems(only=set(found.blocks)))
        faults.found.extend(unfed(found.blocks, specs))
        faults.found.extend(too_large(found.blocks, inference))
        faults.raise_if_any()
        return make_plan(inference, fetches, targets, list(specs), self.device.name)

    def _fetched(
        self, outputs: Sequence[Output], plan: Plan, slots: list[Any], muted: Mapping[int, str]
    ) -> list[Array]:
        faults = Faults("ClientSession")
        results = []
        for output, slot in zip(outputs, plan.fetches, strict=True):
            value = value_of(slots[slot])
            if value is DEAD and slot in muted:
                remedy = f"Let {muted[slot]} work again: page.set_mode({muted[slot]!r}, '')."
                faults.add("VG065", output.path, wanted="need no muted block", got=muted[slot], remedy=remedy)
                continue
            if value is DEAD:
                remedy = "Name its block in targets instead, or fetch a Merge behind it."
                faults.add(
                    "VG065", output.path, wanted="be on the branch that was taken", got="a dead value", remedy=remedy
                )
                continue
            # Results are the caller's to change; what the session keeps must not change with them.
            results.append(np.array(self.device.to_host(value), copy=True, subok=False))
        faults.raise_if_any()
        return results

    # What happened

    @property
    def runs(self) -> int:
        """How often the session has run."""
        return self._memory.runs

    @property
    def report(self) -> list[BlockReport]:
        """What the last run did with every block of the page, and why, in the order of the run."""
        plan, events = self._plan, list(self._events)
        found = [BlockReport(output.block.name, states.FED, "a value was fed") for output in plan.feeds]
        found += [BlockReport(plan.steps[index].name, state, str(why), took) for index, state, why, took in events]
        found += [
            BlockReport(step.name, states.WAITING, "the run ended before it") for step in plan.steps[len(events) :]
        ]
        known = plan.needed | {output.block for output in plan.feeds}
        idle = [block for block in self.page.blocks if block not in known]
        return found + [BlockReport(block.name, states.UNNEEDED, _why_idle(block)) for block in idle]

    def value(self, which: Fetch) -> Array | None:
        """The value of an output in the last run, if it is still kept; not to be changed. None after a failure."""
        output = self.page.output(which)
        past = self._memory.past.get(output.block.name)
        done = len(self._events) == len(self._plan.steps) and not any(one[1] == states.FAILED for one in self._events)
        if past is None or self.cache is None or not done or output.block not in self._plan.needed:
            return None
        results = self.cache.get(past.key)
        flat = None if results is None else flattened(results)
        if flat is None or output.index >= len(flat) or flat[output.index] is DEAD:
            return None
        view = np.asarray(self.device.to_host(value_of(flat[output.index]))).view()
        view.flags.writeable = False
        return view

    def continue_from(self, earlier: ClientSession) -> None:
        """Take over what another session of the same page, before an edit, knows: state, results, reasons."""
        self.state, self.cache = earlier.state, earlier.cache
        self._memory, self._started = earlier._memory, earlier._started
        self._cycle, self.readings = earlier._cycle, earlier.readings

    def _repr_svg_(self) -> str:
        """In a notebook: the page, whose displays show what its last runs gave."""
        return str(through("picture").draw_svg(self.page, readings=self.readings))

    def forget(self) -> None:
        """Start afresh: variables, random state, queues and kept results are dropped."""
        with self._lock:
            self.state = State()
            self._started = False
            self._memory = Memory(self._memory.runs)
            self._cycle, self.readings = 0, Readings()
            if self.cache is not None:
                self.cache.clear()


def _why_idle(block: Block) -> str:
    return "it is muted" if block.mode == MUTED else "no fetch and no target needs it"
