# SPDX-License-Identifier: Apache-2.0
"""The recorded answers are still those of the installed TensorFlow, and torch computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.catalogue.eager import call, gradients
from tests.catalogue.test_gradients import EDGES
from tests.catalogue.test_vectors import by_op, check_outputs
from tests.catalogue.tolerance import allowed, distance
from tests.vectors.catalogue.cases import Case
from tests.vectors.catalogue.load import recorded_steps
from voxgrad.catalog.registry import OPS

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("op", by_op())
def test_live(op: str) -> None:
    tensorflow_run = pytest.importorskip("tests.vectors.catalogue.tensorflow_run", exc_type=ImportError)
    for one in by_op()[op]:
        outputs, _ = tensorflow_run.run(one.case)
        inputs = [one.case.inputs[item.name] for item in OPS[op].inputs]
        live = type(one)(one.id, one.case, outputs, {})
        check_outputs(live, call(OPS[op], inputs, one.case.attrs))


NOT_THERE = ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseToDense", "StridedSlice")
"""Gradients of EDGES that TensorFlow does not have: none at all, one of another shape, none for int16 bounds."""


@pytest.mark.parametrize("case", [one for one in EDGES if one.op not in NOT_THERE], ids=lambda case: case.op)
def test_live_gradients(case: Case) -> None:
    tensorflow_run = pytest.importorskip("tests.vectors.catalogue.tensorflow_run", exc_type=ImportError)
    tf = tensorflow_run.tf
    _, wanted = tensorflow_run.run(case)
    if case.op == "LinSpace":
        # tf.raw_ops.LinSpace has none, but tf.linspace, which computes the same, has.
        inputs = [tf.constant(case.inputs[name]) for name in ("start", "stop")]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = tensorflow_run.weighted(tf.linspace(*inputs, int(case.inputs["num"])))
        wanted = {name: one.numpy() for name, one in zip(case.gradient, tape.gradient(total, inputs), strict=True)}
    found = gradients(case)
    for name in case.gradient:
        np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=1e-12)


def test_live_steps() -> None:
    tensorflow_run = pytest.importorskip("tests.vectors.catalogue.tensorflow_run", exc_type=ImportError)
    for case in recorded_steps():
        for found, wanted in zip(tensorflow_run.run_step(case.step), case.after, strict=True):
            assert all(distance(found[name], wanted[name], "AddV2") <= 4 for name in wanted), case.id


def _on_torch(torch: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_on_torch(torch, one) for one in value]
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(value).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def _back(value: Any) -> Any:
    from voxgrad.kernels.arraywise.namespace import to_numpy

    return [_back(one) for one in value] if isinstance(value, (list, tuple)) else to_numpy(value)


_UNSIGNED = ("uint16", "uint32", "uint64")


@pytest.mark.parametrize("op", by_op())
def test_torch(op: str) -> None:
    """The same functions on tensors of torch, which come back as such; two more ulps for its own roundings."""
    torch = pytest.importorskip("torch")
    for one in by_op()[op]:
        arrays = [
            array for value in one.case.inputs.values() for array in (value if isinstance(value, list) else [value])
        ]
        types = {array.dtype.name for array in (*arrays, *(o for o in one.outputs if not isinstance(o, list)))}
        if "object" in types or types & set(_UNSIGNED) or (op == "Cast" and one.case.attrs["DstT"] in _UNSIGNED):
            continue
        inputs = [_on_torch(torch, one.case.inputs[item.name]) for item in OPS[op].inputs]
        made = call(OPS[op], inputs, one.case.attrs)
        assert all(
            isinstance(each, torch.Tensor) for value in made for each in (value if isinstance(value, list) else [value])
        )
        found, wanted = (_flat(values) for values in (_back(made)[: len(one.outputs)], one.outputs))
        for a, b in zip(found, wanted, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), one.id
            limit = allowed(op)
            assert distance(a, b, op) <= (limit + 4 if limit else 0), f"{one.id} {one.case.attrs}\n{a}\n{b}"


def _flat(values: Any) -> list[Any]:
    return [each for value in values for each in (value if isinstance(value, list) else [value])]
