# SPDX-License-Identifier: Apache-2.0
"""Where the results of a page lie in space: the dimensions of its volumes, followed through the blocks.

Windows move cells as their geometry says, ordinary ops as they say where their cells lie (`catalog/locality`).
Where inputs lie at different places, or an op keeps no places, the result has none, and says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from voxgrad.catalog.dims import all_known
from voxgrad.catalog.locality import Shift, lies, tensors_of
from voxgrad.catalog.model import Call, Op, Side, Spec
from voxgrad.catalog.problem import Problem, solve
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import VoxgradError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.build import add_block
from voxgrad.graph.infer import Inference
from voxgrad.graph.order import order
from voxgrad.graph.page import Page
from voxgrad.graph.values import spec_of
from voxgrad.graph.volume_files import header
from voxgrad.volumes.layout import flat
from voxgrad.volumes.space import NOWHERE, Along, Space
from voxgrad.volumes.store import Store

Dims = tuple[Along | None, ...]


@dataclass(frozen=True, slots=True)
class Lattice:
    """Where the elements of a tensor lie: its dimensions along those of a volume, None where they run along none.

    `lost` says why dimensions that lay along a volume do so no more.
    """

    space: Space
    dims: Dims
    lost: str = ""


def spaces(inference: Inference, volumes: Mapping[Output, Space], wanted: Sequence[Output]) -> dict[Output, Space]:
    """The space of every wanted result [N, D, H, W, C] that is made of volumes with one, which have the same order.

    A result that has no place of its own says why.
    """
    known, found, lost = _followed(inference, volumes, wanted)
    made = {}
    for output in wanted:
        dims = _spatial(found.get(output, ()))
        if dims:
            made[output] = known[dims[0].volume].resampled(dims)
        elif _axes(found.get(output, ())) or output in lost:
            made[output] = Space(lost=lost.get(output, "its dimensions are not depth, height and width"))
    return made


def lattices(page: Page) -> dict[str, Lattice]:
    """Where the elements of every output lie that is made of the page's own volumes, by its path in the flat page."""
    copy = flat(page) if any(block.uses for block in page.blocks) else page
    volumes: dict[Output, Space] = {}
    for block in _volume_blocks(copy):
        with suppress(VoxgradError):  # A file that cannot be read lies nowhere; that it cannot is told elsewhere.
            volumes[block.output(0)] = _own_space(copy, block)
    wanted = [output for block in copy.blocks for output in block.outputs]
    known, found, lost = _followed(copy.infer(), volumes, wanted)
    made = {}
    for output in wanted:
        dims = found.get(output, ())
        at = {volume for volume, _ in _axes(dims)}
        if len(at) == 1:
            made[output.path] = Lattice(known[at.pop()], dims, lost.get(output, ""))
        elif output in lost:
            made[output.path] = Lattice(NOWHERE, (), lost[output])
    return made


def _followed(
    inference: Inference, volumes: Mapping[Output, Space], wanted: Sequence[Output]
) -> tuple[list[Space], dict[Output, Dims], dict[Output, str]]:
    """The places of volumes that differ, the dimensions of results along them, and why some results have none."""
    known: list[Space] = []
    found: dict[Output, Dims] = {}
    lost: dict[Output, str] = {}
    for output, space in volumes.items():
        if space.is_known:
            at = next((at for at, one in enumerate(known) if one.equals(space)), len(known))
            known += [space] if at == len(known) else []
            found[output] = (None, *(Along(at, axis) for axis in range(3)), None)
    for block in order([output.block for output in wanted], fed=volumes).blocks:
        call = inference.calls.get(block)
        if call is not None and block.outputs and block.outputs[0] not in volumes:
            for output in block.outputs:
                found[output], why = _through(inference, block, call, output, found, lost)
                lost |= {output: why} if why else {}
    return known, found, lost


def _axes(dims: Dims) -> set[tuple[int, int]]:
    """The axes of volumes along which dimensions run."""
    return {(one.volume, one.axis) for one in dims if one is not None}


def _spatial(dims: Dims) -> list[Along]:
    """Depth, height and width, where they run along three axes of one volume."""
    middle = [one for one in dims[1:4] if one is not None]
    whole = len(dims) == 5 and len(_axes(dims[1:4])) == 3
    return middle if whole and len({one.volume for one in middle}) == 1 else []


def _through(
    inference: Inference, block: Block, call: Call, output: Output, found: Mapping[Output, Dims],
    lost: Mapping[Output, str],
) -> tuple[Dims, str]:  # fmt: skip
    """The dimensions of a result, what all inputs that have a say agree on; and why some are lost, where they are."""
    shape = inference.spec(output).shape
    sources = [source for item in call.op.inputs for source in block.sources.get(item.name, ())]
    inputs = [found.get(one, ()) if isinstance(one, Output) else () for one in sources]
    why = next((lost[one] for one in sources if isinstance(one, Output) and one in lost), "")
    there = max((len(_axes(dims)) for dims in inputs), default=0)
    if not there:
        return (), why
    told: list[set[Along]] = []
    if shape is not None and all_known(shape) and all(all_known(one.shape) for one in tensors_of(call)):
        told = [set() for _ in shape]
        windowed = call.op.problem is not None
        for at, along in _windowed(call, inputs) if windowed else _moved(call, shape, inputs, output.index):
            told[at].add(along)
    made = tuple(next(iter(one)) if len(one) == 1 else None for one in told)
    if len(_axes(made)) < there:
        apart = any(len(one) > 1 for one in told)
        why = f"{block.name} ({call.op.name}) " + (
            "joins volumes that lie at different places" if apart else "does not keep voxels at their places"
        )
    return made, why


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


def _moved(call: Call, shape: Sequence[int], inputs: Sequence[Dims], number: int) -> list[tuple[int, Along]]:
    """What the inputs of an ordinary op say of the dimensions of a result that lie along theirs."""
    told: list[tuple[int, Along]] = []
    for dims, places in zip(inputs, lies(call, tuple(shape), number), strict=True):
        for along, place in zip(dims, places if isinstance(places, tuple) else (), strict=False):
            shift = place if isinstance(place, Shift) else Shift(place, 0)
            if along is not None and shift.place is not None:
                told.append((shift.place, along.moved(shift.start, shift.step)))
    return told


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


def space_on_page(page: Page, output: Output, fed: Mapping[str, Store]) -> Space:
    """The space of a result of a page, from the volumes that were fed to it and those of its own Volume blocks."""
    exposed = next((name for name, one in page.outputs.items() if one == output), None)
    copy = flat(page)
    if exposed is None and all(block.name != output.block.name for block in copy.blocks):
        return Space(lost=f"{output.block.name} is a page, and {output.pin} none of its outputs")
    target = copy.output(output.path) if exposed is None else copy.outputs[exposed]
    given = {copy.output(name): store for name, store in fed.items()}
    shapes = {one: Spec(one.dtype, store.shape) for one, store in given.items()}
    placed = {one: store.space for one, store in given.items()}
    return spaces(copy.infer().given(shapes), own_spaces(copy) | placed, [target]).get(target, NOWHERE)


def own_spaces(page: Page) -> dict[Output, Space]:
    """Where the volumes of a page's own Volume blocks lie, and boxes of them."""
    return {block.output(0): _own_space(page, block) for block in _volume_blocks(page)}


def _volume_blocks(page: Page) -> list[Block]:
    return [block for block in page.blocks if block.op_name == "Volume"] if page.files else []


def _own_space(page: Page, block: Block) -> Space:
    told = header(page.files, block.attrs["path"], block.attrs.get("axes", ""))
    return Space.from_data(told).boxed(block.attrs.get("box") or ())
