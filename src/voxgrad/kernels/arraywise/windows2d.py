# SPDX-License-Identifier: Apache-2.0
"""The 2-D windowed ops: images become volumes of depth 1 and go to the 3-D kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import FLOAT64, DType
from voxgrad.catalog.registry import FAMILY
from voxgrad.catalog.semantics import semantics
from voxgrad.catalog.windows2d import explicit_paddings, spatial_axes
from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type, integers, is_numpy, moved_to, to_numpy
from voxgrad.kernels.arraywise.resampling import interpolate, linear_taps
from voxgrad.kernels.arraywise.slicing import mirror_pad
from voxgrad.kernels.element_types import numpy_type

_BY_NAME = {op.name: op for op in FAMILY}
_VOLUME = {"NHWC": "NDHWC", "NCHW": "NCDHW"}


def _depth_axis(run: Run) -> int:
    return spatial_axes(run.attrs["data_format"])[0]


def _deep(run: Run, image: Array) -> Array:
    """An image as a volume of depth 1."""
    return run.xp.expand_dims(image, axis=_depth_axis(run))


def _flat(run: Run, volume: Array) -> Array:
    return run.xp.squeeze(volume, axis=_depth_axis(run))


def _attrs(run: Run) -> dict[str, Any]:
    """The attributes of the 3-D op."""
    at, given = _depth_axis(run), run.attrs
    made: dict[str, Any] = {"data_format": _VOLUME[given["data_format"]]}
    stated = explicit_paddings(given)
    made["padding"] = given["padding"] if stated is None else ",".join(
        f"{before}:{behind}" for before, behind in ((0, 0), *stated))  # fmt: skip
    for name in ("ksize", "strides", "dilations"):
        if name in given:
            made[name] = [*given[name][:at], 1, *given[name][at:]]
    return made


def _windowed(run: Run, name: str, **inputs: Any) -> Array:
    """Run a 3-D op, whose kernels know floats only. The quirks of tf_cpu are those of TensorFlow's 3-D kernels."""
    try:
        with semantics("documented"):
            return run.context.run_windowed(_BY_NAME[name], {**inputs, **_attrs(run)})
    except VoxgradError as error:
        # The caller knows the 2-D op only.
        raise type(error)([replace(fault, op=run.op.name) for fault in error.faults]) from None


def _whole(made: Array, kind: DType) -> np.ndarray[Any, Any]:
    """Floats that hold integers as such; what does not fit wraps."""
    return to_numpy(made).astype(np.int64).astype(numpy_type(kind))


def _linear(dy: Array, apply: Callable[[Array], Array]) -> Array:
    """`apply(dy)`, which adds up elements of dy; 64-bit integers in halves, whose sums float64 holds exactly."""
    kind = element_type(dy)
    if kind.is_floating:
        return apply(dy)
    if kind.itemsize <= 4:
        return moved_to(_whole(apply(cast(dy, FLOAT64)), kind), dy)
    bits = to_numpy(dy).view(np.int64)
    low, high = (to_numpy(apply(moved_to(half.astype(np.float64), dy))).astype(np.int64)
                 for half in (bits & 0xFFFFFFFF, bits >> 32))  # fmt: skip
    return moved_to((low + (high << 32)).view(numpy_type(kind)), dy)


def _bilinear(run: Run, left: Array, right: Array, apply: Callable[[Array, Array], Array]) -> Array:
    """`apply(left, right)`, which adds up products; of int32 in halves, whose sums float64 holds exactly."""
    kind = element_type(left)
    if kind.is_floating:
        return apply(left, right)
    terms = min(left.size if is_numpy(left) else left.numel(), right.size if is_numpy(right) else right.numel())
    if terms > 2**20:
        run.fail("filter", wanted="have at most 2**20 elements where they are integers", got=terms, code="VG032")
    lows, highs = zip(*((bits & 0xFFFF, bits >> 16) for bits in (to_numpy(one) for one in (left, right))), strict=True)

    def part(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        floats = (moved_to(one.astype(np.float64), left) for one in (a, b))
        return to_numpy(apply(*floats)).astype(np.int64)

    made = part(lows[0], lows[1])
    if any(high.any() for high in highs):
        # The product of both high halves is a multiple of 2**32: it wraps away.
        made = made + ((part(highs[0], lows[1]) + part(lows[0], highs[1])) << 16)
    return moved_to(_whole(made, kind), left)


def _ordered(*arrays: Array) -> tuple[list[Array], np.ndarray[Any, Any] | None]:
    """Arrays as floats in the same order, and what the float n stands for where it is not itself."""
    kind = element_type(arrays[0])
    if kind.is_floating or kind.itemsize <= 4:
        return [one if kind.is_floating else cast(one, FLOAT64) for one in arrays], None
    table, ranks = np.unique(np.concatenate([to_numpy(one).ravel() for one in arrays]), return_inverse=True)
    ends = np.cumsum([np.prod(one.shape, dtype=int) for one in arrays])[:-1]
    split = np.split(ranks.reshape(-1).astype(np.float64), ends)
    return [moved_to(part.reshape(one.shape), one) for part, one in zip(split, arrays, strict=True)], table


@kernel()
def conv(run: Run, x: Array, w: Array) -> Array:
    """A convolution."""

    def apply(data: Array, taps: Array) -> Array:
        return _flat(run, _windowed(run, "Conv3D", input=_deep(run, data), filter=taps[None]))

    return _bilinear(run, x, w, apply)


@kernel()
def fused_pad_conv(run: Run, x: Array, paddings: Array, w: Array) -> Array:
    """A convolution of images with their mirror image around them."""
    images = mirror_pad(run, x, paddings)
    if run.attrs["padding"] == "SAME":
        images = images[:, _left_out(run, images, w, 1) :, _left_out(run, images, w, 2) :]
    return conv(replace(run, attrs={**run.attrs, "data_format": "NHWC"}), images, w)


def _left_out(run: Run, images: Array, w: Array, axis: int) -> int:
    """Cells before the first window of SAME padding, where windows are smaller than their steps: half of the rest."""
    size, step = int(images.shape[axis]), int(run.attrs["strides"][axis])
    windows = -(-size // step)
    return max(0, (size - int(w.shape[axis - 1]) - (windows - 1) * step) // 2)


@kernel(widen=True)
def fused_resize_conv(run: Run, x: Array, size: Array, paddings: Array, w: Array) -> Array:
    """The same, of images in another size."""
    data, corners = to_numpy(x), run.attrs["resize_align_corners"]
    rows, columns = (
        linear_taps(old, new, corners, False) for old, new in zip(data.shape[1:3], integers(size), strict=True)
    )
    return fused_pad_conv(run, moved_to(interpolate(data, rows, columns, data.dtype), x), paddings, w)


def _deep_sizes(run: Run, sizes: list[int]) -> list[int]:
    at = _depth_axis(run)
    return [*sizes[:at], 1, *sizes[at:]]


@kernel()
def conv_input(run: Run, input_sizes: Array, w: Array, dy: Array) -> Array:
    """The gradient of a convolution with respect to its input."""
    whole = _deep_sizes(run, integers(input_sizes))

    def apply(taps: Array, grad: Array) -> Array:
        given = {"filter": taps[None], "out_backprop": _deep(run, grad)}
        return _flat(run, _windowed(run, "Conv3DBackpropInputV2", input_sizes=whole, **given))

    return _bilinear(run, w, dy, apply)


@kernel()
def conv_filter(run: Run, x: Array, filter_sizes: Array, dy: Array) -> Array:
    """The gradient of a convolution with respect to its filter."""
    return _windowed(run, "Conv3DBackpropFilterV2", input=_deep(run, x),
                     filter_sizes=[1, *integers(filter_sizes)], out_backprop=_deep(run, dy))[0]  # fmt: skip


def _grouped(run: Run, w: Array) -> Array:
    """A depthwise filter as one of as many groups as channels."""
    rows, columns, channels, times = w.shape
    return run.xp.reshape(w, (rows, columns, 1, channels * times))


@kernel()
def depthwise(run: Run, x: Array, w: Array) -> Array:
    """A convolution of each channel by itself."""
    return conv(run, x, _grouped(run, w))


@kernel()
def depthwise_input(run: Run, input_sizes: Array, w: Array, dy: Array) -> Array:
    """Its gradient with respect to the input."""
    return conv_input(run, input_sizes, _grouped(run, w), dy)


@kernel()
def depthwise_filter(run: Run, x: Array, filter_sizes: Array, dy: Array) -> Array:
    """Its gradient with respect to the filter."""
    rows, columns, channels, times = integers(filter_sizes)
    grouped = np.asarray([rows, columns, 1, channels * times])
    return run.xp.reshape(conv_filter(run, x, grouped, dy), (rows, columns, channels, times))


@kernel()
def max_pool(run: Run, x: Array) -> Array:
    """The maximum of every window."""
    kind, ((data,), table) = element_type(x), _ordered(x)
    made = _flat(run, _windowed(run, "MaxPool3D", input=_deep(run, data)))
    if kind.is_floating:
        return made
    return moved_to(_whole(made, kind) if table is None else table[to_numpy(made).astype(np.int64)], x)


@kernel()
def max_pool_grad(run: Run, x: Array, y: Array, dy: Array) -> Array:
    """The gradient of a maximum, to the cell that won."""
    (data, maxima), _ = _ordered(x, y)
    given = {"orig_input": _deep(run, data), "orig_output": _deep(run, maxima)}
    return _linear(dy, lambda grad: _flat(run, _windowed(run, "MaxPool3DGrad", **given, grad=_deep(run, grad))))


@kernel()
def max_pool_grad_grad(run: Run, x: Array, y: Array, dy: Array) -> Array:
    """The values at the cells that won."""
    if 0 in y.shape:
        return run.xp.zeros_like(y)
    (data, maxima), _ = _ordered(x, y)
    given = {"orig_input": _deep(run, data), "orig_output": _deep(run, maxima)}
    return _linear(dy, lambda grad: _flat(run, _windowed(run, "MaxPool3DGradGrad", **given, grad=_deep(run, grad))))


@kernel()
def avg_pool(run: Run, x: Array) -> Array:
    """The mean of every window."""
    return _flat(run, _windowed(run, "AvgPool3D", input=_deep(run, x)))


@kernel()
def avg_pool_grad(run: Run, shape: Array, dy: Array) -> Array:
    """The gradient of a mean, shared by the cells of each window."""
    whole = _deep_sizes(run, integers(shape))
    return _flat(run, _windowed(run, "AvgPool3DGrad", orig_input_shape=whole, grad=_deep(run, dy)))
