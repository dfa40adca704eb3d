# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow 2.21 does differently on a CPU, and why that is its own affair: data, each with its reason.

An entry that explains nothing in a long run is stale: `python -m tests.parity.differential` says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from voxgrad.catalog.registry import OPS
from voxgrad.kernels.element_types import numpy_type

from . import ours as here
from .compare import near_sums
from .session import run_script
from .slopes import gap, off_quotient
from .windows import pooled

Job = dict[str, Any]


def _given(job: Job) -> Iterator[Any]:
    """All that a call or a script hands over."""
    for call in [job["call"], *(step.inputs for step in job.get("steps", ()))]:
        for value in call.values():
            yield from value if isinstance(value, list) else [value]


def _arrays(job: Job) -> Iterator[Any]:
    for one in _given(job):
        if isinstance(one, (np.ndarray, np.generic)) and one.dtype.name in _LIMITS:
            yield np.asarray(one)


_LIMITS = {name: ml_dtypes.finfo(name.replace("complex64", "float32").replace("complex128", "float64"))
           for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")}  # fmt: skip
_ROUGH = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}


def _parts(array: Any) -> Any:
    return np.stack([array.real, array.imag]).astype(np.float64) if array.dtype.kind == "c" else array.astype(float)


# Tests of cells: which of an array are such


Test = Callable[[Any], Any]


def _of_parts(test: Callable[[Any, Any], Any]) -> Test:
    """A test of the size of a number, or of either part of a complex one, and the limits of its type."""

    def cells(array: Any) -> Any:
        with np.errstate(all="ignore"):
            found = test(np.abs(_parts(array)), _LIMITS[array.dtype.name])
        return found.any(axis=0) if array.dtype.kind == "c" else found

    return cells


extreme = _of_parts(lambda size, limit: ~np.isfinite(size) | (size > float(limit.max) ** 0.5) | (
    (size < float(limit.tiny) ** 0.5) & (size > 0)))  # fmt: skip
"""Infinite, NaN, or so large or small that its square leaves the type."""
small = _of_parts(lambda size, limit: (size < 4 * float(limit.tiny)) & (size > 0))
"""Hardly above the smallest normal number, or below."""
denormal = _of_parts(lambda size, limit: (size < float(limit.tiny)) & (size > 0))
"""Between 0 and the smallest normal number."""
special = _of_parts(lambda size, limit: ~np.isfinite(size) | (size > 0.4 * float(limit.max)))
"""Infinite, NaN or near the largest number."""


def is_nan(array: Any) -> Any:
    """No number."""
    return np.isnan(array.astype(np.float64)) if array.dtype.name in _LIMITS else np.zeros(array.shape, bool)


def below_cut(array: Any) -> Any:
    """Negative numbers with -0 for an imaginary part."""
    return (array.real < 0) & (array.imag == 0) & np.signbit(array.imag)


def touched(job: Job, shape: tuple[int, ...], test: Test) -> Any:
    """The cells of a result that come from inputs which pass a test: cell by cell where these broadcast, else none."""
    made = np.zeros(shape, bool)
    for array in _arrays(job):
        found = np.asarray(test(array))
        try:
            made |= np.broadcast_to(found, shape)
        except ValueError:
            continue
    return made


def _pairs(ours: Any, theirs: Any) -> Iterator[tuple[Any, Any]]:
    """The results of both sides, side by side: of a call, or of all steps of a script."""
    if "steps" in ours and "steps" in theirs:
        for one, two in zip(ours["steps"], theirs["steps"], strict=False):
            yield from _pairs(one, two)
    for one, two in zip(_flat(ours.get("outputs", ())), _flat(theirs.get("outputs", ())), strict=False):
        if one is not None and two is not None:
            yield np.asarray(one), np.asarray(two)


def _flat(entries: Any) -> list[Any]:
    return [one for entry in entries for one in (entry if isinstance(entry, (list, tuple)) else [entry])]


def _far(one: Any, two: Any) -> Any:
    """The cells in which two results differ by more than roundings."""
    if one.dtype.name not in _ROUGH:
        return one != two
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        left, right = one.astype(wide), two.astype(wide)
        gap, size = np.abs(left - right), np.maximum(np.abs(left), np.abs(right))
        near = (gap <= _ROUGH[one.dtype.name] * size) & np.isfinite(gap) | (gap < float(_LIMITS[one.dtype.name].tiny))
    return ~(near | (left == right) | (np.isnan(left) & np.isnan(right)))


Where = Callable[[Job, Any, Any], Any]
"""Says in which cells of a result, ours and theirs, something is so."""
Cells = Callable[[Job, Any, Any], list[Any]]
"""The same of all results of a call."""


def each(where: Where) -> Cells:
    """Cells of every result by itself."""
    return lambda job, ours, theirs: [where(job, one, two) for one, two in _pairs(ours, theirs)]


def from_cells(test: Test) -> Cells:
    """Cells that come from inputs which pass a test."""
    return each(lambda job, one, two: touched(job, one.shape, test))


def unbounded(job: Job, one: Any, two: Any) -> Any:
    """Cells that are no number, or infinite, on one side."""
    if one.dtype.name not in _LIMITS:
        return np.zeros(one.shape, bool)
    return ~(np.isfinite(_parts(one)) & np.isfinite(_parts(two))).reshape(-1, *one.shape).all(axis=0)


def extreme_cells(job: Job, one: Any, two: Any) -> Any:
    """Cells of numbers that are infinite or NaN on one side, or come from extreme ones."""
    touches = touched(job, one.shape, extreme) if one.dtype.name in _LIMITS else False
    return unbounded(job, one, two) | touches


# Tests of calls


def has(test: Test) -> Callable[[Job], bool]:
    """An input has a cell that passes a test."""
    return lambda job: any(bool(np.any(test(array))) for array in _arrays(job))


def is_complex(job: Job) -> bool:
    """An input holds complex numbers."""
    return any(array.dtype.kind == "c" for array in _arrays(job))


def empty(job: Job, ours: Any, theirs: Any) -> bool:
    """TensorFlow's result has no elements: that of the call, or of the step that is refused here."""
    for one, two in zip(ours.get("steps", ()), theirs.get("steps", ()), strict=False):
        if "error" in one:
            return empty(job, one, two)
    return all(np.size(one) == 0 for one in _flat(theirs.get("outputs", [1])))


def empty_images(job: Job, ours: Any, theirs: Any) -> bool:
    """There are no images."""
    return not job["call"]["images"].size


def out_of_order(places: Any) -> bool:
    """Rows of a matrix are not sorted by their columns, the first of which counts most."""
    return places.ndim == 2 and bool((np.lexsort(places.T[::-1]) != np.arange(len(places))).any())


def only_zeros(job: Job, ours: Any, theirs: Any) -> bool:
    """The steps of a script add zeros and nothing else."""
    return all(not step.inputs["updates"].any() for step in job["steps"] if "updates" in step.inputs)


def by_priority(job: Job) -> bool:
    """The queue of a script gives what comes first by a number."""
    return any(step.op == "PriorityQueueV2" for step in job["steps"])


def equal_priorities(job: Job) -> bool:
    """Two entries of a queue by priority have the same."""
    if not by_priority(job):
        return False
    put = [np.ravel(step.inputs["components"][0]) for step in job["steps"] if "components" in step.inputs]
    return any(count > 1 for count in Counter(one for ranks in put for one in ranks.tolist()).values())


def pooled_again(job: Job) -> Job:
    """The orig_output that a max-pool gradient should have been given."""
    call = job["call"]
    attrs = {attr.name: call[attr.name] for attr in OPS["MaxPool"].attrs}
    return {"orig_output": pooled("MaxPool", call["orig_input"], attrs)}


def without_holes(job: Job) -> Job:
    """Dilations of 1."""
    return {"dilations": [1] * len(job["call"]["dilations"])}


def with_arguments(job: Job, changed: Job) -> Job:
    """The call with other arguments."""
    return {**job, "call": job["call"] | changed}


def as_with(changed: Callable[[Job], Job], or_so: Where | None = None) -> Cells:
    """Cells that are as here with other arguments, or differ from that as `or_so` says."""

    def cells(job: Job, ours: Any, theirs: Any) -> list[Any]:
        made, other = [np.zeros(one.shape, bool) for one, _ in _pairs(ours, theirs)], with_arguments(job, changed(job))
        for index, (one, two) in enumerate(_pairs(here.answer(other), theirs)):
            if one.shape == two.shape == made[index].shape:
                made[index] = ~_far(one, two) | near_sums(other, index, one, two)
                made[index] |= False if or_so is None else or_so(job, one, two)
        return made

    return cells


def _flush(value: Any, test: Test) -> Any:
    """Zeros for numbers that pass a test."""
    if isinstance(value, list):
        return [_flush(one, test) for one in value]
    if not isinstance(value, np.ndarray) or value.dtype.name not in _LIMITS:
        return value
    if value.dtype.kind == "c":
        real, imag = (_flush(np.array(part), test) for part in (value.real, value.imag))
        made = np.empty_like(value)
        made.real, made.imag = real, imag
        return made
    with np.errstate(all="ignore"):
        return np.where(test(value), value * np.zeros((), value.dtype), value)  # of their sign


def _without(test: Test) -> Callable[[Job], Job]:
    """The arguments of a call without the numbers that pass a test."""
    return lambda job: {name: _flush(value, test) for name, value in job["call"].items()}


def _as_script(test: Test) -> Cells:
    """Cells that are as here where the script is run without the numbers that pass a test."""

    def cells(job: Job, ours: Any, theirs: Any) -> list[Any]:
        steps = [replace(step, inputs={name: _flush(value, test) for name, value in step.inputs.items()})
                 for step in job["steps"]]  # fmt: skip
        made = list(_pairs(run_script({**job, "steps": steps}), theirs))
        before = [one for one, _ in _pairs(ours, theirs)]
        alike = [one.shape for one, _ in made] == [one.shape for one in before]
        return [~_far(*pair) for pair in made] if alike else [np.zeros(one.shape, bool) for one in before]

    return cells


def flushed(job: Job, ours: Any, theirs: Any) -> list[Any]:
    """Cells that are as here where numbers around the smallest normal one, or those below it, are taken for 0."""
    tests = (denormal, small) if has(small)(job) else ()
    alike = _as_script if job["kind"] == "script" else lambda test: as_with(_without(test))
    masks = [alike(test)(job, ours, theirs) for test in tests]
    return [np.any(alike, axis=0) for alike in zip(*masks, strict=True)] if masks else [
        np.zeros(one.shape, bool) for one, _ in _pairs(ours, theirs)]  # fmt: skip


def other_shape(job: Job, ours: Any, theirs: Any) -> bool:
    """The result has the shape that it has here where numbers below the smallest normal one are taken for 0."""
    flat = with_arguments(job, _without(denormal)(job))
    pairs = list(_pairs(here.answer(flat), theirs)) if has(denormal)(job) else []
    return bool(pairs) and all(one.shape == two.shape and not _far(one, two).any() for one, two in pairs)


def square_overflow(job: Job, one: Any, two: Any) -> Any:
    """Cells beside a half whose square is infinite in halves, or not far from it."""
    made = np.zeros(one.shape, bool)
    for array in _arrays(job):
        if array.dtype.name == "float16" and array.shape == one.shape:
            made |= (np.abs(array.astype(np.float64)) > 64).any(axis=-1, keepdims=True)
    return made


def unchosen(job: Job, ours: Any, theirs: Any) -> bool:
    """Sparse segments differ in rows that no index and no segment names, and in no others."""
    call, backward = job["call"], job["op"].endswith("Grad")
    named = ("indices", "segment_ids") if backward else ("segment_ids", "indices")
    for kind, rows in zip(("outputs", "first"), (call[name] for name in named), strict=True):
        for one, two in zip(ours.get(kind, ()), theirs.get(kind, ()), strict=True):
            if one is not None and two is not None:
                kept = [row for row in set(rows.tolist()) if row < len(one)]
                if one.shape != two.shape or bool(_far(one[kept], two[kept]).any()):
                    return False
    return True


def repeated_places(job: Job, ours: Any, theirs: Any) -> list[Any]:
    """Of sorted places and their values, the values at places that repeat; of more than 16."""
    masks = [np.zeros(one.shape, bool) for one, _ in _pairs(ours, theirs)]
    _, which, count = np.unique(ours["outputs"][0], axis=0, return_inverse=True, return_counts=True)
    masks[1] |= (count[which.ravel()] > 1) & (len(which) > 16)
    return masks


def denormal_quotient(job: Job, one: Any, two: Any) -> Any:
    """Cells of a division whose quotient lies between 0 and the smallest normal number."""
    if one.dtype.name not in _LIMITS:
        return np.zeros(one.shape, bool)
    with np.errstate(all="ignore"):
        return denormal(np.asarray(job["call"]["x"] / job["call"]["y"]).astype(one.dtype))


def unfit(job: Job, one: Any, two: Any) -> Any:
    """Cells of a cast whose floats do not fit the integers."""
    if one.dtype.kind not in "iu":
        return np.zeros(one.shape, bool)
    limit, value = np.iinfo(one.dtype), np.asarray(job["call"]["x"])
    real = np.trunc((value.real if value.dtype.kind == "c" else value).astype(np.float64))
    # The largest integer may be no float: the first float past it is.
    return ~((real >= float(limit.min)) & (real < float(limit.max) + (1 if limit.bits < 64 else 0)))


def lost_conjugate(job: Job, ours: Any, theirs: Any) -> bool:
    """TensorFlow's first derivatives are the conjugates of ours; or ours are right: the second fit their quotients."""
    if not is_complex(job):
        return False
    pairs = [
        pair for pair in zip(ours["first"], theirs["first"], strict=True) if pair[0] is not None and pair[1] is not None
    ]
    if any(gap(*pair) for pair in pairs):
        return not any(gap(np.conj(one), two) for one, two in pairs)
    return not off_quotient(job, ours["second"], 2)


def stopped_statistics(job: Job, ours: Any, theirs: Any) -> bool:
    """TensorFlow's second derivative by x is ours, with what ours by mean and variance carry to x, but for a level.

    It takes the variance about a mean that it holds fixed. Ours does not change where all of a channel moves.
    """
    call, (_, dx, _, dmean, dvariance, *_) = job["call"], ours["second"]
    if not call["is_training"] or dx is None or dmean is None or dvariance is None:
        return False
    x, wide = call["x"].astype(np.float64), [one.astype(np.float64) for one in (dx, dmean, dvariance)]
    axis = 1 if call["data_format"][1] == "C" else x.ndim - 1
    over = tuple(one for one in range(x.ndim) if one != axis)
    level, slope = (np.expand_dims(one, over) * x.shape[axis] / x.size for one in wide[1:])
    parts = wide[0], level, 2 * slope * (x - x.mean(over, keepdims=True))
    whole, size = sum(parts), np.maximum(1, sum(map(np.abs, parts)).max(over, keepdims=True))
    apart = theirs["second"][1] - whole
    apart = apart - apart.mean(over, keepdims=True)
    rough = _ROUGH[dx.dtype.name] * size
    return bool((np.abs(apart) <= rough).all() and (np.abs(whole.mean(over, keepdims=True)) <= rough).all())


def windows_with(test: Test) -> Where:
    """Windows of a pool that have a cell which passes a test; in a gradient, all cells of that sample and channel."""

    def where(job: Job, one: Any, two: Any) -> Any:
        call, name = job["call"], "MaxPool3D" if "3D" in job["op"] else "MaxPool"
        found = test(call.get("orig_input", call.get("input")))
        if re.search("Pool(3D)?Grad$", job["op"]):
            space = tuple(axis for axis, name in enumerate(call["data_format"]) if name not in "NC")
            return np.broadcast_to(found.any(axis=space, keepdims=True), one.shape)
        attrs = {attr.name: call[attr.name] for attr in OPS[name].attrs if attr.name in call}
        return pooled(name, found.astype(np.float32), attrs) > 0

    return where


def rows_with_nan(job: Job, one: Any, two: Any) -> Any:
    """The largest of rows in which something is NaN."""
    return np.broadcast_to(is_nan(job["call"]["input"]).any(axis=-1, keepdims=True), one.shape)


def odd_pixels(job: Job, one: Any, two: Any) -> Any:
    """Colours with a channel at the ends of the range."""
    return np.broadcast_to(special(job["call"]["images"]).any(axis=-1, keepdims=True), one.shape)


def whole_turns(job: Job, one: Any, two: Any) -> Any:
    """Colours whose hue is a whole turn, as that of red with hardly less green than blue."""
    hue = np.asarray(here.answer({**job, "op": "RGBToHSV", "call": {"images": job["call"]["images"]}})["outputs"][0])
    return np.broadcast_to(hue[..., :1] >= 1, one.shape)


def huge_channels(job: Job, one: Any, two: Any) -> Any:
    """Channels of images with a number beside which others are lost."""
    found = ~(np.abs(job["call"]["images"].astype(np.float64)) < 2.0**23)
    return np.broadcast_to(found.any(axis=(-3, -2), keepdims=True), one.shape)


def rounded_means(job: Job, one: Any, two: Any) -> Any:
    """Cells that differ by no more than a sum of float32 may lose, for the mean that they are spread around."""
    images, factor = (job["call"][name].astype(np.float64) for name in ("images", "contrast_factor"))
    lost = 2.0**-24 * np.abs(images).sum(axis=(-3, -2), keepdims=True) * np.abs(1 - factor)
    return np.abs(one.astype(np.float64) - two) <= lost


def between_steps(job: Job, one: Any, two: Any) -> Any:
    """Neighbouring steps of a number that lies between them, to four last places."""
    call = job["call"]
    data = call["x"].astype(np.float64) * ((call["x_max"] - call["x_min"]) / 255.0)
    away = data - data.mean(axis=(1, 2), keepdims=True)
    made = away / np.sqrt((away**2).mean(axis=(1, 2), keepdims=True) + call["variance_epsilon"])
    _, low, high = (np.asarray(value, np.float64) for value in here.answer(job)["outputs"])
    steps = np.abs(made * (255 / (high - low)))
    near = np.abs(steps - np.floor(steps) - 0.5) <= 4 * 2.0**-23 * np.maximum(steps, 1)
    return near & (np.abs(one.astype(int) - two) == 1)


def noise(job: Job, one: Any, two: Any) -> Any:
    """Cells of a glimpse outside of its image."""
    inside = {"input": np.ones_like(job["call"]["input"]), "uniform_noise": False, "noise": "zero"}
    return np.asarray(here.answer(with_arguments(job, inside))["outputs"][0]) == 0


def below_normal(job: Job, one: Any, two: Any) -> Any:
    """Cells of two numbers that both lie below the smallest normal one, and are not both 0."""
    x, y = (job["call"][name] for name in ("x", "y"))
    return np.broadcast_to((denormal(x) | (x == 0)) & (denormal(y) | (y == 0)) & ((x != 0) | (y != 0)), one.shape)


def product_beyond(job: Job, one: Any, two: Any) -> Any:
    """Cells in which a product of two of dy, y and 1 - y leaves the type, and none of them does."""
    y, dy = job["call"]["y"], job["call"]["dy"]
    with np.errstate(all="ignore"):
        inside = np.isfinite(y) & np.isfinite(dy)
        beyond = ~np.isfinite(np.stack([y * (1 - y), y * dy, (1 - y) * dy]).astype(one.dtype)).all(axis=0)
    return np.broadcast_to(inside & beyond, one.shape)


def no_density(job: Job, one: Any, two: Any) -> Any:
    """Cells of a gamma distribution whose density lies below the smallest normal number."""
    import scipy.special

    alpha, sample = (job["call"][name].astype(np.float64) for name in ("alpha", "sample"))
    with np.errstate(all="ignore"):
        log = (alpha - 1) * np.log(sample) - sample - scipy.special.gammaln(alpha)
        return np.broadcast_to((alpha > 0) & (log < np.log(float(_LIMITS[one.dtype.name].tiny))), one.shape)


def nothing_beyond(job: Job, one: Any, two: Any) -> Any:
    """Slices of floats whose least number, or greatest, is no less than the largest finite one, or no more."""
    data, axis = job["call"]["input"], int(job["call"]["dimension"])
    if data.dtype.name not in _LIMITS or data.dtype.kind == "c":
        return np.zeros(one.shape, bool)
    best = data.astype(np.float64).min(axis) if job["op"] == "ArgMin" else -data.astype(np.float64).max(axis)
    return np.asarray(best >= float(_LIMITS[data.dtype.name].max))


def denormal_base(job: Job, one: Any, two: Any) -> Any:
    """Cells of an x between 0 and the smallest normal number."""
    x = job["call"]["x"]
    return np.broadcast_to(denormal(x) if x.dtype.name in _LIMITS else False, one.shape)


def reciprocal_below_normal(job: Job, one: Any, two: Any) -> Any:
    """Cells of a y whose reciprocal lies between 0 and the smallest normal number."""
    test = _of_parts(lambda size, limit: np.isfinite(size) & (size > 1 / float(limit.tiny)))
    return np.broadcast_to(test(job["call"]["y"]), one.shape)


def negative_norm(job: Job, one: Any, two: Any) -> Any:
    """Cells of a normalisation by a sum that is not positive; in a gradient, their rows."""
    call = job["call"]
    data, radius = call.get("input_image", call.get("input")).astype(np.float64), call["depth_radius"]
    squares = np.pad(data**2, [(0, 0)] * 3 + [(radius, radius)])
    sums = np.lib.stride_tricks.sliding_window_view(squares, 2 * radius + 1, axis=-1).sum(-1)
    found = call["bias"] + call["alpha"] * sums <= 0
    return found if job["op"] == "LRN" else np.broadcast_to(found.any(axis=-1, keepdims=True), one.shape)


Condition = Callable[[Job, dict[str, Any], dict[str, Any]], bool]


def when(*tests: Callable[[Job], bool]) -> Condition:
    """All of these hold for the call."""
    return lambda job, ours, theirs: all(test(job) for test in tests)


def attribute(name: str, test: Callable[[Any], bool]) -> Callable[[Job], bool]:
    """An argument passes a test."""
    return lambda job: bool(test(job["call"][name]))


ALWAYS: Condition = when()
_VALUE = r"value|step \w+ \w+: value"


@dataclass(frozen=True)
class Known:
    """Ops (a pattern), how a difference begins, words that it holds, a condition, the only cells; the reason."""

    ops: str
    kind: str
    reason: str
    says: str = ""
    condition: Condition = ALWAYS
    cells: Cells | None = None


_ADDING = "|".join(
    name for name, op in OPS.items()
    if op.problem is not None
    or op.kernel.startswith(("patches", "resampling", "image", "fake_quant", "windows2d", "matrix", "reductions",
                             "sparse", "nn", "batch_norm"))
)  # fmt: skip

KNOWN = (
    # What its CPU does not have
    Known(".*", "accepted", "Its CPU kernels have no holes and no groups in gradients.",
          r"dilation rates|dilated rates|grouped convolutions"),
    Known("Conv3D.*", "accepted", "Its CPU kernels have no groups in three dimensions.",
          "must match last dimension of input|must have the same number of channels"),
    Known("Conv2DBackpropFilter", "accepted", "Its CPU kernel has no groups and does not say so.",
          "filter_size does not have enough elements"),
    Known("MaxPool3D(Grad)?", "accepted", "Its declaration leaves out float64, integers and mixed types.",
          "not in the list of allowed values|cannot compute"),
    Known("Depthwise.*Backprop.*", "accepted|refused", "Its gradients take holes for none, and so other sizes fit.",
          condition=lambda job, ours, theirs: ("error" in theirs) == ("error" in here.answer(
              with_arguments(job, without_holes(job))))),
    Known("Depthwise.*Backprop.*", "value", "Its gradients take holes for none.",
          cells=as_with(without_holes, unbounded)),
    Known("ComplexAbs", "accepted", "Real, Imag and Angle have no kernel for another precision there either.",
          "Signature mismatch"),
    Known(".*", "accepted|script", "It ends its process on a check that a user cannot see.", "aborted the process"),
    # What it does not look at
    Known(".*", "refused|step", "It does not look at indices where nothing is copied, nor at bounds where nothing is "
          "drawn.", "VG043|VG003", empty),
    Known("SqrtGrad|RsqrtGrad|ReciprocalGrad|InvGrad|SigmoidGrad|TanhGrad", "refused|gradient refused",
          "Its kernels broadcast, which its shape functions deny: a graph gets the shape of y.", "VG012|VG001"),
    Known("AvgPool(3D)?Grad", "refused", "It does not compare the gradient with the pool, and reads past it.",
          "VG012|VG007"),
    Known("AvgPool(3D)?Grad", "refused", "It looks at nothing where nothing is returned.", "VG016", empty),
    Known("(Avg|Max)Pool(3D)?(Grad|GradGrad)?(WithArgmax)?", "refused", "It does not look at windows and strides that "
          "it does not use.",
          r"VG00[67] \w+: (ksize|strides)\["),
    Known("MaxPool.*", "refused", "It does not look at explicit_paddings beside another padding.",
          "explicit_paddings must be empty unless"),
    Known("MaxPoolGrad", "value", "It pools again instead of looking at orig_output.", cells=as_with(pooled_again)),
    Known("DepthwiseConv2dNative.*", "accepted", "Its kernels have equal strides only.", "equal length strides"),
    Known("Depthwise.*", "refused", "It does not look at the length of dilations, nor at those of other axes.",
          "dilations"),
    Known("Depthwise.*|Conv2D.*|Conv3DBackprop.*|Dilation2D.*", "refused", "A filter without taps sums nothing; Conv3D "
          "refuses it there too.",
          "VG017"),
    Known("FusedBatchNorm.*", "refused", "It does not look at statistics that it does not use.",
          r"VG01[23] \w+: (mean|variance|reserve_space_\d) "),
    Known("Const", "refused", "Its Python makes the type before the op sees it: fractions are cut off, -1 wraps.",
          condition=lambda job, ours, theirs: job["call"]["value"].dtype != numpy_type(job["call"]["dtype"])),
    Known("BroadcastArgs|BroadcastGradientArgs", "refused", "It takes a negative size for a size.",
          condition=lambda job, ours, theirs: any((job["call"][name] < 0).any() for name in ("s0", "s1"))),
    Known("SparseReshape|SparseTensorDenseMatMul|SparseReduce.*|SparseSoftmax|SparseConcat|SparseSlice|SparseCross",
          "refused", "It computes with places outside the tensor.", "inside"),
    Known("SparseAdd", "type|value", "It reads a thresh of another type as one of the values'.",
          condition=lambda job, ours, theirs: job["call"]["thresh"].dtype != np.abs(job["call"]["a_values"]).dtype),
    Known("SparseAddGrad", "value", "Places that repeat get something, depending on others.",
          condition=when(lambda job: any(len(np.unique(job["call"][name], axis=0)) < len(job["call"][name])
                                         for name in ("a_indices", "b_indices", "sum_indices")))),
    Known("SparseCross", "type|value", "It takes the places of a column for those of one row after the other.",
          condition=when(lambda job: any(bool((np.diff(np.asarray(places)[:, 0]) < 0).any())
                                         for places in job["call"]["indices"] if np.ndim(places) == 2))),
    Known("Barrier.*", r"step s\d BarrierInsertMany", "It looks at the shape of a part when its entry is complete.",
          "VG012 .*values must have rows of shape"),
    Known("(Ordered)?Map.*", r"step \w+ (Ordered)?MapStage", "It takes other numbers of indices than of values.",
          r"VG012 .*indices must name \d+ parts, as values are"),
    Known(".*Accumulator.*", r"step \w+ SparseAccumulatorApplyGradient", "It takes rows with a further axis of size 1.",
          r"VG012 .*gradient_values must have rows of shape \[([\d,]*)\]; got \[\1,?1\]"),
    Known("SparseSlice", "refused", "It takes the least integer for a size: what lies behind it overflows.",
          "size must hold numbers of 0 or more", when(attribute("size", lambda size: (size == -(2**63)).any()))),
    Known("SparseFillEmptyRows", "refused", "Of the shape it looks at the rows alone.", r"dense_shape\[[1-9]"),
    Known("Scatter(Update|Add|Sub|Mul|Div|NdUpdate|NdAdd|NdSub)", "step s0", "It takes a scalar variable for one row, "
          "and does not look at updates of no rows then.",
          r"without rows|last size of at most 0|the chosen rows, \[0\]; got \[0,"),
    Known("Scatter(Nd)?(Add|Sub)", "step s0", "It drops a step that adds zeros before it looks at places.", "VG043",
          only_zeros),
    Known(".*Queue.*", r"step \w+ QueueDequeueUpTo", "Of a closed queue by priority it gives fewer to nobody.",
          "is closed and has insufficient elements", when(by_priority)),
    Known(".*Queue.*", r"step \w+ QueueDequeue", "Of entries of one priority it takes any; here the first that came.",
          condition=when(equal_priorities)),
    Known("ScatterNd|ScatterNdNonAliasingAdd|TensorScatter.*", "accepted", "Its shapes take a vector of indices for "
          "one position, its kernels for many: no call passes both.", "[Dd]imensions",
          when(attribute("indices", lambda places: places.ndim == 1))),
    Known("SparseDenseCwise.*", "refused", "Its broadcast takes a size of 0 for 1 where nothing is returned.",
          "VG012 .*dense must broadcast", empty),
    Known("SparseDenseCwise.*", "accepted", "It refuses to broadcast a size of 1 to none, the smaller.",
          "broadcasts dense to sparse only", when(attribute("sp_shape", lambda shape: (shape == 0).any()))),
    Known("SparseConcat|SparseReorder", "value of output 1", "It sorts more than 16 places so that those which repeat "
          "come in any order.", cells=repeated_places),
    Known("TensorArray.*", "script", "It does not compare the shapes of tensors without elements.", "of one shape"),
    Known("(Resource)?SparseApply.*", "step s0", "It refuses rows without cells, of which nothing changes.",
          "Inner dimension should be greater than zero"),
    Known("ResourceSparseApply.*", "step s0", "It does not compare the ranks of gradient and variable.",
          "VG012 .*grad must have the shape"),
    Known("(Resource)?SparseApply.*", r"step \w+ \w+: value", "Complex steps at infinities and on the cut, by rows.",
          condition=when(is_complex, has(extreme))),
    Known("(Resource)?(Sparse)?ApplyCentered.*", r"step \w+ \w+: value", "Where rho is 0 the variance is what two "
          "squares lose when they are rounded.", condition=lambda job, ours, theirs: any(
              np.any(step.inputs["rho"] == 0) for step in job["steps"] if "rho" in step.inputs)),
    Known("(Resource)?(Sparse)?Apply.*", r"step \w+ \w+: value", "Sums of complex numbers, and a variance that is a "
          "difference, keep fewer digits; those are equal.", condition=lambda job, ours, theirs: (
              is_complex(job) or "Centered" in job["op"]) and not any(
                  _far(*pair).any() for pair in _pairs(ours, theirs)
                  if pair[0].shape == pair[1].shape and pair[0].dtype.itemsize > 2)),
    Known("Resize(Bilinear|Bicubic)Grad", "refused", "It does not compare batch and channels, and gives those of the "
          "gradient.", "have the (batch|channels) of original_image"),
    Known("CropAndResize.*", "refused", "It looks at no shape of no boxes.", r"VG01[02] \w+: (boxes|box_ind) ",
          when(attribute("boxes", lambda boxes: boxes.size == 0), attribute("box_ind", lambda which: which.size == 0))),
    Known("CropAndResize", "first of input 1", "It derives by corners as if the crop were bilinear.",
          condition=when(attribute("method", lambda method: method == "nearest"))),
    Known("FractionalMaxPoolGrad", "accepted", "It counts the cells at bounds of windows twice, and finds too many.",
          "Pooling region has more elements"),
    Known("FractionalAvgPool", "second refused", "It says that nothing flows; there is no op for the means of given "
          "windows.", "FractionalAvgPoolGrad must be an op with a gradient"),
    Known("EditDistance", "refused", "It takes places past the end of a sequence for places in it.", "lie inside"),
    Known("ParallelConcat", "refused", "It leaves rows that nobody gave as they were in memory.", "one row per tensor"),
    Known("MaxPoolWithArgmax", "accepted", "It refuses images of which nothing is returned.", "must not be empty"),
    Known("Dilation2D.*", "refused", "It does not look at the sign of rates.", r"VG006 \w+: rates\["),
    Known("ParseExample", "refused", "It takes what is left of a record that was cut behind one of its features.",
          r"VG053.*serialized.*a field of \d+ bytes that ends after"),
    Known("(Resource)?StridedSliceAssign", "step s ", "It does not compare shapes where no cell changes.",
          r"the shape of the slice, \[[^\]]*\b0\b"),
    Known("QuantizeAndDequantizeV2", "accepted|refused", "It documents a range per slice and takes one for all.",
          "must be a scalar|have the shape", when(attribute("axis", lambda axis: axis != -1))),
    Known("QuantizeAndDequantizeV2", "refused", "Where narrow_range leaves one bit no step, it answers infinities.",
          "leave a step"),
    Known("Fractional(Max|Avg)PoolGrad", "refused", "It does not compare the bounds with the gradient.",
          "VG01[02]|VG043"),
    Known("Quantize.*|Requantize", "accepted", "Plain integers stand for the quantised ones that they hold, by name, "
          "too.", "not in the list of allowed values: qint8"),
    Known("QuantizedInstanceNorm", "value", "It rounds on the way.", cells=each(between_steps)),
    Known("QuantizedInstanceNorm", "value", "Of roots of negative numbers it takes the least by how its vectors fall.",
          condition=when(attribute("variance_epsilon", lambda added: not added >= 0))),
    Known("QuantizedMul", "accepted", "It refuses products of nothing.", "vector must have at least 1 element"),
    Known("QuantizeV2", "value", "Of a range without numbers above 0 steps are below the smallest normal number, which "
          "it takes for 0.", cells=each(lambda job, one, two: (one == 1) & (two == 0))),
    Known("QuantizedBatchNorm.*", "value", "The root of what is below 0 is any integer there.",
          condition=when(attribute("variance_epsilon", lambda value: not value >= 0))),
    Known("QuantizedBatchNorm.*", "refused", "Of a range it takes the first number, whatever its rank.",
          r"_(min|max) must have rank 0; got rank 1, shape \[1\]"),
    Known("Quantized(Avg|Max)Pool", "refused", "It does not look at the step along channels.", r"VG007.*strides\[3\]"),
    Known("FixedUnigramCandidateSampler", r"step \w+ Fixed", "Where a shard has no weight its chances are NaN.",
          r"unigrams must be 0 or more, one of them above.*\n.*nan"),
    Known("QuantizedResizeBilinear", "type", "Of no images it gives no range.", condition=empty_images),
    Known("QuantizeV2|Dequantize", "value", "The highest qint32 are floats above all integers on their way, and come "
          "out as the lowest.", cells=each(lambda job, one, two: (one > 0) & (two < 0))),
    Known("QuantizedConcat", "value", "Behind an empty tensor it takes the range of the one before.",
          condition=when(lambda job: any(not one.size for one in job["call"]["values"]))),
    Known("QuantizedMatMul|QuantizedConv2D", "value", "A sum of nothing is what its memory held.",
          condition=when(lambda job: not job["call"].get("a", job["call"].get("filter")).size)),
    # Numbers
    Known("Round", "value", "It rounds integers to 0.",
          condition=when(attribute("x", lambda value: np.asarray(value).dtype.kind == "i"))),
    Known("Erf", "value", "Erf of an infinite or huge float64 is NaN there.", cells=from_cells(special)),
    Known("Polygamma|Zeta|Digamma|Lgamma|Igamma|Igammac|IgammaGradA|RandomGammaGrad|Betainc", "value",
          "Series of special functions at the ends of the range.",
          cells=from_cells(lambda array: special(array) | small(array))),
    Known("Cast", "value", "Floats that do not fit an integer: each of its vector paths gives something else.",
          cells=each(unfit)),
    Known(".*", _VALUE, "Complex arithmetic at infinities and beyond the square root of the range: Eigen's formulas "
          "overflow where C's do not.", condition=when(is_complex), cells=each(extreme_cells)),
    Known(".*", _VALUE, "It takes numbers below the smallest normal one for 0 where a vector unit computes.",
          cells=flushed),
    Known(".*", "type", "It takes numbers below the smallest normal one for 0, and then finds fewer.",
          condition=other_shape),
    Known(_ADDING, "value", "Infinities and overflow: what meets first decides between infinity and NaN; its products "
          "multiply padding too.", condition=when(has(special)), cells=each(unbounded)),
    Known("Rsqrt", "value", "On the cut it does not look at the sign of a zero.", cells=from_cells(below_cut)),
    Known("SigmoidGrad", "value", "Its vector unit multiplies in another order than the rest: one of them overflows.",
          cells=each(product_beyond)),
    Known("RandomGammaGrad", "value", "Where the density is no number above 0 it gives 0.", cells=each(no_density)),
    Known("ArgMin|ArgMax", "value", "It begins with the largest finite number, and finds none beyond that.",
          cells=each(nothing_beyond)),
    Known("Fractional(Max|Avg)Pool", "value|type", "With two seeds of 0 its windows are others in every process.",
          condition=lambda job, ours, theirs: job["call"]["seed"] == job["call"]["seed2"] == 0),
    Known("EditDistance", "value", "It takes places of a sequence that come later for another sequence.",
          condition=when(lambda job: any(out_of_order(job["call"][f"{name}_indices"])
                                         for name in ("hypothesis", "truth")))),
    Known("SqrtGrad", "value", "Its vector unit multiplies by the reciprocal of y, and takes one below the smallest "
          "normal number for 0.", cells=each(reciprocal_below_normal)),
    Known("Atan2", "value", "Of two numbers below the smallest normal one it takes the diagonal.",
          cells=each(below_normal)),
    Known("Pow", "value", "It has numbers below the smallest normal one flushed to 0, and the C library's pow, which "
          "scales them up first, then takes each of them for the same power of two.", cells=each(denormal_base)),
    Known("FloorDiv", "value", "A quotient below the smallest normal number is 0 there before it is rounded down.",
          cells=each(denormal_quotient)),
    Known("AvgPool3D", "value", "It takes the lowest number for padding.",
          cells=each(windows_with(lambda array: _parts(array) == -float(_LIMITS[array.dtype.name].max)))),
    Known("MaxPool.*", "value", "NaN is compared with others: no order.", cells=each(windows_with(is_nan))),
    Known("LRN|LRNGrad", "value", "It computes half in half, where squares of 256 overflow.",
          cells=each(square_overflow)),
    Known("LRN|LRNGrad", "value", "A power of a negative number is exp of a logarithm there, also that of 0.",
          cells=each(negative_norm)),
    Known("LRN|LRNGrad", "value", "A power without end is exp of 0 times infinity there, and a gradient of 0 is not "
          "multiplied by NaN.", condition=lambda job, ours, theirs: not all(np.isfinite(
              job["call"][name]) for name in ("bias", "alpha", "beta"))),
    Known("TopK|TopKV2", "value|first|second", "Without sorted the order is open.",
          condition=lambda job, ours, theirs: not job["call"]["sorted"]),
    Known("TopK|TopKV2", "value", "NaN is compared with others: no order.",
          cells=each(rows_with_nan)),
    Known("FusedBatchNorm(V2|V3)?", "value", "Outside of training, and of an empty batch, it leaves its reserves as "
          "they were in memory.", "output [34]",
          lambda job, ours, theirs: not job["call"]["is_training"] or job["call"]["x"].size == 0),
    Known("SparseSegment(Sum|Mean|SqrtN)(Grad)?", "value|first", "Rows that nobody chose stay as they were in memory.",
          condition=unchosen),
    Known("ArgMax", "accepted", "It reads four bytes of a dimension of two.", "Expected dimension",
          lambda job, ours, theirs: np.asarray(job["call"]["dimension"]).dtype.itemsize == 2),
    Known("MaxPoolGradWithArgmax", "refused", "It takes a place before an image, or behind it, for one in the next "
          "image.", "VG043", lambda job, ours, theirs: not job["call"]["include_batch_in_index"]),
    Known("SparseDenseCwiseDiv", "accepted", "It takes numbers below the smallest normal one for 0, and refuses that.",
          "cannot divide by zero", when(attribute("dense", lambda x: (x != 0).all() and denormal(x).any()))),
    Known("FusedPadConv2D|FusedResizeAndPadConv2D", "refused", "Of a filter without cells it gives what is in memory.",
          "filter must have a cell", when(attribute("filter", lambda taps: taps.size == 0))),
    Known("ShardedFilename|ShardedFilespec", "value", "Its text ends at a zero byte.",
          condition=lambda job, ours, theirs: b"\0" in job["call"]["basename"].item()),
    Known("RGBToHSV|HSVToRGB|AdjustHue|AdjustSaturation", "value", "Colours that are no numbers: no order of channels.",
          cells=each(odd_pixels)),
    Known("AdjustSaturation", "value", "A hue just below a whole turn is rounded to one, for which it has no colour.",
          cells=each(whole_turns)),
    Known("AdjustContrast(v2)?", "value", "Its means lose digits, or overflow, beside huge numbers.",
          cells=each(huge_channels)),
    Known("AdjustContrast(v2)?", "value", "Its means are sums of float32.", cells=each(rounded_means)),
    Known("DecodePng", "value", "Full opacity of a picture of less than 8 bits is that of its bits.",
          condition=lambda job, ours, theirs: job["call"]["channels"] == 4 and job["call"]["contents"].item()[24] < 8),
    Known("DecodeJpeg", "value", "It takes a quicker and less exact transform unless told otherwise.",
          condition=when(attribute("dct_method", lambda method: method != "INTEGER_ACCURATE"), attribute(
              "fancy_upscaling", bool)), cells=each(lambda job, one, two: np.abs(one.astype(int) - two) <= 6)),
    Known("Decode(Gif|Png)", "value", "Of JPEG files it takes the quicker transform here, too.",
          condition=lambda job, ours, theirs: job["call"]["contents"].item().startswith(b"\xff\xd8"),
          cells=each(lambda job, one, two: np.abs(one.astype(int) - two) <= (6 if one.itemsize == 1 else 6 * 256))),
    Known("ExtractGlimpse", "value", "Its noise is another at every call.",
          condition=when(attribute("noise", lambda noise: noise != "zero")), cells=each(noise)),
    # Gradients
    Known("Cumprod|SegmentProd|UnsortedSegmentProd|Prod|SparseDenseCwise(Mul|Div)", "first|second",
          "It forgets a conjugate.", condition=lost_conjugate),
    Known("FusedBatchNormGrad.*", "second of input 1", "It derives through the statistics of x, with the mean in the "
          "variance held fixed; here that part goes to the reserves.", condition=stopped_statistics),
    Known("SparseToDense", "first", "Its gradient gathers as if a vector of positions were one position, and then has "
          "not the shape of the values.",
          condition=lambda job, ours, theirs: np.shape(theirs["first"][0]) != np.shape(job["call"]["sparse_values"])),
    Known("TensorScatterUpdate", "difference", "Which of several updates of a cell stays is open; as in TensorFlow, "
          "the gradient gives to each.", condition=when(attribute("indices", lambda places: len(np.unique(
              places.reshape(-1, places.shape[-1]), axis=0)) < len(places.reshape(-1, places.shape[-1]))))),
)  # fmt: skip


def explain(job: Job, ours: dict[str, Any], theirs: dict[str, Any], found: str) -> str:
    """The reason that explains a difference; empty where none does."""
    fitting = [known for known in KNOWN if _fits(known, job, found) and known.condition(job, ours, theirs)]
    whole = [known for known in fitting if known.cells is None]
    return _name(whole[0]) if whole else _by_cells(job, ours, theirs, fitting)


def _fits(known: Known, job: Job, found: str) -> bool:
    named = re.fullmatch(known.ops, job["op"]) and re.match(known.kind, found)
    return bool(named) and (not known.says or re.search(known.says, found) is not None)


def _by_cells(job: Job, ours: Any, theirs: Any, entries: list[Known]) -> str:
    """The first reason of several, if together they cover every cell that is far off."""
    pairs = list(_pairs(ours, theirs))
    if any(one.shape != two.shape for one, two in pairs):
        return ""
    apart, used = job.get("apart", {}), list[Known]()
    left = [_far(*pair) & apart.get(index, True) for index, pair in enumerate(pairs)]
    if apart and not any(bool(far.any()) for far in left):
        # Only small differences: a part of a sum was flushed, say.
        left = [apart.get(index, far) for index, far in enumerate(left)]
    for known in entries:
        masks = [] if known.cells is None else known.cells(job, ours, theirs)
        if any(bool((far & mask).any()) for far, mask in zip(left, masks, strict=True)):
            used.append(known)
        left = [far & ~mask for far, mask in zip(left, masks, strict=True)]
    return _name(used[0]) if used and not any(bool(far.any()) for far in left) else ""


def stale(explained: Counter[str]) -> list[str]:
    """Entries that explained nothing."""
    return [_name(known) for known in KNOWN if not explained[_name(known)]]


def _name(known: Known) -> str:
    return f"{known.ops[:40]}: {known.reason}"
