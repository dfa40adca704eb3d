# SPDX-License-Identifier: Apache-2.0
"""Breaks a valid call in one or two places. What comes out may still be valid: both sides are asked."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Input, Op
from voxgrad.kernels.element_types import numpy_type

from .values import Array

TYPES = [one for one in dtypes.ALL if one.itemsize]


def spoiled(op: Op, call: dict[str, Any], seed: str) -> dict[str, Any]:
    """The call with something changed."""
    pick = random.Random(seed)
    made = dict(call)
    for _ in range(pick.choice((1, 1, 1, 2))):
        if not op.parameters:
            break
        item = pick.choice(op.parameters)
        made[item.name] = _changed(pick, item, made[item.name])
    return made


def _changed(pick: random.Random, item: Input | Attr, value: Any) -> Any:
    if isinstance(item, Attr):
        return _attribute(pick, item, value)
    if isinstance(value, list):
        if not value or pick.random() < 0.2:
            return value[:-1]
        if pick.random() < 0.2:
            return [*value, value[-1]]
        place = pick.randrange(len(value))
        return [_array(pick, item, one) if index == place else one for index, one in enumerate(value)]
    return _array(pick, item, value)


def _attribute(pick: random.Random, attr: Attr, value: Any) -> Any:
    if attr.kind == "type":
        return pick.choice(TYPES)
    if attr.kind == "string" and attr.choices:
        return pick.choice((*attr.choices, "OTHER"))
    if attr.kind == "int" and isinstance(value, int):
        return value + pick.choice((-3, -1, 1, 2, -value))
    if attr.kind == "ints" and value:
        kind = pick.randrange(3)
        place = pick.randrange(len(value))
        if kind == 0:
            return list(value)[:-1]
        if kind == 1:
            return [*value, 1]
        return [one + pick.choice((-2, -1, 1, 3)) if index == place else one for index, one in enumerate(value)]
    if attr.kind == "float" and isinstance(value, float):
        return pick.choice((0.0, -1.0, float("inf"), float("nan"), 1e-30))
    return value


def _array(pick: random.Random, item: Input, array: Array) -> Array:
    kind = pick.randrange(9)
    if kind == 0:
        return array[None]
    if kind == 1 and array.ndim:
        return np.asarray(array[..., 0]) if array.shape[-1] else array
    if kind == 2 and array.ndim:
        axis = pick.randrange(array.ndim)
        return np.take(array, range(max(0, array.shape[axis] - 1)), axis=axis)
    if kind == 3 and array.ndim:
        axis = pick.randrange(array.ndim)
        return np.concatenate([array, np.take(array, range(min(1, array.shape[axis])), axis=axis)], axis=axis)
    if kind == 4 and array.ndim:
        return array[:0]
    if kind in (5, 6) and array.dtype.kind in "iu" and array.size:
        # Sizes stay small: what takes all memory is another test's.
        info = np.iinfo(array.dtype)
        sizes = item.host or "segment" in item.name or ("indices" in item.name and item.many)
        far = [-1, -2, 0, 1, 5, 9] if sizes else [-1, -5, 0, 7, info.min, info.max]
        made = np.array(array)
        made[np.unravel_index(pick.randrange(array.size), array.shape)] = max(info.min, min(info.max, pick.choice(far)))
        return made
    if array.dtype == object:
        return array.reshape(-1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # imaginary parts are lost
        return array.astype(numpy_type(pick.choice(TYPES)))
