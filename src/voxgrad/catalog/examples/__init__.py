# SPDX-License-Identifier: Apache-2.0
"""An example of every op, as data: a formula where one applies, and a page of a few blocks.

A page is written as a line per block, `name = Op(argument=value)`; a name stands for the first output of its block,
`name[1]` for the second. Values are plain literals, `int64([1, 2])` where a type must be said, `count(2, 3)` for
1.0, 2.0, ... in that shape. `variable(value)` and `handle(value)` are variables that start with a value. `after=name`
lets a block run after another, and a line `feed(x=value)` gives a placeholder its value. The last line whose op is the
one that is shown needs no name. Nothing here is executed as Python: lines are parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from voxgrad.catalog import dtypes

_FILES = (
    "array", "files", "flow", "image", "math", "nn", "quantised", "random", "sparse", "state", "text", "training",
)  # fmt: skip
_VARIABLES = {"variable": ("VariableV2", "Assign", "ref"), "handle": ("VarHandleOp", "AssignVariableOp", "resource")}


@dataclass(frozen=True, slots=True)
class Wire:
    """An output of a line before."""

    line: str
    output: int = 0


@dataclass(frozen=True, slots=True)
class Typed:
    """A value whose element type is said."""

    dtype: str
    value: Any


@dataclass(frozen=True, slots=True)
class Counted:
    """start, start + 1, ... in a shape."""

    shape: tuple[int, ...]
    start: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A block. One that is `first` runs once, before all others."""

    name: str
    op: str
    arguments: Mapping[str, Any]
    after: tuple[str, ...] = ()
    first: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """What an op does as a formula, and a page that shows it. `text` is the page as it was written."""

    formula: str
    text: str
    lines: tuple[Line, ...] = ()
    feeds: Mapping[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=1)
def _written() -> Mapping[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for file in _FILES:
        found |= import_module(f"{__name__}.{file}").EXAMPLES
    return found


def names() -> frozenset[str]:
    """The ops that have an example."""
    return frozenset(_written())


def formula_of(op: str) -> str:
    """What an op computes in one line; "" where words say it better."""
    return _written().get(op, ("", ""))[0]


def example_of(op: str) -> Example | None:
    """The example of an op, parsed."""
    return parse(*_written()[op]) if op in _written() else None


def parse(formula: str, text: str) -> Example:
    """An example from its texts."""
    source = "\n".join(line.strip() for line in text.strip().splitlines())
    feeds: dict[str, Any] = {}
    lines: list[Line] = []
    for statement in ast.parse(source).body:
        made = list(_lines(statement))
        if made[0].op == "feed":
            feeds |= made[0].arguments
        else:
            lines += made
    return Example(formula, source, tuple(lines), feeds)


def _lines(statement: ast.stmt) -> Iterator[Line]:
    """The blocks of a line: one, or a variable with the block that starts it."""
    assert isinstance(statement, (ast.Assign, ast.Expr)) and isinstance(statement.value, ast.Call)
    call = statement.value
    assert isinstance(call.func, ast.Name)
    name = statement.targets[0].id if isinstance(statement, ast.Assign) else call.func.id  # type: ignore[attr-defined]
    if call.func.id in _VARIABLES:
        op, start, pin = _VARIABLES[call.func.id]
        value = _value(call.args[0])
        yield Line(name, op, {"shape": _shape(value), "dtype": _dtype(value)})
        yield Line(f"start_{name}", start, {pin: Wire(name), "value": value}, first=True)
        return
    given = {one.arg: _value(one.value) for one in call.keywords if one.arg is not None}
    after = given.pop("after", None)
    yield Line(name, call.func.id, given, () if after is None else (after.line,))


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return float(node.id) if node.id in ("inf", "nan") else Wire(node.id)
    if isinstance(node, ast.Subscript):
        assert isinstance(node.value, ast.Name)
        return Wire(node.value.id, ast.literal_eval(node.slice))
    if isinstance(node, ast.List):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        if node.func.id == "count":
            start = next((ast.literal_eval(one.value) for one in node.keywords), 1)
            return Counted(tuple(ast.literal_eval(one) for one in node.args), start)
        assert dtypes.named(node.func.id) is not None, node.func.id
        return Typed(node.func.id, ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)


def _shape(value: Any) -> list[int]:
    return [len(value), *_shape(value[0])] if isinstance(value, list) else []


def _dtype(value: Any) -> str:
    while isinstance(value, list):
        value = value[0]
    return "float32" if isinstance(value, float) else "int32"
