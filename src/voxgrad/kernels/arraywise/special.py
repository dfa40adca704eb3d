# SPDX-License-Identifier: Apache-2.0
"""Special functions, by SciPy on the host or by torch on its devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.kernels.arraywise.evaluation import Run, add_kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type, is_torch, moved_to, to_numpy
from voxgrad.loading import LOADING

Values = np.ndarray[Any, np.dtype[np.float64]]

_SCIPY = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "ndtri": "ndtri", "lgamma": "gammaln", "digamma": "digamma",
    "zeta": "zeta", "igamma": "gammainc", "igammac": "gammaincc", "betainc": "betainc",
}  # fmt: skip
_TORCH = {"erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "ndtri": "ndtri", "lgamma": "gammaln", "digamma": "digamma",
          "igamma": "gammainc", "igammac": "gammaincc", "zeta": "zeta"}  # fmt: skip


def _edges_of_zeta(xp: Any, x: Array, q: Array) -> list[tuple[Array, float]]:
    pole = (q <= 0) & (q == xp.floor(q))
    # Of a huge x SciPy's terms overflow; the first of them, q**-x, is 0 long before.
    nothing = (x > 1e3) & (q > 1) & (x * xp.log(xp.where(q > 1, q, xp.ones_like(q))) > 2e3)
    return [(pole & (xp.fmod(x, xp.full_like(x, 2)) != 0), np.nan), (nothing, 0.0), (x == 1, np.inf)]


def _edges_of_igamma(xp: Any, a: Array, x: Array) -> list[tuple[Array, float]]:
    return [(xp.isinf(a) & xp.isinf(x), 0.0), (a <= 0, np.nan), (x == 0, 0.0)]


def _edges_of_igammac(xp: Any, a: Array, x: Array) -> list[tuple[Array, float]]:
    return [(xp.isinf(a) & xp.isinf(x), 0.0), (a <= 0, np.nan)]


def _edges_of_betainc(xp: Any, a: Array, b: Array, x: Array) -> list[tuple[Array, float]]:
    return [((a <= 0) | (b <= 0) | xp.isinf(a) | xp.isinf(b), np.nan)]


_EDGES: dict[str, Callable[..., list[tuple[Array, float]]]] = {
    "lgamma": lambda xp, x: [(x == -np.inf, np.inf)], "digamma": lambda xp, x: [(x == 0, np.nan)],
    "zeta": _edges_of_zeta, "igamma": _edges_of_igamma, "igammac": _edges_of_igammac, "betainc": _edges_of_betainc,
}  # fmt: skip
"""Where TensorFlow's value at a pole or outside the domain differs from SciPy's and torch's."""


def _scipy(run: Run) -> Any:
    try:
        with LOADING:
            import scipy.special
    except ImportError:
        remedy = "Install it: pip install voxgrad[special]."
        run.fail("op", wanted="have SciPy on NumPy arrays", got="no SciPy", code="VG032", remedy=remedy)
    return scipy.special


def _with_edges(run: Run, name: str, inputs: tuple[Array, ...], made: Array) -> Array:
    for where, value in _EDGES[name](run.xp, *inputs) if name in _EDGES else ():
        made = run.xp.where(where, run.xp.full_like(made, value), made)
    return made


def _function(name: str) -> Any:
    def function(run: Run, *inputs: Array) -> Array:
        first = inputs[0]
        if is_torch(first) and name in _TORCH:
            made = getattr(run.xp.special, _TORCH[name])(*inputs)
            return _with_edges(run, name, inputs, made)
        arrays = [to_numpy(one) for one in inputs]
        # SciPy's single precision loses digits in the tails of functions of several numbers.
        wide = [one.astype(np.float64) for one in arrays] if len(arrays) > 1 else arrays
        special = _scipy(run)
        made = _igamma(special, *wide) if name == "igamma" else getattr(special, _SCIPY[name])(*wide)
        return _with_edges(run, name, inputs, moved_to(np.asarray(made, dtype=arrays[0].dtype), first))

    return function


def _igamma(special: Any, a: Values, x: Values) -> Values:
    """By two terms and the series of a + 2 where a and x are small: SciPy takes it off 1 there or has lgamma(a)."""
    with np.errstate(all="ignore"):
        first = np.exp(a * np.log(x) - x - special.gammaln(a + 1))
        added = special.gammainc(a + 2, x) + first * (1 + x / (a + 1))
    small = (x > 0) & (x <= 2) & (a > 0) & (a < np.maximum(x, 1))
    made: Values = np.where(small, added, special.gammainc(a, x))
    return made


for _name in _SCIPY:
    add_kernel(__name__, _name, _function(_name), widen=True)


def _polygamma(run: Run, a: Array, x: Array) -> Array:
    order, at = to_numpy(a).astype(np.float64), to_numpy(x).astype(np.float64)
    whole = (order >= 0) & (order == np.floor(order))
    # A function of even order has different signs on both sides of a pole.
    whole = whole & ((at > 0) | (at != np.floor(at)) | (order % 2 == 1))
    made = np.where(whole, _scipy(run).polygamma(np.where(whole, order, 0).astype(int), at), np.nan)
    return cast(moved_to(made, a), element_type(a))


def _igamma_grad_a(run: Run, a: Array, x: Array) -> Array:
    """The derivative of the series of Igamma, or of the continued fraction of Igammac where x is the larger one."""
    special = _scipy(run)
    order, at = np.broadcast_arrays(*(to_numpy(one).astype(np.float64) for one in (a, x)))
    made = np.where(((at < 0) | (order <= 0) | np.isnan(order + at)) & (at != 0), np.nan, 0.0)
    inside = np.isfinite(order + at) & (order > 0) & (at > 0)
    for chosen, terms in (
        (inside & (at <= np.maximum(1, order)), _series),
        (inside & (at > np.maximum(1, order)), _fraction),
    ):
        if chosen.any():
            made[chosen] = terms(special, order[chosen], at[chosen])
    return cast(moved_to(made, a), element_type(a))


_MOST_TERMS = 20_000
"""More than any argument below 10**6 needs."""


def _series(special: Any, a: Values, x: Values) -> Values:
    """d/da of x**a exp(-x) / gamma(a + 1) * sum over n of x**n / ((a + 1) ... (a + n))."""
    term, slope = np.ones_like(x), np.zeros_like(x)
    total, rate = np.ones_like(x), np.zeros_like(x)
    for n in range(1, _MOST_TERMS):
        ratio = x / (a + n)
        slope = ratio * (slope - term / (a + n))
        term = ratio * term
        total, rate = total + term, rate + slope
        if bool((np.abs(slope) <= 1e-17 * np.abs(rate)).all()):
            break
    size = np.exp(a * np.log(x) - x - special.gammaln(a + 1))
    made: Values = size * (rate + total * (np.log(x) - special.digamma(a + 1)))
    return made


def _fraction(special: Any, a: Values, x: Values) -> Values:
    """-d/da of x**a exp(-x) / gamma(a) * a continued fraction, by its recurrence and that of its derivative."""
    y, z = 1 - a, x + 2 - a
    p, q = (np.ones_like(x), x + 1), (x, z * x)
    dp, dq = (np.zeros_like(x), np.zeros_like(x)), (np.zeros_like(x), -x)
    value, rate = p[1] / q[1], (dp[1] - p[1] / q[1] * dq[1]) / q[1]
    settled = np.zeros(x.shape, bool)
    for n in range(1, _MOST_TERMS):
        y, z = y + 1, z + 2
        p, q, dp, dq = (
            (p[1], p[1] * z - p[0] * y * n),
            (q[1], q[1] * z - q[0] * y * n),
            (dp[1], dp[1] * z - p[1] - dp[0] * y * n + p[0] * n),
            (dq[1], dq[1] * z - q[1] - dq[0] * y * n + q[0] * n),
        )
        # Further terms would only add roundings to what has settled.
        value = np.where(settled, value, p[1] / q[1])
        before, rate = rate, np.where(settled, rate, (dp[1] - value * dq[1]) / q[1])
        settled |= np.abs(rate - before) <= 2.0**-52 * np.abs(rate)
        if bool(settled.all()):
            break
        scale = np.where(np.abs(p[1]) > 2.0**52, 2.0**-52, 1.0)
        p, q, dp, dq = ((one[0] * scale, one[1] * scale) for one in (p, q, dp, dq))
    size = np.exp(a * np.log(x) - x - special.gammaln(a))
    made: Values = -size * (rate + value * (np.log(x) - special.digamma(a)))
    return made


add_kernel(__name__, "polygamma", _polygamma)
add_kernel(__name__, "igamma_grad_a", _igamma_grad_a)
