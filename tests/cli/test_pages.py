# SPDX-License-Identifier: Apache-2.0
"""The commands that work on pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from examples.make_pages import FOLDER
from voxgrad.cli import main
from voxgrad.cli.progress import ProgressLine
from voxgrad.formats.page_file import load
from voxgrad.graph.report import Progress

OLD = Path(__file__).parents[1] / "formats" / "enuspace"
CONV = str(FOLDER / "conv3d_backprop_input.vox.json")
MISTAKE = str(FOLDER / "max_pool3d_grad_grad_mistake.vox.json")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def page(tmp_path: Path) -> str:
    """A page with a placeholder, odd numbers and a text."""
    made = vg.Page("p")
    x = made.add("Placeholder", attrs={"dtype": "float32", "shape": ["N"]}, name="x")
    made.add("Log", {"x": x}, name="log")
    made.add("Const", attrs={"value": np.array([b"a", b"\xff"], dtype=object), "dtype": "string"}, name="s")
    made.add("Complex", {"real": x, "imag": x}, name="c")
    made.add("Less", {"x": x, "y": 1.0}, name="less")
    made.save(tmp_path / "p.vox.json")
    return str(tmp_path / "p.vox.json")


def test_run_shows_results(capsys: Captured) -> None:
    assert main(["run", CONV]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("conv.output: float32 [2,1,1,1,2]\n  [0][0][0][0][:] 2856  2992\n")
    assert "dx (grad.output): float32 [2,2,2,2,2]" in printed


def test_run_as_json(capsys: Captured) -> None:
    assert main(["run", CONV, "--json"]) == 0
    blocks = json.loads(capsys.readouterr().out)["blocks"]
    assert set(blocks) == {"volume", "filter", "conv", "input_sizes", "grad"}
    assert blocks["conv"]["output"] == {
        "dtype": "float32",
        "shape": [2, 1, 1, 1, 2],
        "values": [2856, 2992, 6952, 7344],
    }


def test_run_feeds_and_fetches(page: str, tmp_path: Path, capsys: Captured) -> None:
    np.save(tmp_path / "x.npy", np.array([0.0, 1.0, -1.0]))
    assert main(["run", page, "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "log", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "blocks": {"log": {"y": {"dtype": "float32", "shape": [3], "values": ["-inf", 0.0, "nan"]}}}
    }
    assert main(["run", page, "--feed", "x={0.5f,2}", "--json"]) == 0
    blocks = json.loads(capsys.readouterr().out)["blocks"]
    assert blocks["s"]["output"] == {"dtype": "string", "shape": [2], "values": ["a", "\\xff"]}
    assert blocks["c"]["out"]["values"] == [[0.5, 0.5], [2, 2]]
    assert blocks["less"]["z"] == {"dtype": "bool", "shape": [2], "values": [True, False]}


def test_run_saves(tmp_path: Path) -> None:
    target = tmp_path / "out.npz"
    assert main(["run", CONV, "--save", str(target)]) == 0
    with np.load(target) as results:
        assert results["conv.output"].ravel().tolist() == [2856, 2992, 6952, 7344]


def test_only_the_last_cycle_is_shown(tmp_path: Path, capsys: Captured) -> None:
    """A branch that is not taken any more has no value, and targets run beside a fetch."""
    made = vg.Page("gate")
    count = made.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="count")
    made.start_with([made.add("Assign", {"ref": count, "value": 0.0}, name="count/initialize")])
    step = made.add("AssignAdd", {"ref": count, "value": 1.0}, name="step")
    early = made.add("Less", {"x": step, "y": 2.5}, name="early")
    gate = made.add("Switch", {"data": step, "pred": early}, name="gate")
    made.add("Neg", {"x": gate.output("output_true")}, name="taken")
    made.execute(["taken"])
    made.save(tmp_path / "gate.vox.json")
    for cycles, shown in ((2, True), (3, False)):
        assert main(["run", str(tmp_path / "gate.vox.json"), "--cycles", str(cycles), "--json"]) == 0
        blocks = json.loads(capsys.readouterr().out)["blocks"]
        assert ("taken" in blocks) is shown
        assert blocks["step"]["output_ref"]["values"] == [cycles]
    assert main(["run", str(tmp_path / "gate.vox.json"), "--cycles", "4", "--fetch", "count", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocks"]["count"]["ref"]["values"] == [4]


def test_run_shows_what_an_inner_page_gives(tmp_path: Path, capsys: Captured) -> None:
    inner, outer = vg.Page("inner"), vg.Page("outer")
    p = inner.add("Placeholder", attrs={"dtype": "float32", "shape": []}, name="p")
    inner.expose({"r": inner.add("Neg", {"x": p}, name="n")}, ["p"])
    outer.define("inner", inner)
    outer.expose({"out": outer.use("inner", {"p": 2.0}, name="used")})
    outer.save(tmp_path / "outer.vox.json")
    assert main(["run", str(tmp_path / "outer.vox.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocks"]["used"]["r"]["values"] == [-2]


def test_run_cycles_and_why(capsys: Captured) -> None:
    descent = str(FOLDER / "gradient_descent.vox.json")
    assert main(["run", descent, "--cycles", "20", "--fetch", "update", "--why"]) == 0
    printed = capsys.readouterr().out
    assert "1.0003" in printed
    assert "square: " in printed


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (["run", MISTAKE], 1, "VG012"),
        (["run", CONV, "--fetch", "nothing"], 1, "nothing"),
        (["run", CONV, "--feed", "volume"], 1, "NAME=FILE"),
        (["run", CONV, "--feed", "volume={1,2"], 1, "VG052"),
        (["run", CONV, "--feed", "volume=none.npy"], 3, "VG051"),
        (["run", "none.vox.json"], 3, "VG051"),
        (["check", MISTAKE + "x"], 3, "VG051"),
        (["draw", CONV, "-o", "page.gif"], 3, ".svg or .png"),
        (["export", MISTAKE], 1, "VG012"),
        (["import", "none.svg"], 3, "VG051"),
        (["export", CONV, "-o", "a\0b"], 3, "VG051"),
        (["export", CONV, "-o", "x" * 300], 3, "VG051"),
        (["run", CONV, "--save", "a\0b.npz"], 3, "VG051"),
        (["run", CONV, "--save", "x" * 300 + ".npz"], 3, "VG051"),
    ],
)
def test_errors_have_codes(line: list[str], code: int, says: str, capsys: Captured) -> None:
    assert main(line) == code
    assert says in capsys.readouterr().err


def test_a_placeholder_without_a_feed_is_named(page: str, capsys: Captured) -> None:
    assert main(["run", page]) == 1
    assert "x" in capsys.readouterr().err


def test_errors_as_json(capsys: Captured) -> None:
    assert main(["run", MISTAKE, "--json"]) == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["code"] == "VG012"


def test_check(capsys: Captured, tmp_path: Path) -> None:
    assert main(["check", CONV, "--shapes"]) == 0
    printed = capsys.readouterr().out
    assert "grad.output: float32 [2,2,2,2,2]" in printed
    assert "no problems" in printed
    assert main(["check", MISTAKE]) == 1
    assert "fix: Make grad like orig_input" in capsys.readouterr().out
    assert main(["check", MISTAKE, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"][0]["pin"] == "grad"
    assert main(["check", MISTAKE, "--fix", "-o", str(tmp_path / "fixed.vox.json")]) == 0
    assert load(tmp_path / "fixed.vox.json").problems() == []
    assert load(MISTAKE).problems()


def test_import_run_and_report(tmp_path: Path, capsys: Captured) -> None:
    new = tmp_path / "new.vox.json"
    assert main(["import", str(OLD / "one_hot.svg"), "-o", str(new), "--strict"]) == 0
    assert "device /gpu:0" in capsys.readouterr().err
    assert main(["run", str(new), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["blocks"]["ID_1eWhmG40"]["output"]
    assert result["shape"] == [100, 10]
    assert result["values"][:11] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


def test_old_pages_run_at_once(capsys: Captured) -> None:
    assert main(["run", str(OLD / "basic.svg")]) == 0
    assert "19" in capsys.readouterr().out


def test_import_of_a_project(tmp_path: Path, capsys: Captured) -> None:
    for name in ("basic", "basic_v4"):
        (tmp_path / f"{name}.svg").write_bytes((OLD / f"{name}.svg").read_bytes())
    (tmp_path / "p.enup").write_text('<p><page file="basic.svg"/><page file="basic_v4.svg"/></p>')
    assert main(["import", str(tmp_path / "p.enup"), "-o", str(tmp_path / "out"), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"p.enup", "basic.vox.json", "basic_v4.vox.json"}
    assert (tmp_path / "out" / "basic_v4.vox.json").is_file()
    assert main(["import", str(tmp_path), "--strict"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"runs: {tmp_path.name}: 2 pages; run: basic, basic_v4"
    assert load(tmp_path / "basic.vox.json").problems() == []


def test_draw_and_open_again(tmp_path: Path, capsys: Captured) -> None:
    for name in ("page.svg", "page.png"):
        assert main(["draw", CONV, "-o", str(tmp_path / name), "--theme", "dark"]) == 0
        assert main(["run", str(tmp_path / name), "--fetch", "conv"]) == 0
        assert "2856" in capsys.readouterr().out
    assert main(["draw", CONV]) == 0
    assert capsys.readouterr().out.startswith("<svg")


def test_export(tmp_path: Path, capsys: Captured) -> None:
    assert main(["export", CONV]) == 0
    assert "import voxgrad as vg" in capsys.readouterr().out
    script = tmp_path / "page.py"
    assert main(["export", CONV, "-o", str(script)]) == 0
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "450520" in done.stdout


def test_a_script_may_have_any_name(tmp_path: Path) -> None:
    target = tmp_path / "\udcff.py"  # as Python has bytes of a name that are no UTF-8
    assert main(["export", CONV, "-o", str(target)]) == 0
    compile(target.read_text(), "script", "exec")


def test_missing_blocks_are_listed(capsys: Captured) -> None:
    assert main(["ops", "--missing"]) == 0
    assert "of enuSpace's 486 blocks are here" in capsys.readouterr().out


def test_progress_is_for_terminals(capsys: Captured) -> None:
    event = Progress("pool", "started", 0, 2)
    with ProgressLine(1) as quiet:
        quiet(event)
    assert capsys.readouterr().err == ""
    with ProgressLine(3, active=True) as line:
        line._rich = None
        line(event)
        assert "cycle 1/3, block 1/2: pool" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check", "import", "export", "draw"])
def test_help_teaches(command: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert f"voxgrad {command}" in printed
    assert "exit codes:" in printed


HOSTILE = "\x1b]0;owned\x07\x1b[2J\rok\b\x9b31m\x7f\u202etxt"


@pytest.mark.parametrize("op", ["Print", "Assert", "CheckNumerics", "ReadFile", "Const"])
def test_a_page_cannot_steer_the_terminal(op: str, tmp_path: Path) -> None:
    made = vg.Page("p")
    text = np.array([HOSTILE.encode()], dtype=object)
    if op == "Print":
        made.add("Print", {"input": 1.0, "data": [text]}, {"message": f"{HOSTILE}line\n\tnext"}, name="block")
    elif op == "Assert":
        made.add("Assert", {"condition": False, "data": [text]}, name="block")
    elif op == "CheckNumerics":
        made.add("CheckNumerics", {"tensor": np.float32(np.nan)}, {"message": HOSTILE}, name="block")
    elif op == "ReadFile":
        made.add("ReadFile", {"filename": text.reshape(())}, name="block")
    else:
        made.add("Const", attrs={"value": text, "dtype": "string"}, name="block")
    made.execute(["block"])
    made.save(tmp_path / "p.vox.json")
    done = subprocess.run([sys.executable, "-m", "voxgrad", "run", str(tmp_path / "p.vox.json")], capture_output=True)
    told = (done.stdout + done.stderr).decode()
    assert "owned" in told or op == "CheckNumerics"
    assert not [one for one in told if not one.isprintable() and one not in "\n\t"]
    assert "line\n\tnext" in told or op != "Print"


def test_edits_of_page_files(tmp_path: Path, capsys: Captured) -> None:
    new = tmp_path / "new.vox.json"
    assert main(["edit", CONV, '{"do": "fold", "blocks": ["grad"], "name": "layer"}', "-o", str(new)]) == 0
    edits = tmp_path / "edits.json"
    edits.write_text(
        '[{"do": "rename", "block": "grad", "name": "기울기"}, {"do": "move", "block": "기울기", "position": [1, 2]}]'
    )
    assert main(["edit", str(new), "--inside", "layer", f"@{edits}"]) == 0
    inner = load(new).pages["layer"]
    assert inner["기울기"].position == (1.0, 2.0)
    for wrong in ('{"do": "rename", "block": "x"}', '{"do": ', "3", '{"do": "nothing"}'):
        assert main(["edit", str(new), wrong]) != 0
    assert main(["edit", str(new), "--inside", "none", "{}"]) == 1
    assert load(new).pages["layer"].to_dict() == inner.to_dict()
    assert main(["edit", str(OLD / "one_hot.svg"), '{"do": "semantics", "value": "tf_cpu"}']) == 3
    assert "-o FILE" in capsys.readouterr().err


def test_trace_tells_windows_and_winners(tmp_path: Path, capsys: Captured) -> None:
    made = vg.Page("pool")
    x = vg.ops.Placeholder(made, dtype="float32", shape=[1, 4, 2, 2, 1], name="x")
    rectified = vg.ops.Relu(made, x, name="relu")
    vg.ops.MaxPool3D(made, rectified, ksize=[1, 3, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME", name="pool")
    made.save(tmp_path / "p.vox.json")
    value = np.array([1, 7, 7, 2, 0, 7, 3, 7, 0, 0, 0, 9, 8, 0, 0, 0], np.float32).reshape(1, 4, 2, 2, 1)
    np.save(tmp_path / "x.npy", value)
    trace, fed = ["trace", str(tmp_path / "p.vox.json"), "pool"], ["--feed", f"x={tmp_path / 'x.npy'}"]

    assert main([*trace, "0,1,0,0,0", "--depth", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pool.input reads [0:1,2:4,0:2,0:2,0:1], 8 cells beside padding, of relu.activations",
        "  relu.features reads [0:1,2:4,0:2,0:2,0:1], 8 cells of x.output",
    ]
    assert main([*trace, "0,0,0,0,0", *fed]) == 0
    assert capsys.readouterr().out == (
        "pool.input reads [0:1,0:3,0:2,0:2,0:1], 12 cells of relu.activations: the maximum is at [0,2,1,1,0]\n"
    )
    assert main([*trace, "0,1,0,0,0", "--json", *fed]) == 0
    (window,) = json.loads(capsys.readouterr().out)["windows"]
    (same,) = made.trace("pool", [0, 1, 0, 0, 0], values={"relu.activations": value}).windows
    assert (window["winner"], window["padding"]["after"]) == ([0, 2, 1, 1, 0], [0, 1, 0, 0, 0])
    assert (same.winner, same.padding.after) == (window["winner"], window["padding"]["after"])
    assert main(["trace", trace[1], "x", "0,2,0,0,0", "--forward", "--depth", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "relu.activations [0:1,2:3,0:1,0:1,0:1], 1 element, through relu.features",
        "  pool.output [0:1,0:2,0:1,0:1,0:1], 2 elements, through pool.input",
    ]
    assert main(["trace", trace[1], "x", "0,2,0,0,0", "--forward", "--json"]) == 0
    assert [one["output"] for one in json.loads(capsys.readouterr().out)] == ["relu.activations"]
    assert main([*trace, "0,1,0,0,two"]) == 1
    assert main([*trace, "0,2,0,0,0"]) == 1
    told = capsys.readouterr().err
    assert "VG052 trace: INDEX must be numbers" in told and "be read at an index below [1,2,1,1,1]" in told


def test_what_cannot_be_viewed_is_said_before_a_studio_starts(tmp_path: Path, capsys: Captured) -> None:
    assert main(["view", str(tmp_path / "none.nii")]) == 3
    assert "must exist" in capsys.readouterr().err
    assert main(["view", "https://example.org/scan.zarr"]) == 3
    assert "voxgrad convert https://example.org/scan.zarr" in capsys.readouterr().err
