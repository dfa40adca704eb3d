# SPDX-License-Identifier: Apache-2.0
"""Where values enter a page, and how they pass through it unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import STRING
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, is_numpy, to_numpy


def text_array(values: Any) -> np.ndarray[Any, Any]:
    """An array of `bytes` objects from texts, nested lists of them, or an array."""
    loose = values if is_numpy(values) else np.array(values, dtype=object)
    made = np.empty(loose.shape, dtype=object)
    for index in np.ndindex(loose.shape):
        one = loose[index]
        made[index] = one if isinstance(one, bytes) else str(one).encode()
    return made


@kernel()
def const(run: Run) -> Array:
    """The constant, as an array where the session keeps its arrays."""
    value, dtype = run.attrs["value"], run.attrs["dtype"]
    if dtype is STRING:
        return text_array(value)
    if hasattr(value, "dtype") and not is_numpy(value):
        return cast(value, dtype)
    return run.make(to_numpy(value), dtype)


@kernel()
def placeholder(run: Run) -> Array:
    """A placeholder that is evaluated was not fed."""
    run.fail(run.context.block or "output", wanted="be fed a value", got="none", code="VG001",
             remedy="Give it in feeds.")  # fmt: skip


@kernel()
def identity(run: Run, value: Any) -> Any:
    """The input itself."""
    return value


@kernel()
def identities(run: Run, values: list[Any]) -> Any:
    """The inputs themselves."""
    return tuple(values)


@kernel()
def no_op(run: Run) -> tuple[()]:
    """Nothing."""
    return ()
