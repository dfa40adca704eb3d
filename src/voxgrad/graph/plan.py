# SPDX-License-Identifier: Apache-2.0
"""What a run will do, worked out once: the needed blocks in order, with numbered slots for the values between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog.dims import all_known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Op
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.modes import muted_outputs, working
from voxgrad.graph.order import run_order
from voxgrad.graph.page import Store
from voxgrad.graph.values import Array
from voxgrad.kernels.arraywise.evaluation import find_kernel

Slots = int | tuple[int, ...]
"""The slot of a tensor, or those of a list."""


@dataclass(slots=True)
class Step:
    """One block of a run. `inputs` and `outputs` have one entry per declared input and output."""

    name: str
    block: Block
    op: Op
    attrs: Mapping[str, Any]
    inputs: tuple[Slots, ...]
    outputs: tuple[Slots, ...]
    waits: tuple[int, ...]
    """The steps that it waits for without reading from them."""
    key: bytes
    """Stands for everything that decides the result beside the inputs: op, attributes, semantics, device."""
    flat_inputs: tuple[int, ...] = ()
    flat_outputs: tuple[int, ...] = ()
    frees: tuple[int, ...] = ()
    """Slots that nobody reads behind this step."""
    stateful: bool = False
    keeps_inputs: bool = False
    """May put inputs into a variable, a queue, a stage or another thing that outlives the run."""
    windowed: bool = False
    call: Call | None = None
    """Of a windowed op what inference knows of it, its problem too."""
    open: bool = False
    """The sizes of its results follow from values that only the run has."""
    takes_dead: bool = False
    """Wants to see values of branches that were not taken, as Merge does."""
    reads_variables: bool = False
    volatile: bool = False
    """Depends on state, so that an old result hardly ever comes back."""


@dataclass(slots=True)
class Plan:
    """The steps of a run, and where its values begin and end."""

    steps: list[Step] = field(default_factory=list)
    slots: int = 0
    constants: dict[int, tuple[Array, bytes]] = field(default_factory=dict)
    """Typed values and their keys, by slot."""
    variables: set[int] = field(default_factory=set)
    """The slots that hold variables rather than values."""
    feeds: dict[Output, int] = field(default_factory=dict)
    muted: dict[int, str] = field(default_factory=dict)
    """The slots that get no value, with the name of the muted block that does not give it."""
    fetches: list[int] = field(default_factory=list)
    needed: set[Block] = field(default_factory=set)

    def slot(self) -> int:
        """A new slot."""
        self.slots += 1
        return self.slots - 1


@dataclass(slots=True)
class _Place:
    """A page while it is laid out: which slot every output has, and which steps every block became."""

    store: Store
    inference: Inference
    prefix: str
    slots: dict[Output, int]
    steps: dict[Block, list[int]] = field(default_factory=dict)
    waits: tuple[int, ...] = ()


def make_plan(
    inference: Inference, fetches: Sequence[Output], targets: Sequence[Block], feeds: Sequence[Output], device: str
) -> Plan:
    """The plan for these fetches and targets, from a page without problems."""
    plan = Plan()
    place = _Place(inference.store, inference, "", {})
    for output in feeds:
        plan.feeds[output] = place.slots[output] = plan.slot()
    _mute(plan, place)
    roots = [*(output.block for output in fetches if output not in place.slots), *working(targets)]
    found = run_order(roots, fed=place.slots.keys())
    plan.needed.update(found.blocks)
    _lay_out(plan, place, found.blocks, device)
    _mark_volatile(plan)
    plan.fetches = [place.slots[output] for output in fetches]
    _find_last_uses(plan)
    return plan


def _mute(plan: Plan, place: _Place) -> None:
    """What muted blocks would give has slots without values, so that nobody asks the blocks for it."""
    for output in muted_outputs(place.store):
        if output not in place.slots:
            place.slots[output] = plan.slot()
            plan.muted[place.slots[output]] = place.prefix + output.block.name


def _lay_out(plan: Plan, place: _Place, blocks: Sequence[Block], device: str) -> None:
    for block in blocks:
        if block.uses:
            _lay_out_use(plan, place, block, device)
        else:
            _lay_out_block(plan, place, block, device)


def _lay_out_block(plan: Plan, place: _Place, block: Block, device: str) -> None:
    call = place.inference.calls.get(block)
    if call is None:
        # Every output of it is fed.
        place.steps[block] = []
        return
    op = call.op
    inputs = tuple(_input_slots(plan, place, call, block, index) for index in range(len(op.inputs)))
    outputs = _output_slots(plan, place, block, op)
    step = Step(
        place.prefix + block.name, block, op, call.attrs, inputs, outputs, _waits(place, block), step_key(call, device)
    )  # fmt: skip
    step.flat_inputs, step.flat_outputs = _flat(inputs), _flat(outputs)
    step.stateful, step.windowed = op.stateful, op.problem is not None
    step.call = call if step.windowed else None
    step.keeps_inputs = op.stateful and bool(op.inputs)
    step.open = not all(all_known(spec.shape) for spec in place.inference.specs[block])
    step.takes_dead = not step.windowed and find_kernel(op.kernel).dead
    step.reads_variables = not plan.variables.isdisjoint(step.flat_inputs)
    place.steps[block] = [len(plan.steps)]
    plan.steps.append(step)


def _waits(place: _Place, block: Block) -> tuple[int, ...]:
    return place.waits + tuple(step for other in block.control for step in place.steps.get(other, ()))


def _input_slots(plan: Plan, place: _Place, call: Call, block: Block, index: int) -> Slots:
    item = call.op.inputs[index]
    slots = []
    for source in block.sources.get(item.name, ()):
        if isinstance(source, Output):
            slots.append(place.slots[source])
            continue
        slots.append(plan.slot())
        value = place.inference.arrays[block][item.name][len(slots) - 1]
        plan.constants[slots[-1]] = value, content_key(value)
    return tuple(slots) if item.many else slots[0]


def _output_slots(plan: Plan, place: _Place, block: Block, op: Op) -> tuple[Slots, ...]:
    found: list[Slots] = []
    index = 0
    for item in op.outputs:
        count = block.count_of(item)
        slots = []
        for output in (Output(block, index + offset) for offset in range(count)):
            slots.append(plan.slot())
            # A fed output keeps the slot of its feed: what the block computes goes nowhere.
            place.slots.setdefault(output, slots[-1])
            if item.ref:
                plan.variables.add(slots[-1])
        found.append(tuple(slots) if item.many else slots[0])
        index += count
    return tuple(found)


def _lay_out_use(plan: Plan, place: _Place, block: Block, device: str) -> None:
    page = block.used_page
    assert page is not None
    inner = _Place(
        page.store, place.inference.inner[block], f"{place.prefix}{block.name}/", {}, waits=_waits(place, block)
    )
    for name, placeholder in zip(page.input_names, page.input_blocks, strict=True):
        source = block.sources[name][0]
        if isinstance(source, Output):
            inner.slots[Output(placeholder, 0)] = place.slots[source]
            continue
        slot = inner.slots[Output(placeholder, 0)] = plan.slot()
        value = place.inference.arrays[block][name][0]
        plan.constants[slot] = value, content_key(value)
    before = len(plan.steps)
    _mute(plan, inner)
    results = (output.block for output in page.outputs.values() if output not in inner.slots)
    needed = run_order(results, fed=inner.slots.keys()).blocks
    _lay_out(plan, inner, [one for one in needed if Output(one, 0) not in inner.slots], device)
    for index, output in enumerate(page.outputs.values()):
        place.slots.setdefault(Output(block, index), inner.slots[output])
    place.steps[block] = list(range(before, len(plan.steps)))


def _flat(slots: tuple[Slots, ...]) -> tuple[int, ...]:
    return tuple(one for slot in slots for one in ((slot,) if isinstance(slot, int) else slot))


def _mark_volatile(plan: Plan) -> None:
    volatile: set[int] = set()
    for step in plan.steps:
        step.volatile = step.stateful or not volatile.isdisjoint(step.flat_inputs)
        if step.volatile:
            volatile.update(step.flat_outputs)


def _find_last_uses(plan: Plan) -> None:
    """Values that are read for the last time are let go, so that a long page does not hold them all."""
    seen = {*plan.fetches, *plan.feeds.values(), *plan.constants, *plan.muted}
    for step in reversed(plan.steps):
        last = []
        for slot in (*step.flat_inputs, *step.flat_outputs):
            if slot not in seen:
                seen.add(slot)
                last.append(slot)
        step.frees = tuple(last)


def step_key(call: Call, device: str) -> bytes:
    """A hash of everything that decides a result beside the inputs."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{call.op.name}\0{call.semantics}\0{device}".encode())
    for name in sorted(call.attrs):
        digest.update(f"\0{name}=".encode())
        digest.update(attr_key(call.attrs[name]))
    return digest.digest()


def attr_key(value: Any) -> bytes:
    """What stands for the value of an attribute in a hash."""
    if isinstance(value, np.ndarray):
        return content_key(value)
    return value.name.encode() if isinstance(value, DType) else repr(value).encode()


_SLICE = 2**24
"""Bytes hashed at a time: between two slices, Python looks for signals."""


def content_key(array: Array) -> bytes:
    """A hash of an array: its type, shape and bytes."""
    digest = hashlib.blake2b(f"{array.dtype.str}{array.dtype.name}{array.shape}".encode(), digest_size=16)
    if array.dtype == object:
        digest.update(repr(array.tolist()).encode())
    else:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for at in range(0, len(data), _SLICE):
            digest.update(data[at : at + _SLICE])
    return digest.digest()
