# SPDX-License-Identifier: Apache-2.0
"""Special functions, by SciPy on the host or by torch on its devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, add_kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type, is_torch, moved_to, to_numpy

_SCIPY = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "ndtri": "ndtri", "lgamma": "gammaln", "digamma": "digamma",
    "zeta": "zeta", "igamma": "gammainc", "igammac": "gammaincc", "betainc": "betainc",
}  # fmt: skip
_TORCH = {"erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "ndtri": "ndtri", "lgamma": "gammaln", "digamma": "digamma",
          "igamma": "gammainc", "igammac": "gammaincc", "zeta": "zeta"}  # fmt: skip


_POINTS = {"lgamma": (-np.inf, np.inf), "digamma": (0, np.nan)}
"""Where TensorFlow's value at a pole differs from SciPy's and torch's."""


def _scipy(run: Run) -> Any:
    try:
        import scipy.special
    except ImportError:
        remedy = "Install it: pip install voxgrad[special]."
        run.fail("op", wanted="have SciPy on NumPy arrays", got="no SciPy", code="VG032", remedy=remedy)
    return scipy.special


def _with_point(run: Run, name: str, x: Array, made: Array) -> Array:
    if name not in _POINTS:
        return made
    at, value = _POINTS[name]
    return run.xp.where(x == at, run.xp.full_like(made, value), made)


def _function(name: str) -> Any:
    def function(run: Run, *inputs: Array) -> Array:
        first = inputs[0]
        if is_torch(first) and name in _TORCH:
            made = getattr(run.xp.special, _TORCH[name])(*inputs)
            return _with_point(run, name, first, made)
        arrays = [to_numpy(one) for one in inputs]
        made = getattr(_scipy(run), _SCIPY[name])(*arrays)
        return _with_point(run, name, first, moved_to(np.asarray(made, dtype=arrays[0].dtype), first))

    return function


for _name in _SCIPY:
    add_kernel(__name__, _name, _function(_name), widen=True)


def _polygamma(run: Run, a: Array, x: Array) -> Array:
    order, at = to_numpy(a).astype(np.float64), to_numpy(x).astype(np.float64)
    whole = (order >= 0) & (order == np.floor(order))
    made = np.where(whole, _scipy(run).polygamma(np.where(whole, order, 0).astype(int), at), np.nan)
    return cast(moved_to(made, a), element_type(a))


def _igamma_grad_a(run: Run, a: Array, x: Array) -> Array:
    """A central difference of eighth order: SciPy has no derivative with respect to a."""
    special, at = _scipy(run), to_numpy(x).astype(np.float64)
    base = to_numpy(a).astype(np.float64)
    step = 2e-2 * base
    made = (
        sum(
            weight * (special.gammainc(base + k * step, at) - special.gammainc(base - k * step, at))
            for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), 1)
        )
        / step
    )
    return cast(moved_to(np.asarray(made), a), element_type(a))


add_kernel(__name__, "polygamma", _polygamma)
add_kernel(__name__, "igamma_grad_a", _igamma_grad_a)
