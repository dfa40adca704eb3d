# SPDX-License-Identifier: Apache-2.0
"""Window arithmetic, in integers, one axis at a time. The only place that knows what SAME means.

An axis has `size` cells and `out` windows. Tap t of window o reads cell `o*stride - before + t*dilation`;
cells outside `0..size-1` are padding. Everything else here follows from that sentence: output sizes, the cells a
window covers, the windows that cover a cell, and which box of the input a box of the output needs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

SAME = "SAME"
VALID = "VALID"
PADDINGS = (SAME, VALID)
AXES = ("depth", "height", "width")
Padding = str | tuple[int, int]
"""Of one axis: SAME, VALID, or the cells before and behind it."""


def explicit(text: str) -> str | None:
    """Padding in numbers, as cells before and behind each axis; None for a text that is something else.

    One entry is for all axes; an entry of one number is for both sides.

    >>> explicit("1"), explicit("0,1,2"), explicit(" 0:1, 1, 2:0"), explicit("some")
    ('1:1,1:1,1:1', '0:0,1:1,2:2', '0:1,1:1,2:0', None)
    """
    entries = [[side.strip() for side in entry.split(":")] for entry in text.split(",")]
    pairs = [entry * 2 if len(entry) == 1 else entry for entry in entries] * (3 if len(entries) == 1 else 1)
    plain = all(side.isascii() and side.isdigit() and len(side) < 10 for pair in pairs for side in pair)
    if len(pairs) != 3 or any(len(pair) != 2 for pair in pairs) or not plain:
        return None
    return ",".join(f"{int(before)}:{int(behind)}" for before, behind in pairs)


def paddings(padding: str) -> tuple[Padding, ...]:
    """The padding of depth, height and width."""
    if padding in PADDINGS:
        return (padding,) * 3
    pairs = [entry.split(":") for entry in padding.split(",")]
    return tuple((int(before), int(behind)) for before, behind in pairs)


def reach(window: int, dilation: int) -> int:
    """Cells from the first tap of a window to its last, both counted."""
    return (window - 1) * dilation + 1


def centre(axis: Axis) -> Fraction:
    """Where window 0 lies: the middle of its first and last tap, counted in cells, padding or not.

    >>> centre(axis(8, 2, 2, 1, SAME)), centre(axis(8, 3, 1, 1, SAME)), centre(axis(5, 5, 2, 1, SAME))
    (Fraction(1, 2), Fraction(0, 1), Fraction(0, 1))
    """
    return Fraction(reach(axis.window, axis.dilation) - 1, 2) - axis.before


def output_size(size: int, window: int, stride: int, dilation: int, padding: Padding) -> int:
    """Number of windows; negative where a window does not fit into what is there and its stated padding.

    >>> output_size(5, 2, 2, 1, SAME), output_size(5, 2, 2, 1, VALID), output_size(5, 2, 2, 1, (1, 1))
    (3, 2, 3)
    """
    if padding == SAME:
        return -(-size // stride)
    stated = sum(padding) if isinstance(padding, tuple) else 0
    room = size + stated - reach(window, dilation) + stride
    # TensorFlow divides as C does, towards zero: a window that misses by less than a stride gives an empty output.
    return -(-room // stride) if room < 0 else room // stride


def behind_ceiling(size: int, window: int, stride: int, padding: int) -> int:
    """The cells of padding behind an axis with which its windows are as many as torch's `ceil_mode` makes them.

    The last window may reach beyond the stated padding, but begins in the data or before it.

    >>> behind_ceiling(5, 2, 2, 0), behind_ceiling(4, 2, 2, 0), behind_ceiling(3, 3, 4, 1)
    (1, 0, 0)
    """
    out = -(-(size + 2 * padding - window) // stride) + 1
    if (out - 1) * stride >= size + padding:
        out -= 1
    return max(0, (out - 1) * stride + window - size - padding)


def missing_cells(size: int, out: int, window: int, stride: int, dilation: int) -> int:
    """Cells that the windows want beyond those there are; negative where they leave some unread."""
    return (out - 1) * stride + reach(window, dilation) - size


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis of a problem.

    `overreach` marks the gradient windows of TensorFlow's CPU kernels, which extend to the end of an axis that is
    shorter than the window (quirk B3). Where the axis is a part of a longer one, `below` and `above` count the real
    cells before and behind it: they belong to windows, though they are not in memory.
    """

    size: int
    out: int
    window: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    overreach: bool = False
    below: int = 0
    above: int = 0

    def start(self, o: int) -> int:
        """The cell under tap 0 of window o; negative in the padding."""
        return o * self.stride - self.before

    def span(self, o: int) -> tuple[int, int]:
        """The real cells lo..hi-1 that window o covers (for windows without dilation)."""
        start, low, high = self.start(o), -self.below, self.size + self.above
        lo = min(max(start, low), high)
        if self.overreach and self.window > high - low:
            return lo, high
        return lo, max(lo, min(start + self.window, high))

    def outputs_of_tap(self, t: int) -> tuple[int, int]:
        """The windows o0..o1-1 whose tap t falls on a real cell."""
        offset = t * self.dilation - self.before
        first = max(0, -(offset // self.stride))
        end = (self.size - 1 - offset) // self.stride + 1
        return first, max(first, min(end, self.out))


def tap_slices(axes: Sequence[Axis], tap: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The windows in which a tap falls on real cells, and those cells, as slices of the spatial axes."""
    windows, cells = [], []
    for axis, t in zip(axes, tap, strict=True):
        first, end = axis.outputs_of_tap(t)
        start = axis.start(first) + t * axis.dilation if end > first else 0
        windows.append(slice(first, end))
        cells.append(slice(start, start + (end - first) * axis.stride, axis.stride))
    return tuple(windows), tuple(cells)


_KEPT = 4096
"""Tables of longer axes are not kept here: a thousand of those could fill the memory."""


def spans(axis: Axis) -> tuple[array[int], array[int]]:
    """The cells lo[o]..hi[o]-1 of every window, as 64-bit tables that a kernel can read."""
    return (_spans if axis.out <= _KEPT else _spans.__wrapped__)(axis)


@lru_cache(maxsize=512)
def _spans(axis: Axis) -> tuple[array[int], array[int]]:
    starts, low, high = (
        np.arange(axis.out, dtype=np.int64) * axis.stride - axis.before,
        -axis.below,
        axis.size + axis.above,
    )
    los = starts.clip(low, high)
    if axis.overreach and axis.window > high - low:
        return _table(los), _table(np.full_like(los, high))
    return _table(los), _table(np.maximum(los, np.minimum(starts + axis.window, high)))


def _table(values: np.ndarray[Any, Any]) -> array[int]:
    made = array("q", [0]) * len(values)  # not a number longer, so that AddressSanitizer sees who reads past it
    np.asarray(made)[:] = values
    return made


def coverings(axis: Axis) -> tuple[array[int], array[int]]:
    """For every cell, the windows first[i]..last[i]-1 that cover it. Both rise with i, because spans do."""
    return (_coverings if axis.size <= _KEPT else _coverings.__wrapped__)(axis)


@lru_cache(maxsize=512)
def _coverings(axis: Axis) -> tuple[array[int], array[int]]:
    los, his = (np.frombuffer(table, np.int64) if table else np.zeros(0, np.int64) for table in spans(axis))
    cells = np.arange(axis.size)
    lasts = np.searchsorted(los, cells, "right")
    return _table(np.minimum(np.searchsorted(his, cells, "right"), lasts)), _table(lasts)


def axis(
    size: int,
    window: int,
    stride: int,
    dilation: int,
    padding: Padding,
    *,
    late_start: bool = False,
    overreach: bool = False,
) -> Axis:
    """The axis for TensorFlow's padding rule, or for a stated padding, which TensorFlow's quirks do not touch.

    SAME puts half of the missing cells before the input and the rest, one more where they are odd, behind it. Where
    the stride jumps over cells nothing is missing and the first window starts at cell 0; `late_start` instead lets
    it start in the middle of the gap, as TensorFlow's CPU forward kernels do (quirk B2).

    >>> axis(4, 3, 2, 1, SAME).before, axis(3, 1, 3, 1, SAME).before, axis(3, 1, 3, 1, SAME, late_start=True).before
    (0, 0, -1)
    """
    out = output_size(size, window, stride, dilation, padding)
    if isinstance(padding, tuple):
        return Axis(size, out, window, stride, dilation, padding[0])
    before = 0
    if padding == SAME and out > 0:
        missing = missing_cells(size, out, window, stride, dilation)
        # C's division rounds towards zero, so a gap of one cell does not shift the window.
        before = missing // 2 if missing >= 0 else -(-missing // 2) if late_start else 0
    return Axis(size, out, window, stride, dilation, before, overreach)


def input_box(axis: Axis, o0: int, o1: int) -> tuple[int, int]:
    """The cells i0..i1-1 that windows o0..o1-1 read; may reach into the padding on either side.

    >>> input_box(axis(8, 3, 1, 1, SAME), 0, 4)
    (-1, 5)
    """
    if o1 <= o0:
        return 0, 0
    return axis.start(o0), axis.start(o1 - 1) + reach(axis.window, axis.dilation)


def output_box(axis: Axis, i0: int, i1: int) -> tuple[int, int]:
    """The windows o0..o1-1 that read any of the cells i0..i1-1; empty where the stride jumps over them all.

    >>> output_box(axis(8, 3, 1, 1, SAME), 0, 4)
    (0, 5)
    """
    if i1 <= i0:
        return 0, 0
    first = -((reach(axis.window, axis.dilation) - 1 - i0 - axis.before) // axis.stride)
    end = (i1 - 1 + axis.before) // axis.stride + 1
    first = min(max(first, 0), axis.out)
    return first, max(first, min(end, axis.out))


def part(axis: Axis, cells: tuple[int, int], windows: tuple[int, int]) -> Axis:
    """The axis that holds only cells i0..i1-1 and windows o0..o1-1 of another; every window keeps its place.

    >>> part(axis(8, 3, 1, 1, SAME), (3, 8), (4, 8))
    Axis(size=5, out=4, window=3, stride=1, dilation=1, before=0, overreach=False, below=3, above=0)
    """
    (i0, i1), (o0, o1) = cells, windows
    return replace(
        axis,
        size=i1 - i0,
        out=o1 - o0,
        before=axis.before + i0 - o0 * axis.stride,
        below=axis.below + i0,
        above=axis.above + axis.size - i1,
    )


class Alike(NamedTuple):
    """Windows of one size among those of an axis: their numbers, and the cells that they read, one after the other."""

    window: int
    numbers: list[int]
    cells: list[int]


def adaptive(size: int, out: int) -> list[Alike]:
    """The `out` windows over a whole axis that are as even as can be, those of one size together.

    Window o reads the cells from floor(o * size / out) up to ceil((o + 1) * size / out), the last not counted: they
    follow each other where `out` divides `size`, else neighbours may share a cell, and there are one or two sizes.

    >>> adaptive(4, 3)
    [Alike(window=2, numbers=[0, 1, 2], cells=[0, 1, 1, 2, 2, 3])]
    >>> adaptive(2, 3)
    [Alike(window=1, numbers=[0, 2], cells=[0, 1]), Alike(window=2, numbers=[1], cells=[0, 1])]
    """
    spans = [(o * size // out, -(-(o + 1) * size // out)) for o in range(out)]
    made = []
    for window in sorted({end - start for start, end in spans}):
        numbers = [o for o, (start, end) in enumerate(spans) if end - start == window]
        made.append(Alike(window, numbers, [cell for o in numbers for cell in range(*spans[o])]))
    return made
