# SPDX-License-Identifier: Apache-2.0
"""MaxPool3DGradGrad where windows overlap: equal maxima, numbers that are none, outputs that another pool made."""

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import Array, run_poisoned, truth
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog.dtypes import FLOATING, DType

NAME = "MaxPool3DGradGrad"
# Window, stride: every number of rows and planes that wait, windows with gaps between them, windows cut at both ends.
WINDOWS = [
    ((3, 3, 3), (1, 1, 1)), ((3, 3, 3), (2, 2, 2)), ((2, 2, 2), (1, 1, 1)), ((4, 4, 4), (2, 2, 2)),
    ((5, 4, 3), (1, 3, 2)), ((1, 3, 3), (3, 1, 1)), ((1, 1, 5), (1, 1, 1)), ((8, 2, 2), (1, 1, 1)),
]  # fmt: skip


def volume(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Numbers with the trouble of that kind in them."""
    x: Array = random.standard_normal(shape)
    if kind == "ties":
        return np.round(x)
    if kind == "zeros":
        return np.where(random.random(shape) < 0.5, 0.0, -0.0)
    if kind == "no numbers":
        x[random.random(shape) < 0.6] = np.nan
        x[random.random(shape) < 0.4] = -np.inf
        x[random.random(shape) < 0.02] = np.inf
    return x


def call_of(x: Array, window: tuple[int, ...], stride: tuple[int, ...], padding: str) -> dict[str, Any]:
    """The call whose every cell has a gradient of its own."""
    attrs: dict[str, Any] = {"ksize": [1, *window, 1], "strides": [1, *stride, 1], "padding": padding}
    grad = np.arange(1, x.size + 1).reshape(x.shape).astype(x.dtype)
    return {"orig_input": x, "orig_output": vg.raw_ops.MaxPool3D(input=x, **attrs), "grad": grad, **attrs}


@pytest.mark.parametrize("kind", ["normal", "ties", "zeros", "no numbers", "other outputs"])
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_overlapping_windows(kind: str, dtype: DType, isa: str) -> None:
    random = np.random.default_rng(7)
    for number, (window, stride) in enumerate(WINDOWS):
        for channels in (1, 3, 16, 37):
            x = volume(kind, (2, 8, 9, 11, channels), random).astype(numpy_type(dtype))
            call = call_of(x, window, stride, ("SAME", "VALID")[number % 2])
            if kind == "other outputs":
                y = np.array(call["orig_output"])
                y[random.random(y.shape) < 0.3] = x[0, 0, 0, 0, 0]
                call["orig_output"] = y
            truth(NAME, call).check(run_poisoned(NAME, call), exact=True, label=f"{window} {stride} {channels}")


@pytest.mark.parametrize("shape", [(1, 3, 3, 300, 48), (1, 4, 5, 3, 1100), (1, 5, 40, 40, 32), (1, 3, 70, 4, 64)])
@pytest.mark.parametrize("step", [1, 2])
def test_volumes_cut_along_every_axis(shape: tuple[int, ...], step: int, isa: str, threads: None) -> None:
    """Rows too long for one tile, channels too many for one turn, heights and depths for several blocks."""
    x = volume("ties", shape, np.random.default_rng(step)).astype(np.float32)
    call = call_of(x, (3, 3, 3), (step,) * 3, "SAME")
    known = truth(NAME, call)
    for count in (1, 2, 3):
        vg.set_num_threads(count)
        known.check(run_poisoned(NAME, call), exact=True, label=f"{shape} {count} threads")
