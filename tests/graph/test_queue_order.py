# SPDX-License-Identifier: Apache-2.0
"""Queues are filled before they are read, in one run, whatever the order of fetches and targets."""

from __future__ import annotations

import pytest

import voxgrad as vg


@pytest.mark.parametrize("first", ["take", "put"])
def test_two_queues_in_a_row(first: str) -> None:
    page = vg.Page("pipeline")
    queues = [page.add("FIFOQueueV2", attrs={"component_types": ["float32"]}, name=f"q{at}") for at in (1, 2)]
    types = {"component_types": ["float32"]}
    inner = page.add("QueueDequeueV2", {"handle": queues[0]}, types, name="inner")
    twice = page.add("Add", {"x": inner.output(0), "y": inner.output(0)}, name="twice")
    page.add("QueueEnqueueV2", {"handle": queues[1], "components": [twice]}, name="put2")
    page.add("QueueEnqueueV2", {"handle": queues[0], "components": [3.0]}, name="put1")
    page.add("QueueDequeueV2", {"handle": queues[1]}, types, name="take")
    session = vg.ClientSession(page)
    targets = ["put2", "put1"] if first == "take" else ["put1", "put2"]
    assert [float(session.run("take", targets=targets)) for _ in range(2)] == [6, 6]
