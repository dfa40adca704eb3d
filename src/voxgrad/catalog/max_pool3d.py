# SPDX-License-Identifier: Apache-2.0
"""MaxPool3D, its gradient and the gradient's gradient: a selection, its scatter and its gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Call, Input, Law, Node, Op, Output, Side
from voxgrad.catalog.pool3d import ATTRS, DATA, LAWS, pool_problem
from voxgrad.catalog.problem import Problem
from voxgrad.errors import Faults

_LAWS = (
    *LAWS,
    Law(
        "ties",
        "The first cell of the window, in depth, height, width order, that equals the maximum takes the whole "
        "gradient. Under tf_cpu every cell closer than 1e-5 to it takes it in MaxPool3DGrad.",
    ),
    Law(
        "nan",
        "NaN never wins a comparison; the maximum of a window of NaN alone is -inf, and nobody takes its gradient.",
    ),
)


def _second_problem(call: Call, faults: Faults) -> Problem | None:
    for name, spec in call.inputs.items():
        if spec.shape is not None and math.prod(spec.shape) == 0:
            faults.add("VG017", name, wanted="have elements", got=list(spec.shape))
    return pool_problem(call, faults)


def _forward_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.MaxPool3DGrad(node.inputs[0], node.outputs[0], dys[0], **node.attrs),)


def _gradient_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, y, _ = node.inputs
    return (build.ZerosLike(x), build.ZerosLike(y), build.MaxPool3DGradGrad(x, y, dys[0], **node.attrs))


def _second_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    x, y, _ = node.inputs
    return (build.ZerosLike(x), build.ZerosLike(y), build.MaxPool3DGrad(x, y, dys[0], **node.attrs))


MAX_POOL3D = Op(
    name="MaxPool3D",
    group="nn",
    summary="Maximum over 3-D windows.",
    inputs=(Input("input", "T", "The volume.", DATA, side=Side.CELLS),),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The maximum of every window.", "[N, D', H', W', C]", side=Side.WINDOWS),),
    types={"T": dtypes.FLOATING},
    laws=_LAWS,
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = vg.raw_ops.MaxPool3D(input=x, ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME")
print(y.ravel())  # [15. 16. 31. 32.]""",
    problem=pool_problem,
    selects=True,
    gradient=_forward_gradient,
)

MAX_POOL3D_GRAD = Op(
    name="MaxPool3DGrad",
    group="nn",
    summary="Gradient of MaxPool3D with respect to its input.",
    inputs=(
        Input("orig_input", "TInput", "The input of the pool.", DATA, side=Side.CELLS),
        Input("orig_output", "TInput", "The output of the pool.", DATA, side=Side.WINDOWS),
        Input("grad", "T", "The gradient with respect to the output of the pool.", DATA, side=Side.WINDOWS),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "shape of orig_input", side=Side.CELLS),),
    types={"T": dtypes.FLOATING, "TInput": dtypes.FLOATING},
    type_defaults={"T": dtypes.FLOAT32, "TInput": dtypes.FLOAT32},
    laws=_LAWS,
    example="""\
x = np.arange(1, 17, dtype=np.float32).reshape(1, 2, 2, 2, 2)
y = np.array([15, 16], np.float32).reshape(1, 1, 1, 1, 2)
dx = vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=y, ksize=[1, 2, 2, 2, 1],
                              strides=[1, 2, 2, 2, 1], padding="VALID")
print(dx[0, 1, 1])  # [[ 0.  0.] [15. 16.]]""",
    problem=pool_problem,
    of="MaxPool3D",
    selects=True,
    gradient=_gradient_gradient,
    linear_in=("grad",),
)

MAX_POOL3D_GRAD_GRAD = Op(
    name="MaxPool3DGradGrad",
    group="nn",
    summary="Second-order gradient of MaxPool3D: takes, per window, the gradient at the cell that won.",
    inputs=(
        Input("orig_input", "T", "The input of the pool.", DATA, side=Side.CELLS),
        Input("orig_output", "T", "The output of the pool.", DATA, side=Side.WINDOWS),
        Input("grad", "T", "A tensor like orig_input.", DATA, side=Side.CELLS),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The values of grad at the winners.", "shape of orig_output", side=Side.WINDOWS),),
    types={"T": dtypes.REAL},
    laws=(*_LAWS, Law("empty", "Empty tensors are refused, as TensorFlow does.")),
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = np.array([15, 16, 31, 32], np.float32).reshape(2, 1, 1, 1, 2)
g = vg.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=x / 2, ksize=[1, 4, 3, 2, 1],
                                 strides=[1, 4, 3, 2, 1], padding="SAME")
print(g.ravel())  # [ 7.5  8.  15.5 16. ]""",
    problem=_second_problem,
    of="MaxPool3D",
    selects=True,
    gradient=_second_gradient,
    linear_in=("grad",),
)

OPS = (MAX_POOL3D, MAX_POOL3D_GRAD, MAX_POOL3D_GRAD_GRAD)
