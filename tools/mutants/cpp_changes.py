# SPDX-License-Identifier: Apache-2.0
"""Changes of C++ sources, found in their tokens: not in comments, strings, preprocessor lines, template brackets.

The sources are laid out so that an operator between two operands has a space on both sides, and a template bracket has
not; that tells one from the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.mutants.change import Change

_TOKEN = re.compile(
    rb"""(?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eE][-+]?\d|[\w.'])*)
    |(?P<mark><=>|<<=|>>=|->|\+\+|--|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|<<|>>|.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_TURNED = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
           "&&": ("||",), "||": ("&&",)}  # fmt: skip
_SIGNS = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
_STEPS = {"+=": "-=", "-=": "+="}
_EXTREMES = {"min": "max", "max": "min", "true": "false", "false": "true"}
_FIXED = ("<", "case", "alignas")
"""What stands before a number that is no bound."""
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    is_word: bool
    is_number: bool


def _tokens(source: bytes) -> list[_Token]:
    return [
        _Token(one.group().decode(), one.start(), one.end(), one.lastgroup == "word", one.lastgroup == "number")
        for one in _TOKEN.finditer(source)
        if one.lastgroup != "skip" and not one.group().isspace()
    ]


def _closing(tokens: list[_Token], at: int) -> int:
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text in _OPEN) - (tokens[place].text in _CLOSE)
        if depth == 0:
            return place
    raise ValueError(f"no bracket closes the one at {tokens[at].start}")


def _operand_end(tokens: list[_Token], at: int) -> int:
    """The place behind the operand of && that starts at `at`."""
    while at < len(tokens) and tokens[at].text not in (*_CLOSE, "&&", "||", "?", ":", ";", ","):
        at = _closing(tokens, at) + 1 if tokens[at].text in _OPEN else at + 1
    return at


def _at_token(tokens: list[_Token], at: int, source: bytes) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, new text and kind of the changes at one token."""
    token, before = tokens[at], tokens[at - 1]
    is_apart = source[token.start - 1 : token.start].isspace() and source[token.end : token.end + 1].isspace()
    if is_apart and token.text in _TURNED:
        for turned in _TURNED[token.text]:
            yield token.start, token.end, turned, "comparison turned"
        if token.text == "&&":
            yield before.end, tokens[_operand_end(tokens, at + 1) - 1].end, "", "condition dropped"
    elif is_apart and token.text in _SIGNS:
        yield token.start, token.end, _SIGNS[token.text], "operator"
        after = tokens[at + 1]
        simple = (before.is_word or before.is_number) and (after.is_word or after.is_number)
        alone = tokens[at - 2].text in "(,=[{" and tokens[at + 2].text in ");,]}"
        if token.text in "-/%" and simple and alone:
            yield before.start, after.end, f"{after.text} {token.text} {before.text}", "operands exchanged"
    elif token.text in _STEPS:
        yield token.start, token.end, _STEPS[token.text], "sign"
    elif token.text in _EXTREMES and (before.text == "::" or token.text in ("true", "false")):
        yield token.start, token.end, _EXTREMES[token.text], "turned"
    elif token.text == "if" and tokens[at + 1].text == "(":
        end = tokens[_closing(tokens, at + 1)].end
        yield tokens[at + 1].start, end, "(true)", "condition dropped"
        yield tokens[at + 1].start, end, "(false)", "condition dropped"
    elif token.is_number and token.text.isdecimal() and before.text not in _FIXED and tokens[at + 1].text != ">":
        yield token.start, token.end, str(int(token.text) + 1), "off by one"


def changes(path: str, source: bytes) -> Iterator[Change]:
    """All changes of a file."""
    tokens = _tokens(source)
    for at in range(2, len(tokens) - 2):
        for start, end, new, kind in _at_token(tokens, at, source):
            yield Change(path, source, start, end, new, kind)
