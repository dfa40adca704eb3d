# SPDX-License-Identifier: Apache-2.0
"""Floats rounded to what a few bits could hold; in float32, as TensorFlow does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, moved_to, to_numpy

Values = Any
_HALF = np.float32(0.5)


def _away(values: Values) -> Values:
    """Halves are rounded away from 0."""
    return np.trunc(values + np.copysign(_HALF, values))


def _range(run: Run, bounds: tuple[Array, ...]) -> tuple[Values, Values, Values]:
    """The least and the greatest number, shifted so that 0 is a step, and the size of a step."""
    given: list[Any] = [to_numpy(one) for one in bounds] or [np.float32(run.attrs[name]) for name in ("min", "max")]
    low, high = (np.asarray(one, np.float32) for one in given)
    first = np.float32(1 if run.attrs["narrow_range"] else 0)
    last = np.float32(2 ** run.attrs["num_bits"] - 1)
    scale = (high - low) / (last - first)
    zero = first - low / scale
    zero = np.where(zero < first, first, np.where(zero > last, last, _away(zero)))
    return (first - zero) * scale, (last - zero) * scale, scale


@kernel()
def rounded(run: Run, x: Array, *bounds: Array) -> Array:
    """Numbers at the nearest step."""
    data = to_numpy(x)
    low, high, scale = _range(run, bounds)
    inverse = np.float32(1) / scale
    zero = np.floor(-low * inverse + _HALF)
    made = np.floor((np.maximum(np.minimum(data, high), low) - low) * inverse - zero + _HALF) * scale
    if bounds:
        none = (to_numpy(bounds[0]) == 0) & (to_numpy(bounds[1]) == 0)
        made = np.where(none, np.float32(0), made)
    return moved_to(made.astype(np.float32), x)


@kernel()
def rounded_grad(run: Run, dy: Array, x: Array, *bounds: Array) -> Any:
    """Gradients where the input lies in the range; their sums below and above it."""
    slopes, data = to_numpy(dy), to_numpy(x)
    low, high, _ = _range(run, bounds)
    over = tuple(range(data.ndim - np.ndim(low)))
    if not bounds:
        return moved_to(slopes * ((data >= low) & (data <= high)), x)
    none = (to_numpy(bounds[0]) == 0) & (to_numpy(bounds[1]) == 0)

    def where(mask: Values) -> Values:
        """A vector of channels is chosen from; else a gradient that is no number stays so."""
        return np.where(mask, slopes, np.float32(0)) if data.ndim == np.ndim(low) == 1 else slopes * mask

    parts = [np.where(none, np.float32(0), where(mask).sum(axis=over, dtype=np.float64)).astype(np.float32)
             for mask in (data < low, data > high)]  # fmt: skip
    inside = np.where(none, slopes, where((data >= low) & (data <= high)))
    return tuple(moved_to(np.asarray(one), x) for one in (inside, *parts))


@kernel()
def stepped(run: Run, x: Array, input_min: Array, input_max: Array) -> Array:
    """Numbers at the nearest step of their range."""
    data, attrs = to_numpy(x), run.attrs
    axis, bits = attrs["axis"], attrs["num_bits"]
    over = tuple(one for one in range(data.ndim) if one != axis)
    if not data.size:
        return moved_to(data.copy(), x)
    spread = [-1 if one == axis else 1 for one in range(data.ndim)]
    if attrs["range_given"]:
        low, high = (to_numpy(one).reshape(spread if axis != -1 else ()) for one in (input_min, input_max))
        if (low > high).any():
            run.fail("input_min", wanted="be at most input_max", got="more")
    else:
        low, high = data.min(over, keepdims=True), data.max(over, keepdims=True)
    kind = data.dtype.type
    least = -(2 ** (bits - 1)) + int(attrs["narrow_range"]) if attrs["signed_input"] else 0
    most = 2 ** (bits - 1) - 1 if attrs["signed_input"] else 2**bits - 1
    first, last, none = kind(least), kind(most), np.finfo(data.dtype).max
    from_low, from_high = (np.where(end * bound > 0, end / bound, none) for end, bound in ((first, low), (last, high)))
    below = from_low < from_high
    scale = np.where(below, from_low, from_high)
    inverse = np.where(below, low / first if least else kind(0), high / last)
    low, high = np.where(below, low, first * inverse), np.where(below, last * inverse, high)
    kept = np.maximum(np.minimum(data, high), low) if attrs["range_given"] else data
    steps = kept * scale
    whole = np.rint(steps) if attrs["round_mode"] == "HALF_TO_EVEN" else np.floor(steps + kind(0.5))
    return moved_to((whole * inverse).astype(data.dtype), x)
