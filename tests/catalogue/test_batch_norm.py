# SPDX-License-Identifier: Apache-2.0
"""Gradients of batch normalisation to the third order, in float64 where the kernels compute in the type that comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.catalogue.eager import EagerNode
from voxgrad.catalog import attributes
from voxgrad.catalog.registry import find
from voxgrad.errors import Faults
from voxgrad.kernels.arraywise import Context, evaluate


class WideBuilder:
    """Evaluates without the check of types that keeps float64 out; a Cast makes float64 of everything."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = find(name)

        def build(*inputs: Any, **attrs: Any) -> Any:
            if name == "Cast":
                return np.asarray(inputs[0], np.float64)
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


def _differences(function: Callable[[Any], float], value: Any, step: float) -> Any:
    """Central differences of fourth order, one element at a time."""
    found = np.zeros(value.shape)
    for index in np.ndindex(value.shape):
        move = np.zeros(value.shape, value.dtype)
        move[index] = step
        one, two = (function(value + times * move) - function(value - times * move) for times in (1, 2))
        found[index] = (8 * one - two) / (12 * step)
    return found


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_every_output_has_a_gradient(layout: str, training: bool, share: float) -> None:
    random, op = np.random.default_rng(1), find("FusedBatchNormV3")
    given = {"epsilon": 0.01, "exponential_avg_factor": share, "data_format": layout, "is_training": training}
    attrs = attributes.canonical(op, given, Faults(op.name))
    shape = (2, 3, 2, 2)
    inputs = [random.normal(size=shape), *(random.normal(size=2) for _ in range(3)), random.random(2) + 0.5]
    weights = [random.normal(size=size) for size in (shape, 2, 2, 2, 2)] + [np.zeros(())]
    inputs = [np.moveaxis(one, -1, 1) if one.ndim == 4 and layout == "NCHW" else one for one in inputs]
    weights = [np.moveaxis(one, -1, 1) if one.ndim == 4 and layout == "NCHW" else one for one in weights]

    def total(place: int, value: Any, first: int) -> float:
        outputs = evaluate(op, [value if i == place else one for i, one in enumerate(inputs)], attrs, Context())
        return float(sum((w * y).sum() for w, y in zip(weights[first:], outputs[first:], strict=True)))

    made = EagerNode(inputs, list(evaluate(op, inputs, attrs, Context())), attrs)
    assert op.gradient is not None
    for first in (0, 1):
        found = op.gradient(WideBuilder(), made, [None] * first + weights[first:])
        for place, analytic in enumerate(found):
            if first == 0 and place > 2 and not training:
                continue  # as TensorFlow: y says nothing of given statistics
            numeric = _differences(lambda value, at=place, of=first: total(at, value, of), inputs[place], 1e-3)
            np.testing.assert_allclose(np.zeros(numeric.shape) if analytic is None else analytic, numeric, atol=1e-7)


def test_third_order() -> None:
    """Along one direction, on a page: the slope of the second derivative."""
    random = np.random.default_rng(2)
    x, scale, offset = random.normal(size=(2, 2, 2, 2)), random.normal(size=2), random.normal(size=2)
    seed, along = random.normal(size=(2, *x.shape))
    page = vg.Page("orders")
    start = vg.ops.Placeholder(page, "float32", shape=x.shape)
    vectors = [vg.ops.Const(page, one.astype(np.float32)) for one in (scale, offset, offset, scale)]
    y = vg.ops.FusedBatchNormV3(page, start, *vectors, epsilon=0.1)[0]
    derivatives = [y]
    for weight in (seed, along, along):
        derivatives += vg.gradients(derivatives[-1:], [start], [weight.astype(np.float32)])
    session = vg.ClientSession(page)

    def second(value: Any) -> float:
        return float((session.run(derivatives[2], {start: value.astype(np.float32)}).astype(np.float64) * along).sum())

    numeric = _differences(second, x, 0.04)
    found = session.run(derivatives[3], {start: x.astype(np.float32)})
    np.testing.assert_allclose(found, numeric, atol=2e-3 * np.abs(numeric).max())


@pytest.mark.parametrize("training", [True, False])
def test_an_empty_batch_has_no_statistics(training: bool) -> None:
    one = np.ones(2, np.float32)
    made = vg.raw_ops.FusedBatchNormV3(
        x=np.zeros((0, 2, 2, 2), np.float32), scale=one, offset=one, mean=one, variance=one, is_training=training
    )
    assert made.y.shape == (0, 2, 2, 2) and np.isnan(made.batch_mean).all() and np.isnan(made.batch_variance).all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"])
def test_what_a_gradient_is_made_of(name: str, training: bool) -> None:
    """Runs over volumes take these ops in its place."""
    random, op = np.random.default_rng(1), find(name)
    dy, x = random.normal(size=(2, 3, 2, 4)), random.normal(size=(2, 3, 2, 4))
    stats = [x.mean((0, 1, 2)), x.var((0, 1, 2))] if training else [random.normal(size=4), random.random(4) + 0.5]
    attrs = attributes.canonical(op, {"epsilon": 0.01, "is_training": training}, Faults(name))
    inputs = [dy, x, random.normal(size=4), *stats, *([np.zeros(())] if name.endswith("V3") else [])]
    wanted = list(evaluate(op, inputs, attrs, Context()))
    assert op.made_of is not None
    found = op.made_of(WideBuilder(), EagerNode(inputs, wanted, attrs))
    for one, other in zip(found[:3], wanted, strict=False):
        np.testing.assert_allclose(one, other, atol=1e-9)
