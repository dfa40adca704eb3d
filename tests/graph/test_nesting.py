# SPDX-License-Identifier: Apache-2.0
"""Blocks folded into a page, and put back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad import ops
from voxgrad.graph.page import Page

POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
X = np.random.default_rng(1).standard_normal((1, 6, 6, 6, 2)).astype(np.float32)


def network() -> Page:
    page = Page("network")
    x = ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 2], name="x")
    conv = ops.Conv3D(page, x, np.ones((3, 3, 3, 2, 2), np.float32), strides=[1] * 5, padding="SAME", name="conv")
    pool = ops.MaxPool3D(page, conv, **POOL, name="pool")
    low, high = ops.Neg(page, pool, name="low"), ops.Square(page, pool, name="high")
    page.expose({"sum": ops.AddN(page, [low, high, low], name="sum"), "pooled": pool})
    return page


def run(page: Page) -> list[Any]:
    assert [str(problem) for problem in page.problems()] == []
    results: list[Any] = vg.ClientSession(page).run(list(page.outputs.values()), {"x": X})
    return results


@pytest.mark.parametrize(
    ("chosen", "inputs", "outputs"),
    [
        (["pool"], ["conv"], ["pool"]),
        (["conv", "conv/filter", "pool"], ["x"], ["pool"]),
        (["pool", "low", "high"], ["conv"], ["low", "high", "pool"]),
        (["conv", "conv/filter", "pool", "low", "high", "sum"], ["x"], ["sum", "pool"]),
    ],
)
def test_folding_changes_no_result(chosen: list[str], inputs: list[str], outputs: list[str]) -> None:
    page, plain = network(), network()
    wanted = run(plain)
    block = page.fold(chosen, "part")
    assert list(block.input_names) == inputs and sorted(block.output_names) == sorted(outputs)
    assert not any(name in page for name in chosen)
    again = Page.from_dict(page.to_dict())
    for made in (page, again):
        for one, other in zip(run(made), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    assert str(page.outputs["pooled"].shape) == str(plain.outputs["pooled"].shape)
    page.inline("part")
    assert "part/pool" in page and len(page.blocks) == len(plain.blocks)
    for one, other in zip(run(page), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_folded_is_told() -> None:
    page = network()
    with pytest.raises(vg.InvalidArgumentError, match="between"):
        page.fold(["conv", "low"], "part")
    with pytest.raises(vg.InvalidArgumentError, match="no block"):
        page.fold([], "part")
    page.execute(["low"])
    with pytest.raises(vg.InvalidArgumentError, match="low"):
        page.fold(["low"], "part")
    with pytest.raises(vg.InvalidArgumentError, match=r"stand for a page; got '?MaxPool3D"):
        page.inline("pool")
    assert len(run(page)) == 2, "and nothing has changed"


def test_what_stands_for_a_page_that_is_gone_cannot_be_put_back() -> None:
    page = network()
    page.fold(["pool"], "part")
    data = page.to_dict()
    del data["pages"]
    with pytest.raises(vg.InvalidArgumentError, match=r"must stand for a page; got .*part"):
        Page.from_dict(data).inline("part")


@pytest.mark.parametrize("how", ["execute", "start_with"])
def test_what_a_page_runs_by_name_is_not_folded(how: str) -> None:
    page = network()
    getattr(page, how)(["pool"])
    with pytest.raises(vg.InvalidArgumentError, match=r"VG060 Page.fold: blocks must .* got pool"):
        page.fold(["pool", "low", "high"], "part")


def test_control_edges_follow_the_fold() -> None:
    page = network()
    before, after = page.add("NoOp", name="before"), page.add("NoOp", name="after")
    page.run_after("pool", before)
    page.run_after(after, "pool")
    block = page.fold(["pool", "low", "high"], "part")
    assert block.control == [before] and after.control == [block]


def test_what_runs_first_and_what_is_asked_for_stays_so_when_a_page_is_put_back() -> None:
    page = Page("start")
    for name in "abcd":
        page.add("Const", attrs={"value": np.float32(1)}, name=name)
    page.add("Neg", {"x": page["a"].output(0)}, name="negative")
    page.fold(["a", "negative"], "part")
    page.start_with(["b", "part"])
    page.execute(["part", "c"])
    page.inline("part")
    assert [block.name for block in page.initializers] == ["b", "part/a", "part/negative"]
    assert [block.name for block in page.targets] == ["part/a", "part/negative", "c"]


@pytest.mark.parametrize("how", ["wire", "order"])
def test_a_block_that_waits_for_itself_is_not_put_back(how: str) -> None:
    page = network()
    block = page.fold(["pool"], "part")
    if how == "wire":
        page.attach(block, "conv", block.outputs[0])
    else:
        page.run_after(block, block)
    before = page.to_dict()
    with pytest.raises(vg.InvalidArgumentError, match=r"VG062 Page.inline: part must not wait for itself"):
        page.inline(block)
    assert page.to_dict() == before


def test_a_page_cannot_contain_itself() -> None:
    page = network()
    with pytest.raises(vg.InvalidArgumentError, match="VG062"):
        page.define("self", page)


def test_entries_of_a_fold_stand_to_the_left_of_its_blocks() -> None:
    page = Page("places")
    a, b = (page.add("Const", attrs={"value": np.float32(1)}, name=name) for name in "ab")
    total = page.add("AddV2", {"x": a, "y": b}, name="sum", position=(400.0, 50.0))
    page.add("Neg", {"x": total}, name="negative", position=(700.0, 20.0))
    page.fold(["sum", "negative"], "part")
    inner = page.pages["part"]
    assert [(block.name, block.position) for block in inner.blocks] == [
        ("a", (140.0, 20.0)), ("b", (140.0, 140.0)), ("sum", (400.0, 50.0)), ("negative", (700.0, 20.0))
    ]  # fmt: skip


def test_a_wire_from_an_entry_that_is_gone_keeps_its_name() -> None:
    page = Page("lists")
    x = page.add("Const", attrs={"value": np.zeros(4, np.float32)}, name="x")
    parts = page.add("Unpack", {"value": x}, {"num": 4}, name="parts")
    page.add("Neg", {"x": parts.output(3)}, name="last")
    page.set_attr("parts", "num", 2)
    assert page["last"].sources["x"][0].path == "parts.output[3]"  # type: ignore[union-attr]
    assert Page.from_dict(page.to_dict()).to_dict()["blocks"][2] == page.to_dict()["blocks"][2]


def test_a_placeholder_inside_that_is_no_input_is_told() -> None:
    page, inner = vg.Page("page"), vg.Page("inner")
    x = vg.ops.Placeholder(inner, dtype="float32", shape=[2], name="x")
    inner.expose({"y": vg.ops.Neg(inner, x)}, [x])
    vg.ops.Neg(inner, vg.ops.Placeholder(inner, dtype="float32", shape=[2], name="hidden"))
    used = page.use(inner, {"x": np.ones(2, np.float32)}, name="used")
    (problem,) = page.problems()
    assert (problem.block, problem.code) == ("used", "VG001") and "nothing can feed hidden" in str(problem)
    page.pages[used.uses].expose({"y": page.pages[used.uses]["Neg"].output(0)}, ["x", "hidden"])
    assert ["hidden" in str(one) for one in page.problems()] == [True], "now its pin wants a wire"
    page.pages[used.uses].remove("Neg_1", "hidden")
    assert page.problems() == []


def test_blocks_of_missing_packages_are_folded_and_put_back() -> None:
    data = {"name": "page", "blocks": [
        {"name": "x", "op": "Const", "attrs": {"value": np.ones(2, np.float32)}},
        {"name": "unknown", "op": "gone.Thing", "inputs": {"a": [{"from": "x.output"}]}},
    ]}  # fmt: skip
    page = vg.Page.from_dict(data)
    page.fold(["x", "unknown"], "part")
    page.inline("part")
    assert [block.op_name for block in page.blocks] == ["Const", "gone.Thing"]
    assert page["part/unknown"].sources["a"][0].path == "part/x.output"
