# SPDX-License-Identifier: Apache-2.0
"""What can be chosen when an op is explained: windows, strides, padding, semantics, and what the volume holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import OPS
from voxgrad.catalog.semantics import SEMANTICS
from voxgrad.graph.values import Array

GRID = (2, 4, 4)
"""Depth, height and width of the volume: three-dimensional, and small enough to be shown slice by slice."""

Triple = tuple[int, int, int]
ONES = (1, 1, 1)
POOL_WINDOWS = ((1, 2, 2), (2, 2, 2), (2, 3, 3), (1, 5, 5))
FILTERS = ((1, 2, 2), (2, 2, 2), (2, 3, 3))
SPREAD = ((1, 2, 2), (1, 2, 2))
"""A filter with a gap between its taps: its size and its dilation."""
STRIDES = (ONES, (2, 2, 2), (2, 4, 4))
PADDINGS = ("VALID", "SAME", "0,1,1")
STARTS = ("x", "w", "dy", "v", "u")
"""The tensors that are not computed: volume, filter, and what the first and the second order begin with."""
NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True, slots=True)
class Choice:
    """One state of the explainer."""

    window: Triple = (2, 2, 2)
    dilation: Triple = ONES
    stride: Triple = (2, 2, 2)
    padding: str = "VALID"
    case: str = "plain"
    semantics: str = "documented"

    def attrs(self, op: Op) -> dict[str, Any]:
        """The attributes of an op of the family."""
        given = {"ksize": self.window, "strides": self.stride, "dilations": self.dilation}
        found: dict[str, Any] = {item.name: [1, *given[item.name], 1] for item in op.attrs if item.name in given}
        return found | {"padding": self.padding}


def forward_of(op: Op) -> Op:
    """The op that an op of the family is a gradient of, or itself."""
    return OPS[op.of] if op.of else op


def windows_of(forward: Op) -> tuple[tuple[Triple, Triple], ...]:
    """The windows to choose from, each with its dilation."""
    if forward.map.has_taps:
        return (*((window, ONES) for window in FILTERS), SPREAD)
    return tuple((window, ONES) for window in POOL_WINDOWS)


def cases_of(forward: Op) -> tuple[str, ...]:
    """What can be injected into the volume."""
    return ("plain", "ties", "near", "nan") if forward.selects else ("plain", "nan", "inf")


def choices_of(forward: Op) -> Iterator[Choice]:
    """All states of an explainer."""
    for places in product(*map(range, most_places(forward))):
        yield choice_at(forward, places)


def most_places(forward: Op) -> tuple[int, ...]:
    """How many there are of each: windows, strides, paddings, cases, semantics."""
    return len(windows_of(forward)), len(STRIDES), len(PADDINGS), len(cases_of(forward)), len(SEMANTICS)


def choice_at(forward: Op, places: Sequence[int]) -> Choice:
    """The choice behind such places."""
    window, stride, padding, case, semantics = places
    size, dilation = windows_of(forward)[window]
    return Choice(
        size, dilation, STRIDES[stride], PADDINGS[padding], cases_of(forward)[case], tuple(SEMANTICS)[semantics]
    )


def given(name: str, shape: tuple[int, ...], case: str) -> Array:
    """What a tensor holds that is not computed: the volume `x`, the filter `w`, and what gradients begin with."""
    count = int(np.prod(shape))
    values = np.arange(count)
    if name == "x":
        found = _volume(count, case)
    elif name == "w":
        found = (values * 5 % 7 - 3).astype(np.float32)
    else:
        found = (values + 1).astype(np.float32)
    return found.reshape(shape)


def _volume(count: int, case: str) -> Array:
    """All values differ, but for what the case injects."""
    cells = (np.arange(count) * 13 + 5) % count + 1.0
    if case == "ties":
        cells = np.arange(count) * 7 % 5 + 1.0
    if case == "near":  # closer to each other than 1e-5, and yet not equal
        cells = np.where(np.arange(count) % 3 == 0, 5, 4.999995)
    if case == "nan":
        cells[[0, 1, 4, 5, 27]] = NAN
    if case == "inf":
        cells[[6, 19]] = INF, -INF
    return cells.astype(np.float32)
