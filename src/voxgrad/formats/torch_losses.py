# SPDX-License-Identifier: Apache-2.0
"""What losses of torch's are made of: sums, means and powers, targets taken apart, and torch's own loss functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from voxgrad import ops
from voxgrad.formats.torch_walk import Value, Walk, Weight, needs

_FLOATS = {torch.float32: "float32", torch.float64: "float64"}
_WHOLE = {torch.int64: "int64", torch.int32: "int32", torch.bool: "bool"}


def _axes(value: Value, dim: Any) -> list[int]:
    """The dimensions of the page that are these of torch's; all, where none are named."""
    dims = range(len(value.shape)) if dim is None or dim == [] else dim if isinstance(dim, (list, tuple)) else [dim]
    return [value.axis(one) for one in dims]


def _reduction(op: str) -> Callable[..., Any]:
    def rule(walk: Walk, value: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        needs(dtype is None, "in another type")
        axes = _axes(value, dim)
        left = [one for one in map(value.axis, range(len(value.shape))) if one not in axes]
        needs(
            keepdim or left == sorted(left), "that leaves channels and some of depth, height and width, without keepdim"
        )
        return walk.add(op, value, axes, keep_dims=keepdim)

    return rule


def _reduced(walk: Walk, each: Any, rank: int, reduction: int) -> Any:
    """torch's numbers: 0 leaves all, 1 takes the mean, 2 the sum."""
    return each if reduction == 0 else walk.add("Mean" if reduction == 1 else "Sum", each, list(range(rank)))


def _mse_loss(walk: Walk, value: Value, target: Value, reduction: int = 1) -> Any:
    needs(value.shape == target.shape, "of two sizes")
    return _reduced(walk, walk.add("SquaredDifference", value, target), len(value.shape), reduction)


def _l1_loss(walk: Walk, value: Value, target: Value, reduction: int = 1) -> Any:
    needs(value.shape == target.shape, "of two sizes")
    apart = walk.add("Abs", walk.add("Sub", value, target))
    return _reduced(walk, apart, len(value.shape), reduction)


def _binary_cross_entropy_with_logits(
    walk: Walk, value: Value, target: Value, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    needs(weight is None and pos_weight is None and value.shape == target.shape, "with weights, or of two sizes")
    each = walk.add("Sub", walk.add("Softplus", value), walk.add("Mul", value, target))
    return _reduced(walk, each, len(value.shape), reduction)


def _cross_entropy_loss(
    walk: Walk, value: Value, target: Value, weight: Weight | None = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    needs(len(value.shape) == 5 and label_smoothing == 0 and reduction > 0, "with smoothed labels, or without a sum")
    logs = walk.add("LogSoftmax", value)
    every = [0, 1, 2, 3, 4]
    if target.shape == value.shape:
        needs(weight is None, "with weights and shares of classes")
        total = walk.add("Neg", walk.add("Sum", walk.add("Mul", logs, target), every))
        return _divided(walk, total, math.prod(value.shape) // value.shape[1], reduction)
    labels = ops.ExpandDims(walk.page, target.there, 4)
    # The sums are over classes and voxels at once; a voxel that is ignored is of no class.
    kind = str(labels.dtype)
    classes = np.arange(value.shape[1], dtype=kind).reshape(1, 1, 1, 1, -1)
    chosen = walk.add("Cast", walk.add("Equal", labels, walk.fed(classes, "classes")), DstT=walk.dtype)
    valid = walk.add("Cast", walk.add("NotEqual", labels, np.asarray(ignore_index, kind)), DstT=walk.dtype)
    chosen = walk.add("Mul", chosen, valid)
    right = _of_one_class(walk, chosen, valid)
    if weight is not None:
        chosen = walk.add("Mul", chosen, weight)
    total = walk.add("AddV2", walk.add("Neg", walk.add("Sum", walk.add("Mul", logs, chosen), every)), right)
    return total if reduction == 2 else walk.add("RealDiv", total, walk.add("Sum", chosen, every))


def _of_one_class(walk: Walk, chosen: Any, valid: Any) -> Any:
    """Zero, or NaN where a label is none of the classes: torch raises, and a loss must not look as if it was right."""
    found, wanted = (walk.add("Sum", walk.add("Cast", one, DstT="float64"), [0, 1, 2, 3, 4]) for one in (chosen, valid))
    others = walk.add("NotEqual", found, wanted)
    return walk.add("Cast", walk.add("SelectV2", others, np.float64(np.nan), np.float64(0)), DstT=walk.dtype)


def _divided(walk: Walk, total: Any, count: int, reduction: int) -> Any:
    return total if reduction == 2 else walk.add("RealDiv", total, walk.number(count))


# Targets, powers, bounds


def _select(walk: Walk, value: Value, dim: int, index: int) -> Any:
    axis, size = value.axis(dim), value.shape[dim]
    needs(len(value.shape) == 5 and axis == 4, "of another dimension than the channels")
    begin, count = [0] * 5, [-1] * 5
    begin[axis], count[axis] = index % size, 1
    return walk.add("Squeeze", walk.add("Slice", value, begin, count), axis=[axis])


def _unsqueeze(walk: Walk, value: Value, dim: int) -> Any:
    needs(len(value.shape) == 4 and dim % 5 == 1, "to another dimension than the channels")
    return walk.add("ExpandDims", value, 4)


def _to(walk: Walk, value: Value, dtype: Any = None, *_: Any, **named: Any) -> Any:
    kind = {**_FLOATS, **_WHOLE}.get(dtype if isinstance(dtype, torch.dtype) else named.get("dtype"))
    needs(kind is not None, f"to {dtype}")
    return walk.add("Cast", value, DstT=kind)


def _pow(walk: Walk, value: Value, exponent: Any) -> Any:
    needs(isinstance(exponent, (int, float)), "to a power that is no number")
    return walk.add("Square", value) if exponent == 2 else walk.add("Pow", value, walk.number(exponent))


def _clamp(walk: Walk, value: Value, min: float | None = None, max: float | None = None) -> Any:
    made: Any = value
    for op, bound in (("Maximum", min), ("Minimum", max)):
        made = made if bound is None else walk.add(op, made, walk.number(bound))
    return made


def _rsub(walk: Walk, value: Value, other: float, alpha: float = 1) -> Any:
    needs(alpha == 1, "with a factor")
    return walk.add("Sub", walk.number(other), value)


def _log_softmax(walk: Walk, value: Value, dim: int = -1, dtype: Any = None) -> Any:
    needs(dtype is None and value.axis(dim) == len(value.shape) - 1, "over another axis than the channels")
    return walk.add("LogSoftmax", value)


def _broadcast_tensors(walk: Walk, values: Sequence[Value]) -> Any:
    needs(len({one.shape for one in values}) == 1, "of several sizes")
    return tuple(values)


def _plain(op: str) -> Callable[..., Any]:
    return lambda walk, value, *_: walk.add(op, value)


LOSSES: dict[str, Callable[..., Any]] = {
    "mean": _reduction("Mean"), "sum": _reduction("Sum"), "mse_loss": _mse_loss, "l1_loss": _l1_loss,
    "binary_cross_entropy_with_logits": _binary_cross_entropy_with_logits, "cross_entropy_loss": _cross_entropy_loss,
    "select": _select, "unsqueeze": _unsqueeze, "to": _to, "pow": _pow, "clamp": _clamp, "rsub": _rsub,
    "log_softmax": _log_softmax, "broadcast_tensors": _broadcast_tensors, "log": _plain("Log"),
    "sqrt": _plain("Sqrt"), "square": _plain("Square"), "detach": _plain("StopGradient"),
}  # fmt: skip
"""Ops of torch's that losses are made of, by their names."""
