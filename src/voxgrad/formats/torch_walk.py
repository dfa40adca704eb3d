# SPDX-License-Identifier: Apache-2.0
"""The graph of a torch module, walked node by node: what its tensors become on a page.

Volumes stand on the page as [N, D, H, W, C], as files have them; tensors of other ranks as torch has them. Weights are
placeholders in torch's own layout, so that gradients with respect to them come out in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from voxgrad import ops
from voxgrad.errors import Fault, UnimplementedError
from voxgrad.graph.page import Page

Array = np.ndarray[Any, Any]
_TO_LAST = (0, 4, 1, 2, 3)
"""Where the dimensions of torch's volumes [N, C, D, H, W] stand on the page."""


@dataclass(frozen=True)
class Network:
    """A module as a page: from placeholders `inputs` to output `y`, with the values of its weights.

    `weights` are the placeholders of weights, by torch's names.
    """

    page: Page
    feeds: dict[str, Array]
    inputs: tuple[str, ...] = ("x",)
    weights: Mapping[str, str] = field(default_factory=dict)


def refused(name: str, got: str, remedy: str) -> UnimplementedError:
    """The error for what has no block here."""
    return UnimplementedError(Fault("VG072", "predict", name, "be made of layers that run on parts", got, remedy))


@dataclass
class Value:
    """A tensor of the graph: on the page, with torch's own shape. Volumes have their channels last there."""

    there: Any
    shape: tuple[int, ...]

    def axis(self, dim: int) -> int:
        """The dimension of the page that is this one of torch's."""
        at = dim % max(len(self.shape), 1)
        return _TO_LAST[at] if len(self.shape) == 5 else at

    @property
    def sizes(self) -> list[int]:
        """The shape on the page."""
        return on_page(self.shape)


@dataclass
class Weight:
    """A weight or a buffer of the module, which becomes a placeholder when it is first used."""

    name: str
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, as torch has it."""
        return tuple(self.values.shape)


def on_page(shape: Sequence[int]) -> list[int]:
    """A shape of torch's as the page has it."""
    return [shape[0], *shape[2:], shape[1]] if len(shape) == 5 else list(shape)


class UnfitError(Exception):
    """An option for which there is no block."""


def needs(fine: bool, text: str) -> None:
    """Refuse an option for which there is no block."""
    if not fine:
        raise UnfitError(text)


Rule = Callable[..., Any]


@dataclass
class Walk:
    """Adds a block, or several, for every node of a graph."""

    name: str
    values: Mapping[str, Array]
    dtype: str
    same: Mapping[str, str]
    """The first name of each weight, by all of its names: layers may share one."""
    rules: Mapping[str, Rule]
    remedy: str
    feeds: dict[str, Array] = field(default_factory=dict)
    found: dict[Any, Any] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)

    def go(self, exported: Any) -> Network:
        """The whole graph."""
        self.page = Page(self.name)
        given = {one.arg.name: one for one in exported.graph_signature.input_specs}
        for node in exported.graph.nodes:
            if node.op == "placeholder":
                self.found[node] = self._given(node, given[node.name].target)
            elif node.op == "call_function" and node.users:
                # What nobody uses counts batches, or checks types.
                self.found[node] = self._made(node)
            elif node.op == "output":
                self._exposed(node.args[0])
        return Network(
            self.page, self.feeds, tuple(self.inputs), {name: one.path for name, one in self.weights.items()}
        )

    def _given(self, node: Any, target: str | None) -> Any:
        """A volume, or a weight."""
        if target is None:
            told = node.meta["val"]
            shape, kind = tuple(told.shape), str(told.dtype).removeprefix("torch.")
            self.inputs.append("x" if not self.inputs else f"x{len(self.inputs) + 1}")
            made = ops.Placeholder(self.page, dtype=kind, shape=on_page(shape), name=self.inputs[-1])
            return Value(made, shape)
        if target not in self.values:
            raise refused(self.name, f"a tensor of its own that is no weight ({target})", self.remedy)
        return Weight(self.same[target], self.values[target])

    def _exposed(self, results: Sequence[Any]) -> None:
        made = [self.found.get(one) for one in results]
        if len(made) != 1 or not isinstance(made[0], Value):
            raise refused(self.name, f"{len(made)} results", self.remedy)
        self.page.expose({"y": ops.Identity(self.page, made[0].there, name="y")}, self.inputs)

    def _made(self, node: Any) -> Any:
        rule = self.rules.get(getattr(node.target, "_opname", getattr(node.target, "__name__", "")).rstrip("_"))
        if rule is None:
            raise refused(self.name, f"{node.target} ({node.name})", self.remedy)
        arguments = torch.fx.node.map_arg(node.args, self.found.__getitem__)
        named = torch.fx.node.map_arg(node.kwargs, self.found.__getitem__)
        try:
            made = rule(self, *arguments, **named)
        except UnfitError as error:
            raise refused(self.name, f"{node.target} ({node.name}) {error}", self.remedy) from None
        told = node.meta.get("val")
        # Rules give what they made on the page; several results, and one of several, are values already.
        is_made = isinstance(told, torch.Tensor) and not isinstance(made, (tuple, Value))
        return Value(made, tuple(told.shape)) if is_made else made

    # What rules are made of

    def fed(self, value: Array, name: str) -> Any:
        """A value that every worker holds."""
        made = ops.Placeholder(
            self.page, dtype=str(value.dtype), shape=list(value.shape), name=self.page.unique_name(name)
        )
        self.feeds[made.path] = np.ascontiguousarray(value)
        return made

    def add(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """A block; tensors of the graph are taken from the page, weights and arrays are fed."""
        return getattr(ops, op)(self.page, *(self.there(one) for one in inputs), **attrs)

    def there(self, value: Any) -> Any:
        """A value on the page."""
        if isinstance(value, Value):
            return value.there
        if isinstance(value, Weight):
            if value.name not in self.weights:
                self.weights[value.name] = self.fed(value.values, value.name.rpartition(".")[2] or "weight")
            return self.weights[value.name]
        return self.fed(value, "weight") if isinstance(value, np.ndarray) and value.ndim else value

    def number(self, value: float) -> Array:
        """A number of the module's type."""
        return np.asarray(value, self.dtype)
