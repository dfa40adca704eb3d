# SPDX-License-Identifier: Apache-2.0
"""Shapes: what they are, and tensors in other shapes or filled afresh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.catalog.array import reduced_axes, reshaped_to
from voxgrad.catalog.dtypes import FLOAT32, INT32
from voxgrad.errors import Faults
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import (
    Array,
    element_type,
    integer,
    integers,
    is_numpy,
    is_torch,
    moved_to,
    to_numpy,
)  # fmt: skip
from voxgrad.kernels.element_types import numpy_type


@kernel()
def shape(run: Run, x: Array) -> Array:
    """The sizes of a tensor."""
    return run.make(tuple(x.shape), run.attrs["out_type"])


@kernel()
def shapes(run: Run, inputs: list[Array]) -> Any:
    """The sizes of several tensors."""
    return tuple(run.make(tuple(x.shape), run.attrs["out_type"]) for x in inputs)


@kernel()
def size(run: Run, x: Array) -> Array:
    """The number of elements."""
    return run.make(math.prod(x.shape), run.attrs["out_type"])


@kernel()
def rank(run: Run, x: Array) -> Array:
    """The number of dimensions."""
    return run.make(len(x.shape), INT32)


@kernel()
def reshape(run: Run, x: Array, shape: Array) -> Array:
    """The same elements in another shape."""
    faults = Faults(run.op.name)
    wanted = reshaped_to(tuple(integers(shape)), tuple(x.shape), faults)
    faults.raise_if_any()
    return run.xp.reshape(x, wanted)


@kernel()
def expand_dims(run: Run, x: Array, axis: Array) -> Array:
    """A new dimension of size 1."""
    return run.xp.expand_dims(x, axis=integer(axis))


@kernel()
def squeeze(run: Run, x: Array) -> Array:
    """Without dimensions of size 1."""
    rank = len(x.shape)
    gone = {axis % rank for axis in run.attrs["axis"]} if run.attrs["axis"] else None
    kept = [n for index, n in enumerate(x.shape) if (n != 1 if gone is None else index not in gone)]
    return run.xp.reshape(x, tuple(kept))


@kernel()
def transpose(run: Run, x: Array, perm: Array) -> Array:
    """Dimensions in another order, laid out anew so that later reshapes are cheap."""
    made = run.xp.permute_dims(x, tuple(integers(perm)))
    return np.ascontiguousarray(made).reshape(made.shape) if is_numpy(made) else made


@kernel()
def conjugate_transpose(run: Run, x: Array, perm: Array) -> Array:
    """The transpose of the complex conjugate."""
    made = transpose(run, x, perm)
    return run.xp.conj(made) if element_type(x).kind == "complex" else made


@kernel()
def broadcast_to(run: Run, x: Array, shape: Array) -> Array:
    """The tensor repeated until it has a shape."""
    made = run.xp.broadcast_to(x, tuple(integers(shape)))
    return made.copy() if is_numpy(made) else made.contiguous() if is_torch(made) else made


@kernel()
def broadcast_args(run: Run, s0: Array, s1: Array) -> Array:
    """The common shape of two."""
    try:
        made = np.broadcast_shapes(tuple(integers(s0)), tuple(integers(s1)))
    except ValueError:
        run.fail("s1", wanted=f"broadcast with {integers(s0)}", got=integers(s1), code="VG012")
    return run.make(made, element_type(s0))


@kernel()
def broadcast_gradient_args(run: Run, s0: Array, s1: Array) -> Any:
    """The axes to sum each gradient over."""
    return tuple(run.make(axes, element_type(s0)) for axes in reduced_axes(integers(s0), integers(s1)))


@kernel()
def fill(run: Run, dims: Array, value: Array) -> Array:
    """One value everywhere."""
    if is_numpy(value):
        return np.full(tuple(integers(dims)), value.reshape(())[()], dtype=value.dtype)
    return run.xp.full(tuple(integers(dims)), value.item(), dtype=value.dtype, device=value.device)


@kernel()
def zeros_like(run: Run, x: Array) -> Array:
    """Zeros, or empty texts."""
    if is_numpy(x) and x.dtype == object:
        return np.full(x.shape, b"", dtype=object)
    return run.xp.zeros_like(x)


@kernel()
def ones_like(run: Run, x: Array) -> Array:
    """Ones."""
    return run.xp.ones_like(x)


@kernel()
def invert_permutation(run: Run, x: Array) -> Array:
    """The permutation that undoes another."""
    order = to_numpy(x)
    inverse = np.argsort(order, kind="stable")
    if not np.array_equal(order[inverse], np.arange(len(order))):
        run.fail("x", wanted=f"hold each of 0 to {len(order) - 1} once", got=order.tolist())
    return run.make(inverse, element_type(x))


@kernel()
def bitcast(run: Run, x: Array) -> Array:
    """The same bytes, read as another type."""
    source, target = to_numpy(x), numpy_type(run.attrs["type"])
    old, new = source.dtype.itemsize, target.itemsize
    dense = np.ascontiguousarray(source)
    if old > new:
        made = dense.reshape(*source.shape, 1).view(target)
    elif old < new:
        made = dense.view(target).reshape(source.shape[:-1])
    else:
        made = dense.view(target).reshape(source.shape)
    return moved_to(made, x)


@kernel()
def diag(run: Run, x: Array) -> Array:
    """Values on the diagonal of a tensor of twice the rank."""
    count = math.prod(x.shape)
    return run.xp.reshape(_diagonal_matrix(run, run.xp.reshape(x, (count,))), (*x.shape, *x.shape))


def _diagonal_matrix(run: Run, values: Array) -> Array:
    """[..., n] to [..., n, n]."""
    n = values.shape[-1]
    eye = run.xp.eye(n, dtype=run.xp.bool, **({} if is_numpy(values) else {"device": values.device}))
    return run.xp.where(eye, values[..., None], zeros_like(run, values[..., None]))


@kernel()
def diag_part(run: Run, x: Array) -> Array:
    """The diagonal of a tensor whose shape is one shape twice."""
    half = x.shape[: len(x.shape) // 2]
    count = math.prod(half)
    return run.xp.reshape(_diagonal(run, run.xp.reshape(x, (count, count))), tuple(half))


def _diagonal(run: Run, x: Array) -> Array:
    """[..., m, n] to [..., min(m, n)]."""
    made = run.xp.linalg.diagonal(x)
    return made.copy() if is_numpy(made) else made


@kernel()
def matrix_diag(run: Run, x: Array) -> Array:
    """[..., n] to [..., n, n]."""
    return _diagonal_matrix(run, x)


@kernel()
def matrix_diag_part(run: Run, x: Array) -> Array:
    """[..., m, n] to [..., min(m, n)]."""
    return _diagonal(run, x)


def _offsets(x: Array) -> Any:
    """Column minus row of every cell of the matrices in x."""
    made = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    return moved_to(made, x)


@kernel()
def matrix_set_diag(run: Run, x: Array, diagonal: Array) -> Array:
    """Matrices with another diagonal."""
    rows, columns = x.shape[-2:]
    spread = _diagonal_matrix(run, diagonal)
    n = diagonal.shape[-1]
    if rows > n or columns > n:
        padded = run.xp.zeros_like(x)
        padded[..., :n, :n] = spread
        spread = padded
    return run.xp.where(_offsets(x) == 0, spread, x)


@kernel()
def matrix_band_part(run: Run, x: Array, num_lower: Array, num_upper: Array) -> Array:
    """Zeros outside a band around the diagonal."""
    lower, upper, offsets = integer(num_lower), integer(num_upper), _offsets(x)
    keep = (offsets >= -lower) if lower >= 0 else (offsets == offsets)
    if upper >= 0:
        keep = keep & (offsets <= upper)
    return run.xp.where(keep, x, zeros_like(run, x))


def _by_row(run: Run, name: str, places: Array, values: Array, shape: Array) -> dict[tuple[int, ...], Any]:
    """The sequences of a sparse tensor, by their place."""
    where, sizes = to_numpy(places), integers(shape)
    if ((where < 0) | (where >= np.array(sizes, np.int64))).any():
        run.fail(f"{name}_indices", wanted=f"lie inside {sizes}", got="a position outside")
    found: dict[tuple[int, ...], list[int]] = {}
    for at, place in enumerate(where[:, :-1].tolist()):
        found.setdefault(tuple(place), []).append(at)
    elements = to_numpy(values)
    return {place: elements[chosen] for place, chosen in found.items()}


def _changes(one: Any, two: Any) -> int:
    """Levenshtein's distance, a row of its table at a time."""
    steps = np.arange(len(two) + 1)
    row = steps
    for element in one:
        kept = np.concatenate([[row[0] + 1], np.minimum(row[1:] + 1, row[:-1] + (two != element))])
        row = np.minimum.accumulate(kept - steps) + steps
    return int(row[-1])


@kernel()
def edit_distance(run: Run, *given: Array) -> Array:
    """How many changes make one sequence of another."""
    said, true = _by_row(run, "hypothesis", *given[:3]), _by_row(run, "truth", *given[3:])
    outer = [max(pair) for pair in zip(integers(given[2])[:-1], integers(given[5])[:-1], strict=True)]
    made, none = np.zeros(outer, np.float32), to_numpy(given[1])[:0]
    for place in {*said, *true}:
        wanted = true.get(place, none)
        count = np.float32(_changes(said.get(place, none), wanted))
        made[place] = count / np.float32(len(wanted)) if run.attrs["normalize"] else count
    return run.make(made, FLOAT32)


@kernel()
def joined_rows(run: Run, values: list[Array]) -> Array:
    """Tensors of one row each, one behind the other."""
    return run.xp.concat(values, axis=0)
