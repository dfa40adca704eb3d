# SPDX-License-Identifier: Apache-2.0
"""`voxgrad sweep`: tables for people, rows as CSV and JSON, and what is kept when it is stopped."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from examples.make_pages import FOLDER
from voxgrad.cli import main
from voxgrad.graph.sweep import Sweep

PAGE = str(FOLDER / "conv3d_backprop_input.vox.json")
Captured = pytest.CaptureFixture[str]


def test_rows_are_printed_and_written(tmp_path: Path, capsys: Captured) -> None:
    before = Path(PAGE).read_bytes()
    file = tmp_path / "rows.csv"
    assert main(["sweep", PAGE, "--set", "conv.padding=SAME,VALID", "--fetch", "conv", "--csv", str(file)]) == 0
    head, same, valid = capsys.readouterr().out.splitlines()
    assert head.split() == ["conv.padding", "conv.output", "time"] and same.split()[:2] == ["1", "SAME"]
    assert "2856 .. 5036 .. 7344" in valid and valid.split()[:2] == ["2", "VALID"]
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["conv.padding"] for row in rows] == ["SAME", "VALID"]
    assert rows[1]["conv.output min"] == "2856.0" and float(rows[1]["seconds"]) > 0 and rows[1]["problem"] == ""
    assert Path(PAGE).read_bytes() == before


def test_rows_as_json_with_repeats_and_faults(capsys: Captured) -> None:
    given = ["--set", "conv.strides={1,1,1,1,1},{1,0,1,1,1}", "--fetch", "conv", "--repeat", "2", "--json"]
    assert main(["sweep", PAGE, *given]) == 0
    found = json.loads(capsys.readouterr().out)
    good, bad = found["rows"]
    assert found["points"] == 2 and len(good["seconds"]) == 2 and good["first_seconds"] > 0
    assert bad["faults"][0]["code"] == "VG006" and bad["results"] == {}


def test_what_is_refused_has_run_nothing(capsys: Captured) -> None:
    wrong = {
        "at most 10,000 points; got 100,000,000": ["--set", "a.b=range(10000)", "--set", "a.c=range(10000)"],
        "be BLOCK.NAME=VALUES": ["--set", "conv.padding"],
        "name each thing once": ["--set", "conv.padding=SAME", "--set", "conv.padding=VALID"],
        "be of cpu, cuda": ["--engine", "cpu,abacus"],
        "name something that varies": [],
    }
    for words, given in wrong.items():
        assert main(["sweep", PAGE, *given]) == 1
        printed = capsys.readouterr()
        assert words in printed.err and printed.out == ""
    assert main(["sweep", PAGE, "--count", "--set", "conv.padding=SAME,VALID", "--semantics", "documented,tf_cpu"]) == 0
    assert capsys.readouterr().out == "4\n"


def test_ctrl_c_keeps_the_rows_that_are_done(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Sweep.rows

    def two(*given: object) -> object:
        for index, row in enumerate(rows(*given)):  # type: ignore[arg-type]
            if index == 2:
                raise KeyboardInterrupt
            yield row

    monkeypatch.setattr(Sweep, "rows", two)
    file = tmp_path / "rows.csv"
    given = ["--set", "conv.padding=SAME,VALID", "--semantics", "documented,tf_cpu", "--csv", str(file), "--json"]
    assert main(["sweep", PAGE, *given]) == 130
    printed = capsys.readouterr()
    assert "2 of 4 points are done" in printed.err
    assert len(json.loads(printed.out)["rows"]) == 2 and len(file.read_text().splitlines()) == 3
