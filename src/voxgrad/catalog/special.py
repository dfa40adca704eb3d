# SPDX-License-Identifier: Apache-2.0
"""Special functions; on NumPy arrays they need SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.gradients import of_binary, of_unary, unbroadcast
from voxgrad.catalog.locality import elementwise
from voxgrad.catalog.model import Call, Gradient, Input, Law, Node, Op, Output, Shape
from voxgrad.catalog.shapes import broadcasting, like, same_shapes, shaped
from voxgrad.errors import Faults

_NEEDS = Law("scipy", "On NumPy arrays it needs SciPy: pip install voxgrad[special].")
_TWO = (dtypes.FLOAT32, dtypes.FLOAT64)


def _gaussian(scale: float) -> Gradient:
    """dy * scale * exp(-x * x)."""
    return of_unary(lambda build, x, y, dy: build.Mul(build.Mul(dy, scale), build.Exp(build.Neg(build.Square(x)))))


def _inverse(scale: float, half: bool) -> Gradient:
    """dy * scale * exp(y * y), or of y * y / 2."""

    def rule(build: Any, x: Any, y: Any, dy: Any) -> Any:
        power = build.Square(y)
        return build.Mul(build.Mul(dy, scale), build.Exp(build.Mul(power, 0.5) if half else power))

    return of_unary(rule)


def _digamma_gradient(build: Any, x: Any, y: Any, dy: Any) -> Any:
    return build.Mul(dy, build.Polygamma(build.OnesLike(x), x))


def _polygamma_gradient(build: Any, a: Any, x: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    return None, build.Mul(dz, build.Polygamma(build.AddV2(a, 1), x))


def _zeta_gradient(build: Any, x: Any, q: Any, z: Any, dz: Any) -> tuple[Any, Any]:
    return None, build.Mul(build.Mul(dz, build.Neg(x)), build.Zeta(build.AddV2(x, 1), q))


def _density(build: Any, a: Any, x: Any) -> Any:
    """x**(a - 1) * exp(-x) / gamma(a), in logarithms."""
    power = build.Mul(build.Sub(a, 1), build.Log(x))
    return build.Exp(build.Sub(build.Sub(power, x), build.Lgamma(a)))


def _igamma_gradient(sign: int) -> Gradient:
    def rule(build: Any, a: Any, x: Any, z: Any, dz: Any) -> tuple[Any, Any]:
        dx = build.Mul(dz, _density(build, a, x))
        da = build.Mul(dz, build.IgammaGradA(a, x))
        return (da, dx) if sign > 0 else (build.Neg(da), build.Neg(dx))

    return of_binary(rule)


def _betainc_rule(call: Call, faults: Faults) -> Shape | None:
    """Scalars go with tensors; tensors have one shape."""
    tensors = [name for name in ("a", "b", "x") if call.inputs[name].shape != ()]
    return same_shapes(call, tensors, faults) if tensors else ()


def _betainc_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    a, b, x = node.inputs
    beta = build.Sub(build.AddV2(build.Lgamma(a), build.Lgamma(b)), build.Lgamma(build.AddV2(a, b)))
    power = build.AddV2(build.Mul(build.Sub(b, 1), build.Log1p(build.Neg(x))), build.Mul(build.Sub(a, 1), build.Log(x)))
    dx = build.Mul(build.Exp(build.Sub(power, beta)), dys[0])
    return None, None, unbroadcast(build, (x, node.outputs[0]), (dx, None))[0]


def _unary(name: str, summary: str, kernel: str, gradient: Gradient) -> Op:
    return Op(
        name, "math", summary, (Input("x", "T", "The tensor."),),
        outputs=(Output("y", "T", "The result, element by element.", "shape of x"),), types={"T": dtypes.FLOATING},
        infer=like("x"), kernel=f"special.{kernel}", gradient=gradient, laws=(_NEEDS,), follows=elementwise,
    )  # fmt: skip


def _binary(name: str, summary: str, kernel: str, names: tuple[str, str], types: Any, gradient: Gradient | None) -> Op:
    return Op(
        name, "math", summary,
        (Input(names[0], "T", "The first argument."), Input(names[1], "T", "The second argument.")),
        outputs=(Output("z", "T", "The result, element by element.", "the broadcast shape"),), types={"T": types},
        infer=broadcasting(*names), kernel=f"special.{kernel}", gradient=gradient, laws=(_NEEDS,),
        follows=elementwise,
    )  # fmt: skip


OPS = (
    _unary("Erf", "The error function.", "erf", _gaussian(2 / math.sqrt(math.pi))),
    _unary("Erfc", "1 - Erf(x), exact where Erf is near 1.", "erfc", _gaussian(-2 / math.sqrt(math.pi))),
    _unary("Erfinv", "The inverse of Erf.", "erfinv", _inverse(math.sqrt(math.pi) / 2, False)),
    _unary("Ndtri", "The quantile of the standard normal distribution.", "ndtri",
           _inverse(math.sqrt(2 * math.pi), True)),
    _unary("Lgamma", "The logarithm of the absolute value of the gamma function.", "lgamma",
           of_unary(lambda build, x, y, dy: build.Mul(dy, build.Digamma(x)))),
    _unary("Digamma", "The derivative of Lgamma.", "digamma", of_unary(_digamma_gradient)),
    _binary("Polygamma", "The a-th derivative of Digamma at x.", "polygamma", ("a", "x"), _TWO,
            of_binary(_polygamma_gradient)),
    _binary("Zeta", "The Hurwitz zeta function: the sum of (q + n)**-x.", "zeta", ("x", "q"), _TWO,
            of_binary(_zeta_gradient)),
    _binary("Igamma", "The lower regularised incomplete gamma function P(a, x).", "igamma", ("a", "x"), dtypes.FLOATING,
            _igamma_gradient(1)),
    _binary("Igammac", "The upper regularised incomplete gamma function Q(a, x).", "igammac", ("a", "x"),
            dtypes.FLOATING,
            _igamma_gradient(-1)),
    _binary("IgammaGradA", "The derivative of Igamma with respect to a.", "igamma_grad_a", ("a", "x"), _TWO, None),
    Op("Betainc", "math", "The regularised incomplete beta function.",
       (Input("a", "T", "The first parameter."), Input("b", "T", "The second parameter."),
        Input("x", "T", "Points in [0, 1].")),
       outputs=(Output("z", "T", "The result, element by element.", "the broadcast shape"),), types={"T": _TWO},
       infer=shaped(_betainc_rule), kernel="special.betainc", gradient=_betainc_gradient, laws=(_NEEDS,),
       follows=elementwise),
)  # fmt: skip
