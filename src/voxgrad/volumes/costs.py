# SPDX-License-Identifier: Apache-2.0
"""What a chunked run will cost, before it runs, and which chunks fit a memory limit.

Amounts are exact (`amounts`); the time is what a trial of one chunk says of them (`times`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from voxgrad.arguments import checked
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.volumes.amounts import bytes_of, cells, dense_operations, itemsize, operations, span, uncut
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.tiles import Stretch, stretches
from voxgrad.volumes.times import Rates, Time, predicted

_MOST_KINDS = 4096
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
          "K": 2**10, "M": 2**20, "G": 2**30, "TB": 10**12, "TIB": 2**40, "T": 2**40}  # fmt: skip
_OWN = 150 * 2**20
"""What a worker takes before it has any data: Python, NumPy, the libraries of formats."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run takes. Bytes are those of the arrays; `peak_bytes` is the most that one task holds at one time.

    Passes before the last leave volumes on the disk, which count as written and read. `recomputed` is the share of
    operations that chunks do twice because their windows overlap, `reread` that of bytes.
    """

    tasks: int
    chunks: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    flops: int
    peak_bytes: int
    recomputed: float
    reread: float
    passes: int = 1
    time: Time | None = None
    """How long it takes, where a trial has told."""

    def as_dict(self) -> dict[str, Any]:
        """The cost as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        cut = " x ".join(map(str, self.chunks[1:])) + (f", {self.chunks[0]} images" if self.chunks[0] > 1 else "")
        return "\n".join(
            [
                f"chunks:   {self.tasks:,} of {cut}" + (f", in {self.passes} passes" if self.passes > 1 else ""),
                f"reads:    {_bytes(self.bytes_read)} ({self.reread:+.1%} for the borders of chunks)",
                f"writes:   {_bytes(self.bytes_written)}",
                f"computes: {self.flops:.3g} operations ({self.recomputed:+.1%} for the borders of chunks)",
                f"memory:   {_bytes(self.peak_bytes)} in a task, beside {_bytes(_OWN)} of the worker itself",
                *([] if self.time is None else [f"takes:    {self.time}"]),
            ]
        )


@checked
def cost(plan: PagePlan, rates: Rates | None = None) -> Cost:
    """The cost of a plan, with that of the passes before it, and its time where there are rates (`measured`)."""
    passes = (*plan.before, plan)
    read, stored, written, flops, dense = (sum(some) for some in zip(*map(_sums, passes), strict=True))
    return Cost(
        sum(map(len, passes)), plan.chunks, read, written, flops, max(map(_peak, passes)),
        flops / dense - 1 if dense else 0.0, read / stored - 1 if stored else 0.0, len(passes),
        None if rates is None else predicted(plan, rates),
    )  # fmt: skip


def _sums(plan: PagePlan) -> tuple[int, int, int, int, int]:
    """What one pass reads, the size of what it reads, what it writes, its operations and those without chunks."""
    layout = plan.layout
    used = [slot for slot in layout.volumes.values() if cells(plan, slot)]
    read = sum(cells(plan, slot) * itemsize(plan, slot) for slot in used)
    written = sum(bytes_of(plan, root.slot) for root in plan.roots if root.piece is None)
    flops = sum(operations(plan, at, piece) for at, piece in enumerate(layout.pieces))
    dense = sum(dense_operations(plan, piece) for piece in layout.pieces)
    return read, sum(bytes_of(plan, slot) for slot in used), written, flops, dense


def _peak(plan: PagePlan) -> int:
    """The most bytes that a task holds: boxes that are read, made and not yet let go, and copies for kernels."""
    kinds = [_kinds(plan, role) for role in range(4)]
    if math.prod(len(rows) for rows in kinds) > _MOST_KINDS:
        # Chunks of too many sizes: the largest along every direction, which is never too little.
        kinds = [[_widest(rows)] for rows in kinds]
    found = stretches(plan)
    return max((_held(plan, dict(enumerate(rows)), found) for rows in product(*kinds)), default=0)


def _kinds(plan: PagePlan, role: int) -> list[dict[int, int]]:
    """The different chunks along a direction, each as the length of every tensor."""
    found: dict[tuple[tuple[int, int], ...], dict[int, int]] = {}
    for row in plan.rows[role]:
        lengths = {slot: span(one) for slot, one in row.needs.items()}
        found[tuple(sorted(lengths.items()))] = lengths
    return list(found.values())


def _widest(rows: Sequence[Mapping[int, int]]) -> dict[int, int]:
    return {slot: max(row.get(slot, 0) for row in rows) for row in rows for slot in row}


def _held(plan: PagePlan, lengths: Mapping[int, Mapping[int, int]], found: Sequence[Stretch]) -> int:
    layout = plan.layout

    def size(slot: int) -> int:
        cells = math.prod(lengths[role].get(slot, 0) for role in range(4))
        return cells * uncut(plan, slot) * itemsize(plan, slot)

    volumes = set(layout.volumes.values())
    held = {slot: size(slot) for slot in volumes}
    # What the next chunk reads is read while this one is computed.
    ahead = sum(held.values())
    peak = ahead + max(held.values(), default=0)
    for stretch in found:
        made = {slot: size(slot) for slot in stretch.leaves}
        # Kernels read dense memory: what is cut out of a larger box is copied once.
        read = set[int]() if stretch.is_tiled else set(layout.pieces[stretch.pieces[0]].inputs)
        peak = max(peak, sum(held.values()) + sum(made.values()) + sum(held.get(slot, 0) for slot in read))
        held |= made
        for slot in stretch.frees:
            held.pop(slot, None)
    return peak + ahead


@dataclass(frozen=True, slots=True)
class Advice:
    """Chunks that fit a memory limit, and what a run with them costs."""

    chunks: tuple[int, int, int]
    cost: Cost
    memory: int

    def __str__(self) -> str:
        cut = ",".join(map(str, self.chunks))
        return f"{self.cost}\nfits:     --chunks {cut} in workers of {_bytes(self.memory)}"


@checked
def advise(
    plan: PagePlan, memory: int | str, align: Sequence[int] | None = None, rates: Rates | None = None
) -> Advice:  # fmt: skip
    """The chunks that take least time of those whose tasks fit into `memory` (bytes, or text as "1.5 GiB") per worker.

    Without `rates`, the largest: these read and compute less twice. Where a limit leaves room, chunks are multiples of
    `align`: the chunks or shards of the file that is read, so that no part of it is fetched for nothing.
    """
    limit = parse_bytes(memory)
    root = max(plan.roots, key=lambda one: math.prod(one.sizes))
    sizes = [max(1, size) for size in root.sizes[1:]]
    units = [max(1, min(unit, size)) for unit, size in zip(align or (1, 1, 1), sizes, strict=True)]
    largest = _halved(plan, sizes, units, limit)
    if rates is None:
        return largest
    # Slabs, beams and cubes, and the smaller ones behind each, of which more workers may have some at a time.
    found = [largest, *(_halved(plan, sizes, units, limit, sides) for sides in (1, 2))]
    for one in tuple(found):
        smaller = _next(list(one.chunks), units, 3)
        found += [Advice(_three(smaller), cost(plan.cut(smaller)), limit)] if smaller is not None else []
    timed = [replace(one, cost=cost(plan.cut(one.chunks), rates)) for one in found]
    return min(timed, key=lambda one: one.cost.time.seconds if one.cost.time else 0.0)


def _halved(plan: PagePlan, sizes: Sequence[int], units: Sequence[int], limit: int, sides: int = 3) -> Advice:
    """Halve the longest of the first sides, and when these are 1, of all, until a task fits."""
    chunks = list(sizes)
    while True:
        found = cost(plan.cut(chunks))
        if found.peak_bytes + _OWN <= limit:
            return Advice(_three(chunks), found, limit)
        smaller = _next(chunks, units, sides) or _next(chunks, units, 3)
        if smaller is None:
            wanted = f"be at least {_bytes(found.peak_bytes + _OWN)}, what a chunk of one cell takes"
            raise InvalidArgumentError(Fault("VG020", "advise", "memory", wanted, _bytes(limit)))
        chunks = smaller


def _next(chunks: Sequence[int], units: Sequence[int], sides: int) -> list[int] | None:
    """Chunks with half of the longest of the first sides, or None where these have one cell."""
    longest = max(range(sides), key=lambda at: chunks[at])
    if chunks[longest] == 1:
        return None
    made = list(chunks)
    made[longest] = _aligned(-(-made[longest] // 2), units[longest])
    return made


def _three(chunks: Sequence[int]) -> tuple[int, int, int]:
    depth, height, width = chunks
    return depth, height, width


def _aligned(chunk: int, unit: int) -> int:
    """The chunk as a multiple of a unit where it is one or more of them, else half of the unit or a half of that."""
    return max(1, chunk // unit * unit if chunk >= unit else chunk)


def parse_bytes(text: int | str) -> int:
    """A number of bytes: 1500000000, "1.5 GiB", "800MB"."""
    if isinstance(text, int):
        return text
    number = text.strip().rstrip("bBkKmMgGtTiI ")
    unit = text.strip()[len(number) :].strip().upper()
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError):
        fault = Fault("VG052", "volumes", "memory", "be a number of bytes, as 1.5GiB or 800MB", repr(text))
        raise InvalidArgumentError(fault) from None


def _bytes(amount: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}" if unit != "bytes" else f"{amount:.0f} bytes"
        amount /= 1024
    return f"{amount:.3g} TiB"
