# SPDX-License-Identifier: Apache-2.0
"""What stands around the elements of an array as NumPy and torch print it: `array([[1, 2]], dtype=float32)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.formats.text.reader import Reader
from voxgrad.formats.text.shapes import read_shape, read_type

_ASSIGNED = re.compile(r"[A-Za-z_]\w*\s*=(?!=)\s*(?=[\[A-Za-z])")
_OPENED = re.compile(r"(?:(?:np|numpy|jnp|torch|tf)\.)?(array|asarray|tensor|constant)\s*\(\s*")
_DTYPE = re.compile(r"dtype\s*=\s*(?:(?:np|numpy|jnp|torch|tf)\.)?(['\"]?)")
_SHAPE = re.compile(r"shape\s*=\s*")
_BESIDE_VALUES = re.compile(r"device\s*=\s*'[^']*'|requires_grad\s*=\s*(?:True|False)|grad_fn\s*=\s*<[^<>]*>")
_NAMES = {"bool_": dtypes.BOOL, "float": dtypes.FLOAT64, "int": dtypes.INT64, "float16": dtypes.HALF}


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What surrounds the elements: the type and the shape that are told, and the types where none is."""

    dtype: DType | None
    shape: tuple[int, ...] | None
    natural: dict[str, DType]


def skip_assigned(reader: Reader) -> bool:
    """Pass over `x = ` in front of an array or a rule; whether a semicolon may end the line."""
    return reader.match(_ASSIGNED) is not None


def read_opening(reader: Reader) -> str:
    """Pass over `np.array(`; the name of the function, or ""."""
    found = reader.match(_OPENED)
    return found[1] if found is not None else ""


def read_closing(reader: Reader, function: str) -> Wrapped:
    """What stands behind the elements, up to the bracket that closes the call."""
    dtype, shape = None, None
    reader.skip()
    while not reader.take(")"):
        if not reader.take(","):
            reader.fail("go on with a comma or end with )")
        reader.skip()
        quote = reader.match(_DTYPE)
        if quote is not None:
            dtype = _read_type(reader)
            if quote[1] and not reader.take(quote[1]):
                reader.fail(f"close the name of the type with {quote[1]}")
        elif reader.match(_SHAPE) is not None:
            shape = _read_sizes(reader)
        elif reader.match(_BESIDE_VALUES) is None and reader.char != ")":
            reader.fail("be dtype=..., or end with )", "Only values and their type are read.")
        reader.skip()
    torch = function == "tensor"
    return Wrapped(dtype, shape, {"int": dtypes.INT64, "double": dtypes.FLOAT32 if torch else dtypes.FLOAT64})


def _read_type(reader: Reader) -> DType:
    word = re.compile(r"[A-Za-z_]\w*").match(reader.text, reader.at)
    if word is not None and word[0] in _NAMES:
        reader.at = word.end()
        return _NAMES[word[0]]
    end = re.compile(r"\w*").match(reader.text, reader.at)
    # A type is a word: the bracket and the quote behind it are not its own.
    part = Reader(reader.text[: end.end()] if end is not None else reader.text, reader.argument, reader.op)
    part.at = reader.at
    found = read_type(part)
    reader.at = part.at
    return found


def _read_sizes(reader: Reader) -> tuple[int, ...]:
    sizes, at = read_shape(reader), reader.at
    if not all(isinstance(one, int) for one in sizes):
        reader.fail("be a shape of known sizes", at=at)
    return tuple(one for one in sizes if isinstance(one, int))
