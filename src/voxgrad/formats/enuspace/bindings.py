# SPDX-License-Identifier: Apache-2.0
"""What scripts of enuSpace show: assignments of values of blocks to gadgets, read as text. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_MOST_LINES = 20_000
_MOST_LETTERS = 400
_READ = r"([A-Za-z_]\w*)\.(result_\w+)((?:\[[^\[\]]{1,40}\]){0,8})"
_TARGET = re.compile(r"([A-Za-z_]\w*)\.(\w+)((?:\[\w{1,20}\]){0,3})\s*=(?!=)\s*(.+?)\s*;?\s*")
_SET = re.compile(r"""SetAttribute\(\s*["']([A-Za-z_]\w*)\.(\w+)["']\s*,\s*(.+)\)\s*;?\s*""")
_FORMATTED = re.compile(rf"""string\.format\(\s*["']([^"']{{0,60}})["']\s*,\s*{_READ}\s*\)""")
_PLAIN = re.compile(rf"(?:tostring\(\s*)?{_READ}\s*\)?")
_JOINED = re.compile(rf"{_READ}\s*([-+*/])\s*{_READ}")
_TYPED = re.compile(r"(?:tonumber\(\s*)?([A-Za-z_]\w*)\.text\s*\)?")


@dataclass(frozen=True, slots=True)
class Read:
    """A value of a block that a gadget shows: `index` as it is written, `format` where there is one."""

    block: str
    pin: str
    index: tuple[str, ...]
    format: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """Two values with an arithmetic sign between them, which a script computed for a gadget."""

    first: Read
    sign: str
    second: Read


@dataclass(slots=True)
class Meant:
    """What scripts do: gadgets that show a value, blocks that take a text."""

    reads: dict[str, Read] = field(default_factory=dict)
    writes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Per edit box, the block and the pin that take its text."""
    joined: dict[str, Joined] = field(default_factory=dict)
    """Gadgets that show something that no block computes."""


def meaning_of(scripts: Iterable[str]) -> Meant:
    """What the scripts of a page mean."""
    meant = Meant()
    lines = [line for script in scripts for line in script.splitlines()[:_MOST_LINES]]
    for line in lines[:_MOST_LINES]:
        said = line.partition("--")[0].partition("//")[0].strip()
        if said and len(said) <= _MOST_LETTERS:
            _take(said, meant)
    return meant


def _take(said: str, meant: Meant) -> None:
    found = _TARGET.fullmatch(said)
    target, entry, value = (found[1], found[2], found[4]) if found else ("", "", "")
    if not found and (call := _SET.fullmatch(said)):
        target, entry, value = call[1], call[2], call[3]
    formatted, plain, typed = _FORMATTED.fullmatch(value), _PLAIN.fullmatch(value), _TYPED.fullmatch(value)
    if formatted and entry in ("text", "textContent"):
        meant.reads[target] = Read(formatted[2], formatted[3], _indices(formatted[4]), formatted[1])
    elif plain and entry in ("text", "textContent", "data"):
        meant.reads[target] = Read(plain[1], plain[2], _indices(plain[3]))
    elif typed:
        meant.writes[typed[1]] = (target, entry)
    elif entry == "data" and (both := _JOINED.fullmatch(value)):
        first, second = (Read(both[at], both[at + 1], _indices(both[at + 2])) for at in (1, 5))
        meant.joined[target] = Joined(first, both[4], second)


def _indices(text: str) -> tuple[str, ...]:
    return tuple(one.replace(" ", "") for one in re.findall(r"\[([^\[\]]+)\]", text))
