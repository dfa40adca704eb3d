# SPDX-License-Identifier: Apache-2.0
"""How close an ordinary op comes to TensorFlow, in units of the last place (ulp) of its type.

Moved data, integers, truth values and texts are equal. Float arithmetic is within `ALLOWED` ulps of the larger of the
two numbers; where an op adds numbers near `SCALE` on its way (1 in `exp(x) - 1`), ulps of that scale. A number below
the smallest normal one may have been flushed to zero. A complex number is as far off as its distance says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.registry import OPS

Array = np.ndarray[Any, Any]

_EXACT = ("array", "slicing", "core", "spaces", "string", "control_flow", "io")
"""Modules whose kernels only move data."""

ALLOWED = {
    "Erfinv": 2**15,  # two rational approximations, both short of full precision near 0.9
    "Erfc": 16,  # TensorFlow's rational approximation; math.erfc agrees with ours to the last place
    "Digamma": 64, "Sigmoid": 8, "LRN": 16,  # beside a pole, and of complex numbers
    "Betainc": 1024, "Igammac": 144, "Igamma": 8, "Polygamma": 12,
    "RandomGammaGrad": 2**8,  # beside 1 both lose digits, and TensorFlow underflows far away
    "IgammaGradA": 2**14,  # TensorFlow stops its continued fraction early; test_values.py is stricter
}  # fmt: skip
"""Ulps where 4 are not enough: TensorFlow is further off there; test_accuracy.py holds ours to fifty digits."""

SCALE = {
    "Elu": 1.0, "Selu": 2.0, "Softplus": 1.0, "Log1p": 1.0, "Expm1": 1.0,
    "SoftmaxCrossEntropyWithLogits": 4.0, "SparseSoftmaxCrossEntropyWithLogits": 4.0, "LogSoftmax": 8.0,
    "Igammac": 1.0,
    "LRNGrad": 4.0, "IgammaGradA": 1.0, "FusedBatchNorm": 4.0, "FusedBatchNormV2": 4.0, "FusedBatchNormV3": 4.0,
    "FusedBatchNormGrad": 16.0, "FusedBatchNormGradV2": 16.0, "FusedBatchNormGradV3": 16.0,
    "HSVToRGB": 1.0, "AdjustSaturation": 1.0,
    "Lgamma": 1.0, "Digamma": 4.0, "Cos": 1.0, "Sin": 1.0, "Tan": 1.0, "Acos": 1.0, "Asin": 1.0,
    "RandomStandardNormal": 4.0, "TruncatedNormal": 2.0, "ParameterizedTruncatedNormal": 4.0,
    **{name: 1.0 for name, op in OPS.items() if op.group == "training"},  # what a step is taken off from
}  # fmt: skip
"""The size of the terms that an op adds on its way, where that is more than its result."""

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def allowed(op: str) -> float:
    """The ulps that an op may be off."""
    return (
        0
        if OPS[op].kernel.partition(".")[0] in _EXACT and op not in ("LinSpace", "MirrorPadGrad", "ScatterNd")
        else ALLOWED.get(op, 4)
    )


def ulps(got: Array, wanted: Array, op: str) -> Array:
    """How far floats are apart, cell by cell; infinity where they do not agree at all."""
    name = got.dtype.name
    if got.dtype.kind == "c":
        name = "float32" if name == "complex64" else "float64"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        left, right = got.astype(wide), wanted.astype(wide)
        gap = np.abs(left - right)
        size = np.maximum(np.maximum(np.abs(left), np.abs(right)), SCALE.get(op, _NORMAL[name]))
        apart = np.where(gap < _NORMAL[name], 0, gap / (2.0 ** np.floor(np.log2(size)) * _EPSILON[name]))
    apart = np.where(np.isfinite(left) & np.isfinite(right), apart, np.inf)
    return np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)


def distance(got: Array, wanted: Array, op: str) -> float:
    """How far two results are apart in ulps; infinity where they do not agree at all."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return np.inf
    if got.dtype.kind == "O":
        # Equal, and texts rather than arrays of texts.
        same = [(type(one), one) for one in got.ravel()] == [(bytes, one) for one in wanted.ravel()]
        return 0.0 if same else np.inf
    if got.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, wanted) else np.inf
    return float(np.max(ulps(got, wanted, op), initial=0))
