# SPDX-License-Identifier: Apache-2.0
"""What the average and the maximum pools share: attributes, and the problem of a pooled volume."""

from __future__ import annotations

from collections.abc import Sequence

from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Attr, Call, Law, Side
from voxgrad.catalog.problem import (
    DATA_FORMATS,
    PADDING,
    Problem,
    finished,
    is_channels_last,
    same_shape,
    spatial_attr,
    stated_volume,
    volume,
    window_axes,
)
from voxgrad.errors import Faults

DATA = "[N, D, H, W, C], or [N, C, D, H, W] for NCDHW"

ATTRS = (
    Attr("ksize", "ints", "Size of the window in every dimension of the data; 1 for batch and channels.", length=5),
    Attr("strides", "ints", "Step of the window in every dimension of the data; 1 for batch and channels.", length=5),
    PADDING,
    Attr("data_format", "string", "Order of the dimensions of the data.", DATA_FORMATS[0], choices=DATA_FORMATS),
)  # fmt: skip

LAWS = (
    Law("padding", "Cells outside the data are absent: they are never read and never counted."),
    Law("determinism", "The same input gives the same bits, whatever the number of threads."),
)


def _types(call: Call) -> tuple[DType, DType] | None:
    """The types to compare in and to return: exact for both where a call mixes those of its first and last tensor."""
    tensors = [call.inputs[item.name].dtype for item in call.op.inputs if not item.host]
    first, last = tensors[0], tensors[-1]
    if first is None or last is None:
        return None
    if first == last:
        return first, last
    return (dtypes.FLOAT64 if dtypes.FLOAT64 in (first, last) else dtypes.FLOAT32), last


def _cover_cells(call: Call, name: str, axes: Sequence[Axis], faults: Faults) -> bool:
    """Every window of stated padding must have a cell: there is no mean and no maximum of padding alone."""
    for what, axis, padding in zip(geometry.AXES, axes, geometry.paddings(call.attrs["padding"]), strict=True):
        if isinstance(padding, tuple) and max(padding) >= axis.window:
            wanted = f"be less than the window, {axis.window} cells in {what}"
            faults.add("VG003", "padding", wanted=wanted, got=call.attrs["padding"], remedy=_ALONE)
            return False
        if isinstance(padding, tuple) and axis.size == 0 and axis.out > 0:
            faults.add("VG017", name, wanted=f"have cells in {what}", got="none", remedy=_ALONE)
            return False
    return True


_ALONE = "There is no mean and no maximum of padding alone."


def pool_problem(call: Call, faults: Faults) -> Problem | None:
    """The problem of a pool, of its transpose or of a selection: the first input on the side of the cells is pooled."""
    op, compat = call.op, call.semantics == "tf_cpu"
    cells = next(item for item in op.inputs if item.side is Side.CELLS)
    others = [item for item in op.inputs if item is not cells]
    for item in others:
        volume(call, item.name, faults)
    data = (stated_volume if cells.host else volume)(call, cells.name, faults)
    window, strides = (spatial_attr(call, name, faults, pool=True) for name in ("ksize", "strides"))
    types, back = _types(call), op.map.output is Side.CELLS
    if data is None or window is None or strides is None or types is None:
        return None
    axes = window_axes(call, (cells.name, data), ("ksize", window), strides, (1, 1, 1), faults,
                       late_start=compat and not op.of, overreach=compat and back)  # fmt: skip
    if axes is None or not _cover_cells(call, cells.name, axes, faults):
        return None
    batch, _, channels = data
    near = compat and back and op.selects
    made = Problem(op.name, op.map, *types, (), is_channels_last(call), batch, channels, channels, 1, axes, near)
    firsts = {item.side: item.name for item in reversed(op.inputs) if not item.host}
    for item in others:
        assert item.side is not None
        like = "the pool's output" if firsts[item.side] == item.name else firsts[item.side]
        same_shape(call, item.name, made.extent(item.side), f"the shape of {like}", faults)
    return finished(made, faults)
