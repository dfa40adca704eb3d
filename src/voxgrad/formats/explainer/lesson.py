# SPDX-License-Identifier: Apache-2.0
"""What is shown of an op on a small grid, computed by voxgrad itself: values, windows, winners, shares.

A lesson is a page: the op, its gradients, and theirs, as `vg.gradients` draws them. A session gives the values, `trace`
the windows. How much of an element arrives in another is asked of the op itself, which is linear there: it is given a
tensor with a single one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from voxgrad import raw_ops
from voxgrad.catalog.model import Op, Side
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.explainer.choices import GRID, Choice, forward_of, given
from voxgrad.graph.block import Block, Output
from voxgrad.graph.build import add_block
from voxgrad.graph.gradients import gradients
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.trace import Window, trace
from voxgrad.graph.values import Array

ROLES = {Side.CELLS: "x", Side.TAPS: "w"}
"""Names of the inputs of a forward op, by where they lie: the volume, the filter."""
SEEDS = {"dx": "v", "dw": "u"}
"""What the second order begins with: a tensor like a first gradient."""

Span = tuple[int, int, int, int, int]
"""Of one axis: first cell, the cell behind the last, step, and cells of padding before and behind."""
Row = tuple[float, ...]
"""How much of every element of a box arrives, in depth, height, width order."""


@dataclass(frozen=True, slots=True)
class Step:
    """An op of the lesson. `reads`: of an operand, per axis, what an element at every place there reads.

    `kind` says in a word what the op does with what it reads, as its declaration has it. `pairs`: two operands that
    are multiplied element by element of their boxes, the second one backwards where `flipped`. Else `rows` has for
    every element how much of each element in the box of `part` arrives. Of a maximum, `ties` marks all cells of the box
    that are as large.
    """

    op: str
    kind: str
    output: str
    order: int
    operands: Mapping[str, str]
    reads: Mapping[str, tuple[tuple[Span, ...], ...]]
    part: str = ""
    pairs: tuple[str, str] | None = None
    flipped: bool = False
    rows: tuple[Row, ...] = ()
    ties: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Lesson:
    """All that one choice shows. No steps where voxgrad refuses it, with its fault, or where no window fits."""

    choice: Choice
    page: Page
    values: Mapping[str, Array]
    sides: Mapping[str, Side]
    steps: tuple[Step, ...]
    fault: Fault | None = None

    @property
    def given(self) -> set[str]:
        """The tensors that are not computed."""
        return set(self.values) - {step.output for step in self.steps}


@dataclass
class Lessons:
    """Lessons about a forward op and its gradients; what does not depend on values is found once."""

    forward: Op
    _known: dict[Choice, tuple[Step, ...]] = field(default_factory=dict)

    def lesson(self, choice: Choice, typed: Mapping[str, Array] | None = None) -> Lesson:
        """The lesson of a choice; `typed` are values of tensors that are not computed, in place of the usual ones."""
        drawn = _Drawn(self.forward, choice, typed or {})
        problems = drawn.page.problems()
        if problems:
            return Lesson(choice, drawn.page, {}, {}, (), problems[0].fault)
        if 0 in (drawn.result.shape or ()):
            return Lesson(choice, drawn.page, {}, {}, ())
        drawn.differentiate()
        values = drawn.run()
        place = replace(choice, case="")
        if place not in self._known:
            self._known[place] = tuple(drawn.step(block) for block in drawn.blocks)
        steps = [
            replace(step, **drawn.selected(block, step, values)) if OPS[step.op].selects else step
            for step, block in zip(self._known[place], drawn.blocks, strict=True)
        ]
        return Lesson(choice, drawn.page, values, drawn.sides, tuple(steps))


def lessons_about(op: Op) -> Lessons:
    """Lessons that show an op of the family."""
    if op not in FAMILY:
        listed = ", ".join(one.name for one in FAMILY)
        raise InvalidArgumentError(Fault("VG003", op.name, "op", f"be one of {listed}", op.name))
    return Lessons(forward_of(op))


def _op(block: Block) -> Op:
    assert block.op is not None
    return block.op


def _shape(output: Output) -> tuple[int, ...]:
    assert output.shape is not None
    return output.shape


def kind_of(op: Op) -> str:
    """What an op does with what it reads, by the sides between which it maps."""
    forward = op.map.output is Side.WINDOWS
    if op.map.has_taps:
        return "product"
    if op.selects:
        return "scatter" if not forward else "gather" if op.linear_in else "maximum"
    return "mean" if forward else "spread"


class _Drawn:
    """The page of a lesson, while it is made."""

    def __init__(self, forward: Op, choice: Choice, typed: Mapping[str, Array]):
        self.choice, self.typed = choice, typed
        self.page = Page(f"{forward.name} on a small grid", choice.semantics)
        self.names: dict[Output, str] = {}
        self.sides: dict[str, Side] = {}
        self.blocks: list[Block] = []
        self.orders: dict[str, int] = {}
        shapes = {Side.CELLS: (1, *GRID, 1), Side.TAPS: (*choice.window, 1, 1)}
        self.sources = [
            self._constant(ROLES[item.side], item.side, shapes[item.side])
            for item in forward.inputs
            if item.side is not None
        ]
        self.result = add_block(self.page, forward, tuple(self.sources), choice.attrs(forward), "y")

    def _constant(self, name: str, side: Side, shape: tuple[int, ...]) -> Output:
        values = self.typed.get(name)
        if values is None:
            values = given(name, shape, self.choice.case)
        elif values.size != int(np.prod(shape)):
            wanted = f"have {int(np.prod(shape))} values here"
            raise InvalidArgumentError(Fault("VG012", "explain", name, wanted, str(values.size)))
        made = add_block(self.page, OPS["Const"], (values.reshape(shape),), {}, name)
        assert isinstance(made, Output)
        return self._named(made, name, side)

    def _named(self, output: Output, name: str, side: Side) -> Output:
        self.names[output], self.sides[name] = name, side
        return output

    def _shown(self, output: Output, name: str, order: int) -> Output:
        """An output of the family, with a name on the screen: forward, a gradient, or one of second order."""
        self.blocks.append(output.block)
        self.orders[name] = order
        return self._named(output, name, _op(output.block).map.output)

    def differentiate(self) -> None:
        """Add the gradients of the result, and theirs."""
        y = self._shown(self.result, "y", 0)
        dy = self._constant("dy", Side.WINDOWS, _shape(y))
        firsts = [one for one in gradients([y], self.sources, [dy]) if one is not None]
        for source, first in zip(self.sources, firsts, strict=True):
            self._shown(first, f"d{self.names[source]}", 1)
        for first in firsts:
            seed, operands = SEEDS[self.names[first]], self._operands(first.block)
            behind = [operands[pin] for pin in _op(first.block).linear_in]
            like = self._constant(seed, self.sides[self.names[first]], _shape(first))
            seconds = [one for one in gradients([first], behind, [like]) if one is not None]
            for operand, second in zip(behind, seconds, strict=True):
                self._shown(second, f"{self.names[operand]}_{seed}", 2)

    def run(self) -> dict[str, Array]:
        """What all tensors hold."""
        found = ClientSession(self.page).run(list(self.names))
        return dict(zip(self.names.values(), (np.asarray(one) for one in found), strict=True))

    def _operands(self, block: Block) -> dict[str, Output]:
        """The tensors that enter, by their pins, without stated shapes."""
        found = {item.name: block.sources[item.name][0] for item in _op(block).inputs if not item.host}
        return {pin: one for pin, one in found.items() if isinstance(one, Output)}

    def step(self, block: Block) -> Step:
        """What of a block does not depend on the values."""
        op, operands = _op(block), self._operands(block)
        name = self.names[block.outputs[0]]
        reads = self._reads(block)
        named = {pin: self.names[one] for pin, one in operands.items()}
        made = Step(op.name, kind_of(op), name, self.orders[name], named, reads)
        if len(op.linear_in) == 2:
            return self._paired(block, made)
        part = op.linear_in[0] if op.linear_in else op.inputs[0].name
        return replace(made, part=part, rows=() if op.selects else self._rows(block, made, part, {}))

    def _windows(self, block: Block, values: Mapping[str, Array] | None = None) -> Iterator[dict[str, Window]]:
        """For every element of a block what it reads through every pin."""
        output = block.outputs[0]
        for index in np.ndindex(*_shape(output)):
            found = trace(self.page, output, index, 1, lambda one: None if values is None else values[self.names[one]])
            yield {window.pin: window for window in found.windows}

    def _reads(self, block: Block) -> dict[str, tuple[tuple[Span, ...], ...]]:
        """Per axis, because the boxes of windows are made of their axes; looked at element by element all the same."""
        output = block.outputs[0]
        found: dict[str, list[dict[int, Span]]] = {}
        for index, windows in zip(np.ndindex(*_shape(output)), self._windows(block), strict=True):
            here = spatial(index, self.sides[self.names[output]])
            for pin, window in windows.items():
                tables = found.setdefault(pin, [{}, {}, {}])
                spans = _spans(window, self.sides[self.names[self._operands(block)[pin]]])
                for table, at, span in zip(tables, here, spans, strict=True):
                    assert table.setdefault(at, span) == span, "a window is no box"
        return {pin: tuple(tuple(one.values()) for one in tables) for pin, tables in found.items()}

    def _call(self, block: Block, tensors: Mapping[str, Array], images: int = 1) -> Array:
        """A block's op on other tensors."""
        op = _op(block)
        shapes = {Side.CELLS: (images, *GRID, 1), Side.TAPS: (*self.choice.window, 1, 1)}
        stated = {item.name: shapes[item.side] for item in op.inputs if item.host and item.side is not None}
        with semantics(self.choice.semantics):
            return np.asarray(getattr(raw_ops, op.name)(**stated, **tensors, **self.choice.attrs(op)))

    def _rows(self, block: Block, step: Step, part: str, others: Mapping[str, Array]) -> tuple[Row, ...]:
        """How much of every element of a box arrives: the op on images with a single one, each at another place."""
        shape = _shape(self._operands(block)[part])
        units = np.concatenate(list(_units(shape)))
        many = {pin: np.repeat(one, len(units), axis=0) for pin, one in others.items()}
        arrives = self._call(block, {**many, part: units}, len(units)).reshape(len(units), -1)
        found = boxes(step, part, self._spatial(step, part))
        return tuple(tuple(float(number) for number in arrives[box, index]) for index, box in enumerate(found))

    def _spatial(self, step: Step, pin: str) -> tuple[int, ...]:
        """Depth, height and width of an operand."""
        name = step.operands[pin]
        shape = next(_shape(one) for one, known in self.names.items() if known == name)
        return spatial(shape, self.sides[name])

    def _paired(self, block: Block, step: Step) -> Step:
        """Which element of one box is multiplied with which of the other: their numbers, brought out by ones."""
        first, second = _op(block).linear_in
        shapes = {pin: _shape(one) for pin, one in self._operands(block).items()}
        numbers = (np.arange(np.prod(shapes[second])) + 1).reshape(shapes[second]).astype(np.float32)
        met = np.stack([self._call(block, {first: one, second: numbers}).ravel() for one in _units(shapes[first])])
        met = met.astype(int)
        for flipped in (False, True):
            wanted = np.zeros_like(met)
            both = (boxes(step, pin, self._spatial(step, pin)) for pin in (first, second))
            for index, (ones, others) in enumerate(zip(*both, strict=True)):
                assert len(ones) == len(others), "boxes of pairs differ"
                wanted[ones, index] = np.asarray(others[::-1] if flipped else others, int) + 1
            if np.array_equal(wanted, met):
                return replace(step, pairs=(first, second), flipped=flipped)
        raise AssertionError("the pairs of a convolution do not follow its boxes")

    def selected(self, block: Block, step: Step, values: Mapping[str, Array]) -> dict[str, Any]:
        """What a selection takes of every box, and which cells tie."""
        op = _op(block)
        others = {pin: values[name] for pin, name in step.operands.items() if pin != step.part}
        rows = self._rows(block, step, step.part, others) if op.linear_in else ()
        if op.map.output is not Side.WINDOWS:
            return {"rows": rows}
        pooled = op.inputs[0].name
        found, sizes = [one[pooled] for one in self._windows(block, values)], self._spatial(step, pooled)
        winners = [[] if one.winner is None else [one.winner] for one in found]
        return {
            "rows": rows or _marked(step, pooled, sizes, winners),
            "ties": _marked(step, pooled, sizes, [one.ties for one in found]),
        }


def _units(shape: tuple[int, ...]) -> Iterator[Array]:
    """Tensors with a single one."""
    for index in np.ndindex(*shape):
        one = np.zeros(shape, np.float32)
        one[index] = 1
        yield one


def _marked(step: Step, pin: str, sizes: tuple[int, ...], cells: list[Any]) -> tuple[Row, ...]:
    """Of every box, 1 for the cells that are named."""
    places = [{int(np.ravel_multi_index(one[1:4], sizes)) for one in some} for some in cells]
    found = zip(boxes(step, pin, sizes), places, strict=True)
    return tuple(tuple(float(at in some) for at in box) for box, some in found)


def spatial(index: tuple[int, ...], side: Side) -> tuple[int, ...]:
    """Depth, height and width of an index or of a shape."""
    return index[:3] if side is Side.TAPS else index[1:4]


def _spans(window: Window, side: Side) -> Iterator[Span]:
    columns = (window.lo, window.hi, window.steps, window.padding.before, window.padding.after)
    yield from zip(*(spatial(tuple(one), side) for one in columns), strict=True)


def boxes(step: Step, pin: str, sizes: tuple[int, ...]) -> Iterator[list[int]]:
    """The elements that every element of a step reads through a pin, as places in a tensor of these spatial sizes."""
    tables = step.reads[pin]
    for at in np.ndindex(*(len(table) for table in tables)):
        ranges = [range(*table[one][:3]) for table, one in zip(tables, at, strict=True)]
        yield [int(np.ravel_multi_index((d, h, w), sizes)) for d in ranges[0] for h in ranges[1] for w in ranges[2]]
