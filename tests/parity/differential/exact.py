# SPDX-License-Identifier: Apache-2.0
"""How exact a result can be: what the last place of the inputs does to it, and fifty digits of some functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.catalogue.tolerance import allowed, ulps
from voxgrad.catalog.registry import OPS

from . import ours as here
from .values import Array

Job = dict[str, Any]


PLACES = 4
"""How many last places of its inputs, and of itself, a result may be off: for all ops the same."""


HUGE = 1e4
"""Of larger numbers fifty digits of some functions take for ever."""


def sensitive(job: Job, index: int, ours: Array, theirs: Array) -> Array:
    """The cells in which two results are as close as the condition of the op lets them be.

    Where 1 - y * y is small, the last place of y is many places of the result. A result that says nothing at all, as
    the sine of a huge number, has no condition: both must have reduced it exactly.
    """
    nowhere = np.zeros(ours.shape, bool)
    if ours.dtype.kind not in "fc" or ours.dtype.itemsize < 4:
        return nowhere
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        middle, other = ours.astype(wide), theirs.astype(wide)
        moved = np.abs(np.spacing(np.abs(ours))).astype(np.float64)
        for call in _moved(job["call"], _together(job)):
            made = here.answer({**job, "call": call})
            if "error" in made:
                return nowhere
            moved = moved + np.abs(np.asarray(_flat(made["outputs"])[index]).astype(wide) - middle)
        means = moved < 2.0**-8 * np.maximum(1, np.abs(middle))
        near: Array = means & (np.abs(middle - other) <= PLACES * moved)
    return near


def _flat(entries: list[Any]) -> list[Any]:
    return [one for entry in entries for one in (entry if isinstance(entry, (list, tuple)) else [entry])]


def _together(job: Job) -> int:
    """Of how many cells of a row an op makes one. They are moved one at a time: moved together, errors cancel."""
    if job["op"] in ("LRN", "LRNGrad"):
        return int(next(iter(job["call"].values())).shape[-1])
    return 3 if job["op"] == "Cross" else 1


def _moved(call: Job, cells: int) -> list[Job]:
    """The call with each of its floats, by turns, one place further from 0 in all its cells, or in one of so many."""
    made = []
    for name, value in call.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            parts = (1, 1j) if value.dtype.kind == "c" else (1,)
            for part, turn in itertools.product(parts, range(cells)):
                moves = np.arange(value.size).reshape(value.shape) % cells == turn
                made.append({**call, name: np.where(moves, _further(value, part), value)})
    return made


def _further(value: Array, part: complex) -> Array:
    if value.dtype.kind != "c":
        return np.asarray(value + np.copysign(np.spacing(np.abs(value)), value)).astype(value.dtype)
    step = np.spacing(np.abs(value.real if part == 1 else value.imag))
    return np.asarray(value + part * step).astype(value.dtype)


def _truths() -> dict[str, Callable[..., Any]]:
    import mpmath

    def moved(a: Any, x: Any) -> Any:
        share = mpmath.diff(lambda order: mpmath.gammainc(order, x, mpmath.inf, regularized=True), a)
        return share * mpmath.gamma(a) / (x ** (a - 1) * mpmath.exp(-x))

    return {
        "RandomGammaGrad": moved,
        "Betainc": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        "Igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        "Igammac": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        "Polygamma": lambda n, x: mpmath.psi(int(n), x),
        "Digamma": mpmath.digamma, "Lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "Zeta": mpmath.zeta,
        "Erf": mpmath.erf, "Erfc": mpmath.erfc, "Erfinv": mpmath.erfinv,
        "Sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    }  # fmt: skip


def nearer(job: Job, ours: Array, theirs: Array) -> Array:
    """The cells that differ and in which ours is nearer to the truth, by fifty digits, than TensorFlow's."""
    import mpmath

    made, truth = np.zeros(ours.shape, bool), _truths().get(job["op"])
    if truth is None:
        return made
    inputs = np.broadcast_arrays(*(job["call"][item.name] for item in OPS[job["op"]].inputs))
    for place in map(tuple, np.argwhere(ulps(ours, theirs, job["op"]) > allowed(job["op"]))):
        if not np.isfinite([ours[place], theirs[place]]).all() or any(abs(one[place]) > HUGE for one in inputs):
            continue
        with mpmath.workdps(50):
            try:
                exact = truth(*(_exactly(one[place]) for one in inputs))
            except (ValueError, ZeroDivisionError, mpmath.NoConvergence):
                continue
            made[place] = abs(_exactly(ours[place]) - exact) <= abs(_exactly(theirs[place]) - exact)
    return made


def _exactly(number: Any) -> Any:
    import mpmath

    return mpmath.mpc(complex(number)) if np.iscomplexobj(number) else mpmath.mpf(float(number))
