# SPDX-License-Identifier: Apache-2.0
"""Products of matrices."""

from __future__ import annotations

from voxgrad.catalog.dtypes import FLOAT32
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.math import conjugate
from voxgrad.kernels.arraywise.namespace import Array, cast, element_type


def _swapped(run: Run, x: Array) -> Array:
    return run.xp.matrix_transpose(x)


@kernel(widen=True)
def matmul(run: Run, a: Array, b: Array) -> Array:
    """The product of two matrices."""
    left = _swapped(run, a) if run.attrs["transpose_a"] else a
    right = _swapped(run, b) if run.attrs["transpose_b"] else b
    return cast(run.xp.matmul(left, right), element_type(a))


@kernel()
def sparse_matmul(run: Run, a: Array, b: Array) -> Array:
    """The product in float32, whatever the inputs are."""
    return matmul(run, cast(a, FLOAT32), cast(b, FLOAT32))


@kernel(widen=True)
def batch_matmul(run: Run, x: Array, y: Array) -> Array:
    """Products of matrices over batch dimensions that broadcast."""
    left = conjugate(run, _swapped(run, x)) if run.attrs["adj_x"] else x
    right = conjugate(run, _swapped(run, y)) if run.attrs["adj_y"] else y
    return cast(run.xp.matmul(left, right), element_type(x))
