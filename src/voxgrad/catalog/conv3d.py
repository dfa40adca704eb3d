# SPDX-License-Identifier: Apache-2.0
"""Conv3D and its two gradients: one bilinear map and its transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Side
from voxgrad.catalog.problem import (
    DATA_FORMATS,
    FILTER_SHAPE,
    PADDING,
    Problem,
    filter_shape,
    finished,
    is_channels_last,
    same_shape,
    sizes,
    spatial_attr,
    stated_volume,
    volume,
    window_axes,
)  # fmt: skip
from voxgrad.errors import Faults

_DATA = "[N, D, H, W, C], or [N, C, D, H, W] for NCDHW"

_ATTRS = (
    Attr("strides", "ints", "Step of the window in every dimension of the data; 1 for batch and channels.", length=5),
    PADDING,
    Attr("data_format", "string", "Order of the dimensions of the data.", DATA_FORMATS[0], choices=DATA_FORMATS),
    Attr("dilations", "ints", "Distance of neighbouring taps in every dimension; 1 for batch and channels.",
         (1, 1, 1, 1, 1), length=5),
)  # fmt: skip

_LAWS = (
    Law("padding", "SAME puts the odd cell of padding behind the data. Padding is skipped: it never makes 0 * inf."),
    Law("groups", "Where the data has g times the in_channels of the filter, the convolution has g groups."),
    Law("precision", "half and bfloat16 are summed in float32 and rounded once; float64 is summed in float64."),
    Law("determinism", "The same input gives the same bits, whatever the number of threads."),
)


def _problem(call: Call, faults: Faults) -> Problem | None:
    """The problem of a convolution or of one of its transposes, whichever of its tensors are there or stated."""
    to, given = call.op.map.output, {item.side: item for item in call.op.inputs}
    cells, filters, windows = given[Side.CELLS], given[Side.TAPS], given.get(Side.WINDOWS)
    data = (stated_volume if cells.host else volume)(call, cells.name, faults)
    taps = (sizes if filters.host else filter_shape)(call, filters.name, faults)
    dy = None if windows is None else volume(call, windows.name, faults)
    strides, dilations = (spatial_attr(call, name, faults, pool=False) for name in ("strides", "dilations"))
    if data is None or taps is None or (dy is None and windows is not None):
        return None
    groups = _groups(call, (cells.name, data[2]), (filters.name, taps), faults)
    if groups is None or strides is None or dilations is None:
        return None
    late = call.semantics == "tf_cpu" and to is Side.WINDOWS
    named = (cells.name, data), (filters.name, taps[:3])
    axes = window_axes(call, *named, strides, dilations, faults, late_start=late)
    if axes is None:
        return None
    dtype = next(call.inputs[item.name].dtype for item in call.op.inputs if not item.host)
    batch, _, channels = data
    made = Problem(
        call.op.name, call.op.map, dtype, dtype, (), is_channels_last(call), batch, channels, taps[4], groups, axes
    )  # fmt: skip
    # Of a filter gradient the stated shape, for symbols do not always cancel.
    made = finished(made, faults, taps if to is Side.TAPS else None)
    if windows is not None:
        same_shape(call, windows.name, made.output_extent, "the shape of the convolution's output", faults)
    return made


def _groups(call: Call, data: tuple[str, int], filters: tuple[str, tuple[int, ...]], faults: Faults) -> int | None:
    """How many groups the channels of the data, and a filter of this shape, make."""
    (name, channels), (filter_, taps) = data, filters
    group_in, out_channels = taps[3], taps[4]
    if call.op.map.output is Side.WINDOWS and out_channels == 0:
        faults.add("VG017", filter_, wanted="have at least one output channel", got=list(taps))
        return None
    if 0 in taps[:4]:
        faults.add("VG017", filter_, wanted="have at least one tap and one input channel", got=list(taps))
        return None
    if channels == 0 or channels % group_in:
        wanted = f"have a multiple of the {group_in} input channels of {filter_}"
        faults.add("VG013", name, wanted=wanted, got=f"{channels} channels")
        return None
    groups = channels // group_in
    if out_channels % groups:
        wanted = f"have output channels that divide into {groups} groups ({channels} / {group_in} input channels)"
        faults.add("VG013", filter_, wanted=wanted, got=f"{out_channels} output channels")
        return None
    return groups


def _conv3d_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, w = node.inputs
    return (
        build.Conv3DBackpropInputV2(build.Shape(x), w, dys[0], **node.attrs),
        build.Conv3DBackpropFilterV2(x, build.Shape(w), dys[0], **node.attrs),
    )


def _input_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    _, w, dy = node.inputs
    return (
        None,
        build.Conv3DBackpropFilterV2(dys[0], build.Shape(w), dy, **node.attrs),
        build.Conv3D(dys[0], w, **node.attrs),
    )


def _filter_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, _, dy = node.inputs
    return (
        build.Conv3DBackpropInputV2(build.Shape(x), dys[0], dy, **node.attrs),
        None,
        build.Conv3D(x, dys[0], **node.attrs),
    )


_TYPES = {"T": dtypes.FLOATING}

CONV3D = Op(
    name="Conv3D",
    group="nn",
    summary="3-D convolution (cross-correlation) of a volume with a filter.",
    inputs=(
        Input("input", "T", "The volume.", _DATA, side=Side.CELLS),
        Input(
            "filter", "T", "The filter; in_channels divides the channels of the volume.", FILTER_SHAPE, side=Side.TAPS
        ),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The convolved volume.", "[N, D', H', W', out_channels]", side=Side.WINDOWS),),
    types=_TYPES,
    laws=_LAWS,
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = vg.raw_ops.Conv3D(input=x, filter=x, strides=[1, 4, 3, 2, 1], padding="SAME")
print(y.ravel())  # [2856. 2992. 6952. 7344.]""",
    problem=_problem,
    gradient=_conv3d_gradient,
    linear_in=("input", "filter"),
)

CONV3D_BACKPROP_INPUT = Op(
    name="Conv3DBackpropInputV2",
    group="nn",
    summary="Gradient of Conv3D with respect to its input; a transposed convolution of stated size.",
    inputs=(
        Input(
            "input_sizes",
            "Tshape",
            "The shape of the input of the convolution, 5 integers.",
            "[5]",
            host=True,
            side=Side.CELLS,
        ),
        Input("filter", "T", "The filter of the convolution.", FILTER_SHAPE, side=Side.TAPS),
        Input(
            "out_backprop", "T", "The gradient with respect to the output of the convolution.", _DATA, side=Side.WINDOWS
        ),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "input_sizes", side=Side.CELLS),),
    types=_TYPES | {"Tshape": (dtypes.INT32, dtypes.INT64)},
    type_defaults={"Tshape": dtypes.INT32},
    laws=(*_LAWS, Law("empty", "Cells that no window reads, and a convolution without output channels, get 0.")),
    example="""\
w = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
dy = np.array([2856, 2992, 6952, 7344], np.float32).reshape(2, 1, 1, 1, 2)
dx = vg.raw_ops.Conv3DBackpropInputV2(input_sizes=[2, 2, 2, 2, 2], filter=w, out_backprop=dy,
                                      strides=[1, 4, 3, 2, 1], padding="SAME")
print(dx.ravel()[:3])  # [ 8840. 20536. 32232.]""",
    problem=_problem,
    of="Conv3D",
    gradient=_input_gradient,
    linear_in=("filter", "out_backprop"),
)

CONV3D_BACKPROP_FILTER = Op(
    name="Conv3DBackpropFilterV2",
    group="nn",
    summary="Gradient of Conv3D with respect to its filter.",
    inputs=(
        Input("input", "T", "The input of the convolution.", _DATA, side=Side.CELLS),
        Input("filter_sizes", dtypes.INT32, "The shape of the filter, 5 integers.", "[5]", host=True, side=Side.TAPS),
        Input(
            "out_backprop", "T", "The gradient with respect to the output of the convolution.", _DATA, side=Side.WINDOWS
        ),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the filter.", "filter_sizes", side=Side.TAPS),),
    types=_TYPES,
    laws=(*_LAWS, Law("empty", "An empty batch or an empty output gives a gradient of zeros.")),
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
dy = np.array([2856, 2992, 6952, 7344], np.float32).reshape(2, 1, 1, 1, 2)
dw = vg.raw_ops.Conv3DBackpropFilterV2(input=x, filter_sizes=[2, 2, 2, 2, 2], out_backprop=dy,
                                       strides=[1, 4, 3, 2, 1], padding="SAME")
print(dw.ravel()[:2])  # [121040. 127840.]""",
    problem=_problem,
    of="Conv3D",
    adds_up="sum",
    gradient=_filter_gradient,
    linear_in=("input", "out_backprop"),
)

OPS = (CONV3D, CONV3D_BACKPROP_INPUT, CONV3D_BACKPROP_FILTER)
