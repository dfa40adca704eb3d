# SPDX-License-Identifier: Apache-2.0
"""Values as colours, and numbers as people read them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from voxgrad.formats.picture.marks import Pixels
from voxgrad.graph.values import Array

Range = tuple[float, float]

_VIRIDIS = np.array([
    [68, 1, 84], [72, 26, 108], [71, 47, 125], [65, 68, 135], [57, 86, 140], [49, 104, 142], [42, 120, 142],
    [35, 136, 142], [31, 152, 139], [34, 168, 132], [53, 183, 121], [84, 197, 104], [122, 209, 81], [165, 219, 54],
    [210, 226, 27], [253, 231, 37],
], dtype=np.float64)  # fmt: skip
_NOT_A_NUMBER = (255, 0, 200)
_FORMAT = re.compile(r"%[-+ #0]{0,4}[0-9]{0,2}(?:\.[0-9]{1,2})?(?:l{0,2})([diufFeEgGxXs])")
MOST_SHOWN = 512
"""Rows and columns of a picture that are drawn; of more, every second or every third."""


def ends(values: Array, low: float | None, high: float | None) -> Range:
    """The range of a scale: as given, else that of the finite values."""
    finite = values[np.isfinite(values)] if values.size else values
    least, greatest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    first, last = least if low is None else low, greatest if high is None else high
    return (first, last) if first < last else (first, first + (abs(first) or 1.0))


def viridis(values: Array, range_: Range) -> Pixels:
    """Colours of values; those that are no numbers stand out."""
    place = np.clip((values - range_[0]) / (range_[1] - range_[0]), 0, 1)
    at = np.nan_to_num(place) * (len(_VIRIDIS) - 1)
    below = np.minimum(at.astype(int), len(_VIRIDIS) - 2)
    part = (at - below)[..., None]
    colours: Pixels = np.round(_VIRIDIS[below] * (1 - part) + _VIRIDIS[below + 1] * part).astype(np.uint8)
    colours[np.isnan(values)] = _NOT_A_NUMBER
    return colours


def coarse(values: Array, most: int = MOST_SHOWN) -> Array:
    """No more than so many values along each of the first axes."""
    steps = tuple(slice(None, None, math.ceil(size / most)) for size in values.shape[:3] if size)
    return values[steps]


def plane(value: Array, rows: int = 0) -> Array | None:
    """Rows and columns of numbers: a list folded, or the first plane where there are more axes."""
    numbers = as_numbers(value)
    if numbers is None or numbers.size == 0:
        return None
    if rows:
        return numbers.reshape(rows, -1) if numbers.size % rows == 0 else None
    if numbers.ndim < 2:
        return numbers.reshape(1, -1)
    if numbers.ndim > 3:
        numbers = numbers.reshape(-1, *numbers.shape[-3:])[0]
    # Channels come last where there are few of them, else the first axis counts images.
    return numbers if numbers.ndim == 2 else numbers[..., 0] if numbers.shape[-1] <= 4 else numbers[0]


def volume_of(value: Array) -> Array | None:
    """Depth, height and width of a tensor: the first of a batch, the first channel."""
    numbers = as_numbers(value)
    if numbers is None or numbers.size == 0 or not 3 <= numbers.ndim <= 5:
        return None
    if numbers.ndim == 5:
        return numbers[0, ..., 0]
    return numbers if numbers.ndim == 3 else numbers[..., 0] if numbers.shape[-1] <= 4 else numbers[0]


def as_numbers(value: Array) -> Array | None:
    """float64 of any type that has a size; None for texts."""
    if value.dtype == object or value.dtype.kind in "SU":
        return None
    return np.asarray(np.abs(value) if value.dtype.kind == "c" else value).astype(np.float64)


def written(value: Any, format_: str) -> str:
    """An element as a format of C says; as it is where the format does not fit."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value:.6g}"
    found = _FORMAT.search(format_)
    if found is None:
        return short(float(value))
    number: Any = value if found[1] == "s" else float(value)
    if found[1] in "diuxX":
        if not math.isfinite(number):
            return short(number)
        number = int(number)
    plain = found[0].replace("l", "").replace("u", "d")
    return f"{format_[: found.start()]}{plain % number}{format_[found.end() :]}"


def short(number: float) -> str:
    """A number in few letters."""
    return f"{number:.4g}"
