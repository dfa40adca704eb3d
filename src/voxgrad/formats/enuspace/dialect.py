# SPDX-License-Identifier: Apache-2.0
"""How the original read the texts of attributes: what it took besides the forms here, and what it took for another."""

from __future__ import annotations

import re
from typing import Any

from voxgrad.catalog.model import Attr, Op

READ_AS_INTEGERS = {("LRN", "bias"), ("LRN", "alpha"), ("LRN", "beta"), ("FusedBatchNorm", "epsilon")}
"""Fractions that it cut to whole numbers."""

_HEX = re.compile(r"\b0[xX]")
_WHOLE = re.compile(r"\s*([+-]?[0-9]+)")
_MISSPELT = {"dialtions": "dilations", "kip_header_lines": "skip_header_lines", "SharedName": "shared_name"}


def key_of(name: str) -> str:
    """The attribute that a key means: some are wrong in its library."""
    return _MISSPELT.get(name, name)


def settings(text: str) -> list[tuple[str, str]]:
    """Keys and values of `key_ = value;` as it split them: at every ; and at the first =, what has none passed over."""
    parts = (part.partition("=") for part in text.split(";") if "=" in part)
    return [(key.strip().rstrip("_"), value.strip()) for key, _, value in parts]


def spelled(attr: Attr, text: str) -> str:
    """The text of an attribute in the forms that are read here.

    Of numbers in a list it read as much as is a whole number, whichever separators and braces stand around them; a
    shape needed no braces.
    """
    if attr.kind == "shape" and text.strip() and not re.search(r"[\[{(]", text):
        return "{" + ",".join(re.split(r"[,;]", text.strip(" ;"))) + "}"
    if attr.kind in ("int", "ints") and not _HEX.search(text):
        items = re.split(r"[,;]", re.sub(r"[{}]", "", text).strip())
        if attr.kind == "ints" and len(items) > 1 and not items[-1]:
            items.pop()
        found = [_WHOLE.match(item) for item in items]
        if None not in found:
            return ",".join(match[1] for match in found if match is not None)
    return text


def is_cut(attr: Attr, text: str) -> bool:
    """True where it read less of a number than was written: 1.9 as 1, 2abc as 2."""
    if attr.kind not in ("int", "ints") or _HEX.search(text):
        return False
    return re.sub(r"[\s{}]", "", text).replace(";", ",").rstrip(",") != spelled(attr, text)


def ran_with(op: Op, attr: Attr, text: str, value: Any) -> Any:
    """The value that it ran with where it read a text otherwise than it is written; else the value itself."""
    if attr.kind == "bool" and text.strip() not in ("true", "TRUE", "1"):
        return False
    if (op.name, attr.name) in READ_AS_INTEGERS:
        return float(int(value))
    return value


def has_hex(text: str) -> bool:
    """True for a text with a hexadecimal number, which it knew in flat lists of float and double alone."""
    return _HEX.search(text) is not None
