# SPDX-License-Identifier: Apache-2.0
"""`voxgrad apply --chunks`."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import voxgrad as vg

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
TEXT = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "SAME"]


def voxgrad(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "voxgrad", *arguments], capture_output=True, text=True)


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
