# SPDX-License-Identifier: Apache-2.0
"""Windows over images that are neither sums nor plain maxima: patches, dilations, places of maxima, odd sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import check_same, has_rank, shaped, specs, stated_shape, text, unknown
from voxgrad.catalog.windows2d import PLAIN_PADDING, pool_shape, pooled
from voxgrad.errors import Faults

_IMAGES = "[N, H, W, C]"
_STRIDES = Attr("strides", "ints", "Step of the window in every dimension; 1 for batch and channels.", length=4)
_KSIZE = Attr("ksize", "ints", "Size of the window in every dimension; 1 for batch and channels.", length=4)
_RATES = Attr("rates", "ints", "Distance of neighbouring taps in every dimension; 1 for batch and channels.", length=4)


def _patches_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "images", 4, faults):
        return None
    shape = pool_shape(call, call.inputs["images"].shape, faults)
    return None if shape is None else (*shape[:3], shape[3] * math.prod(call.attrs["ksizes"]))


def _patches_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """Every cell gets what its copies got: their places are found by cutting a map of cell numbers alike."""
    batch, rows, columns, channels = build.Unpack(build.Shape(node.inputs[0]), num=4)
    cells = build.Mul(rows, columns)
    one = build.Cast(1, DstT=dtypes.INT32)
    numbers = build.Reshape(build.Range(one, build.AddV2(cells, one), one), build.Pack([one, rows, columns, one]))
    places = build.Sub(build.Reshape(build.ExtractImagePatches(numbers, **node.attrs), [-1]), one)
    copies = build.Size(places)
    apart = build.Reshape(dys[0], build.Pack([batch, copies, channels]))
    # A cell outside of the image has the number -1: such rows are left out of the sum.
    total = build.UnsortedSegmentSum(build.Transpose(apart, [1, 0, 2]), places, cells)
    return (build.Reshape(build.Transpose(total, [1, 0, 2]), build.Shape(node.inputs[0])),)


def _dilation_shape(call: Call, faults: Faults) -> Shape | None:
    fine = has_rank(call, "input", 4, faults), has_rank(call, "filter", 3, faults)
    if not all(fine):
        return None
    data, taps = call.inputs["input"].shape, call.inputs["filter"].shape
    if differ(data[3], taps[2]):
        faults.add("VG013", "filter", wanted=f"have the {data[3]} channels of input", got=text(taps))
    if any(known(size) and size < 1 for size in taps):
        faults.add("VG017", "filter", wanted="have a tap at least", got=text(taps))
    return None if faults else pooled(call, data, (taps[0], taps[1]), data[3], faults)


def _dilation_grad(of: str) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        out = _dilation_shape(call, faults)
        check_same("out_backprop", call.inputs["out_backprop"].shape, out, "the shape of the output", faults)
        shape: Shape | None = call.inputs[of].shape
        return shape

    return rule


def _dilation_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, w = node.inputs
    return tuple(getattr(build, f"Dilation2DBackprop{of}")(x, w, dys[0], **node.attrs) for of in ("Input", "Filter"))


def _argmax_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    if not has_rank(call, "input", 4, faults):
        return None if faults else specs(call, None, None)
    shape = pool_shape(call, call.inputs["input"].shape, faults)
    return None if faults else specs(call, shape, shape)


def _argmax_grad(second: bool) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        if not has_rank(call, "input", 4, faults):
            return None
        data = call.inputs["input"].shape
        out = pool_shape(call, data, faults)
        check_same("argmax", call.inputs["argmax"].shape, out, "the shape of the pool's output", faults)
        why = "the shape of input" if second else "the shape of the pool's output"
        check_same("grad", call.inputs["grad"].shape, data if second else out, why, faults)
        return out if second else data

    return rule


def _argmax_gradient(name: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        attrs = {key: node.attrs[key] for key in ("ksize", "strides", "padding", "include_batch_in_index")}
        if node.outputs[1:]:
            return (getattr(build, name)(node.inputs[0], dys[0], node.outputs[1], **attrs),)
        return None, getattr(build, name)(node.inputs[0], dys[0], node.inputs[2], **attrs), None

    return gradient


def _fraction_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    ratios = call.attrs.get("pooling_ratio", ())
    if len(ratios) != 4 or not all(one >= 1 and math.isfinite(one) for one in ratios):
        faults.add("VG003", "pooling_ratio", wanted="hold four numbers of 1 or more", got=list(ratios))
    elif ratios[0] != 1 or ratios[3] != 1:
        faults.add("VG007", "pooling_ratio", wanted="be 1 for batch and channels", got=list(ratios), unimplemented=True)
    seeds = [call.attrs.get(name, 0) for name in ("seed", "seed2")]
    if not call.attrs.get("deterministic") and any(seeds):
        faults.add("VG003", "seed", wanted="be 0, as seed2, unless deterministic", got=seeds)
    if faults or not has_rank(call, "value", 4, faults):
        return None if faults else specs(call, None, None, None)
    shape = call.inputs["value"].shape
    made = [_fraction(call, shape[at], ratios[at], at, faults) for at in range(4)]
    return None if faults else specs(call, tuple(made), (made[1] + 1,), (made[2] + 1,))


def _fraction(call: Call, size: Any, ratio: float, axis: int, faults: Faults) -> Any:
    if not known(size):
        return unknown(call, f"out[{axis}]") if ratio != 1 else size
    out = int(np.floor(np.float32(size) / np.float32(ratio)))
    if out < 1:
        faults.add("VG016", "value", wanted=f"have {ratio:g} cells or more along axis {axis}", got=f"{size} cells")
    return out


def _fraction_grad(stated: bool) -> Any:
    def rule(call: Call, faults: Faults) -> Shape | None:
        shape = stated_shape(call, "orig_input_tensor_shape", faults) if stated else call.inputs["orig_input"].shape
        if shape is not None and len(shape) != 4:
            faults.add("VG014", call.op.inputs[0].name, wanted="have rank 4", got=text(shape))
        grads = call.inputs["out_backprop"].shape
        if not has_rank(call, "out_backprop", 4, faults) or faults:
            return shape
        for axis, name in enumerate(("row_pooling_sequence", "col_pooling_sequence"), 1):
            check_same(name, call.inputs[name].shape, (grads[axis] + 1,), "the bounds of all windows", faults)
        if not stated:
            check_same("orig_output", call.inputs["orig_output"].shape, grads, "the shape of out_backprop", faults)
        if shape is not None:
            wanted = (shape[0], grads[1], grads[2], shape[3])
            check_same("out_backprop", grads, wanted, "the batch and channels of the input", faults)
        return shape

    return rule


def _avg_fraction_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    shape = build.Cast(build.Shape(node.inputs[0]), DstT=dtypes.INT64)
    return (build.FractionalAvgPoolGrad(shape, dys[0], *node.outputs[1:], overlapping=node.attrs["overlapping"]),)


def _max_fraction_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y, rows, columns = node.outputs
    overlap = node.attrs["overlapping"]
    return (build.FractionalMaxPoolGrad(node.inputs[0], y, dys[0], rows, columns, overlapping=overlap),)


_DILATION = (_STRIDES, _RATES, PLAIN_PADDING)
_DILATED = (Input("input", "T", "The images.", _IMAGES), Input("filter", "T", "What is added.", "[height, width, C]"))
_DILATION_DY = Input("out_backprop", "T", "The gradient with respect to the output.", _IMAGES)
_FIRST = Law("ties", "Of equal cells the first one, row by row, wins.")
_WHOLE = Attr("include_batch_in_index", "bool", "Places count through all images, and not in each anew.", False)
_PLACES = Input("argmax", "Targmax", "The places of the maxima.", _IMAGES)
_ARGMAX_TYPES = {"T": dtypes.REAL, "Targmax": dtypes.INDEX}
_FRACTION_TYPES: dict[str, tuple[DType, ...]] = {"T": (dtypes.FLOAT32, dtypes.FLOAT64, dtypes.INT32, dtypes.INT64)}
_OVERLAP = Attr("overlapping", "bool", "The cell at the bound of two windows belongs to both.", False)
_BOUNDS = tuple(Input(f"{name}_pooling_sequence", dtypes.INT64, f"The bounds of the windows along the {axis}.", "[n]")
                for name, axis in (("row", "height"), ("col", "width")))  # fmt: skip


def _fractional(name: str, what: str, kernel: str, gradient: Gradient) -> Op:
    return Op(
        name, "nn", f"{what} over windows of two sizes in random order, so that the size shrinks by a fraction.",
        (Input("value", "T", "The images.", _IMAGES),),
        (Attr("pooling_ratio", "floats", "How much smaller in every dimension; 1 for batch and channels."),
         Attr("pseudo_random", "bool", "Window sizes in an order that repeats, and not in any.", False), _OVERLAP,
         Attr("deterministic", "bool", "The windows of the first run again in every run.", False),
         Attr("seed", "int", "With seed2: the start of the sequence; both 0 for one that differs every time.", 0),
         Attr("seed2", "int", "The second half of the seed.", 0)),
        (Output("output", "T", f"The {what.lower()} of every window.", _IMAGES),
         *(Output(one.name, dtypes.INT64, one.doc, "[n]") for one in _BOUNDS)), _FRACTION_TYPES,
        infer=_fraction_infer, kernel=f"patches.{kernel}", gradient=gradient,
        laws=(Law("seeds", "The same seeds give the same windows in every session, those of TensorFlow on the CPU."),),
    )  # fmt: skip


OPS = (
    Op("ExtractImagePatches", "array", "Windows of images, their cells one behind the other as channels.",
       (Input("images", "T", "The images.", _IMAGES),),
       (Attr("ksizes", "ints", "Size of the window in every dimension; 1 for batch and channels.", length=4), _STRIDES,
        _RATES, PLAIN_PADDING),
       (Output("patches", "T", "The windows.", "[N, H, W, height * width * C]"),),
       {"T": (*dtypes.FLOATING, *dtypes.INTEGERS, *dtypes.COMPLEX, dtypes.BOOL)}, infer=shaped(_patches_rule),
       kernel="patches.extract", gradient=_patches_gradient, linear_in=("images",),
       laws=(Law("padding", "Cells outside are 0."),)),
    Op("Dilation2D", "nn", "The maximum over windows of cell plus filter, channel by channel.", _DILATED, _DILATION,
       (Output("output", "T", "The maxima.", _IMAGES),), {"T": dtypes.REAL}, infer=shaped(_dilation_shape),
       kernel="patches.dilation", gradient=_dilation_gradient, laws=(_FIRST, Law("padding", "Padding is skipped."))),
    Op("Dilation2DBackpropInput", "nn", "Gradient of Dilation2D with respect to its input.",
       (*_DILATED, _DILATION_DY), _DILATION, (Output("in_backprop", "T", "The gradient.", "shape of input"),),
       {"T": dtypes.REAL}, infer=shaped(_dilation_grad("input")), kernel="patches.dilation_input",
       linear_in=("out_backprop",), laws=(_FIRST,)),
    Op("Dilation2DBackpropFilter", "nn", "Gradient of Dilation2D with respect to its filter.",
       (*_DILATED, _DILATION_DY), _DILATION, (Output("filter_backprop", "T", "The gradient.", "shape of filter"),),
       {"T": dtypes.REAL}, infer=shaped(_dilation_grad("filter")), kernel="patches.dilation_filter",
       linear_in=("out_backprop",), laws=(_FIRST,)),
    Op("MaxPoolWithArgmax", "nn", "Maximum over 2-D windows, and where it lies.",
       (Input("input", "T", "The images.", _IMAGES),),
       (_KSIZE, _STRIDES, PLAIN_PADDING,
        Attr("Targmax", "type", "The type of the places.", dtypes.INT64, choices=dtypes.INDEX), _WHOLE),
       (Output("output", "T", "The maximum of every window.", _IMAGES),
        Output("argmax", "Targmax", "Its place: (y * W + x) * C + c.", _IMAGES)), _ARGMAX_TYPES,
       infer=_argmax_infer, kernel="patches.argmax", gradient=_argmax_gradient("MaxPoolGradWithArgmax"),
       laws=(_FIRST,)),
    Op("MaxPoolGradWithArgmax", "nn", "Gradient of MaxPoolWithArgmax with respect to its input.",
       (Input("input", "T", "The input of the pool.", _IMAGES),
        Input("grad", "T", "The gradient with respect to the maxima.", _IMAGES), _PLACES),
       (_KSIZE, _STRIDES, PLAIN_PADDING, _WHOLE), (Output("output", "T", "The gradient.", "shape of input"),),
       _ARGMAX_TYPES, infer=shaped(_argmax_grad(False)), kernel="patches.argmax_grad",
       gradient=_argmax_gradient("MaxPoolGradGradWithArgmax"), linear_in=("grad",)),
    Op("MaxPoolGradGradWithArgmax", "nn", "Second-order gradient of MaxPoolWithArgmax: the values at the maxima.",
       (Input("input", "T", "The input of the pool.", _IMAGES), Input("grad", "T", "A tensor like input.", _IMAGES),
        _PLACES), (_KSIZE, _STRIDES, PLAIN_PADDING, _WHOLE),
       (Output("output", "T", "The values of grad there.", _IMAGES),), _ARGMAX_TYPES,
       infer=shaped(_argmax_grad(True)), kernel="patches.argmax_grad_grad",
       gradient=_argmax_gradient("MaxPoolGradWithArgmax"), linear_in=("grad",)),
    _fractional("FractionalAvgPool", "Mean", "fractional_avg", _avg_fraction_gradient),
    _fractional("FractionalMaxPool", "Maximum", "fractional_max", _max_fraction_gradient),
    Op("FractionalAvgPoolGrad", "nn", "Gradient of FractionalAvgPool with respect to its input.",
       (Input("orig_input_tensor_shape", dtypes.INT64, "The shape of the input, 4 integers.", "[4]", host=True),
        Input("out_backprop", "T", "The gradient with respect to the output.", _IMAGES), *_BOUNDS), (_OVERLAP,),
       (Output("output", "T", "The gradient.", "orig_input_tensor_shape"),), _FRACTION_TYPES,
       infer=shaped(_fraction_grad(True)), kernel="patches.fractional_avg_grad", linear_in=("out_backprop",)),
    Op("FractionalMaxPoolGrad", "nn", "Gradient of FractionalMaxPool with respect to its input.",
       (Input("orig_input", "T", "The input.", _IMAGES), Input("orig_output", "T", "The output.", _IMAGES),
        Input("out_backprop", "T", "The gradient with respect to the output.", _IMAGES), *_BOUNDS), (_OVERLAP,),
       (Output("output", "T", "The gradient.", "shape of orig_input"),), _FRACTION_TYPES,
       infer=shaped(_fraction_grad(False)), kernel="patches.fractional_max_grad", linear_in=("out_backprop",),
       laws=(_FIRST,)),
)  # fmt: skip
