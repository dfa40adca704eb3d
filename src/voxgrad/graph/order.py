# SPDX-License-Identifier: Apache-2.0
"""The order in which blocks can run: each after all that it reads from or waits for. Without recursion."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from voxgrad.graph.block import Block, Output
from voxgrad.graph.modes import working


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
    return found + working(block.control) if block.control else found


def order(roots: Iterable[Block], fed: Container[Output] = (), within: Container[Block] | None = None) -> Order:
    """The roots and all that they need (`within` some blocks), in the order of the page as far as wires allow.

    Of rings that share blocks, one is told: there can be as many as there are wires, each as long as the page.
    """
    done: set[Block] = set()
    entered: dict[Block, int] = {}
    """Blocks with their places on the path that is walked. `told` are the parts of it that are rings."""
    result = Order([], [])
    for root in roots:
        if root in done:
            continue
        entered[root] = 0
        told: list[tuple[int, int]] = []
        path: list[tuple[Block, Iterator[Block]]] = [(root, iter(needs(root, fed)))]
        while path:
            block, rest = path[-1]
            for other in rest:
                if other in done or (within is not None and other not in within):
                    continue
                if other in entered:
                    if not told or min(told[-1][1], len(path)) <= entered[other]:
                        result.cycles.append([one for one, _ in path[entered[other] :]])
                        told.append((entered[other], len(path)))
                    continue
                entered[other] = len(path)
                path.append((other, iter(needs(other, fed))))
                break
            else:
                path.pop()
                if told and told[-1][0] >= len(path):
                    told.pop()
                done.add(block)
                result.blocks.append(block)
    return result


PUTS, TAKES = ("QueueEnqueue",), ("QueueDequeue", "ReaderRead")
"""How the names of ops begin that put entries into a queue, and of those that wait for one."""


def run_order(roots: Iterable[Block], fed: Container[Output] = ()) -> Order:
    """As `order`, for blocks that run one by one: a queue is filled before it is read, and what changes a variable runs
    only when nothing else can.

    So nobody waits for a later block, and all that reads a variable gets what it held before the run, unless a wire or
    a control edge says otherwise. TensorFlow leaves both to chance.
    """
    found = order(roots, fed)
    late = {block for block in found.blocks if block.op is not None and any(item.ref for item in block.op.inputs)}
    fills = _fills(found.blocks, fed)
    if found.cycles or not (late or fills):
        return found
    place = {block: index for index, block in enumerate(found.blocks)}
    missing = {block: {*needs(block, fed), *fills.get(block, ())} & place.keys() for block in found.blocks}
    readers: dict[Block, list[Block]] = {}
    for block, others in missing.items():
        for other in others:
            readers.setdefault(other, []).append(block)
    ready = [(block in late, place[block], block) for block in found.blocks if not missing[block]]
    heapq.heapify(ready)
    blocks: list[Block] = []
    while ready:
        block = heapq.heappop(ready)[2]
        blocks.append(block)
        for reader in readers.get(block, ()):
            missing[reader].discard(block)
            if not missing[reader]:
                heapq.heappush(ready, (reader in late, place[reader], reader))
    # Queues that fill each other in a ring have no such order; then the order of the page stands.
    return Order(blocks, []) if len(blocks) == len(found.blocks) else found


def _fills(blocks: Sequence[Block], fed: Container[Output]) -> dict[Block, list[Block]]:
    """For each block that takes from a queue, those that fill the queue and do not need the block themselves."""
    puts = [block for block in blocks if block.op_name.startswith(PUTS)]
    takes = [block for block in blocks if block.op_name.startswith(TAKES)] if puts else []
    if not takes:
        return {}
    before = {put: set(order([put], fed).blocks) for put in puts}
    return {take: [put for put in puts if _queues(put) & _queues(take) and take not in before[put]] for take in takes}


def _queues(block: Block) -> set[Block]:
    """The blocks that a block has its queue from."""
    found = (block.sources.get(pin, ()) for pin in ("handle", "queue_handle"))
    return {one.block for sources in found for one in sources if isinstance(one, Output)}


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
