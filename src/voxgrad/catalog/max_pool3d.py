# SPDX-License-Identifier: Apache-2.0
"""MaxPool3D, its gradient and the gradient's gradient: a selection, its scatter and its gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Input, Law, Node, Op, Output
from voxgrad.catalog.pool3d import ATTRS, DATA, LAWS, finished, forward_problem, pool_problem
from voxgrad.catalog.problem import Problem, same_shape, volume
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


def _common(data: DType | None, grad: DType | None) -> tuple[DType, DType] | None:
    """The types to compare in and to return: exact for both where a call mixes them."""
    if data is None or grad is None:
        return None
    if data == grad:
        return data, grad
    return (dtypes.FLOAT64 if dtypes.FLOAT64 in (data, grad) else dtypes.FLOAT32), grad


def _gradient_problem(call: Call, faults: Faults) -> Problem | None:
    compat = call.semantics == "tf_cpu"
    types = _common(call.inputs["orig_input"].dtype, call.inputs["grad"].dtype)
    for name in ("orig_output", "grad"):
        volume(call, name, faults)
    sized = ("orig_input", volume(call, "orig_input", faults))
    made = pool_problem(call, sized, types, faults, overreach=compat, near_ties=compat)
    if made is not None:
        same_shape(call, "orig_output", made.output_extent, "the shape of the pool's output", faults)
        same_shape(call, "grad", made.output_extent, "the shape of orig_output", faults)
    return finished(made, forward=False, faults=faults)


def _second_problem(call: Call, faults: Faults) -> Problem | None:
    dtype = call.inputs["orig_input"].dtype
    types = None if dtype is None else (dtype, dtype)
    for name in ("orig_output", "grad"):
        volume(call, name, faults)
    made = pool_problem(call, ("orig_input", volume(call, "orig_input", faults)), types, faults)
    if made is not None:
        same_shape(call, "orig_output", made.output_extent, "the shape of the pool's output", faults)
        same_shape(call, "grad", made.input_extent, "the shape of orig_input", faults)
    for name in ("orig_input", "orig_output", "grad"):
        shape = call.inputs[name].shape
        if shape is not None and math.prod(shape) == 0:
            faults.add("VG017", name, wanted="have elements", got=list(shape))
    return finished(made, forward=True, faults=faults)


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
    inputs=(Input("input", "T", "The volume.", DATA, layout="data"),),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The maximum of every window.", "[N, D', H', W', C]", layout="data"),),
    types={"T": dtypes.FLOATING},
    laws=_LAWS,
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = vg.raw_ops.MaxPool3D(input=x, ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME")
print(y.ravel())  # [15. 16. 31. 32.]""",
    problem=forward_problem,
    kernel="max_pool",
    gradient=_forward_gradient,
)

MAX_POOL3D_GRAD = Op(
    name="MaxPool3DGrad",
    group="nn",
    summary="Gradient of MaxPool3D with respect to its input.",
    inputs=(
        Input("orig_input", "TInput", "The input of the pool.", DATA, layout="data"),
        Input("orig_output", "TInput", "The output of the pool.", DATA, layout="data"),
        Input("grad", "T", "The gradient with respect to the output of the pool.", DATA, layout="data"),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The gradient with respect to the input.", "shape of orig_input", layout="data"),),
    types={"T": dtypes.FLOATING, "TInput": dtypes.FLOATING},
    type_defaults={"T": dtypes.FLOAT32, "TInput": dtypes.FLOAT32},
    laws=_LAWS,
    example="""\
x = np.arange(1, 17, dtype=np.float32).reshape(1, 2, 2, 2, 2)
y = np.array([15, 16], np.float32).reshape(1, 1, 1, 1, 2)
dx = vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=y, ksize=[1, 2, 2, 2, 1],
                              strides=[1, 2, 2, 2, 1], padding="VALID")
print(dx[0, 1, 1])  # [[ 0.  0.] [15. 16.]]""",
    problem=_gradient_problem,
    kernel="max_pool_grad",
    gradient=_gradient_gradient,
    linear_in=("grad",),
)

MAX_POOL3D_GRAD_GRAD = Op(
    name="MaxPool3DGradGrad",
    group="nn",
    summary="Second-order gradient of MaxPool3D: takes, per window, the gradient at the cell that won.",
    inputs=(
        Input("orig_input", "T", "The input of the pool.", DATA, layout="data"),
        Input("orig_output", "T", "The output of the pool.", DATA, layout="data"),
        Input("grad", "T", "A tensor like orig_input.", DATA, layout="data"),
    ),
    attrs=ATTRS,
    outputs=(Output("output", "T", "The values of grad at the winners.", "shape of orig_output", layout="data"),),
    types={"T": dtypes.REAL},
    laws=(*_LAWS, Law("empty", "Empty tensors are refused, as TensorFlow does.")),
    example="""\
x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
y = np.array([15, 16, 31, 32], np.float32).reshape(2, 1, 1, 1, 2)
g = vg.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=x / 2, ksize=[1, 4, 3, 2, 1],
                                 strides=[1, 4, 3, 2, 1], padding="SAME")
print(g.ravel())  # [ 7.5  8.  15.5 16. ]""",
    problem=_second_problem,
    kernel="max_pool_grad_grad",
    gradient=_second_gradient,
    linear_in=("grad",),
)

OPS = (MAX_POOL3D, MAX_POOL3D_GRAD, MAX_POOL3D_GRAD_GRAD)
