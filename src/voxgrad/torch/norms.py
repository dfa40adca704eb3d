# SPDX-License-Identifier: Apache-2.0
"""Norm layers on a GPU's kernels, with the activation behind them, and where these do not run on torch's own.

The kernels compute a layer and its first gradient. Gradients of gradients, forward mode, the transforms of `torch.func`
and compiled graphs are made of torch's functions: the same numbers, but for roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad

from voxgrad.arrays.limits import check_size
from voxgrad.errors import Faults
from voxgrad.kernels.cuda.norm import plain
from voxgrad.kernels.cuda.norm.plain import Given, Norm

_C: Any = torch._C
_DEVICES = frozenset(["cuda"])
_PLAIN = (torch.Tensor, nn.Parameter)
_HALVES = (torch.float16, torch.bfloat16)


@cache
def _passes() -> Any:
    """The kernels; Triton is loaded when they first run."""
    from voxgrad.kernels.cuda.norm import passes

    return passes


class Fused(torch.autograd.Function):
    """The kernels, for torch's autograd: y, and what was found of the channels."""

    @staticmethod
    def forward(ctx: Any, how: Norm, x: torch.Tensor, *tensors: torch.Tensor | None) -> Any:
        """Compute, and keep what the gradient reads."""
        y, table = _passes().forward(x, Given(*tensors), how)
        ctx.how = how
        ctx.save_for_backward(x, table, *tensors)
        ctx.mark_non_differentiable(table)
        ctx.set_materialize_grads(False)
        return y, table

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> Any:
        """The gradients; as a graph of torch's functions where they are differentiated again."""
        dy = dys[0]
        if dy is None:
            return (None,) * len(ctx.needs_input_grad)
        x, table, *tensors = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (None, *_graph_of_gradients(ctx.how, dy, (x, *tensors), ctx.needs_input_grad[1:]))
        made = _passes().backward(dy, x, table, Given(*tensors), ctx.how)
        found = (made.weight, made.bias, made.shift, made.slope, None, None)
        slopes = (
            one.sum_to_size(like.shape).to(like.dtype) if need else None
            for one, like, need in zip(found, tensors, ctx.needs_input_grad[2:], strict=True)
        )
        return (None, made.x, *slopes)


def _graph_of_gradients(how: Norm, dy: torch.Tensor, tensors: Any, needs: Any) -> list[Any]:
    x, *rest = tensors
    with torch.enable_grad(), torch.autocast(x.device.type, enabled=False):
        y = plain.norm(x, Given(*rest), how)
        wanted = [one for one, need in zip(tensors, needs, strict=True) if need]
        made = iter(torch.autograd.grad(y, wanted, dy, create_graph=True, allow_unused=True))
    return [next(made) if need else None for need in needs]


def runs(*tensors: torch.Tensor | None) -> bool:
    """Do the kernels run on these tensors, here and now?"""
    present = [one for one in tensors if one is not None]
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or _C._len_torch_dispatch_stack():
        return False
    if forward_ad._current_level >= 0 or _C._are_functorch_transforms_active():
        return False
    device = present[0].device
    return device.type in _DEVICES and all(type(one) in _PLAIN and one.device == device for one in present)


Behind = tuple[str, float, torch.Tensor | None]
"""An activation: its name, and its slope below zero as a number or as a tensor."""
_BEHIND: dict[type[nn.Module], Callable[[Any], Behind]] = {
    nn.ReLU: lambda layer: ("relu", 0.0, None),
    nn.LeakyReLU: lambda layer: ("leaky", float(layer.negative_slope), None),
    nn.GELU: lambda layer: ("gelu" if layer.approximate == "none" else "gelu tanh", 0.0, None),
    nn.SiLU: lambda layer: ("silu", 0.0, None),
    nn.PReLU: lambda layer: ("leaky", 0.0, layer.weight),
}
ACTIVATIONS = tuple(_BEHIND)
"""The layers that a norm computes with itself."""


def run(layer: Any, x: torch.Tensor, shift: torch.Tensor | None = None, behind: nn.Module | None = None) -> Any:
    """A norm layer of x, with the bias of the convolution in front and the activation behind, if they came with it."""
    planned = _planned(layer, x, shift, behind) if runs(x) else None
    if planned is not None:
        how, given = planned
        y, table = Fused.apply(how, x, *given.tensors)
        if how.over == "batch" and layer.training and layer.track_running_stats:
            _follow(layer, table, x.numel() // x.shape[1])
        return y
    if shift is not None:
        x = x + shift.to(x.dtype).reshape(-1, *[1] * (x.dim() - 2))
    y = layer.theirs.forward(layer, x)
    return y if behind is None else behind(y)


def _planned(
    layer: Any, x: torch.Tensor, shift: torch.Tensor | None, behind: nn.Module | None
) -> tuple[Norm, Given] | None:
    """What the kernels do for a layer; None where torch's own must."""
    found = layer.norm_of()
    if found is None or not layer.fits(x):
        return None
    how, given = found
    name, number, slope = ("none", 0.0, None) if behind is None else _BEHIND[type(behind)](behind)
    how, given = replace(how, activation=name, slope=number), replace(given, shift=shift, slope=slope)
    sloped = slope is None or slope.numel() in (1, x.shape[1])
    if not (sloped and _types_fit(x, how, given) and runs(x, *given.tensors) and _passes().runs(x, how)):
        return None
    how = replace(how, dtype=_type_of_result(x, how, given))
    _check_limit(type(layer).__name__, x, how.dtype or x.dtype)
    return how, given


def _lowers(x: torch.Tensor) -> bool:
    return torch.is_autocast_enabled(x.device.type) and x.dtype is not torch.float64


def _types_fit(x: torch.Tensor, how: Norm, given: Given) -> bool:
    """Does torch take these types together?"""
    if how.groups and _lowers(x):
        return True
    mixed = (x.dtype, torch.float32) if x.dtype in _HALVES and not how.groups else (x.dtype,)
    kinds = {one.dtype for one in (given.weight, given.bias, given.mean, given.variance) if one is not None}
    fits = len(kinds) <= 1 and kinds <= set(mixed)
    return fits and (given.slope is None or _lowers(x) or given.slope.dtype == x.dtype)


def _type_of_result(x: torch.Tensor, how: Norm, given: Given) -> torch.dtype | None:
    """The type in which autocast has torch's layers; None for that of x."""
    if not _lowers(x):
        return None
    if given.slope is not None:  # PReLU is one of those in the lower type
        return torch.get_autocast_dtype(x.device.type)
    return torch.float32 if how.groups and x.device.type == "cuda" else None


def _check_limit(name: str, x: torch.Tensor, dtype: torch.dtype) -> None:
    faults = Faults(name)
    check_size(name, x.numel() * dtype.itemsize, faults, argument="input")
    faults.raise_if_any()


def _follow(layer: Any, table: torch.Tensor, count: int) -> None:
    """Move the running statistics of a batch norm as torch does: with the variance over n - 1."""
    share = layer.momentum
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
        share = 1.0 / float(layer.num_batches_tracked) if share is None else share
    mean, variance = (one[0] for one in _passes().statistics(table))
    with torch.no_grad():
        layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), share or 0.0)
        unbiased = variance * (count / (count - 1))
        layer.running_var.lerp_(unbiased.to(layer.running_var.dtype), share or 0.0)


class InstanceNorm3d(nn.InstanceNorm3d):
    """`nn.InstanceNorm3d`."""

    theirs, note = nn.InstanceNorm3d, "on a CPU torch's own"

    def norm_of(self) -> tuple[Norm, Given] | None:
        """What it computes; None where it follows the images that it sees."""
        if not self.track_running_stats:
            return Norm("image", 0, self.eps), Given(self.weight, self.bias)
        if self.training or self.running_mean is None:
            return None
        return Norm("stated", 0, self.eps), Given(
            self.weight, self.bias, mean=self.running_mean, variance=self.running_var
        )  # fmt: skip

    def fits(self, x: torch.Tensor) -> bool:
        """Does torch take this shape, without a word?"""
        return bool(x.dim() == 5 and x.shape[1] == self.num_features and math.prod(x.shape[2:]) > 1)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The normalised volumes."""
        return run(self, input)


class BatchNorm3d(nn.BatchNorm3d):
    """`nn.BatchNorm3d`."""

    theirs, note = nn.BatchNorm3d, InstanceNorm3d.note

    def norm_of(self) -> tuple[Norm, Given] | None:
        """What it computes."""
        if self.training or (self.running_mean is None and self.running_var is None):
            return Norm("batch", 0, self.eps), Given(self.weight, self.bias)
        return Norm("stated", 0, self.eps), Given(
            self.weight, self.bias, mean=self.running_mean, variance=self.running_var
        )  # fmt: skip

    def fits(self, x: torch.Tensor) -> bool:
        """Does torch take this shape?"""
        return bool(x.dim() == 5 and x.shape[1] == self.num_features and x.numel() > x.shape[1])

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The normalised volumes."""
        return run(self, input)


class GroupNorm(nn.GroupNorm):
    """`nn.GroupNorm`."""

    theirs, note = nn.GroupNorm, InstanceNorm3d.note
    track_running_stats = False

    def norm_of(self) -> tuple[Norm, Given] | None:
        """What it computes."""
        return Norm("image", self.num_groups, self.eps), Given(self.weight, self.bias)

    def fits(self, x: torch.Tensor) -> bool:
        """Does torch take this shape?"""
        alone = x.shape[0] * self.num_groups
        return bool(x.dim() >= 3 and x.shape[1] == self.num_channels and x.numel() > alone)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The normalised volumes."""
        return run(self, input)


NORMS = (InstanceNorm3d, BatchNorm3d, GroupNorm)


def takes_shift(layer: nn.Module) -> bool:
    """May what is added in front be left to a norm? Not to one in which channels share their mean."""
    return isinstance(layer, (InstanceNorm3d, BatchNorm3d))
