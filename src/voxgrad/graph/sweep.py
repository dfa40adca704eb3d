# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one page with other attributes, values, semantics or engines, point by point, with a row for each.

    sweep = Sweep(page, {"pool.padding": ["SAME", "VALID"], "half.y": ["0.5", "1"]})
    for row in sweep.rows():            # 4 points; the page itself is never changed
        print(row.values, row.results["loss.output"].mean, row.times.median)

What varies is named as `block.attribute` or `block.input`, `semantics`, or `engine`; values are texts, as a person
types them. What is wrong with names and values is told before anything runs; what is wrong with the page at one point
is in the row of that point, and the others go on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from voxgrad.arguments import checked
from voxgrad.arrays.kinds import dtype_of
from voxgrad.doors import through
from voxgrad.errors import CancelledError, Fault, Faults, InvalidArgumentError, VoxgradError
from voxgrad.graph.feeds import collected
from voxgrad.graph.measure import Session, Times, Work, measure, shown_outputs
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.statistics import Statistics
from voxgrad.graph.values import Array

MOST_POINTS = 10_000
SEMANTICS, ENGINE = "semantics", "engine"
DEFAULT_ENGINE = "cpu"
OpenSession = Callable[[Page, str], Session]
Variations = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Point:
    """One point: its number, what varies with its values, the edits that make its page, and what computes it."""

    index: int
    values: Mapping[str, str]
    edits: tuple[Mapping[str, Any], ...]
    engine: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A result at a glance: one number, or the least, the mean and the greatest of the finite ones."""

    dtype: str
    shape: tuple[int, ...]
    value: float | None = None
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    not_finite: int = 0

    @staticmethod
    def of(array: Array) -> Reading:
        """The reading of a result; a text has no numbers."""
        dtype = dtype_of(array.dtype)
        name = dtype.name if dtype is not None else str(array.dtype)
        if array.dtype == object:
            return Reading("string", array.shape)
        found = Statistics(array)
        bad = found.nan + found.posinf + found.neginf
        one = found.mean if array.size == 1 else None
        return Reading(name, array.shape, one, found.low, found.mean, found.high, bad)


@dataclass(frozen=True, slots=True)
class Row:
    """What a point gave: readings by the paths of outputs and times, or faults."""

    point: Point
    results: Mapping[str, Reading] = field(default_factory=dict)
    times: Times = field(default_factory=Times)
    faults: tuple[Fault, ...] = ()

    @staticmethod
    def of(point: Point, data: Mapping[str, Any]) -> Row:
        """The row of a point that another process has run, from `as_dict`."""
        results = {path: Reading(**{**one, "shape": tuple(one["shape"])}) for path, one in data["results"].items()}
        times = Times(tuple(data["seconds"]), data["first_seconds"])
        return Row(point, results, times, tuple(Fault(**fault) for fault in data["faults"]))

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data, for JSON."""
        return {
            "values": dict(self.point.values),
            "results": {path: asdict(reading) for path, reading in self.results.items()},
            "seconds": list(self.times.runs),
            "first_seconds": self.times.first,
            "faults": [fault.as_dict() for fault in self.faults],
        }


@checked
class Sweep:
    """The points of a sweep: every combination of values, or with `zipped` the first of all, the second of all, ..."""

    def __init__(self, page: Page, variations: Variations, *, zipped: bool = False):
        self.page = page.store.root
        self.variations = {name: tuple(map(str, values)) for name, values in variations.items()}
        self.zipped = zipped
        faults = Faults("sweep")
        self._count(faults)
        faults.raise_if_any()
        # Every value is typed once into a copy: what cannot be typed is told before anything runs.
        self._data = self.page.to_dict()
        self._edits = self._rehearsed(faults)
        faults.raise_if_any()

    def _count(self, faults: Faults) -> None:
        counts = {name: len(values) for name, values in self.variations.items()}
        for name, count in counts.items():
            if not count:
                faults.add("VG004", name, wanted="have values", got="none")
        if not counts:
            remedy = "Say what varies, as in pool.padding = SAME,VALID."
            faults.add("VG001", "variations", wanted="name something that varies", got="nothing", remedy=remedy)
        if self.zipped and len(set(counts.values())) > 1:
            told = ", ".join(f"{name} {count}" for name, count in counts.items())
            faults.add("VG004", "variations", wanted="have as many values each, as they go side by side", got=told)
        if len(self) > MOST_POINTS:
            told = " x ".join(f"{count:,}" for count in counts.values())
            remedy = "Take fewer values, or several sweeps."
            wanted, got = f"have at most {MOST_POINTS:,} points", f"{len(self):,} = {told}"
            faults.add("VG021", "variations", wanted=wanted, got=got, remedy=remedy)

    def __len__(self) -> int:
        counts = [len(values) for values in self.variations.values()]
        return min(counts, default=0) if self.zipped else math.prod(counts) if counts else 0

    def _rehearsed(self, faults: Faults) -> dict[tuple[str, str], tuple[Mapping[str, Any], ...]]:
        """The edits of every value."""
        scratch = Page.from_dict(self._data)
        found: dict[tuple[str, str], tuple[Mapping[str, Any], ...]] = {}
        for name, values in self.variations.items():
            for value in dict.fromkeys(values):
                with collected(faults):
                    edits = _edits(scratch, name, value)
                    scratch.apply(edits)
                    found[name, value] = edits
        return found

    def __iter__(self) -> Iterator[Point]:
        lists = self.variations.values()
        combined: Iterable[tuple[str, ...]] = zip(*lists, strict=True) if self.zipped else itertools.product(*lists)
        for index, chosen in enumerate(combined):
            values = dict(zip(self.variations, chosen, strict=True))
            edits = tuple(edit for pair in values.items() for edit in self._edits[pair])
            yield Point(index, values, edits, values.get(ENGINE, DEFAULT_ENGINE))

    def page_of(self, point: Point) -> Page:
        """The page of a point: a copy, with its edits."""
        page = Page.from_dict(self._data)
        page.files = self.page.files
        for edit in point.edits:
            page.apply(edit)
        return page

    def rows(self, work: Work | None = None, open_session: OpenSession | None = None) -> Iterator[Row]:
        """Run the points, one after the other; whoever stops asking keeps the rows that there are."""
        asked = self.work(work or Work())
        for point in self:
            yield run_point(point, lambda point=point: self.page_of(point), asked, open_session or _session)  # type: ignore[misc]

    def work(self, work: Work) -> Work:
        """What every point runs: where no output is named, those that the page itself shows."""
        named = [self.page.output(name) for name in work.fetches] or shown_outputs(self.page)
        return replace(work, fetches=tuple(output.path for output in named))


def run_point(point: Point, make_page: Callable[[], Page], work: Work, open_session: OpenSession) -> Row:
    """Run a point. What is wrong with it is in its row; a request to stop is no fault of the point."""
    try:
        found = measure(make_page(), lambda page: open_session(page, point.engine), work)
    except CancelledError:
        raise
    except VoxgradError as error:
        return Row(point, faults=error.faults)
    except MemoryError:
        fault = Fault("VG020", "sweep", "page", "need less memory", "more than there is", "Check the sizes.")
        return Row(point, faults=(fault,))
    return Row(point, {path: Reading.of(value) for path, value in found.results.items()}, found.times)


def _session(page: Page, engine: str) -> Session:
    return ClientSession(page, engine)


def _edits(page: Page, name: str, text: str) -> tuple[Mapping[str, Any], ...]:
    """The edits that give a value to what varies."""
    if name == ENGINE:
        return ()
    if name == SEMANTICS:
        return ({"do": "semantics", "value": text},)
    block, dot, which = name.rpartition(".")
    if not dot or block not in page:
        wanted = f"be block.attribute or block.input of this page, {SEMANTICS} or {ENGINE}"
        raise InvalidArgumentError(Fault("VG050", "sweep", name[:80], wanted, "no such block"))
    number = _number(page, block, which, text)
    if number is not None:
        return ({"do": "set_value", "block": block, "pin": which, "value": number},)
    return ({"do": "set_text", "block": block, "name": which, "text": text},)


def _number(page: Page, block: str, pin: str, text: str) -> float | int | None:
    """A plain number on an input takes the type of what is beside it, as a number in Python does."""
    op = page.block(block).op
    if op is None or all(item.name != pin for item in op.inputs):
        return None
    value = through("text").parse_value(text, None, pin, op.name)
    if value.ndim > 0 or value.dtype.kind not in "if" or text.strip().lower().endswith("f"):
        return None
    found: float | int = value.item()
    return found if math.isfinite(found) else None
