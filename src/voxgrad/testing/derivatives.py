# SPDX-License-Identifier: Apache-2.0
"""An op against its own declaration: transposes on integers, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad import raw_ops
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import OPS

Array = np.ndarray[Any, Any]


class Eager:
    """A builder that computes at once: `Eager().Conv3D(x, w, **attrs)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def apply(*inputs: Any, **attrs: Any) -> Any:
            named = {item.name: value for item, value in zip(OPS[name].inputs, inputs, strict=True)}
            return getattr(raw_ops, name)(**named, **attrs)

        return apply

    def Shape(self, x: Array) -> list[int]:
        """The shape, as the gradients ask for it."""
        return list(x.shape)

    def ZerosLike(self, x: Array) -> Array:
        """Zeros, as the gradients ask for them."""
        return np.zeros_like(x)


@dataclass(frozen=True)
class Applied:
    """An op applied to arrays, as gradients see it."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    attrs: Mapping[str, Any]


def gradient(op: Op, call: Mapping[str, Any], dy: Array) -> dict[str, Any]:
    """The gradients of a call from the declaration, by input name, computed with the raw ops."""
    assert op.gradient is not None
    attrs = {attr.name: call[attr.name] for attr in op.attrs if attr.name in call}
    node = Applied([call[item.name] for item in op.inputs], [getattr(raw_ops, op.name)(**call)], attrs)
    return dict(zip((item.name for item in op.inputs), op.gradient(Eager(), node, [dy]), strict=True))


def check_adjoint(op: Op, call: Mapping[str, Any], seed: int = 0, scale: int = 1) -> None:
    """<A u, v> = <u, A* v> for every input in which the op is linear, exactly: the call must hold small integers.

    `scale` multiplies v, so that averages stay integers.
    """
    random = np.random.default_rng(seed)
    out = np.asarray(getattr(raw_ops, op.name)(**call), dtype=np.float64)
    v = scale * random.integers(-3, 4, out.shape).astype(np.float64)
    grads = gradient(op, call, v.astype(call[op.linear_in[0]].dtype))
    for name in op.linear_in:
        left = float((out * v).sum())
        right = float((np.asarray(call[name], np.float64) * np.asarray(grads[name], np.float64)).sum())
        assert left == right, f"{op.name}: not adjoint in {name}: <A u, v> = {left}, <u, A* v> = {right}"


def check_gradients(
    function: Callable[[Array], Any], derivative: Callable[[Array, Array], Any], x: Array, *, step: float = 1e-6,
    directions: int = 3, tolerance: float = 1e-6, seed: int = 0,
) -> None:  # fmt: skip
    """The derivative of a float64 function along random directions equals its central difference.

    `derivative(x, v)` returns J(x)^T v for a cotangent v of the shape of the function's value.
    """
    random = np.random.default_rng(seed)
    v = random.standard_normal(np.shape(function(x)))
    analytic = np.asarray(derivative(x, v))
    for _ in range(directions):
        u = random.standard_normal(x.shape)
        difference = (np.asarray(function(x + step * u)) - np.asarray(function(x - step * u))) / (2 * step)
        numeric, exact = float((difference * v).sum()), float((analytic * u).sum())
        scale = max(1.0, abs(numeric))
        assert abs(numeric - exact) <= tolerance * scale, (
            f"directional derivative {exact!r}, difference quotient {numeric!r}"
        )
