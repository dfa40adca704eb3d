# SPDX-License-Identifier: Apache-2.0
"""A builder that computes at once, and gradients of recorded calls through the declared gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.vectors.catalogue.cases import Case
from voxgrad.arrays import execute, ordinary
from voxgrad.catalog import attributes
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Faults


def call(op: Op, inputs: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """The outputs of an op: one entry per declared output, a list for a list of tensors."""
    arguments = {item.name: value for item, value in zip(op.inputs, inputs, strict=True)} | attrs
    run = execute.execute if op.problem is not None else ordinary.execute
    made = run(op, arguments)
    return list(made) if isinstance(made, tuple) else [made]


class Builder:
    """`build.<Op>(*inputs, **attrs)` as numbers; `used` are the names of the ops that were built."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS[name]
        self.used.add(name)

        def build(*inputs: Any, **attrs: Any) -> Any:
            made = call(op, list(inputs), attrs)
            return made[0] if len(made) == 1 else tuple(made)

        return build


@dataclass
class EagerNode:
    inputs: list[Any]
    outputs: list[Any]
    attrs: dict[str, Any]


def node(op: Op, inputs: list[Any], attrs: dict[str, Any]) -> EagerNode:
    """A use of an op with its outputs computed."""
    canonical = attributes.canonical(op, attrs, Faults(op.name))
    return EagerNode(inputs, call(op, inputs, attrs), canonical)


def weights(shape: tuple[int, ...], dtype: Any) -> Any:
    """The same weights that the recorded gradients were taken with."""
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)


def gradients(case: Case, build: Builder | None = None) -> dict[str, Any]:
    """The gradients that a case asks for: of the weighted sum of its first output."""
    op = OPS[case.op]
    made = node(op, [case.inputs[item.name] for item in op.inputs], case.attrs)
    dys: list[Any] = [None] * len(made.outputs)
    first = made.outputs[0]
    dys[0] = (
        [weights(one.shape, one.dtype) for one in first]
        if isinstance(first, list)
        else weights(first.shape, first.dtype)
    )
    assert op.gradient is not None
    found = op.gradient(build or Builder(), made, dys)
    return {
        item.name: np.zeros_like(case.inputs[item.name]) if dx is None else dx
        for item, dx in zip(op.inputs, found, strict=True)
        if item.name in case.gradient
    }
