# SPDX-License-Identifier: Apache-2.0
"""Shared shapes of gradients: what a rule for one value, or for two that broadcast, becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from voxgrad.catalog.model import Gradient, Node

UnaryRule = Callable[[Any, Any, Any, Any], Any]
"""`rule(build, x, y, dy)` returns dx."""

BinaryRule = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]
"""`rule(build, x, y, z, dz)` returns what dx and dy are before broadcasting is undone."""


def of_unary(rule: UnaryRule) -> Gradient:
    """The gradient of an op with one input."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        return (rule(build, node.inputs[0], node.outputs[0], dys[0]),)

    return gradient


def of_binary(rule: BinaryRule) -> Gradient:
    """The gradient of an op with two inputs that broadcast."""

    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        x, y = node.inputs
        return unbroadcast(build, (x, y), rule(build, x, y, node.outputs[0], dys[0]))

    return gradient


def nothing(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """No gradient flows to any input."""
    return tuple(None for _ in node.inputs)


def unbroadcast(build: Any, inputs: tuple[Any, Any], grads: tuple[Any, Any]) -> tuple[Any, Any]:
    """Sums two gradients over the axes along which their inputs were repeated."""
    if _same_static_shape(*inputs):
        return grads
    shapes = [build.Shape(one) for one in inputs]
    axes = build.BroadcastGradientArgs(*shapes)
    left, right = (
        None if grad is None else build.Reshape(build.Sum(grad, over), shape)
        for grad, over, shape in zip(grads, axes, shapes, strict=True)
    )
    return left, right


def _same_static_shape(x: Any, y: Any) -> bool:
    left, right = getattr(x, "shape", None), getattr(y, "shape", None)
    return left is not None and right is not None and tuple(left) == tuple(right)


def conj(build: Any, x: Any) -> Any:
    """The complex conjugate; real values are their own."""
    return build.Conj(x) if "complex" in str(getattr(x, "dtype", "")) else x
