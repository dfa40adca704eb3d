# SPDX-License-Identifier: Apache-2.0
"""A page is a scope: it holds blocks under unique names, and knows what is wrong with them.

    page = vg.Page("second order")
    x = vg.ops.Const(page, value, name="x")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")

As data (`to_dict`, `from_dict`) a page is this structure, which the file formats write. Wires and values differ by
shape; there are no results and no code in it; positions are optional; everything that is empty is left out except
`name`, `semantics` and `blocks`:

    {"name": "second order", "semantics": "documented",
     "blocks": [
        {"name": "x", "op": "Const", "attrs": {"value": <ndarray>, "dtype": "float32"}, "position": [0.0, 0.0]},
        {"name": "pool", "op": "MaxPool3D",
         "attrs": {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"},
         "inputs": {"input": [{"from": "x.output"}]}},
        {"name": "sum", "op": "AddN", "inputs": {"inputs": [{"from": "x.output"}, {"from": "u.output[1]"}]}},
        {"name": "half", "op": "Mul",
         "inputs": {"x": [{"from": "x.output"}], "y": [{"value": 0.5, "dtype": "float32"}]}},
        {"name": "step", "op": "AssignAdd", "inputs": {...}, "control": ["print"]},
        {"name": "r1", "page": "residual", "inputs": {"x": [{"from": "pool.output"}]}, "mode": "bypassed"}],
     "inputs": ["x"],                       # Placeholders that are the input pins where the page is used as a block
     "outputs": {"y": "pool.output"},       # and the outputs that are its output pins, and that a run fetches
     "targets": ["step"],                   # blocks that a run of the page executes besides
     "initializers": ["w/initialize"],      # blocks that a session executes once, before its first run
     "pages": {"residual": {"name": "residual", "semantics": ..., "blocks": [...],
                            "origin": {"name": "residual", "version": "90ab..."}}},      # where it lies in a library
     "displays": [                          # what the drawing shows besides blocks: `voxgrad.graph.displays`
        {"name": "curve", "kind": "trend", "of": [{"from": "pool.output", "at": [0, 0], "label": "first"}],
         "attrs": {"log": true}, "position": [10.0, 20.0], "size": [320.0, 200.0]}],
     "groups": [{"title": "loss", "blocks": ["half", "sum"], "colour": "blue", "collapsed": true}],    # of the drawing
     "notes": [{"text": "...", "position": [10.0, 20.0]}]}    # anything else that belongs to the drawing, kept as it is

Every input pin holds a list, also where it takes one wire. An output is `block.pin`, split at the last dot; a member of
a list of outputs is `block.pin[2]`. `attrs` holds only what was given: plain values, element types by name, shapes as
lists whose open sizes are names or null, and tensors as NumPy arrays. Names may hold `/`: a prefix is a sub-scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from voxgrad.arguments import checked
from voxgrad.arrays.locks import make_lock
from voxgrad.catalog import registry
from voxgrad.catalog.model import Op
from voxgrad.catalog.semantics import SEMANTICS
from voxgrad.doors import through
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.graph.block import Block, Output, Source, Value, Wire
from voxgrad.graph.displays import Displays
from voxgrad.graph.groups import Group, leave, put
from voxgrad.graph.modes import check_mode
from voxgrad.graph.names import checked_part, checked_path, checked_title, free_name
from voxgrad.graph.values import kept
from voxgrad.kernels.arraywise.files import Files

if TYPE_CHECKING:
    from voxgrad.graph.estimate import Estimate
    from voxgrad.graph.infer import Inference
    from voxgrad.graph.problems import Fix, PinProblem
    from voxgrad.graph.reach import Reached
    from voxgrad.graph.trace import Traced


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page was taken from: its name in a library, and which of its versions that was."""

    name: str
    version: str


class Store:
    """What all scopes of one page share."""

    def __init__(self, root: Page, name: str, semantics: str):
        self.root = root
        self.name = name
        self.semantics = semantics
        self.blocks: dict[str, Block] = {}
        self.readers: dict[Block, dict[Block, int]] = {}
        self.scopes: dict[str, int] = {}
        self.counters: dict[str, int] = {}
        self.inputs: list[Block] = []
        self.outputs: dict[str, Output] = {}
        self.targets: list[Block] = []
        self.initializers: list[Block] = []
        self.pages: dict[str, Page] = {}
        self.notes: list[Any] = []
        self.origin: Origin | None = None
        self.displays = Displays(self)
        self.groups: list[Group] = []
        self.revision = 0
        self.lock = make_lock()
        """Held while the page is inferred: sessions in several threads may share a page."""
        self.users: set[Block] = set()
        """Blocks that stand for pages."""
        self.owners: WeakSet[Store] = WeakSet()
        """Pages that can use this one as a block."""
        self.followed = False
        self.dirty: set[Block] = set()
        """Blocks that were changed, added or removed since the last inference."""
        self.inference: Inference | None = None
        self.files = Files()

    def touch(self, *blocks: Block) -> None:
        """Remember that these blocks have changed."""
        self.revision += 1
        self.dirty.update(blocks)

    def link(self, source: Block, reader: Block) -> None:
        """Note one more wire or control edge."""
        readers = self.readers.setdefault(source, {})
        readers[reader] = readers.get(reader, 0) + 1

    def unlink(self, source: Block, reader: Block) -> None:
        """Note one wire or control edge less."""
        readers = self.readers[source]
        readers[reader] -= 1
        if not readers[reader]:
            del readers[reader]


@checked
class Page:
    """A scope of blocks. `page.sub("name")` is a scope inside it: the same page, with a prefix before new names.

    A page owns its constants: what is given to it is copied, and a caller who changes an array later changes nothing
    here. Pages are plain data: they can be edited while they are invalid, and hold neither results nor references to
    those who show them. Every edit goes through a method here, keeps all names and wires consistent and raises
    `revision`.
    """

    def __init__(self, name: str = "page", semantics: str = "documented"):
        self.store = Store(self, checked_title(name), _semantics(semantics))
        self.prefix = ""
        self._op_name = ""
        self._waits: tuple[Block, ...] = ()

    # Scopes

    def _view(self, prefix: str, op_name: str, waits: tuple[Block, ...]) -> Page:
        page = Page.__new__(Page)
        page.store, page.prefix, page._op_name, page._waits = self.store, prefix, op_name, waits
        return page

    def sub(self, name: str, *, unique: bool = False) -> Page:
        """The scope inside this one with this name; with `unique`, one that nobody has used yet."""
        full = checked_path(self.prefix + name)
        return self._view((self.unique_name(full) if unique else full) + "/", "", self._waits)

    def with_op_name(self, name: str) -> Page:
        """This scope, with a name for the next block that is made in it."""
        return self._view(self.prefix, checked_part(name), self._waits)

    def with_control_dependencies(self, blocks: Iterable[Block | Output | str]) -> Page:
        """This scope, where new blocks run after these."""
        return self._view(self.prefix, self._op_name, (*self._waits, *(self.block(one) for one in blocks)))

    def unique_name(self, name: str) -> str:
        """The name, or the name with the first free number behind it: `x`, `x_1`, `x_2`."""
        store = self.store
        return free_name(name, lambda one: one in store.blocks or one in store.scopes, store.counters)

    def _free(self, name: str) -> None:
        """A name is nobody's any more: the search for numbers starts before it."""
        base, _, number = name.rpartition("_")
        counters = self.store.counters
        if base in counters and number.isdecimal():
            counters[base] = min(counters[base], int(number) - 1)

    # What is on the page

    @property
    def name(self) -> str:
        """The title of the page."""
        return self.store.name

    @name.setter
    def name(self, name: str) -> None:
        self.store.name = checked_title(name)

    @property
    def semantics(self) -> str:
        """Which of TensorFlow's answers the page means: a key of `voxgrad.catalog.semantics.SEMANTICS`."""
        return self.store.semantics

    @semantics.setter
    def semantics(self, name: str) -> None:
        self.store.semantics = _semantics(name)
        self.store.touch(*self.store.blocks.values())

    @property
    def files(self) -> Files:
        """The files that blocks may touch, also to look up shapes of volumes without a run. Not part of the page.

        Of a page in a file, those in `files/` beside it; of a page made in a program, none.
        """
        return self.store.files

    @files.setter
    def files(self, files: Files) -> None:
        if files != self.store.files:
            self.store.files, self.store.inference = files, None
            self.store.touch()

    def allow_files(self, *places: str | PathLike[str]) -> None:
        """Let the blocks of the page read and write files of some folders besides."""
        try:
            self.files = self.files.allowing(*places)
        except (OSError, ValueError) as error:
            fault = Fault("VG051", "Page", "allow_files", "be folders", f"{show(list(places))}: {error}")
            raise InvalidArgumentError(fault) from None

    @property
    def revision(self) -> int:
        """A number that rises with every change that matters to inference or to a run."""
        return self.store.revision

    @property
    def notes(self) -> list[Any]:
        """What belongs to the drawing and to nothing else; kept as it is."""
        return self.store.notes

    @property
    def origin(self) -> Origin | None:
        """Where the page was taken from, if it comes from a library."""
        return self.store.origin

    @origin.setter
    def origin(self, origin: Origin | None) -> None:
        self.store.origin = origin

    @property
    def displays(self) -> Displays:
        """What the page shows on its drawing besides its blocks: texts, values, tables, trends, pictures."""
        return self.store.displays

    @property
    def groups(self) -> list[Group]:
        """Blocks that a drawing shows under a common title; `group` and `ungroup` change them."""
        return self.store.groups

    def group(self, title: str, **changes: Any) -> None:
        """Make or change a group: its `blocks`, `colour`, whether it is `collapsed`, `name` for another title."""
        put(self, title, changes)

    def ungroup(self, title: str) -> None:
        """Take a group away; its blocks stay."""
        self.store.groups[:] = [one for one in self.groups if one.title != title]

    @property
    def pages(self) -> Mapping[str, Page]:
        """Pages that blocks of this page can stand for."""
        return self.store.pages

    @property
    def blocks(self) -> list[Block]:
        """The blocks of this scope and of those inside it, in the order in which they were made."""
        blocks = self.store.blocks
        if not self.prefix:
            return list(blocks.values())
        return [block for name, block in blocks.items() if name.startswith(self.prefix)]

    @property
    def wires(self) -> list[Wire]:
        """All wires that end in this scope."""
        return [
            Wire(source, block, pin, at)
            for block in self.blocks
            for pin, sources in block.own.sources.items()
            for at, source in enumerate(sources)
            if isinstance(source, Output)
        ]

    def __len__(self) -> int:
        return len(self.blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.prefix + name in self.store.blocks

    def __getitem__(self, name: str) -> Block:
        return self.block(name)

    def block(self, which: Block | Output | str) -> Block:
        """The block with this name in this scope; blocks and outputs are taken as they are."""
        if isinstance(which, Output):
            which = which.block
        if isinstance(which, Block):
            if self.store.blocks.get(which.name) is not which:
                raise _no_block(which.name, "a block of another page, or one that was removed")
            return which
        found = self.store.blocks.get(self.prefix + which)
        if found is None:
            raise _no_block(self.prefix + which, repr(which))
        return found

    def output(self, which: Output | Block | str) -> Output:
        """An output by any of its names: `block`, `block:0`, `block.output`, `block.output[2]`."""
        if isinstance(which, Output):
            self.block(which.block)
            return which
        if isinstance(which, Block):
            return self.block(which).output(0)
        if self.prefix + which in self.store.blocks:
            return self.block(which).output(0)
        for mark in (".", ":"):
            name, found, pin = which.rpartition(mark)
            if found and self.prefix + name in self.store.blocks:
                return self.block(name).output(pin)
        raise _no_block(self.prefix + which, repr(which))

    # Editing

    def add(
        self,
        op: str | Op,
        inputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        position: tuple[float, float] | None = None,
    ) -> Block:
        """Put a block on the page. Nothing is checked here except names: `problems()` tells what is wrong."""
        declared = op if isinstance(op, Op) else registry.get(op)
        op_name = declared.name if declared is not None else str(op)
        block = self._place(
            Block(self.store, self._free_name(name or self._op_name or _short(op_name)), op_name, declared), position
        )
        block.own.attrs.update({name: kept(value) for name, value in (attrs or {}).items()})
        for pin, given in (inputs or {}).items():
            for source in given if isinstance(given, (list, tuple)) else (given,):
                self.attach(block, pin, source)
        return block

    def use(self, page: str | Page, inputs: Mapping[str, Any] | None = None, *, name: str | None = None) -> Block:
        """Put a whole page on this page as a block: one of `pages`, or another, which is copied into them."""
        if isinstance(page, Page):
            from voxgrad.graph.nesting import take_in

            page = take_in(self.store.root, page)
        block = self._place(Block(self.store, self._free_name(name or self._op_name or page), "", None, page), None)
        for pin, given in (inputs or {}).items():
            for source in given if isinstance(given, (list, tuple)) else (given,):
                self.attach(block, pin, source)
        return block

    def _free_name(self, name: str) -> str:
        checked_path(self.prefix + name)
        return self.unique_name(self.prefix + name)

    def _place(self, block: Block, position: tuple[float, float] | None) -> Block:
        store = self.store
        store.blocks[block.name] = block
        if block.own.uses:
            store.users.add(block)
        self._count_scopes(block.name, 1)
        block.position = position
        for other in self._waits:
            block.control.append(other)
            store.link(other, block)
        store.touch(block)
        return block

    def _count_scopes(self, name: str, by: int) -> None:
        scopes = self.store.scopes
        at = name.find("/")
        while at >= 0:
            scope = name[:at]
            scopes[scope] = scopes.get(scope, 0) + by
            if not scopes[scope]:
                del scopes[scope]
                self._free(scope)
            at = name.find("/", at + 1)

    def attach(self, block: Block, pin: str, given: Any) -> None:
        """Put one more wire or value on a pin, behind those that are there; `problems` tells where it is too many."""
        source = self._source(given)
        block.own.sources.setdefault(pin, []).append(source)
        if isinstance(source, Output):
            self.store.link(source.block, block)
        self.store.touch(block)

    def _source(self, given: Any) -> Source:
        if isinstance(given, (Output, Block)):
            return self.output(given)
        return Value(kept(given.value), given.dtype) if isinstance(given, Value) else Value(kept(given))

    def remove(self, *blocks: Block | Output | str) -> None:
        """Take blocks away, with all wires and control edges that start or end there."""
        gone = dict.fromkeys(self.block(one) for one in blocks)
        with self.pins_followed():
            for block in gone:
                for reader in block.readers:
                    for pin, sources in list(reader.own.sources.items()):
                        kept = [one for one in sources if not (isinstance(one, Output) and one.block is block)]
                        self._set_sources(reader, pin, kept)
                    self._set_control(reader, [one for one in reader.control if one is not block])
                self._forget(block)

    def _forget(self, block: Block) -> None:
        store = self.store
        for pin in list(block.own.sources):
            self._set_sources(block, pin, [])
        self._set_control(block, [])
        store.inputs = [one for one in store.inputs if one is not block]
        store.outputs = {name: one for name, one in store.outputs.items() if one.block is not block}
        store.targets = [one for one in store.targets if one is not block]
        store.initializers = [one for one in store.initializers if one is not block]
        leave(self, [block])
        store.readers.pop(block, None)
        store.displays.rebind(lambda one: None if one.block is block else one)
        del store.blocks[block.name]
        self._free(block.name)
        self._count_scopes(block.name, -1)
        store.users.discard(block)
        store.touch(block)

    def rename(self, block: Block | Output | str, name: str) -> Block:
        """Give a block another name in this scope; wires stay. A name that is taken is an error."""
        found = self.block(block)
        full = checked_path(self.prefix + name)
        if full == found.name:
            return found
        if full in self.store.blocks:
            raise InvalidArgumentError(Fault("VG060", "Page", "name", "be one that no other block has", repr(full)))
        with self.pins_followed():
            self._free(found.name)
            self._count_scopes(found.name, -1)
            blocks = self.store.blocks
            # The order of blocks is part of the page: rebuilding keeps the block at its place.
            if next(reversed(blocks.values())) is found:
                blocks.pop(found.name)
                blocks[full] = found
            else:
                self.store.blocks = {full if one is found else old: one for old, one in blocks.items()}
            found.name = full
            self._count_scopes(full, 1)
            self.store.touch(found, *found.readers)
        return found

    def move(self, block: Block | Output | str, x: float, y: float) -> None:
        """Put a block somewhere else on the drawing. No run and no inference depends on it."""
        self.block(block).position = (float(x), float(y))

    def connect(self, source: Any, block: Block | Output | str, pin: str, at: int | None = None) -> None:
        """Wire an output to a pin, or put a value there.

        A pin that takes one wire takes the new one instead of the old. A list pin takes it as a further entry, or
        instead of entry `at`.
        """
        found = self.block(block)
        made = self._source(self.output(source) if isinstance(source, str) else source)
        sources, op = list(found.own.sources.get(pin, ())), found.own.op
        many = op is not None and any(item.name == pin and item.many for item in op.inputs)
        if at is not None and at < len(sources):
            sources[at] = made
        elif many:
            sources.append(made)
        else:
            sources = [made]
        self._set_sources(found, pin, sources)

    def set_value(self, block: Block | Output | str, pin: str, value: Any, dtype: str = "") -> None:
        """Type a value on a pin; a wire that ends there is taken away."""
        self._set_sources(self.block(block), pin, [self._source(Value(value, dtype))])

    def disconnect(self, block: Block | Output | str, pin: str, at: int | None = None) -> None:
        """Take a wire or value off a pin; of a list pin, entry `at` alone."""
        found = self.block(block)
        sources = found.own.sources.get(pin, [])
        self._set_sources(found, pin, [] if at is None else [one for index, one in enumerate(sources) if index != at])

    def set_sources(self, block: Block, sources: Mapping[str, list[Source]]) -> None:
        """Give a block other wires and values, on all of its pins."""
        for pin in list(block.own.sources):
            self._set_sources(block, pin, [])
        for pin, given in sources.items():
            self._set_sources(block, pin, given)

    def _set_sources(self, block: Block, pin: str, sources: list[Source]) -> None:
        for one in block.own.sources.get(pin, ()):
            if isinstance(one, Output):
                self.store.unlink(one.block, block)
        if sources:
            block.own.sources[pin] = sources
        else:
            block.own.sources.pop(pin, None)
        block.own.typed.pop(pin, None)
        for one in sources:
            if isinstance(one, Output):
                self.store.link(one.block, block)
        self.store.touch(block)

    def _set_control(self, block: Block, control: list[Block]) -> None:
        if control == block.control:
            return
        for one in block.control:
            self.store.unlink(one, block)
        block.control = control
        for one in control:
            self.store.link(one, block)
        self.store.touch(block)

    def run_after(self, block: Block | Output | str, *others: Block | Output | str) -> None:
        """Let a block wait for others (a control edge), also where it takes nothing from them."""
        found = self.block(block)
        new = dict.fromkeys([*found.control, *(self.block(other) for other in others)])
        self._set_control(found, list(new))

    def no_longer_after(self, block: Block | Output | str, *others: Block | Output | str) -> None:
        """Take control edges away."""
        found = self.block(block)
        gone = {self.block(other) for other in others}
        self._set_control(found, [one for one in found.control if one not in gone])

    def set_attr(self, block: Block | Output | str, name: str, value: Any) -> None:
        """Give an attribute a value; None takes it back to its default."""
        found = self.block(block)
        if found.own.uses:
            wanted = "be a block of an op, which has attributes"
            raise InvalidArgumentError(Fault("VG050", "Page", found.name, wanted, f"the page {found.own.uses!r}"))
        if value is None:
            found.own.attrs.pop(name, None)
        else:
            found.own.attrs[name] = kept(value)
        found.own.typed.pop(name, None)
        self.store.touch(found)

    def set_mode(self, block: Block | Output | str, mode: str) -> None:
        """Let a block be "bypassed" (its output is its first input of that type), "muted" (it is not run, and nothing
        that reads from it), or work as usual: "". Its wires and attributes stay."""
        found = self.block(block)
        check_mode(found, mode)
        found.mode = mode
        self.store.touch(found, *found.readers)

    # A page as a block

    @property
    def input_names(self) -> tuple[str, ...]:
        """The input pins of the page as a block: the chosen Placeholders, else all of them."""
        return tuple(block.name for block in self.input_blocks)

    @property
    def input_blocks(self) -> list[Block]:
        """The Placeholders behind the input pins."""
        chosen = self.store.inputs
        return chosen or [block for block in self.store.blocks.values() if block.op_name == "Placeholder"]

    @property
    def outputs(self) -> Mapping[str, Output]:
        """The output pins of the page as a block."""
        return self.store.outputs

    def expose(self, outputs: Mapping[str, Any], inputs: Sequence[Block | Output | str] = ()) -> None:
        """Say what the pins of the page are where it is used as a block."""
        exposed = {checked_part(name): self.output(one) for name, one in outputs.items()}
        if self.store.owners:
            _check_pins(exposed)
        with self.pins_followed():
            self.store.inputs = [self.block(one) for one in inputs]
            self.store.outputs = exposed
            self.store.touch()

    @contextmanager
    def pins_followed(self) -> Iterator[None]:
        """While pins change here: wires of pages that use this one as a block follow them, or go with them."""
        store = self.store
        if store.followed or not store.owners:
            yield
            return
        from voxgrad.graph.nesting import follow_pins

        names, outputs = {one: one.name for one in store.root.input_blocks}, list(store.outputs)
        store.followed = True
        try:
            yield
        finally:
            store.followed = False
            now = {one: one.name for one in store.root.input_blocks}
            follow_pins(store, {name: now.get(one) for one, name in names.items()}, outputs)

    @property
    def targets(self) -> Sequence[Block]:
        """The blocks that a run of the page executes besides computing its outputs."""
        return self.store.targets

    def execute(self, blocks: Sequence[Block | Output | str]) -> None:
        """Say which blocks a run of the page executes besides computing its outputs."""
        self.store.targets = [self.block(one) for one in blocks]
        self.store.touch()

    @property
    def initializers(self) -> Sequence[Block]:
        """The blocks that a session executes once, before its first run: they give variables their first values."""
        return self.store.initializers

    def start_with(self, blocks: Sequence[Block | Output | str]) -> None:
        """Say which blocks a session executes once, before its first run."""
        self.store.initializers = [self.block(one) for one in blocks]
        self.store.touch()

    def define(self, name: str, page: Page) -> None:
        """Make another page available to `use` under a name."""
        if self.store in inside(page.store):
            raise InvalidArgumentError(Fault("VG062", "Page", "page", "not contain the page itself", repr(name)))
        _check_pins(page.outputs)
        self.store.pages[checked_part(name)] = page.store.root
        page.store.owners.add(self.store)
        self.store.touch(*(block for block in self.store.blocks.values() if block.own.uses == name))

    def forget(self, *names: str) -> None:
        """Take away pages that no block stands for."""
        used = {block.uses for block in self.store.users}
        for name in names:
            if name in self.store.pages and name not in used:
                self.store.pages.pop(name).store.owners.discard(self.store)
                self.store.touch()

    def redefine(self, name: str, page: Page) -> None:
        """Put another page in place of one of `pages`: wires of its blocks stay on the pins that both have."""
        from voxgrad.graph.nesting import replace_page

        replace_page(self.store.root, name, page)

    def inline(self, block: Block | Output | str) -> Page:
        """Put the blocks of a page in place of the block that stands for it; returns the scope that they are in."""
        from voxgrad.graph.nesting import inline

        return inline(self.store.root, self.block(block))

    def fold(self, blocks: Sequence[Block | Output | str], name: str) -> Block:
        """Move blocks into a page of their own, one of `pages`; the block that stands for it takes their place."""
        from voxgrad.graph.nesting import fold

        return fold(self.store.root, [self.block(one) for one in blocks], name)

    # What follows from the page

    def infer(self) -> Inference:
        """Element types and shapes of all pins, without running; only what has changed is worked out again."""
        from voxgrad.graph.infer import infer_page

        return infer_page(self.store)

    def problems(self) -> list[PinProblem]:
        """Everything that is wrong with the page, with fixes where there are any."""
        return self.infer().problems()

    def warnings(self) -> list[PinProblem]:
        """What is allowed and most likely not meant, with fixes where there are any; the page runs all the same."""
        from voxgrad.graph.lint import warnings_of

        return warnings_of(self.infer())

    def apply(self, fix: Fix | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Carry out a fix, or edits given as data."""
        from voxgrad.graph.edits import apply

        apply(self, fix)

    def estimate(self, sizes: Mapping[str, int] | None = None) -> Estimate:
        """Bytes and operations of every block and the peak of the page, before anything runs.

        `sizes` gives numbers to symbols, as in `{"N": 1, "D": 128}`.
        """
        from voxgrad.graph.estimate import estimate

        return estimate(self, sizes)

    def trace(
        self, which: Output | Block | str, index: Sequence[int], depth: int = 1, values: Mapping[str, Any] | None = None
    ) -> Traced:
        """Where an element of an output comes from: its window in every input, through `depth` blocks.

        `values` are arrays of a run by the paths of their outputs: with what a max pool reads, its winner is told.
        """
        from voxgrad.graph.trace import trace

        known = values or {}
        return trace(self, self.output(which), index, depth, lambda output: known.get(output.path))

    def reach(self, which: Output | Block | str, index: Sequence[int], depth: int = 1) -> list[Reached]:
        """Where an element of an output goes: the elements of other outputs that read it, through `depth` blocks."""
        from voxgrad.graph.reach import reach

        return reach(self, self.output(which), index, depth)

    def to_dict(self) -> dict[str, Any]:
        """The page as plain data; the module's documentation shows the structure."""
        from voxgrad.graph.data import to_dict

        return to_dict(self.store.root)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Page:
        """The page that `to_dict` described. The structure is checked; what the blocks mean is not."""
        from voxgrad.graph.data import from_dict

        return from_dict(data)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page file, `*.vox.json`; large constants go into a folder beside it."""
        through("page_file").save(self.store.root, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Page:
        """The page in a page file, or in a picture that was drawn from a page."""
        page = through("page_file").load(path)
        assert isinstance(page, Page)
        return page

    def _repr_svg_(self) -> str:
        return str(through("picture").draw_svg(self.store.root))

    def __repr__(self) -> str:
        scope = f", scope {self.prefix[:-1]!r}" if self.prefix else ""
        return f"<Page {self.name!r}{scope}: {len(self.blocks)} blocks>"


def _short(op_name: str) -> str:
    """The name of an op without that of its package: what a block of it is called."""
    return op_name.rpartition(".")[2] or op_name


def inside(store: Store) -> list[Store]:
    """A page and all pages that its blocks can stand for, at any depth."""
    return [store, *(deep for inner in store.pages.values() for deep in inside(inner.store))]


def _check_pins(outputs: Mapping[str, Output]) -> None:
    """Where a page is used as a block, its outputs are called `block.pin`, split at the last dot."""
    for name in outputs:
        if "." in name:
            raise InvalidArgumentError(Fault("VG061", "Page", "outputs", "have names without '.'", repr(name)[:60]))


def _semantics(name: Any) -> str:
    if name in SEMANTICS:
        return str(name)
    raise InvalidArgumentError(
        Fault("VG003", "Page", "semantics", f"be {' or '.join(map(repr, SEMANTICS))}", repr(name)[:60])
    )


def _no_block(name: str, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG050", "Page", name, "be a block of this page", got))
