# SPDX-License-Identifier: Apache-2.0
"""The example of an op as a Python program: one call where the op computes at once, else a page with its blocks."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from voxgrad import raw_ops
from voxgrad.catalog.examples import Counted, Example, Line, Typed, Wire
from voxgrad.catalog.registry import OPS

_WIDE = 108


def python_of(title: str, example: Example, paths: Sequence[str]) -> str:
    """The program; it leaves what it shows in the name of the only output, or in `results`."""
    if title in raw_ops.__all__ and len(example.lines) == 1:
        op = OPS[title]
        names = [path.rpartition(".")[2] for path in paths]
        single = len(op.outputs) == 1
        made = names[0] if single and not op.outputs[0].many and names else "results"
        return _call(f"{made} = vg.raw_ops.{op.name}(", _given(example.lines[0], ()))
    lines = [f'page = vg.Page("{title}")']
    several = {line.name for line in example.lines if len(OPS[line.op].outputs) > 1}
    for line in example.lines:
        lines.append(_call(f"{line.name} = vg.ops.{line.op}(page, ", [*_given(line, several), f'name="{line.name}"']))
        lines += [f'page.run_after("{line.name}", "{other}")' for other in line.after]
    started = ", ".join(f'"{line.name}"' for line in example.lines if line.first)
    lines += [f"page.start_with([{started}])"] if started else []
    run = [line.name for line in example.lines if not line.first and line.name not in example.feeds]
    executed = ", ".join(f'"{name}"' for name in run)
    fed = "{" + ", ".join(f'"{name}": {value!r}' for name, value in example.feeds.items()) + "}"
    lines.append('session = vg.ClientSession(page, allow_files=".")')
    call = f"results = session.run({list(paths)}, {fed}, [{executed}])".replace("'", '"')
    return "\n".join([*lines, *textwrap.wrap(call, _WIDE, subsequent_indent=" " * 23, break_long_words=False)])


def _given(line: Line, several: Collection[str]) -> list[str]:
    return [f"{name}={_python(value, several)}" for name, value in line.arguments.items()]


def _call(head: str, parts: Sequence[str]) -> str:
    whole = f"{head}{', '.join(parts)})"
    if len(whole) <= _WIDE:
        return whole
    indent, rows, row = " " * (head.index("(") + 1), [], head
    for at, part in enumerate(parts):
        piece = part + (")" if at == len(parts) - 1 else ", ")
        if len(row) + len(piece) > _WIDE and row.strip() != head.strip():
            rows.append(row.rstrip())
            row = indent
        row += piece
    return "\n".join([*rows, row])


def _python(value: Any, several: Collection[str]) -> str:
    """`several`: the blocks whose function returns a tuple of outputs."""
    if isinstance(value, Wire):
        return f"{value.line}[{value.output}]" if value.line in several else value.line
    if isinstance(value, Counted):
        stop = value.start + int(np.prod(value.shape))
        return f'np.arange({value.start}, {stop}, dtype="float32").reshape({", ".join(map(str, value.shape))})'
    if isinstance(value, Typed):
        return f'np.array({value.value!r}, "{_plain(value.dtype)}")'
    if isinstance(value, list):
        return f"[{', '.join(_python(one, several) for one in value)}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return '"' + repr(value)[1:-1].replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def _plain(dtype: str) -> str:
    """NumPy's name of a type: quantised integers are plain ones there, texts objects."""
    return {"string": "O"}.get(dtype, dtype.removeprefix("q") if not dtype.startswith("qu") else dtype[1:])
