# SPDX-License-Identifier: Apache-2.0
"""Symbolic gradients against TensorFlow's, to second order, and the numeric check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.graph.record import CONV, FILE, OVERLAP, POOL, inputs
from voxgrad import ops
from voxgrad.catalog import registry
from voxgrad.errors import UnimplementedError
from voxgrad.graph.block import Output
from voxgrad.graph.page import Page


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(FILE) as file:
        return dict(file)


def constants(page: Page) -> dict[str, Output]:
    return {name: ops.Const(page, value, name=name) for name, value in inputs().items()}


def assert_close(found: Any, wanted: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4 * float(np.abs(wanted).max()))


def test_conv_pool_conv_as_tensorflow_does(recorded: dict[str, Any]) -> None:
    page = Page("chain")
    given = constants(page)
    hidden = ops.MaxPool3D(page, ops.Conv3D(page, given["x"], given["w1"], **CONV), **POOL)
    y = ops.Square(page, ops.Conv3D(page, hidden, given["w2"], strides=[1] * 5, padding="VALID"))
    wanted = vg.gradients([y], [given[name] for name in ("x", "w1", "w2")])
    assert page.problems() == []
    assert [one.shape for one in wanted if one] == [given[name].shape for name in ("x", "w1", "w2")]
    names = ("chain_y", "chain_dx", "chain_dw1", "chain_dw2")
    for name, found in zip(names, vg.ClientSession(page).run([y, *wanted]), strict=True):  # type: ignore[list-item]
        assert_close(found, recorded[name])


@pytest.mark.parametrize(("kind", "pool"), [("max", "MaxPool3D"), ("avg", "AvgPool3D")])
def test_second_order_as_tensorflow_does(recorded: dict[str, Any], kind: str, pool: str) -> None:
    page = Page("second order")
    given = constants(page)
    y = ops.Square(page, getattr(ops, pool)(page, ops.Conv3D(page, given["x"], given["w1"], **CONV), **OVERLAP))
    (dx,) = vg.gradients([y], [given["x"]])
    assert dx is not None
    ddx, ddw = vg.gradients(dx, [given["x"], given["w1"]], grad_ys=given["v"])
    assert page.problems() == []
    values = vg.ClientSession(page).run([dx, ddx, ddw])  # type: ignore[list-item]
    for name, found in zip(("dx", "ddx", "ddw"), values, strict=True):
        assert_close(found, recorded[f"{kind}_{name}"])


def test_any_order() -> None:
    """The derivatives of x**5, one after the other."""
    page = Page("orders")
    x = ops.Const(page, np.float64(2.0), name="x")
    found: Output | None = ops.Mul(page, x, ops.Square(page, ops.Square(page, x)))
    values = [32.0, 80.0, 160.0, 240.0, 240.0, 120.0]
    for value in values:
        assert found is not None
        assert float(vg.ClientSession(page).run(found)) == value
        (found,) = vg.gradients(found, x)


def test_blocks_are_named_for_people() -> None:
    page = Page("names")
    x = ops.Const(page, np.ones((1, 2, 2, 2, 1), np.float32), name="x")
    pool: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    y = ops.MaxPool3D(page, x, **pool, name="pool")
    (dx,) = vg.gradients([y], [x])
    assert dx is not None and dx.block.name == "gradients/pool_grad/MaxPool3DGrad"
    assert [block.name for block in page.sub("gradients")] == [
        "gradients/grad_ys_0",
        "gradients/pool_grad/MaxPool3DGrad",
    ]
    (again,) = vg.gradients([y], [x])
    assert again is not None and again.block.name == "gradients_1/pool_grad/MaxPool3DGrad"


def test_only_what_was_asked_for_is_left_on_the_page() -> None:
    page = Page("lean")
    x, w = ops.Const(page, np.ones((1, 2, 2, 2, 1), np.float32)), ops.Const(page, np.ones((1, 1, 1, 1, 1), np.float32))
    y = ops.Conv3D(page, x, w, **CONV, name="conv")
    vg.gradients([y], [x])
    added = [block.op_name for block in page.sub("gradients")]
    assert added == ["OnesLike", "Shape", "Conv3DBackpropInputV2"]


def test_paths_are_summed_and_missing_ones_are_none() -> None:
    page = Page("paths")
    x, z = ops.Const(page, [1.0, 2.0], name="x"), ops.Const(page, [1.0], name="z")
    n = ops.Const(page, [3, 4], name="n")
    y = ops.AddV2(page, ops.Mul(page, x, x), ops.Mul(page, x, ops.Cast(page, n, DstT="float32")), name="y")
    dx, dz, dn = vg.gradients([y, x], [x, z, n])
    assert dz is None and dn is None, "no path, and a path through integers"
    assert dx is not None and dx.block.op_name == "AddN" and dx.block.name == "gradients/x_sum"
    assert vg.ClientSession(page).run(dx).tolist() == [2 + 3 + 1, 4 + 4 + 1]


def test_seeds_may_be_given() -> None:
    page = Page("seeds")
    x = ops.Const(page, [1.0, 2.0], name="x")
    y = ops.Square(page, x)
    (dx,) = vg.gradients([y], [x], [[10.0, 100.0]])
    assert vg.ClientSession(page).run(dx).tolist() == [20, 400]  # type: ignore[arg-type]
    with pytest.raises(vg.InvalidArgumentError, match="VG004"):
        vg.gradients([y], [x], [1.0, 2.0])
    with pytest.raises(vg.InvalidArgumentError, match="VG011"):
        vg.gradients([ops.Shape(page, y)], [x])
    with pytest.raises(vg.InvalidArgumentError, match="another page"):
        vg.gradients([y], [ops.Const(Page("other"), 1.0)])


def test_an_op_without_gradient_is_named_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("no gradient")
    x = ops.Const(page, [1.0], name="x")
    page.add(replace(registry.find("Neg"), gradient=None), {"x": x}, name="hard")
    y = ops.Square(page, page["hard"].output(0), name="y")
    before = page.to_dict()["blocks"]
    with pytest.raises(UnimplementedError, match="VG064 Neg: hard"):
        vg.gradients([y], [x])
    assert len(page) == len(before)
    assert vg.gradients([y], [page["hard"].output(0)])[0] is not None, "a path that does not meet it is fine"
    prevented = ops.PreventGradient(page, x, message="not here")
    with pytest.raises(UnimplementedError, match="not here"):
        vg.gradients([prevented], [x])


def test_a_gradient_check_finds_a_wrong_gradient() -> None:
    page = Page("check")
    x = ops.Const(page, np.array([0.3, -1.2, 2.0], np.float32), name="x")
    ops.Square(page, x, name="right")
    wrong = replace(registry.find("Tanh"), gradient=lambda build, node, dys: (build.Mul(dys[0], node.outputs[0]),))
    page.add(wrong, {"x": x}, name="wrong")
    right, bad = vg.check_gradients(page)
    assert (right.block, right.pin, right.passed) == ("right", "x", True) and right.error < 1e-8
    assert not bad.passed and bad.error > 0.1 and "WRONG wrong.x" in str(bad)
    assert len(bad.sweep) == 8 and bad.as_dict()["passed"] is False
    assert [one.block for one in vg.check_gradients(page, ["right"], [x])] == ["right"]


def test_the_family_passes_its_check_on_both_sides() -> None:
    page = Page("family")
    given = inputs()
    x = ops.Placeholder(page, dtype="float32", shape=list(given["x"].shape), name="x")
    w = ops.Const(page, given["w1"], name="w")
    y = ops.MaxPool3D(page, ops.Conv3D(page, x, w, **CONV, name="conv"), **OVERLAP, name="max")
    z = ops.AvgPool3D(page, y, ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding="SAME", name="avg")
    vg.gradients([ops.Square(page, z)], [x, w])
    checks = vg.check_gradients(page, feeds={"x": given["x"]}, steps=[1e-2, 1e-4, 1e-6])
    assert {one.op for one in checks} >= {
        "Conv3D", "MaxPool3D", "AvgPool3D", "MaxPool3DGrad", "AvgPool3DGrad", "Conv3DBackpropInputV2",
        "Conv3DBackpropFilterV2",
    }  # fmt: skip
    assert [str(one) for one in checks if not one.passed] == []


@pytest.mark.parametrize("way", ["one by one", "at places", "in parts"])
def test_what_goes_through_an_array_has_the_gradient_of_what_comes_out(way: str) -> None:
    """y = sum(weights * x) by the way of a TensorArray, so dx = weights."""
    page = Page("arrays")
    x = ops.Const(page, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), name="x")
    weights = np.array([[7.0, -1.0], [2.0, 0.5], [-3.0, 4.0]])
    handle, flow = ops.TensorArrayV3(page, 3, dtype="float64", clear_after_read=False)
    if way == "in parts":
        flow = ops.TensorArraySplitV3(page, handle, x, np.array([1, 2, 0]), flow)
        out, _ = ops.TensorArrayConcatV3(page, handle, flow, dtype="float64")
    elif way == "at places":
        flow = ops.TensorArrayScatterV3(page, handle, np.array([2, 0, 1], np.int32), x, flow)
        out = ops.TensorArrayGatherV3(page, handle, np.array([2, 0, 1], np.int32), flow, dtype="float64")
    else:
        for at, row in enumerate(ops.Unpack(page, x, num=3)):
            flow = ops.TensorArrayWriteV3(page, handle, at, row, flow)
        out = ops.Pack(page, [ops.TensorArrayReadV3(page, handle, at, flow, dtype="float64") for at in range(3)])
    (dx,) = vg.gradients([ops.Mul(page, out, weights)], [x])
    assert dx is not None and page.problems() == []
    y, found = vg.ClientSession(page).run([out, dx])
    np.testing.assert_array_equal(y, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found, weights)


@pytest.mark.parametrize(("dtype", "real"), [("complex64", "float32"), ("complex128", "float64")])
def test_the_gradient_of_a_size_points_away_from_zero(dtype: str, real: str) -> None:
    page = Page("sizes")
    x = ops.Const(page, np.array([3 + 4j, -2j, 0], dtype), name="x")
    (dx,) = vg.gradients([ops.ComplexAbs(page, x, Tout=real)], [x])
    assert dx is not None and page.problems() == []
    found = vg.ClientSession(page).run(dx)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, [0.6 + 0.8j, -1j, 0], rtol=1e-6)


def test_the_stored_gradient_of_cross_entropy_has_one_itself() -> None:
    """It is softmax(x) - labels, whose derivative along v is softmax * (v - sum(v * softmax))."""
    page, random = Page("entropy"), np.random.default_rng(3)
    logits, labels, v = (random.standard_normal((2, 4)) for _ in range(3))
    x = ops.Const(page, logits, name="x")
    _, stored = ops.SoftmaxCrossEntropyWithLogits(page, x, labels)
    (dx,) = vg.gradients([ops.Mul(page, stored, v)], [x])
    assert dx is not None and page.problems() == []
    soft = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    wanted = soft * (v - (v * soft).sum(-1, keepdims=True))
    np.testing.assert_allclose(vg.ClientSession(page).run(dx), wanted, rtol=1e-12)


def test_no_gradient_goes_through_integers() -> None:
    """Steps are flat: of x * floor(x) only the first factor has a slope."""
    page = Page("steps")
    x = ops.Const(page, np.array([1.5, -2.25], np.float32), name="x")
    whole = ops.Identity(page, ops.Cast(page, x, DstT="int32"))
    (dx,) = vg.gradients([ops.Mul(page, x, ops.Cast(page, whole, DstT="float32"))], [x])
    assert dx is not None and page.problems() == []
    np.testing.assert_array_equal(vg.ClientSession(page).run(dx), [1, -2])


def test_typed_values_are_no_sources() -> None:
    page = Page("typed")
    x = ops.Const(page, np.float32([1, 2, 3]), name="x")
    twice = page.add("Mul", {"x": 2.0, "y": x}, name="twice")
    (dx,) = vg.gradients([twice.output(0)], [x])
    assert vg.ClientSession(page).run(dx).tolist() == [2, 2, 2]
