# SPDX-License-Identifier: Apache-2.0
"""Every edit of a page: what it changes, what it leaves alone, and that names, wires and scopes stay consistent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad import ops
from voxgrad.errors import InvalidArgumentError
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.page import Page

POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def make() -> Page:
    """x -> pool -> sum of three; a block in a scope that waits for the pool."""
    page = Page("edits")
    x = page.add("Placeholder", attrs={"dtype": "float32", "shape": ["N", 4, 4, 4, 1]}, name="x")
    pool = page.add("MaxPool3D", {"input": x}, POOL, name="pool")
    page.add("AddN", {"inputs": [pool.output(), pool.output(), pool.output()]}, name="sum")
    page.run_after(page.sub("scope").sub("deep").add("NoOp", name="late"), pool, x)
    page.expose({"y": "sum.sum", "p": "pool.output"}, ["x"])
    return page


def check_consistent(page: Page) -> None:
    """What a page remembers about itself is what its blocks say."""
    store = page.store
    for name, block in store.blocks.items():
        assert block.name == name and block.page.store is store
        wires = Counter(
            one.block for many in block.sources.values() for one in many if isinstance(one, Output)
        ) + Counter(block.control)
        assert all(many for many in block.sources.values()), "an empty pin holds nothing"
        for source, count in wires.items():
            assert store.blocks[source.name] is source and store.readers[source][block] == count
    edges = {(source, reader) for source, readers in store.readers.items() for reader in readers}
    assert all(source in reader.control or source in _sources(reader) for source, reader in edges)
    scopes = Counter(name[:at] for name in store.blocks for at, letter in enumerate(name) if letter == "/")
    assert store.scopes == dict(scopes)
    assert store.users == {block for block in store.blocks.values() if block.uses}
    assert Page.from_dict(page.to_dict()).to_dict() == page.to_dict()


def _sources(block: Block) -> set[Block]:
    return {one.block for many in block.sources.values() for one in many if isinstance(one, Output)}


def paths(page: Page, block: str, pin: str) -> list[Any]:
    return [one.path if isinstance(one, Output) else one.value for one in page[block].sources.get(pin, [])]


def test_adding() -> None:
    page = make()
    page.apply({"do": "add", "op": "Neg", "inputs": {"x": [{"from": "pool.output"}]}, "position": ["3", 4]})
    assert page["Neg"].position == (3.0, 4.0) and paths(page, "Neg", "x") == ["pool.output"]
    page.apply({"do": "add", "op": "Mul", "name": "half", "attrs": {"extra": 1},
                "inputs": {"x": [{"from": "sum.sum"}], "y": [{"value": 0.5, "dtype": "float32"}]}})  # fmt: skip
    assert page["half"].attrs == {"extra": 1} and page["half"].position is None
    assert page["half"].sources["y"] == [Value(0.5, "float32")]
    page.define("inner", Page("inner"))
    page.apply([{"do": "add", "page": "inner"}, {"do": "add", "page": "inner", "name": "inner", "position": [1, 2]},
                {"do": "run_after", "block": "inner", "others": ["pool"]}])  # fmt: skip
    assert page["inner"].uses == page["inner_1"].uses == "inner" and page["inner_1"].position == (1.0, 2.0)
    assert page["inner_1"].control == [page["pool"]] and page["inner"].control == [], "the new name is meant"
    check_consistent(page)


def test_removing_takes_all_that_names_the_block() -> None:
    page = make()
    page.execute(["scope/deep/late"])
    page.start_with(["scope/deep/late"])
    revision = page.revision
    page.apply({"do": "remove", "block": "scope/deep/late"})
    assert not page.targets and not page.initializers and page.revision > revision
    assert page.unique_name("scope") == "scope", "and the scope that was its own"
    page.apply({"do": "remove", "block": "pool"})
    assert list(page.outputs) == ["y"] and page["sum"].sources == {} and page["x"].readers == ()
    page.apply({"do": "remove", "block": "x"})
    assert page.store.inputs == [] and [block.name for block in page] == ["sum"]
    check_consistent(page)


def test_removing_keeps_the_other_wires() -> None:
    page = make()
    page.connect("x.output", "sum", "inputs")
    page.run_after("sum", "x", "pool")
    page.remove("pool")
    assert paths(page, "sum", "inputs") == ["x.output"] and page["sum"].control == [page["x"]]
    assert set(page["x"].readers) == {page["scope/deep/late"], page["sum"]}
    check_consistent(page)


def test_renaming() -> None:
    page = make()
    page.apply({"do": "rename", "block": "scope/deep/late", "name": "scope/early"})
    assert "scope/early" in page and page.sub("scope").sub("deep").blocks == []
    assert page.unique_name("scope/deep") == "scope/deep" and page.unique_name("scope") == "scope_1"
    before = page.revision
    assert page.rename("pool", "pool") is page["pool"] and page.revision == before
    page.apply([{"do": "rename", "block": "pool", "name": "max"}])
    assert page.to_dict()["outputs"] == {"y": "sum.sum", "p": "max.output"} and page.revision > before
    assert page.sub("scope").rename("early", "later").name == "scope/later"
    for taken in ("sum", "scope/later"):
        with pytest.raises(InvalidArgumentError, match="VG060"):
            page.rename("max", taken)
    for wrong in ("a:0", "a//b", ""):
        with pytest.raises(InvalidArgumentError, match="VG061"):
            page.rename("max", wrong)
    check_consistent(page)


def test_moving() -> None:
    page = make()
    page.apply({"do": "move", "block": "pool", "position": [7, -8.5]})
    assert page["pool"].position == (7.0, -8.5) and page["x"].position is None
    with pytest.raises(InvalidArgumentError, match="VG053"):
        page.apply({"do": "move", "block": "pool", "position": [7]})


def test_connecting_replaces_one_wire_and_adds_to_lists() -> None:
    page = make()
    page.apply({"do": "connect", "from": "x.output", "block": "sum", "pin": "inputs"})
    assert paths(page, "sum", "inputs") == ["pool.output"] * 3 + ["x.output"]
    page.apply({"do": "connect", "from": "x.output", "block": "sum", "pin": "inputs", "at": 0})
    assert paths(page, "sum", "inputs") == ["x.output", *["pool.output"] * 2, "x.output"]
    page.apply({"do": "connect", "from": "x.output", "block": "sum", "pin": "inputs", "at": 4})
    assert len(paths(page, "sum", "inputs")) == 5, "behind the last one it is a further one"
    page.apply({"do": "disconnect", "block": "sum", "pin": "inputs", "at": 1})
    assert paths(page, "sum", "inputs") == ["x.output", "pool.output", "x.output", "x.output"]
    page.apply({"do": "connect", "from": "sum.sum", "block": "pool", "pin": "input", "at": 1})
    assert paths(page, "pool", "input") == ["sum.sum"], "a pin for one wire holds one"
    page.apply({"do": "set_value", "block": "pool", "pin": "input", "value": [1, 2], "dtype": "half"})
    assert page["pool"].sources["input"] == [Value([1, 2], "half")]
    page.apply({"do": "set_value", "block": "pool", "pin": "input", "value": 3})
    assert page["pool"].sources["input"] == [Value(3, "")] and page["pool"] not in page["sum"].readers
    page.apply({"do": "disconnect", "block": "pool", "pin": "input"})
    assert page["pool"].sources == {}
    check_consistent(page)


def test_control_edges() -> None:
    page = make()
    page.apply({"do": "run_after", "block": "sum", "others": ["pool", "scope/deep/late", "pool"]})
    assert [one.name for one in page["sum"].control] == ["pool", "scope/deep/late"]
    assert page.store.readers[page["pool"]][page["sum"]] == 4, "three wires and one edge"
    page.apply({"do": "no_longer_after", "block": "sum", "others": ["pool", "x"]})
    assert [one.name for one in page["sum"].control] == ["scope/deep/late"]
    check_consistent(page)
    new = {"do": "add", "op": "NoOp", "name": "pool"}
    page.apply([new, {"do": "run_after", "block": "sum", "others": ["pool"]}])
    assert [one.name for one in page["sum"].control] == ["scope/deep/late", "pool_1"], "what these edits call pool"
    page.apply([new, {"do": "run_after", "block": "sum", "others": ["pool", "pool_1"]},
                {"do": "no_longer_after", "block": "sum", "others": ["pool", "scope/deep/late"]}])  # fmt: skip
    assert [one.name for one in page["sum"].control] == ["pool_1"]
    scope = page.with_control_dependencies(["pool"]).sub("behind").with_op_name("here")
    made = scope.add("NoOp")
    assert made.name == "behind/here" and made.control == [page["pool"]] and made in page["pool"].readers
    assert scope.with_control_dependencies([made]).add("NoOp").control == [page["pool"], made]
    check_consistent(page)


def test_attributes_and_semantics() -> None:
    page = make()
    page.infer()
    page.apply([{"do": "set_attr", "block": "pool", "attr": "padding", "value": "SAME"},
                {"do": "semantics", "value": "tf_cpu"}])  # fmt: skip
    assert page["pool"].attrs["padding"] == "SAME" and page.semantics == "tf_cpu"
    assert set(page.blocks) <= page.store.dirty, "another semantics is another answer of every block"
    page.apply({"do": "set_attr", "block": "pool", "attr": "padding", "value": None})
    assert "padding" not in page["pool"].attrs
    with pytest.raises(InvalidArgumentError, match="VG003"):
        page.apply({"do": "semantics", "value": "torch"})


def test_one_edit_needs_no_list_and_a_fix_no_object() -> None:
    page = make()
    page.apply({"title": "both", "edits": [{"do": "remove", "block": "sum"}, {"do": "remove", "block": "pool"}]})
    assert [block.name for block in page] == ["x", "scope/deep/late"]
    page.apply([{"do": "move", "block": "x", "position": [1, 1]}])
    assert page["x"].position == (1.0, 1.0)
    page.apply([])
    for wrong in ({}, {"do": None}, {"do": "remove"}, {"do": "move", "block": "x"}, {"do": "run_after", "block": "x"}):
        with pytest.raises(InvalidArgumentError, match="VG053"):
            page.apply(wrong)


def test_names_and_scopes() -> None:
    page = make()
    assert [page.unique_name("pool"), page.unique_name("free")] == ["pool_1", "free"]
    for number in (1, 2, 3):
        assert page.add("NoOp", name="pool").name == f"pool_{number}"
    page.remove("pool_2")
    assert page.add("NoOp", name="pool").name == "pool_2", "the first free number, as when the page is opened"
    page.add("NoOp", name="n_1")
    page.add("NoOp", name="n")
    assert page.unique_name("n") == "n_2"
    page.sub("m_1").add("NoOp")
    page.add("NoOp", name="m")
    assert page.unique_name("m") == "m_2", "numbers that scopes have are taken"
    assert page.sub("scope").sub("deep").block("late") is page["scope/deep/late"]
    assert "late" not in page and "deep/late" in page.sub("scope") and 3 not in page
    assert page.sub("scope", unique=True).prefix == "scope_1/"
    assert [wire.block.name for wire in page.sub("scope").wires] == [] and len(page.wires) == 4
    assert [(wire.pin, wire.at) for wire in page.wires if wire.block.name == "sum"] == [
        ("inputs", at) for at in (0, 1, 2)
    ]
    with pytest.raises(InvalidArgumentError, match="VG061"):
        page.sub("a/ b")
    check_consistent(page)


def test_titles() -> None:
    page = make()
    page.name = "another"
    assert page.name == "another" and page.to_dict()["name"] == "another"
    for wrong in ("", "a\nb", 3):
        with pytest.raises(InvalidArgumentError, match=r"VG061|VG002"):
            page.name = wrong  # type: ignore[assignment]


def test_blocks_of_other_pages_are_refused() -> None:
    page, other = make(), make()
    for act in (
        lambda: page.remove(other["pool"]),
        lambda: page.connect(other["x"].output(), "pool", "input"),
        lambda: page.output(other["pool"].output()),
        lambda: page.run_after("pool", other["x"]),
    ):
        with pytest.raises(InvalidArgumentError, match="VG050"):
            act()
    check_consistent(page)
    assert page.to_dict() == make().to_dict()


def test_what_a_page_exposes() -> None:
    page = make()
    assert page.input_names == ("x",) and page.input_blocks == [page["x"]]
    page.add("Placeholder", attrs={"dtype": "float32"}, name="z")
    assert page.input_names == ("x",), "the chosen ones alone"
    before = page.revision
    page.expose({"y": "sum"})
    assert page.input_names == ("x", "z") and page.revision > before, "or all, where none was chosen"
    before = page.revision
    page.execute(["pool"])
    page.start_with(["x"])
    assert page.targets == [page["pool"]] and page.initializers == [page["x"]] and page.revision == before + 2


def test_a_new_definition_is_seen_by_the_blocks_that_use_it() -> None:
    def inner(op: str) -> Page:
        page = Page(op)
        x = page.add("Placeholder", attrs={"dtype": "float32", "shape": [2]}, name="x")
        page.expose({"y": page.add(op, {"x": x}, name="op").output(0)}, ["x"])
        return page

    page = Page("outer")
    page.define("f", inner("Neg"))
    page.define("g", inner("Neg"))
    page.use("f", {"x": Value([1.0, 2.0], "float32")}, name="one")
    page.use("g", {"x": Value([1.0, 2.0], "float32")}, name="two")
    assert vg.ClientSession(page).run("one").tolist() == [-1.0, -2.0]
    page.infer()
    page.define("f", inner("Square"))
    assert page.store.dirty == {page["one"]}
    assert vg.ClientSession(page).run("one").tolist() == [1.0, 4.0]


def faulty(op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Page:
    page = Page("faulty")
    ops.Const(page, np.ones((1, 4, 4, 4, 2), np.float32), name="x")
    ops.Const(page, np.ones((1, 4, 4, 4, 2), np.int32), name="whole")
    page.add(op, {pin: [page.output(one) if isinstance(one, str) else one for one in many]
                  for pin, many in inputs.items()}, attrs, name="b")  # fmt: skip
    return page


WINDOW = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "titles"),
    [
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "padding": "valid "}, ["Set padding to VALID"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "padding": "odd"}, ["Set padding to SAME", "Set padding to VALID"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "data_format": "odd"}, ["Set data_format to NDHWC"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "ksize": [2, 3, 4]}, ["Set ksize to [1,2,3,4,1]"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "ksize": [2]}, ["Set ksize to [1,2,2,2,1]"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "ksize": [2, 3]}, []),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "ksize": [3, 3, 2, 2, 1]}, ["Set ksize to [1,3,2,2,1]"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "strides": [1, 1, 0, 2, 1]}, ["Set strides to [1,1,1,2,1]"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "ksize": [1, 9, 1, 1, 1]}, ["Set padding to SAME"]),
        ("MaxPool3D", {"input": ["x"]}, {key: WINDOW[key] for key in ("strides", "padding")},
         ["Set ksize to [1,1,1,1,1]"]),
        ("MaxPool3D", {"input": ["x"]}, {key: WINDOW[key] for key in ("ksize", "strides")},
         ["Set padding to SAME", "Set padding to VALID"]),
        ("MaxPool3D", {"input": ["x"]}, {**WINDOW, "colour": "red"}, ["Take colour away"]),
        ("MaxPool3D", {"input": ["x"], "more": ["x"]}, WINDOW, ["Take more away"]),
        ("MaxPool3D", {"input": ["x", "x", "x"]}, WINDOW, ["Keep the first wire of input"]),
        ("MaxPool3D", {}, WINDOW, ["Connect input to x.output, the only one that fits"]),
        ("Neg", {}, {}, []),
        ("MaxPool3D", {"input": ["whole"]}, WINDOW, ["Cast input to float32"]),
        ("AddN", {"inputs": ["x", "x", "whole"]}, {}, ["Cast inputs[2] to float32"]),
    ],
)  # fmt: skip
def test_fixes(op: str, inputs: dict[str, Any], attrs: dict[str, Any], titles: list[str]) -> None:
    """What is offered for a fault, and that each of it repairs the fault and nothing else is left."""
    problems = faulty(op, inputs, attrs).problems()
    assert len(problems) == 1 and [fix.title for fix in problems[0].fixes] == titles
    for fix in problems[0].fixes:
        page = faulty(op, inputs, attrs)
        page.apply(fix)
        assert page.problems() == [], fix.title
        check_consistent(page)
        vg.ClientSession(page).run("b")


def test_channels_first_windows_are_completed_in_their_order() -> None:
    page = faulty("MaxPool3D", {"input": ["x"]}, {**WINDOW, "data_format": "NCDHW", "ksize": [2, 3, 1]})
    assert [fix.title for fix in page.problems()[0].fixes] == ["Set ksize to [1,1,2,3,1]"]


def test_the_only_tensor_that_fits_is_offered_to_a_pin_of_several() -> None:
    page = Page("several")
    ops.Const(page, np.ones(3, np.float32), name="x")
    page.add("AddN", name="sum")
    fixes = [fix for problem in page.problems() for fix in problem.fixes]
    assert [fix.title for fix in fixes] == ["Connect inputs to x.output, the only one that fits"]
    page.apply(fixes[0])
    assert page.problems() == []


def test_no_wire_is_offered_that_closes_a_ring() -> None:
    page = Page("ring")
    first = page.add("MaxPool3D", attrs={**WINDOW, "padding": "SAME"}, name="first")
    ops.Neg(page, first.output(), name="behind")
    ops.Const(page, np.ones((1, 4, 4, 4, 2), np.float32), name="x")
    (problem,) = page.problems()
    assert problem.fix is not None and problem.fix.edits[0]["from"] == "x.output"


def test_a_cast_stands_between_the_wire_and_the_pin() -> None:
    page = faulty("AddN", {"inputs": ["x", "whole", "x"]}, {})
    page.apply(page.problems()[0].fix or [])
    cast = page["b"].sources["inputs"][1]
    assert (
        isinstance(cast, Output) and cast.block.op_name == "Cast" and cast.block.sources["x"][0] == page.output("whole")
    )
    assert paths(page, "b", "inputs")[0] == paths(page, "b", "inputs")[2] == "x.output"


def nested() -> Page:
    """A page in a page: both outputs of the inner one are read outside, by its second name even shown."""
    inner = Page("inner")
    x = inner.add("Placeholder", attrs={"dtype": "float32"}, name="x")
    inner.expose({"a": inner.add("Neg", {"x": x}, name="neg"), "b": inner.add("Relu", {"features": x}, name="relu")})
    page = Page("outer")
    page.define("layer", inner)
    value = ops.Const(page, np.ones(2, np.float32), name="value")
    used = page.use("layer", {"x": value}, name="used")
    page.add("AddN", {"inputs": [used.output("a"), used.output("b")]}, name="sum")
    page.expose({"shown": used.output("b")})
    return page


def test_wires_follow_the_pins_of_an_inner_page() -> None:
    page = nested()
    page.pages["layer"].apply({"do": "rename", "block": "x", "name": "입력"})
    assert list(page["used"].sources) == ["입력"] and page.problems() == []
    page.pages["layer"].remove("neg")
    assert [one.path for one in page["sum"].sources["inputs"] if isinstance(one, Output)] == ["used.b"]
    assert page.outputs["shown"].path == "used.b"
    page.pages["layer"].remove("relu", "입력")
    assert not page["sum"].sources and not page["used"].sources and not page.outputs
    check_consistent(page)
    assert Page.from_dict(page.to_dict()).to_dict() == page.to_dict()


def test_pins_go_through_two_pages() -> None:
    page = nested()
    page.fold(["used"], "deep")
    page.pages["deep"].pages["layer"].remove("relu")
    assert list(page.pages["deep"].outputs) == ["used_0"] and not page.outputs
    assert [one.path for one in page["sum"].sources["inputs"] if isinstance(one, Output)] == ["deep.used_0"]
    page.pages["deep"].inline("used")
    assert [one.path for one in page["sum"].sources["inputs"] if isinstance(one, Output)] == ["deep.used_0"]


def test_an_inner_page_is_copied_under_a_free_name_where_another_has_its_own() -> None:
    page = nested()
    page.fold(["used"], "deep")
    page.pages["layer"].set_attr("x", "dtype", "float64")
    page.inline("deep")
    assert page["deep/used"].uses == "layer_1" and page.pages["layer_1"]["x"].attrs["dtype"] == "float32"
    assert page.pages["layer_1"] is not page.pages["deep"].pages["layer"]


def test_outputs_of_inner_pages_have_no_dots_that_would_part_their_paths() -> None:
    page = make()
    page.rename("pool", "w.1")
    page.fold(["w.1"], "layer")
    assert page.pages["layer"].outputs.keys() == {"w_1"}
    assert Page.from_dict(page.to_dict()).to_dict() == page.to_dict()
    with pytest.raises(InvalidArgumentError, match=r"without '\.'"):
        page.pages["layer"].expose({"w.1": page.pages["layer"].outputs["w_1"]})
    data = page.to_dict()
    data["pages"]["layer"]["outputs"] = {"w.1": "w.1.output"}
    assert Page.from_dict(data).pages["layer"].outputs.keys() == {"w_1"}, "pages of older files can be opened"


def test_blocks_are_pasted_with_new_names_and_the_wires_that_can_be_drawn() -> None:
    page = make()
    clip = [one for one in page.to_dict()["blocks"] if one["name"] in ("pool", "sum", "scope/deep/late")]
    page.apply({"do": "paste", "blocks": clip, "shift": [40, 50]})
    assert [one.path for one in page["sum_1"].sources["inputs"] if isinstance(one, Output)] == ["pool_1.output"] * 3
    assert page["pool_1"].sources["input"] == [page["x"].output(0)] and page["pool_1"].position == (40.0, 50.0)
    assert [one.name for one in page["scope/deep/late_1"].control] == ["pool_1", "x"]
    other = Page("other")
    other.add("NoOp", name="x")
    other.apply({"do": "paste", "blocks": clip})
    assert not other["pool"].sources, "NoOp has no such output"
    check_consistent(page)


def test_pages_are_pasted_with_their_blocks() -> None:
    page, other = nested(), Page("other")
    data = page.to_dict()
    edit = {"do": "paste", "blocks": [data["blocks"][1]], "pages": data["pages"]}
    for wanted in ("layer", "layer"):
        other.apply(edit)
        assert other.blocks[-1].uses == wanted and len(other.pages) == 1
    other.pages["layer"].remove("relu")
    other.apply(edit)
    assert other.blocks[-1].uses == "layer_1" and other.pages["layer_1"].outputs.keys() == {"a", "b"}


def test_edits_in_steps_are_made_whole_or_not_at_all() -> None:
    page = make()
    before = page.to_dict()
    wrong: list[dict[str, Any]] = [
        {"do": "paste", "blocks": [{"name": "new", "op": "NoOp"}, {"name": "", "op": "NoOp"}]},
        {"do": "paste", "blocks": 3},
        {"do": "gradients", "of": ["pool"], "order": 9},
        {"do": "gradients", "of": ["sum"], "order": 2},
        {"do": "fold", "blocks": ["x"], "name": "layer"},
        {"do": "inline", "block": "pool"},
        {"do": "set_text", "block": "pool", "name": "ksize", "text": "1,2,x"},
        {"do": "set_text", "block": "pool", "name": "ksize", "text": 3},
    ]
    for edit in wrong:
        with pytest.raises(InvalidArgumentError):
            page.apply(edit)
        assert page.to_dict() == before, edit


def test_text_and_gradients_are_edits() -> None:
    page = make()
    page.apply({"do": "set_text", "block": "pool", "name": "ksize", "text": "{1,4,4,4,1}"})
    assert list(page["pool"].attrs["ksize"]) == [1, 4, 4, 4, 1]
    page.apply({"do": "gradients", "of": ["pool"], "with_respect_to": ["x"]})
    (new,) = [block for block in page.blocks if block.op_name == "MaxPool3DGrad"]
    assert new.position is not None and [one.block.name for one in new.sources["orig_input"]] == ["x"]


def test_rings_are_told_as_when_the_page_is_opened() -> None:
    page = make()
    page.problems()
    page.connect("sum.sum", "pool", "input")
    page.connect("sum.sum", "sum", "inputs")
    opened = Page.from_dict(page.to_dict())
    assert [str(one) for one in page.problems()] == [str(one) for one in opened.problems()]
    page.disconnect("pool", "input")
    page.disconnect("sum", "inputs", 3)
    page.connect("x.output", "pool", "input")
    assert page.problems() == []


def test_a_block_that_stands_for_a_page_has_no_attributes() -> None:
    page = nested()
    with pytest.raises(InvalidArgumentError, match="be a block of an op"):
        page.set_attr("used", "ksize", 3)


def test_a_number_that_is_free_again_is_taken_first() -> None:
    page = Page()
    names = [page.add("NoOp", name="x").name for _ in range(4)]
    assert names == ["x", "x_1", "x_2", "x_3"]
    page.remove("x_1")
    page.rename("x_2", "y")
    assert [page.add("NoOp", name="x").name for _ in range(3)] == ["x_1", "x_2", "x_4"]
    scope = page.sub("x", unique=True).add("NoOp", name="inner")
    assert scope.name == "x_5/inner"
    page.remove(scope)
    assert page.add("NoOp", name="x").name == "x_5"


def test_groups_follow_their_blocks() -> None:
    page = Page()
    for name in ("a", "b", "c", "d"):
        page.add("Const", attrs={"value": np.float32(1)}, name=name)
    page.apply({"do": "group", "title": "two", "blocks": ["a", "b"], "colour": "blue"})
    page.apply([{"do": "rename", "block": "a", "name": "z"}, {"do": "group", "title": "two", "collapsed": True}])
    page.apply({"do": "group", "title": "other", "blocks": ["b", "c"], "name": "three"})
    wanted = [
        {"title": "two", "blocks": ["z"], "colour": "blue", "collapsed": True},
        {"title": "three", "blocks": ["b", "c"]},
    ]
    assert page.to_dict()["groups"] == wanted
    assert Page.from_dict(page.to_dict()).to_dict() == page.to_dict()
    page.remove("z")
    assert [group.title for group in page.groups] == ["three"]
    folded = page.fold(["b", "c"], "inner")
    assert page.groups == [] and [group.title for group in page.pages["inner"].groups] == ["three"]
    page.inline(folded)
    assert [[one.name for one in group.blocks] for group in page.groups] == [["inner/b", "inner/c"]]
    page.apply({"do": "ungroup", "title": "three"})
    assert page.groups == [] and len(page) == 3
    for wrong in (
        {"title": "", "blocks": ["d"]},
        {"title": "x"},
        {"title": "x", "blocks": ["nobody"]},
        {"title": "x", "blocks": ["d"], "colour": "pink"},
        {"title": "x", "blocks": ["d"], "collapsed": 1},
        {"title": "x", "blocks": ["d"], "name": ""},
    ):
        with pytest.raises(InvalidArgumentError):
            page.apply({"do": "group", **wrong})
    assert page.groups == []
    data = page.to_dict() | {"groups": [{"title": "x", "blocks": ["d", "nobody"], "color": "blue"}, 3]}
    with pytest.raises(InvalidArgumentError) as caught:
        Page.from_dict(data)
    assert len(caught.value.faults) == 4


def test_what_a_page_exposes_and_runs_are_edits() -> None:
    page = vg.Page()
    page.apply(
        [
            {"do": "add", "op": "Placeholder", "name": "x", "attrs": {"dtype": "float32"}},
            {"do": "add", "op": "Placeholder", "name": "x", "attrs": {"dtype": "float32"}},
            {"do": "add", "op": "Neg", "name": "y", "inputs": {"x": [{"from": "x.output"}]}},
            {"do": "expose", "outputs": {"negative": "y.y"}, "inputs": ["x"]},
            {"do": "execute", "blocks": ["y"]},
            {"do": "start_with", "blocks": ["x"]},
        ]
    )
    assert (dict(page.outputs), page.input_names) == ({"negative": page.output("y")}, ("x_1",))
    page.apply({"do": "expose", "outputs": {}})
    assert (dict(page.outputs), page.input_names) == ({}, ("x_1",))
    page.apply({"do": "expose", "inputs": []})
    assert page.input_names == ("x", "x_1")
    assert [page.targets, page.initializers] == [[page.block("y")], [page.block("x_1")]]
    before = page.to_dict()
    for edit in (
        {"do": "expose", "outputs": {"y": "y.gone"}},
        {"do": "expose", "outputs": {"y": "gone.y"}, "inputs": ["x"]},
        {"do": "expose", "inputs": ["gone"]},
        {"do": "execute", "blocks": ["y", "gone"]},
        {"do": "start_with"},
    ):
        with pytest.raises(vg.InvalidArgumentError):
            page.apply(edit)
    assert page.to_dict() == before
