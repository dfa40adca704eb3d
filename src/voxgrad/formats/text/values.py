# SPDX-License-Identifier: Apache-2.0
"""Arrays in text: nested initialisers `{{1,2},{3,4}}`, rows as a spreadsheet has them, arrays as NumPy, torch and
MATLAB write them, rules such as `range(32)`; flat arrays with a shape beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.formats.text.foreign import Wrapped, read_closing, read_opening, skip_assigned
from voxgrad.formats.text.lists import CLOSING
from voxgrad.formats.text.makers import Recipe, read_recipe
from voxgrad.formats.text.numbers import BOOLEANS, NUMBER, decimal
from voxgrad.formats.text.reader import Reader

Array = np.ndarray[Any, Any]
MAX_DEPTH = 16

_REAL = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMPLEX = re.compile(rf"(?P<real>[+-]?{_REAL}(?=[+-]))?(?P<imaginary>[+-]?{_REAL})[jJ](?![0-9A-Za-z_.])")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r"[^\s,;{}\[\]\"](?:[^,;{}\[\]\"]*[^\s,;{}\[\]\"])?")
_BETWEEN = re.compile(r"[ ]*(?:[,;\t]|\r?\n)?[ \r]*\n?[ ]*")
_MATRIX = re.compile(r"\[(?=[^\[\]{}\"]*;)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One element as it was written: its form, its text and its place."""

    form: str
    text: str
    at: int


def parse_value(text: str, dtype: DType | None = None, argument: str = "value", op: str = "text") -> Array:
    """A scalar, a nested list, `1,2,3` or `1;2;3` for a vector, lines of such rows (or of cells between tabs, as a
    spreadsheet copies them) for a matrix, `array([[1, 2]], dtype=float32)` and `[[1. 2.]]` of NumPy, `[1 2; 3 4]` of
    MATLAB, or a rule: `range(32)`, `full([2,3], 0.5)`, `normal([2,3], 0, 1, seed=7)`.

    Without `dtype` the way the elements are written decides: quotes make strings, true and false bool, `j` complex128,
    the suffix `f` float32, a point or an exponent float64, and the rest int32."""
    reader = Reader(text, argument, op)
    reader.skip()
    if dtype == dtypes.STRING and reader.char not in ("{", "[", '"'):
        return _strings([text.strip()]).reshape(())
    assigned = skip_assigned(reader)
    recipe = read_recipe(reader, dtype)
    if recipe is not None:
        _check_end(reader, assigned)
        return recipe.values()
    function = read_opening(reader)
    ends = assigned or _MATRIX.match(text, reader.at) is not None
    shape, leaves = _read_array(reader, dtype, bool(function))
    wrapped = read_closing(reader, function) if function else None
    _check_end(reader, ends)
    known = dtype or (wrapped.dtype if wrapped is not None else None)
    if known is None and not leaves and wrapped is None:
        reader.fail("hold an element, or come with a type", at=0)
    made = _array(reader, leaves, known or _natural_type(reader, leaves, wrapped))
    return made.reshape(_stated(reader, wrapped, shape) if wrapped is not None else shape)


def read_rule(text: str, dtype: DType | None = None) -> Recipe | None:
    """The rule that a text is, before anything is made; None for any other text."""
    reader = Reader(text, "value", "text")
    reader.skip()
    skip_assigned(reader)
    return read_recipe(reader, dtype)


def _stated(reader: Reader, wrapped: Wrapped, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that NumPy tells of an empty array, where elements cannot."""
    if wrapped.shape is None or wrapped.shape == shape:
        return shape
    if math.prod(wrapped.shape) != math.prod(shape):
        reader.fail(f"hold {math.prod(wrapped.shape)} elements, its shape", f"There are {math.prod(shape)}.", at=0)
    return wrapped.shape


def parse_flat(text: str, dtype: DType, shape: Sequence[int], argument: str = "value", op: str = "text") -> Array:
    """The elements of an array in row-major order, `1;2;3;4` or `{1,2,3,4}`, with a type and a shape from elsewhere."""
    reader = Reader(text, argument, op)
    reader.skip()
    if dtype == dtypes.STRING and reader.char != "{":
        leaves = [_Leaf("string", item, 0) for item in text.removesuffix(";").split(";")]
    elif reader.char in ("{", "["):
        _, leaves = _read_nested(reader, dtype)
        reader.end("the array")
    else:
        leaves = _read_row(reader, dtype)
    count = math.prod(shape)
    if len(leaves) != count:
        shown = "".join(f"[{size}]" for size in shape) or "a scalar"
        reader.fail(
            f"hold {count} elements, the shape {shown}", f"There are {len(leaves)}.", at=min(reader.at, len(text))
        )
    return _array(reader, leaves, dtype).reshape(tuple(shape))


def _read_row(reader: Reader, dtype: DType) -> list[_Leaf]:
    """Elements without braces; one trailing separator is allowed."""
    leaves: list[_Leaf] = []
    while not reader.done:
        leaves.append(_read_leaf(reader, dtype))
        reader.skip()
        if not reader.done and not reader.take(";") and not reader.take(","):
            reader.fail("separate elements by ;")
        reader.skip()
    return leaves


def _read_rows(reader: Reader, dtype: DType | None) -> tuple[tuple[int, ...], list[_Leaf]]:
    """Elements without braces: one is a scalar, a row of them a vector, several lines a matrix."""
    rows: list[list[_Leaf]] = [[]]
    starts, separated, used = [reader.at], False, ""
    while True:
        if not rows[-1]:
            starts[-1] = reader.at
        rows[-1].append(_read_leaf(reader, dtype))
        between = reader.match(_BETWEEN)
        separated = separated or (between is not None and between[0].strip(" ") != "")
        mark = between[0].strip() if between is not None else ""
        if mark and mark != (used := used or mark):
            told = (
                "1,2;3,4 could be four numbers, two rows, or two with a decimal comma. Write {{1,2},{3,4}} or 1.2;3.4."
            )
            reader.fail(f"use one separator, {used!r}, throughout", told, at=between.start() if between else 0)
        if between is None or reader.done:
            break
        if "\n" in between[0]:
            rows.append([])
            starts.append(reader.at)
        elif not between[0].strip(" "):
            reader.fail("separate elements by a comma, a semicolon, a tab or a line", at=between.start())
    width = len(rows[0])
    for row, at in zip(rows, starts, strict=True):
        if len(row) != width:
            reader.fail(f"have rows of equal length, {width} here", f"This row has {len(row)}.", at=at)
    leaves = [leaf for row in rows for leaf in row]
    if len(rows) > 1:
        return (len(rows), width), leaves
    return ((width,) if separated else ()), leaves


def _read_array(reader: Reader, dtype: DType | None, inside: bool) -> tuple[tuple[int, ...], list[_Leaf]]:
    """The shape and the elements of a text that is no rule; inside of a call, `array(5)`, rows have brackets."""
    if _MATRIX.match(reader.text, reader.at):
        return _read_matrix(reader, dtype)
    if reader.char in ("{", "["):
        return _read_nested(reader, dtype)
    return ((), [_read_leaf(reader, dtype)]) if inside else _read_rows(reader, dtype)


def _read_matrix(reader: Reader, dtype: DType | None) -> tuple[tuple[int, ...], list[_Leaf]]:
    """`[1 2; 3 4]`: rows between semicolons, of elements between blanks or commas."""
    reader.at += 1
    rows: list[list[_Leaf]] = [[]]
    reader.skip()
    start = reader.at
    while not reader.take("]"):
        if reader.take(";"):
            reader.skip()
            # MATLAB ends the last row with a semicolon, too, where one is written.
            if reader.char == "]":
                continue
            rows.append([])
            start = reader.at
        elif rows[-1] and not reader.take(",") and reader.text[reader.at - 1] not in " \t\r\n":
            reader.fail("go on with a blank, a comma, or ; behind a row, or end with ]")
        reader.skip()
        rows[-1].append(_read_leaf(reader, dtype))
        reader.skip()
        if reader.char in (";", "]") and len(rows[-1]) != len(rows[0]):
            told = f"This row has {len(rows[-1])}."
            reader.fail(f"have rows of equal length, {len(rows[0])} here", told, at=start)
    return (len(rows), len(rows[0])), [leaf for row in rows for leaf in row]


def _read_nested(reader: Reader, dtype: DType | None) -> tuple[tuple[int, ...], list[_Leaf]]:
    """The shape and the elements, in order."""
    nested = _Nested(reader, dtype)
    nested.visit(0)
    return tuple(nested.sizes[depth] for depth in sorted(nested.sizes)), nested.leaves


class _Nested:
    """Reads braces in braces. The first row at each depth fixes the size of all others at that depth."""

    def __init__(self, reader: Reader, dtype: DType | None):
        self.reader = reader
        self.dtype = dtype
        self.leaves: list[_Leaf] = []
        self.sizes: dict[int, int] = {}
        self.rank: int | None = None
        self.blanks: bool | None = None
        self.behind = 0

    def visit(self, depth: int) -> None:
        """An element or a row of elements at the cursor."""
        reader = self.reader
        if reader.char not in ("{", "["):
            self._check_depth(depth)
            self.leaves.append(_read_leaf(reader, self.dtype))
            return
        if depth == MAX_DEPTH:
            reader.fail(f"nest at most {MAX_DEPTH} deep")
        if self.rank is not None and depth >= self.rank:
            reader.fail(f"have its elements in {self.rank} braces throughout", "This one is in more.")
        start = reader.at
        count = self._row(CLOSING[reader.char], depth)
        if count == 0:
            self._check_depth(depth + 1, start)
        wanted = self.sizes.setdefault(depth, count)
        if count != wanted:
            reader.fail(f"have rows of equal length, {wanted} here", f"This row has {count}.", at=start)

    def _check_depth(self, depth: int, at: int | None = None) -> None:
        if self.rank is None:
            self.rank = depth
        elif self.rank != depth:
            self.reader.fail(f"have its elements in {self.rank} braces throughout", f"This one is in {depth}.", at=at)

    def _row(self, closing: str, depth: int) -> int:
        """The elements between two braces; how many there were."""
        reader = self.reader
        reader.at += 1
        reader.skip()
        count = 0
        while not reader.take(closing):
            if count:
                self._separate(closing, depth)
            self.visit(depth + 1)
            self.behind = reader.at
            reader.skip()
            count += 1
        return count

    def _separate(self, closing: str, depth: int) -> None:
        """Move over what stands between two elements: a comma, or blanks as NumPy prints them, throughout."""
        reader = self.reader
        blanks = closing == "]" and reader.at > self.behind and reader.char not in (",", ";")
        if not blanks and not reader.take(","):
            remedy = "Inside braces elements are separated by commas." if reader.char == ";" else ""
            reader.fail(f"go on with a comma or end with {closing}", remedy)
        if self.blanks is None:
            self.blanks = blanks
        elif self.blanks != blanks:
            wanted = "use blanks throughout, or commas" if self.blanks else "use commas throughout, or blanks"
            reader.fail(wanted, at=reader.at - (not blanks))
        if blanks and depth == 0 and reader.char != "[" and "\n" in reader.text[self.behind : reader.at]:
            remedy = "A line may end a row or not: write ; between rows, or commas between elements."
            reader.fail("say where a row ends", remedy)
        reader.skip()


def _check_end(reader: Reader, ends: bool) -> None:
    """Nothing may follow; MATLAB ends a line with a semicolon."""
    reader.skip()
    if ends and reader.take(";"):
        reader.skip()
    if reader.char in (",", ";"):
        reader.fail("be one scalar or one list in braces", "Write {1,2,3}.")
    reader.end("the value", "[2][3] is the form of a shape." if reader.char == "[" else "")


def _read_leaf(reader: Reader, dtype: DType | None) -> _Leaf:
    """One element, as it was written."""
    start = reader.at
    quoted = reader.match(_QUOTED)
    if quoted is not None:
        return _Leaf("string", _unescaped(reader, quoted[1], start), start)
    if dtype == dtypes.STRING:
        bare = reader.match(_BARE)
        if bare is None:
            reader.fail('hold a text here, such as "volume"')
        return _Leaf("string", bare[0], start)
    complex_ = reader.match(_COMPLEX)
    if complex_ is not None:
        return _Leaf("complex", complex_[0], start)
    number = reader.match(NUMBER)
    if number is not None:
        return _Leaf(_number_form(number), decimal(number), start)
    word = reader.match(_BARE)
    if word is not None and word[0] in BOOLEANS:
        return _Leaf("bool", word[0], start)
    return _no_leaf(reader, word)


def _no_leaf(reader: Reader, word: re.Match[str] | None) -> NoReturn:
    start = reader.at if word is None else word.start()
    digits = re.compile(r"[+-]?[0-9]+\.?[0-9]*").match(reader.text, start)
    remedy = f'Text goes in quotes: "{word[0]}".' if word is not None and not digits and len(word[0]) < 40 else ""
    if reader.text.startswith("...", start):
        remedy = "Elements were left out when this was printed: np.set_printoptions(threshold=10**6) prints them all."
    reader.fail("hold a number, true, false or a text in quotes here", remedy, at=digits.end() if digits else start)


def _number_form(number: re.Match[str]) -> str:
    if number["hex"]:
        return "int"
    if number["special"]:
        return "double"
    if number["suffix"]:
        return "float"
    return "double" if any(mark in number["digits"] for mark in ".eE") else "int"


def _unescaped(reader: Reader, text: str, start: int) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            reader.fail('use \\n, \\t, \\r, \\0, \\" or \\\\ after a backslash', at=start + 1 + match.start())
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", plain, text, flags=re.DOTALL)


def _natural_type(reader: Reader, leaves: list[_Leaf], wrapped: Wrapped | None = None) -> DType:
    """The element type that the way of writing stands for; an array of NumPy's or torch's has their own."""
    own = {} if wrapped is None else wrapped.natural
    forms = {leaf.form for leaf in leaves}
    for form, dtype in (("string", dtypes.STRING), ("bool", dtypes.BOOL)):
        if form in forms:
            if len(forms) > 1:
                other = next(leaf for leaf in leaves if leaf.form != form)
                reader.fail(f"hold elements of one kind, {dtype}", at=other.at)
            return dtype
    for form, dtype in (("complex", dtypes.COMPLEX128), ("float", dtypes.FLOAT32), ("double", dtypes.FLOAT64)):
        if form in forms:
            return own.get(form, dtype)
    return own.get("int" if leaves else "double", dtypes.INT32)


def _array(reader: Reader, leaves: list[_Leaf], dtype: DType) -> Array:
    """The elements as a vector of the given type; an element that the type cannot hold is an error at its place."""
    if dtype == dtypes.STRING:
        return _strings([leaf.text for leaf in leaves])
    if dtype == dtypes.RESOURCE:
        reader.fail("not be needed: a resource has no text", at=0)
    convert = _CONVERTERS[dtype.kind]
    return np.array([convert(reader, leaf, dtype) for leaf in leaves], dtype=numpy_type(dtype))


def _strings(texts: list[str]) -> Array:
    """Texts as TensorFlow holds them: bytes."""
    made: Array = np.empty(len(texts), dtype=object)
    made[:] = [text.encode() for text in texts]
    return made


def _to_bool(reader: Reader, leaf: _Leaf, dtype: DType) -> bool:
    if leaf.text not in BOOLEANS:
        reader.fail("hold true or false here", at=leaf.at)
    return BOOLEANS[leaf.text]


def _to_int(reader: Reader, leaf: _Leaf, dtype: DType) -> int:
    if leaf.form != "int":
        reader.fail(
            f"hold integers, {dtype}, here", "Write the value without a point, or choose a float type.", at=leaf.at
        )
    info = np.iinfo(numpy_type(dtype))
    value = int(leaf.text) if len(leaf.text) < 40 else info.max + 1
    if not info.min <= value <= info.max:
        remedy = "Choose the type DT_INT64." if dtype == dtypes.INT32 else ""
        reader.fail(f"hold {dtype}, from {info.min} to {info.max}, here", remedy, at=leaf.at)
    return value


def _to_float(reader: Reader, leaf: _Leaf, dtype: DType) -> float:
    if leaf.form not in ("int", "float", "double"):
        reader.fail(f"hold numbers, {dtype}, here", at=leaf.at)
    value = float(leaf.text)
    _check_range(reader, leaf, value, dtype)
    return value


def _to_complex(reader: Reader, leaf: _Leaf, dtype: DType) -> complex:
    if leaf.form not in ("int", "float", "double", "complex"):
        reader.fail(f"hold numbers, {dtype}, here", at=leaf.at)
    value = complex(leaf.text)
    _check_range(reader, leaf, value, dtype)
    return value


def _check_range(reader: Reader, leaf: _Leaf, value: complex, dtype: DType) -> None:
    with np.errstate(over="ignore"):
        held = np.asarray(value).astype(numpy_type(dtype))
    if leaf.text.lstrip("+-") != "inf" and bool(np.isinf(held)):
        reader.fail(f"hold numbers within the range of {dtype}", "Write inf for infinity.", at=leaf.at)


_CONVERTERS: dict[str, Callable[[Reader, _Leaf, DType], Any]] = {
    "bool": _to_bool,
    "int": _to_int,
    "uint": _to_int,
    "float": _to_float,
    "complex": _to_complex,
}
