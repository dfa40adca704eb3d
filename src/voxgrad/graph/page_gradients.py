# SPDX-License-Identifier: Apache-2.0
"""The gradient of a page that is used as a block: a page of its blocks and of their gradients, used as a block.

It takes what the page takes, and a gradient for each of its outputs; it gives a gradient for each of its inputs. What
of the page itself these need is computed again in it, from the same inputs; a session that keeps results does not
compute it twice. That is sound where the same inputs give the same results, so a page that keeps state or draws random
numbers is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog.model import Spec
from voxgrad.errors import Faults, UnimplementedError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.nesting import available, open_sizes
from voxgrad.graph.order import order
from voxgrad.graph.page import Page


def page_gradient(scope: Page, block: Block, dys: Sequence[Output | None], wanted: Sequence[str]) -> dict[str, Output]:
    """Put the gradient of a block that stands for a page into a scope; the outputs of it by the pins of the block."""
    from voxgrad.graph.gradients import gradients

    used = block.used_page
    assert used is not None
    inner = Page.from_dict(used.to_dict())
    inner.files, inner.origin = used.files, None
    inner.execute([])
    inner.start_with([])
    for display in list(inner.displays):
        inner.displays.remove(display)
    entries = dict(zip(inner.input_names, inner.input_blocks, strict=True))
    known = block.page.infer().inner.get(block)
    for entry, outside in zip(entries.values(), used.input_blocks, strict=True):
        _state(inner, entry, None if known is None else known.bound.get(Output(outside, 0)))
    pairs = [(output, dy) for output, dy in zip(inner.outputs.values(), dys, strict=True) if dy is not None]
    refuse_state(block, inner, [output for output, _ in pairs])
    seeds = [_entry(inner, output, dy) for output, dy in pairs]
    found = gradients([output for output, _ in pairs], [entries[pin].output(0) for pin in wanted], seeds)
    exits = {pin: one for pin, one in zip(wanted, found, strict=True) if one is not None}
    if not exits:
        return {}
    return _used(
        scope, block, inner, exits, dict(zip((one.block for one in seeds), (dy for _, dy in pairs), strict=True))
    )


def _state(inner: Page, entry: Block, spec: Spec | None) -> None:
    """Give an input the type and the shape of what flows in: gradients may be made by them."""
    if entry.op_name == "Placeholder" and spec is not None:
        if spec.dtype is not None:
            inner.set_attr(entry, "dtype", spec.dtype)
        inner.set_attr(entry, "shape", open_sizes(spec.shape))


def _entry(inner: Page, output: Output, dy: Output) -> Output:
    """An input for the gradient of an output."""
    spec = dy.spec
    dtype = spec.dtype if spec.dtype is not None else output.dtype
    attrs: dict[str, Any] = {"dtype": dtype if dtype is not None else "float32"}
    sizes = open_sizes(spec.shape)
    if sizes is not None:
        attrs["shape"] = sizes
    leaf = output.block.name.rpartition("/")[2]
    return inner.add("Placeholder", attrs=attrs, name=f"grad_{leaf}").output(0)


def refuse_state(block: Block, inner: Page, outputs: Sequence[Output]) -> None:
    """What is computed again must be what was computed: variables, queues and random numbers need not be."""
    found = _stateful(order([output.block for output in outputs]).blocks)
    if found is not None:
        faults = Faults(block.uses)
        remedy = f"Put its blocks on this page first: page.inline({block.name!r})."
        wanted = "be a page that gives the same for the same inputs"
        got = f"{found.name} in it, {found.op_name}, which keeps state"
        faults.add("VG064", block.name, wanted=wanted, got=got, remedy=remedy)
        raise UnimplementedError(faults.found)


def _stateful(blocks: Sequence[Block]) -> Block | None:
    for block in blocks:
        if block.op is not None and (block.op.stateful or any(item.ref for item in block.op.outputs)):
            return block
        if block.used_page is not None:
            deep = _stateful(order([one.block for one in block.used_page.outputs.values()]).blocks)
            if deep is not None:
                return deep
    return None


def _used(
    scope: Page, block: Block, inner: Page, exits: dict[str, Output], seeds: dict[Block, Output]
) -> dict[str, Output]:
    """The gradient page, without what its outputs do not need, as a block that is wired as the forward block is."""
    needed = set(order([one.block for one in exits.values()]).blocks)
    names = {}
    for pin, one in exits.items():
        name = f"grad_{pin.replace('.', '_').replace('/', '_')}"
        while name in names:
            name += "_"
        names[name] = one
    entries = [one for one in inner.input_blocks if one in needed and one not in seeds]
    inner.expose(names, [*entries, *(one for one in seeds if one in needed)])
    inner.remove(*(one for one in inner.blocks if one not in needed))
    inner.forget(*inner.pages)
    inner.name = f"gradient of {block.uses}"[:1000]
    sources: dict[str, Any] = {one.name: block.sources[one.name] for one in entries}
    sources |= {one.name: dy for one, dy in seeds.items() if one in needed}
    page = available(scope.store.root, f"{block.uses}_grad", inner)
    made = scope.use(page, sources, name=f"{block.name}_grad")
    return {pin: made.output(name) for pin, name in zip(exits, names, strict=True)}
