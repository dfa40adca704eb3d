# SPDX-License-Identifier: Apache-2.0
"""Numbers of 16 bits: every one of them goes through a kernel, and sums come back rounded as ml_dtypes rounds them."""

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import Array

TYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "half": np.dtype(np.float16)}
EVERY = np.arange(1 << 16, dtype=np.uint16)


def same(got: Array, wanted: Array) -> None:
    """The same numbers: NaN is one wherever it is wanted, and sums, which begin with zero, have lost a zero's sign."""
    np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(np.float32))


# Vectors in rows, vectors and a rest, channels that do not fill a vector.
@pytest.mark.parametrize("channels", [128, 41, 3, 1])
@pytest.mark.parametrize("kind", TYPES)
def test_every_number_survives(kind: str, channels: int, isa: str) -> None:
    x = np.resize(EVERY, (1, 1, 1 + EVERY.size // channels // 8, 8, channels)).view(TYPES[kind])
    one = {"ksize": [1] * 5, "strides": [1] * 5, "padding": "VALID"}
    same(vg.raw_ops.AvgPool3D(input=x, **one), x)
    same(vg.raw_ops.AvgPool3DGrad(orig_input_shape=x.shape, grad=x, **one), x)


@pytest.mark.parametrize("channels", [128, 41, 3, 1])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities and NaN
def test_sums_are_rounded_to_nearest_even(kind: str, channels: int, isa: str) -> None:
    """Each number beside its negative, itself, neighbours and others: ties, overflow, infinity less infinity."""
    others = [EVERY ^ 0x8000, EVERY, EVERY + 1, EVERY - 1, EVERY ^ 0x0080, EVERY ^ 0x0400, EVERY[::-1]]
    pairs = np.stack([np.tile(EVERY, len(others)), np.concatenate(others)]).view(TYPES[kind])
    x = np.resize(pairs.T, (pairs.shape[1] // channels, channels, 2)).swapaxes(1, 2)[None, None, None]
    x = np.ascontiguousarray(x.reshape(1, 1, 1, -1, channels))
    got = vg.raw_ops.AvgPool3D(input=x, ksize=[1, 1, 1, 2, 1], strides=[1, 1, 1, 2, 1], padding="VALID")
    wide = x.astype(np.float32)
    same(got, ((wide[..., ::2, :] + wide[..., 1::2, :]) / np.float32(2)).astype(TYPES[kind]))
