# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for calls of the family. Needs hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import hypothesis.strategies as st
import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Op
from voxgrad.testing.calls import draw_call

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")


class _Drawn:
    """Choices that hypothesis makes, and can shrink."""

    def __init__(self, draw: st.DrawFn):
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, items: Sequence[Item]) -> Item:
        return self._draw(st.sampled_from(items))


@st.composite
def calls(draw: st.DrawFn, /, op: Op, dtype: DType, **options: Any) -> dict[str, Any]:
    """Valid calls of an op; options as for `draw_call`."""
    return draw_call(op, _Drawn(draw), dtype=dtype, **options)


@st.composite
def odd_memory(draw: st.DrawFn, /, array: Array) -> Array:
    """The same values in other memory: cut from a larger array, reversed, Fortran order, big-endian, read-only."""
    form = draw(st.sampled_from(("plain", "cut", "reversed", "fortran", "big-endian", "read-only")))
    return in_memory(array, form)


def in_memory(array: Array, form: str) -> Array:
    """An array with the same values and the named memory form."""
    if form == "cut":
        larger = np.zeros([2 * size + 1 for size in array.shape], array.dtype)
        cut = larger[tuple(slice(1, None, 2) for _ in array.shape)]
        cut[...] = array
        return cut
    if form == "reversed":
        flip = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[flip])[flip]
    if form == "fortran":
        return np.asfortranarray(array)
    if form == "big-endian" and array.dtype.kind in "fiu":
        return array.astype(array.dtype.newbyteorder(">"))
    if form == "read-only":
        fixed = array.copy()
        fixed.flags.writeable = False
        return fixed
    return array
