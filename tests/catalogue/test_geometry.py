# SPDX-License-Identifier: Apache-2.0
"""Window arithmetic against its one sentence: tap t of window o reads cell o*stride - before + t*dilation."""

from __future__ import annotations

import doctest
import itertools
from typing import Any

import pytest

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import SAME, VALID, Axis

RULES = [
    (size, window, stride, dilation, padding)
    for size, window, stride in itertools.product(range(9), range(1, 5), range(1, 5))
    for dilation in (1, 2, 3)
    for padding in (SAME, VALID)
]
AXES = [
    Axis(size, out, window, stride, dilation, before)
    for size, out, window, stride in itertools.product((0, 1, 2, 5, 8), (0, 1, 3, 6), (1, 2, 3, 9), (1, 2, 3))
    for dilation, before in ((1, 0), (1, 2), (1, -1), (2, 0), (2, 3), (3, -2))
]
UNDILATED = [axis for axis in AXES if axis.dilation == 1]


def cells(axis: Axis, o: int) -> list[int]:
    """What the taps of a window read, padding too."""
    return [o * axis.stride - axis.before + t * axis.dilation for t in range(axis.window)]


def real(axis: Axis, o: int) -> set[int]:
    """The real cells under the taps of a window."""
    return {cell for cell in cells(axis, o) if -axis.below <= cell < axis.size + axis.above}


def test_documentation_runs() -> None:
    found = doctest.testmod(geometry)
    assert found.attempted >= 5 and found.failed == 0


@pytest.mark.parametrize("padding", [SAME, VALID])
def test_sizes_and_padding_are_tensorflows(padding: str) -> None:
    """Its documented formulas: ceil(size / stride) under SAME, ceil((size - reach + 1) / stride) where VALID fits."""
    for size, window, stride, dilation, _ in [rule for rule in RULES if rule[4] == padding]:
        made, reach = geometry.axis(size, window, stride, dilation, padding), (window - 1) * dilation + 1
        if padding == SAME:
            assert made.out == (size + stride - 1) // stride
            total = max((made.out - 1) * stride + reach - size, 0) if made.out else 0
            assert made.before == total // 2
        else:
            fitting = [o for o in range(size + 1) if o * stride + reach <= size]
            assert made.before == 0 and max(made.out, 0) == len(fitting)
            assert (made.out < 0) == (size - reach + stride <= -stride)
        assert (made.size, made.window, made.stride, made.dilation) == (size, window, stride, dilation)
        assert (made.overreach, made.below, made.above) == (False, 0, 0)


def test_a_late_start_is_the_middle_of_the_gap() -> None:
    """Quirk B2: C's division of the negative number of missing cells, where the stride jumps over cells."""
    for size, window, stride, dilation, padding in RULES:
        made = geometry.axis(size, window, stride, dilation, padding, late_start=True)
        missing = (made.out - 1) * stride + (window - 1) * dilation + 1 - size
        wanted = int(missing / 2) if padding == SAME and made.out > 0 else 0
        assert made.before == wanted, (size, window, stride, dilation)
        plain = geometry.axis(size, window, stride, dilation, padding)
        assert plain.before == max(wanted, 0) and plain.out == made.out
    assert geometry.axis(3, 2, 1, 1, SAME, overreach=True).overreach


def test_spans_are_the_real_cells_of_windows() -> None:
    for axis in UNDILATED:
        los, his = geometry.spans(axis)
        assert len(los) == len(his) == axis.out
        for o in range(axis.out):
            assert set(range(los[o], his[o])) == real(axis, o), (axis, o)
            assert 0 <= los[o] <= his[o] <= axis.size


def test_coverings_are_spans_seen_from_the_cells() -> None:
    for axis in UNDILATED:
        firsts, lasts = geometry.coverings(axis)
        assert len(firsts) == len(lasts) == axis.size
        for cell in range(axis.size):
            assert set(range(firsts[cell], lasts[cell])) == {o for o in range(axis.out) if cell in real(axis, o)}


def test_windows_that_overreach_end_with_the_axis() -> None:
    """Quirk B3: a window longer than the axis ends where the axis does; one that fits is as always."""
    for size, window, stride, before in itertools.product(range(1, 6), range(1, 8), (1, 2), (0, 1, 3)):
        axis = Axis(size, 4, window, stride, 1, before, overreach=True)
        for o in range(axis.out):
            lo, hi = axis.span(o)
            start = min(max(o * stride - before, 0), size)
            wanted = set(range(start, size)) if window > size else real(axis, o)
            assert set(range(lo, hi)) == wanted, (axis, o)


def test_taps_fall_on_real_cells_in_one_range_of_windows() -> None:
    for axis in AXES:
        for t in range(axis.window):
            first, end = axis.outputs_of_tap(t)
            wanted = [o for o in range(axis.out) if 0 <= o * axis.stride - axis.before + t * axis.dilation < axis.size]
            assert list(range(first, end)) == wanted, (axis, t)
            (windows,), (read,) = geometry.tap_slices([axis], [t])
            assert list(range(axis.out))[windows] == wanted
            assert list(range(axis.size))[read] == [cells(axis, o)[t] for o in wanted], (axis, t)


def test_boxes_hold_what_is_read_and_no_more() -> None:
    for axis in AXES:
        for o0, o1 in itertools.combinations_with_replacement(range(axis.out + 1), 2):
            read = [cell for o in range(o0, o1) for cell in cells(axis, o)]
            assert geometry.input_box(axis, o0, o1) == ((min(read), max(read) + 1) if read else (0, 0))
        for i0, i1 in itertools.combinations_with_replacement(range(axis.size + 1), 2):
            first, end = geometry.output_box(axis, i0, i1)
            # A window stretches over cells between its taps, too.
            readers = [o for o in range(axis.out) if i1 > i0 and cells(axis, o)[0] < i1 and cells(axis, o)[-1] >= i0]
            assert list(range(first, end)) == readers, (axis, i0, i1)
            assert 0 <= first <= end <= axis.out


def test_a_part_keeps_every_window_in_its_place() -> None:
    for whole in UNDILATED[::3]:
        for (i0, i1), (o0, o1) in itertools.product(
            itertools.combinations_with_replacement(range(whole.size + 1), 2),
            itertools.combinations_with_replacement(range(whole.out + 1), 2),
        ):
            for axis in (whole, geometry.part(whole, (0, whole.size), (0, whole.out))):
                small = geometry.part(axis, (i0, i1), (o0, o1))
                assert (small.size, small.out, small.below, small.above) == (i1 - i0, o1 - o0, i0, whole.size - i1)
                for o in range(small.out):
                    assert {cell + i0 for cell in real(small, o)} == real(whole, o + o0)
                    lo, hi = small.span(o)
                    assert {cell + i0 for cell in range(lo, hi)} == real(whole, o + o0)


def test_a_part_of_a_part_counts_all_that_is_left_out() -> None:
    axis: Any = geometry.axis(20, 3, 2, 1, SAME)
    once = geometry.part(axis, (4, 18), (2, 9))
    assert geometry.part(once, (3, 10), (2, 5)) == geometry.part(axis, (7, 14), (4, 7))


def test_an_axis_without_padding_starts_at_its_first_cell() -> None:
    axis = geometry.Axis(5, 3, 3)
    assert (axis.stride, axis.dilation, axis.start(0), axis.start(2)) == (1, 1, 0, 2)


def test_the_last_window_of_a_ceiling_begins_in_the_data() -> None:
    """As torch's ceil_mode: four cells, windows of four, three apart, two of padding on each side."""
    assert [geometry.behind_ceiling(*sizes) for sizes in ((4, 4, 3, 2), (5, 2, 2, 0), (3, 3, 4, 1))] == [1, 1, 0]
