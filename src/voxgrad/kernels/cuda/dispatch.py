# SPDX-License-Identifier: Apache-2.0
"""The one entry to the GPU kernels: a problem and its tensors in, the result out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import pool_avg, pool_max, tune

_POOLS: dict[str, Callable[..., torch.Tensor]] = {
    "avg_pool": pool_avg.avg_pool,
    "avg_pool_grad": pool_avg.avg_pool_grad,
    "max_pool": pool_max.max_pool,
    "max_pool_grad": pool_max.max_pool_grad,
    "max_pool_grad_grad": pool_max.max_pool_grad_grad,
}


def run(problem: Problem, *tensors: torch.Tensor) -> torch.Tensor:
    """The result of a problem for the op's tensor inputs in order, all on one device."""
    dense = tuple(tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors)
    pool = _POOLS.get(problem.kernel)
    return tune.run(problem, *dense) if pool is None else pool(problem, *dense)


def describe(problem: Problem, *tensors: torch.Tensor) -> str:
    """Which kernel runs a problem, in words. A convolution is measured for that if it was not before."""
    if problem.kernel in _POOLS:
        return "Triton"
    return str(tune.choose(problem, tuple(tensor.contiguous() for tensor in tensors)))
