# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/cpu.md and docs/gpu.md from bench/results/: `python -m bench.tables`.

A table is found by its first line; what stands below it is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.gpu_rows import CONVS
from bench.rows import CONV, POOL
from voxgrad.catalog.registry import FAMILY

ROOT = Path(__file__).parent.parent
Result = dict[str, Any]
Table = tuple[str, list[str]]

PATHS = " | ".join(("Conv3D", "gradient of the input", "gradient of the filter"))
SHOWN = [
    *(("bfloat16", shape) for shape in ("unet128_32", "down128_32_64", "down32_128_256", "stem128_1_32", "i3d_stem7")),
    *(("float32", shape) for shape in ("unet128_32", "unet64_64", "unet16_256", "down128_32_64", "stem128_1_32")),
    ("float32", "i3d_stem7"),
]
"""Convolutions whose times are shown one by one."""


def span(values: Iterable[float], digits: int = 0, percent: bool = False) -> str:
    """The least and the greatest, as text; one number where both look the same."""
    numbers = list(values)
    low, high = (f"{value:.{digits}%}" if percent else f"{value:.{digits}f}" for value in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def cpu_table(results: Result) -> Table:
    """Every op over the list of shapes."""
    lines = []
    for op in FAMILY:
        mine = [row for row in results["rows"] if row["op"] == op.name and row["dtype"] == "float32"]
        ratios = [row["ratio"] for row in mine]
        most = f"{geometric_mean(row['most'] for row in mine):.2f}" if op in CONV else ""
        shares = span((row["of_limit"] for row in mine), percent=True)
        lines.append(f"| {op.name} | {geometric_mean(ratios):.2f} | {span(ratios, 2)} | {most} | {shares} |")
    return "| | mean | rows | at most | share of the limit |", lines


def ratio(row: Result) -> float:
    """How many times faster ours is than the best peer, in the best layout of each."""
    return float(min(row["peers"].values()) / min(row["ours"].values()))


def pool_table(results: Result) -> Table:
    """Shares of the bandwidth of a copy, by window and stride, both layouts."""

    def shares(rows: list[Result], window: str) -> str:
        return span(
            100 * row["work"] / time / 1e6 / results["runs"][row["run"]]["ceilings"]["copy"]
            for row in rows
            if row["shape"].startswith(window)
            for time in row["ours"].values()
        )

    lines = []
    for op in POOL:
        for dtype in ("bfloat16", "float32"):
            mine = [row for row in results["rows"] if row["op"] == op.name and row["dtype"] == dtype]
            cells = " | ".join(shares(mine, window) for window in ("p2s2", "p3s2", "p3s1"))
            lines.append(f"| {op.name} {dtype} | {cells} | {span(map(ratio, mine), 1)} times |")
    return "| | 2, stride 2 | 3, stride 2 | 3, stride 1 | against the best peer |", lines


def groups() -> Iterator[tuple[str, Callable[[str, int, int], bool]]]:
    """Kinds of convolutions: a name, and whether type, input channels and stride belong to it."""
    short = ("bfloat16", "float16")
    yield "half and bfloat16, stride 1, 64 channels and more", lambda t, c, s: t in short and c >= 64 and s == 1
    yield "bfloat16, stride 1, 32 channels", lambda t, c, s: t in short and c == 32 and s == 1
    yield "half and bfloat16, stride 2", lambda t, c, s: t in short and c >= 32 and s == 2
    yield "bfloat16, 1 or 3 channels", lambda t, c, s: t in short and c <= 3
    yield "float32", lambda t, c, s: t == "float32"
    yield "float32 with TF32", lambda t, c, s: t == "float32_tf32"
    yield "float64", lambda t, c, s: t == "float64"


def conv_table(results: Result) -> Table:
    """Ratios of convolutions, by kind."""
    lines = []
    for name, belongs in groups():
        mine = [
            row
            for row in results["rows"]
            if row["shape"] in CONVS and belongs(row["dtype"], CONVS[row["shape"]][2], CONVS[row["shape"]][5])
        ]
        cells = (span((ratio(row) for row in mine if row["op"] == op.name), 2) for op in CONV)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return f"| times as fast | {PATHS} |", lines


def time_table(results: Result) -> Table:
    """Milliseconds, ratio and share of the matrix rate; a float32 convolution is three products."""
    found = {(row["op"], row["dtype"], row["shape"]): row for row in results["rows"]}
    lines = []
    for dtype, shape in SHOWN:
        cells = []
        for op in CONV:
            row = found[op.name, dtype, shape]
            time, top = min(row["ours"].values()), results["runs"][row["run"]]["ceilings"]["bfloat16"]
            share = row["work"] / time / 1e9 * (3 if dtype == "float32" else 1) / top
            cells.append(f"{time:.3f} ms, {ratio(row):.2f} ({100 * share:.0f} %)")
        lines.append(f"| {dtype}, {layer(shape)} | {' | '.join(cells)} |")
    return f"| time, times as fast, share | {PATHS} |", lines


def layer(shape: str) -> str:
    """A layer in words."""
    batch, sizes, channels, outs, window, stride = CONVS[shape]
    size = f"{sizes[0]}^3" if len(set(sizes)) == 1 else f"{sizes[0]} x {sizes[1]}^2"
    extra = (f", window {window}" if window != 3 else "") + (f", stride {stride}" if stride != 1 else "")
    return f"{batch} x {size}, {channels} to {outs}{extra}"


DOCS: dict[str, tuple[str, list[Callable[[Result], Table]]]] = {
    "docs/cpu.md": ("cpu-list.json", [cpu_table]),
    "docs/gpu.md": ("gpu.json", [pool_table, conv_table, time_table]),
}
"""Each document, the results it shows, and its tables."""


def updated(text: str, table: Table) -> str:
    """The text with the lines below the table's head replaced; a table that is not there is an error."""
    head, lines = table
    before, found, after = text.partition(head + "\n")
    if not found:
        raise ValueError(f"no table begins with {head!r}")
    rule, _, rest = after.partition("\n")
    old = rest.splitlines(keepends=True)
    while old and old[0].startswith("|"):
        old.pop(0)
    return "\n".join([before + head, rule, *lines, "".join(old)])


def document(path: str) -> str:
    """A document with the tables that the results say."""
    text, (file, tables) = (ROOT / path).read_text(), DOCS[path]
    results = json.loads((ROOT / "bench/results" / file).read_text())
    for table in tables:
        text = updated(text, table(results))
    return text


if __name__ == "__main__":
    for place in DOCS:
        (ROOT / place).write_text(document(place))
