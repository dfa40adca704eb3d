# SPDX-License-Identifier: Apache-2.0
"""From the nodes of a graph to the blocks of a page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.catalog import registry
from voxgrad.catalog.model import Op
from voxgrad.errors import VoxgradError
from voxgrad.formats.graphdef.values import attribute
from voxgrad.formats.report import CHANGED, LOST, NOTED, Report
from voxgrad.formats.tensor_files import bad_file
from voxgrad.graph.block import Block
from voxgrad.graph.page import Page
from voxgrad.kernels.wire import Message, broken, parse

MAX_FILE = 2**31
MOST_SPREAD = 2**28
"""Bytes of constants that a file of any size may state."""


def import_graph(path: str | PathLike[str]) -> tuple[Page, Report]:
    """The page of a GraphDef file, and what is to tell about it."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_FILE:
            raise bad_file(file, f"have at most {MAX_FILE:,} bytes", "more")
        data = file.read_bytes()
    except OSError as error:
        raise bad_file(file, "be a file that can be read", error.strerror or error) from None
    return convert(data, file.name, file.stem)


def convert(data: bytes, source: str, title: str) -> tuple[Page, Report]:
    """The page of a serialized GraphDef."""
    graph = parse(data, source)
    nodes = list(graph.messages(1))
    if not nodes:
        raise broken(source, "no nodes")
    report = Report()
    page = Page(title or "graph")
    if graph.message(2).chunks.get(1):
        report.add(LOST, "library", "functions are not read; nodes that call them stay unknown blocks")
    blocks: dict[str, Block] = {}
    total = 0
    for node in nodes:
        name = node.text(1)
        if not name or name in blocks:
            raise broken(source, f"two nodes with the name {name!r}" if name else "a node without a name")
        attrs = _attributes(node)
        total += sum(value.nbytes for value in attrs.values() if isinstance(value, np.ndarray))
        if total > max(MOST_SPREAD, 16 * len(data)):
            # A value that is given once stands for all elements: a small file could fill the memory.
            raise broken(source, f"constants of {total:,} bytes or more in a file of {len(data):,}")
        blocks[name] = _block(page, node, attrs, report)
    for node in nodes:
        _wire(page, blocks, node, report)
    return page, report


def _attributes(node: Message) -> dict[str, Any]:
    """What a node states for the attributes of its op, where that is not the default."""
    op = registry.OPS.get(node.text(2))
    given = {entry.text(1): entry.message(2) for entry in node.messages(5)}
    found = {attr: attribute(given[attr.name]) for attr in (op.attrs if op else ()) if attr.name in given}
    return {
        attr.name: value
        for attr, value in found.items()
        if attr.required or (value is not None and _differs(value, attr.default))
    }


def _block(page: Page, node: Message, attrs: dict[str, Any], report: Report) -> Block:
    name, op_name = node.text(1), node.text(2)
    if op_name not in registry.OPS:
        report.add(LOST, name, f"there is no op {op_name}; the block is kept, but cannot run")
    if node.text(4):
        report.add(NOTED, "devices", "nodes name devices; here a run chooses one")
    try:
        block = page.add(op_name or "NoOp", attrs=attrs, name=name)
    except VoxgradError:
        block = page.add(op_name or "NoOp", attrs=attrs)
        report.add(CHANGED, name, f"is now called {block.name}: a block cannot have that name")
        return block
    # A node may have the name of a scope that came before it: names are what they are.
    return block if block.name == name else page.rename(block, name)


def _differs(value: Any, default: Any) -> bool:
    plain = list(default) if isinstance(default, tuple) else getattr(default, "name", default)
    return bool(value != plain)


def _wire(page: Page, blocks: dict[str, Block], node: Message, report: Report) -> None:
    """Wire a block: TensorFlow lists all inputs in one row, control edges at its end."""
    block = blocks[node.text(1)]
    inputs = [chunk.decode("utf-8", "replace") for chunk in node.chunks.get(3, ())]
    data = [text for text in inputs if not text.startswith("^")]
    page.run_after(block, *(blocks[text[1:]] for text in inputs if text.startswith("^") and text[1:] in blocks))
    pins = _pins(block.op, len(data))
    if len(pins) != len(data):
        report.add(LOST, block.name, f"{block.op_name} takes {len(pins)} inputs, and the node has {len(data)}")
    for pin, text in zip(pins, data, strict=False):
        name, _, index = text.partition(":")
        source = blocks.get(name)
        if source is None or (index and not index.isdecimal()):
            report.add(LOST, f"{block.name}.{pin}", f"there is no output {text}")
            continue
        output = source.output(index or "0") if source.op is None else source.output(int(index[:6] or 0))
        page.attach(block, pin, output)


def _pins(op: Op | None, count: int) -> list[str]:
    """The pin of every input in the row. Lists share evenly what the others leave."""
    if op is None:
        return [f"input_{index}" for index in range(count)]
    lists = sum(item.many for item in op.inputs)
    share = max(0, count - (len(op.inputs) - lists)) // max(lists, 1)
    return [item.name for item in op.inputs for _ in range(share if item.many else 1)]
