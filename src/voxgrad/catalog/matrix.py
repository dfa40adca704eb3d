# SPDX-License-Identifier: Apache-2.0
"""Products of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ
from voxgrad.catalog.gradients import conj
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Shape
from voxgrad.catalog.shapes import broadcast_shapes, has_rank, shaped, text
from voxgrad.errors import Faults

_LAWS = (
    Law("precision", "half and bfloat16 are summed in float32 and rounded once."),
    Law("empty", "A sum over an empty inner dimension is 0."),
)
_MARKS = "Marks a product made by differentiation; without effect here."


def _flag(name: str, doc: str) -> Attr:
    return Attr(name, "bool", doc, False)


def _inner(call: Call, names: tuple[str, str], flips: tuple[Any, Any], faults: Faults) -> Shape | None:
    """[rows, columns] of the product of the last two dimensions."""
    left, right = call.inputs[names[0]].shape, call.inputs[names[1]].shape
    rows, inner = (left[-1], left[-2]) if flips[0] else (left[-2], left[-1])
    other, columns = (right[-1], right[-2]) if flips[1] else (right[-2], right[-1])
    if differ(inner, other):
        wanted = f"have {inner} rows{' (transposed)' if flips[1] else ''}, as {names[0]} {text(left)} has columns"
        faults.add("VG012", names[1], wanted=wanted, got=text(right))
        return None
    return rows, columns


def matmul_rule(call: Call, faults: Faults) -> Shape | None:
    """The shape of a product of two matrices, a and b."""
    fine = [has_rank(call, name, 2, faults) for name in ("a", "b")]
    flips = call.attrs.get("transpose_a"), call.attrs.get("transpose_b")
    return _inner(call, ("a", "b"), flips, faults) if all(fine) else None


def _batch_rule(call: Call, faults: Faults) -> Shape | None:
    fine = [has_rank(call, name, 2, faults, at_least=True) for name in ("x", "y")]
    if not all(fine):
        return None
    left, right = call.inputs["x"].shape, call.inputs["y"].shape
    batch = broadcast_shapes(left[:-2], right[:-2])
    exact = call.op.name == "BatchMatMul"
    unequal = len(left) != len(right) or any(differ(*pair) for pair in zip(left[:-2], right[:-2], strict=True))
    if batch is None or (exact and unequal):
        how = "equal" if exact else "broadcast with"
        faults.add("VG012", "y", wanted=f"have batch sizes that {how} those of x, {text(left)}", got=text(right))
        return None
    made = _inner(call, ("x", "y"), (call.attrs.get("adj_x"), call.attrs.get("adj_y")), faults)
    return None if made is None else (*batch, *made)


def _matmul_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    a, b = (conj(build, one) for one in node.inputs)
    dy, flips = dys[0], (node.attrs["transpose_a"], node.attrs["transpose_b"])
    product = build.MatMul
    if flips == (False, False):
        return product(dy, b, transpose_b=True), product(a, dy, transpose_a=True)
    if flips == (False, True):
        return product(dy, b), product(dy, a, transpose_a=True)
    if flips == (True, False):
        return product(b, dy, transpose_b=True), product(a, dy)
    return product(b, dy, transpose_a=True, transpose_b=True), product(dy, a, transpose_a=True, transpose_b=True)


def _sparse_matmul_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """That of a MatMul in float32, each in the type of its input."""
    low = ["bfloat16" in str(getattr(one, "dtype", "")) for one in node.inputs]
    wide = [
        build.Cast(one, DstT=dtypes.FLOAT32) if is_low else one for one, is_low in zip(node.inputs, low, strict=True)
    ]
    made = _matmul_gradient(build, _Product(wide, node.outputs, node.attrs), dys)
    return [build.Cast(one, DstT=dtypes.BFLOAT16) if is_low else one for one, is_low in zip(made, low, strict=True)]


@dataclass(frozen=True)
class _Product:
    """A product as a gradient sees it, with other inputs."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    attrs: Mapping[str, Any]


def _batch_products(build: Any, node: Node, dy: Any) -> tuple[Any, Any]:
    x, y = node.inputs
    product = build.BatchMatMulV2
    if node.attrs["adj_x"]:
        if node.attrs["adj_y"]:
            return product(y, dy, adj_x=True, adj_y=True), product(dy, x, adj_x=True, adj_y=True)
        return product(y, dy, adj_y=True), product(x, dy)
    if node.attrs["adj_y"]:
        return product(dy, y), product(dy, x, adj_x=True)
    return product(dy, y, adj_y=True), product(x, dy, adj_x=True)


def _batch_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return _batch_products(build, node, dys[0])


def _batch_v2_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    dx, dy = _batch_products(build, node, dys[0])
    shapes: list[Any] = [getattr(one, "shape", None) for one in node.inputs]
    if None not in shapes and tuple(shapes[0][:-2]) == tuple(shapes[1][:-2]):
        return dx, dy
    sizes = [build.Shape(one) for one in node.inputs]
    # The last two sizes belong to the product and never broadcast.
    batches = [build.StridedSlice(one, [0], [-2], [1], begin_mask=1) for one in sizes]
    axes = build.BroadcastGradientArgs(*batches)
    return tuple(
        build.Reshape(build.Sum(grad, over), size) for grad, over, size in zip((dx, dy), axes, sizes, strict=True)
    )


def _batch_op(name: str, summary: str, types: tuple[Any, ...], gradient: Any) -> Op:
    return Op(
        name, "math", summary,
        (Input("x", "T", "Matrices.", "[..., m, k]"), Input("y", "T", "Matrices.", "[..., k, n]")),
        (_flag("adj_x", "Take the conjugate transposes of x."), _flag("adj_y", "Take the conjugate transposes of y."),
         _flag("grad_x", _MARKS), _flag("grad_y", _MARKS)),
        (Output("output", "T", "The products.", "[..., m, n]"),), {"T": types}, infer=shaped(_batch_rule),
        kernel="matrix.batch_matmul", gradient=gradient, laws=_LAWS, linear_in=("x", "y"),
    )  # fmt: skip


_SINGLE = (dtypes.FLOAT32, dtypes.BFLOAT16)
_INTS = (dtypes.INT32, dtypes.INT64)
_UNSIGNED = (dtypes.UINT8, dtypes.UINT16, dtypes.UINT32, dtypes.UINT64)

OPS = (
    Op("MatMul", "math", "The product of two matrices.",
       (Input("a", "T", "The left matrix.", "[m, k]"), Input("b", "T", "The right matrix.", "[k, n]")),
       (_flag("transpose_a", "Take the transpose of a."), _flag("transpose_b", "Take the transpose of b."),
        _flag("grad_a", _MARKS), _flag("grad_b", _MARKS)),
       (Output("product", "T", "a times b.", "[m, n]"),),
       {"T": (*dtypes.FLOATING, *_INTS, *_UNSIGNED, *dtypes.COMPLEX)}, infer=shaped(matmul_rule),
       kernel="matrix.matmul", gradient=_matmul_gradient, laws=_LAWS, linear_in=("a", "b"), example="""\
a, b = np.array([[3, 2], [-1, 0]], np.float32), np.array([[3, 5]], np.float32)
print(vg.raw_ops.MatMul(a=a, b=b, transpose_b=True))  # [[19.] [-3.]]"""),
    Op("SparseMatMul", "math", "The product of two matrices of which many elements are 0.",
       (Input("a", "Ta", "The left matrix.", "[m, k]"), Input("b", "Tb", "The right matrix.", "[k, n]")),
       (_flag("transpose_a", "Take the transpose of a."), _flag("transpose_b", "Take the transpose of b."),
        _flag("a_is_sparse", "Without effect here."), _flag("b_is_sparse", "Without effect here.")),
       (Output("product", dtypes.FLOAT32, "a times b.", "[m, n]"),), {"Ta": _SINGLE, "Tb": _SINGLE},
       {"Ta": dtypes.FLOAT32, "Tb": dtypes.FLOAT32}, infer=shaped(matmul_rule), kernel="matrix.sparse_matmul",
       gradient=_sparse_matmul_gradient, laws=_LAWS[1:]),
    _batch_op("BatchMatMul", "Products of matrices, one by one over equal batch dimensions.",
              (*dtypes.FLOATING, *_INTS, *dtypes.COMPLEX), _batch_gradient),
    _batch_op("BatchMatMulV2", "Products of matrices, one by one over batch dimensions that broadcast.",
              (*dtypes.FLOATING, dtypes.INT16, *_INTS, *_UNSIGNED, *dtypes.COMPLEX), _batch_v2_gradient),
)  # fmt: skip
