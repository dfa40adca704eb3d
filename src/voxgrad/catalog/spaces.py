# SPDX-License-Identifier: Apache-2.0
"""Blocks of cells moved between space, depth and batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import known
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Node, Op, Output, Shape
from voxgrad.catalog.shapes import check_same, elements, has_rank, shaped, text, unknowns
from voxgrad.errors import Faults

_ANY = {"T": dtypes.ALL}
_BLOCK = Attr("block_size", "int", "Cells of a block along height and along width.")
_FORMAT = Attr("data_format", "string", "Order of the dimensions.", "NHWC", choices=("NHWC", "NCHW"))
_DATA = "[N, H, W, C], or [N, C, H, W] for NCHW"


def axes_of(data_format: str) -> tuple[int, int, int]:
    """The dimensions of height, width and channels."""
    return (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)


def _block(call: Call, faults: Faults) -> int | None:
    size: int | None = call.attrs.get("block_size")
    if size is not None and size < 2:
        faults.add("VG003", "block_size", wanted="be at least 2", got=size)
        return None
    return size


def _depth_rule(deeper: bool) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        block = _block(call, faults)
        if not has_rank(call, "input", 4, faults) or block is None:
            return None
        shape = list(call.inputs["input"].shape)
        rows, columns, channels = axes_of(call.attrs.get("data_format", "NHWC"))
        divided = {rows: block, columns: block} if deeper else {channels: block * block}
        for axis in (rows, columns, channels):
            if axis in divided:
                if known(shape[axis]) and shape[axis] % divided[axis]:
                    wanted = f"have a size along axis {axis} that {divided[axis]} divides"
                    faults.add("VG012", "input", wanted=wanted, got=text(shape))
                shape[axis] = shape[axis] // divided[axis]
            else:
                shape[axis] = shape[axis] * (block * block if deeper else block)
        return tuple(shape)

    return rule


def _amounts(call: Call, name: str, count: int) -> list[tuple[Any, Any]] | None:
    values = elements(call.inputs[name])
    return None if values is None or len(values) != 2 * count else list(zip(values[::2], values[1::2], strict=True))


def _batch_rule(into_batch: bool, name: str) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        shape = call.inputs["input"].shape
        if "block_size" in call.attrs:
            has_rank(call, "input", 4, faults)
            _block(call, faults)
            blocks: Any = (call.attrs["block_size"],) * 2
        else:
            blocks = elements(call.inputs["block_shape"])
        if shape is None or blocks is None or faults:
            return None
        _check_blocks(call, shape, blocks, name, faults)
        if faults:
            return None
        amounts = _amounts(call, name, len(blocks))
        if amounts is None or len(shape) <= len(blocks):
            return unknowns(call, len(shape), "size")
        return _moved(call, shape, blocks, (name, amounts), into_batch, faults)

    return rule


def _check_blocks(call: Call, shape: Shape, blocks: Sequence[int], name: str, faults: Faults) -> None:
    """As many blocks as spatial dimensions, and two amounts for each."""
    if len(shape) <= len(blocks) or any(block < 1 for block in blocks):
        faults.add(
            "VG012",
            "block_shape",
            wanted=f"hold positive sizes for fewer than {len(shape)} dimensions",
            got=text(blocks),
        )
    check_same(name, call.inputs[name].shape, (len(blocks), 2), "two amounts per spatial dimension", faults)
    if any(known(value) and value < 0 for value in elements(call.inputs[name]) or ()):
        faults.add("VG003", name, wanted="hold no negative amounts", got=text(elements(call.inputs[name]) or ()))


def _moved(call: Call, shape: Shape, blocks: Sequence[int], grown: tuple[str, list[tuple[Any, Any]]], into_batch: bool,
           faults: Faults) -> Shape | None:  # fmt: skip
    made, total = list(shape), 1
    name, amounts = grown
    for index, (block, (before, after)) in enumerate(zip(blocks, amounts, strict=True)):
        total *= block
        axis = index + 1
        if into_batch:
            size = shape[axis] + before + after
            if known(size) and size % block:
                faults.add("VG012", name, wanted=f"make axis {axis} divide by {block}", got=f"{size} cells")
            made[axis] = size // block
        else:
            made[axis] = shape[axis] * block - before - after
            if known(made[axis]) and made[axis] < 0:
                faults.add("VG012", name, wanted=f"leave cells of axis {axis}", got=f"{before} and {after}")
    if not into_batch and known(shape[0]) and shape[0] % total:
        faults.add("VG012", "input", wanted=f"have a batch that {total} divides", got=text(shape))
    made[0] = shape[0] * total if into_batch else shape[0] // total
    return tuple(made)


def _swap(name: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        rest = [None] * (len(node.inputs) - 1)
        return getattr(build, name)(dys[0], *node.inputs[1:], **node.attrs), *rest

    return gradient


_PADS = Input("paddings", "Tpaddings", "Cells before and after every spatial dimension.", "[dims, 2]", host=True)
_SHAPE = Input("block_shape", "Tblock_shape", "Cells of a block along every spatial dimension.", "[dims]", host=True)


def _batch_op(
    name: str, summary: str, inputs: tuple[Input, ...], attrs: tuple[Attr, ...], types: Any, rule: Any, back: str
) -> Op:
    defaults = {key: dtypes.INT32 for key in types if key != "T"}
    return Op(
        name, "array", summary, (Input("input", "T", "The tensor.", "[N, spatial..., ...]"), *inputs), attrs,
        (Output("output", "T", "The rearranged tensor."),), types, defaults, infer=shaped(rule),
        kernel=f"spaces.{'space_to_batch' if name.startswith('Space') else 'batch_to_space'}", gradient=_swap(back),
        linear_in=("input",),
    )  # fmt: skip


def _crops(type_: str) -> Input:
    return Input("crops", type_, "Cells to cut away before and after every spatial dimension.", "[dims, 2]", host=True)


_INDEX = dtypes.INDEX

OPS = (
    Op("SpaceToDepth", "array", "Blocks of cells moved into the channels.",
       (Input("input", "T", "The images.", _DATA),),
       (_BLOCK, _FORMAT), (Output("output", "T", "Smaller, deeper images.", _DATA),), _ANY,
       infer=shaped(_depth_rule(True)),
       kernel="spaces.space_to_depth", gradient=_swap("DepthToSpace"), linear_in=("input",)),
    Op("DepthToSpace", "array", "Channels moved into blocks of cells.", (Input("input", "T", "The images.", _DATA),),
       (_BLOCK, _FORMAT), (Output("output", "T", "Larger, flatter images.", _DATA),), _ANY,
       infer=shaped(_depth_rule(False)),
       kernel="spaces.depth_to_space", gradient=_swap("SpaceToDepth"), linear_in=("input",)),
    _batch_op("SpaceToBatchND", "Blocks of cells moved into the batch, after padding with zeros.", (_SHAPE, _PADS), (),
              {"T": dtypes.ALL, "Tblock_shape": _INDEX, "Tpaddings": _INDEX}, _batch_rule(True, "paddings"),
              "BatchToSpaceND"),
    _batch_op("BatchToSpaceND", "The batch moved into blocks of cells, then cropped.", (_SHAPE, _crops("Tcrops")), (),
              {"T": dtypes.ALL, "Tblock_shape": _INDEX, "Tcrops": _INDEX}, _batch_rule(False, "crops"),
              "SpaceToBatchND"),
    _batch_op("SpaceToBatch", "Square blocks of cells moved into the batch; the older form of SpaceToBatchND.",
              (_PADS,), (_BLOCK,),
              {"T": dtypes.ALL, "Tpaddings": _INDEX}, _batch_rule(True, "paddings"), "BatchToSpace"),
    _batch_op("BatchToSpace", "The batch moved into square blocks of cells; the older form of BatchToSpaceND.",
              (_crops("Tidx"),),
              (_BLOCK,), {"T": dtypes.ALL, "Tidx": _INDEX}, _batch_rule(False, "crops"), "SpaceToBatch"),
)  # fmt: skip
