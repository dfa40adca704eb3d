# SPDX-License-Identifier: Apache-2.0
"""Arrays that are not computed yet: a call on them is planned, not run, by the room that knows how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voxgrad.arrays.kinds import is_instance
from voxgrad.catalog.model import Op
from voxgrad.doors import through

_PLANNERS = {("dask.array", "Array"): "lazy"}
"""Classes of lazy arrays, and the door to the module whose `execute` plans calls on them."""


def planner(arguments: Mapping[str, Any]) -> Callable[[Op, Mapping[str, Any]], Any] | None:
    """What handles a call with these arguments, or None where all of them hold values."""
    for value in arguments.values():
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        for (module, name), door in _PLANNERS.items():
            if is_instance(first, module, name):
                execute: Callable[[Op, Mapping[str, Any]], Any] = through(door).execute
                return execute
    return None
