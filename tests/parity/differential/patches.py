# SPDX-License-Identifier: Apache-2.0
"""Windows of patches, dilations, places of maxima, and windows of two sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.catalog import dtypes

from .draw import Draw


def _attrs(d: Draw, taps: list[int]) -> tuple[dict[str, Any], list[int]]:
    """Attributes of windows of this size, and sizes of images that they fit into."""
    rates = [d.integer(1, 2), d.integer(1, 2)] if any(attr.name == "rates" for attr in d.op.attrs) else [1, 1]
    strides = [d.integer(1, 3), d.integer(1, 3)]
    made: dict[str, Any] = {"strides": [1, *strides, 1], "padding": d["padding"]}
    made |= {"rates": [1, *rates, 1]} if any(attr.name == "rates" for attr in d.op.attrs) else {}
    low = [1, 1] if d["padding"] == "SAME" else [(k - 1) * rate + 1 for k, rate in zip(taps, rates, strict=True)]
    return made, [size + d.integer(0, 4) for size in low]


def _image(d: Draw, sizes: list[int], style: str = "") -> Any:
    return d.array(d.type("T"), (d.integer(1, 2), *sizes, d.integer(1, 3)), style)


def extracted(d: Draw) -> dict[str, Any]:
    """Windows to cut out."""
    taps = [d.integer(1, 3), d.integer(1, 3)]
    made, sizes = _attrs(d, taps)
    return {**made, "ksizes": [1, *taps, 1], "images": _image(d, sizes)}


def dilated(d: Draw) -> dict[str, Any]:
    """Images, a filter, and what the gradients get."""
    taps = [d.integer(1, 3), d.integer(1, 3)]
    made, sizes = _attrs(d, taps)
    image = _image(d, sizes)
    given = {"input": image, "filter": d.array(d.type("T"), (*taps, image.shape[3]))}
    if d.op.name != "Dilation2D":
        out = vg.raw_ops.Dilation2D(**{name: np.zeros(one.shape, np.float32) for name, one in given.items()}, **made)
        given["out_backprop"] = d.array(d.type("T"), out.shape)
    return {**made, **given}


def argmax(d: Draw) -> dict[str, Any]:
    """Pools with places."""
    taps = [d.integer(1, 3), d.integer(1, 3)]
    made, sizes = _attrs(d, taps)
    made |= {"ksize": [1, *taps, 1], "include_batch_in_index": d.chance(0.5)}
    image = _image(d, sizes)
    if d.op.name == "MaxPoolWithArgmax":
        return {**made, "input": image}
    out, places = vg.raw_ops.MaxPoolWithArgmax(input=d.array(dtypes.FLOAT32, image.shape, "normal"), **made)
    grad = image.shape if "GradGrad" in d.op.name else out.shape
    return {**made, "input": image, "grad": d.array(d.type("T"), grad),
            "argmax": places.astype(d.type("Targmax").name)}  # fmt: skip


def fractional(d: Draw) -> dict[str, Any]:
    """Windows of two sizes."""
    image = _image(d, [d.integer(2, 8), d.integer(2, 8)], "" if d.smooth else d.pick("normal", "integers", "ties"))
    made = {"value": image, "pooling_ratio": [1.0, d.pick(1.0, 1.5, 1.44, 2.0), d.pick(1.0, 1.3, 1.9), 1.0],
            "pseudo_random": d.chance(0.5), "overlapping": d.chance(0.5), "deterministic": True,
            # Where TensorFlow has met a call like this before, it goes on in its sequence.
            "seed": d.integer(1, 10**9), "seed2": d.integer(1, 10**9)}  # fmt: skip
    if "Grad" not in d.op.name:
        return made
    forward = vg.raw_ops.FractionalAvgPool if "Avg" in d.op.name else vg.raw_ops.FractionalMaxPool
    out, rows, columns = forward(**made)
    given = {"orig_input": image, "orig_output": out, "out_backprop": d.array(d.type("T"), out.shape, "normal"),
             "orig_input_tensor_shape": d.vector(image.shape, dtypes.INT64), "row_pooling_sequence": rows,
             "col_pooling_sequence": columns}  # fmt: skip
    return {"overlapping": made["overlapping"], **{item.name: given[item.name] for item in d.op.inputs}}


PATCHES: dict[str, dict[str, Callable[[Draw], Any]]] = {
    "ExtractImagePatches": {"": extracted},
    **{f"Dilation2D{name}": {"": dilated} for name in ("", "BackpropInput", "BackpropFilter")},
    **{f"MaxPool{name}WithArgmax": {"": argmax} for name in ("", "Grad", "GradGrad")},
    **{f"Fractional{name}": {"": fractional} for name in ("AvgPool", "MaxPool", "AvgPoolGrad", "MaxPoolGrad")},
}
"""By op, by argument."""
