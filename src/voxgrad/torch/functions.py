# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools for torch tensors on the CPU or a GPU, with TensorFlow's padding or padding in numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import torch

from voxgrad.arguments import checked
from voxgrad.arrays import plain, pools
from voxgrad.arrays.plain import Padding, Three, transposed_sizes
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.torch import unpool
from voxgrad.torch.maxima import cell_numbers
from voxgrad.torch.operators import call


def three(name: str, value: Three) -> list[int]:
    """One number for all axes, or depth, height and width."""
    return plain.three("voxgrad.torch", name, value)


def padding_text(value: Padding) -> str:
    """Padding as the ops take it."""
    return plain.padding_text("voxgrad.torch", value)


Sizes = int | Sequence[int | None] | None
F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """A function that refuses wrong arguments in the words of this package; a compiled one was called rightly."""
    held = checked(function)

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return (function if torch.compiler.is_compiling() else held)(*given, **named)

    return cast(F, call)


def _constant(function: F) -> F:
    """`torch.compiler.assume_constant_result`, which would load Triton; where TensorFlow came first, that aborts."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@_constant
def _semantics() -> str:
    """The semantics in force; a compiled graph keeps those of its compilation."""
    return current_semantics()


def in_layout(x: torch.Tensor, data_format: str, run: Callable[[torch.Tensor, bool], torch.Tensor]) -> torch.Tensor:
    """Run on the data as it lies in memory."""
    data, last, back = _as_it_lies(x, data_format)
    return back(run(data, last))


def _as_it_lies(x: torch.Tensor, data_format: str) -> tuple[torch.Tensor, bool, Callable[[torch.Tensor], torch.Tensor]]:
    """The data with its channels last or not, as it lies in memory, and what turns a result back.

    An NCDHW tensor in torch's channels_last_3d order is NDHWC, not copied.
    """
    if data_format not in DATA_FORMATS:
        raise InvalidArgumentError(
            Fault("VG003", "voxgrad.torch", "data_format", "be NDHWC or NCDHW", repr(data_format))
        )
    if x.dim() == 4:  # One volume, as torch's own take it.
        data, last, back = _as_it_lies(x.unsqueeze(0), data_format)
        return data, last, lambda made: back(made).squeeze(0)
    if data_format == "NCDHW" and x.dim() == 5 and not x.is_contiguous():
        # Not asked as a memory format, of which a tensor under vmap does not tell.
        turned = x.permute(0, 2, 3, 4, 1)
        if turned.is_contiguous():
            return turned, True, lambda made: made.permute(0, 4, 1, 2, 3)
    return x, data_format == "NDHWC", lambda made: made


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

    return in_layout(input, data_format, run)


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

    return in_layout(input, data_format, run)


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
    return in_layout(x, data_format, lambda data, last: op(data, window, steps, around, last, _semantics()))


@public
def max_pool3d_with_argmax(
    input: torch.Tensor,
    ksize: Three,
    strides: Three | None = None,
    padding: Padding = "SAME",
    data_format: str = "NCDHW",
) -> tuple[torch.Tensor, torch.Tensor]:
    """The maximum over windows and where it was, as torch numbers cells; -1 where NaN is all there is.

    Windows are those of the documented semantics.
    """
    window = three("ksize", ksize)
    steps, around = window if strides is None else three("strides", strides), padding_text(padding)
    data, last, back = _as_it_lies(input, data_format)
    attrs = (window, steps, around, last, "documented")
    y = call.max_pool(data, *attrs)
    if y.numel() == 0:
        return back(y), back(y.new_zeros(y.shape, dtype=torch.int64))
    # The op that takes, per window, what lies at the cell that won, is given the numbers of the cells.
    numbers = cell_numbers(data, last)
    above, top = (one.detach().to(numbers.dtype) for one in (data, y))
    found = call.max_pool_grad_grad(above, top, numbers, *attrs)
    return back(y), back(found.to(torch.int64) - 1)


@public
def max_unpool3d(
    input: torch.Tensor,
    indices: torch.Tensor,
    ksize: Three,
    strides: Three | None = None,
    padding: Padding = "SAME",
    output_size: Three | None = None,
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """Zeros with maxima where they were: the way back from `max_pool3d_with_argmax`, with the same arguments.

    Of several values for one cell the last, in depth, height, width order, is taken, and gets the gradient.
    """
    if input.dim() == 4:
        one = (input.unsqueeze(0), indices.unsqueeze(0))
        return max_unpool3d(*one, ksize, strides, padding, output_size, data_format).squeeze(0)
    described = [(str(one.dtype), _sizes(one)) for one in (input, indices)]
    stated = None if output_size is None else three("output_size", output_size)
    extent, cells = _unpooled(described, ksize, strides, padding, stated, data_format)
    axis = 1 if data_format == DATA_FORMATS[0] else 2
    values = input.flatten(axis, axis + 2)
    places = unpool.places(indices, axis - 5, cells)
    shape = [*values.shape[:axis], cells + 1, *values.shape[axis + 1 :]]
    # What is not taken goes to one cell more, which is cut off: so nothing is added, and gradients are torch's own.
    made = values.new_zeros(shape).scatter(axis, places, values).narrow(axis, 0, cells)
    return made.reshape(extent).contiguous()


def _sizes(x: torch.Tensor) -> tuple[int, ...]:
    """The shape in numbers: a compiled graph is for these."""
    return tuple(operator.index(size) for size in x.shape)


@_constant
def _unpooled(described: Any, *given: Any) -> tuple[tuple[int, ...], int]:
    """The shape of what `max_unpool3d` makes and the cells of an image and channel there; a call is checked here."""
    specs = {
        item.name: Spec(dtypes.named(dtype.removeprefix("torch.")), shape)
        for item, (dtype, shape) in zip(pools.UNPOOL.inputs, described, strict=True)
    }
    problem = pools.unpool_problem(specs, *given)
    return problem.input_extent, pools.cells_of(problem)


@public
def adaptive_avg_pool3d(input: torch.Tensor, output_size: Sizes, data_format: str = "NCDHW") -> torch.Tensor:
    """The mean over `output_size` windows, a number or three, None for as many as there are cells: torch's windows."""
    return adaptive("adaptive_avg_pool3d", call.avg_pool, input, output_size, data_format)


@public
def adaptive_max_pool3d(input: torch.Tensor, output_size: Sizes, data_format: str = "NCDHW") -> torch.Tensor:
    """The maximum over the windows of `adaptive_avg_pool3d`; ties go to the first cell; NaN never wins."""
    return adaptive("adaptive_max_pool3d", call.max_pool, input, output_size, data_format)


@_constant
def _adaptive_sizes(*given: Any) -> tuple[list[int], int]:
    return pools.adaptive_sizes(*given)


def adaptive(
    function: str, op: Any, x: torch.Tensor, output_size: Sizes, data_format: str = "NCDHW", rule: str = "documented"
) -> torch.Tensor:
    """A pool into windows of a stated number, each computed by `op`."""

    def take(x: torch.Tensor, cells: list[int], axis: int) -> torch.Tensor:
        # Several times as fast as index_select on a CPU.
        return x[(*[slice(None)] * axis, torch.tensor(cells, device=x.device))]

    def run(x: torch.Tensor, last: bool) -> torch.Tensor:
        shape, order = _sizes(x), DATA_FORMATS[0 if last else 1]
        sizes, first = _adaptive_sizes(f"nn.{function}", shape, x.element_size(), output_size, order)
        pool = lambda x, window: op(x, window, window, "VALID", last, rule)  # noqa: E731
        made: torch.Tensor = pools.adaptive(x, sizes, first, take, torch.cat, pool)
        return made

    return in_layout(x, data_format, run)
