# SPDX-License-Identifier: Apache-2.0
"""Blocks that stand for pages: folding blocks into a page of their own, and putting them back in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voxgrad.catalog.dims import Dim
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output, Source
from voxgrad.graph.data import same_page
from voxgrad.graph.displays import Display, Shown
from voxgrad.graph.groups import carry_over
from voxgrad.graph.modes import BYPASSED, MUTED
from voxgrad.graph.order import downstream
from voxgrad.graph.page import Page, Store


def follow_pins(used: Store, inputs: Mapping[str, str | None], outputs: Sequence[str]) -> None:
    """Wires of the blocks that stand for a page, after its pins have changed.

    `inputs` are the new names of its input pins, None for those that are gone; `outputs` the names that its output pins
    had.
    """
    places = {at: list(used.outputs).index(name) if name in used.outputs else None for at, name in enumerate(outputs)}
    inputs = {old: new for old, new in inputs.items() if old != new}
    places = {old: new for old, new in places.items() if old != new}
    for owner in used.owners if inputs or places else ():
        for block in owner.users:
            if block.own_page is used.root:
                _follow(owner.root, block, inputs, places)


def _follow(page: Page, block: Block, inputs: Mapping[str, str | None], places: Mapping[int, int | None]) -> None:
    def moved(source: Any) -> Any:
        if not isinstance(source, Output) or source.block is not block:
            return source
        at = places.get(source.index, source.index)
        return None if at is None else Output(block, at)

    pins = {inputs.get(pin, pin): sources for pin, sources in block.own.sources.items()}
    page.set_sources(block, {pin: sources for pin, sources in pins.items() if pin is not None})
    for reader in block.readers:
        sources = {pin: [moved(one) for one in sources] for pin, sources in reader.own.sources.items()}
        page.set_sources(reader, {pin: [one for one in many if one is not None] for pin, many in sources.items()})
    page.displays.rebind(moved)
    exposed = {pin: moved(one) for pin, one in page.outputs.items()}
    if exposed != page.outputs:
        page.expose({pin: one for pin, one in exposed.items() if one is not None}, page.store.inputs)


def inline(page: Page, block: Block) -> Page:
    """Replace a block that stands for a page by copies of the blocks of that page, in a scope of the block's name."""
    with page.pins_followed():
        return _inline(page, block)


def _inline(page: Page, block: Block) -> Page:
    used = block.used_page
    if used is None:
        got, remedy = block.own.op_name or block.own.uses, ""
        if block.mode == BYPASSED and block.own_page is not None:
            got, remedy = "a bypassed block", f"Let it work first: page.set_mode({block.name!r}, '')."
        raise InvalidArgumentError(Fault("VG050", "Page.inline", block.name, "stand for a page", got, remedy))
    if block in block.readers:
        remedy = "Take off its wires to itself first."
        raise InvalidArgumentError(Fault("VG062", "Page.inline", block.name, "not wait for itself", "a ring", remedy))
    inputs = dict(zip(used.input_blocks, used.input_names, strict=True))
    entries = {Output(inner, 0): _entry(block, name) for inner, name in inputs.items()}
    name, control, readers = block.name, list(block.control), _readers(block)
    waiting = [one for one in block.readers if block in one.control]
    exposed, targets, started = dict(page.outputs), list(page.targets), list(page.initializers)
    shown = [(display, display.of) for display in page.displays]
    page.remove(block)
    scope = page.sub(name)
    copies = _copied([one for one in used.blocks if one not in inputs], used, scope, entries)
    for copy in copies.values():
        page.run_after(copy, *control)
        if block.mode == MUTED:
            page.set_mode(copy, MUTED)
    exits = [_moved(one, entries, copies) for one in used.outputs.values()]
    for reader, pin, sources in readers:
        page.disconnect(reader, pin)
        for source in sources:
            page.attach(reader, pin, _rewired(source, block, exits))
    for reader in waiting:
        page.run_after(reader, *copies.values())
    page.expose({pin: _rewired(one, block, exits) for pin, one in exposed.items()}, page.store.inputs)
    page.execute([one for old in targets for one in (copies.values() if old is block else [old])])
    page.start_with([one for old in started for one in (copies.values() if old is block else [old])])
    _inline_displays(block, shown, exits)
    for display in used.displays:
        page.displays.copy(display, lambda one: _live(_moved(one, entries, copies)), f"{name}/{display.name}")
    return scope


_Bound = list[tuple[Display, tuple[Shown, ...]]]
"""Displays with what they were bound to."""


def _inline_displays(block: Block, shown: _Bound, exits: list[Source]) -> None:
    """Displays of the block show what it has become."""
    for display, of in shown:
        moved = [(one, _live(_rewired(one.output, block, exits))) for one in of]
        display.of = tuple(replace(one, output=now) for one, now in moved if now is not None)


def _live(source: Any) -> Output | None:
    return source if isinstance(source, Output) else None


def _entry(block: Block, pin: str) -> Source:
    sources = block.sources.get(pin)
    if not sources:
        raise InvalidArgumentError(Fault("VG001", block.uses, f"{block.name}.{pin}", "be connected", "nothing"))
    return sources[0]


def _readers(block: Block) -> list[tuple[Block, str, list[Source]]]:
    return [
        (reader, pin, list(sources))
        for reader in block.readers
        for pin, sources in reader.own.sources.items()
        if any(isinstance(one, Output) and one.block is block for one in sources)
    ]


def _copied(blocks: Iterable[Block], origin: Page, scope: Page, entries: Mapping[Output, Source]) -> dict[Block, Block]:
    """Copies of blocks of one page in a scope of another, wired among themselves and to what enters."""
    copies: dict[Block, Block] = {}
    for block in blocks:
        own = block.own
        if own.uses:
            inner = origin.pages.get(own.uses)
            copy = scope.use(own.uses if inner is None else available(scope, own.uses, inner), name=block.name)
        else:
            copy = scope.add(own.op or own.op_name, attrs=own.attrs, name=block.name)
        copy.position, copy.mode = block.position, block.mode
        copies[block] = copy
    for block, copy in copies.items():
        for pin, sources in block.own.sources.items():
            for source in sources:
                scope.attach(copy, pin, _moved(source, entries, copies))
        copy.own.typed = dict(block.typed)
        scope.run_after(copy, *(copies[other] for other in block.control if other in copies))
    carry_over(origin, scope, copies)
    return copies


def available(page: Page, name: str, inner: Page) -> str:
    """What a page calls its copy of another, which its blocks are to stand for: as the other, or by a free name."""
    number, free = 0, name
    while free in page.pages and not same_page(page.pages[free].to_dict(), inner.to_dict()):
        number += 1
        free = f"{name}_{number}"
    if free not in page.pages:
        page.define(free, Page.from_dict(inner.to_dict()))
    return free


def take_in(page: Page, other: Page) -> str:
    """Copy a page into those that blocks of another can stand for, with pins; what it is called there."""
    copy = Page.from_dict(other.to_dict())
    with_pins(copy)
    title = copy.origin.name if copy.origin is not None else copy.name
    return available(page, "".join("_" if mark in ":/^" else mark for mark in title).strip() or "page", copy)


def with_pins(page: Page) -> None:
    """Give a page that names no outputs its loose ends as output pins."""
    if not page.outputs:
        loose = [one for block in page.blocks if not block.readers for one in block.outputs]
        names = _pin_names(dict.fromkeys(one for one in loose if one.block not in page.input_blocks))
        page.expose({name: one for one, name in names.items()}, page.store.inputs)


def replace_page(page: Page, name: str, new: Page) -> None:
    """Put a page in place of one that blocks stand for. Wires follow their pins by name; those of pins that the new
    page does not have fall away."""
    old = page.pages.get(name)
    if old is None:
        raise InvalidArgumentError(Fault("VG050", "Page.redefine", "name", "be one of its pages", repr(name)[:80]))
    had, copy = list(old.outputs), Page.from_dict(new.to_dict())
    with_pins(copy)
    names = list(copy.outputs)
    places = {at: names.index(pin) if pin in names else None for at, pin in enumerate(had)}
    gone: dict[str, str | None] = {pin: None for pin in old.input_names if pin not in copy.input_names}
    page.define(name, copy)
    old.store.owners.discard(page.store)
    for block in [one for one in page.blocks if one.uses == name]:
        _follow(page, block, gone, places)


def _moved(source: Source, entries: Mapping[Output, Source], copies: dict[Block, Block]) -> Source:
    if not isinstance(source, Output):
        return source
    return entries[source] if source in entries else Output(copies[source.block], source.index)


def _rewired(source: Source, block: Block, exits: list[Source]) -> Any:
    return exits[source.index] if isinstance(source, Output) and source.block is block else source


def fold(page: Page, blocks: Sequence[Block], name: str) -> Block:
    """Move blocks into a page of their own, and put a block that stands for it in their place."""
    chosen = dict.fromkeys(blocks)
    _check_fold(page, chosen, name)
    inner = Page(name, page.semantics)
    entries = {source: _placeholder(inner, source) for source in _crossing_in(chosen)}
    _line_up([one.block for one in entries.values()], chosen)
    copies = _copied(chosen, page, inner, entries)
    exits = _crossing_out(page, chosen)
    names = _pin_names(exits)
    inner.expose({names[one]: Output(copies[one.block], one.index) for one in exits}, list(entries.values()))
    page.define(name, inner)
    inputs = {placeholder.block.name: source for source, placeholder in entries.items()}
    block = page.use(name, inputs, name=name)
    block.position = next((one.position for one in chosen if one.position is not None), None)
    page.run_after(block, *(one for inside in chosen for one in inside.control if one not in chosen))
    _rewire_readers(page, chosen, block, names)
    page.expose({pin: _outside(one, block, names) for pin, one in page.outputs.items()}, page.store.inputs)
    _fold_displays(page, inner, copies)
    page.displays.rebind(lambda one: _live(_outside(one, block, names)))
    page.remove(*chosen)
    return block


def _fold_displays(page: Page, inner: Page, copies: Mapping[Block, Block]) -> None:
    """What writes to a block goes with it; what shows its values stays, and shows those that leave the new page."""
    for display in page.displays:
        if display.kind.writes and any(one.output.block in copies for one in display.of):
            inner.displays.copy(display, lambda one: Output(copies[one.block], one.index), display.name)
            page.displays.remove(display)


def _check_fold(page: Page, chosen: dict[Block, None], name: str) -> None:
    kept = [one for one in chosen if one in page.targets or one in page.initializers or one in page.store.inputs]
    if not chosen or kept:
        got = kept[0].name if kept else "no block"
        wanted = "be blocks that the page does not run or take by name"
        raise InvalidArgumentError(Fault("VG060", "Page.fold", "blocks", wanted, got))
    if name in page.pages:
        raise InvalidArgumentError(Fault("VG060", "Page.fold", "name", "be one that no other page has", repr(name)))
    behind = downstream(chosen)
    for block in behind - chosen.keys():
        if any(reader in chosen for reader in block.readers):
            wanted = "hold everything that lies between them"
            raise InvalidArgumentError(Fault("VG062", "Page.fold", "blocks", wanted, f"no {block.name}"))


def _crossing_in(chosen: dict[Block, None]) -> dict[Output, None]:
    sources = (one for block in chosen for pin in _pins(block) for one in block.own.sources.get(pin, ()))
    return dict.fromkeys(one for one in sources if isinstance(one, Output) and one.block not in chosen)


def _pins(block: Block) -> list[str]:
    """The pins that a block has wires on, in their order, whichever was wired first."""
    return [*block.own_input_names, *sorted(block.own.sources.keys() - set(block.own_input_names))]


def _crossing_out(page: Page, chosen: dict[Block, None]) -> dict[Output, None]:
    """What the rest of the page reads or shows, and loose ends: a result that nobody reads yet must not get lost."""
    read = [one for block in page.blocks if block not in chosen for many in block.own.sources.values() for one in many]
    loose = [one for block in chosen if not block.readers for one in block.outputs]
    shown = [one.output for display in page.displays if not display.kind.writes for one in display.of]
    return dict.fromkeys(
        one
        for one in [*read, *page.outputs.values(), *loose, *shown]
        if isinstance(one, Output) and one.block in chosen
    )


def _placeholder(inner: Page, source: Output) -> Output:
    """An entry of the new page that knows what the wire carries; sizes that are sums or quotients are left open."""
    spec = source.spec
    attrs: dict[str, Any] = {"dtype": spec.dtype.name if spec.dtype is not None else "float32"}
    sizes = open_sizes(spec.shape)
    if sizes is not None:
        attrs["shape"] = sizes
    return inner.add("Placeholder", attrs=attrs, name=source.block.name.rpartition("/")[2]).output(0)


def _line_up(entries: Sequence[Block], chosen: Iterable[Block]) -> None:
    """Place the entries of a new page in a column to the left of its blocks, where these have places."""
    places = [one.position for one in chosen if one.position is not None]
    if places:
        left, top = (min(place[axis] for place in places) for axis in (0, 1))
        for row, entry in enumerate(entries):
            entry.position = (left - 260.0, top + 120.0 * row)


def open_sizes(shape: Sequence[Any] | None) -> list[Any] | None:
    """A shape as a Placeholder states it: numbers and names stay, sizes that are reckoned from others are left open."""
    return None if shape is None else [_open_size(size) for size in shape]


def _open_size(size: Any) -> Any:
    if not isinstance(size, Dim):
        return size
    return str(size) if str(size) in size.names and str(size).isidentifier() else None


def _pin_names(exits: dict[Output, None]) -> dict[Output, str]:
    """Names for the outputs of the new page: of the blocks, with the pin where a block has several."""
    names: dict[Output, str] = {}
    for one in exits:
        leaf = one.block.name.rpartition("/")[2].replace(".", "_")
        wanted = leaf if len(one.block.output_names) == 1 else f"{leaf}_{one.index}"
        while wanted in names.values():
            wanted += "_"
        names[one] = wanted
    return names


def _outside(source: Any, block: Block, names: dict[Output, str]) -> Any:
    return block.output(names[source]) if isinstance(source, Output) and source in names else source


def _rewire_readers(page: Page, chosen: dict[Block, None], block: Block, names: dict[Output, str]) -> None:
    for reader in [one for one in page.blocks if one not in chosen and one is not block]:
        for pin, sources in list(reader.own.sources.items()):
            if any(isinstance(one, Output) and one in names for one in sources):
                page.disconnect(reader, pin)
                for source in sources:
                    page.attach(reader, pin, _outside(source, block, names))
        if any(one in chosen for one in reader.control):
            page.run_after(reader, block)
