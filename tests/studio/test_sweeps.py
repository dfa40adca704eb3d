# SPDX-License-Identifier: Apache-2.0
"""Sweeps in the studio: what the command line gives, point by point, in workers that may be stopped or killed."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.documents import slow_page
from tests.studio.serving import Server
from voxgrad.cli import main
from voxgrad.formats import page_file

Document = dict[str, Any]


def pooled() -> vg.Page:
    """A pool over 64 numbers, times a factor, and their sum."""
    page = vg.Page("pooled")
    x = vg.ops.Const(page, np.arange(1, 65, dtype=np.float32).reshape(1, 4, 4, 4, 1), name="x")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", name="pool")
    half = page.add("Mul", {"x": y, "y": np.float32(0.5)}, name="half")
    total = page.add("Sum", {"input": half, "axis": np.arange(5)}, name="sum")
    page.expose({"sum": total.output(0), "half": half.output(0)})
    return page


def ask(document: Document, variations: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"page_id": "swept", "document": document, "variations": variations, **more}


def ended(server: Server, name: str, seconds: float = 60) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while (found := server.get(f"sweeps/{name}"))["state"] == "running":
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return dict(found)


def test_a_sweep_gives_the_rows_of_the_command_line(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, varied = pooled(), {"half.y": "range(0.5, 2, 0.5)", "pool.padding": "SAME,VALID"}
    document = page_file.to_data(page)
    plan = server.post("sweeps/plan", ask(document, varied))
    assert plan["points"] == 6 and plan["fetches"] == ["sum.output", "half.z"]
    assert plan["values"] == {"half.y": ["0.5", "1", "1.5"], "pool.padding": ["SAME", "VALID"]}
    found = ended(server, server.post("sweeps", ask(document, varied))["id"])
    assert found["state"] == "done" and [row["index"] for row in found["rows"]] == list(range(6))
    page.save(tmp_path / "page.vox.json")
    given = [f"--set={name}={text}" for name, text in varied.items()]
    assert main(["sweep", str(tmp_path / "page.vox.json"), *given, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    for mine, theirs in zip(found["rows"], rows, strict=True):
        assert mine["values"] == theirs["values"] and mine["results"] == theirs["results"] and not mine["faults"]
        assert mine["times"]["count"] == 1 and mine["times"]["median"] > 0
    assert main(["sweep", str(tmp_path / "page.vox.json"), *given, "--csv", str(tmp_path / "rows.csv")]) == 0
    ours = server.client.get(f"/api/sweeps/{found['id']}/export", params={"format": "csv"})
    assert ours.headers["content-disposition"].startswith("attachment")
    tables = [list(csv.DictReader(text.splitlines())) for text in (ours.text, (tmp_path / "rows.csv").read_text())]
    for table in tables:
        for line in table:
            del line["seconds"]
    assert tables[0] == tables[1] and len(tables[0]) == 6
    plain = server.client.get(f"/api/sweeps/{found['id']}/export", params={"format": "json"}).json()
    assert plain["points"] == 6 and [row["values"] for row in plain["rows"]] == [row["values"] for row in rows]


def test_the_edits_of_a_row_put_its_values_into_the_page(server: Server) -> None:
    document = page_file.to_data(pooled())
    varied = {"half.y": "0.5,3", "pool.padding": "VALID,SAME", "semantics": "documented,tf_cpu", "engine": "cpu"}
    found = ended(server, server.post("sweeps", ask(document, varied))["id"])
    row = found["rows"][-1]
    assert row["values"] == {"half.y": "3", "pool.padding": "SAME", "semantics": "tf_cpu", "engine": "cpu"}
    edited = server.post("edit", {"document": document, "edits": row["edits"]})["document"]
    run = server.run(edited, "used")
    value = next(one for one in run["blocks"] if one["block"] == "sum")["outputs"][0]["summary"]["mean"]
    assert value == row["results"]["sum.output"]["value"] and edited["semantics"] == "tf_cpu"
    assert edited != document


def test_several_cold_runs_of_a_point_have_a_middle_and_a_spread(server: Server) -> None:
    document = page_file.to_data(pooled())
    found = ended(server, server.post("sweeps", ask(document, {"half.y": "1"}, repeats=3))["id"])
    times = found["rows"][0]["times"]
    assert times["count"] == 3 and times["low"] <= times["median"] <= times["high"] and times["first"] > 0


def test_feeds_cycles_and_chosen_results(server: Server) -> None:
    page = vg.Page("fed")
    x = page.add("Placeholder", attrs={"dtype": "float32", "shape": [3]}, name="x")
    page.add("Mul", {"x": x, "y": np.float32(2)}, name="twice")
    page.add("Neg", {"x": x}, name="negative")
    value = {"tensor": {"dtype": "float32", "shape": [3], "values": [1, 2, 3]}}
    given = ask(page_file.to_data(page), {"twice.y": "2,3"}, fetch=["twice"], feeds={"x": value}, cycles=2)
    rows = ended(server, server.post("sweeps", given)["id"])["rows"]
    assert [row["results"]["twice.z"]["high"] for row in rows] == [6, 9]
    assert [list(row["results"]) for row in rows] == [["twice.z"]] * 2


def test_what_is_wrong_with_a_sweep_is_told_before_anything_runs(server: Server) -> None:
    document = page_file.to_data(pooled())
    wrong = {
        "VG001": {}, "VG050": {"none.y": "1"}, "VG003": {"engine": "abacus"}, "VG052": {"pool.ksize": "a"},
        "VG021": {"half.y": "range(1000)", "pool.strides": ",".join(["{1,2,2,2,1}"] * 1000)},
    }  # fmt: skip
    for code, varied in wrong.items():
        for route in ("sweeps/plan", "sweeps"):
            answer = server.client.post(f"/api/{route}", json=ask(document, varied))
            assert answer.status_code in (404, 422), answer.text
            assert code in {fault["code"] for fault in answer.json()["error"]["faults"]}, answer.text
    assert server.client.get("/api/sweeps/nothing").status_code == 404


def test_what_is_wrong_with_a_point_costs_its_row_alone(server: Server) -> None:
    page = vg.Page("sizes")
    page.add("Fill", {"dims": np.array([2, 2], np.int32), "value": np.float32(1)}, name="x")
    varied = {"x.dims": "{2,2},{100000,100000},{-1,2},{3,3}"}
    found = ended(server, server.post("sweeps", ask(page_file.to_data(page), varied))["id"])
    codes = [[fault["code"] for fault in row["faults"]] for row in found["rows"]]
    assert codes[0] == codes[3] == [] and "VG020" in codes[1] and codes[2] != []
    assert found["rows"][3]["results"]["x.output"]["shape"] == [3, 3]


def test_a_sweep_that_is_stopped_keeps_its_rows_and_the_next_run_goes_on(server: Server) -> None:
    events = server.listen()
    document = slow_page()
    varied = {"conv0.padding": "SAME", "w0.value": ",".join(f"0.0{number}" for number in range(1, 9))}
    begun = server.post("sweeps", ask(document, varied, repeats=20))
    waiting = server.post("runs", {"page_id": "beside", "document": page_file.to_data(pooled())})["run_id"]
    time.sleep(0.5)
    start = time.monotonic()
    server.post(f"sweeps/{begun['id']}/cancel")
    found = ended(server, begun["id"])
    assert found["state"] == "cancelled" and time.monotonic() - start < 4 and found["done"] == len(found["rows"]) < 8
    assert server.wait(waiting)["state"] == "done"
    told = events.until(type="sweep", sweep=begun["id"], state="cancelled")[-1]
    events.close()
    assert told["points"] == 8 and told["done"] == found["done"]


def test_rows_are_told_as_they_come_and_sweeps_are_listed(server: Server) -> None:
    events = server.listen()
    given = ask(page_file.to_data(pooled()), {"half.y": "1,2,3"}) | {"page_id": "listed"}
    begun = server.post("sweeps", given)
    seen = [one for one in events.until(type="sweep", sweep=begun["id"], state="done") if one["type"] == "sweep"]
    events.close()
    assert [one["row"]["values"]["half.y"] for one in seen if one["row"]] == ["1", "2", "3"]
    assert [one["done"] for one in seen if one["row"]] == [1, 2, 3]
    listed = server.get("sweeps", params={"page": "listed"})["sweeps"]
    assert [one["id"] for one in listed] == [begun["id"]] and listed[0]["rows"] == [] and listed[0]["done"] == 3
