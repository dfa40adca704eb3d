# SPDX-License-Identifier: Apache-2.0
"""Runs step by step, at a rate and until they are stopped, on the command line and in Python."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main
from voxgrad.errors import VoxgradError
from voxgrad.formats.page_file import load

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """A page that counts its cycles."""
    page = vg.Page("counter")
    count = vg.ops.Variable(page, shape=[], dtype="int32", name="count")
    page.start_with([vg.ops.Assign(page, count, np.int32(0), name="start").block])
    page.expose({"n": vg.ops.AssignAdd(page, count, np.int32(1), name="n")})
    page.save(tmp_path / "counter.vox.json")
    return tmp_path / "counter.vox.json"


def cycles(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith("cycle")]


def typing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_steps_end_when_somebody_says_so(counter: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, more, seen in (
        ("\n\nq\n", [], 3),
        ("", [], 1),
        ("\nr\n", ["--cycles", "5"], 5),
        ("\n", ["--cycles", "2"], 2),
    ):
        typing(monkeypatch, text)
        assert main(["run", str(counter), "--step", *more]) == 0
        printed = capsys.readouterr()
        assert cycles(printed.out) == [f"cycle {number}:" for number in range(1, seen + 1)], text
        assert printed.out.count("n.output_ref") == seen
    assert "Enter for the next" in printed.err


def test_every_cycle_is_shown_and_the_last_saved(counter: Path, tmp_path: Path, capsys: Captured) -> None:
    saved = tmp_path / "out.npz"
    assert main(["run", str(counter), "--cycles", "3", "--every-cycle", "--save", str(saved)]) == 0
    assert len(cycles(capsys.readouterr().out)) == 3
    with np.load(saved) as found:
        assert found["n.output_ref"] == 3
    assert main(["run", str(counter), "--every-cycle", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["faults"][0]["argument"] == "--json"


def test_cycles_start_a_period_apart(counter: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("voxgrad.cli.modes.time.sleep", slept.append)
    assert main(["run", str(counter), "--cycles", "3", "--period", "60", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocks"]["n"]["output_ref"]["values"] == [3]
    assert len(slept) == 2 and all(0 < seconds <= 60 for seconds in slept)
    for bad in ("-1", "inf", "nan"):
        with pytest.raises(SystemExit):
            main(["run", str(counter), "--period", bad])
    with pytest.raises(SystemExit):
        main(["run", str(counter), "--cycles", "0"])


def test_a_run_without_an_end_is_frozen(counter: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the third pause: the last whole cycle is shown. A run with an end is stopped by it."""

    def pauses(before: int) -> Callable[[float], None]:
        left = iter(range(before))

        def pause(_: float) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        return pause

    monkeypatch.setattr("voxgrad.cli.modes.time.sleep", pauses(2))
    assert main(["run", str(counter), "--cycles", "forever", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["blocks"]["n"]["output_ref"]["values"] == [3]
    assert "frozen in cycle 3" in printed.err
    monkeypatch.setattr("voxgrad.cli.modes.time.sleep", pauses(0))
    assert main(["run", str(counter), "--cycles", "5", "--period", "1"]) == 130


def test_a_loop_in_python_is_frozen_and_goes_on(counter: Path) -> None:
    session = vg.ClientSession(load(counter))
    assert session.loop(None, "n", until=lambda count: count == 7) == 7
    started = time.monotonic()
    assert session.loop(3, "n", period=0.05) == 10
    assert time.monotonic() - started >= 0.1
    seen: list[int] = []
    threading.Timer(0.3, session.cancel).start()
    with pytest.raises(VoxgradError):
        session.loop(None, "n", on_cycle=lambda cycle, count: seen.append(int(count)), period=30.0)
    assert seen == [11]
    assert session.run("n") == 12
