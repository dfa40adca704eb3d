# SPDX-License-Identifier: Apache-2.0
"""What a page of a thousand blocks costs, in processor time: `python3 run bench pages`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import voxgrad as vg
from voxgrad import ops
from voxgrad.graph.page import Page

BLOCKS = 1000


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


def load_and_infer() -> None:
    data = mixed_page().to_dict()
    took = best(lambda: Page.from_dict(data).infer(), turns=3)
    print(f"{BLOCKS} blocks, load and infer: {took * 1e3:.0f} ms (bar 300)")


def session_cost() -> None:
    page = Page("cheap")
    last = ops.Placeholder(page, dtype="float32", shape=[3], name="x")
    for _ in range(BLOCKS):
        last = ops.Neg(page, last)
    session = vg.ClientSession(page)
    numbers = iter(range(1000))
    session.run(last, {"x": [0.5, 1, 2]})
    took = best(lambda: session.run(last, {"x": [next(numbers), 1, 2]})) / BLOCKS
    print(f"session, a block that runs: {took * 1e6:.1f} us, the op included (bar 15)")
    kept = best(lambda: session.run(last, {"x": [0, 1, 2]})) / BLOCKS
    print(f"session, a block that is kept: {kept * 1e6:.1f} us")


if __name__ == "__main__":
    load_and_infer()
    session_cost()
