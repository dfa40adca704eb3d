# SPDX-License-Identifier: Apache-2.0
"""The page of an op: what it does, its pins, an example with what it gives, its gradient, the original.

The reference pages, `voxgrad ops NAME` and the studio's help show the same, which is made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from voxgrad.catalog.examples import example_of, formula_of
from voxgrad.catalog.model import Op
from voxgrad.formats.enuspace.differences import differences
from voxgrad.formats.op_code import python_of
from voxgrad.formats.picture.example import lay_out_example, lay_out_op
from voxgrad.formats.picture.svg import draw_svg, svg_of
from voxgrad.formats.text.shown import shown
from voxgrad.graph.example import example_page, gradient_page
from voxgrad.graph.page import Page
from voxgrad.graph.values import Array


@dataclass(frozen=True, slots=True)
class Result:
    """What an output of an example holds: type and shape, and the value as a text that could be typed."""

    path: str
    spec: str
    text: str


@dataclass(frozen=True, slots=True)
class OpPage:
    """The page of an op: `code` is its example as Python, `slopes` the ops that its gradient is made of."""

    op: Op
    formula: str
    code: str
    results: tuple[Result, ...]
    slopes: tuple[str, ...]
    differences: tuple[str, ...]
    values: Mapping[str, Array]

    def block_picture(self, theme: str = "auto") -> str:
        """The block with its pins, as SVG."""
        return svg_of(lay_out_op(self.op), theme)

    def example_picture(self, theme: str = "auto") -> str:
        """The example with its values, as SVG; "" without one."""
        made = example_page(self.op)
        return "" if made is None else svg_of(lay_out_example(made, self.values), theme)

    def gradient_picture(self, theme: str = "auto") -> str:
        """The example with the blocks of its gradient, as SVG; "" where no gradient flows."""
        page = gradient_page(self.op)
        return "" if page is None else draw_svg(page, theme, embed=False)


def op_page(op: Op) -> OpPage:
    """The page of an op; its example runs for it."""
    written, example = example_of(op.name), example_page(op)
    values = example.run() if example is not None else {}
    results = results_of(values)
    code = "" if written is None else python_of(op.name, written, list(values))
    return OpPage(op, formula_of(op.name), code, tuple(results), tuple(_slopes(op)), tuple(differences(op)), values)


def _slopes(op: Op) -> list[str]:
    """The ops in the gradient of the example, without those that only start it."""
    page = gradient_page(op)
    blocks = [] if page is None else [one for one in page.blocks if one.name.startswith("gradients/")]
    return list(dict.fromkeys(one.op_name for one in blocks if not one.name.startswith("gradients/grad_ys")))


def example_as_page(op: Op) -> Page | None:
    """The example of an op as a page to open, with places and displays."""
    made = example_page(op)
    if made is not None:
        lay_out_example(made, made.run())
    return None if made is None else made.page


def results_of(values: Mapping[str, Array]) -> list[Result]:
    """Values as they are shown."""
    return [Result(path, _spec(value), shown(value)) for path, value in values.items()]


def _spec(value: Array) -> str:
    name = "string" if value.dtype == object else value.dtype.name
    return name + "".join(f"[{size}]" for size in value.shape)
