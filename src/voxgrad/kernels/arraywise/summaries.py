# SPDX-License-Identifier: Apache-2.0
"""Summaries as TensorBoard reads them: the bytes of Summary messages, field by field."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, to_numpy
from voxgrad.kernels.tensor_proto import tensor_bytes
from voxgrad.kernels.wire import BYTES, FIXED32, FIXED64, VARINT, field_of

_VALUE, _TAG, _NUMBER, _HISTOGRAM, _NODE, _TENSOR = 1, 1, 2, 5, 7, 8
"""Fields: of a Summary its values, of a value its tag, number, histogram, node and tensor."""


def _tagged(tag: bytes, rest: bytes) -> bytes:
    """A summary of one value; an empty tag is left out, as of any text."""
    return field_of(_VALUE, (field_of(_TAG, tag) if tag else b"") + rest)


@kernel()
def scalars(run: Run, tags: Array, values: Array) -> bytes:
    """A number per tag."""
    names, numbers = to_numpy(tags).ravel(), to_numpy(values).ravel()
    key = bytes([_NUMBER << 3 | FIXED32])
    with np.errstate(over="ignore"):
        singles = numbers.astype(np.float32).tolist()
    return b"".join(_tagged(name, key + struct.pack("<f", one)) for name, one in zip(names, singles, strict=True))


@cache
def _limits() -> np.ndarray[Any, Any]:
    """The upper ends of buckets: each a tenth wider than the one before, on both sides of 0."""
    made, at = [], 1.0e-12
    while at < 1.0e20:
        made.append(at)
        at *= 1.1
    sides = [*made, np.finfo(np.float64).max]
    return np.array([*(-one for one in reversed(sides)), 0.0, *sides])


@kernel()
def histogram(run: Run, tag: Array, values: Array) -> bytes:
    """How many numbers lie in each bucket; runs of empty ones are one."""
    data = to_numpy(values).astype(np.float64).ravel()
    if not np.isfinite(data).all():
        run.fail("values", wanted="be finite", got="NaN or an infinity", code="VG044")
    limits = _limits()
    counts = np.bincount(np.searchsorted(limits, data, side="right"), minlength=len(limits))
    ends, kept = list[float](), list[int]()
    for place in range(len(limits)):
        if counts[place] == 0 and kept and kept[-1] == 0:
            ends[-1] = limits[place]
        else:
            ends.append(limits[place])
            kept.append(counts[place])
    facts = (data.min(), data.max(), data.size, np.cumsum(data)[-1], np.cumsum(data * data)[-1]) if data.size else (
        limits[-1], -limits[-1], 0, 0.0, 0.0)  # fmt: skip
    made = b"".join(bytes([number << 3 | FIXED64]) + struct.pack("<d", fact)
                    for number, fact in enumerate(facts, 1) if fact)  # fmt: skip
    made += field_of(6, np.array(ends, "<f8").tobytes()) + field_of(7, np.array(kept, "<f8").tobytes())
    return _tagged(to_numpy(tag).item(), field_of(_HISTOGRAM, made))


@kernel()
def tensor(run: Run, value: Array) -> bytes:
    """A whole tensor."""
    made = tensor_bytes(to_numpy(value), element_type(value), listed=False)
    name = (run.context.block or run.op.name).encode()
    return field_of(_VALUE, field_of(_NODE, name) + field_of(_TENSOR, made))


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 70:
        byte = data[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at
    raise ValueError("a number without end")


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content and all bytes of each field."""
    at = 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        size = {FIXED64: 8, FIXED32: 4}.get(key & 7)
        if key & 7 == BYTES:
            size, at = _read_varint(data, at)
        elif key & 7 == VARINT:
            _, end = _read_varint(data, at)
            size = end - at
        if size is None or key >> 3 == 0 or at + size > len(data):
            raise ValueError("a field of no known kind, or one that is cut off")
        yield key >> 3, data[at : at + size], data[start : at + size]
        at += size


@kernel()
def merged(run: Run, inputs: list[Array]) -> bytes:
    """All values of several summaries."""
    made, seen = list[bytes](), set[bytes]()
    for contents in inputs:
        for one in to_numpy(contents).ravel():
            try:
                for number, value, whole in _fields(one):
                    tag = b"".join(content for field, content, _ in _fields(value) if field == _TAG)
                    if number == _VALUE and tag and tag in seen:
                        run.fail("inputs", wanted="have each tag once", got=tag.decode(errors="replace")[:80])
                    seen.add(tag)
                    made.append(whole)
            except (ValueError, IndexError) as error:
                if "VG043" in str(error):
                    raise
                run.fail("inputs", wanted="be the bytes of summaries", got=str(error))
    return b"".join(made)
