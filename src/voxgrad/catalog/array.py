# SPDX-License-Identifier: Apache-2.0
"""Shapes: what they are, and tensors in other shapes or filled afresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import all_known, differ, known
from voxgrad.catalog.gradients import conj, nothing, of_unary
from voxgrad.catalog.locality import elementwise, filled, kept, repeated, reshaped, squeezed, transposed
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import (
    FOLDED,
    Infer,
    axis_in,
    broadcast_shapes,
    check_same,
    elements,
    has_rank,
    length,
    scalar_value,
    shaped,
    size_of,
    specs,
    stated_shape,
    text,
    unknown,
    unknowns,
)  # fmt: skip
from voxgrad.errors import Faults

ANY = {"T": dtypes.ALL}
INDEX32 = {"Tidx": dtypes.INT32}
_OUT_TYPE = Attr("out_type", "type", "The type of the numbers.", dtypes.INT32, choices=dtypes.INDEX)
_COUNTED = {"T": dtypes.ALL, "out_type": dtypes.INDEX}


def _shape_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return (_shape_spec(call, call.inputs["input"].shape),)


def _shape_spec(call: Call, shape: Shape | None) -> Spec:
    rank = unknown(call, "rank") if shape is None else len(shape)
    return Spec(call.attrs.get("out_type"), (rank,), shape)


def _shapes_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    return (tuple(_shape_spec(call, spec.shape) for spec in call.inputs["input"]),)


def _size_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = call.inputs["input"].shape
    return specs(call, (), value=None if shape is None else (size_of(shape),))


def _rank_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = call.inputs["input"].shape
    return specs(call, (), value=None if shape is None else (len(shape),))


def _constant_infer(number: int) -> Infer:
    """One number everywhere, in the shape of the input; small ones of integers are followed, for shapes are made so."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        source = call.inputs["x"]
        small = source.dtype in dtypes.INDEX and source.shape is not None and all_known(source.shape)
        count = size_of(source.shape) if small else FOLDED + 1
        return specs(call, source.shape, value=(number,) * count if count <= FOLDED else None)

    return infer


def _reshape_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = reshape_rule(call, faults)
    value = None if elements(call.inputs["shape"]) is None else call.inputs["tensor"].value
    return None if faults else specs(call, shape, value=value)


def reshape_rule(call: Call, faults: Faults) -> Shape | None:
    """The shape that is stated, with its -1 worked out."""
    spec, source = call.inputs["shape"], call.inputs["tensor"]
    if spec.shape is not None and len(spec.shape) > 1:
        faults.add("VG014", "shape", wanted="be a vector of sizes", got=f"shape {text(spec.shape)}")
        return None
    wanted = elements(spec)
    if wanted is None:
        rank = 1 if spec.shape == () else length(spec)
        return None if rank is None else unknowns(call, rank, "size")
    return _resolved(call, wanted, source.shape, faults)


def _resolved(call: Call, wanted: tuple[Any, ...], source: Shape | None, faults: Faults) -> Shape | None:
    """The wanted shape with its -1 worked out."""
    open_ = [index for index, size in enumerate(wanted) if known(size) and size == -1]
    if len(open_) > 1 or any(known(size) and size < -1 for size in wanted):
        faults.add("VG014", "shape", wanted="hold sizes, and -1 at most once", got=text(wanted))
        return None
    rest = size_of([size for index, size in enumerate(wanted) if index not in open_])
    if source is None:
        return tuple(unknown(call, "rest") if index in open_ else size for index, size in enumerate(wanted))
    if all_known((*wanted, *source)):
        return reshaped_to(wanted, source, faults)
    total = size_of(source)
    if not open_:
        if differ(total, rest):
            faults.add("VG012", "shape", wanted=f"hold {total} elements, as {text(source)} does", got=text(wanted))
        return wanted
    missing = total // rest if (known(rest) and rest) or not known(rest) else unknown(call, "rest")
    return tuple(missing if index in open_ else size for index, size in enumerate(wanted))


def reshaped_to(wanted: Shape, source: Shape, faults: Faults) -> Shape:
    """The wanted shape with its -1 worked out: beside a 0, from the other sizes of a source that is empty."""
    total, fixed = size_of(source), size_of([size for size in wanted if size != -1])
    if -1 in wanted and not fixed:
        total, fixed = (size_of([size for size in shape if size not in (0, -1)]) for shape in (source, wanted))
    made = tuple(total // fixed if size == -1 else size for size in wanted)
    if size_of(made) != size_of(source):
        faults.add(
            "VG012", "shape", wanted=f"hold {size_of(source)} elements, as {text(source)} does", got=text(wanted)
        )
    return made


def _expand_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    source, axis = call.inputs["input"], scalar_value(call.inputs["axis"])
    if source.shape is None:
        return specs(call, None)
    rank = len(source.shape) + 1
    if axis is None:
        _one_element(call, "axis", faults)
        return None if faults else specs(call, unknowns(call, rank, "size"))
    at = axis_in(call, "axis", axis, rank, faults)
    return None if at is None else specs(call, (*source.shape[:at], 1, *source.shape[at:]), value=source.value)


def _one_element(call: Call, name: str, faults: Faults) -> None:
    """Note an input that should hold one number, in any rank, and does not."""
    shape = call.inputs[name].shape
    if shape is not None and differ(size_of(shape), 1):
        faults.add("VG012", name, wanted="hold one number", got=f"shape {text(shape)}")


def _squeeze_rule(call: Call, faults: Faults) -> Shape | None:
    shape, axes = call.inputs["input"].shape, call.attrs.get("axis")
    if shape is None or axes is None:
        return None
    if not axes:
        # A symbol may turn out to be 1: then only a run knows the rank.
        return tuple(size for size in shape if size != 1) if all_known(shape) else None
    gone = {axis_in(call, "axis", axis, len(shape), faults) for axis in axes}
    for axis in gone:
        if axis is not None and differ(shape[axis], 1):
            faults.add("VG012", f"input dimension {axis}", wanted="be 1 to be squeezed", got=shape[axis])
    return tuple(size for index, size in enumerate(shape) if index not in gone)


def _transpose_rule(call: Call, faults: Faults) -> Shape | None:
    shape, perm = call.inputs["x"].shape, elements(call.inputs["perm"])
    if perm is None or shape is None:
        rank = len(shape) if shape is not None else length(call.inputs["perm"])
        return None if rank is None else unknowns(call, rank, "size")
    rank = len(shape)
    inside = all(-rank <= axis < rank for axis in perm)
    if not inside or sorted(axis % rank for axis in perm) != list(range(rank)):
        faults.add("VG003", "perm", wanted=f"name each of the axes 0 to {len(shape) - 1} once", got=text(perm))
        return None
    return tuple(shape[axis] for axis in perm)


def _broadcast_to_rule(call: Call, faults: Faults) -> Shape | None:
    wanted, source = stated_shape(call, "shape", faults), call.inputs["input"].shape
    if wanted is None or source is None:
        return wanted
    made = broadcast_shapes(source, wanted)
    if made is None or (all_known(made) and all_known(wanted) and made != wanted):
        faults.add("VG012", "input", wanted=f"broadcast to {text(wanted)}", got=text(source))
    return wanted


def _broadcast_args_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    left, right = (elements(call.inputs[name]) for name in ("s0", "s1"))
    if left is None or right is None:
        lengths = [length(call.inputs[name]) for name in ("s0", "s1")]
        rank = unknown(call, "rank") if None in lengths else max(lengths)
        return specs(call, (rank,))
    made = broadcast_shapes(left, right)
    if made is None:
        faults.add("VG012", "s1", wanted=f"broadcast with {text(left)}", got=text(right))
        return None
    return specs(call, (len(made),), value=made)


def _gradient_args_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    left, right = (elements(call.inputs[name]) for name in ("s0", "s1"))
    if left is not None and right is not None and all_known(left) and all_known(right):
        if broadcast_shapes(left, right) is None:
            faults.add("VG012", "s1", wanted=f"broadcast with {text(left)}", got=text(right))
            return None
        axes = reduced_axes(left, right)
        dtype = call.inputs["s0"].dtype
        return tuple(Spec(dtype, (len(one),), one) for one in axes)
    return specs(call, (unknown(call, "r0"),), (unknown(call, "r1"),))


def reduced_axes(a: Sequence[int], b: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of the broadcast shape along which each of two shapes was repeated."""
    if tuple(a) == tuple(b):
        return (), ()
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    first = [index for index in range(rank) if left[index] == 1 and (right[index] != 1 or index < rank - len(a))]
    second = [index for index in range(rank) if right[index] == 1 and (left[index] != 1 or index < rank - len(b))]
    both = [index for index in range(rank) if left[index] == right[index] == 1]
    # Where both are 1, TensorFlow names the axis for both: the sum over it changes nothing.
    return tuple(sorted({*first, *both})), tuple(sorted({*second, *both}))


def _fill_rule(call: Call, faults: Faults) -> Shape | None:
    _one_element(call, "value", faults)
    shape = call.inputs["value"].shape
    if shape is not None and len(shape) > 1:
        faults.add("VG010", "value", wanted="be a scalar", got=f"shape {text(shape)}")
    return stated_shape(call, "dims", faults)


def _permutation_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "x", 1, faults)
    values = elements(call.inputs["x"])
    inverse = None
    if values is not None:
        if sorted(values) != list(range(len(values))):
            faults.add("VG003", "x", wanted=f"hold each of 0 to {len(values) - 1} once", got=text(values))
            return None
        inverse = tuple(values.index(index) for index in range(len(values)))
    return None if faults else specs(call, call.inputs["x"].shape, value=inverse)


def _bitcast_rule(call: Call, faults: Faults) -> Shape | None:
    source, target = call.inputs["input"], call.attrs.get("type")
    if source.shape is None or source.dtype is None or target is None:
        return None
    old, new = source.dtype.itemsize, target.itemsize
    if not old or not new:
        faults.add("VG011", "input", wanted="hold numbers, and become numbers", got=f"{source.dtype} to {target.name}")
        return None
    if old >= new:
        return source.shape if old == new else (*source.shape, old // new)
    if not source.shape or differ(source.shape[-1], new // old):
        wanted = f"have a last dimension of {new // old} to become {target.name}"
        faults.add("VG012", "input", wanted=wanted, got=text(source.shape))
        return None
    return tuple(source.shape[:-1])


def _reshape_back(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    rest = [None] * (len(node.inputs) - 1)
    return (build.Reshape(dys[0], build.Shape(node.inputs[0])), *rest)


def _transpose_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return build.Transpose(dys[0], build.InvertPermutation(node.inputs[1])), None


def _conjugate_transpose_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    back = build.Transpose(conj(build, dys[0]), build.InvertPermutation(node.inputs[1]))
    return back, None


def _broadcast_to_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, shape = node.inputs
    source = build.Shape(x)
    axes, _ = build.BroadcastGradientArgs(source, build.Cast(shape, DstT=dtypes.INT32))
    return build.Reshape(build.Sum(dys[0], axes), source), None


def _fill_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return None, build.Sum(dys[0], build.Range(0, build.Rank(dys[0]), 1))


def _diag_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "diagonal", 1, faults, at_least=True):
        return None
    shape = call.inputs["diagonal"].shape
    return (*shape, *shape)


def _diag_part_rule(call: Call, faults: Faults) -> Shape | None:
    shape = call.inputs["input"].shape
    if shape is None:
        return None
    half = len(shape) // 2
    if len(shape) % 2 or any(differ(a, b) for a, b in zip(shape[:half], shape[half:], strict=True)):
        faults.add("VG012", "input", wanted="have an even rank with equal halves", got=text(shape))
    return tuple(shape[:half])


def _matrix_diag_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "diagonal", 1, faults, at_least=True):
        return None
    shape = call.inputs["diagonal"].shape
    return (*shape, shape[-1])


def smaller(call: Call, a: Any, b: Any) -> Any:
    """The smaller of two sizes."""
    if a <= b:
        return a
    return b if b <= a else unknown(call, "min")


def _matrix_diag_part_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "input", 2, faults, at_least=True):
        return None
    shape = call.inputs["input"].shape
    return (*shape[:-2], smaller(call, shape[-2], shape[-1]))


def _set_diag_rule(call: Call, faults: Faults) -> Shape | None:
    if not has_rank(call, "input", 2, faults, at_least=True):
        return None
    shape, diagonal = call.inputs["input"].shape, call.inputs["diagonal"].shape
    wanted = (*shape[:-2], smaller(call, shape[-2], shape[-1]))
    if diagonal is not None and (
        len(diagonal) != len(wanted) or any(differ(a, b) for a, b in zip(diagonal, wanted, strict=True))
    ):
        faults.add("VG012", "diagonal", wanted=f"have the shape of the diagonal, {text(wanted)}", got=text(diagonal))
    return tuple(shape)


def _set_diag_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    diagonal = node.inputs[1]
    return build.MatrixSetDiag(dys[0], build.ZerosLike(diagonal)), build.MatrixDiagPart(dys[0])


def _band_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["input"].shape
    if has_rank(call, "input", 2, faults, at_least=True) and shape is not None:
        for name, size in (("num_lower", shape[-2]), ("num_upper", shape[-1])):
            count = scalar_value(call.inputs[name])
            if known(count) and known(size) and count > size:
                faults.add("VG003", name, wanted=f"be negative, or at most the {size} cells of the matrix", got=count)
    return shape


def _band_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return build.MatrixBandPart(dys[0], *node.inputs[1:]), None, None


_DIAG_TYPES = {"T": (*dtypes.FLOATING, *dtypes.INDEX, *dtypes.COMPLEX)}
_FILLED = (*dtypes.NUMBER, dtypes.BOOL)
_BITS = (*dtypes.FLOATING, *dtypes.INTEGERS, *dtypes.COMPLEX)


def _sequences(name: str, what: str) -> tuple[Input, ...]:
    return (Input(f"{name}_indices", dtypes.INT64, f"{what}: positions in order.", f"[{name}, rank]"),
            Input(f"{name}_values", "T", f"{what}: elements.", f"[{name}]"),
            Input(f"{name}_shape", dtypes.INT64, f"{what}: the shape, sequences along the last dimension.", "[rank]",
                  host=True))  # fmt: skip


def _edits_rule(call: Call, faults: Faults) -> Shape | None:
    shapes: list[Any] = []
    for name in ("hypothesis", "truth"):
        places, values = (call.inputs[f"{name}_{part}"].shape for part in ("indices", "values"))
        shape = stated_shape(call, f"{name}_shape", faults)
        shapes.append(shape)
        if has_rank(call, f"{name}_indices", 2, faults) and shape is not None:
            check_same(f"{name}_indices", places, (places[0], len(shape)), "one number per dimension", faults)
        if not faults and places is not None:
            check_same(f"{name}_values", values, (places[0],), "one element per position", faults)
    if faults or None in shapes:
        return None
    if len(shapes[0]) != len(shapes[1]) or len(shapes[0]) < 2:
        wanted = f"have the {len(shapes[0])} dimensions of hypothesis_shape, 2 or more"
        faults.add("VG014", "truth_shape", wanted=wanted, got=text(shapes[1]))
        return None
    return tuple(max(one, two) if known(one) and known(two) else unknown(call, f"out[{at}]")
                 for at, (one, two) in enumerate(zip(shapes[0][:-1], shapes[1][:-1], strict=True)))  # fmt: skip


def _rows_rule(call: Call, faults: Faults) -> Shape | None:
    given, stated = call.inputs["values"], call.attrs.get("shape")
    if stated is None or any(not isinstance(size, int) or size < 0 for size in stated):
        faults.add("VG003", "shape", wanted="be known in every dimension", got=stated)
        return None
    if not stated or stated[0] != len(given):
        faults.add("VG003", "shape", wanted=f"have one row per tensor, {len(given)}", got=text(stated))
        return None
    for at, one in enumerate(given):
        check_same(f"values[{at}]", one.shape, (1, *stated[1:]), "one row of the result", faults)
    return tuple(stated)


OPS = (
    Op("Shape", "array", "The shape of a tensor, as a vector.", (Input("input", "T", "Any tensor."),), (_OUT_TYPE,),
       (Output("output", "out_type", "Its sizes.", "[rank]"),), _COUNTED, infer=_shape_infer, kernel="array.shape",
       gradient=nothing, of_shape=True, example="print(vg.raw_ops.Shape(input=np.zeros((2, 3))))  # [2 3]"),
    Op("ShapeN", "array", "The shapes of several tensors.", (Input("input", "T", "Tensors.", many=True),), (_OUT_TYPE,),
       (Output("output", "out_type", "The sizes of each.", many=True, count="input"),), _COUNTED, infer=_shapes_infer,
       kernel="array.shapes", gradient=nothing, of_shape=True),
    Op("Size", "array", "The number of elements.", (Input("input", "T", "Any tensor."),), (_OUT_TYPE,),
       (Output("output", "out_type", "How many elements it has.", "[]"),), _COUNTED, infer=_size_infer,
       kernel="array.size", gradient=nothing, of_shape=True),
    Op("Rank", "array", "The number of dimensions.", (Input("input", "T", "Any tensor."),),
       outputs=(Output("output", dtypes.INT32, "How many dimensions it has.", "[]"),), types=ANY, infer=_rank_infer,
       kernel="array.rank", gradient=nothing, of_shape=True),
    Op("Reshape", "array", "The same elements, in row-major order, in another shape.",
       (Input("tensor", "T", "Any tensor."),
        Input("shape", "Tshape", "The new sizes; one may be -1 and is worked out.", "[rank] or []", host=True)),
       outputs=(Output("output", "T", "The reshaped tensor.", "shape"),),
       types={"T": dtypes.ALL, "Tshape": dtypes.INDEX}, type_defaults={"Tshape": dtypes.INT32}, infer=_reshape_infer,
       kernel="array.reshape", gradient=_reshape_back, linear_in=("tensor",), follows=reshaped,
       laws=(Law("empty", "Beside a 0, -1 is what the other sizes of the empty tensor leave."),)),
    Op("ExpandDims", "array", "A new dimension of size 1.",
       (Input("input", "T", "Any tensor."),
        Input("axis", "Tdim", "Where it goes, in [-rank - 1, rank].", "[] or [1]", host=True)),
       outputs=(Output("output", "T", "The tensor with one more dimension."),),
       types={"T": dtypes.ALL, "Tdim": dtypes.INDEX}, type_defaults={"Tdim": dtypes.INT32}, infer=_expand_infer,
       kernel="array.expand_dims", gradient=_reshape_back, linear_in=("input",), follows=reshaped),
    Op("Squeeze", "array", "Without dimensions of size 1.", (Input("input", "T", "Any tensor."),),
       (Attr("axis", "ints", "The dimensions to drop; all of size 1 where empty.", ()),),
       (Output("output", "T", "The tensor with fewer dimensions."),), ANY, infer=shaped(_squeeze_rule),
       kernel="array.squeeze", gradient=_reshape_back, linear_in=("input",), follows=squeezed),
    Op("Transpose", "array", "Dimensions in another order.",
       (Input("x", "T", "Any tensor."), Input("perm", "Tperm", "For each new dimension, the old one.", "[rank]",
                                              host=True)),
       outputs=(Output("y", "T", "The transposed tensor: size i is size perm[i] of x."),),
       types={"T": dtypes.ALL, "Tperm": dtypes.INDEX}, type_defaults={"Tperm": dtypes.INT32},
       infer=shaped(_transpose_rule), kernel="array.transpose", gradient=_transpose_gradient, linear_in=("x",),
       follows=transposed),
    Op("ConjugateTranspose", "array", "Dimensions in another order, and each element's complex conjugate.",
       (Input("x", "T", "Any tensor."), Input("perm", "Tperm", "For each new dimension, the old one.", "[rank]",
                                              host=True)),
       outputs=(Output("y", "T", "The transposed tensor."),),
       types={"T": dtypes.ALL, "Tperm": dtypes.INDEX}, type_defaults={"Tperm": dtypes.INT32},
       infer=shaped(_transpose_rule), kernel="array.conjugate_transpose", gradient=_conjugate_transpose_gradient,
       follows=transposed),
    Op("BroadcastTo", "array", "The tensor repeated along dimensions of size 1 until it has a shape.",
       (Input("input", "T", "The tensor."), Input("shape", "Tidx", "The wanted shape.", "[rank]", host=True)),
       outputs=(Output("output", "T", "The repeated tensor.", "shape"),),
       types={"T": dtypes.ALL, "Tidx": dtypes.INDEX}, type_defaults=INDEX32, infer=shaped(_broadcast_to_rule),
       kernel="array.broadcast_to", gradient=_broadcast_to_gradient, linear_in=("input",), follows=repeated),
    Op("BroadcastArgs", "array", "The shape to which two shapes broadcast.",
       (Input("s0", "T", "A shape.", "[rank]", host=True), Input("s1", "T", "Another shape.", "[rank]", host=True)),
       outputs=(Output("r0", "T", "The common shape.", "[rank]"),), types={"T": dtypes.INDEX},
       type_defaults={"T": dtypes.INT32}, infer=_broadcast_args_infer, kernel="array.broadcast_args",
       gradient=nothing, aliases=("BroadcastDynamicShape",)),
    Op("BroadcastGradientArgs", "array", "The axes over which the gradients of two broadcast tensors are summed.",
       (Input("s0", "T", "The shape of the left tensor.", "[rank]", host=True),
        Input("s1", "T", "The shape of the right tensor.", "[rank]", host=True)),
       outputs=(Output("r0", "T", "Axes of the left gradient.", "[axes]"),
                Output("r1", "T", "Axes of the right gradient.", "[axes]")),
       types={"T": dtypes.INDEX}, type_defaults={"T": dtypes.INT32}, infer=_gradient_args_infer,
       kernel="array.broadcast_gradient_args", gradient=nothing),
    Op("Fill", "array", "A tensor with one value everywhere.",
       (Input("dims", "index_type", "The shape.", "[rank]", host=True),
        Input("value", "T", "The value.", "[] or [1]")),
       outputs=(Output("output", "T", "The filled tensor.", "dims"),),
       types={"T": dtypes.ALL, "index_type": dtypes.INDEX}, type_defaults={"index_type": dtypes.INT32},
       infer=shaped(_fill_rule), kernel="array.fill", gradient=_fill_gradient, linear_in=("value",), follows=filled),
    Op("ZerosLike", "array", "Zeros in the shape and type of a tensor.", (Input("x", "T", "Any tensor."),),
       outputs=(Output("y", "T", "Zeros; empty texts for strings.", "shape of x"),), types=ANY,
       infer=_constant_infer(0), kernel="array.zeros_like", gradient=nothing, follows=elementwise, of_shape=True),
    Op("OnesLike", "array", "Ones in the shape and type of a tensor.", (Input("x", "T", "Any tensor."),),
       outputs=(Output("y", "T", "Ones.", "shape of x"),), types={"T": _FILLED}, infer=_constant_infer(1),
       kernel="array.ones_like", gradient=nothing, follows=elementwise, of_shape=True),
    Op("InvertPermutation", "array", "The permutation that undoes another.",
       (Input("x", "T", "Each of 0 to n - 1 once.", "[n]", host=True),),
       outputs=(Output("y", "T", "y[x[i]] = i.", "[n]"),), types={"T": dtypes.INDEX},
       type_defaults={"T": dtypes.INT32}, infer=_permutation_infer, kernel="array.invert_permutation",
       gradient=nothing),
    Op("Bitcast", "array", "The same bytes, read as another type.", (Input("input", "T", "Any tensor of numbers."),),
       (Attr("type", "type", "The type to read them as.", choices=_BITS),),
       (Output("output", "type", "A last dimension appears or goes where the sizes of the types differ."),),
       {"T": _BITS, "type": _BITS}, infer=shaped(_bitcast_rule), kernel="array.bitcast",
       lies=kept("input")),
    Op("Diag", "array", "A tensor with its values on the diagonal, zeros elsewhere.",
       (Input("diagonal", "T", "The values."),),
       outputs=(Output("output", "T", "The diagonal tensor.", "shape of diagonal, twice"),), types=_DIAG_TYPES,
       infer=shaped(_diag_rule), kernel="array.diag", gradient=of_unary(lambda build, x, y, dy: build.DiagPart(dy)),
       linear_in=("diagonal",)),
    Op("DiagPart", "array", "The diagonal of a tensor whose shape is one shape twice.",
       (Input("input", "T", "The tensor."),),
       outputs=(Output("diagonal", "T", "Its diagonal.", "the first half of the shape"),), types=_DIAG_TYPES,
       infer=shaped(_diag_part_rule), kernel="array.diag_part",
       gradient=of_unary(lambda build, x, y, dy: build.Diag(dy)), linear_in=("input",)),
    Op("MatrixDiag", "array", "Square matrices with their values on the diagonal.",
       (Input("diagonal", "T", "The values.", "[..., n]"),),
       outputs=(Output("output", "T", "The matrices.", "[..., n, n]"),), types=ANY, infer=shaped(_matrix_diag_rule),
       kernel="array.matrix_diag", gradient=of_unary(lambda build, x, y, dy: build.MatrixDiagPart(dy)),
       linear_in=("diagonal",)),
    Op("MatrixDiagPart", "array", "The diagonals of matrices.", (Input("input", "T", "The matrices.", "[..., m, n]"),),
       outputs=(Output("diagonal", "T", "Their diagonals.", "[..., min(m, n)]"),), types=ANY,
       infer=shaped(_matrix_diag_part_rule), kernel="array.matrix_diag_part",
       gradient=lambda build, node, dys: (build.MatrixSetDiag(build.ZerosLike(node.inputs[0]), dys[0]),),
       linear_in=("input",)),
    Op("MatrixSetDiag", "array", "Matrices with another diagonal.",
       (Input("input", "T", "The matrices.", "[..., m, n]"), Input("diagonal", "T", "The values.", "[..., min(m, n)]")),
       outputs=(Output("output", "T", "The matrices with the new diagonals.", "[..., m, n]"),), types=ANY,
       infer=shaped(_set_diag_rule), kernel="array.matrix_set_diag", gradient=_set_diag_gradient),
    Op("MatrixBandPart", "array", "Matrices with zeros outside a band around the diagonal.",
       (Input("input", "T", "The matrices.", "[..., m, n]"),
        Input("num_lower", "Tindex", "Sub-diagonals to keep; negative: all.", "[]", host=True),
        Input("num_upper", "Tindex", "Super-diagonals to keep; negative: all.", "[]", host=True)),
       outputs=(Output("band", "T", "The banded matrices.", "[..., m, n]"),),
       types={"T": dtypes.ALL, "Tindex": dtypes.INDEX}, type_defaults={"Tindex": dtypes.INT64},
       infer=shaped(_band_rule), kernel="array.matrix_band_part", gradient=_band_gradient, linear_in=("input",)),
    Op("EditDistance", "array", "How many changes make one sequence of another, for sequences of two sparse tensors.",
       (*_sequences("hypothesis", "The sequences"), *_sequences("truth", "What they should be")),
       (Attr("normalize", "bool", "Divide by the length of the true sequence.", True),),
       (Output("output", dtypes.FLOAT32, "The changes of each.", "all dimensions but the last"),), ANY,
       infer=shaped(_edits_rule), kernel="array.edit_distance", gradient=nothing,
       laws=(Law("empty", "Of a true sequence that is empty, a change is infinitely many."),)),
    Op("ParallelConcat", "array", "Tensors of one row each, one behind the other.",
       (Input("values", "T", "The tensors.", "[1, ...]", many=True),),
       (Attr("shape", "shape", "The shape of the result: as many rows as tensors."),),
       (Output("output", "T", "All rows.", "shape"),), ANY, infer=shaped(_rows_rule), kernel="array.joined_rows"),
)  # fmt: skip
