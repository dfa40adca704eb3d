# SPDX-License-Identifier: Apache-2.0
"""Random numbers and texts of every element type, with the edges of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import DType
from voxgrad.kernels.element_types import numpy_type

Array = np.ndarray[Any, Any]

STYLES = ("normal", "normal", "integers", "ties", "wide", "special")

TEXTS = (
    b"", b"a", b"ab", b"-", b"0", b"12", b"-7", b"3.5", b"1e3", b"nan", b"-inf", b" 4 ", b"0x1f", b"1_0", b"+5",
    b"99999999999", b"a,b,c", b"1,2.5,x", b"\"q,r\",2", b"YWJj", b"YWI=", b"YQ", b"\xc3\xa9t\xc3\xa9", b"\xe2\x82\xac1",
    b"\xf0\x9f\x98\x80!", b"\xff\xfe", b"a\x00b", b"\n", b"long text of more than twenty bytes",
)  # fmt: skip


def _floats(rng: np.random.Generator, shape: tuple[int, ...], kind: np.dtype[Any], style: str) -> Array:
    if style == "integers":
        return rng.integers(-4, 5, shape).astype(kind)
    if style == "ties":
        return (rng.integers(-1, 2, shape) * 0.5).astype(kind)
    if style == "unit":
        return rng.uniform(0.05, 0.95, shape).astype(kind)
    if style == "positive":
        return rng.uniform(0.3, 3, shape).astype(kind)
    made = np.asarray(rng.standard_normal(shape))
    if style == "wide":
        made = made * 10.0 ** rng.integers(-4, 4, shape)
    if style == "special":
        import ml_dtypes

        info = ml_dtypes.finfo(kind)
        tiny, small, big = float(info.smallest_subnormal), float(info.tiny), float(info.max)
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, tiny, -tiny, small, big, -big, 1.0, -1.0, 0.5, 2.5, -3.5])
        made = np.where(rng.random(shape) < 0.5, odd[rng.integers(0, len(odd), shape)], made)
    with np.errstate(over="ignore"):
        return np.asarray(made).astype(kind)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], kind: np.dtype[Any], style: str) -> Array:
    info = np.iinfo(kind)
    if style in ("unit", "positive", "ties"):
        return rng.integers(1, 5, shape).astype(kind)
    if style == "wide":
        return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    low = max(info.min, -7)
    made = rng.integers(low, 8, shape).astype(kind)
    if style == "special":
        odd = np.array([info.min, info.max, info.max - 1, info.min + 1, 0, 1], kind)
        made = np.where(rng.random(shape) < 0.5, odd[rng.integers(0, len(odd), shape)], made)
    return np.asarray(made).astype(kind)


def text_array(texts: list[bytes], shape: tuple[int, ...]) -> Array:
    """Texts as an array of objects."""
    made = np.empty(len(texts), dtype=object)
    made[:] = texts
    return made.reshape(shape)


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, style: str) -> Array:
    """An array of random elements of a type."""
    if dtype.kind == "string":
        count = int(np.prod(shape))
        return text_array([TEXTS[i] for i in rng.integers(0, len(TEXTS), count)], shape)
    kind = np.dtype(numpy_type(dtype))
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "complex":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        both = (_floats(rng, shape, part, style), _floats(rng, shape, part, style))
        made = np.empty(shape, kind)
        made.real, made.imag = both
        return made
    return (_floats if dtype.kind == "float" else _integers)(rng, shape, kind, style)
