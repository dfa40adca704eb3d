# SPDX-License-Identifier: Apache-2.0
"""How exact a result can be: what the last place of the inputs does to it, and fifty digits of special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.catalogue.tolerance import allowed, distance
from voxgrad.catalog.registry import OPS

from . import ours as here
from .values import Array

Job = dict[str, Any]


def sensitive(job: Job, index: int, ours: Array, theirs: Array) -> bool:
    """Whether two results are no further apart than inputs are that differ in their last place.

    Where 1 - y * y is small, the last place of y is many places of the result. A result that says nothing at all, as
    the sine of a huge number, is not excused.
    """
    if ours.dtype.kind not in "fc" or ours.dtype.itemsize < 4:
        return False
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        middle, other = ours.astype(wide), theirs.astype(wide)
        moved = np.abs(np.spacing(np.abs(ours))).astype(np.float64)
        for call in _moved(job["call"]):
            made = here.answer({**job, "call": call})
            if "error" in made:
                return False
            moved = moved + np.abs(np.asarray(_flat(made["outputs"])[index]).astype(wide) - middle)
        most = 2.0**-8 * np.maximum(1, np.abs(middle))
        near = np.abs(middle - other) <= allowed(job["op"]) * np.minimum(moved, most)
    return bool((near | (middle == other) | (np.isnan(middle) & np.isnan(other))).all())


def _flat(entries: list[Any]) -> list[Any]:
    return [one for entry in entries for one in (entry if isinstance(entry, (list, tuple)) else [entry])]


def _moved(call: Job) -> list[Job]:
    """The call with each of its floats, by turns, in all its cells one place further from 0."""
    made = []
    for name, value in call.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            parts = (1, 1j) if value.dtype.kind == "c" else (1,)
            made += [{**call, name: _further(value, part)} for part in parts]
    return made


def _further(value: Array, part: complex) -> Array:
    if value.dtype.kind != "c":
        return np.asarray(value + np.copysign(np.spacing(np.abs(value)), value)).astype(value.dtype)
    step = np.spacing(np.abs(value.real if part == 1 else value.imag))
    return np.asarray(value + part * step).astype(value.dtype)


def _truths() -> dict[str, Callable[..., Any]]:
    import mpmath

    return {
        "Betainc": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        "Igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        "Igammac": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        "Polygamma": lambda n, x: mpmath.psi(int(n), x),
        "Digamma": mpmath.digamma, "Lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "Zeta": mpmath.zeta,
        "Erf": mpmath.erf, "Erfc": mpmath.erfc, "Erfinv": mpmath.erfinv,
    }  # fmt: skip


def nearer(job: Job, ours: Array, theirs: Array) -> bool:
    """Whether every cell of ours that differs is nearer to the truth, by fifty digits, than TensorFlow's."""
    if OPS[job["op"]].kernel.partition(".")[0] != "special" or ours.dtype.kind != "f":
        return False
    import mpmath

    truth = _truths().get(job["op"])
    inputs = np.broadcast_arrays(*(job["call"][item.name] for item in OPS[job["op"]].inputs))
    for place in np.ndindex(ours.shape):
        pair = ours[place], theirs[place]
        if distance(np.asarray(pair[0]), np.asarray(pair[1]), job["op"]) <= allowed(job["op"]):
            continue
        if truth is None or not np.isfinite(pair).all():
            return False
        with mpmath.workdps(50):
            try:
                exact = truth(*(mpmath.mpf(float(one[place])) for one in inputs))
            except (ValueError, ZeroDivisionError, mpmath.NoConvergence):
                return False
            if not abs(mpmath.mpf(float(pair[0])) - exact) <= abs(mpmath.mpf(float(pair[1])) - exact):
                return False
    return True
