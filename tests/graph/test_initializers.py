# SPDX-License-Identifier: Apache-2.0
"""Blocks that a session executes once, before its first run."""

from __future__ import annotations

from typing import Any

import voxgrad as vg


def counting_page() -> vg.Page:
    page = vg.Page("count")
    count = page.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="count")
    first = page.add("Assign", {"ref": count, "value": 10.0}, name="count/initialize")
    page.add("AssignAdd", {"ref": count, "value": 1.0}, name="step")
    page.start_with([first])
    return page


def test_initializers_run_once() -> None:
    session = vg.ClientSession(counting_page())
    assert [float(session.run("step")) for _ in range(3)] == [11, 12, 13]
    session.forget()
    assert float(session.run("step")) == 11


def test_initializers_come_back_from_data_and_follow_edits() -> None:
    page = vg.Page.from_dict(counting_page().to_dict())
    assert [block.name for block in page.initializers] == ["count/initialize"]
    page.remove("count/initialize")
    assert list(page.initializers) == []


def test_values_are_shown_as_they_were_when_a_block_ran() -> None:
    seen: dict[str, float] = {}

    def show(name: str, values: list[Any]) -> None:
        if values[0] is not None:
            seen[name] = float(values[0])

    session = vg.ClientSession(counting_page(), on_values=show)
    session.run(targets=["step"])
    assert seen["count"] == 10
    assert seen["step"] == 11
