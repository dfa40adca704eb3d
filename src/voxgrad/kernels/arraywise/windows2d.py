# SPDX-License-Identifier: Apache-2.0
"""The 2-D windowed ops: images become volumes of depth 1 and go to the 3-D kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import FLOAT64
from voxgrad.catalog.registry import FAMILY
from voxgrad.catalog.windows2d import explicit_paddings, spatial_axes
from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type, integers, is_numpy

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
    made["padding"] = "VALID" if given["padding"] == "EXPLICIT" else given["padding"]
    for name in ("ksize", "strides", "dilations"):
        if name in given:
            made[name] = [*given[name][:at], 1, *given[name][at:]]
    return made


def _windowed(run: Run, name: str, **inputs: Any) -> Array:
    """Run a 3-D op; integers travel as float64, which holds 53 bits of them."""
    arrays = {key: value for key, value in inputs.items() if hasattr(value, "dtype")}
    kind = next(element_type(value) for value in arrays.values())
    if not kind.is_floating:
        if kind.itemsize > 4:
            run.fail("input", wanted="be of a type of at most 32 bits, or a float", got=kind.name, code="VG032")
        arrays = {key: cast(value, FLOAT64) for key, value in arrays.items()}
    try:
        made = run.context.run_windowed(_BY_NAME[name], {**inputs, **arrays, **_attrs(run)})
    except VoxgradError as error:
        # The caller knows the 2-D op only.
        raise type(error)([replace(fault, op=run.op.name) for fault in error.faults]) from None
    return made if kind.is_floating else cast(made, kind)


def _padded(run: Run, image: Array, value: float = 0) -> Array:
    """The image with its explicit padding."""
    amounts = explicit_paddings(run.attrs)
    if amounts is None:
        return image
    shape = _padded_shape(run, list(image.shape))
    out = np.full(shape, value, image.dtype) if is_numpy(image) else run.xp.full(
        tuple(shape), value, dtype=image.dtype, device=image.device)  # fmt: skip
    out[_inside(run, image.shape)] = image
    return out


def _padded_shape(run: Run, shape: list[int]) -> list[int]:
    for axis, pair in zip(spatial_axes(run.attrs["data_format"]), explicit_paddings(run.attrs) or (), strict=False):
        shape[axis] += sum(pair)
    return shape


def _inside(run: Run, shape: Any) -> tuple[slice, ...]:
    """The unpadded cells."""
    spans = [slice(None)] * 4
    for axis, (before, _) in zip(
        spatial_axes(run.attrs["data_format"]), explicit_paddings(run.attrs) or (), strict=False
    ):
        spans[axis] = slice(before, before + shape[axis])
    return tuple(spans)


def _unpadded(run: Run, image: Array, shape: Any) -> Array:
    return image if explicit_paddings(run.attrs) is None else image[_inside(run, shape)]


@kernel()
def conv(run: Run, x: Array, w: Array) -> Array:
    """A convolution."""
    return _flat(run, _windowed(run, "Conv3D", input=_deep(run, _padded(run, x)), filter=w[None]))


def _deep_sizes(run: Run, sizes: list[int]) -> list[int]:
    at = _depth_axis(run)
    return [*sizes[:at], 1, *sizes[at:]]


@kernel()
def conv_input(run: Run, input_sizes: Array, w: Array, dy: Array) -> Array:
    """The gradient of a convolution with respect to its input."""
    sizes = integers(input_sizes)
    whole = _deep_sizes(run, _padded_shape(run, list(sizes)))
    made = _windowed(run, "Conv3DBackpropInputV2", input_sizes=whole, filter=w[None], out_backprop=_deep(run, dy))
    return _unpadded(run, _flat(run, made), sizes)


@kernel()
def conv_filter(run: Run, x: Array, filter_sizes: Array, dy: Array) -> Array:
    """The gradient of a convolution with respect to its filter."""
    return _windowed(run, "Conv3DBackpropFilterV2", input=_deep(run, _padded(run, x)),
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
    return _flat(run, _windowed(run, "MaxPool3D", input=_deep(run, _lowest_padded(run, x))))


def _lowest_padded(run: Run, x: Array) -> Array:
    return _padded(run, x, -np.inf) if element_type(x).is_floating else _padded(run, x)


@kernel()
def max_pool_grad(run: Run, x: Array, y: Array, dy: Array) -> Array:
    """The gradient of a maximum, to the cell that won."""
    made = _windowed(run, "MaxPool3DGrad", orig_input=_deep(run, _lowest_padded(run, x)), orig_output=_deep(run, y),
                     grad=_deep(run, dy))  # fmt: skip
    return _unpadded(run, _flat(run, made), x.shape)


@kernel()
def max_pool_grad_grad(run: Run, x: Array, y: Array, dy: Array) -> Array:
    """The values at the cells that won."""
    made = _windowed(run, "MaxPool3DGradGrad", orig_input=_deep(run, x), orig_output=_deep(run, y), grad=_deep(run, dy))
    return _flat(run, made)


@kernel()
def avg_pool(run: Run, x: Array) -> Array:
    """The mean of every window."""
    return _flat(run, _windowed(run, "AvgPool3D", input=_deep(run, x)))


@kernel()
def avg_pool_grad(run: Run, shape: Array, dy: Array) -> Array:
    """The gradient of a mean, shared by the cells of each window."""
    whole = _deep_sizes(run, integers(shape))
    return _flat(run, _windowed(run, "AvgPool3DGrad", orig_input_shape=whole, grad=_deep(run, dy)))
