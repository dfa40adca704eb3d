# SPDX-License-Identifier: Apache-2.0
"""Integers that stand for floats of a range, rounded step by step as TensorFlow rounds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, QUINT8, DType
from voxgrad.kernels.arraywise import array
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integer, integers, moved_to, to_numpy
from voxgrad.kernels.arraywise.patches import axes_of, taps_of
from voxgrad.kernels.arraywise.resampling import interpolate, linear_taps
from voxgrad.kernels.element_types import numpy_type

Values = Any
_ONE, _HALF = np.float32(1), np.float32(0.5)


def _limits(kind: Any) -> tuple[int, int]:
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


def _steps(kind: Any) -> int:
    return int(2 ** (8 * np.dtype(kind).itemsize))


def _away(values: Values) -> Values:
    """Halves are rounded away from 0."""
    whole = np.trunc(values)
    return whole + np.copysign(np.abs(values - whole) >= 0.5, values)


def _bound(value: Array) -> Any:
    return np.float32(to_numpy(value).reshape(())[()])


def _made(run: Run, values: Values, kind: DType, low: Any, high: Any) -> tuple[Array, Array, Array]:
    return run.make(values, kind), run.make(low, FLOAT32), run.make(high, FLOAT32)


# One number at a time, in float64


def _unclamped(values: Values, kind: Any, low: Any, high: Any) -> Values:
    """Integers for floats, which may lie outside the type."""
    lowest = _limits(kind)[0]
    if low == high:
        return np.full(np.shape(values), lowest, np.int64)
    steps = _steps(kind)
    scale = steps / (np.float64(high - low) * (steps / (steps - 1.0)))
    return (_away(np.float64(values) * scale) - _away(np.float64(low) * scale)).astype(np.int64) + lowest


def _quantised(values: Values, kind: Any, low: Any, high: Any) -> Values:
    return np.clip(_unclamped(values, kind, low, high), *_limits(kind)).astype(kind)


def _floats(values: Values, low: Any, high: Any) -> Values:
    """Floats for integers."""
    if low == high:
        return np.full(values.shape, low)
    steps = _steps(values.dtype)
    scale = np.float64(high - low) * (steps / (steps - 1.0)) / steps
    first = np.float64(_away(low / np.float32(scale)) * np.float32(scale))
    # TensorFlow's qint32 is a float on its way to other types.
    return (first + (values.astype(np.float32).astype(np.float64) - _limits(values.dtype)[0]) * scale).astype(
        np.float32
    )


# Many numbers at a time, in float32


def _floats_at_once(values: Values, low: Any, high: Any) -> Values:
    scale = np.float32(np.float64(high - low) / (_steps(values.dtype) - 1.0))
    first = low if low == high else _away(low / scale).astype(np.float32) * scale
    return (first - np.float32(_limits(values.dtype)[0]) * scale) + values.astype(np.float32) * scale


def _quantised_at_once(values: Values, kind: Any, low: Any, high: Any) -> Values:
    lowest, highest = _limits(kind)
    scale = np.float32(0 if low == high else (_steps(kind) - 1.0) / np.float64(high - low))
    zero = _away(low * scale).astype(np.float32) - np.float32(lowest)
    made = _away(values * scale).astype(np.float32) - zero
    # The highest 32-bit integer is no float: the next one below it is.
    top = min(np.float32(highest), np.float32(2147483520))
    return np.minimum(np.maximum(made, np.float32(lowest)), top).astype(np.int32).astype(kind)


def _slices(run: Run, values: Values, *bounds: Array) -> list[Values]:
    """Ranges so that they go with the slices along an axis."""
    axis = run.attrs["axis"]
    shape = [-1 if at == axis else 1 for at in range(values.ndim)] if axis >= 0 else []
    return [to_numpy(one).reshape(shape) for one in bounds]


@kernel()
def quantize(run: Run, x: Array, min_range: Array, max_range: Array) -> tuple[Array, ...]:
    """Integers for floats."""
    kind, mode, data = numpy_type(run.attrs["T"]), run.attrs["mode"], to_numpy(x)
    given_low, given_high = _slices(run, data, min_range, max_range)
    if (given_high < given_low).any():
        run.fail("max_range", wanted="be min_range or more", got=float(given_high.ravel()[0]))
    low = np.minimum(np.float32(0), given_low)
    larger = np.maximum(_ONE, np.maximum(np.abs(given_low), np.abs(given_high)))
    high = np.fmax(np.float32(0), np.fmax(given_high, low + larger * np.float32(run.attrs["ensure_minimum_range"])))
    if mode == "MIN_FIRST":
        low, high = low.reshape(())[()], high.reshape(())[()]
        made = _quantised_at_once(data, kind, low, high)
    elif mode == "MIN_COMBINED":
        made = _from_lowest(data, kind, low, high)
    else:
        made, low, high = _scaled(run, data, kind, low, high)
    shape = min_range.shape if np.size(low) > 1 else ()
    return _made(run, made, run.attrs["T"], np.reshape(low, shape), np.reshape(high, shape))


def _from_lowest(data: Values, kind: Any, low: Values, high: Values) -> Values:
    lowest, highest = _limits(kind)
    scale = (np.float64(highest - lowest) / np.float64(high - low)).astype(np.float32)
    part = (np.maximum(np.minimum(data, high), low) - low) * scale
    made = _away(part + np.float32(lowest)) if lowest else np.trunc(part + _HALF)
    return np.clip(made.astype(np.float64), lowest, highest).astype(kind)


def _scaled(run: Run, data: Values, kind: Any, low: Values, high: Values) -> tuple[Values, Values, Values]:
    lowest, highest = _limits(kind)
    least, most = np.float32(lowest + run.attrs["narrow_range"]), np.float32(highest)
    none = np.float32(np.finfo(np.float32).max)
    factor = np.minimum(np.where(least * low > 0, least / low, none), np.where(most * high > 0, most / high, none))
    factor = factor.astype(np.float32)
    low, high = least / factor, most / factor
    part = np.maximum(np.minimum(data, high), low) * factor
    whole = np.round(part) if run.attrs["round_mode"] == "HALF_TO_EVEN" else _away(part)
    return np.clip(whole.astype(np.float64), lowest, highest).astype(kind), low, high


@kernel()
def dequantize(run: Run, x: Array, min_range: Array, max_range: Array) -> Array:
    """Floats for integers."""
    data, mode = to_numpy(x), run.attrs["mode"]
    low, high = _slices(run, data, min_range, max_range)
    lowest, highest = (np.float32(one) for one in _limits(data.dtype))
    if mode == "MIN_FIRST":
        made = _floats_at_once(data, low.reshape(())[()], high.reshape(())[()])
    elif mode == "MIN_COMBINED":
        half = np.float32(0) if not lowest else (highest - lowest + _ONE) / np.float32(2)
        made = (data.astype(np.float32) + half) * ((high - low) / (highest - lowest)) + low
    else:
        scale = high / highest
        if lowest:
            scale = np.maximum(low / np.float32(_limits(data.dtype)[0] + run.attrs["narrow_range"]), scale)
        made = data.astype(np.float32) * scale
    return run.make(made, run.attrs["dtype"] if run.attrs["dtype"] is BFLOAT16 else FLOAT32)


@kernel()
def concat(run: Run, axis: Array, values: list[Array], mins: list[Array], maxes: list[Array]) -> tuple[Array, ...]:
    """Tensors behind each other, in a range that holds all of theirs."""
    parts = [to_numpy(one) for one in values]
    ranges = [(_bound(low), _bound(high)) for low, high in zip(mins, maxes, strict=True)]
    low, high = min(np.float32(0), *(one for one, _ in ranges)), max(one for _, one in ranges)
    if _limits(parts[0].dtype)[0]:
        high = max(abs(low), abs(high))
        low = -high
    # Empty tensors have no range to be turned into another.
    made = [part if own == (low, high) else _quantised_at_once(_floats_at_once(part, *own), part.dtype, low, high)
            for part, own in zip(parts, ranges, strict=True)]  # fmt: skip
    whole = np.concatenate(made, axis=integer(axis))
    return moved_to(whole, values[0]), run.make(low, FLOAT32), run.make(high, FLOAT32)


@kernel()
def reshape(run: Run, tensor: Array, shape: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """The same numbers in another shape."""
    return array.reshape(run, tensor, shape), low, high


@kernel()
def instance_norm(run: Run, x: Array, x_min: Array, x_max: Array) -> tuple[Array, ...]:
    """Every channel of every image with mean 0 and deviation 1."""
    data, attrs, (low, high) = to_numpy(x), run.attrs, (_bound(x_min), _bound(x_max))
    _check_range(run, ("x_min", low), ("x_max", high))
    if attrs["output_range_given"] and not attrs["given_y_min"] < attrs["given_y_max"]:
        run.fail("given_y_max", wanted=f"be above given_y_min {attrs['given_y_min']}", got=attrs["given_y_max"])
    scale, cells = (high - low) / np.float32(_steps(data.dtype) - 1), data.astype(np.float32)
    away = cells - cells.mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(np.float32)
    variance = ((scale * away) ** 2).mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(np.float32)
    made = scale * away * (_ONE / np.sqrt(variance + np.float32(attrs["variance_epsilon"])))
    least, most = np.float32(attrs["given_y_min"]), np.float32(attrs["given_y_max"])
    if not attrs["output_range_given"]:
        least, most = np.min(made, initial=np.inf), np.max(made, initial=-np.inf)
    if most - least < np.float32(attrs["min_separation"]):
        most = least + np.float32(attrs["min_separation"])
    whole = _quantised_at_once(made, data.dtype, least, most)
    return moved_to(whole, x), run.make(least, FLOAT32), run.make(most, FLOAT32)


def _check_range(run: Run, low: tuple[str, Any], high: tuple[str, Any]) -> None:
    if not low[1] < high[1]:
        run.fail(high[0], wanted=f"be above {low[0]}, {low[1]}", got=high[1])


def _used(data: Values, low: Any, high: Any) -> tuple[Any, Any]:
    lowest, highest = _limits(data.dtype)
    ends = np.array([np.min(data, initial=highest), np.max(data, initial=lowest)], data.dtype)
    least, most = _floats(ends, low, high)
    return min(np.float32(0), least), most


@kernel()
def used_range(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The floats that the least and the greatest number stand for."""
    least, most = _used(to_numpy(x), _bound(low), _bound(high))
    return run.make(least, FLOAT32), run.make(most, FLOAT32)


@kernel()
def shrink(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Fewer bits, for the range that is used."""
    data, own = to_numpy(x), (_bound(low), _bound(high))
    least, most = _used(data, *own)
    return _made(run, _requantised(run, data, own, (least, most)), run.attrs["out_type"], least, most)


@kernel()
def requantize(run: Run, x: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> tuple[Array, ...]:
    """Fewer bits, for a stated range."""
    least, most = _bound(new_low), _bound(new_high)
    if not least <= 0:
        run.fail("requested_output_min", wanted="be 0 or less", got=least)
    if not most >= least:
        run.fail("requested_output_max", wanted=f"be requested_output_min {least} or more", got=most)
    made = _requantised(run, to_numpy(x), (_bound(low), _bound(high)), (least, most))
    return _made(run, made, run.attrs["out_type"], least, most)


def _requantised(run: Run, data: Values, old: tuple[Any, Any], new: tuple[Any, Any]) -> Values:
    kind = numpy_type(run.attrs["out_type"])
    if data.dtype != np.int32 or run.attrs["out_type"] is not QUINT8:
        return _quantised_at_once(_floats_at_once(data, *old), kind, *new)
    # From 32 bits to 8 with 16 bits behind the point.
    span, room = np.float64(old[1] - old[0]), np.float64(new[1] - new[0])
    if room == 0:
        return np.zeros(data.shape, kind)
    scale = _whole(255.0 * 65536 * span / room)
    middle = np.float32(np.float64(old[0] + old[1]) / 2)
    shift = _whole(middle * np.float32(255.0 / room) * np.float32(65536))
    shift -= _whole(_away(65536 * (np.float64(new[0]) * 255.0) / room)) - 32768
    made = ((data.astype(np.int64) * scale >> 32) + shift) >> 16
    return np.clip(made, 0, 255).astype(kind)


def _whole(number: Any) -> np.int64:
    return np.float64(number).astype(np.int64)


def _product_range(kinds: tuple[Any, Any, Any], left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    """What the lowest and the highest of products stand for."""
    steps = [
        (high - low) / np.float32(_steps(kind) - 1) for kind, (low, high) in zip(kinds[:2], (left, right), strict=True)
    ]
    lowest, highest = _limits(kinds[2])
    return steps[0] * steps[1] * np.float32(lowest), steps[0] * steps[1] * np.float32(highest)


def _from_zero(
    run: Run, names: tuple[str, ...], data: Values, bounds: tuple[Array, Array]
) -> tuple[Values, tuple[Any, Any]]:
    """Numbers less the one that stands for 0, and their range."""
    low, high = _bound(bounds[0]), _bound(bounds[1])
    _check_range(run, (names[0], low), (names[1], high))
    zero = int(_unclamped(np.float32(0), data.dtype, low, high))
    return data.astype(np.int64) - zero, (low, high)


def _wrapped(values: Values, kind: Any) -> Values:
    return values.astype(np.int32).astype(kind)


@kernel()
def matmul(run: Run, a: Array, b: Array, *bounds: Array) -> tuple[Array, ...]:
    """The product of two matrices of integers, in 32 bits."""
    kind, given = numpy_type(run.attrs["Toutput"]), (to_numpy(a), to_numpy(b))
    left, own = _from_zero(run, ("min_a", "max_a"), given[0], bounds[:2])
    right, other = _from_zero(run, ("min_b", "max_b"), given[1], bounds[2:])
    made = (left.T if run.attrs["transpose_a"] else left) @ (right.T if run.attrs["transpose_b"] else right)
    ends = _product_range((given[0].dtype, given[1].dtype, kind), own, other)
    return _made(run, _wrapped(made, kind), run.attrs["Toutput"], *ends)


@kernel()
def multiply(run: Run, x: Array, y: Array, *bounds: Array) -> tuple[Array, ...]:
    """Products element by element, in 32 bits."""
    kind, given = numpy_type(run.attrs["Toutput"]), (to_numpy(x), to_numpy(y))
    left, own = _from_zero(run, ("min_x", "max_x"), given[0], bounds[:2])
    right, other = _from_zero(run, ("min_y", "max_y"), given[1], bounds[2:])
    ends = _product_range((given[0].dtype, given[1].dtype, kind), own, other)
    return _made(run, _wrapped(left * right, kind), run.attrs["Toutput"], *ends)


@kernel()
def convolution(run: Run, x: Array, w: Array, *bounds: Array) -> tuple[Array, ...]:
    """Sums over windows, in 32 bits; padding stands for 0."""
    kind, images, taps = numpy_type(run.attrs["out_type"]), to_numpy(x), to_numpy(w)
    left, own = _from_zero(run, ("min_input", "max_input"), images, bounds[:2])
    right, other = _from_zero(run, ("min_filter", "max_filter"), taps, bounds[2:])
    axes = axes_of(run, images.shape, taps.shape[:2])
    made = np.zeros((len(images), axes[0].out, axes[1].out, taps.shape[3]), np.int64)
    for (row, column), windows, cells in taps_of(axes):
        made[windows] += left[cells] @ right[row, column]
    ends = _product_range((images.dtype, taps.dtype, kind), own, other)
    return _made(run, _wrapped(made, kind), run.attrs["out_type"], *ends)


@kernel()
def maxima(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Maxima of windows."""
    images = to_numpy(x)
    axes = axes_of(run, images.shape, run.attrs["ksize"][1:3])
    made = np.full((len(images), axes[0].out, axes[1].out, images.shape[3]), _limits(images.dtype)[0], images.dtype)
    for _, windows, cells in taps_of(axes):
        made[windows] = np.maximum(made[windows], images[cells])
    return moved_to(made, x), low, high


@kernel()
def means(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Means over windows, rounded towards 0; padding does not count."""
    images = to_numpy(x)
    axes = axes_of(run, images.shape, run.attrs["ksize"][1:3])
    total = np.zeros((len(images), axes[0].out, axes[1].out, images.shape[3]), np.int64)
    count = np.zeros((1, *total.shape[1:3], 1), np.int64)
    for _, windows, cells in taps_of(axes):
        total[windows] += images[cells]
        count[windows] += 1
    made = np.sign(total) * (np.abs(total) // np.maximum(count, 1))
    return moved_to(made.astype(images.dtype), x), low, high


@kernel()
def batch_norm(run: Run, *given: Array) -> tuple[Array, ...]:
    """Numbers times a factor plus an offset of their channel, with ten bits behind the point."""
    data = to_numpy(given[0])
    ranges = [(_bound(given[at + 1]), _bound(given[at + 2])) for at in range(0, 15, 3)]
    mean, variance, beta, gamma = (_floats(to_numpy(given[at]), *ranges[at // 3]) for at in range(3, 15, 3))
    factor = _ONE / np.sqrt(variance + np.float32(run.attrs["variance_epsilon"]))
    factor = factor * gamma if run.attrs["scale_after_normalization"] else factor
    kind, low, high = numpy_type(run.attrs["out_type"]), np.float32(-(2**20)), np.float32(2**20)
    scale, offset, one, cells = (_quantised(numbers, kind, low, high).astype(np.int64) for numbers in (
        factor, -mean * factor + beta, _ONE, _floats(data, *ranges[0])))  # fmt: skip
    product = (cells * scale).astype(np.int32).astype(np.int64)
    made = np.sign(product) * np.sign(one) * (np.abs(product) // np.abs(one)) + offset
    return _made(run, _wrapped(made, kind), run.attrs["out_type"], low, high)


@kernel()
def bias_add(run: Run, x: Array, bias: Array, *bounds: Array) -> tuple[Array, ...]:
    """Sums in a range with room for many of them."""
    low, high, bias_low, bias_high = (_bound(one) for one in bounds)
    most = max(high, -low, bias_high, -bias_low) * np.float32(2**17)
    kind = numpy_type(run.attrs["out_type"])
    parts = [_quantised_at_once(_floats_at_once(to_numpy(one), *own), kind, -most, most).astype(np.int64)
             for one, own in ((x, (low, high)), (bias, (bias_low, bias_high)))]  # fmt: skip
    zero = int(_quantised(np.float32(0), kind, -most, most))
    return _made(run, _wrapped(parts[0] + parts[1] + zero, kind), run.attrs["out_type"], -most, most)


def _kept(run: Run, x: Array, low: Array, high: Array, most: Any) -> tuple[Array, ...]:
    data, own = to_numpy(x), (_bound(low), _bound(high))
    made = np.maximum(data, _quantised(np.float32(0), data.dtype, *own))
    if most is not None:
        made = np.minimum(made, _quantised(np.float32(most), data.dtype, *own))
    return run.make(made, run.attrs["out_type"]), low, high


@kernel()
def relu(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """0 for what is below."""
    return _kept(run, x, low, high, None)


@kernel()
def relu6(run: Run, x: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Between 0 and 6."""
    return _kept(run, x, low, high, 6)


@kernel()
def relu_x(run: Run, x: Array, most: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Between 0 and a limit."""
    return _kept(run, x, low, high, _bound(most))


@kernel()
def resize(run: Run, x: Array, size: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Each cell from its four neighbours, in whole numbers: 7 bits behind the point of 8, 30 behind that of 32."""
    images, rules = to_numpy(x), (run.attrs["align_corners"], run.attrs["half_pixel_centers"])
    rows, columns = (linear_taps(old, new, *rules) for old, new in zip(images.shape[1:3], integers(size), strict=True))
    if images.dtype == np.float32:
        return moved_to(interpolate(images, rows, columns), x), low, high
    if images.shape[1:3] == tuple(integers(size)):
        return x, low, high
    one = 2**7 if images.dtype == np.uint8 else 2**30
    across, down = ((taps.weights[:, 1] * np.float32(one)).astype(np.int64) for taps in (columns, rows))

    def corner(row: int, column: int) -> Values:
        # TensorFlow's qint32 is a float on its way to other types.
        return images[:, rows.cells[:, row, None], columns.cells[None, :, column]].astype(np.float32).astype(np.int64)

    def line(row: int) -> Values:
        return corner(row, 0) * one + (corner(row, 1) - corner(row, 0)) * across[:, None]

    top, bottom = line(0), line(1)
    made = top + _cut(bottom - top, one) * down[:, None, None]
    return moved_to(_cut(made + one // 2, one).astype(images.dtype), x), low, high


def _cut(values: Values, by: int) -> Values:
    """Divided, towards 0."""
    return np.sign(values) * (np.abs(values) // by)
