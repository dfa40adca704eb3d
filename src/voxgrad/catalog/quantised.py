# SPDX-License-Identifier: Apache-2.0
"""Numbers as integers of a few bits and the range of floats that they stand for."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.array import reshape_rule
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.dtypes import QUANTISED, DType
from voxgrad.catalog.image import CENTERS, CORNERS, SIZE, resized
from voxgrad.catalog.matrix import matmul_rule
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    Infer,
    Rule,
    axis_in,
    broadcast,
    check_same,
    has_rank,
    scalar_value,
    specs,
    text,
    type_of,
)
from voxgrad.catalog.slicing import joined
from voxgrad.catalog.windows2d import DILATIONS, KSIZE, PLAIN_PADDING, STRIDES, conv_rule, pool_rule
from voxgrad.errors import Faults

_F32 = dtypes.FLOAT32
_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
_HELD = Law("held", "Arrays hold qint8, quint8, qint16, quint16 and qint32 as the plain integers of their size, and "
            "plain ones are taken for them.")  # fmt: skip


def _range(low: str, high: str, of: str) -> tuple[Input, Input]:
    return (Input(low, _F32, f"The float that the lowest {of} stands for.", "[]"),
            Input(high, _F32, f"The float that the highest {of} stands for.", "[]"))  # fmt: skip


def _type(name: str, default: DType | None = None) -> Attr:
    doc = "The type of the integers that come out."
    if default is None:
        return Attr(name, "type", doc, choices=QUANTISED)
    return Attr(name, "type", doc, default, choices=QUANTISED)


def _out(name: str, type_: str, doc: str, shape: str, ranges: tuple[str, str]) -> tuple[Output, ...]:
    return (Output(name, type_, doc, shape), Output(ranges[0], _F32, "What the lowest of them stands for.", "[]"),
            Output(ranges[1], _F32, "What the highest of them stands for.", "[]"))  # fmt: skip


def _with_range(rule: Rule) -> Infer:
    """The inference of an op that gives integers of one shape and their range."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        shape = rule(call, faults)
        return None if faults else specs(call, shape, (), ())

    return infer


def _like(name: str) -> Infer:
    return _with_range(lambda call, faults: call.inputs[name].shape)


def _slices(call: Call, faults: Faults) -> Shape:
    """The shape of the ranges: none, or one for each slice along an axis."""
    shape, axis = call.inputs["input"].shape, call.attrs.get("axis", -1)
    if axis < -1:
        faults.add("VG003", "axis", wanted="be -1 or more", got=axis)
    if axis == -1 or shape is None or faults or axis_in(call, "axis", axis, len(shape), faults) is None:
        return ()
    for name in ("min_range", "max_range"):
        check_same(name, call.inputs[name].shape, (shape[axis],), "a range for each slice", faults)
    if call.attrs.get("mode") == "MIN_FIRST" and not (known(shape[axis]) and shape[axis] == 1):
        faults.add("VG003", "mode", wanted="be MIN_COMBINED or SCALED along an axis", got="MIN_FIRST")
    return (shape[axis],)


def _scalars_unless_axis(call: Call, faults: Faults) -> None:
    for name in ("min_range", "max_range") if call.attrs.get("axis", -1) == -1 else ():
        has_rank(call, name, 0, faults)


def _quantize_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    _scalars_unless_axis(call, faults)
    ranges = _slices(call, faults)
    if call.attrs.get("round_mode") == "HALF_TO_EVEN" and call.attrs.get("mode") != "SCALED":
        faults.add("VG003", "round_mode", wanted="be HALF_AWAY_FROM_ZERO unless mode is SCALED", got="HALF_TO_EVEN")
    ranges = () if ranges == (1,) else ranges
    return None if faults else specs(call, call.inputs["input"].shape, ranges, ranges)


def _dequantize_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    _scalars_unless_axis(call, faults)
    _slices(call, faults)
    if call.attrs.get("dtype") is dtypes.BFLOAT16 and call.attrs.get("mode") != "MIN_COMBINED":
        faults.add("VG003", "dtype", wanted="be float32 unless mode is MIN_COMBINED", got="bfloat16")
    return None if faults else specs(call, call.inputs["input"].shape)


def _concat_rule(call: Call, faults: Faults) -> Shape | None:
    values, axis = call.inputs["values"], scalar_value(call.inputs["concat_dim"])
    if len(values) < 2:
        faults.add("VG004", "values", wanted="hold two tensors or more", got=len(values))
    for name in ("input_mins", "input_maxes"):
        if len(call.inputs[name]) != len(values):
            faults.add("VG004", name, wanted=f"hold one number for each of {len(values)} values",
                       got=len(call.inputs[name]))  # fmt: skip
        for index, spec in enumerate(call.inputs[name]):
            check_same(f"{name}[{index}]", spec.shape, (), "one number", faults)
    if known(axis) and axis < 0:
        faults.add("VG003", "concat_dim", wanted="be 0 or more", got=axis)
    return None if faults else joined(call, values, axis, ("values", "concat_dim"), faults)


def _image_rule(name: str) -> Rule:
    def rule(call: Call, faults: Faults) -> Shape | None:
        has_rank(call, name, 4, faults)
        return call.inputs[name].shape  # type: ignore[no-any-return]

    return rule


def _batch_norm_rule(call: Call, faults: Faults) -> Shape | None:
    shape = _image_rule("t")(call, faults)
    for name in ("m", "v", "beta", "gamma"):
        own = call.inputs[name].shape
        if has_rank(call, name, 1, faults) and shape is not None and len(shape) == 4 and differ(own[0], shape[3]):
            faults.add("VG012", name, wanted=f"hold a number for each of {shape[3]} channels", got=text(own))
        if own is not None and len(own) == 1 and known(own[0]) and own[0] < 2:
            faults.add("VG012", name, wanted="hold two numbers or more", got=text(own))
    return shape


def _bias_rule(call: Call, faults: Faults) -> Shape | None:
    shape, bias = call.inputs["input"].shape, call.inputs["bias"].shape
    fine = has_rank(call, "input", 2, faults, at_least=True), has_rank(call, "bias", 1, faults)
    if all(fine) and differ(shape[-1], bias[0]):
        faults.add("VG012", "bias", wanted=f"hold a number for each of {shape[-1]} channels", got=text(bias))
    if all(fine) and known(bias[0]) and not bias[0]:
        faults.add("VG012", "bias", wanted="hold a number at least", got=text(bias))
    return shape  # type: ignore[no-any-return]


def _conv_rule(call: Call, faults: Faults) -> Shape | None:
    for index, one in enumerate(call.attrs.get("dilations", ())):
        if one != 1:
            faults.add("VG007", f"dilations[{index}]", wanted="be 1", got=one, unimplemented=True)
    shape = conv_rule(call, faults)
    data, taps = call.inputs["input"].shape, call.inputs["filter"].shape
    if shape is not None and differ(data[3], taps[2]):
        faults.add("VG013", "filter", wanted=f"have the {data[3]} channels of the data", got=text(taps))
    return shape


def _op(name: str, group: str, summary: str, inputs: tuple[Input, ...], attrs: tuple[Attr, ...],
        outputs: tuple[Output, ...], infer: Infer, kernel: str, **more: Any) -> Op:  # fmt: skip
    """An op on quantised integers; every type variable stands for all of them."""
    stated = [item.type for item in inputs] + [item.type for item in outputs]
    types = dict.fromkeys((one for one in stated if isinstance(one, str)), QUANTISED) | {
        attr.name: attr.choices for attr in attrs if attr.kind == "type"
    }
    more = {"types": types, "laws": (_HELD,)} | more
    return Op(name, group, summary, inputs, attrs, outputs, infer=infer, kernel=f"quantised.{kernel}", **more)


def _activation_rule(call: Call, faults: Faults) -> Shape | None:
    own, wanted = type_of(call, "Tinput"), call.attrs.get("out_type")
    if own is not None and wanted is not None and own is not wanted:
        faults.add("VG011", "out_type", wanted=f"be the type of features, {own}", got=wanted.name)
    return call.inputs["features"].shape  # type: ignore[no-any-return]


def _activation(name: str, summary: str, kernel: str, *more: Input) -> Op:
    return _op(
        name, "nn", summary,
        (Input("features", "Tinput", "The numbers."), *more, *_range("min_features", "max_features", "number")),
        (_type("out_type", dtypes.QUINT8),),
        _out("activations", "out_type", "The numbers.", "shape of features", ("min_activations", "max_activations")),
        _with_range(_activation_rule), kernel,
    )  # fmt: skip


def _pool(name: str, summary: str, kernel: str) -> Op:
    return _op(
        name, "nn", summary,
        (Input("input", "T", "The images.", "[N, H, W, C]"), *_range("min_input", "max_input", "number")),
        (KSIZE, STRIDES, PLAIN_PADDING),
        _out("output", "T", "The pooled images.", "[N, H', W', C]", ("min_output", "max_output")),
        _with_range(pool_rule("input")), kernel,
    )  # fmt: skip


def _down(name: str, summary: str, kernel: str, *more: Input) -> Op:
    return _op(
        name, "math", summary,
        (Input("input", "Tinput", "The numbers."), *_range("input_min", "input_max", "number"), *more),
        (_type("out_type"),),
        _out("output", "out_type", "The numbers.", "shape of input", ("output_min", "output_max")), _like("input"),
        kernel,
    )  # fmt: skip


_AXIS = Attr("axis", "int", "An axis along which each slice has a range of its own; -1 for one range.", -1)
_MODE = Attr("mode", "string", "How floats become integers: from the lowest of both on; the same with 0 at an integer; "
             "or scaled by one factor, so that 0 is 0.", "MIN_COMBINED", choices=_MODES)  # fmt: skip
_NARROW = Attr("narrow_range", "bool", "For SCALED: the lowest of signed integers is left out.", False)
_RANGES = (Input("min_range", _F32, "The least float.", "[], or [slices] with axis"),
           Input("max_range", _F32, "The greatest float.", "[], or [slices] with axis"))  # fmt: skip

OPS = (
    _op("QuantizeV2", "array", "Floats as integers of a few bits.", (Input("input", _F32, "The floats."), *_RANGES),
        (_type("T"), _MODE,
         Attr("round_mode", "string", "What becomes of halves; to even for SCALED only.", "HALF_AWAY_FROM_ZERO",
              choices=("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")), _NARROW, _AXIS,
         Attr("ensure_minimum_range", "float", "The range is at least this part of its larger end, or of 1.", 0.01)),
        (Output("output", "T", "The integers.", "shape of input"),
         Output("output_min", _F32, "What the lowest of them stands for.", "[], or [slices] with axis"),
         Output("output_max", _F32, "What the highest of them stands for.", "[], or [slices] with axis")),
        _quantize_infer, "quantize", laws=(_HELD, Law("zero", "The range that is used includes 0."))),
    _op("Dequantize", "array", "Floats from integers of a few bits.", (Input("input", "T", "The integers."), *_RANGES),
        (_MODE, _NARROW, _AXIS,
         Attr("dtype", "type", "The type of the floats.", _F32, choices=(dtypes.BFLOAT16, _F32))),
        (Output("output", "dtype", "The floats.", "shape of input"),), _dequantize_infer, "dequantize"),
    _op("QuantizedConcat", "array", "Quantised tensors joined along an axis, in a range that holds all of theirs.",
        (Input("concat_dim", dtypes.INT32, "The axis.", "[]", host=True),
         Input("values", "T", "The tensors.", many=True),
         Input("input_mins", _F32, "What the lowest number of each stands for.", many=True),
         Input("input_maxes", _F32, "What the highest number of each stands for.", many=True)), (),
        _out("output", "T", "The joined tensor.", "", ("output_min", "output_max")), _with_range(_concat_rule),
        "concat"),
    _op("QuantizedReshape", "array", "A quantised tensor in another shape.",
        (Input("tensor", "T", "The numbers."), Input("shape", "Tshape", "The new sizes; one may be -1.", "[rank]",
                                                     host=True), *_range("input_min", "input_max", "number")), (),
        _out("output", "T", "The reshaped tensor.", "shape", ("output_min", "output_max")), _with_range(reshape_rule),
        "reshape", types={"T": QUANTISED, "Tshape": dtypes.INDEX}, type_defaults={"Tshape": dtypes.INT32}),
    _op("QuantizedInstanceNorm", "array", "Images with mean 0 and deviation 1 in every channel of each.",
        (Input("x", "T", "The images.", "[N, H, W, C]"), *_range("x_min", "x_max", "number")),
        (Attr("output_range_given", "bool", "The range of y is given, and not that of the results.", False),
         Attr("given_y_min", "float", "The lowest of that range.", 0.0),
         Attr("given_y_max", "float", "The highest of that range.", 0.0),
         Attr("variance_epsilon", "float", "What is added to variances.", 1e-5),
         Attr("min_separation", "float", "The least size of the range of y.", 1e-3)),
        _out("y", "T", "The images.", "shape of x", ("y_min", "y_max")), _with_range(_image_rule("x")),
        "instance_norm"),
    _down("QuantizeDownAndShrinkRange", "Numbers of many bits as such of few, in the range that they use.", "shrink"),
    _down("Requantize", "Numbers of many bits as such of few, in a stated range.", "requantize",
          Input("requested_output_min", _F32, "What the lowest shall stand for, 0 or less.", "[]"),
          Input("requested_output_max", _F32, "What the highest shall stand for.", "[]")),
    Op("RequantizationRange", "math", "The range that quantised numbers use.",
       (Input("input", "Tinput", "The numbers."), *_range("input_min", "input_max", "number")),
       outputs=(Output("output_min", _F32, "The least float, 0 at most.", "[]"),
                Output("output_max", _F32, "The greatest float.", "[]")), types={"Tinput": QUANTISED},
       infer=lambda call, faults: specs(call, (), ()), kernel="quantised.used_range", laws=(_HELD,)),
    _op("QuantizedMatMul", "math", "The product of two quantised matrices.",
        (Input("a", "T1", "The first matrix.", "[m, k]"), Input("b", "T2", "The second matrix.", "[k, n]"),
         *_range("min_a", "max_a", "number of a"), *_range("min_b", "max_b", "number of b")),
        (_type("Toutput", dtypes.QINT32), Attr("transpose_a", "bool", "Use the transpose of a.", False),
         Attr("transpose_b", "bool", "Use the transpose of b.", False),
         Attr("Tactivation", "type", "Without effect here.", dtypes.QUINT8, choices=QUANTISED)),
        _out("out", "Toutput", "The product.", "[m, n]", ("min_out", "max_out")), _with_range(matmul_rule), "matmul"),
    _op("QuantizedMul", "math", "The product of quantised numbers, element by element.",
        (Input("x", "T1", "The first."), Input("y", "T2", "The second."), *_range("min_x", "max_x", "number of x"),
         *_range("min_y", "max_y", "number of y")), (_type("Toutput", dtypes.QINT32),),
        _out("z", "Toutput", "The product.", "the broadcast shape", ("min_z", "max_z")),
        _with_range(lambda call, faults: broadcast(call, ("x", "y"), faults)), "multiply"),
    _pool("QuantizedAvgPool", "Means over windows of quantised images.", "means"),
    _pool("QuantizedMaxPool", "Maxima of windows of quantised images.", "maxima"),
    _op("QuantizedBatchNormWithGlobalNormalization", "nn", "Batch normalization of quantised images by given numbers.",
        tuple(item for name, doc in (("t", "The images."), ("m", "The means of the channels."),
                                     ("v", "The variances."), ("beta", "What is added."), ("gamma", "The factors."))
              for item in (Input(name, "Tinput", doc, "[N, H, W, C]" if name == "t" else "[C]"),
                           *_range(f"{name}_min", f"{name}_max", f"number of {name}"))),
        (_type("out_type"), Attr("variance_epsilon", "float", "What is added to variances."),
         Attr("scale_after_normalization", "bool", "Multiply by gamma.")),
        _out("result", "out_type", "The images.", "shape of t", ("result_min", "result_max")),
        _with_range(_batch_norm_rule), "batch_norm",
        laws=(_HELD, Law("overflow", "Products are of 32 bits and wrap, as in TensorFlow."))),
    _op("QuantizedBiasAdd", "nn", "Quantised numbers with one added for each channel.",
        (Input("input", "T1", "The numbers.", "[..., channels]"), Input("bias", "T2", "What is added.", "[channels]"),
         *_range("min_input", "max_input", "number"), *_range("min_bias", "max_bias", "bias")), (_type("out_type"),),
        _out("output", "out_type", "The sums.", "shape of input", ("min_out", "max_out")), _with_range(_bias_rule),
        "bias_add"),
    _op("QuantizedConv2D", "nn", "A convolution of quantised images.",
        (Input("input", "Tinput", "The images.", "[N, H, W, C]"),
         Input("filter", "Tfilter", "The filter.", "[height, width, in_channels, out_channels]"),
         *_range("min_input", "max_input", "number of input"), *_range("min_filter", "max_filter", "number of filter")),
        (STRIDES, PLAIN_PADDING, _type("out_type", dtypes.QINT32), DILATIONS),
        _out("output", "out_type", "The sums.", "[N, H', W', out_channels]", ("min_output", "max_output")),
        _with_range(_conv_rule), "convolution"),
    _activation("QuantizedRelu", "Numbers below 0 become 0.", "relu"),
    _activation("QuantizedRelu6", "Numbers below 0 become 0, those above 6 become 6.", "relu6"),
    _activation("QuantizedReluX", "Numbers below 0 become 0, those above a limit the limit.", "relu_x",
                Input("max_value", _F32, "The limit.", "[]")),
    _op("QuantizedResizeBilinear", "image", "Quantised images in another size, each cell from its four neighbours.",
        (Input("images", "T", "The images.", "[N, H, W, C]"), SIZE, *_range("min", "max", "number")),
        (CORNERS, CENTERS), _out("resized_images", "T", "The images.", "[N, height, width, C]", ("out_min", "out_max")),
        _with_range(lambda call, faults: resized(call, "images", faults)), "resize",
        types={"T": (dtypes.QUINT8, dtypes.QINT32, _F32)}),
)  # fmt: skip
