# SPDX-License-Identifier: Apache-2.0
"""Draws bench/results/gpu.json as docs/gpu.svg: how many times faster ours is than the best peer, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.bars import Bar, draw

ROOT = Path(__file__).parent.parent
COLOURS = {"GB/s": "#2a78b8", "TFLOP/s": "#b8622a"}


def bars_of(results: dict[str, Any]) -> list[Bar]:
    """The rows that ours and a peer ran."""
    return [
        Bar(
            f"{row['op']} {row['dtype']} {row['shape']}",
            min(row["peers"].values()) / min(row["ours"].values()),
            COLOURS[row["unit"]],
        )
        for row in results["rows"]
        if row["ours"] and row["peers"]
    ]


if __name__ == "__main__":
    made = json.loads((ROOT / "bench/results/gpu.json").read_text())
    days = sorted({row.get("run", made["date"])[:10] for row in made["rows"]})
    title = f"{made['device']}, torch {made['torch']}, {' and '.join(days)}: "
    title += "times faster than the best of cuDNN and XLA, either layout"
    (ROOT / "docs/gpu.svg").write_text(draw(title, bars_of(made)))
