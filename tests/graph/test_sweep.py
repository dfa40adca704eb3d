# SPDX-License-Identifier: Apache-2.0
"""Sweeps: the points of variations, a row for each, and what is refused before any of them runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.errors import CancelledError, VoxgradError
from voxgrad.formats.text import split_values
from voxgrad.graph.measure import Times, Work
from voxgrad.graph.sweep import Sweep


@pytest.fixture
def page() -> vg.Page:
    """A pool over 64 numbers, halved."""
    made = vg.Page("pooling")
    x = vg.ops.Const(made, np.arange(1, 65, dtype=np.float32).reshape(1, 4, 4, 4, 1), name="x")
    y = vg.ops.MaxPool3D(made, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", name="pool")
    half = made.add("Mul", {"x": y, "y": np.float32(0.5)}, name="half")
    total = made.add("Sum", {"input": half, "axis": np.arange(5)}, name="sum")
    made.expose({"sum": total.output(0), "half": half.output(0)})
    return made


def told(error: pytest.ExceptionInfo[VoxgradError]) -> list[str]:
    return [f"{fault.code} {fault.argument}" for fault in error.value.faults]


def test_every_combination_has_a_row_with_what_that_page_gives(page: vg.Page) -> None:
    before = page.to_dict()
    factors, paddings = ["0.5", "1", "-2"], ["SAME", "VALID"]
    sweep = Sweep(page, {"half.y": factors, "pool.padding": paddings})
    rows = list(sweep.rows())
    assert len(sweep) == len(rows) == 6
    asked = [(row.point.values["half.y"], row.point.values["pool.padding"]) for row in rows]
    assert asked == list(itertools.product(factors, paddings))
    for row, (factor, _) in zip(rows, asked, strict=True):
        edited = vg.Page.from_dict(before)
        edited.set_value("half", "y", np.float32(factor))
        half = vg.ClientSession(edited).run("half")
        reading = row.results["half.z"]
        assert (reading.low, reading.mean, reading.high) == (half.min(), half.mean(), half.max())
        assert row.results["sum.output"].value == half.sum() and row.times.median is not None and not row.faults
    assert page.to_dict()["blocks"][2] == before["blocks"][2], "the page itself is not changed"


def test_lists_go_side_by_side_when_they_are_zipped(page: vg.Page) -> None:
    varied = {"pool.ksize": ["{1,2,2,2,1}", "{1,4,4,4,1}"], "pool.strides": ["{1,2,2,2,1}", "{1,4,4,4,1}"]}
    rows = list(Sweep(page, varied, zipped=True).rows(Work(("pool",))))
    assert [row.results["pool.output"].shape for row in rows] == [(1, 2, 2, 2, 1), (1, 1, 1, 1, 1)]
    with pytest.raises(VoxgradError) as error:
        Sweep(page, {**varied, "half.y": ["1"]}, zipped=True)
    assert told(error) == ["VG004 variations"]


def test_what_is_wrong_at_a_point_is_in_its_row_and_the_others_go_on(page: vg.Page) -> None:
    rows = list(Sweep(page, {"pool.ksize": ["{1,9,9,9,1}", "{1,2,2,2,1}"], "engine": ["cpu", "abacus"]}).rows())
    assert [[fault.code for fault in row.faults] for row in rows] == [["VG016"], ["VG003"], [], ["VG003"]]
    assert rows[2].results["sum.output"].value == 0.5 * sum((22, 24, 30, 32, 54, 56, 62, 64))


def test_lists_on_inputs_vary(page: vg.Page) -> None:
    rows = list(Sweep(page, {"sum.axis": ["{0,1}", "{1,2,3}", "4"]}).rows(Work(("sum",))))
    assert [row.results["sum.output"].shape for row in rows] == [(2, 2, 1), (1, 1), (1, 2, 2, 2)]
    (row,) = Sweep(page, {"half.y": ["true"]}).rows(Work(("sum",)))
    assert row.faults, "a truth value is no factor"


def test_semantics_vary() -> None:
    made = vg.Page("strided")
    x = vg.ops.Const(made, np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1, 1), name="x")
    attrs = {"ksize": [1, 2, 1, 1, 1], "strides": [1, 4, 1, 1, 1], "padding": "SAME"}
    made.add("MaxPool3D", {"input": x}, attrs, name="y")
    rows = list(Sweep(made, {"semantics": ["documented", "tf_cpu"]}).rows())
    assert [row.results["y.output"].low for row in rows] == [1.0, 2.0]


def test_wrong_names_and_values_are_told_together_before_anything_runs(page: vg.Page) -> None:
    with pytest.raises(VoxgradError) as error:
        Sweep(
            page,
            {"pool.padding": ["NONE", "SAME"], "none.y": ["1"], "pool": ["1"], "semantics": ["mine"], "half.y": ["a"]},
        )
    assert told(error) == ["VG052 padding", "VG050 none.y", "VG050 pool", "VG003 semantics", "VG052 y"]
    for nothing in ({}, {"pool.padding": []}):
        with pytest.raises(VoxgradError):
            Sweep(page, nothing)


def test_a_sweep_of_a_milliard_points_is_refused_before_any_work(page: vg.Page) -> None:
    many = ["{1,2,2,2,1}"] * 1000
    with pytest.raises(VoxgradError, match="at most 10,000 points; got 1,000,000,000"):
        Sweep(page, {"pool.ksize": many, "pool.strides": many, "half.y": many})
    with pytest.raises(VoxgradError, match="count from 0 to"):
        split_values("range(1000000000)")


def test_a_request_to_stop_is_no_fault_of_a_point(page: vg.Page) -> None:
    def stopped(page: vg.Page, engine: str) -> vg.ClientSession:
        session = vg.ClientSession(page, engine)
        session.loop = lambda *given: (_ for _ in ()).throw(CancelledError("stop"))  # type: ignore[method-assign]
        return session

    with pytest.raises(CancelledError):
        list(Sweep(page, {"half.y": ["1"]}).rows(None, stopped))


def test_every_run_that_is_timed_is_cold_and_the_first_stands_apart(page: vg.Page) -> None:
    opened = []

    def open_session(page: vg.Page, engine: str) -> vg.ClientSession:
        opened.append(vg.ClientSession(page, engine))
        return opened[-1]

    (row,) = Sweep(page, {"half.y": ["1"]}).rows(Work(repeats=3), open_session)
    assert len(opened) == 4 and len(row.times.runs) == 3 and row.times.first is not None
    assert {report.state for session in opened for report in session.report} == {"ran"}
    assert (Times.of([9.0, 3.0, 1.0, 2.0]).median, Times.of([9.0, 3.0, 1.0, 2.0]).spread) == (2.0, (1.0, 3.0))
    assert Times.of([4.0]) == Times((4.0,), None)


def test_cycles_begin_anew_at_every_point() -> None:
    made = vg.Page("descent")
    w = made.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="w")
    made.start_with([made.add("Assign", {"ref": w, "value": 1.0}, name="w/initialize")])
    made.add("AssignSub", {"ref": w, "value": 0.25}, name="step")
    rows = list(Sweep(made, {"step.value": ["0.25", "1"]}).rows(Work(("step",), cycles=3)))
    assert [row.results["step.output_ref"].value for row in rows] == [0.25, -2.0]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SAME,VALID", ["SAME", "VALID"]),
        (" {1,2}, [3,4] ,{{1},{2}}", ["{1,2}", "[3,4]", "{{1},{2}}"]),
        ("range(0, 0.4, 0.1)", ["0", "0.1", "0.2", "0.3"]),
        ("range(3)", ["0", "1", "2"]),
        ('"a,b","c}"', ['"a,b"', '"c}"']),
    ],
)
def test_values_stand_between_commas(text: str, values: list[str]) -> None:
    assert split_values(text) == values


@pytest.mark.parametrize("text", ["", "1,", ",1", "{1", "{1]", "]", "1,,2"])
def test_texts_that_are_no_values(text: str) -> None:
    with pytest.raises(VoxgradError):
        split_values(text)
