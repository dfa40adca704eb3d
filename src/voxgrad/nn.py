# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools with plain arguments, on any kind of array.

    y = vg.nn.max_pool3d(x, 2)
    y = vg.nn.conv3d(x, w, strides=(1, 2, 2), padding=1)
    x = vg.nn.conv3d_transpose(y, w, strides=(1, 2, 2), padding=1, output_padding=(0, 1, 1))
    y, indices = vg.nn.max_pool3d_with_argmax(x, 2)
    x = vg.nn.max_unpool3d(y, indices, 2)
    y = vg.nn.adaptive_avg_pool3d(x, (None, 7, 7))

Numbers stand for all axes, or three for depth, height and width. Padding is TensorFlow's SAME or VALID, a number of
cells for all sides, three for both sides of an axis each, or three pairs. `vg.raw_ops` has the same ops with
TensorFlow's arguments. torch tensors keep their gradients, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from voxgrad import raw_ops
from voxgrad.arguments import checked
from voxgrad.arrays import deferred, pools
from voxgrad.arrays.intake import take
from voxgrad.arrays.kinds import dtype_of, is_instance, numpy_type
from voxgrad.arrays.plain import Padding, Three, padding_text, three, transposed_sizes
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.catalog.registry import OPS
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import Fault, Faults, InvalidArgumentError, UnimplementedError, safe_repr


@checked
def conv3d(
    input: Any, filter: Any, bias: Any = None, *, strides: Three = 1, padding: Padding = "SAME", dilations: Three = 1,
    data_format: str = "NDHWC",
) -> Any:  # fmt: skip
    """Correlation of a volume with a filter [D, H, W, in_channels / groups, out_channels].

    The number of groups follows from the channels.
    """
    given: dict[str, Any] = {
        "strides": strides, "padding": padding, "dilations": dilations, "data_format": data_format,
    }  # fmt: skip
    if _is_torch(input):
        return _torch().conv3d(input, filter, bias, **given)
    made = raw_ops.Conv3D(input=input, filter=filter, **_attrs("nn.conv3d", given))
    return _with_bias(made, bias, data_format)


@checked
def conv3d_transpose(
    input: Any, filter: Any, bias: Any = None, *, strides: Three = 1, padding: Padding = "SAME",
    output_padding: Three = 0, dilations: Three = 1, groups: int = 1, data_format: str = "NDHWC",
) -> Any:  # fmt: skip
    """The transpose of `conv3d`, with a filter [D, H, W, out_channels / groups, in_channels].

    Of the volumes that `conv3d` maps to the size of the input it makes the smallest, and `output_padding` cells more.
    """
    given: dict[str, Any] = {
        "strides": strides, "padding": padding, "dilations": dilations, "data_format": data_format,
    }  # fmt: skip
    if _is_torch(input):
        return _torch().conv3d_transpose(input, filter, bias, output_padding=output_padding, groups=groups, **given)
    function, last = "nn.conv3d_transpose", data_format == DATA_FORMATS[0]
    shape, taps = _shape(input), _shape(filter)
    if len(shape) != 5 or len(taps) != 5:
        got = f"shapes {list(shape)} and {list(taps)}"
        raise InvalidArgumentError(Fault("VG010", function, "input", "have rank 5, as its filter", got))
    attrs = _attrs(function, given)
    flat = attrs | {name: three(function, name, given[name]) for name in ("strides", "dilations")}
    more = three(function, "output_padding", output_padding)
    spatial = transposed_sizes(shape[1:4] if last else shape[2:5], taps[:3], flat, more)
    channels = taps[3] * groups
    sizes = [shape[0], *spatial, channels] if last else [shape[0], channels, *spatial]
    made = raw_ops.Conv3DBackpropInputV2(input_sizes=sizes, filter=filter, out_backprop=input, **attrs)
    return _with_bias(made, bias, data_format)


@checked
def avg_pool3d(
    input: Any, ksize: Three, *, strides: Three | None = None, padding: Padding = "VALID", data_format: str = "NDHWC"
) -> Any:
    """The mean over windows, which follow each other where no strides are given. Padding is not counted."""
    return _pool("AvgPool3D", input, ksize, strides, padding, data_format)


@checked
def max_pool3d(
    input: Any, ksize: Three, *, strides: Three | None = None, padding: Padding = "VALID", data_format: str = "NDHWC"
) -> Any:
    """The maximum over windows, which follow each other where no strides are given. NaN never wins."""
    return _pool("MaxPool3D", input, ksize, strides, padding, data_format)


@checked
def max_pool3d_with_argmax(
    input: Any, ksize: Three, *, strides: Three | None = None, padding: Padding = "VALID", data_format: str = "NDHWC"
) -> tuple[Any, Any]:
    """The maximum over windows as `max_pool3d` has it, and where it was: int64, for `max_unpool3d`.

    A place is the number of the cell in depth, height, width order among those of its image and channel, padding not
    counted, as in torch. Of equal cells it is the first. NaN never wins: the place of a window of NaN alone is -1.

    >>> x = np.array([1, 5, 5, 2, 0, 3, 4, 4], np.float32).reshape(1, 2, 2, 2, 1)
    >>> y, indices = max_pool3d_with_argmax(x, (1, 2, 2))
    >>> y.ravel().tolist(), indices.ravel().tolist()
    ([5.0, 4.0], [1, 6])

    Windows are those of the documented semantics. JAX without `jax_enable_x64` has places in int32.
    """
    given = {"strides": ksize if strides is None else strides, "padding": padding, "data_format": data_format}
    (x,), back = _taken(OPS["MaxPool3D"], input)
    if _is_torch(x):
        y, indices = _torch().max_pool3d_with_argmax(x, ksize, **given)
        return back(y), back(indices)
    attrs = _attrs("nn.max_pool3d_with_argmax", {"ksize": ksize} | given)
    with semantics("documented"):
        y = raw_ops.MaxPool3D(input=x, **attrs)
        if y.size == 0:
            return back(y), back(np.zeros_like(y, dtype=np.int64))
        last = data_format == DATA_FORMATS[0]
        exact = pools.exact_type(_spec(x), last)
        above, top = (one if _spec(one).dtype == exact else raw_ops.Cast(x=one, DstT=exact.name) for one in (x, y))
        # The op that takes, per window, what lies at the cell that won, is given the numbers of the cells.
        cells = pools.numbered(x, last, numpy_type(exact))
        numbers = raw_ops.MaxPool3DGradGrad(orig_input=above, orig_output=top, grad=cells, **attrs)
    return back(y), back((numbers - 1).astype(np.int64))


@checked
def max_unpool3d(
    input: Any, indices: Any, ksize: Three, *, strides: Three | None = None, padding: Padding = "VALID",
    output_size: Three | None = None, data_format: str = "NDHWC",
) -> Any:  # fmt: skip
    """Zeros with maxima where they were: the way back from `max_pool3d_with_argmax`, with the same arguments.

    Of the volumes that the pool maps to the size of the input it makes that of `output_size`, else the smallest. A
    place of -1 is nowhere. Of several values for one cell, as overlapping windows have them, the last in depth,
    height, width order is taken, and gets the gradient; a place outside of the volume is an error.

    >>> y, indices = np.float32([5, 4]).reshape(1, 2, 1, 1, 1), np.array([1, 6]).reshape(1, 2, 1, 1, 1)
    >>> max_unpool3d(y, indices, (1, 2, 2)).ravel().tolist()
    [0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0]
    """
    given = (ksize, strides, padding, output_size, data_format)
    if deferred.planner({"input": input, "indices": indices}):
        remedy = "Pass input.compute() and indices.compute(), if they fit into memory."
        raise UnimplementedError(Fault("VG032", pools.UNPOOL.name, "input", "hold its values", "a Dask array", remedy))
    (values, places), back = _taken(pools.UNPOOL, input, indices)
    if _is_torch(values):
        return back(_torch().max_unpool3d(values, places, *given))
    specs = {"input": _spec(values), "indices": _spec(places)}
    return back(pools.unpool(pools.unpool_problem(specs, *given), values, places))


@checked
def adaptive_avg_pool3d(
    input: Any, output_size: int | Sequence[int | None] | None, *, data_format: str = "NDHWC"
) -> Any:
    """The mean over `output_size` windows, a number or three, None for as many as there are cells.

    Window o of an axis reads from floor(o * size / out) up to ceil((o + 1) * size / out), the last not counted, as in
    torch: every cell is read, and where `out` does not divide `size` some are by two windows.

    >>> adaptive_avg_pool3d(np.arange(5.0).reshape(1, 1, 1, 5, 1), (None, None, 2)).ravel().tolist()
    [1.0, 3.0]
    """
    return _adaptive("AvgPool3D", input, output_size, data_format)


@checked
def adaptive_max_pool3d(
    input: Any, output_size: int | Sequence[int | None] | None, *, data_format: str = "NDHWC"
) -> Any:
    """The maximum over `output_size` windows, those of `adaptive_avg_pool3d`. NaN never wins.

    >>> adaptive_max_pool3d(np.arange(5.0).reshape(1, 1, 1, 5, 1), (1, 1, 2)).ravel().tolist()
    [2.0, 4.0]
    """
    return _adaptive("MaxPool3D", input, output_size, data_format)


def _adaptive(op: str, input: Any, output_size: int | Sequence[int | None] | None, data_format: str) -> Any:
    function = {"AvgPool3D": "adaptive_avg_pool3d", "MaxPool3D": "adaptive_max_pool3d"}[op]
    (x,), back = _taken(OPS[op], input)
    if _is_torch(x):
        return back(getattr(_torch(), function)(x, output_size, data_format))
    sizes, first = pools.adaptive_sizes(f"nn.{function}", x.shape, x.dtype.itemsize, output_size, data_format)
    pool = lambda part, window: _pool(op, part, window, None, "VALID", data_format)  # noqa: E731
    return back(pools.adaptive(x, sizes, first, np.take, np.concatenate, pool))


def _pool(op: str, input: Any, ksize: Three, strides: Three | None, padding: Padding, data_format: str) -> Any:
    function = {"AvgPool3D": "avg_pool3d", "MaxPool3D": "max_pool3d"}[op]
    given = {"strides": ksize if strides is None else strides, "padding": padding, "data_format": data_format}
    if _is_torch(input):
        return getattr(_torch(), function)(input, ksize, **given)
    return getattr(raw_ops, op)(input=input, **_attrs(f"nn.{function}", {"ksize": ksize} | given))


def _taken(op: Op, *inputs: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The inputs as NumPy, Dask or torch has them, and what makes an array of the kind that came of a result."""
    given = {item.name: value for item, value in zip(op.inputs, inputs, strict=True)}
    if _is_torch(inputs[0]):  # as it is, with its gradient
        return list(inputs), lambda made: made
    if deferred.planner(given):
        return [raw_ops.Identity(input=value) for value in inputs], lambda made: made
    intake = take(op, given, Faults(op.name))
    return list(intake.arrays.values()), intake.kind.wrap


def _spec(array: Any) -> Spec:
    return Spec(dtype_of(array.dtype), array.shape)


def _attrs(function: str, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an op, in the order of its data."""
    last = given["data_format"] == DATA_FORMATS[0]
    made = {"padding": padding_text(function, given["padding"]), "data_format": given["data_format"]}
    for name in [name for name in given if name not in made]:
        spatial = three(function, name, given[name])
        made[name] = [1, *spatial, 1] if last else [1, 1, *spatial]
    return made


def _with_bias(made: Any, bias: Any, data_format: str) -> Any:
    if bias is None:
        return made
    last = data_format == DATA_FORMATS[0]
    channels = made.shape[-1 if last else 1]
    if _shape(bias) != (channels,):
        got = f"shape {list(_shape(bias))}" if hasattr(bias, "shape") else safe_repr(bias)
        raise InvalidArgumentError(Fault("VG012", "nn", "bias", f"be an array of the {channels} output channels", got))
    return raw_ops.AddV2(x=made, y=bias if last else raw_ops.Reshape(tensor=bias, shape=[-1, 1, 1, 1]))


def _shape(array: Any) -> tuple[Any, ...]:
    """The shape of an array of any kind; () for what is none."""
    shape = getattr(array, "shape", ())
    return tuple(shape) if isinstance(shape, Sequence) else ()


def _is_torch(value: Any) -> bool:
    return is_instance(value, "torch", "Tensor")


def _torch() -> Any:
    from voxgrad.torch import functions

    return functions
