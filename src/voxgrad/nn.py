# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools with plain arguments, on any kind of array.

    y = vg.nn.max_pool3d(x, 2)
    y = vg.nn.conv3d(x, w, strides=(1, 2, 2), padding=1)
    x = vg.nn.conv3d_transpose(y, w, strides=(1, 2, 2), padding=1, output_padding=(0, 1, 1))

Numbers stand for all axes, or three for depth, height and width. Padding is TensorFlow's SAME or VALID, a number of
cells for all sides, three for both sides of an axis each, or three pairs. `vg.raw_ops` has the same ops with
TensorFlow's arguments. torch tensors keep their gradients, to any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad import raw_ops
from voxgrad.arguments import checked
from voxgrad.arrays.kinds import is_instance
from voxgrad.arrays.plain import Padding, Three, padding_text, three, transposed_sizes
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.errors import Fault, InvalidArgumentError, safe_repr


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


def _pool(op: str, input: Any, ksize: Three, strides: Three | None, padding: Padding, data_format: str) -> Any:
    function = {"AvgPool3D": "avg_pool3d", "MaxPool3D": "max_pool3d"}[op]
    given = {"strides": ksize if strides is None else strides, "padding": padding, "data_format": data_format}
    if _is_torch(input):
        return getattr(_torch(), function)(input, ksize, **given)
    return getattr(raw_ops, op)(input=input, **_attrs(f"nn.{function}", {"ksize": ksize} | given))


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
