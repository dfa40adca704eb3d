# SPDX-License-Identifier: Apache-2.0
"""One run of a plan: a loop over its steps that computes, reuses or leaves out, and notes why.

Memory has one rule: feeds are the caller's; all else is the session's, and is never written to once it is made. A run
reads feeds where they lie. What outlives it (kept results, variables, queues) is copied where it would share their
memory, so a large feed is copied only where an op passes it on and something keeps it. Results leave as copies.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from voxgrad.arrays.intake import spec_at
from voxgrad.arrays.limits import check_size
from voxgrad.arrays.ordinary import check_call
from voxgrad.catalog.model import Op
from voxgrad.errors import CancelledError, Fault, Faults, VoxgradError, show
from voxgrad.graph import report as states
from voxgrad.graph.block import Output
from voxgrad.graph.cache import Cache
from voxgrad.graph.device import Device
from voxgrad.graph.plan import Plan, Slots, Step, attr_key, content_key
from voxgrad.graph.report import Progress
from voxgrad.graph.values import Array
from voxgrad.kernels import interrupt
from voxgrad.kernels.arraywise import DEAD, Context, Ref, State, evaluate, value_of

SMALL_BYTES = 2**16
"""Stateful results up to this size are compared by content, so that what reads them is not run for nothing."""

DEAD_KEY = bytes(16)

_TALKS = ("Print",)
"""Ops that call functions of the session's owner."""


@dataclass(slots=True)
class Past:
    """How a block was last computed: what the reasons of the next run are made from."""

    step: Step
    keys: tuple[bytes, ...]
    run: int
    key: bytes


@dataclass(slots=True)
class Changes:
    """Why a block ran, put into words only where somebody asks."""

    past: Past | None
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


@dataclass(slots=True)
class Memory:
    """What a session remembers of earlier runs, beside the results themselves."""

    runs: int = 0
    past: dict[str, Past] = field(default_factory=dict)
    seen: dict[str, tuple[Any, bytes]] = field(default_factory=dict)
    tokens: Iterator[int] = field(default_factory=itertools.count)
    owner: bytes = field(default_factory=lambda: os.urandom(8))
    lengths: dict[str, tuple[float, int]] = field(default_factory=dict)
    """How long the blocks took when it was last looked at, and on how many elements."""

    def state_key(self, name: str, value: Any) -> bytes:
        """The key of a value that no key of inputs explains: of its content where it is small, else a new one."""
        seen = self.seen.get(name)
        if seen is not None and seen[0] is value:
            return seen[1]
        if value is DEAD:
            return DEAD_KEY
        small = isinstance(value, np.ndarray) and value.nbytes <= SMALL_BYTES
        key = content_key(value) if small else self.owner + next(self.tokens).to_bytes(8, "little")
        self.seen[name] = (value, key)
        return key


Event = tuple[int, str, str | Changes, float]
"""The number of a step, its state, the reason, and the seconds that it took."""


@dataclass(slots=True)
class Host:
    """What a run needs of its session."""

    device: Device
    cache: Cache | None
    memory: Memory
    on_progress: Callable[[Progress], None] | None = None
    on_values: Callable[[str, list[Array | None]], None] | None = None
    events: list[Event] = field(default_factory=list)
    leave: Callable[[State], None] = lambda state: None
    """Called where a block is left to itself because a signal handler raised, with the state as it was before: what the
    block still does must not count."""


class Run:
    """One run: values and keys per slot, and the loop over the steps."""

    def __init__(self, host: Host, plan: Plan, context: Context):
        self.host = host
        self.plan = plan
        self.context = context
        self.cache = host.cache
        self.values: list[Any] = [None] * plan.slots
        self.keys: list[bytes] = [DEAD_KEY] * plan.slots
        self.feeds: list[Array] = []
        """Memory that is the caller's."""
        self.dead_steps: set[int] = set()
        """Steps that did not run, or sent something down a branch that is not taken; -1 for the latter."""
        self.muted = dict(plan.muted)
        """Slots without a value, with the muted block behind which they lie."""

    def go(self, feeds: dict[Output, Array]) -> list[Any]:
        """Run all steps; the values of the fetched slots are left."""
        host, cached = self.host, self.cache is not None
        for output, slot in self.plan.feeds.items():
            self._start(slot, feeds[output], content_key(feeds[output]) if cached else DEAD_KEY)
            if self.values[slot] is feeds[output]:
                self.feeds.append(feeds[output])
        for slot, (array, key) in self.plan.constants.items():
            self._start(slot, array, key)
        for slot in self.muted:
            self.values[slot] = DEAD
            self.dead_steps.add(-1)
        if host.on_progress is not None:
            self._tell_queued()
        flag, events, values = self.context.cancel, host.events, self.values
        for index, step in enumerate(self.plan.steps):
            if flag.is_set():
                raise CancelledError(Fault("VG040", step.op.name, step.name, "run to its end", "a request to stop"))
            start = time.perf_counter()
            state, why = self._step(index, step)
            took = time.perf_counter() - start
            events.append((index, state, why, took))
            if host.on_values is not None and state != states.DEAD:
                host.on_values(step.name, [self._shown(slot) for slot in step.flat_outputs])
            for slot in step.frees:
                values[slot] = None
            if host.on_progress is not None:
                self._tell(index, step, "done" if state == states.RAN else state, took, str(why))
        return values

    def _start(self, slot: int, array: Array, key: bytes) -> None:
        self.values[slot] = self.host.device.put(array)
        self.keys[slot] = key

    def _shown(self, slot: int) -> Array | None:
        """The value of a slot as NumPy; None for what is no tensor, or on a branch that was not taken."""
        held = self.values[slot]
        if isinstance(held, Ref) and not held.ready:
            return None
        value = self.host.device.to_host(value_of(held))
        if not isinstance(value, (np.ndarray, np.generic)):
            return None
        view = np.asarray(value).view()
        view.flags.writeable = False
        return view

    def _tell_queued(self) -> None:
        for index, step in enumerate(self.plan.steps):
            self._tell(index, step, "queued", 0.0)

    def _tell(self, index: int, step: Step, state: str, seconds: float, message: str = "") -> None:
        assert self.host.on_progress is not None
        self.host.on_progress(Progress(step.name, state, index, len(self.plan.steps), seconds, message))

    def _step(self, index: int, step: Step) -> tuple[str, str | Changes]:
        """Do one block: leave it where it was not reached by a live value, reuse its result, or compute it."""
        values = self.values
        inputs = [values[slot] if isinstance(slot, int) else [values[one] for one in slot] for slot in step.inputs]
        if self.dead_steps and self._is_dead(step):
            return self._die(index, step)
        if self.cache is None or step.stateful:
            why: str | Changes = "it keeps state, so it runs every time" if step.stateful else "nothing is kept"
            if step.keeps_inputs:
                inputs = [self._owned(step, value) for value in inputs]
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
            why = Changes(self.host.memory.past.get(step.name), step, keys)
            results = tuple([self._owned(step, one) for one in self._compute(index, step, inputs)])
            self._keep(step, keys, key, results)
        self._spread(step, results)
        return states.RAN, why

    def _owned(self, step: Step, value: Any) -> Any:
        """A value that may outlive the run: itself, or a copy where its memory is the caller's."""
        if isinstance(value, (list, tuple)):
            return type(value)([self._owned(step, one) for one in value])
        if not self._is_fed(value):
            return value
        faults = Faults(step.op.name)
        check_size(step.op.name, value.nbytes, faults, argument="feeds")  # a view that repeats may stand for any size
        faults.raise_if_any()
        return value.copy()

    def _is_fed(self, value: Any) -> bool:
        if not self.feeds or not isinstance(value, np.ndarray):
            return False
        # An array that owns its memory shares none; of others, bounds that overlap are enough to be careful.
        return any(
            value is feed or (value.base is not None and np.may_share_memory(value, feed)) for feed in self.feeds
        )

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
            found.append(self.host.memory.state_key(value.name, value.value) if type(value) is Ref else keys[slot])
        return tuple(found)

    def _compute(self, index: int, step: Step, inputs: list[Any]) -> tuple[Any, ...]:
        if self.host.on_progress is not None:
            self._tell(index, step, "started", 0.0)
        self.context.block = step.name
        result = self._watched(step, inputs)  # what a signal's handler raises there goes on its way
        try:
            return self._work(step, inputs, self.context) if result is None else result()
        except CancelledError:
            raise
        except Exception as error:
            self._fail(index, step, error)
            raise

    def _watched(self, step: Step, inputs: list[Any]) -> Callable[[], tuple[Any, ...]] | None:
        """What gives the result of a block that may take long; None for others, which are computed here.

        A signal can interrupt a long one. Tensors on another device stay with the thread that knows its streams, what
        writes lines with the one that runs.
        """
        if self.context.place is not None or step.op.name in _TALKS or not interrupt.is_possible():
            return None
        memory, size = self.host.memory, _size(step.op, inputs)
        seconds, largest = memory.lengths.get(step.name, (0.0, _SURELY_SHORT))
        if seconds < interrupt.LONG and size <= largest:
            return None
        context = replace(self.context)  # of its own: the blocks behind it may run before it has ended
        before = context.state.copy() if step.stateful else context.state
        start = time.perf_counter()
        found = interrupt.watched(lambda: self._work(step, inputs, context), lambda: self.host.leave(before))
        memory.lengths[step.name] = time.perf_counter() - start, size
        return found

    def _work(self, step: Step, inputs: list[Any], context: Context) -> tuple[Any, ...]:
        if step.open and not step.windowed:
            self._check(step, inputs)
        return _evaluated(step, inputs, context)

    @staticmethod
    def _check(step: Step, inputs: list[Any]) -> None:
        """What inference could not know before the run, it is asked again: sizes fit, before they are taken."""
        op = step.op
        held = [[value_of(one) for one in value] if isinstance(value, list) else value_of(value) for value in inputs]
        if not any(value is DEAD for value in flattened(tuple(held))):
            values = {item.name: value for item, value in zip(op.inputs, held, strict=True)}
            specs = {item.name: spec_at(op, item, values[item.name]) for item in op.inputs}
            check_call(op, values, specs, step.attrs, Faults(op.name))

    def _fail(self, index: int, step: Step, error: Exception) -> None:
        """Tell which block failed; errors of ours get the block's name, others become ours."""
        self.host.events.append((index, states.FAILED, str(error), 0.0))
        if self.host.on_progress is not None:
            self._tell(index, step, "failed", 0.0, str(error))
        if isinstance(error, VoxgradError):
            named = [
                Fault(
                    one.code, one.op, _with_block(step.name, one.argument), one.wanted, one.got, one.remedy, one.where
                )
                for one in error.faults
            ]
            raise type(error)(named or str(error)) from error
        got = f"{type(error).__name__}: {error}"
        raise VoxgradError(Fault("VG066", step.op.name, step.name, "run", show(got))) from error

    def _remember_state(self, step: Step, results: tuple[Any, ...]) -> None:
        slots = step.flat_outputs
        for at, (slot, value) in enumerate(zip(slots, flattened(results), strict=True)):
            if type(value) is Ref:
                self.keys[slot] = DEAD_KEY
            elif self._is_fed(value):
                # The same array next time may hold other numbers.
                self.keys[slot] = content_key(value)
            else:
                self.keys[slot] = self.host.memory.state_key(f"{step.name}:{at}", value)

    def _reuse(self, step: Step, keys: tuple[bytes, ...], key: bytes, kept: tuple[Any, ...]) -> tuple[str, str]:
        past = self.host.memory.past.get(step.name)
        self._spread(step, kept)
        self._set_keys(step, key)
        if past is not None and past.key == key:
            return states.CACHED, f"nothing changed since run {past.run}"
        self.host.memory.past[step.name] = Past(step, keys, self.host.memory.runs, key)
        return states.CACHED, "the same was computed before"

    def _keep(self, step: Step, keys: tuple[bytes, ...], key: bytes, results: tuple[Any, ...]) -> None:
        assert self.cache is not None
        past = self.host.memory.past.get(step.name)
        if past is not None and step.volatile:
            # What followed from an old state does not come back: a training loop must not fill the cache with it.
            self.cache.drop(past.key)
        self.cache.put(key, results)
        self.host.memory.past[step.name] = Past(step, keys, self.host.memory.runs, key)
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

    def _die(self, index: int, step: Step) -> tuple[str, str]:
        self.dead_steps.add(index)
        muted = next((self.muted[slot] for slot in step.flat_inputs if slot in self.muted), "")
        for slot in step.flat_outputs:
            self.values[slot] = DEAD
            self.keys[slot] = DEAD_KEY
            if muted:
                self.muted[slot] = muted
        return states.DEAD, f"it needs {muted}, which is muted" if muted else "it is on a branch that was not taken"


def _evaluated(step: Step, inputs: list[Any], context: Context) -> tuple[Any, ...]:
    if not step.windowed:
        return evaluate(step.op, inputs, step.attrs, context)
    arguments = {item.name: value_of(value) for item, value in zip(step.op.inputs, inputs, strict=True)}
    return (context.run_windowed(step.op, {**arguments, **step.attrs}, step.call),)


def _size(op: Op, inputs: list[Any]) -> int:
    """How many elements come in, and about how many the numbers among them ask for."""
    found = 0
    for item, value in zip(op.inputs, inputs, strict=True):
        if type(value) is np.ndarray:
            found += value.size
            if item.host and value.dtype.kind in "iuf" and value.size <= _FEW:
                found += int(math.prod(abs(number) for number in value.ravel().tolist() if 1 < abs(number) < math.inf))
        elif type(value) is Ref:
            found += _size_of(value.state.variables.get(value.name))
        else:
            found += sum(_size_of(one) for one in value) if type(value) is list else _size_of(value)
    return found


def _size_of(value: Any) -> int:
    return int(math.prod(getattr(value, "shape", ())))


_FEW = 16
_SURELY_SHORT = 2**13
"""Elements with which no block takes long; whether it does with more is found out."""


def _spread_list(values: list[Any], slots: Slots, results: Any, step: Step) -> None:
    assert isinstance(slots, tuple)
    assert len(results) == len(slots), f"{step.name}: {len(results)} results for {len(slots)} outputs"
    for slot, result in zip(slots, results, strict=True):
        values[slot] = result


def flattened(results: tuple[Any, ...]) -> list[Any]:
    """Results one after the other, those of lists too."""
    return [one for result in results for one in (result if isinstance(result, (tuple, list)) else (result,))]


def _pin_names(step: Step) -> Iterator[str]:
    for item, slots in zip(step.op.inputs, step.inputs, strict=True):
        if isinstance(slots, int):
            yield item.name
        else:
            yield from (f"{item.name}[{at}]" for at in range(len(slots)))


def _changed_attrs(old: Step, new: Step) -> str:
    names = [name for name in new.attrs if attr_key(old.attrs.get(name)) != attr_key(new.attrs[name])]
    return f"{', '.join(names)} changed" if names else ""


def _with_block(block: str, argument: str) -> str:
    return block if not argument or argument == block else f"{block}.{argument}"
