# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools for torch tensors on the CPU or a GPU, with TensorFlow's padding or padding in numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch

from voxgrad.arguments import checked
from voxgrad.arrays import plain
from voxgrad.arrays.plain import Padding, Three, transposed_sizes
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.torch.operators import call


def three(name: str, value: Three) -> list[int]:
    """One number for all axes, or depth, height and width."""
    return plain.three("voxgrad.torch", name, value)


def padding_text(value: Padding) -> str:
    """Padding as the ops take it."""
    return plain.padding_text("voxgrad.torch", value)


F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """A function that refuses wrong arguments in the words of this package; a compiled one was called rightly."""
    held = checked(function)

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return (function if torch.compiler.is_compiling() else held)(*given, **named)

    return cast(F, call)


_constant: Any = torch.compiler.assume_constant_result


@_constant  # type: ignore[untyped-decorator]
def _semantics() -> str:
    """The semantics in force; a compiled graph keeps those of its compilation."""
    return current_semantics()


def _in_layout(x: torch.Tensor, data_format: str, run: Callable[[torch.Tensor, bool], torch.Tensor]) -> torch.Tensor:
    """Run on the data as it lies in memory: an NCDHW tensor in torch's channels_last_3d order is NDHWC, not copied."""
    if data_format not in ("NDHWC", "NCDHW"):
        raise InvalidArgumentError(
            Fault("VG003", "voxgrad.torch", "data_format", "be NDHWC or NCDHW", repr(data_format))
        )
    if x.dim() == 4:  # One volume, as torch's own take it.
        return _in_layout(x.unsqueeze(0), data_format, run).squeeze(0)
    if data_format == "NCDHW" and x.dim() == 5 and not x.is_contiguous():
        # Not asked as a memory format, of which a tensor under vmap does not tell.
        turned = x.permute(0, 2, 3, 4, 1)
        if turned.is_contiguous():
            return run(turned, True).permute(0, 4, 1, 2, 3)
    return run(x, data_format == "NDHWC")


@public
def conv3d(
    input: torch.Tensor,
    filter: torch.Tensor,
    bias: torch.Tensor | None = None,
    strides: Three = 1,
    padding: Padding = "SAME",
    dilations: Three = 1,
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """Correlation of a volume with a filter [D, H, W, in_channels / groups, out_channels], TensorFlow's order.

    The number of groups follows from the channels. Differentiable to any order in input, filter and bias.
    """
    steps, spread, around = three("strides", strides), three("dilations", dilations), padding_text(padding)

    def run(x: torch.Tensor, last: bool) -> torch.Tensor:
        return _with_bias(call.conv3d(x, filter, steps, spread, around, last, _semantics()), bias, last)

    return _in_layout(input, data_format, run)


@public
def conv3d_transpose(
    input: torch.Tensor,
    filter: torch.Tensor,
    bias: torch.Tensor | None = None,
    strides: Three = 1,
    padding: Padding = "SAME",
    output_padding: Three = 0,
    dilations: Three = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """The transpose of `conv3d`, with a filter [D, H, W, out_channels / groups, in_channels].

    Of the volumes that `conv3d` maps to the size of the input it makes the smallest, and `output_padding` cells more.
    """
    steps, spread, around = three("strides", strides), three("dilations", dilations), padding_text(padding)
    more = three("output_padding", output_padding)

    def run(x: torch.Tensor, last: bool) -> torch.Tensor:
        if x.dim() != 5 or filter.dim() != 5:
            got = f"shapes {list(x.shape)} and {list(filter.shape)}"
            raise InvalidArgumentError(Fault("VG010", "voxgrad.torch", "input", "have rank 5, as its filter", got))
        attrs = {"strides": steps, "dilations": spread, "padding": around}
        spatial = transposed_sizes(x.shape[1:4] if last else x.shape[2:5], filter.shape[:3], attrs, more)
        channels = filter.shape[3] * groups
        sizes = [x.shape[0], *spatial, channels] if last else [x.shape[0], channels, *spatial]
        if all(type(size) is int for size in sizes) and max(sizes) >= 2**63:  # a compiled one has symbols there
            raise InvalidArgumentError(Fault("VG005", "voxgrad.torch", "output", "have sizes of 64 bits", show(sizes)))
        return _with_bias(call.conv3d_input(sizes, filter, x, steps, spread, around, last, _semantics()), bias, last)

    return _in_layout(input, data_format, run)


def _with_bias(y: torch.Tensor, bias: torch.Tensor | None, last: bool) -> torch.Tensor:
    if bias is None:
        return y
    channels = y.shape[-1 if last else 1]
    if bias.dim() != 1 or bias.shape[0] != channels:
        wanted = f"have one entry for each of the {channels} output channels"
        raise InvalidArgumentError(Fault("VG013", "voxgrad.torch", "bias", wanted, f"shape {list(bias.shape)}"))
    return y + (bias if last else bias.reshape(-1, 1, 1, 1)).to(y.dtype)


@public
def avg_pool3d(
    input: torch.Tensor,
    ksize: Three,
    strides: Three | None = None,
    padding: Padding = "SAME",
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """The mean over windows; a window is divided by the number of its cells inside the data."""
    return _pool(call.avg_pool, input, ksize, strides, padding, data_format)


@public
def max_pool3d(
    input: torch.Tensor,
    ksize: Three,
    strides: Three | None = None,
    padding: Padding = "SAME",
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """The maximum over windows. Its gradients are deterministic; ties go to the first cell; NaN never wins."""
    return _pool(call.max_pool, input, ksize, strides, padding, data_format)


def _pool(
    op: Any, x: torch.Tensor, ksize: Three, strides: Three | None, padding: Padding, data_format: str
) -> torch.Tensor:
    window = three("ksize", ksize)
    steps, around = window if strides is None else three("strides", strides), padding_text(padding)
    return _in_layout(x, data_format, lambda data, last: op(data, window, steps, around, last, _semantics()))
