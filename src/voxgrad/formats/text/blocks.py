# SPDX-License-Identifier: Apache-2.0
"""Values of blocks as people type them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from voxgrad.arrays.kinds import dtype_of
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Input, Op
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.text.attrs import parse_attr
from voxgrad.formats.text.reader import TextError
from voxgrad.formats.text.values import Array, parse_value, read_rule
from voxgrad.graph.block import Block
from voxgrad.graph.page import Page


def set_text(page: Page, block: Block, name: str, given: str) -> None:
    """Give an attribute or an input a value; an empty text takes it away."""
    op = _op(block)
    attr = next((attr for attr in op.attrs if attr.name == name), None)
    if attr is not None:
        page.set_attr(block, name, parse_attr(attr, given, op.name) if given.strip() else None)
        if attr.kind == "tensor":
            _keep_rule(block, name, given)
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
    _keep_rule(block, name, given)


def _keep_rule(block: Block, name: str, given: str) -> None:
    """Remember the rule that a value was typed as, with the seed that it was drawn by."""
    rule = read_rule(given)
    if rule is not None:
        block.typed[name] = rule.text


def gives(text: str, value: Array) -> bool:
    """Whether a text is a rule that gives this value, of this type."""
    dtype = dtype_of(value.dtype)
    try:
        rule = read_rule(text, dtype)
    except TextError:
        return False
    if rule is None or dtype is None or rule.sizes != value.shape:
        return False
    return _digest(text, dtype) == blake2b(value.tobytes()).digest()


@lru_cache(maxsize=256)
def _digest(text: str, dtype: dtypes.DType) -> bytes:
    """What the values of a rule are known by: a page is loaded after each edit."""
    rule = read_rule(text, dtype)
    return b"" if rule is None else blake2b(rule.values().tobytes()).digest()


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
