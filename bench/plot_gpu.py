# SPDX-License-Identifier: Apache-2.0
"""Draws bench/results/gpu.json as docs/gpu.svg: for every row, how many times faster ours is than the best peer."""

from __future__ import annotations

import json
import math
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINE, LEFT, WIDTH, DECADE = 14, 330, 760, 250
COLOURS = {"GB/s": "#2a78b8", "TFLOP/s": "#b8622a"}


def draw(results: dict) -> str:
    """One bar per row on a logarithmic axis; the line at 1 is the best peer."""
    rows = [row for row in results["rows"] if row["ours"] and row["peers"]]
    height = LINE * (len(rows) + 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="16" font-size="12">{results["device"]}, torch {results["torch"]}, {results["date"][:10]}: '
        "times faster than the best of cuDNN and XLA, either layout</text>",
    ]
    zero = LEFT + DECADE * 0.15
    for mark in (0.5, 1, 2, 5, 10, 20):
        x = zero + DECADE * math.log10(mark)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="30" y2="{height - 14}" stroke="#ccc"/>')
        parts.append(f'<text x="{x:.0f}" y="28" text-anchor="middle">{mark:g}x</text>')
    for index, row in enumerate(rows):
        ratio = min(row["peers"].values()) / min(row["ours"].values())
        y, reach = LINE * (index + 2.5), DECADE * math.log10(ratio)
        name = f"{row['op']} {row['dtype']} {row['shape']}"
        parts.append(f'<text x="{LEFT - 6}" y="{y + 9:.0f}" text-anchor="end">{name}</text>')
        parts.append(
            f'<rect x="{zero + min(reach, 0):.1f}" y="{y:.0f}" width="{max(abs(reach), 1):.1f}" height="{LINE - 4}" '
            f'fill="{COLOURS[row["unit"]]}"><title>{name}: {ratio:.2f}x</title></rect>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    made = json.loads((ROOT / "bench/results/gpu.json").read_text())
    (ROOT / "docs/gpu.svg").write_text(draw(made))
