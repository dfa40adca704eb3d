# SPDX-License-Identifier: Apache-2.0
"""A page as plain data and back. The structure is described in `voxgrad.graph.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.doors import through
from voxgrad.errors import Faults, InvalidArgumentError
from voxgrad.graph.block import Block, Output, Source, Value
from voxgrad.graph.displays import Display, Shown
from voxgrad.graph.modes import MODES, WORKING
from voxgrad.graph.page import Origin, Page

MAX_DEPTH = 16
"""Pages inside pages; deeper nesting is an attack or a mistake."""

MOST_FAULTS = 100
"""A person reads fewer; a file can have millions."""

_PAGE_KEYS = {
    "name", "semantics", "blocks", "inputs", "outputs", "targets", "initializers", "pages", "displays", "groups",
    "notes", "origin",
}  # fmt: skip
_GROUP_KEYS = {"title", "blocks", "colour", "collapsed"}
_BLOCK_KEYS = {"name", "op", "page", "attrs", "inputs", "typed", "control", "position", "mode"}
_DISPLAY_KEYS = {"name", "kind", "of", "attrs", "position", "size"}


def to_dict(page: Page) -> dict[str, Any]:
    """The page as plain data."""
    store = page.store
    data: dict[str, Any] = {
        "name": page.name,
        "semantics": page.semantics,
        "blocks": [_block_to_dict(block) for block in store.blocks.values()],
    }
    if store.inputs:
        data["inputs"] = [block.name for block in store.inputs]
    if store.outputs:
        data["outputs"] = {name: output.path for name, output in store.outputs.items()}
    if store.targets:
        data["targets"] = [block.name for block in store.targets]
    if store.initializers:
        data["initializers"] = [block.name for block in store.initializers]
    if store.pages:
        data["pages"] = {name: to_dict(inner) for name, inner in store.pages.items()}
    if len(store.displays):
        data["displays"] = [_display_to_dict(display) for display in store.displays]
    if store.groups:
        data["groups"] = [group.as_dict() for group in store.groups]
    if store.notes:
        data["notes"] = list(store.notes)
    if store.origin is not None:
        data["origin"] = {"name": store.origin.name, "version": store.origin.version}
    return data


def _display_to_dict(display: Display) -> dict[str, Any]:
    data: dict[str, Any] = {"name": display.name, "kind": display.kind.name}
    if display.of:
        data["of"] = [_shown_to_dict(one) for one in display.of]
    if display.attrs:
        data["attrs"] = dict(display.attrs)
    return data | {"position": list(display.position), "size": list(display.size)}


def _shown_to_dict(shown: Shown) -> dict[str, Any]:
    data: dict[str, Any] = {"from": shown.output.path}
    if shown.at:
        data["at"] = list(shown.at)
    return data | {"label": shown.label} if shown.label else data


def _block_to_dict(block: Block) -> dict[str, Any]:
    data: dict[str, Any] = {"name": block.name}
    own = block.own
    data |= {"page": own.uses} if own.uses else {"op": own.op_name}
    if own.attrs:
        data["attrs"] = {name: plain(value) for name, value in own.attrs.items()}
    if own.sources:
        data["inputs"] = {pin: [_source_to_dict(one) for one in sources] for pin, sources in own.sources.items()}
    if own.typed:
        data["typed"] = dict(own.typed)
    if block.control:
        data["control"] = [other.name for other in block.control]
    if block.position is not None:
        data["position"] = list(block.position)
    return data | {"mode": block.mode} if block.mode else data


def _source_to_dict(source: Source) -> dict[str, Any]:
    if isinstance(source, Output):
        return {"from": source.path}
    data = {"value": plain(source.value)}
    return data | {"dtype": source.dtype} if source.dtype else data


def plain(value: Any) -> Any:
    """A value without classes of this package: types by name, tuples as lists; arrays stay arrays."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value


def same_page(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two pages as data have the same blocks and wires, wherever these stand on the drawing."""
    return _same(undrawn(one), undrawn(other))


def undrawn(page: Mapping[str, Any]) -> dict[str, Any]:
    """A page as data without where its blocks stand, and without where it comes from."""
    blocks = [
        {key: value for key, value in block.items() if key not in ("position", "typed")} for block in page["blocks"]
    ]
    pages = {name: undrawn(inner) for name, inner in page.get("pages", {}).items()}
    return {key: value for key, value in page.items() if key not in ("groups", "notes", "origin")} | {
        "blocks": blocks,
        "pages": pages,
    }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and (one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other or one != one)


def from_dict(data: Mapping[str, Any]) -> Page:
    """The page that `to_dict` described; one error lists everything that is malformed, with its place."""
    faults = _Few("Page")
    page = _page(data, "", 0, faults)
    faults.raise_if_any()
    assert page is not None
    return page


class _Few(Faults):
    """The first faults; of the others, that there are more."""

    def add(self, code: str, argument: str, *, wanted: str, got: object, **more: Any) -> None:
        """Note a fault."""
        if len(self.found) < MOST_FAULTS:
            super().add(code, argument, wanted=wanted, got=got, **more)


class _Reader:
    """Looks at a mapping, notes what does not fit, and never trips over it."""

    def __init__(self, data: Any, place: str, keys: set[str], faults: Faults):
        self.place = place
        self.faults = faults
        self.data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        if not isinstance(data, Mapping):
            faults.add("VG053", place or "page", wanted="be an object", got=_kind(data))
        for key in self.data:
            if key not in keys:
                faults.add(
                    "VG053", self.at(str(key)), wanted=f"be one of {', '.join(sorted(keys))}", got="an unknown entry"
                )

    def at(self, key: str) -> str:
        """The place of an entry."""
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str, kind: type | tuple[type, ...], default: Any, wanted: str) -> Any:
        """An entry of the right type, or the default."""
        value = self.data.get(key, default)
        if isinstance(value, kind) and not (kind is not bool and isinstance(value, bool)):
            return value
        self.faults.add("VG053", self.at(key), wanted=f"be {wanted}", got=_kind(value))
        return default


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _page(data: Any, place: str, depth: int, faults: Faults) -> Page | None:
    if depth > MAX_DEPTH:
        faults.add("VG053", place, wanted=f"nest pages at most {MAX_DEPTH} deep", got=f"{depth} levels")
        return None
    reader = _Reader(data, place, _PAGE_KEYS, faults)
    try:
        page = Page(reader.get("name", str, "page", "text"), reader.get("semantics", str, "documented", "text"))
    except InvalidArgumentError as error:
        faults.found.extend(error.faults[: MOST_FAULTS - len(faults.found)])
        page = Page()
    for name, inner in reader.get("pages", Mapping, {}, "an object").items():
        made = _page(inner, reader.at(f"pages.{name}"), depth + 1, faults)
        if made is not None:
            _guarded(faults, page.define, str(name), made)
    entries = reader.get("blocks", list, [], "a list")
    made_blocks = [_block(page, entry, reader.at(f"blocks[{index}]"), faults) for index, entry in enumerate(entries)]
    for index, (block, entry) in enumerate(zip(made_blocks, entries, strict=True)):
        if block is not None:
            _wires(page, block, entry, reader.at(f"blocks[{index}]"), faults)
    page.notes.extend(reader.get("notes", list, [], "a list"))
    if "origin" in reader.data:
        origin = _Reader(reader.data["origin"], reader.at("origin"), {"name", "version"}, faults)
        page.origin = Origin(origin.get("name", str, "", "text"), origin.get("version", str, "", "text"))
    for index, group in enumerate(reader.get("groups", list, [], "a list")):
        _group(page, _Reader(group, reader.at(f"groups[{index}]"), _GROUP_KEYS, faults))
    _pins(page, reader, faults, depth)
    for index, entry in enumerate(reader.get("displays", list, [], "a list")):
        _display(page, entry, reader.at(f"displays[{index}]"), faults)
    return page


def _display(page: Page, entry: Any, place: str, faults: Faults, shift: Sequence[float] = (0.0, 0.0)) -> None:
    before = len(faults.found)
    reader = _Reader(entry, place, _DISPLAY_KEYS, faults)
    name, kind = reader.get("name", str, "", "text"), reader.get("kind", str, "", "text")
    attrs = reader.get("attrs", Mapping, {}, "an object")
    if name in page.displays:
        faults.add("VG060", reader.at("name"), wanted="be one that no other display has", got=repr(name))
    position, size = (reader.get(key, (list, tuple), [], "two numbers") for key in ("position", "size"))
    found = reader.get("of", (list, tuple), [], "a list of outputs")
    of = [_shown(page, one, reader.at(f"of[{index}]"), faults) for index, one in enumerate(found)]
    if len(faults.found) > before:
        return
    try:
        shown = [one for one in of if one is not None]
        made = page.displays.add(kind, shown, attrs, name=name, position=position, size=size)
        page.displays.place(made, [one + float(by) for one, by in zip(made.position, shift, strict=True)])
    except InvalidArgumentError as error:
        for one in error.faults:
            at = one.argument.removeprefix(f"{name}.")
            faults.add(one.code, reader.at(at), wanted=one.wanted, got=one.got, remedy=one.remedy)


def _shown(page: Page, data: Any, place: str, faults: Faults) -> Shown | None:
    reader = _Reader(data, place, {"from", "at", "label"}, faults)
    output = _output(page, reader.data.get("from"), reader.at("from"), faults)
    at = reader.get("at", (list, tuple), [], "a list of indices")
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in at):
        faults.add("VG053", reader.at("at"), wanted="be a list of indices", got=_kind(at))
        return None
    label = reader.get("label", str, "", "text")
    return None if output is None else Shown(output, tuple(at), label)


def shown_of(page: Page, of: Any) -> list[Shown]:
    """The outputs that a display is to show, from data; a place of them that is malformed is an error."""
    faults = Faults("Page")
    made = [_shown(page, one, f"of[{index}]", faults) for index, one in enumerate(of)]
    faults.raise_if_any()
    return [one for one in made if one is not None]


def _group(page: Page, reader: _Reader) -> None:
    blocks = _block_names(page, reader, "blocks")
    changes = {key: reader.data[key] for key in ("colour", "collapsed") if key in reader.data}
    _guarded(reader.faults, page.group, reader.get("title", str, "", "text"), blocks=blocks, **changes)


def _guarded(faults: Faults, function: Any, *arguments: Any, **named: Any) -> Any:
    """Call something that may refuse a name; its faults join the others."""
    try:
        return function(*arguments, **named)
    except InvalidArgumentError as error:
        faults.found.extend(error.faults[: MOST_FAULTS - len(faults.found)])
        return None


def _block(page: Page, entry: Any, place: str, faults: Faults) -> Block | None:
    reader = _Reader(entry, place, _BLOCK_KEYS, faults)
    name = reader.get("name", str, "", "text")
    op, uses = reader.get("op", str, "", "text"), reader.get("page", str, "", "text")
    if not name or bool(op) == bool(uses):
        faults.add("VG053", place, wanted="have a name and either op or page", got=f"{sorted(map(str, reader.data))}")
        return None
    if name in page:
        faults.add("VG060", reader.at("name"), wanted="be one that no other block has", got=repr(name))
        return None
    attrs = reader.get("attrs", Mapping, {}, "an object")
    if op:
        block: Block | None = _guarded(
            faults, page.add, op, attrs={str(key): value for key, value in attrs.items()}, name=name
        )
    else:
        block = _guarded(faults, page.use, uses, name=name)
    if block is not None and block.name != name:
        # A scope of this name came first. In a file, names are what they are.
        page.rename(block, name)
    if block is not None and "position" in reader.data:
        block.position = _position(reader)
    if block is not None and "mode" in reader.data:
        block.mode = _mode(reader)
    return block


def _mode(reader: _Reader) -> str:
    """As the file says; a block that cannot be bypassed, or not any more, is a problem of the page."""
    found = reader.data["mode"]
    if found in MODES[1:]:
        return str(found)
    reader.faults.add("VG053", reader.at("mode"), wanted=f"be {' or '.join(MODES[1:])}", got=_kind(found))
    return WORKING


def _position(reader: _Reader) -> tuple[float, float] | None:
    found = reader.data["position"]
    if isinstance(found, (list, tuple)) and len(found) == 2 and all(isinstance(one, (int, float)) for one in found):
        return float(found[0]), float(found[1])
    reader.faults.add("VG053", reader.at("position"), wanted="be two numbers", got=_kind(found))
    return None


def _wires(page: Page, block: Block, entry: Mapping[str, Any], place: str, faults: Faults) -> None:
    reader = _Reader(entry, place, _BLOCK_KEYS, Faults("Page"))
    reader.faults = faults
    for pin, sources in reader.get("inputs", Mapping, {}, "an object").items():
        where = reader.at(f"inputs.{pin}")
        if not isinstance(sources, (list, tuple)):
            faults.add("VG053", where, wanted='be a list of {"from": ...} or {"value": ...}', got=_kind(sources))
            continue
        for index, source in enumerate(sources):
            made = _source(page, source, f"{where}[{index}]", faults)
            if made is not None:
                page.attach(block, str(pin), made)
    _typed(block, reader)
    others = reader.get("control", list, [], "a list of block names")
    if others:
        page.run_after(block, *(other for other in others if isinstance(other, str) and other in page))
    for index, other in enumerate(others):
        if not isinstance(other, str) or other not in page:
            faults.add("VG050", reader.at(f"control[{index}]"), wanted="be a block of this page", got=_kind(other))


def _typed(block: Block, reader: _Reader) -> None:
    """The rules that values were typed as. One that does not give its value, of a file edited by hand, is left out."""
    for name, text in reader.get("typed", Mapping, {}, "an object").items():
        if not isinstance(text, str):
            reader.faults.add("VG053", reader.at(f"typed.{name}"), wanted="be a text", got=_kind(text))
            continue
        sources = [one.value for one in block.own.sources.get(str(name), ()) if isinstance(one, Value)]
        value = block.own.attrs.get(str(name), sources[0] if len(sources) == 1 else None)
        if isinstance(value, np.ndarray) and through("text").gives(text, value):
            block.own.typed[str(name)] = text


def _source(page: Page, data: Any, place: str, faults: Faults) -> Source | None:
    reader = _Reader(data, place, {"from", "value", "dtype"}, faults)
    if ("from" in reader.data) == ("value" in reader.data):
        faults.add("VG053", place, wanted="hold either from or value", got=_kind(data))
        return None
    if "value" in reader.data:
        return Value(reader.data["value"], reader.get("dtype", str, "", "the name of a type"))
    return _output(page, reader.data["from"], reader.at("from"), faults)


def _output(page: Page, path: Any, place: str, faults: Faults) -> Output | None:
    if not isinstance(path, str):
        faults.add("VG053", place, wanted="be the path of an output, block.output", got=_kind(path))
        return None
    name, _, pin = path.rpartition(".")
    if name not in page:
        faults.add("VG050", place, wanted="be block.output with a block of this page", got=repr(path))
        return None
    try:
        return page.block(name).output(pin)
    except InvalidArgumentError as error:
        faults.add("VG050", place, wanted="name an output of that block", got=repr(path), remedy=error.faults[0].remedy)
        return None


def _pins(page: Page, reader: _Reader, faults: Faults, depth: int) -> None:
    known = _block_names(page, reader, "inputs")
    targets, initializers = _block_names(page, reader, "targets"), _block_names(page, reader, "initializers")
    outputs = {}
    for name, path in reader.get("outputs", Mapping, {}, "an object").items():
        output = _output(page, path, reader.at(f"outputs.{name}"), faults)
        if output is not None:
            # No wire could name a pin with a dot; inner pages of older files may have some.
            outputs[str(name).replace(".", "_") if depth else str(name)] = output
    if outputs or known:
        _guarded(faults, page.expose, outputs, known)
    if targets:
        page.execute(targets)
    if initializers:
        page.start_with(initializers)


def _block_names(page: Page, reader: _Reader, key: str) -> list[str]:
    """The names in a list that are blocks of the page; the others are faults."""
    names = reader.get(key, list, [], "a list of block names")
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in page:
            reader.faults.add("VG050", reader.at(f"{key}[{index}]"), wanted="be a block of this page", got=_kind(name))
    return [name for name in names if isinstance(name, str) and name in page]


def paste(page: Page, given: Mapping[str, Any], shift: Sequence[float] = (0.0, 0.0)) -> list[Block]:
    """Put blocks and displays on a page that are given as data: copies from this page, from another, from a text.

    Names that are taken get a number. Wires stay where they come from blocks that are given too, or that are here;
    others fall away, and so do outputs that displays have shown. `pages` are those that the blocks stand for.
    """
    from voxgrad.graph.nesting import available

    faults = _Few("Page")
    reader = _Reader(given, "", {"blocks", "pages", "displays"}, faults)
    used = {}
    for name, inner in reader.get("pages", Mapping, {}, "an object").items():
        made = _page(inner, f"pages.{name}", 1, faults)
        used[name] = _guarded(faults, available, page, name, made) if made is not None else name
    entries = [one for one in reader.get("blocks", list, [], "a list") if isinstance(one, Mapping)]
    names = {name: name for name in page.store.blocks}
    blocks = []
    for index, entry in enumerate(entries):
        name = str(entry.get("name", ""))
        placed = dict(entry) | {"name": page.unique_name(name)}
        if "page" in entry:
            placed["page"] = used.get(entry["page"], entry["page"])
        block = _block(page, placed, f"blocks[{index}]", faults)
        if block is not None:
            names[name] = block.name
            x, y = block.position or (0.0, 0.0)
            block.position = (x + float(shift[0]), y + float(shift[1]))
        blocks.append(block)
    for index, (block, entry) in enumerate(zip(blocks, entries, strict=True)):
        if block is not None:
            _wires(page, block, _reachable(page, entry, names), f"blocks[{index}]", faults)
    for index, entry in enumerate(reader.get("displays", list, [], "a list")):
        _display(page, _showable(page, entry, names), f"displays[{index}]", faults, shift)
    faults.raise_if_any()
    return [block for block in blocks if block is not None]


def _reached(page: Page, source: Any, names: Mapping[str, str]) -> Any:
    """A wire as data, from the block that has its name now; None where there is none."""
    if not isinstance(source, Mapping) or not isinstance(source.get("from"), str):
        return source
    name, _, pin = source["from"].rpartition(".")
    found = names.get(name)
    try:
        return None if found is None else {**source, "from": page.block(found).output(pin).path}
    except InvalidArgumentError:
        return None


def _showable(page: Page, entry: Any, names: Mapping[str, str]) -> Any:
    """A display as data with a free name and the outputs that can be shown on a page."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        return entry
    made = dict(entry) | {"name": page.displays.free_name(entry["name"])}
    if isinstance(entry.get("of"), list):
        made["of"] = [one for one in (_reached(page, one, names) for one in entry["of"]) if one is not None]
    return made


def _reachable(page: Page, entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A block as data with the wires that can be drawn on a page; blocks are called there as `names` says."""

    made = dict(entry)
    if isinstance(made.get("inputs"), Mapping):
        given = {pin: many for pin, many in made["inputs"].items() if isinstance(many, list)}
        lists = {pin: [_reached(page, one, names) for one in many] for pin, many in given.items()}
        made["inputs"] = {pin: [one for one in many if one is not None] for pin, many in lists.items()}
    if isinstance(made.get("control"), list):
        made["control"] = [names[one] for one in made["control"] if isinstance(one, str) and one in names]
    return made
