# SPDX-License-Identifier: Apache-2.0
"""Wires on pictures run around blocks, on the same ways as in the studio."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxgrad as vg
from voxgrad.formats.page_file import load
from voxgrad.formats.picture.layout import Drawing, lay_out
from voxgrad.formats.picture.routes import Plane, route

Box = tuple[float, float, float, float]
EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/**/*.vox.json"))
SOURCE, TARGET = (0.0, 0.0, 100.0, 80.0), (400.0, 200.0, 100.0, 80.0)
WALL = (200.0, -100.0, 60.0, 600.0)


def crossings(drawing: Drawing) -> list[str]:
    """The wires that run through the inside of a block, or that are slanted."""
    boxes = [(box.x, box.y, box.width, box.height) for box in drawing.boxes]
    return [str(points) for line in drawing.lines if crosses(points := line.points, boxes)]


def crosses(points: tuple[tuple[float, float], ...], boxes: list[Box]) -> bool:
    lines = list(pairwise(points))
    slanted = any(a[0] != b[0] and a[1] != b[1] for a, b in lines)
    return slanted or any(
        min(a[0], b[0]) < x + width - 1
        and max(a[0], b[0]) > x + 1
        and min(a[1], b[1]) < y + height - 1
        and max(a[1], b[1]) > y + 1
        for a, b in lines
        for x, y, width, height in boxes
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_wire_of_an_example_runs_through_a_block(path: Path) -> None:
    drawing = lay_out(load(path))
    assert drawing.boxes
    assert crossings(drawing) == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 3


def test_no_wire_of_a_chain_with_its_gradients_runs_through_a_block() -> None:
    page = vg.Page()
    x = y = vg.ops.Placeholder(page, "float32", shape=[1, 4, 4, 4, 1], name="x")
    for _ in range(6):
        y = vg.ops.Add(page, vg.ops.Neg(page, y), x)
    vg.gradients([y], [x])
    drawing = lay_out(page)
    assert len(drawing.lines) == len(page.wires)
    assert crossings(drawing) == []


# `web/src/core/core.test.ts` holds the studio to the same ways.
def test_a_way_is_straight_where_it_can_be() -> None:
    plane = Plane.of([SOURCE, (400.0, 0.0, 100.0, 80.0)])
    assert route((100.0, 40.0), (400.0, 40.0), plane, "a", 0) == ((100.0, 40.0), (400.0, 40.0))


def test_a_way_turns_beside_its_target() -> None:
    plane = Plane.of([SOURCE, TARGET])
    assert route((100.0, 40.0), (400.0, 240.0), plane, "a", 0) == (
        (100.0, 40.0), (385.0, 40.0), (385.0, 240.0), (400.0, 240.0),
    )  # fmt: skip
    # Wires from other outputs turn beside it.
    second = route((100.0, 60.0), (400.0, 260.0), plane, "b", 1)
    assert second == ((100.0, 60.0), (376.0, 60.0), (376.0, 260.0), (400.0, 260.0))


def test_a_way_goes_around_what_stands_between() -> None:
    plane = Plane.of([SOURCE, TARGET, WALL])
    way = route((100.0, 40.0), (400.0, 240.0), plane, "a", 0)
    assert way == (
        (100.0, 40.0), (189.0, 40.0), (189.0, -106.0), (271.0, -106.0), (271.0, 240.0), (400.0, 240.0),
    )  # fmt: skip


def test_a_way_back_goes_around_both_blocks() -> None:
    plane = Plane.of([SOURCE, TARGET])
    way = route((500.0, 240.0), (0.0, 40.0), plane, "a", 0)
    assert not crosses(way, [SOURCE, TARGET])
    assert way[1][0] > 500.0
    assert way[-2][0] < 0.0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(40, 160), st.integers(30, 90)), max_size=12)
)
def test_ways_meet_no_block(cells: list[tuple[int, int, int, int]]) -> None:
    boxes = {(column, row): (column * 260.0, row * 140.0, float(w), float(h)) for column, row, w, h in cells}
    start, end = (-300.0, 10.0, 80.0, 60.0), (1700.0, 300.0, 80.0, 60.0)
    every = [start, end, *boxes.values()]
    plane = Plane.of(every)
    for one in every:
        for other in every:
            if one != other:
                way = route((one[0] + one[2], one[1] + 20), (other[0], other[1] + 20), plane, str(one), 0)
                assert not crosses(way, every)
