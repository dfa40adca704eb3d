# SPDX-License-Identifier: Apache-2.0
"""Attribute values: from what a caller wrote to the one canonical form of each kind."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import REQUIRED, Attr, Op
from voxgrad.errors import Faults, safe_repr

INT32_MAX = 2**31 - 1
_BAD = object()


def _integer(value: Any) -> Any:
    if isinstance(value, (float, str, bytes)):
        return _BAD
    try:
        return operator.index(value)
    except TypeError:
        return _BAD


def _integers(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return _BAD
    items = tuple(_integer(item) for item in value)
    return _BAD if _BAD in items else items


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return _BAD
    return value if isinstance(value, str) else _BAD


def _number(value: Any) -> Any:
    if isinstance(value, (str, bytes, bool)):
        return _BAD
    try:
        return float(value)
    except (TypeError, ValueError):
        return _BAD


def _boolean(value: Any) -> Any:
    # numpy.bool_ has no common base with bool, but is one of two values and says so when compared.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    return _BAD


def _dtype(value: Any) -> Any:
    if isinstance(value, dtypes.DType):
        return value
    name = (
        value
        if isinstance(value, str)
        else getattr(value, "__name__", None) or str(getattr(value, "name", None) or safe_repr(value))
    )
    return dtypes.named(name.removeprefix("torch.")) or _BAD


def _many(one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return _BAD
        items = tuple(one(item) for item in value)
        return _BAD if any(item is _BAD for item in items) else items

    return parse


def _shape(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        return _BAD
    items = tuple(item if item is None or isinstance(item, str) else _integer(item) for item in value)
    return _BAD if any(item is _BAD for item in items) else items


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int": ("an integer", _integer),
    "ints": ("a list of integers", _integers),
    "float": ("a number", _number),
    "floats": ("a list of numbers", _many(_number)),
    "bool": ("True or False", _boolean),
    "string": ("text", _text),
    "strings": ("a list of texts", _many(_text)),
    "type": ("an element type such as 'float32'", _dtype),
    "types": ("a list of element types", _many(_dtype)),
    "shape": ("a shape such as [2, 3]", _shape),
    "shapes": ("a list of shapes", _many(_shape)),
    "tensor": ("an array", lambda value: value),
}
"""Per kind: how messages call it, and the parser from a Python value, which returns a private mark for a bad one."""


def canonical(op: Op, given: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """The attributes of a call in canonical form; what is wrong goes to `faults` and is left out."""
    values: dict[str, Any] = {}
    for attr in op.attrs:
        value = given.get(attr.name, attr.default)
        if value is REQUIRED:
            faults.add("VG001", attr.name, wanted="be given", got="no value", remedy=attr.doc)
            continue
        if value is None and not attr.required:
            value = attr.default
        parsed = _parse(attr, value, faults)
        if parsed is not _BAD:
            values[attr.name] = parsed
    return values


def _parse(attr: Attr, value: Any, faults: Faults) -> Any:
    wanted, parse = KINDS[attr.kind]
    parsed = parse(value)
    if parsed is _BAD:
        faults.add("VG002", attr.name, wanted=f"be {wanted}", got=f"{type(value).__name__} {safe_repr(value)}")
        return _BAD
    value, why = settled(attr, parsed)
    if why is not None:
        faults.add(why.code, attr.name, wanted=why.wanted, got=why.got, remedy=why.remedy)
        return _BAD
    return value


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a value of the right kind is none of an attribute's, as the parts of a fault."""

    code: str
    wanted: str
    got: Any
    remedy: str = ""


def settled(attr: Attr, value: Any) -> tuple[Any, Unmet | None]:
    """A value of an attribute's kind as the ops take it, and why they do not: choices, length, range."""
    if attr.also is not None and value not in attr.choices and (other := attr.also(value)) is not None:
        return other, None
    if attr.kind == "type":
        # Quantised integers and the plain ones that hold them stand for each other.
        held = dtypes.plain(value)
        value = next((one for one in attr.choices if one is value or dtypes.plain(one) is held), value)
    if attr.choices and value not in attr.choices:
        listed = " or ".join(repr(choice) for choice in attr.choices)
        near = next((choice for choice in attr.choices if str(choice).lower() == str(value).lower().strip()), None)
        remedy = f"Write {near!r}: the name is taken letter by letter." if near is not None else ""
        return value, Unmet("VG003", f"be {listed}", repr(value), remedy)
    if attr.length is not None and len(value) != attr.length:
        return value, Unmet("VG004", f"have {attr.length} entries", f"{len(value)}: {list(value)[:12]}")
    if attr.kind == "ints" and not attr.wide and any(abs(item) > INT32_MAX for item in value):
        return value, Unmet("VG005", "hold 32-bit integers", value)
    return value, None
