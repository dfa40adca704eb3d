# SPDX-License-Identifier: Apache-2.0
"""Answers the same jobs here, through the public functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.catalog.registry import OPS
from voxgrad.graph.block import Output
from voxgrad.kernels.arraywise import DEAD

MOST = 2**28


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Results, gradients or an error; anything but this package's own errors is raised."""
    with vg.semantics(job.get("semantics", "tf_cpu")), vg.limits(bytes=MOST):
        try:
            return _gradient(job) if job["kind"] == "gradient" else {"outputs": outputs(job["op"], job["call"])}
        except vg.VoxgradError as error:
            return {"error": str(error)}


def outputs(op: str, call: dict[str, Any]) -> list[Any]:
    """One entry per output, a list for a list of tensors."""
    made = getattr(vg.raw_ops, op)(**call)
    if not OPS[op].outputs:
        return []
    return [None if one is DEAD else one for one in (made if isinstance(made, tuple) else (made,))]


def weights(shape: tuple[int, ...], dtype: Any) -> Any:
    """The weights of the sums that are differentiated."""
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)


def _differentiable(output: Output) -> bool:
    return output.dtype is not None and output.dtype.kind in ("float", "complex")


def _gradient(job: dict[str, Any]) -> dict[str, Any]:
    op, page, sources = OPS[job["op"]], vg.Page("call"), list[Output]()
    page.semantics = job.get("semantics", "tf_cpu")

    def const(value: Any) -> Output:
        made: Output = vg.ops.Const(page, value)
        if _differentiable(made):
            sources.append(made)
        return made

    given = {
        item.name: [const(one) for one in job["call"][item.name]] if item.many else const(job["call"][item.name])
        for item in op.inputs
    }
    attrs = {attr.name: job["call"][attr.name] for attr in op.attrs}
    block = page.add(op, given, attrs, name="tested")
    session = vg.ClientSession(page, cache=False)
    ys = [one for one in list(block.outputs)[: job["outputs"]] if _differentiable(one)]
    seeds = [weights(value.shape, value.dtype) for value in session.run(ys)]
    found = vg.gradients(ys, sources, seeds)
    kept = [one for one in found if one is not None]
    values = session.run(kept)
    made: dict[str, Any] = {"first": _spread(found, values)}
    if job["order"] > 1 and kept:
        try:
            deeper = vg.gradients(kept, sources, [weights(value.shape, value.dtype) for value in values])
            made["second"] = _spread(deeper, session.run([one for one in deeper if one is not None]))
        except vg.VoxgradError as error:
            made["second_error"] = str(error)
    return made


def _spread(found: list[Output | None], values: list[Any]) -> list[Any]:
    rest = iter(values)
    return [None if one is None else next(rest) for one in found]
