# SPDX-License-Identifier: Apache-2.0
"""How much of everything a plan has: cells and bytes of tensors, operations of pieces, over all chunks or some.

The cells of a box are a product over the directions, so what all chunks together read, write and compute is a product
of sums over the rows of the plan: exact, and as quick for a million chunks as for ten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from voxgrad.volumes.layout import Piece
from voxgrad.volumes.page_plan import PagePlan, Row
from voxgrad.volumes.windows import Range

Rows = Sequence[Sequence[Row]]
"""Chunks along each direction."""

_DENSE = 4
"""Operations for a byte that comes or goes, from which on it is not the memory that a kernel waits for."""


def rows_of(plan: PagePlan, at: Sequence[int]) -> Rows:
    """The rows of one chunk."""
    return [(plan.rows[role][at[role]],) for role in range(4)]


def itemsize(plan: PagePlan, slot: int) -> int:
    """The bytes of a cell of a tensor."""
    dtype = plan.layout.specs[slot].dtype
    return 0 if dtype is None else dtype.itemsize


def cells(plan: PagePlan, slot: int, rows: Rows | None = None) -> int:
    """Cells of a tensor that chunks work on."""
    lengths = (sum(span(row.needs.get(slot, (0, 0))) for row in own) for own in rows or plan.rows)
    return math.prod(lengths) * uncut(plan, slot)


def bytes_of(plan: PagePlan, slot: int) -> int:
    """The bytes of a whole tensor."""
    return math.prod(plan.layout.specs[slot].shape or ()) * itemsize(plan, slot)


def fetched(plan: PagePlan, slot: int, unit: Sequence[int] | None, rows: Rows | None = None) -> int:
    """Bytes of a volume that chunks unpack: of a file that is cut, in units, all of each that a chunk touches."""
    total = uncut(plan, slot) * itemsize(plan, slot)
    for role, own in enumerate(rows or plan.rows):
        dim = plan.layout.role_dim(slot, role)
        step = 1 if unit is None or dim is None else unit[dim]
        total *= sum(_rounded(row.needs.get(slot, (0, 0)), step, plan.size(slot, role)) for row in own)
    return total


def _rounded(range_: Range, step: int, size: int) -> int:
    low, high = range_
    return min(-(-high // step) * step, size) - low // step * step if high > low else 0


def uncut(plan: PagePlan, slot: int) -> int:
    """Cells of a tensor at one place along batch, depth, height and width."""
    shape, roles = plan.layout.specs[slot].shape or (), plan.layout.roles[slot]
    return math.prod(size for role, size in zip(roles, shape, strict=True) if role is None)


def operations(plan: PagePlan, at: int, piece: Piece, rows: Rows | None = None) -> int:
    """Operations of a piece: those of its windows, else one per cell that it writes or sums."""
    if piece.problem is None:
        return cells(plan, _written(plan, piece), rows)
    batch, *spatial = rows or plan.rows
    images = sum(span(row.kept[at]) for row in batch)
    windows = math.prod(sum(span(row.segments[at].windows) for row in own) for own in spatial)
    return images * windows * piece.problem.window_operations


def dense_operations(plan: PagePlan, piece: Piece) -> int:
    """The same without chunks."""
    if piece.problem is None:
        return math.prod(plan.layout.specs[_written(plan, piece)].shape or ())
    windows = piece.problem.batch * math.prod(axis.out for axis in piece.problem.axes)
    return windows * piece.problem.window_operations


def is_compute(plan: PagePlan, pieces: Sequence[int]) -> bool:
    """Whether pieces compute much for what they read and write: convolutions with channels do, pools do not."""
    done = [plan.layout.pieces[at] for at in pieces]
    moved = sum(bytes_of(plan, slot) for piece in done for slot in {*piece.inputs, *piece.outputs})
    return sum(dense_operations(plan, piece) for piece in done) >= _DENSE * moved


def _written(plan: PagePlan, piece: Piece) -> int:
    if not piece.adds:
        return piece.outputs[0]
    return max(piece.inputs, key=lambda slot: math.prod(plan.layout.specs[slot].shape or ()))


def span(range_: Range) -> int:
    """The cells of a range."""
    return range_[1] - range_[0]
