# SPDX-License-Identifier: Apache-2.0
"""Analytic gradients against numeric ones, block by block, as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from voxgrad.arguments import checked
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.errors import Faults
from voxgrad.graph.block import Block, Output
from voxgrad.graph.gradients import DIFFERENTIABLE, gradients
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.values import Array, spec_of

STEPS = tuple(10.0**-power for power in range(1, 9))
MOST_DIRECTIONS = 1000
TOLERANCE = {dtypes.FLOAT64: 1e-6, dtypes.FLOAT32: 5e-3, dtypes.HALF: 0.2, dtypes.BFLOAT16: 0.5}
"""The relative error at the best step up to which a gradient is right. Blocks are checked in float64 where they can."""


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """The gradient of one block with respect to one pin.

    `sweep` has the relative error at every step: it falls with the step until rounding takes over. A curve that does
    not fall is a wrong gradient, or a kink: a tie of a max-pool within the step.
    """

    block: str
    op: str
    pin: str
    error: float
    step: float
    tolerance: float
    sweep: tuple[tuple[float, float], ...]

    @property
    def passed(self) -> bool:
        """True where the best step meets the tolerance."""
        return self.error <= self.tolerance

    def as_dict(self) -> dict[str, Any]:
        """The check as plain data, for JSON."""
        return asdict(self) | {"passed": self.passed}

    def __str__(self) -> str:
        mark = "ok   " if self.passed else "WRONG"
        return f"{mark} {self.block}.{self.pin} ({self.op}): relative error {self.error:.2g} at step {self.step:g}"


@checked
def check_gradients(
    page: Page,
    ys: Sequence[Output | Block | str] | None = None,
    xs: Sequence[Output | Block | str] | None = None,
    *,
    feeds: Mapping[Any, Any] | None = None,
    steps: Sequence[float] = STEPS,
    directions: int = 2,
    seed: int = 0,
) -> list[GradientCheck]:
    """Check the gradient of every differentiable block that ys need (all blocks by default), and that xs reach.

    Each block is taken out of the page with the values that reach it there, cast to float64 where its op takes that;
    the gradient that its declaration builds is compared with central differences along random directions.
    """
    faults = Faults("check_gradients")
    if not 1 <= directions <= MOST_DIRECTIONS:
        faults.add("VG003", "directions", wanted=f"be from 1 to {MOST_DIRECTIONS}", got=directions)
    if seed < 0:
        faults.add("VG003", "seed", wanted="be 0 or more", got=seed)
    if len(steps) == 0 or not all(math.isfinite(step) and step > 0 for step in steps):
        faults.add("VG003", "steps", wanted="be sizes above 0", got=list(steps))
    faults.raise_if_any()
    roots = [page.output(y).block for y in ys] if ys is not None else page.blocks
    blocks = order(roots).blocks
    if xs is not None:
        blocks = _reached(blocks, {page.output(x) for x in xs})
    checked = [block for block in blocks if _checkable(block)]
    values = _values(page, checked, feeds or {})
    rng = np.random.default_rng(seed)
    return [check for block in checked for check in _check_block(page, block, values, steps, directions, rng)]


def _reached(blocks: Sequence[Block], xs: set[Output]) -> list[Block]:
    found: set[Block] = set()
    for block in blocks:
        sources = [one for many in block.sources.values() for one in many if isinstance(one, Output)]
        if any(one in xs or one.block in found for one in sources):
            found.add(block)
    return [block for block in blocks if block in found]


def _checkable(block: Block) -> bool:
    op = block.op
    if op is None or op.gradient is None or op.stateful or not op.inputs:
        return False
    outputs = [output.dtype for output in block.outputs]
    return any(dtype is not None and dtype.kind in DIFFERENTIABLE for dtype in outputs)


def _values(page: Page, blocks: Sequence[Block], feeds: Mapping[Any, Any]) -> dict[Output, Array]:
    wanted = list(dict.fromkeys(
        one for block in blocks for many in block.sources.values() for one in many if isinstance(one, Output)
    ))  # fmt: skip
    return dict(zip(wanted, ClientSession(page, cache=False).run(wanted, feeds), strict=True)) if wanted else {}


@dataclass(slots=True)
class _Bench:
    """A block alone on a page: Placeholders for what can be differentiated, the gradient of it, and its values."""

    session: ClientSession
    inputs: dict[str, Output]
    outputs: list[Output]
    grads: dict[str, Output]
    feeds: dict[Output, Array]
    weights: list[Array]
    dtype: DType


def _check_block(
    page: Page,
    block: Block,
    values: dict[Output, Array],
    steps: Sequence[float],
    directions: int,
    rng: np.random.Generator,
) -> Iterator[GradientCheck]:
    bench = _set_up(page, block, values, rng)
    for pin in bench.grads:
        sweep = tuple((step, max(_error(bench, pin, step, rng) for _ in range(directions))) for step in steps)
        best = min(sweep, key=lambda entry: entry[1])
        yield GradientCheck(block.name, block.op_name, pin, best[1], best[0], TOLERANCE.get(bench.dtype, 1e-6), sweep)


def _set_up(page: Page, block: Block, values: dict[Output, Array], rng: np.random.Generator) -> _Bench:
    assert block.op is not None
    alone = Page(block.name.replace("/", " "), page.semantics)
    feeds: dict[Output, Array] = {}
    inputs: dict[str, Output] = {}
    sources: dict[str, list[Output]] = {}
    dtype = dtypes.FLOAT64
    typed = page.infer().arrays[block]
    for item in block.op.inputs:
        for at, source in enumerate(block.sources.get(item.name, ())):
            array = values[source] if isinstance(source, Output) else typed[item.name][at]
            kind = spec_of(array).dtype
            floating = kind is not None and kind.kind == "float" and not item.host
            if floating and dtypes.FLOAT64 in block.op.allowed(item.type):
                array = array.astype(np.float64)
            elif floating and kind is not None:
                dtype = kind
            pin = f"{item.name}[{at}]" if item.many else item.name
            made = _entry(alone, pin, array, floating)
            sources.setdefault(item.name, []).append(made)
            if floating:
                inputs[pin], feeds[made] = made, array
    copy = alone.add(block.op, sources, block.attrs, name="checked")
    outputs = [one for one in copy.outputs if one.dtype is not None and one.dtype.kind == "float"]
    session = ClientSession(alone, cache=False)
    weights = [rng.standard_normal(one.shape).astype(one.dtype) for one in session.run(outputs, feeds)]
    found = gradients(outputs, list(inputs.values()), weights)
    grads = {pin: grad for pin, grad in zip(inputs, found, strict=True) if grad is not None}
    return _Bench(session, inputs, outputs, grads, feeds, weights, dtype)


def _entry(page: Page, pin: str, array: Array, floating: bool) -> Output:
    spec = spec_of(array)
    if floating:
        return page.add(
            "Placeholder", attrs={"dtype": spec.dtype, "shape": list(array.shape)}, name=f"in {pin}"
        ).output(0)
    return page.add("Const", attrs={"value": array, "dtype": spec.dtype}, name=f"in {pin}").output(0)


def _error(bench: _Bench, pin: str, step: float, rng: np.random.Generator) -> float:
    """The relative difference between the analytic and the numeric derivative along a random direction."""
    x = bench.feeds[bench.inputs[pin]]
    direction = np.asarray(rng.standard_normal(x.shape)).astype(x.dtype)
    analytic = float(np.sum(np.float64(bench.session.run(bench.grads[pin], bench.feeds)) * direction))
    ahead, behind = (_objective(bench, pin, x + np.asarray(sign * step, x.dtype) * direction) for sign in (1, -1))
    numeric = (ahead - behind) / (2 * step)
    if not (math.isfinite(numeric) and math.isfinite(analytic)):
        # The step leaves the domain of the op, as that of a logarithm.
        return math.inf
    return abs(analytic - numeric) / max(abs(analytic), abs(numeric), 1e-8 if numeric == analytic else 1e-3)


def _objective(bench: _Bench, pin: str, x: Array) -> float:
    results = bench.session.run(bench.outputs, {**bench.feeds, bench.inputs[pin]: x})
    return sum(
        float(np.sum(np.float64(result) * weight)) for result, weight in zip(results, bench.weights, strict=True)
    )
