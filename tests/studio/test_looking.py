# SPDX-License-Identifier: Apache-2.0
"""Analysis, edits, gradients, checks, traces, comparisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.documents import chain_page, pool_page
from tests.studio.serving import Server
from voxgrad.formats import page_file


def opened(server: Server, example: str) -> dict[str, Any]:
    document: dict[str, Any] = server.post(f"gallery/{example}/open")["document"]
    return document


def test_the_gallery_has_cards_with_pictures(server: Server) -> None:
    cards = server.get("gallery")["cards"]
    assert "mistake" in cards[0]["id"] and len(cards) >= 8
    assert all(card["title"] and card["picture_svg"].startswith(("<svg", "<?xml")) for card in cards)


def test_an_example_brings_its_scan_along(server: Server) -> None:
    pytest.importorskip("nibabel", reason="nibabel is an optional extra")
    document = opened(server, "scan_edges")
    analysis = server.post("analyse", {"document": document})
    assert analysis["problems"] == []
    assert analysis["pins"]["scan"]["output"]["shape"] == [1, 25, 41, 33, 1]
    run = server.run(document, "scan")
    assert run["state"] == "done"
    blocks = {block["block"]: block for block in run["blocks"]}
    assert blocks["strongest"]["outputs"][0]["shape"] == [1, 9, 14, 11, 1]
    document["blocks"][0]["attrs"]["path"] = "../outside.nii.gz"
    (problem,) = server.post("analyse", {"document": document})["problems"]
    assert (problem["block"], problem["pin"], problem["code"]) == ("scan", "path", "VG056")
    assert server.client.post("/api/runs", json={"page_id": "scan", "document": document}).status_code == 422


def test_all_ops_are_told_with_their_pins(server: Server) -> None:
    found = {op["name"]: op for op in server.get("ops")["ops"]}
    assert len(found) > 150
    pool = found["MaxPool3DGradGrad"]
    assert [item["name"] for item in pool["inputs"]] == ["orig_input", "orig_output", "grad"]
    assert [attr["name"] for attr in pool["attrs"]] == ["ksize", "strides", "padding", "data_format"]
    assert pool["attrs"][2] | {"doc": ""} == {
        "name": "padding", "kind": "string", "default": None, "required": True, "choices": ["SAME", "VALID"],
        "length": None, "doc": "",
    }  # fmt: skip
    assert pool["differentiable"] and "half" in found["Conv3D"]["inputs"][0]["types"]
    first = server.client.get("/api/ops")
    assert server.client.get("/api/ops", headers={"if-none-match": first.headers["etag"]}).status_code == 304


def test_an_old_page_is_red_before_it_runs_and_one_click_repairs_it(server: Server) -> None:
    document = opened(server, "max_pool3d_grad_grad_mistake")
    analysis = server.post("analyse", {"document": document})
    problem = next(one for one in analysis["problems"] if one["pin"] == "grad")
    assert problem["code"] == "VG012" and "[2,2,2,2,2]" in problem["message"]
    answer = server.client.post("/api/runs", json={"page_id": "old", "document": document})
    assert answer.status_code == 422
    while analysis["problems"]:
        fix = analysis["problems"][0]["fixes"][0]
        edited = server.post("edit", {"document": document, "edits": fix["edits"]})
        document = edited["document"]
        analysis = server.post("analyse", {"document": document})
    assert server.run(document, "old")["state"] == "done"


def test_a_block_without_a_wire_is_told_and_stops_no_run(server: Server) -> None:
    document = pool_page()
    document["blocks"].append({"name": "later", "op": "Relu", "position": [0, 900]})
    analysis = server.post("analyse", {"document": document})
    assert analysis["problems"] == [] and [one["block"] for one in analysis["warnings"]] == ["later"]
    run = server.run(document, "later")
    assert run["state"] == "done" and "later" not in [block["block"] for block in run["blocks"]]


def test_symbolic_sizes_and_costs(server: Server) -> None:
    page = vg.Page("symbols")
    x = page.add("Placeholder", attrs={"dtype": "float32", "shape": ["N", "D", 8, 8, 1]}, name="x")
    attrs = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    page.add("MaxPool3D", {"input": x}, attrs, name="y")
    found = server.post("analyse", {"document": page_file.to_data(page)})
    assert found["pins"]["y"]["output"]["shape"] == ["N", "ceil(D/2)", 4, 4, 1]
    assert found["pins"]["y"]["output"]["text"] == "float32 [N,ceil(D/2),4,4,1]"
    assert found["order"] == ["x", "y"]
    known = server.post("analyse", {"document": pool_page()})["estimate"]
    assert known["blocks"]["x"]["bytes"] == 128 and known["peak_bytes"] >= 144


def test_analysis_of_100_blocks(server: Server) -> None:
    found = server.post("analyse", {"document": chain_page(101)})
    assert len(found["pins"]) == 101 and not found["problems"]


def test_text_sets_values_and_points_at_the_wrong_character(server: Server) -> None:
    document = pool_page()
    edit = {"do": "set_text", "block": "pool", "name": "ksize", "text": "{1,2,2,2,1}"}
    made = server.post("edit", {"document": document, "edits": [edit]})["document"]
    assert made["blocks"][1]["attrs"]["ksize"] == [1, 2, 2, 2, 1]
    edit = {"do": "set_text", "block": "pool", "name": "ksize", "text": "1,2,x,2,1"}
    answer = server.client.post("/api/edit", json={"document": document, "edits": [edit]})
    (fault,) = answer.json()["error"]["faults"]
    assert answer.status_code == 422 and fault["where"].splitlines()[1].index("^") == fault["where"].splitlines()[
        0
    ].index("x")


def conv_document() -> dict[str, Any]:
    page = vg.Page("conv")
    rng = np.random.default_rng(3)
    x = vg.ops.Const(page, rng.standard_normal((1, 4, 4, 4, 2)).astype(np.float32), name="x")
    w = vg.ops.Const(page, rng.standard_normal((2, 2, 2, 2, 3)).astype(np.float32), name="w")
    vg.ops.Conv3D(page, x, w, strides=[1, 1, 1, 1, 1], padding="SAME", name="y")
    return page_file.to_data(page)


def test_gradient_blocks_are_drawn_and_run(server: Server) -> None:
    document = conv_document()
    edited = server.post("edit", {"document": document, "edits": [{"do": "gradients", "of": ["y"]}]})
    ops = {block["op"] for block in edited["document"]["blocks"] if block["name"] in edited["added"]}
    assert {"Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"} <= ops
    assert all("position" in block for block in edited["document"]["blocks"] if block["name"] in edited["added"])
    run = server.run(edited["document"], "gradients")
    grad = next(one for one in run["blocks"] if one["block"].endswith("Conv3DBackpropFilterV2"))["outputs"][0]
    page = page_file.from_data(document)
    (dw,) = vg.gradients([page.output("y")], [page.output("w")])
    assert dw is not None
    expected = vg.ClientSession(page).run([dw])[0]
    assert grad["shape"] == [2, 2, 2, 2, 3] and math.isclose(
        grad["summary"]["max"], float(expected.max()), rel_tol=1e-6
    )
    second = server.post("edit", {"document": document, "edits": [{"do": "gradients", "of": ["y"], "order": 2}]})
    assert len(second["added"]) > len(edited["added"])
    wrong = server.client.post("/api/edit", json={"document": document, "edits": [{"do": "gradients", "of": ["x"]}]})
    assert wrong.status_code == 422


def test_blocks_fold_into_a_page_run_there_and_unfold(server: Server) -> None:
    document = conv_document()
    edit = {"do": "fold", "blocks": ["y"], "name": "layer"}
    folded = server.post("edit", {"document": document, "edits": [edit]})
    assert folded["added"] == ["layer"] and list(folded["document"]["pages"]) == ["layer"]
    run = server.run(folded["document"], "folded")
    blocks = {one["block"]: one for one in run["blocks"]}
    assert blocks["layer"]["outputs"][0]["hash"] == blocks["layer/y"]["outputs"][0]["hash"]
    pins = server.post("analyse", {"document": folded["document"]})["pins"]
    assert pins["layer/y"]["output"]["shape"] == [1, 4, 4, 4, 3]
    edit = {"do": "inline", "block": "layer"}
    flat = server.post("edit", {"document": folded["document"], "edits": [edit]})
    assert any(block["op"] == "Conv3D" for block in flat["document"]["blocks"])


def test_gradients_are_checked_per_block_with_the_step_curve(server: Server) -> None:
    rows = server.post("check", {"document": conv_document()})["rows"]
    assert {(row["block"], row["input"]) for row in rows} == {("y", "input"), ("y", "filter")}
    assert all(row["ok"] and row["error"] < 1e-6 and len(row["steps"]) >= 6 for row in rows)


def test_gradients_of_a_page_with_a_placeholder_are_checked_with_a_feed(server: Server) -> None:
    page = vg.Page("fed")
    x = page.add("Placeholder", attrs={"dtype": "float32", "shape": ["N"]}, name="x")
    page.add("Square", {"x": x}, name="y")
    document = page_file.to_data(page)
    feeds = {"x": {"tensor": {"dtype": "float32", "shape": [3], "values": [1, 2, 3]}}}
    (row,) = server.post("check", {"document": document, "of": ["y"], "feeds": feeds})["rows"]
    assert row["ok"] and row["input"] == "x"
    answer = server.client.post("/api/check", json={"document": document})
    assert answer.status_code == 422 and "be fed" in answer.json()["error"]["message"]


# Traces, against a search by brute force: which inputs change the output?


def influences(document: dict[str, Any], block: str, index: tuple[int, ...], source: str) -> np.ndarray[Any, Any]:
    """True for every element of a constant on which an element of an output depends; all ops here are linear in it."""
    page = page_file.from_data(document)
    value = page.block(source).attrs["value"]
    found = np.zeros(value.shape, bool)
    session = vg.ClientSession(page, cache=False)
    base = session.run([block])[0][index]
    for at in np.ndindex(value.shape):
        changed = value.copy()
        changed[at] += 100
        found[at] = session.run([block], {source: changed})[0][index] != base
    return found


def windowed(op: str, shapes: dict[str, tuple[int, ...]], attrs: dict[str, Any], **values: Any) -> dict[str, Any]:
    page = vg.Page("traced")
    rng = np.random.default_rng(1)
    inputs: dict[str, Any] = {
        name: vg.ops.Const(page, rng.integers(1, 9, shape).astype(np.float64), name=name)
        for name, shape in shapes.items()
    }
    inputs |= {name: vg.ops.Const(page, np.array(value, np.int32), name=name) for name, value in values.items()}
    page.add(op, inputs, attrs, name="out")
    return page_file.to_data(page)


STEP = {"strides": [1, 2, 1, 2, 1], "padding": "SAME"}
POOL = {"ksize": [1, 3, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}
FIRST = {"ksize": [1, 1, 3, 2, 2], "strides": [1, 1, 2, 1, 2], "padding": "SAME", "data_format": "NCDHW"}
DILATED = {"strides": [1, 1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 1, 2, 1]}
X, W, DY = (1, 5, 3, 4, 2), (3, 2, 2, 2, 3), (1, 3, 3, 2, 3)
CASES = [
    ("Conv3D", windowed("Conv3D", {"input": X, "filter": W}, STEP)),
    ("Conv3D dilated", windowed("Conv3D", {"input": (1, 6, 3, 5, 2), "filter": (2, 2, 2, 2, 2)}, DILATED)),
    ("Conv3D groups", windowed("Conv3D", {"input": (1, 3, 3, 3, 4), "filter": (2, 2, 2, 2, 4)}, STEP)),
    ("input gradient", windowed("Conv3DBackpropInputV2", {"filter": W, "out_backprop": DY}, STEP, input_sizes=X)),
    ("filter gradient", windowed("Conv3DBackpropFilterV2", {"input": X, "out_backprop": DY}, STEP, filter_sizes=W)),
    ("AvgPool3D", windowed("AvgPool3D", {"input": X}, POOL)),
    ("AvgPool3DGrad", windowed("AvgPool3DGrad", {"grad": (1, 3, 3, 2, 2)}, POOL, orig_input_shape=X)),
    ("NCDHW", windowed("AvgPool3D", {"input": (1, 2, 5, 3, 4)}, FIRST)),
]


@pytest.mark.parametrize("document", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_a_window_holds_just_the_cells_that_count(server: Server, document: dict[str, Any]) -> None:
    shape = server.post("analyse", {"document": document})["pins"]["out"]["output"]["shape"]
    corners = {(0,) * 5, tuple(size - 1 for size in shape), tuple(size // 2 for size in shape)}
    for index in corners:
        found = server.post("trace", {"document": document, "block": "out", "index": list(index)})
        for window in found["windows"]:
            source = window["source"].partition(".")[0]
            cells = np.zeros(page_shape(document, source), bool)
            box = tuple(
                slice(lo, hi, step) for lo, hi, step in zip(window["lo"], window["hi"], window["steps"], strict=True)
            )
            cells[box] = True
            expected = influences(document, "out", index, source)
            assert (cells == expected).all(), (index, window)
            assert window["count"] == expected.sum()


def page_shape(document: dict[str, Any], source: str) -> tuple[int, ...]:
    shape: tuple[int, ...] = page_file.from_data(document).block(source).attrs["value"].shape
    return shape


def test_padding_winner_and_ties_of_a_max_pool(server: Server) -> None:
    page = vg.Page("ties")
    value = np.array([1, 7, 7, 2, 0, 7, 3, 7], np.float32).reshape(1, 2, 2, 2, 1)
    x = vg.ops.Const(page, value, name="x")
    vg.ops.MaxPool3D(page, x, ksize=[1, 4, 2, 2, 1], strides=[1, 4, 2, 2, 1], padding="SAME", name="pool")
    document = page_file.to_data(page)
    run = server.run(document, "ties")
    for more in ({}, {"run": run["id"]}):
        asked = {"document": document, "block": "pool", "index": [0, 0, 0, 0, 0], **more}
        (window,) = server.post("trace", asked)["windows"]
        assert window["winner"] == [0, 0, 0, 1, 0]
        assert window["ties"] == [[0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 1, 1, 1, 0]]
        assert window["padding"] == {"before": [0, 1, 0, 0, 0], "after": [0, 1, 0, 0, 0]}
    outside = server.client.post("/api/trace", json={"document": document, "block": "pool", "index": [0, 9, 0, 0, 0]})
    assert outside.status_code == 422


def test_the_receptive_field_grows_from_block_to_block(server: Server) -> None:
    page = vg.Page("field")
    x: Any = vg.ops.Const(page, np.zeros((1, 1, 1, 16, 1), np.float32), name="x")
    for number in range(3):
        w = vg.ops.Const(page, np.ones((1, 1, 3, 1, 1), np.float32), name=f"w{number}")
        x = vg.ops.Conv3D(page, x, w, strides=[1, 1, 1, 1, 1], padding="SAME", name=f"c{number}")
        x = vg.ops.Relu(page, x, name=f"r{number}")
    document = page_file.to_data(page)
    asked = {"document": document, "block": "r2", "index": [0, 0, 0, 8, 0], "depth": 10}
    windows = server.post("trace", asked)["windows"]
    widths = {window["source"]: (window["lo"][3], window["hi"][3]) for window in windows if len(window["lo"]) == 5}
    assert widths["r1.activations"] == (7, 10) and widths["r0.activations"] == (6, 11) and widths["x.output"] == (5, 12)


def test_ordinary_ops_are_followed_where_they_say_so(server: Server) -> None:
    page = vg.Page("turned")
    x = vg.ops.Const(page, np.arange(6, dtype=np.float32).reshape(2, 3), name="x")
    vg.ops.Transpose(page, x, [1, 0], name="turned")
    vg.ops.Sum(page, x, [1], name="rows")
    vg.ops.Cumsum(page, x, 0, name="running")
    vg.ops.MatMul(page, x, x, transpose_b=True, name="products")
    document = page_file.to_data(page)

    def asked(block: str, *index: int) -> tuple[list[int], list[int], list[str]]:
        found = server.post("trace", {"document": document, "block": block, "index": list(index)})
        return found["windows"][0]["lo"], found["windows"][0]["hi"], found["notes"]

    assert asked("turned", 2, 1) == ([1, 2], [2, 3], [])
    assert asked("rows", 1) == ([1, 0], [2, 3], [])
    assert asked("running", 0, 0) == ([0, 0], [2, 1], [])
    assert asked("products", 0, 0)[:2] == ([0, 0], [2, 3])
    assert "products is taken to depend on all of a." in asked("products", 0, 0)[2]


def test_tensors_are_compared_in_ulp(server: Server) -> None:
    page = vg.Page("close")
    a = np.array([1, 2, np.nan, -0.0, 1e30], np.float32)
    b = np.array([np.nextafter(np.float32(1), np.float32(2)), 2, np.nan, 0.0, 1e30], np.float32)
    for name, value in (("a", a), ("b", b)):
        vg.ops.Const(page, value, name=name)
    run = server.run(page_file.to_data(page), "close")
    found = server.post(
        "compare", {"left": {"run": run["id"], "block": "a"}, "right": {"run": run["id"], "block": "b"}}
    )
    assert found["max_ulp"] == 1 and found["differing"] == 1 and found["count"] == 5
    assert math.isclose(found["max_abs"], 2**-23) and found["where"][0]["index"] == [0]
    summary = server.get(f"tensors/{found['hash']}/summary")
    assert summary["count"] == 5 and summary["nan"] == 1


def test_runs_are_compared_block_by_block(server: Server) -> None:
    left = server.run(pool_page(), "left")
    document = pool_page()
    document["blocks"][0]["attrs"]["value"]["tensor"]["values"][15] = 16.5
    right = server.run(document, "right")
    found = server.post("compare/runs", {"runs": [left["id"], right["id"]]})
    rows = {row["block"]: row["sides"] for row in found["rows"]}
    first, second = rows["pool"]
    assert list(rows) == ["x", "pool"] and second["max_abs"] == 0.5 and second["same"] is False
    assert second["max_ulp"] == 0.5 / 2**-19 and first["same"] is None
    again = server.post("compare/runs", {"runs": [left["id"], left["id"]]})["rows"]
    assert all(row["sides"][1]["same"] and row["sides"][1]["max_ulp"] == 0 for row in again)


def test_a_summary_tells_what_numpy_tells(server: Server) -> None:
    page = vg.Page("summary")
    value = np.random.default_rng(2).standard_normal((2, 6, 70, 80, 3)).astype(np.float32)
    value[0, 0, 0, 0] = (np.nan, np.inf, -np.inf)
    value[1, 1, 1] = 0
    vg.ops.Const(page, value, name="x")
    run = server.run(page_file.to_data(page), "summary")
    found = server.get(f"tensors/{run['blocks'][0]['outputs'][0]['hash']}/summary")
    finite = value[np.isfinite(value)].astype(np.float64)
    for name, expected in (
        ("min", finite.min()),
        ("max", finite.max()),
        ("mean", finite.mean()),
        ("std", finite.std()),
    ):
        assert math.isclose(found[name], float(expected), rel_tol=1e-9), name
    assert (found["nan"], found["posinf"], found["neginf"], found["zeros"]) == (1, 1, 1, 240)
    counts, edges = np.histogram(finite, len(found["histogram"]["counts"]))
    assert found["histogram"]["counts"] == counts.tolist() and np.allclose(found["histogram"]["edges"], edges)
    assert found["preview"]["values"][:3] == ["nan", "inf", "-inf"] and len(found["preview"]["values"]) == 512
    assert found["thumbnail"]["axes"] == [2, 3] and found["thumbnail"]["shape"] == [35, 40]
    turned = server.get(f"tensors/{found['hash']}/summary?axes=3,1&at=1,0,5,0,2")["thumbnail"]
    assert turned["shape"] == [40, 6]
