# SPDX-License-Identifier: Apache-2.0
"""The 3-D family in plain NumPy and float64: the definition, written to be read.

Data is always [N, D, H, W, C] here; `evaluate` turns the other layout around it. Every function takes the problem
first, so that the arithmetic of windows stays in `voxgrad.catalog.geometry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.reference import convolution, pooling

Array = NDArray[Any]

DEFINITIONS: dict[str, Callable[..., Array]] = {
    "Conv3D": convolution.conv3d,
    "Conv3DBackpropInputV2": convolution.conv3d_input,
    "Conv3DBackpropFilterV2": convolution.conv3d_filter,
    "AvgPool3D": pooling.avg_pool,
    "AvgPool3DGrad": pooling.avg_pool_grad,
    "MaxPool3D": pooling.max_pool,
    "MaxPool3DGrad": pooling.max_pool_grad,
    "MaxPool3DGradGrad": pooling.max_pool_grad_grad,
}


def evaluate(problem: Problem, *tensors: Array) -> Array:
    """The result of a problem in float64 (in the integer's own type for integer tensors).

    `tensors` are the op's tensor inputs in order, without the host vectors.
    """
    turned = [_inward(problem, *one) for one in zip(tensors, problem.map.inputs, strict=True)]
    result = DEFINITIONS[problem.op](problem, *turned)
    turn_back = problem.map.output is not Side.TAPS and not problem.channels_last
    return np.moveaxis(result, -1, 1) if turn_back else result


def _inward(problem: Problem, tensor: Array, side: Side) -> Array:
    exact = tensor if tensor.dtype.kind in "iu" else tensor.astype(np.float64)
    return exact if side is Side.TAPS or problem.channels_last else np.moveaxis(exact, 1, -1)
