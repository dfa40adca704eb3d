# SPDX-License-Identifier: Apache-2.0
"""Compiles the way back of MaxPool3DGrad with stride 1 for a Hopper GPU, without one, in every type and layout.

    TRITON_INTERPRET=0 python -m tests.cuda.compiled_pools

A line per kernel: its type, layout and name, how many of its additions are made only where a bit says so, how many
times it announces what it will read, and how many pieces of the next step a thread brings to the first-level cache.
"""

from __future__ import annotations

import re

import torch

from tests.cuda.compiled import compiled
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import pool_max

KINDS = {
    "bf16": (dtypes.BFLOAT16, torch.bfloat16),
    "fp16": (dtypes.HALF, torch.float16),
    "fp32": (dtypes.FLOAT32, torch.float32),
    "fp64": (dtypes.FLOAT64, torch.float64),
}


def main() -> None:
    """Print the lines."""
    axis = geometry.axis(16, 3, 1, 1, geometry.SAME)
    long = geometry.axis(64, 3, 1, 1, geometry.SAME)
    assert isinstance(axis, geometry.Axis)
    assert isinstance(long, geometry.Axis)
    for name, (declared, dtype) in KINDS.items():
        for last in (True, False):
            made = Problem("", "max_pool_grad", declared, declared, (), last, 2, 64, 64, 1, (axis, axis, long))
            launch = pool_max._back_plan(made, dtype, dtype.itemsize == 2, True)
            text = compiled(launch, 3, ("u8", name, name))
            decided = len(re.findall(r"@!?p\d add\.f32", text))
            counted = decided, text.count("prefetch.global.L2"), text.count("trap")
            print(name, last, launch.kernel.__name__, *counted, sep=",")


if __name__ == "__main__":
    main()
