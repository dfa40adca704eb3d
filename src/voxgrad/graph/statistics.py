# SPDX-License-Identifier: Apache-2.0
"""Statistics of an array in one pass, whatever its size and type."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from voxgrad.graph.values import Array

CHUNK = 2**20


class Statistics:
    """One pass over the finite values and the others, a chunk at a time."""

    def __init__(self, array: Array):
        self.nan = self.posinf = self.neginf = self.zeros = self.finite = 0
        lows, highs, mean, spread = [], [], 0.0, 0.0
        for chunk in chunks_of(array):
            good = np.isfinite(chunk)
            self.nan += int(np.isnan(chunk).sum())
            self.posinf += int((chunk == math.inf).sum())
            self.neginf += int((chunk == -math.inf).sum())
            self.zeros += int((chunk == 0).sum())
            values = chunk[good]
            if not values.size:
                continue
            lows.append(float(values.min()))
            highs.append(float(values.max()))
            # Chan's update: chunks of any size, without the cancellation of sums of squares.
            with np.errstate(over="ignore"):
                here = float(values.mean())
                total = self.finite + values.size
                shift = here - mean
                spread += float(((values - here) ** 2).sum()) + shift * shift * self.finite * values.size / total
                mean += shift * values.size / total
            self.finite = total
        self.low = finite_or_none(min(lows)) if lows else None
        self.high = finite_or_none(max(highs)) if highs else None
        self.mean = finite_or_none(mean) if lows else None
        self.std = finite_or_none(math.sqrt(spread / self.finite)) if lows else None


def finite_or_none(value: float) -> float | None:
    """The number, None where it is not finite."""
    return value if math.isfinite(value) else None


def chunks_of(array: Array) -> Iterator[Array]:
    """The values as float64, of complex numbers their size, in pieces that fit the cache of a small machine."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        piece = flat[start : start + CHUNK]
        yield (np.abs(piece) if piece.dtype.kind == "c" else piece).astype(np.float64)
