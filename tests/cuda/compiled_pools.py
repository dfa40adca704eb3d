# SPDX-License-Identifier: Apache-2.0
"""Compiles gradients of pools for a Hopper GPU, without one, in every type and layout.

    TRITON_INTERPRET=0 python -m tests.cuda.compiled_pools

A line per kernel: its type, layout and name, how many of its additions are made only where a bit says so, how many
times it prefetches what it will read, and how many pieces of the next step a thread brings to the first-level cache.
The kernels are the way back of MaxPool3DGrad with stride 1, and AvgPool3DGrad with windows side by side.
"""

from __future__ import annotations

import re

import torch

from tests.cuda.compiled import compiled
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.cuda import pool_avg, pool_max
from voxgrad.kernels.cuda.launch import Launch

KINDS = {
    "bf16": (dtypes.BFLOAT16, torch.bfloat16),
    "fp16": (dtypes.HALF, torch.float16),
    "fp32": (dtypes.FLOAT32, torch.float32),
    "fp64": (dtypes.FLOAT64, torch.float64),
}


def problem(op_name: str, declared: dtypes.DType, last: bool, window: int, stride: int) -> Problem:
    """A pool of 16 x 16 x 64 cells of 64 channels."""
    short = geometry.axis(16, window, stride, 1, geometry.SAME)
    long = geometry.axis(64, window, stride, 1, geometry.SAME)
    assert isinstance(short, geometry.Axis)
    assert isinstance(long, geometry.Axis)
    op = OPS[op_name]
    return Problem(op.name, op.map, declared, declared, (), last, 2, 64, 64, 1, (short, short, long))


def main() -> None:
    """Print the lines."""
    for name, (declared, dtype) in KINDS.items():
        for last in (True, False):
            back = pool_max._back_plan(problem("MaxPool3DGrad", declared, last, 3, 1), dtype, dtype.itemsize == 2, True)
            show(name, last, "back", back, ("u8", name, name))
            for window in (1, 2) if last else (2,):
                made = problem("AvgPool3DGrad", declared, last, window, window)
                show(name, last, f"side by side {window}", pool_avg._plan(made, dtype), (name, name))


def show(name: str, last: bool, what: str, launch: Launch, kinds: tuple[str, ...]) -> None:
    """Print the line of a kernel."""
    text = compiled(launch, len(kinds), kinds)
    decided = len(re.findall(r"@!?p\d add\.f32", text))
    print(name, last, what, decided, text.count("prefetch.global.L2"), text.count("trap"), sep=",")


if __name__ == "__main__":
    main()
