# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide to `vg.nn` run, one after the other, and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "nn.md"


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for code in blocks:
        exec(compile(code, str(GUIDE), "exec"), names)
    said = re.findall(r"^print\(.*\)\s+# (.*)$", "".join(blocks), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said and len(said) == 4
