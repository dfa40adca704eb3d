# SPDX-License-Identifier: Apache-2.0
"""The second-order gradient of batch normalisation, in float64: the kernels compute in the type that comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.catalogue.eager import EagerNode
from voxgrad.catalog import attributes
from voxgrad.catalog.registry import find
from voxgrad.errors import Faults
from voxgrad.kernels.arraywise import Context, evaluate


class WideBuilder:
    """Evaluates without the check of types that keeps float64 out; a Cast to float32 keeps its input."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = find(name)

        def build(*inputs: Any, **attrs: Any) -> Any:
            if name == "Cast":
                return inputs[0]
            values = [
                value if isinstance(value, np.ndarray) or name == "AddN" else np.asarray(value) for value in inputs
            ]
            made = evaluate(op, values, attributes.canonical(op, attrs, Faults(name)), Context())
            return made[0] if len(made) == 1 else made

        return build


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NCDHW"])
@pytest.mark.parametrize("name", ["FusedBatchNormGrad", "FusedBatchNormGradV3"])
def test_second_order(name: str, layout: str, training: bool) -> None:
    random, op = np.random.default_rng(0), find(name)
    attrs = attributes.canonical(op, {"epsilon": 0.01, "data_format": layout, "is_training": training}, Faults(name))
    attrs["data_format"] = layout
    shape = tuple(2 if letter == "C" else 3 if letter == "W" else 2 for letter in layout)
    axes = tuple(index for index, letter in enumerate(layout) if letter != "C")
    dy, x, scale, mean, variance = (random.normal(size=size) for size in (shape, shape, 2, 2, 2))
    weights = [random.normal(size=size) for size in (shape, 2, 2)]

    def inputs(dy: Any, x: Any, scale: Any) -> list[Any]:
        stats = [x.mean(axes), x.var(axes)] if training else [mean, np.abs(variance) + 0.5]
        return [dy, x, scale, *stats, *([np.zeros(())] if name.endswith("V3") else [])]

    def total(*values: Any) -> float:
        outputs = evaluate(op, inputs(*values), attrs, Context())[:3]
        return float(sum((weight * output).sum() for weight, output in zip(weights, outputs, strict=True)))

    node = EagerNode(inputs(dy, x, scale), list(evaluate(op, inputs(dy, x, scale), attrs, Context())), attrs)
    assert op.gradient is not None
    found = op.gradient(WideBuilder(), node, [*weights, None, None])
    for place, (value, analytic) in enumerate(zip((dy, x, scale), found, strict=False)):
        numeric = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[index] = 1e-5
            ends = [
                [value + sign * step if i == place else one for i, one in enumerate((dy, x, scale))] for sign in (1, -1)
            ]
            numeric[index] = (total(*ends[0]) - total(*ends[1])) / 2e-5
        np.testing.assert_allclose(analytic, numeric, atol=1e-7)
