# SPDX-License-Identifier: Apache-2.0
"""Random numbers of distributions that draw again what they reject: a number takes as many words as it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import FLOAT64, DType
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integer, to_numpy
from voxgrad.kernels.arraywise.random import (
    AT_ONCE,
    RESERVED,
    Generator,
    Words,
    doubles,
    generator,
    normals,
    philox_at,
    rounded,
    stated,
    uniforms,
)
from voxgrad.kernels.element_types import dtype_of

Values = np.ndarray[Any, Any]
Rows = np.ndarray[Any, np.dtype[np.int64]]


@kernel()
def multinomial(run: Run, logits: Array, num_samples: Array) -> Array:
    """Classes by their logits; rows take their words one after the other, as TensorFlow on one thread."""
    rows, count = to_numpy(logits), integer(num_samples)
    if not rows.shape[1] and rows.shape[0] * count:
        run.fail("logits", wanted="have a class at least", got=list(rows.shape))
    run.room("num_samples", (rows.shape[0], count), np.empty(0, np.int64))
    drawn = rows.shape[0] * count
    words = generator(run).take(-(-drawn // 2), rows.shape[0] * (-(-count // 4) * 8) * RESERVED)
    shares = doubles(words[:, 0::2], words[:, 1::2]).reshape(-1)[:drawn].reshape(rows.shape[0], count)
    found = np.empty(shares.shape, np.int64)
    for row, one in enumerate(rows.astype(np.float64) if count else ()):
        finite = np.isfinite(one)
        sizes = np.cumsum(np.where(finite, np.exp(one - np.max(one, initial=-np.inf, where=finite)), 0.0))
        found[row] = np.searchsorted(sizes, shares[row] * sizes[-1], side="right")
    return run.make(found, run.attrs["output_dtype"])


class _Lanes:
    """Sequences of words beside each other, one per number of a call."""

    def __init__(self, source: Generator, first: int, count: int):
        self._source = source
        self._at = np.arange(first, first + count).astype(np.uint64) * np.uint64(RESERVED) + np.uint64(source.at)

    def words(self, rows: Rows) -> Words:
        """The next group of some of them."""
        found = philox_at(self._source.key, self._source.stream, self._at[rows])
        self._at[rows] += np.uint64(1)
        return found


class _Drawn:
    """Numbers of a distribution along lanes, in float64: a group of words gives two, of which the last comes first."""

    def __init__(self, lanes: _Lanes, count: int, make: Callable[[Words, DType], Values]):
        self._lanes, self._make = lanes, make
        self._second, self._waits = np.empty(count), np.zeros(count, bool)

    def next(self, rows: Rows) -> Values:
        """The next number of some lanes."""
        waits = self._waits[rows]
        drawing, found = rows[~waits], self._second[rows]
        if len(drawing):
            self._second[drawing], found[~waits] = self._make(self._lanes.words(drawing), FLOAT64).T
        self._waits[rows] = ~waits
        return found


def _along_lanes(run: Run, shape: Array, given: Array, draw: Callable[[_Lanes, Values], Values]) -> Array:
    """`draw(lanes, parameters)` for every number: [*shape, *shape of given], those of one parameter after the other."""
    sizes, count = stated(shape)
    flat, source = to_numpy(given).reshape(-1), generator(run)
    total = count * len(flat)
    made = np.empty(total, flat.dtype)
    for begin in range(0, total, AT_ONCE):
        places = np.arange(begin, min(begin + AT_ONCE, total))
        made[places] = draw(_Lanes(source, begin, len(places)), flat[places // count].astype(np.float64))
    source.at += total * RESERVED
    return run.make(made.reshape(len(flat), count).T.reshape((*sizes, *given.shape)), element_type(given))


@kernel()
def gamma(run: Run, shape: Array, alpha: Array) -> Array:
    """Numbers of gamma distributions, by Marsaglia and Tsang's method."""
    return _along_lanes(run, shape, alpha, _gammas)


def _gammas(lanes: _Lanes, alpha: Values) -> Values:
    bell, flat = (_Drawn(lanes, len(alpha), make) for make in (normals, uniforms))
    low = alpha < 1
    d = alpha + np.where(low, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(d)
    even, left = np.flatnonzero(alpha == 1), np.flatnonzero(alpha != 1)
    made = np.empty_like(alpha)
    made[even] = -np.log1p(-flat.next(even))
    while len(left):
        x = bell.next(left)
        v = 1 + c[left] * x
        fits = ~(v <= 0)
        rows, x, v = left[fits], x[fits], v[fits] * v[fits] * v[fits]
        u, squared = flat.next(rows), x * x
        fits[fits] = kept = (u < 1 - 0.0331 * squared * squared) | (
            np.log(u) < 0.5 * squared + d[rows] * (1 - v + np.log(v))
        )
        done = rows[kept]
        made[done] = d[done] * v[kept]
        raised = done[low[done]]
        made[raised] *= flat.next(raised) ** (1 / alpha[raised])
        left = left[~fits]
    return made


@kernel()
def poisson(run: Run, shape: Array, rate: Array) -> Array:
    """Numbers of Poisson distributions: by Knuth's method, and by Hormann's where rates are 10 or more."""
    rates = to_numpy(rate)
    if np.isnan(rates).any():
        run.fail("rate", wanted="hold no NaN", got="one: no number would ever fit")
    highest = float(np.finfo(rates.dtype).max)
    return _along_lanes(run, shape, rate, lambda lanes, means: _poissons(lanes, means, highest))


def _poissons(lanes: _Lanes, rate: Values, highest: float) -> Values:
    drawn = _Drawn(lanes, len(rate), uniforms)
    made = np.full_like(rate, np.inf)
    _by_products(drawn, rate, made, np.flatnonzero(rate < 10))
    _by_rejection(drawn, rate, made, np.flatnonzero((rate >= 10) & np.isfinite(rate)), highest)
    return made


def _by_products(drawn: _Drawn, rate: Values, made: Values, left: Rows) -> None:
    """How many uniform numbers can be multiplied before the product is exp(-rate) or less."""
    least, product, count = np.exp(-rate), np.ones_like(rate), np.zeros_like(rate)
    while len(left):
        product[left] *= drawn.next(left)
        done = product[left] <= least[left]
        made[left[done]] = count[left[done]]
        left = left[~done]
        count[left] += 1


def _by_rejection(drawn: _Drawn, rate: Values, made: Values, left: Rows, highest: float) -> None:
    """Numbers under a curve that lies close above the distribution, kept with the share that the distribution has."""
    slope = 0.931 + 2.53 * np.sqrt(rate)
    while len(left):
        b, mean = slope[left], rate[left]
        a = -0.059 + 0.02483 * b
        u, v = drawn.next(left) - 0.5, drawn.next(left)
        edge = 0.5 - np.abs(u)
        k = np.floor((2 * a / edge + b) * u + mean + 0.43)
        inside = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        outside = (k < 0) | ((edge < 0.013) & (v > edge))
        share = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
        done = (k <= highest) & (inside | (~outside & (share <= -mean + k * np.log(mean) - _lgamma(k + 1))))
        made[left[done]] = k[done]
        left = left[~done]


def _lgamma(values: Values) -> Values:
    """The logarithm of the gamma function."""
    return np.array([math.lgamma(one) if 0 < one < math.inf else math.inf for one in values.tolist()])


_MOST_TRIES = 1000
"""TensorFlow gives up after so many numbers that were all rejected."""
_BATCH = 100
"""How many numbers of the same parameters TensorFlow draws at a time."""


class _Sequence:
    """Groups of words of a generator, which are looked at before they are taken."""

    def __init__(self, source: Generator):
        self._source, self._at, self._held = source, source.at, np.empty((0, 4), np.uint32)

    def ahead(self, groups: int) -> Words:
        """The next groups; nothing is taken."""
        if len(self._held) < groups:
            self._held = self._source.peek(self._at, max(groups, 1024))
        return self._held[:groups]

    def skip(self, groups: int) -> None:
        """Take some of them."""
        self._at, self._held = self._at + groups, self._held[groups:]


@kernel()
def truncated(run: Run, shape: Array, *given: Array) -> Array:
    """Normal numbers between bounds; rows take their words one after the other, as TensorFlow on one thread."""
    sizes, count = stated(shape)
    means, deviations, lows, highs = (to_numpy(one) for one in given)
    batches, length = sizes[0], math.prod(sizes[1:])
    if means.size == deviations.size == 1 and lows.ndim == highs.ndim == 0:
        batches, length = -(-count // _BATCH), _BATCH
    for item, one in zip(run.op.inputs[1:], given, strict=True):
        if one.shape not in ((), (1,), (batches,)):
            run.fail(item.name, wanted=f"have one entry, or one for each of {batches} rows", got=list(one.shape))
    source, made = generator(run), np.empty(count, means.dtype)
    words = _Sequence(source)
    source.at += batches * 2 * _MOST_TRIES * (length + 3) // 4
    # Without numbers the parameters are looked at all the same, once.
    for row in range(batches if count else min(batches, max(one.size for one in given))):
        part = made[row * length : (row + 1) * length]
        own = [one.reshape(-1)[0 if one.size == 1 else row] for one in (means, deviations, lows, highs)]
        part[:] = _bounded(run, words, own, len(part))
    return run.make(made.reshape(sizes), element_type(given[0]))


def _bounded(run: Run, words: _Sequence, given: list[Any], count: int) -> Values:
    """Normal numbers between two bounds."""
    mean, deviation, low, high = given
    if not (deviation > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
        wanted = "have a deviation above 0 and a lower bound below an upper one, one of them finite"
        run.fail("stdevs", wanted=wanted, got=f"{deviation}, from {low} to {high}")
    if low == -np.inf or high < mean:
        low, high, deviation = high, low, -deviation
    least, most = (low - mean) / deviation, (high - mean) / deviation
    made: Values = _accepted(run, words, _proposal(least, most), count) * deviation + mean
    return made


Proposal = tuple[Callable[[Words], tuple[Values, Any]], int, int]
"""Numbers of some groups of words with which of them are accepted; groups that go together, and tries that are one too
many."""


def _proposal(least: Any, most: Any) -> Proposal:
    """How numbers between bounds, in deviations from the mean, are found: as TensorFlow chooses."""
    one = type(least)
    dtype = dtype_of(np.dtype(one))
    assert dtype is not None
    root = np.sqrt(least * least + one(4))
    cutoff = one(2) * rounded(np.exp, one(0.5) + (least * (least - root)) / one(4)) / (least + root)
    if (least < one(-1.3) and most >= 0) or (most > one(1.3) and least <= 0):

        def bell(words: Words) -> tuple[Values, Any]:
            x = normals(words, dtype).astype(one)
            return x, (x >= least) & (x <= most)

        return bell, 1, _MOST_TRIES + 1
    if most - least < cutoff:
        plus = one(0) if least < 0 else least * least

        def even(words: Words) -> tuple[Values, Any]:
            z = uniforms(words[0::2], dtype) * (most - least) + least
            return z, uniforms(words[1::2], dtype) <= rounded(np.exp, (plus - z * z) / one(2))

        return even, 2, _MOST_TRIES
    alpha = (least + root) / one(2)

    def tail(words: Words) -> tuple[Values, Any]:
        pairs = uniforms(words, dtype)
        z = -rounded(np.log, pairs[:, 0::2]) / alpha + least
        x = alpha - z if least < alpha else np.full_like(z, least - alpha)
        return z, (pairs[:, 1::2] <= rounded(np.exp, -x * x / one(2))) & (z < most)

    return tail, 1, _MOST_TRIES


def _accepted(run: Run, words: _Sequence, proposal: Proposal, count: int) -> Values:
    """The first numbers that a proposal accepts; words are taken up to the group of the last."""
    propose, together, most = proposal
    found: list[Values] = []
    tries = 0
    while count:
        groups = together * (count + 8)
        numbers, accepted = propose(words.ahead(groups))
        hits = np.flatnonzero(accepted)[:count]
        gaps = np.diff(hits, prepend=-1) - 1
        after = numbers.size - 1 - int(hits[-1]) if len(hits) else numbers.size + tries
        if (len(gaps) and max(gaps[0] + tries, *gaps) >= most) or (len(hits) < count and after >= most):
            run.fail("minvals", wanted=f"leave room for one number of {most}", got="bounds that none fell between")
        found.append(numbers.reshape(-1)[hits])
        count, tries = count - len(hits), after
        words.skip(groups if count else together * (int(hits[-1]) // numbers.shape[1] + 1))
    return np.concatenate(found) if found else np.empty(0)
