# SPDX-License-Identifier: Apache-2.0
"""The Korean of what the server says: codes, fixes, warnings, remedies and remarks of imports have one, with blanks."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from voxgrad.errors import CODES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "voxgrad"
TABLE = json.loads((ROOT / "web/src/core/told.ko.json").read_text())
FREE = {"kernels", "torch", "volumes", "cli", "nn.py", "out_ops.py", "arrays", "isolation.py", "arguments.py"}
"""Rooms whose faults the studio seldom shows: of these the code is told in Korean, and what was wanted as it came."""
EARLY = {"formats/text", "formats/explainer", "formats/page_file.py"}
LEAST = 300


def templates(node: ast.expr | None) -> list[str]:
    """A text of the source as patterns: what an f-string fills in is `$0`, `$1`; both sides of an `if`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        parts = iter(range(100))
        return ["".join(one.value if isinstance(one, ast.Constant) else f"${next(parts)}" for one in node.values)]
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    return []


def _names(tree: ast.AST) -> dict[str, list[str]]:
    """The texts that names of a function stand for."""
    found: dict[str, list[str]] = {}
    for one in ast.walk(tree):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1:
            continue
        target, value = one.targets[0], one.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for name, text in pairs:
            if isinstance(name, ast.Name):
                found.setdefault(name.id, []).extend(templates(text))
    return found


def _texts_of(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What a call says, each text with its part: wanted, remedy, fix, warning, remark."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = {one.arg: one.value for one in call.keywords if one.arg}
    places = {"Fault": {3: "wanted", 5: "remedy"}, "_warn": {3: "warning", 5: "warning"}, "Fix": {0: "fix"},
              "fail": {0: "wanted", 1: "remedy"}}.get(name, {})  # fmt: skip
    if name == "add" and len(call.args) == 3 and "report" in ast.unparse(call.func):
        places = {2: "remark"}
    for place, part in places.items():
        if place < len(call.args):
            yield part, call.args[place]
    if name in ("Fault", "add", "fail"):
        yield from ((part, named[part]) for part in ("wanted", "remedy") if part in named)


@cache
def said() -> dict[str, dict[str, set[str]]]:
    """All texts of the sources by their part, each with the files that say it."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        constants = _names(ast.Module([one for one in tree.body if isinstance(one, ast.Assign)], []))
        for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
            names = constants | _names(function)
            for call in (one for one in ast.walk(function) if isinstance(one, ast.Call)):
                for part, node in _texts_of(call):
                    for text in names.get(node.id, []) if isinstance(node, ast.Name) else templates(node):
                        if text and not re.fullmatch(r"[$\d\s:]*", text):
                            found.setdefault(part, {}).setdefault(text, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def test_every_code_has_its_korean() -> None:
    assert TABLE["codes"].keys() == CODES.keys()


@pytest.mark.parametrize("part", ["fix", "warning", "remedy", "remark"])
def test_every_sentence_has_its_korean(part: str) -> None:
    assert len(said()[part]) >= 8
    assert [text for text in said()[part] if text not in TABLE["texts"]] == []


def test_what_is_wanted_of_pages_has_its_korean() -> None:
    """In the rooms that see a page before it runs; elsewhere the meaning of the code stands before the words."""

    def early(path: str) -> bool:
        return path.split("/")[0] not in FREE | {"formats"} or any(path.startswith(one) for one in EARLY)

    rooms = {text for text, paths in said()["wanted"].items() if any(map(early, paths))}
    assert len(rooms) >= LEAST
    assert [text for text in sorted(rooms) if text not in TABLE["texts"]] == []


def test_blanks_are_the_same() -> None:
    for text, told in TABLE["texts"].items():
        assert set(re.findall(r"\$\d", text)) == set(re.findall(r"\$\d", told)), text
        assert told.strip() == told != "", text


def test_korean_is_korean() -> None:
    """Names of files and commands stay; everything else that has words has Korean ones."""
    for text, told in {**TABLE["codes"], **TABLE["texts"]}.items():
        assert re.search(r"[가-힣]", told) or text == told, text
