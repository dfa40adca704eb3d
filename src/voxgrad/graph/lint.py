# SPDX-License-Identifier: Apache-2.0
"""What is allowed and most likely not meant: shapes fit, the page runs, and its numbers mean nothing.

A max-pool gradient compares the cells of orig_input with orig_output, so that it answers for any orig_output
(docs/decisions/0002). It is the gradient of a pool only where orig_output is the pool of orig_input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from voxgrad.arrays import execute, ordinary
from voxgrad.catalog import registry
from voxgrad.catalog.model import Op
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import VoxgradError, show
from voxgrad.graph.block import Block, Output
from voxgrad.graph.fixes import computed_pool
from voxgrad.graph.infer import Inference
from voxgrad.graph.problems import PinProblem

MOST_LOOKED_AT = 2**20
"""Elements of a constant that is looked into."""


def warnings_of(inference: Inference) -> list[PinProblem]:
    """The warnings of a page, in the order of its blocks; a block that is wrong, or whose pool is, has none."""
    wrong = {problem.block for problem in inference.problems()}
    found: list[PinProblem] = []
    for block in inference.store.blocks.values():
        inner = warnings_of(inference.inner[block]) if block in inference.inner else []
        found += [replace(one, block=f"{block.name}/{one.block}", fixes=()) for one in inner]
        pool = pool_of(block)
        if pool is None or block.name in wrong:
            continue
        assert block.op is not None
        inputs, outputs = (block.sources.get(name, []) for name in (block.op.inputs[0].name, block.op.maxima))
        sources = [one for one in (*inputs, *outputs) if isinstance(one, Output)]
        if len(inputs) == len(outputs) == 1 and len(sources) == 2 and sources[1].block.name not in wrong:
            found += _check(inference, block, pool, *sources)
    return found


def pool_of(block: Block) -> Op | None:
    """The pool that a gradient which is given its maxima belongs to."""
    return registry.OPS[block.op.of] if block.op is not None and block.op.maxima else None


def _check(inference: Inference, block: Block, pool: Op, x: Output, y: Output) -> list[PinProblem]:
    got = _other_pool(inference, block, x, y) if y.block.op is pool else _other_values(inference, block, pool, x, y)
    if not got:
        return []
    wanted, remedy = f"be the {pool.name} of orig_input", "As it is, the result is not a gradient of that pool."
    fixes = tuple(computed_pool(inference, block))
    return [PinProblem(block.name, "orig_output", block.op_name, "VG080", wanted, got, remedy, fixes)]


def _attrs(inference: Inference, block: Block, pool: Op) -> dict[str, Any]:
    """The attributes of a pool, or those that a gradient of it has."""
    given = inference.calls[block].attrs
    return {attr.name: given[attr.name] for attr in pool.attrs if attr.name in given}


def _other_pool(inference: Inference, block: Block, x: Output, y: Output) -> str:
    """What tells a pool on the page from the one that the gradient belongs to."""
    pool = y.block.op
    assert pool is not None
    if y.block.sources.get(pool.inputs[0].name) != [x]:
        return f"{y.block.name}, the pool of another input"
    own, other = _attrs(inference, block, pool), _attrs(inference, y.block, pool)
    differ = [f"{name} {show(other[name])}" for name in own if other[name] != own[name]]
    return f"{y.block.name}, which has {', '.join(differ)}" if differ else ""


def _other_values(inference: Inference, block: Block, pool: Op, x: Output, y: Output) -> str:
    """Which constant is not the pool of the other, where both are constants."""
    given, stated = (_constant(inference, one) for one in (x, y))
    if given is None or stated is None:
        return ""
    run = execute.execute if pool.problem is not None else ordinary.execute
    try:
        with semantics(inference.store.semantics):
            made = run(pool, {pool.inputs[0].name: given, **_attrs(inference, block, pool)})
    except VoxgradError:
        return ""
    differ = np.argwhere(~((made == stated) | ((made != made) & (stated != stated))))
    if not len(differ):
        return ""
    at = tuple(differ[0].tolist())
    return f"{stated[at]} at {show(list(at))}, where the pool is {made[at]}"


def _constant(inference: Inference, output: Output) -> np.ndarray[Any, Any] | None:
    call = inference.calls.get(output.block)
    value = call.attrs.get("value") if call is not None and call.op.name == "Const" else None
    return value if isinstance(value, np.ndarray) and value.size <= MOST_LOOKED_AT else None
