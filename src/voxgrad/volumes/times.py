# SPDX-License-Identifier: Apache-2.0
"""How long a chunked run will take: the work that there is, times what a trial of one chunk says of it (`trial`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voxgrad.graph.block import Output
from voxgrad.volumes.amounts import Rows, bytes_of, fetched, is_compute, operations
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.tiles import Stretch, stretches


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of processors, and seconds in which a disk was waited for; of a unit of work, or of some of it."""

    busy: float = 0.0
    waits: float = 0.0

    def __mul__(self, amount: float) -> Took:
        return Took(self.busy * amount, self.waits * amount)

    def __add__(self, other: Took) -> Took:
        return Took(self.busy + other.busy, self.waits + other.waits)

    @property
    def both(self) -> float:
        """Seconds by the clock."""
        return self.busy + self.waits


@dataclass(frozen=True)
class PassRates:
    """What a pass takes: for a byte of a volume that is read or written, for an operation of a stretch, for a chunk.

    Volumes go by their slots, stretches by their first pieces. Seconds of stretches are those of a worker's threads.
    """

    read: Mapping[int, Took]
    made: Mapping[int, float]
    write: Mapping[int, Took]
    chunk: float


@dataclass(frozen=True)
class Rates:
    """What a job takes on this machine with so many workers of so many threads, as a trial showed it."""

    passes: tuple[PassRates, ...]
    workers: int = 1
    threads: int = 1
    processors: int = 1
    start: float = 0.0
    """Until the workers are there."""
    begin: float = 0.0
    """What each pass takes before its first chunk."""
    cuts: Mapping[Output, Sequence[int]] = field(default_factory=dict)
    """The chunks of files that are read: of each, all is unpacked or nothing."""


@dataclass(frozen=True, slots=True)
class Time:
    """How long a run takes, and what of: seconds of all workers together, but for those of the disk, which is one."""

    seconds: float
    disk: float
    files: float
    memory: float
    compute: float

    @property
    def limit(self) -> str:
        """What limits the run: more of it would make it faster."""
        parts = {"the disk": self.disk, "unpacking and copying of files": self.files,
                 "memory traffic": self.memory, "compute": self.compute}  # fmt: skip
        return max(parts, key=lambda name: parts[name])

    def __str__(self) -> str:
        parts = f"files {self.files:.2g} s, memory traffic {self.memory:.2g} s, compute {self.compute:.2g} s"
        return f"{self.seconds:.2g} s, limited by {self.limit} ({parts}, the disk {self.disk:.2g} s)"


def predicted(plan: PagePlan, rates: Rates) -> Time:
    """How long a run of a plan takes, with the passes before it."""
    each = [_of_pass(one, own, rates) for one, own in zip((*plan.before, plan), rates.passes, strict=True)]
    return Time(
        rates.start + sum(one.seconds + rates.begin for one in each),
        *(sum(getattr(one, name) for one in each) for name in ("disk", "files", "memory", "compute")),
    )


def _of_pass(plan: PagePlan, own: PassRates, rates: Rates) -> Time:
    """Processors share the work, the disk is one; a worker does a chunk after the other, and reads meanwhile."""
    slots = {slot: output for output, slot in plan.layout.volumes.items()}
    read = sum((one * fetched(plan, slot, rates.cuts.get(slots[slot])) for slot, one in own.read.items()), Took())
    written = sum((one * bytes_of(plan, slot) for slot, one in own.write.items()), Took())
    memory = compute = 0.0
    for stretch in stretches(plan):
        seconds = own.made.get(stretch.pieces[0], 0.0) * work_of(plan, stretch)
        if is_compute(plan, stretch.pieces):
            compute += seconds
        else:
            memory += seconds
    chunks = max(len(plan), 1)
    written += Took(own.chunk * chunks)
    busy = read.busy + written.busy + (memory + compute) * rates.threads
    rounds = -(-chunks // rates.workers) / chunks
    one_by_one = max(read.both, memory + compute + written.both) * rounds + read.both / chunks
    seconds = max(busy / rates.processors, one_by_one, read.waits + written.waits)
    return Time(seconds, read.waits + written.waits, read.busy + written.busy, memory, compute)


def work_of(plan: PagePlan, stretch: Stretch, rows: Rows | None = None) -> int:
    """The operations of a stretch, over all chunks, or those whose rows are given."""
    return sum(operations(plan, at, plan.layout.pieces[at], rows) for at in stretch.pieces)
