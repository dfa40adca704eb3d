# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: every output of each, how far it is from that of the first run, and how long its block took."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.errors import InvalidArgumentError
from voxgrad.studio import messages
from voxgrad.studio.summaries import SMALL, compare
from voxgrad.studio.tensors import TEXT_LETTERS, TensorStore

Block = messages.BlockRun
Side = messages.RunSide


def side_by_side(tensors: TensorStore, runs: list[messages.RunData]) -> messages.ComparedRuns:
    """All outputs of some runs."""
    known = [{one.block: one for one in run.blocks} for run in runs]
    rows = []
    for block in dict.fromkeys(name for blocks in known for name in blocks):
        found = [blocks.get(block) for blocks in known]
        pins = dict.fromkeys(output.name for one in found if one is not None for output in one.outputs)
        rows += [_row(tensors, block, pin, found) for pin in pins or ("",)]
    return messages.ComparedRuns(runs=[run.model_copy(update={"blocks": []}) for run in runs], rows=rows)


def _row(tensors: TensorStore, block: str, pin: str, found: list[Block | None]) -> messages.RunRow:
    outputs = [_output(one, pin) for one in found]
    sides = [_side(one, output) for one, output in zip(found, outputs, strict=True)]
    for side, output in zip(sides[1:], outputs[1:], strict=True):
        if side is not None and output is not None:
            _compare(tensors, side, outputs[0], output)
    return messages.RunRow(block=block, output=pin, sides=sides)


def _output(block: Block | None, pin: str) -> messages.OutputData | None:
    return None if block is None else next((one for one in block.outputs if one.name == pin), None)


def _side(block: Block | None, output: messages.OutputData | None) -> Side | None:
    if block is None:
        return None
    # Looking a kept result up takes time, too; it is not the time of the block.
    side = Side(
        hash=None, dtype="", shape=[], state=block.state, seconds=None if block.state == "cached" else block.seconds,
        times=block.times, note="" if block.error is None else block.error.message,
    )  # fmt: skip
    if output is not None:
        side.hash, side.dtype, side.shape = output.hash, output.dtype, output.shape
    return side


def _compare(
    tensors: TensorStore, side: Side, first: messages.OutputData | None, output: messages.OutputData
) -> None:
    """Fill in how far an output is from that of the first run."""
    if first is None:
        side.note = "the first run has no such output"
    elif first.shape != output.shape:
        side.note = "the shapes differ"
    elif first.hash is None or output.hash is None:
        _compare_texts(side, first, output)
    elif first.hash == output.hash:
        side.same, side.max_abs, side.max_rel = True, 0.0, 0.0
        side.max_ulp = 0.0 if _is_floating(output.dtype) else None
    else:
        _compare_numbers(tensors, side, first, output)


def _compare_numbers(
    tensors: TensorStore, side: Side, first: messages.OutputData, output: messages.OutputData
) -> None:
    assert first.hash is not None and output.hash is not None
    try:
        found: dict[str, Any] = compare(tensors.open(first.hash), tensors.open(output.hash))
    except InvalidArgumentError:
        side.note = "a value is not stored any more; run again"
        return
    side.same = found["differing"] == 0
    side.max_abs, side.max_rel, side.max_ulp = found["max_abs"], found["max_rel"], found["max_ulp"]
    if first.dtype != output.dtype:
        side.note = f"{output.dtype} beside {first.dtype}"


def _compare_texts(side: Side, first: messages.OutputData, output: messages.OutputData) -> None:
    """Of texts only the first letters of the first of them are kept."""
    if first.hash != output.hash or first.dtype != output.dtype:
        side.note = f"{output.dtype} beside {first.dtype}"
        return
    mine, theirs = output.summary.values, first.summary.values
    if mine != theirs:
        side.same = False
    elif output.summary.count > SMALL or any(len(text) >= TEXT_LETTERS for text in mine):
        side.note = f"equal in the first {len(mine)} texts; no more is kept"
    else:
        side.same = True


def _is_floating(name: str) -> bool:
    dtype = dtypes.named(name)
    return dtype is not None and dtype.is_floating
