# SPDX-License-Identifier: Apache-2.0
"""How a page lies over volumes: which blocks run chunk by chunk, and which dimension of every tensor is cut along what.

A block on the way from a volume runs on parts where the catalogue says how: the 3-D family by its windows, an ordinary
op by the dimensions that its inputs follow or along which it moves cells (`catalog/locality`). Along a dimension that
it does not follow, it gets and makes all. A sum, a mean or a maximum over the volume, and a filter gradient, are added
up over the chunks; what stands behind them is computed once, at the end, and what of the volume needs it, in a pass of
its own (`passes`). Any other block that needs a whole volume is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog.dims import all_known
from voxgrad.catalog.locality import STATED, Shift, lies, tensors_of
from voxgrad.catalog.model import Call, Spec
from voxgrad.catalog.problem import Problem, solve
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph import plan as graph_plan
from voxgrad.graph.block import Output
from voxgrad.graph.feeds import unfed
from voxgrad.graph.infer import Inference
from voxgrad.graph.modes import refuse_muted
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.graph.plan import Step
from voxgrad.graph.values import spec_of
from voxgrad.kernels.arraywise import Context, evaluate
from voxgrad.kernels.element_types import numpy_type

Array = np.ndarray[Any, Any]
ROLES = ("batch", "depth", "height", "width")
"""What a volume can be cut along."""

Roles = tuple[int | None, ...]
"""The role of every dimension of a tensor: an index into ROLES, None where it is not cut."""

SMALL, VOLUME, AFTER = "small", "volume", "after"
"""What a value is: held whole by every worker, made chunk by chunk, or known once all chunks are added up."""

MOST_WHOLE = 2**28
"""A value that is not cut may have this many bytes: every worker holds it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A block that runs chunk by chunk. `places` says for each input what its dimensions follow, as the catalogue does.

    `adds` says how its results over the chunks are added up, where they are. `wholes` are the roles along which it
    needs and makes everything. A block that moves cells has `shifts`: for each result, where it lies in every input.
    """

    step: Step
    call: Call
    problem: Problem | None
    places: tuple[Any, ...]
    adds: str = ""
    wholes: frozenset[int] = frozenset()
    shifts: tuple[tuple[tuple[Shift, ...] | None, ...], ...] = ()

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots of its inputs, those of lists one after the other."""
        return self.step.flat_inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """The slots of its outputs."""
        return self.step.flat_outputs

    def is_whole(self, index: int) -> bool:
        """True for an input of a windowed op that is not cut: a filter, or a stated shape."""
        return self.problem is not None and self.step.op.inputs[index].layout != "data"


@dataclass
class Layout:
    """A page over volumes, worked out once."""

    page: Page
    inference: Inference
    plan: graph_plan.Plan
    specs: dict[int, Spec]
    kinds: dict[int, str] = field(default_factory=dict)
    """SMALL, VOLUME or AFTER, by slot."""
    roles: dict[int, Roles] = field(default_factory=dict)
    """The roles of every slot."""
    pieces: list[Piece] = field(default_factory=list)
    known: dict[Output, Array] = field(default_factory=dict)
    """Shapes of volumes and what follows from them alone: values without data."""
    fetches: dict[Output, int] = field(default_factory=dict)
    sources: dict[int, Output] = field(default_factory=dict)
    """The output behind every slot that has one."""
    depths: dict[int, int] = field(default_factory=dict)
    """How many passes must have ended before a value can be made, by slot."""

    def role_dim(self, slot: int, role: int) -> int | None:
        """The dimension of a tensor that has a role."""
        return next((at for at, one in enumerate(self.roles[slot]) if one == role), None)

    @property
    def volumes(self) -> dict[Output, int]:
        """The slots that are read from files."""
        return {output: slot for output, slot in self.plan.feeds.items() if self.kinds[slot] == VOLUME}

    @property
    def sinks(self) -> list[Piece]:
        """The pieces whose results are added up."""
        return [piece for piece in self.pieces if piece.adds]

    @property
    def wholes(self) -> list[int]:
        """The slots that pieces read and that are not cut: filters, biases, axes."""
        read = {slot for piece in self.pieces for slot in piece.inputs}
        return sorted(slot for slot in read if self.kinds[slot] == SMALL)

    @property
    def last(self) -> int:
        """The pass in which the results are made."""
        needed = [self.depths[slot] - (self.kinds[slot] == AFTER) for slot in self.fetches.values()]
        return max(needed, default=0)


def flat(page: Page) -> Page:
    """A copy of a page in which every block is an op: pages used as blocks are put in their place."""
    copy = Page.from_dict(page.to_dict())
    copy.files = page.files
    while used := [block for block in copy.blocks if block.uses]:
        for block in used:
            copy.inline(block)
    return copy


def lay_out(
    page: Page, volumes: Mapping[Output, Spec], feeds: Mapping[Output, Spec], fetches: Sequence[Output],
    roles: Mapping[Output, Roles] | None = None,
) -> Layout:  # fmt: skip
    """The layout of a flat page whose `volumes` are cut, or an error that names every block in the way.

    `roles` says what the dimensions of some volumes are, where it is known from elsewhere.
    """
    inference = page.infer().given({**volumes, **feeds})
    needed = order([output.block for output in fetches], fed={**volumes, **feeds}).blocks
    faults = [problem.fault for problem in inference.problems(only=set(needed))]
    faults.extend(unfed(needed, {**volumes, **feeds}))
    faults.extend(refuse_muted(needed, "volumes"))
    if faults:
        raise InvalidArgumentError(faults)
    plan = graph_plan.make_plan(inference, fetches, [], [*volumes, *feeds], "cpu")
    layout = Layout(page, inference, plan, _specs(plan, inference, {**volumes, **feeds}))
    layout.fetches = dict(zip(fetches, plan.fetches, strict=True))
    _Work(layout, volumes, roles or {}).go()
    return layout


def _specs(plan: graph_plan.Plan, inference: Inference, given: Mapping[Output, Spec]) -> dict[int, Spec]:
    specs = {slot: given[output] for output, slot in plan.feeds.items()}
    specs |= {slot: spec_of(array) for slot, (array, _) in plan.constants.items()}
    for step in plan.steps:
        for at, slot in enumerate(step.flat_outputs):
            specs[slot] = inference.spec(Output(step.block, at))
    return specs


class _Work:
    """The passes over the steps: what depends on volumes, what is cut along what, what kind each step is."""

    def __init__(self, layout: Layout, volumes: Mapping[Output, Spec], roles: Mapping[Output, Roles]):
        self.layout = layout
        self.told = {layout.plan.feeds[output]: some for output, some in roles.items() if output in volumes}
        self.volumes = [layout.plan.feeds[output] for output in volumes]
        self.links = _Links()
        self.faults: list[Fault] = []

    def go(self) -> None:
        """All passes; raises every fault that was found."""
        layout = self.layout
        touched = self._touched()
        self._check_known(touched)
        self._raise()
        for step in layout.plan.steps:
            self._link(step)
        self._give_roles(touched)
        for slot, spec in layout.specs.items():
            layout.roles[slot] = tuple(self.links.role(slot, at) for at in range(len(spec.shape or ())))
        self._classify()
        self._raise()

    def _raise(self) -> None:
        if self.faults:
            raise InvalidArgumentError(self.faults)

    def _fault(self, step: Step, wanted: str, got: str, remedy: str) -> None:
        self.faults.append(Fault("VG072", step.op.name, step.name, wanted, got, remedy))

    def _touched(self) -> set[int]:
        """The slots whose values depend on the data of a volume, not only on its shape."""
        touched = set(self.volumes)
        for step in self.layout.plan.steps:
            if not touched.isdisjoint(step.flat_inputs):
                touched.update(slot for slot in step.flat_outputs if self.layout.specs[slot].value is None)
        return touched

    def _check_known(self, touched: set[int]) -> None:
        """Everything behind a volume must have a shape before it runs."""
        for step in self.layout.plan.steps:
            for slot in step.flat_outputs:
                if slot in touched and not all_known(self.layout.specs[slot].shape):
                    remedy = "Feed or fix the sizes that it depends on."
                    self._fault(step, "have a shape that is known before the run", "an open one", remedy)

    # Which dimensions go together

    def _link(self, step: Step) -> None:
        call, specs = self.layout.inference.calls[step.block], self.layout.specs
        if step.windowed:
            data = [slot for slot, _ in self._data_slots(step)]
            for slot in data[1:]:
                for dim in range(5):
                    if self._spatial(call, dim) is not None:
                        self.links.join((data[0], dim), (slot, dim))
            return
        if not all_known([size for slot in step.flat_outputs for size in self._shape(slot)]):
            return
        if step.op.moves:
            for output, moved in zip(step.flat_outputs, self._shifts(call, step), strict=True):
                for slot, shifts in zip(step.flat_inputs, moved, strict=True):
                    for dim, shift in enumerate(shifts or ()):
                        if shift.place is not None:
                            self.links.join((slot, dim), (output, shift.place))
        elif step.op.follows is not None:
            for slot, places in zip(step.flat_inputs, self._places(call, step), strict=True):
                for dim, place in enumerate(places if isinstance(places, tuple) else ()):
                    for output in step.flat_outputs if place is not None else ():
                        if specs[slot].shape[dim] == specs[output].shape[place]:  # type: ignore[index]
                            self.links.join((slot, dim), (output, place))

    def _shape(self, slot: int) -> tuple[Any, ...]:
        return self.layout.specs[slot].shape or ()

    def _places(self, call: Call, step: Step) -> list[Any]:
        assert step.op.follows is not None
        if any(spec.shape is None for spec in tensors_of(call)):
            return [None] * len(step.flat_inputs)
        return list(step.op.follows(call, self._shape(step.flat_outputs[0])))

    def _shifts(self, call: Call, step: Step) -> tuple[tuple[tuple[Shift, ...] | None, ...], ...]:
        """For each result of a block that moves cells, where it lies in every input."""
        if any(spec.shape is None for spec in tensors_of(call)):
            return ((None,) * len(step.flat_inputs),) * len(step.flat_outputs)
        return tuple(
            tuple(_as_shifts(places) for places in lies(call, self._shape(slot), at))
            for at, slot in enumerate(step.flat_outputs)
        )

    def _data_slots(self, step: Step) -> list[tuple[int, str]]:
        """The slots of a windowed step whose dimensions follow data_format, with the names of their pins."""
        inputs = [
            (slot, item.name) for slot, item in zip(step.flat_inputs, step.op.inputs, strict=True)
            if item.layout == "data"
        ]  # fmt: skip
        outputs = [
            (slot, item.name) for slot, item in zip(step.flat_outputs, step.op.outputs, strict=True)
            if item.layout == "data"
        ]  # fmt: skip
        return inputs + outputs

    @staticmethod
    def _spatial(call: Call, dim: int) -> int | None:
        """The role of a dimension of data in the layout of a windowed call."""
        last = call.attrs.get("data_format", "NDHWC") == "NDHWC"
        return (0, 1, 2, 3, None)[dim] if last else (0, None, 1, 2, 3)[dim]

    def _give_roles(self, touched: set[int]) -> None:
        """Windows say which dimension is which; a volume that meets none is [N, D, H, W, C], unless it is told."""
        for slot, some in self.told.items():
            for dim, role in enumerate(some):
                if role is not None:
                    self.links.give((slot, dim), role)
        for step in self.layout.plan.steps:
            if step.windowed and not touched.isdisjoint(step.flat_inputs):
                call = self.layout.inference.calls[step.block]
                for slot, _ in self._data_slots(step):
                    for dim in range(5):
                        self._give(step, slot, dim, self._spatial(call, dim))
        for slot in self.volumes:
            if all(self.links.role(slot, dim) is None for dim in range(5)):
                for dim in range(4):
                    self.links.give((slot, dim), dim)

    def _give(self, step: Step, slot: int, dim: int, role: int | None) -> None:
        other = self.links.role(slot, dim)
        if role is not None and not self.links.give((slot, dim), role) and other is not None:
            got = f"{ROLES[other]} where it needs {ROLES[role]}"
            self._fault(step, "see every dimension of a volume as one thing", got, "Do not mix transposed volumes.")

    # What every step is

    def _classify(self) -> None:
        layout = self.layout
        kinds = layout.kinds
        for output, slot in layout.plan.feeds.items():
            kinds[slot] = VOLUME if slot in self.volumes else SMALL
            layout.sources[slot] = output
        for slot in layout.plan.constants:
            kinds[slot] = SMALL
        layout.depths = dict.fromkeys(kinds, 0)
        for step in layout.plan.steps:
            kind = self._kind(step)
            for at, slot in enumerate(step.flat_outputs):
                kinds.setdefault(slot, kind)
                layout.sources[slot] = Output(step.block, at)
                layout.depths.setdefault(slot, self._depth(step, kind))
        self._check_wholes()

    def _depth(self, step: Step, kind: str) -> int:
        """A value is there as soon as all that it is made of; a sum, when the pass over its parts has ended."""
        before = max((self.layout.depths[slot] for slot in step.flat_inputs), default=0) if kind != SMALL else 0
        last = self.layout.pieces[-1] if self.layout.pieces else None
        return before + (last is not None and last.step is step and bool(last.adds))

    def _kind(self, step: Step) -> str:
        layout = self.layout
        kinds = [layout.kinds[slot] for slot in step.flat_inputs]
        if step.flat_outputs and all(layout.specs[slot].value is not None for slot in step.flat_outputs):
            if VOLUME in kinds or AFTER in kinds:
                self._keep_known(step)
            return SMALL
        if step.op.of_shape and AFTER in kinds and VOLUME not in kinds:
            self._keep_like(step)
            return SMALL
        call = self.layout.inference.calls[step.block]
        if VOLUME not in kinds and not self._fills_volume(step, call):
            return AFTER if AFTER in kinds else SMALL
        return self._windowed_kind(step, call) if step.windowed else self._ordinary_kind(step, call)

    def _keep_known(self, step: Step) -> None:
        for at, slot in enumerate(step.flat_outputs):
            spec = self.layout.specs[slot]
            assert spec.dtype is not None
            made = np.array(spec.value, numpy_type(spec.dtype)).reshape(spec.shape)
            self.layout.known[Output(step.block, at)] = made

    def _keep_like(self, step: Step) -> None:
        """What looks only at the shape of a sum is known before the sum is."""
        zeros = []
        for slot in step.flat_inputs:
            spec = self.layout.specs[slot]
            assert spec.dtype is not None
            zeros.append(np.zeros(spec.shape or (), numpy_type(spec.dtype)))
        for at, made in enumerate(evaluate(step.op, zeros, step.attrs, Context())):
            self.layout.known[Output(step.block, at)] = made

    def _fills_volume(self, step: Step, call: Call) -> bool:
        """True for a tensor as large as a volume that is made of little: its parts are made where they are needed."""
        if step.op.follows is None or STATED not in self._places(call, step):
            return False
        return any(
            role is not None and size > 1
            for slot in step.flat_outputs
            for role, size in zip(self.layout.roles[slot], self._shape(slot), strict=True)
        )

    def _windowed_kind(self, step: Step, call: Call) -> str:
        problem = solve(call)
        assert isinstance(problem, Problem), "a page without problems has problems for its windows"
        for slot, item in zip(step.flat_inputs, step.op.inputs, strict=True):
            if item.layout != "data" and self.layout.kinds[slot] == VOLUME:
                remedy = f"Compute {item.name} in a run of its own, and feed it."
                self._fault(step, f"have a {item.name} that does not depend on a volume", "one that does", remedy)
        piece = Piece(step, call, problem, (), step.op.adds_up)
        self.layout.pieces.append(piece)
        return AFTER if piece.adds else VOLUME

    def _ordinary_kind(self, step: Step, call: Call) -> str:
        shifts = self._shifts(call, step) if step.op.moves else ()
        unplaced = not _all_placed(step, shifts)
        if (step.op.follows is None and (not step.op.moves or unplaced)) or step.op.stateful:
            self._refuse(step, "a whole volume at once")
            return VOLUME
        places = self._places(call, step) if step.op.follows is not None else [None] * len(step.flat_inputs)
        lost = self._lost(step, places)
        if step.op.moves and (lost or step.op.follows is None) and not unplaced:
            self.layout.pieces.append(Piece(step, call, None, tuple(places), shifts=shifts))
            return VOLUME
        adds = step.op.adds_up if lost and not self._spatial_left(step) else ""
        if lost and not adds and lost >= self._spatial_of(step.flat_inputs):
            self._refuse(step, f"all of {' and '.join(ROLES[role] for role in sorted(lost))} at once")
            return VOLUME
        wholes = frozenset() if adds else frozenset(lost | self._made_whole(step, places))
        self.layout.pieces.append(Piece(step, call, None, tuple(places), adds, wholes))
        return AFTER if adds else VOLUME

    def _spatial_of(self, slots: Sequence[int]) -> set[int]:
        """Depth, height and width, those of them that tensors have."""
        return {
            role for slot in slots for role, size in zip(self.layout.roles[slot], self._shape(slot), strict=True)
            if role and size > 1
        }  # fmt: skip

    def _spatial_left(self, step: Step) -> bool:
        """True for a reduction that leaves some of depth, height and width: its result is a volume itself."""
        return bool(self._spatial_of(step.flat_outputs))

    def _made_whole(self, step: Step, places: Sequence[Any]) -> set[int]:
        """The roles of result dimensions that no input is followed along, and that nothing states."""
        if STATED in places:
            return set()
        followed = {place for one in places if isinstance(one, tuple) for place in one}
        return {
            role for slot in step.flat_outputs for dim, role in enumerate(self.layout.roles[slot])
            if role is not None and dim not in followed and self._shape(slot)[dim] > 1
        }  # fmt: skip

    def _lost(self, step: Step, places: Sequence[Any]) -> set[int]:
        """The roles of input dimensions that are cut and that the result does not follow."""
        found = set()
        for slot, place in zip(step.flat_inputs, places, strict=True):
            if self.layout.kinds[slot] != VOLUME:
                continue
            followed = place if isinstance(place, tuple) else (None,) * len(self._shape(slot))
            for dim, role in enumerate(self.layout.roles[slot]):
                if role is not None and followed[dim] is None and self._shape(slot)[dim] > 1:
                    found.add(role)
        return found

    def _refuse(self, step: Step, got: str) -> None:
        remedy = "Save the volume before it with --output and go on from there, or run the page without --volume."
        self._fault(step, "work on a part of a volume", f"an op that needs {got}", remedy)

    def _check_wholes(self) -> None:
        for slot in self.layout.wholes:
            spec = self.layout.specs[slot]
            if spec.dtype is None or spec.shape is None or not all_known(spec.shape):
                continue
            size = math.prod(spec.shape) * spec.dtype.itemsize
            if size > MOST_WHOLE:
                source = self.layout.sources.get(slot)
                name = source.path if source is not None else "a value"
                wanted = f"have at most {MOST_WHOLE:,} bytes, for every worker holds it"
                remedy = "Put it into a file and give it as a volume."
                self.faults.append(Fault("VG072", "page", name, wanted, f"{size:,} bytes", remedy))


def _as_shifts(places: Any) -> tuple[Shift, ...] | None:
    """Where cells along every dimension lie, or None for an input that does not say it."""
    if not isinstance(places, tuple) or None in places:
        return None
    return tuple(place if isinstance(place, Shift) else Shift(place, 0) for place in places)


def _all_placed(step: Step, shifts: Sequence[Sequence[Any]]) -> bool:
    """True where it is known of every tensor that is moved where it goes."""
    moved = [
        not (item.host or item.name == step.op.fill)
        for item, slots in zip(step.op.inputs, step.inputs, strict=True)
        for _ in ((slots,) if isinstance(slots, int) else slots)
    ]
    return all(one is not None for some in shifts for one, goes in zip(some, moved, strict=True) if goes)


class _Links:
    """Dimensions that go together, and the role of each group."""

    def __init__(self) -> None:
        self._parent: dict[tuple[int, int], tuple[int, int]] = {}
        self._role: dict[tuple[int, int], int] = {}

    def _find(self, one: tuple[int, int]) -> tuple[int, int]:
        path = []
        while (parent := self._parent.get(one, one)) != one:
            path.append(one)
            one = parent
        for step in path:
            self._parent[step] = one
        return one

    def join(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        """Two dimensions are cut alike."""
        self._parent[self._find(a)] = self._find(b)

    def give(self, one: tuple[int, int], role: int) -> bool:
        """Give a group a role; False where it has another."""
        return self._role.setdefault(self._find(one), role) == role

    def role(self, slot: int, dim: int) -> int | None:
        """The role of a dimension."""
        return self._role.get(self._find((slot, dim)))
