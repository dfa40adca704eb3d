# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of sparse tensors, on the host: positions decide what meets what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BOOL, INT64, STRING
from voxgrad.kernels.arraywise.data_flow import resource_name
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel, kernel
from voxgrad.kernels.arraywise.hashes import fingerprint64, joined64
from voxgrad.kernels.arraywise.math import divide
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, integers, moved_to, to_numpy
from voxgrad.kernels.arraywise.state import check_positions

Numbers = np.ndarray[Any, Any]


def _places(run: Run, indices: Array, shape: Sequence[int] | None = None) -> Numbers:
    """Positions on the host; inside a shape where one is given."""
    places = to_numpy(indices).astype(np.int64)
    if shape is not None:
        check_positions(run, places, tuple(shape))
    return places


def _in_order(places: Numbers) -> Numbers:
    """Where the positions stand in row-major order."""
    columns = tuple(places[:, axis] for axis in reversed(range(places.shape[1])))
    return np.lexsort(columns) if columns else np.arange(len(places))


def _sparse(run: Run, places: Numbers, values: Numbers, shape: Sequence[int], like: Array) -> Any:
    return run.make(places, INT64), moved_to(values, like), run.make(list(shape), INT64)


def _merged(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Two lists of positions, each in order, as one: where each entry stands in a and in b, -1 where it does not."""
    left, right = a.tolist(), b.tolist()
    pairs, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif left[i] < right[j]:
            pairs.append((i, -1))
            i += 1
        else:
            pairs.append((-1, j))
            j += 1
    pairs += [(at, -1) for at in range(i, len(left))] + [(-1, at) for at in range(j, len(right))]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _picked(values: Numbers, at: Numbers) -> Numbers:
    """The values at places, 0 at -1."""
    padded = np.concatenate([values, np.zeros(1, values.dtype)])
    return padded[at]


def _union(run: Run, a: Numbers, a_values: Array, b: Numbers, b_values: Array) -> tuple[Numbers, Numbers, Numbers, Any]:
    """The positions of two sparse tensors together, the values of each there, and where both have one."""
    i, j = _merged(a, b)
    places = np.where((i >= 0)[:, None], np.concatenate([a, np.zeros((1, a.shape[1]), np.int64)])[i],
                      np.concatenate([b, np.zeros((1, a.shape[1]), np.int64)])[j])  # fmt: skip
    return places, _picked(to_numpy(a_values), i), _picked(to_numpy(b_values), j), (i >= 0) & (j >= 0)


@kernel(widen=True)
def add(run: Run, a: Array, a_values: Array, a_shape: Array, b: Array, b_values: Array, b_shape: Array,
        thresh: Array) -> Any:  # fmt: skip
    """The sum; of what both have, what is smaller than thresh is left out."""
    places, left, right, both = _union(run, _places(run, a), a_values, _places(run, b), b_values)
    total = left + right
    # As in C++, where |-128| is 128 for an int8.
    size = np.abs(total.astype(np.result_type(total, np.int32)) if total.dtype.kind == "i" else total)
    kept = ~both | (to_numpy(thresh) <= size)
    return _sparse(run, places[kept], total[kept], integers(a_shape), a_values)


def _extreme(choose: Callable[[Numbers, Numbers], Numbers]) -> Callable[..., Any]:
    def function(run: Run, a: Array, a_values: Array, a_shape: Array, b: Array, b_values: Array,
                 b_shape: Array) -> Any:  # fmt: skip
        inside = [_places(run, one, integers(shape)) for one, shape in ((a, a_shape), (b, b_shape))]
        places, left, right, _ = _union(run, inside[0], a_values, inside[1], b_values)
        return run.make(places, INT64), moved_to(choose(left, right), a_values)

    return function


add_kernel(__name__, "maximum", _extreme(np.maximum), widen=True)
add_kernel(__name__, "minimum", _extreme(np.minimum), widen=True)


@kernel()
def add_grad(run: Run, grad: Array, a: Array, b: Array, total: Array) -> Any:
    """To each value what the sum got at its position."""
    slopes, places = to_numpy(grad), _places(run, total)

    def taken(indices: Array) -> Array:
        i, j = _merged(_places(run, indices), places)
        made = np.zeros(len(indices), slopes.dtype)
        both = (i >= 0) & (j >= 0)
        made[i[both]] = slopes[j[both]]
        return moved_to(made, grad)

    return taken(a), taken(b)


@kernel()
def concat(run: Run, indices: list[Array], values: list[Array], shapes: list[Array]) -> Any:
    """Joined along a dimension, in row-major order."""
    sizes = [integers(one) for one in shapes]
    axis, shape = run.attrs["concat_dim"] % len(sizes[0]), list(sizes[0])
    moved, offset = [], 0
    for one, own in zip(indices, sizes, strict=True):
        places = _places(run, one, own).copy()
        places[:, axis] += offset
        moved.append(places)
        offset += own[axis]
    shape[axis] = offset
    joined = np.concatenate(moved)
    order = _in_order(joined)
    return _sparse(run, joined[order], np.concatenate([to_numpy(one) for one in values])[order], shape, values[0])


@kernel()
def split(run: Run, split_dim: Array, indices: Array, values: Array, shape: Array) -> Any:
    """Cut along a dimension; the first parts are longer by one where the size is not divided."""
    sizes, count = integers(shape), run.attrs["num_split"]
    axis = integer(split_dim) % len(sizes)
    places, numbers = _places(run, indices, sizes), to_numpy(values)
    each, more = divmod(sizes[axis], count)
    parts, begin = [], 0
    for part in range(count):
        end = begin + each + (part < more)
        inside = (places[:, axis] >= begin) & (places[:, axis] < end)
        moved = places[inside]
        moved[:, axis] -= begin
        own = [end - begin if at == axis else size for at, size in enumerate(sizes)]
        parts.append(_sparse(run, moved, numbers[inside], own, values))
        begin = end
    return tuple(tuple(part[at] for part in parts) for at in range(3))


@kernel()
def slice_box(run: Run, indices: Array, values: Array, shape: Array, start: Array, size: Array) -> Any:
    """What lies inside a box, which ends where the tensor does."""
    begin = integers(start)
    if any(one < 0 for one in integers(size)):
        run.fail("size", wanted="hold numbers of 0 or more", got=integers(size), code="VG003")
    inner = [max(0, min(one, whole - first))
             for one, whole, first in zip(integers(size), integers(shape), begin, strict=True)]  # fmt: skip
    moved = _places(run, indices, integers(shape)) - np.array(begin, np.int64)
    kept = ((moved >= 0) & (moved < np.array(inner, np.int64))).all(axis=1)
    return _sparse(run, moved[kept], to_numpy(values)[kept], inner, values)


@kernel()
def slice_grad(run: Run, grad: Array, indices: Array, start: Array, kept: Array) -> Array:
    """To each value of the tensor that of its place in the box, 0 outside."""
    slopes, found = to_numpy(grad), (_places(run, kept) + np.array(integers(start), np.int64)).tolist()
    made, at = np.zeros(len(indices), slopes.dtype), 0
    for row, place in enumerate(to_numpy(indices).tolist()):
        if at < len(found) and place == found[at]:
            made[row] = slopes[at]
            at += 1
    if at < len(found):
        run.fail("output_indices", wanted="be places of input_indices, in their order", got=found[at])
    return moved_to(made, grad)


def _reduced(run: Run, reduce: Any, indices: Array, values: Array, shape: Array, axes: Array) -> Any:
    """By groups along the kept dimensions: their numbers in row-major order, values, and sizes."""
    sizes, numbers = integers(shape), to_numpy(values)
    over = {axis % len(sizes) for axis in integers(axes)} if sizes else set()
    kept = [axis for axis in range(len(sizes)) if axis not in over]
    inner = tuple(sizes[axis] for axis in kept)
    places = _places(run, indices, sizes)[:, kept]
    keys = np.ravel_multi_index(tuple(places.T), inner) if kept else np.zeros(len(places), np.int64)
    order = np.argsort(keys, kind="stable")
    groups, first = np.unique(keys[order], return_index=True)
    made = reduce.reduceat(numbers[order], first, dtype=numbers.dtype) if len(first) else numbers[:0]
    keep = run.attrs["keep_dims"]
    shown = [1 if axis in over else size for axis, size in enumerate(sizes) if keep or axis not in over]
    return groups, made, inner, shown


def _reduction(reduce: Any) -> Callable[..., Any]:
    def dense(run: Run, indices: Array, values: Array, shape: Array, axes: Array) -> Array:
        groups, made, inner, shown = _reduced(run, reduce, indices, values, shape, axes)
        run.room("input_shape", inner, made)
        out = np.zeros(int(np.prod(inner, dtype=np.int64)), made.dtype)
        out[groups] = made
        return moved_to(out.reshape(shown), values)

    return dense


def _sparse_reduction(reduce: Any) -> Callable[..., Any]:
    def sparse(run: Run, indices: Array, values: Array, shape: Array, axes: Array) -> Any:
        groups, made, _, shown = _reduced(run, reduce, indices, values, shape, axes)
        places = np.stack(np.unravel_index(groups, shown), axis=1) if shown else np.zeros((len(groups), 0))
        return _sparse(run, places, made, shown, values)

    return sparse


for _name, _reduce in {"sum": np.add, "max": np.maximum}.items():
    add_kernel(__name__, f"reduce_{_name}", _reduction(_reduce), widen=True)
    add_kernel(__name__, f"reduce_{_name}_sparse", _sparse_reduction(_reduce), widen=True)


@kernel(widen=True)
def softmax(run: Run, indices: Array, values: Array, shape: Array) -> Array:
    """Along the last dimension, of the values that are there; in row-major order, whatever order they came in."""
    places = _places(run, indices, integers(shape))
    if not len(places):
        return values
    order = _in_order(places)
    numbers, rows = to_numpy(values)[order], places[order, :-1]
    first = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    lengths = np.diff(first, append=len(rows))
    raised = np.exp(numbers - np.repeat(np.maximum.reduceat(numbers, first), lengths))
    return moved_to(raised / np.repeat(np.add.reduceat(raised, first), lengths), values)


def _beside_dense(operate: Callable[[Run, Array, Array], Array]) -> Callable[..., Any]:
    def function(run: Run, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        sizes = tuple(integers(shape))
        there = np.broadcast_to(to_numpy(dense), sizes)[tuple(_places(run, indices, sizes).T)]
        return operate(run, values, moved_to(there, values))

    return function


def _quotient(run: Run, x: Array, y: Array) -> Array:
    if not y.all():
        run.fail("dense", wanted="have no zero at the positions", got="a zero")
    return divide(run, x, y)


add_kernel(__name__, "dense_add", _beside_dense(lambda run, x, y: x + y), widen=True)
add_kernel(__name__, "dense_mul", _beside_dense(lambda run, x, y: x * y), widen=True)
add_kernel(__name__, "dense_div", _beside_dense(_quotient), widen=True)


@kernel(widen=True)
def add_to_dense(run: Run, indices: Array, values: Array, shape: Array, b: Array) -> Array:
    """A dense tensor with values added at positions."""
    out = to_numpy(b).copy()
    np.add.at(out, tuple(_places(run, indices, out.shape).T), to_numpy(values))
    return moved_to(out, b)


@kernel()
def fill_empty_rows(run: Run, indices: Array, values: Array, shape: Array, default: Array) -> Any:
    """Given values by rows, in the order in which they came, and a value in each row that had none."""
    numbers, rows = to_numpy(values), integers(shape)[0]
    places = _places(run, indices)
    check_positions(run, places[:, :1], (rows,))
    run.room("dense_shape", (rows + len(places), places.shape[1] + 2), places)
    empty = np.bincount(places[:, 0], minlength=rows) == 0
    missing = np.zeros((int(empty.sum()), places.shape[1]), np.int64)
    missing[:, 0] = np.flatnonzero(empty)
    order = np.argsort(np.concatenate([places[:, 0], missing[:, 0]]), kind="stable")
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    filler = np.empty(len(missing), numbers.dtype)
    filler[:] = to_numpy(default)[()]
    both = np.concatenate([places, missing])[order], np.concatenate([numbers, filler])[order]
    return run.make(both[0], INT64), moved_to(both[1], values), run.make(empty, BOOL), run.make(
        where[: len(places)], INT64)  # fmt: skip


@kernel(widen=True)
def fill_empty_rows_grad(run: Run, reverse: Array, grad: Array) -> Any:
    """To each given value its gradient, to the default value the sum of all others."""
    slopes, at = to_numpy(grad), to_numpy(reverse)
    if slopes.dtype.kind not in "iufc":
        run.fail("grad_values", wanted="be numbers", got=str(slopes.dtype), code="VG011")
    check_positions(run, at[:, None], slopes.shape)
    rest = np.ones(len(slopes), bool)
    rest[at] = False
    return moved_to(slopes[at], grad), moved_to(np.asarray(slopes[rest].sum(dtype=slopes.dtype)), grad)


def _columns(run: Run, indices: list[Array], values: list[Array], shapes: list[Array], dense: list[Array]) -> Any:
    """The values of each column by rows, and the number of rows."""
    heights = {integers(one)[0] for one in shapes} | {one.shape[0] for one in dense}
    if not heights:
        return [], 0
    if len(heights) != 1:
        run.fail("shapes", wanted="have as many rows as the other columns", got=sorted(heights), code="VG012")
    (rows,) = heights
    run.room("shapes", (rows, len(shapes) + len(dense) + 1), np.empty(0, np.int64))
    columns = []
    for one, numbers, shape in zip(indices, values, shapes, strict=True):
        column: list[list[Any]] = [[] for _ in range(rows)]
        for row, value in zip(
            _places(run, one, integers(shape))[:, 0].tolist(), to_numpy(numbers).tolist(), strict=True
        ):
            column[row].append(value)
        columns.append(column)
    return [*columns, *(to_numpy(one).tolist() for one in dense)], rows


@kernel()
def cross(run: Run, indices: list[Array], values: list[Array], shapes: list[Array], dense: list[Array]) -> Any:
    """Every value of a column with every value of the others, row by row; the last column runs fastest."""
    texts = run.attrs["out_type"] is STRING
    numbers = any(element_type(one) is not STRING for one in (*values, *dense))
    if numbers and run.attrs["internal_type"] is STRING:
        run.fail("internal_type", wanted="be int64 beside columns of integers", got="string", code="VG011")
    columns, rows = _columns(run, indices, values, shapes, dense)
    counts = [math.prod(len(column[row]) for column in columns) for row in range(rows)]
    run.room("values", (sum(counts), len(columns) + 4), np.empty(0, np.int64))
    joined = _crossed_text if texts else _crossed_hash
    made = [joined(run, one) for row in range(rows) for one in itertools.product(*(column[row] for column in columns))]
    flat = np.empty(len(made), dtype=object if texts else np.int64)
    flat[:] = made
    places = [(row, at) for row, count in enumerate(counts) for at in range(count)]
    shape = [rows, max(counts, default=0)]
    return run.make(np.array(places, np.int64).reshape(-1, 2), INT64), flat, run.make(shape, INT64)


def _crossed_text(run: Run, parts: Sequence[Any]) -> bytes:
    return b"_X_".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)


def _crossed_hash(run: Run, parts: Sequence[Any]) -> int:
    made: int = run.attrs["hash_key"] % 2**64
    for part in parts:
        made = joined64(made, fingerprint64(part) if isinstance(part, bytes) else part % 2**64)
    buckets: int = run.attrs["num_buckets"] or 2**63 - 1
    return made % buckets


class Kept:
    """Sparse tensors by their numbers."""

    def __init__(self) -> None:
        self.tensors: dict[int, tuple[Numbers, Numbers, list[int]]] = {}
        self.count = 0

    def add(self, places: Numbers, values: Numbers, shape: list[int]) -> int:
        """Keep one."""
        self.tensors[self.count] = (places, values, shape)
        self.count += 1
        return self.count - 1


def _map(run: Run) -> Kept:
    found: Kept = run.context.state.resources.setdefault(f"Kept/{resource_name(run)}", Kept())
    return found


@kernel()
def keep(run: Run, indices: Array, values: Array, shape: Array) -> Array:
    """Keep a sparse tensor."""
    sizes = integers(shape)
    return run.make(_map(run).add(_places(run, indices, sizes), to_numpy(values).copy(), sizes), INT64)


@kernel()
def keep_rows(run: Run, indices: Array, values: Array, shape: Array) -> Array:
    """Keep every row as a sparse tensor of its own."""
    sizes, numbers = integers(shape), to_numpy(values)
    places, cuts = rows_of(run, indices, sizes)
    kept, numbered = _map(run), np.empty(sizes[0], np.int64)
    for row in np.argsort(np.diff(cuts) == 0, kind="stable").tolist():  # rows without values come last
        part = slice(cuts[row], cuts[row + 1])
        numbered[row] = kept.add(places[part, 1:], numbers[part].copy(), sizes[1:])
    return run.make(numbered, INT64)


@kernel()
def take_kept(run: Run, handles: Array) -> Any:
    """Kept sparse tensors, stacked."""
    kept, found = _map(run).tensors, []
    for number in integers(handles):
        if number not in kept:
            run.fail("sparse_handles", wanted="be numbers of kept tensors", got=number)
        found.append(kept[number])
    if not found:
        run.fail("sparse_handles", wanted="name a tensor at least", got="none", code="VG012")
    made = stack_sparse(run, "sparse_handles", found)
    for number in integers(handles):
        kept.pop(number, None)
    return made


def rows_of(run: Run, indices: Array, sizes: list[int]) -> tuple[Numbers, Numbers]:
    """Positions that are in order by rows, and where each row begins."""
    places = _places(run, indices, sizes)
    run.room("sparse_shape", (sizes[0], 64), places)
    if bool((np.diff(places[:, 0]) < 0).any()):
        run.fail("sparse_indices", wanted="be in order", got=places[:8].tolist())
    return places, np.searchsorted(places[:, 0], np.arange(sizes[0] + 1))


def stack_sparse(run: Run, argument: str, parts: list[tuple[Numbers, Numbers, list[int]]]) -> Any:
    """Sparse tensors of one rank as one of a rank more; its sizes are the largest of each."""
    for _, own, sizes in parts:
        if element_type(own) != run.attrs["dtype"]:
            run.fail("dtype", wanted=f"be {element_type(own)}", got=run.attrs["dtype"].name, code="VG011")
        if len(sizes) != len(parts[0][2]):
            run.fail(argument, wanted="be of tensors of one rank", got=[len(parts[0][2]), len(sizes)], code="VG012")
    places = np.concatenate([np.insert(one, 0, row, axis=1) for row, (one, _, _) in enumerate(parts)])
    shape = [len(parts), *np.max([sizes for _, _, sizes in parts], axis=0).astype(int).tolist()]
    values = np.concatenate([one for _, one, _ in parts])
    return run.make(places, INT64), run.make(values, run.attrs["dtype"]), run.make(shape, INT64)
