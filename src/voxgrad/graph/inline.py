# SPDX-License-Identifier: Apache-2.0
"""Puts the blocks of a page in the place of the block that stands for it."""

from __future__ import annotations

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.block import Block, Output, Source
from voxgrad.graph.page import Page


def inline(page: Page, block: Block) -> Page:
    """Replace a block that stands for a page by copies of the blocks of that page, in a scope of the block's name."""
    used = block.used_page
    if used is None:
        got = block.op_name or block.uses
        raise InvalidArgumentError(Fault("VG050", "Page.inline", block.name, "stand for a page", got))
    inputs = dict(zip(used.input_blocks, used.input_names, strict=True))
    entries = {Output(inner, 0): _entry(block, name) for inner, name in inputs.items()}
    name, control, readers = block.name, list(block.control), _readers(block)
    outputs = list(used.outputs.values())
    page.remove(block)
    scope = page.sub(name)
    copies = _copies(page, scope, used, inputs.keys(), control)
    for inner, copy in copies.items():
        for pin, sources in inner.sources.items():
            for source in sources:
                page.attach(copy, pin, _moved(source, entries, copies))
        page.run_after(copy, *(copies[other] for other in inner.control if other in copies))
    for reader, pin, sources in readers:
        page.disconnect(reader, pin)
        for source in sources:
            page.attach(reader, pin, _rewired(source, block, outputs, entries, copies))
    return scope


def _entry(block: Block, pin: str) -> Source:
    sources = block.sources.get(pin)
    if not sources:
        raise InvalidArgumentError(Fault("VG001", block.uses, f"{block.name}.{pin}", "be connected", "nothing"))
    return sources[0]


def _readers(block: Block) -> list[tuple[Block, str, list[Source]]]:
    return [
        (reader, pin, list(sources))
        for reader in block.readers
        for pin, sources in reader.sources.items()
        if any(isinstance(one, Output) and one.block is block for one in sources)
    ]


def _copies(page: Page, scope: Page, used: Page, skipped: object, control: list[Block]) -> dict[Block, Block]:
    copies: dict[Block, Block] = {}
    for inner in used.blocks:
        if inner in skipped:  # type: ignore[operator]
            continue
        if inner.uses:
            if inner.uses not in page.pages:
                page.define(inner.uses, used.pages[inner.uses])
            copy = scope.use(inner.uses, name=inner.name)
        else:
            copy = scope.add(inner.op or inner.op_name, attrs=inner.attrs, name=inner.name)
        copy.position = inner.position
        page.run_after(copy, *control)
        copies[inner] = copy
    return copies


def _moved(source: Source, entries: dict[Output, Source], copies: dict[Block, Block]) -> Source:
    if not isinstance(source, Output):
        return source
    return entries[source] if source in entries else Output(copies[source.block], source.index)


def _rewired(
    source: Source, block: Block, outputs: list[Output], entries: dict[Output, Source], copies: dict[Block, Block]
) -> Source:
    if isinstance(source, Output) and source.block is block:
        return _moved(outputs[source.index], entries, copies)
    return source
