# SPDX-License-Identifier: Apache-2.0
"""Conv3D and its two gradients: one bilinear map and its transposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output
from voxgrad.catalog.problem import (
    DATA_FORMATS,
    FILTER_SHAPE,
    Problem,
    Volume,
    countable,
    filter_shape,
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
    Attr("padding", "string", "SAME pads with zeros so that out = ceil(size / stride); VALID does not pad.",
         choices=geometry.PADDINGS),
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


def _problem(
    call: Call, data: Volume, taps: Sequence[int], names: tuple[str, str], shape: Any, faults: Faults
) -> Problem | None:
    """What the three ops share. `names` are the arguments that give the data and the filter."""
    strides = spatial_attr(call, "strides", faults, pool=False)
    dilations = spatial_attr(call, "dilations", faults, pool=False)
    batch, _, channels = data
    group_in, out_channels = taps[3], taps[4]
    if 0 in taps[:4]:
        faults.add("VG017", names[1], wanted="have at least one tap and one input channel", got=list(taps))
        return None
    if channels == 0 or channels % group_in:
        wanted = f"have a multiple of the {group_in} input channels of {names[1]}"
        faults.add("VG013", names[0], wanted=wanted, got=f"{channels} channels")
        return None
    groups = channels // group_in
    if out_channels % groups:
        wanted = f"have output channels that divide into {groups} groups ({channels} / {group_in} input channels)"
        faults.add("VG013", names[1], wanted=wanted, got=f"{out_channels} output channels")
        return None
    if strides is None or dilations is None:
        return None
    late = call.semantics == "tf_cpu" and call.op is CONV3D
    axes = window_axes(call, (names[0], data), (names[1], tuple(taps[:3])), strides, dilations, faults, late_start=late)
    if axes is None:
        return None
    dtype = next(spec.dtype for item in call.op.inputs if not item.host and (spec := call.inputs[item.name]))
    problem = Problem(
        call.op.name,
        call.op.kernel,
        dtype,
        dtype,
        (),
        is_channels_last(call),
        batch,
        channels,
        out_channels,
        groups,
        axes,
    )
    return _with_output(problem, shape, faults)


def _with_output(problem: Problem, shape: Any, faults: Faults) -> Problem:
    made = replace(problem, output_shape=shape(problem))
    countable(made, faults)
    return made


def _conv3d_problem(call: Call, faults: Faults) -> Problem | None:
    data, taps = volume(call, "input", faults), filter_shape(call, "filter", faults)
    if data is None or taps is None:
        _check_attrs(call, faults)
        return None
    if taps[4] == 0:
        faults.add("VG017", "filter", wanted="have at least one output channel", got=list(taps))
        return None
    return _problem(call, data, taps, ("input", "filter"), lambda made: made.output_extent, faults)


def _input_problem(call: Call, faults: Faults) -> Problem | None:
    data, taps = stated_volume(call, "input_sizes", faults), filter_shape(call, "filter", faults)
    dy = volume(call, "out_backprop", faults)
    if data is None or taps is None or dy is None:
        _check_attrs(call, faults)
        return None
    problem = _problem(call, data, taps, ("input_sizes", "filter"), lambda made: made.input_extent, faults)
    if problem is not None:
        same_shape(call, "out_backprop", problem.output_extent, "the shape of the convolution's output", faults)
    return problem


def _filter_problem(call: Call, faults: Faults) -> Problem | None:
    data, taps = volume(call, "input", faults), sizes(call, "filter_sizes", faults)
    dy = volume(call, "out_backprop", faults)
    if data is None or taps is None or dy is None:
        _check_attrs(call, faults)
        return None
    problem = _problem(call, data, taps, ("input", "filter_sizes"), lambda made: taps, faults)
    if problem is not None:
        same_shape(call, "out_backprop", problem.output_extent, "the shape of the convolution's output", faults)
    return problem


def _check_attrs(call: Call, faults: Faults) -> None:
    """Where the tensors are already wrong, still say what is wrong with the attributes."""
    spatial_attr(call, "strides", faults, pool=False)
    spatial_attr(call, "dilations", faults, pool=False)


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
        Input("input", "T", "The volume.", _DATA, layout="data"),
        Input(
            "filter", "T", "The filter; in_channels divides the channels of the volume.", FILTER_SHAPE, layout="filter"
        ),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The convolved volume.", "[N, D', H', W', out_channels]", layout="data"),),
    types=_TYPES,
    laws=_LAWS,
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = vg.raw_ops.Conv3D(input=x, filter=x, strides=[1, 4, 3, 2, 1], padding="SAME")
print(y.ravel())  # [2856. 2992. 6952. 7344.]""",
    problem=_conv3d_problem,
    kernel="conv3d",
    gradient=_conv3d_gradient,
    linear_in=("input", "filter"),
)

CONV3D_BACKPROP_INPUT = Op(
    name="Conv3DBackpropInputV2",
    group="nn",
    summary="Gradient of Conv3D with respect to its input; a transposed convolution of stated size.",
    inputs=(
        Input("input_sizes", "Tshape", "The shape of the input of the convolution, 5 integers.", "[5]", host=True),
        Input("filter", "T", "The filter of the convolution.", FILTER_SHAPE, layout="filter"),
        Input("out_backprop", "T", "The gradient with respect to the output of the convolution.", _DATA, layout="data"),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "input_sizes", layout="data"),),
    types=_TYPES | {"Tshape": (dtypes.INT32, dtypes.INT64)},
    type_defaults={"Tshape": dtypes.INT32},
    laws=(*_LAWS, Law("empty", "Cells that no window reads, and a convolution without output channels, get 0.")),
    example="""\
w = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
dy = np.array([2856, 2992, 6952, 7344], np.float32).reshape(2, 1, 1, 1, 2)
dx = vg.raw_ops.Conv3DBackpropInputV2(input_sizes=[2, 2, 2, 2, 2], filter=w, out_backprop=dy,
                                      strides=[1, 4, 3, 2, 1], padding="SAME")
print(dx.ravel()[:3])  # [ 8840. 20536. 32232.]""",
    problem=_input_problem,
    kernel="conv3d_input",
    gradient=_input_gradient,
    linear_in=("filter", "out_backprop"),
)

CONV3D_BACKPROP_FILTER = Op(
    name="Conv3DBackpropFilterV2",
    group="nn",
    summary="Gradient of Conv3D with respect to its filter.",
    inputs=(
        Input("input", "T", "The input of the convolution.", _DATA, layout="data"),
        Input("filter_sizes", dtypes.INT32, "The shape of the filter, 5 integers.", "[5]", host=True),
        Input("out_backprop", "T", "The gradient with respect to the output of the convolution.", _DATA, layout="data"),
    ),
    attrs=_ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the filter.", "filter_sizes", layout="filter"),),
    types=_TYPES,
    laws=(*_LAWS, Law("empty", "An empty batch or an empty output gives a gradient of zeros.")),
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
dy = np.array([2856, 2992, 6952, 7344], np.float32).reshape(2, 1, 1, 1, 2)
dw = vg.raw_ops.Conv3DBackpropFilterV2(input=x, filter_sizes=[2, 2, 2, 2, 2], out_backprop=dy,
                                       strides=[1, 4, 3, 2, 1], padding="SAME")
print(dw.ravel()[:2])  # [121040. 127840.]""",
    problem=_filter_problem,
    kernel="conv3d_filter",
    adds_up="sum",
    gradient=_filter_gradient,
    linear_in=("input", "out_backprop"),
)

OPS = (CONV3D, CONV3D_BACKPROP_INPUT, CONV3D_BACKPROP_FILTER)
