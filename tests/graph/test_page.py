# SPDX-License-Identifier: Apache-2.0
"""Pages as data: names, wires, scopes, edits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from voxgrad.errors import InvalidArgumentError
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.page import Page

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def small_page() -> tuple[Page, Block, Block]:
    page = Page("small")
    x = page.add("Const", attrs={"value": np.zeros((1, 2, 2, 2, 1), np.float32)}, name="x", position=(1, 2))
    pool = page.add("MaxPool3D", {"input": x.output("output")}, POOL, name="pool")
    return page, x, pool


def test_names_lie_in_at_most_32_scopes() -> None:
    page = Page("deep")
    page.add("NoOp", name="/".join(["a"] * 32))
    with pytest.raises(InvalidArgumentError, match="VG061 Page: name must have at most 1,000 letters in 32 scopes"):
        page.add("NoOp", name="/".join(["b"] * 33))


def test_a_refused_edit_is_told_as_the_page_tells_it() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Page("edited").apply([{"do": "add", "op": "NoOp", "name": "a:b"}])
    assert [fault.code for fault in caught.value.faults] == ["VG061"]


def test_names_are_unique_and_follow_the_scope() -> None:
    page = Page("names")
    names = [page.add("NoOp").name for _ in range(3)]
    assert names == ["NoOp", "NoOp_1", "NoOp_2"]
    scope = page.sub("a").sub("b")
    assert scope.add("NoOp").name == "a/b/NoOp"
    assert scope.with_op_name("first").add("NoOp").name == "a/b/first"
    assert page.unique_name("a") == "a_1", "a scope takes its name too"
    assert page.sub("a", unique=True).add("NoOp").name == "a_1/NoOp"
    assert [block.name for block in page.sub("a").blocks] == ["a/b/NoOp", "a/b/first"]
    assert "b/first" in page.sub("a") and page.sub("a")["b/first"] is page["a/b/first"]


@pytest.mark.parametrize("name", ["", " x", "a:0", "^x", "a\nb", "a//b"])
def test_impossible_names_are_refused(name: Any) -> None:
    page = Page("names")
    block = page.add("NoOp", name="x")
    with pytest.raises(InvalidArgumentError, match="VG061"):
        page.rename(block, name)


def test_outputs_are_found_by_all_their_names() -> None:
    page, _x, pool = small_page()
    for name in ("pool", "pool:0", "pool.output", pool, pool.output()):
        assert page.output(name) == Output(pool, 0)
    assert pool.output().name == "pool:0" and pool.output().path == "pool.output"
    with pytest.raises(InvalidArgumentError, match="VG050"):
        page.output("nobody")
    with pytest.raises(InvalidArgumentError, match=r"VG050.*output"):
        page.output("pool.gradient")


def test_renaming_keeps_wires_and_order() -> None:
    page, _x, _pool = small_page()
    page.rename("x", "volume")
    assert [block.name for block in page] == ["volume", "pool"]
    assert page.wires[0].source.path == "volume.output"
    assert page.to_dict()["blocks"][1]["inputs"] == {"input": [{"from": "volume.output"}]}
    with pytest.raises(InvalidArgumentError, match="VG060"):
        page.rename("volume", "pool")


def test_removal_takes_wires_and_control_edges_along() -> None:
    page, x, pool = small_page()
    late = page.add("NoOp", name="late")
    page.run_after(late, pool)
    assert list(pool.readers) == [late] and list(x.readers) == [pool]
    page.remove(pool)
    assert page.wires == [] and late.control == [] and not x.readers
    with pytest.raises(InvalidArgumentError, match="removed"):
        page.remove(pool)


def test_rewiring_replaces_and_list_pins_collect() -> None:
    page, x, pool = small_page()
    other = page.add("Const", attrs={"value": 1.0}, name="other")
    page.connect(other.output("output"), pool, "input")
    assert pool.sources["input"] == [other.output()] and x.readers == ()
    page.set_value(pool, "input", [1, 2])
    assert pool.sources["input"] == [Value([1, 2])] and other.readers == ()
    page.disconnect(pool, "input")
    assert pool.sources == {}


def test_a_page_survives_the_way_to_data_and_back() -> None:
    page, x, pool = small_page()
    late = page.sub("scope").add("NoOp", name="late")
    page.run_after(late, pool, x)
    page.set_value(page.add("Scale", name="unknown"), "factor", 0.5, "float32")
    inner = Page("inner")
    inner.expose(
        {"y": inner.add("Neg", {"x": inner.add("Placeholder", name="x").output("output")}, name="neg").output("y")},
        ["x"],
    )
    page.define("negate", inner)
    page.use("negate", {"x": pool.output()}, name="n1")
    page.notes.append({"text": "hello"})
    page.semantics = "tf_cpu"
    data = page.to_dict()
    again = Page.from_dict(data)
    second = again.to_dict()
    assert second["blocks"][0]["attrs"].pop("value") is data["blocks"][0]["attrs"].pop("value")
    assert second == data
    assert again["n1"].output_names == ("y",) and again["n1"].input_names == ("x",)
    assert again["scope/late"].control == [again["pool"], again["x"]]
    assert again["x"].position == (1.0, 2.0)


def test_every_malformed_place_is_named() -> None:
    data = {
        "name": "bad", "semantics": "odd", "colour": 1,
        "blocks": [
            {"name": "a", "op": "NoOp", "inputs": {"x": [{"from": "nobody.output"}, {"from": "a.output", "value": 1}]}},
            {"name": "a", "op": "NoOp"}, {"name": "b"}, 7,
            {"name": "c", "op": "NoOp", "position": "left", "control": ["z"]},
            {"name": "d", "op": "NoOp", "inputs": {"x": {"from": "a.output"}}},
        ],
        "outputs": {"y": 3}, "pages": [],
    }  # fmt: skip
    with pytest.raises(InvalidArgumentError) as caught:
        Page.from_dict(data)
    text = str(caught.value)
    places = [
        "colour",
        "semantics",
        "blocks[0].inputs.x[0].from",
        "blocks[0].inputs.x[1]",
        "blocks[1].name",
        "blocks[2]",
        "blocks[3]",
        "blocks[4].position",
        "blocks[4].control[0]",
        "blocks[5].inputs.x",
        "outputs.y",
        "pages",
    ]
    for place in places:
        assert place in text


def test_pages_inside_themselves_end_somewhere() -> None:
    data: dict[str, Any] = {"name": "p", "semantics": "documented", "blocks": []}
    for _ in range(40):
        data = {"name": "p", "semantics": "documented", "blocks": [], "pages": {"p": data}}
    with pytest.raises(InvalidArgumentError, match="deep"):
        Page.from_dict(data)


def test_edits_are_carried_out_whole_or_not_at_all() -> None:
    page, _x, _pool = small_page()
    page.apply(
        [
            {
                "do": "add",
                "op": "Identity",
                "name": "pool",
                "inputs": {"input": [{"from": "x.output"}]},
                "position": [3, 4],
            },
            {"do": "connect", "from": "pool.output", "block": "pool", "pin": "input"},
        ]
    )
    assert page["pool_1"].position == (3.0, 4.0), "a taken name gets a number"
    assert page["pool_1"].sources["input"] == [page["pool_1"].output()], "and later edits mean the new block"
    before = page.to_dict()
    with pytest.raises(InvalidArgumentError, match="VG050"):
        page.apply([{"do": "remove", "block": "x"}, {"do": "remove", "block": "nobody"}])
    assert page.to_dict() == before
    with pytest.raises(InvalidArgumentError, match="VG053"):
        page.apply({"do": "explode"})
    with pytest.raises(InvalidArgumentError, match="VG053"):
        page.apply({"do": "connect"})


def test_the_revision_rises_with_what_matters() -> None:
    page, _x, pool = small_page()
    start = page.revision
    page.move("x", 5, 6)
    assert page.revision == start
    page.set_attr("pool", "padding", "SAME")
    assert page.revision > start and pool.attrs["padding"] == "SAME"
    page.set_attr("pool", "padding", None)
    assert "padding" not in pool.attrs
