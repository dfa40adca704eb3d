# SPDX-License-Identifier: Apache-2.0
"""Values that people type on pins, as arrays: numbers, nested lists and text take the type that the op asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op, Spec
from voxgrad.catalog.shapes import FOLDED
from voxgrad.errors import Faults
from voxgrad.graph.block import Value
from voxgrad.kernels.element_types import dtype_of, numpy_type

Array = np.ndarray[Any, Any]

_DEFAULTS = {"b": dtypes.BOOL, "i": dtypes.INT32, "u": dtypes.INT32, "f": dtypes.FLOAT32, "c": dtypes.COMPLEX64}


def to_array(value: Any, dtype: DType | None) -> Array:
    """A NumPy array of what was given; Python numbers without a stated type become int32, float32 or bool.

    Raises ValueError, TypeError or OverflowError for what is no rectangular array of one type.
    """
    if isinstance(value, np.ndarray) and value.dtype.isnative and (dtype is None or numpy_type(dtype) == value.dtype):
        return value
    found: Array = np.asarray(value)
    if found.dtype.kind in "USO" or dtype is dtypes.STRING:
        if dtype not in (None, dtypes.STRING):
            raise TypeError(f"text is no {dtype}")
        return _texts(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return found.astype(found.dtype.newbyteorder("="), copy=False) if dtype is None else _converted(found, dtype)
    return _converted(found, dtype or _default(found))


def _default(found: Array) -> DType:
    if found.size == 0:
        return dtypes.FLOAT32
    default = _DEFAULTS.get(found.dtype.kind)
    if default is None:
        raise TypeError(f"no element type for {found.dtype}")
    fits = found.dtype.kind not in "iu" or (found.min() >= -(2**31) and found.max() < 2**31)
    return default if fits else dtypes.INT64


def _converted(found: Array, dtype: DType) -> Array:
    wanted = numpy_type(dtype)
    if found.size and found.dtype.kind in "iuf" and wanted.kind in "iu":
        low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
        if found.dtype.kind == "f" and not np.all(found == np.floor(found)):
            raise ValueError(f"a fraction is no {dtype}")
        if found.min() < low or found.max() > high:
            raise OverflowError(f"{dtype} holds {low} to {high}")
    if found.dtype.kind == "c" and wanted.kind != "c":
        raise TypeError(f"a complex number is no {dtype}")
    with np.errstate(over="ignore"):
        return found.astype(wanted)


def _texts(value: Any) -> Array:
    """Text is an array of bytes objects."""
    found = np.asarray(value, dtype=object)
    flat = [one.encode() if isinstance(one, str) else one for one in found.ravel()]
    if not all(isinstance(one, bytes) for one in flat):
        raise TypeError("text and other things do not mix")
    made = np.empty(found.shape, dtype=object)
    made.ravel()[:] = flat
    return made


def literal(op: Op, item: Input, value: Value, bound: DType | None, faults: Faults) -> Array | None:
    """The array of a typed value: of the stated type, else of the type that the pin or its neighbours have."""
    stated = dtypes.named(value.dtype) if value.dtype else None
    if value.dtype and stated is None:
        faults.add("VG011", item.name, wanted="state an element type", got=repr(value.dtype))
        return None
    dtype = stated or (item.type if isinstance(item.type, DType) else bound)
    try:
        return to_array(value.value, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        wanted = f"be numbers of type {dtype}" if dtype is not None else "be numbers or text"
        faults.add("VG002", item.name, wanted=wanted, got=f"{str(value.value)[:60]!r}: {str(error).splitlines()[0]}")
        return None


def spec_of(array: Any) -> Spec:
    """What is known of an array."""
    dtype = dtype_of(array.dtype) or dtypes.STRING
    folded = dtype.kind in ("int", "uint") and array.size <= FOLDED
    return Spec(dtype, tuple(array.shape), tuple(array.ravel().tolist()) if folded else None)
