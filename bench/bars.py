# SPDX-License-Identifier: Apache-2.0
"""Draws ratios as bars on a logarithmic axis, as an SVG: the line at 1 is the best peer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LINE, LEFT, WIDTH, DECADE = 14, 330, 760, 250


@dataclass(frozen=True)
class Bar:
    """One row: what it is, how many times faster ours is, and its colour."""

    name: str
    ratio: float
    colour: str


def draw(title: str, bars: Sequence[Bar]) -> str:
    """The picture."""
    height = LINE * (len(bars) + 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="16" font-size="12">{title}</text>',
    ]
    zero = LEFT + DECADE * 0.33
    for mark in (0.5, 1, 2, 5, 10, 20):
        x = zero + DECADE * math.log10(mark)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="30" y2="{height - 14}" stroke="#ccc"/>')
        parts.append(f'<text x="{x:.0f}" y="28" text-anchor="middle">{mark:g}x</text>')
    for index, bar in enumerate(bars):
        y, reach = LINE * (index + 2.5), DECADE * math.log10(bar.ratio)
        name = bar.name.replace("<", "&lt;").replace(">", "&gt;")
        parts.append(f'<text x="{LEFT - 6}" y="{y + 9:.0f}" text-anchor="end">{name}</text>')
        parts.append(
            f'<rect x="{zero + min(reach, 0):.1f}" y="{y:.0f}" width="{max(abs(reach), 1):.1f}" height="{LINE - 4}" '
            f'fill="{bar.colour}"><title>{name}: {bar.ratio:.2f}x</title></rect>'
        )
    return "\n".join([*parts, "</svg>", ""])
