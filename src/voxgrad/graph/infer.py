# SPDX-License-Identifier: Apache-2.0
"""Element types and shapes of every pin without running, and everything that is wrong, found in one pass.

After an edit only the changed blocks are looked at again, and those behind them whose inputs really changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from voxgrad.catalog import packages, registry
from voxgrad.catalog.dtypes import RESOURCE
from voxgrad.catalog.model import Call, Input, Op, Shape, Spec
from voxgrad.errors import Fault, Faults
from voxgrad.graph.block import Block, Output, Source, Value, is_variable
from voxgrad.graph.modes import BYPASSED, MUTED, cannot_pass, passed_pins
from voxgrad.graph.order import downstream, order
from voxgrad.graph.page import Store, inside
from voxgrad.graph.problems import PinProblem
from voxgrad.graph.rules import check_pins, given_attributes, host_values, infer_call
from voxgrad.graph.values import read_pins, spec_of
from voxgrad.graph.volume_files import Stamp, header, stamp

MOST_BLOCKS = 20_000
"""Blocks of a page with every page that its blocks stand for in their place. A few lines of pages that use each other
could state any number of them."""
UNKNOWN = Spec()
Bound = Mapping[Output, Spec]
"""What is known of outputs from outside: feeds, or the wires into a page that is used as a block."""


def infer_page(store: Store) -> Inference:
    """The inference of a page, brought up to date."""
    with store.lock:
        if store.inference is None:
            store.inference = Inference(store, {})
        store.inference.update()
        return store.inference


class Inference:
    """What is known of a page. `specs` has one entry per output of every block."""

    def __init__(self, store: Store, bound: Bound, path: tuple[Store, ...] = ()):
        self.store = store
        self.bound = bound
        self.specs: dict[Block, tuple[Spec, ...]] = {}
        self.calls: dict[Block, Call] = {}
        self.arrays: dict[Block, dict[str, list[Any]]] = {}
        """Per pin what was typed there as arrays, a Spec in the place of a wire."""
        self.inner: dict[Block, Inference] = {}
        self._faults: dict[Block, Faults] = {}
        self._path = (*path, store)
        self._revisions: tuple[int, ...] = ()
        self._problems: list[PinProblem] | None = None
        self._cycles: list[list[Block]] = []
        self._refused: set[Block] = set()
        """Blocks that stand for pages of too many blocks."""
        self._looked: dict[Block, tuple[str, Stamp]] = {}
        """Blocks whose shapes come from files, with what was seen of the files."""

    @property
    def is_inner(self) -> bool:
        """True for a page that a block of another page stands for."""
        return len(self._path) > 1

    def spec(self, output: Output) -> Spec:
        """What is known of an output."""
        specs = self.specs.get(output.block, ())
        return specs[output.index] if 0 <= output.index < len(specs) else UNKNOWN

    def input_specs(self, block: Block, pin: str) -> tuple[Spec, ...]:
        """What is known of all that enters a pin."""
        call = self.calls.get(block)
        if call is None or pin not in call.inputs:
            return tuple(self.spec(one) if isinstance(one, Output) else UNKNOWN for one in block.sources.get(pin, ()))
        found = call.inputs[pin]
        return found if isinstance(found, tuple) else (found,)

    def as_dict(self) -> dict[str, Any]:
        """Types and shapes of all pins as plain data: `{block: {"inputs": {pin: [...]}, "outputs": {pin: ...}}}`."""
        return {
            block.name: {
                "inputs": {pin: [_shown(one) for one in self.input_specs(block, pin)] for pin in block.input_names},
                "outputs": {name: _shown(self.spec(Output(block, at))) for at, name in enumerate(block.output_names)},
            }
            for block in self.store.blocks.values()
        }

    def update(self) -> None:
        """Work out what has changed since the last time, and what stands behind it."""
        store = self.store
        revisions = tuple(one.revision for one in inside(store))
        stale = self._stale()
        if self._revisions == revisions and not stale:
            return
        if len(self._path) == 1:
            self._refused = _too_many(store)
        if not self._revisions:
            self._work(dict.fromkeys(store.blocks.values()), set(store.blocks.values()))
        else:
            dirty = store.dirty | store.users | stale
            gone = [block for block in dirty if store.blocks.get(block.name) is not block]
            for block in gone:
                self._forget(block)
            dirty.difference_update(gone)
            self._work(downstream(dirty), dirty)
        if store.inference is self:
            store.dirty.clear()
        self._revisions = revisions

    def _stale(self) -> set[Block]:
        """Blocks whose files are not what they were, and those that stand for pages with such blocks."""
        files = self._path[0].files
        found = {block for block, (name, seen) in self._looked.items() if stamp(files, name) != seen}
        return found | {block for block, inner in self.inner.items() if inner._stale()}

    def given(self, bound: Bound) -> Inference:
        """The same page with more known from outside; only what depends on that is worked out again."""
        made = Inference(self.store, bound, self._path[:-1])
        made.specs, made.calls, made.inner = dict(self.specs), dict(self.calls), dict(self.inner)
        made.arrays = dict(self.arrays)
        made._faults, made._cycles, made._revisions = dict(self._faults), list(self._cycles), self._revisions
        made._looked, made._refused = dict(self._looked), set(self._refused)
        dirty = {output.block for output in bound}
        for output, spec in bound.items():
            # A feed that is what was known of it changes nothing behind it, unless it heals a fault there.
            same = spec == self.spec(output)
            dirty.update(reader for reader in output.block.readers if not same or self._faults.get(reader))
        made._work(downstream(dirty), dirty)
        return made

    def _work(self, affected: Collection[Block], dirty: set[Block]) -> None:
        """Infer all dirty blocks, and those affected ones whose inputs turn out to have changed."""
        found = order(affected, within=affected)
        if found.cycles or self._cycles:
            # Which rings are told, and what their blocks know of each other, goes by the order of the page, as if it
            # were opened now.
            dirty = set(self.store.blocks.values())
            found = order(self.store.blocks.values())
            self.specs.clear()
        self._cycles = found.cycles
        changed: set[Block] = set()
        for block in found.blocks:
            if block in dirty or self._reads(block, changed):
                specs = self._infer(block)
                if not _same_specs(specs, self.specs.get(block)):
                    changed.add(block)
                self.specs[block] = specs
        self._problems = None

    def _forget(self, block: Block) -> None:
        self.specs.pop(block, None)
        self.calls.pop(block, None)
        self.arrays.pop(block, None)
        self.inner.pop(block, None)
        self._looked.pop(block, None)
        self._faults.pop(block, None)
        self._cycles = [ring for ring in self._cycles if block not in ring]

    @staticmethod
    def _reads(block: Block, changed: set[Block]) -> bool:
        return any(
            isinstance(source, Output) and source.block in changed
            for sources in block.sources.values()
            for source in sources
        )

    def _infer(self, block: Block) -> tuple[Spec, ...]:
        faults = self._faults[block] = Faults(block.op_name or block.uses)
        self.calls.pop(block, None)
        if block.mode == BYPASSED and passed_pins(block) is None:
            faults.found.append(cannot_pass(block, block.op_name or block.uses))
        count = block.output_count
        if self.bound:
            fed = [self.bound.get(Output(block, index)) for index in range(count)]
            if fed and all(spec is not None for spec in fed):
                return tuple(spec or UNKNOWN for spec in fed)
        if block.op is not None:
            return self._infer_op(block, block.op, count, faults)
        if block.uses:
            return self._infer_use(block, faults)
        found = packages.missing(block.op_name)
        if found is not None:
            faults.add(found.code, "", wanted=found.wanted, got=found.got, remedy=found.remedy)
            return (UNKNOWN,) * count
        remedy = registry.nearest(block.op_name)
        faults.add("VG050", "", wanted="be an op of the catalogue", got=repr(block.op_name), remedy=remedy)
        return (UNKNOWN,) * count

    def _infer_op(self, block: Block, op: Op, count: int, faults: Faults) -> tuple[Spec, ...]:
        attrs = given_attributes(block, op, faults)
        check_pins(block, op, faults)
        inputs = self._inputs(block, op, faults)
        self._looked.pop(block, None)
        header = partial(self._header, block) if self._path[0].files else None
        call = self.calls[block] = Call(op, inputs, attrs, self.store.semantics, block.name, header)
        specs = infer_call(call, faults)
        return (UNKNOWN,) * count if specs is None else specs

    def _header(self, block: Block, name: str, axes: str) -> Shape:
        """The shape of a volume in a file that the page may read."""
        files = self._path[0].files
        self._looked[block] = name, stamp(files, name)
        return tuple(header(files, name, axes)["shape"])

    def _inputs(self, block: Block, op: Op, faults: Faults) -> dict[str, Any]:
        """The specs of all inputs; typed values take the type of what is wired beside them."""
        sources: dict[str, list[Value | Spec]] = {}
        for item in op.inputs:
            given = block.sources.get(item.name, ())
            if not item.many and len(given) > 1:
                faults.add("VG001", item.name, wanted="take one wire", got=f"{len(given)}", remedy="Keep one of them.")
            sources[item.name] = [self._source(one, item, faults) for one in given]
        arrays = self.arrays[block] = read_pins(op, sources, faults)
        return {item.name: self._given(item, [_spec(one) for one in arrays[item.name]], faults) for item in op.inputs}

    def _source(self, source: Source, item: Input, faults: Faults) -> Value | Spec:
        if isinstance(source, Output):
            return self._wired(source, item, faults)
        if item.ref or item.type is RESOURCE:
            wanted = "be a variable" if item.ref else "be wired to the block that makes it"
            faults.add("VG011", item.name, wanted=wanted, got="a value")
            return UNKNOWN
        return source

    def _wired(self, source: Output, item: Input, faults: Faults) -> Spec:
        specs = self.specs.get(source.block)
        if specs is not None and source.index >= len(specs):
            has = f"{source.block.name} has {len(specs)} outputs"
            faults.add("VG063", item.name, wanted=f"be wired to an output: {has}", got=source.name)
            return UNKNOWN
        if item.ref and not is_variable(source) and not (self.bound and source.block.op_name == "Placeholder"):
            remedy = "Wire it to a Variable, or to a block that changes one."
            faults.add("VG011", item.name, wanted="be a variable", got=source.path, remedy=remedy)
        spec = self.bound.get(source) if self.bound else None
        # A block of a ring has no specs yet when its reader comes first.
        return spec or (specs[source.index] if specs is not None else UNKNOWN)

    @staticmethod
    def _given(item: Input, specs: list[Spec], faults: Faults) -> Any:
        if not specs and not (item.many and item.least == 0):
            faults.add("VG001", item.name, wanted="be connected or have a value", got="nothing", remedy=item.doc)
        if item.many:
            return tuple(specs)
        spec = specs[0] if specs else UNKNOWN
        if item.host and spec.value is not None:
            return Spec(spec.dtype, spec.shape, host_values(spec.value))
        return spec

    def _infer_use(self, block: Block, faults: Faults) -> tuple[Spec, ...]:
        page = block.used_page
        if page is None:
            faults.add("VG050", "", wanted="be a page inside this page", got=repr(block.uses))
            return (UNKNOWN,) * block.output_count
        if page.store in self._path:
            faults.add("VG062", "", wanted="not contain itself", got=repr(block.uses))
            return (UNKNOWN,) * block.output_count
        self.inner.pop(block, None)
        if block in self._refused:
            wanted = f"stand for a page that makes this one {MOST_BLOCKS:,} blocks at most, all pages unfolded"
            faults.add("VG021", "", wanted=wanted, got=f"{_unfolded(page.store, {}):,} in {block.uses!r}")
            return (UNKNOWN,) * block.output_count
        bound = {}
        for name, inner in zip(page.input_names, page.input_blocks, strict=True):
            sources = block.sources.get(name, ())
            if not sources:
                faults.add("VG001", name, wanted="be connected or have a value", got="nothing")
            bound[Output(inner, 0)] = self._use_spec(block, name, sources[0], faults) if sources else UNKNOWN
        for inner in page.blocks:
            if inner.op_name == "Placeholder" and Output(inner, 0) not in bound and inner.mode != MUTED:
                remedy = "Make it one (edit expose, inputs), or take it away."
                wanted = f"stand for a page whose placeholders are its inputs: nothing can feed {inner.name}"
                faults.add("VG001", "", wanted=wanted, got=repr(block.uses), remedy=remedy)
        inference = self.inner[block] = Inference(page.store, bound, self._path)
        inference.update()
        return tuple(inference.spec(output) for output in page.outputs.values())

    def _use_spec(self, block: Block, name: str, source: Source, faults: Faults) -> Spec:
        if isinstance(source, Output):
            return self.spec(source)
        # What is typed on a pin of a page has the type that it would have on Identity.
        found = read_pins(registry.OPS["Identity"], {"input": [source]}, faults)["input"]
        self.arrays.setdefault(block, {})[name] = found
        return _spec(found[0])

    def problems(self, prefix: str = "", only: set[Block] | None = None) -> list[PinProblem]:
        """Everything that is wrong, in the order of the page; of some blocks `only` where given."""
        if self._problems is None:
            self._problems = self._collect()
        if not prefix and only is None:
            return list(self._problems)
        names = None if only is None else {block.name for block in only}
        return [
            PinProblem(
                prefix + one.block,
                one.pin,
                one.op,
                one.code,
                one.wanted,
                one.got,
                one.remedy,
                () if prefix else one.fixes,
            )
            for one in self._problems
            if names is None or one.block in names or any(one.block.startswith(f"{name}/") for name in names)
        ]

    def _collect(self) -> list[PinProblem]:
        from voxgrad.graph.fixes import fixes_for

        found = [_cycle_problem(ring) for ring in self._cycles]
        for block in self.store.blocks.values():
            if block.mode == MUTED:
                continue
            faults = self._faults.get(block)
            for fault in faults.found if faults is not None else ():
                fixes = fixes_for(self, block, fault, faults.expected.get(fault)) if faults is not None else ()
                found.append(_problem(block, fault, fixes))
            if block in self.inner:
                found.extend(self.inner[block].problems(f"{block.name}/"))
        return found


def _spec(found: Any) -> Spec:
    """What is known of a pin: of a wire, or of the array that was made of a typed value."""
    return UNKNOWN if found is None else found if isinstance(found, Spec) else spec_of(found)


def _unfolded(store: Store, known: dict[Store, int]) -> int:
    """How many blocks a page has with all others in their places; no more are counted than are too many."""
    if store not in known:
        # A page that contains itself is told elsewhere.
        known[store] = len(store.blocks)
        inner = sum(_unfolded(user.used_page.store, known) for user in store.users if user.used_page is not None)
        known[store] = len(store.blocks) + inner
    return known[store]


def _too_many(store: Store) -> set[Block]:
    """The blocks with whose pages a page becomes too large."""
    known: dict[Store, int] = {}
    if not store.users or _unfolded(store, known) <= MOST_BLOCKS:
        return set()
    total, found = len(store.blocks), set()
    for block in store.blocks.values():
        page = block.used_page
        size = known.get(page.store, 0) if page is not None else 0
        if total + size > MOST_BLOCKS and size:
            found.add(block)
        else:
            total += size
    return found


def _shown(spec: Spec) -> dict[str, Any]:
    """A spec as plain data; symbolic sizes as text, None for what is not known."""
    sizes = None if spec.shape is None else [size if isinstance(size, int) else str(size) for size in spec.shape]
    return {"dtype": None if spec.dtype is None else spec.dtype.name, "shape": sizes}


def _problem(block: Block, fault: Fault, fixes: Any) -> PinProblem:
    return PinProblem(block.name, fault.argument, fault.op, fault.code, fault.wanted, fault.got, fault.remedy, fixes)


def _cycle_problem(ring: list[Block]) -> PinProblem:
    names = [block.name for block in ring]
    first = names.index(min(names))
    names = names[first:] + names[:first]
    shown = " <- ".join([*names[:6], *(["..."] if len(names) > 6 else []), names[0]])
    return PinProblem(
        names[0],
        "",
        ring[first].op_name,
        "VG062",
        "run before the blocks that read it",
        shown,
        "Take one of these wires away.",
    )


def _same_specs(a: tuple[Spec, ...], b: tuple[Spec, ...] | None) -> bool:
    if b is None or len(a) != len(b):
        return False
    return all(
        one.dtype == two.dtype and one.shape == two.shape and _same_values(one.value, two.value)
        for one, two in zip(a, b, strict=True)
    )


def _same_values(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return a is b or host_values(a) == host_values(b)
