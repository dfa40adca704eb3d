# SPDX-License-Identifier: Apache-2.0
"""Displays in the studio: drawn from the values of a run, with curves over its cycles, also inside of pages."""

from __future__ import annotations

from typing import Any

import numpy as np

import voxgrad as vg
from tests.studio.serving import Server
from voxgrad.formats import page_file
from voxgrad.graph.displays import Shown


def decaying(folded: bool = False) -> dict[str, Any]:
    """w = [4, 1], halved in every cycle, with a trend, a value and a table; with a page inside on request."""
    page = vg.Page("decay")
    w = vg.ops.Variable(page, shape=[2], dtype="float32", name="w")
    half = vg.ops.Mul(page, w, np.float32(0.5), name="half")
    step = vg.ops.Assign(page, w, half, name="step")
    page.start_with([vg.ops.Assign(page, w, np.float32([4, 1]), name="first")])
    page.execute([step])
    twice = vg.ops.Mul(page, half, np.float32(2), name="twice")
    page.expose({"twice": twice})
    page.displays.add("trend", [half, Shown(twice, (1,))], name="curves")
    page.displays.add("value", [Shown(twice, (0,))], {"format": "%.3f"}, name="number")
    page.displays.add("table", [vg.ops.Const(page, np.float32([7, 8]), name="known")], name="rows")
    if folded:
        page.fold(["twice", "twice/y"], "layer")
    document: dict[str, Any] = page_file.to_data(page)
    return document


def drawn(server: Server, document: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = server.post("displays", {"document": document, **more})["displays"]
    return {one["name"]: one for one in found}


def texts(display: dict[str, Any]) -> list[str]:
    return [mark["text"] for mark in display["marks"] if mark["form"] == "text"]


def points(display: dict[str, Any]) -> list[int]:
    curves = [mark for mark in display["marks"] if mark["form"] == "line" and mark["style"].startswith("curve")]
    return [len(mark["points"]) // 2 for mark in curves]


def test_displays_are_drawn_with_the_values_of_a_run(server: Server) -> None:
    document = decaying()
    before = drawn(server, document)
    # A constant is known without a run, and nothing else.
    assert "7" in texts(before["rows"]) and texts(before["number"])[-1] == "—" and points(before["curves"]) == []
    run = server.run(document, "shown", cycles=6)
    after = drawn(server, document, run=run["id"])
    assert texts(after["number"])[-1] == f"{4 * 0.5**5:.3f}"
    assert after["number"]["says"] == f"twice.z[0] = {4 * 0.5**5:.3f}"
    assert points(after["curves"]) == [6, 6, 6]
    # The next run goes on, one that starts anew begins again.
    more = server.run(document, "shown", cycles=4, session="keep")
    assert points(drawn(server, document, run=more["id"])["curves"]) == [10, 10, 10]
    anew = server.run(document, "shown", cycles=2)
    assert points(drawn(server, document, run=anew["id"])["curves"]) == [2, 2, 2]
    for kind in ("svg", "png"):
        answer = server.client.post("/api/export", json={"document": document, "format": kind, "run": anew["id"]})
        assert answer.status_code == 200
        assert kind == "png" or f"{4 * 0.5:.3f}" in answer.text


def test_displays_of_and_in_pages_inside(server: Server) -> None:
    document = decaying(folded=True)
    inner = document["pages"]["layer"]
    inner["displays"] = [
        {"name": "in", "kind": "trend", "of": [{"from": "twice.z"}], "position": [0, 0], "size": [400, 200]}
    ]
    run = server.run(document, "inside", cycles=3)
    outer = drawn(server, document, run=run["id"])
    assert texts(outer["number"])[-1] == "1.000" and points(outer["curves"]) == [3, 3, 3]
    found = drawn(server, document, run=run["id"], path=["layer"], before="layer/")
    assert points(found["in"]) == [3, 3]
    assert "VG053" in server.client.post("/api/displays", json={"document": document, "path": ["gone"]}).text
