# SPDX-License-Identifier: Apache-2.0
"""From a sheet to a page: blocks become blocks of ops, and the helpers of enuSpace what they meant.

ClientSession becomes the outputs and targets of the page, a Variable's first value an initializer, FeedType a
placeholder with a default, InputList a list of wires, AddSymbolicGradients the blocks of the gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from voxgrad.catalog.model import Spec
from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace.library import HELPERS, Symbol, library, op_of
from voxgrad.formats.enuspace.pins import Values, block_name
from voxgrad.formats.enuspace.sheet import RESULT, Link, Node, Sheet
from voxgrad.formats.report import CHANGED, LOST, NOTED, Report
from voxgrad.formats.text.values import Array
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.gradients import gradients
from voxgrad.graph.page import Page

Source = Output | Block | Value
"""What a link brings: an output, the execution of a block without outputs, or a typed value."""

_MAX_HELPERS = 32
_MAX_LIST = 1024
_PASSING = {
    "InputList": "outputlist",
    "Operation": "operation",
    "Output": "output_op",
    "Input": "initvalues",
    "Tensor": "initvalues",
    "Input_Initializer": "t",
}
"""Per helper that passes wires on, the pin where they come in."""
_VALUE_HELPERS = ("Tensor", "Input", "Input_Initializer")
_VARIABLE_ATTRS = {"dtype", "shape"}
_SLICES = ("shape_and_slices", "shapes_and_slices")
_MODES = {
    ("SHOW_DEBUG", "m_Debug"): "printed what it fetched in every cycle; here `voxgrad run --every-cycle` does",
    ("INFINITE_LOOP", "m_bInfiniteLoop"): "ran until it was stopped; here `voxgrad run --cycles forever` does",
}
"""The switches of a session, a pin or a setting of it, and what to do here in place of each."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A page, what an import has to tell about it, and the results that the old file had stored."""

    page: Page
    report: Report
    expected: dict[str, dict[str, Array]]


class Unready(Exception):  # noqa: N818 - a state of the conversion
    """A link comes from gradients that have not been made yet."""


class Converter:
    """Converts one sheet; every step leaves remarks in the report."""

    def __init__(self, sheet: Sheet, data: bytes, title: str, report: Report):
        self.sheet = sheet
        self.report = report
        self.page = Page(title or "page")
        self.values = Values(data, report)
        self.blocks: dict[str, Block] = {}
        self.gradients: dict[str, list[Output | None]] = {}
        self.passed: dict[str, list[Source]] = {}
        self.links: dict[tuple[str, str], list[Link]] = {}
        self.incoming: dict[str, list[Link]] = {}
        for link in sheet.links:
            self.links.setdefault((link.to_id, link.to_pin), []).append(link)
            self.incoming.setdefault(link.to_id, []).append(link)

    def convert(self) -> Page:
        """The page."""
        fed = self._fed_placeholders()
        for node in self.sheet.nodes.values():
            self._make_block(node, fed)
        self._wire_all(fed)
        self._make_initializers()
        self._make_session()
        for node in self._nodes("Status"):
            self.report.add(NOTED, node.id, "Status did nothing and was left out")
        return self.page

    # Blocks

    def _nodes(self, *symbols: str) -> Iterator[Node]:
        return (node for node in self.sheet.nodes.values() if not node.is_gadget and node.symbol in symbols)

    def _fed_placeholders(self) -> dict[str, Node]:
        """The FeedType block of every placeholder that a session feeds."""
        fed = {}
        for session in self._nodes("ClientSession"):
            for link in self.links.get((session.id, "inputs"), []):
                feed = self.sheet.nodes.get(link.from_id)
                if feed is not None and feed.symbol == "FeedType":
                    for source in self.links.get((feed.id, "input"), []):
                        fed[source.from_id] = feed
        return fed

    def _make_block(self, node: Node, fed: dict[str, Node]) -> None:
        symbol = library().get(node.symbol)
        if node.is_gadget or (node.symbol in HELPERS and node.symbol not in _VALUE_HELPERS):
            return
        name = block_name(node)
        if name != node.id:
            self.report.add(CHANGED, node.id, f"is now called {name}: its id held characters that separate names")
        if symbol is None:
            self.report.add(LOST, node.id, f"{node.symbol} is no block of the library")
            self._keep(node, name, node.symbol)
        elif node.symbol in (*_VALUE_HELPERS, "Const", "Const_ex"):
            self._make_constant(node, name)
        elif node.id in fed and node.symbol == "Placeholder":
            attrs = {"shape": None} | self.values.attributes(node, symbol, "PlaceholderWithDefault")
            attrs.pop("dtype", None)
            self._keep(node, name, "PlaceholderWithDefault", attrs)
            self.report.add(CHANGED, node.id, "is fed by the session: now a placeholder with that default")
        else:
            op = op_of(symbol)
            if op is None:
                self.report.add(LOST, node.id, f"there is no op {symbol.op} yet; the block is kept, but cannot run")
            op_name = op.name if op is not None else symbol.op or symbol.name
            attrs = self.values.attributes(node, symbol, op_name)
            if node.symbol == "Variable" and not self.links.get((node.id, "initvalues")):
                attrs = self.values.with_first_type(node, attrs)
            self._keep(node, name, op_name, attrs)

    def _keep(self, node: Node, name: str, op: str, attrs: dict[str, object] | None = None) -> None:
        self.blocks[node.id] = self.page.add(op, attrs=attrs or {}, name=name, position=node.position)

    def _make_constant(self, node: Node, name: str) -> None:
        """Const, and the helpers that hold a typed value; those that only pass a wire on are left out."""
        pin = {"Const": "val", "Const_ex": "val", "Input_Initializer": "t"}.get(node.symbol, "initvalues")
        if self.links.get((node.id, pin)):
            return
        made = self.values.constant(node, pin)
        if made is not None:
            array, dtype = made
            self._keep(node, name, "Const", {"value": array, "dtype": dtype.name})

    # Wires

    def _wire_all(self, fed: dict[str, Node]) -> None:
        """Wire every pin; those behind symbolic gradients follow once the gradients are there."""
        waiting = [node for node in self.sheet.nodes.values() if node.id in self.blocks]
        open_gradients = list(self._nodes("AddSymbolicGradients"))
        while True:
            waiting = [node for node in waiting if not self._wire(node, fed)]
            self._type_variables()
            ready = next((node for node in open_gradients if self._can_differentiate(node)), None)
            if ready is None:
                break
            open_gradients.remove(ready)
            self._differentiate(ready)
        for node in (*waiting, *open_gradients):
            self.report.add(LOST, node.id, "its wires lead through gradients that could not be made")
        self._check_links()

    def _wire(self, node: Node, fed: dict[str, Node]) -> bool:
        """Wire all pins of a block; False where some of it must wait."""
        block = self.blocks[node.id]
        if block.op_name == "PlaceholderWithDefault" and node.id in fed:
            wanted = {"input": self.links.get((fed[node.id].id, "initializer"), [])}
        else:
            pins = dict.fromkeys(link.to_pin for link in self.incoming.get(node.id, ()))
            wanted = {pin: self.links[node.id, pin] for pin in pins}
        try:
            found = {pin: [one for link in links for one in self.sources(link)] for pin, links in wanted.items()}
        except Unready:
            return False
        symbol = library().get(node.symbol)
        for pin, sources in found.items():
            self._connect(block, self.values.input_name(block, symbol, pin), sources)
        if symbol is not None and block.op_name not in ("Const", "PlaceholderWithDefault", "VariableV2", "Variable"):
            for pin in symbol.inputs:
                if pin not in found:
                    self._type(node, block, symbol, pin)
            self._fill_slices(block)
        return True

    def _fill_slices(self, block: Block) -> None:
        """Where a checkpoint says no slices, whole tensors are meant: an empty text for each."""
        pin = next((item.name for item in block.op.inputs if item.name in _SLICES), "") if block.op else ""
        names = next(iter(block.sources.get("tensor_names", ())), None)
        if pin and not block.sources.get(pin) and isinstance(names, Value):
            empty: Array = np.full(np.shape(names.value), b"", dtype=object)
            self.page.set_value(block, pin, empty, "string")
            self.report.add(CHANGED, f"{block.name}.{pin}", f"was empty: {empty.size} whole tensors")

    def _connect(self, block: Block, pin: str, sources: list[Source]) -> None:
        declared = next((item for item in block.op.inputs if item.name == pin), None) if block.op else None
        if block.op is not None and declared is None:
            if block.op_name not in ("Const", "VariableV2", "Variable"):
                self.report.add(LOST, f"{block.name}.{pin}", f"{block.op_name} has no such input; its wire was dropped")
            return
        if declared is not None and not declared.many and len(sources) > 1:
            self.report.add(LOST, f"{block.name}.{pin}", f"takes one wire; the last of {len(sources)} was kept")
            sources = sources[-1:]
        for source in sources:
            if isinstance(source, Block):
                self.page.run_after(block, source)
                self.report.add(CHANGED, f"{block.name}.{pin}", f"runs after {source.name}, which has no output")
            else:
                self.page.connect(source, block, pin, at=len(block.sources.get(pin, ())) if block.op is None else None)

    def _type(self, node: Node, block: Block, symbol: Symbol, pin: str) -> None:
        """A text on a pin without a wire is a constant."""
        name = self.values.input_name(block, symbol, pin)
        value = self.values.typed(node, symbol, pin, block.op, name)
        if value is not None:
            self.page.set_value(block, name, value.value, value.dtype)

    def sources(self, link: Link, path: tuple[str, ...] = ()) -> list[Source]:
        """What a link brings, through all helpers on the way."""
        node = self.sheet.nodes.get(link.from_id)
        if node is None or node.is_gadget or link.from_pin.startswith(RESULT):
            return []
        if node.id in self.blocks:
            return self._outputs(node, link)
        if node.symbol == "AddSymbolicGradients":
            return self._gradient(node, link)
        if node.id not in self.passed:
            self.passed[node.id] = self._through(node, path)
        return self.passed[node.id]

    def _through(self, node: Node, path: tuple[str, ...]) -> list[Source]:
        """What a helper passes on; lists in lists become one."""
        if node.id in path or len(path) > _MAX_HELPERS:
            self.report.add(LOST, node.id, "its wires go in a ring")
            return []
        links = self.links.get((node.id, _PASSING.get(node.symbol, "")), [])
        found = [one for link in links for one in self.sources(link, (*path, node.id))]
        if len(found) > _MAX_LIST:
            self.report.add(LOST, node.id, f"its list is longer than {_MAX_LIST} entries")
            found = found[:_MAX_LIST]
        return self.values.chosen_output(node, found) if node.symbol == "Output" else found

    def _outputs(self, node: Node, link: Link) -> list[Source]:
        block = self.blocks[node.id]
        names = block.output_names
        if block.op is None:
            return [block.output(link.from_pin if link.from_index is None else f"{link.from_pin}[{link.from_index}]")]
        if not names:
            return [block]
        pin = link.from_pin
        members = [name for name in names if name.startswith(f"{pin}[")]
        if members:
            chosen = members if link.from_index is None else members[link.from_index : link.from_index + 1]
            return [block.output(name) for name in chosen]
        symbol = library().get(node.symbol)
        if pin not in names and symbol is not None and pin in symbol.outputs:
            pin = names[min(symbol.outputs.index(pin), len(names) - 1)]
        return [block.output(pin if pin in names else 0)]

    def _check_links(self) -> None:
        for link in self.sheet.links:
            for end in (link.from_id, link.to_id):
                if end not in self.sheet.nodes:
                    place = f"{link.from_id}.{link.from_pin} -> {link.to_id}.{link.to_pin}"
                    self.report.add(LOST, place, f"there is no block {end}")

    # Gradients

    def _can_differentiate(self, node: Node) -> bool:
        """True where nothing on the way to it waits for other gradients."""
        stack, seen = [node.id], {node.id}
        while stack:
            current = stack.pop()
            for link in self.incoming.get(current, ()):
                source = self.sheet.nodes.get(link.from_id)
                if source is None:
                    continue
                if source.symbol == "AddSymbolicGradients" and source.id not in self.gradients:
                    return False
                if source.id in seen:
                    continue
                seen.add(source.id)
                stack.append(source.id)
        return True

    def _differentiate(self, node: Node) -> None:
        wanted = {pin: self._all(node, pin) for pin in ("outputs", "inputs")}
        try:
            made = gradients(wanted["outputs"], wanted["inputs"])
        except VoxgradError as error:
            self.report.add(LOST, node.id, f"its gradients could not be made: {error}")
            made = [None] * len(wanted["inputs"])
        self.gradients[node.id] = list(made)
        shown = ", ".join(output.name for output in made if output is not None)
        self.report.add(CHANGED, node.id, f"AddSymbolicGradients became the blocks of the gradients: {shown}")

    def _all(self, node: Node, pin: str) -> list[Output]:
        found = [one for link in self.links.get((node.id, pin), []) for one in self.sources(link)]
        return [one for one in found if isinstance(one, Output)]

    def _gradient(self, node: Node, link: Link) -> list[Source]:
        if node.id not in self.gradients:
            raise Unready
        made = self.gradients[node.id]
        found = made if link.from_index is None else made[link.from_index : link.from_index + 1]
        if None in found or not found:
            self.report.add(LOST, f"{node.id}.{link.from_pin}", "no path leads there, so there is no gradient")
        return [one for one in found if one is not None]

    # Variables, session, notes

    def _type_variables(self) -> None:
        """A variable without a type or a shape takes those of what it starts with, or of what is assigned to it."""
        open_ = [node for node in self._nodes("Variable") if not self.blocks[node.id].attrs.keys() >= _VARIABLE_ATTRS]
        assigned = self._assigned() if open_ else {}
        for node in open_:
            block = self.blocks[node.id]
            for spec in self._given_to(node, assigned.get(block, [])):
                if spec.dtype is not None and "dtype" not in block.attrs:
                    self.page.set_attr(block, "dtype", spec.dtype.name)
                if spec.shape is not None and "shape" not in block.attrs:
                    self.page.set_attr(block, "shape", list(spec.shape))

    def _given_to(self, node: Node, assigned: list[Block]) -> Iterator[Spec]:
        """What is known of the values that enter a variable, its first value before the others."""
        for link in self.links.get((node.id, "initvalues"), []):
            yield from (one.spec for one in self._live(link) if isinstance(one, Output))
        for block in assigned:
            yield from self.page.infer().input_specs(block, "value")

    def _assigned(self) -> dict[Block, list[Block]]:
        """Per variable, the Assign blocks that write to it."""
        found: dict[Block, list[Block]] = {}
        for wire in self.page.wires:
            if wire.block.op_name == "Assign" and wire.pin == "ref":
                found.setdefault(wire.source.block, []).append(wire.block)
        return found

    def _make_initializers(self) -> None:
        """One Assign per variable, in a row below the page, executed once before the first run."""
        made: list[Block] = []
        left = min((node.position[0] for node in self.sheet.nodes.values()), default=0.0)
        bottom = max((node.position[1] for node in self.sheet.nodes.values()), default=0.0)
        for node in self._nodes("Variable"):
            block = self.blocks[node.id]
            linked = [one for link in self.links.get((node.id, "initvalues"), []) for one in self.sources(link)]
            first = linked[0] if linked else self.values.first_value(node, block.attrs)
            if first is None or block.op is None:
                continue
            inputs = {"ref": block.output(0), "value": first}
            place = (left + 240.0 * len(made), bottom + 200.0)
            made.append(self.page.add("Assign", inputs, name=f"{block.name}/initialize", position=place))
        if made:
            self.page.start_with(made)

    def _make_session(self) -> None:
        outputs: dict[str, Output] = {}
        targets: dict[Block, None] = {}
        sessions = sorted(self._nodes("ClientSession"), key=lambda node: node.id)
        if len(sessions) > 1:
            names = ", ".join(node.id for node in sessions)
            told = f"are one run: they ran one after another, {names}, each with variables of its own"
            self.report.add(CHANGED, "ClientSession", f"the {len(sessions)} sessions {told}")
        for session in sessions:
            self._note_settings(session)
            for link in self.links.get((session.id, "fetch_outputs"), []):
                self._fetch(link, outputs, targets)
            for link in self.links.get((session.id, "run_outputs"), []):
                targets |= {one if isinstance(one, Block) else one.block: None for one in self._live(link)}
        if not outputs and not targets:
            self.report.add(NOTED, "ClientSession", "no session fetches or runs anything; a run computes every block")
        self.page.expose(outputs)
        self.page.execute(list(targets))

    def _live(self, link: Link) -> list[Output | Block]:
        try:
            return [one for one in self.sources(link) if not isinstance(one, Value)]
        except Unready:
            return []

    def _fetch(self, link: Link, outputs: dict[str, Output], targets: dict[Block, None]) -> None:
        source = self.sheet.nodes.get(link.from_id)
        as_operation = source is not None and source.symbol == "Operation"
        for one in self._live(link):
            if isinstance(one, Block) or as_operation:
                targets[one if isinstance(one, Block) else one.block] = None
                continue
            name = one.block.name.replace("/", "_")
            outputs[name if outputs.get(name, one) == one else f"{name}_{one.pin}"] = one

    def _note_settings(self, session: Node) -> None:
        device = session.pins["device"].value if "device" in session.pins else ""
        if device not in ("", "/cpu:0"):
            self.report.add(NOTED, session.id, f"the device {device} had no effect there; here a run chooses it")
        for (pin, setting), told in _MODES.items():
            text = session.pins[pin].value if pin in session.pins else session.settings.get(setting, "")
            if text.upper() in ("TRUE", "1"):
                self.report.add(NOTED, session.id, told)

    def shown(self, id_: str, pin: str) -> Output | None:
        """The output that a display of the original means by a block and a pin, `result_` in its name or not."""
        live = self._live(Link(id_, pin.removeprefix(RESULT), None, "", ""))
        return next((one for one in live if isinstance(one, Output)), None)
