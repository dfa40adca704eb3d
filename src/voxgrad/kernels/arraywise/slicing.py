# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors: cut, joined, padded, repeated, turned round, gathered and scattered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import INT64
from voxgrad.catalog.slices import Cut, cuts
from voxgrad.errors import Faults
from voxgrad.kernels.arraywise.array import zeros_like
from voxgrad.kernels.arraywise.context import Ref
from voxgrad.kernels.arraywise.evaluation import Run, kernel
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
from voxgrad.kernels.arraywise.state import check_positions


def _owned(array: Array) -> Array:
    """A NumPy result with memory of its own: a view would keep all of the input alive."""
    return array.copy() if is_numpy(array) and array.base is not None else array


@kernel(name="slice")
def cut_box(run: Run, x: Array, begin: Array, size: Array) -> Array:
    """A box of a tensor."""
    starts, counts = integers(begin), integers(size)
    spans = []
    for index, (start, count) in enumerate(zip(starts, counts, strict=True)):
        stop = x.shape[index] if count == -1 else start + count
        if not 0 <= start <= stop <= x.shape[index]:
            run.fail(
                f"begin[{index}], size[{index}]", wanted=f"lie inside {x.shape[index]} cells", got=f"{start}, {count}"
            )
        spans.append(slice(start, stop))
    return _owned(x[(*spans, ...)])


def _cuts(run: Run, shape: Any, bounds: tuple[Array, ...]) -> list[Cut]:
    faults = Faults(run.op.name)
    begin, end, strides = (integers(bound) for bound in bounds)
    made = cuts(tuple(shape), (begin, end, strides), run.attrs, faults)
    faults.raise_if_any()
    assert made is not None
    return made


def _indexed(run: Run, x: Array, made: list[Cut]) -> Array:
    """The cells of the cuts, axis by axis; the axes stay in place."""
    places = [cut for cut in made if cut.axis is not None]
    if all(cut.step > 0 for cut in places) or is_numpy(x):
        return x[(*(_span(cut) for cut in places), ...)]  # an array also where there is no axis
    for cut in places:
        chosen = np.arange(cut.start, cut.start + cut.step * cut.count, cut.step)
        x = run.xp.take(x, moved_to(chosen, x), axis=cut.axis)
    return x


def _span(cut: Cut) -> slice:
    stop = cut.start + cut.step * cut.count
    return slice(cut.start, None if stop < 0 else stop, cut.step) if cut.count else slice(0, 0)


@kernel()
def strided_slice(run: Run, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """Python's extended slice."""
    made = _cuts(run, x.shape, (begin, end, strides))
    shape = tuple(cut.count for cut in made if not cut.shrink)
    return _owned(run.xp.reshape(_indexed(run, x, made), shape))


@kernel()
def strided_slice_grad(run: Run, shape: Array, begin: Array, end: Array, strides: Array, dy: Array) -> Array:
    """dy at the cells of the slice, zeros elsewhere."""
    whole = tuple(integers(shape))
    made = _cuts(run, whole, (begin, end, strides))
    places = [cut for cut in made if cut.axis is not None]
    wanted = [cut.count for cut in made if not cut.shrink]
    if list(dy.shape) != wanted:
        run.fail("dy", wanted=f"have the shape of the slice, {wanted}", got=list(dy.shape), code="VG012")
    out = (np.full(whole, b"", object) if element_type(dy).kind == "string"
           else run.xp.zeros(whole, dtype=dy.dtype, **_device(dy)))  # fmt: skip
    return _filled(run, out, places, dy)


def _filled(run: Run, out: Array, places: list[Cut], value: Array) -> Array:
    """`out` with these values in the cells of the cuts; a scalar is another array then."""
    if not places:
        return run.xp.reshape(value, ())
    inner = run.xp.reshape(value, tuple(cut.count for cut in places))
    back = [cut.axis for cut in places if cut.step < 0 and cut.count]
    if back:
        inner = run.xp.flip(inner, axis=tuple(back))
    out[tuple(_span(_forward(cut)) for cut in places)] = inner
    return out


def _assigned(run: Run, held: Array, bounds: tuple[Array, ...], value: Array) -> Array:
    """What a variable holds, with other values in the cells of a slice."""
    if held.dtype != value.dtype:
        run.fail("value", wanted=f"be of the type of ref, {element_type(held)}", got=str(element_type(value)),
                 code="VG011")  # fmt: skip
    made = _cuts(run, held.shape, bounds)
    wanted = [cut.count for cut in made if not cut.shrink]
    if list(value.shape) != wanted:
        run.fail("value", wanted=f"have the shape of the slice, {wanted}", got=list(value.shape), code="VG012")
    out = moved_to(to_numpy(held).copy(), held)
    return _filled(run, out, [cut for cut in made if cut.axis is not None], value)


@kernel()
def strided_assign(run: Run, ref: Ref, begin: Array, end: Array, strides: Array, value: Array) -> Ref:
    """Other values in the cells of a slice of a variable."""
    return ref.assign(_assigned(run, ref.value, (begin, end, strides), value))


@kernel()
def strided_assign_handle(run: Run, ref: Any, begin: Array, end: Array, strides: Array, value: Array) -> tuple[()]:
    """The same for the variable behind a handle."""
    ref.assign(_assigned(run, ref.value, (begin, end, strides), value))
    return ()


def _forward(cut: Cut) -> Cut:
    """The same cells from first to last."""
    if cut.step > 0 or not cut.count:
        return cut
    return Cut(cut.axis, cut.start + cut.step * (cut.count - 1), -cut.step, cut.count)


def _device(like: Array) -> dict[str, Any]:
    return {} if is_numpy(like) else {"device": like.device}


@kernel()
def split(run: Run, axis: Array, value: Array) -> Any:
    """Equal parts."""
    return _parts(value, integer(axis), [value.shape[integer(axis)] // run.attrs["num_split"]] * run.attrs["num_split"])


@kernel()
def split_v(run: Run, value: Array, size_splits: Array, axis: Array) -> Any:
    """Parts of stated sizes."""
    sizes = integers(size_splits)
    if min(sizes, default=0) < -1:
        run.fail("size_splits", wanted="be sizes, or -1 for what is left", got=sizes, code="VG003")
    rest = value.shape[integer(axis)] - sum(size for size in sizes if size != -1)
    if rest < 0 or (rest and -1 not in sizes):
        wanted = f"add up to {value.shape[integer(axis)]}"
        run.fail("size_splits", wanted=wanted, got=sizes, code="VG012")
    return _parts(value, integer(axis), [rest if size == -1 else size for size in sizes])


def _parts(value: Array, axis: int, sizes: list[int]) -> tuple[Array, ...]:
    made, at, where = [], 0, [slice(None)] * len(value.shape)
    for size in sizes:
        where[axis] = slice(at, at + size)
        made.append(_owned(value[tuple(where)]))
        at += size
    return tuple(made)


@kernel()
def unpack(run: Run, value: Array) -> Any:
    """Slices along an axis, each without it."""
    axis = run.attrs["axis"] % len(value.shape)
    lead = (slice(None),) * axis
    return tuple(_owned(value[(*lead, index, ...)]) for index in range(value.shape[axis]))


@kernel()
def concat(run: Run, axis: Array, values: list[Array]) -> Array:
    """Tensors one behind the other."""
    return run.xp.concat(values, axis=integer(axis))


@kernel()
def concat_v2(run: Run, values: list[Array], axis: Array) -> Array:
    """Tensors one behind the other."""
    return run.xp.concat(values, axis=integer(axis))


@kernel()
def concat_offset(run: Run, axis: Array, shapes: list[Array]) -> Any:
    """Where each part of a joined tensor begins."""
    at, made = 0, []
    for shape in shapes:
        sizes = integers(shape)
        where = integer(axis) % len(sizes)
        made.append(run.make([at if index == where else 0 for index in range(len(sizes))], element_type(shape)))
        at += sizes[where]
    return tuple(made)


@kernel()
def pack(run: Run, values: list[Array]) -> Array:
    """Tensors side by side along a new axis."""
    return run.xp.stack(values, axis=run.attrs["axis"])


@kernel()
def tile(run: Run, x: Array, multiples: Array) -> Array:
    """A tensor repeated."""
    times = tuple(integers(multiples))
    return run.xp.tile(x, times) if times else x


@kernel()
def pad(run: Run, x: Array, paddings: Array, value: Array | None = None) -> Array:
    """A tensor with one value around it."""
    amounts = to_numpy(paddings).reshape(-1, 2).tolist()
    shape = [before + size + after for (before, after), size in zip(amounts, x.shape, strict=True)]
    fill = 0 if value is None else to_numpy(value)[()]
    if is_numpy(x):
        out = np.full(shape, b"" if x.dtype == object and value is None else fill, dtype=x.dtype)
    else:
        out = run.xp.full(tuple(shape), fill if value is None else value.item(), dtype=x.dtype, device=x.device)
    inside: list[Any] = [slice(before, before + size) for (before, _), size in zip(amounts, x.shape, strict=True)]
    # The ellipsis keeps a scalar text from being stored as an array.
    out[(*inside, ...)] = x
    return out


def _mirrored(size: int, before: int, after: int, symmetric: bool) -> np.ndarray[Any, Any]:
    """For every cell of a padded dimension, the cell that it shows."""
    edge = 0 if symmetric else 1
    inner = np.arange(size)
    front = inner[edge : edge + before][::-1]
    back = inner[::-1][edge : edge + after]
    return np.concatenate([front, inner, back])


@kernel()
def mirror_pad(run: Run, x: Array, paddings: Array) -> Array:
    """A tensor with its mirror image around it."""
    for axis, (before, after) in enumerate(to_numpy(paddings).reshape(-1, 2).tolist()):
        shown = _mirrored(x.shape[axis], before, after, run.attrs["mode"] == "SYMMETRIC")
        x = run.xp.take(x, moved_to(shown, x), axis=axis)
    return x


@kernel(widen=True)
def mirror_pad_grad(run: Run, dy: Array, paddings: Array) -> Array:
    """Every mirrored cell added back to the one that it shows."""
    from voxgrad.kernels.arraywise.reductions import scattered

    _refuse_text(run, "input", dy)
    for axis, (before, after) in enumerate(to_numpy(paddings).reshape(-1, 2).tolist()):
        size = dy.shape[axis] - before - after
        shown = _mirrored(size, before, after, run.attrs["mode"] == "SYMMETRIC")
        turned = run.xp.moveaxis(dy, axis, 0)
        dy = run.xp.moveaxis(scattered(run, turned, shown, size, "sum"), 0, axis)
    return dy


@kernel()
def reverse(run: Run, x: Array, axis: Array) -> Array:
    """A tensor turned round along axes."""
    over = tuple(integers(axis))
    return _owned(run.xp.flip(x, axis=over)) if over else x


@kernel()
def reverse_sequence(run: Run, x: Array, seq_lengths: Array) -> Array:
    """The first cells of each sequence, turned round."""
    seq, batch = run.attrs["seq_dim"], run.attrs["batch_dim"]
    lengths, count = to_numpy(seq_lengths).astype(np.int64), x.shape[seq]
    if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= count:
        run.fail("seq_lengths", wanted=f"be in [0, {count}]", got=lengths.tolist())
    cell = np.arange(count)
    source = np.where(cell < lengths[:, None], lengths[:, None] - 1 - cell, cell)
    turned = to_numpy(x).swapaxes(0, batch) if batch else to_numpy(x)
    along = batch if seq == 0 else seq
    order = [1] * turned.ndim
    order[0], order[along] = lengths.size, count
    made = np.take_along_axis(turned, source.reshape(order), axis=along)
    return moved_to(np.ascontiguousarray(made.swapaxes(0, batch) if batch else made), x)


def _checked(run: Run, indices: Array, size: int) -> None:
    values = to_numpy(indices)
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < size:
        bad = values[(values < 0) | (values >= size)]
        run.fail("indices", wanted=f"be in [0, {size})", got=int(bad[0]))


@kernel()
def gather(run: Run, params: Array, indices: Array) -> Array:
    """Rows by index."""
    return _taken(run, params, indices, 0)


def _taken(run: Run, params: Array, indices: Array, axis: int) -> Array:
    _checked(run, indices, params.shape[axis])
    flat = cast(run.xp.reshape(indices, (-1,)), INT64)
    rows = run.xp.take(params, flat, axis=axis)
    return run.xp.reshape(rows, (*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :]))


@kernel()
def gather_v2(run: Run, params: Array, indices: Array, axis: Array) -> Array:
    """Slices by index along an axis."""
    at, batch = integer(axis) % len(params.shape), run.attrs["batch_dims"]
    batch = batch + len(indices.shape) if batch < 0 else batch
    if batch == 0:
        return _taken(run, params, indices, at)
    lead = tuple(params.shape[:batch])
    many = run.xp.reshape(params, (math.prod(lead), *params.shape[batch:]))
    chosen = run.xp.reshape(indices, (math.prod(lead), *indices.shape[batch:]))
    rows = [_taken(run, many[i], chosen[i], at - batch) for i in range(math.prod(lead))]
    if not rows:
        shape = (*lead, *params.shape[batch:at], *indices.shape[batch:], *params.shape[at + 1 :])
        return run.xp.zeros(shape, dtype=params.dtype, **_device(params))
    made = run.xp.stack(rows, axis=0)
    return run.xp.reshape(made, (*lead, *made.shape[1:]))


def _places(indices: Array) -> np.ndarray[Any, Any]:
    """Positions as a matrix, one a row."""
    return to_numpy(indices).reshape(math.prod(indices.shape[:-1]), indices.shape[-1]).astype(np.int64)


def _refuse_text(run: Run, argument: str, x: Array) -> None:
    """Text and handles cannot be added up."""
    if element_type(x).kind in ("string", "resource"):
        run.fail(argument, wanted="hold numbers", got=element_type(x).name, code="VG011")


@kernel()
def gather_nd(run: Run, params: Array, indices: Array) -> Array:
    """Slices by position."""
    depth = indices.shape[-1]
    places = _places(indices)
    check_positions(run, places, tuple(params.shape))
    shape = (*indices.shape[:-1], *params.shape[depth:])
    if depth == 0:
        return run.xp.reshape(run.xp.stack([params] * len(places), axis=0), shape) if len(places) else zeros_like(
            run, run.xp.reshape(params, (-1,))[:0].reshape(shape))  # fmt: skip
    picked = params[tuple(moved_to(column.copy(), params) for column in places.T)]
    return run.xp.reshape(picked, shape)


def _placed(
    run: Run, start: np.ndarray[Any, Any], indices: Array, updates: Array, *, add: bool
) -> np.ndarray[Any, Any]:
    depth = indices.shape[-1]
    places = _places(indices)
    check_positions(run, places, start.shape)
    values = to_numpy(updates).reshape(len(places), *start.shape[depth:])
    at = tuple(places.T) if depth else (np.zeros(len(places), np.intp),)
    # Without an index every value goes to the one place there is.
    whole = start if depth else start[None]
    if add:
        (np.logical_or if start.dtype.kind == "b" else np.add).at(whole, at, values)
    elif depth:
        whole[at] = values
    elif len(places):
        whole[0] = values[-1]
    return start


@kernel(widen=True)
def scatter_nd(run: Run, indices: Array, updates: Array, shape: Array) -> Array:
    """Values at positions of zeros, added up; of truth values whether one is true, of texts one behind the other."""
    values = to_numpy(updates)
    start = np.full(tuple(integers(shape)), b"" if values.dtype == object else 0, dtype=values.dtype)
    return moved_to(_placed(run, start, indices, updates, add=True), updates)


@kernel()
def tensor_scatter_update(run: Run, x: Array, indices: Array, updates: Array) -> Array:
    """A tensor with other values at positions."""
    return moved_to(_placed(run, to_numpy(x).copy(), indices, updates, add=False), x)


@kernel(widen=True)
def tensor_scatter_add(run: Run, x: Array, indices: Array, updates: Array) -> Array:
    """A tensor with values added at positions."""
    _refuse_text(run, "updates", updates)
    return moved_to(_placed(run, to_numpy(x).copy(), indices, updates, add=True), x)


@kernel()
def one_hot(run: Run, indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
    """One value on, all others off."""
    axis, count = run.attrs["axis"], integer(depth)
    at = len(indices.shape) if axis == -1 else axis
    row = [1] * (len(indices.shape) + 1)
    row[at] = count
    column = moved_to(np.arange(count).reshape(row), indices)
    hit = cast(run.xp.expand_dims(indices, axis=at), INT64) == column
    return run.xp.where(hit, on_value, off_value)


@kernel()
def where(run: Run, x: Array) -> Array:
    """The positions of what is not zero."""
    found = np.argwhere(to_numpy(x)).reshape(-1, len(x.shape))
    return run.make(found, INT64)


def _unique(x: Array) -> tuple[Any, Any, Any]:
    """The values in the order of their first place, the place of every element, how often each occurs."""
    values = to_numpy(x)
    if values.dtype.kind in "fV" or values.dtype == object:
        return _unique_by_hash(values)
    _, first, inverse, counts = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values[first[order]], rank[inverse.reshape(-1)], counts[order]


def _unique_by_hash(values: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    """As TensorFlow does for floats and text: by equality, so that every NaN is its own."""
    seen: dict[Any, int] = {}
    places: list[int] = []
    firsts: list[int] = []
    counts: list[int] = []
    for index, value in enumerate(values.tolist()):
        place = seen.get(value) if value == value else None
        if place is None:
            place = len(firsts)
            firsts.append(index)
            counts.append(0)
            if value == value:
                seen[value] = place
        places.append(place)
        counts[place] += 1
    return values[firsts], np.asarray(places, np.int64), np.asarray(counts, np.int64)


@kernel()
def unique(run: Run, x: Array) -> Any:
    """The different values of a vector."""
    values, places, _ = _unique(x)
    return moved_to(values, x), run.make(places, run.attrs["out_idx"])


@kernel()
def unique_with_counts(run: Run, x: Array) -> Any:
    """The different values of a vector and their counts."""
    values, places, counts = _unique(x)
    return moved_to(values, x), run.make(places, run.attrs["out_idx"]), run.make(counts, run.attrs["out_idx"])


@kernel()
def list_diff(run: Run, x: Array, y: Array) -> Any:
    """The elements of x that are not in y."""
    values, gone = to_numpy(x), set(to_numpy(y).tolist())
    kept = [index for index, value in enumerate(values.tolist()) if value not in gone]
    return moved_to(values[kept], x), run.make(kept, run.attrs["out_idx"])


@kernel(name="range")
def numbers(run: Run, start: Array, limit: Array, delta: Array) -> Array:
    """Numbers from start up to limit."""
    first, last, step = (to_numpy(one) for one in (start, limit, delta))
    if step == 0 or (last - first) * (1 if step > 0 else -1) < 0:
        run.fail("limit", wanted="lie where delta leads", got=f"{first}, {last}, {step}")
    dtype = element_type(start)
    if dtype.kind != "float":
        return run.make(range(int(first), int(last), int(step)), dtype)
    count = math.ceil(abs((float(last) - float(first)) / float(step)))
    made = first + step * np.arange(count).astype(first.dtype)
    return run.make(made, dtype)


@kernel(widen=True)
def lin_space(run: Run, start: Array, stop: Array, num: Array) -> Array:
    """Evenly spaced numbers."""
    first, last, count = to_numpy(start), to_numpy(stop), integer(num)
    if count < 1:
        run.fail("num", wanted="be at least 1", got=count)
    step = (last - first) / np.asarray(max(1, count - 1), first.dtype)
    made = first + step * np.arange(count, dtype=first.dtype)
    # Both ends as they are given: infinity plus 0 times a step may be no number.
    made[0] = first
    if count > 1:
        made[-1] = last
    return run.make(made, element_type(start))


@kernel()
def dynamic_partition(run: Run, data: Array, partitions: Array) -> Any:
    """Rows sorted into several tensors."""
    which, count = to_numpy(partitions), run.attrs["num_partitions"]
    if which.size and not 0 <= int(which.min()) <= int(which.max()) < count:
        run.fail("partitions", wanted=f"be in [0, {count})", got=which.ravel().tolist())
    rows = run.xp.reshape(data, (which.size, *data.shape[which.ndim :]))
    order = np.argsort(which, axis=None, kind="stable")
    chosen = np.split(order, np.searchsorted(which.reshape(-1)[order], np.arange(1, count)))
    return tuple(run.xp.take(rows, moved_to(one, data), axis=0) for one in chosen)


@kernel()
def dynamic_stitch(run: Run, indices: list[Array], data: list[Array]) -> Array:
    """Rows put to their places."""
    places = [to_numpy(one).reshape(-1) for one in indices]
    flat = np.concatenate(places).astype(np.int64) if places else np.zeros(0, np.int64)
    rest = tuple(data[0].shape[len(indices[0].shape) :])
    rows = run.xp.concat([run.xp.reshape(one, (place.size, *rest))
                          for one, place in zip(data, places, strict=True)], axis=0)  # fmt: skip
    count = int(flat.max()) + 1 if flat.size else 0
    run.room("indices", (count, *rest), data[0])
    if flat.size and int(flat.min()) < 0:
        run.fail("indices", wanted="be 0 or more", got=int(flat.min()))
    out = (np.full((count, *rest), b"", object) if element_type(rows).kind == "string"
           else run.xp.zeros((count, *rest), dtype=rows.dtype, **_device(rows)))  # fmt: skip
    last = {int(place): index for index, place in enumerate(flat.tolist())}
    if last:
        out[moved_to(np.asarray(list(last)), rows)] = rows[moved_to(np.asarray(list(last.values())), rows)]
    return out
