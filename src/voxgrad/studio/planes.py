# SPDX-License-Identifier: Apache-2.0
"""Planes and small likenesses of large tensors: what a picture needs, and not the rest.

A plane across the order of the memory touches every page of a file for a few bytes of each: those beside it, which came
along, are kept.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.studio.tensors import Array, TensorStore

KEPT_BYTES = 192 * 2**20
SLAB = 16
"""Planes that are read together."""
NEAR = 2**22
"""Elements of a tensor of which planes are read as they are."""
MOST_LIKENESS = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """A plane: the axes that go down and to the right, where it lies on the others, and how many cells are one."""

    axes: tuple[int, int]
    at: tuple[int, ...]
    step: int = 1
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None


class Planes:
    """Planes of stored tensors; what was read along with them is kept for the next."""

    def __init__(self, tensors: TensorStore):
        self._tensors = tensors
        self._kept: OrderedDict[object, Array] = OrderedDict()
        self._lock = threading.Lock()

    def plane(self, name: str, asked: Asked) -> Array:
        """A plane, rows first, or a tile of it. With a step, means over squares of so many cells a side."""
        array = self._tensors.open(name)
        _check(asked, array.shape)
        found = self._read(name, array, asked)
        if asked.axes[0] > asked.axes[1]:
            found = found.T
        for axis, part in enumerate((asked.rows, asked.columns)):
            if part is not None:
                found = found[part[0] : part[1]] if axis == 0 else found[:, part[0] : part[1]]
        return reduced(found, (asked.step, asked.step))

    def likeness(self, name: str, axes: Sequence[int], at: Sequence[int], most: int) -> Array:
        """A box over some axes with at most so many cells a side, each the mean of a brick of ceil(size / most)."""
        array = self._tensors.open(name)
        held = _held(array.shape, axes, at)
        if list(axes) != sorted(set(axes)) or not 1 <= most <= MOST_LIKENESS:
            raise _bad("axes", f"go up, and most from 1 to {MOST_LIKENESS}", f"{list(axes)}, {most}")
        key = ("likeness", name, tuple(axes), held, most)
        box = array[tuple(slice(None) if axis in axes else place for axis, place in enumerate(held))]
        made = self._known(key)
        if made is None:
            made = reduced(box, [-(-size // most) for size in box.shape])
            self._keep(key, made)
        return made

    def _read(self, name: str, array: Array, asked: Asked) -> Array:
        """The plane with its axes in order: cut out, or from a slab of planes that lie beside each other in memory."""
        beside = _beside(array.shape, asked.axes)
        whole = [slice(None) if axis in asked.axes else place for axis, place in enumerate(asked.at)]
        if beside is None or array.size < NEAR:
            return np.asarray(array[tuple(whole)])
        first = asked.at[beside] // SLAB * SLAB
        key = ("slab", name, asked.axes, (*asked.at[:beside], first, *asked.at[beside + 1 :]))
        slab = self._known(key)
        if slab is None:
            whole[beside] = slice(first, first + SLAB)
            # The planes one behind the other: the next one asked for is read without a stride.
            slab = np.ascontiguousarray(np.moveaxis(array[tuple(whole)], sum(axis < beside for axis in asked.axes), 0))
            self._keep(key, slab)
        return np.asarray(slab[asked.at[beside] - first])

    def _known(self, key: object) -> Array | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def _keep(self, key: object, array: Array) -> None:
        if array.nbytes > KEPT_BYTES:
            return
        with self._lock:
            self._kept[key] = array
            while sum(one.nbytes for one in self._kept.values()) > KEPT_BYTES:
                self._kept.popitem(last=False)


def _beside(shape: Sequence[int], axes: Sequence[int]) -> int | None:
    """The last axis of more than one element, where a plane has one place on it: its planes share pages of memory."""
    last = max((axis for axis, size in enumerate(shape) if size > 1), default=0)
    return None if last in axes else last


def reduced(array: Array, steps: Sequence[int]) -> Array:
    """Means over bricks, those at the end over what there is of them; of labels and truths the first of each brick.

    A brick with a NaN is NaN: nothing that stands out is averaged away.
    """
    if all(step == 1 for step in steps):
        return array
    if array.dtype.kind in "biu":
        return array[tuple(slice(None, None, step) for step in steps)]
    wide = np.float32 if array.dtype.itemsize <= 4 else np.float64
    made = array if array.dtype.kind == "c" else array.astype(wide, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        for axis, step in enumerate(steps):
            made = made if step == 1 else _means(made, axis, step)
    return made


def _means(array: Array, axis: int, step: int) -> Array:
    """Means of so many neighbours along an axis; the last may have fewer."""
    size = array.shape[axis]
    front = (slice(None),) * axis
    sums = array[(*front, slice(0, None, step))].copy()
    for first in range(1, min(step, size)):
        part = array[(*front, slice(first, None, step))]
        sums[(*front, slice(0, part.shape[axis]))] += part
    counts = np.minimum(step, size - np.arange(0, size, step)).astype(array.real.dtype)
    return np.asarray(sums / counts.reshape([-1 if at == axis else 1 for at in range(array.ndim)]), array.dtype)


def _check(asked: Asked, shape: Sequence[int]) -> None:
    held = _held(shape, asked.axes, asked.at)
    if len(set(asked.axes)) != 2 or 0 in shape:
        raise _bad("axes", f"be two axes of [{','.join(map(str, shape))}]", str(list(asked.axes)))
    if not 1 <= asked.step <= math.prod(shape) or held != asked.at:
        raise _bad("at", f"lie in [{','.join(map(str, shape))}]", str(list(asked.at)))
    for part in (asked.rows, asked.columns):
        if part is not None and not 0 <= part[0] < part[1]:
            raise _bad("tile", "begin before it ends", f"{part[0]}:{part[1]}")


def _held(shape: Sequence[int], axes: Sequence[int], at: Sequence[int]) -> tuple[int, ...]:
    """The places on all axes; an error where some are not there."""
    if len(at) != len(shape) or not all(0 <= axis < len(shape) for axis in axes):
        raise _bad("at", f"have {len(shape)} places, and axes below {len(shape)}", f"{list(at)} and {list(axes)}")
    if not all(0 <= place < max(1, size) for place, size in zip(at, shape, strict=True)):
        raise _bad("at", f"lie in [{','.join(map(str, shape))}]", str(list(at)))
    return tuple(at)


def _bad(what: str, wanted: str, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(Fault("VG052", "studio", what, wanted, got))
