# SPDX-License-Identifier: Apache-2.0
"""Whole models: which of their layers become ours, and why the others stay torch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from voxgrad.arguments import checked
from voxgrad.torch import functional, modules, norms, sequences

_KINDS: dict[type[nn.Module], tuple[type[nn.Module], tuple[str, ...]]] = {
    nn.Conv3d: (modules.Conv3d, ("padding_mode",)),
    nn.ConvTranspose3d: (modules.ConvTranspose3d, ("output_padding", "stride")),
    nn.MaxPool3d: (modules.MaxPool3d, ("dilation", "return_indices")),
    nn.AvgPool3d: (modules.AvgPool3d, ("divisor_override",)),
    nn.AdaptiveAvgPool3d: (modules.AdaptiveAvgPool3d, ()),
    nn.AdaptiveMaxPool3d: (modules.AdaptiveMaxPool3d, ("return_indices",)),
    nn.InstanceNorm3d: (norms.InstanceNorm3d, ()),
    nn.BatchNorm3d: (norms.BatchNorm3d, ()),
    nn.GroupNorm: (norms.GroupNorm, ()),
}
"""The layers of torch's: what they become, and which of their options may keep them from it."""
_OURS = (
    *(ours for ours, _ in _KINDS.values()), modules.Conv3dSame, modules.AvgPool3dSame, modules.MaxPool3dSame,
)  # fmt: skip
_READY = "can be converted: vt.from_torch(model)"
_OTHER = "no kernel here"
_BEHIND = "with the norm in front, on a GPU"


@checked
def from_torch(model: nn.Module) -> nn.Module:
    """Have every layer of a model that this package computes with torch's results run on its kernels.

    The model itself is changed and returned. A converted layer is the same object, of a subclass of its class: its
    parameters, hooks and name stay. `vt.report(model)` says what was converted, what was not, and why.
    """
    layers = list(model.modules())
    for layer in layers:
        if type(layer) in _KINDS and not _why_not(layer):
            layer.__class__ = _KINDS[type(layer)][0]
    for layer in layers:
        if sequences.joins(layer):
            layer.__class__ = sequences.joined(type(layer))
    return model


def _why_not(layer: nn.Module) -> str:
    """Why a layer that has kernels here stays torch's; "" where it need not."""
    kind = next(kind for kind in _KINDS if isinstance(layer, kind))
    if parametrize.is_parametrized(layer):
        return f"parametrised ({', '.join(layer.parametrizations)}): convert first, then parametrise"
    if type(layer) is not kind:
        return f"a subclass of nn.{kind.__name__}"
    if own := {"forward", "_conv_forward"} & vars(layer).keys():
        return f"a {own.pop()} of its own"
    weight = getattr(layer, "weight", None)
    if weight is not None and not weight.is_floating_point():
        return f"weights of {weight.dtype}"
    return functional.unfit(**{name: getattr(layer, name) for name in _KINDS[kind][1]})


@dataclass(frozen=True)
class Line:
    """A layer of a model: its name there, its class, whether it runs here, and why not, or when not."""

    name: str
    layer: str
    converted: bool
    why: str


@dataclass(frozen=True)
class Report:
    """What `vt.report` found; prints as a table, in which layers that have no kernel here are only counted."""

    lines: tuple[Line, ...]

    @property
    def converted(self) -> list[Line]:
        """The layers that run on the kernels of this package."""
        return [line for line in self.lines if line.converted]

    @property
    def left(self) -> list[Line]:
        """Those that stayed torch's."""
        return [line for line in self.lines if not line.converted]

    def __str__(self) -> str:
        own = [line for line in self.lines if line.why != _OTHER]
        others = Counter(line.layer for line in self.lines if line.why == _OTHER)
        rows = [
            (line.name or "(model)", line.layer, "voxgrad" if line.converted else "torch", line.why) for line in own
        ]
        rows += [(f"({count} layers)", layer, "torch", _OTHER) for layer, count in sorted(others.items())]
        rows.insert(0, ("name", "layer", "runs in", "why"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        head = f"{len(self.converted)} of the {len(self.lines)} layers run in voxgrad"
        return "\n".join([head, "", *("  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows)])


@checked
def report(model: nn.Module) -> Report:
    """What of a model was converted by `from_torch`, what stayed, and why. Of a model not converted yet: what can be.

    Layers are seen, not the functions that a `forward` calls.
    """
    return Report(tuple(_lines(model)))


def _behind(model: nn.Module) -> set[nn.Module]:
    """The activations that are computed with a norm."""
    joined: list[Any] = [layer for layer in model.modules() if isinstance(layer, sequences.Joined)]
    found = (sequences.behind([*layers], place) for layers in joined for place in range(len(layers)))
    return {one for one in found if one is not None}


def _lines(model: nn.Module) -> Iterator[Line]:
    behind = _behind(model)
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        if "parametrizations" in name.split("."):
            continue
        if isinstance(layer, _OURS):
            yield Line(name, kind, True, getattr(layer, "note", ""))
        elif layer in behind:
            yield Line(name, kind, True, _BEHIND)
        elif isinstance(layer, tuple(_KINDS)):
            yield Line(name, kind, False, _why_not(layer) or _READY)
        elif not any(True for _ in layer.children()):
            yield Line(name, kind, False, _OTHER)


def to_torch(model: nn.Module) -> nn.Module:
    """Have every layer that `from_torch` converted run on torch's own kernels again."""
    back = {ours: theirs for theirs, (ours, _) in _KINDS.items()}
    for layer in model.modules():
        if type(layer) in back:
            layer.__class__ = back[type(layer)]
        elif isinstance(layer, sequences.Joined):
            layer.__class__ = layer.theirs
    return model
