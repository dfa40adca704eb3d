# SPDX-License-Identifier: Apache-2.0
"""A block is one use of an op on a page; its pins are wired to outputs of other blocks or hold typed values."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from voxgrad.catalog import model
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Op, Spec
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.graph.modes import BYPASSED, WORKING, passed_pins, passing

if TYPE_CHECKING:
    from voxgrad.graph.page import Page, Store


@dataclass(frozen=True, slots=True)
class Value:
    """What a person typed on a pin that has no wire. `dtype` is a name, or "" where the op's own type is meant."""

    value: Any
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a block: what `vg.ops` functions return, what wires start from and sessions fetch."""

    block: Block
    index: int

    @property
    def name(self) -> str:
        """TensorFlow's name of it, `block:0`."""
        return f"{self.block.name}:{self.index}"

    @property
    def pin(self) -> str:
        """The name of the pin, `output`; of a list, `output[2]`."""
        return self.block.output_name(self.index)

    @property
    def path(self) -> str:
        """How files name it, `block.output`."""
        return f"{self.block.name}.{self.pin}"

    @property
    def spec(self) -> Spec:
        """What is known of it without running."""
        return self.block.page.infer().spec(self)

    @property
    def dtype(self) -> DType | None:
        """Its element type, None where it is not known."""
        return self.spec.dtype

    @property
    def shape(self) -> tuple[Any, ...] | None:
        """Its sizes, as integers or symbols; None where the rank is not known."""
        return self.spec.shape

    def __repr__(self) -> str:
        return f"<Output {self.name}>"


Source = Output | Value
"""What a pin can take."""


class Wire(NamedTuple):
    """One connection. `at` is the place in a pin that takes a list."""

    source: Output
    block: Block
    pin: str
    at: int


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of a block, for those who draw it: what it is, and what it holds."""

    block: Block
    name: str
    direction: str
    """"input" or "output"."""
    doc: str
    type: str | DType
    many: bool
    host: bool
    layout: str
    sources: tuple[Source, ...] = ()
    index: int = 0

    @property
    def wires(self) -> tuple[Wire, ...]:
        """The wires that end here."""
        return tuple(
            Wire(source, self.block, self.name, at)
            for at, source in enumerate(self.sources)
            if isinstance(source, Output)
        )


@dataclass(slots=True)
class Own:
    """What a block is while it works, and what page files and drawings show of it."""

    op_name: str
    op: Op | None
    uses: str
    attrs: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, list[Source]] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    """The rules that values were typed as, `normal([2,3], 0, 1, seed=7)`, by their attributes and pins.

    A rule goes when its value changes.
    """


class Block:
    """One use of an op, or of another page, on a page.

    Blocks are made and changed by their page, which keeps names unique and remembers what has to be inferred again.
    `op` is None for a name that is not in the catalogue (the page can still be edited), and for a block that stands
    for a whole page (`uses`). `op`, `op_name`, `uses`, `attrs` and `sources` say what a run does; of a block that is
    bypassed (`mode`) that is an Identity, and `own` holds what it is otherwise.
    """

    __slots__ = ("_extra_outputs", "control", "mode", "name", "own", "position", "store")

    def __init__(self, store: Store, name: str, op_name: str, op: Op | None, uses: str = ""):
        self.store = store
        self.name = name
        self.own = Own(op_name, op, uses)
        self.mode = WORKING
        self.control: list[Block] = []
        self.position: tuple[float, float] | None = None
        self._extra_outputs: dict[str, int] = {}

    @property
    def page(self) -> Page:
        """The page that it is on."""
        return self.store.root

    @property
    def _passes(self) -> tuple[str, str] | None:
        """The input and the output between which it only passes on."""
        return passed_pins(self) if self.mode == BYPASSED else None

    @property
    def op(self) -> Op | None:
        """The op that it runs."""
        passes = self._passes if self.mode else None
        return self.own.op if passes is None else passing(*passes)

    @property
    def op_name(self) -> str:
        """The name of the op that it runs, also of one that is not in the catalogue."""
        return self.own.op_name if not self.mode or self._passes is None else "Identity"

    @property
    def uses(self) -> str:
        """The name of the page that it stands for, "" where it is a block of an op."""
        return self.own.uses if not self.mode or self._passes is None else ""

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that were given."""
        return self.own.attrs if not self.mode or self._passes is None else {}

    @property
    def sources(self) -> dict[str, list[Source]]:
        """What its pins hold."""
        passes = self._passes if self.mode else None
        if passes is None:
            return self.own.sources
        given = self.own.sources.get(passes[0])
        return {passes[0]: given[:1]} if given else {}

    @property
    def typed(self) -> dict[str, str]:
        """The rules that its values were typed as."""
        return self.own.typed

    @property
    def used_page(self) -> Page | None:
        """The page that it stands for, if it does."""
        return self.store.pages.get(self.uses) if self.uses else None

    @property
    def own_page(self) -> Page | None:
        """The page that it stands for while it works."""
        return self.store.pages.get(self.own.uses) if self.own.uses else None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the input pins, in order."""
        return self._names(self.op, self.used_page, self.sources)

    @property
    def own_input_names(self) -> tuple[str, ...]:
        """The names of the input pins that it has while it works."""
        return self._names(self.own.op, self.own_page, self.own.sources)

    @staticmethod
    def _names(op: Op | None, used: Page | None, sources: dict[str, list[Source]]) -> tuple[str, ...]:
        if op is not None:
            return tuple(item.name for item in op.inputs)
        return tuple(sources) if used is None else used.input_names

    @property
    def inputs(self) -> tuple[Pin, ...]:
        """The input pins."""
        if self.op is not None:
            return tuple(self._input_pin(item) for item in self.op.inputs)
        return tuple(
            Pin(self, name, "input", "", "", False, False, "", tuple(self.sources.get(name, ())), index)
            for index, name in enumerate(self.input_names)
        )

    def _input_pin(self, item: model.Input) -> Pin:
        sources = tuple(self.sources.get(item.name, ()))
        return Pin(self, item.name, "input", item.doc, item.type, item.many, item.host, item.layout, sources)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the output pins, in order; each member of a list has its own."""
        if self.op is None:
            used = self.used_page
            return tuple(self._extra_outputs) if used is None else tuple(used.outputs)
        if not any(item.many for item in self.op.outputs):
            return tuple(item.name for item in self.op.outputs)
        return tuple(name for item in self.op.outputs for name in self._names_of(item))

    @property
    def output_count(self) -> int:
        """How many outputs it has."""
        return len(self.output_names) if self.op is None else sum(map(self.count_of, self.op.outputs))

    def _names_of(self, item: model.Output) -> Sequence[str]:
        return [f"{item.name}[{index}]" for index in range(self.count_of(item))] if item.many else [item.name]

    def count_of(self, item: model.Output) -> int:
        """How many tensors an output has: 1, or what its attribute or its list of inputs says."""
        if not item.many:
            return 1
        if item.count in self.sources:
            return len(self.sources[item.count])
        counted = self.attrs.get(item.count)
        if isinstance(counted, (list, tuple)):
            return len(counted)
        if isinstance(counted, int):
            return max(0, min(counted, MAX_LIST))
        declared = next((attr.default for attr in self.op.attrs if attr.name == item.count), None) if self.op else None
        return declared if isinstance(declared, int) else 0

    def output_name(self, index: int) -> str:
        """The name of an output pin; one that the block does not have any more is an entry of its list, or numbered."""
        if self.op is None:
            names = self.output_names
            return names[index] if 0 <= index < len(names) else str(index)
        at = index
        for item in self.op.outputs:
            count = self.count_of(item)
            if item.many and at >= 0 and (at < count or item is self.op.outputs[-1]):
                return f"{item.name}[{at}]"
            if at == 0 and not item.many:
                return item.name
            at -= count
        return str(index)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs."""
        return tuple(Output(self, index) for index in range(self.output_count))

    def output(self, which: int | str = 0) -> Output:
        """An output by number or by name; a block of an unknown op has whatever output is asked for."""
        if isinstance(which, int):
            return Output(self, which)
        at = self._place(which)
        if at is None and which.isdecimal() and len(which) < _DIGITS:
            at = int(which)
        if at is None and self.op is None and self.used_page is None:
            at = self._extra_outputs.setdefault(which, len(self._extra_outputs))
        if at is not None:
            return Output(self, at)
        listed = ", ".join(self.output_names[:_LISTED]) or "none"
        remedy = f"{self.op_name} has {listed}."
        raise InvalidArgumentError(
            Fault("VG050", self.op_name, self.name, "have an output of this name", show(repr(which)), remedy)
        )

    def _place(self, which: str) -> int | None:
        """The number of the output of a name; of an entry of a list, `output[2]`, also where that is too short yet."""
        if self.op is None:
            used = self.used_page
            if used is None:
                return self._extra_outputs.get(which)
            return list(used.outputs).index(which) if which in used.outputs else None
        name, _, entry = which.partition("[")
        at = 0
        for item in self.op.outputs:
            if item.many and item.name == name and entry[:-1].isdecimal() and len(entry) < _DIGITS:
                return at + int(entry[:-1]) if int(entry[:-1]) < MAX_LIST else None
            if item.name == which and not item.many:
                return at
            at += self.count_of(item)
        return None

    @property
    def readers(self) -> tuple[Block, ...]:
        """The blocks that read one of its outputs or wait for it, in the order of their wires."""
        return tuple(self.store.readers.get(self, ()))

    def __repr__(self) -> str:
        return f"<Block {self.name} {self.op_name or self.uses}>"


def outermost(path: str, names: Container[str]) -> str:
    """The block of a page that a path leads into, of pages in it: names may hold slashes themselves."""
    parts = path.split("/")
    whole = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in whole if name in names), path)


def is_variable(source: Output) -> bool:
    """True for an output that is a variable rather than a value."""
    op = source.block.op
    return op is not None and source.index < len(op.outputs) and op.outputs[source.index].ref


MAX_LIST = 4096
"""More outputs than this are a typing error, not a page."""
_DIGITS = 10
_LISTED = 40
"""As many names as an error shows."""
