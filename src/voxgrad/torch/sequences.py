# SPDX-License-Identifier: Apache-2.0
"""`nn.Sequential` and its subclasses in which a norm computes the bias before it and the activation behind it too.

The layers stay what and where they are. At every call those that have hooks, or a `forward` of their own, are called by
themselves, as torch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as everywhere

from voxgrad.torch import norms
from voxgrad.torch.modules import Conv3d

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL: Any = [
    getattr(everywhere, f"_global{name}", {})
    for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
]


def bare(layer: nn.Module) -> bool:
    """Is calling this layer nothing but its class's `forward`?"""
    own = vars(layer)
    return not (any(own.get(name) for name in _HOOKS) or "forward" in own or own.get("_compiled_call_impl"))


def behind(layers: Sequence[nn.Module], place: int) -> nn.Module | None:
    """The activation behind the norm at a place, if it can be computed with it."""
    if not (isinstance(layers[place], norms.NORMS) and bare(layers[place])) or place + 1 >= len(layers):
        return None
    follows = layers[place + 1]
    return follows if type(follows) in norms.ACTIVATIONS and bare(follows) else None


def lends_bias(layers: Sequence[nn.Module], place: int) -> bool:
    """Is it a convolution whose bias the norm behind it can add?"""
    layer = layers[place]
    if type(layer) is not Conv3d or layer.bias is None or place + 1 >= len(layers):
        return False
    follows = layers[place + 1]
    return bare(layer) and "_conv_forward" not in vars(layer) and norms.takes_shift(follows) and bare(follows)


class Joined:
    """What a sequence becomes: mixed into its class."""

    theirs: type[nn.Module]
    """The class that it had."""

    def forward(self: Any, input: Any) -> Any:
        """Layer by layer, those that are computed as one at once."""
        if not isinstance(input, torch.Tensor) or not norms.runs(input) or any(_GLOBAL):
            return super().forward(input)  # type: ignore[misc]
        layers, place = list(self), 0
        while place < len(layers):
            layer, shift = layers[place], None
            if lends_bias(layers, place) and layer.computes(input):
                input, shift = layer.without_bias(input), layer.bias
                place, layer = place + 1, layers[place + 1]
            if isinstance(layer, norms.NORMS) and bare(layer):
                follows = behind(layers, place)
                input = norms.run(layer, input, shift, follows)
                place += 1 if follows is None else 2
            else:
                input, place = layer(input), place + 1
        return input

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        """A class that is made here is made again where it is loaded."""
        plain: Any = super().__reduce_ex__(protocol)
        return _made, (self.theirs,), *plain[2:]


def _made(base: type[nn.Module]) -> Any:
    return object.__new__(joined(base))


_classes: dict[type[nn.Module], Any] = {}


def joined(base: type[nn.Module]) -> Any:
    """The class that a sequence of this class becomes; it prints as the old one."""
    if base not in _classes:
        about = {"theirs": base, "__doc__": base.__doc__, "__module__": base.__module__}
        _classes[base] = type(base.__name__, (Joined, base), about)
    return _classes[base]


def joins(layer: nn.Module) -> bool:
    """Is it a sequence, called as torch's, in which there is something to join?"""
    if not isinstance(layer, nn.Sequential) or isinstance(layer, Joined) or "forward" in vars(layer):
        return False
    if type(layer).forward is not nn.Sequential.forward or type(layer).__call__ is not nn.Module.__call__:
        return False
    layers = list(layer)
    return any(behind(layers, place) is not None or lends_bias(layers, place) for place in range(len(layers)))
