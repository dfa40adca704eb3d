# SPDX-License-Identifier: Apache-2.0
"""Gradients through pages that are used as blocks are those of their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import voxgrad as vg

X = np.random.default_rng(0).standard_normal((1, 3, 4, 4, 2))
V = np.cos(X)


def plain() -> vg.Page:
    page = vg.Page("loss")
    x = vg.ops.Placeholder(page, dtype="float64", shape=["N", 3, 4, 4, 2], name="x")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 2, 1], padding="SAME", name="pool")
    z = vg.ops.Mul(page, vg.ops.Square(page, y, name="square"), 3.0, name="triple")
    w = vg.ops.Tanh(page, z, name="tanh")
    vg.ops.Sum(page, vg.ops.Mul(page, w, y, name="product"), [0, 1, 2, 3, 4], name="loss")
    return page


def derivatives(page: vg.Page) -> list[Any]:
    x = page.output("x")
    (dx,) = vg.gradients([page.output("loss")], [x])
    (ddx,) = vg.gradients([dx], [x], grad_ys=[V])
    assert page.problems() == []
    found: list[Any] = vg.ClientSession(page).run([dx, ddx], {"x": X})
    return found


@pytest.mark.parametrize(
    "folded",
    [
        [("layer", ["pool", "square", "triple/y", "triple", "tanh"])],
        [("layer", ["pool", "square"]), ("end", ["triple/y", "triple", "tanh"])],
        [("inner", ["square", "triple/y", "triple"]), ("outer", ["pool", "inner", "tanh"])],
    ],
)
def test_they_are_those_of_the_blocks_to_second_order(folded: list[tuple[str, list[str]]]) -> None:
    page = plain()
    for name, blocks in folded:
        page.fold(blocks, name)
    before = {name: inner.to_dict() for name, inner in page.pages.items()}
    for one, two in zip(derivatives(page), derivatives(plain()), strict=True):
        assert np.allclose(one, two, rtol=1e-12, atol=1e-14) and np.abs(two).max() > 0.1
    assert {name: page.pages[name].to_dict() for name in before} == before
    assert any(block.uses == f"{folded[-1][0]}_grad" for block in page.blocks)


def test_what_the_forward_page_has_computed_is_not_computed_again() -> None:
    page = plain()
    page.fold(["pool", "square", "triple/y", "triple", "tanh"], "layer")
    (dx,) = vg.gradients([page.output("loss")], [page.output("x")])
    session = vg.ClientSession(page)
    session.run(["loss", dx], {"x": X})
    states = {one.block: one.state for one in session.report}
    assert states["gradients/layer_grad/pool"] == "cached" and states["layer/pool"] == "ran"


def test_a_page_serves_wires_of_other_types_and_shapes() -> None:
    page = plain()
    page.fold(["square", "triple/y", "triple", "tanh"], "layer")
    y = vg.ops.Placeholder(page, dtype="float64", shape=[2, 5], name="y")
    z = page.use("layer", {"pool": y}).output("tanh")
    (dy,) = vg.gradients([z], [y])
    given = np.linspace(-0.5, 0.5, 10).reshape(2, 5)
    assert np.allclose(vg.ClientSession(page).run(dy, {"y": given}), 6 * given / np.cosh(3 * given**2) ** 2)


def test_only_what_is_asked_for_flows() -> None:
    page, inner = vg.Page("outer"), vg.Page("two")
    a, b = (vg.ops.Placeholder(inner, dtype="float64", shape=[2], name=name) for name in "ab")
    n = vg.ops.Placeholder(inner, dtype="int32", shape=[], name="n")
    cast = vg.ops.Cast(inner, n, DstT="float64")
    inner.expose({"product": vg.ops.Mul(inner, vg.ops.Mul(inner, a, b), cast), "same": a})
    x, y = (vg.ops.Const(page, [1.0, value], dtype="float64", name=f"x{value:g}") for value in (2.0, 3.0))
    block = page.use(inner, {"a": x, "b": y, "n": 4})
    dx, dy = vg.gradients([block.output("product"), block.output("same")], [x, y])
    assert page.problems() == []
    found = vg.ClientSession(page).run([dx, dy])
    assert [one.tolist() for one in found] == [[5.0, 13.0], [4.0, 8.0]]
    (dx,) = vg.gradients([block.output("same")], [x])
    assert vg.ClientSession(page).run(dx).tolist() == [1.0, 1.0]
    assert vg.gradients([block.output("same")], [y]) == [None]


@pytest.mark.parametrize("op", ["variable", "random"])
def test_a_page_that_keeps_state_is_refused_and_can_be_unpacked(op: str) -> None:
    page = vg.Page("p")
    x = vg.ops.Const(page, [1.0, 2.0], dtype="float64", name="x")
    if op == "variable":
        factor = vg.ops.Variable(page, shape=[2], dtype="float64", name="factor")
    else:
        factor = vg.ops.RandomUniform(page, [2], dtype="float64", name="factor")
    vg.ops.Mul(page, x, factor, name="y")
    page.fold([factor.block, "y", *(["factor/shape"] if op == "random" else [])], "layer")
    before = page.to_dict()
    y = page["layer"].output("y")
    with pytest.raises(vg.UnimplementedError, match=r"VG064 layer: layer must be a page that gives the same .*inline"):
        vg.gradients([y], [page.output("x")])
    assert page.to_dict() == before
    page.inline("layer")
    assert len(vg.gradients([page.output("layer/y")], [page.output("x")])) == 1


def test_a_network_of_pages_is_trained_as_its_blocks_are() -> None:
    def trained(folds: bool) -> list[Any]:
        page = vg.Page("network")
        data = vg.ops.Const(page, np.random.default_rng(1).standard_normal((6, 3)), name="data")
        weights = [vg.ops.VariableV2(page, shape=[3, 3], dtype="float64", name=f"w{at}") for at in range(2)]
        first = [np.random.default_rng(at).standard_normal((3, 3)) for at in range(2)]
        page.start_with([vg.ops.Assign(page, w, value) for w, value in zip(weights, first, strict=True)])
        h = data
        for at, w in enumerate(weights):
            h = vg.ops.Tanh(page, vg.ops.MatMul(page, h, w, name=f"product{at}"), name=f"layer{at}")
        if folds:
            for at in range(2):
                page.fold([f"product{at}", f"layer{at}"], f"stage{at}")
            h = page["stage1"].output("layer1")
        loss = vg.ops.Sum(page, vg.ops.Square(page, h), [0, 1], name="loss")
        for w, dw in zip(weights, vg.gradients([loss], weights), strict=True):
            vg.ops.ApplyGradientDescent(page, w, 0.1, dw, name=f"step_{w.block.name}")
        session = vg.ClientSession(page)
        session.loop(5, [loss], targets=["step_w0", "step_w1"])
        found: list[Any] = session.run([*weights, loss])
        return found

    for one, two in zip(trained(True), trained(False), strict=True):
        assert np.allclose(one, two, rtol=1e-12)
