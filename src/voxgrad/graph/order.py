# SPDX-License-Identifier: Apache-2.0
"""The order in which blocks can run: each after all that it reads from or waits for. Without recursion."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from voxgrad.graph.block import Block, Output


class Order(NamedTuple):
    """Blocks in an order in which they can run, and the rings of blocks that wait for each other."""

    blocks: list[Block]
    cycles: list[list[Block]]


def needs(block: Block, fed: Container[Output] = ()) -> list[Block]:
    """The blocks that must run before this one; an output that is fed needs nobody."""
    found = [
        source.block
        for sources in block.sources.values()
        for source in sources
        if isinstance(source, Output) and not (fed and source in fed)
    ]
    return found + block.control if block.control else found


def order(roots: Iterable[Block], fed: Container[Output] = (), within: Container[Block] | None = None) -> Order:
    """The roots and all that they need (`within` some blocks), in the order of the page as far as wires allow."""
    done: set[Block] = set()
    entered: set[Block] = set()
    result = Order([], [])
    for root in roots:
        if root in done:
            continue
        entered.add(root)
        path: list[tuple[Block, Iterator[Block]]] = [(root, iter(needs(root, fed)))]
        while path:
            block, rest = path[-1]
            for other in rest:
                if other in done or (within is not None and other not in within):
                    continue
                if other in entered:
                    result.cycles.append(_ring(path, other))
                    continue
                entered.add(other)
                path.append((other, iter(needs(other, fed))))
                break
            else:
                path.pop()
                done.add(block)
                result.blocks.append(block)
    return result


PUTS, TAKES = ("QueueEnqueue",), ("QueueDequeue", "ReaderRead")
"""How the names of ops begin that put entries into a queue, and of those that wait for entries."""


def run_order(roots: Sequence[Block], fed: Container[Output] = ()) -> Order:
    """As `order`, with queues filled before they are read: blocks run one by one, so nobody may wait for a later one.

    Where filling a queue itself needs entries of others, those are filled first.
    """
    found = order(roots, fed)
    puts = [block for block in found.blocks if block.op_name.startswith(PUTS)]
    if not puts:
        return found
    takes = {put: sum(one.op_name.startswith(TAKES) for one in order([put], fed).blocks) for put in puts}
    return order([*sorted(puts, key=takes.__getitem__), *roots], fed)


def _ring(path: list[tuple[Block, Iterator[Block]]], start: Block) -> list[Block]:
    blocks = [block for block, _ in path]
    return blocks[blocks.index(start) :]


def downstream(blocks: Iterable[Block]) -> set[Block]:
    """These blocks and all that read from them, directly or through others."""
    found = set(blocks)
    waiting = list(found)
    while waiting:
        for reader in waiting.pop().readers:
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found
