# SPDX-License-Identifier: Apache-2.0
"""The example of the guide to displays runs, and its picture has the numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "displays.md"


def test_the_guide_runs() -> None:
    names: dict[str, Any] = {}
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(compile(code, str(GUIDE), "exec"), names)
    picture = names["session"]._repr_svg_()
    assert "step[0]" in picture and "step[1]" in picture and "mm" in picture
    assert names["page"].problems() == []
