# SPDX-License-Identifier: Apache-2.0
"""Layers that stand in for `nn.Conv3d`, `nn.AvgPool3d` and `nn.MaxPool3d`, with SAME or stated padding."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from voxgrad.arguments import checked
from voxgrad.arrays.plain import Padding, Three
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.torch.functions import avg_pool3d, conv3d, max_pool3d, padding_text, public, three


class Conv3dSame(nn.Module):
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
    ):
        super().__init__()
        for name, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if not 1 <= count < 2**31:
                raise InvalidArgumentError(Fault("VG003", type(self).__name__, name, "be 1 or more", show(count)))
        if groups < 1 or in_channels % groups or out_channels % groups:
            wanted = f"divide in_channels and out_channels, {in_channels} and {out_channels}"
            raise InvalidArgumentError(Fault("VG013", type(self).__name__, "groups", wanted, str(groups)))
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = three("kernel_size", kernel_size)
        if not 1 <= min(self.kernel_size) <= max(self.kernel_size) < 2**31:
            raise InvalidArgumentError(
                Fault("VG003", type(self).__name__, "kernel_size", "be 1 or more", show(self.kernel_size))
            )
        self.stride, self.dilation = three("stride", stride), three("dilation", dilation)
        self.padding, self.data_format = padding_text(padding), data_format
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The initial values that `nn.Conv3d` has."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

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
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        more = {
            "dilation": (self.dilation, [1, 1, 1]),
            "groups": (self.groups, 1),
            "bias": (self.bias is not None, True),
        }
        told = [f"{name}={value}" for name, (value, default) in more.items() if value != default]
        return ", ".join([shown, *told, f"padding={self.padding!r}", f"data_format={self.data_format!r}"])


class _Pool(nn.Module):
    @checked
    def __init__(
        self, kernel_size: Three, stride: Three | None = None, padding: Padding = "SAME", data_format: str = "NCDHW"
    ):
        super().__init__()
        self.kernel_size = three("kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else three("stride", stride)
        self.padding, self.data_format = padding_text(padding), data_format

    def extra_repr(self) -> str:
        """What `print(layer)` shows."""
        shown = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding!r}"
        return f"{shown}, data_format={self.data_format!r}"


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


@checked
def from_torch(model: nn.Module) -> nn.Module:
    """Replace every layer of a model that can be replaced without changing its results; returns the model.

    Replaced are `nn.Conv3d` that pad with zeros, and `nn.AvgPool3d` without padding; a model that is such a layer
    itself comes back as the new one. Weights are shared, not copied.
    Other layers stay: subclasses, layers with hooks or parametrisations (weight_norm, pruning), and `nn.MaxPool3d`,
    through which torch lets NaN pass. Where that does not matter, put `MaxPool3dSame(..., padding="VALID")` there.
    """
    made = _replacement(model)
    if made is not None:
        return made
    replaced: dict[int, nn.Module | None] = {}
    for parent in list(model.modules()):
        for name, child in parent._modules.items():
            if child is not None and (fresh := replaced.setdefault(id(child), _replacement(child))) is not None:
                setattr(parent, name, fresh)
    return model


def _replacement(layer: Any) -> nn.Module | None:
    """A layer of ours with the same results for every input, or None."""
    if not _is_plain(layer):
        return None
    if type(layer) is nn.AvgPool3d:
        same = layer.padding in (0, (0, 0, 0)) and not layer.ceil_mode and layer.divisor_override is None
        made: Any = AvgPool3dSame(layer.kernel_size, layer.stride, "VALID") if same else None
    elif type(layer) is nn.Conv3d and (padding := _padding(layer)) and layer.weight.is_floating_point():
        # Its own weights take the place of these, which therefore draw no random numbers.
        with torch.device("meta"):
            made = Conv3dSame(
                layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.dilation, layer.groups,
                layer.bias is not None, padding,
            )  # fmt: skip
        made.weight, made.bias = layer.weight, layer.bias
    else:
        return None
    return None if made is None else made.train(layer.training)


def _is_plain(layer: nn.Module) -> bool:
    """Does a layer do what its class does: no hooks, no method or parameter of its own?"""
    hooked = any(value for name, value in vars(layer).items() if name.endswith("_hooks"))
    return not hooked and "forward" not in vars(layer) and set(layer._parameters) <= {"weight", "bias"}


def _padding(layer: nn.Conv3d) -> str:
    """The padding of a layer as the ops take it, "" where they have none such."""
    if layer.padding_mode != "zeros":
        return ""
    if isinstance(layer.padding, str):
        return layer.padding.upper()  # torch's "same" is for stride 1 only, and there it is TensorFlow's.
    axes = zip(layer.padding, layer.kernel_size, layer.dilation, layer.stride, strict=True)
    if all(2 * p == (k - 1) * d and s == 1 for p, k, d, s in axes):
        return "SAME"
    return padding_text(layer.padding) if any(layer.padding) else "VALID"
