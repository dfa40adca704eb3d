# SPDX-License-Identifier: Apache-2.0
"""Flat lists in text: `1,2,2,2,1`, `{1,2,2,2,1}`, `[1,2,2,2,1]`, `1;2;2;2;1;`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from voxgrad.formats.text.numbers import read_integer, read_number
from voxgrad.formats.text.reader import Reader

Item = TypeVar("Item")
CLOSING = {"{": "}", "[": "]", "(": ")"}


def parse_ints(text: str, argument: str = "list", op: str = "text") -> tuple[int, ...]:
    """A list of integers."""
    return tuple(read_list(Reader(text, argument, op), read_integer))


def parse_floats(text: str, argument: str = "list", op: str = "text") -> tuple[float, ...]:
    """A list of numbers."""
    return tuple(read_list(Reader(text, argument, op), read_number))


def read_list(reader: Reader, item: Callable[[Reader], Item]) -> list[Item]:
    """The items of a list that fills the rest of the text."""
    reader.skip()
    closing = CLOSING.get(reader.char, "")
    if closing:
        reader.at += 1
    elif reader.done:
        reader.fail("hold a list", "Write {} for an empty list.")
    items = _items(reader, item, closing)
    if closing and not reader.take(closing):
        reader.fail(f"close the list with {closing}")
    again = reader.char == "[" and closing == "]"
    reader.end("the list", "That is the form of a shape; write a list as 1,2,2,2,1." if again else "")
    return items


def _items(reader: Reader, item: Callable[[Reader], Item], closing: str) -> list[Item]:
    items: list[Item] = []
    separator = ""
    reader.skip()
    while not reader.done and reader.char != closing:
        if reader.char in CLOSING:
            reader.fail("hold one flat list", "Brackets go around the whole list only.")
        items.append(item(reader))
        reader.skip()
        if reader.done or reader.char == closing:
            break
        if reader.char not in (",", ";"):
            reader.fail("separate items by a comma", "Write a list as 1,2,2,2,1.")
        if separator and reader.char != separator:
            reader.fail(f"use one separator, {separator!r}, throughout", "A decimal comma is not understood.")
        separator = reader.char
        reader.at += 1
        reader.skip()
    return items
