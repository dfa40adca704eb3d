# SPDX-License-Identifier: Apache-2.0
"""Random small problems on every path of the GPU kernels, compared with the reference: `docs/testing.md` says more.

    python -m tests.cuda.sweep                            what covers all paths and edges, with the seed of today
    python -m tests.cuda.sweep --cases 20000 --gpu        so many problems on the GPU, compiled in all processes
    python -m tests.cuda.sweep --cases 1 --first 17 --seed 20261117      the one that failed

Without --gpu Triton's interpreter runs the kernels. The run fails with a wrong number, and with a path that no case
entered or an edge of a condition that no case lay beyond.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import ml_dtypes
import numpy as np
import torch

from voxgrad import reference
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.kernels import names
from voxgrad.kernels.cuda import conv3d, dispatch, launch, paths, tune
from voxgrad.kernels.cuda.conv_common import Config

KERNELS = {kernel: op for op, kernel in names.KERNELS.items()}
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "float32": (torch.float32, dtypes.FLOAT32, np.float32),
    "bfloat16": (torch.bfloat16, dtypes.BFLOAT16, ml_dtypes.bfloat16),
    "half": (torch.float16, dtypes.HALF, np.float16),
    "float64": (torch.float64, dtypes.FLOAT64, np.float64),
    "int32": (torch.int32, dtypes.named("int32"), np.int32),
}
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ASKED_ONLY = ("engine", "size")
"""Forks that compare engines and sizes: they are asked about large problems, which no interpreter could run."""


@dataclass(frozen=True)
class Case:
    """A problem, how to run it, and the seed of its data."""

    problem: Problem
    kind: str
    forced: dict[str, str]
    config: Config | None
    odd: str
    """What is unusual about the data: "nan", "not the maximum", "misaligned", "turned"; "" for nothing."""
    seed: tuple[int, ...]
    dry: bool = False
    """Is it only asked which paths it would take?"""

    def __str__(self) -> str:
        made, config = self.problem, self.config and f" {self.config}"
        text = f"{tune.describe(made)}{' near' if made.near_ties else ''} {self.forced}{config or ''} {self.odd}"
        return f"{text} (--seed {self.seed[0]} --first {self.seed[1]} --cases 1)"


def today() -> int:
    """The seed of a day."""
    return int(datetime.now(UTC).strftime("%Y%m%d"))


def draw(seed: int, index: int, together: int = 1) -> Case:
    """Case `index` of a seed. So many with neighbouring numbers differ in sizes and data alone.

    Of several sizes those are taken with which a case needs no other kernels than the first of its neighbours: a kernel
    is compiled for seconds, and runs for microseconds. In the end only one axis has another size, then none.
    """
    if index % together == 0:
        return _drawn(seed, index, together, 0)
    compiled = _kernels(seed, index - index % together, together)
    for turn in range(_TURNS):
        case = _drawn(seed, index, together, turn)
        if case.dry or launches(case) <= compiled:
            break
    return case


_TURNS = 17


@lru_cache(maxsize=1)
def _kernels(seed: int, index: int, together: int) -> set[Any]:
    first = draw(seed, index, together)
    return set() if first.dry else launches(first)


def _drawn(seed: int, index: int, together: int, turn: int) -> Case:
    """A recipe that some path is for, and most often one change of it, to come to the other side of an edge."""
    how, first = np.random.default_rng([seed, index // together]), index - index % together
    own = {0, 1, 2} if turn < 8 else {turn % 3} if turn < _TURNS - 1 else set()
    sizes = [np.random.default_rng([seed, index, 1, turn, at] if at in own else [seed, first, 1, 0, at])
             for at in range(3)]  # fmt: skip
    sizes.append(np.random.default_rng([seed, index, 1, turn, 3]))  # images, and what is odd
    weights = np.array([2.0 if kernel in conv3d.CONVS else 1.0 for kernel in KERNELS])
    kernel, kind = (
        str(how.choice(list(KERNELS), p=weights / weights.sum())),
        str(how.choice(list(TYPES)[:4], p=(0.35, 0.35, 0.1, 0.2))),
    )
    if kernel in conv3d.CONVS:
        return _conv(kernel, kind, how, sizes, (seed, index))
    return _pool(kernel, kind, how, sizes, (seed, index))


def _problem(kernel: str, kind: str, last: bool, n: int, channels: tuple[int, int, int], axes: Any, **more: Any) -> Any:
    declared, (ci, co, groups) = TYPES[kind][1], channels
    op = OPS[KERNELS[kernel]]
    made = Problem(op.name, op.map, declared, declared, (), last, n, ci, co, groups, tuple(axes), **more)
    return made.part(made.axes)


def _pool(kernel: str, kind: str, how: Any, sizes: Any, seed: tuple[int, int]) -> Case:
    recipe = str(how.choice(["small", "stages", "apart", "even", "flat", "large", "many"],
                            p=(0.26, 0.2, 0.15, 0.17, 0.04, 0.1, 0.08)))  # fmt: skip
    recipe = "stages" if kernel == "max_pool_grad" and how.random() < 0.4 else recipe
    side = how.integers(1, 4, 3) if recipe == "apart" else how.integers(1, 3, 3)
    window, stride = {
        "small": (how.integers(1, 4, 3), how.integers(1, 3, 3)),
        "stages": (np.array([3, 3, 3]), np.array([1, 1, 1])),
        "flat": (np.array([2, 2, 2]), np.array([2, 2, 2])),
        "large": (how.integers(1, 10, 3), how.integers(1, 5, 3)),
        "many": (how.integers(6, 8, 3), how.integers(2, 5, 3)),
    }.get(recipe, (side, side))
    last = bool(how.random() < 0.6) and recipe != "flat"
    channels = int(how.choice([2, 3, 4, 5, 8, 12, 16, 20, 32, 48, 64])) if last else int(how.integers(1, 3))
    channels = 4 * int(how.integers(1, 4)) if last and recipe == "stages" and how.random() < 0.6 else channels
    change = str(how.choice(["", *_POOL_CHANGES]))
    padding = str(how.choice(["SAME", "VALID", "part", "late", "overreach"], p=(0.5, 0.2, 0.2, 0.05, 0.05)))
    if recipe in ("stages", "even", "flat") and how.random() < 0.7:
        padding = "SAME"
    axes = [_axis(kernel, recipe, at, int(window[at]), int(stride[at]), padding, last, sizes[at]) for at in range(3)]
    axes = _bounded(axes, 600 if channels < 16 else 150) if recipe != "flat" else axes
    axes = _changed(axes, change, int(how.integers(3)), int(how.choice([-1, 1])))
    channels = max(1, channels + int(how.choice([-1, 1]))) if change == "channels" and last else channels
    kind = "int32" if change == "integers" and kernel == "max_pool_grad_grad" else kind
    n, dry = (2 if sizes[3].random() < 0.2 else 1), change == "huge"
    if kernel.startswith("avg") and not dry:  # The mean of nothing is no number that anybody promised.
        dry = any(hi <= lo for axis in axes for lo, hi in zip(*geometry.spans(axis), strict=True))
    made = _problem(kernel, kind, last, n, (channels,) * 2 + (1,), axes,
                    near_ties=kernel == "max_pool_grad" and change == "near")  # fmt: skip
    odd = str(sizes[3].choice(["", "nan", "not the maximum"], p=(0.7, 0.15, 0.15)))
    odd = "misaligned" if how.random() < 0.1 else odd  # for which kernels are compiled anew
    return Case(made, kind, _forced(how, kernel), None, odd, seed, dry)


_AXES = ("size", "out", "window", "stride", "before")
_POOL_CHANGES = (*_AXES, "window", "late", "beyond", "channels", "integers", "near", "huge")


def _changed(axes: list[Axis], change: str, at: int, by: int) -> list[Axis]:
    """The axes with one number of one of them changed."""
    if change == "huge":
        return [replace(axis, size=axis.size * 2**12, out=axis.out * 2**12) for axis in axes]
    if change == "empty":
        return [replace(axis, size=0) if index == at else axis for index, axis in enumerate(axes)]
    if change not in (*_AXES, "dilation", "late", "beyond"):
        return axes
    axis, more = axes[at], axes[at].window * axes[at].stride
    by = 1 if change == "dilation" else by
    if change == "late":
        axis = replace(axis, before=-1)
    elif change == "beyond":  # Windows before the first cell, or behind the last.
        axis = replace(axis, before=axis.before + (more if by < 0 else 0), out=axis.out + axis.window)
    else:
        axis = replace(axis, **{change: getattr(axis, change) + by})
    if min(axis.size, axis.out, axis.window, axis.stride, axis.dilation) < 1 or axis.below or axis.above:
        return axes
    return [axis if index == at else one for index, one in enumerate(axes)]


def _forced(how: Any, kernel: str) -> dict[str, str]:
    """Most often nothing; else another path at up to two forks."""
    pool = kernel not in conv3d.CONVS
    forks = [name for name in paths.FORKS if name not in (*ASKED_ONLY, *conv3d.CONVS)]
    forks = [name for name in forks if (name in _CONV_FORKS) != pool or name == "addresses"]
    chosen = how.choice(forks, size=int(how.choice([0, 1, 2], p=(0.5, 0.3, 0.2))), replace=False)
    return {str(name): str(how.choice([path.name for path in paths.FORKS[name].paths])) for name in chosen}


_CONV_FORKS = ("addresses", "rows", "parts", "gradient", "columns", "splits")


def _axis(kernel: str, recipe: str, at: int, window: int, stride: int, padding: str, last: bool, sizes: Any) -> Axis:
    """An axis with windows as the padding says."""
    size = int(sizes.integers(1, (6, 10, 20)[at]) if sizes.random() < 0.95 else sizes.integers(1, 21))
    if at == 2 and not last and sizes.random() < 0.6:
        size = int(sizes.choice([8, 16]))
    if recipe == "even":
        size = stride * max(1, size // 2)
    if recipe == "flat":
        size = (2, 16, 64)[at]
    if padding in ("late", "overreach"):
        quirks = {"late_start": padding == "late", "overreach": padding == "overreach" and kernel.endswith("grad")}
        return geometry.axis(size, window, stride, 1, geometry.SAME, **quirks)
    if padding == "part":
        return _part(kernel, geometry.axis(size + 6, window, stride, 1, geometry.SAME), sizes)
    made = geometry.axis(size, window, stride, 1, padding)
    return made if made.out > 0 else geometry.axis(window, window, stride, 1, padding)


def _part(kernel: str, axis: Axis, sizes: Any) -> Axis:
    """A part of an axis as chunks of a volume are: whole windows, or some cells and the windows that cover them."""
    if kernel in ("avg_pool", "max_pool", "max_pool_grad_grad"):
        first = int(sizes.integers(0, axis.out))
        windows = first, int(sizes.integers(first + 1, axis.out + 1))
        low, high = geometry.input_box(axis, *windows)
        return geometry.part(axis, (min(max(low, 0), axis.size - 1), min(max(high, 1), axis.size)), windows)
    first = int(sizes.integers(0, axis.size))
    cells = first, int(sizes.integers(first + 1, axis.size + 1))
    windows = geometry.output_box(axis, *cells)
    if windows[0] == windows[1]:
        return axis
    if kernel == "max_pool_grad":
        low, high = geometry.input_box(axis, *windows)
        cells = min(cells[0], max(low, 0)), max(cells[1], min(high, axis.size))
    return geometry.part(axis, cells, windows)


def _bounded(axes: list[Axis], most: int) -> list[Axis]:
    """The axes, long ones cut until there are not too many cells for an interpreter."""
    while math.prod(max(axis.size, axis.out) for axis in axes) > most:
        at = max(range(3), key=lambda index: axes[index].size)
        axis, size = axes[at], axes[at].size // 2
        out = max(1, min(axis.out, (size - 1 + axis.before) // axis.stride + 1))
        axes[at] = replace(axis, size=size, out=out, before=min(axis.before, size - 1), below=0, above=0)
    return axes


_RECIPES = {  # windows, strides, dilations; channels in and out
    "few": ("123 123 12345", "12 12 12", "12 1 12", (1, 2, 3, 4), (5, 8, 16, 24)),
    "unfold": ("12 23 7,9,17", "12 12 12", "1 12 1", (2, 3, 4), (16, 32)),
    "planes": ("123 13 13", "1 12 12", "1 1 12", (1,), (5, 16, 32)),
    "few boxes": ("12 23 5", "12 12 12", "12 1 1", (3, 4), (16, 32)),
    "boxes": ("123 123 123", "12 12 12", "12 1 1", (16, 32), (16, 32)),
    "rows": ("123 3 3", "1 1 1", "12 1 1", (16, 32), (16, 32)),
    "box pairs": ("123 23 3", "12 12 2", "1 1 1", (16, 32), (16, 32)),
    "deep": ("1 1 13", "1 1 1", "1 1 1", (16, 32), (16, 32)),
    "large": ("3 3 3", "1 1 1", "1 1 1", (64,), (64,)),
    "any": ("123 123 123", "123 12 12", "12 12 12", (5, 6, 8, 12), (2, 6, 8)),
}
_CONV_CHANGES = (*_AXES, "window", "stride", "dilation", "dilation", "in", "out channels", "groups", "layout", "huge")


def _conv(kernel: str, kind: str, how: Any, sizes: Any, seed: tuple[int, int]) -> Case:
    recipe, change = str(how.choice(list(_RECIPES))), str(how.choice(["", *_CONV_CHANGES]))
    *spatial, ins, outs = _RECIPES[recipe]
    window, stride, dilation = (
        [int(how.choice(one.split(",") if "," in one else list(one))) for one in text.split()] for text in spatial
    )
    if recipe in ("box pairs", "planes", "few boxes"):
        kernel = "conv3d_input"
    if (recipe == "unfold" and kernel == "conv3d_input") or recipe == "deep":
        kernel = "conv3d_filter"
    if recipe in ("box pairs", "rows") and how.random() < 0.7:
        kind = str(how.choice(["bfloat16", "half"]))
    ci, co, groups = int(how.choice(ins)), int(how.choice(outs)), 2 if change == "groups" else 1
    ci, co = (
        ci + (int(how.choice([1, 4])) if change == "in" else 0),
        co + (change == "out channels") * int(how.choice([1, 8])),
    )
    if recipe == "large":
        change = str(how.choice([change, "empty", "few", "late"]))
        ci, co = (4 if change == "few" else ci), 32 if change == "out channels" else co
        kind = str(how.choice(["bfloat16", "float32"]))
    axes = []
    fixed = {"large": (24, 24, 24), "deep": (2, 1, 24), "unfold": (int(sizes[0].integers(1, 3)), 4, 16)}.get(recipe)
    if recipe == "rows" and sizes[0].random() < 0.1:
        fixed, window[0] = (1, 1, 130), 1
    for at, (k, s, d) in enumerate(zip(window, stride, dilation, strict=True)):
        own = sizes[at]
        size = int(own.choice([4, 8, 16, 24] if at == 2 else [1, 2, 3, 4]))
        size = size if own.random() < 0.7 else int(own.integers(1, 9))
        size = fixed[at] if fixed and (recipe != "unfold" or own.random() < 0.8) else size
        made = geometry.axis(size, k, s, d, "SAME" if own.random() < 0.6 else "VALID")
        axes.append(made if made.out > 0 else geometry.axis(geometry.reach(k, d) + 1, k, s, d, geometry.VALID))
    axes = _changed(axes, change, int(how.integers(3)), int(how.choice([-1, 1])))
    last, dry = bool(how.random() < 0.8) == (change != "layout"), recipe == "large" or change == "huge"
    made = _problem(kernel, kind, last, int(sizes[3].integers(1, 3)), (ci * groups, co * groups, groups), axes)
    odd = str(sizes[3].choice(["", "turned"], p=(0.7, 0.3)))
    odd = "misaligned" if how.random() < 0.15 else odd
    return Case(made, kind, _forced(how, kernel), _config(made, kind, how), odd, seed, dry)


def _config(made: Problem, kind: str, how: Any) -> Config:
    """One of the kinds that could run it, in a small tile, or as it is tuned."""
    fork, tuned = conv3d.CONVS[names.KERNELS[made.op]], how.random() < 0.1
    if tuned:
        return next(choice.config for choice in tune.candidates(made, TYPES[kind][0]) if choice.config)
    across = bool(how.random() < (0.5 if made.map.output is Side.TAPS else 0.2))
    tile = Config(
        64 if across else 32,
        64 if across else 16,
        int(how.choice([16, 32, 64], p=(0.5, 0.4, 0.1))),
        splits=int(how.choice([1, 2])),
    )
    tile = replace(tile, across=across, tf32=kind == "float32" and bool(how.random() < 0.2))
    deep = replace(tile, bk=max(16, 1 << (made.out_channels - 1).bit_length()))
    usable = [replace(deep if path.name == "planes" else tile, kind=path.name) for path in fork.paths]
    usable = tune.possible(made, usable)
    weights = np.array([1.0 if config.kind in ("whole", "taps") else 3.0 for config in usable])
    return usable[int(how.choice(len(usable), p=weights / weights.sum()))]


# --- running ---


@contextmanager
def poisoned() -> Iterator[None]:
    """New memory is NaN, or the largest integer: what a kernel does not write is seen."""
    before, at_once = torch.are_deterministic_algorithms_enabled(), launch._at_once
    torch.use_deterministic_algorithms(True, warn_only=True)
    launch._at_once = None  # which asks for memory by another way
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        launch._at_once = at_once


@contextmanager
def stubbed() -> Iterator[set[Any]]:
    """Nothing is launched; which compiled kernels would be."""
    whole, wanted = launch.Launch.__call__, set()

    def note(self: launch.Launch, *tensors: Any) -> None:
        # Triton compiles anew for other constants and types, and for numbers that are 1 or multiples of 16.
        kinds = tuple(1 if one == 1 else one % 16 == 0 if isinstance(one, int) else type(one) for one in self.scalars)
        types, boxes = tuple(one.dtype for one in tensors), tuple(one.block for one in self.boxes)
        wanted.add((self.kernel, kinds, tuple(map(str, self.constants.items())), types, boxes))

    launch.Launch.__call__ = note  # type: ignore[method-assign]
    try:
        yield wanted
    finally:
        launch.Launch.__call__ = whole  # type: ignore[method-assign]


def ask(case: Case) -> list[paths.Answer]:
    """The answers of all forks on the way of a case, without a kernel."""
    return _asked(case)[0]


def launches(case: Case) -> set[Any]:
    """The compiled kernels that a case runs."""
    return _asked(case)[1]


def _asked(case: Case) -> tuple[list[paths.Answer], set[Any]]:
    shapes = _shapes(case.problem)
    tensors = [torch.empty(shape, dtype=TYPES[case.kind][0], device="meta") for shape in shapes]
    with stubbed() as wanted, paths.forced(case.forced), paths.heard() as answers:
        _run(replace(case.problem), tensors, case.config)
    return answers, wanted


def _shapes(made: Problem) -> list[tuple[int, ...]]:
    return [made.extent(side) for side in made.map.inputs]


def _run(made: Problem, tensors: list[Any], config: Config | None) -> Any:
    if config is None:
        return dispatch.run(made, *tensors)
    tune.candidates(made, tensors[0].dtype)  # for what it asks on the way
    return getattr(conv3d, names.KERNELS[made.op])(made, *tensors, config)


def _numbers(case: Case) -> list[Any]:
    """Small integers; of a maximum, most often the maxima of the windows."""
    made, rng = case.problem, np.random.default_rng([*case.seed, 2])
    scale = math.lcm(*(count for axis in made.axes for count in _counts(axis))) if made.op == "AvgPool3D" else 1
    kind = TYPES[case.kind][2]
    arrays = [(rng.integers(-2, 3, shape) * scale).astype(kind) for shape in _shapes(made)]
    if made.map.selects and case.kind != "int32":
        if case.odd == "nan":
            arrays[0][rng.random(arrays[0].shape) < 0.3] = np.nan
        if len(arrays) > 1 and case.odd != "not the maximum":
            forward = replace(made, op=made.map.of, map=OPS[made.map.of].map, near_ties=False)
            arrays[1] = reference.evaluate(forward, arrays[0]).astype(kind)
    return arrays


def _counts(axis: Axis) -> set[int]:
    return {max(1, hi - lo) for lo, hi in zip(*geometry.spans(axis), strict=True)}


def _tensor(array: Any, kind: str, device: str, odd: str, is_filter: bool) -> Any:
    dtype = TYPES[kind][0]
    flat = torch.from_numpy(array.astype(np.float64 if dtype.is_floating_point else array.dtype)).to(dtype).to(device)
    if odd == "misaligned":
        flat = torch.cat([flat.new_zeros(1), flat.flatten()])[1:].view(array.shape)
    if odd == "turned" and is_filter:
        flat = flat.permute(4, 0, 1, 2, 3).contiguous().permute(1, 2, 3, 4, 0)
    return flat


def check(case: Case, device: str = "cpu") -> tuple[str, list[paths.Answer]]:
    """What is wrong with a case, "" if nothing, and the answers of forks on the way."""
    if case.dry:
        return "", ask(case)
    made, arrays = case.problem, _numbers(case)
    with np.errstate(all="ignore"):
        wanted = reference.evaluate(made, *arrays)
    tensors = [
        _tensor(array, case.kind, device, case.odd, side is Side.TAPS)
        for array, side in zip(arrays, made.map.inputs, strict=True)
    ]
    with paths.forced(case.forced), paths.heard() as answers, poisoned(), np.errstate(all="ignore"):
        result = _run(replace(made), tensors, case.config).detach().cpu()
    got = result.double().numpy() if result.is_floating_point() else result.numpy()
    return _difference(case, got, wanted), answers


def _difference(case: Case, got: Any, wanted: Any) -> str:
    """Bits, but for means of counts that are no powers of two: there the roundings of a sum."""
    kind = TYPES[case.kind][2]
    if got.shape != wanted.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    with np.errstate(all="ignore"):
        rounded = wanted.astype(kind).astype(got.dtype)
        cut = _cut(wanted) if case.kind == "bfloat16" and INTERPRETED else rounded
        counts = {count for axis in case.problem.axes for count in _counts(axis)}
        exact = case.problem.map.of != "AvgPool3D" or all(count & (count - 1) == 0 for count in counts)
        if exact:
            wrong = ~((got == rounded) | (got == cut) | (np.isnan(got) & np.isnan(rounded)))
        else:
            unit = float(np.finfo(np.float64 if case.kind == "float64" else np.float32).eps)
            own = _eps(case.kind) * (2 if INTERPRETED else 1)
            wrong = ~(np.abs(got - wanted) <= 16 * unit * np.abs(wanted).max() + own * np.abs(wanted))
    if not wrong.any():
        return ""
    at = tuple(int(place[0]) for place in np.nonzero(wrong))
    return f"{int(wrong.sum())} of {wrong.size} wrong; at {at} {got[at]} instead of {wanted[at]}"


def _cut(wanted: Any) -> Any:
    """As Triton's interpreter rounds to bfloat16: it cuts bits off."""
    return (wanted.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float64)


def _eps(kind: str) -> float:
    return {"bfloat16": 2.0**-8, "half": 2.0**-11, "float32": 2.0**-24}.get(kind, 2.0**-53)


# --- what was covered ---


@dataclass
class Coverage:
    """Which paths cases entered, and beyond which edges of conditions they lay; with the op that did."""

    seen: set[tuple[str, ...]] = field(default_factory=set)

    def of(self, case: Case, answers: list[paths.Answer]) -> set[tuple[str, ...]]:
        """What a case covers."""
        found: set[tuple[str, ...]] = set()
        for answer in answers:
            fork = answer.fork
            if not case.dry or fork.name in ASKED_ONLY:
                found.add(("path", fork.name, answer.path.name))
            for path in fork.paths:
                failed = [need.words for need in path.needs + path.worth if not need.holds(*answer.case)]
                if len(failed) == 1:
                    found.add(("edge", fork.name, path.name, failed[0]))
        return found

    def missing(self) -> list[str]:
        """Paths that no case entered, edges that no case lay beyond."""
        wanted: set[tuple[str, ...]] = {
            ("path", fork.name, path.name) for fork in paths.FORKS.values() for path in fork.paths
        }
        wanted |= {
            ("edge", fork.name, path.name, need.words)
            for fork in paths.FORKS.values() for path in fork.paths for need in path.needs + path.worth
        }  # fmt: skip
        return sorted(": ".join(one) for one in wanted - self.seen)


def covering(seed: int, most: int = 20000) -> list[int]:
    """Numbers of cases that cover everything, if as many do: the cheapest first that have something new."""
    found, coverage = {}, Coverage()
    for index in range(most):
        case = draw(seed, index)
        found[index] = (0 if case.dry else _cost(case.problem), coverage.of(case, ask(case)))
        coverage.seen |= found[index][1]
        if index % 256 == 255 and not coverage.missing():
            break
    seen: set[tuple[str, ...]] = set()
    kept = []
    for index in sorted(found, key=lambda index: found[index][0]):
        if not found[index][1] <= seen:
            seen |= found[index][1]
            kept.append(index)
    return kept


def _cost(made: Problem) -> int:
    """About how long an interpreter takes: it goes through taps of blocks of numbers."""
    taps = math.prod(axis.window for axis in made.axes)
    return taps * made.batch * (1 if made.channels_last else made.in_channels) * max(a.size for a in made.axes[:2])


def run_share(share: tuple[int, list[int], int, str]) -> tuple[list[str], set[tuple[str, ...]], int]:
    """The cases of these numbers: what is wrong, what they cover, and how many problems are among them."""
    seed, indices, together, device = share
    failures, coverage, problems = [], Coverage(), set()
    for index in indices:
        case = draw(seed, index, together)
        problems.add(case.problem)
        try:
            wrong, answers = check(case, device)
        except Exception as error:  # a kernel that does not compile, say: the others are run nevertheless
            wrong, answers = f"{type(error).__name__}: {error}", []
        coverage.seen |= coverage.of(case, answers)
        if wrong:
            failures.append(f"{case}: {wrong}")
            print(failures[-1], flush=True)
    return failures, coverage.seen, len(problems)


def main() -> int:
    """Run cases and say what came out."""
    parser = argparse.ArgumentParser(prog="tests.cuda.sweep", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=0, help="how many; without it those that cover everything")
    parser.add_argument("--seed", type=int, default=today())
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--gpu", action="store_true", help="on a GPU instead of in Triton's interpreter")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more cases after that")
    chosen = parser.parse_args()
    if chosen.gpu and not torch.cuda.is_available():
        sys.exit("--gpu needs a GPU that torch can use; without --gpu Triton's interpreter runs the kernels")
    device, start = "cuda" if chosen.gpu else "cpu", time.monotonic()
    together = 16 if chosen.gpu and chosen.cases else 1  # those that cover everything are found one by one
    indices = list(range(chosen.first, chosen.first + chosen.cases)) if chosen.cases else covering(chosen.seed)
    pieces = [indices[at : at + 16] for at in range(0, len(indices), 16)] if chosen.workers > 1 else [indices]
    shares = iter([(chosen.seed, piece, together, device) for piece in pieces])
    failures, coverage, problems, run = [], Coverage(), 0, 0
    # Fresh processes: one that has used a GPU cannot be forked, and each compiles kernels of its own.
    with ProcessPoolExecutor(chosen.workers, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(run_share, share): len(share[1]) for share in islice(shares, chosen.workers)}
        while waiting:
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                wrong, seen, different = done.result()
                failures += wrong
                coverage.seen |= seen
                problems, run = problems + different, run + waiting.pop(done)
                if time.monotonic() - start < chosen.seconds and (share := next(shares, None)):
                    waiting[pool.submit(run_share, share)] = len(share[1])
                if sys.stderr.isatty() or run % 1024 < 16:
                    print(f"{run} of {len(indices)}, {len(failures)} wrong", file=sys.stderr, flush=True)
    missing = coverage.missing() if run >= 1000 or not chosen.cases else []
    for line in missing:
        print(f"not covered: {line}")
    took = f"{time.monotonic() - start:.0f} s"
    print(f"{run} cases of {problems} problems, seed {chosen.seed}, {device}, {took}: {len(failures)} wrong, "
          f"{len(missing)} paths and edges not covered")  # fmt: skip
    return int(bool(failures or missing))


if __name__ == "__main__":
    if "TRITON_INTERPRET" not in os.environ:  # Triton reads it when a kernel is declared
        os.execve(sys.executable, [sys.executable, "-W", "ignore", "-m", "tests.cuda.sweep", *sys.argv[1:]],
                  {**os.environ, "TRITON_INTERPRET": "0" if "--gpu" in sys.argv else "1"})  # fmt: skip
    sys.exit(main())
