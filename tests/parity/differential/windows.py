# SPDX-License-Identifier: Apache-2.0
"""Hints for convolutions and pools, in two and three dimensions: sizes that belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.registry import OPS

from .draw import Draw
from .values import Array

Arguments = dict[str, Any]


def _window(d: Draw, dims: int) -> tuple[Arguments, list[int], list[int]]:
    """Attributes; the sizes of the axes and of the windows."""
    names = {attr.name for attr in d.op.attrs}
    last = d["data_format"].endswith("C")
    wide = lambda inner: [1, *inner, 1] if last else [1, 1, *inner]  # noqa: E731
    taps = [d.integer(1, 3) for _ in range(dims)]
    strides = [d.integer(1, 3)] * dims if "Depthwise" in d.op.name else [d.integer(1, 3) for _ in range(dims)]
    dilations = [1] * dims
    if "dilations" in names and d.chance(0.2):
        dilations = [d.integer(1, 2) for _ in range(dims)]
    made: Arguments = {"strides": wide(strides)}
    if "dilations" in names:
        made["dilations"] = wide(dilations)
    if "ksize" in names:
        made["ksize"] = wide(taps)
    pads = [(0, 0)] * dims
    if "explicit_paddings" in names:
        explicit = d["padding"] == "EXPLICIT"
        # No wider than the window: TensorFlow's pools refuse more.
        pads = [(d.integer(0, k - 1), d.integer(0, k - 1)) for k in taps] if explicit else pads
        pairs = [(0, 0), *pads, (0, 0)] if last else [(0, 0), (0, 0), *pads]
        made["explicit_paddings"] = [one for pair in pairs for one in pair] if explicit else []
    reach = [(k - 1) * step + 1 for k, step in zip(taps, dilations, strict=True)]
    sizes = [max(1, need - sum(pad)) + d.integer(0, 4) for need, pad in zip(reach, pads, strict=True)]
    if d["padding"] == "SAME":
        sizes = [d.integer(1, 6) for _ in sizes]
    return made, sizes, taps


def _data(d: Draw, sizes: list[int], channels: int, batch: int) -> tuple[int, ...]:
    return (batch, *sizes, channels) if d["data_format"].endswith("C") else (batch, channels, *sizes)


def _result(op: str, **arguments: Any) -> tuple[int, ...]:
    with vg.semantics("tf_cpu"):
        shape: tuple[int, ...] = getattr(vg.raw_ops, op)(**arguments).shape
    return shape


def convolution(d: Draw) -> Arguments:
    """Input, filter and gradient of a convolution, as far as the op takes them."""
    forward = "Conv3D" if "Conv3D" in d.op.name else "Conv2D" if "Conv2D" in d.op.name else "DepthwiseConv2dNative"
    made, sizes, taps = _window(d, 3 if forward == "Conv3D" else 2)
    inner, outer, batch = d.integer(1, 3), d.integer(1, 3), d.integer(1, 2)
    groups = d.pick(1, 1, 1, 2) if not forward.startswith("Depthwise") else 1
    data, filters = _data(d, sizes, inner * groups, batch), (*taps, inner, outer * groups)
    attrs = {"padding": d["padding"], "data_format": d["data_format"], **made}
    kept = {name: value for name, value in attrs.items() if name in {attr.name for attr in OPS[forward].attrs}}
    out = _result(forward, input=np.zeros(data, np.float32), filter=np.zeros(filters, np.float32), **kept)
    shapes = {"input": data, "filter": filters, "out_backprop": out}
    for item in d.op.inputs:
        if item.host:
            stated = data if item.name == "input_sizes" else filters
            made[item.name] = d.vector(stated, "Tshape" if item.type == "Tshape" else dtypes.INT32)
        else:
            made[item.name] = d.array(d.type("T"), shapes[item.name])
    return made


def pooled(op: str, data: Array, attrs: Arguments) -> Array:
    """The maxima of windows, of any type: integers, which may be wider than floats, by their place in order."""
    with vg.semantics("tf_cpu"), np.errstate(all="ignore"):
        if data.dtype.kind not in "iu":
            known = {one.name for one in OPS[op].types["T"]} | {"float16"}
            wide = data if data.dtype.name in known else data.astype(np.float64)
            return np.asarray(getattr(vg.raw_ops, op)(input=wide, **attrs)).astype(data.dtype)
        values, places = np.unique(data, return_inverse=True)
        ranks = getattr(vg.raw_ops, op)(input=places.reshape(data.shape).astype(np.float64), **attrs)
        return np.asarray(values[ranks.astype(np.int64)])


def pool(d: Draw) -> Arguments:
    """Input, output and gradient of a pool, as far as the op takes them."""
    dims = 3 if "3D" in d.op.name else 2
    made, sizes, _ = _window(d, dims)
    data = _data(d, sizes, d.integer(1, 3), d.integer(1, 2))
    attrs = {"padding": d["padding"], "data_format": d["data_format"], **made}
    forward = "MaxPool3D" if dims == 3 else "MaxPool"
    out = _result(forward, input=np.zeros(data, np.float32), **attrs)
    for item in d.op.inputs:
        if item.host:
            made[item.name] = d.vector(data)
        elif item.name == "orig_output":
            made[item.name] = pooled(forward, made["orig_input"], attrs)
        else:
            full = item.name in ("input", "value", "orig_input") or d.op.name.endswith("GradGrad")
            made[item.name] = d.array(d.type(item), data if full else out)
    return made


def fused(d: Draw) -> Arguments:
    """A mirrored image with a filter that fits into it."""
    old, taps = [d.integer(1, 6) for _ in range(2)], [d.integer(1, 3) for _ in range(2)]
    new = [d.integer(1, 7) for _ in old] if "Resize" in d.op.name else old
    pads = [[d.integer(0, min(2, size - (d["mode"] == "REFLECT"))) for _ in range(2)] for size in new]
    channels, kind = d.integer(1, 3), d.type("T")
    made = {"input": d.array(kind, (d.integer(1, 2), *old, channels)),
            "filter": d.array(kind, (*taps, channels, d.integer(1, 3))),
            "paddings": d.vector([0, 0, *pads[0], *pads[1], 0, 0]).reshape(4, 2),
            "strides": [1, d.integer(1, 3), d.integer(1, 3), 1]}  # fmt: skip
    return made | ({"size": d.vector(new)} if "Resize" in d.op.name else {})


def _hints() -> dict[str, dict[str, Callable[[Draw], Any]]]:
    return {
        name: {"": (fused if "Pad" in name else convolution) if "Conv" in name else pool}
        for name in OPS
        if "Conv2" in name or "Conv3" in name or "Pool" in name
    }


WINDOWS = _hints()
"""Windows of every windowed op."""
