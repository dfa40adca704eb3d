# SPDX-License-Identifier: Apache-2.0
"""The bars of pages, in processor time so that a busy machine does not matter; with room for slow machines."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import voxgrad as vg
from voxgrad import ops
from voxgrad.graph.page import Page

BLOCKS = 1000
ROOM = 3
"""How much slower than the machine of the bars a machine may be."""


def best(function: Callable[[], object], turns: int = 5) -> float:
    times = []
    for _ in range(turns):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def mixed_page() -> Page:
    """Convolutions, pools and arithmetic on a volume of open size."""
    page = Page("mixed")
    last = ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 4], name="x")
    w = ops.Const(page, np.ones((3, 3, 3, 4, 4), np.float32), name="w")
    while len(page) < BLOCKS:
        last = ops.Conv3D(page, last, w, strides=[1] * 5, padding="SAME")
        last = ops.MaxPool3D(page, last, ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding="SAME")
        last = ops.Neg(page, last)
    return page


def test_a_thousand_blocks_load_and_infer() -> None:
    data = mixed_page().to_dict()
    took = best(lambda: Page.from_dict(data).infer(), turns=3)
    assert took < 0.3 * ROOM, f"{took * 1e3:.0f} ms"


def test_a_session_costs_little_per_block() -> None:
    page = Page("cheap")
    last = ops.Placeholder(page, dtype="float32", shape=[3], name="x")
    for _ in range(BLOCKS):
        last = ops.Neg(page, last)
    session = vg.ClientSession(page)
    numbers = iter(range(1000))
    session.run(last, {"x": [0.5, 1, 2]})
    took = best(lambda: session.run(last, {"x": [next(numbers), 1, 2]})) / BLOCKS
    assert took < 15e-6 * ROOM, f"{took * 1e6:.1f} us per block"
    kept = best(lambda: session.run(last, {"x": [0, 1, 2]})) / BLOCKS
    assert kept < 8e-6 * ROOM, f"{kept * 1e6:.1f} us per block that is kept"
