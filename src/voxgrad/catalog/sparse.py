# SPDX-License-Identifier: Apache-2.0
"""Tensors given by the positions of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ, known
from voxgrad.catalog.gradients import conj
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import check_same, elements, has_rank, length, shaped, specs, stated_shape, text, unknown
from voxgrad.errors import Faults


def _dense_rule(call: Call, faults: Faults) -> Shape | None:
    has_rank(call, "default_value", 0, faults)
    indices, values = call.inputs["sparse_indices"].shape, call.inputs["sparse_values"].shape
    if indices is not None and len(indices) > 2:
        faults.add("VG010", "sparse_indices", wanted="be one position, a vector of them or a matrix", got=text(indices))
    elif indices is not None and values:
        count = indices[0] if indices else 1
        if len(values) > 1 or differ(count, values[0]):
            wanted = f"be one value, or a vector with one for each of {count} positions"
            faults.add("VG012", "sparse_values", wanted=wanted, got=text(values))
    return stated_shape(call, "output_shape", faults)


def _dense_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    indices, _, values, _ = node.inputs
    places = indices
    shape = getattr(indices, "shape", None)
    if shape is not None and len(shape) < 2:
        places = build.Reshape(indices, [-1, 1])
    picked = build.GatherNd(dys[0], places)
    if getattr(values, "shape", None) == ():
        picked = build.Sum(picked, [0])  # one value for all positions
    picked = build.Reshape(picked, build.Shape(values))
    totals = [build.Sum(one, build.Range(0, build.Rank(one), 1)) for one in (dys[0], picked)]
    return None, None, picked, build.Sub(*totals)


def check_places(call: Call, indices: str, values: str | None, rank: Any, faults: Faults) -> None:
    """Positions are a matrix with a row per value and a column per dimension."""
    fine = has_rank(call, indices, 2, faults)
    if values is not None:
        fine = has_rank(call, values, 1, faults) and fine
    if not fine:
        return
    rows, columns = call.inputs[indices].shape
    if rank is not None and differ(columns, rank):
        faults.add("VG012", indices, wanted=f"have {rank} columns, one per dimension", got=text((rows, columns)))
    if values is not None:
        check_same(values, call.inputs[values].shape, (rows,), "one value per position", faults)


def _product_rule(call: Call, faults: Faults) -> Shape | None:
    sizes, right = elements(call.inputs["a_shape"]), call.inputs["b"].shape
    check_places(call, "a_indices", "a_values", 2, faults)
    if not has_rank(call, "b", 2, faults) or faults:
        return None
    if sizes is not None and len(sizes) != 2:
        faults.add("VG014", "a_shape", wanted="hold 2 sizes", got=text(sizes))
        return None
    flip_a, flip_b = call.attrs.get("adjoint_a"), call.attrs.get("adjoint_b")
    inner, columns = (right[1], right[0]) if flip_b else (right[0], right[1])
    if sizes is None:
        return unknown(call, "rows"), columns
    rows, other = (sizes[1], sizes[0]) if flip_a else (sizes[0], sizes[1])
    if known(inner) and known(other) and inner != other:
        faults.add("VG012", "b", wanted=f"have {other} rows, as a has columns", got=text(right))
    return rows, columns


def _product_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    indices, values, shape, b = node.inputs
    flip_a, flip_b = node.attrs["adjoint_a"], node.attrs["adjoint_b"]
    db = build.SparseTensorDenseMatMul(indices, values, shape, dys[0], adjoint_a=not flip_a, adjoint_b=False)
    if flip_b:
        db = build.ConjugateTranspose(db, [1, 0])
    places = build.Unpack(indices, num=2, axis=1)
    rows, columns = (places[1], places[0]) if flip_a else (places[0], places[1])
    right = build.Transpose(b, [1, 0]) if flip_b else conj(build, b)
    parts = build.Mul(build.GatherV2(dys[0], rows, 0), build.GatherV2(right, columns, 0))
    parts = conj(build, parts) if flip_a else parts
    return None, build.Sum(parts, [1]), None, db


def _reorder_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    check_places(call, "input_indices", "input_values", length(call.inputs["input_shape"]), faults)
    return None if faults else specs(call, call.inputs["input_indices"].shape, call.inputs["input_values"].shape)


def _reorder_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    indices, values, shape = node.inputs
    if dys[1] is None:
        return None, None, None
    _, order = build.SparseReorder(indices, build.Range(0, build.Size(values), 1), shape)
    return None, build.GatherV2(dys[1], build.InvertPermutation(order), 0), None


def _reshape_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "input_shape", 1, faults)
    check_places(call, "input_indices", None, length(call.inputs["input_shape"]), faults)
    rows, rank = call.inputs["input_indices"].shape, length(call.inputs["new_shape"])
    size = unknown(call, "rank") if rank is None else rank
    return None if faults else specs(call, (unknown(call, "values") if rows is None else rows[0], size), (size,))


_POSITIONS = Input("a_indices", "Tindices", "Positions of its values.", "[n, 2]")

OPS = (
    Op("SparseToDense", "sparse", "Values at positions, and one value everywhere else.",
       (Input("sparse_indices", "Tindices", "The positions.", "[n, rank], [n] or []"),
        Input("output_shape", "Tindices", "The shape of the result.", "[rank]", host=True),
        Input("sparse_values", "T", "The values, or one for all positions.", "[n] or []"),
        Input("default_value", "T", "The value elsewhere.", "[]")),
       (Attr("validate_indices", "bool", "Positions must be in order and not repeat.", True),),
       (Output("dense", "T", "The tensor.", "output_shape"),), {"T": dtypes.ALL, "Tindices": dtypes.INDEX},
       infer=shaped(_dense_rule), kernel="sparse.to_dense", gradient=_dense_gradient,
       laws=(Law("range", "A position outside is an error."),)),
    Op("SparseTensorDenseMatMul", "sparse", "A sparse matrix times a dense one.",
       (_POSITIONS, Input("a_values", "T", "Its values.", "[n]"),
        Input("a_shape", dtypes.INT64, "Its shape.", "[2]", host=True),
        Input("b", "T", "The dense matrix.", "[k, m]")),
       (Attr("adjoint_a", "bool", "Take the conjugate transpose of the sparse matrix.", False),
        Attr("adjoint_b", "bool", "Take the conjugate transpose of b.", False)),
       (Output("product", "T", "The product.", "[rows, m]"),), {"T": dtypes.NUMBER, "Tindices": dtypes.INDEX},
       {"Tindices": dtypes.INT64}, infer=shaped(_product_rule), kernel="sparse.matmul", gradient=_product_gradient),
    Op("SparseReorder", "sparse", "The positions of a sparse tensor in row-major order.",
       (Input("input_indices", dtypes.INT64, "Positions.", "[n, rank]"),
        Input("input_values", "T", "Their values.", "[n]"),
        Input("input_shape", dtypes.INT64, "The shape.", "[rank]")),
       outputs=(Output("output_indices", dtypes.INT64, "Positions in order.", "[n, rank]"),
                Output("output_values", "T", "Their values.", "[n]")), types={"T": dtypes.ALL}, infer=_reorder_infer,
       kernel="sparse.reorder", gradient=_reorder_gradient),
    Op("SparseReshape", "sparse", "The positions of a sparse tensor in another shape.",
       (Input("input_indices", dtypes.INT64, "Positions.", "[n, rank]"),
        Input("input_shape", dtypes.INT64, "The shape.", "[rank]"),
        Input("new_shape", dtypes.INT64, "The new shape; one size may be -1.", "[new_rank]", host=True)),
       outputs=(Output("output_indices", dtypes.INT64, "New positions.", "[n, new rank]"),
                Output("output_shape", dtypes.INT64, "The new shape.", "[new_rank]")), infer=_reshape_infer,
                kernel="sparse.reshape"),
)  # fmt: skip
