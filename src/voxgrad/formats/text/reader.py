# SPDX-License-Identifier: Apache-2.0
"""A cursor over a text, and the error that points at a character of it."""

from __future__ import annotations

import re
from typing import NoReturn

from voxgrad.errors import Fault, InvalidArgumentError

MAX_LENGTH = 2**24
"""Characters of the longest text that is read as a value; larger values belong into a file."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_WIDTH = 72


class TextError(InvalidArgumentError):
    """A text that is no value. `text` is what was read, `at` the index of the character that is wrong."""

    def __init__(self, fault: Fault | str, text: str = "", at: int = 0):
        super().__init__(fault)
        self.text = text
        self.at = at

    def within(self, whole: str, offset: int) -> TextError:
        """The same error in a longer text that holds this one from `offset` on."""
        fault = self.faults[0]
        at = offset + self.at
        moved = Fault(
            fault.code, fault.op, fault.argument, fault.wanted, fault.got, fault.remedy, point_at(whole, at)
        )  # fmt: skip
        return TextError(moved, whole, at)


def point_at(text: str, at: int) -> str:
    """The line of `text` that holds the character at `at`, and a caret under it."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end].replace("\t", " ")
    column = at - start
    head = f"line {text.count(chr(10), 0, at) + 1}: " if "\n" in text else ""
    # A long line is cut to the neighbourhood of the mark.
    cut = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    shown = line[cut : cut + _WIDTH]
    before = "..." if cut else ""
    after = "..." if cut + _WIDTH < len(line) else ""
    return f"{head}{before}{shown}{after}\n{' ' * (len(head) + len(before) + column - cut)}^"


class Reader:
    """Reads a text from left to right; `fail` raises an error that points at the current character."""

    def __init__(self, text: str, argument: str, op: str):
        self.text = text
        self.argument = argument
        self.op = op
        self.at = 0
        if len(text) > MAX_LENGTH:
            self.fail(f"have at most {MAX_LENGTH} characters", "Put large values into a file.", at=MAX_LENGTH)

    def fail(self, wanted: str, remedy: str = "", at: int | None = None) -> NoReturn:
        """Raise: `wanted` completes the sentence "the text must ..."."""
        place = self.at if at is None else at
        got = repr(self.text[place : place + 12]) if place < len(self.text) else "the end of the text"
        raise TextError(
            Fault("VG052", self.op, self.argument, wanted, got, remedy, point_at(self.text, place)), self.text, place
        )

    def skip(self) -> None:
        """Move over blanks."""
        match = _BLANKS.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    @property
    def char(self) -> str:
        """The current character, "" at the end."""
        return self.text[self.at : self.at + 1]

    @property
    def done(self) -> bool:
        """True after the last character."""
        return self.at >= len(self.text)

    def take(self, char: str) -> bool:
        """Move over `char` if it is the current one."""
        if self.char != char or not char:
            return False
        self.at += 1
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move over what `pattern` matches here."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def end(self, what: str, remedy: str = "") -> None:
        """Nothing but blanks may follow."""
        self.skip()
        if not self.done:
            self.fail(f"end after {what}", remedy)
