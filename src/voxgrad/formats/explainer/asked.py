# SPDX-License-Identifier: Apache-2.0
"""One lesson as somebody asks for it: by what was chosen, with numbers that were typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog.model import Op
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.formats.explainer.choices import STARTS, Choice, choice_at, forward_of, most_places
from voxgrad.formats.explainer.lesson import Lesson, lessons_about
from voxgrad.formats.explainer.packing import packed
from voxgrad.formats.picture.layout import arrange
from voxgrad.formats.text.numbers import read_number
from voxgrad.formats.text.reader import Reader
from voxgrad.graph.page import Page
from voxgrad.graph.values import Array


def asked_lesson(op: Op, places: Sequence[int], typed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The lesson at these places of what can be chosen, as data."""
    return packed(op, [_lesson(op, places, typed)])


def lesson_page(op: Op, places: Sequence[int], typed: Mapping[str, Sequence[str]]) -> Page:
    """The lesson as a page of blocks, to go on with."""
    page = _lesson(op, places, typed).page
    arrange(page)
    return page


def _lesson(op: Op, places: Sequence[int], typed: Mapping[str, Sequence[str]]) -> Lesson:
    lessons = lessons_about(op)
    choice = _choice(op, places)
    for name in typed:
        if name not in STARTS:
            raise InvalidArgumentError(
                Fault("VG050", op.name, "typed", f"be one of {', '.join(STARTS)}", repr(name)[:80])
            )
    return lessons.lesson(choice, {name: _numbers(op, name, texts) for name, texts in typed.items()})


def _choice(op: Op, places: Sequence[int]) -> Choice:
    most = most_places(forward_of(op))
    if len(places) != len(most) or not all(0 <= at < count for at, count in zip(places, most, strict=True)):
        wanted = f"have {len(most)} places below {list(most)}"
        raise InvalidArgumentError(Fault("VG003", op.name, "places", wanted, str(list(places))[:80]))
    return choice_at(forward_of(op), places)


def _numbers(op: Op, name: str, texts: Sequence[str]) -> Array:
    """Numbers as people type them: 1, -0.5, nan, inf."""
    found = []
    for text in texts:
        reader = Reader(text.strip(), name, op.name)
        found.append(read_number(reader))
        reader.end("the number")
    with np.errstate(over="ignore"):
        return np.asarray(found, np.float32)
