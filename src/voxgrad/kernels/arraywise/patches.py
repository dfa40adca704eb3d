# SPDX-License-Identifier: Apache-2.0
"""Windows over images, tap by tap: patches, dilations, places of maxima, windows of two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from voxgrad.catalog import geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integers, moved_to, native_type, numpy_namespace, to_numpy
from voxgrad.kernels.arraywise.random import doubles, generator

Values = Any


def axes_of(run: Run, shape: tuple[int, ...], window: tuple[int, ...]) -> list[Axis]:
    """How windows lie on the height and the width of images."""
    attrs = run.attrs
    rates = attrs.get("rates", (1, 1, 1, 1))
    return [geometry.axis(shape[at], window[at - 1], attrs["strides"][at], rates[at], attrs["padding"])
            for at in (1, 2)]  # fmt: skip


def taps_of(axes: list[Axis]) -> Iterator[tuple[tuple[int, int], Any, Any]]:
    """Every tap that falls on a real cell of some window: the tap, those windows, those cells."""
    ranges = []
    for axis in axes:
        first = -(-(axis.before - (axis.out - 1) * axis.stride) // axis.dilation)
        ranges.append(range(max(0, first), min(axis.window, (axis.before + axis.size - 1) // axis.dilation + 1)))
    for row in ranges[0]:
        for column in ranges[1]:
            windows, cells = geometry.tap_slices(axes, (row, column))
            yield (row, column), (slice(None), *windows), (slice(None), *cells)


@kernel()
def extract(run: Run, images: Array) -> Array:
    """The cells of every window, one behind the other."""
    data, window = to_numpy(images), run.attrs["ksizes"][1:3]
    axes = axes_of(run, data.shape, window)
    made = np.zeros((len(data), axes[0].out, axes[1].out, *window, data.shape[3]), data.dtype)
    for (row, column), windows, cells in taps_of(axes):
        made[(*windows, row, column)] = data[cells]
    return moved_to(made.reshape(*made.shape[:3], -1), images)


def _dilated(run: Run, x: Array, w: Array) -> tuple[Values, Values, Values]:
    """The maxima of cell plus filter, and the row and the column of the tap that gave each."""
    data, taps = to_numpy(x), to_numpy(w)
    axes = axes_of(run, data.shape, taps.shape[:2])
    shape = (len(data), axes[0].out, axes[1].out, data.shape[3])
    lowest = np.finfo(data.dtype).min if data.dtype.kind == "f" else np.iinfo(data.dtype).min
    best, rows, columns = np.full(shape, lowest, data.dtype), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for (row, column), windows, cells in taps_of(axes):
        value = data[cells] + taps[row, column]
        better = value > best[windows]
        best[windows] = np.where(better, value, best[windows])
        rows[windows] = np.where(better, row, rows[windows])
        columns[windows] = np.where(better, column, columns[windows])
    return best, rows, columns


@kernel(widen=True)
def dilation(run: Run, x: Array, w: Array) -> Array:
    """The maxima of cell plus filter."""
    return moved_to(_dilated(run, x, w)[0], x)


@kernel(widen=True)
def dilation_input(run: Run, x: Array, w: Array, dy: Array) -> Array:
    """Gradients at the cells that won."""
    data, slopes = to_numpy(x), to_numpy(dy)
    _, rows, columns = _dilated(run, x, w)
    made = np.zeros(data.shape, data.dtype)
    batch, _, _, channel = np.indices(slopes.shape, sparse=True)
    where = []
    for axis, taps, at in zip(axes_of(run, data.shape, to_numpy(w).shape[:2]), (rows, columns), (1, 2), strict=True):
        start = np.arange(axis.out).reshape([-1 if at == one else 1 for one in range(4)]) * axis.stride - axis.before
        where.append(np.clip(start + taps * axis.dilation, 0, axis.size - 1))
    places: Any = batch, *where, channel
    np.add.at(made, places, slopes)
    return moved_to(made, x)


@kernel(widen=True)
def dilation_filter(run: Run, x: Array, w: Array, dy: Array) -> Array:
    """Gradients at the taps that won."""
    slopes, taps = to_numpy(dy), to_numpy(w)
    _, rows, columns = _dilated(run, x, w)
    made = np.zeros(taps.shape, taps.dtype)
    places: Any = rows, columns, np.broadcast_to(np.arange(taps.shape[2]), slopes.shape)
    np.add.at(made, places, slopes)
    return moved_to(made, x)


@kernel()
def argmax(run: Run, x: Array) -> tuple[Array, Array]:
    """The maximum of every window, and its place."""
    data = to_numpy(x)
    _, height, width, channels = data.shape
    axes = axes_of(run, data.shape, run.attrs["ksize"][1:3])
    shape = (len(data), axes[0].out, axes[1].out, channels)
    best, places = np.zeros(shape, data.dtype), np.full(shape, -1, np.int64)
    numbers = np.arange(height * width * channels).reshape(1, height, width, channels)
    if run.attrs["include_batch_in_index"]:
        numbers = numbers + np.arange(len(data)).reshape(-1, 1, 1, 1) * numbers.size
    for _, windows, cells in taps_of(axes):
        better = (data[cells] > best[windows]) | (places[windows] < 0)
        best[windows] = np.where(better, data[cells], best[windows])
        places[windows] = np.where(better, np.broadcast_to(numbers[cells], better.shape), places[windows])
    kind = native_type(numpy_namespace, run.attrs["Targmax"])
    return moved_to(best, x), moved_to(places.astype(kind), x)


def _flat_places(run: Run, argmax: Array, shape: tuple[int, ...]) -> Values:
    """Places counted through all images."""
    places, each = to_numpy(argmax).astype(np.int64), int(np.prod(shape[1:]))
    whole = run.attrs["include_batch_in_index"]
    limit = each * shape[0] if whole else each
    bad = (places < 0) | (places >= limit)
    if bad.any():
        run.fail("argmax", wanted=f"be in [0, {limit})", got=int(places[bad][0]))
    return places if whole else places + np.arange(len(places)).reshape(-1, 1, 1, 1) * each


@kernel(widen=True)
def argmax_grad(run: Run, x: Array, dy: Array, argmax: Array) -> Array:
    """Gradients at the places of maxima."""
    data, slopes = to_numpy(x), to_numpy(dy)
    made = np.zeros(data.size, data.dtype)
    np.add.at(made, _flat_places(run, argmax, data.shape).ravel(), slopes.ravel())
    return moved_to(made.reshape(data.shape), x)


@kernel()
def argmax_grad_grad(run: Run, x: Array, dy: Array, argmax: Array) -> Array:
    """The values at the places of maxima."""
    return moved_to(to_numpy(dy).ravel()[_flat_places(run, argmax, tuple(x.shape))], x)


# Windows of two sizes


def _bounds(run: Run, size: int, out: int) -> Values:
    """Where windows begin, and the end: sizes k and k + 1 in random order."""
    source, small = generator(run), size // out
    if run.attrs["pseudo_random"]:
        words, alpha = source.take(1, 1), size / out
        most = min((small + 2) / alpha - 1, (size + 1 - small) / alpha - (out - 1))
        shift = float(doubles(words[:, :1], words[:, 1:2])[0, 0]) * most
        inner = np.ceil(alpha * (np.arange(1, out) + shift)).astype(np.int64)
        return np.concatenate([[1], inner, [size + 1]]) - 1
    groups = -(-out // 4)
    words = source.take(groups, groups).reshape(-1)
    steps = [small + 1] * (size % out) + [small] * (out - size % out)
    for index in range(out - 1):
        other = index + int(words[index]) % (out - index)
        steps[index], steps[other] = steps[other], steps[index]
    return np.concatenate([[0], np.cumsum(steps)])


def _sequences(run: Run, shape: tuple[int, ...]) -> list[Values]:
    """The bounds along both axes; those of the first run where they shall stay."""
    kept, name = run.context.state.generators, f"{run.context.block}/bounds"
    if run.attrs["deterministic"] and name in kept and [one[-1] for one in kept[name]] == list(shape[1:3]):
        return list(kept[name])
    ratios = run.attrs["pooling_ratio"]
    made = [_bounds(run, shape[at], int(np.floor(np.float32(shape[at]) / np.float32(ratios[at])))) for at in (1, 2)]
    kept[name] = made
    return made


def _windows(run: Run, sequences: list[Values], shape: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """Every window: its place, and its cells."""
    spans = []
    for sequence, size in zip(sequences, shape[1:3], strict=True):
        ends = np.minimum(sequence[1:] + int(run.attrs["overlapping"]), size)
        if len(sequence) and not ((sequence[:-1] >= 0).all() and (sequence[:-1] < ends).all()):
            run.fail("row_pooling_sequence", wanted=f"rise from 0 to {size}", got=sequence.tolist()[:12])
        spans.append([slice(int(low), int(high)) for low, high in zip(sequence[:-1], ends, strict=True)])
    for row, rows in enumerate(spans[0]):
        for column, columns in enumerate(spans[1]):
            yield (slice(None), row, column), (slice(None), rows, columns)


def _pooled(run: Run, value: Array, pool: Any) -> tuple[Array, Array, Array]:
    data = to_numpy(value)
    sequences = _sequences(run, data.shape)
    made = np.zeros((len(data), *(len(one) - 1 for one in sequences), data.shape[3]), data.dtype)
    for place, cells in _windows(run, sequences, data.shape):
        made[place] = pool(data[cells])
    return (moved_to(made, value), *(moved_to(one.astype(np.int64), value) for one in sequences))


def _mean(cells: Values) -> Values:
    total, count = cells.sum(axis=(1, 2), dtype=cells.dtype), cells.shape[1] * cells.shape[2]
    # Integers are cut off towards 0.
    return np.sign(total) * (np.abs(total) // count) if cells.dtype.kind == "i" else total / cells.dtype.type(count)


@kernel()
def fractional_avg(run: Run, value: Array) -> tuple[Array, Array, Array]:
    """The mean of every window, and the bounds of the windows."""
    return _pooled(run, value, _mean)


@kernel()
def fractional_max(run: Run, value: Array) -> tuple[Array, Array, Array]:
    """The maximum of every window, and the bounds of the windows."""
    return _pooled(run, value, lambda cells: cells.max(axis=(1, 2)))


@kernel()
def fractional_avg_grad(run: Run, shape: Array, dy: Array, rows: Array, columns: Array) -> Array:
    """Gradients shared by the cells of each window."""
    slopes, whole = to_numpy(dy), tuple(integers(shape))
    made = np.zeros(whole, np.float64)
    for place, cells in _windows(run, [to_numpy(rows), to_numpy(columns)], whole):
        count = made[cells].shape[1] * made[cells].shape[2]
        made[cells] += (slopes[place].astype(np.float64) / max(1, count))[:, None, None]
    return moved_to(made.astype(slopes.dtype), dy)


@kernel()
def fractional_max_grad(run: Run, x: Array, y: Array, dy: Array, rows: Array, columns: Array) -> Array:
    """Gradients at the cells that won."""
    data, slopes, kept = to_numpy(x), to_numpy(dy), to_numpy(y)
    made = np.zeros(data.shape, slopes.dtype)
    batch, channel = np.indices((data.shape[0], data.shape[3]), sparse=True)
    for place, cells in _windows(run, [to_numpy(rows), to_numpy(columns)], data.shape):
        window = data[cells]
        flat = window.reshape(len(data), -1, data.shape[3])
        winner = flat.argmax(axis=1)
        if not np.array_equal(flat[batch, winner, channel], kept[place]):
            run.fail("orig_output", wanted="hold the maxima of orig_input", got="other numbers")
        spot: Any = (
            batch,
            cells[1].start + winner // window.shape[2],
            cells[2].start + winner % window.shape[2],
            channel,
        )
        np.add.at(made, spot, slopes[place])
    return moved_to(made, x)
