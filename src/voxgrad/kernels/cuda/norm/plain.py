# SPDX-License-Identifier: Apache-2.0
"""What a norm is, and what it computes, written with torch's own functions: the law of the kernels beside this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "none": lambda z, _: z,
    "relu": lambda z, _: functional.relu(z),
    "leaky": lambda z, slope: functional.prelu(z, slope) if isinstance(slope, torch.Tensor)
    else functional.leaky_relu(z, slope),
    "gelu": lambda z, _: functional.gelu(z),
    "gelu tanh": lambda z, _: functional.gelu(z, approximate="tanh"),
    "silu": lambda z, _: functional.silu(z),
}  # fmt: skip
"""By name, of z and of the slope below zero: a number, or a tensor of one for each channel or for all."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Over what numbers [N, C, ...] are normalised, and what follows.

    `over` is "image" (each channel of each image, or `groups` of channels), "batch" (each channel of all images), or
    "stated", where mean and variance are given.
    """

    over: str
    groups: int = 0
    epsilon: float = 1e-5
    activation: str = "none"
    slope: float = 0.0
    dtype: torch.dtype | None = None
    """The type of the result, if it is not that of x."""


@dataclass(frozen=True, slots=True)
class Given:
    """The tensors of a norm beside x: one entry per channel, or None."""

    weight: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    shift: torch.Tensor | None = None
    """Added to x first: the bias of the convolution in front."""
    slope: torch.Tensor | None = None
    mean: torch.Tensor | None = None
    variance: torch.Tensor | None = None

    @property
    def tensors(self) -> tuple[torch.Tensor | None, ...]:
        """All of them, in order."""
        return self.weight, self.bias, self.shift, self.slope, self.mean, self.variance


def norm(x: torch.Tensor, given: Given, how: Norm) -> torch.Tensor:
    """The normalised and activated x, differentiable in everything, in every mode of torch's."""
    if given.shift is not None:
        x = x + given.shift.to(x.dtype).reshape(-1, *[1] * (x.dim() - 2))
    if how.dtype is not None:
        x = x.to(how.dtype)
    weight, bias = (one if one is None or how.over != "image" or not how.groups else one.to(x.dtype)
                    for one in (given.weight, given.bias))  # fmt: skip
    if how.over == "image" and how.groups:
        made = functional.group_norm(x, how.groups, weight, bias, how.epsilon)
    elif how.over == "image":
        made = functional.instance_norm(x, None, None, weight, bias, True, 0.0, how.epsilon)
    else:
        made = functional.batch_norm(
            x, given.mean, given.variance, weight, bias, how.over == "batch", 0.0, how.epsilon
        )  # fmt: skip
    slope = how.slope if given.slope is None else given.slope.to(made.dtype)
    return ACTIVATIONS[how.activation](made, slope)
