# SPDX-License-Identifier: Apache-2.0
"""Optimiser steps: they change variables in the direction of a gradient.

Each step of the table is declared in up to four forms: on whole variables or on the rows that indices name (Sparse),
and on variables or on handles of variables (Resource).
"""

from __future__ import annotations

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import check_same, has_rank, same_shapes, specs
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
    scalars = [item.name for item in call.op.inputs if item.shape == "[]"]
    if "indices" in call.inputs:
        tensors.remove("grad")
        _check_rows(call, tensors, faults)
    shape = same_shapes(call, tensors, faults) if tensors and tensors[0] == "var" else None
    for name in scalars:
        has_rank(call, name, 0, faults)
    return None if faults else specs(call, *(shape for _ in call.op.outputs))


def _check_rows(call: Call, refs: list[str], faults: Faults) -> None:
    """The gradient has a row for each index, of the size of the variables' rows."""
    for name in refs:
        has_rank(call, name, 1, faults, at_least=True)
    fine = has_rank(call, "indices", 1, faults) and has_rank(call, "grad", 1, faults, at_least=True)
    if faults or not fine:
        return
    (count,), grad = call.inputs["indices"].shape, call.inputs["grad"].shape
    var = call.inputs["var"].shape if refs else None
    rest = grad[1:] if var is None else var[1:]
    check_same("grad", grad, (count, *rest),
               "a row for each index, as the variable has them", faults)  # fmt: skip


def _input(argument: str, *, rows: bool, handle: bool) -> Input:
    """An argument of a step; what it means follows from its name."""
    if argument in _SLOT:
        doc = _SLOT[argument]
        if handle:
            return Input(argument, dtypes.RESOURCE, f"{doc[:-1]}, as a handle.")
        return Input(argument, "T", doc, "" if argument == "var" else "shape of var", ref=True)
    if argument == "global_step":
        return Input(argument, dtypes.INT64, "The number of the step.", "[]")
    if argument == "indices":
        return Input(argument, "Tindices", "The rows; one that is named twice is changed twice.", "[n]")
    if argument in ("grad", "delta"):
        shape = "[n, ...]" if rows else "" if handle else "shape of var"
        return Input(argument, "T", "The gradient of these rows." if rows else "The gradient.", shape)
    return Input(argument, "T", _SCALAR[argument], "[]")


_OUT = Output("out", "T", "The variable, after the step.", "shape of var", ref=True)


def _form(name: str, summary: str, kernel: str, arguments: list[str], attrs: tuple[Attr, ...], law: str, *,
          rows: bool, handle: bool) -> Op:  # fmt: skip
    ways = ("Resource" if handle else "") + ("Sparse" if rows else "")
    summary = summary[:-1] + (" on rows of variables" if rows else "") + (", by their handles." if handle else ".")
    return Op(
        f"{ways}Apply{name}", "training", summary,
        tuple(_input(one, rows=rows, handle=handle) for one in arguments), (_LOCKING, *attrs),
        () if handle else (_OUT,),
        {"T": dtypes.NUMBER} | ({"Tindices": dtypes.INDEX} if rows else {}), infer=_infer,
        kernel=f"training.{kernel}_rows" if rows else f"training.{kernel}", stateful=True, laws=(Law("step", law),),
    )  # fmt: skip


def _step(name: str, summary: str, kernel: str, arguments: str, *attrs: Attr, law: str, rows: bool = True) -> list[Op]:
    """All forms of an optimiser step; `rows`: there is one for rows."""
    whole = arguments.split()
    chosen = [
        one for argument in whole for one in (("grad", "indices") if argument in ("grad", "delta") else (argument,))
    ]
    return [
        _form(name, summary, kernel, chosen if by_rows else whole, attrs, law, rows=by_rows, handle=handle)
        for by_rows in ((False, True) if rows else (False,))
        for handle in (False, True)
    ]


OPS = (
    *_step("GradientDescent", "A step of gradient descent.", "gradient_descent", "var alpha delta",
          law="var -= alpha * delta.", rows=False),
    *_step("Momentum", "A step of gradient descent with momentum.", "momentum", "var accum lr grad momentum",
          Attr("use_nesterov", "bool", "Look ahead by the momentum.", False),
          law="accum = momentum * accum + grad; var -= lr * accum, or lr * (grad + momentum * accum) for Nesterov."),
    *_step("Adam", "A step of Adam.", "adam", "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad",
          Attr("use_nesterov", "bool", "Look ahead by the first moment.", False),
          law="m += (1 - beta1) * (grad - m); v += (1 - beta2) * (grad * grad - v); "
              "var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon).", rows=False),
    *_step("RMSProp", "A step of RMSProp.", "rms_prop", "var ms mom lr rho momentum epsilon grad",
          law="ms += (1 - rho) * (grad * grad - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); "
              "var -= mom."),
    *_step("CenteredRMSProp", "A step of RMSProp with the variance of the gradient.", "centered_rms_prop",
          "var mg ms mom lr rho momentum epsilon grad",
          law="ms and mg follow grad * grad and grad; "
              "mom = momentum * mom + lr * grad / sqrt(ms - mg * mg + epsilon)."),
    *_step("Adagrad", "A step of Adagrad.", "adagrad", "var accum lr grad",
          Attr("update_slots", "bool", "Add to accum.", True),
          law="accum += grad * grad; var -= lr * grad / sqrt(accum)."),
    *_step("Adadelta", "A step of Adadelta.", "adadelta", "var accum accum_update lr rho epsilon grad",
          law="update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; var -= lr * update."),
    *_step("Ftrl", "A step of FTRL-proximal.", "ftrl", "var accum linear grad lr l1 l2 lr_power",
          Attr("multiply_linear_by_lr", "bool", "linear is kept multiplied by lr.", False),
          law="linear += grad - (accum_new**-lr_power - accum**-lr_power) / lr * var; "
              "var minimises the penalised sum."),
    *_step("ProximalGradientDescent", "A step of proximal gradient descent.", "proximal_gradient_descent",
          "var alpha l1 l2 delta", law="The step is shrunk by alpha * l1 towards 0 and divided by 1 + alpha * l2."),
    *_step("ProximalAdagrad", "A step of proximal Adagrad.", "proximal_adagrad", "var accum lr l1 l2 grad",
          law="As ApplyProximalGradientDescent with the step lr / sqrt(accum)."),
    *_step("AdagradDA", "A step of dual-averaging Adagrad.", "adagrad_da",
          "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
          law="var = -lr * shrink(sum of grads) / (l2 * step * lr + sqrt(sum of squares))."),
)  # fmt: skip
