# SPDX-License-Identifier: Apache-2.0
"""What a run may take, checked from inferred shapes before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from voxgrad.arrays.limits import free_memory
from voxgrad.errors import Fault
from voxgrad.graph.estimate import Estimate


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bytes that a worker may hold, operations and seconds of one run, runs that may wait."""

    memory: int
    flops: float = 1e14
    seconds: float = 900.0
    queue: int = 16

    @staticmethod
    def of_this_machine() -> RunLimits:
        """Three quarters of the memory that is free now."""
        return RunLimits(max(256 * 2**20, free_memory() * 3 // 4))

    def faults(self, estimate: Estimate, blocks: Iterable[str]) -> list[Fault]:
        """Why these blocks of a page may not run; all of them. Sizes that are still open are left to the worker."""
        found = []
        total = 0.0
        for name in blocks:
            cost = estimate.blocks.get(name)
            if cost is None:
                continue
            if isinstance(cost.bytes, int) and cost.bytes > self.memory:
                found.append(_fault("VG020", name, f"need at most {self.memory:,} bytes", f"{cost.bytes:,} bytes"))
            total += cost.flops if isinstance(cost.flops, int) else 0
        if total > self.flops:
            found.append(_fault("VG021", "page", f"need at most {self.flops:.3g} operations", f"{total:.3g}"))
        if not found and estimate.peak_bytes > self.memory:
            got = f"{estimate.peak_bytes:,} bytes at its peak"
            found.append(_fault("VG020", "page", f"need at most {self.memory:,} bytes", got))
        return found


def _fault(code: str, where: str, wanted: str, got: str) -> Fault:
    return Fault(
        code, "studio", where, wanted, got, "Check the sizes for a typo; `voxgrad studio --memory` sets the limit."
    )
