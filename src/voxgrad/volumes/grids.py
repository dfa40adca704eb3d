# SPDX-License-Identifier: Apache-2.0
"""Where the results of a page lie in space: the dimensions of its volumes, followed through the blocks.

Windows move cells as their geometry says, ordinary ops as they say which dimensions they follow (`catalog/locality`).
Where inputs lie at different places, or an op follows nothing, the result has no place, and a file says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxgrad.catalog.dims import all_known
from voxgrad.catalog.locality import tensors_of
from voxgrad.catalog.model import Call, Op, Side
from voxgrad.catalog.problem import Problem, solve
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.graph.block import Block, Output
from voxgrad.graph.build import add_block
from voxgrad.graph.infer import Inference
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.graph.values import spec_of
from voxgrad.volumes.space import NOWHERE, Along, Space

Dims = tuple[Along | None, ...]


def spaces(inference: Inference, volumes: Mapping[Output, Space], wanted: Sequence[Output]) -> dict[Output, Space]:
    """The space of every wanted result [N, D, H, W, C] that has one, from those of the volumes, of the same order."""
    known: list[Space] = []
    found: dict[Output, Dims] = {}
    for output, space in volumes.items():
        if space.is_known:
            at = next((at for at, one in enumerate(known) if one.equals(space)), len(known))
            known += [space] if at == len(known) else []
            found[output] = (None, *(Along(at, axis) for axis in range(3)), None)
    for block in order([output.block for output in wanted], fed=volumes).blocks:
        call = inference.calls.get(block)
        if call is not None and block.outputs and block.outputs[0] not in volumes:
            for output in block.outputs:
                found[output] = _through(inference, block, call, output, found)
    placed = {output: _spatial(found[output]) for output in wanted if output in found}
    return {output: known[dims[0].volume].resampled(dims) for output, dims in placed.items() if dims}


def _spatial(dims: Dims) -> list[Along]:
    """Depth, height and width, where they run along three axes of one volume."""
    middle = [one for one in dims[1:4] if one is not None]
    whole = len(dims) == 5 and len({(one.volume, one.axis) for one in middle}) == 3
    return middle if whole and len({one.volume for one in middle}) == 1 else []


def _through(
    inference: Inference, block: Block, call: Call, output: Output, found: Mapping[Output, Dims]
) -> Dims:  # fmt: skip
    """The dimensions of a result: what all inputs that have a say agree on."""
    shape = inference.spec(output).shape
    if shape is None or not all_known(shape) or any(not all_known(one.shape) for one in tensors_of(call)):
        return ()
    sources = [source for item in call.op.inputs for source in block.sources.get(item.name, ())]
    inputs = [found.get(one, ()) if isinstance(one, Output) else () for one in sources]
    told: list[set[Along]] = [set() for _ in shape]
    for at, along in _windowed(call, inputs) if call.op.problem is not None else _followed(call, shape, inputs):
        told[at].add(along)
    return tuple(next(iter(one)) if len(one) == 1 else None for one in told)


def _windowed(call: Call, inputs: Sequence[Dims]) -> list[tuple[int, Along]]:
    """What the inputs of a windowed op say of the spatial dimensions of its result."""
    problem = solve(call)
    if not isinstance(problem, Problem) or problem.map.output is Side.TAPS:
        return []
    first, to = (1 if problem.channels_last else 2), problem.map.output
    told: list[tuple[int, Along]] = []
    for dims, item in zip(inputs, call.op.inputs, strict=True):
        for at in range(first, first + 3) if dims and item.layout == "data" else ():
            along, axis = dims[at], problem.axes[at - first]
            if along is not None and item.side is not to:
                along = along.windows(axis) if to is Side.WINDOWS else along.cells(axis)
            if along is not None:
                told.append((at, along))
    return told


def _followed(call: Call, shape: Sequence[int], inputs: Sequence[Dims]) -> list[tuple[int, Along]]:
    """What the inputs of an ordinary op say of the dimensions of its result that follow theirs."""
    if call.op.follows is None:
        return []
    return [
        (place, along)
        for dims, places in zip(inputs, call.op.follows(call, tuple(shape)), strict=True)
        for along, place in zip(dims, places if isinstance(places, tuple) else (), strict=False)
        if along is not None and place is not None
    ]


def space_of_call(op: Op, values: Mapping[str, Any], inputs: Mapping[str, Sequence[Space]]) -> Space:
    """The space of the first result of a call, from those of the files that its inputs came from."""
    page = Page(op.name, semantics=current_semantics())
    volumes: dict[Output, Space] = {}

    def placed(name: str, value: Any, space: Space) -> Output:
        spec = spec_of(value)
        made: Output = add_block(page, find("Placeholder"), (), {"dtype": spec.dtype, "shape": list(value.shape)}, name)
        volumes[made] = space
        return made

    given = dict(values)
    for item in op.inputs:
        if item.name in inputs and not item.host:
            parts = given[item.name] if item.many else [given[item.name]]
            made = [placed(item.name, *one) for one in zip(parts, inputs[item.name], strict=True)]
            given[item.name] = made if item.many else made[0]
    add_block(page, op, (), given, "result")
    result = page.output("result")
    return spaces(page.infer(), volumes, [result]).get(result, NOWHERE)
