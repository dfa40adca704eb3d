# SPDX-License-Identifier: Apache-2.0
"""`conv3d`, `avg_pool3d` and `max_pool3d` for torch tensors on the CPU or a GPU, with TensorFlow's padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.torch.operators import call

Three = int | Sequence[int]


def three(name: str, value: Three) -> list[int]:
    """One number for all axes, or depth, height and width."""
    values = [value] * 3 if isinstance(value, int) else [int(item) for item in value]
    if len(values) != 3:
        raise InvalidArgumentError(Fault("VG003", "voxgrad.torch", name, "be a number or three of them", repr(value)))
    return values


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


def conv3d(
    input: torch.Tensor,
    filter: torch.Tensor,
    bias: torch.Tensor | None = None,
    strides: Three = 1,
    padding: str = "SAME",
    dilations: Three = 1,
    data_format: str = "NCDHW",
) -> torch.Tensor:
    """Correlation of a volume with a filter [D, H, W, in_channels / groups, out_channels], TensorFlow's order.

    The number of groups follows from the channels. Differentiable to any order in input, filter and bias.
    """
    steps, spread = three("strides", strides), three("dilations", dilations)

    def run(x: torch.Tensor, last: bool) -> torch.Tensor:
        y: torch.Tensor = call.conv3d(x, filter, steps, spread, padding, last, _semantics())
        if bias is None:
            return y
        return y + (bias if last else bias.reshape(-1, 1, 1, 1)).to(y.dtype)

    return _in_layout(input, data_format, run)


def avg_pool3d(
    input: torch.Tensor, ksize: Three, strides: Three | None = None, padding: str = "SAME", data_format: str = "NCDHW"
) -> torch.Tensor:
    """The mean over windows; a window is divided by the number of its cells inside the data."""
    return _pool(call.avg_pool, input, ksize, strides, padding, data_format)


def max_pool3d(
    input: torch.Tensor, ksize: Three, strides: Three | None = None, padding: str = "SAME", data_format: str = "NCDHW"
) -> torch.Tensor:
    """The maximum over windows. Its gradients are deterministic; ties go to the first cell; NaN never wins."""
    return _pool(call.max_pool, input, ksize, strides, padding, data_format)


def _pool(
    op: Any, x: torch.Tensor, ksize: Three, strides: Three | None, padding: str, data_format: str
) -> torch.Tensor:
    window = three("ksize", ksize)
    steps = window if strides is None else three("strides", strides)
    return _in_layout(x, data_format, lambda data, last: op(data, window, steps, padding, last, _semantics()))
