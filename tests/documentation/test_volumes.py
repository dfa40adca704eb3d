# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide to volumes run as pasted, one after the other, Python and commands alike."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from voxgrad.cli import main

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "volumes.md"


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for library in ("zarr", "nibabel", "dask.array"):
        pytest.importorskip(library, reason="an optional extra")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    ran = {"": 0, "python": 0}
    for language, code in re.findall(r"^```(\w*)\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(code, str(GUIDE), "exec"), names)
        elif language == "":
            for line in code.replace("\\\n", " ").splitlines():
                program, *arguments = shlex.split(line)
                assert program == "voxgrad"
                assert main(arguments) == 0, line
        if language in ran:
            ran[language] += 1
    assert ran == {"": 3, "python": 11}
    printed = capsys.readouterr().out
    assert "y.output: features.zarr" in printed.splitlines()
    assert "((0, 1), (0, 9), (15, 20), (7, 16), (0, 1))" in printed
    assert "((0, 1), (0, 8), (16, 20), (8, 16), (0, 1))" in printed
    scan = repr(names["scan"])
    assert scan.startswith("<Store scan.nii.gz (NIfTI): float32 [1, 24, 20, 16, 1], 30.0 KiB, axes xyz")
    names["np"].testing.assert_array_equal(names["da"].from_zarr("lazy.zarr"), names["da"].from_zarr("half.zarr"))
