# SPDX-License-Identifier: Apache-2.0
"""The layers of `torch.nn` on the kernels of this package, and such with TensorFlow's padding.

A layer here is torch's own with another `forward`: it prints, copies, pickles and loads weights as torch's does.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import nn

from voxgrad.arguments import checked
from voxgrad.arrays.plain import Padding, Three
from voxgrad.catalog import dtypes
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.torch import functional
from voxgrad.torch.functions import avg_pool3d, conv3d, max_pool3d, padding_text, public, three

_TYPES = frozenset(getattr(torch, dtype.name) for dtype in dtypes.FLOATING)


def _runs(*tensors: torch.Tensor, devices: tuple[str, ...] = ("cpu", "cuda", "meta")) -> bool:
    """Are there kernels for these? For other types and devices a layer of torch's stays what it was.

    And in `torch.jit.trace`, which cannot record lists of sizes of operators like ours.
    """
    return not torch.jit.is_tracing() and all(one.dtype in _TYPES and one.device.type in devices for one in tensors)


class Conv3d(nn.Conv3d):
    """`nn.Conv3d` that pads with zeros."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The convolved volume."""
        return self._convolved(input, self.bias) if self.computes(input) else super().forward(input)

    def computes(self, input: torch.Tensor) -> bool:
        """Are there kernels for this input?"""
        return _runs(input, self.weight)

    def without_bias(self, input: torch.Tensor) -> torch.Tensor:
        """The convolved volume to which what follows adds the bias."""
        return self._convolved(input, None)

    def _convolved(self, input: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        padding: Any = self.padding
        return functional.conv3d(input, self.weight, bias, self.stride, padding, self.dilation, self.groups)


class ConvTranspose3d(nn.ConvTranspose3d):
    """`nn.ConvTranspose3d`."""

    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        """The volume that a convolution would have made the input of."""
        if not _runs(input, self.weight):
            return super().forward(input, output_size)
        stride, padding, window, dilation = self.stride, self.padding, self.kernel_size, self.dilation
        found: Any = self._output_padding  # torch's rule, of which size is meant
        more = found(input, output_size, stride, padding, window, 3, dilation)
        return functional.conv_transpose3d(
            input, self.weight, self.bias, stride, padding, more, self.groups, dilation
        )  # fmt: skip


class MaxPool3d(nn.MaxPool3d):
    """`nn.MaxPool3d` without dilation and indices."""

    note = "on a GPU torch's own"

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The maximum of every window."""
        if not _runs(input, devices=("cpu", "meta")):  # A look for NaN would make a GPU wait.
            return super().forward(input)
        return functional.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                     self.ceil_mode, self.return_indices)  # fmt: skip


class AvgPool3d(nn.AvgPool3d):
    """`nn.AvgPool3d` without a divisor of its own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The mean of every window."""
        # Inductor cannot tell whether a padded copy of unknown sizes is in order.
        copied = self.count_include_pad and any(three("padding", self.padding))
        if not _runs(input) or (copied and torch.compiler.is_compiling()):
            return super().forward(input)
        return functional.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                     self.count_include_pad, self.divisor_override)  # fmt: skip


_DIVIDED = "where the number of windows divides that of cells, else torch's own, which is faster there"


def _window(input: torch.Tensor, output_size: Any) -> list[int] | None:
    """The window of an adaptive pool whose windows have one size and no cell in common; None for others."""
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * 3
    if input.dim() not in (4, 5) or 0 in sizes:
        return None
    window = []
    for size, out in zip(input.shape[-3:], sizes, strict=True):
        if size == 0 or (out is not None and size % out):
            return None
        window.append(1 if out is None else operator.index(size // out))
    return window


class AdaptiveAvgPool3d(nn.AdaptiveAvgPool3d):
    """`nn.AdaptiveAvgPool3d`."""

    note = _DIVIDED

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The mean of every window."""
        window = _window(input, self.output_size)
        return functional.avg_pool3d(input, window) if window and _runs(input) else super().forward(input)


class AdaptiveMaxPool3d(nn.AdaptiveMaxPool3d):
    """`nn.AdaptiveMaxPool3d` without indices."""

    note = f"{_DIVIDED}; {MaxPool3d.note}"

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The maximum of every window."""
        window = _window(input, self.output_size)
        if window is None or self.return_indices or not _runs(input, devices=("cpu", "meta")):
            return super().forward(input)
        return functional.max_pool3d(input, window)


class Conv3dSame(nn.Conv3d):
    """A convolution with SAME, VALID or stated padding. Its parameters are those of `nn.Conv3d`: state dicts fit."""

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Three,
        stride: Three = 1,
        dilation: Three = 1,
        groups: int = 1,
        bias: bool = True,
        padding: Padding = "SAME",
        data_format: str = "NCDHW",
        device: Any = None,
        dtype: Any = None,
    ):
        window = three("kernel_size", kernel_size)
        for name, counts in (("in_channels", [in_channels]), ("out_channels", [out_channels]), ("kernel_size", window)):
            if not 1 <= min(counts) <= max(counts) < 2**31:
                raise InvalidArgumentError(Fault("VG003", type(self).__name__, name, "be 1 or more", show(counts)))
        if groups < 1 or in_channels % groups or out_channels % groups:
            wanted = f"divide in_channels and out_channels, {in_channels} and {out_channels}"
            raise InvalidArgumentError(Fault("VG013", type(self).__name__, "groups", wanted, str(groups)))
        around, steps, spread = padding_text(padding), three("stride", stride), three("dilation", dilation)
        super().__init__(in_channels, out_channels, tuple(window), tuple(steps), 0, tuple(spread), groups, bias,
                         device=device, dtype=dtype)  # fmt: skip
        self.padding, self.data_format = around, data_format

    @public
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The convolved volume."""
        axis = -1 if self.data_format == "NDHWC" else -4
        if input.dim() in (4, 5) and input.shape[axis] != self.in_channels:
            # The op itself would take a multiple of them for groups.
            wanted, got = f"have {self.in_channels} channels", f"{input.shape[axis]}, shape {list(input.shape)}"
            raise InvalidArgumentError(Fault("VG013", type(self).__name__, "input", wanted, got))
        taps = self.weight.permute(2, 3, 4, 1, 0)
        return conv3d(input, taps, self.bias, self.stride, self.padding, self.dilation, self.data_format)

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"{super().extra_repr()}, data_format={self.data_format}"


class _Pool(nn.Module):
    @checked
    def __init__(
        self, kernel_size: Three, stride: Three | None = None, padding: Padding = "SAME", data_format: str = "NCDHW"
    ):
        super().__init__()
        self.kernel_size = tuple(three("kernel_size", kernel_size))
        self.stride = self.kernel_size if stride is None else tuple(three("stride", stride))
        self.padding, self.data_format = padding_text(padding), data_format

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        shown = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{shown}, data_format={self.data_format}"


class AvgPool3dSame(_Pool):
    """Average pooling with SAME, VALID or stated padding, which is not counted."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The mean of every window."""
        return avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.data_format)


class MaxPool3dSame(_Pool):
    """Maximum pooling with SAME, VALID or stated padding and deterministic gradients."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The maximum of every window."""
        return max_pool3d(input, self.kernel_size, self.stride, self.padding, self.data_format)
