# SPDX-License-Identifier: Apache-2.0
"""`voxgrad apply --chunks`."""

import contextlib
import io
import json
import subprocess
from pathlib import Path

import numpy as np

import voxgrad as vg
from voxgrad.cli.main import main

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
TEXT = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "SAME"]


def voxgrad(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, without the start of a process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def test_apply_in_chunks(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 9, 8, 7, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = ["--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
    done = voxgrad("apply", "MaxPool3D", *files, *TEXT, "--chunks", "2,2,3", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "y.npy"), vg.raw_ops.MaxPool3D(input=x, **POOL))
    wrong = voxgrad("apply", "MaxPool3D", *files, *TEXT, "--chunks", "3,3,3")
    assert wrong.returncode != 0
    assert "VG051" in wrong.stderr


def test_a_plan_is_shown_without_running(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 64, 64, 64, 1), np.float32))
    files = ["--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
    told = voxgrad("apply", "AvgPool3D", *files, *TEXT, "--chunks", "16,16,8", "--plan")
    assert told.returncode == 0, told.stderr
    assert "chunks:   16 of 16 x 16 x 8" in told.stdout
    assert "reads:    1 MiB (+0.0% for the borders of chunks)" in told.stdout
    assert not (tmp_path / "y.npy").exists()
    advised = voxgrad("apply", "AvgPool3D", *files, *TEXT, "--memory", "151MiB", "--plan")
    assert "--chunks" in advised.stdout, advised.stderr
    refused = voxgrad("apply", "AvgPool3D", *files, *TEXT, "--memory", "10MiB", "--plan")
    assert "VG020" in refused.stderr


def a_page(folder: Path) -> Path:
    page = vg.Page("edges")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="w")
    y = vg.ops.Relu(page, vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME"), name="y")
    page.expose({"features": y, "mean": vg.ops.Mean(page, y, [0, 1, 2, 3, 4], name="mean")})
    page.save(folder / "edges.vox.json")
    return folder / "edges.vox.json"


def test_a_page_over_a_volume(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, w = random.integers(-4, 5, (1, 9, 8, 7, 1)), random.integers(-2, 3, (3, 3, 3, 1, 2))
    np.save(tmp_path / "x.npy", x.astype(np.int16))
    np.save(tmp_path / "w.npy", w.astype(np.float32))
    page = a_page(tmp_path)
    given = ["run", str(page), "--volume", f"x={tmp_path / 'x.npy'}", "--feed", f"w={tmp_path / 'w.npy'}"]
    done = voxgrad(*given, "--output", f"features={tmp_path / 'y.npy'}", "--fetch", "mean", "--chunks", "4,4,4",
                   "--workers", "1", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    y, mean = vg.ClientSession(vg.Page.load(page)).run(["y", "mean"], feeds={"x": x.astype(np.float32), "w": w})
    assert np.array_equal(np.load(tmp_path / "y.npy"), y)
    told = json.loads(done.stdout)["outputs"]["mean.output"]
    assert np.isclose(told["values"][0], mean, rtol=1e-6)
    planned = voxgrad(*given, "--fetch", "features", "--chunks", "4,4,4", "--plan")
    assert "chunks:   12 of 4 x 4 x 4" in planned.stdout, planned.stderr
    missing = voxgrad(*given, "--fetch", "features")
    assert "--output" in missing.stderr
