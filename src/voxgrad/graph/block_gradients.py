# SPDX-License-Identifier: Apache-2.0
"""The gradients of chosen blocks, as an edit of a page: what they give is differentiated by what they take."""

from __future__ import annotations

from collections.abc import Sequence

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.gradients import DIFFERENTIABLE, gradients
from voxgrad.graph.page import Page

MOST_ORDERS = 8
"""Every order multiplies the blocks."""
COLUMN, ROW = 260.0, 180.0
"""Between new blocks, in the units of the drawing."""


def add_gradients(page: Page, of: Sequence[str], with_respect_to: Sequence[str] | None = None, order: int = 1) -> None:
    """Add the gradients of what the chosen blocks give with respect to what they take, or to the given blocks.

    The next order differentiates the gradients of the one before, with respect to the same.
    """
    if type(order) is not int or not 1 <= order <= MOST_ORDERS:
        raise InvalidArgumentError(
            Fault("VG003", "gradients", "order", f"be from 1 to {MOST_ORDERS}", repr(order)[:60])
        )
    before = set(page.blocks)
    chosen = [page.block(name) for name in of]
    given = None if with_respect_to is None else [page.block(name).output(0) for name in with_respect_to]
    xs = _inputs_of(chosen) if given is None else given
    ys = [
        output for block in chosen for output in block.outputs if _floating(output) and not _read_inside(output, chosen)
    ]
    if not xs or not ys:
        remedy = "Choose a block with a floating input that is wired to another block."
        raise InvalidArgumentError(
            Fault("VG064", "gradients", ", ".join(of), "have an input and an output to differentiate", "none", remedy)
        )
    for _ in range(order):
        ys = [one for one in gradients(ys, xs) if one is not None]
        if not ys:
            wanted = "depend on its inputs in this order"
            raise InvalidArgumentError(Fault("VG064", "gradients", ", ".join(of), wanted, "a constant"))
    _place(page, [block for block in page.blocks if block not in before])


def _inputs_of(chosen: list[Block]) -> list[Output]:
    """The floating outputs of other blocks that the chosen ones read, each once."""
    found: dict[Output, None] = {}
    for block in chosen:
        for pin in block.inputs:
            for source in pin.sources:
                if isinstance(source, Output) and source.block not in chosen and not pin.host and _floating(source):
                    found[source] = None
    return list(found)


def _floating(output: Output) -> bool:
    dtype = output.dtype
    return dtype is None or dtype.kind in DIFFERENTIABLE


def _read_inside(output: Output, chosen: list[Block]) -> bool:
    return any(source == output for block in chosen for sources in block.sources.values() for source in sources)


def _place(page: Page, added: list[Block]) -> None:
    """Put new blocks to the right of all others, a column per step of the way back."""
    known = [block.position for block in page.blocks if block.position is not None]
    left = max((x for x, _ in known), default=0.0) + COLUMN
    top = min((y for _, y in known), default=0.0)
    column: dict[Block, int] = {}
    rows: dict[int, int] = {}
    for block in added:
        sources = [one.block for sources in block.sources.values() for one in sources if isinstance(one, Output)]
        column[block] = max((column[one] + 1 for one in sources if one in column), default=0)
        row = rows.get(column[block], 0)
        rows[column[block]] = row + 1
        block.position = (left + COLUMN * column[block], top + ROW * row)
