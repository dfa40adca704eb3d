# SPDX-License-Identifier: Apache-2.0
"""Whether two answers agree, and in which way they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.catalogue.tolerance import allowed, distance, ulps
from voxgrad.catalog.registry import OPS

from . import ours as here
from .exact import nearer, sensitive
from .images import pixels
from .values import Array

_SUMS = (
    "patches",
    "fake_quant.rounded_grad",
    "resampling",
    "image.crop",
    "image.adjust",
    "reductions",
    "matrix",
    "windows2d",
    "sparse",
    "batch_norm",
    "nn",
    "slicing",
)
"""Kernels that add up: their error is that of the terms."""
_OFF, _TAKEN_OFF = ("batch_norm", "nn.lrn_grad"), ("mean", "reserve_space_1", "output_image")
"""Kernels that take something off, and what: the terms are those of a sum if it lies on the other side."""
_TOGETHER = {"image.adjust_contrast": (-3, -2, -1), "image.adjust": (-1,), "resampling.bicubic": (1, 2)}
"""Kernels that take terms off each other, and the axes along which they look: the largest counts for all."""
_WHERE = {"image.crop": ("boxes",), "fake_quant": ("inputs", "min", "max")}
"""Kernels with inputs that say where terms lie, and are none."""
_CELLWISE = ("math.", "special.", "nn.lrn")
"""Kernels that compute each cell from cells, or from a few of its row."""
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
            "complex64": 2.0**-23, "complex128": 2.0**-52}  # fmt: skip
_TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022,
         "complex64": 2.0**-126, "complex128": 2.0**-1022}  # fmt: skip
_LOW = ("float16", "bfloat16")
NO_KERNEL = ("NotFoundError", "UnimplementedError", "No OpKernel was registered")
"""TensorFlow declares a type or a layout and its CPU does not have it."""


def difference(job: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], ask: Callable[..., Any]) -> str:
    """What differs, in words; empty where nothing does. `ask` puts another question to TensorFlow.

    The cells of the first output that differ by more than roundings are left in `job["apart"]`, by its number.
    """
    if "error" in ours or "error" in theirs:
        return _acceptance(job, ours, theirs, ask)
    if len(ours["outputs"]) != len(theirs["outputs"]):
        return f"outputs: {len(ours['outputs'])}, TensorFlow {len(theirs['outputs'])}"
    left, right = _flat(ours["outputs"]), _flat(theirs["outputs"])
    if job["op"] in ("EncodePng", "EncodeJpeg"):
        left, right = ([pixels(one) for one in side] for side in (left, right))
    if len(left) != len(right):
        return f"entries: {len(left)}, TensorFlow {len(right)}"
    for index, (one, two) in enumerate(zip(left, right, strict=True)):
        if one is None or two is None:
            if one is not two:
                return f"branch {index}: dead in one of both"
            continue
        one, two = np.asarray(one), np.asarray(two)
        if one.dtype != two.dtype or one.shape != two.shape:
            return f"type: {one.dtype}{one.shape}, TensorFlow {two.dtype}{two.shape}"
        if distance(one, two, job["op"]) > allowed(job["op"]):
            left = _beyond_roundings(job, index, one, two, ask)
            if left.any():
                job["apart"] = {index: left}
                return f"value of output {index}: {apart(job, one, two)}"
    return ""


def apart(job: dict[str, Any], ours: Array, theirs: Array) -> str:
    """Some of the elements that differ, with the inputs at their place."""
    lines = []
    for place in np.ndindex(ours.shape):
        one, two = ours[place], theirs[place]
        if distance(np.asarray(one, ours.dtype), np.asarray(two, theirs.dtype), job["op"]) > allowed(job["op"]):
            given = [value for value in job["call"].values() if isinstance(value, np.ndarray)]
            there = [value[place] for value in given if value.shape == ours.shape]
            lines.append(f"{ours.dtype}{list(place)} {one!r}, TensorFlow {two!r}" + (f" of {there}" if there else ""))
    return "; ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")


def _flat(entries: list[Any]) -> list[Any]:
    return [one for entry in entries for one in (entry if isinstance(entry, (list, tuple)) else [entry])]


def _acceptance(job: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], ask: Callable[..., Any]) -> str:
    if "error" in ours and "error" in theirs:
        return ""
    if "error" in theirs:
        if any(words in theirs["error"] for words in NO_KERNEL):
            return ""
        return f"accepted, TensorFlow refuses: {theirs['error']}"
    # What TensorFlow takes at once and refuses in a graph is refused here in both.
    if "error" in ask({**job, "kind": "graph"}):
        return ""
    return f"refused: {ours['error']}\nTensorFlow: {theirs['outputs']!r:.300}"


def _beyond_roundings(job: dict[str, Any], index: int, ours: Array, theirs: Array, ask: Callable[..., Any]) -> Any:
    """The cells that differ by more than the error of terms of a sum or of inputs, and are no closer to the truth.

    The truth are fifty digits, or TensorFlow in float64.
    """
    if ours.dtype.name not in _EPSILON:
        return ours != theirs
    left = ulps(ours, theirs, job["op"]) > allowed(job["op"])
    reasons: list[Callable[[], Any]] = [lambda: nearer(job, ours, theirs)]
    reasons.append(lambda: near_sums(job, index, ours, theirs))
    if OPS[job["op"]].kernel.startswith(_CELLWISE):
        reasons.append(lambda: sensitive(job, index, ours, theirs))
    if ours.dtype.name not in ("float64", "complex128"):
        reasons.append(lambda: _as_wide(job, index, ours, theirs, ask))
    for reason in reasons:
        if left.any():
            left = left & ~reason()
    return left


def _as_wide(job: dict[str, Any], index: int, ours: Array, theirs: Array, ask: Callable[..., Any]) -> Any:
    """The cells that are what TensorFlow gives in float64, rounded once."""
    wide, nowhere = ask({**job, "kind": "wide"}), np.zeros(ours.shape, bool)
    if "error" in wide:
        return _near(ours, theirs, np.abs(theirs.astype(np.float64))) if ours.dtype.name in _LOW else nowhere
    truth = np.asarray(_flat(wide["outputs"])[index])
    if truth.dtype.kind not in "fc" or truth.shape != ours.shape:
        return nowhere
    with np.errstate(all="ignore"):
        rounded = truth.astype(ours.dtype)
    close = ulps(ours, rounded, job["op"]) <= max(2, allowed(job["op"]))
    return close | near_sums(job, index, ours, rounded)


def near_sums(job: dict[str, Any], index: int, ours: Array, theirs: Array) -> Any:
    """The cells of an output that are sums, and as close as the roundings of their terms allow."""
    adds = OPS[job["op"]].problem is not None or OPS[job["op"]].kernel.startswith(_SUMS)
    adds = adds and ours.dtype.name in _EPSILON
    return _near(ours, theirs, _terms(job, index)) if adds else np.zeros(ours.shape, bool)


def _terms(job: dict[str, Any], index: int) -> Any:
    """The size of what a sum adds up: the op on absolute values, in float64 where it takes that."""
    if job["op"] == "CropAndResizeGradBoxes":
        return _shifted(**job["call"])
    for wide in (True, False):
        kept = next((names for kernel, names in _WHERE.items() if OPS[job["op"]].kernel.startswith(kernel)), ())
        call = {name: value if name in kept else _positive(value, wide) for name, value in job["call"].items()}
        call |= {name: -call[name] for name in _TAKEN_OFF if name in call and OPS[job["op"]].kernel.startswith(_OFF)}
        made = here.answer({**job, "call": call})
        if "error" not in made:
            with np.errstate(all="ignore"):
                size = np.abs(np.asarray(_flat(made["outputs"])[index]))
            over = next((axes for kernel, axes in _TOGETHER.items() if OPS[job["op"]].kernel.startswith(kernel)), ())
            if not over:
                return size
            largest = np.where(np.isfinite(size), size, 0).max(axis=over, keepdims=True, initial=0)
            return np.broadcast_to(largest, size.shape)
    return None


def _shifted(grads: Array, image: Array, boxes: Array, box_ind: Array, method: str) -> Any:
    """What moved corners add up, at most: gradients times differences of two cells, times the cells of an axis."""
    largest = np.abs(image.astype(np.float64)).max(axis=(1, 2), initial=0)[box_ind]
    size = 2 * (np.abs(grads.astype(np.float64)).sum(axis=(1, 2)) * largest).sum(axis=1)
    return size[:, None] * (np.array(image.shape)[[1, 2, 1, 2]] - 1)


def _positive(value: Any, wide: bool) -> Any:
    if isinstance(value, list):
        return [_positive(one, wide) for one in value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.ndim == 4:
        return np.abs(np.maximum(value, -np.iinfo(value.dtype).max))  # images; the least integer has no opposite
    if not isinstance(value, np.ndarray) or value.dtype.name not in _EPSILON:
        return value
    double = np.complex128 if value.dtype.kind == "c" else np.float64
    return np.abs(value).astype(double if wide else value.dtype)


def _near(ours: Array, theirs: Array, size: Any) -> Any:
    """The cells that are as close as the roundings of terms of this size allow."""
    if size is None or np.shape(size) != ours.shape:
        return np.zeros(ours.shape, bool)
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    unit = (16 if ours.dtype.name in _LOW else 8) * _EPSILON[ours.dtype.name]
    with np.errstate(all="ignore"):
        # No sum is larger than its terms: a variance of absolute values is, without their signs, smaller than itself.
        size = np.where(np.isfinite(ours.astype(wide)), np.maximum(size, np.abs(ours.astype(wide))), size)
        gap = np.abs(ours.astype(wide) - theirs.astype(wide))
        # What lies below the smallest normal number may have been flushed to zero.
        return (gap <= unit * size) | (gap < _TINY[ours.dtype.name])
