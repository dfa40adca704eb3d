# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of sparse tensors: sums, joins, cuts, reductions, and what they do with dense ones.

A sparse tensor is three inputs: the positions of its values, one row each, the values, and the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import all_known, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import conj
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    axis_in,
    broadcast_shapes,
    check_same,
    elements,
    has_rank,
    length,
    scalar_value,
    shaped,
    specs,
    stated_shape,
    text,
    unknown,
    unknowns,
)  # fmt: skip
from voxgrad.catalog.sparse import check_places
from voxgrad.errors import Faults

_INT64 = dtypes.INT64
_ORDER = Law("order", "Positions are in row-major order, each once.")


def _triple(prefix: str = "", what: str = "the sparse tensor", shape: str = "shape", type_: Any = "T",
            index: Any = _INT64) -> tuple[Input, Input, Input]:  # fmt: skip
    """The inputs of a sparse tensor."""
    return (
        Input(f"{prefix}indices", index, f"Positions in {what}.", "[n, rank]"),
        Input(f"{prefix}values", type_, "Their values.", "[n]"),
        Input(f"{prefix}{shape}", index, f"The shape of {what}.", "[rank]", host=True),
    )


def _made(prefix: str = "output_", type_: Any = "T", count: str = "") -> tuple[Output, Output, Output]:
    """The outputs of a sparse tensor, or of several of them."""
    many = {"many": True, "count": count} if count else {}
    return (
        Output(f"{prefix}indices", _INT64, "Positions of values.", "[m, rank]", **many),  # type: ignore[arg-type]
        Output(f"{prefix}values", type_, "Their values.", "[m]", **many),  # type: ignore[arg-type]
        Output(f"{prefix}shape", _INT64, "The shape.", "[rank]", **many),  # type: ignore[arg-type]
    )


def _check_triple(call: Call, prefix: str, faults: Faults, shape: str = "shape") -> Any:
    """Note inputs that make no sparse tensor; the rank where it is known."""
    has_rank(call, f"{prefix}{shape}", 1, faults)
    rank = length(call.inputs[f"{prefix}{shape}"])
    check_places(call, f"{prefix}indices", f"{prefix}values", rank, faults)
    places = call.inputs[f"{prefix}indices"].shape
    return rank if rank is not None or not places or len(places) != 2 or not known(places[1]) else places[1]


def _some(call: Call, rank: Any) -> tuple[Shape, Shape, Shape]:
    """The shapes of a sparse result with a number of values that only a run can tell."""
    count, size = unknown(call, "values"), unknown(call, "rank") if rank is None else rank
    return (count, size), (count,), (size,)


def _pair_rank(call: Call, faults: Faults) -> Any:
    """The rank of two sparse tensors of one shape."""
    ranks = [_check_triple(call, prefix, faults) for prefix in ("a_", "b_")]
    stated = [elements(call.inputs[f"{prefix}shape"]) for prefix in ("a_", "b_")]
    if None not in ranks and ranks[0] != ranks[1]:
        faults.add("VG012", "b_shape", wanted=f"have {ranks[0]} sizes, as a_shape", got=ranks[1])
    elif None not in stated:
        check_same("b_shape", stated[1], stated[0], "the sizes of a_shape", faults)
    return ranks[0] if ranks[0] is not None else ranks[1]


def _add_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rank = _pair_rank(call, faults)
    has_rank(call, "thresh", 0, faults)
    return None if faults else specs(call, *_some(call, rank))


def _extreme_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rank = _pair_rank(call, faults)
    return None if faults else specs(call, *_some(call, rank)[:2])


def _add_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    if dys[1] is None:
        return (None,) * 7
    a, b = build.SparseAddGrad(dys[1], node.inputs[0], node.inputs[3], node.outputs[0])
    return None, a, None, None, b, None, None


def _add_grad_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    check_places(call, "sum_indices", "backprop_val_grad", None, faults)
    rows = []
    for name in ("a_indices", "b_indices"):
        has_rank(call, name, 2, faults)
        places, total = call.inputs[name].shape, call.inputs["sum_indices"].shape
        if not faults and places is not None and total is not None:
            check_same(name, places[1:], total[1:], "a number per dimension", faults)
        rows.append(unknown(call, name) if not places else places[0])
    return None if faults else specs(call, *((count,) for count in rows))


def _add_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    total = node.inputs[3]
    parts = [_at(build, total, dy, places) for dy, places in zip(dys, node.inputs[1:3], strict=True) if dy is not None]
    return build.AddN(parts), None, None, None


def _at(build: Any, wanted: Any, values: Any, places: Any) -> Any:
    """Values by their places at other places, 0 where there is none."""
    return build.SparseAddGrad(values, wanted, wanted, places)[0]


def _concat_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    axis, stated, count = call.attrs.get("concat_dim"), [], len(call.inputs["indices"])
    for name in ("values", "shapes"):
        if len(call.inputs[name]) != count:
            faults.add("VG004", name, wanted=f"hold {count} tensors, as indices", got=len(call.inputs[name]))
    if faults:
        return None
    if count < 2:
        faults.add("VG004", "indices", wanted="hold two tensors at least", got=count)
    for index in range(count):
        _check_part(call, index, faults)
        sizes = elements(call.inputs["shapes"][index])
        if sizes is not None and axis is not None and not faults:
            at = axis_in(call, "concat_dim", axis, len(sizes), faults)
            stated.append(sizes)
            if at is not None and len(stated[0]) == len(sizes):
                others = [sizes[i] if i == at else size for i, size in enumerate(stated[0])]
                check_same(
                    f"shapes[{index}]", sizes, tuple(others), "the sizes of the others but in concat_dim", faults
                )
            else:
                check_same(f"shapes[{index}]", sizes, stated[0], "the rank of the others", faults)
    rows = [spec.shape[0] if spec.shape else unknown(call, "values") for spec in call.inputs["values"]]
    total = sum(rows) if all_known(rows) else unknown(call, "values")
    rank = length(call.inputs["shapes"][0])
    size = unknown(call, "rank") if rank is None else rank
    return None if faults else specs(call, (total, size), (total,), (size,))


def _check_part(call: Call, index: int, faults: Faults) -> None:
    """One of several sparse tensors."""
    parts = {name: call.inputs[name][index] for name in ("indices", "values", "shapes")}
    for (name, spec), rank in zip(parts.items(), (2, 1, 1), strict=True):
        if spec.shape is not None and len(spec.shape) != rank:
            faults.add("VG010", f"{name}[{index}]", wanted=f"have rank {rank}", got=text(spec.shape))
    places, values, rank = parts["indices"].shape, parts["values"].shape, length(parts["shapes"])
    if not faults and places is not None and values is not None:
        wanted = (values[0], places[1] if rank is None else rank)
        check_same(f"indices[{index}]", places, wanted, "a row per value and a number per dimension", faults)


def _split_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    rank = _check_triple(call, "", faults)
    count, axis = call.attrs.get("num_split", 1), scalar_value(call.inputs["split_dim"])
    sizes = elements(call.inputs["shape"])
    if count < 1:
        faults.add("VG003", "num_split", wanted="be 1 or more", got=count)
    if rank is not None and known(axis) and not faults:
        at = axis_in(call, "split_dim", axis, rank, faults)
        if at is not None and sizes is not None and known(sizes[at]) and count > sizes[at]:
            faults.add("VG003", "num_split", wanted=f"be at most {sizes[at]}, the size to split", got=count)
    if faults:
        return None
    each = specs(call, *_some(call, rank))
    return tuple((spec,) * count for spec in each)


def _axes(call: Call, rank: int, faults: Faults) -> set[int] | None:
    axes = elements(call.inputs["reduction_axes"])
    if axes is None or not all_known(axes):
        return None
    return {at for axis in axes if (at := axis_in(call, "reduction_axes", axis, rank, faults)) is not None}


def _reduced_shape(call: Call, faults: Faults) -> Shape | None:
    rank, keep = _check_triple(call, "input_", faults), call.attrs.get("keep_dims")
    if call.inputs["reduction_axes"].shape is not None and len(call.inputs["reduction_axes"].shape) > 1:
        has_rank(call, "reduction_axes", 1, faults)
    if rank is None or faults:
        return None
    over, sizes = _axes(call, rank, faults), stated_shape(call, "input_shape", faults)
    if over is None or sizes is None:
        return unknowns(call, rank, "size") if keep else None
    return tuple(1 if axis in over else size for axis, size in enumerate(sizes) if keep or axis not in over)


def _reduced_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = _reduced_shape(call, faults)
    return None if faults else specs(call, *_some(call, None if shape is None else len(shape)))


def _reduce_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    indices, _, shape, axes = node.inputs
    rank = build.Size(shape)
    over = build.Reshape(build.FloorMod(build.AddV2(axes, rank), rank), [-1])
    ones = build.Cast(build.OnesLike(over), DstT=_INT64)
    kept = build.DynamicStitch([build.Range(0, rank, 1), over], [shape, ones])
    places = build.FloorDiv(indices, build.FloorDiv(shape, kept))
    return None, build.GatherNd(build.Reshape(dys[0], kept), places), None, None


def _softmax_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rank = _check_triple(call, "sp_", faults)
    stated_shape(call, "sp_shape", faults)
    if rank is not None and rank < 2:
        faults.add("VG010", "sp_shape", wanted="have 2 sizes or more", got=rank)
    return None if faults else specs(call, call.inputs["sp_values"].shape)


def _softmax_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    indices, _, shape = node.inputs
    y, dy = node.outputs[0], dys[0]
    total = build.SparseReduceSum(indices, build.Mul(y, dy), shape, [-1], keep_dims=True)
    return None, build.Mul(y, build.SparseDenseCwiseAdd(indices, dy, shape, build.Neg(total))), None


def _beside_dense(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    _check_triple(call, "sp_", faults)
    sizes, dense = elements(call.inputs["sp_shape"]), call.inputs["dense"].shape
    if sizes is not None and dense is not None and not faults:
        made = broadcast_shapes(sizes, dense)
        if made is None or (all_known((*made, *sizes)) and made != tuple(sizes)):
            faults.add("VG012", "dense", wanted=f"broadcast to sp_shape, {text(sizes)}", got=text(dense))
    return None if faults else specs(call, call.inputs["sp_values"].shape)


def _of_dense(rule: Any) -> Gradient:
    """The gradient of arithmetic with a dense tensor that broadcasts; `rule` gives those of the values."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        indices, values, shape, dense = node.inputs
        sizes = build.Cast(build.Shape(dense), DstT=_INT64)
        added = build.ExpandDims(build.Sub(build.Size(shape), build.Size(sizes)), 0)
        scale = build.FloorDiv(shape, build.ConcatV2([build.Fill(added, build.Cast(1, DstT=_INT64)), sizes], 0))
        places = build.Slice(build.FloorDiv(indices, scale), build.ConcatV2([[0], added], 0), [-1, -1])
        dx, dy = rule(build, values, build.GatherNd(dense, places), dys[0])
        return None, dx, None, build.SparseTensorDenseAdd(places, dy, sizes, build.ZerosLike(dense))

    return gradient


def _sum_slopes(build: Any, x: Any, y: Any, dz: Any) -> tuple[Any, Any]:
    return dz, dz


def _product_slopes(build: Any, x: Any, y: Any, dz: Any) -> tuple[Any, Any]:
    return build.Mul(dz, conj(build, y)), build.Mul(dz, conj(build, x))


def _quotient_slopes(build: Any, x: Any, y: Any, dz: Any) -> tuple[Any, Any]:
    slope = build.Neg(build.RealDiv(x, build.Square(y)))
    return build.RealDiv(dz, conj(build, y)), build.Mul(dz, conj(build, slope))


def _dense_sum(call: Call, faults: Faults) -> Shape | None:
    _check_triple(call, "a_", faults)
    sizes, dense = elements(call.inputs["a_shape"]), call.inputs["b"].shape
    if sizes is not None and dense is not None and not faults:
        check_same("b", dense, sizes, "the shape a_shape", faults)
    shape: Shape | None = dense
    return shape


def _slice_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rank = _check_triple(call, "", faults)
    stated_shape(call, "shape", faults)
    for name in ("start", "size"):
        has_rank(call, name, 1, faults)
        count = length(call.inputs[name])
        if rank is not None and count is not None and rank != count:
            faults.add("VG012", name, wanted=f"hold {rank} numbers, one per dimension", got=count)
    if any(known(one) and one < 0 for one in elements(call.inputs["size"]) or ()):
        faults.add("VG003", "size", wanted="hold numbers of 0 or more", got=text(elements(call.inputs["size"])))
    return None if faults else specs(call, *_some(call, rank))


def _slice_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    if dys[1] is None:
        return (None,) * 5
    return None, build.SparseSliceGrad(dys[1], node.inputs[0], node.inputs[3], node.outputs[0]), None, None, None


def _slice_grad_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    check_places(call, "output_indices", "backprop_val_grad", length(call.inputs["input_start"]), faults)
    check_places(call, "input_indices", None, length(call.inputs["input_start"]), faults)
    has_rank(call, "input_start", 1, faults)
    places = call.inputs["input_indices"].shape
    return None if faults else specs(call, (unknown(call, "values") if places is None else places[0],))


def _slice_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    _, places, start, kept = node.inputs
    return _at(build, build.AddV2(kept, start), dys[0], places), None, None, None


def _fill_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rank = _check_triple(call, "", faults, "dense_shape")
    has_rank(call, "default_value", 0, faults)
    if rank == 0:
        faults.add("VG012", "dense_shape", wanted="hold a size at least", got="none")
    if faults:
        return None
    stated, values = stated_shape(call, "dense_shape", faults), call.inputs["values"].shape
    rows = unknown(call, "rows") if not stated else stated[0]
    count = unknown(call, "given") if values is None else values[0]
    places, numbers, _ = _some(call, rank)
    return None if faults else specs(call, places, numbers, (rows,), (count,))


def _fill_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    if dys[1] is None:
        return (None,) * 4
    values, default = build.SparseFillEmptyRowsGrad(node.outputs[3], dys[1])
    return None, values, None, default


def _fill_grad_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    for name in ("reverse_index_map", "grad_values"):
        has_rank(call, name, 1, faults)
    return None if faults else specs(call, call.inputs["reverse_index_map"].shape, ())


def _fill_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    where, slopes = node.inputs
    others = build.ZerosLike(slopes)
    if dys[1] is not None:
        others = build.AddV2(others, dys[1])
    given = build.ZerosLike(build.GatherV2(slopes, where, 0)) if dys[0] is None else dys[0]
    return None, build.TensorScatterUpdate(others, build.ExpandDims(where, 1), given)


def _cross_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    count = len(call.inputs["indices"])
    for name in ("values", "shapes"):
        if len(call.inputs[name]) != count:
            faults.add("VG004", name, wanted=f"hold {count} tensors, as indices", got=len(call.inputs[name]))
    for index, spec in enumerate(call.inputs["dense_inputs"]):
        if spec.shape is not None and len(spec.shape) != 2:
            faults.add("VG010", f"dense_inputs[{index}]", wanted="have rank 2", got=text(spec.shape))
    if not faults:
        for index in range(count):
            _check_part(call, index, faults)
            if length(call.inputs["shapes"][index]) not in (2, None):
                faults.add("VG012", f"shapes[{index}]", wanted="hold 2 sizes", got="others")
    if not 0 <= call.attrs.get("num_buckets", 0) < 2**63:
        faults.add("VG003", "num_buckets", wanted="be 0 or more, in 64 bits", got=call.attrs["num_buckets"])
    return None if faults else specs(call, *_some(call, 2))


def _rows(call: Call, faults: Faults, least: int = 2) -> Any:
    """How many rows a sparse tensor has, of `least` dimensions."""
    rank = _check_triple(call, "sparse_", faults)
    stated_shape(call, "sparse_shape", faults)
    if rank is not None and rank < least:
        faults.add("VG010", "sparse_shape", wanted=f"have {least} sizes or more", got=rank)
    sizes = elements(call.inputs["sparse_shape"])
    return unknown(call, "rows") if not sizes else sizes[0]


def _map_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    many = call.op.name.startswith("AddMany")
    rows = _rows(call, faults, 2 if many else 0)
    return None if faults else specs(call, (rows,) if many else ())


def _unmap_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "sparse_handles", 1, faults)
    return None if faults else specs(call, *_some(call, None))


def _serialize_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """Nothing but ranks counts: what is written need not be one sparse tensor."""
    for name, rank in (("sparse_indices", 2), ("sparse_values", 1), ("sparse_shape", 1)):
        has_rank(call, name, rank, faults)
    return None if faults else specs(call, (3,))


def _serialize_rows_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    rows = _rows(call, faults)
    return None if faults else specs(call, (rows, 3))


def _deserialize_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    if has_rank(call, "serialized_sparse", 2, faults):
        shape = call.inputs["serialized_sparse"].shape
        check_same("serialized_sparse", shape, (shape[0], 3), "three texts per tensor", faults)
        if known(shape[0]) and shape[0] == 0:
            faults.add("VG012", "serialized_sparse", wanted="hold a tensor at least", got=text(shape))
    return None if faults else specs(call, *_some(call, None))


_AXES = Input("reduction_axes", dtypes.INT32, "The dimensions to reduce; negative ones count from the end.",
              "[axes] or []", host=True)  # fmt: skip
_KEEP = Attr("keep_dims", "bool", "Keep reduced dimensions with size 1.", False)


def _reduction(kind: str, word: str, types: tuple[DType, ...]) -> tuple[Op, Op]:
    """A reduction with a dense and one with a sparse result."""
    inputs = (*_triple("input_"), _AXES)
    kernel = f"sparse_algebra.reduce_{kind.lower()}"
    dense = Op(
        f"SparseReduce{kind}", "sparse", f"{word} of a sparse tensor along dimensions, as a dense tensor.", inputs,
        (_KEEP,), (Output("output", "T", "The reduced values; 0 where there is none."),), {"T": types},
        infer=shaped(_reduced_shape), kernel=kernel, gradient=_reduce_gradient if kind == "Sum" else None,
    )  # fmt: skip
    sparse = Op(
        f"SparseReduce{kind}Sparse", "sparse", f"{word} of a sparse tensor along dimensions, as a sparse tensor.",
        inputs, (_KEEP,), _made(), {"T": types}, infer=_reduced_infer, kernel=f"{kernel}_sparse",
    )  # fmt: skip
    return dense, sparse


def _cellwise(name: str, verb: str, kernel: str, gradient: Gradient) -> Op:
    return Op(
        name, "sparse", f"{verb} a dense tensor that broadcasts, at the positions of a sparse one.",
        (*_triple("sp_"), Input("dense", "T", "The dense tensor; broadcasts to sp_shape.")),
        outputs=(Output("output", "T", "The values of the result, at the same positions.", "[n]"),),
        types={"T": dtypes.NUMBER}, infer=_beside_dense, kernel=f"sparse_algebra.{kernel}", gradient=gradient,
    )  # fmt: skip


def _extreme(name: str, word: str, kernel: str, types: tuple[DType, ...]) -> Op:
    return Op(
        name, "sparse", f"The {word} of two sparse tensors; what is missing in one counts as 0.",
        (*_triple("a_", "a"), *_triple("b_", "b")), outputs=_made()[:2], types={"T": types}, infer=_extreme_infer,
        kernel=f"sparse_algebra.{kernel}", laws=(_ORDER,),
    )  # fmt: skip


_SHARED = (Attr("container", "string", "A name space for shared maps.", ""),
           Attr("shared_name", "string", "Maps of one such name are one map.", ""))  # fmt: skip
_WORD = (_INT64, dtypes.STRING)


def _mapped(name: str, summary: str, kernel: str, output: Output) -> Op:
    return Op(
        name, "sparse", summary, _triple("sparse_"), _SHARED, (output,), {"T": dtypes.ALL}, infer=_map_infer,
        kernel=f"sparse_algebra.{kernel}", stateful=True,
    )  # fmt: skip


def _serialized(name: str, summary: str, kernel: str, shape: str, infer: Any) -> Op:
    return Op(
        name, "sparse", summary, _triple("sparse_"),
        (Attr("out_type", "type", "Always texts here.", dtypes.STRING, choices=(dtypes.STRING,)),),
        (Output("serialized_sparse", "out_type", "Positions, values and shape, each a TensorProto message.", shape),),
        {"T": dtypes.ALL, "out_type": (dtypes.STRING,)}, infer=infer, kernel=f"serialized.{kernel}",
    )  # fmt: skip


OPS = (
    _serialized("SerializeSparse", "A sparse tensor as three texts.", "sparse", "[3]", _serialize_infer),
    _serialized("SerializeManySparse", "The rows of a sparse tensor as three texts each.", "sparse_rows", "[rows, 3]",
                _serialize_rows_infer),
    Op("DeserializeManySparse", "sparse", "Sparse tensors from their texts, stacked.",
       (Input("serialized_sparse", dtypes.STRING, "Three texts each, as SerializeManySparse makes them.", "[n, 3]"),),
       (Attr("dtype", "type", "The type of their values."),), _made("sparse_", "dtype"), {"dtype": dtypes.ALL},
       infer=_deserialize_infer, kernel="serialized.stacked",
       laws=(Law("shape", "The sizes of the result are the largest of each dimension."),)),
    Op("SparseCross", "sparse", "Crosses of columns: in each row every value of one with every value of the others.",
       (Input("indices", _INT64, "Positions in the sparse columns.", "[n, 2]", many=True, least=0),
        Input("values", "sparse_types", "Their values.", "[n]", many=True, mixed=True, least=0),
        Input("shapes", _INT64, "Their shapes.", "[2]", many=True, least=0, host=True),
        Input("dense_inputs", "dense_types", "Columns that are dense, behind the sparse ones.", "[rows, m]", many=True,
              mixed=True, least=0)),
       (Attr("hashed_output", "bool", "Without effect: out_type decides."),
        Attr("num_buckets", "int", "Hashes are taken modulo this; 0 for all."),
        Attr("hash_key", "int", "Where hashes start."),
        Attr("out_type", "type", "int64: hashes; string: texts joined by _X_.", choices=_WORD),
        Attr("internal_type", "type", "int64, or string where all columns are texts.", choices=_WORD)),
       _made(type_="out_type"), {"sparse_types": _WORD, "dense_types": _WORD, "out_type": _WORD},
       infer=_cross_infer, kernel="sparse_algebra.cross"),
    _mapped("AddSparseToTensorsMap", "Keep a sparse tensor in the session under a number.", "keep",
            Output("sparse_handle", _INT64, "The number.", "[]")),
    _mapped("AddManySparseToTensorsMap", "Keep the rows of a sparse tensor in the session, each under a number.",
            "keep_rows", Output("sparse_handles", _INT64, "The numbers.", "[rows]")),
    Op("TakeManySparseFromTensorsMap", "sparse", "Sparse tensors that a session keeps, stacked; they are kept no more.",
       (Input("sparse_handles", _INT64, "Their numbers.", "[n]"),),
       (Attr("dtype", "type", "The type of their values."), *_SHARED), _made("sparse_", "dtype"),
       {"dtype": dtypes.ALL}, infer=_unmap_infer, kernel="sparse_algebra.take_kept", stateful=True,
       laws=(Law("shape", "The sizes of the result are the largest of each dimension."),)),
    Op("SparseAdd", "sparse", "The sum of two sparse tensors.",
       (*_triple("a_", "a"), *_triple("b_", "b"), Input("thresh", "Treal", "Smaller sums are left out.", "[]")),
       outputs=_made("sum_"), types={"T": dtypes.NUMBER, "Treal": dtypes.REAL}, infer=_add_infer,
       kernel="sparse_algebra.add", gradient=_add_gradient, laws=(_ORDER,)),
    Op("SparseAddGrad", "sparse", "The gradient of SparseAdd.",
       (Input("backprop_val_grad", "T", "The gradient of the values of the sum.", "[m]"),
        Input("a_indices", _INT64, "Positions in a.", "[n, rank]"),
        Input("b_indices", _INT64, "Positions in b.", "[k, rank]"),
        Input("sum_indices", _INT64, "Positions in the sum.", "[m, rank]")),
       outputs=(Output("a_val_grad", "T", "The gradient of the values of a.", "[n]"),
                Output("b_val_grad", "T", "The gradient of the values of b.", "[k]")),
       types={"T": dtypes.NUMBER}, infer=_add_grad_infer, kernel="sparse_algebra.add_grad",
       gradient=_add_grad_gradient, laws=(_ORDER,)),
    Op("SparseConcat", "sparse", "Sparse tensors joined along a dimension.",
       (Input("indices", _INT64, "Positions in each.", "[n, rank]", many=True),
        Input("values", "T", "Their values.", "[n]", many=True),
        Input("shapes", _INT64, "Their shapes.", "[rank]", many=True, host=True)),
       (Attr("concat_dim", "int", "The dimension; a negative one counts from the end."),), _made(),
       {"T": dtypes.ALL}, infer=_concat_infer, kernel="sparse_algebra.concat"),
    Op("SparseSplit", "sparse", "A sparse tensor cut into parts along a dimension.",
       (Input("split_dim", _INT64, "The dimension; a negative one counts from the end.", "[]", host=True),
        *_triple()),
       (Attr("num_split", "int", "How many parts; the first ones are longer by one where it does not divide."),),
       _made(count="num_split"), {"T": dtypes.ALL}, infer=_split_infer, kernel="sparse_algebra.split"),
    Op("SparseSlice", "sparse", "A box out of a sparse tensor.",
       (*_triple(), Input("start", _INT64, "Where the box begins.", "[rank]"),
        Input("size", _INT64, "Its sizes; it ends where the tensor does.", "[rank]")),
       outputs=_made(), types={"T": dtypes.ALL}, infer=_slice_infer, kernel="sparse_algebra.slice_box",
       gradient=_slice_gradient),
    Op("SparseSliceGrad", "sparse", "The gradient of SparseSlice.",
       (Input("backprop_val_grad", "T", "The gradient of the values of the box.", "[m]"),
        Input("input_indices", _INT64, "Positions in the tensor.", "[n, rank]"),
        Input("input_start", _INT64, "Where the box begins.", "[rank]"),
        Input("output_indices", _INT64, "Positions in the box.", "[m, rank]")),
       outputs=(Output("val_grad", "T", "The gradient of the values of the tensor.", "[n]"),),
       types={"T": dtypes.NUMBER}, infer=_slice_grad_infer, kernel="sparse_algebra.slice_grad",
       gradient=_slice_grad_gradient, laws=(_ORDER,)),
    *_reduction("Sum", "The sums", dtypes.NUMBER),
    *_reduction("Max", "The largest values", dtypes.REAL),
    Op("SparseSoftmax", "sparse", "The softmax of the values that a sparse tensor has, along its last dimension.",
       _triple("sp_", type_="T"), outputs=(Output("output", "T", "The values, at the same positions.", "[n]"),),
       types={"T": (dtypes.HALF, dtypes.FLOAT32, dtypes.FLOAT64)}, infer=_softmax_infer,
       kernel="sparse_algebra.softmax", gradient=_softmax_gradient, laws=(_ORDER,)),
    _cellwise("SparseDenseCwiseAdd", "Adds", "dense_add", _of_dense(_sum_slopes)),
    _cellwise("SparseDenseCwiseMul", "Multiplies with", "dense_mul", _of_dense(_product_slopes)),
    _cellwise("SparseDenseCwiseDiv", "Divides by", "dense_div", _of_dense(_quotient_slopes)),
    Op("SparseTensorDenseAdd", "sparse", "The sum of a sparse and a dense tensor.",
       (*_triple("a_", "the sparse tensor", index="Tindices"), Input("b", "T", "The dense tensor, of shape a_shape.")),
       outputs=(Output("output", "T", "The sum, dense.", "shape of b"),),
       types={"T": dtypes.NUMBER, "Tindices": dtypes.INDEX}, infer=shaped(_dense_sum),
       kernel="sparse_algebra.add_to_dense",
       gradient=lambda build, node, dys: (None, build.GatherNd(dys[0], node.inputs[0]), None, dys[0])),
    _extreme("SparseSparseMaximum", "maximum", "maximum", dtypes.REAL),
    _extreme("SparseSparseMinimum", "minimum", "minimum", dtypes.NUMBER),
    Op("SparseFillEmptyRows", "sparse", "A sparse tensor with a value in every row.",
       (*_triple(shape="dense_shape"), Input("default_value", "T", "The value of rows without one.", "[]")),
       outputs=(*_made()[:2], Output("empty_row_indicator", dtypes.BOOL, "True for rows that were filled.", "[rows]"),
                Output("reverse_index_map", _INT64, "Where each given value stands now.", "[n]")),
       types={"T": dtypes.ALL}, infer=_fill_infer, kernel="sparse_algebra.fill_empty_rows", gradient=_fill_gradient),
    Op("SparseFillEmptyRowsGrad", "sparse", "The gradient of SparseFillEmptyRows.",
       (Input("reverse_index_map", _INT64, "Where each given value stands.", "[n]"),
        Input("grad_values", "T", "The gradient of the values of the filled tensor.", "[m]")),
       outputs=(Output("d_values", "T", "The gradient of the given values.", "[n]"),
                Output("d_default_value", "T", "The gradient of the default value.", "[]")),
       types={"T": dtypes.ALL}, infer=_fill_grad_infer, kernel="sparse_algebra.fill_empty_rows_grad",
       gradient=_fill_grad_gradient),
)  # fmt: skip
