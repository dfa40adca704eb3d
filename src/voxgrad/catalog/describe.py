# SPDX-License-Identifier: Apache-2.0
"""Declarations in words: docstrings, reference pages, signatures."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from voxgrad.catalog.model import Attr, Input, Op, Output


def shown_default(attr: Attr) -> Any:
    """The default as signatures show it; `inspect.Parameter.empty` where there is none."""
    if attr.required:
        return inspect.Parameter.empty
    return list(attr.default) if isinstance(attr.default, tuple) else attr.default


def type_names(op: Op, item: Input | Output) -> str:
    """The element types of a tensor, in words."""
    return ", ".join(dtype.name for dtype in op.allowed(item.type))


def docstring(op: Op) -> str:
    """One line that says what, an example that runs, the arguments, the edges."""
    blocks = [op.summary]
    if op.doc:
        blocks.append(_wrapped(op.doc))
    if op.example:
        blocks.append("Example:\n" + textwrap.indent(op.example, "    "))
    blocks.append(
        "Args:\n" + "\n".join(_argument(op, item) for item in op.parameters) + "\n    name: Ignored; for tf.raw_ops."
    )
    blocks.append("Returns:\n" + "\n".join(_result(op, item) for item in op.outputs))
    if op.laws:
        blocks.append("Edges:\n" + "\n".join(_wrapped(f"{law.name}: {law.text}", "    ") for law in op.laws))
    return "\n\n".join(blocks) + "\n"


def _argument(op: Op, item: Input | Attr) -> str:
    if isinstance(item, Attr):
        kind = " or ".join(map(str, item.choices)) or {
            "ints": f"list of {item.length} ints" if item.length else "list of ints"
        }.get(item.kind, item.kind)
        default = "" if item.required else f" Default {shown_default(item)!r}."
        return _wrapped(f"{item.name}: {kind}. {item.doc}{default}", "    ")
    shape = f" {item.shape}" if item.shape else ""
    return _wrapped(f"{item.name}:{shape} of {type_names(op, item)}. {item.doc}", "    ")


def _result(op: Op, item: Output) -> str:
    shape = f" {item.shape}" if item.shape else ""
    type_ = f"the type of {source}" if (source := _same_type(op, item)) else type_names(op, item)
    return _wrapped(f"{item.name}:{shape}, {type_}. {item.doc}", "    ")


def _same_type(op: Op, item: Output) -> str:
    return next((one.name for one in op.inputs if one.type == item.type and isinstance(item.type, str)), "")


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent + ("    " if indent else ""))
