# SPDX-License-Identifier: Apache-2.0
"""Attributes in text: one by its kind, or several as `data_format_ = NDHWC; padding = SAME`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog.attributes import settled
from voxgrad.catalog.model import Attr, Op
from voxgrad.formats.text.lists import parse_floats, parse_ints, read_list
from voxgrad.formats.text.numbers import read_boolean, read_integer, read_number
from voxgrad.formats.text.reader import Reader, TextError
from voxgrad.formats.text.shapes import parse_shape, parse_shapes, parse_type, parse_types
from voxgrad.formats.text.values import parse_value

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LIST_TEXT = re.compile(r"[^,;{}\[\]]+")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `key = value` of a text: the key without its trailing underscore, the value untouched, and both places."""

    key: str
    value: str
    key_at: int
    value_at: int


def parse_attr(attr: Attr, text: str, op: str = "text") -> Any:
    """The value of an attribute from text, in the form that the attribute's kind has."""
    value, why = settled(attr, _PARSERS[attr.kind](text, attr.name, op))
    if why is not None:
        reader = Reader(text, attr.name, op)
        reader.skip()
        # Of a list that is too short or too long, the end is pointed at.
        at, count = (len(text.rstrip()), f"There are {len(value)}.") if why.code == "VG004" else (reader.at, "")
        reader.fail(why.wanted, why.remedy or count, at=at)
    return value


def parse_attrs(op: Op, text: str) -> dict[str, Any]:
    """The attributes of an op from `key = value; key = value`. Keys may end in an underscore, as C++ members do."""
    values: dict[str, Any] = {}
    for item in split_attrs(text, op.name):
        attr = next((attr for attr in op.attrs if attr.name == item.key), None)
        reader = Reader(text, "attrs", op.name)
        if attr is None:
            names = [attr.name for attr in op.attrs]
            near = difflib.get_close_matches(item.key, names, n=1, cutoff=0.6)
            remedy = f"Did you mean {near[0]}?" if near else ""
            reader.fail(f"name attributes of {op.name}: {', '.join(names) or 'it has none'}", remedy, at=item.key_at)
        if item.key in values:
            reader.fail("give each attribute once", f"{item.key} was given before.", at=item.key_at)
        try:
            values[item.key] = parse_attr(attr, item.value, op.name)
        except TextError as error:
            raise error.within(text, item.value_at) from None
    return values


def split_attrs(text: str, op: str = "text") -> list[Assignment]:
    """The assignments of a text, in order; separators inside braces and quotes belong to the value."""
    reader = Reader(text, "attrs", op)
    found: list[Assignment] = []
    reader.skip()
    while not reader.done:
        start = reader.at
        key = reader.match(_KEY)
        if key is None:
            reader.fail("name an attribute here", "Write data_format_ = NDHWC;")
        reader.skip()
        if not reader.take("="):
            reader.fail(f"go on with = after {key[0]}", "Write data_format_ = NDHWC;")
        reader.skip()
        value_at = reader.at
        value = _raw_value(reader)
        found.append(Assignment(key[0].rstrip("_"), value.rstrip(), start, value_at))
        reader.skip()
    return found


def _raw_value(reader: Reader) -> str:
    """Everything up to the next `;` that is outside of braces and quotes."""
    start = reader.at
    depth = 0
    while not reader.done:
        if reader.char == '"' and reader.match(_QUOTED) is not None:
            continue
        if reader.char == ";" and depth <= 0:
            break
        if reader.char == "=" and depth <= 0:
            reader.fail("end an attribute with ; before the next one")
        depth += (reader.char in "{[") - (reader.char in "}]")
        reader.at += 1
    value = reader.text[start : reader.at]
    reader.take(";")
    return value


def _single(read: Callable[[Reader], Any], what: str) -> Callable[[str, str, str], Any]:
    def parse(text: str, argument: str, op: str) -> Any:
        reader = Reader(text, argument, op)
        reader.skip()
        value = read(reader)
        reader.end(what)
        return value

    return parse


def _parse_text(text: str, argument: str, op: str) -> str:
    """A text is taken as it is, without the blanks around it; quotes keep them."""
    plain = text.strip()
    quoted = _QUOTED.fullmatch(plain)
    return bytes(parse_value(plain, None, argument, op).item()).decode() if quoted else plain


def _parse_texts(text: str, argument: str, op: str) -> tuple[str, ...]:
    def item(reader: Reader) -> str:
        match = reader.match(_QUOTED) or reader.match(_LIST_TEXT)
        if match is None:
            reader.fail("hold a text here")
        return _parse_text(match[0], argument, op)

    return tuple(read_list(Reader(text, argument, op), item))


_PARSERS: dict[str, Callable[[str, str, str], Any]] = {
    "int": _single(read_integer, "the integer"),
    "ints": parse_ints,
    "float": _single(read_number, "the number"),
    "floats": parse_floats,
    "bool": _single(read_boolean, "true or false"),
    "string": _parse_text,
    "strings": _parse_texts,
    "type": parse_type,
    "types": parse_types,
    "shape": parse_shape,
    "shapes": parse_shapes,
    "tensor": lambda text, argument, op: parse_value(text, None, argument, op),
}
