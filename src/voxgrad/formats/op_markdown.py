# SPDX-License-Identifier: Apache-2.0
"""The pages of ops and of enuSpace's blocks in Markdown, with their pictures as files beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from voxgrad.catalog.describe import shown_default, type_names
from voxgrad.catalog.model import Attr, Input, Op, Output
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.formats.enuspace.differences import EVERYWHERE
from voxgrad.formats.enuspace.helpers import HELPER_PAGES, Helper
from voxgrad.formats.enuspace.library import Symbol, library, op_of, symbols_of
from voxgrad.formats.explainer.html import explainer_html
from voxgrad.formats.op_code import python_of
from voxgrad.formats.op_page import OpPage, Result, op_page, results_of
from voxgrad.formats.picture.example import lay_out_example
from voxgrad.formats.picture.svg import svg_of
from voxgrad.formats.text.forms import forms_of

_FEW = 3
"""Element types that stand in the table of pins; more stand below it."""


def op_files(op: Op) -> Iterator[tuple[str, str]]:
    """The page of an op and its pictures, by their names in the folder of the reference."""
    page = op_page(op)
    pictures = {
        f"img/{op.name}.svg": page.block_picture(),
        f"img/{op.name}.example.svg": page.example_picture(),
        f"img/{op.name}.gradient.svg": page.gradient_picture(),
    }
    yield f"{op.name}.md", "\n".join(_op_lines(page))
    yield from ((name, picture) for name, picture in pictures.items() if picture)
    if op in FAMILY:
        yield _explainer(op), explainer_html(op)


def _explainer(op: Op) -> str:
    """The file that explains an op, in the folder of the reference."""
    return f"explain/{op.name}.html"


def helper_files(helper: Helper) -> Iterator[tuple[str, str]]:
    """The page of a block of the original that is no op, and its pictures."""
    made = helper.page()
    values = made.run()
    code = python_of(helper.name, helper.example, [*values])
    lines = [
        f"# {helper.name}", "", "A block of enuSpace that is no op.", "", *_picture(helper.name, "", "the block"),
        f"**There.** {helper.was}", "", f"**Here.** {helper.now}", "", "## Example", "",
        "The page that an import leaves.", "", *_picture(helper.name, ".example", "the example"),
    ]  # fmt: skip
    if helper.name != "AddSymbolicGradients":
        lines += _code(code)
    yield f"{helper.name}.md", "\n".join([*lines, *_results(results_of(values))])
    yield f"img/{helper.name}.svg", helper.block_picture()
    yield f"img/{helper.name}.example.svg", svg_of(lay_out_example(made, values))


def all_helpers() -> Iterable[Helper]:
    """Every block of the original that is no op."""
    return HELPER_PAGES.values()


def block_index() -> str:
    """All blocks of enuSpace by its groups, each with its page here."""
    lines = ["# The blocks of enuSpace", "", f"All {len(library())} of them, by the groups of its library.", ""]
    lines += ["What is true of all:", "", *(f"- {line}" for line in EVERYWHERE), ""]
    for group in dict.fromkeys(symbol.group for symbol in library().values()):
        rows = [_block_row(symbol) for symbol in library().values() if symbol.group == group]
        lines += [f"## {group}", "", "| block | page | what it does |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _block_row(symbol: Symbol) -> str:
    op = op_of(symbol)
    name = symbol.name if op is None else op.name
    what = HELPER_PAGES[name].was if op is None else op.summary
    old = f" **Deprecated**: {op.deprecated}." if op is not None and op.deprecated else ""
    return f"| {symbol.name} | [{name}]({name}.md) | {what}{old} |"


def _op_lines(page: OpPage) -> Iterator[str]:
    op = page.op
    yield from (f"# {op.name}", "", op.summary, "")
    if op.deprecated:
        yield from (f"**Deprecated** in TensorFlow: {op.deprecated}.", "")
    if op.aliases:
        yield from (f"Also known as {', '.join(op.aliases)}.", "")
    yield from _picture(op.name, "", "the block")
    if page.formula:
        yield from ("```text", *page.formula.split("; "), "```", "")
    if op in FAMILY:
        said = "On a small grid, step by step, forward, gradient and second order"
        yield from (f"[{said}]({_explainer(op)}) (a page of its own: open it in a browser).", "")
    if op.doc:
        yield from (op.doc, "")
    yield from _pins(op)
    yield from _example(page)
    yield from _gradient(page)
    if op.laws:
        yield from ("## Edges", "", *(f"- **{law.name}**: {law.text}" for law in op.laws), "")
    yield from ("## The original", "", *_original(page), "")


def _picture(name: str, kind: str, what: str) -> Iterator[str]:
    yield from (f"![{name}: {what}](img/{name}{kind}.svg)", "")


def _code(text: str) -> Iterator[str]:
    yield from ("```python", "import numpy as np, voxgrad as vg", "", text, "```", "")


def _pins(op: Op) -> Iterator[str]:
    yield from ("## Pins and attributes", "")
    yield from ("| name | type | typed as | default | meaning |", "|---|---|---|---|---|")
    for item in op.parameters:
        kind = _type(op, item) if isinstance(item, Input) else _kind(item)
        default = "" if isinstance(item, Input) or item.required else f"`{shown_default(item)!r}`"
        forms = ", ".join(f"`{form}`" for form in forms_of(item))
        yield f"| {item.name} | {kind} | {forms} | {default} | {_meaning(item)} |"
    for output in op.outputs:
        yield f"| **{output.name}** (result) | {_type(op, output)} | | | {_meaning(output)} |"
    yield ""
    tensors: tuple[Input | Output, ...] = (*op.inputs, *op.outputs)
    for name, types in op.types.items():
        if len(types) > _FEW and any(item.type == name for item in tensors):
            yield from (f"`{name}` is one of {', '.join(one.name for one in types)}.", "")


def _type(op: Op, item: Input | Output) -> str:
    many = "list of " if item.many else ""
    if isinstance(item.type, str) and len(op.allowed(item.type)) > _FEW:
        return f"{many}{'any of ' if item.mixed else ''}`{item.type}`"
    return many + type_names(op, item)


def _kind(attr: Attr) -> str:
    if attr.choices and attr.kind == "string":
        return "choice"
    return f"{attr.length} ints" if attr.length else attr.kind


def _meaning(item: Input | Output | Attr) -> str:
    shape = "" if isinstance(item, Attr) or not item.shape else f"`{item.shape}` "
    return shape + item.doc


def _example(page: OpPage) -> Iterator[str]:
    op = page.op
    if op.example or page.code:
        yield from ("## Example", "")
    if page.code:
        yield from _picture(op.name, ".example", "an example with its values")
        yield from _code(page.code)
        yield from _results(page.results)
        yield from (f"`voxgrad ops {op.name} --page {op.name}.vox.json` writes it as a page.", "")
    if op.example:
        yield from _code(op.example)


def _results(results: Iterable[Result]) -> Iterator[str]:
    yield from ("| result | type and shape | value |", "|---|---|---|")
    yield from (f"| {one.path} | {one.spec} | `{one.text.replace('|', chr(92) + '|')}` |" for one in results)
    yield ""


def _gradient(page: OpPage) -> Iterator[str]:
    op = page.op
    yield from ("## Gradient", "")
    if not page.slopes:
        why = "No gradient flows through it." if op.gradient is not None else "It has none."
        yield from (why, "")
        return
    yield from _picture(op.name, ".gradient", "the blocks of its gradient")
    linear = f" It is linear in {' and '.join(op.linear_in)}." if op.linear_in else ""
    yield from (f"Made of {', '.join(_link(name) for name in page.slopes)}.{linear}", "")


def _link(name: str) -> str:
    return f"[{name}]({name}.md)" if name in OPS else name


def _original(page: OpPage) -> Iterator[str]:
    for line in page.differences or ("Names, pins, attributes and defaults are those of enuSpace.",):
        yield f"- {line}"
    if symbols_of(page.op):
        yield "- [What is true of all blocks](enuspace.md)."
