# SPDX-License-Identifier: Apache-2.0
"""Activations, losses and normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BOOL, INT32
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.math import sigmoid, where
from voxgrad.kernels.arraywise.namespace import Array, integer, is_numpy, moved_to, to_numpy

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@kernel(widen=True)
def relu(run: Run, x: Array) -> Array:
    """max(x, 0)."""
    return run.xp.maximum(x, run.xp.zeros_like(x))


@kernel(widen=True)
def relu_grad(run: Run, dy: Array, x: Array) -> Array:
    """dy where x is above 0; a product, as in TensorFlow: an infinite dy gives NaN elsewhere."""
    return dy * (x > 0)


@kernel(widen=True)
def relu6(run: Run, x: Array) -> Array:
    """min(max(x, 0), 6)."""
    return run.xp.minimum(run.xp.maximum(x, run.xp.zeros_like(x)), run.xp.full_like(x, 6))


@kernel(widen=True)
def relu6_grad(run: Run, dy: Array, x: Array) -> Array:
    """dy where x lies between 0 and 6."""
    return dy * ((x > 0) & (x < 6))


def _alpha(run: Run) -> float:
    """The slope as TensorFlow keeps it: its attributes are single precision."""
    return float(np.float32(run.attrs["alpha"]))


@kernel(widen=True)
def leaky_relu(run: Run, x: Array) -> Array:
    """x, or alpha * x below 0; of the two the larger, which no branch has to guess, where alpha is not above 1."""
    alpha = _alpha(run)
    return run.xp.maximum(x, x * alpha) if 0 < alpha <= 1 else run.xp.where(x > 0, x, x * alpha)


@kernel(widen=True)
def leaky_relu_grad(run: Run, dy: Array, x: Array) -> Array:
    """dy, or alpha * dy where x is not above 0."""
    alpha = _alpha(run)
    if 0 < alpha <= 1:
        return dy * run.xp.maximum(run.xp.asarray(x > 0, dtype=dy.dtype), run.xp.full_like(dy, alpha))
    return run.xp.where(x > 0, dy, dy * alpha)


@kernel(widen=True)
def elu(run: Run, x: Array) -> Array:
    """x, or exp(x) - 1 below 0."""
    return run.xp.where(x < 0, run.xp.expm1(x), x)


@kernel(widen=True)
def elu_grad(run: Run, dy: Array, y: Array) -> Array:
    """dy, or (y + 1) * dy where y is below 0."""
    return run.xp.where(y < 0, (y + 1) * dy, dy)


@kernel(widen=True)
def selu(run: Run, x: Array) -> Array:
    """The self-normalising elu."""
    return run.xp.where(x < 0, run.xp.expm1(x) * _SELU_SCALE_ALPHA, x * _SELU_SCALE)


@kernel(widen=True)
def selu_grad(run: Run, dy: Array, y: Array) -> Array:
    """The gradient of selu by its output."""
    return run.xp.where(y < 0, dy * (y + _SELU_SCALE_ALPHA), dy * _SELU_SCALE)


@kernel(widen=True)
def softplus(run: Run, x: Array) -> Array:
    """log(exp(x) + 1), without overflow."""
    xp = run.xp
    return xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))


@kernel(widen=True)
def softplus_grad(run: Run, dy: Array, x: Array) -> Array:
    """dy * sigmoid(x)."""
    return dy * sigmoid(run, x)


@kernel(widen=True)
def softsign(run: Run, x: Array) -> Array:
    """x / (|x| + 1)."""
    return x / (run.xp.abs(x) + 1)


@kernel(widen=True)
def softsign_grad(run: Run, dy: Array, x: Array) -> Array:
    """dy / (|x| + 1)**2."""
    return dy / run.xp.square(run.xp.abs(x) + 1)


def _shifted(run: Run, x: Array) -> Array:
    """x minus the largest of its row, so that exp cannot overflow."""
    return x - run.xp.max(x, axis=-1, keepdims=True) if x.shape[-1] else x


@kernel(widen=True)
def softmax(run: Run, x: Array) -> Array:
    """Probabilities over the last dimension."""
    raised = run.xp.exp(_shifted(run, x))
    return raised / run.xp.sum(raised, axis=-1, keepdims=True)


@kernel(widen=True)
def log_softmax(run: Run, x: Array) -> Array:
    """Logarithms of probabilities over the last dimension."""
    shifted = _shifted(run, x)
    return shifted - run.xp.log(run.xp.sum(run.xp.exp(shifted), axis=-1, keepdims=True))


@kernel(widen=True)
def softmax_cross_entropy(run: Run, logits: Array, labels: Array) -> Any:
    """The loss of each row, and its gradient."""
    xp = run.xp
    logits, labels = xp.broadcast_arrays(logits, labels)
    logs = log_softmax(run, logits)
    terms = where(run, labels == 0, 0, -labels * logs)
    return xp.sum(terms, axis=-1), xp.exp(logs) - labels


@kernel(widen=True)
def sparse_softmax_cross_entropy(run: Run, logits: Array, labels: Array) -> Any:
    """The loss of the class of each row, and its gradient."""
    xp, classes = run.xp, to_numpy(labels).astype(np.int64)
    if classes.size and not 0 <= int(classes.min()) <= int(classes.max()) < logits.shape[-1]:
        run.fail("labels", wanted=f"be in [0, {logits.shape[-1]})", got=classes.tolist())
    hit = moved_to(np.arange(logits.shape[-1]) == classes[:, None], logits)
    logs = log_softmax(run, logits)
    probabilities = xp.exp(logs)
    loss = -xp.sum(where(run, hit, logs, 0), axis=-1)
    return loss, xp.where(hit, probabilities - 1, probabilities)


@kernel(widen=True)
def l2_loss(run: Run, x: Array) -> Array:
    """Half the sum of squares."""
    return run.xp.sum(x * x) / 2


def _channels_first(run: Run) -> bool:
    return bool(run.attrs.get("data_format") == "NCHW")


@kernel(widen=True)
def bias_add(run: Run, x: Array, bias: Array) -> Array:
    """One number added per channel."""
    if _channels_first(run):
        bias = run.xp.reshape(bias, (-1,) + (1,) * (len(x.shape) - 2))
    return x + bias


@kernel(widen=True)
def bias_add_grad(run: Run, dy: Array) -> Array:
    """The sum over all but the channels."""
    at = 1 if _channels_first(run) else len(dy.shape) - 1
    return run.xp.sum(dy, axis=tuple(index for index in range(len(dy.shape)) if index != at), dtype=dy.dtype)


def _neighbours(run: Run, x: Array) -> Array:
    """The sum over the channels within depth_radius of each."""
    radius, channels = run.attrs["depth_radius"], x.shape[-1]
    place = np.arange(channels)
    near = np.abs(place - place[:, None]) <= radius
    return run.xp.matmul(x, moved_to(near.astype(to_numpy(x[:0]).dtype), x))


def _within(run: Run, x: Array) -> Array:
    """The same sum, channel by channel: infinities and NaN stay with the channels around them."""
    channels, total = x.shape[-1], run.xp.zeros_like(x)
    radius = min(run.attrs["depth_radius"], channels)
    for offset in range(-radius, radius + 1):
        first, end = max(0, -offset), min(channels, channels - offset)
        total[..., first:end] += x[..., first + offset : end + offset]
    return total


@kernel(widen=True)
def lrn(run: Run, x: Array) -> Array:
    """Each channel divided by a power of the squares around it."""
    norm = run.attrs["bias"] + run.attrs["alpha"] * _neighbours(run, x * x)
    return x * norm ** -run.attrs["beta"]


@kernel(widen=True)
def lrn_grad(run: Run, dy: Array, x: Array, y: Array) -> Array:
    """The gradient of lrn."""
    alpha, beta = run.attrs["alpha"], run.attrs["beta"]
    norm = run.attrs["bias"] + alpha * _within(run, x * x)
    return dy * norm**-beta - 2 * alpha * beta * x * _within(run, dy * y / norm)


@kernel()
def in_top_k(run: Run, predictions: Array, targets: Array) -> Array:
    """Whether each target is among the k largest of its row."""
    scores, classes = to_numpy(predictions), to_numpy(targets).astype(np.int64)
    inside = (classes >= 0) & (classes < scores.shape[1])
    own = scores[np.arange(len(classes)), np.where(inside, classes, 0)] if scores.size else np.zeros(len(classes))
    finite = np.isfinite(own) & np.isfinite(scores).all(axis=1)
    larger = (scores > own[:, None]).sum(axis=1)
    return run.make(inside & finite & (larger < run.attrs["k"]), BOOL)


def _largest(run: Run, x: Array, count: int, index_type: Any) -> Any:
    values = to_numpy(x)
    order = np.argsort(-values if values.dtype.kind == "f" else _descending(values), axis=-1, kind="stable")[
        ..., :count
    ]
    chosen = np.take_along_axis(values, order, axis=-1)
    return (chosen if is_numpy(x) else moved_to(chosen, x)), run.make(order, index_type)


def _descending(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Keys that sort integers from the largest down without overflow."""
    flipped: np.ndarray[Any, Any] = np.invert(values) if values.dtype.kind in "iu" else -values.astype(np.float32)
    return flipped


@kernel(widen=True)
def top_k(run: Run, x: Array, k: Array) -> Any:
    """The k largest elements of each row and their places."""
    count = integer(k)
    if not 0 <= count <= x.shape[-1]:
        run.fail("k", wanted=f"be in [0, {x.shape[-1]}]", got=count)
    return _largest(run, x, count, run.attrs["index_type"])


@kernel(widen=True)
def top_k_attr(run: Run, x: Array) -> Any:
    """The k largest elements of each row and their places."""
    return _largest(run, x, run.attrs["k"], INT32)
