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
Numbers = np.ndarray[Any, Any]

SIDE, LEVEL = 11.0, 6.0
"""How near to the sides of a block, where pins are, and to its top and bottom a wire may run."""
STUB, LANE = 15.0, 9.0
"""How far a wire goes straight on from its pins, and between wires that turn beside each other."""
_BEND, _SHARED = 24.0, 60.0
"""What a turn, and a part of the way that another wire has taken, cost in units of length."""
_MOST_LANES, _MOST_TURNS = 9, 60
_CELL = 400.0
_NEVER = float("inf")


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
    net = _Net.beside(start, end, rects, lane * LANE, plane, source)
    first, last = net.number(start), net.number(end)
    cost = {2 * first: 0.0}
    before: dict[int, int] = {}
    queue = [(0.0, 2 * first)]
    while queue:
        spent, at = heapq.heappop(queue)
        crossing, upright = at >> 1, at & 1
        if crossing == last:
            return net.way_to(at, before)
        if spent > cost[at]:
            continue
        for to, turned, price in net.ways(crossing):
            if crossing == first and to < crossing and not turned:  # backwards into its block
                continue
            total = spent + price + _BEND * (upright != turned)
            if to == last:  # entered from outside, along its pin
                total += _BEND if turned else 8 * _BEND if to < crossing else 0.0
            state = 2 * to + turned
            if total < cost.get(state, _NEVER):
                cost[state], before[state] = total, at
                heapq.heappush(queue, (total, state))
    return None


@dataclass(slots=True)
class _Net:
    """The lines beside blocks. Where they cross has a number, column by column."""

    xs: list[float]
    ys: list[float]
    level: list[float]
    """By crossing, what the way to the next column costs; without end where it runs through a block."""
    upright: list[float]
    """By crossing, what the way to the next row costs."""

    @staticmethod
    def beside(start: Point, end: Point, rects: list[Rect], far: float, plane: Plane, source: str) -> _Net:
        beside = (x for one in rects for x in (one.left - far, one.left, one.right, one.right + far))
        over = (y for one in rects for y in (one.top - far, one.top, one.bottom, one.bottom + far))
        xs = sorted({start[0], end[0], (start[0] + end[0]) / 2, *beside})
        ys = sorted({start[1], end[1], *over})
        level = _lengths(xs, len(ys)) + _SHARED * _taken(ys, xs, 1, plane, source).T
        upright = _lengths(ys, len(xs)).T + _SHARED * _taken(xs, ys, 0, plane, source)
        for one in rects:
            # Lines inside of a block, and parts of lines that reach into it.
            left, right = bisect_right(xs, one.left), bisect_left(xs, one.right)
            top, bottom = bisect_right(ys, one.top), bisect_left(ys, one.bottom)
            level[left - 1 : right, top:bottom] = _NEVER
            upright[left:right, top - 1 : bottom] = _NEVER
        return _Net(xs, ys, level.ravel().tolist(), upright.ravel().tolist())

    def number(self, point: Point) -> int:
        return self.xs.index(point[0]) * len(self.ys) + self.ys.index(point[1])

    def ways(self, crossing: int) -> list[tuple[int, int, float]]:
        """The crossings beside one, whether an upright line leads there, and what the way costs."""
        rows, level, upright = len(self.ys), self.level, self.upright
        # Behind the last column and row there is no way; so none comes from before the first ones.
        beside = (
            (crossing + rows, 0, level[crossing]),
            (crossing - rows, 0, level[crossing - rows]),
            (crossing + 1, 1, upright[crossing]),
            (crossing - 1, 1, upright[crossing - 1]),
        )
        return [way for way in beside if way[2] != _NEVER]

    def way_to(self, last: int, before: dict[int, int]) -> list[Point]:
        way = [last]
        while way[-1] in before:
            way.append(before[way[-1]])
        places = [divmod(state >> 1, len(self.ys)) for state in reversed(way)]
        return [(self.xs[column], self.ys[row]) for column, row in places]


def _lengths(along: list[float], lines: int) -> Numbers:
    """How long the parts of lines are, the last without end; as often as there are lines."""
    return np.repeat(np.append(np.diff(along), _NEVER)[:, None], lines, axis=1)


def _taken(lines: list[float], along: list[float], turned: int, plane: Plane, source: str) -> Numbers:
    """By line and part of it, how many wires from other outputs lie there."""
    found = np.zeros((len(lines), len(along)))
    for number, line in enumerate(lines):
        for start, end, other in plane.lines.get((turned, round(line / 4)), ()):
            if other != source:
                found[number, max(0, bisect_right(along, start) - 1) : bisect_left(along, end)] += 1
    return found


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
