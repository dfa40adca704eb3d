# SPDX-License-Identifier: Apache-2.0
"""docs/blocks.md shows what the template is, and its example of a library runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import voxgrad as vg

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "blocks.md").read_text()


def test_the_library_in_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"vg": vg}
    _, _, part = GUIDE.partition("## Pages in a library")
    for code in re.findall(r"```python\n(.*?)```", part, re.DOTALL):
        exec(compile(code, "docs/blocks.md", "exec"), names)
    printed = "".join(capsys.readouterr().out.split())
    assert "[[2.,4.]]" in printed and "[[2.,2.]]" in printed and printed.endswith("[[-2.-4.]]")


def test_the_guide_shows_the_template() -> None:
    """Every statement of the declaration in the guide is in the template, but for notes and examples."""
    template = (ROOT / "examples" / "block_package" / "src" / "boxblur" / "__init__.py").read_text()
    project = (ROOT / "examples" / "block_package" / "pyproject.toml").read_text()
    declared = next(code for code in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "BOX_BLUR = Op(" in code)
    for line in declared.splitlines():
        if not line.startswith(("from", "def", "    laws")):
            assert line in template, line
    toml = next(iter(re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)))
    for line in toml.splitlines():
        assert line in project, line
