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

_FILTERS = {"conv3d": 1, "conv3d_input": 0}
"""Which tensor of an op is a filter."""


def run(problem: Problem, *tensors: torch.Tensor) -> torch.Tensor:
    """The result of a problem for the op's tensor inputs in order, all on one device."""
    pool = _POOLS.get(problem.kernel)
    for tensor in tensors:
        if not tensor.is_contiguous():
            tensors = _plain(problem, tensors)
            break
    return tune.run(problem, tensors) if pool is None else pool(problem, *tensors)


def _plain(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The data without gaps, but a filter as it lies, for that may be how a convolution wants it."""
    at = _FILTERS.get(problem.kernel)
    return tuple(tensor if index == at else tensor.contiguous() for index, tensor in enumerate(tensors))


def describe(problem: Problem, *tensors: torch.Tensor) -> str:
    """Which kernel runs a problem, in words. A convolution is measured for that if it was not before."""
    if problem.kernel in _POOLS:
        return "Triton"
    return str(tune.choose(problem, _plain(problem, tensors)))
