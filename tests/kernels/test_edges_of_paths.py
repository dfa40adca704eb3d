# SPDX-License-Identifier: Apache-2.0
"""Shapes at the edge of what a fast path can do, each of which was once on the wrong side. The sweep finds others."""

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import run, run_poisoned, truth


def wide(values: tuple[int, int, int], channels_last: bool = True) -> list[int]:
    """Spatial values as an attribute."""
    return [1, *values, 1] if channels_last else [1, 1, *values]


@pytest.mark.parametrize("channels", [8, 16, 17, 64])
@pytest.mark.parametrize(("window", "stride"), [(4, 1), (5, 1), (6, 1), (8, 2), (9, 2), (9, 1), (13, 3)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_average_gradient_of_windows_wider_than_four_strides(
    axis: int, window: int, stride: int, channels: int, isa: str
) -> None:
    """Few windows exist, but a cell has as many places for them as strides fit into a window."""
    for windows in (1, 2, 3, 4, 5, 6):
        place = [1, 1, 1]
        place[axis] = windows
        size, ksize, strides = [1, 1, 1], [1, 1, 1], [1, 1, 1]
        size[axis], ksize[axis], strides[axis] = window + (windows - 1) * stride, window, stride
        call: dict[str, Any] = {
            "orig_input_shape": [1, *size, channels],
            "grad": np.ones((1, *place, channels), np.float32),
            "ksize": [1, *ksize, 1],
            "strides": [1, *strides, 1],
            "padding": "VALID",
        }
        truth("AvgPool3DGrad", call).check(run_poisoned("AvgPool3DGrad", call), label=f"{windows} windows")


def test_average_gradient_of_two_windows_of_five_cells(isa: str) -> None:
    result = vg.raw_ops.AvgPool3DGrad(
        orig_input_shape=[1, 1, 1, 6, 16],
        grad=np.ones((1, 1, 1, 2, 16), np.float32),
        ksize=[1, 1, 1, 5, 1],
        strides=[1, 1, 1, 1, 1],
        padding="VALID",
    )
    assert np.allclose(result[0, 0, 0, :, 3], [0.2, 0.4, 0.4, 0.4, 0.4, 0.2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outs", [4, 8, 16, 32])
def test_filter_gradient_of_a_single_cell_under_several_windows(outs: int, dtype: type, isa: str) -> None:
    """With channels first the channels of a single cell lie side by side, those of its windows do not."""
    from voxgrad.catalog import geometry
    from voxgrad.catalog.conv3d import CONV3D_BACKPROP_FILTER
    from voxgrad.catalog.dtypes import FLOAT32, FLOAT64
    from voxgrad.catalog.problem import Problem
    from voxgrad.kernels import cpu
    from voxgrad.reference import evaluate

    random = np.random.default_rng(outs)
    op = CONV3D_BACKPROP_FILTER
    for before in (0, 1, 2):
        axis = geometry.Axis(size=1, out=3, window=1, before=before)
        idle = geometry.Axis(size=1, out=1, window=1)
        kind = FLOAT32 if dtype is np.float32 else FLOAT64
        problem = Problem(
            op.name, op.map, kind, kind, (1, 1, 1, 16, outs), False, 2, 16, outs, 1,
            (idle, idle, axis),
        )  # fmt: skip
        x = random.integers(-4, 5, (2, 16, 1, 1, 1)).astype(dtype)
        dy = random.integers(-4, 5, (2, outs, 1, 1, 3)).astype(dtype)
        result = np.full(problem.output_shape, np.nan, dtype)
        cpu.run(problem, [x.ctypes.data, dy.ctypes.data, result.ctypes.data])
        np.testing.assert_array_equal(result, evaluate(problem, x, dy))


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("window", "stride"), [(3, 1), (3, 2), (5, 2), (2, 2)])
def test_the_sign_of_a_nan_does_not_depend_on_threads(
    window: int, stride: int, dtype: type, channels_last: bool, isa: str, threads: None
) -> None:
    """NaN of both signs and infinities, whose sum depends on which of two comes first."""
    random = np.random.default_rng(window * 10 + stride)
    spatial, channels = (7, 43, 40), 8
    shape = (1, *spatial, channels) if channels_last else (1, channels, *spatial)
    attrs: dict[str, Any] = {
        "ksize": wide((window,) * 3, channels_last),
        "strides": wide((stride,) * 3, channels_last),
        "padding": "SAME",
        "data_format": "NDHWC" if channels_last else "NCDHW",
    }
    grad = vg.raw_ops.AvgPool3D(input=random.standard_normal(shape).astype(dtype), **attrs)
    for value in (np.nan, -np.nan, np.inf, -np.inf):
        grad[random.random(grad.shape) < 0.1] = value
    call = {"orig_input_shape": list(shape), "grad": grad} | attrs
    results = []
    for count in (1, 2, 3, 5, 8):
        vg.set_num_threads(count)
        results.append(run("AvgPool3DGrad", call).tobytes())
    assert results.count(results[0]) == len(results)
