# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives: here, in TensorFlow, and as differences of our own results in float64."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from voxgrad.catalog.registry import OPS

from . import ours as here
from .draw import Draw, as_arrays
from .hints import HINTS

Job = dict[str, Any]

OUTPUTS = {"FusedBatchNorm": 1, "FusedBatchNormV2": 1, "FusedBatchNormV3": 1, "SoftmaxCrossEntropyWithLogits": 1,
           "SparseSoftmaxCrossEntropyWithLogits": 1, "FusedBatchNormGrad": 3, "FusedBatchNormGradV2": 3,
           "FusedBatchNormGradV3": 3}  # fmt: skip
"""How many results TensorFlow differentiates, where that is not all of them: others are there for its gradients."""

STILL = {"MaxPool3DGrad": 2, "MaxPool3DGradGrad": 2, "MaxPoolGrad": 2, "MaxPoolGradGrad": 2}
"""How many of the first inputs only choose cells: a small step off the maxima changes who wins."""

_LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}


def differentiable(name: str) -> bool:
    """True where the declaration has a gradient and needs no session."""
    return OPS[name].gradient is not None and not OPS[name].stateful


def gradient_jobs(name: str, seed: int, calls: int) -> list[Job]:
    """Smooth calls, in the widest floats that the op takes."""
    made = []
    for number in range(calls):
        label = f"{name}/{seed}/g{number}"
        call = as_arrays(Draw(OPS[name], label, HINTS.get(name, {}), smooth=True).call())
        if any(one.dtype.kind in "fcV" for one in _floats(call)):
            count = OUTPUTS.get(name, 99)
            made.append({"op": name, "call": call, "kind": "gradient", "label": label, "order": 2, "outputs": count})
    return made


def _floats(call: dict[str, Any]) -> list[Any]:
    flat = [one for value in call.values() for one in (value if isinstance(value, list) else [value])]
    return [np.asarray(one) for one in flat if isinstance(one, (np.ndarray, np.generic)) and one.dtype.name in _LOOSE]


def gap(ours: Any, theirs: Any) -> bool:
    """True where two gradients are apart. None and zeros are the same: nothing flows."""
    if ours is None or theirs is None:
        other = theirs if ours is None else ours
        return other is not None and bool((np.nan_to_num(np.asarray(other)) != 0).any())
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return True
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    left, right = ours.astype(wide), theirs.astype(wide)
    with np.errstate(all="ignore"):
        finite = np.isfinite(left) & np.isfinite(right)
        size = max(1.0, float(np.abs(np.where(finite, right, 0)).max(initial=0)))
        same = (left == right) | (np.isnan(left) & np.isnan(right)) | (
            finite & (np.abs(left - right) <= _LOOSE[ours.dtype.name] * size))  # fmt: skip
    return not bool(same.all())


def slopes_differ(job: Job, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """What differs between two answers about gradients, in words."""
    if "error" in ours:
        return "" if "error" in theirs else f"gradient refused: {ours['error']}\nTensorFlow: {theirs['first']!r:.300}"
    if "error" in theirs:
        return ""  # differences are what is left to compare with
    for order in ("first", "second"):
        if order not in ours or order not in theirs:
            if order == "second" and order in theirs and "second_error" in ours:
                return f"second refused: {ours['second_error']}"
            continue
        for index, (one, two) in enumerate(zip(ours[order], theirs[order], strict=True)):
            if two is not None and gap(one, two):
                return f"{order} of input {index}: {one!r}\nTensorFlow: {two!r}"
    return ""


def against_differences(job: Job, theirs: Job) -> str:
    """Gradients that TensorFlow does not have against central differences of our results along a random direction."""
    arrays, job = _floats(job["call"]), {**job, "order": 1, "semantics": "documented"}
    known = theirs.get("first", [None] * len(arrays))
    if all(one is not None for one in known):
        return ""
    ours = here.answer(job)
    if "error" in ours or any(one.dtype.itemsize < 8 or one.dtype == np.complex64 for one in arrays):
        return ""
    if all(one is not None or slope is None for one, slope in zip(known, ours["first"], strict=True)):
        return ""
    return off_quotient(job, ours["first"], 1)


def off_quotient(job: Job, slopes: list[Any], order: int) -> str:
    """How derivatives of our results, or of their first derivatives, differ from difference quotients, in words."""
    rng = np.random.default_rng(zlib.crc32(job["label"].encode()))
    directions = []
    for index, (one, slope) in enumerate(zip(_floats(job["call"]), slopes, strict=True)):
        way = rng.standard_normal(one.shape).astype(one.dtype) * (1 + 1j if one.dtype.kind == "c" else 1)
        directions.append(0 * one if slope is None or index < STILL.get(job["op"], 0) else way)

    def total(step: float) -> float:
        rest = iter(directions)
        call = {name: _moved(value, step, rest) for name, value in job["call"].items()}
        return _weighted({**job, "call": call}, order)

    exact = sum(float(np.real(np.conj(slope) * way).sum())
                for slope, way in zip(slopes, directions, strict=True) if slope is not None)  # fmt: skip
    with np.errstate(all="ignore"):
        coarse, fine = ((total(step) - total(-step)) / (2 * step) for step in (1e-4, 5e-5))
    scale = max(1.0, abs(coarse), abs(exact))
    # Where the two steps disagree the point is a kink or an edge of the domain.
    if not np.isfinite(coarse + fine + exact) or abs(coarse - fine) > 1e-5 * scale:
        return ""
    return f"difference quotient {fine!r}, gradient {exact!r}" if abs(fine - exact) > 1e-4 * scale else ""


def _weighted(job: Job, order: int) -> float:
    """What is differentiated: the weighted sum of the results, or that of their first derivatives."""
    if order == 2:
        flat = here.answer({**job, "order": 1})["first"]
    else:
        made = here.answer({**job, "kind": "run"})["outputs"]
        flat = [one for entry in made for one in (entry if isinstance(entry, (list, tuple)) else [entry])]
        flat = flat[: job["outputs"]]
    return float(sum(np.real(one * here.weights(one.shape, np.float64)).sum() for one in flat
                     if one is not None and one.dtype.name in _LOOSE))  # fmt: skip


def _moved(value: Any, step: float, rest: Any) -> Any:
    if isinstance(value, list):
        return [_moved(one, step, rest) for one in value]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.name in _LOOSE:
        return np.asarray(value + step * next(rest))
    return value
