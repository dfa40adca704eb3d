# SPDX-License-Identifier: Apache-2.0
"""Values that people type on pins and give to pages, as arrays that the page owns."""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np

from voxgrad.arrays import literals
from voxgrad.arrays.kinds import is_masked, kind_of
from voxgrad.arrays.limits import check_size
from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Input, Op, Spec
from voxgrad.catalog.shapes import FOLDED
from voxgrad.errors import Fault, Faults, InvalidTypeError
from voxgrad.graph.block import Value
from voxgrad.kernels.arraywise.namespace import is_torch, to_numpy
from voxgrad.kernels.element_types import dtype_of

Array = np.ndarray[Any, Any]


def to_array(value: Any, dtype: DType | None) -> Array:
    """A NumPy array of what was given to a page or a session; tensors come to the host. Raises Unfit, a ValueError."""
    return literals.to_array(to_numpy(value) if is_torch(value) else value, dtype)


MAX_NESTING = 64
"""Lists in lists; deeper ones are a mistake, or a list that holds itself."""


def kept(value: Any, depth: int = 0) -> Any:
    """A value as a page keeps it: arrays as read-only copies, lists copied, so that the caller's may change.

    A read-only array that nobody else can write is kept as it is: what a file's reader or another page hands over.
    """
    if isinstance(value, np.ndarray) or is_torch(value):
        array = value if isinstance(value, np.ndarray) else to_numpy(value)
        if type(array) is not np.ndarray or _writable(array):
            faults = Faults("Page")
            check_size("Page", array.nbytes, faults, argument="value")  # a view that repeats may stand for any size
            faults.raise_if_any()
            array = np.array(array, copy=True, subok=is_masked(array))
            array.flags.writeable = False
        return array
    if type(value) in (list, tuple) and value:
        if depth == MAX_NESTING:
            got = f"a list in itself, or more than {MAX_NESTING} deep"
            raise InvalidTypeError(Fault("VG002", "Page", "value", "be nested lists of equal lengths", got))
        return type(value)([kept(one, depth + 1) for one in value])
    return value


def _writable(array: Any) -> bool:
    """Whether somebody could write to the memory of an array, through it or through what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None and not isinstance(array, (bytes, mmap))


def literal(op: Op, item: Input, value: Value, bound: dict[str, DType], faults: Faults) -> Array | None:
    """The array of a typed value: of the stated type, else of the type that the pin or its neighbours have."""
    if value.dtype and (stated := dtypes.named(value.dtype)) is None:
        faults.add("VG011", item.name, wanted="state an element type", got=repr(value.dtype))
        return None
    try:
        array = to_array(value.value, stated) if value.dtype else _typed(value.value)
    except literals.Unfit as error:
        error.tell(faults, item.name)
        return None
    return literals.written(op, item, value.value, bound, faults) if array is None else array


def _typed(value: Any) -> Array | None:
    """An array as it is; None for what has no type of its own."""
    return to_array(value, None) if kind_of(value) is not None and not isinstance(value, np.generic) else None


def type_of(value: Value) -> DType | None:
    """The type that a typed value has whatever stands beside it: a stated one, or that of an array."""
    if value.dtype:
        return dtypes.named(value.dtype)
    array = value.value
    if kind_of(array) is None or isinstance(array, np.generic):
        return None
    if not isinstance(array, np.ndarray) or array.dtype.kind in "SU":
        return literals.type_of(array)
    is_text = array.dtype == object and isinstance(next(array.flat, None), (str, bytes))
    return dtypes.STRING if is_text else dtype_of(array.dtype)


def spec_of(array: Any) -> Spec:
    """What is known of an array."""
    dtype = dtype_of(array.dtype) or dtypes.STRING
    folded = dtype.kind in ("int", "uint") and array.size <= FOLDED
    return Spec(dtype, tuple(array.shape), tuple(array.ravel().tolist()) if folded else None)
