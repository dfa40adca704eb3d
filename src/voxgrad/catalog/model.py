# SPDX-License-Identifier: Apache-2.0
"""What a declaration is made of. An op is declared once; everything else is derived from the declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from voxgrad.catalog.dtypes import DType, plain
from voxgrad.catalog.once import once
from voxgrad.errors import Faults

Shape = tuple[Any, ...]
"""Sizes as integers, or as symbols where a page leaves them open."""


class _Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Side(Enum):
    """Where a tensor of a windowed op lies: along the cells that windows read, the windows, or the taps of each."""

    CELLS = "cells"
    WINDOWS = "windows"
    TAPS = "taps"

    @property
    def layout(self) -> str:
        """How the dimensions of a tensor there are ordered."""
        return "filter" if self is Side.TAPS else "data"


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor argument.

    `type` names one of the op's type variables, or is a fixed element type. A `host` input is a small vector of
    integers whose values decide shapes. `many` marks a list of tensors, `least` or more, of one type unless `mixed`;
    TensorFlow counts those of one type in an attribute of the name `number`. A `ref` input needs the variable itself,
    not its value. `layout` says how the dimensions of a tensor are ordered: "data" follows data_format, "filter" never
    changes, "" has no order. In windowed ops that follows from the `side` on which the tensor lies; a host input states
    the shape of a tensor on its side.
    """

    name: str
    type: str | DType
    doc: str
    shape: str = ""
    host: bool = False
    many: bool = False
    layout: str = ""
    mixed: bool = False
    ref: bool = False
    least: int = 1
    number: str = "N"
    side: Side | None = None

    def __post_init__(self) -> None:
        if self.side is not None and not self.host:
            object.__setattr__(self, "layout", self.side.layout)


@dataclass(frozen=True, slots=True)
class Attr:
    """A typed attribute. `kind` is one of the keys of `voxgrad.catalog.attributes.KINDS`.

    `also` reads a text that is none of the `choices` and gives it in its one form, or None. `wide`: a list of integers
    of 64 bits.
    """

    name: str
    kind: str
    doc: str
    default: Any = REQUIRED
    choices: tuple[Any, ...] = ()
    length: int | None = None
    also: Callable[[str], str | None] | None = None
    wide: bool = False

    @property
    def required(self) -> bool:
        """True where a call must give it."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class Output:
    """A result. `type` (which may also name an attribute), `many`, `mixed`, `layout` and `side` as in Input.

    Of a `many` output, `count` names the attribute that says how many there are: an integer, or a list by its length;
    or the `many` input that it goes with. A `ref` output is a variable: a reader gets its value at that time.
    """

    name: str
    type: str | DType
    doc: str
    shape: str = ""
    many: bool = False
    layout: str = ""
    count: str = ""
    mixed: bool = False
    ref: bool = False
    side: Side | None = None

    def __post_init__(self) -> None:
        if self.side is not None:
            object.__setattr__(self, "layout", self.side.layout)


@dataclass(frozen=True, slots=True)
class Map:
    """What a windowed op does, as a map between sides.

    The side of its output is its direction: a map to WINDOWS runs forward, one to CELLS is transposed in the data, one
    to TAPS in the taps. `inputs` are the sides of its tensors in order, without stated shapes. `of` names the forward
    op that it belongs to. A map that `selects` takes one cell of every window, its maximum; all others are linear.
    """

    of: str
    inputs: tuple[Side, ...]
    output: Side
    selects: bool = False

    @property
    def has_taps(self) -> bool:
        """True where windows weigh their cells with a filter."""
        return Side.TAPS in (*self.inputs, self.output)

    @property
    def needs_whole_windows(self) -> bool:
        """True where what a cell gets depends on the other cells of its windows."""
        return self.output is Side.CELLS and Side.CELLS in self.inputs


@dataclass(frozen=True, slots=True)
class Law:
    """A promise about an edge: ties, NaN, empty tensors, padding."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a tensor before it is computed. None means unknown.

    `value` holds the elements of a small constant in row-major order, integers or symbols for shapes.
    """

    dtype: DType | None = None
    shape: Shape | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Call:
    """An op with the specs of its inputs and its canonical attributes, ready to be validated.

    A `many` input is a tuple of specs. `block` names the caller, for sizes that only a run can tell.
    `header(name, axes)` tells the shape of a volume in a file of the page's folder, or raises; it is None where there
    is no folder.
    """

    op: Op
    inputs: Mapping[str, Any]
    attrs: Mapping[str, Any]
    semantics: str = "documented"
    block: str = ""
    header: Callable[[str, str], Shape] | None = None
    solved: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)
    """The problem of a windowed call once it was made, for who asks again; `catalog.problem.solve` keeps it here."""


class Node(Protocol):
    """A use of an op, as its gradient sees it."""

    @property
    def inputs(self) -> Sequence[Any]:
        """Its input values, in order."""
        ...

    @property
    def outputs(self) -> Sequence[Any]:
        """Its output values, in order."""
        ...

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Its attributes."""
        ...


Gradient = Callable[[Any, Node, Sequence[Any]], Sequence[Any]]
"""`gradient(build, node, dys)` returns one value or None per input. `build.<Op>(*inputs, **attrs)` makes an op:
a block on a page, or a number at once, whichever the builder stands for. It returns one value, or a tuple with one
entry per output. Lists of tensors (`many`) are lists in `node.inputs`, `node.outputs`, `dys` and in what is returned.
A Python number or list given for an input becomes a constant of the type that the other inputs ask for. A `dy` is None
where nothing depends on that output."""


@dataclass(frozen=True)
class Op:
    """The declaration of an op.

    `types` gives each type variable its element types. `infer(call, faults)` returns the specs of the outputs, or
    None after noting faults; a `many` output has a tuple of specs. `problem(call, faults)` does the same for the
    windowed family, whose kernels need a canonical problem. `kernel` of an ordinary op is "module.function" in
    `voxgrad.kernels.arraywise`, of a package's op "module:function" anywhere; those of the family are found by its
    name. `linear_in` names the inputs in which the op is linear: there its gradient is its transpose. `own` marks an op
    that TensorFlow does not have; `package` is the one that brings it, with its version, "" for the catalogue's own.

    `of` and `selects` say with the sides of inputs and output what a windowed op does (see Map); a forward op is
    of itself.

    These facts say how an ordinary op runs on parts of a volume. `follows` tells which dimensions of the result the
    dimensions of the inputs follow cell by cell (`catalog/locality`); without it the op needs its inputs whole.
    `adds_up` names how the result over a whole is made of the results over its parts: their "sum", "prod", "max",
    "min", "all" or "any", or their "mean", weighted by their sizes. `of_shape` marks an op that looks only at the
    shapes of its inputs. `made_of(build, node)` returns the outputs as other ops make them, where these can do on parts
    what one kernel for all of it cannot.

    `lies` says where the cells of a result lie in the inputs, in space: it is given where an op moves cells, or keeps
    their places though it does not follow them. Windowed ops say it by their windows; others lie where they follow.
    An op that only `moves` cells has in each cell of its result what lies there, and where nothing does, 0 or what the
    input named by `fill` holds.

    `deprecated` is what TensorFlow says of an op that it would rather not have any more: what to use in its place.
    """

    name: str
    group: str
    summary: str
    inputs: tuple[Input, ...]
    attrs: tuple[Attr, ...] = ()
    outputs: tuple[Output, ...] = ()
    types: Mapping[str, tuple[DType, ...]] = field(default_factory=dict)
    type_defaults: Mapping[str, DType] = field(default_factory=dict)
    doc: str = ""
    laws: tuple[Law, ...] = ()
    example: str = ""
    infer: Callable[[Call, Faults], tuple[Spec, ...] | None] | None = None
    problem: Callable[[Call, Faults], Any] | None = None
    kernel: str = ""
    gradient: Gradient | None = None
    linear_in: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    stateful: bool = False
    follows: Callable[[Call, Shape], Sequence[Any]] | None = None
    lies: Callable[[Call, Shape, int], list[Any]] | None = None
    adds_up: str = ""
    of_shape: bool = False
    made_of: Callable[[Any, Node], Sequence[Any]] | None = None
    moves: bool = False
    fill: str = ""
    own: bool = False
    of: str = ""
    selects: bool = False
    deprecated: str = ""
    package: str = ""

    def input(self, name: str) -> Input:
        """The input with this name."""
        return next(item for item in self.inputs if item.name == name)

    def attr(self, name: str) -> Attr:
        """The attribute with this name."""
        return next(item for item in self.attrs if item.name == name)

    @property
    def parameters(self) -> tuple[Input | Attr, ...]:
        """All arguments in the order of the signature."""
        return (*self.inputs, *self.attrs)

    @once
    def map(self) -> Map:
        """What a windowed op does."""
        sides = tuple(item.side for item in self.inputs if item.side is not None and not item.host)
        output = self.outputs[0].side
        assert output is not None, f"{self.name} is not windowed"
        return Map(self.of or self.name, sides, output, self.selects)

    @property
    def maxima(self) -> str:
        """The input with the maxima of a selection that was made before; "" where the op finds them itself."""
        given = (item.name for item in self.inputs if item.side is Side.WINDOWS and item.name not in self.linear_in)
        return next(given, "")

    def allowed(self, type_: str | DType) -> tuple[DType, ...]:
        """The element types behind a type variable or a fixed type."""
        return self.types[type_] if isinstance(type_, str) else (type_,)

    def taken(self, type_: str | DType, dtype: DType) -> DType:
        """As which of them elements of a type are taken: quantised integers and plain ones stand for each other."""
        allowed = self.allowed(type_)
        return dtype if dtype in allowed else next((one for one in allowed if plain(one) is plain(dtype)), dtype)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"
