# SPDX-License-Identifier: Apache-2.0
"""Optimiser steps, as TensorFlow's training_ops compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BFLOAT16, FLOAT32, HALF
from voxgrad.kernels.arraywise.context import Ref
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type

Arrays = tuple[Array, ...]


Step = Callable[..., Arrays]


def _step(name: str) -> Callable[[Step], Step]:
    """Registers `f(run, *values)`, which returns new values for the variables, in order, as an optimiser step."""

    def register(function: Step) -> Step:
        def kernel(run: Run, *inputs: Any) -> Ref:
            refs = [value for value in inputs if type(value) is Ref]
            types = [element_type(ref.value) for ref in refs]
            values = [_wide(value.value if type(value) is Ref else value) for value in inputs]
            for ref, made, dtype in zip(refs, function(run, *values), types, strict=True):
                stored = cast(np.asarray(made) if isinstance(made, np.generic) else made, dtype)
                ref.assign(stored)
            return refs[0]

        add_kernel(__name__, name, kernel)
        return function

    return register


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


@_step("rms_prop")
def rms_prop(run: Run, var: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array,
             grad: Array) -> Arrays:  # fmt: skip
    """RMSProp."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / run.xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


@_step("centered_rms_prop")
def centered_rms_prop(run: Run, var: Array, mg: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array,
                      epsilon: Array, grad: Array) -> Arrays:  # fmt: skip
    """RMSProp with the variance of the gradient."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
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


@_step("ftrl")
def ftrl(run: Run, var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array,
         lr_power: Array) -> Arrays:  # fmt: skip
    """FTRL-proximal."""
    xp, by_lr = run.xp, run.attrs["multiply_linear_by_lr"]
    total = accum + grad * grad
    new, old = xp.pow(total, -lr_power), xp.pow(accum, -lr_power)
    if by_lr:
        linear = linear + grad * lr - (new - old) * var
        bound, quadratic = l1 * lr, new + 2 * l2 * lr
    else:
        linear = linear + grad - (new - old) / lr * var
        bound, quadratic = l1, new / lr + 2 * l2
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
    if not bool(lr > 0):
        run.fail("lr", wanted="be above 0", got=float(lr), code="VG003")
    for name, strength in (("l1", l1), ("l2", l2)):
        if not bool(strength >= 0):
            run.fail(name, wanted="be 0 or more", got=float(strength), code="VG003")
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
