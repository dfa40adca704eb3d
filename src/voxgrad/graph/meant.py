# SPDX-License-Identifier: Apache-2.0
"""What the pins of a gradient are meant to take: of `TanhGrad`, y is what Tanh gave, and not what it was given.

That is an op's own fact, in the function that builds its gradient; here it is asked once, on a page of two blocks.
"""

from __future__ import annotations

from functools import lru_cache

from voxgrad.catalog import registry
from voxgrad.catalog.model import Op
from voxgrad.graph.block import Block, Output

GIVEN, GAVE = "was given", "gave"
_EITHER = ("ReluGrad", "Relu6Grad", "LeakyReluGrad")
"""They look where the slope changes: there a block's input and its output are on the same side."""


@lru_cache(maxsize=256)
def meant(name: str) -> tuple[Op, str, str] | None:
    """Of a gradient of one function of one tensor: the forward op, the pin that takes one of its ends, and which."""
    op = registry.OPS[name]
    forward = registry.OPS.get(op.name.removesuffix("Grad"))
    if op.name in _EITHER or op.of or forward is None or forward is op or len(op.inputs) != 2:
        return None
    if len(forward.inputs) != 1 or len(forward.outputs) != 1 or forward.inputs[0].many:
        return None
    return _asked(op, forward)


def _asked(op: Op, forward: Op) -> tuple[Op, str, str] | None:
    from voxgrad.graph.gradients import gradients
    from voxgrad.graph.page import Page

    page = Page(op.name)
    x = page.add("Placeholder", attrs={"dtype": "float32", "shape": [2]})
    y = page.add(forward, {forward.inputs[0].name: x.outputs[0]})
    gradients([y.outputs[0]], [x.outputs[0]])
    made = next((block for block in page.blocks if block.op is op), None)
    ends = {x.outputs[0]: GIVEN, y.outputs[0]: GAVE}
    for pin, sources in made.sources.items() if made is not None else ():
        if len(sources) == 1 and isinstance(sources[0], Output) and sources[0] in ends:
            return forward, pin, ends[sources[0]]
    return None


def exchanged(block: Block) -> tuple[str, Output, str, Block, Output] | None:
    """The pin of a gradient that takes the wrong end of a forward block on the page: the pin, what it takes, which end
    was meant, of which block, and the output to wire."""
    found = meant(block.op_name) if block.op is not None else None
    if found is None:
        return None
    forward, pin, end = found
    sources = block.sources.get(pin, [])
    if len(sources) != 1 or not isinstance(sources[0], Output):
        return None
    taken, given = sources[0], forward.inputs[0].name
    readers = [other for other in taken.block.readers if other.op is forward and other.sources.get(given) == [taken]]
    gave = taken.block if taken.block.op is forward else None
    if end == GAVE and gave is None and readers:
        return pin, taken, end, readers[0], readers[0].outputs[0]
    source = gave.sources.get(given, [None])[0] if gave is not None else None
    if end == GIVEN and gave is not None and not readers and isinstance(source, Output):
        return pin, taken, end, gave, source
    return None
