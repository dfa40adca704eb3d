# SPDX-License-Identifier: Apache-2.0
"""Changes of Python sources, found in the syntax tree: not in docstrings, annotations, decorators, messages."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from tools.mutants.change import Change

_TURNED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_ORDERED = (ast.Sub, ast.FloorDiv, ast.Div, ast.Mod)
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_WORDS = {"Fault", "Fix", "Law", "Op", "Input", "Output", "Attr", "TypeVar", "warn", "isinstance", "getattr", "repr"}
"""Calls that declare or say something, or whose arguments cannot be exchanged."""
_COMMUTE = {"Add", "AddV2", "Mul", "Maximum", "Minimum", "Equal", "NotEqual", "LogicalAnd", "LogicalOr"}
_SILENT = ("__str__", "__repr__", "__hash__")

Wanted = Callable[[ast.FunctionDef], bool]


class _Finder(ast.NodeVisitor):
    """Collects pairs of a node and what could stand in its place."""

    def __init__(self, wanted: Wanted | None):
        self.found: list[tuple[ast.AST, ast.AST, str]] = []
        self._wanted = wanted
        self._inside = wanted is None
        self._depth = 0

    def _offer(self, node: ast.AST, made: ast.AST, kind: str) -> None:
        if self._inside:
            self.found.append((node, made, kind))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in _SILENT:
            return
        outside, self._inside = self._inside, self._inside or (self._wanted is not None and self._wanted(node))
        self._depth += 1
        for one in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if one is not None:
                self.visit(one)
        self._depth -= 1
        self._inside = outside

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for one in node.body:
            self.visit(one)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _skip(self, node: ast.AST) -> None:
        """Messages, and what only checks ourselves."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = _skip

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._offer(node.test, ast.Constant(False), "condition dropped")
        if not isinstance(node, ast.While):
            self._offer(node.test, ast.Constant(True), "condition dropped")
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._offer(test, ast.Constant(True), "condition dropped")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for at, operator in enumerate(node.ops):
            for turned in _TURNED[type(operator)]:
                made = copy.deepcopy(node)
                made.ops[at] = turned()
                self._offer(node, made, "comparison turned")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            self._offer(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest), "condition dropped")
        self._offer(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values), "and, or")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _SIGNS and not isinstance(node.left, ast.JoinedStr):
            self._offer(node, ast.BinOp(node.left, _SIGNS[type(node.op)](), node.right), "operator")
        if isinstance(node.op, _ORDERED) and ast.dump(node.left) != ast.dump(node.right):
            self._offer(node, ast.BinOp(node.right, node.op, node.left), "operands exchanged")
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)) and self._depth:  # outside of functions they join types
            self._offer(node, node.left, "condition dropped")
            self._offer(node, node.right, "condition dropped")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.USub, ast.Not)):
            self._offer(node, node.operand, "sign")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._offer(node, ast.Constant(not node.value), "turned")
        elif isinstance(node.value, int):
            self._offer(node, ast.Constant(node.value + 1), "off by one")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _WORDS or (name == "add" and any(one.arg == "wanted" for one in node.keywords)):
            return
        if name in _EXTREMES:
            made = copy.deepcopy(node)
            if isinstance(made.func, ast.Attribute):
                made.func.attr = _EXTREMES[name]
            elif isinstance(made.func, ast.Name):
                made.func.id = _EXTREMES[name]
            self._offer(node, made, "min, max")
        elif (
            name not in _COMMUTE
            and len(node.args) >= 2
            and not any(isinstance(one, ast.Starred) for one in node.args[:2])
        ):
            made = copy.deepcopy(node)
            made.args[0], made.args[1] = made.args[1], made.args[0]
            if ast.dump(made) != ast.dump(node):
                self._offer(node, made, "operands exchanged")
        self.generic_visit(node)


def changes(path: str, source: bytes, wanted: Wanted | None = None) -> Iterator[Change]:
    """All changes of a file; with `wanted`, of the functions it says yes to."""
    finder = _Finder(wanted)
    finder.visit(ast.parse(source))
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, made, kind in finder.found:
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        new = ast.unparse(ast.fix_missing_locations(made))
        # As many lines as before, so that what is said of later lines stays true.
        lines = "\n" * source.count(b"\n", start, end)
        plain = isinstance(made, (ast.Constant, ast.Name, ast.Attribute)) and not lines
        yield Change(path, source, start, end, new if plain else f"({new}{lines})", kind)
