# SPDX-License-Identifier: Apache-2.0
"""Images in another size. Where a new cell looks is worked out in float32, as TensorFlow does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integers, moved_to, to_numpy

Values = Any
_STEPS = 1024
"""Cubic curves are looked up at so many places between two cells."""
_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True, slots=True)
class Taps:
    """Along one axis, the cells that each new cell is made of, and their weights: [new size, taps]."""

    cells: Values
    weights: Values


def _scale(old: int, new: int, corners: bool) -> Any:
    between = corners and new > 1 and old > 1
    return np.float32(old - 1) / np.float32(new - 1) if between else np.float32(old) / np.float32(max(1, new))


def _centres(old: int, new: int, corners: bool, halves: bool) -> Values:
    """Where the new cells lie among the old ones."""
    at = np.arange(new, dtype=np.float32)
    scale = _scale(old, new, corners)
    return (at + _HALF) * scale - _HALF if halves else at * scale


def linear_taps(old: int, new: int, corners: bool, halves: bool) -> Taps:
    """The two neighbours of each new cell."""
    at = _centres(old, new, corners, halves)
    upper = np.minimum(np.ceil(at).astype(np.int64), old - 1)
    lower = np.minimum(np.maximum(np.floor(at).astype(np.int64), 0), upper)
    part = at - np.floor(at)
    return Taps(np.stack([lower, upper], 1), np.stack([_ONE - part, part], 1))


def _curve(keys: bool) -> tuple[Values, Values]:
    """The cubic within one cell, and between one and two."""
    a = -0.5 if keys else -0.75
    near = np.arange(_STEPS + 1) / _STEPS
    far = near + 1
    inner = ((a + 2) * near - (a + 3)) * near * near + 1
    return inner.astype(np.float32), (((a * far - 5 * a) * far + 8 * a) * far - 4 * a).astype(np.float32)


def _cubic_taps(old: int, new: int, corners: bool, halves: bool) -> Taps:
    """The four neighbours of each new cell. With centres at halves, those outside count nothing."""
    at = _centres(old, new, corners, halves)
    first = np.floor(at)
    step = np.rint((at - first) * np.float32(_STEPS)).astype(np.int64)
    near, far = _curve(halves)
    weights = np.stack([far[step], near[step], near[_STEPS - step], far[_STEPS - step]], 1)
    wanted = first.astype(np.int64)[:, None] + np.arange(-1, 3)
    cells = np.clip(wanted, 0, old - 1)
    if halves:
        weights = np.where(cells == wanted, weights, np.float32(0))
        total = weights.sum(1, keepdims=True)
        weights = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, weights * (_ONE / total), weights)
    return Taps(cells, weights)


def _nearest_cells(old: int, new: int, corners: bool, halves: bool) -> Values:
    at = (np.arange(new, dtype=np.float32) + (_HALF if halves else np.float32(0))) * _scale(old, new, corners)
    # Halves are rounded away from 0.
    whole = np.floor(at + _HALF) if corners else np.floor(at)
    return np.clip(whole.astype(np.int64), 0, old - 1)


def _area_taps(old: int, new: int, corners: bool) -> Taps:
    """All cells that each new cell covers, by how much; the last axis is as long as the most of them."""
    scale, at = _scale(old, new, corners), np.arange(new + 1, dtype=np.float32)
    begin, end = at[:-1] * scale, at[1:] * scale
    first, behind = np.floor(begin).astype(np.int64), np.ceil(end).astype(np.int64)
    wanted = first[:, None] + np.arange(max(1, int((behind - first).max())))
    cell, left, right = wanted.astype(np.float32), begin[:, None], end[:, None]
    over = cell + _ONE > right
    weights = np.where(cell < left, np.where(over, scale, cell + _ONE - left), np.where(over, right - cell, _ONE))
    weights = np.where(wanted < behind[:, None], weights, np.float32(0))
    return Taps(np.clip(wanted, 0, old - 1), weights.astype(np.float32))


def _rules(run: Run) -> tuple[bool, bool]:
    return run.attrs.get("align_corners", False), run.attrs.get("half_pixel_centers", False)


def interpolate(images: Values, rows: Taps, columns: Taps, kind: Any = np.float32) -> Values:
    """Between four neighbours, first along the width; in one type."""

    def corner(row: int, column: int) -> Values:
        return images[:, rows.cells[:, row, None], columns.cells[None, :, column]].astype(kind)

    across, down = columns.weights[:, 1, None], rows.weights[:, 1, None, None]
    top, bottom = corner(0, 0), corner(1, 0)
    top += (corner(0, 1) - top) * across
    bottom += (corner(1, 1) - bottom) * across
    return top + (bottom - top) * down


def _weighted(data: Values, taps: Taps, axis: int) -> Values:
    """Sums along one axis over its taps, in float32. What has no weight is not there, whatever it is."""
    shape = [1] * data.ndim
    shape[axis] = -1
    made: Values = np.float32(0)
    for cells, weights in zip(taps.cells.T, taps.weights.T, strict=True):
        weight = weights.reshape(shape)
        term = data.take(cells, axis).astype(np.float32, copy=False) * weight
        made = np.where(weight != 0, term, np.float32(0)) + made
    return made


def _added(images: Values, rows: Taps, columns: Taps) -> Values:
    """Sums over all taps of both axes: down the columns that are looked at, then across."""
    used, places = np.unique(columns.cells, return_inverse=True)
    down = _weighted(images.take(used, 2), rows, 1)
    return _weighted(down, Taps(places.reshape(columns.cells.shape), columns.weights), 2)


def _spread(grads: Values, shape: tuple[int, ...], rows: Taps, columns: Taps, kind: Any) -> Values:
    """The transpose of a sum over taps; its products in a type of their own."""
    made = np.zeros(shape, np.float64)
    for row in range(rows.cells.shape[1]):
        for column in range(columns.cells.shape[1]):
            places: Any = slice(None), rows.cells[:, row, None], columns.cells[None, :, column]
            np.add.at(
                made, places, grads.astype(kind) * rows.weights[:, row, None, None] * columns.weights[:, column, None]
            )
    return made


def _both(run: Run, make: Any, old: tuple[int, ...], new: Any) -> tuple[Taps, Taps]:
    rows, columns = (make(before, after, *_rules(run)) for before, after in zip(old, new, strict=True))
    return rows, columns


@kernel()
def bilinear(run: Run, images: Array, size: Array) -> Array:
    """Each cell from its four neighbours by distance."""
    data = to_numpy(images)
    return moved_to(interpolate(data, *_both(run, linear_taps, data.shape[1:3], integers(size))), images)


@kernel()
def bicubic(run: Run, images: Array, size: Array) -> Array:
    """Each cell from sixteen neighbours by cubic curves."""
    data = to_numpy(images)
    return moved_to(_added(data, *_both(run, _cubic_taps, data.shape[1:3], integers(size))), images)


def _gradient(run: Run, grads: Array, images: Array, make: Any, kind: Any) -> Array:
    data, slopes = to_numpy(images), to_numpy(grads)
    taps = _both(run, make, data.shape[1:3], slopes.shape[1:3])
    return moved_to(_spread(slopes, data.shape, *taps, kind).astype(data.dtype), images)


@kernel()
def bilinear_grad(run: Run, grads: Array, images: Array) -> Array:
    """Gradients shared by the four neighbours."""
    return _gradient(run, grads, images, linear_taps, np.float32)


@kernel()
def bicubic_grad(run: Run, grads: Array, images: Array) -> Array:
    """Gradients shared by the sixteen neighbours."""
    return _gradient(run, grads, images, _cubic_taps, np.float64)


@kernel()
def nearest(run: Run, images: Array, size: Array) -> Array:
    """Each cell from its nearest neighbour."""
    data, sizes = to_numpy(images), integers(size)
    rows, columns = (_nearest_cells(old, new, *_rules(run)) for old, new in zip(data.shape[1:3], sizes, strict=True))
    return moved_to(data[:, rows[:, None], columns], images)


@kernel(widen=True)
def nearest_grad(run: Run, grads: Array, size: Array) -> Array:
    """Gradients of all cells that looked at one, added up there."""
    data, sizes = to_numpy(grads), integers(size)
    rows, columns = (_nearest_cells(old, new, *_rules(run)) for old, new in zip(sizes, data.shape[1:3], strict=True))
    made = np.zeros((data.shape[0], *sizes, data.shape[3]), data.dtype)
    places: Any = slice(None), rows[:, None], columns
    np.add.at(made, places, data)
    return moved_to(made, grads)


@kernel()
def area(run: Run, images: Array, size: Array) -> Array:
    """Each cell the mean of what it covers."""
    data, sizes, corners = to_numpy(images), integers(size), run.attrs["align_corners"]
    taps = [_area_taps(old, new, corners) for old, new in zip(data.shape[1:3], sizes, strict=True)]
    scales = [_scale(old, new, corners) for old, new in zip(data.shape[1:3], sizes, strict=True)]
    return moved_to(_added(data, *taps) * (_ONE / (scales[0] * scales[1])), images)
