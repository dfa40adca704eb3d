# SPDX-License-Identifier: Apache-2.0
"""The examples of the guide to `voxgrad.torch` run, one after the other, and print what the guide says."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="voxgrad.torch needs torch")
pytestmark = pytest.mark.parity

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "torch.md"


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    text = GUIDE.read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, str(GUIDE), "exec"), names)
        said = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
        if "report" in code:
            table = text.split(code)[1].removeprefix("```\n\n").split("\n\n`from_torch`")[0]
            said += textwrap.dedent(table).splitlines()
        assert capsys.readouterr().out.splitlines() == said
