# SPDX-License-Identifier: Apache-2.0
"""Which pieces run on one small part of a chunk after the other: what they hand on stays in the cache.

Pieces that work cell by cell, or add up, need no more of their inputs than the cells that they make. Such pieces in a
row are a stretch. Of what is made in a stretch, only what is read behind it takes the memory of a whole box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from voxgrad.volumes.layout import Layout, Piece
from voxgrad.volumes.page_plan import Boxes, PagePlan
from voxgrad.volumes.windows import EMPTY, Range, hull

Tile = tuple[Range, Range, Range]
"""A part of a chunk: cells along depth, height and width of the whole volume."""

CELLS = 2**17
"""What the largest tensor of a stretch has in a tile: some such tensors stay in a cache, and calls cost little."""


@dataclass(frozen=True)
class Stretch:
    """Pieces that run together, by their numbers; the volumes they leave, and those that nobody reads behind them."""

    pieces: tuple[int, ...]
    is_tiled: bool
    leaves: tuple[int, ...]
    frees: tuple[int, ...]


def stretches(plan: PagePlan) -> list[Stretch]:
    """The pieces of a plan in their order, as few stretches as there can be."""
    groups: list[list[int]] = []
    sizes: list[tuple[int, ...] | None] = []
    for at, piece in enumerate(plan.layout.pieces):
        own = _sizes(plan, piece)
        if groups and own is not None and own == sizes[-1]:
            groups[-1].append(at)
        else:
            groups.append([at])
            sizes.append(own)
    read = {root.slot for root in plan.roots if root.piece is None}
    found: list[Stretch] = []
    for group, own in reversed(list(zip(groups, sizes, strict=True))):
        made = _made(plan.layout, group)
        touched = dict.fromkeys([*(slot for at in group for slot in plan.layout.pieces[at].inputs), *made])
        leaves = tuple(slot for slot in made if slot in read or own is None)
        there = [slot for slot in touched if slot not in made or slot in leaves]
        frees = tuple(slot for slot in there if slot not in read)
        found.append(Stretch(tuple(group), own is not None, leaves, frees))
        read.update(touched)
    return found[::-1]


def _made(layout: Layout, group: Sequence[int]) -> list[int]:
    return [slot for at in group if not layout.pieces[at].adds for slot in layout.pieces[at].outputs]


def _sizes(plan: PagePlan, piece: Piece) -> tuple[int, ...] | None:
    """The sizes of the volume whose cells a piece goes over, one by one; None where it needs more of its inputs."""
    if piece.problem is not None or piece.shifts or piece.wholes:
        return None
    slot = plan.summed(piece) if piece.adds else piece.outputs[0]
    return tuple(plan.size(slot, role) for role in range(4))


@dataclass(frozen=True, slots=True)
class Part:
    """What a piece reads or makes of a tensor for a chunk, and which of its dimensions tiles cut."""

    slot: int
    box: Boxes
    cut: tuple[tuple[int, int], ...]
    """A dimension, and the place of its direction in a tile."""

    def within(self, tile: Tile) -> Boxes:
        """What of it lies in a tile."""
        box = list(self.box)
        for dim, role in self.cut:
            low, high = box[dim]
            first, last = tile[role]
            low = max(low, first)
            box[dim] = low, max(low, min(high, last))
        return tuple(box)


def part(plan: PagePlan, slot: int, box: Boxes) -> Part:
    """A box of a tensor; along directions in which it has one cell for all, tiles do not cut it."""
    roles = enumerate(plan.layout.roles[slot])
    return Part(slot, box, tuple((dim, role - 1) for dim, role in roles if role and plan.size(slot, role) > 1))


def tiles(parts: Sequence[Part]) -> list[Tile]:
    """Where a chunk with these parts is cut into tiles, in an order that the chunk decides alone."""
    left = -(-max((_cells(one.box) for one in parts), default=0) // CELLS)
    extents = [EMPTY] * 3
    for one in parts:
        for dim, role in one.cut:
            extents[role] = hull(extents[role], one.box[dim])
    ranges = []
    for extent in extents:
        count = max(1, min(left, extent[1] - extent[0]))
        left = -(-left // count)
        ranges.append(_split(extent, count))
    depths, heights, widths = ranges
    return list(product(depths, heights, widths))


def _cells(box: Boxes) -> int:
    return math.prod(high - low for low, high in box)


def _split(extent: Range, count: int) -> list[Range]:
    """A range in so many parts, which differ by one cell at most."""
    low, size = extent[0], extent[1] - extent[0]
    edges = [low + size * at // count for at in range(count + 1)]
    return list(pairwise(edges))
