# SPDX-License-Identifier: Apache-2.0
"""The files of another machine that a page reads: which blocks name them, and how their records have to look."""

from __future__ import annotations

from collections.abc import Mapping

from voxgrad.graph.block import Block, Output
from voxgrad.graph.order import downstream
from voxgrad.graph.page import Page

FOLDER = "files"
"""Where a page has its files, beside itself."""
MAX_DESCRIBED = 100
"""A page that names more files is not searched for what reads each."""


def files_read(page: Page, named: Mapping[Block, list[str]]) -> dict[str, str]:
    """What to tell of every file that is read and not written, from the files that blocks name."""
    users: dict[Block, list[Block]] = {}
    for wire in page.wires if named else ():
        users.setdefault(wire.source.block, []).append(wire.block)
    written: set[str] = set()
    found: dict[str, str] = {}
    for block, names in named.items():
        if all(map(_writes_files, users.get(block, [block]))):
            written |= set(names)
            continue
        shape = _records(page, block) if len(named) <= MAX_DESCRIBED else ""
        told = f"{block.name} reads it; put it into {FOLDER}/ beside the page{shape}"
        found |= {name: told for name in names if name not in found}
    return {name: told for name, told in found.items() if name not in written}


def _writes_files(block: Block) -> bool:
    return block.op is not None and block.op.group == "io" and not block.op.outputs


def _records(page: Page, block: Block) -> str:
    """How a reader cuts a file whose name goes to it through a queue."""
    reached = downstream([block])
    queues = {_source(one, "handle") for one in reached if one.op_name.startswith("QueueEnqueue")}
    for one in page.blocks:
        reader = _source(one, "reader_handle")
        if reader is not None and _source(one, "queue_handle") in queues and "record_bytes" in reader.attrs:
            size, header = reader.attrs["record_bytes"], reader.attrs.get("header_bytes", 0)
            return f": records of {size} bytes" + (f" behind {header} bytes of header" if header else "")
    return ""


def _source(block: Block, pin: str) -> Block | None:
    source = next(iter(block.sources.get(pin, ())), None)
    return source.block if isinstance(source, Output) else None
