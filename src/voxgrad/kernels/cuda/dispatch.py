# SPDX-License-Identifier: Apache-2.0
"""The one entry to the GPU kernels: a problem and its tensors in, the result out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import conv3d, paths, pool_avg, pool_max, tune

_POOLS: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., Any]]] = {
    "AvgPool3D": (pool_avg.avg_pool, pool_avg.plan_mean),
    "AvgPool3DGrad": (pool_avg.avg_pool_grad, pool_avg.plan_gradient),
    "MaxPool3D": (pool_max.max_pool, pool_max.plan_maximum),
    "MaxPool3DGrad": (pool_max.max_pool_grad, pool_max.plan_gradient),
    "MaxPool3DGradGrad": (pool_max.max_pool_grad_grad, pool_max.plan_second),
}
"""What runs a pool, and what only plans it."""


def run(problem: Problem, *tensors: torch.Tensor) -> torch.Tensor:
    """The result of a problem for the op's tensor inputs in order, all on one device."""
    pool = _POOLS.get(problem.op)
    for tensor in tensors:
        if not tensor.is_contiguous():
            tensors = _plain(problem, tensors)
            break
    return tune.run(problem, tensors) if pool is None else pool[0](problem, *tensors)


def _plain(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The data without gaps, but a filter as it lies, for that may be how a convolution wants it."""
    sides = problem.map.inputs
    return tuple(one if side is Side.TAPS else one.contiguous() for one, side in zip(tensors, sides, strict=True))


def asked(problem: Problem, *tensors: torch.Tensor) -> list[paths.Answer]:
    """The paths that run a problem, and with `answer.may` what else could. A convolution may be measured for that."""
    tensors = _plain(problem, tensors)
    if problem.op in _POOLS:
        with paths.heard() as answers:  # A new object: what was planned for the old one is not asked again.
            _POOLS[problem.op][1](replace(problem), *tensors)
        return answers
    choice = tune.choose(problem, tensors)
    with paths.heard() as answers:
        if choice.config is not None:
            conv3d.prepared(replace(problem), choice.config, tensors[0].dtype, tensors[0].device)
    return answers


def describe(problem: Problem, *tensors: torch.Tensor) -> str:
    """Which kernel runs a problem, in words. A convolution is measured for that if it was not before."""
    if problem.op in _POOLS:
        return "Triton, " + ", ".join(dict.fromkeys(map(str, asked(problem, *tensors))))
    return str(tune.choose(problem, _plain(problem, tensors)))
