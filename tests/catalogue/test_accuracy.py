# SPDX-License-Identifier: Apache-2.0
"""Special functions against fifty digits: where `tolerance.py` allows TensorFlow many ulps, ours need few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import voxgrad as vg

mpmath = pytest.importorskip("mpmath", reason="it comes with torch, in the parity lane")
pytestmark = pytest.mark.parity
CHANCE = np.random.default_rng(1)
BETWEEN = np.concatenate([CHANCE.uniform(-1, 1, 80), 1 - 10.0 ** -CHANCE.uniform(0, 6, 40)])
FAR = np.concatenate([CHANCE.uniform(-3, 8, 80)])
POLES = np.concatenate([CHANCE.uniform(-5, 20, 80), -2 - 10.0 ** -CHANCE.uniform(1, 4, 20)])
FIRST, SECOND, SHARE = CHANCE.uniform(0.1, 20, 60), CHANCE.uniform(0.01, 30, 60), CHANCE.uniform(0.01, 0.99, 60)

BESIDE_POLES = CHANCE.choice([-1, 1], 80) * 10.0 ** -CHANCE.uniform(1, 6, 80) - np.arange(80) // 4
ABOVE = CHANCE.uniform(1, 169, 80)


def upper(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def lower(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def incomplete(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("op", "values", "truth", "ulps"),
    [
        ("Erfinv", {"x": BETWEEN}, "erfinv", (4, 4)),
        ("Erfc", {"x": FAR}, "erfc", (1, 64)),
        ("Digamma", {"x": POLES}, "digamma", (1, 256)),
        ("Digamma", {"x": BESIDE_POLES}, "digamma", (1, 4)),
        ("Polygamma", {"a": 0 * BESIDE_POLES, "x": BESIDE_POLES}, lambda a, x: mpmath.digamma(x), (1, 4)),
        ("Igamma", {"a": CHANCE.uniform(0.01, 1, 60), "x": CHANCE.uniform(0.9, 2.2, 60)}, lower, (1, 8)),
        ("Igamma", {"a": 10.0 ** CHANCE.uniform(-5, -1, 60), "x": 10.0 ** CHANCE.uniform(-4, 0, 60)}, lower, (1, 4)),
        ("Igamma", {"a": ABOVE, "x": ABOVE * CHANCE.uniform(0, 0.6, len(ABOVE))}, lower, (1, 8)),
        ("Zeta", {"x": np.array([1019.76, 2000.0, 1e4]), "q": np.array([1.3386, 1.01, 1.0001])}, "zeta", (1, 4)),
        ("Igammac", {"a": FIRST, "x": SECOND}, upper, (1, 144)),
        ("Betainc", {"a": FIRST, "b": SECOND, "x": SHARE}, incomplete, (1, 64)),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_special_functions(
    op: str, values: dict[str, Any], truth: str | Callable[..., Any], ulps: tuple[int, int], dtype: type
) -> None:
    given = {name: value.astype(dtype) for name, value in values.items()}
    found = getattr(vg.raw_ops, op)(**given)
    function = getattr(mpmath, truth) if isinstance(truth, str) else truth
    most = ulps[dtype is np.float64]
    with mpmath.workdps(50):
        for result, *arguments in zip(found, *given.values(), strict=True):
            exact = function(*(mpmath.mpf(float(one)) for one in arguments))
            assert abs(mpmath.mpf(float(result)) - exact) <= most * float(np.spacing(abs(dtype(exact)))), arguments


def test_sigmoid_of_complex_numbers() -> None:
    """Also beside its poles, at odd multiples of pi i."""
    beside = np.array([1, 1j, -1 - 1j])[:, None] * 10.0 ** -np.arange(1, 9) + 3.141592653589793j
    x = np.concatenate([beside.ravel(), (POLES + 1j * CHANCE.uniform(-9, 9, len(POLES))), [-1e300j]])
    with mpmath.workdps(50):
        for given, result in zip(x, vg.raw_ops.Sigmoid(x=x), strict=True):
            exact = 1 / (1 + mpmath.exp(-mpmath.mpc(given.real, given.imag)))
            assert abs(mpmath.mpc(result.real, result.imag) - exact) <= 6 * 2.0**-52 * abs(exact), given
