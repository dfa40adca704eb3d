# SPDX-License-Identifier: Apache-2.0
"""`voxgrad run --events`: a file that TensorBoard reads."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main
from voxgrad.formats.events import EventFile
from voxgrad.kernels.records import records
from voxgrad.kernels.wire import parse


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A variable that grows by 1.5 a cycle, and summaries of it, of which the page names none."""
    page = vg.Page("train")
    v = vg.ops.Variable(page, shape=[], dtype="float32", name="v")
    page.start_with([vg.ops.Assign(page, v, np.float32(0)).block])
    grown = vg.ops.AssignAdd(page, v, np.float32(1.5), name="grown")
    scalar = vg.ops.ScalarSummary(page, "loss", grown)
    vg.ops.MergeSummary(page, [scalar, vg.ops.HistogramSummary(page, "spread", [1.0, 2.0])])
    page.expose({"out": grown})
    page.save(tmp_path / "train.vox.json")
    return tmp_path / "train.vox.json"


def steps(file: Path) -> list[tuple[int, list[str], list[float]]]:
    """Step, tags and simple values of every event with a summary."""
    found = []
    first, *events = [parse(record, "event") for _, record in records(file.read_bytes())]
    assert first.text(3) == "brain.Event:2" and len(first.chunk(1)) == 8
    for event in events:
        values = list(event.message(5).messages(1))
        numbers = [struct.unpack("<f", one.chunk(2))[0] for one in values if one.chunk(2)]
        found.append((event.number(2), [one.text(1) for one in values], numbers))
    return found


def test_every_cycle_is_an_event(training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(training), "--cycles", "3", "--events", str(tmp_path / "runs" / "a")]) == 0
    (file,) = (tmp_path / "runs" / "a").iterdir()
    assert "tfevents" in file.name
    assert steps(file) == [(at, ["loss", "spread"], [1.5 * (at + 1)]) for at in range(3)]
    assert "4.5" in capsys.readouterr().out
    # A second run begins a file of its own, also with results of every cycle, and a report of the same run.
    more = ["--cycles", "2", "--every-cycle", "--report", str(tmp_path / "r.html")]
    assert main(["run", str(training), "--events", str(tmp_path / "runs" / "a"), *more]) == 0
    assert [
        len(steps(one)) for one in sorted((tmp_path / "runs" / "a").iterdir(), key=lambda one: one.stat().st_ctime_ns)
    ] == [3, 2]
    assert "MergeSummary" in (tmp_path / "r.html").read_text()


def test_what_cannot_be_written_is_refused(training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = vg.Page("plain")
    page.expose({"y": vg.ops.Const(page, 1.0)})
    page.save(tmp_path / "plain.vox.json")
    assert main(["run", str(tmp_path / "plain.vox.json"), "--events", str(tmp_path / "none")]) != 0
    assert "--events must be of a page with summaries; got none" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert main(["run", str(training), "--events", "x", "--volume", "x=y.npy"]) != 0
    assert "--events must be left out of a run over volumes" in capsys.readouterr().err
    assert main(["run", str(training), "--events", str(training / "below")]) != 0
    assert "VG05" in capsys.readouterr().err


def test_files_of_one_second_do_not_meet(tmp_path: Path) -> None:
    with EventFile(tmp_path) as one, EventFile(tmp_path) as other:
        one.add(b"", 1)
        other.add(b"", 2)
    assert [[step for step, _, _ in steps(file)] for file in (one.path, other.path)] == [[1], [2]]
