# SPDX-License-Identifier: Apache-2.0
"""Shapes and element types in text: `[2][3]`, `{2,3}`, `[N, D, H, W, 1]`, `DT_FLOAT`."""

from __future__ import annotations

import difflib
import re

from voxgrad.catalog import dtypes
from voxgrad.catalog.attributes import INT32_MAX
from voxgrad.catalog.dtypes import DType
from voxgrad.formats.text.lists import CLOSING, read_list
from voxgrad.formats.text.numbers import WORD, read_integer
from voxgrad.formats.text.reader import Reader

Sizes = tuple[int | str | None, ...]
"""Sizes of a shape: a number, a symbol, or None where it is left open."""

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNKNOWN_RANK = "unknown"


def parse_shape(text: str, argument: str = "shape", op: str = "text") -> Sizes | None:
    """`[2][3]`, `{2,3}` or `[2,3]`; `{}`, `[]` or nothing for a scalar; -1 or ? for an open size; `unknown` for an
    open rank, which gives None."""
    reader = Reader(text, argument, op)
    reader.skip()
    if text.strip() == _UNKNOWN_RANK:
        return None
    if reader.done:
        return ()
    sizes = read_shape(reader)
    reader.end("the shape")
    return sizes


def parse_shapes(text: str, argument: str = "shapes", op: str = "text") -> tuple[Sizes, ...]:
    """A list of shapes: `{2,2},{3}` or `{{2,2},{3}}`; `{}` or nothing for no shapes."""
    reader = Reader(text, argument, op)
    reader.skip()
    wrapped = re.match(r"\s*\{\s*[{\[}]", text) is not None
    if wrapped:
        reader.at += 1
        reader.skip()
    shapes: list[Sizes] = []
    while not reader.done and reader.char != "}":
        shapes.append(read_shape(reader))
        reader.skip()
        if not reader.take(",") and not reader.take(";") and not reader.done and not (wrapped and reader.char == "}"):
            reader.fail("separate shapes by a comma", "Write {2,2},{3}.")
        reader.skip()
    if wrapped and not reader.take("}"):
        reader.fail("close the list with }")
    reader.end("the list of shapes")
    return tuple(shapes)


def read_shape(reader: Reader) -> Sizes:
    """One shape at the cursor."""
    opening = reader.char
    if opening not in ("[", "{", "("):
        reader.fail("be a shape", "Write [2][3] or {2,3}.")
    sizes: list[int | str | None] = []
    reader.at += 1
    reader.skip()
    while reader.char != CLOSING[opening]:
        sizes.append(_read_size(reader))
        reader.skip()
        if reader.char == CLOSING[opening]:
            break
        if not reader.take(","):
            reader.fail(f"go on with a comma or end with {CLOSING[opening]}", "Write [2][3] or {2,3}.")
        reader.skip()
        if reader.char == CLOSING[opening]:
            reader.fail("hold a size after the comma")
    reader.at += 1
    if opening == "[" and len(sizes) == 1:
        _read_more_brackets(reader, sizes)
    return tuple(sizes)


def _read_more_brackets(reader: Reader, sizes: list[int | str | None]) -> None:
    """The rest of the form `[2][3]`."""
    while reader.take("["):
        reader.skip()
        sizes.append(_read_size(reader))
        reader.skip()
        if not reader.take("]"):
            reader.fail("close the size with ]", "Write [2][3] or [2,3].")


def _read_size(reader: Reader) -> int | str | None:
    if reader.take("?"):
        return None
    symbol = reader.match(_SYMBOL)
    if symbol is not None:
        return symbol[0]
    size = read_integer(reader, (-1, INT32_MAX))
    return None if size == -1 else size


def parse_type(text: str, argument: str = "dtype", op: str = "text") -> DType:
    """An element type: `DT_FLOAT` or `float32`."""
    reader = Reader(text, argument, op)
    reader.skip()
    found = read_type(reader)
    reader.end("the type")
    return found


def parse_types(text: str, argument: str = "dtypes", op: str = "text") -> tuple[DType, ...]:
    """A list of element types: `DT_FLOAT,DT_INT32`, `{DT_FLOAT;DT_INT32}`."""
    return tuple(read_list(Reader(text, argument, op), read_type))


def read_type(reader: Reader) -> DType:
    """One element type at the cursor."""
    start = reader.at
    match = reader.match(WORD)
    name = match[0] if match is not None else ""
    found = dtypes.named(name)
    if found is None:
        reader.fail("name an element type, such as DT_FLOAT or float32", _nearest_type(name), at=start)
    return found


def _nearest_type(name: str) -> str:
    plain = name.removesuffix("_REF")
    if plain != name and dtypes.named(plain):
        return f"Write {plain}: a variable holds values of a type, not references."
    names = [one for dtype in (*dtypes.ALL, *dtypes.QUANTISED) for one in (dtype.enum_name, dtype.name)]
    folded = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"Did you mean {folded[near[0]]}?" if near else ""
