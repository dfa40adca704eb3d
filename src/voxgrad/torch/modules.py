# SPDX-License-Identifier: Apache-2.0
"""Layers that stand in for `nn.Conv3d`, `nn.AvgPool3d` and `nn.MaxPool3d`, with TensorFlow's SAME padding."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from voxgrad.torch.functions import Three, avg_pool3d, conv3d, max_pool3d, three


class Conv3dSame(nn.Module):
    """A convolution with SAME (or VALID) padding. Its parameters are those of `nn.Conv3d`, so state dicts fit both."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Three,
        stride: Three = 1,
        dilation: Three = 1,
        groups: int = 1,
        bias: bool = True,
        padding: str = "SAME",
        data_format: str = "NCDHW",
    ):
        super().__init__()
        self.stride, self.dilation = three("stride", stride), three("dilation", dilation)
        self.padding, self.data_format = padding, data_format
        window = three("kernel_size", kernel_size)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *window))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The initial values that `nn.Conv3d` has."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The convolved volume."""
        taps = self.weight.permute(2, 3, 4, 1, 0)
        return conv3d(input, taps, self.bias, self.stride, self.padding, self.dilation, self.data_format)


class _Pool(nn.Module):
    def __init__(
        self, kernel_size: Three, stride: Three | None = None, padding: str = "SAME", data_format: str = "NCDHW"
    ):
        super().__init__()
        self.kernel_size = three("kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else three("stride", stride)
        self.padding, self.data_format = padding, data_format

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding!r}"


class AvgPool3dSame(_Pool):
    """Average pooling with SAME (or VALID) padding."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The mean of every window."""
        return avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.data_format)


class MaxPool3dSame(_Pool):
    """Maximum pooling with SAME (or VALID) padding and deterministic gradients."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The maximum of every window."""
        return max_pool3d(input, self.kernel_size, self.stride, self.padding, self.data_format)


def from_torch(model: nn.Module) -> nn.Module:
    """Replace every layer of a model that can be replaced without changing its results; returns the model.

    `nn.Conv3d` whose zero padding equals TensorFlow's SAME or VALID at its stride, and pools without padding. Weights
    are shared, not copied. Other layers stay.
    """
    for name, child in model.named_children():
        made = _replacement(child)
        if made is None:
            from_torch(child)
        else:
            setattr(model, name, made)
    return model


def _replacement(layer: Any) -> nn.Module | None:
    if isinstance(layer, nn.Conv3d) and not isinstance(layer.padding, str) and layer.padding_mode == "zeros":
        same = all(
            2 * p == (k - 1) * d and s == 1
            for p, k, d, s in zip(layer.padding, layer.kernel_size, layer.dilation, layer.stride, strict=True)
        )
        if not same and any(layer.padding):
            return None
        made = Conv3dSame(
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.dilation, layer.groups,
            layer.bias is not None, "SAME" if same else "VALID",
        )  # fmt: skip
        shared: Any = layer
        made.weight, made.bias = shared.weight, shared.bias
        return made
    if isinstance(layer, nn.MaxPool3d | nn.AvgPool3d) and not layer.ceil_mode and layer.padding in (0, (0, 0, 0)):
        plain = isinstance(layer, nn.AvgPool3d) or (layer.dilation in (1, (1, 1, 1)) and not layer.return_indices)
        kind = MaxPool3dSame if isinstance(layer, nn.MaxPool3d) else AvgPool3dSame
        return kind(layer.kernel_size, layer.stride, "VALID") if plain else None
    return None
