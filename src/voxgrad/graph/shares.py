# SPDX-License-Identifier: Apache-2.0
"""What every cell of a traced window counts for: the weights of a convolution, the shares of a pool and its gradients.

They are not worked out here: the definition of the op runs on the part around the element, once for every cell, with a
one in that cell and nothing elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Input, Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.reference import evaluate

Array = np.ndarray[Any, Any]
MOST = 512
"""Cells of a window that are told one by one."""
MOST_ELEMENTS = 2**22
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Share:
    """A cell, and what it is multiplied by before it is added up."""

    index: list[int]
    share: float


def shares(
    problem: Problem, pin: str, index: Sequence[int], grid: Sequence[range], value: Callable[[str], Array | None]
) -> list[Share]:
    """The share of every cell of a grid that enters through a pin, in an element of the result.

    Empty where the op is not linear in the pin, where a value that decides is not known, and for very large windows.
    """
    item = OPS[problem.op].input(pin)
    count = math.prod(map(len, grid))
    linear = item.name in OPS[problem.op].linear_in and item.side in (Side.CELLS, Side.WINDOWS)
    if not linear or problem.map.output is Side.TAPS or not 0 < count <= MOST:
        return []
    around = _around(problem, index)
    axes = tuple(geometry.part(axis, *one) for axis, one in zip(problem.axes, around, strict=True))
    part = problem.part((axes[0], axes[1], axes[2]), count)
    if any(low >= high for pair in around for low, high in pair) or math.prod(part.input_extent) > MOST_ELEMENTS:
        return []
    cells = list(itertools.product(*grid))
    operands = [_operand(one, item, part, around, index[0], cells, value) for one in OPS[problem.op].inputs
                if not one.host]  # fmt: skip
    known = [one for one in operands if one is not None]
    if len(known) < len(operands):
        return []
    made = evaluate(part, *known)
    at = _inside(problem, index, [one[problem.map.output is Side.WINDOWS][0] for one in around])
    return [Share(list(cell), float(made[(number, *at)])) for number, cell in enumerate(cells)]


def _around(problem: Problem, index: Sequence[int]) -> list[tuple[Range, Range]]:
    """Along each axis the cells and the windows that have a say in an element."""
    first = 1 if problem.channels_last else 2
    return [_along(axis, problem.map.output, at)
            for axis, at in zip(problem.axes, index[first : first + 3], strict=True)]  # fmt: skip


def _along(axis: Axis, output: Side, at: int) -> tuple[Range, Range]:
    if axis.overreach:
        # Windows that end with the axis know no part of it.
        return (0, axis.size), (0, axis.out)
    windows = (at, at + 1) if output is Side.WINDOWS else geometry.output_box(axis, at, at + 1)
    low, high = geometry.input_box(axis, *windows)
    return (max(low, 0), min(high, axis.size)), windows


def _operand(
    one: Input, item: Input, part: Problem, around: Sequence[tuple[Range, Range]], image: int,
    cells: Sequence[Sequence[int]], value: Callable[[str], Array | None],
) -> Array | None:  # fmt: skip
    """A tensor around the element, for every cell: the ones, or what is there."""
    assert one.side is not None
    if one is item:
        ones = np.zeros(part.extent(one.side))
        low = [pair[one.side is Side.WINDOWS][0] for pair in around]
        for number, cell in enumerate(cells):
            ones[(number, *_inside(part, cell, low))] = 1.0
        return ones
    found = value(one.name)
    if found is None or one.side is Side.TAPS:
        return found
    boxes = [slice(*pair[one.side is Side.WINDOWS]) for pair in around]
    box = (*boxes, slice(None)) if part.channels_last else (slice(None), *boxes)
    return np.broadcast_to(np.asarray(found[(slice(image, image + 1), *box)]), part.extent(one.side))


def _inside(problem: Problem, index: Sequence[int], low: Sequence[int]) -> tuple[int, ...]:
    """An index without its image, counted from where the part begins."""
    first = 1 if problem.channels_last else 2
    return tuple(at - (low[axis - first] if first <= axis < first + 3 else 0) for axis, at in enumerate(index))[1:]
