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
        wide = [one.astype(np.float64) for one in arrays] if len(arrays) > 1 or name in _OWN else arrays
        special = _scipy(run)
        made = _OWN[name](special, *wide) if name in _OWN else getattr(special, _SCIPY[name])(*wide)
        return _with_edges(run, name, inputs, moved_to(np.asarray(made, dtype=arrays[0].dtype), first))

    return function


def _igamma(special: Any, a: Values, x: Values) -> Values:
    """By two terms and the series of a + 2 where a and x are small: SciPy takes it off 1 there or has lgamma(a)."""
    with np.errstate(all="ignore"):
        first = np.exp(a * np.log(x) - x - special.gammaln(a + 1))
        added = special.gammainc(a + 2, x) + first * (1 + x / (a + 1))
    small = (x > 0) & (x <= 2) & (a > 0) & (a < np.maximum(x, 1))
    made: Values = np.where(small, added, special.gammainc(a, x))
    below = (x > 0) & (x <= 0.6 * a) & (a >= 1) & (a < 170)  # beyond which the gamma function is no number
    made[below] = _lower_tail(special, *(np.broadcast_to(one, made.shape)[below] for one in (a, x)))
    return made


def _lower_tail(special: Any, a: Values, x: Values) -> Values:
    """The series of Igamma. SciPy raises e to a sum of logarithms there, whose last place is many of the result."""
    term, total, n = np.ones_like(x), np.ones_like(x), 0
    while bool((term > 1e-17 * total).any()):
        n += 1
        term = term * (x / (a + n))
        total = total + term
    root = x ** (a / 2)  # the whole power may be too large
    made: Values = root * np.exp(-x) / (a * special.gamma(a)) * root * total
    return made


def _digamma(special: Any, x: Values) -> Values:
    """By reflection where x is negative: SciPy loses half the places beside a pole. It has a series around a zero."""
    with np.errstate(all="ignore"):
        reflected = special.digamma(1 - x) - np.pi / np.tan(np.pi * (x - np.round(x)))
    made: Values = np.where((x < 0) & (x != np.round(x)) & (np.abs(x + 0.5) > 0.3), reflected, special.digamma(x))
    return made


_OWN: dict[str, Callable[..., Values]] = {"igamma": _igamma, "digamma": _digamma}
"""Functions that SciPy has, and has not everywhere to the last places."""

for _name in _SCIPY:
    add_kernel(__name__, _name, _function(_name), widen=True)


def _polygamma(run: Run, a: Array, x: Array) -> Array:
    order, at = to_numpy(a).astype(np.float64), to_numpy(x).astype(np.float64)
    whole = (order >= 0) & (order == np.floor(order))
    # A function of even order has different signs on both sides of a pole.
    whole = whole & ((at > 0) | (at != np.floor(at)) | (order % 2 == 1))
    special = _scipy(run)
    made = np.where(whole, special.polygamma(np.where(whole, order, 0).astype(int), at), np.nan)
    made = np.where(whole & (order == 0), _digamma(special, at), made)
    return cast(moved_to(made, a), element_type(a))


def _igamma_grad_a(run: Run, a: Array, x: Array) -> Array:
    return _by_order(run, a, x, lambda special, order, at: np.exp(order * np.log(at) - at - special.gammaln(order)))


def _random_gamma_grad(run: Run, alpha: Array, sample: Array) -> Array:
    """-dP/da / dP/dx: a number stays where P, the share of smaller ones, is what it was."""
    return _by_order(run, alpha, sample, lambda special, order, at: -at)


def _by_order(run: Run, a: Array, x: Array, scale: Callable[[Any, Values, Values], Values]) -> Array:
    """The derivative of the series of Igamma, or of the continued fraction of Igammac where x is the larger one.

    Both without x**a exp(-x) / gamma(a), for which `scale` stands.
    """
    special = _scipy(run)
    order, at = np.broadcast_arrays(*(to_numpy(one).astype(np.float64) for one in (a, x)))
    made = np.where(((at < 0) | (order <= 0) | np.isnan(order + at)) & (at != 0), np.nan, 0.0)
    # Far beyond a nothing is left, and the terms of the fraction overflow.
    inside = np.isfinite(order + at) & (order > 0) & (at > 0) & (at - np.maximum(order, 1e3) < 1e6)
    for chosen, terms in (
        (inside & (at <= np.maximum(1, order)), _series),
        (inside & (at > np.maximum(1, order)), _fraction),
    ):
        if chosen.any():
            found = order[chosen], at[chosen]
            made[chosen] = scale(special, *found) * terms(special, *found)
    return cast(moved_to(made, a), element_type(a))


_MOST_TERMS = 20_000
"""More than any argument below 10**6 needs."""


def _series(special: Any, a: Values, x: Values) -> Values:
    """d/da of x**a exp(-x) / gamma(a + 1) * sum over n of x**n / ((a + 1) ... (a + n)).

    Over x**a exp(-x) / gamma(a).
    """
    term, slope = np.ones_like(x), np.zeros_like(x)
    total, rate = np.ones_like(x), np.zeros_like(x)
    for n in range(1, _MOST_TERMS):
        ratio = x / (a + n)
        slope = ratio * (slope - term / (a + n))
        term = ratio * term
        total, rate = total + term, rate + slope
        if bool((np.abs(slope) <= 1e-17 * np.abs(rate)).all()):
            break
    made: Values = (rate + total * (np.log(x) - special.digamma(a + 1))) / a
    return made


def _fraction(special: Any, a: Values, x: Values) -> Values:
    """-d/da of x**a exp(-x) / gamma(a) * a continued fraction, by its recurrence and that of its derivative.

    Over x**a exp(-x) / gamma(a).
    """
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
    made: Values = -(rate + value * (np.log(x) - special.digamma(a)))
    return made


add_kernel(__name__, "polygamma", _polygamma)
add_kernel(__name__, "igamma_grad_a", _igamma_grad_a)
add_kernel(__name__, "random_gamma_grad", _random_gamma_grad)
