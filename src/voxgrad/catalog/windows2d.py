# SPDX-License-Identifier: Apache-2.0
"""Conv2D, depthwise convolution and the 2-D pools with their gradients: the 3-D family at depth 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.image import SIZE, resized
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Side
from voxgrad.catalog.shapes import check_same, elements, has_rank, shaped, stated_shape, text
from voxgrad.catalog.slicing import MODE, padded_shape
from voxgrad.errors import Faults

EXPLICIT = "EXPLICIT"
_FORMATS = ("NHWC", "NCHW")
_DATA = "[N, H, W, C], or [N, C, H, W] for NCHW"
_FILTER = "[height, width, in_channels, out_channels]"
_DEPTHWISE = "[height, width, in_channels, multiplier]"
_LAWS = (
    Law("padding", "SAME puts the odd cell of padding behind the data; padding is skipped."),
    Law("3-D", "Computed by the 3-D op at depth 1, with its precision, ties and NaN rules."),
)
STRIDES = Attr("strides", "ints", "Step of the window in every dimension; 1 for batch and channels.", length=4)
KSIZE = Attr("ksize", "ints", "Size of the window in every dimension; 1 for batch and channels.", length=4)
_PADDING = Attr("padding", "string", "SAME gives out = ceil(size / stride), VALID does not pad, EXPLICIT pads as told.",
                choices=(*geometry.PADDINGS, EXPLICIT))  # fmt: skip
PLAIN_PADDING = Attr(
    "padding", "string", "SAME gives out = ceil(size / stride); VALID does not pad.", choices=geometry.PADDINGS
)
_EXPLICIT = Attr("explicit_paddings", "ints", "For EXPLICIT: cells before and after every dimension, 8 numbers.", ())
_FORMAT = Attr("data_format", "string", "Order of the dimensions of the data.", "NHWC", choices=_FORMATS)
DILATIONS = Attr("dilations", "ints", "Distance of neighbouring taps in every dimension; 1 for batch and channels.",
                  (1, 1, 1, 1), length=4)  # fmt: skip
_OTHER_NAMES = {"ksize": "ksizes", "dilations": "rates"}
"""How some ops call the same attributes."""
_CUDNN = Attr("use_cudnn_on_gpu", "bool", "Without effect here.", True)
_CONV_ATTRS = (STRIDES, _PADDING, _CUDNN, _EXPLICIT, _FORMAT, DILATIONS)
_DEPTHWISE_ATTRS = (STRIDES, _PADDING, _EXPLICIT, _FORMAT, DILATIONS)


def spatial_axes(data_format: str) -> tuple[int, int]:
    """The dimensions that hold height and width."""
    return (1, 2) if data_format == "NHWC" else (2, 3)


def _spatial(call: Call, name: str, faults: Faults) -> tuple[int, int] | None:
    """Height and width of `ksize`, `strides` or `dilations`; batch and channels must be 1."""
    if name not in call.attrs and _OTHER_NAMES.get(name) in call.attrs:
        name = _OTHER_NAMES[name]
    values = call.attrs.get(name, (1, 1, 1, 1))
    rows, columns = spatial_axes(call.attrs.get("data_format", "NHWC"))
    for index, value in enumerate(values):
        if index in (rows, columns) and value < 1:
            faults.add("VG006", f"{name}[{index}]", wanted="be at least 1", got=value)
        elif index not in (rows, columns) and value != 1:
            faults.add("VG007", f"{name}[{index}]", wanted="be 1 (batch or channel)", got=value, unimplemented=True)
    return (values[rows], values[columns])


def explicit_paddings(attrs: Any) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Cells before and after height and width for EXPLICIT padding, else None."""
    if attrs.get("padding") != EXPLICIT:
        return None
    amounts = attrs["explicit_paddings"]
    rows, columns = spatial_axes(attrs["data_format"])
    return (amounts[2 * rows], amounts[2 * rows + 1]), (amounts[2 * columns], amounts[2 * columns + 1])


def _check_explicit(call: Call, faults: Faults) -> None:
    amounts = call.attrs.get("explicit_paddings", ())
    if call.attrs.get("padding") == EXPLICIT:
        if len(amounts) != 8 or any(amount < 0 for amount in amounts):
            faults.add("VG004", "explicit_paddings", wanted="hold 8 numbers, none negative", got=text(amounts))
            return
        rows, columns = spatial_axes(call.attrs.get("data_format", "NHWC"))
        for index, amount in enumerate(amounts):
            axis = index // 2
            if axis not in (rows, columns) and amount:
                faults.add("VG007", f"explicit_paddings[{index}]", wanted="be 0 (batch or channel)", got=amount)
            elif axis in (rows, columns) and "ksize" in call.attrs and amount >= call.attrs["ksize"][axis]:
                wanted = f"be below the window, {call.attrs['ksize'][axis]}"
                faults.add("VG003", f"explicit_paddings[{index}]", wanted=wanted, got=amount)
    elif amounts:
        faults.add("VG004", "explicit_paddings", wanted="be empty unless padding is EXPLICIT", got=text(amounts))


def pooled(call: Call, shape: Shape, window: tuple[Any, Any], channels: Any, faults: Faults) -> Shape | None:
    """The shape of windows over data of this shape."""
    strides, dilations = _spatial(call, "strides", faults), _spatial(call, "dilations", faults)
    _check_explicit(call, faults)
    padding = call.attrs.get("padding")
    if faults or strides is None or dilations is None or padding is None:
        return None
    layout = call.attrs.get("data_format", "NHWC")
    extra = explicit_paddings(call.attrs) or ((0, 0), (0, 0))
    made = list(shape)
    for index, axis in enumerate(spatial_axes(layout)):
        size = shape[axis] + sum(extra[index])
        rule = geometry.VALID if padding == EXPLICIT else padding
        out = geometry.output_size(size, window[index], strides[index], dilations[index], rule)
        if known(out) and out < 0:
            reach = geometry.reach(window[index], dilations[index])
            wanted = f"be at least as large as the window, {reach} cells in {('height', 'width')[index]}"
            faults.add("VG016", call.op.inputs[0].name, wanted=wanted, got=f"{size} cells")
            return None
        made[axis] = out
    made[3 if layout == "NHWC" else 1] = channels
    return tuple(made)


def _channels(call: Call, shape: Shape) -> Any:
    return shape[3 if call.attrs.get("data_format", "NHWC") == "NHWC" else 1]


def _convolved(call: Call, data: Shape, taps: Shape, faults: Faults) -> Shape | None:
    """The shape of a convolution's output."""
    channels = _channels(call, data)
    if call.op.name.startswith("Depthwise"):
        if differ(channels, taps[2]):
            faults.add("VG013", "filter", wanted=f"have the {channels} channels of the data", got=text(taps))
        return pooled(call, data, (taps[0], taps[1]), taps[2] * taps[3], faults)
    if known(channels) and known(taps[2]) and (taps[2] == 0 or channels % taps[2]):
        faults.add("VG013", "filter", wanted=f"have in_channels that divide {channels}", got=text(taps))
    return pooled(call, data, (taps[0], taps[1]), taps[3], faults)


def conv_rule(call: Call, faults: Faults) -> Shape | None:
    """The shape of a convolution of images."""
    fine = [has_rank(call, name, 4, faults) for name in ("input", "filter")]
    if not all(fine):
        return None
    return _convolved(call, call.inputs["input"].shape, call.inputs["filter"].shape, faults)


def _fused_rule(call: Call, faults: Faults) -> Shape | None:
    """The shape of a convolution of images that are resized, where a size is given, and mirrored first."""
    fine = [has_rank(call, name, 4, faults) for name in ("input", "filter")]
    if not all(fine):
        return None
    data, taps = call.inputs["input"].shape, call.inputs["filter"].shape
    for name, shape in (("input", data), ("filter", taps)):
        if any(known(size) and size == 0 for size in shape):
            faults.add("VG017", name, wanted="have a cell and a channel at least", got=text(shape))
    if differ(data[3], taps[2]):
        faults.add("VG013", "filter", wanted=f"have the {data[3]} channels of the data", got=text(taps))
    if "size" in call.inputs:
        data = resized(call, "input", faults)
    _check_mirrored(call, faults)
    padded = None if faults else padded_shape(call, data, faults, mirrored=True)
    made = None if padded is None or faults else pooled(call, padded, (taps[0], taps[1]), taps[3], faults)
    if made is not None and any(known(size) and size == 0 for size in made):
        faults.add("VG016", "filter", wanted="fit into the padded images", got=text(taps))
    return made


def _check_mirrored(call: Call, faults: Faults) -> None:
    """Note cells around batch or channels."""
    amounts = elements(call.inputs["paddings"])
    for index, amount in enumerate(amounts or ()):
        if index // 2 in (0, 3) and known(amount) and amount:
            faults.add("VG007", f"paddings[{index // 2}]", wanted="be 0 (batch or channel)", got=amount)


def _sized(call: Call, name: str, faults: Faults) -> Shape | None:
    shape = stated_shape(call, name, faults)
    if shape is not None and len(shape) != 4:
        faults.add("VG014", name, wanted="hold 4 sizes", got=text(shape))
        return None
    return shape


def _conv_input_rule(call: Call, faults: Faults) -> Shape | None:
    data = _sized(call, "input_sizes", faults)
    fine = [has_rank(call, name, 4, faults) for name in ("filter", "out_backprop")]
    if data is not None and all(fine):
        out = _convolved(call, data, call.inputs["filter"].shape, faults)
        check_same(
            "out_backprop", call.inputs["out_backprop"].shape, out, "the shape of the convolution's output", faults
        )
    return data


def _conv_filter_rule(call: Call, faults: Faults) -> Shape | None:
    taps = _sized(call, "filter_sizes", faults)
    fine = [has_rank(call, name, 4, faults) for name in ("input", "out_backprop")]
    if taps is not None and all(fine):
        out = _convolved(call, call.inputs["input"].shape, taps, faults)
        check_same(
            "out_backprop", call.inputs["out_backprop"].shape, out, "the shape of the convolution's output", faults
        )
    return taps


def pool_rule(name: str) -> Any:
    """The shape of a pool of images."""

    def rule(call: Call, faults: Faults) -> Shape | None:
        if not has_rank(call, name, 4, faults):
            return None
        return pool_shape(call, call.inputs[name].shape, faults)

    return rule


def pool_shape(call: Call, shape: Shape, faults: Faults) -> Shape | None:
    """The shape of windows of the stated size over data of this shape."""
    window = _spatial(call, "ksize", faults)
    return None if window is None or faults else pooled(call, shape, window, _channels(call, shape), faults)


def _avg_grad_rule(call: Call, faults: Faults) -> Shape | None:
    data = _sized(call, "orig_input_shape", faults)
    if data is not None and has_rank(call, "grad", 4, faults):
        check_same(
            "grad", call.inputs["grad"].shape, pool_shape(call, data, faults), "the shape of the pool's output", faults
        )
    return data


def _max_grad_rule(second: bool) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        fine = [has_rank(call, item.name, 4, faults) for item in call.op.inputs]
        if not all(fine):
            return None
        data = call.inputs["orig_input"].shape
        out = pool_shape(call, data, faults)
        check_same("orig_output", call.inputs["orig_output"].shape, out, "the shape of the pool's output", faults)
        wanted = data if second else out
        check_same(
            "grad",
            call.inputs["grad"].shape,
            wanted,
            f"the shape of {'orig_input' if second else 'orig_output'}",
            faults,
        )
        return out if second else data

    return rule


def _conv_gradient(prefix: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        x, w = node.inputs
        return (
            getattr(build, f"{prefix}BackpropInput")(build.Shape(x), w, dys[0], **node.attrs),
            getattr(build, f"{prefix}BackpropFilter")(x, build.Shape(w), dys[0], **node.attrs),
        )

    return gradient


def _input_gradient(prefix: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        _, w, dy = node.inputs
        taps = getattr(build, f"{prefix}BackpropFilter")(dys[0], build.Shape(w), dy, **node.attrs)
        return None, taps, getattr(build, prefix)(dys[0], w, **node.attrs)

    return gradient


def _filter_gradient(prefix: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        x, _, dy = node.inputs
        data = getattr(build, f"{prefix}BackpropInput")(build.Shape(x), dys[0], dy, **node.attrs)
        return data, None, getattr(build, prefix)(x, dys[0], **node.attrs)

    return gradient


def _max_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.MaxPoolGrad(node.inputs[0], node.outputs[0], dys[0], **node.attrs),)


def _max_again(name: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        x, y, _ = node.inputs
        attrs = {key: value for key, value in node.attrs.items() if key != "explicit_paddings"}
        return build.ZerosLike(x), build.ZerosLike(y), getattr(build, name)(x, y, dys[0], **attrs)

    return gradient


def _avg_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.AvgPoolGrad(build.Shape(node.inputs[0]), dys[0], **node.attrs),)


def _avg_again(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return None, build.AvgPool(dys[0], **node.attrs)


def _stated(name: str, what: str, side: Side) -> Input:
    return Input(name, dtypes.INT32, f"The shape of the {what}, 4 integers.", "[4]", host=True, side=side)


def _conv_family(
    prefix: str, words: str, taps: str, attrs: tuple[Attr, ...], types: tuple[DType, ...], kernel: str
) -> tuple[Op, ...]:
    """A convolution and its two gradients."""
    data = Input("input", "T", "The images.", _DATA, side=Side.CELLS)
    filter_ = Input("filter", "T", "The filter.", taps, side=Side.TAPS)
    dy = Input("out_backprop", "T", "The gradient with respect to the output.", _DATA, side=Side.WINDOWS)
    floats = {"T": tuple(dtype for dtype in types if dtype.is_floating)}
    return (
        Op(prefix, "nn", f"{words} of images with a filter.", (data, filter_), attrs,
           (Output("output", "T", "The convolved images.", _DATA, side=Side.WINDOWS),), {"T": types}, laws=_LAWS,
           infer=shaped(conv_rule), kernel=f"windows2d.{kernel}", gradient=_conv_gradient(prefix),
           linear_in=("input", "filter")),
        Op(f"{prefix}BackpropInput", "nn", f"Gradient of {prefix} with respect to its input.",
           (_stated("input_sizes", "input", Side.CELLS), filter_, dy), attrs,
           (Output("output", "T", "The gradient with respect to the input.", "input_sizes", side=Side.CELLS),),
           {"T": types},
           laws=_LAWS, infer=shaped(_conv_input_rule), kernel=f"windows2d.{kernel}_input",
           gradient=_input_gradient(prefix), linear_in=("filter", "out_backprop"), of=prefix),
        Op(f"{prefix}BackpropFilter", "nn", f"Gradient of {prefix} with respect to its filter.",
           (data, _stated("filter_sizes", "filter", Side.TAPS), dy), attrs,
           (Output("output", "T", "The gradient with respect to the filter.", "filter_sizes", side=Side.TAPS),),
           floats,
           laws=_LAWS, infer=shaped(_conv_filter_rule), kernel=f"windows2d.{kernel}_filter",
           gradient=_filter_gradient(prefix), linear_in=("input", "out_backprop"), of=prefix),
    )  # fmt: skip


def _fused(name: str, summary: str, kernel: str, types: tuple[DType, ...], sizes: tuple[Input, ...],
           attrs: tuple[Attr, ...]) -> Op:  # fmt: skip
    """A convolution of images that are changed first."""
    paddings = Input("paddings", dtypes.INT32, "Cells before and after each dimension; 0 for batch and channels.",
                     "[4, 2]", host=True)  # fmt: skip
    return Op(
        name, "nn", summary,
        (Input("input", "T", "The images.", "[N, H, W, C]"), *sizes, paddings,
         Input("filter", "T", "The filter.", _FILTER)),
        (MODE, STRIDES, PLAIN_PADDING, *attrs), (Output("output", "T", "The convolved images.", "[N, H, W, C]"),),
        {"T": types}, infer=shaped(_fused_rule), kernel=f"windows2d.{kernel}",
        laws=(*_LAWS, Law("steps", "With SAME, windows smaller than their steps leave out cells on both sides.")),
    )  # fmt: skip


_MAX_ATTRS = (KSIZE, STRIDES, _PADDING, _EXPLICIT, _FORMAT)
_AVG_ATTRS = (KSIZE, STRIDES, PLAIN_PADDING, _FORMAT)
_MAX_TYPES = (*dtypes.FLOATING, dtypes.INT32, dtypes.INT64, dtypes.UINT8, dtypes.INT16, dtypes.INT8, dtypes.UINT16)
_ORIGINAL = (Input("orig_input", "T", "The input of the pool.", _DATA, side=Side.CELLS),
             Input("orig_output", "T", "The output of the pool.", _DATA, side=Side.WINDOWS))  # fmt: skip

OPS = (
    *_conv_family("Conv2D", "2-D convolution (cross-correlation)", _FILTER, _CONV_ATTRS,
                  (*dtypes.FLOATING, dtypes.INT32), "conv"),
    *_conv_family("DepthwiseConv2dNative", "2-D convolution of each channel by itself", _DEPTHWISE, _DEPTHWISE_ATTRS,
                  dtypes.FLOATING, "depthwise"),
    _fused("FusedPadConv2D", "2-D convolution of images with their mirror image around them.", "fused_pad_conv",
           dtypes.FLOATING, (), ()),
    _fused("FusedResizeAndPadConv2D",
           "2-D convolution of images in another size, bilinear, with their mirror image around them.",
           "fused_resize_conv", (dtypes.HALF, dtypes.FLOAT32, dtypes.FLOAT64), (SIZE,),
           (Attr("resize_align_corners", "bool", "Corner cells of both images have the same centres.", False),)),
    Op("MaxPool", "nn", "Maximum over 2-D windows.", (Input("input", "T", "The images.", _DATA, side=Side.CELLS),),
       _MAX_ATTRS,
       (Output("output", "T", "The maximum of every window.", _DATA, side=Side.WINDOWS),), {"T": _MAX_TYPES},
       {"T": dtypes.FLOAT32}, infer=shaped(pool_rule("input")), kernel="windows2d.max_pool", gradient=_max_gradient,
       laws=_LAWS, selects=True),
    Op("MaxPoolGrad", "nn", "Gradient of MaxPool with respect to its input.",
       (*_ORIGINAL, Input("grad", "T", "The gradient with respect to the output.", _DATA, side=Side.WINDOWS)),
       _MAX_ATTRS,
       (Output("output", "T", "The gradient with respect to the input.", "shape of orig_input", side=Side.CELLS),),
       {"T": dtypes.REAL}, {"T": dtypes.FLOAT32}, infer=shaped(_max_grad_rule(False)), kernel="windows2d.max_pool_grad",
       gradient=_max_again("MaxPoolGradGrad"), laws=_LAWS, linear_in=("grad",), of="MaxPool", selects=True),
    Op("MaxPoolGradGrad", "nn",
       "Second-order gradient of MaxPool: takes, per window, the gradient at the cell that won.",
       (*_ORIGINAL, Input("grad", "T", "A tensor like orig_input.", _DATA, side=Side.CELLS)),
       (KSIZE, STRIDES, PLAIN_PADDING, _FORMAT),
       (Output("output", "T", "The values of grad at the winners.", "shape of orig_output", side=Side.WINDOWS),),
       {"T": dtypes.REAL}, infer=shaped(_max_grad_rule(True)), kernel="windows2d.max_pool_grad_grad",
       gradient=_max_again("MaxPoolGrad"), laws=_LAWS, linear_in=("grad",), of="MaxPool", selects=True),
    Op("AvgPool", "nn", "Average over 2-D windows.", (Input("value", "T", "The images.", _DATA, side=Side.CELLS),),
       _AVG_ATTRS,
       (Output("output", "T", "The mean of every window.", _DATA, side=Side.WINDOWS),), {"T": dtypes.FLOATING},
       infer=shaped(pool_rule("value")), kernel="windows2d.avg_pool", gradient=_avg_gradient, laws=_LAWS,
       linear_in=("value",)),
    Op("AvgPoolGrad", "nn", "Gradient of AvgPool with respect to its input.",
       (_stated("orig_input_shape", "input of the pool", Side.CELLS),
        Input("grad", "T", "The gradient with respect to the output.", _DATA, side=Side.WINDOWS)), _AVG_ATTRS,
       (Output("output", "T", "The gradient with respect to the input.", "orig_input_shape", side=Side.CELLS),),
       {"T": dtypes.FLOATING}, infer=shaped(_avg_grad_rule), kernel="windows2d.avg_pool_grad", gradient=_avg_again,
       laws=_LAWS, linear_in=("grad",), of="AvgPool"),
)  # fmt: skip
