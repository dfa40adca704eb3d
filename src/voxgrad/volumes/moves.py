# SPDX-License-Identifier: Apache-2.0
"""Blocks that only move cells (cut out, turn, join, pad), on parts: which cells a box of the result holds, and copies.

A cell of the result lies at a cell of an input, or at none (`catalog/locality.Shift`); so a box of the result is made
by copying, whatever the op is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from voxgrad.catalog.locality import Shift
from voxgrad.volumes.windows import EMPTY, Range, clip

Array = np.ndarray[Any, Any]
Boxes = tuple[Range, ...]


def covered(shift: Shift, kept: Range, size: int) -> Range:
    """The part of a range of the result that lies at cells of an axis of this size."""
    if shift.step > 0:
        first, end = -(shift.start // shift.step), -((shift.start - size) // shift.step)
    else:
        first, end = (shift.start - size) // -shift.step + 1, shift.start // -shift.step + 1
    low, high = max(kept[0], first), min(kept[1], end)
    return (low, high) if low < high else EMPTY


def source_range(shift: Shift, kept: Range, size: int) -> Range:
    """The cells of an axis of an input at which a range of the result lies."""
    if shift.place is None:
        return clip((shift.start, shift.start + 1), size) if kept != EMPTY else EMPTY
    low, high = covered(shift, kept, size)
    if low == high:
        return EMPTY
    ends = sorted((shift.start + low * shift.step, shift.start + (high - 1) * shift.step))
    return ends[0], ends[1] + 1


def copy_cells(
    target: Array, box: Boxes, shifts: Sequence[Shift], source: Array, at: Boxes, shape: Sequence[int]
) -> None:
    """Copy into `target`, the box of a result, what of it lies in `source`, the box `at` of an input of this shape."""
    to = [slice(None)] * len(box)
    cut: list[Any] = []
    for shift, (low, high), size in zip(shifts, at, shape, strict=True):
        if shift.place is None:
            cut.append(shift.start - low)
            continue
        first, end = covered(shift, box[shift.place], size)
        if first == end or low == high:
            return
        to[shift.place] = slice(first - box[shift.place][0], end - box[shift.place][0])
        begin, behind = (shift.start + one * shift.step - low for one in (first, end))
        cut.append(slice(begin, behind if behind >= 0 else None, shift.step))
    # Dimensions of the result that no input has are new, and of size 1.
    there = {shift.place for shift in shifts}
    target[tuple(to)] = source[tuple(cut)][tuple(slice(None) if dim in there else None for dim in range(len(box)))]
