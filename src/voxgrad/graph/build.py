# SPDX-License-Identifier: Apache-2.0
"""Puts an op on a page from arguments as people write them: outputs, arrays, numbers, by position or by name."""

from __future__ import annotations

import inspect
from typing import Any

from voxgrad.arrays.intake import read
from voxgrad.arrays.kinds import Unfit
from voxgrad.arrays.literals import to_array, type_of
from voxgrad.catalog.describe import shown_default
from voxgrad.catalog.model import Attr, Input, Op, Spec
from voxgrad.errors import Faults, show
from voxgrad.graph.block import Block, Output
from voxgrad.graph.page import Page


def signature(op: Op) -> inspect.Signature:
    """The page, then inputs by position or by name, attributes by name; an op without inputs takes them by position."""
    kinds = inspect.Parameter
    made = [kinds("page", kinds.POSITIONAL_ONLY, annotation=Page)]
    for item in op.parameters:
        keyword = isinstance(item, Attr) and bool(op.inputs)
        default = kinds.empty if isinstance(item, Input) else None if _follows(op, item) else shown_default(item)
        made.append(kinds(item.name, kinds.KEYWORD_ONLY if keyword else kinds.POSITIONAL_OR_KEYWORD, default=default))
    made.append(kinds("name", kinds.KEYWORD_ONLY, default=None))
    return inspect.Signature(made)


def _follows(op: Op, attr: Attr) -> bool:
    """A constant without a stated type has the type of its value."""
    return op.name == "Const" and attr.name == "dtype"


def add_block(page: Page, op: Op, arguments: tuple[Any, ...], named: dict[str, Any], name: str | None) -> Any:
    """Put an op on a page and return its outputs."""
    if not isinstance(page, Page):
        faults = Faults(op.name)
        faults.add("VG002", "page", wanted="be a Page", got=f"{type(page).__name__} {show(page)}")
        raise faults.error()
    given = _bound(op, arguments, named)
    attrs = {attr.name: given[attr.name] for attr in op.attrs if given.get(attr.name) is not None}
    _complete_constant(op, attrs)
    block = page.add(op, attrs=attrs, name=name)
    inputs = {item: _listed(item, given[item.name]) for item in op.inputs}
    if not all(isinstance(one, Output) for values in inputs.values() for one in values):
        _make_constants(page, block, op, inputs)
    for item, values in inputs.items():
        for one in values:
            page.attach(block, item.name, one)
    return results_of(block, op)


def _bound(op: Op, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    names = [item.name for item in op.parameters]
    faults = Faults(op.name)
    if len(arguments) > len(names):
        faults.add("VG001", "arguments", wanted=f"be at most {len(names)}", got=f"{len(arguments)} by position")
    given = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        if name not in names:
            faults.add("VG001", name, wanted=f"be one of {', '.join([*names, 'name'])}", got="an unknown argument")
        elif name in given:
            faults.add("VG001", name, wanted="be given once", got="twice")
        given[name] = value
    for item in op.inputs:
        if item.name not in given:
            faults.add("VG001", item.name, wanted="be given", got="no value", remedy=item.doc)
    faults.raise_if_any()
    return given


def _complete_constant(op: Op, attrs: dict[str, Any]) -> None:
    if op.name != "Const" or "value" not in attrs:
        return
    if attrs.get("dtype") is None:
        try:
            attrs["value"] = to_array(attrs["value"])
        except Unfit as error:
            faults = Faults(op.name)
            error.tell(faults, "value")
            raise faults.error() from None
        attrs["dtype"] = type_of(attrs["value"])


def _listed(item: Input, value: Any) -> list[Any]:
    if not item.many:
        return [_output(value)]
    values = value if isinstance(value, (list, tuple)) else [value]
    return [_output(one) for one in values]


def _output(value: Any) -> Any:
    return value.output(0) if isinstance(value, Block) else value


def _make_constants(page: Page, block: Block, op: Op, inputs: dict[Input, list[Any]]) -> None:
    """Arrays and numbers become Const blocks, `block/pin`, of the type that the wires ask for."""
    faults = Faults(op.name)
    known = {item.name: [one.spec if isinstance(one, Output) else one for one in some] for item, some in inputs.items()}
    arrays = read(op, known, faults)
    root = page.store.root
    for item, values in inputs.items():
        for at, array in enumerate(arrays[item.name]):
            if array is not None and not isinstance(array, Spec):
                attrs = {"value": array, "dtype": type_of(array)}
                pin = f"{item.name}_{at}" if item.many else item.name
                values[at] = root.add("Const", attrs=attrs, name=f"{block.name}/{pin}").output(0)
    if faults:
        page.remove(block)
    faults.raise_if_any()


def results_of(block: Block, op: Op) -> Any:
    """What a function returns: one Output, a tuple of several, lists where the op has lists, or the block itself."""
    found: list[Any] = []
    index = 0
    for item in op.outputs:
        outputs = [Output(block, index + offset) for offset in range(block.count_of(item))]
        index += len(outputs)
        found.append(outputs if item.many else outputs[0])
    if not found:
        return block
    return found[0] if len(found) == 1 else tuple(found)
