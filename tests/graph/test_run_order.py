# SPDX-License-Identifier: Apache-2.0
"""The order of a run: queues are filled before they are read, variables are read before they change."""

from __future__ import annotations

import itertools

import pytest

import voxgrad as vg


@pytest.mark.parametrize("targets", [["put2", "put1"], ["put1", "put2"]])
def test_two_queues_in_a_row(targets: list[str]) -> None:
    page = vg.Page("pipeline")
    queues = [page.add("FIFOQueueV2", attrs={"component_types": ["float32"]}, name=f"q{at}") for at in (1, 2)]
    types = {"component_types": ["float32"]}
    inner = page.add("QueueDequeueV2", {"handle": queues[0]}, types, name="inner")
    twice = page.add("Add", {"x": inner.output(0), "y": inner.output(0)}, name="twice")
    page.add("QueueEnqueueV2", {"handle": queues[1], "components": [twice]}, name="put2")
    page.add("QueueEnqueueV2", {"handle": queues[0], "components": [3.0]}, name="put1")
    page.add("QueueDequeueV2", {"handle": queues[1]}, types, name="take")
    session = vg.ClientSession(page)
    assert [float(session.run("take", targets=targets)) for _ in range(2)] == [6, 6]


@pytest.mark.parametrize("fetches", list(itertools.permutations(["step_a", "step_b", "sum"])))
def test_variables_are_read_before_they_change(fetches: tuple[str, ...]) -> None:
    """Two variables that change by each other's value, whatever is asked for first."""
    page = vg.Page("swap")
    a, b = (page.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name=name) for name in "ab")
    starts = [page.add("Assign", {"ref": one, "value": value}) for one, value in ((a, 1.0), (b, 10.0))]
    page.start_with(starts)
    page.add("AssignAdd", {"ref": a, "value": page.add("Identity", {"input": b}, name="read_b")}, name="step_a")
    page.add("AssignAdd", {"ref": b, "value": page.add("Identity", {"input": a}, name="read_a")}, name="step_b")
    page.add("Add", {"x": a, "y": b}, name="sum")
    session = vg.ClientSession(page)
    for wanted in ({"step_a": 11, "step_b": 11, "sum": 11}, {"step_a": 22, "step_b": 22, "sum": 22}):
        found = dict(zip(fetches, map(float, session.run(list(fetches))), strict=True))
        assert found == wanted


def test_control_edges_still_decide() -> None:
    page = vg.Page("after")
    a = page.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="a")
    page.start_with([page.add("Assign", {"ref": a, "value": 1.0})])
    page.add("AssignAdd", {"ref": a, "value": 1.0}, name="step")
    page.add("Identity", {"input": a}, name="read")
    page.run_after("read", "step")
    assert float(vg.ClientSession(page).run("read", targets=["step"])) == 2
