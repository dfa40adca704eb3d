# SPDX-License-Identifier: Apache-2.0
"""Tensors as a person wants to see them: small ones with their values and indices, large ones as statistics."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from voxgrad.volumes.space import Space

Array = np.ndarray[Any, Any]

SMALL = 128
"""Elements up to which every value is printed."""


def tell_lost(name: str, space: Space) -> None:
    """Say that a result has no place in space, and why, where what it was made of had one."""
    if space.lost:
        print(f"{name}: its voxels have no place: {space.lost}", file=sys.stderr)


def tell_type(name: str, stored: Any, read: Any) -> None:
    """Say that a file is read as another type than it holds."""
    if stored != read:
        print(f"{name}: {stored}, read as {read} (--dtype chooses another type)", file=sys.stderr)


def describe(name: str, value: Any) -> list[str]:
    """The lines for one tensor: name, type, shape, then values or statistics."""
    array = np.asarray(value)
    shape = ",".join(map(str, array.shape))
    head = f"{name}: {_type_name(array)} [{shape}]"
    if array.size == 0:
        return [f"{head}, empty"]
    if array.ndim == 0:
        return [f"{head} = {_element(array.item())}"]
    if array.size <= SMALL:
        return [head, *(f"  {line}" for line in _rows(array))]
    return [head, *(f"  {line}" for line in _statistics(array))]


def _type_name(array: Array) -> str:
    return "string" if array.dtype == object else array.dtype.name


def _rows(array: Array) -> Iterator[str]:
    """One line per innermost row, led by its index; dimensions of size 1 at the end are no rows of their own."""
    inner = max((axis for axis, size in enumerate(array.shape) if size > 1), default=array.ndim - 1)
    tail = "[0]" * (array.ndim - 1 - inner)
    array = array.reshape(array.shape[: inner + 1])
    texts = np.array([_element(item) for item in array.ravel().tolist()], dtype=object).reshape(array.shape)
    width = max(len(text) for text in texts.ravel())
    lead = sum(len(str(size - 1)) + 2 for size in array.shape[:-1]) + 3 + len(tail)
    for index in np.ndindex(array.shape[:-1]):
        label = "".join(f"[{one}]" for one in index) + "[:]" + tail
        yield f"{label:{lead}} " + "  ".join(f"{text:>{width}}" for text in texts[index])


def _statistics(array: Array) -> Iterator[str]:
    if array.dtype == object:
        yield f"{array.size:,} texts, the first is {_element(array.ravel()[0])}"
        return
    if array.dtype == bool:
        yield f"{int(array.sum()):,} of {array.size:,} are true"
        return
    numbers = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        yield (
            f"min {_element(float(finite.min()))}  max {_element(float(finite.max()))}  "
            f"mean {_element(float(finite.mean()))}  std {_element(float(finite.std()))}"
        )
    counts = {
        "NaN": int(np.isnan(numbers).sum()),
        "infinite": int(np.isinf(numbers).sum()),
        "zero": int((numbers == 0).sum()),
    }
    noted = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    yield f"{array.size:,} values" + (f": {noted}" if noted else "")
    first = ", ".join(_element(item) for item in array.ravel()[:6].tolist())
    yield f"first: {first}, ..."


def _element(item: Any) -> str:
    """A number to six significant digits, a text in quotes."""
    if isinstance(item, bytes):
        text = repr(item.decode("utf-8", "backslashreplace"))
        return text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, complex):
        return (
            f"{_element(item.real)}{'+' if item.imag >= 0 or math.isnan(item.imag) else '-'}{_element(abs(item.imag))}j"
        )
    if isinstance(item, float):
        return f"{item:.6g}"
    return str(item)
