# SPDX-License-Identifier: Apache-2.0
"""The recorded calls of ops on quantised integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .cases import Array, Case, edges, ramp

_KINDS = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "qint16": "int16", "quint16": "uint16"}
_RANGES = ((-1.5, 2.0), (0.0, 6.0), (0.25, 4.0))


def _f32(value: Any) -> Array:
    return np.asarray(value, np.float32)


def _bytes(*shape: int) -> Array:
    return (np.arange(int(np.prod(shape))) * 37 % 256).astype(np.uint8).reshape(shape)


def _between(low: str, high: str, range_: tuple[float, float]) -> dict[str, Array]:
    return {low: _f32(range_[0]), high: _f32(range_[1])}


def through() -> Iterator[Case]:
    """To integers and back, in every mode."""
    floats = _f32([[-9, -1.5, -0.4, 0, 0.003], [0.5, 1.25, 1.9999, 2, 50]])
    ends = {"min_range": _f32([-1, 0]), "max_range": _f32([1, 3])}
    for kind, plain in _KINDS.items():
        given = edges(plain)[2:]
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for range_ in _RANGES:
                both = _between("min_range", "max_range", range_)
                yield Case("QuantizeV2", {"input": floats[:, :4] / 2 if kind == "qint32" else floats, **both},
                           {"T": kind, "mode": mode})  # fmt: skip
                yield Case("Dequantize", {"input": given, **both}, {"mode": mode})
    for mode in ("MIN_COMBINED", "SCALED"):
        yield Case("QuantizeV2", {"input": floats, **ends}, {"T": "qint8", "mode": mode, "axis": 0})
        yield Case("Dequantize", {"input": ramp("int8", 2, 4), **ends}, {"mode": mode, "axis": 0})
    both = _between("min_range", "max_range", (-2.0, 2.0))
    more = {"T": "qint8", "mode": "SCALED", "round_mode": "HALF_TO_EVEN", "narrow_range": True}
    yield Case("QuantizeV2", {"input": _f32(np.arange(-8, 9) / 127), **both}, more)
    yield Case("QuantizeV2", {"input": floats, **_between("min_range", "max_range", (1.0, 1.0))}, {"T": "quint8"})
    yield Case("Dequantize", {"input": _bytes(4), **both}, {"dtype": "bfloat16"})


def moved() -> Iterator[Case]:
    both = {"input_mins": [_f32(-1), _f32(0.5)], "input_maxes": [_f32(1), _f32(3)]}
    for values in ([_bytes(2, 3), _bytes(2, 2)], [ramp("int32", 2, 3) * 10**8, ramp("int32", 2, 1) * 10**8]):
        yield Case("QuantizedConcat", {"concat_dim": np.array(1, np.int32), "values": values, **both})
    ends = _between("input_min", "input_max", _RANGES[0])
    yield Case("QuantizedReshape", {"tensor": _bytes(2, 3), "shape": np.array([3, -1], np.int32), **ends})
    wide = np.array([[-(2**30), 12345, 2**29], [0, -5, 2**30]], np.int32)
    for range_ in _RANGES:
        ends = _between("input_min", "input_max", range_)
        yield Case("RequantizationRange", {"input": wide, **ends})
        yield Case("QuantizeDownAndShrinkRange", {"input": wide, **ends}, {"out_type": "quint8"})
        for kind in ("quint8", "qint8"):
            new = _between("requested_output_min", "requested_output_max", (-0.5, 0.75))
            yield Case("Requantize", {"input": wide, **ends, **new}, {"out_type": kind})


def computed() -> Iterator[Case]:
    a, b = _bytes(3, 4), _bytes(4, 2) + np.uint8(11)
    for left in _RANGES:
        ranges = {**_between("min_a", "max_a", left), **_between("min_b", "max_b", (-3.0, 1.0))}
        yield Case("QuantizedMatMul", {"a": a, "b": b, **ranges})
        yield Case("QuantizedMatMul", {"a": a.T.copy(), "b": b.T.copy(), **ranges},
                   {"transpose_a": True, "transpose_b": True})  # fmt: skip
        ranges = {**_between("min_x", "max_x", left), **_between("min_y", "max_y", (-3.0, 1.0))}
        yield Case("QuantizedMul", {"x": a, "y": _bytes(4), **ranges})
        ranges = {**_between("min_input", "max_input", left), **_between("min_bias", "max_bias", (-3.0, 1.0))}
        yield Case("QuantizedBiasAdd", {"input": a, "bias": _bytes(4), **ranges}, {"out_type": "qint32"})
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        ends = _between("min_features", "max_features", (-10.0, 10.0))
        yield Case(op, {"features": _bytes(9), **ends})
        yield Case(op, {"features": ramp("int32", 9) * 3 * 10**8, **ends}, {"out_type": "qint32"})


def images() -> Iterator[Case]:
    data = _bytes(2, 4, 5, 2)
    ends = _between("min_input", "max_input", (-1.0, 3.0))
    for padding, strides in (("SAME", [1, 2, 1, 1]), ("VALID", [1, 1, 2, 1])):
        for op in ("QuantizedAvgPool", "QuantizedMaxPool"):
            for given in (data, data.view(np.int8)):
                attrs = {"ksize": [1, 2, 3, 1], "strides": strides, "padding": padding}
                yield Case(op, {"input": given, **ends}, attrs)
        taps = {"filter": _bytes(2, 3, 2, 3), **_between("min_filter", "max_filter", (-2.0, 1.0))}
        yield Case("QuantizedConv2D", {"input": data, **taps, **ends}, {"strides": strides, "padding": padding})
    yield Case("QuantizedInstanceNorm", {"x": data, **_between("x_min", "x_max", (-1.0, 3.0))})
    yield Case("QuantizedInstanceNorm", {"x": data, **_between("x_min", "x_max", (-1.0, 3.0))},
               {"output_range_given": True, "given_y_min": -1.5, "given_y_max": 1.0})  # fmt: skip
    rest = {name: _bytes(2) + np.uint8(at * 50) for at, name in enumerate(("m", "v", "beta", "gamma"))}
    for name in ("t", *rest):
        rest |= _between(f"{name}_min", f"{name}_max", (0.1, 3.0) if name == "v" else (-1.0, 2.0))
    for scaled in (True, False):
        attrs = {"out_type": "qint32", "variance_epsilon": 0.01, "scale_after_normalization": scaled}
        yield Case("QuantizedBatchNormWithGlobalNormalization", {"t": data, **rest}, attrs)
    for given in (data, ramp("int32", 1, 3, 4, 1) * 10**8, ramp("float32", 1, 3, 4, 1)):
        for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
            size = {"size": np.array([6, 3], np.int32), **_between("min", "max", (-1.0, 1.0))}
            yield Case("QuantizedResizeBilinear", {"images": given, **size}, attrs)


GROUPS = (through, moved, computed, images)
