# SPDX-License-Identifier: Apache-2.0
"""Lessons as compact data for `view.js`: whatever occurs twice is written once, and named by its place in a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import OPS
from voxgrad.catalog.semantics import SEMANTICS
from voxgrad.errors import Fault
from voxgrad.formats.explainer.choices import PADDINGS, STRIDES, cases_of, choices_of, forward_of, windows_of
from voxgrad.formats.explainer.lesson import Lesson, Row, Step, lessons_about, spatial
from voxgrad.graph.values import Array

SHOWN_LAWS = ("padding", "count", "ties", "nan", "empty")
"""The laws that a small grid can show."""


class _Table:
    """Values in the order of their first use, each once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._at: dict[str, int] = {}

    def put(self, item: Any) -> int:
        """The place of a value."""
        key = json.dumps(item, separators=(",", ":"))
        if key not in self._at:
            self._at[key] = len(self.items)
            self.items.append(item)
        return self._at[key]


def packed(op: Op, lessons: Iterable[Lesson]) -> dict[str, Any]:
    """Lessons as data, in their order: `at` has the place of each in `states`. `view.js` says how it is read."""
    tables = {name: _Table() for name in ("values", "spans", "rows", "lists", "steps", "tensors", "states")}
    at = [tables["states"].put(_state(one, tables)) for one in lessons]
    data = {name: table.items for name, table in tables.items()}
    about = {name: _about(OPS[name]) for name in dict.fromkeys(step["op"] for step in data["steps"])}
    return {"op": op.name, "choices": choices_as_data(forward_of(op)), "about": about, "at": at, **data}


def _about(op: Op) -> dict[str, Any]:
    """What the declaration says of an op."""
    return {"summary": op.summary, "laws": [law.text for law in op.laws if law.name in SHOWN_LAWS]}


def all_lessons(op: Op) -> dict[str, Any]:
    """Every lesson of an op, as data, in the order of what can be chosen: the semantics change first."""
    made = lessons_about(op)
    return _all_about(made.forward.name) | {"op": op.name}


@cache
def _all_about(name: str) -> dict[str, Any]:
    """The same for an op and its gradients, which differ in what is shown first."""
    made = lessons_about(OPS[name])
    return packed(made.forward, (made.lesson(choice) for choice in choices_of(made.forward)))


def choices_as_data(forward: Op) -> dict[str, Any]:
    """What can be chosen."""
    return {
        "window": [list(window) if dilation == (1, 1, 1) else [*window, *dilation]
                   for window, dilation in windows_of(forward)],
        "stride": [list(one) for one in STRIDES],
        "padding": list(PADDINGS),
        "case": list(cases_of(forward)),
        "semantics": list(SEMANTICS),
    }  # fmt: skip


def _state(lesson: Lesson, tables: dict[str, _Table]) -> dict[str, Any]:
    if lesson.fault is not None:
        return {"fault": _fault(lesson.fault)}
    if not lesson.steps:
        return {"empty": True}
    tensors = []
    for name, value in lesson.values.items():
        side = lesson.sides[name]
        kind = {
            "name": name,
            "side": side.value,
            "sizes": list(spatial(value.shape, side)),
            "given": name in lesson.given,
        }
        tensors += [tables["tensors"].put(kind), tables["values"].put(_numbers(value))]
    return {"tensors": tensors, "steps": [_step(one, tables) for one in lesson.steps]}


def _fault(fault: Fault) -> dict[str, str]:
    return {"code": fault.code, "text": str(fault)}


def _step(step: Step, tables: dict[str, _Table]) -> list[int]:
    """The place of what does not depend on values, then those of its rows and its ties."""
    told = {
        "op": step.op, "kind": step.kind, "output": step.output, "order": step.order, "operands": dict(step.operands),
        "reads": {pin: [tables["spans"].put([list(span) for span in table]) for table in tables_]
                  for pin, tables_ in step.reads.items()},
    }  # fmt: skip
    if step.pairs is not None:
        told |= {"pairs": list(step.pairs), "flipped": step.flipped}
    else:
        told["part"] = step.part
    found = [tables["steps"].put(told)]
    return found + [_rows(rows, tables) for rows in (step.rows, step.ties) if rows]


def _rows(rows: Sequence[Row], tables: dict[str, _Table]) -> int:
    return tables["lists"].put([tables["rows"].put(_row(row)) for row in rows])


def _row(row: Row) -> Any:
    """A number stands for a whole row of it."""
    numbers = [_number(one) for one in row]
    return numbers[0] if numbers and all(one == numbers[0] for one in numbers) else numbers


def _numbers(value: Array) -> list[Any]:
    return [_number(one) for one in value.ravel()]


def _number(value: Any) -> Any:
    """A float32 in its shortest digits; JSON has no words for what is not finite, so these are texts."""
    if not np.isfinite(value):
        return str(float(value))
    exact = float(str(np.float32(value)))
    return int(exact) if exact.is_integer() else exact
