# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: kept results have no time, what failed says why, and nothing is called equal that was not seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import voxgrad as vg
from tests.studio.documents import counter_page, pool_page
from tests.studio.serving import Server
from voxgrad.formats import page_file
from voxgrad.studio.run_curves import MOST_POINTS, kept, thinned


def compared(server: Server, *runs: dict[str, Any]) -> dict[str, list[Any]]:
    rows = server.post("compare/runs", {"runs": [run["id"] for run in runs]})["rows"]
    return {f"{row['block']}.{row['output']}": row["sides"] for row in rows}


def test_a_result_that_was_kept_has_no_time(server: Server) -> None:
    first, again = server.run(pool_page(300), "kept"), server.run(pool_page(300), "kept")
    mine, kept = compared(server, first, again)["pool.output"]
    assert (mine["state"], kept["state"]) == ("done", "cached")
    assert mine["seconds"] > 0 and kept["seconds"] is None and kept["same"] is True


def test_three_runs_are_compared_with_the_first(server: Server) -> None:
    runs = [server.run(pool_page(more), f"three{more}") for more in (0, 1, 3)]
    sides = compared(server, *runs)["pool.output"]
    assert [side["max_abs"] for side in sides] == [None, 1.0, 3.0]
    assert [side["same"] for side in sides] == [None, False, False]


def test_what_only_one_run_has_or_what_has_another_shape_or_type_is_told(server: Server) -> None:
    def page(dtype: str, shape: list[int], more: bool) -> Any:
        made = vg.Page("shapes")
        vg.ops.Const(made, np.ones(shape, dtype), name="x")
        if more:
            vg.ops.Const(made, np.ones(3, np.float32), name="only")
        return page_file.to_data(made)

    small, large, double = (
        server.run(page(*given), "shapes")
        for given in (("float32", [2], False), ("float32", [3], True), ("float64", [2], False))
    )
    sides = compared(server, small, large, double)
    assert [side and side["note"] for side in sides["x.output"]] == ["", "the shapes differ", "float64 beside float32"]
    assert sides["x.output"][1]["same"] is None and sides["x.output"][2]["same"] is True
    assert sides["only.output"][0] is None and sides["only.output"][2] is None
    assert sides["only.output"][1]["note"] == "the first run has no such output"


def test_a_block_that_failed_says_why(server: Server) -> None:
    def run(text: bytes) -> Any:
        made = vg.Page("fails")
        x = vg.ops.Const(made, np.array([text], object), name="x")
        made.add("StringToNumber", {"string_tensor": x}, name="number")
        return server.run(page_file.to_data(made), f"fails{text!r}")

    good, bad = run(b"1"), run(b"one")
    assert (good["state"], bad["state"]) == ("done", "failed")
    fine, failed = compared(server, good, bad)["number.output"]
    assert fine["state"] == "done" and failed["state"] == "failed" and failed["same"] is None
    assert "one" in failed["note"]


def test_texts_are_called_equal_only_where_all_of_them_were_kept(server: Server) -> None:
    def run(texts: list[bytes]) -> Any:
        made = vg.Page("texts")
        vg.ops.Const(made, np.array(texts, object), name="x")
        return server.run(page_file.to_data(made), "texts")

    few, same, other = run([b"a", b"b"]), run([b"a", b"b"]), run([b"a", b"c"])
    sides = compared(server, few, same, other)["x.output"]
    assert [side["same"] for side in sides] == [None, True, False]
    many = [b"%d" % number for number in range(200)]
    end = compared(server, run(many), run([*many[:-1], b"other"]))["x.output"][1]
    assert end["same"] is None and "no more is kept" in end["note"]
    long = compared(server, run([b"a" * 300]), run([b"a" * 299 + b"b"]))["x.output"][1]
    assert long["same"] is None and "no more is kept" in long["note"]


def test_runs_that_nobody_knows_are_refused(server: Server) -> None:
    known = server.run(pool_page(), "known")["id"]
    assert server.client.post("/api/compare/runs", json={"runs": [known, "nothing"]}).status_code == 404
    for wrong in ([], [known] * 9):
        assert server.client.post("/api/compare/runs", json={"runs": wrong}).status_code == 422


def test_a_run_that_is_measured_is_cold_every_time_and_keeps_no_session(server: Server) -> None:
    events = server.listen()
    before = server.run(counter_page(), "measured", cycles=2)
    name = server.post("runs", {"page_id": "measured", "document": counter_page(), "repeats": 3, "cycles": 2})["run_id"]
    seen = events.until(type="run", run=name, state="done")
    events.close()
    assert [one["repeat"] for one in seen if one["type"] == "run" and one["run"] == name and one["repeat"]] == [1, 2, 3]
    run = server.get(f"runs/{name}")
    step = next(one for one in run["blocks"] if one["block"] == "step")
    for times in (run["times"], step["times"]):
        assert times["count"] == 3 and 0 < times["low"] <= times["median"] <= times["high"] and times["first"] is None
    assert step["outputs"][0]["summary"]["values"] == ["2"], "fresh variables in every run"
    side = compared(server, before, run)["step.output_ref"]
    assert side[0]["times"] is None and side[1]["times"] == step["times"] and side[1]["same"] is True
    kept = server.run(counter_page(), "measured", session="keep")
    assert next(one for one in kept["blocks"] if one["block"] == "step")["outputs"][0]["summary"]["values"] == ["3"]
    twins = vg.Page("twins")
    x = vg.ops.Const(twins, np.ones(8, np.float32), name="x")
    for twin in ("one", "two"):
        twins.add("Neg", {"x": x}, name=twin)
    for _ in range(2):
        both = server.run(page_file.to_data(twins), "twins", repeats=2)["blocks"]
        assert {one["state"] for one in both} == {"done"} and {one["times"]["count"] for one in both} == {2}


def test_the_curves_of_a_run_are_kept_with_it(server: Server) -> None:
    first, second = server.run(counter_page(), "curves", cycles=3), server.run(counter_page(), "curves", cycles=5)
    for run, count in ((first, 3), (second, 5)):
        curves = {one["path"]: one for one in server.get(f"runs/{run['id']}/curves")["curves"]}
        assert curves["step.output_ref"] == {
            "path": "step.output_ref", "cycles": list(range(count)), "values": [float(at + 1) for at in range(count)]
        }  # fmt: skip
    assert server.get(f"runs/{server.run(pool_page(), 'none')['id']}/curves")["curves"] == []
    assert server.client.get("/api/runs/nothing/curves").status_code == 404


def test_a_long_curve_keeps_its_peaks_and_says_where_it_has_no_number() -> None:
    curve = [(at, math.sin(at)) for at in range(9999)]
    curve[1234], curve[7777], curve[8888] = (1234, 50.0), (7777, -50.0), (8888, math.nan)
    found = thinned(curve)
    assert len(found) <= MOST_POINTS and {curve[1234], curve[7777]} <= set(found)
    assert [at for at, _ in found] == sorted({at for at, _ in found})
    assert thinned(curve[:100]) == curve[:100] and kept({"a": curve[:1], "b": curve[:2]}) == {"b": curve[:2]}


def test_numbers_of_summaries_are_curves(server: Server) -> None:
    page = vg.Page("summaries")
    w = vg.ops.Variable(page, shape=[], dtype="float32", name="w")
    page.start_with([vg.ops.Assign(page, w, np.float32(0))])
    grown = vg.ops.AssignAdd(page, w, np.float32(0.5))
    both = vg.ops.ScalarSummary(page, ["loss", "rate"], vg.ops.Pack(page, [grown, np.float32(2)]), name="both")
    page.expose({"summary": both})
    run = server.run(page_file.to_data(page), "summaries", cycles=3)
    curves = {one["path"]: one for one in server.get(f"runs/{run['id']}/curves")["curves"]}
    assert curves["both.loss"]["values"] == [0.5, 1.0, 1.5] and curves["both.rate"]["values"] == [2.0, 2.0, 2.0]
