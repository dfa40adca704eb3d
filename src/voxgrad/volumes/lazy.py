# SPDX-License-Identifier: Apache-2.0
"""Dask arrays in, lazy Dask arrays out: one task per chunk of the result, with exactly the windows it needs.

The chunks of the result follow those of the first volume. A task depends on the chunks of the inputs that its windows
touch and cuts out of them what it needs, so the graph has as many new tasks as the result has chunks. The same chunks
give the same bits, whatever the scheduler, because each chunk is one task and partial filter gradients are added in a
tree that only the chunks decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from voxgrad.arrays import ordinary
from voxgrad.arrays.intake import each, read, spec_at
from voxgrad.arrays.kinds import NUMPY, dtype_of, kind_of, numpy_type
from voxgrad.catalog import attributes
from voxgrad.catalog import problem as door
from voxgrad.catalog.locality import elementwise
from voxgrad.catalog.model import Call, Input, Op, Spec
from voxgrad.catalog.problem import Problem, check_types
from voxgrad.catalog.registry import find
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Faults
from voxgrad.volumes.chunk import Index, run_problem
from voxgrad.volumes.plan import Box, Plan, Task
from voxgrad.volumes.windows import Range, sizes_of

Array = np.ndarray[Any, Any]
Part = tuple[int, int, int]
"""A block along one dimension, and the cells of it that are wanted."""
Parts = tuple[tuple[Part, ...], ...]


def execute(op: Op, arguments: Mapping[str, Any]) -> Any:
    """The lazy result of an op on Dask arrays; filters may be NumPy arrays."""
    if op.problem is None:
        return _ordinary(op, arguments)
    given, specs = _read(op, arguments, Faults(op.name))
    tensors = {item.name: given[item.name][0] for item in op.inputs if not item.host}
    attrs = {attr.name: arguments[attr.name] for attr in op.attrs if attr.name in arguments}
    problem = door.parse(op, specs, attrs, current_semantics())
    leading = next(tensors[item.name] for item in op.inputs if item.layout == "data")
    plan = Plan(problem, _chunks(problem, leading))
    token = tokenize(op.name, problem, plan.chunks, *(array.name for array in tensors.values()))
    return _Graph(f"{op.name}-{token}", plan, tensors, leading.chunks[0]).result()


def _ordinary(op: Op, arguments: Mapping[str, Any]) -> Any:
    """The lazy result of an ordinary op that works cell by cell: one task per chunk. Others want their arrays whole."""
    faults = Faults(op.name)
    if op.follows is not elementwise or len(op.outputs) != 1 or any(item.host for item in op.inputs):
        _want_values(next(name for name, value in arguments.items() if isinstance(_first(value), da.Array)), faults)
    attrs = attributes.canonical(op, arguments, faults)
    faults.raise_if_any()
    tensors, specs = _read(op, arguments, faults)
    call = Call(op, specs, attrs)
    check_types(op, call.inputs, faults)
    faults.raise_if_any()
    made = op.infer(call, faults) if op.infer is not None else None
    faults.raise_if_any()
    flat = [one for some in tensors.values() for one in some]
    kind = numpy_type(made[0].dtype) if made and made[0].dtype else flat[0].dtype
    meta = np.empty((0,) * max(array.ndim for array in flat), kind)
    return da.map_blocks(_cells, *flat, op_name=op.name, attrs=attrs, dtype=kind, meta=meta)


def _want_values(name: str, faults: Faults) -> None:
    remedy = f"Pass {name}.compute(), if its values fit into memory."
    faults.add("VG032", name, wanted="hold its values", got="a Dask array", remedy=remedy, unimplemented=True)


def _read(op: Op, arguments: Mapping[str, Any], faults: Faults) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The inputs as Dask arrays, and what is known of them; vectors of sizes are read."""
    given = {item.name: each(item, arguments[item.name]) for item in op.inputs}
    known = {item.name: [_known(item, one, faults) for one in given[item.name]] for item in op.inputs}
    arrays = read(op, known, faults)
    faults.raise_if_any()
    specs: dict[str, Any] = {}
    for item in op.inputs:
        one_of = replace(item, many=False)
        some = [one if isinstance(one, Spec) else spec_at(op, one_of, one) for one in arrays[item.name]]
        specs[item.name] = tuple(some) if item.many else some[0]
    return {
        name: [
            one if isinstance(one, da.Array) else da.from_array(np.asarray(array), chunks=-1)
            for one, array in zip(given[name], some, strict=True)
        ]
        for name, some in arrays.items()
    }, specs


def _known(item: Input, value: Any, faults: Faults) -> Any:
    """What is known of a Dask array; other values as they are."""
    name = item.name
    if not isinstance(value, da.Array):
        if kind_of(value) not in (None, NUMPY):
            faults.add("VG030", name, wanted="be a Dask or NumPy array", got=type(value).__name__)
        return value
    if item.host:
        _want_values(name, faults)
    if np.isnan(value.shape).any():
        remedy = f"Call {name}.compute_chunk_sizes() first."
        faults.add("VG012", name, wanted="have known sizes", got="chunks of unknown size", remedy=remedy)
    if dtype_of(value.dtype) is None:
        faults.add("VG011", name, wanted="hold numbers", got=f"dtype {value.dtype}")
    return Spec(dtype_of(value.dtype), value.shape)


def _cells(*chunks: Array, op_name: str, attrs: Mapping[str, Any]) -> Any:
    """One chunk of an ordinary op, on a worker."""
    op = find(op_name)
    parts = (
        {op.inputs[0].name: list(chunks)}
        if op.inputs[0].many
        else {item.name: chunk for item, chunk in zip(op.inputs, chunks, strict=True)}
    )
    return ordinary.execute(op, {**parts, **attrs})


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _chunks(problem: Problem, leading: Any) -> tuple[int, ...]:
    """Chunk sizes of the result: those of the leading array, scaled to the result's size."""
    at = 1 if problem.channels_last else 2
    given, sizes = [(max(leading.chunks[at + i]), leading.shape[at + i]) for i in range(3)], sizes_of(problem)
    return tuple(max(1, -(-chunk * size // max(whole, 1))) for (chunk, whole), size in zip(given, sizes, strict=True))


class _Graph:
    """The graph of one call."""

    def __init__(self, name: str, plan: Plan, tensors: Mapping[str, Any], batches: Sequence[int]):
        self.name = name
        self.plan = plan
        self.tensors = tensors
        self.batches = [*pairwise(accumulate(batches, initial=0))]
        self.kind = numpy_type(plan.problem.output_dtype)
        self.layer: dict[Any, Any] = {}

    def result(self) -> Any:
        """The lazy array."""
        if self.plan.is_partial:
            keys = [self._add(f"{self.name}-part", (number,), *one) for number, one in enumerate(self._tasks())]
            self._add_tree(keys)
            chunks: tuple[tuple[int, ...], ...] = tuple((size,) for size in self.plan.problem.output_shape)
        else:
            grid = product(range(len(self.batches)), *(range(len(axis)) for axis in self.plan.segments))
            for (image, *at), one in zip(grid, self._tasks(), strict=True):
                last = self.plan.problem.channels_last
                self._add(self.name, (image, *at, 0) if last else (image, 0, *at), *one)
            chunks = self._result_chunks()
        graph = HighLevelGraph.from_collections(self.name, self.layer, dependencies=list(self.tensors.values()))
        return da.Array(graph, self.name, chunks, meta=np.empty((0,) * 5, self.kind))

    def _tasks(self) -> Any:
        """Every chunk of the result: the cells of the batch, and the task."""
        for images in self.batches:
            small = Plan(replace(self.plan.problem, batch=images[1] - images[0]), self.plan.chunks)
            yield from ((images, task) for task in small)

    def _result_chunks(self) -> tuple[tuple[int, ...], ...]:
        batch = tuple(b - a for a, b in self.batches)
        spatial = [tuple(one.kept[1] - one.kept[0] for one in axis) for axis in self.plan.segments]
        # A result without cells along an axis still has one chunk there, of size 0.
        spatial = [axis or (0,) for axis in spatial]
        shape, last = self.plan.problem.output_shape, self.plan.problem.channels_last
        return (batch, *spatial, (shape[4],)) if last else (batch, (shape[1],), *spatial)

    def _add(self, name: str, at: tuple[int, ...], images: Range, task: Task) -> Any:
        parts, blocks = [], []
        for tensor, box in task.reads.items():
            array = self.tensors[tensor]
            wanted = _covering(array, None if box is None else _five(images, box, task.problem))
            parts.append(wanted)
            blocks.append([(array.name, *key) for key in product(*([one[0] for one in axis] for axis in wanted))])
        key = (name, *at)
        self.layer[key] = (_work, task, parts, blocks)
        return key

    def _add_tree(self, keys: list[Any]) -> None:
        """Partial sums added two by two, in float64, in the order of the chunks."""
        level = 0
        while len(keys) > 1:
            level += 1
            pairs = [keys[at : at + 2] for at in range(0, len(keys), 2)]
            above = [(f"{self.name}-sum", level, at) if len(pair) > 1 else pair[0] for at, pair in enumerate(pairs)]
            self.layer.update({key: (_add, pair) for key, pair in zip(above, pairs, strict=True) if len(pair) > 1})
            keys = above
        self.layer[(self.name, 0, 0, 0, 0, 0)] = (_round, keys, self.plan.problem.output_shape, self.kind)


def _five(images: Range, box: Box, problem: Problem) -> tuple[Range | None, ...]:
    return (images, *box, None) if problem.channels_last else (images, None, *box)


def _covering(array: Any, box: tuple[Range | None, ...] | None) -> Parts:
    """The blocks of an array that a box touches, and what of each, along every dimension."""
    found = []
    for dim, sizes in enumerate(array.chunks):
        low, high = (0, sum(sizes)) if box is None or box[dim] is None else box[dim]  # type: ignore[misc]
        parts = []
        for index, (start, end) in enumerate(pairwise(accumulate(sizes, initial=0))):
            if max(start, low) < min(end, high):
                parts.append((index, max(start, low) - start, min(end, high) - start))
        found.append(tuple(parts))
    return tuple(found)


def _work(task: Task, parts: Sequence[Parts], blocks: Sequence[Sequence[Array]]) -> Array:
    """One chunk, on a worker."""
    kind = numpy_type(task.problem.dtype)
    tensors = [_joined(one, list(own), kind) for one, own in zip(parts, blocks, strict=True)]
    result: Array = run_problem(task.problem, tensors)
    return result if task.crop is None else result[index_of(task.crop, task.problem)]


def _joined(parts: Parts, blocks: list[Array], kind: np.dtype[Any]) -> Array:
    """What is wanted of several blocks, as one array."""
    cut = [
        block[tuple(slice(low, high) for _, low, high in wanted)]
        for block, wanted in zip(blocks, product(*parts), strict=True)
    ]
    if len(cut) == 1:
        return cut[0]
    made = np.empty([sum(high - low for _, low, high in axis) for axis in parts], kind)
    places = [[*pairwise(accumulate((high - low for _, low, high in axis), initial=0))] for axis in parts]
    for block, place in zip(cut, product(*places), strict=True):
        made[tuple(slice(low, high) for low, high in place)] = block
    return made


def _add(pair: Sequence[Array]) -> Array:
    return pair[0].astype(np.float64) + pair[1].astype(np.float64)


def _round(total: Sequence[Array], shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """The whole sum in the type of the result; zeros where there was nothing to add."""
    return total[0].astype(kind) if total else np.zeros(shape, kind)


def index_of(box: Box, problem: Problem) -> Index:
    """The slices of a five-dimensional array that a spatial box stands for."""
    spatial = tuple(slice(a, b) for a, b in box)
    whole = slice(None)
    return (whole, *spatial, whole) if problem.channels_last else (whole, whole, *spatial)
