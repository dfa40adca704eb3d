# SPDX-License-Identifier: Apache-2.0
"""Pools that are several ops: where maxima were, the way back to there, and windows of a stated number.

What is here is the same for all libraries of arrays. Places are those of torch: the number of a cell in depth, height,
width order among those of its image and channel, padding not counted; -1 where no cell has won.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.limits import check_size
from voxgrad.arrays.plain import Padding, Three, padding_text, three, transposed_sizes
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog import problem as door
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.max_pool3d import MAX_POOL3D
from voxgrad.catalog.model import Input, Op, Side, Spec
from voxgrad.catalog.pool3d import DATA
from voxgrad.catalog.problem import DATA_FORMATS, Problem, check_types
from voxgrad.errors import Faults, show

Array = np.ndarray[Any, Any]

UNPOOL = Op(
    name="nn.max_unpool3d",
    group="nn",
    summary="Maxima put back to where they were.",
    inputs=(
        Input("input", "T", "The maxima.", DATA, side=Side.WINDOWS),
        Input("indices", "Tindices", "Where they were.", "shape of input", side=Side.WINDOWS),
    ),
    types={"T": dtypes.FLOATING, "Tindices": (dtypes.INT32, dtypes.INT64)},
)
"""The tensors of `max_unpool3d`, as the intake wants them declared."""


def exact_type(spec: Spec, last: bool) -> DType:
    """A float type that holds every number of a volume, and the numbers of its cells."""
    assert spec.shape is not None
    cells = math.prod(spec.shape[1:4] if last else spec.shape[2:5])
    return dtypes.FLOAT64 if spec.dtype == dtypes.FLOAT64 or cells > 2**24 else dtypes.FLOAT32


def numbered(x: Any, last: bool, dtype: np.dtype[Any]) -> Any:
    """An array like x, of NumPy or Dask, with the numbers of its cells, from 1."""
    spatial = x.shape[1:4] if last else x.shape[2:5]
    numbers = np.ones_like(x[:1, ..., :1] if last else x[:1, :1], dtype=dtype)
    for axis, size in enumerate(spatial):
        steps = np.arange(size, dtype=dtype) * math.prod(spatial[axis + 1 :])
        numbers = numbers + steps.reshape((-1, *[1] * (3 - axis if last else 2 - axis)))
    return np.broadcast_to(numbers, x.shape)


def unpool_problem(
    specs: Mapping[str, Spec], ksize: Three, strides: Three | None, padding: Padding, output_size: Three | None,
    data_format: str,
) -> Problem:  # fmt: skip
    """The pool that is undone; raises what is wrong with a call."""
    function, faults = UNPOOL.name, Faults(UNPOOL.name)
    check_types(UNPOOL, specs, faults)
    shape, places = tuple(specs["input"].shape or ()), tuple(specs["indices"].shape or ())
    if len(shape) != 5:
        faults.add("VG010", "input", wanted=f"have rank 5, {DATA}", got=f"rank {len(shape)}, shape {list(shape)}")
    elif places != shape:
        faults.add("VG012", "indices", wanted=f"have the shape of input, {show(shape)}", got=places)
    faults.raise_if_any()
    last = data_format == DATA_FORMATS[0]
    window = three(function, "ksize", ksize)
    attrs = {
        "strides": window if strides is None else three(function, "strides", strides),
        "padding": padding_text(function, padding), "dilations": (1, 1, 1),
    }  # fmt: skip
    if output_size is None:
        sizes = transposed_sizes(shape[1:4] if last else shape[2:5], window, attrs, (0, 0, 0))
    else:
        sizes = three(function, "output_size", output_size)
    if min(sizes) < 0:
        faults.add("VG014", "output_size", wanted="be 0 or more", got=sizes)
        faults.raise_if_any()
    whole = (shape[0], *sizes, shape[4]) if last else (*shape[:2], *sizes)
    pool = {"padding": attrs["padding"], "data_format": data_format}
    for name, entries in (("ksize", window), ("strides", attrs["strides"])):
        pool[name] = [1, *entries, 1] if last else [1, 1, *entries]
    problem = door.parse(MAX_POOL3D, {"input": Spec(specs["input"].dtype, whole)}, pool, "documented")
    if problem.output_shape != shape:
        wanted = f"have the shape that the pool makes of {show(whole)}, {show(problem.output_shape)}"
        remedy = "Give the pool's ksize, strides and padding, and the sizes of its input as output_size."
        faults.add("VG012", "input", wanted=wanted, got=shape, remedy=remedy)
    # A place has 8 bytes, and takes as much twice again until it is known which of those for one cell is the last.
    check_size(function, math.prod(whole) * problem.dtype.itemsize, faults, copied=24 * math.prod(shape))
    faults.raise_if_any()
    return problem


def cells_of(problem: Problem) -> int:
    """The number of cells of an image and channel."""
    return math.prod(axis.size for axis in problem.axes)


def refuse_place(value: int, at: Sequence[int], cells: int) -> None:
    """Raise that a place lies outside of the result."""
    faults = Faults(UNPOOL.name)
    wanted = f"name one of the {cells} cells of the result, from 0, or be -1 for none"
    faults.add("VG043", "indices", wanted=wanted, got=f"{value} at {show(list(at))}")
    raise faults.error()


def unpool(problem: Problem, values: Array, indices: Array) -> Array:
    """Zeros with the values at their places; of several for one cell the last, in depth, height, width order."""
    cells, channels = cells_of(problem), problem.in_channels
    wrong = (indices < -1) | (indices >= cells)
    if wrong.any():
        at = [int(place) for place in np.argwhere(wrong)[0]]
        refuse_place(int(indices[tuple(at)]), at, cells)
    image, channel = (
        np.arange(size).reshape([-1 if at == axis else 1 for at in range(5)])
        for size, axis in ((problem.batch, 0), (channels, 4 if problem.channels_last else 1))
    )
    last = problem.channels_last
    places = (image * cells + indices) * channels + channel if last else (image * channels + channel) * cells + indices
    won = indices >= 0
    # From the last on, the first of its kind is the last.
    targets, chosen = np.unique(places[won][::-1], return_index=True)
    made = np.zeros(problem.input_extent, numpy_type(problem.dtype))
    made.reshape(-1)[targets] = values[won][::-1][chosen]
    return made


def adaptive_sizes(
    function: str, shape: Sequence[int], itemsize: int, output_size: int | Sequence[int | None] | None, data_format: str
) -> tuple[list[int], int]:
    """The sizes of an adaptive pool's result, and its first spatial axis; raises what is wrong with a call."""
    faults = Faults(function)
    if data_format not in DATA_FORMATS:
        faults.add("VG003", "data_format", wanted=f"be {' or '.join(DATA_FORMATS)}", got=repr(data_format))
    if len(shape) != 5:
        faults.add("VG010", "input", wanted=f"have rank 5, {DATA}", got=f"rank {len(shape)}, shape {list(shape)}")
    faults.raise_if_any()
    first = 1 if data_format == DATA_FORMATS[0] else 2
    entries = list(output_size) if isinstance(output_size, Sequence) else [output_size] * 3
    kept = [size if entry is None else entry for size, entry in zip(shape[first:], entries, strict=False)]
    wanted = three(function, "output_size", [*kept, *entries[3:]])  # type: ignore[list-item]  # a number too many is told
    for name, size, out in zip(geometry.AXES, shape[first:], wanted, strict=False):
        if out < 1:
            faults.add("VG003", "output_size", wanted=f"be at least 1 in {name}", got=out)
        elif size == 0:
            faults.add("VG017", "input", wanted=f"have cells in {name}", got="none")
    others = math.prod(size for at, size in enumerate(shape) if not first <= at < first + 3)
    result = others * math.prod(wanted) * itemsize
    # The tables of windows count, too: of an empty batch they are all there is.
    check_size(function, result, faults, copied=24 * sum(wanted))
    faults.raise_if_any()
    axes = list(zip(shape[first:], wanted, strict=False))
    if any(size % out for size, out in axes):
        read = [sum(len(part.cells) for part in geometry.adaptive(size, out)) for size, out in axes]
        check_size(function, result, faults, copied=others * math.prod(read) * itemsize)
        faults.raise_if_any()
    return wanted, first


def adaptive(
    x: Any,
    sizes: Sequence[int],
    first: int,
    take: Callable[[Any, list[int], int], Any],
    join: Callable[[list[Any], int], Any],
    pool: Callable[[Any, tuple[int, ...]], Any],
) -> Any:
    """A pool into windows of stated numbers: plain pools of the windows of one size each, joined in their order.

    `take` picks cells along an axis, `join` joins along one, `pool` pools windows that follow each other.
    """

    def along(x: Any, axis: int, window: tuple[int, ...]) -> Any:
        if axis == first + 3:
            return pool(x, window)
        parts, made = geometry.adaptive(x.shape[axis], sizes[axis - first]), []
        for part in parts:
            whole = part.cells == list(range(x.shape[axis]))
            made.append(along(x if whole else take(x, part.cells, axis), axis + 1, (*window, part.window)))
        if len(parts) == 1:
            return made[0]
        places = [number for part in parts for number in part.numbers]
        return take(join(made, axis), sorted(range(len(places)), key=places.__getitem__), axis)

    return along(x, first, ())
