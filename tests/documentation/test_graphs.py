# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide run, one after the other, and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "graphs.md"


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(compile(code, str(GUIDE), "exec"), names)
    printed = capsys.readouterr().out
    assert "float32 (N, floor(D/2), floor(H/2), floor(W/2), 2)" in printed
    assert "VG003 Conv3D: conv.data_format must be 'NDHWC' or 'NCDHW'; got 'NHWC'." in printed
    assert "Set data_format to NDHWC" in printed and "conv: cached (nothing changed since run 1)" in printed
    slope, offset = (value.item() for value in names["trainer"].run([names["slope"], names["offset"]]))
    assert (slope, offset) == (pytest.approx(2, abs=1e-3), pytest.approx(1, abs=1e-3))
    assert "another/pool" in names["page"] and names["page"].problems() == []
