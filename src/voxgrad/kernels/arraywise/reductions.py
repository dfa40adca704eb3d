# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over axes, running sums, and sums over segments."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog.dtypes import INT32, INT64, UINT64
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel, kernel
from voxgrad.kernels.arraywise.math import is_integer, truncated
from voxgrad.kernels.arraywise.namespace import (
    Array,
    cast,
    element_type,
    integer,
    integers,
    is_numpy,
    moved_to,
    to_numpy,
)  # fmt: skip
from voxgrad.kernels.element_types import numpy_type


def _axes(x: Array, axis: Array) -> tuple[int, ...]:
    return tuple(sorted({one % len(x.shape) for one in integers(axis)})) if len(x.shape) else ()


def _total(name: str) -> Any:
    def function(run: Run, x: Array, axis: Array) -> Array:
        over = _axes(x, axis)
        if not over:
            return x
        return getattr(run.xp, name)(x, axis=over, keepdims=run.attrs["keep_dims"], dtype=x.dtype)

    return function


add_kernel(__name__, "sum", _total("sum"), widen=True)


@kernel(widen=True)
def prod(run: Run, x: Array, axis: Array) -> Array:
    """The product over axes, one axis at a time: not every library takes several."""
    for one in sorted(_axes(x, axis), reverse=True):
        x = run.xp.prod(x, axis=one, keepdims=run.attrs["keep_dims"], dtype=x.dtype)
    return x


@kernel(widen=True)
def mean(run: Run, x: Array, axis: Array) -> Array:
    """The mean over axes."""
    over = _axes(x, axis)
    count = math.prod(x.shape[one] for one in over)
    if not is_integer(x):
        total = _total("sum")(run, x, axis)
        if count:
            return total / count
        return total if element_type(x).kind == "complex" else total * math.nan
    # The sum of bytes is no byte: it is kept in 64 bits.
    wide = UINT64 if element_type(x) is UINT64 else INT64
    total = _total("sum")(run, cast(x, wide), axis)
    return cast(truncated(run, total, run.xp.full_like(total, count)) if count else total, element_type(x))


def _extreme(name: str) -> Any:
    def function(run: Run, x: Array, axis: Array) -> Array:
        over, keep = _axes(x, axis), run.attrs["keep_dims"]
        if not over:
            return x
        if any(x.shape[one] == 0 for one in over):
            shape = [1 if one in over else n for one, n in enumerate(x.shape) if keep or one not in over]
            return run.make(np.full(shape, lowest(x, name)), element_type(x))
        return getattr(run.xp, name)(x, axis=over, keepdims=keep)

    return function


def lowest(x: Array, name: str) -> Any:
    """What the maximum ("max") or the minimum ("min") of nothing is, in the type of x."""
    sign = -1 if name == "max" else 1
    if not is_integer(x):
        return sign * math.inf
    info = np.iinfo(to_numpy(x[..., None][:0] if len(x.shape) == 0 else x[:0]).dtype)
    return info.min if name == "max" else info.max


add_kernel(__name__, "max", _extreme("max"), widen=True)
add_kernel(__name__, "min", _extreme("min"), widen=True)


def _truth(name: str) -> Any:
    def function(run: Run, x: Array, axis: Array) -> Array:
        over = _axes(x, axis)
        return getattr(run.xp, name)(x, axis=over, keepdims=run.attrs["keep_dims"]) if over else x

    return function


add_kernel(__name__, "all", _truth("all"))
add_kernel(__name__, "any", _truth("any"))


def _position(name: str) -> Any:
    def function(run: Run, x: Array, axis: Array) -> Array:
        along = integer(axis)
        if element_type(x).kind == "bool":
            x = run.xp.astype(x, run.xp.uint8)
        if element_type(x).kind == "float":
            worst = lowest(x, "max" if name == "argmax" else "min")
            x = run.xp.where(run.xp.isnan(x), run.xp.full_like(x, worst), x)
        found = getattr(run.xp, name)(x, axis=along)
        return cast(np.asarray(found) if is_numpy(found) else found, run.attrs["output_type"])

    return function


add_kernel(__name__, "arg_max", _position("argmax"), widen=True)
add_kernel(__name__, "arg_min", _position("argmin"), widen=True)


def _running(name: str, empty: int) -> Any:
    def function(run: Run, x: Array, axis: Array) -> Array:
        along = integer(axis) % max(1, len(x.shape))
        if x.shape[along] == 0:
            return x
        if run.attrs["reverse"]:
            x = run.xp.flip(x, axis=along)
        out = getattr(run.xp, name)(x, axis=along, dtype=x.dtype)
        if run.attrs["exclusive"]:
            inner = [slice(None)] * len(x.shape)
            inner[along] = slice(0, -1)
            start = [n if index != along else 1 for index, n in enumerate(x.shape)]
            first = run.make(np.full(start, empty), element_type(x))
            out = run.xp.concat([first, out[tuple(inner)]], axis=along)
        return run.xp.flip(out, axis=along) if run.attrs["reverse"] else out

    return function


add_kernel(__name__, "cumsum", _running("cumulative_sum", 0), widen=True)
add_kernel(__name__, "cumprod", _running("cumulative_prod", 1), widen=True)

_SCATTER = {
    "sum": (np.add, "sum"), "prod": (np.multiply, "prod"), "max": (np.maximum, "amax"), "min": (np.minimum, "amin"),
}  # fmt: skip
"""Per kind: the NumPy ufunc and torch's name."""


def _nothing(data: Array, kind: str) -> Any:
    """What a segment without rows is combined from."""
    return 0 if kind == "sum" else 1 if kind == "prod" else lowest(data, kind)


def scattered(run: Run, data: Array, ids: Array, count: int, kind: str, empty: Any = None) -> Array:
    """Rows of `data` combined by id into `count` rows, each from `empty` on; rows with a negative id are dropped."""
    ufunc, reduce = _SCATTER[kind]
    run.room("segment_ids", (count, *data.shape[len(ids.shape) :]), data)
    empty = _nothing(data, kind) if empty is None else empty
    flat_ids = to_numpy(ids).reshape(-1)
    rows = run.xp.reshape(data, (flat_ids.size, *data.shape[len(ids.shape) :]))
    if flat_ids.size and int(flat_ids.max()) >= count:
        run.fail("segment_ids", wanted=f"be below {count}", got=int(flat_ids.max()))
    keep = flat_ids >= 0
    if is_numpy(data):
        out = np.full((count, *rows.shape[1:]), empty, dtype=rows.dtype)
        ufunc.at(out, flat_ids[keep], rows[keep])
        return out
    chosen = moved_to(np.flatnonzero(keep), data)
    kept = run.xp.take(rows, chosen, axis=0)
    out = run.xp.full((count, *rows.shape[1:]), empty, dtype=rows.dtype, device=data.device)
    index = moved_to(flat_ids[keep].astype(np.int64), data)
    if not kept.numel():
        return out
    index = index.reshape((-1,) + (1,) * (len(kept.shape) - 1)).expand_as(kept)
    return out.scatter_reduce(0, index, kept, reduce)


def _sorted_count(run: Run, ids: Array) -> int:
    values = to_numpy(ids)
    if values.size and (values[0] < 0 or bool((np.diff(values) < 0).any())):
        run.fail("segment_ids", wanted="be sorted and not negative", got=values.tolist())
    return int(values[-1]) + 1 if values.size else 0


def _segments(kind: str) -> Any:
    def function(run: Run, data: Array, ids: Array) -> Array:
        count = _sorted_count(run, ids)
        out = scattered(run, data, ids, count, kind)
        if kind in ("max", "min"):
            out = _with_zero_gaps(run, out, ids, count)
        return out

    return function


def _with_zero_gaps(run: Run, out: Array, ids: Array, count: int) -> Array:
    """Sorted segments that no row belongs to are 0."""
    gaps = np.ones(count, bool)
    gaps[to_numpy(ids)] = False
    out[moved_to(np.flatnonzero(gaps), out)] = 0
    return out


for _kind in _SCATTER:
    add_kernel(__name__, f"segment_{_kind}", _segments(_kind), widen=_kind in ("sum", "prod"))


@kernel(widen=True)
def segment_mean(run: Run, data: Array, ids: Array) -> Array:
    """The mean per segment; 0 for a gap."""
    count = _sorted_count(run, ids)
    total = scattered(run, data, ids, count, "sum")
    sizes = np.maximum(np.bincount(to_numpy(ids).astype(np.int64), minlength=count), 1)
    divisor = run.make(sizes.reshape((-1,) + (1,) * (len(total.shape) - 1)), element_type(data))
    return truncated(run, total, divisor) if is_integer(data) else total / divisor


def _unsorted(kind: str) -> Any:
    def function(run: Run, data: Array, ids: Array, num_segments: Array) -> Array:
        empty = _nothing(data, kind)
        if isinstance(empty, float):
            # TensorFlow starts from the lowest finite number here, so that is what an infinite one becomes.
            empty = math.copysign(float(_finite(data)), empty)
        return scattered(run, data, ids, integer(num_segments), kind, empty)

    return function


def _finite(x: Array) -> Any:
    return ml_dtypes.finfo(numpy_type(element_type(x))).max  # type: ignore[no-untyped-call]


for _kind in _SCATTER:
    add_kernel(__name__, f"unsorted_{_kind}", _unsorted(_kind), widen=_kind in ("sum", "prod"))


_COUNTS = np.empty(0, np.int64)


def _chosen(run: Run, data: Array, indices: Array, ids: Array) -> tuple[Array, np.ndarray[Any, Any], int]:
    """The rows that count, how many each segment has, and the number of segments."""
    rows = to_numpy(indices)
    _check_rows(run, rows, data.shape[0])
    count = _sorted_count(run, ids)
    run.room("segment_ids", (count,), _COUNTS)
    run.room("indices", (rows.size, *data.shape[1:]), data)
    sizes = np.bincount(to_numpy(ids).astype(np.int64), minlength=count)
    return run.xp.take(data, moved_to(rows.astype(np.int64), data), axis=0), sizes, count


def _check_rows(run: Run, rows: np.ndarray[Any, Any], count: int) -> None:
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < count:
        run.fail("indices", wanted=f"be in [0, {count})", got=rows.tolist())


def _column(run: Run, values: Any, data: Array) -> Array:
    return run.make(np.reshape(values, (-1,) + (1,) * (len(data.shape) - 1)), element_type(data))


_SHARES: dict[str, Any] = {"sum": np.ones_like, "mean": lambda sizes: sizes, "sqrt_n": np.sqrt}
"""By what the sum of a segment is divided."""


def _sparse_segments(kind: str) -> tuple[Any, Any]:
    def forward(run: Run, data: Array, indices: Array, ids: Array) -> Array:
        rows, sizes, count = _chosen(run, data, indices, ids)
        total = scattered(run, rows, ids, count, "sum")
        return total if kind == "sum" else total / _column(run, _SHARES[kind](np.maximum(sizes, 1)), data)

    def backward(run: Run, grad: Array, indices: Array, ids: Array, output_dim0: Array) -> Array:
        places = to_numpy(ids).astype(np.int64)
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < grad.shape[0]:
            run.fail("segment_ids", wanted=f"be in [0, {grad.shape[0]})", got=places.tolist())
        _check_rows(run, to_numpy(indices), integer(output_dim0))
        sizes = np.maximum(np.bincount(places, minlength=grad.shape[0]), 1)
        spread = run.xp.take(grad / _column(run, _SHARES[kind](sizes), grad), moved_to(places, grad), axis=0)
        return scattered(run, spread, indices, integer(output_dim0), "sum")

    return forward, backward


for _kind in _SHARES:
    _forward, _backward = _sparse_segments(_kind)
    add_kernel(__name__, f"sparse_segment_{_kind}", _forward, widen=True)
    add_kernel(__name__, f"sparse_segment_{_kind}_grad", _backward, widen=True)


@kernel()
def bincount(run: Run, arr: Array, size: Array, weights: Array) -> Array:
    """How often each number occurs."""
    numbers, count, each = to_numpy(arr).reshape(-1), integer(size), to_numpy(weights).reshape(-1)
    if numbers.size and int(numbers.min()) < 0:
        run.fail("arr", wanted="hold no negative numbers", got=int(numbers.min()))
    kept = numbers < count
    bins = np.zeros(count, each.dtype)
    np.add.at(bins, numbers[kept], each[kept] if each.size else np.ones(int(kept.sum()), each.dtype))
    return moved_to(bins, weights)


@kernel()
def bucketize(run: Run, x: Array) -> Array:
    """The bucket of each number."""
    edges = np.asarray(run.attrs["boundaries"], np.float32)
    if bool((np.diff(edges) < 0).any()):
        run.fail("boundaries", wanted="be sorted", got=edges.tolist())
    return run.make(np.searchsorted(edges, to_numpy(x), side="right"), INT32)
