# SPDX-License-Identifier: Apache-2.0
"""What displays show: the last values of the outputs that they are bound to, and numbers over the cycles of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from voxgrad.graph.block import Block, Output
from voxgrad.graph.displays import Shown
from voxgrad.graph.page import Page
from voxgrad.graph.values import Array

MOST_POINTS = 5000
"""Cycles that a curve remembers."""
MOST_CURVES = 16
"""Elements of one output that get a curve each."""

Curve = list[tuple[int, float]]


class Readings:
    """Values by the paths of outputs (`pool.output`); numbers over cycles by those of elements (`pool.output[0]`)."""

    def __init__(self) -> None:
        self.last: dict[str, Array] = {}
        self.over: dict[str, Curve] = {}

    def value(self, shown: Shown) -> Array | None:
        """What a display shows; None where nothing was computed, or where its indices lead nowhere."""
        return part_of(self.last.get(shown.output.path, _constant(shown.output.block)), shown.at)

    def curves(self, shown: Shown) -> dict[str, Curve]:
        """The curves of an output, one per element, by their indices."""
        start = shown.path
        found = {path[len(start) :]: curve for path, curve in self.over.items() if path.startswith(start)}
        return {index: curve for index, curve in found.items() if index == "" or index.startswith("[")}

    def note(self, path: str, cycle: int, number: float) -> None:
        """One more point of a curve; the oldest are forgotten."""
        curve = self.over.setdefault(path, [])
        curve.append((cycle, number))
        if len(curve) > 2 * MOST_POINTS:
            del curve[:-MOST_POINTS]

    def take(self, shown: Sequence[Shown], cycle: int, value: Array) -> None:
        """An output that displays show has a value."""
        for one in shown:
            # A variable writes into its memory again.
            self.last[one.output.path] = np.array(value)
            for index, number in numbers_of(part_of(value, one.at)):
                self.note(one.path + index, cycle, number)


def _constant(block: Block) -> Array | None:
    """The value of a block that needs no run to have one."""
    value = block.attrs.get("value") if block.op_name == "Const" else None
    return None if value is None else np.asarray(value)


def part_of(value: Array | None, at: tuple[int, ...]) -> Array | None:
    """What lies at some first indices of an array."""
    if value is None or len(at) > value.ndim or any(one >= size for one, size in zip(at, value.shape, strict=False)):
        return None
    return np.asarray(value[at])


def numbers_of(value: Array | None) -> Iterator[tuple[str, float]]:
    """The numbers of a small array with their indices, as `[0][1]`; none of a large one, or of texts."""
    if value is None or value.dtype.kind in "cOSU" or not 0 < value.size <= MOST_CURVES:
        return
    for index in np.ndindex(value.shape):
        yield "".join(f"[{one}]" for one in index) if value.size > 1 else "", float(value[index])


def watched(page: Page, kind: str = "") -> dict[tuple[str, int], list[Shown]]:
    """Per block, by its name in a run, and output: what displays of the page, or those of a kind, show of it."""
    found: dict[tuple[str, int], list[Shown]] = {}
    chosen = [display for display in page.displays if kind in ("", display.kind.name)]
    for shown in dict.fromkeys(one for display in chosen for one in display.of):
        source = _source(shown.output)
        if source is not None:
            found.setdefault(source, []).append(shown)
    return found


def _source(output: Output) -> tuple[str, int] | None:
    """The block that computes an output, also where a page stands for it: `layer/conv`."""
    name = output.block.name
    while (used := output.block.used_page) is not None:
        inner = list(used.outputs.values())
        if output.index >= len(inner):
            return None
        output = inner[output.index]
        name = f"{name}/{output.block.name}"
    return name, output.index
