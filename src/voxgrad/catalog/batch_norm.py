# SPDX-License-Identifier: Apache-2.0
"""FusedBatchNorm in its three forms, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.locality import kept
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Spec
from voxgrad.catalog.shapes import has_rank, same_shapes, specs, text, unknown
from voxgrad.errors import Faults

_EPSILON = Attr("epsilon", "float", "Added to the variance.", 1e-4)
_FACTOR = Attr("exponential_avg_factor", "float", "The share of this batch in the running mean and variance.", 1.0)
_TRAINING = Attr("is_training", "bool", "True: normalise with the batch's own mean and variance.", True)
_LAWS = (
    Law("variance", "Normalised with the variance over n; batch_variance is the one over n - 1."),
    Law("precision", "half and bfloat16 are computed in float32."),
    Law("reserve", "reserve_space_1 and 2 hold the mean and the variance over n, as on TensorFlow's CPU."),
)


def _format(wide: bool) -> Attr:
    choices = ("NHWC", "NCHW", "NDHWC", "NCDHW") if wide else ("NHWC", "NCHW")
    return Attr("data_format", "string", "Where the channels are: C.", "NHWC", choices=choices)


def channel_axis(data_format: str) -> int:
    """The dimension that holds the channels."""
    return 1 if data_format.startswith("NC") else len(data_format) - 1


def _channels(call: Call, name: str, faults: Faults) -> Any:
    layout = call.attrs.get("data_format", "NHWC")
    if not has_rank(call, name, len(layout), faults):
        return unknown(call, "channels")
    shape = call.inputs[name].shape
    channels = shape[channel_axis(layout)]
    for item in call.op.inputs:
        given = call.inputs[item.name].shape
        if item.shape == "[channels]" and given is not None and (len(given) != 1 or differ(given[0], channels)):
            unused = call.attrs.get("is_training") and call.attrs.get("exponential_avg_factor") == 1
            if given == (0,) and unused and item.name in ("mean", "variance"):
                continue
            faults.add("VG013", item.name, wanted=f"have one entry per channel, {channels}", got=text(given))
    return channels


def _forward_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    channels = (_channels(call, "x", faults),)
    extra = [()] if len(call.op.outputs) == 6 else []
    return None if faults else specs(call, call.inputs["x"].shape, *([channels] * 4), *extra)


def _gradient_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    channels = (_channels(call, "x", faults),)
    same_shapes(call, ("x", "y_backprop"), faults)
    return None if faults else specs(call, call.inputs["x"].shape, channels, channels, (0,), (0,))


def _gradient(name: str) -> Any:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        x, scale, _, mean, variance = node.inputs
        dx = dscale = doffset = None
        if dys[0] is not None:
            attrs = {key: node.attrs[key] for key in ("epsilon", "data_format", "is_training")}
            saved = [*node.outputs[3:]] if node.attrs["is_training"] else [mean, variance, *node.outputs[5:]]
            dx, dscale, doffset, *_ = getattr(build, name)(dys[0], x, scale, *saved, **attrs)
        if all(one is None for one in dys[1:5]):
            return dx, dscale, doffset, None, None
        part = _Channels(build, node.attrs["data_format"])
        parts, dmean, dvariance = _through_outputs(part, node, [part.data(one) for one in dys[1:5]])
        kinds = [getattr(value, "dtype", dtypes.FLOAT32) for value in (x, mean, variance)]
        parts += [] if dx is None else [part.data(dx)]
        dx, dmean, dvariance = (
            _added(build, one, kind) for one, kind in zip((parts, dmean, dvariance), kinds, strict=True)
        )
        return dx, dscale, doffset, dmean, dvariance

    return gradient


def _through_outputs(part: _Channels, node: Node, dys: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What x, the running mean and the running variance get from the mean and the variance that come out.

    The last two of `dys` belong to the statistics that were used, the first two to those after blending.
    """
    build, training = part.build, node.attrs["is_training"]
    share = node.attrs["exponential_avg_factor"] if training else 0.0
    blended = [[] if one is None or share == 1 else [build.Mul(one, 1 - share)] for one in dys[:2]]
    used = [[] if one is None else [one] for one in dys[2:]]
    if not training:
        return [], blended[0] + used[0], blended[1] + used[1]
    x, scale, mean = (part.data(value) for value in (node.inputs[0], node.inputs[1], node.outputs[3]))
    count = part.count(x, scale)
    shares = share, build.Mul(build.RealDiv(count, build.Maximum(build.Sub(count, 1), 1)), share)
    for parts, one, factor in zip(used, dys[:2], shares, strict=True):
        parts += [] if one is None else [build.Mul(one, factor)]
    along = []
    if used[0]:
        level = build.RealDiv(_added(build, used[0], dtypes.FLOAT32), count)
        along.append(build.BroadcastTo(part.spread(level), build.Shape(x)))
    if used[1]:
        slope = build.RealDiv(build.Mul(_added(build, used[1], dtypes.FLOAT32), 2), count)
        along.append(build.Mul(build.Sub(x, part.spread(mean)), part.spread(slope)))
    return along, blended[0], blended[1]


class _Channels:
    """Arithmetic per channel, in float32, for gradients: vectors of channels and data that they broadcast with."""

    def __init__(self, build: Any, data_format: str):
        self.build, self.layout = build, data_format
        at = channel_axis(data_format)
        self.axes = [axis for axis in range(len(data_format)) if axis != at]

    def data(self, value: Any) -> Any:
        """The data in float32; None where there is none."""
        return None if value is None else self.build.Cast(value, DstT=dtypes.FLOAT32)

    def spread(self, vector: Any) -> Any:
        """A vector of channels in a shape that broadcasts with the data."""
        if channel_axis(self.layout) == 1:
            for _ in self.layout[2:]:
                vector = self.build.ExpandDims(vector, -1)
        return vector

    def mean(self, data: Any) -> Any:
        """The mean of every channel."""
        return self.build.Mean(data, self.axes)

    def total(self, data: Any) -> Any:
        """The sum of every channel."""
        return self.build.Sum(data, self.axes)

    def count(self, data: Any, vector: Any) -> Any:
        """The cells of a channel."""
        build = self.build
        return build.Cast(build.FloorDiv(build.Size(data), build.Maximum(build.Size(vector), 1)), DstT=dtypes.FLOAT32)

    def centred(self, data: Any, hat: Any) -> Any:
        """The data without their mean and without what goes along with the normalised x."""
        build = self.build
        along = self.mean(build.Mul(data, hat))
        return build.Sub(build.Sub(data, self.spread(self.mean(data))), build.Mul(hat, self.spread(along)))


def _forward_made_of(build: Any, node: Node) -> Sequence[Any]:
    """The op by means over the batch, and arithmetic per channel."""
    part = _Channels(build, node.attrs["data_format"])
    x, scale, offset, mean, variance = (part.data(value) for value in node.inputs)
    used, blended = [mean, variance], [mean, variance]
    if node.attrs["is_training"]:
        used = [part.mean(x)]
        used.append(part.mean(build.SquaredDifference(x, part.spread(used[0]))))
        count = part.count(x, scale)
        unbiased = build.RealDiv(count, build.Maximum(build.Sub(count, 1), 1))
        blended = [used[0], build.Mul(used[1], unbiased)]
        share = node.attrs["exponential_avg_factor"]
        if share != 1:
            olds = (mean, variance)
            blended = [
                build.AddV2(build.Mul(old, 1 - share), build.Mul(new, share))
                for old, new in zip(olds, blended, strict=True)
            ]
    factor = build.RealDiv(scale, build.Sqrt(build.AddV2(used[1], node.attrs["epsilon"])))
    centred = build.Sub(x, part.spread(used[0]))
    y = build.AddV2(build.Mul(centred, part.spread(factor)), part.spread(offset))
    kinds = [getattr(value, "dtype", dtypes.FLOAT32) for value in node.inputs[:2]]
    found = [build.Cast(y, DstT=kinds[0]), *(build.Cast(one, DstT=kinds[1]) for one in (*blended, *used))]
    return [*found, *[build.Cast(0, DstT=kinds[1])] * (len(node.outputs) - 5)]


def _backward_made_of(build: Any, node: Node) -> Sequence[Any]:
    """The op by sums over the batch, and arithmetic per channel."""
    part = _Channels(build, node.attrs["data_format"])
    dy, x, scale, mean, variance = (part.data(value) for value in node.inputs[:5])
    inverse = build.Rsqrt(build.AddV2(variance, node.attrs["epsilon"]))
    centred = build.Sub(x, part.spread(mean))
    total, weighted = part.total(dy), part.total(build.Mul(dy, centred))
    dx = dy
    if node.attrs["is_training"]:
        count = part.count(x, scale)
        slope = build.Mul(build.RealDiv(weighted, count), build.Square(inverse))
        level = build.Sub(dy, part.spread(build.RealDiv(total, count)))
        dx = build.Sub(level, build.Mul(centred, part.spread(slope)))
    dx = build.Mul(dx, part.spread(build.Mul(scale, inverse)))
    kinds = [getattr(value, "dtype", dtypes.FLOAT32) for value in (node.inputs[1], node.inputs[3])]
    sums = (build.Cast(one, DstT=kinds[1]) for one in (build.Mul(weighted, inverse), total))
    empty = build.Cast(build.Fill([0], 0.0), DstT=kinds[1])
    return [build.Cast(dx, DstT=kinds[0]), *sums, empty, empty]


def _second_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """The gradient of the gradient; while training, mean and variance are functions of x.

    With hat = (x - mean) * r and P(u) = u - mean(u) - hat * mean(u * hat), the op computes dx = scale * r * P(dy),
    dscale = sum(dy * hat) and doffset = sum(dy).
    """
    part = _Channels(build, node.attrs["data_format"])
    dy, x, scale, mean, variance = (part.data(value) for value in node.inputs[:5])
    along_dx, along_dscale, along_doffset = (part.data(value) for value in dys[:3])
    training = node.attrs["is_training"]
    r = build.Rsqrt(build.AddV2(variance, node.attrs["epsilon"]))
    hat = build.Mul(build.Sub(x, part.spread(mean)), part.spread(r))
    rate = build.Mul(scale, r)
    to_dy, to_x, to_scale = [], [], []
    if along_dx is not None:
        held = part.centred(along_dx, hat) if training else along_dx
        to_dy.append(build.Mul(held, part.spread(rate)))
        shown = part.centred(dy, hat) if training else dy
        to_scale.append(build.Mul(part.total(build.Mul(along_dx, shown)), r))
        if training:
            to_x += _through_statistics(part, (along_dx, dy, shown), (rate, r), hat)
    if along_dscale is not None:
        to_dy.append(build.Mul(hat, part.spread(along_dscale)))
        slope = build.Mul(dy, part.spread(build.Mul(along_dscale, r)))
        to_x.append(part.centred(slope, hat) if training else slope)
    if along_doffset is not None:
        to_dy.append(build.BroadcastTo(part.spread(along_doffset), build.Shape(x)))
    kinds = [getattr(value, "dtype", dtypes.FLOAT32) for value in node.inputs[:3]]
    sums = [_added(build, parts, kind) for parts, kind in zip((to_dy, to_x, to_scale), kinds, strict=True)]
    return *sums, *([None] * (len(node.inputs) - 3))


def _through_statistics(part: _Channels, data: tuple[Any, Any, Any], rates: tuple[Any, Any], hat: Any) -> list[Any]:
    """How dx changes with x through the mean and the variance."""
    build, (g, dy, shown), (rate, r) = part.build, data, rates
    shrink = build.Neg(build.Mul(build.Mul(rate, r), part.mean(build.Mul(g, shown))))
    turned = build.AddV2(
        build.Mul(g, part.spread(part.mean(build.Mul(dy, hat)))),
        build.Mul(dy, part.spread(part.mean(build.Mul(g, hat)))),
    )
    pulled = part.centred(build.Mul(turned, part.spread(build.Neg(build.Mul(rate, r)))), hat)
    return [build.Mul(hat, part.spread(shrink)), pulled]


def _added(build: Any, parts: list[Any], kind: Any) -> Any:
    if not parts:
        return None
    return build.Cast(parts[0] if len(parts) == 1 else build.AddN(parts), DstT=kind)


def _forward(name: str, types: dict[str, tuple[DType, ...]], stat: str, gradient: str, *, reserves: int) -> Op:
    doc = "Kept for the gradient."
    return Op(
        name, "nn", "Batch normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset, per channel.",
        (Input("x", "T", "The data.", "as data_format says", layout="data"),
         Input("scale", stat, "The factor.", "[channels]"),
         Input("offset", stat, "The summand.", "[channels]"),
         Input("mean", stat, "The mean to use, or the running mean while training.", "[channels]"),
         Input("variance", stat, "The variance to use, or the running one while training.", "[channels]")),
        (_EPSILON, _FACTOR, _format(reserves == 3), _TRAINING),
        (Output("y", "T", "The normalised data.", "shape of x", layout="data"),
         Output("batch_mean", stat, "The mean, blended by exponential_avg_factor.", "[channels]"),
         Output("batch_variance", stat, "The variance, blended likewise.", "[channels]"),
         *(Output(f"reserve_space_{index}", stat, doc, "[channels]" if index < 3 else "[]")
           for index in range(1, reserves + 1))),
        types, infer=_forward_infer, kernel="batch_norm.forward", gradient=_gradient(gradient), laws=_LAWS,
        lies=kept("x"), made_of=_forward_made_of,
    )  # fmt: skip


def _backward(name: str, types: dict[str, tuple[DType, ...]], stat: str, *, wide: bool) -> Op:
    first = 4 if wide else 3
    extra = (Input("reserve_space_3", stat, "The third reserve; not used on the CPU."),) if wide else ()
    scale = dtypes.FLOAT32 if stat == "U" else stat
    return Op(
        name, "nn", "Gradient of FusedBatchNorm with respect to x, scale and offset.",
        (Input("y_backprop", "T", "The gradient with respect to y.", layout="data"),
         Input("x", "T", "The data.", layout="data"), Input("scale", scale, "The factor.", "[channels]"),
         Input("reserve_space_1", stat, "The mean.", "[channels]"),
         Input("reserve_space_2", stat, "The variance.", "[channels]"),
         *extra),
        (_EPSILON, _format(wide), _TRAINING),
        (Output("x_backprop", "T", "The gradient with respect to x.", "shape of x", layout="data"),
         Output("scale_backprop", stat, "The gradient with respect to scale.", "[channels]"),
         Output("offset_backprop", stat, "The gradient with respect to offset.", "[channels]"),
         Output(f"reserve_space_{first}", stat, "Empty.", "[0]"),
         Output(f"reserve_space_{first + 1}", stat, "Empty.", "[0]")),
        types, infer=_gradient_infer, kernel="batch_norm.backward", laws=_LAWS, linear_in=("y_backprop",),
        gradient=_second_gradient, lies=kept("y_backprop", "x"), made_of=_backward_made_of,
    )  # fmt: skip


_NARROW: dict[str, tuple[DType, ...]] = {"T": (dtypes.FLOAT32,)}
_MIXED = (dtypes.HALF, dtypes.BFLOAT16, dtypes.FLOAT32)

OPS = (
    _forward("FusedBatchNorm", _NARROW, "T", "FusedBatchNormGrad", reserves=2),
    _forward("FusedBatchNormV2", {"T": _MIXED, "U": (dtypes.FLOAT32,)}, "U", "FusedBatchNormGradV2", reserves=2),
    _forward("FusedBatchNormV3", {"T": _MIXED, "U": (dtypes.BFLOAT16, dtypes.FLOAT32)}, "U", "FusedBatchNormGradV3",
             reserves=3),
    _backward("FusedBatchNormGrad", _NARROW, "T", wide=False),
    _backward("FusedBatchNormGradV2", {"T": _MIXED, "U": (dtypes.FLOAT32,)}, "U", wide=False),
    _backward("FusedBatchNormGradV3", {"T": _MIXED, "U": (dtypes.FLOAT32,)}, "U", wide=True),
)  # fmt: skip
