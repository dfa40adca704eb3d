# SPDX-License-Identifier: Apache-2.0
"""What a script computed for a display, `W.result_ref[3][i*28+j] + B.result_ref[0][3]`: blocks that compute it here."""

from __future__ import annotations

import numpy as np

from voxgrad.formats.enuspace.bindings import Joined, Read
from voxgrad.formats.enuspace.convert import Converter
from voxgrad.formats.report import CHANGED
from voxgrad.graph.block import Block, Output
from voxgrad.graph.displays import Shown

_OPS = {"+": "AddV2", "-": "Sub", "*": "Mul", "/": "RealDiv"}
_GROUP = "what scripts computed for displays"
_COLUMN, _ROW = 240.0, 120.0


class Computed:
    """The blocks that stand for arithmetic of scripts, in rows below the page, and in one group."""

    def __init__(self, converter: Converter):
        self.converter, self.page = converter, converter.page
        self.blocks: list[Block] = []
        self.results: list[Block] = []
        places = [block.position for block in self.page.blocks if block.position is not None]
        self.left = min((x for x, _ in places), default=0.0)
        self.top = max((y for _, y in places), default=0.0) + 2 * _ROW
        self.rows = 0

    def shown(self, name: str, joined: Joined) -> list[Shown]:
        """What a display shows of two values; nothing where they cannot be put together here."""
        reads = (joined.first, joined.second)
        outputs = [self.converter.shown(read.block, read.pin) for read in reads]
        rests = [_rest(output, read) for output, read in zip(outputs, reads, strict=True)]
        if None in rests or (rests[0] != rests[1] and () not in rests):
            return []
        if len({output.spec.dtype for output in outputs if output is not None}) != 1:
            return []
        x, y = (
            self._part(name, output, read, at)
            for at, (output, read) in enumerate(zip(outputs, reads, strict=True))
            if output
        )
        block = self.page.add(_OPS[joined.sign], {"x": x, "y": y}, name=f"shown/{name}", position=self._place(2))
        told = f"{joined.first.block} {joined.sign} {joined.second.block}, which a script computed, is a block now"
        self.converter.report.add(CHANGED, name, told)
        self.rows += 1
        self.results.append(block)
        return [Shown(self._put(block))]

    def finish(self) -> None:
        """One group around all that was added; a run of the page, where it does not compute everything, computes it."""
        if not self.blocks:
            return
        self.page.group(_GROUP, blocks=self.blocks, collapsed=True)
        if self.page.outputs or self.page.targets:
            self.page.execute([*self.page.targets, *self.results])

    def _part(self, name: str, output: Output, read: Read, column: int) -> Output:
        """What lies at the numbers of an index: those come first in it."""
        at = [int(one) for one in read.index if one.isdecimal()]
        if not at:
            return output
        ends = {"begin": at, "end": [one + 1 for one in at], "strides": [1] * len(at)}
        inputs = {"input": output, **{pin: np.array(numbers, np.int32) for pin, numbers in ends.items()}}
        attrs = {"shrink_axis_mask": 2 ** len(at) - 1}
        return self._put(
            self.page.add("StridedSlice", inputs, attrs, name=f"shown/{name}", position=self._place(column))
        )

    def _put(self, block: Block) -> Output:
        self.blocks.append(block)
        return block.output(0)

    def _place(self, column: int) -> tuple[float, float]:
        return self.left + column * _COLUMN, self.top + self.rows * _ROW


def _rest(output: Output | None, read: Read) -> tuple[tuple[str, int], ...] | None:
    """The names that a script counts through and how far; None where an index is not of that tensor.

    One name for an axis, behind the numbers: `[3][i*28+j]`.
    """
    shape = output.spec.shape if output is not None else None
    if shape is None or len(shape) != len(read.index):
        return None
    pairs = list(zip(read.index, shape, strict=True))
    fixed = [(int(one), size) for one, size in pairs if one.isdecimal()]
    known = all(isinstance(size, int) for _, size in pairs)
    if not known or any(one.isdecimal() for one, _ in pairs[len(fixed) :]) or any(at >= size for at, size in fixed):
        return None
    return tuple((name, int(size)) for name, size in pairs[len(fixed) :])
