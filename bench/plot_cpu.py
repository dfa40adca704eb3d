# SPDX-License-Identifier: Apache-2.0
"""Draws bench/results/cpu-list.json as docs/cpu.svg: how many times faster ours is than the best peer, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.bars import Bar, draw

ROOT = Path(__file__).parent.parent


def bars_of(results: dict[str, Any]) -> list[Bar]:
    """The rows that had a peer."""
    colours = {True: "#b8622a", False: "#2a78b8"}
    return [
        Bar(f"{row['op']} {row['row']}", row["ratio"], colours[row["op"].startswith("Conv")])
        for row in results["rows"]
        if row.get("ratio")
    ]


if __name__ == "__main__":
    made = json.loads((ROOT / "bench/results/cpu-list.json").read_text())
    about = made["machine"]
    title = f"{about['cpu']}, {about['threads']} threads, {about['isa']}, {about['date']}: "
    title += "times faster than the best of TensorFlow, torch and JAX"
    (ROOT / "docs/cpu.svg").write_text(draw(title, bars_of(made)))
