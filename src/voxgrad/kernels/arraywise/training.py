# SPDX-License-Identifier: Apache-2.0
"""Optimiser steps, as TensorFlow's training_ops compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, HALF
from voxgrad.kernels.arraywise.context import Ref
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type, moved_to, numpy_namespace, to_numpy
from voxgrad.kernels.arraywise.state import check_positions

Arrays = tuple[Array, ...]
Step = Callable[..., Arrays]


def _step(name: str) -> Callable[[Step], Step]:
    """Registers `f(run, *values)`, which returns new values for the variables, in order, as an optimiser step.

    Once for whole variables, and once, as `<name>_rows`, for the rows that indices name.
    """

    def register(function: Step) -> Step:
        def whole(run: Run, *inputs: Any) -> Any:
            refs = _variables(run, inputs)
            values = [_wide(value.value if isinstance(value, Ref) else value) for value in inputs]
            types = [element_type(ref.value) for ref in refs]
            for ref, made, dtype in zip(refs, function(run, *values), types, strict=True):
                ref.assign(cast(np.asarray(made) if isinstance(made, np.generic) else made, dtype))
            return refs[0] if run.op.outputs else ()

        def rows(run: Run, *inputs: Any) -> Any:
            refs = _variables(run, inputs)
            _change_rows(function, run, refs, inputs)
            return refs[0] if run.op.outputs else ()

        add_kernel(__name__, name, whole)
        add_kernel(__name__, f"{name}_rows", rows)
        return function

    return register


def _variables(run: Run, inputs: tuple[Any, ...]) -> list[Ref]:
    """The variables of a step, which fit each other and the gradient: of handles only the run knows it."""
    named = {item.name: value for item, value in zip(run.op.inputs, inputs, strict=True)}
    slots = {name: value for name, value in named.items() if isinstance(value, Ref)}
    shape = tuple(slots["var"].value.shape)
    grad = named["grad"] if "grad" in named else named["delta"]
    for name, ref in slots.items():
        if element_type(ref.value) != element_type(grad):
            wanted = f"be of the type of the gradient, {element_type(grad)}"
            run.fail(name, wanted=wanted, got=element_type(ref.value).name, code="VG011")
        if tuple(ref.value.shape) != shape:
            run.fail(name, wanted=f"have the shape of var, {list(shape)}", got=list(ref.value.shape), code="VG012")
    rows = named.get("indices")
    if rows is not None and not shape:
        run.fail("var", wanted="have rows", got="a scalar variable, without rows", code="VG010")
    wanted_shape = shape if rows is None else (*rows.shape, *shape[1:])
    if tuple(grad.shape) != wanted_shape:
        run.fail("grad", wanted=f"have the shape {list(wanted_shape)}", got=list(grad.shape), code="VG012")
    return list(slots.values())


def _change_rows(function: Step, run: Run, refs: list[Ref], inputs: tuple[Any, ...]) -> None:
    """A step on the rows that indices name, as if one by one: a row that is named again waits for the next round."""
    names = [item.name for item in run.op.inputs]
    rows = to_numpy(inputs[names.index("indices")])
    check_positions(run, rows[:, None], tuple(refs[0].value.shape))
    here = replace(run, xp=numpy_namespace)
    held = {
        name: to_numpy(value.value).copy() for name, value in zip(names, inputs, strict=True) if isinstance(value, Ref)
    }
    given = {name: to_numpy(value) for name, value in zip(names, inputs, strict=True) if name not in held}
    for turn in _rounds(rows):
        at = rows[turn]
        parts = {**given, **{name: array[at] for name, array in held.items()}, "grad": given["grad"][turn]}
        made = function(here, *(_wide(parts[name]) for name in names if name != "indices"))
        for array, part in zip(held.values(), made, strict=True):
            array[at] = part.astype(array.dtype)
    for ref, array in zip(refs, held.values(), strict=True):
        ref.assign(moved_to(array, ref.value))


def _rounds(rows: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The places of indices in rounds without repetition: first the first uses of all rows, then the second ones.

    One round at least, of nothing: a step looks at its rates.
    """
    order = np.argsort(rows, kind="stable")
    _, first, counts = np.unique(rows[order], return_index=True, return_counts=True)
    return [order[first[counts > turn] + turn] for turn in range(max(1, int(counts.max(initial=0))))]


def _wide(value: Array) -> Array:
    return cast(value, FLOAT32) if element_type(value) in (HALF, BFLOAT16) else value


@_step("gradient_descent")
def gradient_descent(run: Run, var: Array, alpha: Array, delta: Array) -> Arrays:
    """var -= alpha * delta."""
    return (var - delta * alpha,)


@_step("momentum")
def momentum(run: Run, var: Array, accum: Array, lr: Array, grad: Array, momentum: Array) -> Arrays:
    """Gradient descent with momentum."""
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if run.attrs["use_nesterov"] else accum * lr
    return var - step, accum


@_step("adam")
def adam(run: Run, var: Array, m: Array, v: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array,
         beta2: Array, epsilon: Array, grad: Array) -> Arrays:  # fmt: skip
    """Adam."""
    sqrt = run.xp.sqrt
    alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    ahead = grad * (1 - beta1) + beta1 * m if run.attrs["use_nesterov"] else m
    return var - ahead * alpha / (sqrt(v) + epsilon), m, v


def _on_rows(run: Run) -> bool:
    return any(item.name == "indices" for item in run.op.inputs)


def _followed(run: Run, mean: Array, value: Array, rho: Array) -> Array:
    """A running mean, a step further. TensorFlow words it in two ways, which differ where the value is infinite."""
    return mean * rho + value * (1 - rho) if _on_rows(run) else mean + (value - mean) * (1 - rho)


@_step("rms_prop")
def rms_prop(run: Run, var: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array,
             grad: Array) -> Arrays:  # fmt: skip
    """RMSProp."""
    ms = _followed(run, ms, grad * grad, rho)
    mom = mom * momentum + grad * lr / run.xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


@_step("centered_rms_prop")
def centered_rms_prop(run: Run, var: Array, mg: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array,
                      epsilon: Array, grad: Array) -> Arrays:  # fmt: skip
    """RMSProp with the variance of the gradient."""
    ms, mg = _followed(run, ms, grad * grad, rho), _followed(run, mg, grad, rho)
    mom = mom * momentum + grad * lr / run.xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


@_step("adagrad")
def adagrad(run: Run, var: Array, accum: Array, lr: Array, grad: Array) -> Arrays:
    """Adagrad."""
    if run.attrs["update_slots"]:
        accum = accum + grad * grad
    return var - grad * lr / run.xp.sqrt(accum), accum


@_step("adadelta")
def adadelta(run: Run, var: Array, accum: Array, accum_update: Array, lr: Array, rho: Array, epsilon: Array,
             grad: Array) -> Arrays:  # fmt: skip
    """Adadelta."""
    sqrt = run.xp.sqrt
    accum = accum * rho + grad * grad * (1 - rho)
    update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


def _check_rates(run: Run, lr: Array, l1: Array, l2: Array, *, lr_zero: bool = False) -> None:
    """A positive step size, and penalties that are no rewards."""
    if not bool(lr >= 0 if lr_zero else lr > 0):
        run.fail("lr", wanted="be 0 or more" if lr_zero else "be above 0", got=float(lr), code="VG003")
    for name, strength in (("l1", l1), ("l2", l2)):
        if not bool(strength >= 0):
            run.fail(name, wanted="be 0 or more", got=float(strength), code="VG003")


@_step("ftrl")
def ftrl(run: Run, var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array,
         lr_power: Array) -> Arrays:  # fmt: skip
    """FTRL-proximal."""
    xp, by_lr = run.xp, run.attrs["multiply_linear_by_lr"]
    if _on_rows(run):
        _check_rates(run, lr, l1, l2, lr_zero=by_lr)
        if not bool(lr_power <= 0):
            run.fail("lr_power", wanted="be 0 or less", got=float(lr_power), code="VG003")
    total = accum + grad * grad
    new, old = xp.pow(total, -lr_power), xp.pow(accum, -lr_power)
    if by_lr:
        linear = linear + grad * lr - (new - old) * var
        bound, quadratic = l1 * lr, new + 2 * l2 * lr
    else:
        linear = linear + grad - (new - old) / lr * var
        bound, quadratic = l1, new / lr + 2 * l2
    if _on_rows(run):
        # As TensorFlow words it there: NaN stays NaN.
        return (xp.minimum(xp.maximum(linear, -bound), bound) - linear) / quadratic, total, linear
    moved = (xp.sign(linear) * bound - linear) / quadratic
    var = xp.where(xp.abs(linear) > bound, moved, xp.zeros_like(moved))
    return var, total, linear


def _shrunk(run: Run, value: Array, rate: Array, l1: Array, l2: Array) -> Array:
    """The proximal step: towards 0 by rate * l1, then smaller by 1 + rate * l2."""
    xp = run.xp
    if float(l1) > 0:
        size = xp.abs(value) - rate * l1
        value = xp.sign(value) * xp.where(size > 0, size, xp.zeros_like(size))
    return value / (1 + rate * l2)


@_step("proximal_gradient_descent")
def proximal_gradient_descent(run: Run, var: Array, alpha: Array, l1: Array, l2: Array, delta: Array) -> Arrays:
    """Proximal gradient descent."""
    return (_shrunk(run, var - delta * alpha, alpha, l1, l2),)


@_step("proximal_adagrad")
def proximal_adagrad(run: Run, var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array) -> Arrays:
    """Proximal Adagrad."""
    _check_rates(run, lr, l1, l2)
    accum = accum + grad * grad
    rate = lr / run.xp.sqrt(accum)
    return _shrunk(run, var - grad * rate, rate, l1, l2), accum


@_step("adagrad_da")
def adagrad_da(run: Run, var: Array, total: Array, squares: Array, grad: Array, lr: Array, l1: Array, l2: Array,
               global_step: Array) -> Arrays:  # fmt: skip
    """Dual-averaging Adagrad."""
    xp = run.xp
    total, squares = total + grad, squares + grad * grad
    step = cast(global_step, element_type(lr))
    top = total
    if float(l1) > 0:
        size = xp.abs(total) - l1 * step
        top = xp.sign(total) * xp.where(size > 0, size, xp.zeros_like(size))
    return -lr * top / (l2 * step * lr + xp.sqrt(squares)), total, squares
