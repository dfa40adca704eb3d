# SPDX-License-Identifier: Apache-2.0
"""Values of blocks as people type them."""

from __future__ import annotations

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.text.attrs import parse_attr
from voxgrad.formats.text.values import parse_value
from voxgrad.graph.block import Block
from voxgrad.graph.page import Page


def set_text(page: Page, block: Block, name: str, given: str) -> None:
    """Give an attribute or an input a value; an empty text takes it away."""
    op = _op(block)
    attr = next((attr for attr in op.attrs if attr.name == name), None)
    if attr is not None:
        page.set_attr(block, name, parse_attr(attr, given, op.name) if given.strip() else None)
        return
    item = next((item for item in op.inputs if item.name == name), None)
    if item is None:
        names = ", ".join(one.name for one in op.parameters)
        raise InvalidArgumentError(Fault("VG050", op.name, name, f"be one of {names}", repr(name)))
    if not given.strip():
        page.disconnect(block, name)
        return
    value = parse_value(given, _only_type(op, item), name, op.name)
    page.set_value(block, name, value)


def _only_type(op: Op, item: Input) -> dtypes.DType | None:
    """The type of an input where it has just one."""
    allowed = op.allowed(item.type)
    return allowed[0] if len(allowed) == 1 else None


def _op(block: Block) -> Op:
    own = block.own
    if own.op is None:
        got = own.op_name or "a page used as a block"
        raise InvalidArgumentError(Fault("VG050", "Page", block.name, "be a block of a known op", got))
    return own.op
