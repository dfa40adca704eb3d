# SPDX-License-Identifier: Apache-2.0
"""Measure what may run a convolution, over layers of networks: the table that choices without measuring are made from.

    python -m bench.choices --warm 3/14           # compile a share of the kernels, time nothing
    python -m bench.choices                       # measure what the table has not yet, and write it

Compile in as many processes as there are cores first (i/n for i below n); the timing run finds the kernels in Triton's
cache. What the table has is not measured again: remove rows, or name another file, where kernels have changed.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import torch
import triton

from bench.gpu import TORCH, tensors_of
from bench.gpu_rows import CONVS
from bench.rows import CONV
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import measured, tune

Shape = tuple[int, tuple[int, int, int], int, int, tuple[int, int, int], tuple[int, int, int]]
"""Batch, sizes, channels in and out, window, stride; SAME."""

SLOWER = 1.5
"""Times as slow as the best up to which a choice is kept in the table."""


def cube(batch: int, size: int, channels: int, out: int, window: int = 3, stride: int = 1) -> Shape:
    """A layer that is the same along all axes."""
    return batch, (size,) * 3, channels, out, (window,) * 3, (stride,) * 3


U_NET = [
    cube(2, 128, 32, 3, 1), cube(2, 128, 64, 32), cube(2, 128, 32, 64, 2, 2), cube(2, 64, 64, 128, 3, 2),
    cube(2, 64, 64, 128, 2, 2), cube(2, 64, 128, 64), cube(2, 64, 64, 3, 1), cube(2, 32, 256, 128),
    cube(2, 32, 128, 256, 2, 2), cube(2, 16, 512, 256), cube(2, 16, 256, 320, 3, 2), cube(2, 16, 256, 320, 2, 2),
    cube(2, 8, 640, 320), cube(2, 8, 320, 320, 3, 2), cube(2, 8, 320, 320, 2, 2), cube(2, 4, 320, 320),
    cube(1, 64, 32, 32), cube(1, 96, 32, 32), cube(1, 32, 64, 64), cube(2, 64, 32, 64, 1), cube(2, 32, 64, 128, 1),
]  # fmt: skip
"""nnU-Net's, plain and with residuals, beside those of `bench.gpu`."""
OTHERS = [
    cube(2, 128, 1, 16), cube(2, 128, 16, 16), cube(2, 128, 8, 8), cube(2, 64, 16, 32, 3, 2), cube(2, 64, 32, 32),
    cube(2, 128, 16, 32, 3, 2), cube(2, 96, 4, 32), cube(2, 96, 2, 16), cube(2, 64, 24, 40, 5),
    (1, (91, 109, 91), 48, 48, (3, 3, 3), (1, 1, 1)), (2, (10, 12, 10), 320, 320, (3, 3, 3), (1, 1, 1)),
    (1, (80, 96, 80), 48, 96, (3, 3, 3), (2, 2, 2)), (2, (64, 80, 64), 64, 128, (3, 3, 3), (2, 2, 2)),
    (2, (64, 64, 64), 64, 64, (1, 3, 3), (1, 1, 1)), (2, (32, 128, 128), 32, 32, (1, 3, 3), (1, 1, 1)),
    (8, (16, 112, 112), 3, 64, (3, 7, 7), (1, 2, 2)), (8, (16, 56, 56), 64, 64, (3, 3, 3), (1, 1, 1)),
    (8, (16, 56, 56), 64, 128, (3, 3, 3), (2, 2, 2)), (8, (16, 56, 56), 64, 128, (1, 1, 1), (2, 2, 2)),
    (8, (8, 28, 28), 128, 128, (3, 3, 3), (1, 1, 1)), (8, (8, 28, 28), 128, 256, (3, 3, 3), (2, 2, 2)),
    (8, (4, 14, 14), 256, 256, (3, 3, 3), (1, 1, 1)), (8, (2, 7, 7), 512, 512, (3, 3, 3), (1, 1, 1)),
    (1, (16, 128, 128), 128, 128, (3, 3, 3), (1, 1, 1)), (1, (16, 64, 64), 256, 256, (3, 3, 3), (1, 1, 1)),
    (1, (8, 32, 32), 512, 512, (3, 3, 3), (1, 1, 1)),
]  # fmt: skip
"""MONAI's, clips of video, and shapes that are no powers of two."""
LISTED: list[Shape] = [(n, sizes, ci, co, (k,) * 3, (s,) * 3) for n, sizes, ci, co, k, s in CONVS.values()]
ROWS: dict[str, list[Shape]] = {
    "bfloat16": LISTED + U_NET + OTHERS,
    "float32": LISTED + U_NET[:16] + OTHERS[:15:2],
    "float32_tf32": LISTED + U_NET[:16] + OTHERS[:15:2],
    "float64": LISTED[1:8:2],
}
FIRST = {"bfloat16": LISTED[:8] + OTHERS[9:14], "float32": LISTED[:8:2]}
"""Those that are measured with channels first, too."""


def problems(dtype: str) -> Iterator[Problem]:
    """The problems of a type."""
    declared = dtypes.named(dtype.removesuffix("_tf32"))
    assert declared is not None
    for last, shapes in ((True, ROWS[dtype]), (False, FIRST.get(dtype, []))):
        for n, sizes, ci, co, window, strides in shapes:
            a, b, c = (geometry.axis(*of, 1, geometry.SAME) for of in zip(sizes, window, strides, strict=True))
            for op in CONV:
                whole = Problem(op.name, op.map, declared, declared, (), last, n, ci, co, 1, (a, b, c))
                yield whole.part((a, b, c))


def missing(table: measured.Table) -> Iterator[tuple[Problem, torch.dtype, list[tune.Choice]]]:
    """The problems that a table has not, with torch's type, and what may be chosen without watching."""
    for dtype in ROWS:
        torch.set_float32_matmul_precision("high" if dtype == "float32_tf32" else "highest")
        like = TORCH.get(dtype, torch.float32)
        for problem in problems(dtype):
            rows = table.get(measured.kind(problem, tune.allows_tf32()), [])
            if all(tuple(row[:3]) != measured.extent(problem) for row in rows):
                made = [one for one in tune.candidates(problem, like) if one.engine != "cudnn"]
                yield problem, like, made
                torch.cuda.empty_cache()


def warm(share: str, table: measured.Table) -> None:
    """Compile what a share of the problems needs."""
    index, count = map(int, share.split("/"))
    for problem, like, made in islice(missing(table), index, None, count):
        tensors = tensors_of(problem, like)
        for one in made:
            with suppress(triton.runtime.errors.OutOfResources, RuntimeError):
                if one.config:
                    tune.run_choice(one, problem, tuple(tensors))


def measure(path: Path, table: measured.Table) -> None:
    """Time all, and write as it goes."""
    for problem, like, made in missing(table):
        tensors = tensors_of(problem, like)
        times = {measured.label(one, made): ms for ms, one in tune.timed(problem, tuple(tensors), made)}
        best = min(times.values())
        kept = {name: round(ms, 4) for name, ms in times.items() if ms <= SLOWER * best}
        kind = measured.kind(problem, tune.allows_tf32())
        table.setdefault(kind, []).append((*measured.extent(problem), kept))
        first = times.get(measured.label(made[0], made), math.nan)
        print(f"{tune.describe(problem)}: {best:.4f} ms, the first {first / best:.2f}", flush=True)
        write(path, table)


def write(path: Path, table: measured.Table) -> None:
    """A line per problem."""
    kinds = [
        f" {json.dumps(kind)}: [\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]"
        for kind, rows in table.items()
    ]
    path.write_text("{\n" + ",\n".join(kinds) + "\n}\n")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warm", default="", help="i/n: compile a share and leave")
    parser.add_argument("--out", type=Path, default=measured.PLACE, help="the table")
    arguments = parser.parse_args()
    table = measured.read(arguments.out) if arguments.out.exists() else {}
    if arguments.warm:
        warm(arguments.warm, table)
    else:
        measure(arguments.out, table)


if __name__ == "__main__":
    main()
