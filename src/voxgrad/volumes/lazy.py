# SPDX-License-Identifier: Apache-2.0
"""Dask arrays in, lazy Dask arrays out: one task per chunk of the result, with exactly the windows it needs.

The chunks of the result follow those of the input. The same chunks give the same bits, whatever the scheduler, because
each chunk is one task and partial filter gradients are added in a tree that only the chunks decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import numpy as np

from voxgrad.arrays.intake import host_spec
from voxgrad.arrays.kinds import dtype_of, numpy_type
from voxgrad.catalog import problem as door
from voxgrad.catalog.model import Op, Spec
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.semantics import current_semantics
from voxgrad.errors import Faults
from voxgrad.volumes.chunk import Index, run_problem
from voxgrad.volumes.plan import Box, Plan, Task
from voxgrad.volumes.windows import is_forward

Array = np.ndarray[Any, Any]


def execute(op: Op, arguments: Mapping[str, Any]) -> Any:
    """The lazy result of an op on Dask arrays; filters may be NumPy arrays."""
    tensors = {item.name: _lazy(op, item.name, arguments[item.name]) for item in op.inputs if not item.host}
    specs = {name: Spec(dtype_of(array.dtype), array.shape) for name, array in tensors.items()}
    specs |= {item.name: host_spec(op, item.name, arguments[item.name]) for item in op.inputs if item.host}
    attrs = {attr.name: arguments[attr.name] for attr in op.attrs if attr.name in arguments}
    problem = door.parse(op, specs, attrs, current_semantics())
    layouts = {item.name: item.layout for item in op.inputs}
    batches = _batches(problem, tensors, layouts)
    chunks = _chunks(problem, tensors, layouts)
    parts = []
    for first, end in batches:
        slab = {name: array if layouts[name] == "filter" else array[first:end] for name, array in tensors.items()}
        parts.append(_one_batch(Plan(replace(problem, batch=end - first), chunks), slab))
    kind = numpy_type(problem.output_dtype)
    if problem.kernel == "conv3d_filter":
        return _tree([part for one in parts for part in one], problem.output_shape, kind)
    return da.concatenate([_assemble(one) for one in parts], axis=0)


def _lazy(op: Op, name: str, value: Any) -> Any:
    faults = Faults(op.name)
    if isinstance(value, np.ndarray):
        return da.from_array(value, chunks=-1)
    if not isinstance(value, da.Array):
        faults.add("VG030", name, wanted="be a Dask or NumPy array", got=type(value).__name__)
    elif np.isnan(value.shape).any():
        remedy = f"Call {name}.compute_chunk_sizes() first."
        faults.add("VG012", name, wanted="have known sizes", got="chunks of unknown size", remedy=remedy)
    faults.raise_if_any()
    return value


def _leading(problem: Problem, tensors: Mapping[str, Any], layouts: Mapping[str, str]) -> Any:
    """The array whose chunks the result follows: the first volume."""
    return next(array for name, array in tensors.items() if layouts[name] == "data")


def _batches(problem: Problem, tensors: Mapping[str, Any], layouts: Mapping[str, str]) -> list[tuple[int, int]]:
    ends = np.cumsum(_leading(problem, tensors, layouts).chunks[0]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _chunks(problem: Problem, tensors: Mapping[str, Any], layouts: Mapping[str, str]) -> tuple[int, ...]:
    """Chunk sizes of the result: those of the leading array, scaled to the result's size."""
    leading = _leading(problem, tensors, layouts)
    at = 1 if problem.channels_last else 2
    sizes = [
        axis.out if is_forward(problem) else axis.size for axis in problem.axes
    ]  # fmt: skip
    given = [(max(leading.chunks[at + i]), leading.shape[at + i]) for i in range(3)]
    return tuple(max(1, -(-chunk * size // max(whole, 1))) for (chunk, whole), size in zip(given, sizes, strict=True))


def _one_batch(plan: Plan, tensors: Mapping[str, Any]) -> Any:
    """The chunks of one part of the batch as lazy arrays, nested as depth, height, width."""
    work = dask.delayed(_work, pure=True, traverse=False)
    flat = []
    for task in plan:
        slabs = [
            tensors[name] if box is None else tensors[name][index_of(box, plan.problem)]
            for name, box in task.reads.items()
        ]
        kind = numpy_type(task.problem.output_dtype)
        made = work(task, *slabs)
        flat.append(da.from_delayed(made, _shape(task), dtype=kind, meta=np.empty((0,) * 5, kind)))
    if plan.is_partial:
        return flat
    depth, height, width = (len(axis) for axis in plan.segments)
    rows = [flat[i : i + width] for i in range(0, len(flat), width)]
    return plan.problem.channels_last, [rows[i : i + height] for i in range(0, depth * height, height)]


def _shape(task: Task) -> tuple[int, ...]:
    shape = list(task.problem.output_shape)
    if task.writes is not None:
        at = 1 if task.problem.channels_last else 2
        shape[at : at + 3] = [b - a for a, b in task.writes]
    return tuple(shape)


def _assemble(nested: tuple[bool, list[list[list[Any]]]]) -> Any:
    channels_last, planes = nested
    at = 1 if channels_last else 2
    return da.concatenate(
        [da.concatenate([da.concatenate(row, axis=at + 2) for row in rows], axis=at + 1) for rows in planes], axis=at
    )


def _work(task: Task, *tensors: Array) -> Array:
    """One chunk, on a worker."""
    result: Array = run_problem(task.problem, tensors)
    return result if task.crop is None else result[index_of(task.crop, task.problem)]


def index_of(box: Box, problem: Problem) -> Index:
    """The slices of a five-dimensional array that a spatial box stands for."""
    spatial = tuple(slice(a, b) for a, b in box)
    whole = slice(None)
    return (whole, *spatial, whole) if problem.channels_last else (whole, whole, *spatial)


def _tree(partials: list[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> Any:
    """Partial sums added two by two, in float64, in the order of the chunks."""
    level = [part.astype(np.float64) for part in partials]
    while len(level) > 1:
        level = [level[i] if i + 1 == len(level) else level[i] + level[i + 1] for i in range(0, len(level), 2)]
    return level[0].astype(kind)
