# SPDX-License-Identifier: Apache-2.0
"""Element types as NumPy knows them. Text is an array of `bytes` objects."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType

_NUMPY_OF: dict[DType, np.dtype[Any]] = {
    dtypes.HALF: np.dtype(np.float16),
    dtypes.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
} | {
    dtype: np.dtype(dtype.name)
    for dtype in dtypes.ALL
    if dtype.kind in ("float", "int", "uint", "bool", "complex") and dtype not in (dtypes.HALF, dtypes.BFLOAT16)
}
_DTYPE_OF = {numpy_type: dtype for dtype, numpy_type in _NUMPY_OF.items()}
NUMBERS = tuple(_NUMPY_OF)
"""The types that have a NumPy type of their own."""


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of an element type."""
    return _NUMPY_OF.get(dtypes.plain(dtype), np.dtype(object))


def dtype_of(numpy_type: np.dtype[Any]) -> DType | None:
    """The element type of a NumPy type of either byte order, or None."""
    return _DTYPE_OF.get(numpy_type) or _DTYPE_OF.get(numpy_type.newbyteorder("="))
