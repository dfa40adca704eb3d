# SPDX-License-Identifier: Apache-2.0
"""Displays of pages: bound like wires, edited like blocks, lost by nobody."""

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from voxgrad.formats import page_file
from voxgrad.graph.display_kinds import KINDS, DisplayAttr
from voxgrad.graph.displays import Shown

SCHEMA = jsonschema.Draft202012Validator(json.loads(page_file.SCHEMA.read_text()))


def made() -> vg.Page:
    """x -> y, z; a trend over both, an edit box of x."""
    page = vg.Page("p")
    x = vg.ops.Const(page, np.arange(4, dtype=np.float32), name="x")
    y = vg.ops.Neg(page, x, name="y")
    z = vg.ops.Neg(page, y, name="z")
    page.displays.add("trend", [Shown(y, (1,), "second"), z], {"title": "both"}, name="curves", position=(10, 20))
    page.displays.add("edit", [x], name="typed")
    return page


def shown(page: vg.Page) -> dict[str, list[str]]:
    return {display.name: [one.path for one in display.of] for display in page.displays}


def test_bindings_follow_their_blocks() -> None:
    page = made()
    page.rename("y", "why")
    assert shown(page) == {"curves": ["why.y[1]", "z.y"], "typed": ["x.output"]}
    page.remove("z")
    assert shown(page)["curves"] == ["why.y[1]"]
    page.apply([{"do": "remove", "block": "why"}, {"do": "remove", "display": "typed"}])
    assert shown(page) == {"curves": []}


def test_folding_and_inlining_lose_nothing() -> None:
    page = made()
    page.apply({"do": "fold", "blocks": ["x", "y"], "name": "layer"})
    # What shows stays outside, though nobody else reads its output; what writes goes in with its block.
    assert shown(page) == {"curves": ["layer.y[1]", "z.y"]}
    assert shown(page.pages["layer"]) == {"typed": ["x.output"]}
    assert not page.problems()
    page.apply({"do": "inline", "block": "layer"})
    assert shown(page) == {"curves": ["layer/y.y[1]", "z.y"], "layer/typed": ["layer/x.output"]}
    curves = page.displays["curves"]
    assert [one.label for one in curves.of] == ["second", ""]
    assert (curves.attrs, curves.position) == ({"title": "both"}, (10.0, 20.0))


def test_pins_of_inner_pages_are_followed() -> None:
    page = made()
    page.fold(["x", "y", "z"], "layer")
    inner = page.pages["layer"]
    assert shown(page)["curves"] == ["layer.y[1]", "layer.z"] and list(inner.outputs) == ["z", "y"]
    inner.expose({"y": inner.block("y")})
    assert shown(page)["curves"] == ["layer.y[1]"]


def test_copies_are_bound_to_copies() -> None:
    page = made()
    data = page_file.to_data(page)
    page.apply({"do": "paste", "blocks": data["blocks"], "displays": data["displays"], "shift": [40, 0]})
    assert shown(page)["curves_1"] == ["y_1.y[1]", "z_1.y"]
    assert page.displays["curves_1"].position == (50.0, 20.0)
    other = vg.Page("other")
    other.apply({"do": "paste", "blocks": [], "displays": data["displays"]})
    assert shown(other) == {"curves": [], "typed": []}


def test_files_hold_displays_and_the_schema_agrees() -> None:
    page = made()
    for kind in KINDS:
        page.displays.add(kind, [page.block("y").output(0)][: KINDS[kind].takes], _all_attrs(kind))
    text = page_file.dumps(page)
    assert page_file.dumps(page_file.loads(text)) == text
    SCHEMA.validate(json.loads(text))


def _all_attrs(kind: str) -> dict[str, Any]:
    return {one.name: _other(one) for one in KINDS[kind].attrs}


def _other(attr: DisplayAttr) -> Any:
    """A value that is not the default."""
    if attr.choices:
        return attr.choices[-1]
    return {"bool": not attr.default, "int": 7, "number": 4.5}.get(attr.type, "text")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": "clock"}, "kind must be one of text"),
    "attribute": ({"attrs": {"colour": "red"}}, "attrs must be one of title, low"),
    "value": ({"attrs": {"log": "yes"}}, "log must be true or false"),
    "choice": ({"kind": "gauge", "attrs": {"form": "egg"}}, "form must be one of dial, bar"),
    "range": ({"kind": "histogram", "attrs": {"bins": 0}}, "bins must be finite from 1 to 512"),
    "integer": ({"attrs": {"span": 1.5}}, "span must be an integer"),
    "size": ({"size": [0, 10]}, "size must be two numbers from 1"),
    "place": ({"position": [1e9, 0]}, "position must be two numbers"),
    "output": ({"of": [{"from": "gone.y"}]}, "be block.output with a block"),
    "index": ({"of": [{"from": "y.y", "at": ["a"]}]}, "be a list of indices"),
    "many": ({"kind": "value", "of": [{"from": "y.y"}, {"from": "z.y"}]}, "hold at most 1 outputs"),
    "entry": ({"colour": 3}, "an unknown entry"),
}


@grouped("name", WRONG)
def test_wrong_displays_are_refused(name: str) -> None:
    """By a file, which the schema refuses as well, with the place."""
    change, message = WRONG[name]
    data = page_file.to_data(made())
    entry = {"name": "new", "kind": "trend", "position": [0, 0], "size": [10, 10], **change}
    data["displays"] = [entry]
    with pytest.raises(vg.VoxgradError, match="/displays/0") as caught:
        page_file.from_data(data)
    assert message in str(caught.value)
    # Only what other parts of a page decide is not in the schema.
    assert SCHEMA.is_valid(data) == (name in ("output", "place", "size"))


def test_an_edit_that_is_refused_changes_nothing() -> None:
    page = made()
    before = page_file.dumps(page)
    wrong = [
        {"do": "set_attr", "display": "curves", "attr": "low", "value": "deep"},
        {"do": "rename", "display": "curves", "name": "typed"},
        {"do": "rename", "display": "curves", "name": "a:b"},
        {"do": "move", "display": "curves", "size": [1]},
        {"do": "show", "display": "curves", "of": [{"at": [0]}]},
        {"do": "add", "display": "trend", "of": [{"from": "y.y", "at": [-1]}]},
        {"do": "fold", "display": "curves"},
        {"do": "remove", "display": "nobody"},
    ]
    for edit in wrong:
        with pytest.raises(vg.VoxgradError):
            page.apply([{"do": "add", "display": "text", "name": "first"}, edit])
        assert page_file.dumps(page) == before


def test_displays_are_added_by_edits() -> None:
    """Blocks and displays that the same edits make are meant by the names that these gave them."""
    page = made()
    page.apply([
        {"do": "add", "op": "Neg", "name": "y", "inputs": {"x": [{"from": "x.output"}]}},
        {"do": "add", "display": "value", "name": "curves", "of": [{"from": "y.y", "at": [2]}], "position": [5, 6]},
        {"do": "move", "display": "curves", "size": [100, 50]},
        {"do": "add", "display": "value", "of": []},
    ])  # fmt: skip
    assert shown(page) == {"curves": ["y.y[1]", "z.y"], "typed": ["x.output"], "curves_1": ["y_1.y[2]"], "value": []}
    added = page.displays["curves_1"]
    assert (added.position, added.size) == ((5.0, 6.0), (100.0, 50.0))
    assert page.displays["value"].position == (0.0, 0.0)


def test_what_shows_folded_blocks_shows_the_pins_of_their_page() -> None:
    page = made()
    page.displays.add("table", [page["z"].output(0)], name="rows")
    page.fold(["y", "z"], "layer")
    assert shown(page) == {"curves": ["layer.y[1]", "layer.z"], "typed": ["x.output"], "rows": ["layer.z"]}
    page.remove("layer")
    assert shown(page) == {"curves": [], "typed": ["x.output"], "rows": []}
