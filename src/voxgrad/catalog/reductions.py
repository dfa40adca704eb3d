# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over axes, running sums, and sums over segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import all_known, differ
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import conj, nothing
from voxgrad.catalog.locality import kept, reduced, without
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    axis_in,
    check_same,
    counted,
    elements,
    has_rank,
    length,
    like,
    scalar_value,
    shaped,
    size_of,
    specs,
    text,
    unknown,
    unknowns,
)  # fmt: skip
from voxgrad.errors import Faults

_AXES = Input(
    "axis", "Tidx", "The axes to go over, in [-rank, rank); none keeps the tensor as it is.", "[axes] or []", host=True
)
_KEEP = Attr("keep_dims", "bool", "Keep reduced axes with size 1.", False)
_TIDX = {"Tidx": dtypes.INDEX}


def _reduced(call: Call, faults: Faults) -> Shape | None:
    shape, spec = call.inputs["input"].shape, call.inputs["axis"]
    keep, axes = call.attrs.get("keep_dims"), elements(spec)
    if shape is None:
        return None
    if axes is None:
        count = 1 if spec.shape == () else length(spec)
        if keep or count == 0:
            return unknowns(call, len(shape), "size")
        return None if count is None else unknowns(call, max(0, len(shape) - count), "size")
    gone = [axis_in(call, "axis", axis, len(shape), faults) for axis in axes]
    if len(set(gone)) < len(gone) and None not in gone:
        faults.add("VG003", "axis", wanted="name no axis twice", got=text(axes))
    if keep:
        return tuple(1 if index in gone else size for index, size in enumerate(shape))
    return tuple(size for index, size in enumerate(shape) if index not in gone)


def _product_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """Prod of a known vector is the number of elements of a shape: worth following."""
    shape = _reduced(call, faults)
    values = elements(call.inputs["input"])
    known = None if values is None or shape != () else (size_of(values),)
    return None if faults else specs(call, shape, value=known)


def _kept_shape(build: Any, x: Any, axes: Any) -> Any:
    """The shape of x with 1 at the reduced axes."""
    shape, rank = build.Shape(x), build.Rank(x)
    positive = build.FloorMod(build.AddV2(build.Cast(axes, DstT=dtypes.INT32), rank), rank)
    return build.DynamicStitch(
        [build.Range(0, rank, 1), build.Reshape(positive, [-1])],
        [shape, build.OnesLike(build.Reshape(positive, [-1]))],
    )


def _spread(build: Any, node: Node, value: Any) -> Any:
    """A reduced value in a shape that broadcasts with the input."""
    x, axes = node.inputs
    return value if node.attrs["keep_dims"] else build.Reshape(value, _kept_shape(build, x, axes))


def _sum_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return build.BroadcastTo(_spread(build, node, dys[0]), build.Shape(node.inputs[0])), None


def _mean_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    spread, _ = _sum_gradient(build, node, dys)
    x, y = node.inputs[0], node.outputs[0]
    count = build.FloorDiv(build.Size(x), build.Maximum(build.Size(y), 1))
    return build.RealDiv(spread, build.Cast(count, DstT=getattr(dys[0], "dtype", dtypes.FLOAT32))), None


def _extreme_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, axes = node.inputs
    dy, y = (_spread(build, node, value) for value in (dys[0], node.outputs[0]))
    winners = build.Cast(build.Equal(y, x), DstT=getattr(dys[0], "dtype", dtypes.FLOAT32))
    count = build.Sum(winners, axes, keep_dims=True)
    return build.Mul(build.RealDiv(winners, count), dy), None


def _prod_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """The product of all others: running products from both ends, so that zeros need no division."""
    x, axes = node.inputs
    dy = build.BroadcastTo(_spread(build, node, dys[0]), build.Shape(x))
    rank = build.Rank(x)
    positive = build.FloorMod(build.AddV2(build.Reshape(build.Cast(axes, DstT=dtypes.INT32), [-1]), rank), rank)
    kept, _ = build.ListDiff(build.Range(0, rank, 1), positive)
    order = build.ConcatV2([positive, kept], 0)
    shape = build.Shape(x)
    reduced = build.Prod(build.GatherV2(shape, positive, 0), [0])
    others = build.Prod(build.GatherV2(shape, kept, 0), [0])
    turned = build.Transpose(x, order)
    flat = conj(build, build.Reshape(turned, build.Pack([reduced, others])))
    left = build.Cumprod(flat, 0, exclusive=True)
    right = build.Cumprod(flat, 0, exclusive=True, reverse=True)
    rest = build.Reshape(build.Mul(left, right), build.Shape(turned))
    return build.Mul(dy, build.Transpose(rest, build.InvertPermutation(order))), None


def _reduction(name: str, summary: str, kernel: str, types: tuple[DType, ...], gradient: Gradient | None,
               *laws: Law, **more: Any) -> Op:  # fmt: skip
    """An op that reduces axes."""
    more.setdefault("infer", shaped(_reduced))
    return Op(
        name, "math", summary, (Input("input", "T", "The tensor."), _AXES), (_KEEP,),
        (Output("output", "T", "The reduced tensor.", "the sizes of the other axes"),), {"T": types, **_TIDX},
        {"Tidx": dtypes.INT32}, kernel=f"reductions.{kernel}", gradient=gradient, laws=laws, follows=reduced, **more,
    )  # fmt: skip


def _logical_reduction(name: str, summary: str, kernel: str, empty: str) -> Op:
    return Op(
        name, "math", summary, (Input("input", dtypes.BOOL, "Truth values."), _AXES), (_KEEP,),
        (Output("output", dtypes.BOOL, "The reduced tensor.", "the sizes of the other axes"),), _TIDX,
        {"Tidx": dtypes.INT32}, infer=shaped(_reduced), kernel=f"reductions.{kernel}",
        laws=(Law("empty", f"Over nothing the result is {empty}."),), follows=reduced, adds_up=kernel,
    )  # fmt: skip


def _arg_rule(call: Call, faults: Faults) -> Shape | None:
    shape, axis = call.inputs["input"].shape, scalar_value(call.inputs["dimension"])
    has_rank(call, "dimension", 0, faults)
    if shape is None:
        return None
    if axis is None:
        return unknowns(call, max(0, len(shape) - 1), "size")
    at = axis_in(call, "dimension", axis, len(shape), faults)
    if at is not None and shape[at] == 0:
        faults.add("VG017", "input", wanted=f"have elements along axis {at}", got=text(shape))
    return tuple(size for index, size in enumerate(shape) if index != at)


def _arg(name: str, summary: str, kernel: str, wide: bool) -> Op:
    outs = (dtypes.INT16, dtypes.UINT16, *dtypes.INDEX) if wide else dtypes.INDEX
    axes = (dtypes.INT16, *dtypes.INDEX) if wide else dtypes.INDEX
    return Op(
        name, "math", summary,
        (Input("input", "T", "The tensor."), Input("dimension", "Tidx", "The axis, in [-rank, rank).", "[]",
                                                   host=True)),
        (Attr("output_type", "type", "The type of the positions.", dtypes.INT64, choices=outs),),
        (Output("output", "output_type", "Positions along the axis.", "the sizes of the other axes"),),
        {"T": (*dtypes.REAL, dtypes.BOOL), "Tidx": axes, "output_type": outs}, {"Tidx": dtypes.INT32},
        infer=shaped(_arg_rule), kernel=f"reductions.{kernel}", gradient=nothing, follows=reduced,
        laws=(Law("ties", "The first of equal elements wins."), Law("nan", "A NaN is never chosen before a number.")),
    )  # fmt: skip


def _running_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["x"].shape
    axis = scalar_value(call.inputs["axis"])
    if shape is not None and axis is not None:
        axis_in(call, "axis", axis, len(shape), faults)
    return shape


def _cumsum_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    attrs = {"exclusive": node.attrs["exclusive"], "reverse": not node.attrs["reverse"]}
    return build.Cumsum(dys[0], node.inputs[1], **attrs), None


def _cumprod_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, axis = node.inputs
    exclusive, reverse = node.attrs["exclusive"], node.attrs["reverse"]
    product = build.Cumprod(x, axis, exclusive=exclusive, reverse=reverse)
    total = build.Cumsum(build.Mul(conj(build, product), dys[0]), axis, exclusive=exclusive, reverse=not reverse)
    return build.DivNoNan(total, conj(build, x)), None


def _running(name: str, summary: str, kernel: str, gradient: Gradient, *laws: Law) -> Op:
    return Op(
        name, "math", summary,
        (Input("x", "T", "The tensor."), Input("axis", "Tidx", "The axis, in [-rank, rank).", "[]", host=True)),
        (Attr("exclusive", "bool", "Leave out the element itself: start with the empty result.", False),
         Attr("reverse", "bool", "Run from the last element to the first.", False)),
        (Output("out", "T", "The running results.", "shape of x"),), {"T": dtypes.NUMBER, **_TIDX},
        {"Tidx": dtypes.INT32}, infer=shaped(_running_rule), kernel=f"reductions.{kernel}", gradient=gradient,
        laws=laws, follows=without("axis"), lies=kept("x"),
    )  # fmt: skip


def _segment_rule(call: Call, faults: Faults) -> Shape | None:
    has_rank(call, "segment_ids", 1, faults)
    if not has_rank(call, "data", 1, faults, at_least=True):
        return None
    ids, shape = call.inputs["segment_ids"], call.inputs["data"].shape
    if ids.shape is not None and len(ids.shape) == 1 and differ(ids.shape[0], shape[0]):
        faults.add("VG012", "segment_ids", wanted=f"have one entry per row of data, {shape[0]}", got=text(ids.shape))
    known = elements(ids)
    rows = unknown(call, "segments") if known is None else max(known, default=-1) + 1
    return (rows, *shape[1:])


def _unsorted_rule(call: Call, faults: Faults) -> Shape | None:
    data, ids = call.inputs["data"].shape, call.inputs["segment_ids"].shape
    has_rank(call, "num_segments", 0, faults)
    if data is None or ids is None:
        return None
    check_same("segment_ids", ids, tuple(data[: len(ids)]), "the first sizes of data", faults)
    count = counted(call, "num_segments", faults)
    return (unknown(call, "segments") if count is None else count, *data[len(ids) :])


def _segment_sum_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return build.GatherV2(dys[0], node.inputs[1], 0), None


def _segment_mean_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    data, ids = node.inputs
    rank, rows = build.Rank(data), build.Shape(ids)
    ones = build.Fill(build.ConcatV2([rows, build.Fill(build.ExpandDims(build.Sub(rank, 1), 0), 1)], 0),
                      build.Cast(1, DstT=getattr(data, "dtype", dtypes.FLOAT32)))  # fmt: skip
    scaled = build.RealDiv(dys[0], build.SegmentSum(ones, ids))
    return build.GatherV2(scaled, ids, 0), None


def _of_own_segment(build: Any, node: Node, rows: Any) -> tuple[Any, Any]:
    """For every entry of data its row among those of the segments; and where it has one, None for everywhere.

    Ids of sorted segments are never negative; others are where a row was dropped: it gets zeros.
    """
    data, ids = node.inputs[:2]
    if len(node.inputs) == 2:
        return build.GatherV2(rows, ids, 0), None
    gathered = build.GatherV2(rows, build.Maximum(ids, build.ZerosLike(ids)), 0)
    kept = build.GreaterEqual(ids, build.ZerosLike(ids))
    ones = build.Fill(build.ExpandDims(build.Sub(build.Rank(data), build.Rank(ids)), 0), 1)
    mask = build.Reshape(kept, build.ConcatV2([build.Shape(ids), ones], 0))
    return build.SelectV2(mask, gathered, build.ZerosLike(gathered)), mask


def _in_segments(build: Any, node: Node, kind: str, data: Any) -> Any:
    """The same segments of other data, reduced by "Sum" or "Prod"."""
    return getattr(build, f"Segment{kind}" if len(node.inputs) == 2 else f"UnsortedSegment{kind}")(
        data, *node.inputs[1:]
    )


def _segment_extreme_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    data = node.inputs[0]
    extreme, kept = _of_own_segment(build, node, node.outputs[0])
    winners = build.Equal(data, extreme)
    if kept is not None:
        winners = build.LogicalAnd(winners, kept)
    marks = build.Cast(winners, DstT=getattr(data, "dtype", dtypes.FLOAT32))
    shared, _ = _of_own_segment(build, node, build.RealDiv(dys[0], _in_segments(build, node, "Sum", marks)))
    return build.Select(winners, shared, build.ZerosLike(data)), *([None] * (len(node.inputs) - 1))


def _segment_product_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """The product of the others: beside a zero that of all that are none, and 0 where there are two zeros."""
    data = conj(build, node.inputs[0])
    zero = build.Equal(data, build.ZerosLike(data))
    zeros = _in_segments(build, node, "Sum", build.Cast(zero, DstT=dtypes.INT32))
    dy = build.SelectV2(build.Greater(zeros, 1), build.ZerosLike(dys[0]), dys[0])
    filled = build.SelectV2(zero, build.OnesLike(data), data)
    (without, _), (whole, _), (grad, _) = (
        _of_own_segment(build, node, rows)
        for rows in (_in_segments(build, node, "Prod", filled), conj(build, node.outputs[0]), dy)
    )
    others = build.SelectV2(zero, without, build.RealDiv(whole, filled))
    return build.Mul(grad, others), *([None] * (len(node.inputs) - 1))


def _unsorted_sum_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return _of_own_segment(build, node, dys[0])[0], None, None


_SORTED = (Law("order", "segment_ids are sorted and start at 0; a gap in them leaves a segment of its empty value."),)
_DROPPED = (Law("negative", "Rows with a negative id are dropped."),)
_IDS = {"Tindices": dtypes.INDEX}


def _segment(name: str, what: str, kernel: str, types: tuple[DType, ...], gradient: Gradient | None) -> Op:
    return Op(
        name, "math", f"The {what} of each segment of rows.",
        (Input("data", "T", "The rows.", "[n, ...]"),
         Input("segment_ids", "Tindices", "The segment of every row, sorted.", "[n]")),
        outputs=(Output("output", "T", f"The {what} per segment.", "[last id + 1, ...]"),), types={"T": types, **_IDS},
        infer=shaped(_segment_rule), kernel=f"reductions.{kernel}", gradient=gradient, laws=_SORTED,
    )  # fmt: skip


def _unsorted(name: str, what: str, kernel: str, types: tuple[DType, ...], gradient: Gradient | None) -> Op:
    indices = (dtypes.INT16, *dtypes.INDEX) if name == "UnsortedSegmentSum" else dtypes.INDEX
    return Op(
        name, "math", f"The {what} of each segment; ids in any order.",
        (Input("data", "T", "The data.", "[ids shape, ...]"),
         Input("segment_ids", "Tindices", "The segment of every entry; its shape starts that of data."),
         Input("num_segments", "Tnumsegments", "How many segments there are.", "[]", host=True)),
        outputs=(Output("output", "T", f"The {what} per segment.", "[num_segments, ...]"),),
        types={"T": types, "Tindices": indices, "Tnumsegments": dtypes.INDEX},
        type_defaults={"Tnumsegments": dtypes.INT32},
        infer=shaped(_unsorted_rule), kernel=f"reductions.{kernel}", gradient=gradient, laws=_DROPPED,
    )  # fmt: skip


def _sparse_segment_rule(call: Call, faults: Faults) -> Shape | None:
    for name in ("indices", "segment_ids"):
        has_rank(call, name, 1, faults)
    if not has_rank(call, "data", 1, faults, at_least=True) or faults:
        return None
    ids, rows = call.inputs["segment_ids"], call.inputs["indices"].shape
    check_same("segment_ids", ids.shape, rows, "one entry per index", faults)
    return (unknown(call, "segments"), *call.inputs["data"].shape[1:])


def _sparse_segment_grad_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "grad", 1, faults, at_least=True):
        return None
    check_same(
        "segment_ids", call.inputs["segment_ids"].shape, call.inputs["indices"].shape, "one entry per index", faults
    )
    rows = counted(call, "output_dim0", faults)
    return (unknown(call, "rows") if rows is None else rows, *call.inputs["grad"].shape[1:])


def _sparse_segment_gradient(grad_op: str) -> Gradient:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        data, indices, ids = node.inputs
        rows = build.StridedSlice(build.Shape(data), [0], [1], [1], shrink_axis_mask=1)
        if grad_op:
            return getattr(build, grad_op)(dys[0], indices, ids, rows), None, None
        return build.UnsortedSegmentSum(build.GatherV2(dys[0], ids, 0), indices, rows), None, None

    return gradient


_SPARSE_IDS = {"Tidx": dtypes.INDEX, "Tsegmentids": dtypes.INDEX}
_SPARSE_DEFAULTS = {"Tidx": dtypes.INT32, "Tsegmentids": dtypes.INT32}
_CHOSEN = (Input("indices", "Tidx", "The rows that count.", "[n]"),
           Input("segment_ids", "Tsegmentids", "The segment of each, sorted.", "[n]"))  # fmt: skip
_SPARSE_GRADIENT = Attr("sparse_gradient", "bool", "Without effect here: gradients are dense.", False)


def _sparse_segment(name: str, what: str, kernel: str, types: tuple[DType, ...], grad_op: str) -> Op:
    return Op(
        name, "math", f"The {what} of chosen rows, by segment.",
        (Input("data", "T", "The rows.", "[rows, ...]"), *_CHOSEN),
        (_SPARSE_GRADIENT,), (Output("output", "T", f"The {what} per segment.", "[last id + 1, ...]"),),
        {"T": types, **_SPARSE_IDS}, _SPARSE_DEFAULTS, infer=shaped(_sparse_segment_rule),
        kernel=f"reductions.sparse_segment_{kernel}", gradient=_sparse_segment_gradient(grad_op), laws=_SORTED,
        linear_in=("data",),
    )  # fmt: skip


def _sparse_segment_grad_gradient(share: str) -> Gradient:
    """The rows that each segment chose, divided by `share` of how many there are."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        grad, indices, ids, _ = node.inputs
        rows = build.StridedSlice(build.Shape(grad), [0], [1], [1], shrink_axis_mask=1)
        kind = getattr(dys[0], "dtype", dtypes.FLOAT32)
        count = build.Cast(build.UnsortedSegmentSum(build.OnesLike(ids), ids, rows), DstT=kind)
        weight = build.GatherV2(getattr(build, share)(count), ids, 0)
        ones = build.Fill(build.ExpandDims(build.Sub(build.Rank(grad), 1), 0), 1)
        column = build.Reshape(weight, build.ConcatV2([build.Shape(ids), ones], 0))
        chosen = build.RealDiv(build.GatherV2(dys[0], indices, 0), column)
        return build.UnsortedSegmentSum(chosen, ids, rows), None, None, None

    return gradient


def _sparse_segment_grad(name: str, of: str, kernel: str, share: str) -> Op:
    return Op(
        name, "math", f"Gradient of {of} with respect to data.",
        (Input("grad", "T", "The gradient with respect to the output.", "[segments, ...]"), *_CHOSEN,
         Input("output_dim0", dtypes.INT32, "How many rows data has.", "[]", host=True)),
        outputs=(Output("output", "T", "The gradient with respect to data.", "[output_dim0, ...]"),),
        types={"T": dtypes.FLOATING, **_SPARSE_IDS}, type_defaults=_SPARSE_DEFAULTS,
        infer=shaped(_sparse_segment_grad_rule), kernel=f"reductions.sparse_segment_{kernel}_grad", linear_in=("grad",),
        gradient=_sparse_segment_grad_gradient(share),
    )  # fmt: skip


def _bincount_rule(call: Call, faults: Faults) -> Shape | None:
    size, weights, numbers = counted(call, "size", faults), call.inputs["weights"].shape, call.inputs["arr"].shape
    sized = weights is not None and numbers is not None and all_known((*weights, *numbers))
    if sized and size_of(weights) not in (0, size_of(numbers)):
        wanted = f"have one entry per number, {size_of(numbers)}, or none"
        faults.add("VG012", "weights", wanted=wanted, got=text(weights))
    return (unknown(call, "size") if size is None else size,)


_COUNTED_TYPES = (dtypes.INT32, dtypes.INT64, dtypes.FLOAT32, dtypes.FLOAT64)

COUNTS = (
    _sparse_segment("SparseSegmentSum", "sum", "sum", dtypes.REAL, ""),
    _sparse_segment("SparseSegmentMean", "mean", "mean", dtypes.FLOATING, "SparseSegmentMeanGrad"),
    _sparse_segment("SparseSegmentSqrtN", "sum divided by the square root of the count", "sqrt_n", dtypes.FLOATING,
                    "SparseSegmentSqrtNGrad"),
    _sparse_segment_grad("SparseSegmentMeanGrad", "SparseSegmentMean", "mean", "Identity"),
    _sparse_segment_grad("SparseSegmentSqrtNGrad", "SparseSegmentSqrtN", "sqrt_n", "Sqrt"),
    Op("Bincount", "math", "How often each of 0 to size - 1 occurs, or the sum of the weights there.",
       (Input("arr", dtypes.INT32, "Numbers, none negative."),
        Input("size", dtypes.INT32, "How many bins.", "[]", host=True),
        Input("weights", "T", "What each counts; empty for 1.", "shape of arr, or [0]")),
       outputs=(Output("bins", "T", "The counts.", "[size]"),), types={"T": _COUNTED_TYPES},
       infer=shaped(_bincount_rule),
       kernel="reductions.bincount", laws=(Law("range",
                                               "Numbers at or above size do not count; negative ones are an error."),)),
    Op("Bucketize", "math", "For each number, how many boundaries are not above it.",
       (Input("input", "T", "Numbers."),),
       (Attr("boundaries", "floats", "Sorted boundaries."),),
       (Output("output", dtypes.INT32, "The numbers of the buckets.", "shape of input"),), {"T": _COUNTED_TYPES},
       infer=like("input"), kernel="reductions.bucketize", lies=kept("input")),
)  # fmt: skip

_NAN_LAW = Law("nan", "NaN in, NaN out.")
_SUMMED = Law("precision", "half and bfloat16 are summed in float32 and rounded once.")

OPS = (
    *COUNTS,
    _reduction("Sum", "The sum over axes.", "sum", dtypes.NUMBER, _sum_gradient, _SUMMED,
               Law("empty", "The sum of nothing is 0."), linear_in=("input",), adds_up="sum",
               example="print(vg.raw_ops.Sum(input=np.array([[1, 2], [3, 4]]), axis=[0]))  # [4 6]"),
    _reduction("Prod", "The product over axes.", "prod", dtypes.NUMBER, _prod_gradient,
               Law("empty", "The product of nothing is 1."), infer=_product_infer, adds_up="prod"),
    _reduction("Mean", "The mean over axes.", "mean", dtypes.NUMBER, _mean_gradient, _SUMMED,
               Law("empty", "The mean of nothing is NaN; of integers and complex numbers, 0."),
               Law("integers", "Integers are summed in 64 bits and divided towards zero."),
               linear_in=("input",), adds_up="mean"),
    _reduction("Max", "The largest element over axes.", "max", dtypes.REAL, _extreme_gradient, _NAN_LAW,
               Law("ties", "Equal largest elements share the gradient evenly."),
               Law("empty", "The maximum of nothing is the lowest value of the type."), adds_up="max"),
    _reduction("Min", "The smallest element over axes.", "min", dtypes.REAL, _extreme_gradient, _NAN_LAW,
               Law("ties", "Equal smallest elements share the gradient evenly."),
               Law("empty", "The minimum of nothing is the highest value of the type."), adds_up="min"),
    _logical_reduction("All", "Whether all are true.", "all", "True"),
    _logical_reduction("Any", "Whether one is true.", "any", "False"),
    _arg("ArgMax", "The position of the largest element along an axis.", "arg_max", True),
    _arg("ArgMin", "The position of the smallest element along an axis.", "arg_min", False),
    _running("Cumsum", "The running sum along an axis.", "cumsum", _cumsum_gradient),
    _running("Cumprod", "The running product along an axis.", "cumprod", _cumprod_gradient,
             Law("gradient", "It divides by x, as TensorFlow's: 0 where x is 0.")),
    _segment("SegmentSum", "sum", "segment_sum", dtypes.NUMBER, _segment_sum_gradient),
    _segment("SegmentMean", "mean", "segment_mean", dtypes.NUMBER, _segment_mean_gradient),
    _segment("SegmentProd", "product", "segment_prod", dtypes.NUMBER, _segment_product_gradient),
    _segment("SegmentMax", "maximum", "segment_max", dtypes.REAL, _segment_extreme_gradient),
    _segment("SegmentMin", "minimum", "segment_min", dtypes.REAL, _segment_extreme_gradient),
    _unsorted("UnsortedSegmentSum", "sum", "unsorted_sum", dtypes.NUMBER, _unsorted_sum_gradient),
    _unsorted("UnsortedSegmentProd", "product", "unsorted_prod", dtypes.NUMBER, _segment_product_gradient),
    _unsorted("UnsortedSegmentMax", "maximum", "unsorted_max", dtypes.REAL, _segment_extreme_gradient),
    _unsorted("UnsortedSegmentMin", "minimum", "unsorted_min", dtypes.REAL, _segment_extreme_gradient),
)  # fmt: skip
