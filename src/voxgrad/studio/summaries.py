# SPDX-License-Identifier: Apache-2.0
"""What a tensor looks like without sending it: statistics, histogram, the first values, a thumbnail."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of
from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.graph.statistics import CHUNK, Statistics, chunks_of, finite_or_none
from voxgrad.studio import messages
from voxgrad.studio.tensors import Array, TensorStore, texts

BINS = 48
PREVIEW = 512
SMALL = 128
"""Values that an event carries along."""
THUMBNAIL = 64
NOT_FINITE = 255


def brief(array: Array) -> messages.Brief:
    """The summary that travels with an event."""
    first = texts(array.reshape(-1)[:SMALL].tolist() if array.dtype == object else list(array.reshape(-1)[:SMALL]))
    if array.dtype == object:
        return messages.Brief(count=array.size, values=first)
    found = Statistics(array)
    return messages.Brief(
        count=array.size, min=found.low, max=found.high, mean=found.mean, nan=found.nan,
        infinite=found.posinf + found.neginf, values=first,
    )  # fmt: skip


def summary(name: str, array: Array, axes: tuple[int, int] | None = None, at: tuple[int, ...] = ()) -> messages.Summary:
    """Everything that the viewer shows before the values."""
    found = Statistics(array)
    dtype = dtype_of(array.dtype)
    return messages.Summary(
        hash=name,
        dtype=dtype.name if dtype else str(array.dtype),
        shape=list(array.shape),
        count=array.size,
        bytes=array.nbytes,
        min=found.low,
        max=found.high,
        mean=found.mean,
        std=found.std,
        nan=found.nan,
        posinf=found.posinf,
        neginf=found.neginf,
        zeros=found.zeros,
        histogram=_histogram(array, found),
        preview=messages.Preview(shape=[min(array.size, PREVIEW)], values=texts(list(array.reshape(-1)[:PREVIEW]))),
        thumbnail=thumbnail(array, axes, at),
    )


def _histogram(array: Array, found: Statistics) -> messages.Histogram | None:
    if found.low is None or found.high is None:
        return None
    low, high = found.low, found.high
    if not math.isfinite(high - low):
        return None
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    counts = np.zeros(BINS, np.int64)
    for chunk in chunks_of(array):
        counts += np.histogram(chunk[np.isfinite(chunk)], BINS, (low, high))[0]
    return messages.Histogram(edges=edges.tolist(), counts=counts.tolist())


def thumbnail(array: Array, axes: tuple[int, int] | None = None, at: tuple[int, ...] = ()) -> messages.Thumbnail | None:
    """A slice over two axes, the middle one by default, as at most 64 x 64 levels of grey."""
    if array.ndim < 2 or array.size == 0:
        return None
    chosen = axes if axes is not None else _default_axes(array.ndim)
    if len(set(chosen)) != 2 or not all(0 <= axis < array.ndim for axis in chosen):
        return None
    place = [min(max(one, 0), size - 1) for one, size in zip(at, array.shape, strict=False)]
    place += [size // 2 if axis in _spatial(array.ndim) else 0 for axis, size in enumerate(array.shape)][len(place) :]
    index: list[int | slice] = [
        slice(None, None, -(-array.shape[axis] // THUMBNAIL)) if axis in chosen else place[axis]
        for axis in range(array.ndim)
    ]
    piece = next(chunks_of(np.ascontiguousarray(array[tuple(index)]))).reshape(array[tuple(index)].shape)
    if chosen[0] > chosen[1]:
        piece = piece.T
    good = np.isfinite(piece)
    low, high = (float(piece[good].min()), float(piece[good].max())) if good.any() else (0.0, 0.0)
    scale = 254.0 / (high - low) if high > low else 0.0
    levels = np.where(good, np.rint((np.where(good, piece, low) - low) * scale), NOT_FINITE).astype(np.uint8)
    return messages.Thumbnail(
        axes=list(chosen), at=place, shape=list(levels.shape), lo=low, hi=high,
        values=base64.b64encode(levels.tobytes()).decode(),
    )  # fmt: skip


def _spatial(rank: int) -> tuple[int, ...]:
    return (1, 2, 3) if rank == 5 else tuple(range(rank))


def _default_axes(rank: int) -> tuple[int, int]:
    """Height and width of a volume in NDHWC order; else the last two axes."""
    return (2, 3) if rank == 5 else (1, 2) if rank == 4 else (rank - 2, rank - 1)


def compare(left: Array, right: Array) -> dict[str, Any]:
    """How far two tensors of one shape are from each other: absolute, relative, in units in the last place."""
    a, b = left.reshape(-1), right.reshape(-1)
    worst: list[tuple[float, int]] = []
    total = largest = relative = 0.0
    differing = 0
    for start in range(0, a.size, CHUNK):
        x, y = (_wide(one[start : start + CHUNK]) for one in (a, b))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            distance = np.where(same, 0.0, np.abs(x - y).astype(np.float64))
            distance = np.where(np.isnan(distance), np.inf, distance)
            ratio = np.where(same, 0.0, distance / np.maximum(np.abs(x), np.abs(y)))
        differing += int((~same).sum())
        total += float(distance.sum())
        largest = max(largest, float(distance.max(initial=0.0)))
        relative = max(relative, float(np.nan_to_num(ratio, nan=np.inf, posinf=np.inf).max(initial=0.0)))
        far = np.argsort(distance)[::-1][:20]
        worst += [(float(distance[one]), start + int(one)) for one in far if distance[one] > 0]
        worst = sorted(worst, key=lambda entry: (-entry[0], entry[1]))[:20]
    where = [messages.Difference(index=[int(i) for i in np.unravel_index(flat, left.shape)],
                                 left=texts([a[flat]])[0], right=texts([b[flat]])[0]) for _, flat in worst]  # fmt: skip
    return {
        "max_abs": finite_or_none(largest), "max_rel": finite_or_none(relative),
        "mean_abs": finite_or_none(total / a.size) if a.size else 0.0, "differing": differing,
        "count": a.size, "max_ulp": _max_ulp(a, b), "where": where,
    }  # fmt: skip


def _wide(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


_ORDERED = {2: np.int16, 4: np.int32, 8: np.int64}


def _max_ulp(a: Array, b: Array) -> float | None:
    """The largest number of steps between neighbours of the type; None for other types than one real float type."""
    dtype = dtype_of(a.dtype)
    if dtype is None or not dtype.is_floating or a.dtype != b.dtype:
        return None
    most = 0
    for start in range(0, a.size, CHUNK):
        x, y = (one[start : start + CHUNK] for one in (a, b))
        both = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64))
        steps = [_ladder(np.ascontiguousarray(one[both])) for one in (x, y)]
        if steps[0].size:
            # Python integers: the distance of two float64 may not fit 64 bits.
            gap = np.abs(steps[0].astype(np.float64) - steps[1].astype(np.float64))
            at = int(gap.argmax())
            most = max(most, abs(int(steps[0][at]) - int(steps[1][at])))
    return float(most)


def _ladder(values: Array) -> Array:
    """Floats as integers in the same order, one apart for neighbours; both zeros are 0."""
    bits = values.view(_ORDERED[values.dtype.itemsize]).astype(np.int64)
    smallest = np.int64(-1) << np.int64(8 * values.dtype.itemsize - 1)
    return np.where(bits < 0, smallest - bits, bits)


def compared(tensors: TensorStore, left: str, right: str) -> messages.Compared:
    """Two stored tensors; the tensor of their differences is stored beside them."""
    a, b = tensors.open(left), tensors.open(right)
    if a.shape != b.shape:
        got = f"[{','.join(map(str, a.shape))}] and [{','.join(map(str, b.shape))}]"
        raise InvalidArgumentError(Fault("VG012", "studio", "right", "have the shape of left", got))
    dtype = dtype_of(a.dtype)
    stored = None
    if a.dtype.kind != "c" and b.dtype.kind != "c":
        with np.errstate(invalid="ignore", over="ignore"):
            stored = tensors.put(
                np.subtract(a, b, dtype=np.float64).astype(np.float32 if a.dtype.itemsize <= 4 else np.float64)
            )
    return messages.Compared(
        dtype=dtype.name if dtype else str(a.dtype),
        shape=list(a.shape),
        hash=stored.hash if stored else None,
        **compare(a, b),
    )
