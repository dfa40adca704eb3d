# SPDX-License-Identifier: Apache-2.0
"""Branches."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog.dtypes import INT32
from voxgrad.errors import CancelledError, Fault
from voxgrad.kernels.arraywise.context import DEAD, Ref
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integer, to_numpy


@kernel()
def switch(run: Run, data: Any, pred: Array) -> Any:
    """The value on one side, dead on the other."""
    return (DEAD, data) if bool(to_numpy(pred)) else (data, DEAD)


@kernel(dead=True)
def merge(run: Run, inputs: list[Any]) -> Any:
    """The first live input and its number."""
    for index, value in enumerate(inputs):
        if value is not DEAD:
            return value, run.make(index, INT32)
    return DEAD, DEAD


@kernel()
def select_variable(run: Run, index: Array, inputs: list[Ref]) -> Ref:
    """One of several variables."""
    chosen = integer(index)
    if not 0 <= chosen < len(inputs):
        run.fail("index", wanted=f"be in [0, {len(inputs)})", got=chosen)
    return inputs[chosen]


@kernel()
def abort(run: Run) -> None:
    """End the run."""
    message = run.attrs["error_msg"] or "the page asked to stop"
    raise CancelledError(Fault("VG040", "Abort", run.context.block or "run", "not be reached", message))
