# SPDX-License-Identifier: Apache-2.0
"""Blocks replaced by the blocks that their op is made of, where the catalogue says so: what it does, in small steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from voxgrad.graph.block import Block, Output
from voxgrad.graph.gradients import Builder, node_of
from voxgrad.graph.order import downstream
from voxgrad.graph.page import Page


def spell_out(page: Page, behind: Iterable[Output]) -> dict[Output, Output]:
    """Replace all such blocks behind these outputs; returns what stands for each output that is gone."""
    moved: dict[Output, Output] = {}
    found = downstream(output.block for output in behind)
    for block in [one for one in page.blocks if one in found and one.op is not None and one.op.made_of is not None]:
        moved |= _replaced(page, block)
    return moved


def _replaced(page: Page, block: Block) -> dict[Output, Output]:
    assert block.op is not None and block.op.made_of is not None
    made = block.op.made_of(Builder(page.sub(f"{block.name}_made_of", unique=True)), node_of(block))
    exits = dict(zip(block.outputs, made, strict=True))

    def rewired(source: Any) -> Any:
        return exits.get(source, source) if isinstance(source, Output) else source

    for reader in block.readers:
        page.set_sources(reader, {pin: [rewired(one) for one in some] for pin, some in reader.sources.items()})
        if block in reader.control:
            page.run_after(reader, *(output.block for output in exits.values()))
    page.expose({pin: rewired(one) for pin, one in page.outputs.items()}, page.store.inputs)
    page.remove(block)
    return exits
