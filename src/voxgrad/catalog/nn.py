# SPDX-License-Identifier: Apache-2.0
"""Activations, losses and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import of_unary
from voxgrad.catalog.locality import channels, elementwise, kept, nothing, per_channel, rows
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    alike,
    broadcast_shapes,
    check_same,
    fixed,
    has_rank,
    like,
    same_shapes,
    scalar_value,
    shaped,
    specs,
    text,
    unknown,
)  # fmt: skip
from voxgrad.errors import Faults

FORMATS = ("NHWC", "NCHW")
_FORMAT = Attr(
    "data_format", "string", "NHWC: the last dimension holds the channels. NCHW: the second.", "NHWC", choices=FORMATS
)
_NAN = Law("nan", "NaN in, NaN out.")


def _activation(
    name: str, summary: str, kernel: str, gradient: Gradient, types: tuple[DType, ...] = dtypes.FLOATING, **more: Any
) -> Op:
    """An activation function."""
    return Op(
        name, "nn", summary, (Input("features", "T", "The tensor."),), more.pop("attrs", ()),
        (Output("activations", "T", "The result, element by element.", "shape of features"),), {"T": types},
        infer=like("features"), kernel=f"nn.{kernel}", gradient=gradient, laws=(_NAN,), follows=elementwise, **more,
    )  # fmt: skip


def _activation_grad(
    name: str, of: str, kernel: str, gradient: Gradient, types: tuple[DType, ...] = dtypes.FLOATING, **more: Any
) -> Op:
    """The gradient of an activation function; `features` or `outputs` says what it looks at."""
    seen = more.pop("seen", "features")
    return Op(
        name, "nn", f"Gradient of {of} with respect to its input.",
        (Input("gradients", "T", f"The gradient with respect to the output of {of}."),
         Input(seen, "T", f"The {'input' if seen == 'features' else 'output'} of {of}; same shape.")),
        more.pop("attrs", ()),
        (Output("backprops", "T", f"The gradient with respect to the input of {of}.", "shape of gradients"),),
        {"T": types},
        infer=alike("gradients", seen), kernel=f"nn.{kernel}", gradient=gradient, linear_in=("gradients",),
        follows=elementwise, **more,
    )  # fmt: skip


def _by_output(name: str) -> Gradient:
    return of_unary(lambda build, x, y, dy: getattr(build, name)(dy, y))


def _by_input(name: str) -> Gradient:
    return of_unary(lambda build, x, y, dy: getattr(build, name)(dy, x))


def _piecewise(name: str) -> Gradient:
    """The gradient of a gradient whose slope is constant on each side."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        seen = node.inputs[1]
        return getattr(build, name)(dys[0], seen, **node.attrs), build.ZerosLike(seen)

    return gradient


def _exponential(name: str) -> Gradient:
    """The gradient of EluGrad and SeluGrad: below 0 the slope is the output plus a constant."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        grads, outputs = node.inputs
        curved = build.Mul(dys[0], grads)
        below = build.Less(outputs, build.ZerosLike(outputs))
        return getattr(build, name)(dys[0], outputs), build.SelectV2(below, curved, build.ZerosLike(curved))

    return gradient


def _softplus_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    grads, x = node.inputs
    curve = build.AddV2(build.AddV2(build.Exp(build.Neg(x)), 2), build.Exp(x))
    return build.SoftplusGrad(dys[0], x), build.RealDiv(build.Mul(dys[0], grads), curve)


def _softsign_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    grads, x = node.inputs
    one = build.AddV2(build.Abs(x), 1)
    curve = build.RealDiv(build.Mul(build.Sign(x), -2), build.Mul(build.Square(one), one))
    return build.SoftsignGrad(dys[0], x), build.Mul(build.Mul(dys[0], grads), curve)


def _leaky_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.LeakyReluGrad(dys[0], node.inputs[0], alpha=node.attrs["alpha"]),)


def _softmax_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y = node.outputs[0]
    mean = build.Sum(build.Mul(dys[0], y), [-1], keep_dims=True)
    return (build.Mul(build.Sub(dys[0], mean), y),)


def _log_softmax_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    total = build.Sum(dys[0], [-1], keep_dims=True)
    return (build.Sub(dys[0], build.Mul(total, build.Exp(node.outputs[0]))),)


def _rows(call: Call, name: str, faults: Faults) -> Shape | None:
    has_rank(call, name, 1, faults, at_least=True)
    shape: Shape | None = call.inputs[name].shape
    return shape


def _entropy_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shapes = [call.inputs[name].shape for name in ("features", "labels")]
    if None in shapes:
        return specs(call, None, None)
    shape = broadcast_shapes(*shapes)
    if shape is None or len(shape) != 2:
        wanted = f"have rank 2 and broadcast with features, {text(shapes[0])}"
        faults.add("VG012", "labels", wanted=wanted, got=text(shapes[1]))
        return None
    return specs(call, (shape[0],), shape)


def _sparse_entropy_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    features, labels = call.inputs["features"].shape, call.inputs["labels"].shape
    has_rank(call, "features", 2, faults)
    has_rank(call, "labels", 1, faults)
    if not faults and features is not None and labels is not None and differ(features[0], labels[0]):
        faults.add("VG012", "labels", wanted=f"have one entry per row of features, {features[0]}", got=text(labels))
    if not faults and features is not None and known(features[1]) and features[1] == 0:
        faults.add("VG017", "features", wanted="have at least one class", got=text(features))
    if faults:
        return None
    rows = labels if features is None else (features[0],)
    return specs(call, rows, features)


def _entropy_logits(build: Any, node: Node, dys: Sequence[Any]) -> Any:
    """dloss per row times the stored gradient, and the second-order part where that is used itself."""
    logits, stored = node.inputs[0], node.outputs[1]
    parts = []
    if dys[0] is not None:
        parts.append(build.Mul(build.ExpandDims(dys[0], -1), stored))
    if len(dys) > 1 and dys[1] is not None:
        soft = build.Softmax(logits)
        mean = build.Sum(build.Mul(dys[1], soft), [-1], keep_dims=True)
        parts.append(build.Mul(build.Sub(dys[1], mean), soft))
    return parts[0] if len(parts) == 1 else build.AddV2(*parts)


def _entropy_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    if dys[0] is None:
        return _entropy_logits(build, node, dys), None
    logs = build.LogSoftmax(node.inputs[0])
    return _entropy_logits(build, node, dys), build.Neg(build.Mul(build.ExpandDims(dys[0], -1), logs))


def _sparse_entropy_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return _entropy_logits(build, node, dys), None


def _bias_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["value"].shape
    bias = call.inputs["bias"].shape
    has_rank(call, "bias", 1, faults)
    channels_first = call.attrs.get("data_format") == "NCHW"
    fine = has_rank(call, "value", 2, faults, at_least=True) and not faults
    if fine and shape is not None and bias is not None:
        channels = shape[1 if channels_first else -1]
        if differ(channels, bias[0]):
            faults.add("VG013", "bias", wanted=f"have one entry per channel of value, {channels}", got=text(bias))
    return shape


def _bias_grad_rule(call: Call, faults: Faults) -> Shape | None:
    channels_first = call.attrs.get("data_format") == "NCHW"
    if not has_rank(call, "out_backprop", 2, faults, at_least=True):
        return None
    return (call.inputs["out_backprop"].shape[1 if channels_first else -1],)


def _bias_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return dys[0], build.BiasAddGrad(dys[0], data_format=node.attrs.get("data_format", "NHWC"))


def _bias_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    shape, dy = build.Shape(node.inputs[0]), dys[0]
    if node.attrs["data_format"] == "NCHW":
        rest = build.Fill(build.ExpandDims(build.Sub(build.Size(shape), 2), 0), 1)
        dy = build.Reshape(dy, build.ConcatV2([[1], build.Shape(dy), rest], 0))
    return (build.BroadcastTo(dy, shape),)


_ALPHA = (Attr("alpha", "float", "The slope below 0.", 0.2),)
_ENTROPY_OUT = (Output("loss", "T", "The loss of each row.", "[rows]"),
                Output("backprop", "T", "The gradient with respect to features.", "[rows, classes]"))  # fmt: skip

ACTIVATIONS = (
    _activation("Relu", "max(x, 0).", "relu", _by_output("ReluGrad"), dtypes.REAL),
    _activation_grad("ReluGrad", "Relu", "relu_grad", _piecewise("ReluGrad"), dtypes.REAL),
    _activation("Relu6", "min(max(x, 0), 6).", "relu6", _by_output("Relu6Grad"), dtypes.REAL),
    _activation_grad("Relu6Grad", "Relu6", "relu6_grad", _piecewise("Relu6Grad"), dtypes.REAL),
    _activation("LeakyRelu", "x above 0, alpha * x below.", "leaky_relu", _leaky_gradient, attrs=_ALPHA,
                type_defaults={"T": dtypes.FLOAT32}),
    _activation_grad("LeakyReluGrad", "LeakyRelu", "leaky_relu_grad", _piecewise("LeakyReluGrad"), attrs=_ALPHA,
                     type_defaults={"T": dtypes.FLOAT32}),
    _activation("Elu", "x above 0, exp(x) - 1 below.", "elu", _by_output("EluGrad")),
    _activation_grad("EluGrad", "Elu", "elu_grad", _exponential("EluGrad"), seen="outputs"),
    _activation("Selu", "scale * x above 0, scale * alpha * (exp(x) - 1) below, with the fixed points of Klambauer.",
                "selu", _by_output("SeluGrad")),
    _activation_grad("SeluGrad", "Selu", "selu_grad", _exponential("SeluGrad"), seen="outputs"),
    _activation("Softplus", "log(exp(x) + 1).", "softplus", _by_input("SoftplusGrad")),
    _activation_grad("SoftplusGrad", "Softplus", "softplus_grad", _softplus_grad_gradient),
    _activation("Softsign", "x / (|x| + 1).", "softsign", _by_input("SoftsignGrad")),
    _activation_grad("SoftsignGrad", "Softsign", "softsign_grad", _softsign_grad_gradient),
)  # fmt: skip

_LRN_ATTRS = (
    Attr("depth_radius", "int", "How many channels on each side count.", 5),
    Attr("bias", "float", "Keeps the divisor from 0.", 1.0),
    Attr("alpha", "float", "The weight of the squares.", 1.0),
    Attr("beta", "float", "The power of the divisor.", 0.5),
)
_LRN_TYPES = {"T": (dtypes.HALF, dtypes.BFLOAT16, dtypes.FLOAT32)}


def _lrn_rule(call: Call, faults: Faults) -> Shape | None:
    _check_radius(call, faults)
    has_rank(call, "input", 4, faults)
    shape: Shape | None = call.inputs["input"].shape
    return shape


def _lrn_grad_rule(call: Call, faults: Faults) -> Shape | None:
    _check_radius(call, faults)
    return same_shapes(call, ("input_grads", "input_image", "output_image"), faults)


def _check_radius(call: Call, faults: Faults) -> None:
    radius = call.attrs.get("depth_radius", 0)
    if radius < 0:
        faults.add("VG003", "depth_radius", wanted="be 0 or more", got=radius)


def _lrn_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.LRNGrad(dys[0], node.inputs[0], node.outputs[0], **node.attrs),)


def _top_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    count: Any = call.attrs["k"] if "k" in call.attrs else scalar_value(call.inputs["k"])
    if not has_rank(call, "input", 1, faults, at_least=True):
        return None if faults else specs(call, None, None)
    shape = call.inputs["input"].shape
    if known(count) and (count < 0 or (known(shape[-1]) and count > shape[-1])):
        faults.add("VG003", "k", wanted=f"be in [0, {shape[-1]}], the last size of input", got=count)
        return None
    kept = (*shape[:-1], unknown(call, "k") if count is None else count)
    return specs(call, kept, kept)


def _top_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, places = node.inputs[0], build.Cast(node.outputs[1], DstT=dtypes.INT32)
    shape = build.Shape(x)
    columns = build.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    kept = build.StridedSlice(build.Shape(places), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    count = build.Prod(build.StridedSlice(shape, [0], [-1], [1], begin_mask=1), [0])
    rows = build.Reshape(places, build.Pack([count, kept]))
    flat = build.AddV2(rows, build.ExpandDims(build.Mul(build.Range(0, count, 1), columns), 1))
    total = build.Reshape(build.Size(x), [1])
    spread = build.ScatterNd(build.Reshape(flat, [-1, 1]), build.Reshape(dys[0], [-1]), total)
    return build.Reshape(spread, shape), *([None] * (len(node.inputs) - 1))


def _in_top_rule(call: Call, faults: Faults) -> Shape | None:
    has_rank(call, "predictions", 2, faults)
    has_rank(call, "targets", 1, faults)
    rows = call.inputs["predictions"].shape
    targets: Shape | None = call.inputs["targets"].shape
    if not faults and rows is not None:
        check_same("targets", targets, (rows[0],), "one entry per row of predictions", faults)
    return targets


_K = Attr("k", "int", "How many.")
_SORTED = Attr("sorted", "bool", "Largest first; always so here.", True)
_TOP = (Law("ties", "Of equal elements the one with the lower index comes first."),)

LOSSES = (
    Op("Softmax", "nn", "exp(x) / sum(exp(x)) over the last dimension.",
       (Input("logits", "T", "The logits.", "[..., classes]"),),
       outputs=(Output("softmax", "T", "Probabilities.", "shape of logits"),), types={"T": dtypes.FLOATING},
       infer=shaped(lambda call, faults: _rows(call, "logits", faults)), kernel="nn.softmax",
       gradient=_softmax_gradient, follows=rows),
    Op("LogSoftmax", "nn", "The logarithm of Softmax, exact where that underflows.",
       (Input("logits", "T", "The logits.", "[..., classes]"),),
       outputs=(Output("logsoftmax", "T", "Logarithms of probabilities.", "shape of logits"),),
       types={"T": dtypes.FLOATING},
       infer=shaped(lambda call, faults: _rows(call, "logits", faults)), kernel="nn.log_softmax",
       gradient=_log_softmax_gradient, follows=rows),
    Op("SoftmaxCrossEntropyWithLogits", "nn",
       "The cross entropy between Softmax(features) and labels, with its gradient.",
       (Input("features", "T", "The logits.", "[rows, classes]"),
        Input("labels", "T", "Probabilities; each row adds up to 1.", "[rows, classes]")),
       outputs=_ENTROPY_OUT, types={"T": dtypes.FLOATING}, infer=_entropy_infer, kernel="nn.softmax_cross_entropy",
       gradient=_entropy_gradient, laws=(Law("broadcast", "features and labels broadcast with each other."),)),
    Op("SparseSoftmaxCrossEntropyWithLogits", "nn",
       "The cross entropy between Softmax(features) and one class per row.",
       (Input("features", "T", "The logits.", "[rows, classes]"),
        Input("labels", "Tlabels", "The class of each row.", "[rows]")),
       outputs=_ENTROPY_OUT, types={"T": dtypes.FLOATING, "Tlabels": dtypes.INDEX},
       type_defaults={"Tlabels": dtypes.INT64},
       infer=_sparse_entropy_infer, kernel="nn.sparse_softmax_cross_entropy", gradient=_sparse_entropy_gradient,
       laws=(Law("range", "A class outside is an error."),)),
    Op("L2Loss", "nn", "Half the sum of squares.", (Input("t", "T", "The tensor."),),
       outputs=(Output("output", "T", "sum(t * t) / 2.", "[]"),), types={"T": dtypes.FLOATING}, infer=fixed(()),
       kernel="nn.l2_loss", gradient=of_unary(lambda build, x, y, dy: build.Mul(x, dy)),
       follows=nothing, adds_up="sum"),
    Op("BiasAdd", "nn", "One number added per channel.",
       (Input("value", "T", "The tensor."), Input("bias", "T", "One number per channel.", "[channels]")), (_FORMAT,),
       (Output("output", "T", "The sum.", "shape of value"),), {"T": dtypes.NUMBER}, infer=shaped(_bias_rule),
       kernel="nn.bias_add", gradient=_bias_gradient, follows=per_channel),
    Op("BiasAddV1", "nn", "One number added per channel of the last dimension; the older form of BiasAdd.",
       (Input("value", "T", "The tensor."), Input("bias", "T", "One number per channel.", "[channels]")),
       outputs=(Output("output", "T", "The sum.", "shape of value"),), types={"T": dtypes.NUMBER},
       infer=shaped(_bias_rule),
       kernel="nn.bias_add", gradient=_bias_gradient, follows=per_channel),
    Op("BiasAddGrad", "nn", "Gradient of BiasAdd with respect to bias: the sum over all but the channels.",
       (Input("out_backprop", "T", "The gradient with respect to the output."),), (_FORMAT,),
       (Output("output", "T", "The gradient with respect to bias.", "[channels]"),), {"T": dtypes.NUMBER},
       infer=shaped(_bias_grad_rule), kernel="nn.bias_add_grad", gradient=_bias_grad_gradient,
       linear_in=("out_backprop",), follows=channels, adds_up="sum"),
    Op("LRN", "nn", "Local response normalisation: each channel divided by a power of the squares around it.",
       (Input("input", "T", "The images.", "[N, H, W, C]"),), _LRN_ATTRS,
       (Output("output", "T", "The normalised images.", "shape of input"),), _LRN_TYPES, {"T": dtypes.FLOAT32},
       infer=shaped(_lrn_rule), kernel="nn.lrn", gradient=_lrn_gradient, follows=rows,
       lies=kept("input")),
    Op("LRNGrad", "nn", "Gradient of LRN with respect to its input.",
       (Input("input_grads", "T", "The gradient with respect to the output.", "[N, H, W, C]"),
        Input("input_image", "T", "The input of LRN."), Input("output_image", "T", "The output of LRN.")), _LRN_ATTRS,
       (Output("output", "T", "The gradient.", "shape of input_grads"),), _LRN_TYPES, {"T": dtypes.FLOAT32},
       infer=shaped(_lrn_grad_rule), kernel="nn.lrn_grad", linear_in=("input_grads",),
       follows=rows, lies=kept("input_grads", "input_image")),
    Op("InTopK", "nn", "Whether the target of each row is among its k largest predictions.",
       (Input("predictions", dtypes.FLOAT32, "Scores.", "[rows, classes]"),
        Input("targets", "T", "One class per row.", "[rows]")),
       (_K,), (Output("precision", dtypes.BOOL, "True where it is.", "[rows]"),), {"T": dtypes.INDEX},
       {"T": dtypes.INT32},
       infer=shaped(_in_top_rule), kernel="nn.in_top_k",
       laws=(Law("ties", "Classes tied with the k-th count as in."),
             Law("nan", "A row with a score that is not finite at its target is out."))),
    Op("TopK", "nn", "The k largest elements along the last dimension; the older form of TopKV2.",
       (Input("input", "T", "The tensor.", "[..., n]"),), (_K, _SORTED),
       (Output("values", "T", "The elements, largest first.", "[..., k]"),
        Output("indices", dtypes.INT32, "Their places.", "[..., k]")),
       {"T": dtypes.REAL}, infer=_top_infer, kernel="nn.top_k_attr", gradient=_top_gradient, laws=_TOP,
       deprecated="Use TopKV2 instead"),
    Op("TopKV2", "nn", "The k largest elements along the last dimension.",
       (Input("input", "T", "The tensor.", "[..., n]"), Input("k", "Tk", "How many.", "[]", host=True)),
       (_SORTED,
        Attr("index_type", "type", "The type of the places.", dtypes.INT32, choices=(dtypes.INT16, *dtypes.INDEX))),
       (Output("values", "T", "The elements, largest first.", "[..., k]"),
        Output("indices", "index_type", "Their places.", "[..., k]")),
       {"T": dtypes.REAL, "Tk": (dtypes.INT16, *dtypes.INDEX), "index_type": (dtypes.INT16, *dtypes.INDEX)},
       {"Tk": dtypes.INT32}, infer=_top_infer, kernel="nn.top_k", gradient=_top_gradient, laws=_TOP),
)  # fmt: skip

OPS = (*ACTIVATIONS, *LOSSES)
