# SPDX-License-Identifier: Apache-2.0
"""A session runs a page: it keeps variables, random state, queues and what was computed before.

session = vg.ClientSession(page)
y, dx = session.run([y, dx], feeds={"x": volume})
for line in session.report: print(line)      # y: cached (nothing changed since run 1)
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.execute import execute
from voxgrad.arrays.limits import check_size
from voxgrad.catalog.dims import Dim, shapes_differ
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import CancelledError, Fault, Faults, InvalidArgumentError, VoxgradError, show
from voxgrad.graph import report as states
from voxgrad.graph.block import Block, Output
from voxgrad.graph.cache import Cache
from voxgrad.graph.device import Device, device_named
from voxgrad.graph.estimate import bytes_of
from voxgrad.graph.infer import Inference
from voxgrad.graph.order import order
from voxgrad.graph.page import Page, inside
from voxgrad.graph.plan import Plan, Slots, Step, content_key, make_plan
from voxgrad.graph.report import BlockReport, Progress
from voxgrad.graph.values import Array, spec_of, to_array
from voxgrad.kernels.arraywise import DEAD, Context, Ref, State, evaluate, value_of
from voxgrad.kernels.cpu import CancelFlag

Fetch = Output | Block | str
Feeds = Mapping[Any, Any]
SMALL_BYTES = 2**16
"""Stateful results up to this size are compared by content, so that what reads them is not run for nothing."""

_MAX_PLANS = 64
_DEAD_KEY = bytes(16)


@dataclass(slots=True)
class _Past:
    """How a block was last computed: what the reasons of the next run are made from."""

    step: Step
    keys: tuple[bytes, ...]
    run: int
    key: bytes


@dataclass(slots=True)
class _Changes:
    """Why a block ran, put into words only where somebody asks."""

    past: _Past | None
    step: Step
    keys: tuple[bytes, ...]

    def __str__(self) -> str:
        past, step = self.past, self.step
        if past is None:
            return "it had not run before"
        if past.step.op is not step.op:
            return f"it was a {past.step.op.name} before"
        if past.step.key != step.key:
            return _changed_attrs(past.step, step) or "the semantics or the device changed"
        if len(past.keys) != len(self.keys):
            return "its wires changed"
        pins = [pin for pin, old, new in zip(_pin_names(step), past.keys, self.keys, strict=True) if old != new]
        return f"{', '.join(dict.fromkeys(pins))} changed" if pins else "its result was not kept"


class ClientSession:
    """Runs a page, as often as wanted.

    `device` is where tensors live: "cpu", or "cuda" with torch. `cache` can be shared between sessions, so that a page
    that was loaded again finds its results; `cache=None` makes a new one, `cache=False` keeps nothing. `folder` is the
    only place where blocks may read and write files. `on_progress` is called with a `Progress` for every block, from
    the thread that runs; `on_values` before it with the name of a block that has results and the results, which are not
    to be changed: NumPy arrays, None where there is no tensor.

    Runs of one session wait for each other; `cancel` and `report` can be used from any thread.
    """

    def __init__(
        self,
        page: Page,
        device: str = "cpu",
        *,
        cache: Cache | bool | None = None,
        folder: str | Path | None = None,
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
        self.runs = 0
        self._folder = Path(folder) if folder is not None else None
        self._log = log
        self._lock = threading.RLock()
        self._flag = CancelFlag()
        self._looping = False
        self._started = False
        self._plans: dict[Any, tuple[Any, Plan]] = {}
        self._past: dict[str, _Past] = {}
        self._tokens = itertools.count()
        self._seen: dict[str, tuple[Any, bytes]] = {}
        self._constant_keys: dict[int, tuple[Array, bytes]] = {}
        self._plan = Plan()
        self._events: list[tuple[int, str, str | _Changes, float]] = []

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
        return results[0] if single else results

    def assign(self, variable: Fetch, value: Any) -> None:
        """Give a variable a value, as an Assign block would."""
        output = self.page.output(variable)
        inference, faults = self.page.infer(), Faults("ClientSession")
        call = inference.calls.get(output.block)
        if call is None or not call.op.outputs or not call.op.outputs[0].ref or call.op.inputs:
            faults.add("VG067", output.block.name, wanted="be a variable", got=output.block.op_name)
            raise faults.error()
        array = to_array(self.device.to_host(value), inference.spec(output).dtype)
        _check_feed(output, array, inference.spec(output), {}, faults)
        faults.raise_if_any()
        with self._lock:
            (ref,) = evaluate(call.op, [], call.attrs, Context(self.state, output.block.name))
            ref.assign(self.device.put(np.array(array)))

    def run_to(self, block: Block | str, feeds: Feeds | None = None) -> list[Array]:
        """Run what a block needs and the block itself; returns all of its outputs."""
        found = self.page.block(block)
        if not found.output_names:
            self.run([], feeds, [found])
            return []
        results: list[Array] = self.run(list(found.outputs), feeds)
        return results

    def loop(
        self,
        count: int,
        fetches: Fetch | Sequence[Fetch] = (),
        feeds: Feeds | Callable[[int], Feeds] | None = None,
        targets: Sequence[Fetch] = (),
        until: Callable[[Any], bool] | None = None,
        on_cycle: Callable[[int, Any], None] | None = None,
    ) -> Any:
        """Run again and again: at most `count` times, and not after `until(results)` is true.

        `feeds` may be a function of the number of the cycle. Returns the results of the last cycle; `cancel` ends the
        whole loop.
        """
        results: Any = None
        with self._lock:
            self._flag = CancelFlag()
            self._looping = True
            try:
                for cycle in range(count):
                    results = self.run(fetches, feeds(cycle) if callable(feeds) else feeds, targets)
                    if on_cycle is not None:
                        on_cycle(cycle, results)
                    if until is not None and until(results):
                        break
            finally:
                self._looping = False
        return results

    def cancel(self) -> None:
        """Stop the run that is under way, from any thread: between blocks, and inside native kernels."""
        self._flag.set()

    def _run(self, fetches: Sequence[Fetch], feeds: Feeds, targets: Sequence[Fetch]) -> list[Array]:
        outputs, blocks = self._resolve(fetches, targets)
        values = self._fed(feeds)
        self._events = []
        self._plan = plan = self._planned(tuple(outputs), tuple(blocks), values)
        self.runs += 1
        context = Context(
            self.state,
            "",
            self._folder,
            self._flag,
            self.device.place,
            self._windowed,
            *([self._log] if self._log else []),
        )
        with semantics(self.page.semantics):
            slots = _Run(self, plan, context).go(values)
        return self._fetched(outputs, plan, slots)

    def _windowed(self, op: Op, arguments: Mapping[str, Any]) -> Any:
        return execute(op, arguments, self._flag)

    def _resolve(self, fetches: Sequence[Fetch], targets: Sequence[Fetch]) -> tuple[list[Output], list[Block]]:
        faults = Faults("ClientSession")
        outputs: list[Output] = []
        blocks: list[Block] = []
        for which in fetches:
            with _collected(faults):
                output = self.page.output(which)
                if output.index >= len(output.block.output_names):
                    remedy = "Name it in targets to run it." if not output.block.output_names else ""
                    faults.add(
                        "VG067",
                        output.block.name,
                        wanted="have such an output to fetch",
                        got=output.name,
                        remedy=remedy,
                    )
                outputs.append(output)
        for which in targets:
            with _collected(faults):
                blocks.append(self.page.output(which).block if isinstance(which, str) else self.page.block(which))
        faults.raise_if_any()
        return outputs, blocks

    def _fed(self, feeds: Feeds) -> dict[Output, Array]:
        """Feeds as arrays; all that is wrong with them is told at once."""
        faults = Faults("ClientSession")
        values: dict[Output, Array] = {}
        sizes: dict[str, tuple[int, str]] = {}
        inference = self.page.infer()
        for which, value in feeds.items():
            with _collected(faults):
                output = self.page.output(which)
                spec = inference.spec(output)
                try:
                    array = to_array(self.device.to_host(value), spec.dtype)
                except (ValueError, TypeError, OverflowError) as error:
                    faults.add(
                        "VG067", output.block.name, wanted=f"be fed numbers of type {spec.dtype}", got=str(error)[:100]
                    )
                    continue
                values[output] = array
                _check_feed(output, array, spec, sizes, faults)
        faults.raise_if_any()
        return values

    def _planned(self, fetches: tuple[Output, ...], targets: tuple[Block, ...], feeds: dict[Output, Array]) -> Plan:
        """The plan of a run, remade where the page or the shapes of the feeds have changed."""
        # Small fed integers decide shapes, so they are part of what a plan was checked for.
        specs = {output: spec_of(array) for output, array in feeds.items()}
        signature = tuple((output, spec.dtype, spec.shape, spec.value) for output, spec in specs.items())
        key = (fetches, targets, signature)
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
            inference = Inference(self.page.store, specs)
            inference.update()
        roots = [*(output.block for output in fetches if output not in specs), *targets]
        found = order(roots, fed=specs)
        faults = [problem.fault for problem in inference.problems(only=set(found.blocks))]
        faults.extend(_unfed(found.blocks, specs))
        faults.extend(_too_large(found.blocks, inference))
        if faults:
            raise InvalidArgumentError(faults)
        return make_plan(inference, fetches, targets, list(specs), self.device.name)

    def _fetched(self, outputs: Sequence[Output], plan: Plan, slots: list[Any]) -> list[Array]:
        faults = Faults("ClientSession")
        results = []
        for output, slot in zip(outputs, plan.fetches, strict=True):
            value = value_of(slots[slot])
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
        return found + [BlockReport(block.name, states.UNNEEDED, "no fetch and no target needs it") for block in idle]

    def value(self, which: Fetch) -> Array | None:
        """The value of an output in the last run, if it is still kept; not to be changed. None after a failure."""
        output = self.page.output(which)
        past = self._past.get(output.block.name)
        done = len(self._events) == len(self._plan.steps) and not any(one[1] == states.FAILED for one in self._events)
        if past is None or self.cache is None or not done or output.block not in self._plan.needed:
            return None
        results = self.cache.get(past.key)
        flat = None if results is None else _flattened(results)
        if flat is None or output.index >= len(flat) or flat[output.index] is DEAD:
            return None
        view = np.asarray(self.device.to_host(value_of(flat[output.index]))).view()
        view.flags.writeable = False
        return view

    def continue_from(self, earlier: ClientSession) -> None:
        """Take over what another session of the same page, before an edit, knows: state, results, reasons."""
        self.state, self.cache, self.runs = earlier.state, earlier.cache, earlier.runs
        self._past, self._seen, self._started = earlier._past, earlier._seen, earlier._started

    def forget(self) -> None:
        """Start afresh: variables, random state, queues and kept results are dropped."""
        with self._lock:
            self.state = State()
            self._started = False
            self._past.clear()
            self._seen.clear()
            if self.cache is not None:
                self.cache.clear()

    # Keys of values

    def _token(self) -> bytes:
        return b"token" + id(self).to_bytes(8, "little") + next(self._tokens).to_bytes(8, "little")

    def _state_key(self, name: str, value: Any) -> bytes:
        """The key of a value that no key of inputs explains: of its content where it is small, else a new one."""
        seen = self._seen.get(name)
        if seen is not None and seen[0] is value:
            return seen[1]
        small = isinstance(value, np.ndarray) and value.nbytes <= SMALL_BYTES
        key = _DEAD_KEY if value is DEAD else content_key(value) if small else self._token()
        self._seen[name] = (value, key)
        return key

    def _constant_key(self, array: Array) -> bytes:
        found = self._constant_keys.get(id(array))
        if found is None or found[0] is not array:
            found = self._constant_keys[id(array)] = (array, content_key(array))
        return found[1]


class _Run:
    """One run: values and keys per slot, and the loop over the steps."""

    def __init__(self, session: ClientSession, plan: Plan, context: Context):
        self.session = session
        self.plan = plan
        self.context = context
        self.cache = session.cache
        self.values: list[Any] = [None] * plan.slots
        self.keys: list[bytes] = [_DEAD_KEY] * plan.slots
        self.dead_steps: set[int] = set()
        """Steps that did not run, or sent something down a branch that is not taken; -1 for the latter."""

    def go(self, feeds: dict[Output, Array]) -> list[Any]:
        """Run all steps; the values of the fetched slots are left."""
        session, cached = self.session, self.cache is not None
        for output, slot in self.plan.feeds.items():
            self._start(slot, feeds[output], content_key(feeds[output]) if cached else _DEAD_KEY)
        for slot, array in self.plan.constants.items():
            self._start(slot, array, session._constant_key(array) if cached else _DEAD_KEY)
        if session.on_progress is not None:
            self._announce()
        flag, events, values = session._flag, session._events, self.values
        for index, step in enumerate(self.plan.steps):
            if flag.is_set():
                raise CancelledError(Fault("VG040", step.op.name, step.name, "run to its end", "a request to stop"))
            start = time.perf_counter()
            state, why = self._step(index, step)
            took = time.perf_counter() - start
            events.append((index, state, why, took))
            if session.on_values is not None and state != states.DEAD:
                session.on_values(step.name, [self._shown(slot) for slot in step.flat_outputs])
            for slot in step.frees:
                values[slot] = None
            if session.on_progress is not None:
                self._tell(index, step, "done" if state == states.RAN else state, took, str(why))
        return values

    def _start(self, slot: int, array: Array, key: bytes) -> None:
        self.values[slot] = self.session.device.put(array)
        self.keys[slot] = key

    def _shown(self, slot: int) -> Array | None:
        """The value of a slot as NumPy; None for what is no tensor, or on a branch that was not taken."""
        held = self.values[slot]
        if isinstance(held, Ref) and not held.ready:
            return None
        value = self.session.device.to_host(value_of(held))
        return np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None

    def _announce(self) -> None:
        for index, step in enumerate(self.plan.steps):
            self._tell(index, step, "queued", 0.0)

    def _tell(self, index: int, step: Step, state: str, seconds: float, message: str = "") -> None:
        assert self.session.on_progress is not None
        self.session.on_progress(Progress(step.name, state, index, len(self.plan.steps), seconds, message))

    def _step(self, index: int, step: Step) -> tuple[str, str | _Changes]:
        """Do one block: leave it where it was not reached by a live value, reuse its result, or compute it."""
        values = self.values
        inputs = [values[slot] if isinstance(slot, int) else [values[one] for one in slot] for slot in step.inputs]
        if self.dead_steps and self._is_dead(step):
            return self._die(index, step, "it is on a branch that was not taken")
        if self.cache is None or step.stateful:
            why: str | _Changes = "it keeps state, so it runs every time" if step.stateful else "nothing is kept"
            results = self._compute(index, step, inputs)
            if self.cache is not None:
                self._remember_state(step, results)
        else:
            keys = self._input_keys(step)
            digest = hashlib.blake2b(step.key, digest_size=16)
            digest.update(b"".join(keys))
            key = digest.digest()
            kept = self.cache.get(key)
            if kept is not None:
                return self._reuse(step, keys, key, kept)
            why = _Changes(self.session._past.get(step.name), step, keys)
            results = self._compute(index, step, inputs)
            self._keep(step, keys, key, results)
        self._spread(step, results)
        return states.RAN, why

    def _is_dead(self, step: Step) -> bool:
        """True where an input comes from a branch that was not taken, or a block is waited for that did not run."""
        if not self.dead_steps.isdisjoint(step.waits):
            return True
        dead = [self.values[slot] is DEAD for slot in step.flat_inputs]
        # Merge goes on as long as one of its inputs lives.
        return all(dead) and bool(dead) if step.takes_dead else any(dead)

    def _input_keys(self, step: Step) -> tuple[bytes, ...]:
        keys = self.keys
        if not step.reads_variables:
            return tuple([keys[slot] for slot in step.flat_inputs])
        found = []
        for slot in step.flat_inputs:
            value = self.values[slot]
            # A variable is read when its reader runs: its key is that of what it holds now.
            found.append(self.session._state_key(value.name, value.value) if type(value) is Ref else keys[slot])
        return tuple(found)

    def _compute(self, index: int, step: Step, inputs: list[Any]) -> tuple[Any, ...]:
        if self.session.on_progress is not None:
            self._tell(index, step, "started", 0.0)
        self.context.block = step.name
        try:
            if step.windowed:
                return self._compute_windowed(step, inputs)
            return evaluate(step.op, inputs, step.attrs, self.context)
        except CancelledError:
            raise
        except Exception as error:
            self._fail(index, step, error)
            raise

    def _compute_windowed(self, step: Step, inputs: list[Any]) -> tuple[Any, ...]:
        arguments = {item.name: value_of(value) for item, value in zip(step.op.inputs, inputs, strict=True)}
        return (execute(step.op, {**arguments, **step.attrs}, self.session._flag),)

    def _fail(self, index: int, step: Step, error: Exception) -> None:
        """Tell which block failed; errors of ours get the block's name, others become ours."""
        self.session._events.append((index, states.FAILED, str(error), 0.0))
        if self.session.on_progress is not None:
            self._tell(index, step, "failed", 0.0, str(error))
        if isinstance(error, VoxgradError):
            named = [
                Fault(
                    one.code, one.op, _with_block(step.name, one.argument), one.wanted, one.got, one.remedy, one.where
                )
                for one in error.faults
            ]
            raise type(error)(named) from error
        got = f"{type(error).__name__}: {error}"
        raise VoxgradError(Fault("VG066", step.op.name, step.name, "run", show(got))) from error

    def _remember_state(self, step: Step, results: tuple[Any, ...]) -> None:
        slots = step.flat_outputs
        for at, (slot, value) in enumerate(zip(slots, _flattened(results), strict=True)):
            self.keys[slot] = _DEAD_KEY if type(value) is Ref else self.session._state_key(f"{step.name}:{at}", value)

    def _reuse(self, step: Step, keys: tuple[bytes, ...], key: bytes, kept: tuple[Any, ...]) -> tuple[str, str]:
        past = self.session._past.get(step.name)
        self._spread(step, kept)
        self._set_keys(step, key)
        if past is not None and past.key == key:
            return states.CACHED, f"nothing changed since run {past.run}"
        self.session._past[step.name] = _Past(step, keys, self.session.runs, key)
        return states.CACHED, "the same was computed before"

    def _keep(self, step: Step, keys: tuple[bytes, ...], key: bytes, results: tuple[Any, ...]) -> None:
        assert self.cache is not None
        past = self.session._past.get(step.name)
        if past is not None and step.volatile:
            # What followed from an old state does not come back: a training loop must not fill the cache with it.
            self.cache.drop(past.key)
        self.cache.put(key, results)
        self.session._past[step.name] = _Past(step, keys, self.session.runs, key)
        self._set_keys(step, key)

    def _set_keys(self, step: Step, key: bytes) -> None:
        if len(step.flat_outputs) == 1:
            self.keys[step.flat_outputs[0]] = key
            return
        for at, slot in enumerate(step.flat_outputs):
            self.keys[slot] = key + at.to_bytes(4, "little")

    def _spread(self, step: Step, results: tuple[Any, ...]) -> None:
        for slot, result in zip(step.outputs, results, strict=True):
            if type(slot) is int:
                self.values[slot] = result
                if result is DEAD:
                    self.dead_steps.add(-1)
            else:
                _spread_list(self.values, slot, result, step)

    def _die(self, index: int, step: Step, why: str) -> tuple[str, str]:
        self.dead_steps.add(index)
        for slot in step.flat_outputs:
            self.values[slot] = DEAD
            self.keys[slot] = _DEAD_KEY
        return states.DEAD, why


def _spread_list(values: list[Any], slots: Slots, results: Any, step: Step) -> None:
    assert isinstance(slots, tuple)
    assert len(results) == len(slots), f"{step.name}: {len(results)} results for {len(slots)} outputs"
    for slot, result in zip(slots, results, strict=True):
        values[slot] = result


def _flattened(results: tuple[Any, ...]) -> list[Any]:
    return [one for result in results for one in (result if isinstance(result, (tuple, list)) else (result,))]


def _pin_names(step: Step) -> Iterator[str]:
    for item, slots in zip(step.op.inputs, step.inputs, strict=True):
        if isinstance(slots, int):
            yield item.name
        else:
            yield from (f"{item.name}[{at}]" for at in range(len(slots)))


def _changed_attrs(old: Step, new: Step) -> str:
    names = [name for name in new.attrs if repr(old.attrs.get(name)) != repr(new.attrs[name])]
    return f"{', '.join(names)} changed" if names else ""


def _with_block(block: str, argument: str) -> str:
    return block if not argument or argument == block else f"{block}.{argument}"


def _too_large(blocks: Sequence[Block], inference: Inference) -> list[Fault]:
    """Results that the machine cannot hold, seen before anything is allocated."""
    found: list[Fault] = []
    for block in blocks:
        amount = bytes_of(inference.specs.get(block, ()))
        if isinstance(amount, int):
            faults = Faults(block.op_name or block.uses)
            check_size(block.op_name, amount, faults)
            found.extend(replace(fault, argument=block.name) for fault in faults.found)
    return found


def _unfed(blocks: Sequence[Block], fed: Mapping[Output, Any]) -> list[Fault]:
    return [
        Fault(
            "VG001", "Placeholder", block.name, "be fed a value", "none", f"Give it in feeds: {{'{block.name}': ...}}."
        )
        for block in blocks
        if block.op_name == "Placeholder" and block.outputs[0] not in fed
    ]


def _check_feed(output: Output, array: Array, spec: Spec, sizes: dict[str, tuple[int, str]], faults: Faults) -> None:
    """A feed fits the shape of its output; one symbol means one size in all feeds."""
    name = output.block.name
    if shapes_differ(array.shape, spec.shape):
        wanted = f"be fed a value of shape {show(list(spec.shape or ()))}"
        faults.add("VG067", name, wanted=wanted, got=show(list(array.shape)))
        return
    for size, dim in zip(array.shape, spec.shape or (), strict=False):
        if not isinstance(dim, Dim):
            continue
        if str(dim) in dim.names:
            known, where = sizes.setdefault(str(dim), (size, name))
            if known != size:
                faults.add("VG067", name, wanted=f"have {dim} = {known}, as {where} has", got=show(list(array.shape)))


@contextlib.contextmanager
def _collected(faults: Faults) -> Iterator[None]:
    """Faults of what is tried here join the others."""
    try:
        yield
    except InvalidArgumentError as error:
        faults.found.extend(error.faults)
