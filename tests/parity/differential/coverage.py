# SPDX-License-Identifier: Apache-2.0
"""What the calls of a run reached: of an op that both sides mostly refuse, or never see in a type, little is tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.element_types import numpy_type

RANKS = range(5)
"""Ranks that an input without a stated shape should have had."""


@dataclass
class Reach:
    """How many unbroken calls of an op there were and were computed on both sides; what these had, and the lacking."""

    whole: int = 0
    computed: int = 0
    had: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    """What only calls had for which TensorFlow's CPU has no kernel."""

    def note(self, job: dict[str, Any], computed: bool, no_kernel: bool) -> None:
        """Count a call."""
        self.whole += not job["broken"]
        self.computed += computed and not job["broken"]
        if computed or no_kernel:
            (self.had if computed else self.lacking).update(set(_traits(OPS[job["op"]], job["call"])))

    def add(self, other: Reach) -> None:
        """Join what another run reached."""
        self.whole, self.computed = self.whole + other.whole, self.computed + other.computed
        self.had, self.lacking = self.had + other.had, self.lacking + other.lacking

    def holes(self, name: str) -> list[str]:
        """What the declaration of an op has and no computed call had."""
        return [one for one in dict.fromkeys(_declared(OPS[name])) if not self.had[one] and not self.lacking[one]]


def _traits(op: Op, call: dict[str, Any]) -> Iterator[str]:
    for item in op.inputs:
        for one in call[item.name] if item.many else [call[item.name]]:
            if isinstance(item.type, str):
                yield f"{item.type}={one.dtype.name}"
            yield f"{item.name} of rank {one.ndim}"
            if not one.size:
                yield f"{item.name} empty"
    for attr in op.attrs:
        value = call[attr.name]
        yield f"{attr.name}={np.dtype(numpy_type(value)).name if attr.kind == 'type' and value else value}"


def _declared(op: Op) -> Iterator[str]:
    for variable, types in op.types.items():
        if any(item.type == variable for item in op.inputs) or any(attr.name == variable for attr in op.attrs):
            yield from (f"{variable}={np.dtype(numpy_type(one)).name}" for one in types if one != dtypes.RESOURCE)
    for item in op.inputs:
        if not item.shape and not item.host and op.problem is None:
            yield from (f"{item.name} of rank {rank}" for rank in RANKS)
            yield f"{item.name} empty"
    for attr in op.attrs:
        yield from (f"{attr.name}={value}" for value in ((False, True) if attr.kind == "bool" else attr.choices))


def table(reached: dict[str, Reach]) -> str:
    """The ops, the least tested first."""
    lines = ["  share  calls  op: what no computed call had"]
    for name, reach in sorted(reached.items(), key=lambda pair: pair[1].computed / max(1, pair[1].whole)):
        share = f"{100 * reach.computed / max(1, reach.whole):5.0f} %  {reach.computed:5}"
        lines.append(f"{share}  {name}: {', '.join(reach.holes(name)) or '-'}")
    return "\n".join(lines)
