# SPDX-License-Identifier: Apache-2.0
"""Single numbers and truth values in text."""

from __future__ import annotations

import re

from voxgrad.formats.text.reader import Reader

_HEX = r"[+-]?0[xX][0-9A-Fa-f]{1,16}(?![0-9A-Za-z_.])"
INTEGER = re.compile(rf"{_HEX}|[+-]?[0-9]+(?![0-9A-Za-z_.])")
NUMBER = re.compile(
    rf"(?P<hex>{_HEX})"
    r"|(?P<digits>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<suffix>[fF]?)(?![0-9A-Za-z_.])"
    r"|(?P<special>[+-]?(?:inf|Inf|nan|NaN))(?![0-9A-Za-z_.])"
)
BOOLEANS = {
    "true": True,
    "TRUE": True,
    "True": True,
    "1": True,
    "false": False,
    "FALSE": False,
    "False": False,
    "0": False,
}
WORD = re.compile(r"[^\s,;{}\[\]()=\"]+")
INT64 = (-(2**63), 2**63 - 1)
_MAX_DIGITS = 40


def whole(text: str) -> int:
    """A whole number in decimal digits, or in hexadecimal ones behind 0x."""
    return int(text, 16 if "x" in text.lower() else 10)


def decimal(number: re.Match[str]) -> str:
    """What NUMBER found, in the digits of Python."""
    return str(whole(number["hex"])) if number["hex"] else (number["special"] or "").lower() or number["digits"]


def read_integer(reader: Reader, limits: tuple[int, int] = INT64) -> int:
    """A whole number within `limits`, as 31 or 0x1F; `1.9`, `2abc` and `1e3` are none."""
    start = reader.at
    match = reader.match(INTEGER)
    if match is None:
        _not_integer(reader)
    assert match is not None
    text = match[0]
    value = whole(text) if len(text) <= _MAX_DIGITS else limits[1] + 1
    if not limits[0] <= value <= limits[1]:
        reader.fail(f"hold integers from {limits[0]} to {limits[1]}", at=start)
    return value


def _not_integer(reader: Reader) -> None:
    """Point at the first character that makes the number no integer."""
    number = NUMBER.match(reader.text, reader.at)
    digits = re.compile(r"[+-]?[0-9]+").match(reader.text, reader.at)
    if digits is not None:
        fits = number is not None and not number["special"] and float(decimal(number)).is_integer()
        remedy = f"Write {int(float(decimal(number)))}." if number is not None and fits and len(number[0]) < 16 else ""
        reader.fail("hold whole numbers here", remedy or "Write an integer such as 2.", at=digits.end())
    reader.fail("hold an integer here", "Write a list as 1,2,2,2,1." if reader.char in ",;" else "")


def read_number(reader: Reader) -> float:
    """A number such as 1, -0.5, 1e-3, 1.0f, 0x1F, inf, nan."""
    match = reader.match(NUMBER)
    if match is None:
        digits = re.compile(r"[+-]?[0-9]+\.?[0-9]*").match(reader.text, reader.at)
        reader.fail("hold a number such as 0.5 or 1e-3 here", at=digits.end() if digits else None)
    value = float(decimal(match))
    if not match["special"] and value in (float("inf"), float("-inf")):
        reader.fail("hold numbers that float64 can hold", "Write inf for infinity.", at=match.start())
    return value


def read_boolean(reader: Reader) -> bool:
    """true or false, in the three usual spellings, or 1 or 0."""
    start = reader.at
    match = reader.match(WORD)
    if match is None or match[0] not in BOOLEANS:
        reader.fail("be true or false", at=start)
    return BOOLEANS[match[0]]
