# SPDX-License-Identifier: Apache-2.0
"""`voxgrad ops`: the catalogue on the terminal."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voxgrad.catalog import registry
from voxgrad.catalog.describe import docstring, shown_default, type_names
from voxgrad.catalog.model import Attr, Op
from voxgrad.cli import exits
from voxgrad.formats.enuspace.library import library, missing
from voxgrad.formats.explainer.html import explainer_html
from voxgrad.formats.op_page import example_as_page, op_page
from voxgrad.formats.tensor_files import replace_file
from voxgrad.formats.text.forms import forms_of

DESCRIPTION = """\
List the ops by group, or show the page of one.

  voxgrad ops                   every op with one line
  voxgrad ops MaxPool3DGrad     what it does, arguments, an example with what it gives, its gradient, the edges
  voxgrad ops MaxPool3DGrad --page example.vox.json       that example as a page
  voxgrad ops MaxPool3DGrad --explain explained.html      the op on a small grid, step by step, as a page of its own
  voxgrad ops pool              the ops whose name holds "pool"
  voxgrad ops boxblur.BoxBlur   the op of an installed package; they stand at the end of the list, under its name
  voxgrad ops --missing         blocks of enuSpace that are not here
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `voxgrad ops`."""
    parser.add_argument("name", nargs="?", help="the op, or a part of its name")
    parser.add_argument("--missing", action="store_true", help="the blocks of enuSpace that have no op yet")
    parser.add_argument("--page", metavar="FILE", help="write the example of the op as a page")
    parser.add_argument("--explain", metavar="FILE", help="write an HTML page that explains an op of the 3-D family")
    parser.add_argument("--json", action="store_true", help="the declarations as JSON")


def run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Print the list or a page."""
    if arguments.missing:
        print("\n".join(missing_lines()))
        return exits.OK
    if arguments.page:
        return _write_example(registry.find(arguments.name or ""), arguments.page)
    if arguments.explain:
        return _write_explainer(registry.find(arguments.name or ""), arguments.explain)
    chosen = _chosen(arguments.name)
    if arguments.json:
        print(json.dumps([as_data(op) for op in chosen], indent=1))
    elif len(chosen) == 1:
        print(page(chosen[0]))
    else:
        print("\n".join(listing(chosen)))
    return exits.OK


def _write_example(op: Op, path: str) -> int:
    made = example_as_page(op)
    if made is None:
        print(f"{op.name} has no example")
        return exits.WRONG
    made.save(path)
    return exits.OK


def _write_explainer(op: Op, path: str) -> int:
    replace_file(Path(path), explainer_html(op).encode())
    return exits.OK


def _chosen(name: str | None) -> list[Op]:
    if name is None:
        return list(registry.everything())
    one = registry.get(name)
    if one is not None:
        return [one]
    found = [op for op in registry.everything() if name.lower() in op.name.lower()]
    return found or [registry.find(name)]


def listing(ops: list[Op]) -> list[str]:
    """One line per op, under the names of the groups."""
    longest = max(len(op.name) for op in ops)
    room = max(shutil.get_terminal_size().columns, 80) - longest - 4
    lines: list[str] = []
    for group, package in dict.fromkeys((op.group, op.package) for op in ops):
        title = f"{group} (package {package})" if package else group
        lines += ["", title] if lines else [title]
        lines += [
            f"  {op.name:{longest}}  {textwrap.shorten(op.summary, room, placeholder='...')}"
            for op in ops
            if (op.group, op.package) == (group, package)
        ]
    return lines


def missing_lines() -> list[str]:
    """The blocks of enuSpace that have no op here, by group."""
    symbols = missing()
    rest = "; these are not:" if symbols else "."
    lines = [f"{len(library()) - len(symbols)} of enuSpace's {len(library())} blocks are here{rest}"]
    for group in dict.fromkeys(symbol.group for symbol in symbols):
        names = ", ".join(symbol.name for symbol in symbols if symbol.group == group)
        lines.append(textwrap.fill(f"{group}: {names}", 100, subsequent_indent="    "))
    return lines


def page(op: Op) -> str:
    """The page of an op, as `help()` shows it, with the way to call it from a terminal."""
    head = f"{op.name} (package {op.package})" if op.package else f"{op.name} ({op.group})"
    given = " ".join(_option(item) for item in op.parameters if not isinstance(item, Attr) or item.required)
    command = textwrap.fill(
        f"voxgrad apply {op.name} {given} --output out.npy", 100, initial_indent="    ", subsequent_indent="        ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    parts = [f"{head}\n{'=' * len(head)}", *_about(op), f"On the command line:\n{command}"]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _about(op: Op) -> Iterator[str]:
    """What the reference page has, as text: formula, arguments, how they are typed, an example with what it gives."""
    made = op_page(op)
    if op.deprecated:
        yield f"Deprecated in TensorFlow: {op.deprecated}."
    if made.formula:
        yield textwrap.indent(made.formula.replace("; ", "\n"), "    ")
    yield docstring(op)
    yield "Typed as:\n" + "\n".join(f"    {item.name}: {'   '.join(forms_of(item))}" for item in op.parameters)
    if made.code:
        gives = [f"    {one.path} {one.spec}\n        {one.text}" for one in made.results]
        yield "\n".join(["Example with what it gives:", textwrap.indent(made.code, "    "), "", *gives])
    if made.slopes:
        yield textwrap.fill(f"Gradient: made of {', '.join(made.slopes)}.", 100, subsequent_indent="    ")
    if made.differences:
        yield "\n".join(["In enuSpace:", *(textwrap.fill(f"    {one}", 100) for one in made.differences)])


def _option(item: Any) -> str:
    if isinstance(item, Attr):
        sample = {"ints": ",".join(["1"] * (item.length or 1)), "bool": "true", "type": "DT_FLOAT"}.get(
            item.kind, "..."
        )
        return f"--{item.name} {item.choices[0] if item.choices else sample}"
    return f"--{item.name} {'1,4,4,4,1' if item.host else item.name + '.npy'}"


def as_data(op: Op) -> dict[str, Any]:
    """A declaration as plain data."""
    return {
        "name": op.name,
        "group": op.group,
        "package": op.package,
        "summary": op.summary,
        "aliases": list(op.aliases),
        "inputs": [
            {"name": item.name, "types": type_names(op, item).split(", "), "shape": item.shape, "doc": item.doc}
            for item in op.inputs
        ],
        "attrs": [
            {
                "name": attr.name,
                "kind": attr.kind,
                "required": attr.required,
                "default": None if attr.required else _plain(shown_default(attr)),
                "choices": [_plain(choice) for choice in attr.choices],
                "doc": attr.doc,
            }
            for attr in op.attrs
        ],
        "outputs": [
            {"name": item.name, "types": type_names(op, item).split(", "), "shape": item.shape, "doc": item.doc}
            for item in op.outputs
        ],
        "differentiable": op.gradient is not None,
        "deprecated": op.deprecated,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, list, type(None))) else str(value)
