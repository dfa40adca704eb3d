# SPDX-License-Identifier: Apache-2.0
"""Values that people type on pins and give to pages, as arrays that the page owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import Any

import numpy as np

from voxgrad.arrays.intake import read
from voxgrad.arrays.intake import spec_of as spec_of
from voxgrad.arrays.kinds import CUPY, NUMPY, TORCH, Unfit, is_masked, kind_of
from voxgrad.arrays.limits import check_size
from voxgrad.arrays.literals import MAX_NESTING, native, too_deep
from voxgrad.arrays.literals import to_array as to_array
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Op, Spec
from voxgrad.errors import Faults, VoxgradError
from voxgrad.graph.block import Value

Array = np.ndarray[Any, Any]


def kept(value: Any, depth: int = 0) -> Any:
    """A value as a page keeps it: arrays as read-only copies, lists copied, so that the caller's may change.

    A read-only array that nobody else can write is kept as it is: what a file's reader or another page hands over.
    """
    kind = kind_of(value)
    if kind in (NUMPY, TORCH, CUPY) and not isinstance(value, np.generic):
        array = value if kind is NUMPY else _host(value)
        if type(array) is not np.ndarray or _writable(array):
            faults = Faults("Page")
            check_size("Page", array.nbytes, faults, argument="value")  # a view that repeats may stand for any size
            faults.raise_if_any()
            array = np.array(array, copy=True, subok=is_masked(array))
            array.flags.writeable = False
        return array
    if type(value) in (list, tuple) and value:
        if depth == MAX_NESTING:
            raise _error(too_deep())
        return type(value)([kept(one, depth + 1) for one in value])
    return value


def _host(value: Any) -> Array:
    """A tensor in the memory of the host, or an error that says why it cannot be taken."""
    try:
        return to_array(value)
    except Unfit as error:
        raise _error(error) from None


def _error(why: Unfit) -> VoxgradError:
    faults = Faults("Page")
    why.tell(faults, "value")
    return faults.error()


def _writable(array: Any) -> bool:
    """Whether somebody could write to the memory of an array, through it or through what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None and not isinstance(array, (bytes, mmap))


def read_pins(op: Op, sources: Mapping[str, Sequence[Value | Spec]], faults: Faults) -> dict[str, list[Any]]:
    """The typed values of pins as arrays, beside wires, which a Spec stands for; None for what is unfit, and noted."""
    given = {
        name: [one if isinstance(one, Spec) else _stated(one, name, faults) for one in some]
        for name, some in sources.items()
    }
    return {name: [native(one) for one in some] for name, some in read(op, given, faults).items()}


def _stated(value: Value, name: str, faults: Faults) -> Any:
    """A value in the type that is stated beside it, or as it is where none is."""
    if not value.dtype:
        return value.value
    stated = dtypes.named(value.dtype)
    if stated is None:
        faults.add("VG011", name, wanted="state an element type", got=repr(value.dtype))
        return Spec()
    try:
        return to_array(value.value, stated, name)
    except Unfit as error:
        error.tell(faults, name)
        return Spec(stated)
