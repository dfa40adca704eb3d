# SPDX-License-Identifier: Apache-2.0
"""Elementwise arithmetic, comparison and logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import all_known, differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.gradients import conj, nothing, of_binary, of_unary, unbroadcast
from voxgrad.catalog.locality import choice, elementwise, rows
from voxgrad.catalog.model import Attr, Call, Gradient, Input, Law, Node, Op, Output, Spec
from voxgrad.catalog.shapes import (
    Infer,
    alike,
    broadcast,
    broadcast_shapes,
    broadcasting,
    check_same,
    elements,
    has_rank,
    like,
    merged,
    same_shapes,
    size_of,
    specs,
    text,
)  # fmt: skip
from voxgrad.errors import Faults

Types = tuple[DType, ...]

_BROADCAST = Law("broadcast", "Sizes are equal or 1, counted from the last dimension; a missing one counts as 1.")
_NAN = Law("nan", "NaN in, NaN out.")
_WRAP = Law("overflow", "Integers wrap around.")


def _unary(
    name: str,
    summary: str,
    kernel: str,
    types: Types = dtypes.ANALYTIC,
    gradient: Gradient | None = None,
    laws: Sequence[Law] = (),
    names: tuple[str, str] = ("x", "y"),
    out: str | DType = "T",
    **more: Any,
) -> Op:
    """An op of one tensor, element by element."""
    return Op(
        name, "math", summary, (Input(names[0], "T", "The tensor."),),
        outputs=(Output(names[1], out, "The result, element by element.", f"shape of {names[0]}"),),
        types={"T": types}, infer=like(names[0]), kernel=f"math.{kernel}", gradient=gradient, laws=tuple(laws),
        follows=elementwise, **more,
    )  # fmt: skip


def _binary(
    name: str,
    summary: str,
    kernel: str,
    types: Types,
    gradient: Gradient | None = None,
    laws: Sequence[Law] = (),
    names: tuple[str, str, str] = ("x", "y", "z"),
    out: str | DType = "T",
    **more: Any,
) -> Op:
    """An op of two tensors that broadcast."""
    more.setdefault("infer", broadcasting(*names[:2]))
    return Op(
        name, "math", summary,
        (Input(names[0], "T", "The left tensor."), Input(names[1], "T", "The right tensor, of the same type.")),
        outputs=(Output(names[2], out, "The result, element by element.", "the broadcast shape"),),
        types={"T": types}, kernel=f"math.{kernel}", gradient=gradient, laws=(_BROADCAST, *laws),
        follows=elementwise, **more,
    )  # fmt: skip


def _grad_op(name: str, of: str, formula: str, kernel: str, gradient: Gradient | None) -> Op:
    """The gradient of a unary op in terms of its output."""
    return Op(
        name, "math", f"Gradient of {of}: {formula}.",
        (Input("y", "T", f"The output of {of}."), Input("dy", "T", "The gradient with respect to it.")),
        outputs=(Output("z", "T", f"The gradient with respect to the input of {of}.", "shape of y"),),
        types={"T": dtypes.ANALYTIC}, infer=alike("y", "dy"), kernel=f"math.{kernel}", gradient=gradient,
        linear_in=("dy",), follows=elementwise,
    )  # fmt: skip


def _fold(operate: Any) -> Infer:
    """Broadcasting, and the value too where both sides are known integers: shape arithmetic stays visible."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        shape = broadcast(call, ("x", "y"), faults)
        if faults:
            return None
        left, right = (elements(call.inputs[name]) for name in ("x", "y"))
        if not left or not right or shape is None or size_of(shape) != max(len(left), len(right)):
            # Both sides are repeated, or one is empty: not worth following.
            return specs(call, shape)
        count = max(len(left), len(right))
        pairs = zip(left * (count // len(left)), right * (count // len(right)), strict=True)
        try:
            value = tuple(operate(one, two) for one, two in pairs)
        except (TypeError, ZeroDivisionError):
            value = None
        return specs(call, shape, value=value if call.inputs["x"].dtype in dtypes.INDEX else None)

    return infer


def _product_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    return build.Mul(dz, conj(build, y)), build.Mul(conj(build, x), dz)


def _quotient_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    x, y = conj(build, x), conj(build, y)
    return build.RealDiv(dz, y), build.Mul(dz, build.RealDiv(build.RealDiv(build.Neg(x), y), y))


def _quotient_no_nan_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    x, y = conj(build, x), conj(build, y)
    return build.DivNoNan(dz, y), build.Mul(dz, build.DivNoNan(build.DivNoNan(build.Neg(x), y), y))


def _mod_gradient(quotient: str) -> Gradient:
    def rule(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
        return dz, build.Neg(build.Mul(dz, getattr(build, quotient)(x, y)))

    return of_binary(rule)


def _power_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    x, y, z = conj(build, x), conj(build, y), conj(build, z)
    is_complex = "complex" in str(getattr(x, "dtype", ""))
    zero = build.ZerosLike(x)
    mask = build.NotEqual(x, zero) if is_complex else build.Greater(x, zero)
    log = build.SelectV2(mask, build.Log(build.SelectV2(mask, x, build.OnesLike(x))), zero)
    return build.Mul(build.Mul(dz, y), build.Pow(x, build.Sub(y, 1))), build.Mul(build.Mul(dz, z), log)


def _extreme_gradient(compare: str) -> Gradient:
    def rule(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
        zeros, takes_x = build.ZerosLike(dz), getattr(build, compare)(x, y)
        return build.SelectV2(takes_x, dz, zeros), build.SelectV2(takes_x, zeros, dz)

    return of_binary(rule)


def _difference_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    dx = build.Mul(build.Mul(dz, 2), build.Sub(x, y))
    return dx, build.Neg(dx)


def _atan2_gradient(build: Any, y: Any, x: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    inverse = build.RealDiv(dz, build.AddV2(build.Square(x), build.Square(y)))
    return build.Mul(x, inverse), build.Mul(build.Neg(y), inverse)


def _xlogy_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    # Where x is 0 the product is 0 whatever y is: no gradient leaves there.
    kept = build.Cast(build.NotEqual(x, 0), DstT=getattr(x, "dtype", dtypes.FLOAT32))
    return build.Mul(build.Xlogy(kept, y), dz), build.Mul(build.Xdivy(x, y), dz)


def _xdivy_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    kept = build.Cast(build.NotEqual(x, 0), DstT=getattr(x, "dtype", dtypes.FLOAT32))
    return build.Mul(build.Xdivy(kept, y), dz), build.Mul(build.Xdivy(build.Neg(x), build.Square(y)), dz)


def _mul_no_nan_gradient(build: Any, x: Any, y: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    return build.MulNoNan(dz, y), build.MulNoNan(x, dz)


_ARITHMETIC = dtypes.NUMBER
_SIGNED_COMPLEX = (*dtypes.SIGNED, *dtypes.COMPLEX)
_COMMON = (*dtypes.FLOATING, dtypes.UINT8, dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64, *dtypes.COMPLEX)
_TRUNCATED = (dtypes.INT32, dtypes.INT64, *dtypes.FLOATING)
_ZERO = Law("zero", "An integer division by zero is an error; of floats it gives an infinity or NaN.")

_SUM = of_binary(lambda build, x, y, z, dz: (dz, dz))

BINARY = (
    _binary("Add", "x + y, element by element.", "add", (*_COMMON, dtypes.STRING), _SUM,
            (_WRAP, Law("text", "Texts are joined.")), infer=_fold(lambda a, b: a + b), linear_in=("x", "y")),
    _binary("AddV2", "x + y, element by element.", "add", _ARITHMETIC, _SUM, (_WRAP,),
            infer=_fold(lambda a, b: a + b)),
    _binary("Sub", "x - y, element by element.", "subtract", _ARITHMETIC,
            of_binary(lambda build, x, y, z, dz: (dz, build.Neg(dz))), (_WRAP,),
            infer=_fold(lambda a, b: a - b), aliases=("Subtract",)),
    _binary("Mul", "x * y, element by element.", "multiply", _ARITHMETIC, of_binary(_product_gradient), (_WRAP,),
            infer=_fold(lambda a, b: a * b), aliases=("Multiply",), linear_in=("x", "y")),
    _binary("Div", "x / y; integers are divided towards zero, as in C.", "divide", _ARITHMETIC,
            of_binary(_quotient_gradient), (_ZERO,)),
    _binary("RealDiv", "x / y for real numbers.", "divide", _ARITHMETIC, of_binary(_quotient_gradient), (_ZERO,)),
    _binary("DivNoNan", "x / y, and 0 where y is 0.", "divide_no_nan", dtypes.ANALYTIC,
            of_binary(_quotient_no_nan_gradient)),
    _binary("MulNoNan", "x * y, and 0 where y is 0, also for an infinite or NaN x.", "multiply_no_nan",
            dtypes.ANALYTIC, of_binary(_mul_no_nan_gradient)),
    _binary("FloorDiv", "x / y rounded towards negative infinity, as Python's //.", "floor_divide", _ARITHMETIC,
            nothing, (_ZERO,), infer=_fold(lambda a, b: a // b)),
    _binary("TruncateDiv", "x / y rounded towards zero.", "truncate_divide", _ARITHMETIC, nothing, (_ZERO,)),
    _binary("FloorMod", "The remainder of FloorDiv: it has the sign of y, as Python's %.", "floor_mod",
            (*dtypes.INTEGERS, *dtypes.FLOATING), _mod_gradient("FloorDiv"), (_ZERO,),
            infer=_fold(lambda a, b: a % b)),
    _binary("Mod", "The remainder of a division towards zero: it has the sign of x, as C's fmod.", "truncate_mod",
            _TRUNCATED, None, (_ZERO,)),
    _binary("TruncateMod", "The remainder of TruncateDiv: it has the sign of x.", "truncate_mod", _TRUNCATED,
            _mod_gradient("TruncateDiv"), (_ZERO,)),
    _binary("Pow", "x to the power y.", "power",
            (*dtypes.FLOATING, dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64, *dtypes.COMPLEX),
            of_binary(_power_gradient), (Law("negative", "An integer to a negative power is an error."),)),
    _binary("Maximum", "The larger of x and y.", "maximum", dtypes.REAL, _extreme_gradient("GreaterEqual"),
            (Law("ties", "In a tie x takes the gradient."), _NAN)),
    _binary("Minimum", "The smaller of x and y.", "minimum", dtypes.REAL, _extreme_gradient("LessEqual"),
            (Law("ties", "In a tie x takes the gradient."), _NAN)),
    _binary("SquaredDifference", "conj(x - y) * (x - y).", "squared_difference",
            (*dtypes.FLOATING, dtypes.INT32, dtypes.INT64, *dtypes.COMPLEX), of_binary(_difference_gradient)),
    _binary("Atan2", "The angle of the point (x, y), in (-pi, pi].", "atan2", dtypes.FLOATING,
            of_binary(_atan2_gradient), names=("y", "x", "z")),
    _binary("Xlogy", "x * log(y), and 0 where x is 0.", "xlogy", dtypes.ANALYTIC, of_binary(_xlogy_gradient)),
    _binary("Xdivy", "x / y, and 0 where x is 0.", "xdivy", dtypes.ANALYTIC, of_binary(_xdivy_gradient)),
)  # fmt: skip


def _over(denominator: Any) -> Gradient:
    """dy divided by a function of x."""
    return of_unary(lambda build, x, y, dy: build.RealDiv(dy, denominator(build, conj(build, x))))


def _one_minus_square(build: Any, x: Any) -> Any:
    return build.Sub(build.OnesLike(x), build.Square(x))


def _one_plus_square(build: Any, x: Any) -> Any:
    return build.AddV2(build.Square(x), 1)


def _times(factor: Any) -> Gradient:
    """dy times a function of x and y."""
    return of_unary(lambda build, x, y, dy: build.Mul(dy, conj(build, factor(build, x, y))))


def _sqrt_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    scaled = build.RealDiv(dys[0], node.inputs[0])
    return build.Neg(build.Mul(conj(build, scaled), node.outputs[0])), build.Mul(scaled, 0.5)


def _rsqrt_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y, dy, grad = conj(build, node.inputs[0]), node.inputs[1], dys[0]
    first = build.Mul(build.Mul(build.Mul(conj(build, grad), dy), build.Square(y)), -1.5)
    return first, build.RsqrtGrad(y, grad)


def _reciprocal_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y, dy = conj(build, node.inputs[0]), node.inputs[1]
    return build.Mul(build.Mul(build.Mul(conj(build, dys[0]), dy), y), -2), build.ReciprocalGrad(y, dys[0])


def _sigmoid_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y, dy = conj(build, node.inputs[0]), conj(build, node.inputs[1])
    product = build.Mul(dys[0], dy)
    return build.Sub(product, build.Mul(build.Mul(product, 2), y)), build.SigmoidGrad(y, dys[0])


def _tanh_grad_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    y, dy = conj(build, node.inputs[0]), conj(build, node.inputs[1])
    return build.Mul(build.Mul(build.Mul(dys[0], dy), y), -2), build.TanhGrad(y, dys[0])


def _grad_of(name: str, *, conjugated: bool = False) -> Gradient:
    return of_unary(lambda build, x, y, dy: getattr(build, name)(conj(build, y) if conjugated else y, dy))


_ROUND_LAWS = (Law("ties", "Halves go to the even neighbour."),)
_ZERO_GRADIENT: Gradient = of_unary(lambda build, x, y, dy: None)

UNARY = (
    _unary("Abs", "The absolute value.", "abs", dtypes.SIGNED,
           of_unary(lambda build, x, y, dy: build.Mul(dy, build.Sign(x)))),
    _unary("Neg", "-x.", "negative", _SIGNED_COMPLEX, of_unary(lambda build, x, y, dy: build.Neg(dy)),
           aliases=("Negate",), linear_in=("x",)),
    _unary("Reciprocal", "1 / x.", "reciprocal", _SIGNED_COMPLEX, _grad_of("ReciprocalGrad"), (_ZERO,)),
    _unary("Inv", "1 / x; the older name of Reciprocal.", "reciprocal", _SIGNED_COMPLEX, _grad_of("ReciprocalGrad"),
           (_ZERO,)),
    _unary("Square", "x * x.", "square", _ARITHMETIC,
           of_unary(lambda build, x, y, dy: build.Mul(dy, build.Mul(conj(build, x), 2)))),
    _unary("Sqrt", "The square root.", "sqrt", gradient=_grad_of("SqrtGrad")),
    _unary("Rsqrt", "1 / sqrt(x).", "rsqrt", gradient=_grad_of("RsqrtGrad")),
    _unary("Exp", "e to the power x.", "exp", gradient=_times(lambda build, x, y: y)),
    _unary("Expm1", "exp(x) - 1, exact near 0.", "expm1", gradient=_times(lambda build, x, y: build.Exp(x))),
    _unary("Log", "The natural logarithm.", "log",
           gradient=of_unary(lambda build, x, y, dy: build.Mul(dy, build.Reciprocal(conj(build, x))))),
    _unary("Log1p", "log(1 + x), exact near 0.", "log1p",
           gradient=of_unary(lambda build, x, y, dy: build.Mul(dy, build.Reciprocal(build.AddV2(conj(build, x), 1))))),
    _unary("Sin", "The sine of an angle in radians.", "sin", gradient=_times(lambda build, x, y: build.Cos(x))),
    _unary("Cos", "The cosine of an angle in radians.", "cos",
           gradient=of_unary(lambda build, x, y, dy: build.Neg(build.Mul(dy, build.Sin(conj(build, x)))))),
    _unary("Tan", "The tangent of an angle in radians.", "tan",
           gradient=_times(lambda build, x, y: build.Square(build.Reciprocal(build.Cos(x))))),
    _unary("Sinh", "The hyperbolic sine.", "sinh", gradient=_times(lambda build, x, y: build.Cosh(x))),
    _unary("Cosh", "The hyperbolic cosine.", "cosh", gradient=_times(lambda build, x, y: build.Sinh(x))),
    _unary("Tanh", "The hyperbolic tangent.", "tanh", gradient=_grad_of("TanhGrad", conjugated=True)),
    _unary("Asin", "The angle whose sine is x.", "asin",
           gradient=_over(lambda build, x: build.Sqrt(_one_minus_square(build, x)))),
    _unary("Acos", "The angle whose cosine is x.", "acos",
           gradient=_over(lambda build, x: build.Neg(build.Sqrt(_one_minus_square(build, x))))),
    _unary("Atan", "The angle whose tangent is x.", "atan", gradient=_over(_one_plus_square)),
    _unary("Asinh", "The inverse of Sinh.", "asinh",
           gradient=of_unary(lambda build, x, y, dy: build.RealDiv(dy, build.Cosh(conj(build, y))))),
    _unary("Acosh", "The inverse of Cosh.", "acosh",
           gradient=of_unary(lambda build, x, y, dy: build.RealDiv(dy, build.Sinh(conj(build, y))))),
    _unary("Atanh", "The inverse of Tanh.", "atanh", gradient=_over(_one_minus_square)),
    _unary("Sigmoid", "1 / (1 + exp(-x)).", "sigmoid", gradient=_grad_of("SigmoidGrad", conjugated=True)),
    _unary("Sign", "-1, 0 or 1; x / |x| for complex numbers.", "sign", _SIGNED_COMPLEX,
           of_unary(lambda build, x, y, dy: build.ZerosLike(x)), (_NAN,)),
    _unary("Round", "The nearest integer.", "round", _SIGNED_COMPLEX, _ZERO_GRADIENT, _ROUND_LAWS),
    _unary("Rint", "The nearest integer.", "round", dtypes.FLOATING, _ZERO_GRADIENT, _ROUND_LAWS),
    _unary("Ceil", "The smallest integer not below x.", "ceil", dtypes.FLOATING, _ZERO_GRADIENT),
    _unary("Floor", "The largest integer not above x.", "floor", dtypes.FLOATING, _ZERO_GRADIENT),
    _unary("IsNan", "Where x is NaN.", "isnan", dtypes.FLOATING, out=dtypes.BOOL),
    _unary("IsInf", "Where x is an infinity.", "isinf", dtypes.FLOATING, out=dtypes.BOOL),
    _unary("IsFinite", "Where x is neither NaN nor an infinity.", "isfinite", dtypes.FLOATING, out=dtypes.BOOL),
    _grad_op("SqrtGrad", "Sqrt", "dy * 0.5 / y", "sqrt_grad", _sqrt_grad_gradient),
    _grad_op("RsqrtGrad", "Rsqrt", "dy * -0.5 * y**3", "rsqrt_grad", _rsqrt_grad_gradient),
    _grad_op("ReciprocalGrad", "Reciprocal", "-dy * y * y", "reciprocal_grad", _reciprocal_grad_gradient),
    _grad_op("InvGrad", "Inv", "-dy * y * y", "reciprocal_grad", _reciprocal_grad_gradient),
    _grad_op("SigmoidGrad", "Sigmoid", "dy * y * (1 - y)", "sigmoid_grad", _sigmoid_grad_gradient),
    _grad_op("TanhGrad", "Tanh", "dy * (1 - y * y)", "tanh_grad", _tanh_grad_gradient),
)  # fmt: skip

_SHAPE_ERROR = Attr("incompatible_shape_error", "bool",
                    "True: shapes that do not broadcast are an error. False: the result is then one False (Equal) or "
                    "True (NotEqual).", True)  # fmt: skip


def _equality_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    if call.attrs.get("incompatible_shape_error", True):
        return broadcasting("x", "y")(call, faults)
    left, right = call.inputs["x"].shape, call.inputs["y"].shape
    if left is None or right is None or not (left == right or all_known((*left, *right))):
        return specs(call, None)
    made = broadcast_shapes(left, right)
    return specs(call, () if made is None else made)


def _comparison(name: str, summary: str, kernel: str, **more: Any) -> Op:
    more.setdefault("laws", (Law("nan", "Comparisons with NaN are false."),))
    return _binary(name, summary, kernel, more.pop("types", dtypes.REAL), out=dtypes.BOOL, **more)


def _logical(name: str, summary: str, kernel: str) -> Op:
    """An op of two truth values."""
    return Op(
        name, "math", summary,
        (Input("x", dtypes.BOOL, "The left truth values."), Input("y", dtypes.BOOL, "The right truth values.")),
        outputs=(Output("z", dtypes.BOOL, "The result, element by element.", "the broadcast shape"),),
        infer=broadcasting("x", "y"), kernel=f"math.{kernel}", laws=(_BROADCAST,), follows=elementwise,
    )  # fmt: skip


COMPARISONS = (
    _comparison("Equal", "Where x equals y.", "equal", types=dtypes.ALL, attrs=(_SHAPE_ERROR,), infer=_equality_infer),
    _comparison("NotEqual", "Where x differs from y.", "not_equal", types=dtypes.ALL, attrs=(_SHAPE_ERROR,),
                infer=_equality_infer, laws=(Law("nan", "NaN differs from everything, itself included."),)),
    _comparison("Less", "Where x < y.", "less"),
    _comparison("LessEqual", "Where x <= y.", "less_equal"),
    _comparison("Greater", "Where x > y.", "greater"),
    _comparison("GreaterEqual", "Where x >= y.", "greater_equal"),
    _comparison("ApproximateEqual", "Where |x - y| <= tolerance.", "approximate_equal", types=dtypes.NUMBER,
                attrs=(Attr("tolerance", "float", "How close is equal.", 1e-5),), infer=alike("x", "y")),
    _logical("LogicalAnd", "x and y.", "logical_and"),
    _logical("LogicalOr", "x or y.", "logical_or"),
    Op("LogicalNot", "math", "not x.", (Input("x", dtypes.BOOL, "Truth values."),),
       outputs=(Output("y", dtypes.BOOL, "The opposite of each.", "shape of x"),), infer=like("x"),
       kernel="math.logical_not", follows=elementwise),
)  # fmt: skip


def _cast_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    source = getattr(node.inputs[0], "dtype", None)
    kind = str(source)
    if not any(part in kind for part in ("float", "half", "complex")):
        return (None,)
    return (build.Cast(dys[0], DstT=source),)


def _cast_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    spec, target = call.inputs["x"], call.attrs.get("DstT")
    kept = target in dtypes.INDEX and spec.dtype in dtypes.INDEX
    if kept and target is dtypes.INT32 and any(known(size) and abs(size) >= 2**31 for size in elements(spec) or ()):
        kept = False
    return (Spec(target, spec.shape, spec.value if kept else None),)


def _select_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """Select: condition has the shape of x, or is a scalar, or a vector over the first dimension."""
    shape = same_shapes(call, [item.name for item in call.op.inputs[1:]], faults)
    condition = call.inputs["condition"].shape
    if faults:
        return None
    if shape is not None and condition is not None and condition != ():
        rows = len(condition) == 1 and len(shape) > 1
        wanted = "the first size of x" if rows else "the shape of x"
        if not check_same("condition", condition, tuple(shape[:1]) if rows else shape, wanted, faults):
            return None
    whole = condition is not None and shape is None and len(condition) > 1
    return specs(call, merged(shape, condition) if whole else shape)


def _select_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    condition, zeros = node.inputs[0], build.ZerosLike(node.inputs[1])
    return None, build.Select(condition, dys[0], zeros), build.Select(condition, zeros, dys[0])


def _select_v2_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    condition, x, y = node.inputs
    zeros = build.ZerosLike(dys[0])
    grads = build.SelectV2(condition, dys[0], zeros), build.SelectV2(condition, zeros, dys[0])
    output = node.outputs[0]
    return None, *(unbroadcast(build, (one, output), (grad, None))[0] for one, grad in zip((x, y), grads, strict=True))


def _add_n_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = None
    for index, spec in enumerate(call.inputs["inputs"]):
        check_same(f"inputs[{index}]", spec.shape, shape, "the shape of inputs[0]", faults)
        shape = merged(shape, spec.shape)
    return None if faults else specs(call, shape)


def _clip_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    t, low, high = node.inputs
    zeros = build.ZerosLike(dys[0])
    below, above = build.Less(t, low), build.Greater(t, high)
    inside = build.SelectV2(build.LogicalOr(below, above), zeros, dys[0])
    sums = (
        unbroadcast(build, (one, t), (grad, None))[0]
        for one, grad in ((low, build.SelectV2(below, dys[0], zeros)), (high, build.SelectV2(above, dys[0], zeros)))
    )
    return inside, *sums


def _clip_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = call.inputs["t"].shape
    for name in ("clip_value_min", "clip_value_max"):
        bound = call.inputs[name].shape
        if bound != ():
            check_same(name, bound, shape, "the shape of t, or none", faults)
    return None if faults else specs(call, shape)


def _cross_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = same_shapes(call, ("a", "b"), faults)
    if has_rank(call, "a", 1, faults, at_least=True) and shape is not None and differ(shape[-1], 3):
        faults.add("VG012", "a", wanted="have vectors of 3 in its last dimension", got=text(shape))
    return None if faults else specs(call, shape)


def _cross_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    a, b = node.inputs
    return build.Cross(b, dys[0]), build.Cross(dys[0], a)


OTHERS = (
    Op("Cast", "math", "The same values in another type.", (Input("x", "SrcT", "The tensor."),),
       (Attr("DstT", "type", "The type of the result."),
        Attr("Truncate", "bool", "Round towards zero when a float becomes a narrower float.", False)),
       (Output("y", "DstT", "The values in the new type.", "shape of x"),),
       {"SrcT": dtypes.ALL, "DstT": dtypes.ALL}, infer=_cast_infer, kernel="math.cast", gradient=_cast_gradient,
       laws=(Law("range", "Floats become integers towards zero; integers wrap; what is not 0 is True."),),
       follows=elementwise),
    Op("Select", "math", "x where the condition holds, else y.",
       (Input("condition", dtypes.BOOL, "Like x, or a scalar, or a vector that chooses whole rows."),
        Input("x", "T", "Values where it holds."), Input("y", "T", "Values elsewhere, of the same shape.")),
       outputs=(Output("output", "T", "The chosen values.", "shape of x"),), types={"T": dtypes.ALL},
       infer=_select_infer, kernel="math.select", gradient=_select_gradient, aliases=("Where3",),
       follows=choice),
    Op("SelectV2", "math", "t where the condition holds, else e; all three broadcast.",
       (Input("condition", dtypes.BOOL, "The choice."), Input("t", "T", "Values where it holds."),
        Input("e", "T", "Values elsewhere.")),
       outputs=(Output("output", "T", "The chosen values.", "the broadcast shape"),), types={"T": dtypes.ALL},
       infer=broadcasting("condition", "t", "e"), kernel="math.select_v2", gradient=_select_v2_gradient,
       laws=(_BROADCAST,), follows=elementwise),
    Op("AddN", "math", "The sum of all inputs.", (Input("inputs", "T", "Tensors of one shape.", many=True),),
       outputs=(Output("sum", "T", "Their sum.", "shape of each input"),), types={"T": dtypes.NUMBER},
       infer=_add_n_infer, kernel="math.add_n",
       gradient=lambda build, node, dys: ([dys[0]] * len(node.inputs[0]),), follows=elementwise),
    Op("ClipByValue", "math", "t, kept between two bounds.",
       (Input("t", "T", "The tensor."), Input("clip_value_min", "T", "The lower bound, a scalar or like t."),
        Input("clip_value_max", "T", "The upper bound, a scalar or like t.")),
       outputs=(Output("output", "T", "The clipped tensor.", "shape of t"),), types={"T": dtypes.NUMBER},
       infer=_clip_infer, kernel="math.clip_by_value", gradient=_clip_gradient, follows=elementwise,
       laws=(Law("order", "Where the bounds cross, the lower one wins."),
             Law("complex", "Of complex numbers each part is kept between the same parts of the bounds."))),
    Op("Cross", "math", "The cross product of 3-vectors in the last dimension.",
       (Input("a", "T", "Vectors.", "[..., 3]"), Input("b", "T", "Vectors of the same shape.", "[..., 3]")),
       outputs=(Output("product", "T", "a x b.", "[..., 3]"),), types={"T": dtypes.REAL}, infer=_cross_infer,
       kernel="math.cross", gradient=_cross_gradient, linear_in=("a", "b"), follows=rows),
)  # fmt: skip


def _complex_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    real, imaginary = node.inputs
    return unbroadcast(build, (real, imaginary), (_real(build, dys[0]), _imag(build, dys[0])))


def _part(name: str) -> Any:
    def part(build: Any, value: Any) -> Any:
        wide = "128" in str(getattr(value, "dtype", ""))
        return getattr(build, name)(value, Tout=dtypes.FLOAT64 if wide else dtypes.FLOAT32)

    return part


_real, _imag = _part("Real"), _part("Imag")


def _as_complex(build: Any, real: Any, imaginary: Any) -> Any:
    wide = "64" in str(getattr(real, "dtype", ""))
    return build.Complex(real, imaginary, Tout=dtypes.COMPLEX128 if wide else dtypes.COMPLEX64)


def _complex_abs_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, size = node.inputs[0], node.outputs[0]
    direction = build.DivNoNan(x, _as_complex(build, size, build.ZerosLike(size)))
    return (build.Mul(_as_complex(build, dys[0], build.ZerosLike(dys[0])), direction),)


def _angle_gradient(build: Any, x: Any, y: Any, dy: Any) -> Any:
    inverse = build.Reciprocal(_as_complex(build, _imag(build, x), _real(build, x)))
    return build.Neg(build.Mul(_as_complex(build, dy, build.ZerosLike(dy)), inverse))


_TO_REAL = {"T": dtypes.COMPLEX, "Tout": (dtypes.FLOAT32, dtypes.FLOAT64)}
_REAL_OUT = (Attr("Tout", "type", "The type of the parts: float64 for complex128.", dtypes.FLOAT32,
                  choices=_TO_REAL["Tout"]),)  # fmt: skip


def _complex_part(name: str, summary: str, kernel: str, gradient: Gradient | None, names: tuple[str, str]) -> Op:
    return Op(
        name, "math", summary, (Input(names[0], "T", "Complex numbers."),), _REAL_OUT,
        (Output(names[1], "Tout", "Real numbers.", f"shape of {names[0]}"),), _TO_REAL,
        {"T": dtypes.COMPLEX64}, infer=like(names[0]), kernel=f"math.{kernel}", gradient=gradient,
        follows=elementwise,
    )  # fmt: skip


COMPLEX_OPS = (
    Op("Complex", "math", "Complex numbers from their parts.",
       (Input("real", "T", "The real parts."), Input("imag", "T", "The imaginary parts.")),
       (Attr("Tout", "type", "complex128 for float64.", dtypes.COMPLEX64, choices=dtypes.COMPLEX),),
       (Output("out", "Tout", "real + i * imag.", "the broadcast shape"),),
       {"T": (dtypes.FLOAT32, dtypes.FLOAT64), "Tout": dtypes.COMPLEX}, {"T": dtypes.FLOAT32},
       infer=broadcasting("real", "imag"), kernel="math.complex", gradient=_complex_gradient,
       follows=elementwise),
    _complex_part("Real", "The real part.", "real",
                  of_unary(lambda build, x, y, dy: _as_complex(build, dy, build.ZerosLike(dy))), ("input", "output")),
    _complex_part("Imag", "The imaginary part.", "imag",
                  of_unary(lambda build, x, y, dy: _as_complex(build, build.ZerosLike(dy), dy)), ("input", "output")),
    _complex_part("ComplexAbs", "The absolute value of complex numbers.", "complex_abs", _complex_abs_gradient,
                  ("x", "y")),
    _complex_part("Angle", "The angle of complex numbers, in (-pi, pi].", "angle", of_unary(_angle_gradient),
                  ("input", "output")),
    _unary("Conj", "The complex conjugate.", "conj", dtypes.COMPLEX,
           of_unary(lambda build, x, y, dy: build.Conj(dy)), names=("input", "output"),
           type_defaults={"T": dtypes.COMPLEX64}),
)  # fmt: skip

OPS = (*BINARY, *UNARY, *COMPARISONS, *OTHERS, *COMPLEX_OPS)
