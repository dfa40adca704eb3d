# SPDX-License-Identifier: Apache-2.0
"""What a block was in the original, and where it is something else here."""

from __future__ import annotations

from collections.abc import Iterator

from voxgrad.catalog.model import Op
from voxgrad.errors import show
from voxgrad.formats.enuspace.dialect import READ_AS_INTEGERS, key_of, settings
from voxgrad.formats.enuspace.library import Symbol, input_of, symbols_of
from voxgrad.formats.text import TextError, parse_attr

EVERYWHERE = (
    "A pin that lacks its value, and a text that cannot be read, is a problem that points at the place; the original "
    "left the page unmade, some of the texts without a word.",
    "Types and shapes are known while a page is edited.",
    "Of truth values the original knew `true`, `TRUE` and `1`; all else was false. Here `True` is true, and what is no "
    "truth value is an error.",
    "Every element of every type is shown; the original showed int64 in 32 bits, and no half, bfloat16 or quantised "
    "numbers.",
    "Seeds of random blocks count; of seventeen samplers the original dropped them.",
)
"""What is true of all blocks."""


def differences(op: Op) -> list[str]:
    """Sentences; none where a block is what it was."""
    found = [line for symbol in symbols_of(op) for line in _of(op, symbol)]
    if found or symbols_of(op):
        return list(dict.fromkeys(found))
    if op.package:
        return []
    return ["TensorFlow does not have it." if op.own else "The original had no such block."]


def _of(op: Op, symbol: Symbol) -> Iterator[str]:
    if symbol.name != op.name:
        yield f"There the block is called {symbol.name}."
    if not symbol.built:
        yield "It stood in the library of the original, whose program could not make it."
    renamed = [(pin, input_of(op, symbol, pin)) for pin in symbol.inputs]
    for pin, name in renamed:
        if pin != name:
            yield f"Its pin {pin} is called {name} here."
    if symbol.attrs_as:
        yield f"Its pin of attributes was labelled {symbol.attrs_as.strip()}, and never read; here it counts."
    for key, text in settings(symbol.defaults.get("attrs", "")):
        yield from _default(op, key, text)
    for name, attr in sorted(READ_AS_INTEGERS):
        if name == op.name:
            yield f"{attr} was cut to a whole number; here it is the fraction that is typed."


def _default(op: Op, key: str, text: str) -> Iterator[str]:
    attr = next((one for one in op.attrs if one.name == key_of(key)), None)
    if key_of(key) != key:
        yield f"It wrote the attribute {key_of(key)} as {key}; both are read."
    if attr is None or attr.required or not text:
        return
    try:
        value = parse_attr(attr, text, op.name)
    except TextError:
        yield f"A new block had {attr.name} = {text}, which TensorFlow refuses; here it is {show(attr.default)}."
        return
    if value != attr.default:
        yield f"A new block had {attr.name} = {text}; here, as in TensorFlow, {show(attr.default)}."
