# SPDX-License-Identifier: Apache-2.0
"""A ninth op of the family, all of it in this file: sums over windows, and the transpose that is their gradient.

Importing it declares it, before any other room is loaded: as if it stood in the catalogue. `test_ninth_op` finds what
every room makes of it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

spec = importlib.util.find_spec("voxgrad")
assert spec is not None and spec.loader is not None and "voxgrad" not in sys.modules
package = sys.modules["voxgrad"] = importlib.util.module_from_spec(spec)

# Until the package itself runs, these are only the rooms on the left.
from voxgrad import reference  # noqa: E402
from voxgrad.catalog import dtypes, registry  # noqa: E402
from voxgrad.catalog.model import Input, Law, Node, Op, Output, Side  # noqa: E402
from voxgrad.catalog.pool3d import ATTRS, DATA, LAWS, pool_problem  # noqa: E402
from voxgrad.catalog.problem import Problem  # noqa: E402
from voxgrad.reference.pooling import windows  # noqa: E402

Array = np.ndarray[Any, Any]


def _forward_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.SumPool3DGrad(build.Shape(node.inputs[0]), dys[0], **node.attrs),)


def _transposed_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (None, build.SumPool3D(dys[0], **node.attrs))


SUM_POOL3D = Op(
    name="SumPool3D",
    group="nn",
    summary="Sum over 3-D windows.",
    inputs=(Input("input", "T", "The volume.", DATA, side=Side.CELLS),),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The sum of every window.", "[N, D', H', W', C]", side=Side.WINDOWS),),
    types={"T": dtypes.FLOATING},
    laws=LAWS,
    example="""\
x = np.arange(1, 9, dtype=np.float32).reshape(1, 2, 2, 2, 1)
y = vg.raw_ops.SumPool3D(input=x, ksize=[1, 1, 2, 2, 1], strides=[1, 1, 2, 2, 1], padding="SAME")
print(y.ravel())  # [10. 26.]""",
    problem=pool_problem,
    gradient=_forward_gradient,
    linear_in=("input",),
    own=True,
)

SUM_POOL3D_GRAD = Op(
    name="SumPool3DGrad",
    group="nn",
    summary="Gradient of SumPool3D with respect to its input.",
    inputs=(
        Input("orig_input_shape", dtypes.INT32, "The shape of its input.", "[5]", host=True, side=Side.CELLS),
        Input("grad", "T", "The gradient with respect to its output.", DATA, side=Side.WINDOWS),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "orig_input_shape", side=Side.CELLS),),
    types={"T": dtypes.FLOATING},
    laws=(*LAWS, Law("empty", "Cells that no window covers get 0.")),
    example="""\
g = np.array([1, 2], np.float32).reshape(1, 2, 1, 1, 1)
dx = vg.raw_ops.SumPool3DGrad(orig_input_shape=[1, 2, 2, 1, 1], grad=g, ksize=[1, 1, 2, 1, 1],
                              strides=[1, 1, 2, 1, 1], padding="SAME")
print(dx.ravel())  # [1. 1. 2. 2.]""",
    problem=pool_problem,
    of="SumPool3D",
    gradient=_transposed_gradient,
    linear_in=("grad",),
    own=True,
)


def sum_pool(problem: Problem, x: Array) -> Array:
    y = np.zeros((problem.batch, *(axis.out for axis in problem.axes), problem.out_channels))
    for output, cells, _ in windows(problem):
        y[output] = x[cells].sum(axis=(1, 2, 3))
    return y


def sum_pool_grad(problem: Problem, dy: Array) -> Array:
    dx = np.zeros((problem.batch, *(axis.size for axis in problem.axes), problem.in_channels))
    for output, cells, _ in windows(problem):
        dx[cells] += dy[output][:, None, None, None, :]
    return dx


registry.FAMILY += (SUM_POOL3D, SUM_POOL3D_GRAD)
registry.OPS |= {op.name: op for op in (SUM_POOL3D, SUM_POOL3D_GRAD)}
reference.DEFINITIONS |= {"SumPool3D": sum_pool, "SumPool3DGrad": sum_pool_grad}
spec.loader.exec_module(package)
