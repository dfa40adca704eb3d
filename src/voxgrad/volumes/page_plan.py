# SPDX-License-Identifier: Apache-2.0
"""The plan of a page over volumes: for every chunk, exactly the box of every tensor that it needs, in integers.

The result is cut along batch, depth, height and width. A range of the result along one of them needs a range of every
tensor before it along the same one, whatever the others do: so the plan is one short table per direction, and a chunk
is one row of each. A million chunks take as long to plan as three hundred rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.volumes.layout import ROLES, VOLUME, Layout, Piece
from voxgrad.volumes.moves import source_range
from voxgrad.volumes.windows import EMPTY, Range, Segment, clip, hull, segment

Boxes = tuple[Range, ...]
"""A range per dimension of a tensor."""


@dataclass(frozen=True, slots=True)
class Root:
    """What a run makes: a tensor that is written chunk by chunk, or the sums of a piece over the chunks."""

    slot: int
    """The tensor that is cut into chunks: the result itself, or what is summed."""
    sizes: tuple[int, ...]
    """Cells along batch, depth, height and width; 1 where the tensor has no such dimension."""
    chunks: tuple[int, ...]
    piece: int | None = None

    def range(self, role: int, index: int) -> Range:
        """The cells of a chunk along one direction; none where this tensor has fewer chunks than others."""
        first = index * self.chunks[role]
        last = min(first + self.chunks[role], self.sizes[role])
        return (first, last) if last > first else EMPTY


@dataclass(slots=True)
class Row:
    """A chunk along one direction: what of every tensor it needs, and what of each axis every window works on."""

    needs: dict[int, Range] = field(default_factory=dict)
    kept: dict[int, Range] = field(default_factory=dict)
    segments: dict[int, Segment] = field(default_factory=dict)


class PagePlan:
    """All chunks of a page over volumes. Made at once; what a chunk needs is looked up when it is asked for.

    `before` are the plans of the passes that must end first, where the page needs statistics of whole volumes.
    """

    def __init__(self, layout: Layout, chunks: Sequence[int], before: Sequence[PagePlan] = ()):
        self.layout = layout
        self.before = tuple(before)
        self.roots = self._roots(chunks)
        self.grid = tuple(
            max((-(-root.sizes[role] // root.chunks[role]) for root in self.roots), default=0) for role in range(4)
        )
        self.rows = tuple(tuple(self._row(role, index) for index in range(self.grid[role])) for role in range(4))

    def cut(self, chunks: Sequence[int]) -> PagePlan:
        """The same in other chunks."""
        return PagePlan(self.layout, chunks, [one.cut(chunks) for one in self.before])

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks of the first result: batch, depth, height, width."""
        return self.roots[0].chunks if self.roots else (1, 1, 1, 1)

    def __len__(self) -> int:
        return math.prod(self.grid)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(*(range(count) for count in self.grid))

    def at(self, number: int) -> tuple[int, ...]:
        """Where the chunk with a number lies in the grid."""
        place = []
        for count in reversed(self.grid):
            number, rest = divmod(number, count)
            place.append(rest)
        return tuple(reversed(place))

    # What is made, and in which parts

    def _roots(self, chunks: Sequence[int]) -> list[Root]:
        layout = self.layout
        slots: list[tuple[int, int | None]] = [
            (slot, None) for slot in dict.fromkeys(layout.fetches.values()) if layout.kinds[slot] == VOLUME
        ]
        slots += [(self.summed(piece), at) for at, piece in enumerate(layout.pieces) if piece.adds]
        sizes = [tuple(self.size(slot, role) for role in range(4)) for slot, _ in slots]
        largest = tuple(max((one[role] for one in sizes), default=1) for role in range(4))
        given = (1, *chunks) if len(chunks) == 3 else tuple(chunks)
        counts = [-(-size // min(max(chunk, 1), max(size, 1))) for size, chunk in zip(largest, given, strict=True)]
        return [
            Root(slot, own, tuple(_chunk(own[role], largest[role], given[role], counts[role]) for role in range(4)), at)
            for (slot, at), own in zip(slots, sizes, strict=True)
        ]

    def summed(self, piece: Piece) -> int:
        """The tensor whose cells a sum goes over; of a filter gradient, the one that lies along the windows."""
        sides = [item.side for item in piece.step.op.inputs]
        return piece.inputs[sides.index(Side.WINDOWS) if piece.problem is not None else 0]

    def size(self, slot: int, role: int) -> int:
        """The cells of a tensor along a direction; 1 where it does not have it."""
        dim, shape = self.layout.role_dim(slot, role), self.layout.specs[slot].shape
        return 1 if dim is None or shape is None else int(shape[dim])

    # What a chunk needs

    def _row(self, role: int, index: int) -> Row:
        row = Row()
        for root in self.roots:
            if root.piece is None:
                self._need(row, role, root.slot, root.range(role, index))
            else:
                row.kept[root.piece] = root.range(role, index)
        for at in reversed(range(len(self.layout.pieces))):
            piece = self.layout.pieces[at]
            if not piece.adds:
                kept = EMPTY
                for slot in piece.outputs:
                    kept = hull(kept, row.needs.get(slot, EMPTY))
                if role in piece.wholes and kept != EMPTY:
                    kept = (0, max(self.size(slot, role) for slot in piece.outputs))
                row.kept[at] = kept
                # The outputs of one block are made together, so that of each there is what any of them needs.
                for slot in piece.outputs:
                    self._need(row, role, slot, clip(kept, self.size(slot, role)))
            self._needs_of(row, role, at, piece)
        return row

    def _needs_of(self, row: Row, role: int, at: int, piece: Piece) -> None:
        """What a piece needs of its inputs along one direction, for the range of its result that is kept."""
        if piece.problem is not None and role > 0:
            row.segments[at] = segment(piece.problem.map, piece.problem.axes[role - 1], row.kept[at])
        for index, slot in enumerate(piece.inputs):
            self._need(row, role, slot, self.input_range(row, role, at, index))

    def input_range(self, row: Row, role: int, at: int, index: int) -> Range:
        """The range of one input of a piece that its kept result needs, along the dimension that has the role."""
        piece = self.layout.pieces[at]
        if piece.problem is not None:
            if piece.is_whole(index) or role == 0:
                return EMPTY if piece.is_whole(index) else row.kept[at]
            return row.segments[at].on(piece.step.op.inputs[index].side)
        slot, places = piece.inputs[index], piece.places[index]
        dim, size, kept = self.layout.role_dim(slot, role), self.size(slot, role), row.kept[at]
        if dim is None or kept == EMPTY:
            # A tensor that does not run along a direction is needed all along it, or not at all.
            return EMPTY if kept == EMPTY else (0, 1)
        if piece.shifts:
            return self._moved_range(piece, index, dim, role, kept)
        if not isinstance(places, tuple):
            return EMPTY
        followed = places[dim] is not None or bool(piece.adds)
        return kept if followed and (size > 1 or places[dim] is not None) else (0, size)

    def _moved_range(self, piece: Piece, index: int, dim: int, role: int, kept: Range) -> Range:
        """What the results of a block that moves cells hold of one of its inputs."""
        needed, size = EMPTY, self.size(piece.inputs[index], role)
        for slot, moved in zip(piece.outputs, piece.shifts, strict=True):
            shifts = moved[index]
            if shifts is not None:
                needed = hull(needed, source_range(shifts[dim], clip(kept, self.size(slot, role)), size))
        return needed

    def _need(self, row: Row, role: int, slot: int, wanted: Range) -> None:
        if self.layout.kinds[slot] == VOLUME:
            row.needs[slot] = hull(row.needs.get(slot, EMPTY), wanted)

    def box(self, slot: int, at: Sequence[int]) -> Boxes:
        """The box of a tensor that a chunk works on; one without cells where it needs none of it."""
        shape = self.layout.specs[slot].shape or ()
        ranges = [self.rows[role][at[role]].needs.get(slot, EMPTY) for role in range(4)]
        if EMPTY in ranges:
            return (EMPTY,) * len(shape)
        return tuple(
            (0, size) if role is None else ranges[role]
            for role, size in zip(self.layout.roles[slot], shape, strict=True)
        )

    def takes_part(self, piece: int, at: Sequence[int]) -> bool:
        """Whether a chunk has a part of what a piece adds up."""
        return all(self.rows[role][at[role]].kept[piece] != EMPTY for role in range(4))

    def input_box(self, piece: int, index: int, at: Sequence[int]) -> Boxes:
        """The box of an input that a piece reads for a chunk."""
        slot = self.layout.pieces[piece].inputs[index]
        shape = self.layout.specs[slot].shape or ()
        whole = self.layout.pieces[piece].is_whole(index)
        return tuple(
            (0, size) if role is None or whole else self.input_range(self.rows[role][at[role]], role, piece, index)
            for role, size in zip(self.layout.roles[slot], shape, strict=True)
        )

    def root_box(self, root: Root, at: Sequence[int]) -> Boxes:
        """The box of a result that a chunk writes; one without cells where it writes none of it."""
        shape = self.layout.specs[root.slot].shape or ()
        ranges = [root.range(role, at[role]) for role in range(4)]
        if EMPTY in ranges:
            return (EMPTY,) * len(shape)
        return tuple(
            (0, size) if role is None else ranges[role]
            for role, size in zip(self.layout.roles[root.slot], shape, strict=True)
        )

    def problem(self, piece: int, at: Sequence[int]) -> tuple[Problem, Boxes | None]:
        """The smaller problem of a windowed piece for a chunk, and the part of its result that is kept."""
        whole = self.layout.pieces[piece].problem
        assert whole is not None
        found = [self.rows[role][at[role]].segments[piece] for role in (1, 2, 3)]
        batch = self.rows[0][at[0]].kept[piece]
        axes = (found[0].axis, found[1].axis, found[2].axis)
        made = whole.part(axes, batch[1] - batch[0])
        if whole.map.output is not Side.CELLS or all(one.kept == one.cells for one in found):
            return made, None
        crop = [(one.kept[0] - one.cells[0], one.kept[1] - one.cells[0]) for one in found]
        batch = (0, made.batch)
        channels = (0, whole.in_channels)
        return made, (batch, *crop, channels) if whole.channels_last else (batch, channels, *crop)

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {count}" for name, count in zip(ROLES, self.grid, strict=True))
        last = f", the last of {len(self.before) + 1} passes" if self.before else ""
        return f"<PagePlan of {self.layout.page.name!r}: {len(self):,} chunks ({names}){last}>"


def _chunk(size: int, largest: int, chunk: int, count: int) -> int:
    """The chunk of a tensor: as given for the largest, in proportion for smaller ones, so that all have one grid."""
    if size == largest:
        return max(1, min(chunk, size))
    return max(1, -(-size // max(count, 1)))
