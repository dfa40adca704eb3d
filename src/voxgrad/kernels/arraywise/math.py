# SPDX-License-Identifier: Apache-2.0
"""Elementwise arithmetic, comparison and logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import BFLOAT16, BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, HALF, STRING, DType
from voxgrad.kernels.arraywise.evaluation import Run, add_kernel, kernel
from voxgrad.kernels.arraywise.namespace import (
    Array,
    cast,
    element_type,
    is_numpy,
    is_torch,
    moved_to,
    numpy_namespace,
    to_numpy,
)

_DIRECT = {
    "abs": "abs", "negative": "negative", "square": "square", "sqrt": "sqrt", "exp": "exp", "expm1": "expm1",
    "log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "asin": "asin", "acos": "acos", "atan": "atan", "asinh": "asinh", "acosh": "acosh",
    "atanh": "atanh", "sign": "sign", "round": "round", "ceil": "ceil", "floor": "floor", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite", "real": "real", "imag": "imag", "conj": "conj", "complex_abs": "abs",
    "add": "add", "subtract": "subtract", "multiply": "multiply", "atan2": "atan2",
    "equal": "equal", "not_equal": "not_equal", "less": "less", "less_equal": "less_equal", "greater": "greater",
    "greater_equal": "greater_equal", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_not": "logical_not",
}  # fmt: skip
"""Kernels that are one function of the array API standard."""


def _direct(standard: str) -> Any:
    plain = getattr(numpy_namespace, standard)

    def function(run: Run, *inputs: Array) -> Array:
        return plain(*inputs) if run.xp is numpy_namespace else getattr(run.xp, standard)(*inputs)

    return function


for _name, _standard in _DIRECT.items():
    add_kernel(__name__, _name, _direct(_standard), widen=True)


def is_integer(array: Array) -> bool:
    """True for arrays of integers."""
    return element_type(array).kind in ("int", "uint")


def refuse_zeros(run: Run, x: Array, y: Array) -> None:
    """An integer division by zero has no result."""
    if is_integer(y) and 0 not in x.shape and bool(run.xp.any(y == 0)):
        run.fail("y", wanted="have no zeros in an integer division", got="a zero")


def where(run: Run, condition: Array, x: Array, y: Array) -> Array:
    """Elements of x or y; Python numbers take the type of the other side."""
    if not hasattr(x, "dtype"):
        x = run.xp.full_like(y, x)
    if not hasattr(y, "dtype"):
        y = run.xp.full_like(x, y)
    return run.xp.where(condition, x, y)


@kernel(widen=True)
def divide(run: Run, x: Array, y: Array) -> Array:
    """x / y, integers towards zero."""
    return truncated(run, x, y) if is_integer(x) else run.xp.divide(x, y)


def truncated(run: Run, x: Array, y: Array) -> Array:
    """Integer division towards zero."""
    refuse_zeros(run, x, y)
    if is_torch(x):
        return run.xp.div(x, y, rounding_mode="trunc")
    floor = x // y
    # Where the remainder is not 0, a negative quotient was rounded one too low.
    return floor + ((floor < 0) & (floor * y != x)).astype(floor.dtype)


@kernel(widen=True)
def truncate_divide(run: Run, x: Array, y: Array) -> Array:
    """x / y towards zero."""
    return truncated(run, x, y) if is_integer(x) else run.xp.trunc(x / y)


@kernel(widen=True)
def floor_divide(run: Run, x: Array, y: Array) -> Array:
    """x / y towards negative infinity."""
    refuse_zeros(run, x, y)
    return run.xp.floor_divide(x, y) if is_integer(x) else run.xp.floor(x / y)


@kernel(widen=True)
def floor_mod(run: Run, x: Array, y: Array) -> Array:
    """The remainder with the sign of y."""
    refuse_zeros(run, x, y)
    if is_integer(x):
        return run.xp.remainder(x, y)
    rest = run.xp.fmod(x, y)
    return where(run, (rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@kernel(widen=True)
def truncate_mod(run: Run, x: Array, y: Array) -> Array:
    """The remainder with the sign of x."""
    refuse_zeros(run, x, y)
    return run.xp.fmod(x, y)


@kernel(widen=True)
def divide_no_nan(run: Run, x: Array, y: Array) -> Array:
    """x / y, 0 where y is 0."""
    return where(run, y == 0, 0, run.xp.divide(x, y))


@kernel(widen=True)
def multiply_no_nan(run: Run, x: Array, y: Array) -> Array:
    """x * y, 0 where y is 0."""
    return where(run, y == 0, 0, x * y)


@kernel(widen=True)
def power(run: Run, x: Array, y: Array) -> Array:
    """x ** y."""
    if is_integer(y) and 0 not in x.shape and bool(run.xp.any(y < 0)):
        run.fail("y", wanted="have no negative powers of integers", got="a negative power")
    return run.xp.pow(x, y)


@kernel(widen=True)
def maximum(run: Run, x: Array, y: Array) -> Array:
    """The larger one, NaN if either is."""
    return run.xp.maximum(x, y)


@kernel(widen=True)
def minimum(run: Run, x: Array, y: Array) -> Array:
    """The smaller one, NaN if either is."""
    return run.xp.minimum(x, y)


@kernel(widen=True)
def squared_difference(run: Run, x: Array, y: Array) -> Array:
    """conj(x - y) * (x - y)."""
    gap = x - y
    return run.xp.conj(gap) * gap if element_type(gap).kind == "complex" else gap * gap


@kernel(widen=True)
def xlogy(run: Run, x: Array, y: Array) -> Array:
    """x * log(y), 0 where x is 0."""
    return where(run, x == 0, 0, x * run.xp.log(y))


@kernel(widen=True)
def xdivy(run: Run, x: Array, y: Array) -> Array:
    """x / y, 0 where x is 0."""
    return where(run, x == 0, 0, x / y)


@kernel(widen=True)
def reciprocal(run: Run, x: Array) -> Array:
    """1 / x."""
    if is_integer(x):
        return truncated(run, run.xp.ones_like(x), x)
    # The reciprocal of a complex zero is NaN in both parts.
    return where(run, x == 0, math.nan, 1 / x) if element_type(x).kind == "complex" else 1 / x


@kernel(widen=True)
def rsqrt(run: Run, x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / run.xp.sqrt(x)


@kernel(widen=True)
def sigmoid(run: Run, x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side."""
    if element_type(x).kind == "complex":
        # exp of what has no positive real part stays small. Beside a pole 1 + exp(x) cancels, and tanh knows better.
        left = run.xp.real(x) < 0
        small = run.xp.exp(run.xp.where(left, x, -x))
        far = run.xp.where(left, small, run.xp.ones_like(x)) / (1 + small)
        return run.xp.where(run.xp.abs(run.xp.real(x)) < 1, (1 + run.xp.tanh(x / 2)) / 2, far)
    small = run.xp.exp(-run.xp.abs(x))
    return where(run, x >= 0, 1 / (1 + small), small / (1 + small))


def conjugate(run: Run, x: Array) -> Array:
    """The complex conjugate; real arrays as they are."""
    return run.xp.conj(x) if element_type(x).kind == "complex" else x


@kernel(widen=True)
def sqrt_grad(run: Run, y: Array, dy: Array) -> Array:
    """The gradient of Sqrt; 0 where dy is, also at 0."""
    return where(run, dy == 0, 0, dy * 0.5 / conjugate(run, y))


@kernel(widen=True)
def rsqrt_grad(run: Run, y: Array, dy: Array) -> Array:
    """The gradient of Rsqrt."""
    y = conjugate(run, y)
    return where(run, dy == 0, 0, dy * -0.5 * y * y * y)


@kernel(widen=True)
def reciprocal_grad(run: Run, y: Array, dy: Array) -> Array:
    """The gradient of Reciprocal."""
    y = conjugate(run, y)
    return where(run, dy == 0, 0, -dy * y * y)


@kernel(widen=True)
def sigmoid_grad(run: Run, y: Array, dy: Array) -> Array:
    """The gradient of Sigmoid; of complex numbers, that of the conjugate of y."""
    return dy * (y * (1 - y))


@kernel(widen=True)
def tanh_grad(run: Run, y: Array, dy: Array) -> Array:
    """The gradient of Tanh; of complex numbers, that of the conjugate of y."""
    return dy * (1 - y * y)


@kernel(widen=True)
def approximate_equal(run: Run, x: Array, y: Array) -> Array:
    """|x - y| <= tolerance."""
    return run.xp.abs(x - y) <= float(np.float32(run.attrs["tolerance"]))


def _equality(name: str, otherwise: bool) -> None:
    def function(run: Run, x: Array, y: Array) -> Array:
        if not run.attrs.get("incompatible_shape_error", True) and not _broadcastable(x.shape, y.shape):
            return run.make(otherwise, BOOL)
        return cast(getattr(run.xp, name)(x, y), BOOL)

    add_kernel(__name__, name, function, widen=True)


def _broadcastable(a: Any, b: Any) -> bool:
    return all(one == two or 1 in (one, two) for one, two in zip(reversed(a), reversed(b), strict=False))


_equality("equal", False)
_equality("not_equal", True)


@kernel(name="cast")
def cast_to(run: Run, x: Array) -> Array:
    """The values in the type of the attribute DstT."""
    source, target = element_type(x), run.attrs["DstT"]
    if source == target:
        return x
    if source.kind == "complex" and target.kind != "complex":
        # The real part decides, also whether it is 0.
        x = run.xp.real(x)
        source = element_type(x)
    if target.kind == "bool":
        return x != 0
    if source.kind == "float" and target.kind in ("int", "uint"):
        return _float_to_integer(x, target)
    if run.attrs["Truncate"] and (source, target) in _TRUNCATED:
        return moved_to(cast(_cut_mantissas(to_numpy(x), _TRUNCATED[source, target]), target), x)
    if target is STRING or source is STRING:
        run.fail("DstT", wanted="be a type of numbers", got=target.name)
    return cast(x, target)


def _float_to_integer(x: Array, target: DType) -> Array:
    """Towards zero, through a 64-bit integer as C does; NaN and what does not fit are whatever that gives."""
    if target.itemsize < 4 and is_numpy(x):
        return (
            x.astype(np.float32 if element_type(x).itemsize < 4 else x.dtype)
            .astype(np.int32)
            .astype(cast(x[..., None][:0], target).dtype)
        )
    return cast(x, target)


_TRUNCATED = {(FLOAT64, FLOAT32): 29, (FLOAT64, HALF): 42, (FLOAT32, HALF): 13, (FLOAT32, BFLOAT16): 16,
              (COMPLEX128, COMPLEX64): 29}  # fmt: skip
"""The casts that Truncate changes in TensorFlow, and the bits that the mantissa loses there."""


def _cut_mantissas(x: np.ndarray[Any, Any], bits: int) -> Array:
    """Numbers without the last bits of their mantissas, those of NaN aside: the nearest below in size."""
    parts = np.ascontiguousarray(x).reshape(-1).view(np.float32 if x.dtype == np.float32 else np.float64)
    whole: Array = parts.view(np.uint32 if x.dtype == np.float32 else np.uint64)
    cut = np.where(np.isnan(parts), whole, whole >> bits << bits).astype(whole.dtype)
    return cut.view(x.dtype).reshape(x.shape)


@kernel()
def select(run: Run, condition: Array, x: Array, y: Array) -> Array:
    """x or y; a condition vector chooses whole rows."""
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return run.xp.where(condition, x, y)


@kernel()
def select_v2(run: Run, condition: Array, t: Array, e: Array) -> Array:
    """t or e, all three broadcast."""
    return run.xp.where(condition, t, e)


@kernel(widen=True)
def add_n(run: Run, inputs: list[Array]) -> Array:
    """The sum of all inputs, from the first to the last."""
    total = inputs[0]
    for one in inputs[1:]:
        total = total + one
    return total


@kernel(widen=True)
def clip_by_value(run: Run, t: Array, low: Array, high: Array) -> Array:
    """t between two bounds; one that is NaN does not bind. Of complex numbers each part by itself."""
    if element_type(t).kind == "complex":
        parts = (clip_by_value(run, *map(part, (t, low, high))) for part in (run.xp.real, run.xp.imag))
        return make_complex(run, *parts)
    made = run.xp.where(t > high, high, t)
    return run.xp.where(made < low, low, made)


@kernel(widen=True)
def cross(run: Run, a: Array, b: Array) -> Array:
    """The cross product over the last dimension."""
    (a0, a1, a2), (b0, b1, b2) = ((v[..., 0], v[..., 1], v[..., 2]) for v in (a, b))
    return run.xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


@kernel(name="complex")
def make_complex(run: Run, real: Array, imag: Array) -> Array:
    """real + i * imag, in parts so that infinities stay where they are."""
    if is_torch(real):
        return run.xp.complex(*run.xp.broadcast_tensors(real, imag))
    made = np.empty(
        np.broadcast_shapes(real.shape, imag.shape), np.complex128 if element_type(real) is FLOAT64 else np.complex64
    )
    made.real, made.imag = real, imag
    return made


@kernel()
def angle(run: Run, x: Array) -> Array:
    """The angle of a complex number."""
    return run.xp.atan2(run.xp.imag(x), run.xp.real(x))
