# SPDX-License-Identifier: Apache-2.0
"""Changes of a document that need the catalogue: fixes, gradient blocks, values as people type them."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats import text
from voxgrad.formats.constants import Reader
from voxgrad.graph.block import Block, Output
from voxgrad.graph.gradients import DIFFERENTIABLE, gradients
from voxgrad.graph.page import Page
from voxgrad.studio import messages

GAP = 260.0
"""Between the columns of new blocks, in the units of the drawing."""


def edit(page: Page, action: messages.Action) -> list[str]:
    """Carry out an action on a page; the names of the blocks that are new."""
    before = {block.name for block in page.blocks}
    match action:
        case messages.ApplyEdits():
            page.apply([_decoded(one) for one in action.edits])
        case messages.AddGradients():
            add_gradients(page, action)
        case messages.SetText():
            set_text(page, page.block(action.block), action.name, action.text)
        case messages.SetTexts():
            set_texts(page, page.block(action.block), action.text)
        case messages.Fold():
            page.fold(action.blocks, action.name)
        case messages.Inline():
            page.inline(action.block)
    added = [block for block in page.blocks if block.name not in before]
    if isinstance(action, messages.AddGradients):
        _place(page, added)
    return [block.name for block in added]


def set_texts(page: Page, block: Block, given: str) -> None:
    """Give several attributes their values."""
    for name, value in text.parse_attrs(_op(block), given).items():
        page.set_attr(block, name, value)


def _decoded(edit: dict[str, Any]) -> dict[str, Any]:
    """An edit with the values that its JSON stands for."""
    wrong: list[Fault] = []

    def note(path: tuple[str | int, ...], wanted: str, got: object) -> None:
        wrong.append(Fault("VG053", "Page.apply", ".".join(map(str, path)), wanted, str(got)))

    reader = Reader(None, note)
    made = dict(edit)
    if "value" in made:
        made["value"] = reader.decode(made["value"], ("value",))
    if isinstance(made.get("attrs"), dict):
        made["attrs"] = {name: reader.decode(value, ("attrs", name)) for name, value in made["attrs"].items()}
    if isinstance(made.get("inputs"), dict):
        made["inputs"] = {pin: _decoded_sources(reader, pin, sources) for pin, sources in made["inputs"].items()}
    if wrong:
        raise InvalidArgumentError(wrong)
    return made


def _decoded_sources(reader: Reader, pin: str, sources: Any) -> Any:
    if not isinstance(sources, list):
        return sources
    return [
        one | {"value": reader.decode(one["value"], ("inputs", pin))}
        if isinstance(one, dict) and "value" in one
        else one
        for one in sources
    ]


def set_text(page: Page, block: Block, name: str, given: str) -> None:
    """Give an attribute or an input a value; an empty text takes it away."""
    op = _op(block)
    attr = next((attr for attr in op.attrs if attr.name == name), None)
    if attr is not None:
        page.set_attr(block, name, text.parse_attr(attr, given, op.name) if given.strip() else None)
        return
    item = next((item for item in op.inputs if item.name == name), None)
    if item is None:
        names = ", ".join(one.name for one in op.parameters)
        raise InvalidArgumentError(Fault("VG050", op.name, name, f"be one of {names}", repr(name)))
    if not given.strip():
        page.disconnect(block, name)
        return
    value = text.parse_value(given, _only_type(op, item), name, op.name)
    page.set_value(block, name, value)


def _only_type(op: Op, item: Input) -> dtypes.DType | None:
    """The type of an input where it has just one."""
    allowed = op.allowed(item.type)
    return allowed[0] if len(allowed) == 1 else None


def _op(block: Block) -> Op:
    if block.op is None:
        got = block.op_name or "a page used as a block"
        raise InvalidArgumentError(Fault("VG050", "studio", block.name, "be a block of a known op", got))
    return block.op


def add_gradients(page: Page, action: messages.AddGradients) -> None:
    """Add the gradients of what the chosen blocks give with respect to what they take, or to the given blocks.

    The next order differentiates the gradients of the one before, with respect to the same.
    """
    chosen = [page.block(name) for name in action.of]
    xs = _inputs_of(page, chosen) if action.with_respect_to is None else [
        page.block(name).output(0) for name in action.with_respect_to
    ]  # fmt: skip
    ys = [
        output for block in chosen for output in block.outputs if _floating(output) and not _read_inside(output, chosen)
    ]
    if not xs or not ys:
        what = ", ".join(action.of)
        remedy = "Choose a block with a floating input that is wired to another block."
        raise InvalidArgumentError(
            Fault("VG064", "gradients", what, "have an input and an output to differentiate", "none", remedy)
        )
    for _ in range(action.order):
        ys = [one for one in gradients(ys, xs) if one is not None]
        if not ys:
            raise InvalidArgumentError(
                Fault("VG064", "gradients", ", ".join(action.of), "depend on its inputs in this order", "a constant")
            )


def _inputs_of(page: Page, chosen: list[Block]) -> list[Output]:
    """The floating outputs of other blocks that the chosen ones read, each once."""
    found: dict[Output, None] = {}
    for block in chosen:
        for pin in block.inputs:
            for source in pin.sources:
                if isinstance(source, Output) and source.block not in chosen and not pin.host and _floating(source):
                    found[source] = None
    return list(found)


def _floating(output: Output) -> bool:
    dtype = output.dtype
    return dtype is None or dtype.kind in DIFFERENTIABLE


def _read_inside(output: Output, chosen: list[Block]) -> bool:
    return any(source == output for block in chosen for sources in block.sources.values() for source in sources)


def _place(page: Page, added: list[Block]) -> None:
    """Put new blocks to the right of all others, a column per step of the way back."""
    known = [block.position for block in page.blocks if block.position is not None]
    left = max((x for x, _ in known), default=0.0) + GAP
    top = min((y for _, y in known), default=0.0)
    column: dict[Block, int] = {}
    rows: dict[int, int] = {}
    for block in added:
        sources = [one.block for sources in block.sources.values() for one in sources if isinstance(one, Output)]
        column[block] = max((column[one] + 1 for one in sources if one in column), default=0)
        row = rows.get(column[block], 0)
        rows[column[block]] = row + 1
        block.position = (left + GAP * column[block], top + 180.0 * row)
