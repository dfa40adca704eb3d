# SPDX-License-Identifier: Apache-2.0
"""Values that follow from constants alone, computed without a run where they are small: what sense checks look at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.arrays import execute, ordinary
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import VoxgradError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.order import order

MOST_LOOKED_AT = 2**20
"""Elements of a constant that is looked into."""
MOST_COMPUTED = 2**12
"""Elements of every tensor that a value is computed from: an editor asks after each edit."""
MOST_BLOCKS = 64
"""Blocks that are computed for one look at a page."""
_COMPUTED_GROUPS = ("nn", "math", "array", "core")
_KINDS = ("float", "int", "uint", "bool")

Array = np.ndarray[Any, Any]


class Known:
    """What no run is needed for, of these blocks and of all that they need, and then of others."""

    def __init__(self, inference: Inference, wanted: Iterable[Block], besides: Iterable[Block] = ()):
        self._inference = inference
        self._values: dict[Block, tuple[Array, ...]] = {}
        self._left = MOST_BLOCKS
        for block in dict.fromkeys((*order(wanted).blocks, *order(besides).blocks)):
            values = self._computed(block)
            if values is not None:
                self._values[block] = values

    def value(self, output: Output) -> Array | None:
        """The value of an output; None where it is not known, or too large to be worked out here."""
        values = self._values.get(output.block, ())
        return values[output.index] if output.index < len(values) else None

    def input(self, block: Block, pin: str) -> Array | None:
        """The value of a pin that takes one wire or typed value."""
        given = self._inference.arrays.get(block, {}).get(pin, [])
        sources = block.sources.get(pin, [])
        if len(sources) != 1 or len(given) != 1:
            return None
        if isinstance(sources[0], Output):
            return self.value(sources[0])
        return given[0] if isinstance(given[0], np.ndarray) else None

    def _computed(self, block: Block) -> tuple[Array, ...] | None:
        call = self._inference.calls.get(block)
        if call is None:
            return None
        if call.op.name == "Const":
            value = call.attrs.get("value")
            return (value,) if isinstance(value, np.ndarray) and value.size <= MOST_LOOKED_AT else None
        specs = self._inference.specs.get(block, ())
        if block.control or not _computable(call.op) or self._left <= 0 or not _small(specs):
            return None
        values = {item.name: self.input(block, item.name) for item in call.op.inputs}
        if any(value is None or value.size > MOST_COMPUTED for value in values.values()):
            return None
        self._left -= 1
        return self.run(call.op, {**values, **call.attrs})

    def run(self, op: Op, arguments: Mapping[str, Any]) -> tuple[Array, ...] | None:
        """The results of a call as a run of the page would compute them; None where it is refused."""
        run = execute.execute if op.problem is not None else ordinary.execute
        try:
            with semantics(self._inference.store.semantics), np.errstate(all="ignore"):
                made = run(op, arguments)
        except VoxgradError:
            return None
        return tuple(made) if isinstance(made, tuple) else (made,)


def _computable(op: Op) -> bool:
    """Ops that do nothing but compute numbers: no state, no files, no texts, no lists of tensors."""
    plain = not any(item.many or item.ref for item in op.inputs) and not any(item.many for item in op.outputs)
    return plain and not op.stateful and op.group in _COMPUTED_GROUPS and not op.name.startswith("Placeholder")


def _small(specs: Sequence[Spec]) -> bool:
    return bool(specs) and all(
        spec.dtype is not None and spec.dtype.kind in _KINDS and spec.shape is not None
        and all_known(spec.shape) and math.prod(spec.shape) <= MOST_COMPUTED
        for spec in specs
    )  # fmt: skip
