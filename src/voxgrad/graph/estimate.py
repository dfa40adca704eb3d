# SPDX-License-Identifier: Apache-2.0
"""What a run will cost, before it runs: bytes and operations per block, and the peak of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog.dims import Dim
from voxgrad.catalog.model import Call, Side, Spec
from voxgrad.catalog.problem import Problem, solve
from voxgrad.graph.block import Block, Output
from voxgrad.graph.infer import Inference
from voxgrad.graph.order import order
from voxgrad.graph.page import Page

Amount = Any
"""A number, a symbolic one where sizes are open, or None where nothing is known."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The bytes of a block's results, and the additions and multiplications that make them."""

    bytes: Amount
    flops: Amount

    def as_dict(self) -> dict[str, Any]:
        """The cost as plain data; symbolic amounts as text."""
        return {"bytes": _plain(self.bytes), "flops": _plain(self.flops)}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of every block, and the most bytes that are held at one time during a run of the whole page.

    `peak_bytes` counts what no later block needs as released, and blocks of unknown or symbolic size as nothing:
    `complete` says whether there are any.
    """

    blocks: Mapping[str, Cost]
    peak_bytes: int
    flops: Amount
    complete: bool

    def as_dict(self) -> dict[str, Any]:
        """The estimate as plain data, for JSON."""
        blocks = {name: cost.as_dict() for name, cost in self.blocks.items()}
        return {"blocks": blocks, "peak_bytes": self.peak_bytes, "flops": _plain(self.flops), "complete": self.complete}


def _plain(amount: Amount) -> Any:
    return str(amount) if isinstance(amount, Dim) else amount


def estimate(page: Page, sizes: Mapping[str, int] | None = None) -> Estimate:
    """The estimate of a page, with numbers for some of its symbols."""
    inference = page.infer()
    costs = {block: _at(_cost(inference, block), sizes) for block in page.blocks}
    amounts = [cost.flops for cost in costs.values() if cost.flops is not None]
    return Estimate(
        {block.name: cost for block, cost in costs.items()},
        _peak(order(costs).blocks, costs),
        sum(amounts),
        all(isinstance(amount, int) for cost in costs.values() for amount in (cost.bytes, cost.flops)),
    )


def _at(cost: Cost, sizes: Mapping[str, int] | None) -> Cost:
    if not sizes:
        return cost
    return Cost(*(one.at(sizes) if isinstance(one, Dim) else one for one in (cost.bytes, cost.flops)))


def _cost(inference: Inference, block: Block) -> Cost:
    specs = inference.specs.get(block, ())
    inner = inference.inner.get(block)
    if inner is not None:
        flops = [_cost(inner, one).flops for one in inner.specs]
        return Cost(bytes_of(specs), None if None in flops else sum(flops))
    call = inference.calls.get(block)
    return Cost(bytes_of(specs), None if call is None else _flops(call, specs))


def bytes_of(specs: Sequence[Spec]) -> Amount:
    """The bytes of tensors: a number, a symbolic amount, or None where one is not known."""
    total: Amount = 0
    for spec in specs:
        if spec.shape is None or spec.dtype is None:
            return None
        total = total + _product(spec.shape) * spec.dtype.itemsize
    return total


def _product(shape: Sequence[Any]) -> Amount:
    return math.prod(shape)


def _flops(call: Call, specs: Sequence[Spec]) -> Amount:
    """Operations of a block: those of the windows, of a product of matrices, else one per element written or read."""
    if call.op.problem is not None:
        return _window_flops(call)
    if call.op.group == "core" or not specs:
        return 0
    shapes = [spec.shape for spec in specs]
    if any(shape is None for shape in shapes):
        return None
    written = sum(_product(shape) for shape in shapes if shape is not None)
    if "MatMul" in call.op.name:
        return _matrix_flops(call, written)
    if "padding" in call.attrs and ("ksize" in call.attrs or any(item.side is Side.TAPS for item in call.op.inputs)):
        return _plane_flops(call, written)
    read = [_product(spec.shape) for spec in _inputs(call) if spec.shape is not None]
    known = [amount for amount in (*read, written) if isinstance(amount, int)]
    return max(known) if len(known) == len(read) + 1 else written


def _inputs(call: Call) -> list[Spec]:
    return [one for given in call.inputs.values() for one in (given if isinstance(given, tuple) else (given,))]


def _matrix_flops(call: Call, written: Amount) -> Amount:
    left = next(iter(call.inputs.values())).shape
    if left is None or len(left) < 2:
        return None
    turned = any(call.attrs.get(name) for name in ("transpose_a", "adj_x"))
    return 2 * written * left[-2 if turned else -1]


def _plane_flops(call: Call, written: Amount) -> Amount:
    """The 2-D windows: what one window costs, times the cells on the side of the windows."""
    on = {item.side: item for item in reversed(call.op.inputs)}
    small = call.inputs[on[Side.WINDOWS].name].shape if Side.WINDOWS in on else None
    cells = written if small is None else _product(small)
    if "ksize" in call.attrs:
        return cells * math.prod(call.attrs["ksize"])
    given = call.inputs[on[Side.TAPS].name]
    taps = given.value if on[Side.TAPS].host else given.shape
    if taps is None:
        return None
    return 2 * cells * _product(taps[:2] if call.op.name.startswith("Depthwise") else taps[:-1])


def _window_flops(call: Call) -> Amount:
    problem = solve(call)
    if not isinstance(problem, Problem):
        return None
    return _product([axis.out for axis in problem.axes]) * problem.batch * problem.window_operations


def _peak(blocks: Sequence[Block], costs: Mapping[Block, Cost]) -> int:
    """The most bytes held at once, if a result is dropped behind its last reader."""
    last = {}
    for index, block in enumerate(blocks):
        for sources in block.sources.values():
            last.update({source.block: index for source in sources if isinstance(source, Output)})
    held = peak = 0
    ends: dict[int, list[int]] = {}
    for index, block in enumerate(blocks):
        size = costs[block].bytes
        size = size if isinstance(size, int) else 0
        held += size
        peak = max(peak, held)
        ends.setdefault(max(last.get(block, index), index), []).append(size)
        held -= sum(ends.pop(index, ()))
    return peak
