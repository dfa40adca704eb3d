# SPDX-License-Identifier: Apache-2.0
"""The family is closed under differentiation: transposes on integers, gradients to second order against differences."""

import numpy as np
import pytest

from voxgrad.catalog.dtypes import FLOAT32, FLOAT64, DType
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing import SeededChooser, check_adjoint, check_gradients, draw_call
from voxgrad.testing.derivatives import Eager, gradient

LINEAR = [op for op in FAMILY if op.linear_in]
# Windows of up to 2x2x2 cells have 1, 2, 4 or 8 of them: averages of multiples of 8 are integers, and a product with
# the reciprocal of the count is exact.
AVERAGED = 8


def test_all_but_max_pooling_are_linear() -> None:
    assert {op.name for op in FAMILY} - {op.name for op in LINEAR} == {"MaxPool3D"}


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("op", LINEAR, ids=lambda op: op.name)
def test_adjoint_pairs_are_exact_on_integers(op: Op, dtype: DType) -> None:
    for seed in range(40):
        average = op.map.of == "AvgPool3D"
        call = draw_call(op, SeededChooser(seed), dtype=dtype, style="integers", largest=2 if average else 4)
        if average:
            call |= {name: call[name] * AVERAGED for name in op.linear_in}
            check_adjoint(op, call, seed, scale=AVERAGED)
        else:
            check_adjoint(op, call, seed)


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_gradients_equal_differences(op: Op) -> None:
    """First order for the forward ops, second order for the gradients, on unique values."""
    for seed in range(6):
        call = draw_call(op, SeededChooser(seed), dtype=FLOAT64, style="normal")
        if op.selects and op.of:
            call["orig_output"] = Eager().MaxPool3D(call["orig_input"], **attrs_of(op, call))
        for name in op.linear_in or ("input",):
            _check_input(op, call, name, seed)


def _check_input(op: Op, call: dict, name: str, seed: int) -> None:  # type: ignore[type-arg]
    check_gradients(
        lambda x: _apply(op, {**call, name: x}),
        lambda x, v: gradient(op, {**call, name: x}, v)[name],
        call[name],
        seed=seed,
    )


def test_second_order_through_a_network() -> None:
    """Hessian-vector products of conv - max pool - conv - average pool, all from declared ops."""
    random = np.random.default_rng(7)
    build = Eager()
    w1, w2 = random.standard_normal((3, 2, 3, 2, 3)), random.standard_normal((2, 2, 2, 3, 2))
    x = random.standard_normal((1, 5, 6, 7, 2))
    conv = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
    pool = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 1, 1], "padding": "SAME"}

    def forward(x):  # type: ignore[no-untyped-def]
        a = build.Conv3D(x, w1, **conv)
        b = build.MaxPool3D(a * a, **pool)
        return a, b, build.AvgPool3D(build.Conv3D(b, w2, **conv), **pool)

    def first(x):  # type: ignore[no-untyped-def]
        """The gradient of sum(y * y) / 2."""
        a, b, y = forward(x)
        dy = build.AvgPool3DGrad(build.Shape(build.Conv3D(b, w2, **conv)), y, **pool)
        db = build.Conv3DBackpropInputV2(build.Shape(b), w2, dy, **conv)
        da = build.MaxPool3DGrad(a * a, b, db, **pool) * 2 * a
        return build.Conv3DBackpropInputV2(build.Shape(x), w1, da, **conv)

    def second(x, v):  # type: ignore[no-untyped-def]
        """H v: the same network, differentiated along v."""
        a, b, y = forward(x)
        conv_b = build.Conv3D(b, w2, **conv)
        dy = build.AvgPool3DGrad(build.Shape(conv_b), y, **pool)
        db = build.Conv3DBackpropInputV2(build.Shape(b), w2, dy, **conv)
        dm = build.MaxPool3DGrad(a * a, b, db, **pool)
        da = build.Conv3D(v, w1, **conv)
        moved = build.MaxPool3DGradGrad(a * a, b, 2 * a * da, **pool)
        dy2 = build.AvgPool3D(build.Conv3D(moved, w2, **conv), **pool)
        back = build.AvgPool3DGrad(build.Shape(conv_b), dy2, **pool)
        db2 = build.Conv3DBackpropInputV2(build.Shape(b), w2, back, **conv)
        total = build.MaxPool3DGrad(a * a, b, db2, **pool) * 2 * a + dm * 2 * da
        return build.Conv3DBackpropInputV2(build.Shape(x), w1, total, **conv)

    check_gradients(first, second, x, tolerance=1e-5)


def attrs_of(op: Op, call: dict) -> dict:  # type: ignore[type-arg]
    return {attr.name: call[attr.name] for attr in op.attrs if attr.name in call}


def _apply(op: Op, call: dict):  # type: ignore[no-untyped-def, type-arg]
    return getattr(Eager(), op.name)(*(call[item.name] for item in op.inputs), **attrs_of(op, call))
