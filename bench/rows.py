# SPDX-License-Identifier: Apache-2.0
"""What is timed: the shapes of real networks, random shapes, and what each must at least compute and move."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.testing import SeededChooser
from voxgrad.testing.calls import operands

Array = np.ndarray[Any, Any]
CONV = [op for op in FAMILY if op.map.has_taps]
POOL = [op for op in FAMILY if not op.map.has_taps]


@dataclass(frozen=True)
class Row:
    """One problem: an op on a volume [batch, D, H, W, channels], NDHWC, SAME."""

    op: str
    batch: int
    spatial: tuple[int, int, int]
    channels: int
    out_channels: int
    window: tuple[int, int, int]
    stride: tuple[int, int, int]
    dtype: str = "float32"
    source: str = "list"

    @property
    def label(self) -> str:
        """A short name."""
        size = "x".join(map(str, self.spatial))
        taps, steps = ("".join(map(str, v)) if len(set(v)) > 1 else str(v[0]) for v in (self.window, self.stride))
        channels = f"{self.channels}>{self.out_channels}" if OPS[self.op].map.has_taps else f"x{self.channels}"
        kind = "" if self.dtype == "float32" else f" {self.dtype}"
        return f"{self.batch}x{size} {channels} k{taps}s{steps}{kind}"

    def call(self) -> dict[str, Any]:
        """The arguments, with random numbers from the row's own seed."""
        return _call(self)


CONV_SHAPES = [
    (1, (96, 96, 96), 1, 16, 3, 1), (1, (64, 64, 64), 16, 32, 3, 1), (1, (64, 64, 64), 16, 32, 3, 2),
    (2, (32, 32, 32), 64, 64, 3, 1), (2, (32, 32, 32), 64, 64, 3, 2), (2, (16, 16, 16), 128, 128, 3, 1),
    (2, (16, 16, 16), 128, 128, 3, 2), (2, (8, 8, 8), 256, 256, 3, 1), (2, (8, 8, 8), 256, 256, 3, 2),
    (1, (16, 56, 56), 64, 64, 3, 1), (1, (16, 56, 56), 64, 64, 1, 1), (1, (16, 112, 112), 3, 64, 7, 2),
]  # fmt: skip
POOL_SHAPES = [(1, (64, 64, 64), 32), (1, (32, 32, 32), 128), (1, (16, 112, 112), 64)]
POOL_WINDOWS = [((2, 2, 2), (2, 2, 2)), ((3, 3, 3), (2, 2, 2)), ((3, 3, 3), (1, 1, 1)), ((1, 2, 2), (1, 2, 2))]


def listed(types: list[str]) -> Iterator[Row]:
    """The rows of the published tables; other types than float32 on one shape each, pools with every window."""
    for op in CONV:
        for batch, spatial, channels, out, k, s in CONV_SHAPES:
            if "float32" in types:
                yield Row(op.name, batch, spatial, channels, out, (k, k, k), (s, s, s))
        for dtype in (one for one in types if one != "float32"):
            yield Row(op.name, 2, (16, 16, 16), 128, 128, (3, 3, 3), (1, 1, 1), dtype)
    for op in POOL:
        for batch, spatial, channels in POOL_SHAPES:
            for window, stride in POOL_WINDOWS if "float32" in types else []:
                yield Row(op.name, batch, spatial, channels, channels, window, stride)
        for dtype in (one for one in types if one != "float32"):
            for window, stride in POOL_WINDOWS:
                yield Row(op.name, 1, (32, 32, 32), 128, 128, window, stride, dtype)


def drawn(count: int, seed: int) -> Iterator[Row]:
    """Random rows, so that nothing is tuned to the list."""
    for number in range(count):
        choose = SeededChooser(seed * 1000 + number)
        op = FAMILY[number % len(FAMILY)]
        side = choose.pick((12, 20, 28, 40, 56))
        spatial = (max(4, side // choose.pick((1, 2, 4))), side, side + choose.integer(-3, 7))
        channels = choose.pick((1, 2, 3, 6, 8, 16, 24, 32, 48, 64, 96))
        out = choose.pick((4, 8, 16, 24, 32, 48, 64, 96))
        k = choose.pick((1, 2, 3, 3, 3, 4, 5)) if op in CONV else choose.pick((2, 2, 3, 3, 4))
        s = choose.pick((1, 1, 2)) if op in CONV else choose.pick((1, 2, 2, k))
        yield Row(
            op.name,
            choose.integer(1, 3),
            spatial,
            channels,
            out if op in CONV else channels,
            (k,) * 3,
            (s,) * 3,
            source="random",
        )


def aligned(array: Array) -> Array:
    """A copy that starts at a cache line, as every framework's own allocator gives; NumPy's starts anywhere."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _call(row: Row) -> dict[str, Any]:
    random = np.random.default_rng(zlib.crc32(row.label.encode()))
    kind = numpy_type(dtypes.named(row.dtype) or dtypes.FLOAT32)

    def numbers(shape: tuple[int, ...]) -> Array:
        return aligned(random.standard_normal(shape, dtype=np.float32).astype(kind))

    op, attrs = OPS[row.op], {"strides": [1, *row.stride, 1], "padding": "SAME"}
    if any(attr.name == "ksize" for attr in op.attrs):
        attrs["ksize"] = [1, *row.window, 1]
    out = [-(-size // step) for size, step in zip(row.spatial, row.stride, strict=True)]
    shapes = {
        Side.CELLS: (row.batch, *row.spatial, row.channels),
        Side.WINDOWS: (row.batch, *out, row.out_channels),
        Side.TAPS: (*row.window, row.channels, row.out_channels),
    }
    return operands(op, shapes, numbers, lambda x: getattr(vg.raw_ops, op.map.of)(input=x, **attrs)) | attrs


def work(row: Row, call: dict[str, Any]) -> tuple[float, float]:
    """The fewest multiplications-and-additions (as FLOP) and bytes that the row needs: real taps only, tensors once."""
    problem: Problem = make_plan(OPS[row.op], call).problem
    itemsize = problem.dtype.itemsize
    # The max-pool gradients of the peers find the positions anew, so the maxima are not compulsory traffic.
    read = [value for name, value in call.items() if isinstance(value, np.ndarray) and name != OPS[row.op].maxima]
    moved = sum(array.size for array in read) * itemsize + problem.output_bytes
    if not problem.map.has_taps:
        return 0.0, moved
    taps = [sum(b - a for a, b in (axis.outputs_of_tap(t) for t in range(axis.window))) for axis in problem.axes]
    pairs = problem.batch * math.prod(taps) * (problem.in_channels // problem.groups) * problem.out_channels
    return 2.0 * pairs, moved
