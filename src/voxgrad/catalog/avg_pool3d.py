# SPDX-License-Identifier: Apache-2.0
"""AvgPool3D and its gradient: a linear map and its transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Input, Law, Node, Op, Output, Side
from voxgrad.catalog.pool3d import ATTRS, DATA, LAWS, pool_problem

_LAWS = (
    *LAWS,
    Law("count", "A window is divided by the number of its cells inside the data, also at the border."),
    Law("nan", "NaN and infinities propagate."),
    Law("precision", "half and bfloat16 are summed in float32 and rounded once; float64 is summed in float64."),
)


def _forward_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.AvgPool3DGrad(build.Shape(node.inputs[0]), dys[0], **node.attrs),)


def _gradient_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (None, build.AvgPool3D(dys[0], **node.attrs))


AVG_POOL3D = Op(
    name="AvgPool3D",
    group="nn",
    summary="Average over 3-D windows.",
    inputs=(Input("input", "T", "The volume.", DATA, side=Side.CELLS),),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The mean of every window.", "[N, D', H', W', C]", side=Side.WINDOWS),),
    types={"T": dtypes.FLOATING},
    laws=_LAWS,
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = vg.raw_ops.AvgPool3D(input=x, ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME")
print(y.ravel())  # [ 8.  9. 24. 25.]""",
    problem=pool_problem,
    gradient=_forward_gradient,
    linear_in=("input",),
)

AVG_POOL3D_GRAD = Op(
    name="AvgPool3DGrad",
    group="nn",
    summary="Gradient of AvgPool3D with respect to its input.",
    inputs=(
        Input(
            "orig_input_shape",
            dtypes.INT32,
            "The shape of the input of the pool, 5 integers.",
            "[5]",
            host=True,
            side=Side.CELLS,
        ),
        Input("grad", "T", "The gradient with respect to the output of the pool.", DATA, side=Side.WINDOWS),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "orig_input_shape", side=Side.CELLS),),
    types={"T": dtypes.FLOATING},
    laws=(*_LAWS, Law("empty", "Cells that no window covers get 0.")),
    example="""\
g = np.array([8, 16, 24, 32], np.float32).reshape(2, 1, 1, 1, 2)
dx = vg.raw_ops.AvgPool3DGrad(orig_input_shape=[2, 2, 2, 2, 2], grad=g, ksize=[1, 4, 3, 2, 1],
                              strides=[1, 4, 3, 2, 1], padding="SAME")
print(dx[:, 0, 0, 0])  # [[1. 2.] [3. 4.]]""",
    problem=pool_problem,
    of="AvgPool3D",
    gradient=_gradient_gradient,
    linear_in=("grad",),
)

OPS = (AVG_POOL3D, AVG_POOL3D_GRAD)
