# SPDX-License-Identifier: Apache-2.0
"""The eight ops in plain NumPy and float64: the definition, written to be read.

Data is always [N, D, H, W, C] here; `evaluate` turns the other layout around it. Every function takes the problem
first, so that the arithmetic of windows stays in `voxgrad.catalog.geometry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.reference import convolution, pooling

Array = NDArray[Any]


def evaluate(problem: Problem, *tensors: Array) -> Array:
    """The result of a problem in float64 (in the integer's own type for integer tensors).

    `tensors` are the op's tensor inputs in order, without the host vectors.
    """
    op = OPS[problem.op]
    layouts = [item.layout for item in op.inputs if not item.host]
    turned = [_inward(problem, tensor, layout) for tensor, layout in zip(tensors, layouts, strict=True)]
    definition: Callable[..., Array] = getattr(convolution, problem.kernel, None) or getattr(pooling, problem.kernel)
    result = definition(problem, *turned)
    turn_back = op.outputs[0].layout == "data" and not problem.channels_last
    return np.moveaxis(result, -1, 1) if turn_back else result


def _inward(problem: Problem, tensor: Array, layout: str) -> Array:
    exact = tensor if tensor.dtype.kind in "iu" else tensor.astype(np.float64)
    return np.moveaxis(exact, 1, -1) if layout == "data" and not problem.channels_last else exact
