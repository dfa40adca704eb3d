# SPDX-License-Identifier: Apache-2.0
"""Blocks of the original that are no ops: what each was, what an import makes of it, and a page that shows that."""

from __future__ import annotations

from dataclasses import dataclass

from voxgrad.catalog.examples import Example, parse
from voxgrad.formats.enuspace.library import HELPERS, library
from voxgrad.formats.picture.layout import Pin, lay_out_block
from voxgrad.formats.picture.svg import svg_of
from voxgrad.graph.example import ExamplePage, page_of
from voxgrad.graph.gradients import gradients


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper: its meaning there and here, and the page that an import leaves."""

    name: str
    was: str
    now: str
    text: str

    @property
    def example(self) -> Example:
        """The page as it is written."""
        return parse("", self.text)

    def page(self) -> ExamplePage:
        """The page that runs."""
        made = page_of(self.name, self.example)
        if self.name != "AddSymbolicGradients":
            return made
        first = made.page[self.example.lines[0].name]
        (slope,) = gradients([made.block.output(0)], [first.output(0)])
        assert slope is not None
        made.page.execute([slope.block])
        return ExamplePage(made.page, made.block, (slope,), {})

    def block_picture(self, theme: str = "auto") -> str:
        """The block as it stood in the library, as SVG."""
        symbol = library()[self.name]
        pins = [Pin(name) for name in (*symbol.inputs, *symbol.values)]
        return svg_of(lay_out_block(self.name, symbol.group, pins, [Pin(name) for name in symbol.outputs], []), theme)


_PASSED = 'x = Const(value=[1.0, 2.0, 3.0], dtype="float32")\ny = Square(x=x)'
_FED = "x = PlaceholderWithDefault(input=[1.0, 2.0], shape=[2])\ny = Square(x=x)"
_ALL = (
    Helper(
        "ClientSession",
        "It ran the page: it fetched the outputs wired to fetch_outputs with all that they need, executed run_outputs, "
        "and fed what came in by inputs.",
        "What was wired to it are the outputs and targets of the page, which `voxgrad run`, the studio and "
        "`vg.ClientSession` take. Its modes are options of a run: `--every-cycle` for SHOW_DEBUG, `--cycles forever` "
        "for INFINITE_LOOP, `--device` for device.",
        _PASSED,
    ),
    Helper(
        "Tensor",
        "A type and a text that became a tensor, for inputs and initializers.",
        "A Const, or the wire that came in.",
        _PASSED,
    ),
    Helper(
        "Input",
        "A type and a text that became the input of an op.",
        "A Const, or the wire that came in.",
        _PASSED,
    ),
    Helper(
        "Input_Initializer",
        "The value that a FeedType gave to a Placeholder.",
        "The default of a PlaceholderWithDefault.",
        _FED,
    ),
    Helper(
        "FeedType",
        "It paired a Placeholder with the value that the session fed.",
        "The Placeholder becomes a PlaceholderWithDefault, whose default is that value; a run may still feed another.",
        _FED,
    ),
    Helper(
        "InputList",
        "It joined outputs into a list, in the order of their links.",
        "Several wires into one pin, in that order.",
        "total = AddN(inputs=[[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])",
    ),
    Helper(
        "Operation",
        "An output seen as the operation behind it, to be executed without a value.",
        "The block itself, among the targets of the page or before another block.",
        "v = variable([1.0, 2.0])\nadd = AssignAdd(ref=v, value=[10.0, 10.0])\nlast = Identity(input=7, after=add)",
    ),
    Helper(
        "Output",
        "An output of an operation, by its number; its program could not make the block, and dropped the number.",
        "The wire from that output.",
        "parts = Split(axis=0, value=[1.0, 2.0, 3.0, 4.0], num_split=2)\nsecond = Neg(x=parts[1])",
    ),
    Helper("Status", "A stub that did nothing.", "It is left out, and the report of an import says so.", _PASSED),
    Helper(
        "AddSymbolicGradients",
        "It added the gradients of its outputs with respect to its inputs, starting with ones.",
        "The blocks of the gradients, as `vg.gradients` adds them; they can be seen, moved and differentiated again.",
        _PASSED,
    ),
)
HELPER_PAGES = {one.name: one for one in _ALL}
assert sorted(HELPER_PAGES) == sorted(HELPERS)
