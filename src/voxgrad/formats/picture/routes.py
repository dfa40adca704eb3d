# SPDX-License-Identifier: Apache-2.0
"""The way of a wire around blocks: level and upright lines that run through no block, by the rules of the studio.

`web/src/core/router.ts` has the same rules and the same distances, so that a picture looks as the screen does.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

Point = tuple[float, float]

SIDE, LEVEL = 11.0, 6.0
"""How near to the sides of a block, where pins are, and to its top and bottom a wire may run."""
STUB, LANE = 15.0, 9.0
"""How far a wire goes straight on from its pins, and between wires that turn beside each other."""
_BEND, _SHARED = 24.0, 60.0
"""What a turn, and a part of the way that another wire has taken, cost in units of length."""
_MOST_LANES, _MOST_TURNS = 9, 60
_CELL = 400.0


@dataclass(frozen=True, slots=True)
class Rect:
    """What a wire goes around: a block with the room that it keeps."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(slots=True)
class Plane:
    """The blocks of a page by place, and the lines that wires have taken."""

    cells: dict[tuple[int, int], list[Rect]] = field(default_factory=dict)
    lines: dict[tuple[int, int], list[tuple[float, float, str]]] = field(default_factory=dict)

    @staticmethod
    def of(boxes: Iterable[tuple[float, float, float, float]]) -> Plane:
        """The plane of blocks, each x, y, width, height."""
        plane = Plane()
        for x, y, width, height in boxes:
            rect = Rect(x - SIDE, x + width + SIDE, y - LEVEL, y + height + LEVEL)
            for cell in _cells(rect.left, rect.top, rect.right, rect.bottom):
                plane.cells.setdefault(cell, []).append(rect)
        return plane

    def in_way(self, points: Sequence[Point]) -> list[Rect]:
        """The blocks that a way runs through."""
        found: dict[Rect, None] = {}
        for a, b in pairwise(points):
            left, right, top, bottom = min(a[0], b[0]), max(a[0], b[0]), min(a[1], b[1]), max(a[1], b[1])
            for cell in _cells(left, top, right, bottom):
                found |= dict.fromkeys(one for one in self.cells.get(cell, ()) if _meets(one, a, b))
        return list(found)

    def shared(self, a: Point, b: Point, source: str) -> int:
        """How much of a line lies on lines of wires from other outputs."""
        key, start, end = _line(a, b)
        taken = self.lines.get(key)
        return sum(one < end and two > start and other != source for one, two, other in taken) if taken else 0

    def take(self, points: Sequence[Point], source: str) -> None:
        """Note the way of a wire."""
        for a, b in pairwise(points):
            key, start, end = _line(a, b)
            self.lines.setdefault(key, []).append((start, end, source))


def route(start: Point, end: Point, plane: Plane, source: str, lane: int) -> tuple[Point, ...]:
    """The way of a wire from an output, on the right of its block, to an input on the left of another."""
    lane %= _MOST_LANES
    first, last = (start[0] + STUB, start[1]), (end[0] - STUB, end[1])
    way = next(
        (
            one
            for one in _plain(first, last, lane)
            if not any(plane.shared(a, b, source) for a, b in pairwise(one)) and not plane.in_way(one)
        ),
        None,
    )
    if way is None:
        way = _around(first, last, plane, source, lane)
    plane.take(way, source)
    return tuple(_straightened([start, *way, end]))


def _plain(start: Point, end: Point, lane: int) -> Iterator[list[Point]]:
    """The ways with the fewest turns: straight, or with one upright line."""
    if end[0] < start[0]:
        return
    if abs(start[1] - end[1]) < 0.5:
        yield [start, (end[0], start[1])]
        return
    for x in (end[0] - lane * LANE, start[0] + lane * LANE, end[0], start[0]):
        if start[0] <= x <= end[0]:
            yield [start, (x, start[1]), (x, end[1]), end]


def _around(start: Point, end: Point, plane: Plane, source: str, lane: int) -> list[Point]:
    """The cheapest way around all blocks that are met, found with more and more of them."""
    around: dict[Rect, None] = {}
    way = [start, end]
    for _ in range(_MOST_TURNS):
        way = _cheapest(start, end, list(around), plane, source, lane) or way
        met = [one for one in plane.in_way(way) if one not in around]
        if not met:
            break
        around |= dict.fromkeys(met)
    return way


def _cheapest(start: Point, end: Point, rects: list[Rect], plane: Plane, source: str, lane: int) -> list[Point] | None:
    """Dijkstra on the lines beside blocks; a state is a crossing and whether it was come to on an upright line."""
    net = _Net.beside(start, end, rects, lane * LANE)
    xs, ys = net.xs, net.ys
    first, last = (xs.index(start[0]), ys.index(start[1])), (xs.index(end[0]), ys.index(end[1]))
    cost: dict[tuple[int, int, bool], float] = {(*first, False): 0.0}
    before: dict[tuple[int, int, bool], tuple[int, int, bool]] = {}
    queue = [(0.0, (*first, False))]
    while queue:
        spent, at = heapq.heappop(queue)
        column, row, upright = at
        if (column, row) == last:
            return _way_to(at, before, xs, ys)
        if spent > cost[at]:
            continue
        for dx, dy, price in net.steps(column, row, plane, source):
            if dx == -1 and (column, row) == first:  # backwards into its block
                continue
            to = column + dx, row + dy
            total = spent + price + _BEND * (upright != bool(dy))
            if to == last:  # entered from outside, along its pin
                total += _BEND if dy else 8 * _BEND if dx == -1 else 0.0
            state = (*to, bool(dy))
            if total < cost.get(state, float("inf")):
                cost[state], before[state] = total, at
                heapq.heappush(queue, (total, state))
    return None


@dataclass(slots=True)
class _Net:
    """The lines beside blocks: where they cross, and which of their parts run through no block."""

    xs: list[float]
    ys: list[float]
    level: np.ndarray[Any, Any]
    """By row and column, whether the way from this column to the next is free."""
    upright: np.ndarray[Any, Any]
    """By row and column, whether the way from this row to the next is free."""
    known: dict[tuple[int, int], list[tuple[int, int, float]]] = field(default_factory=dict)

    @staticmethod
    def beside(start: Point, end: Point, rects: list[Rect], far: float) -> _Net:
        beside = (x for one in rects for x in (one.left - far, one.left, one.right, one.right + far))
        over = (y for one in rects for y in (one.top - far, one.top, one.bottom, one.bottom + far))
        xs = sorted({start[0], end[0], (start[0] + end[0]) / 2, *beside})
        ys = sorted({start[1], end[1], *over})
        level, upright = np.ones((len(ys), len(xs) - 1), bool), np.ones((len(ys) - 1, len(xs)), bool)
        for one in rects:
            # Lines inside of a block, and parts of lines that reach into it.
            columns = slice(bisect_right(xs, one.left), bisect_left(xs, one.right))
            rows = slice(bisect_right(ys, one.top), bisect_left(ys, one.bottom))
            level[rows, bisect_right(xs, one.left) - 1 : bisect_left(xs, one.right)] = False
            upright[bisect_right(ys, one.top) - 1 : bisect_left(ys, one.bottom), columns] = False
        return _Net(xs, ys, level, upright)

    def steps(self, column: int, row: int, plane: Plane, source: str) -> list[tuple[int, int, float]]:
        """The ways on from a crossing, each with its price."""
        found = self.known.get((column, row))
        if found is None:
            free = (
                (1, 0, column + 1 < len(self.xs) and self.level[row, column]),
                (-1, 0, column > 0 and self.level[row, column - 1]),
                (0, 1, row + 1 < len(self.ys) and self.upright[row, column]),
                (0, -1, row > 0 and self.upright[row - 1, column]),
            )
            found = [(dx, dy, self._price(column, row, dx, dy, plane, source)) for dx, dy, is_free in free if is_free]
            self.known[column, row] = found
        return found

    def _price(self, column: int, row: int, dx: int, dy: int, plane: Plane, source: str) -> float:
        here, there = (self.xs[column], self.ys[row]), (self.xs[column + dx], self.ys[row + dy])
        return abs(there[0] - here[0]) + abs(there[1] - here[1]) + _SHARED * plane.shared(here, there, source)


def _way_to(
    last: tuple[int, int, bool], before: dict[tuple[int, int, bool], tuple[int, int, bool]],
    xs: list[float], ys: list[float],
) -> list[Point]:  # fmt: skip
    way = [last]
    while way[-1] in before:
        way.append(before[way[-1]])
    return [(xs[column], ys[row]) for column, row, _ in reversed(way)]


def _straightened(points: list[Point]) -> list[Point]:
    """Points in a row on one line are one line."""
    made: list[Point] = []
    for point in points:
        if made and made[-1] == point:
            continue
        if len(made) > 1 and any(made[-2][axis] == made[-1][axis] == point[axis] for axis in (0, 1)):
            made.pop()
        made.append(point)
    return made


def _meets(rect: Rect, a: Point, b: Point) -> bool:
    across = min(a[0], b[0]) < rect.right and max(a[0], b[0]) > rect.left
    return across and min(a[1], b[1]) < rect.bottom and max(a[1], b[1]) > rect.top


def _cells(left: float, top: float, right: float, bottom: float) -> Iterator[tuple[int, int]]:
    for x in range(int(left // _CELL), int(right // _CELL) + 1):
        for y in range(int(top // _CELL), int(bottom // _CELL) + 1):
            yield x, y


def _line(a: Point, b: Point) -> tuple[tuple[int, int], float, float]:
    if a[0] == b[0]:
        return (0, round(a[0] / 4)), min(a[1], b[1]), max(a[1], b[1])
    return (1, round(a[1] / 4)), min(a[0], b[0]), max(a[0], b[0])
