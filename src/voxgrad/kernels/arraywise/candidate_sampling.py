# SPDX-License-Identifier: Apache-2.0
"""Candidates for losses over many classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import FLOAT32, INT32, INT64
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, to_numpy


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
