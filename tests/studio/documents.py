# SPDX-License-Identifier: Apache-2.0
"""Documents for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.formats import page_file

Document = dict[str, Any]


def pool_page(more: int = 0) -> Document:
    """A max-pool of 32 numbers: 15, 16, 31, 32, and `more` to each."""
    page = vg.Page("pool")
    x = vg.ops.Const(page, np.arange(1 + more, 33 + more, dtype=np.float32).reshape(2, 2, 2, 2, 2), name="x")
    vg.ops.MaxPool3D(page, x, ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME", name="pool")
    return page_file.to_data(page)


def counter_page() -> Document:
    """A variable that grows by one with every cycle."""
    page = vg.Page("counter")
    count = page.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="count")
    zero = page.add("Const", attrs={"value": np.float32(0.0)[...], "dtype": "float32"}, name="zero")
    one = page.add("Const", attrs={"value": np.float32(1.0)[...], "dtype": "float32"}, name="one")
    first = page.add("Assign", {"ref": count, "value": zero}, name="first")
    step = page.add("AssignAdd", {"ref": count, "value": one}, name="step")
    page.start_with([first])
    page.execute([step])
    return page_file.to_data(page)


def slow_page(size: int = 96, layers: int = 12) -> Document:
    """Convolutions that take a while."""
    page = vg.Page("slow")
    x: Any = page.add(
        "Fill", {"dims": np.array([1, size, size, size, 16], np.int32), "value": np.float32(1)[...]}, name="x"
    )
    for layer in range(layers):
        w = page.add(
            "Fill", {"dims": np.array([3, 3, 3, 16, 16], np.int32), "value": np.float32(0.01)[...]}, name=f"w{layer}"
        )
        attrs = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
        x = page.add("Conv3D", {"input": x, "filter": w}, attrs, name=f"conv{layer}")
    return page_file.to_data(page)


def chain_page(blocks: int) -> Document:
    """A page of this many blocks: convolutions in a row, each with its filter."""
    page = vg.Page("chain")
    x: Any = page.add("Placeholder", attrs={"dtype": "float32", "shape": ["N", "D", "H", "W", 2]}, name="x")
    for number in range((blocks - 1) // 2):
        w = vg.ops.Const(page, np.ones((2, 2, 2, 2, 2), np.float32), name=f"w{number}")
        attrs = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
        x = page.add("Conv3D", {"input": x, "filter": w}, attrs, name=f"conv{number}")
    return page_file.to_data(page)
