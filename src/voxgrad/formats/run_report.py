# SPDX-License-Identifier: Apache-2.0
"""A run as a report: one HTML file with the page as a picture, its values, times and statistics, and what was wrong.

The file fetches nothing and has no script; pictures are images in it, and a policy in its head forbids the rest. A page
is from a stranger: all of its texts are escaped.
"""

from __future__ import annotations

import base64
import datetime
import html
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from voxgrad import __version__
from voxgrad.arrays.kinds import dtype_of
from voxgrad.errors import Fault, visible
from voxgrad.formats.picture.displays import draw_display, spoken
from voxgrad.formats.picture.layout import Drawing, lay_out
from voxgrad.formats.picture.svg import svg_of
from voxgrad.graph.page import Page
from voxgrad.graph.problems import PinProblem
from voxgrad.graph.readings import Readings
from voxgrad.graph.statistics import Statistics
from voxgrad.graph.values import Array
from voxgrad.kernels import cpu

FEW = 8
"""Numbers that are told one by one."""
LETTERS = 200
"""Letters of a text that are told."""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.5 system-ui, sans-serif; color: #14171c; background: #fff; margin: 32px auto; max-width: 1100px;
  padding: 0 20px; }
h1 { font-size: 24px; } h2 { font-size: 17px; margin-top: 32px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 20px; }
dt { color: #525b6b; } dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; color: #525b6b; font-weight: 600; } td code { overflow-wrap: anywhere; } th, td { padding: 4px 10px 4px 0; vertical-align: top; }
td { border-top: 1px solid #d3dae3; overflow-wrap: break-word; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 12px ui-monospace, Menlo, Consolas, monospace; } pre { white-space: pre-wrap; }
img { max-width: 100%; border: 1px solid #d3dae3; border-radius: 8px; } figure { margin: 0 0 16px; }
.bad { color: #b3261e; } .warn { color: #7a5200; } figcaption { color: #525b6b; }
@media print { body { margin: 0; max-width: none; } tr, figure { break-inside: avoid; } }
"""


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What an output gave: statistics over its finite values, and the first of its values as texts."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    not_finite: int = 0
    first: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, array: Array) -> OutputFacts:
        """The facts of a result."""
        first = tuple(map(_value_text, list(array.reshape(-1)[: FEW + 1])))
        if array.dtype == object:
            return OutputFacts(name, "string", array.shape, first=first)
        dtype, found = dtype_of(array.dtype), Statistics(array)
        bad = found.nan + found.posinf + found.neginf
        spec = dtype.name if dtype is not None else str(array.dtype)
        return OutputFacts(name, spec, array.shape, found.low, found.mean, found.high, bad, first)

    @property
    def told(self) -> str:
        """The values where they are few, else the least, the mean and the greatest."""
        if len(self.first) <= FEW and len(self.first) == math.prod(self.shape):
            return ", ".join(map(_short, self.first))
        if self.mean is None:
            return "nothing finite" if self.not_finite else self.dtype
        return " .. ".join("" if one is None else f"{one:.6g}" for one in (self.low, self.mean, self.high))


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """What a run did with a block; no seconds where its result was kept from before, or where it did not run."""

    name: str
    state: str
    reason: str = ""
    seconds: float | None = None
    outputs: tuple[OutputFacts, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run as a whole, and what it did with every block; `readings` is what displays show."""

    engine: str
    state: str
    started: float
    seconds: float | None
    cycles: int
    blocks: Sequence[BlockFacts]
    readings: Readings = field(default_factory=Readings)
    faults: Sequence[Fault] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def report_html(page: Page, run: RunFacts) -> str:
    """The report as HTML text."""
    told = {f"{block.name}.{output.name}": output.told for block in run.blocks for output in block.outputs}
    body = [
        f"<h1>{_text(page.name)}</h1>",
        _facts(page, run),
        *_faults(run.faults),
        "<h2>Page</h2>",
        _picture(lay_out(page, run.readings, told), page.name),
        "<h2>Blocks</h2>",
        _table(page, run.blocks),
        *_displays(page, run.readings),
        "<h2>Problems and warnings</h2>",
        _problems("bad", page.problems()),
        _problems("warn", page.warnings()),
        *_notes(page),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{_text(page.name)}</title><style>{_STYLE}</style></head>",
            "<body>",
            *(part for part in body if part),
            f"<footer><p>Written by voxgrad {_text(__version__)}.</p></footer>",
            "</body></html>\n",
        ]
    )


def _value_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")[:LETTERS]
    return str(value)[:LETTERS].removesuffix(".0")


def _short(text: str) -> str:
    """A number in six digits."""
    try:
        return f"{float(text):.6g}" if "." in text else text
    except ValueError:
        return text


def _text(value: object) -> str:
    """A text of the page, or of anybody, as HTML."""
    return html.escape(visible(str(value)))


def _facts(page: Page, run: RunFacts) -> str:
    started = datetime.datetime.fromtimestamp(run.started, datetime.UTC)
    rows = {
        "state": run.state, "engine": run.engine, "semantics": page.semantics,
        "date": started.strftime("%Y-%m-%d %H:%M:%S UTC"), "time": _seconds(run.seconds), "cycles": f"{run.cycles:,}",
        **machine(), **run.versions,
    }  # fmt: skip
    return "<dl>" + "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in rows.items()) + "</dl>"


def machine() -> dict[str, str]:
    """What computed, as far as it bears on numbers and times; not whose machine it is."""
    kernels = f"native {cpu.isa_name()}" if cpu.library() is not None else "NumPy reference"
    return {
        "voxgrad": f"{__version__}, {kernels}",
        "Python": f"{platform.python_version()}, NumPy {np.__version__}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
    }


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"


def _picture(drawing: Drawing, title: str) -> str:
    """A drawing as an image: what is in one is never executed."""
    data = base64.b64encode(svg_of(drawing, "light").encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{_text(title)}">'


_HEADS = ("block", "op", "state", "time", "output", "type and shape", "min", "mean", "max", "not finite", "values")
_NUMBERS = ("time", "min", "mean", "max", "not finite")


def _table(page: Page, blocks: Sequence[BlockFacts]) -> str:
    head = "".join(f'<th{" class=number" if name in _NUMBERS else ""}>{name}</th>' for name in _HEADS)
    rows = "".join(row for block in blocks for row in _rows(page, block))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _rows(page: Page, block: BlockFacts) -> Iterator[str]:
    op = page.block(block.name).op_name or "page" if block.name in page else ""
    count = max(1, len(block.outputs))
    state = f'<td rowspan="{count}" title="{_text(block.reason)}">{_text(block.state)}</td>'
    if block.error:
        state = f'<td rowspan="{count}" class="bad">{_text(block.state)}: {_text(block.error)}</td>'
    lead = f'<td rowspan="{count}"><b>{_text(block.name)}</b></td><td rowspan="{count}">{_text(op)}</td>{state}'
    lead += f'<td rowspan="{count}" class="number">{_seconds(block.seconds)}</td>'
    if not block.outputs:
        yield f"<tr>{lead}{'<td></td>' * 7}</tr>"
    for at, output in enumerate(block.outputs):
        yield f"<tr>{'' if at else lead}{_output(output)}</tr>"


def _output(output: OutputFacts) -> str:
    numbers = "".join(
        f'<td class="number">{"" if value is None else f"{value:.6g}"}</td>'
        for value in (output.low, output.mean, output.high)
    )
    bad = f'<td class="number warn">{output.not_finite:,}</td>' if output.not_finite else '<td class="number">0</td>'
    more = ", ..." if len(output.first) > FEW or len(output.first) < math.prod(output.shape) else ""
    first = ", ".join(output.first[:FEW]) + more
    spec = f"{output.dtype} [{','.join(map(str, output.shape))}]"
    return f"<td>{_text(output.name)}</td><td>{_text(spec)}</td>{numbers}{bad}<td><code>{_text(first)}</code></td>"


def _displays(page: Page, readings: Readings) -> Iterator[str]:
    """Every display that shows a value, by itself."""
    shown = [display for display in page.displays if display.of]
    if shown:
        yield "<h2>Displays</h2>"
    for display in shown:
        width, height = display.size
        drawing = Drawing("", width, height, over=draw_display(display, readings))
        said = f"{display.name}: {spoken(display, readings)}"
        yield f"<figure>{_picture(drawing, said)}<figcaption>{_text(said)}</figcaption></figure>"


def _faults(faults: Sequence[Fault]) -> Iterator[str]:
    if faults:
        yield '<h2 class="bad">Why it did not run to its end</h2>'
        yield "<ul>" + "".join(f"<li><pre>{_text(fault)}</pre></li>" for fault in faults) + "</ul>"


def _problems(kind: str, found: Iterable[PinProblem]) -> str:
    items = "".join(f"<li><pre>{_text(problem)}</pre></li>" for problem in found)
    return f'<ul class="{kind}">{items}</ul>' if items else f"<p>No {'problems' if kind == 'bad' else 'warnings'}.</p>"


def _notes(page: Page) -> Iterator[str]:
    if page.notes:
        yield "<h2>Notes</h2>"
    for note in page.notes:
        yield f"<pre>{_text(note.get('text', '') if isinstance(note, Mapping) else note)}</pre>"
