# SPDX-License-Identifier: Apache-2.0
"""FusedBatchNorm and its gradient, as TensorFlow's CPU kernels compute them."""

from __future__ import annotations

import math
from typing import Any

from voxgrad.catalog.batch_norm import channel_axis
from voxgrad.catalog.dtypes import FLOAT32
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type


def _wide(*arrays: Array) -> list[Array]:
    return [cast(array, FLOAT32) if element_type(array).itemsize == 2 else array for array in arrays]


def _layout(run: Run, x: Array) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The axes to go over, the shape in which a channel vector broadcasts, the number of cells per channel."""
    at = channel_axis(run.attrs["data_format"])
    axes = tuple(index for index in range(len(x.shape)) if index != at)
    shape = tuple(x.shape[at] if index == at else 1 for index in range(len(x.shape)))
    return axes, shape, math.prod(x.shape[index] for index in axes)


@kernel()
def forward(run: Run, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
    """Normalised data, the statistics to keep, and those for the gradient."""
    xp, attrs, kinds = run.xp, run.attrs, (element_type(x), element_type(scale))
    x, scale, offset, mean, variance = _wide(x, scale, offset, mean, variance)
    axes, shape, count = _layout(run, x)
    used_mean, used_variance = mean, variance
    new_mean, new_variance = mean, variance
    if not count:
        # Nothing has no statistics, in training or not.
        new_mean = new_variance = xp.full_like(offset, math.nan)
        if attrs["is_training"]:
            used_mean, used_variance = new_mean, new_variance
    elif attrs["is_training"]:
        used_mean = xp.mean(x, axis=axes)
        used_variance = xp.mean(xp.square(x - xp.reshape(used_mean, shape)), axis=axes)
        new_mean, new_variance = used_mean, used_variance * (count / max(1, count - 1))
        share = attrs["exponential_avg_factor"]
        if share != 1:
            new_mean = (1 - share) * mean + share * new_mean
            new_variance = (1 - share) * variance + share * new_variance
    factor = xp.reshape(scale / xp.sqrt(used_variance + attrs["epsilon"]), shape)
    y = (x - xp.reshape(used_mean, shape)) * factor + xp.reshape(offset, shape)
    stats = [cast(value, kinds[1]) for value in (new_mean, new_variance, used_mean, used_variance)]
    extra = [run.make(0, kinds[1])] if len(run.op.outputs) == 6 else []
    return cast(y, kinds[0]), *stats, *extra


@kernel()
def backward(run: Run, dy: Array, x: Array, scale: Array, mean: Array, variance: Array, *_: Array) -> Any:
    """Gradients with respect to the data, the factor and the summand."""
    xp, attrs, kinds = run.xp, run.attrs, (element_type(x), element_type(mean))
    dy, x, scale, mean, variance = _wide(dy, x, scale, mean, variance)
    axes, shape, count = _layout(run, x)
    inverse = 1 / xp.sqrt(variance + attrs["epsilon"])
    centred = x - xp.reshape(mean, shape)
    total, weighted = xp.sum(dy, axis=axes), xp.sum(dy * centred, axis=axes)
    rate = xp.reshape(scale * inverse, shape)
    if attrs["is_training"]:
        slope = xp.reshape(weighted / count * inverse * inverse, shape)
        dx = rate * (dy - xp.reshape(total / count, shape) - centred * slope)
    else:
        dx = rate * dy
    empty = run.make([], kinds[1])
    return cast(dx, kinds[0]), cast(weighted * inverse, kinds[1]), cast(total, kinds[1]), empty, empty
