# SPDX-License-Identifier: Apache-2.0
"""Checks and messages of a page while it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.errors import visible
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, to_numpy


def shown(array: Any, count: int) -> str:
    """The first elements of a tensor, in brackets."""
    flat = to_numpy(array).ravel()
    kept = flat if count < 0 else flat[:count]
    words = [_word(one) for one in kept.tolist()]
    return f"[{' '.join(words)}{'...' if len(flat) > len(kept) else ''}]"


def _word(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, float) else str(value)


@kernel(name="print")
def print_(run: Run, value: Any, data: list[Any]) -> Any:
    """The value itself, after a line with the others."""
    state, name, limit = run.context.state, run.context.block, run.attrs["first_n"]
    printed = state.counters.get(name, 0)
    if limit < 0 or printed < limit:
        state.counters[name] = printed + 1
        line = run.attrs["message"] + "".join(shown(one, run.attrs["summarize"]) for one in data)
        run.context.log(visible(line))
    return value


@kernel()
def assert_(run: Run, condition: Array, data: list[Any]) -> tuple[()]:
    """Nothing, or an error that shows the data."""
    if not bool(to_numpy(condition)):
        found = " ".join(shown(one, run.attrs["summarize"]) for one in data)
        run.fail("condition", wanted="be true", got=f"False, with {found}", code="VG044")
    return ()


@kernel()
def check_numerics(run: Run, x: Array) -> Array:
    """The tensor, or an error where it holds NaN or an infinity."""
    values = to_numpy(x)
    bad = [name for name, found in (("Inf", np.isinf(values)), ("NaN", np.isnan(values))) if found.any()]
    if bad:
        run.fail("tensor", wanted="be finite", got=f"{' and '.join(bad)}. {run.attrs['message']}", code="VG044")
    return x
