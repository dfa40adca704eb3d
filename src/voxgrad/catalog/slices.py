# SPDX-License-Identifier: Apache-2.0
"""What StridedSlice means, worked out once: for shapes here, for arrays in the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog.dims import known
from voxgrad.catalog.model import Shape
from voxgrad.errors import Faults

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@dataclass(frozen=True, slots=True)
class Cut:
    """What happens to one dimension: cells `start`, `start + step` ... of it, `count` in number.

    `axis` is the dimension of the input, None for a new one. `shrink` drops the dimension from the result.
    `count` is None where only a run can tell.
    """

    axis: int | None
    start: Any = 0
    step: int = 1
    count: Any = 1
    shrink: bool = False


def cuts(
    shape: Shape,
    bounds: tuple[Sequence[Any], Sequence[Any], Sequence[int]],
    masks: Mapping[str, int],
    faults: Faults,
) -> list[Cut] | None:
    """The cuts of a slice of this shape, in the order of the result; None after noting a fault."""
    begin, end, strides = bounds
    entries = len(begin)
    if not len(end) == len(strides) == entries:
        got = f"{entries}, {len(end)} and {len(strides)} entries"
        faults.add("VG004", "begin, end, strides", wanted="have one length", got=got)
        return None
    ellipsis = masks["ellipsis_mask"]
    if ellipsis & (ellipsis - 1):
        faults.add("VG003", "ellipsis_mask", wanted="have one bit at most", got=ellipsis)
        return None
    made: list[Cut] = []
    axis = 0
    named = sum(1 for i in range(entries) if not (_bit(masks, "new_axis_mask", i) or _bit(masks, "ellipsis_mask", i)))
    for i in range(entries):
        if _bit(masks, "ellipsis_mask", i):
            skipped = len(shape) - named
            made += [Cut(axis + j, 0, 1, shape[axis + j]) for j in range(max(0, skipped))]
            axis += max(0, skipped)
        elif _bit(masks, "new_axis_mask", i):
            made.append(Cut(None))
        elif axis >= len(shape):
            faults.add("VG004", "begin", wanted=f"cut at most the {len(shape)} dimensions of the input", got=named)
            return None
        else:
            cut = _cut(axis, shape[axis], (begin[i], end[i], strides[i]), masks, i, faults)
            if cut is None:
                return None
            made.append(cut)
            axis += 1
    return made + [Cut(j, 0, 1, shape[j]) for j in range(axis, len(shape))]


def _bit(masks: Mapping[str, int], name: str, index: int) -> bool:
    return bool(masks[name] >> index & 1)


def _cut(
    axis: int, size: Any, bounds: tuple[Any, Any, int], masks: Mapping[str, int], index: int, faults: Faults
) -> Cut | None:
    begin, end, step = bounds
    if step == 0:
        faults.add("VG003", f"strides[{index}]", wanted="not be 0", got=0)
        return None
    if _bit(masks, "shrink_axis_mask", index):
        return _point(axis, size, begin, step, index, faults)
    open_begin, open_end = _bit(masks, "begin_mask", index), _bit(masks, "end_mask", index)
    if not known(size):
        return _open_cut(axis, size, (None if open_begin else begin, None if open_end else end, step))
    if not (known(begin) or open_begin) or not (known(end) or open_end):
        return Cut(axis, begin, step, None)
    span = range(size)[slice(None if open_begin else begin, None if open_end else end, step)]
    return Cut(axis, span.start, step, len(span))


def _point(axis: int, size: Any, begin: Any, step: int, index: int, faults: Faults) -> Cut | None:
    if step < 0:
        faults.add("VG003", f"strides[{index}]", wanted="be positive where shrink_axis_mask is set", got=step)
        return None
    if known(size) and known(begin):
        if not -size <= begin < size:
            faults.add("VG043", f"begin[{index}]", wanted=f"be an index into {size} cells", got=begin)
            return None
        begin = begin % size
    return Cut(axis, begin, 1, 1, shrink=True)


def _open_cut(axis: int, size: Any, bounds: tuple[Any, Any, int]) -> Cut:
    """A cut of a dimension whose size is a symbol: known where it counts from one end only."""
    begin, end, step = bounds
    if step == -1 and begin is None and end is None:
        return Cut(axis, size - 1, -1, size)
    if (
        step != 1
        or not (begin is None or (known(begin) and begin >= 0))
        or not (end is None or (known(end) and end < 0))
    ):
        return Cut(axis, 0, step, None)
    count = size - (begin or 0) + (end or 0)
    return Cut(axis, begin or 0, 1, count)
