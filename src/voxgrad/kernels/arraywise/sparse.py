# SPDX-License-Identifier: Apache-2.0
"""Tensors given by the positions of their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import INT64
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integers, moved_to, to_numpy
from voxgrad.kernels.arraywise.state import check_positions


@kernel()
def to_dense(run: Run, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    """Values at positions, one value elsewhere."""
    sizes, source = tuple(integers(shape)), to_numpy(values)
    places = to_numpy(indices).astype(np.int64)
    places = places.reshape(-1, 1) if places.ndim < 2 else places
    if places.shape[1] != len(sizes):
        run.fail("sparse_indices", wanted=f"have {len(sizes)} numbers per position", got=places.shape[1], code="VG012")
    check_positions(run, places, sizes)
    if run.attrs["validate_indices"] and len(places) > 1:
        _check_order(run, places, sizes)
    out = np.full(sizes, to_numpy(default)[()], dtype=source.dtype)
    out[tuple(places.T)] = source.reshape(-1) if source.ndim else source[()]
    return moved_to(out, values)


def _check_order(run: Run, places: np.ndarray[Any, Any], sizes: tuple[int, ...]) -> None:
    flat = np.ravel_multi_index(tuple(places.T), sizes)
    if bool((np.diff(flat) <= 0).any()):
        run.fail("sparse_indices", wanted="be in row-major order, each once", got=places[:8].tolist())


@kernel(widen=True)
def matmul(run: Run, indices: Array, values: Array, shape: Array, b: Array) -> Array:
    """A sparse matrix times a dense one."""
    places, numbers = to_numpy(indices).astype(np.int64), to_numpy(values)
    rows, columns = integers(shape)
    check_positions(run, places, (rows, columns))
    from_, to = places[:, 1], places[:, 0]
    if run.attrs["adjoint_a"]:
        from_, to, rows, numbers = to, from_, columns, np.conj(numbers)
    dense = to_numpy(b)
    dense = np.conj(dense.T) if run.attrs["adjoint_b"] else dense
    out = np.zeros((rows, dense.shape[1]), dtype=numbers.dtype)
    np.add.at(out, to, numbers[:, None] * dense[from_])
    return moved_to(out, b)


@kernel()
def reorder(run: Run, indices: Array, values: Array, shape: Array) -> Any:
    """Positions in row-major order."""
    places = to_numpy(indices)
    order = (
        np.lexsort(tuple(places[:, axis] for axis in reversed(range(places.shape[1]))))
        if places.shape[1]
        else slice(None)
    )
    return run.make(places[order], INT64), moved_to(to_numpy(values)[order], values)


@kernel()
def reshape(run: Run, indices: Array, shape: Array, new_shape: Array) -> Any:
    """Positions in another shape."""
    old, new = integers(shape), integers(new_shape)
    if any(size < 0 for size in old):
        run.fail("input_shape", wanted="hold sizes of 0 or more", got=old, code="VG012")
    if any(size < -1 for size in new) or new.count(-1) > 1:
        run.fail("new_shape", wanted="hold sizes of 0 or more, and -1 once at most", got=new, code="VG012")
    fixed = math.prod(size for size in new if size != -1)
    if -1 in new and fixed:
        new[new.index(-1)] = math.prod(old) // fixed
    if -1 in new or math.prod(new) != math.prod(old):
        run.fail("new_shape", wanted=f"hold {math.prod(old)} elements", got=new, code="VG012")
    places = to_numpy(indices)
    check_positions(run, places, tuple(old))
    if not len(places):
        return run.make(np.zeros((0, len(new))), INT64), run.make(new, INT64)
    flat = np.ravel_multi_index(tuple(places.T), tuple(old))
    return run.make(np.stack(np.unravel_index(flat, tuple(new)), axis=1), INT64), run.make(new, INT64)
