# SPDX-License-Identifier: Apache-2.0
"""Candidates for losses over many classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import FLOAT32, INT32, INT64
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.io import contents
from voxgrad.kernels.arraywise.namespace import Array, to_numpy
from voxgrad.kernels.arraywise.random import Stream, generator

Values = np.ndarray[Any, Any]
Sampler = tuple[Callable[[Stream], int], Callable[[Values], Values]]
"""Draws a class; and the probabilities of classes."""


@kernel()
def hits(run: Run, classes: Array, candidates: Array) -> Any:
    """Examples, by rows, with the places of those of their classes that were sampled."""
    true, sampled = to_numpy(classes), to_numpy(candidates)
    run.room("true_classes", (*true.shape, 4), true)
    # The first of those turned round is the last one.
    known, first = np.unique(sampled[::-1], return_index=True)
    at = np.minimum(np.searchsorted(known, true), max(len(known) - 1, 0))
    found = known[at] == true if len(known) else np.zeros(true.shape, bool)
    rows = np.nonzero(found)[0]
    places = len(sampled) - 1 - first[at[found]]
    lowest = np.full(len(rows), np.finfo(np.float32).min)
    return run.make(rows, INT32), run.make(places, INT64), run.make(lowest, FLOAT32)


_GROUPS = 512
"""Groups of words that TensorFlow reserves per candidate."""
_MOST_TRIES = 2**9
"""Draws per candidate, and then some, after which no more different ones are looked for."""


@kernel(name="all")
def every(run: Run, classes: Array) -> Any:
    """All classes."""
    true, count = _true_classes(run, classes, run.attrs["num_sampled"]), run.attrs["num_sampled"]
    made = run.make(np.arange(count), INT64), run.make(np.ones(true.shape), FLOAT32)
    return *made, run.make(np.ones(count), FLOAT32)


@kernel()
def uniform(run: Run, classes: Array) -> Any:
    """Classes that are all as likely."""
    most = run.attrs["range_max"]
    likely = np.float32(1 / most)
    return _sampled(run, classes, (lambda words: words.below(most, 2), lambda of: np.full(of.shape, likely)))


@kernel()
def log_uniform(run: Run, classes: Array) -> Any:
    """Classes that are the less likely the later they come."""
    most = run.attrs["range_max"]
    size = np.log1p(float(most))

    def draw(words: Stream) -> int:
        return int((int(np.exp(words.double() * size)) - 1) % most)

    return _sampled(run, classes, (draw, lambda of: (np.log((of + 2.0) / (of + 1.0)) / size).astype(np.float32)))


@kernel()
def learned(run: Run, classes: Array) -> Any:
    """Classes that are the likelier the more often they were true ones; every class counts as seen once at first."""
    known, key = run.context.state.resources, f"{run.context.block}:seen"
    if key not in known:
        run.room("range_max", (run.attrs["range_max"], 4), np.empty(0, np.int32))
        known[key] = np.ones(run.attrs["range_max"], np.int32)
    seen = known[key]
    ends = np.cumsum(seen, dtype=np.int64)
    total = int(ends[-1])

    def draw(words: Stream) -> int:
        return int(np.searchsorted(ends, words.below(total), side="right"))

    made = _sampled(run, classes, (draw, lambda of: seen[of].astype(np.float32) / np.float32(total)))
    new = to_numpy(classes).reshape(-1)[: 2**31 - 1 - total]
    known[key] = seen + np.bincount(new, minlength=len(seen)).astype(np.int32)
    return made


@kernel()
def fixed(run: Run, classes: Array) -> Any:
    """Classes by weights that were given, or that a file lists."""
    known, key = run.context.state.resources, f"{run.context.block}:weights"
    if key not in known:
        known[key] = _by_weight(run, _weights(run))
    draw, likely = known[key]
    some = int(np.count_nonzero(likely(np.arange(run.attrs["range_max"]))))
    if run.attrs["unique"] and run.attrs["num_sampled"] > some:
        run.fail("num_sampled", wanted=f"be at most {some}, the weights above 0", got=run.attrs["num_sampled"])
    return _sampled(run, classes, (draw, likely))


def _weights(run: Run) -> Values:
    """The weights of the classes of this shard, as float32."""
    given, shards, shard = run.attrs["unigrams"], run.attrs["num_shards"], run.attrs["shard"]
    if bool(given) == bool(run.attrs["vocab_file"]):
        wanted, got = "be given where vocab_file is not, and only there", "both" if given else "neither"
        run.fail("unigrams", wanted=wanted, got=got, code="VG001")
    if not given:
        given = _listed(run, run.attrs["vocab_file"])
    reserved = len(range(shard, run.attrs["num_reserved_ids"], shards))
    own = np.array(given, np.float32)[(shard - reserved) % shards :: shards]
    weights = np.power(own.astype(np.float64), np.float32(run.attrs["distortion"])).astype(np.float32)
    if len(weights) + reserved != run.attrs["range_max"]:
        run.fail("range_max", wanted=f"be the number of weights, {len(weights) + reserved}", got=run.attrs["range_max"])
    return np.concatenate([np.zeros(reserved, np.float32), weights])


def _listed(run: Run, name: str) -> list[float]:
    """The last column of every line of a file."""
    found = []
    for number, line in enumerate(contents(run, name, "vocab_file").splitlines(), 1):
        try:
            found.append(float(line.rpartition(b",")[2]))
        except ValueError:
            got = f"line {number}: {line[:40]!r}"
            run.fail("vocab_file", wanted="end every line with a weight", got=got, code="VG053")
    return found


def _by_weight(run: Run, weights: Values) -> Sampler:
    """A table in which each class shares its place with one other, so that a draw takes two numbers."""
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        run.fail("unigrams", wanted="be 0 or more, one of them above", got="other weights")
    count, total = len(weights), np.float32(0)
    for one in weights:
        total += one
    share = ((weights * np.float32(count)).astype(np.float64) / np.sum(weights, dtype=np.float64)).tolist()
    other, low = list(range(count)), [index for index, one in enumerate(share) if one < 1]
    high = [index for index, one in enumerate(share) if one >= 1]
    while high and low:
        small, large = low.pop(), high.pop()
        other[small] = large
        share[large] -= 1.0 - share[small]
        (low if share[large] < 1 else high).append(large)
    for index in (*high, *low):
        share[index], other[index] = 1.0, index
    kept = np.array(share, np.float32).tolist()

    def draw(words: Stream) -> int:
        part, index = words.single(), words.below(count)
        return index if part < kept[index] else other[index]

    return draw, lambda of: weights[of] / total


def _true_classes(run: Run, classes: Array, most: int) -> Values:
    true = to_numpy(classes)
    if ((true < 0) | (true >= most)).any():
        run.fail(
            "true_classes", wanted=f"hold classes in [0, {most})", got=int(true.max() if true.max() > 0 else true.min())
        )
    return true


def _sampled(run: Run, classes: Array, sampler: Sampler) -> Any:
    """The candidates, and how often each of them and of the true classes is expected among so many."""
    draw, likely = sampler
    count, most = run.attrs["num_sampled"], run.attrs["range_max"]
    true = _true_classes(run, classes, most)
    words = Stream(generator(run), _GROUPS * count)
    if run.attrs["unique"]:
        found, tries = _different(run, lambda: draw(words), count)
    else:
        found, tries = [draw(words) for _ in range(count)], count
    candidates = np.array(found, np.int64)

    def expected(of: Values) -> Array:
        single = likely(of)
        if tries != count:
            return run.make(-np.expm1(np.float32(tries) * np.log1p(-single)), FLOAT32)
        return run.make(single * np.float32(count), FLOAT32)

    return run.make(candidates, INT64), expected(true), expected(candidates)


def _different(run: Run, draw: Callable[[], int], count: int) -> tuple[list[int], int]:
    """Candidates of which none comes twice, and how many draws they took."""
    found: dict[int, None] = {}
    tries = 0
    while len(found) < count:
        found[draw()] = None
        tries += 1
        if tries == _MOST_TRIES * (count + _MOST_TRIES):
            got = f"{len(found):,} after {tries:,} draws"
            run.fail("num_sampled", wanted=f"be so few that {count:,} different candidates are found", got=got)
    return list(found), tries
