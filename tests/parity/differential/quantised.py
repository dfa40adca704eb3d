# SPDX-License-Identifier: Apache-2.0
"""Hints for quantised integers: ranges that fit together, and images with windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.quantised import OPS

from .draw import Draw

Arguments = dict[str, Any]


def _bounds(d: Draw) -> tuple[Any, Any]:
    """The ends of a range: mostly around 0, or on one side, or none at all."""
    low, high = d.pick((-1.0, 1.0), (-3.5, 2.25), (0.0, 6.0), (-0.1, 20.0), (0.5, 4.0), (-5.0, -1.0), (-1e-3, 1e3))
    if d.chance(0.05):
        low, high = d.pick((1.0, 1.0), (0.0, 0.0), (2.0, -2.0))
    spread = np.float32(1 + d.random.random())
    return np.asarray(np.float32(low) * spread), np.asarray(np.float32(high) * spread)


def _integers(d: Draw, kind: Any, shape: tuple[int, ...]) -> Any:
    return d.array(kind, shape, d.pick("wide", "wide", "normal", "special"))


def _ranges(d: Draw) -> Arguments:
    """All ranges of an op, an end after the other."""
    names = [item.name for item in d.op.inputs if item.type is dtypes.FLOAT32 and item.shape == "[]"
             and item.name != "max_value" and not item.name.startswith("requested")]  # fmt: skip
    made: Arguments = {}
    for low, high in zip(names[::2], names[1::2], strict=True):
        made[low], made[high] = _bounds(d)
    return made


def _plain(d: Draw) -> Arguments:
    """Tensors of any shape."""
    tensor = next(item for item in d.op.inputs if not item.host and item.type is not dtypes.FLOAT32)
    made = _ranges(d) | {tensor.name: _integers(d, d.type(tensor), d.shape())}
    if "max_value" in [item.name for item in d.op.inputs]:
        made["max_value"] = d.number(d.pick(0.5, 3.0, -1.0), dtypes.FLOAT32)
    if d.op.name == "Requantize":
        low, high = _bounds(d)
        made |= {"requested_output_min": np.minimum(low, np.float32(0)), "requested_output_max": high}
    if "out_type" in {attr.name for attr in d.op.attrs} and "Relu" in d.op.name and d.chance(0.95):
        made["out_type"] = d.type("Tinput")
    return made


def _through(d: Draw) -> Arguments:
    """QuantizeV2 and Dequantize: one range, or one for each slice."""
    shape = d.shape()
    axis = d.integer(0, len(shape) - 1) if shape and d.chance(0.4) else -1
    count = (shape[axis],) if axis >= 0 else ()
    ends = [_bounds(d) for _ in range(count[0] if count else 1)]
    made: Arguments = {"axis": axis}
    for at, name in enumerate(("min_range", "max_range")):
        made[name] = np.array([one[at] for one in ends], np.float32).reshape(count)
    if d.op.name == "Dequantize":
        return made | {"input": _integers(d, d.type("T"), shape),
                       "dtype": d.pick(dtypes.FLOAT32, dtypes.FLOAT32, dtypes.BFLOAT16)}  # fmt: skip
    made["round_mode"] = "HALF_AWAY_FROM_ZERO" if d["mode"] != "SCALED" and d.chance(0.9) else d["round_mode"]
    return made | {"input": d.array(dtypes.FLOAT32, shape, d.pick("normal", "wide", "ties")),
                   "ensure_minimum_range": d.pick(0.01, 0.01, 0.5)}  # fmt: skip


def _joined(d: Draw) -> Arguments:
    shape, count, kind = list(d.shape(1, 3)), d.integer(2, 3), d.type("T")
    axis = d.integer(0, len(shape) - 1)
    values = [_integers(d, kind, (*shape[:axis], d.size(), *shape[axis + 1 :])) for _ in range(count)]
    ends = [_bounds(d) for _ in range(count)]
    return {"concat_dim": d.number(axis), "values": values, "input_mins": [one for one, _ in ends],
            "input_maxes": [one for _, one in ends]}  # fmt: skip


def _reshaped(d: Draw) -> Arguments:
    shape = d.shape()
    new = d.pick([-1], [*shape, 1], list(shape[::-1]), [1, -1])
    return _ranges(d) | {"tensor": _integers(d, d.type("T"), shape), "shape": d.vector(new, "Tshape")}


def _matrices(d: Draw) -> Arguments:
    m, k, n = d.size(), d.size(), d.size()
    left, right = (k, m) if d["transpose_a"] else (m, k), (n, k) if d["transpose_b"] else (k, n)
    return _ranges(d) | {"a": _integers(d, d.type("T1"), left), "b": _integers(d, d.type("T2"), right)}


def _products(d: Draw) -> Arguments:
    shape = d.shape(0, 3)
    other = d.pick(shape, shape[-1:], (), shape)
    both = (shape, other) if d.chance(0.5) else (other, shape)
    return _ranges(d) | {"x": _integers(d, d.type("T1"), both[0]), "y": _integers(d, d.type("T2"), both[1])}


def _images(d: Draw) -> tuple[int, int, int, int]:
    return d.integer(1, 2), d.integer(1, 6), d.integer(1, 6), d.integer(1, 3)


def _windows(d: Draw) -> Arguments:
    shape, steps = _images(d), [1, d.integer(1, 3), d.integer(1, 3), 1]
    taps = [d.integer(1, min(3, size)) if d.chance(0.9) else 3 for size in shape[1:3]]
    made = _ranges(d) | {"input": _integers(d, d.type(d.op.inputs[0]), shape), "strides": steps}
    if "Pool" in d.op.name:
        return made | {"ksize": [1, *taps, 1]}
    made["dilations"] = [1, 1, 1, 1] if d.chance(0.95) else [1, 2, 2, 1]
    return made | {"filter": _integers(d, d.type("Tfilter"), (*taps, shape[3], d.integer(1, 3)))}


def _normalised(d: Draw) -> Arguments:
    shape = _images(d)
    made = _ranges(d)
    if d.op.name == "QuantizedInstanceNorm":
        given = {"variance_epsilon": d.pick(1e-5, 0.1), "min_separation": d.pick(1e-3, 1.0), "given_y_min": -1.5,
                 "given_y_max": 2.0 if d.chance(0.95) else -2.0}  # fmt: skip
        return made | given | {"x": _integers(d, d.type("T"), shape)}
    made |= {name: _integers(d, d.type("Tinput"), shape[3:]) for name in ("m", "v", "beta", "gamma")}
    # A variance below 0 has no root.
    made |= {"v_min": np.asarray(np.float32(0.1)), "v_max": np.asarray(np.float32(3)), "variance_epsilon": 0.01}
    return made | {"t": _integers(d, d.type("Tinput"), shape)}


def _biased(d: Draw) -> Arguments:
    shape = (*d.shape(1, 2), d.integer(1, 4))
    return _ranges(d) | {"input": _integers(d, d.type("T1"), shape), "bias": _integers(d, d.type("T2"), shape[-1:])}


def _resized(d: Draw) -> Arguments:
    images = d.array(d.type("T"), _images(d), "wide" if d.type("T").kind != "float" else "normal")
    corners = d.chance(0.3)
    size = d.vector([d.integer(1, 8), d.integer(1, 8)])
    return _ranges(d) | {"images": images, "size": size, "align_corners": corners,
                         "half_pixel_centers": not corners and d.chance(0.5)}  # fmt: skip


_OWN: dict[str, Callable[[Draw], Arguments]] = {
    "QuantizeV2": _through, "Dequantize": _through, "QuantizedConcat": _joined, "QuantizedReshape": _reshaped,
    "QuantizedMatMul": _matrices, "QuantizedMul": _products, "QuantizedAvgPool": _windows, "QuantizedMaxPool": _windows,
    "QuantizedConv2D": _windows, "QuantizedInstanceNorm": _normalised, "QuantizedBiasAdd": _biased,
    "QuantizedBatchNormWithGlobalNormalization": _normalised, "QuantizedResizeBilinear": _resized,
}  # fmt: skip
QUANTISED = {op.name: {"": _OWN.get(op.name, _plain)} for op in OPS}
"""Calls of every op on quantised integers."""
