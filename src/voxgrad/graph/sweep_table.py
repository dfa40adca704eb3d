# SPDX-License-Identifier: Apache-2.0
"""The rows of a sweep as a table: what varied, a number or three per result, the time, what was wrong."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voxgrad.errors import visible
from voxgrad.graph.measure import Work
from voxgrad.graph.sweep import Reading, Row, Sweep

PARTS = ("min", "mean", "max")
_WIDTH = 10
_WIDEST = 32


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a sweep, which are known before its rows, so that rows can be printed as they come."""

    sweep: Sweep
    work: Work

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        results = [f"{path} {part}" for path in self.work.fetches for part in PARTS]
        times = ["seconds", "least", "greatest", "first"] if self.work.repeats > 1 else ["seconds"]
        return [*self.sweep.variations, *results, *times, "problem"]

    def cells(self, row: Row) -> list[Any]:
        """The values of all columns."""
        results = [number for path in self.work.fetches for number in _three(row.results.get(path))]
        times: list[Any] = [row.times.median]
        if self.work.repeats > 1:
            times += [*(row.times.spread or (None, None)), row.times.first]
        return [*row.point.values.values(), *results, *times, "; ".join(map(str, row.faults))]

    def head(self) -> str:
        """The first line of the table for people."""
        names = [name for name, _ in self._narrow()]
        places = [*names, *self.work.fetches, "time"]
        return self._joined(f"{'':>{self._digits}}", places).rstrip()

    def line(self, row: Row) -> str:
        """A row for people; what was wrong stands where results would."""
        lead = f"{row.point.index + 1:>{self._digits}}"
        values = list(row.point.values.values())
        if row.faults:
            told = visible("; ".join(str(fault).splitlines()[0] for fault in row.faults))
            return f"{self._joined(lead, values)}  {told}"
        results = [_shown(row.results.get(path)) for path in self.work.fetches]
        return self._joined(lead, [*values, *results, shown_times(row)]).rstrip()

    @property
    def _digits(self) -> int:
        return len(str(len(self.sweep)))

    def _narrow(self) -> list[tuple[str, int]]:
        """What varies, with the width of its column."""
        return [(name, min(_WIDEST, max(map(len, [name, *values])))) for name, values in self.sweep.variations.items()]

    def _joined(self, lead: str, cells: Sequence[str]) -> str:
        widths = [width for _, width in self._narrow()]
        widths += [max(len(path), 3 * _WIDTH + 6) for path in self.work.fetches]
        padded = [f"{visible(cell):<{width}}" for cell, width in zip(cells, widths, strict=False)]
        return "  ".join([lead, *padded, *cells[len(widths) :]])


def _three(reading: Reading | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if reading is None else (reading.low, reading.mean, reading.high)


def _shown(reading: Reading | None) -> str:
    """A result in the width of a column: one number, or the least, the mean and the greatest."""
    if reading is None:
        return ""
    if reading.mean is None:
        return "nothing finite" if reading.not_finite else reading.dtype
    numbers = (reading.value,) if reading.value is not None else (reading.low, reading.mean, reading.high)
    told = " .. ".join("" if one is None else f"{one:.6g}" for one in numbers)
    return f"{told} ({reading.not_finite} not finite)" if reading.not_finite else told


def shown_times(row: Row) -> str:
    """A time, with its spread where there is one."""
    if row.times.median is None:
        return ""
    told = seconds(row.times.median)
    if row.times.spread is not None:
        told += f" ({' to '.join(map(seconds, row.times.spread))})"
    return told


def csv_line(cells: Sequence[Any]) -> str:
    """A line of a CSV file; nothing where there is no value."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow("" if cell is None else cell for cell in cells)
    return text.getvalue()


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"
