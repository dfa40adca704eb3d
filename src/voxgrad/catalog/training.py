# SPDX-License-Identifier: Apache-2.0
"""Optimiser steps: they change variables in the direction of a gradient."""

from __future__ import annotations

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import has_rank, same_shapes, specs
from voxgrad.errors import Faults

_SLOT = {
    "accum": "The accumulated squares.",
    "accum_update": "The accumulated squares of the updates.",
    "gradient_accumulator": "The sum of the gradients.",
    "gradient_squared_accumulator": "The sum of their squares.",
    "linear": "The linear term.",
    "m": "The first moment.",
    "mg": "The running mean of the gradients.",
    "mom": "The momentum.",
    "ms": "The running mean of their squares.",
    "v": "The second moment.",
    "var": "The variable.",
}
_SCALAR = {
    "alpha": "The step size.",
    "beta1": "The decay of the first moment.",
    "beta1_power": "beta1 to the power of the step number.",
    "beta2": "The decay of the second moment.",
    "beta2_power": "beta2 to the power of the step number.",
    "epsilon": "Keeps the divisor from 0.",
    "l1": "The strength of the absolute-value penalty.",
    "l2": "The strength of the squared penalty.",
    "lr": "The step size.",
    "lr_power": "The power of the step size, 0 or less.",
    "momentum": "How much of the last step is kept.",
    "rho": "The decay.",
}
_LOCKING = Attr("use_locking", "bool", "Changes of one variable never overlap here, whatever this says.", False)


def _infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    tensors = [item.name for item in call.op.inputs if item.ref or item.name in ("grad", "delta")]
    shape = same_shapes(call, tensors, faults)
    for item in call.op.inputs:
        if item.name not in tensors:
            has_rank(call, item.name, 0, faults)
    return None if faults else specs(call, shape)


def _step(name: str, summary: str, kernel: str, arguments: str, *attrs: Attr, law: str) -> Op:
    """An optimiser step; what its arguments mean follows from their names."""
    inputs = []
    for argument in arguments.split():
        if argument in _SLOT:
            inputs.append(Input(argument, "T", _SLOT[argument], "" if argument == "var" else "shape of var", ref=True))
        elif argument == "global_step":
            inputs.append(Input(argument, dtypes.INT64, "The number of the step.", "[]"))
        elif argument in ("grad", "delta"):
            inputs.append(Input(argument, "T", "The gradient.", "shape of var"))
        else:
            inputs.append(Input(argument, "T", _SCALAR[argument], "[]"))
    return Op(
        name, "training", summary, tuple(inputs), (_LOCKING, *attrs),
        (Output("out", "T", "The variable, after the step.", "shape of var", ref=True),), {"T": dtypes.NUMBER},
        infer=_infer, kernel=f"training.{kernel}", stateful=True, laws=(Law("step", law),),
    )  # fmt: skip


OPS = (
    _step("ApplyGradientDescent", "A step of gradient descent.", "gradient_descent", "var alpha delta",
          law="var -= alpha * delta."),
    _step("ApplyMomentum", "A step of gradient descent with momentum.", "momentum", "var accum lr grad momentum",
          Attr("use_nesterov", "bool", "Look ahead by the momentum.", False),
          law="accum = momentum * accum + grad; var -= lr * accum, or lr * (grad + momentum * accum) for Nesterov."),
    _step("ApplyAdam", "A step of Adam.", "adam", "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad",
          Attr("use_nesterov", "bool", "Look ahead by the first moment.", False),
          law="m += (1 - beta1) * (grad - m); v += (1 - beta2) * (grad * grad - v); "
              "var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)."),
    _step("ApplyRMSProp", "A step of RMSProp.", "rms_prop", "var ms mom lr rho momentum epsilon grad",
          law="ms += (1 - rho) * (grad * grad - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); "
              "var -= mom."),
    _step("ApplyCenteredRMSProp", "A step of RMSProp with the variance of the gradient.", "centered_rms_prop",
          "var mg ms mom lr rho momentum epsilon grad",
          law="ms and mg follow grad * grad and grad; "
              "mom = momentum * mom + lr * grad / sqrt(ms - mg * mg + epsilon)."),
    _step("ApplyAdagrad", "A step of Adagrad.", "adagrad", "var accum lr grad",
          Attr("update_slots", "bool", "Add to accum.", True),
          law="accum += grad * grad; var -= lr * grad / sqrt(accum)."),
    _step("ApplyAdadelta", "A step of Adadelta.", "adadelta", "var accum accum_update lr rho epsilon grad",
          law="update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; var -= lr * update."),
    _step("ApplyFtrl", "A step of FTRL-proximal.", "ftrl", "var accum linear grad lr l1 l2 lr_power",
          Attr("multiply_linear_by_lr", "bool", "linear is kept multiplied by lr.", False),
          law="linear += grad - (accum_new**-lr_power - accum**-lr_power) / lr * var; "
              "var minimises the penalised sum."),
    _step("ApplyProximalGradientDescent", "A step of proximal gradient descent.", "proximal_gradient_descent",
          "var alpha l1 l2 delta", law="The step is shrunk by alpha * l1 towards 0 and divided by 1 + alpha * l2."),
    _step("ApplyProximalAdagrad", "A step of proximal Adagrad.", "proximal_adagrad", "var accum lr l1 l2 grad",
          law="As ApplyProximalGradientDescent with the step lr / sqrt(accum)."),
    _step("ApplyAdagradDA", "A step of dual-averaging Adagrad.", "adagrad_da",
          "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
          law="var = -lr * shrink(sum of grads) / (l2 * step * lr + sqrt(sum of squares))."),
)  # fmt: skip
