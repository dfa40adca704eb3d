# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time

import numpy as np
import pytest
from safetensors.numpy import load

import voxgrad as vg
from tests.studio.documents import counter_page, pool_page, slow_page
from tests.studio.serving import Server
from voxgrad.formats import page_file


def outputs(run: dict, block: str) -> list[dict]:
    return next(one for one in run["blocks"] if one["block"] == block)["outputs"]


def test_a_run_tells_every_block_and_its_values(server: Server) -> None:
    events = server.listen()
    assert events.until(type="hello")[-1]["version"]
    name = server.post("runs", {"page_id": "told", "document": pool_page(100)})["run_id"]
    seen = [event for event in events.until(type="run", run=name, state="done") if event.get("run") == name]
    events.close()
    states = [(event["block"], event["state"]) for event in seen if event["type"] == "block"]
    assert states == [
        ("x", "queued"), ("pool", "queued"), ("x", "started"), ("x", "done"), ("pool", "started"), ("pool", "done")
    ]  # fmt: skip
    assert [event["state"] for event in seen if event["type"] == "run"] == ["queued", "running", "done"]
    done = next(
        event for event in seen if event["type"] == "block" and event["block"] == "pool" and event["state"] == "done"
    )
    assert done["outputs"][0]["summary"]["values"] == ["115", "116", "131", "132"]
    assert done["reason"] == "it had not run before"


def test_what_did_not_change_is_not_run_again_and_says_why(server: Server) -> None:
    document = pool_page(200)
    server.run(document, "again")
    second = server.run(document, "again")
    assert {one["cycle"] for one in second["blocks"]} == {0}
    assert [(one["block"], one["state"]) for one in second["blocks"]] == [("x", "cached"), ("pool", "cached")]
    assert second["blocks"][0]["reason"] == "nothing changed since run 1"
    document["blocks"][1]["attrs"]["padding"] = "VALID"
    document["blocks"][1]["attrs"]["ksize"] = [1, 2, 2, 2, 1]
    third = server.run(document, "again")
    assert [(one["block"], one["state"]) for one in third["blocks"]] == [("x", "cached"), ("pool", "done")]
    assert "ksize" in third["blocks"][1]["reason"]


def test_a_tensor_comes_in_safetensors_framing_whole_and_sliced(server: Server) -> None:
    stored = outputs(server.run(pool_page()), "x")[0]
    path = f"/api/tensors/{stored['hash']}"
    whole = server.client.get(path)
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    assert (load(whole.content)["tensor"] == x).all()
    assert "immutable" in whole.headers["cache-control"]
    part = load(server.client.get(f"{path}?slice=1,:,0:1,::2,-1").content)["tensor"]
    assert (part == x[1, :, 0:1, ::2, -1]).all()
    for wrong in ("9", "0:1,0,0,0,0,0", "1:2:0", "a", ":,import os"):
        assert server.client.get(path, params={"slice": wrong}).status_code == 422
    exported = server.client.get(f"{path}/export.npy")
    assert exported.headers["content-disposition"].startswith("attachment")
    assert exported.content[:6] == b"\x93NUMPY"


def test_a_placeholder_is_fed_with_what_is_too_large_for_a_page(server: Server) -> None:
    """2,000 numbers lie beside a document, and are read from there as those of its constants are."""
    typed = {"do": "set_text", "block": "x", "name": "value", "text": "range(2000)"}
    const = {"name": "x", "op": "Const", "attrs": {"dtype": "float32"}}
    page = {"name": "fed", "semantics": "documented"}
    made = server.post("edit", {"document": {**page, "blocks": [const]}, "edits": [typed]})["document"]["blocks"][0]
    assert made["typed"] == {"value": "range(2000)"}
    blocks = [
        {"name": "p", "op": "Placeholder", "attrs": {"dtype": "float32", "shape": [2000]}},
        {"name": "half", "op": "Mul", "inputs": {"x": [{"from": "p.output"}], "y": [{"value": 0.5}]}},
    ]
    run = server.run({**page, "blocks": blocks}, "fed", feeds={"p": made["attrs"]["value"]})
    assert run["state"] == "done", run
    assert outputs(run, "half")[0]["summary"]["max"] == 999.5


def test_run_to_a_block_leaves_the_rest(server: Server) -> None:
    run = server.run(pool_page(), "to", to="x")
    assert [one["block"] for one in run["blocks"]] == ["x"]


def test_variables_live_from_run_to_run_until_they_are_reset(server: Server) -> None:
    document = counter_page()
    first = server.run(document, "count", cycles=3)
    assert outputs(first, "step")[0]["summary"]["values"] == ["3"]
    kept = server.run(document, "count", session="keep")
    assert outputs(kept, "step")[0]["summary"]["values"] == ["4"]
    assert next(one for one in kept["blocks"] if one["block"] == "step")["cycle"] == 3
    document["blocks"][0]["position"] = [5, 5]
    assert outputs(server.run(document, "count", session="keep"), "step")[0]["summary"]["values"] == ["5"]
    server.post("sessions/reset", {"page_id": "count"})
    assert outputs(server.run(document, "count", session="keep"), "step")[0]["summary"]["values"] == ["1"]
    assert outputs(server.run(document, "count"), "step")[0]["summary"]["values"] == ["1"]


def test_a_loop_sends_scalars_for_trend_charts(server: Server) -> None:
    events = server.listen()
    name = server.post("runs", {"page_id": "trend", "document": counter_page(), "cycles": 40})["run_id"]
    seen = events.until(type="run", run=name, state="done")
    events.close()
    values = [
        (event["cycle"], event["value"]) for event in seen if event["type"] == "scalar" and event["block"] == "step"
    ]
    assert values[0] == (0, 1.0) and values[-1] == (39, 40.0)
    assert all(value == cycle + 1 for cycle, value in values)


def test_cancel_stops_a_run_and_the_next_one_works(server: Server) -> None:
    name = server.post("runs", {"page_id": "slow", "document": slow_page(), "cycles": 1000})["run_id"]
    waiting = server.post("runs", {"page_id": "slow", "document": pool_page()})["run_id"]
    while server.get(f"runs/{name}")["state"] != "running":
        time.sleep(0.02)
    time.sleep(0.3)
    start = time.monotonic()
    server.post(f"runs/{name}/cancel")
    run = server.wait(name)
    assert run["state"] == "cancelled" and time.monotonic() - start < 3
    assert server.wait(waiting)["state"] == "done"


def test_a_block_that_does_not_listen_is_stopped_by_killing_its_worker(server: Server) -> None:
    page = vg.Page("deaf")
    dims = np.array([6000, 6000], np.int32)
    a = page.add("Fill", {"dims": dims, "value": np.float64(1)[...]}, name="a")
    page.add("MatMul", {"a": a, "b": a}, name="product")
    name = server.post("runs", {"page_id": "deaf", "document": page_file.to_data(page)})["run_id"]
    events = [one["block"] for one in server.get(f"runs/{name}")["blocks"]]
    while "a" not in events:
        events = [one["block"] for one in server.get(f"runs/{name}")["blocks"]]
        time.sleep(0.02)
    assert server.get("runs", params={"page": "deaf"})["runs"][0]["state"] == "running"
    start = time.monotonic()
    server.post(f"runs/{name}/cancel")
    assert server.wait(name)["state"] == "cancelled" and time.monotonic() - start < 4
    assert server.run(pool_page())["state"] == "done"


def test_a_run_that_waits_is_cancelled_at_once(server: Server) -> None:
    name = server.post("runs", {"page_id": "slow", "document": slow_page(), "cycles": 1000})["run_id"]
    waiting = server.post("runs", {"page_id": "slow", "document": pool_page()})["run_id"]
    assert server.post(f"runs/{waiting}/cancel")["state"] == "cancelled"
    server.post(f"runs/{name}/cancel")
    assert server.wait(name)["state"] == "cancelled"


def test_problems_refuse_a_run_before_it_starts(server: Server) -> None:
    document = pool_page()
    document["blocks"][1]["attrs"]["padding"] = "NONE"
    answer = server.client.post("/api/runs", json={"page_id": "p", "document": document})
    assert answer.status_code == 422
    assert answer.json()["error"]["faults"][0]["argument"] == "pool.padding"
    assert server.client.post("/api/runs", json={"page_id": "p", "document": document, "to": "x"}).status_code == 200


def test_limits_come_from_shapes_before_anything_is_allocated(server: Server) -> None:
    answer = server.client.post("/api/runs", json={"page_id": "p", "document": slow_page(size=100_000)})
    assert answer.status_code == 422
    assert "VG020" in {fault["code"] for fault in answer.json()["error"]["faults"]}
    analysis = server.post("analyse", {"document": slow_page(size=100_000)})
    assert "VG020" in {problem["code"] for problem in analysis["problems"]}


def test_the_queue_is_bounded(server: Server) -> None:
    names = [server.post("runs", {"page_id": "q", "document": slow_page(), "cycles": 1000})["run_id"]]
    statuses = []
    for _ in range(20):
        answer = server.client.post("/api/runs", json={"page_id": "q", "document": pool_page()})
        statuses.append(answer.status_code)
        if answer.status_code == 200:
            names.append(answer.json()["run_id"])
    assert statuses[0] == 200 and statuses[-1] == 429
    for name in reversed(names):
        server.post(f"runs/{name}/cancel")
    assert {server.wait(name)["state"] for name in names} == {"cancelled"}


def test_history_has_runs_with_their_blocks(server: Server) -> None:
    run = server.run(pool_page(), "history")
    listed = server.get("runs", params={"page": "history"})["runs"]
    assert [one["id"] for one in listed] == [run["id"]] and listed[0]["blocks"] == []
    assert run["seconds"] > 0 and [one["block"] for one in run["blocks"]] == ["x", "pool"]
    assert server.client.get("/api/runs/nothing").status_code == 404


@pytest.mark.parametrize("name", ["../../etc/passwd", "0" * 64, "x" * 5000, "..%2f..%2fstudio.sqlite"])
def test_tensors_that_are_not_stored(server: Server, name: str) -> None:
    assert server.client.get(f"/api/tensors/{name}").status_code in (404, 422)
