# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs a convolution: one of ours or cuDNN. What was fastest on an H200 for problems of that kind.

With VOXGRAD_CUDA_TUNE=1 a problem is measured when it is first met, and the choice kept on disk, where it is found
ever after. The file lies under VOXGRAD_CACHE (default ~/.cache/voxgrad), one per device and versions of torch, Triton,
and voxgrad. VOXGRAD_CUDA_ENGINE=voxgrad or cudnn overrides the choice.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

import torch
import triton

from voxgrad._version import __version__
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import boxes, cudnn, measured
from voxgrad.kernels.cuda import conv3d as ours
from voxgrad.kernels.cuda.conv_common import FEW_CHANNELS, Config
from voxgrad.kernels.cuda.cudnn import allows_tf32
from voxgrad.kernels.cuda.launch import per_problem
from voxgrad.kernels.cuda.paths import Fork, Need, Path, forced_at, met
from voxgrad.kernels.names import KERNELS

WORTH_MEASURING = 1e9
"""Floating-point operations from which a problem is worth a measurement."""

TINY = 1e8
"""Operations up to which a convolution is one launch: copies, parts and splits take launches of their own."""

_ONE_SPLIT = 1024
"""Positions up to which a tiny filter gradient is one sum."""

_KERNELS = 5
"""Counts up when kernels change, so that choices measured with others are not kept."""

_LAUNCHES = 200_000
"""Cycles that the launches of one call take at most, about a tenth of a millisecond."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and for ours the configuration."""

    engine: str
    config: Config | None = None
    milliseconds: float | None = None

    def __str__(self) -> str:
        if self.config is None:
            text = "cuDNN" + self.engine.removeprefix("cudnn")
        else:
            c = self.config
            tile = f"{c.bm}x{c.bn}x{c.bk}" + (" across" if c.across else "")
            text = f"voxgrad Triton {c.kind} {tile}, {c.warps} warps, {c.stages} stages"
        return text + (f", {self.milliseconds:.3f} ms when measured" if self.milliseconds else "")


_asked_for = False


@contextmanager
def measuring() -> Iterator[None]:
    """Problems that have no choice yet are measured in the block, in all threads."""
    global _asked_for
    before, _asked_for = _asked_for, True
    try:
        yield
    finally:
        _asked_for = before


Call = Callable[..., torch.Tensor]
"""A convolution of tensors of one type on one device."""


def run(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """A convolution with the chosen kernel."""
    return _ready(problem, tensors)[1](*tensors)


def choose(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> Choice:
    """The choice for a problem: overridden, remembered, on disk, measured, or by rule."""
    return _ready(problem, tensors)[0]


def _ready(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> tuple[Choice, Call]:
    """The choice for a problem in these circumstances, and the call that runs it."""
    forced = os.environ.get("VOXGRAD_CUDA_ENGINE", "")
    slot = _slot(problem, tensors[0].get_device(), allows_tf32(), forced)
    if not slot:
        choice = _decide(problem, tensors, forced)
        slot.append((choice, call_of(choice, problem, tensors[0])))
    return slot[0]


@per_problem
def _slot(problem: Problem, device: int, tf32: bool, forced: str) -> list[tuple[Choice, Call]]:
    """The place where the choice for these circumstances is kept."""
    return []


def call_of(choice: Choice, problem: Problem, like: torch.Tensor) -> Call:
    """What runs a choice on tensors like the given one."""
    if choice.config is not None:
        return ours.prepared(problem, choice.config, like.dtype, like.device)
    may = cudnn.switches(like.dtype, deterministic=choice.engine != "cudnn")
    function: Call = getattr(cudnn, KERNELS[problem.op])
    return lambda *tensors: function(problem, *tensors, may)


def run_choice(choice: Choice, problem: Problem, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """A convolution with a given choice."""
    return call_of(choice, problem, tensors[0])(*tensors)


def _decide(problem: Problem, tensors: tuple[torch.Tensor, ...], forced: str) -> Choice:
    options = candidates(problem, tensors[0].dtype)
    if forced:
        options = [option for option in options if option.engine.startswith(forced)] or options
        return options[0]
    if tensors[0].device.type != "cuda" or len(options) == 1:
        return options[0]
    known = _stored(tensors[0].device)
    name = describe(problem) + (" tf32" if allows_tf32() else "")
    if name in known:
        return _read(known[name])
    wanted = _asked_for or os.environ.get("VOXGRAD_CUDA_TUNE", "0") != "0"
    if not wanted or torch.cuda.is_current_stream_capturing() or operations(problem) < WORTH_MEASURING:
        return _by_table(problem, options)
    best = _fastest(problem, tensors, options)
    known[name] = {"engine": best.engine, "config": best.config and asdict(best.config), "ms": best.milliseconds}
    _store(tensors[0].device, known)
    return best


def _by_table(problem: Problem, options: list[Choice]) -> Choice:
    """The best of what gives the same bits every time without a trial, by what was measured for a problem like this."""
    rows = measured.read().get(measured.kind(problem, allows_tf32()), [])
    same_bits = [option for option in options if option.engine != "cudnn"]
    return measured.ranked(problem, same_bits, rows)[0]


def operations(problem: Problem) -> float:
    """Multiplications and additions of a convolution."""
    window = math.prod(axis.window for axis in problem.axes)
    positions = problem.batch * math.prod(axis.out for axis in problem.axes)
    return 2.0 * positions * window * problem.in_channels * problem.out_channels / problem.groups


def describe(problem: Problem) -> str:
    """A problem as a line of text: the key of the file."""
    axes = " ".join(f"{a.size}>{a.out}k{a.window}s{a.stride}d{a.dilation}b{a.before}" for a in problem.axes)
    layout = "NDHWC" if problem.channels_last else "NCDHW"
    shape = f"n{problem.batch} {problem.in_channels}>{problem.out_channels} g{problem.groups}"
    return f"{KERNELS[problem.op]} {problem.dtype.name} {layout} {shape} {axes}"


def _fastest(problem: Problem, tensors: tuple[torch.Tensor, ...], options: list[Choice]) -> Choice:
    found = timed(problem, tensors, options)
    if not found:
        return options[0]
    milliseconds, best = min(found, key=lambda pair: pair[0])
    return Choice(best.engine, best.config, milliseconds)


def timed(problem: Problem, tensors: tuple[torch.Tensor, ...], options: list[Choice]) -> list[tuple[float, Choice]]:
    """Milliseconds of each option that can run a problem and gives the same bits every time."""
    found = []
    for option in options:
        try:
            if option.engine == "cudnn" and not _repeats(option, problem, tensors):
                continue
            found.append((_time(partial(call_of(option, problem, tensors[0]), *tensors)), option))
        except (RuntimeError, triton.runtime.errors.OutOfResources):
            continue  # A tile that this device has no room for, or a problem that cuDNN refuses.
    return found


def _repeats(option: Choice, problem: Problem, tensors: tuple[torch.Tensor, ...]) -> bool:
    """Does it give the same bits every time?"""
    first = run_choice(option, problem, tensors)
    return all(torch.equal(run_choice(option, problem, tensors), first) for _ in range(8))


def _time(call: Callable[[], torch.Tensor]) -> float:
    """Milliseconds on the device: the best of three batches, each long enough to hide the launches."""
    event: Any = torch.cuda.Event
    sleep: Any = torch.cuda._sleep
    call()
    count, times = 1, []
    for _ in range(4):
        start, end = event(enable_timing=True), event(enable_timing=True)
        # The device waits until the calls are on their way: of a short kernel, launches take longer than the kernel.
        sleep(count * _LAUNCHES)
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / count)
        count = max(1, min(100, int(4.0 / max(times[-1], 1e-3))))
    return min(times[1:])


def _path(device: torch.device) -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("VOXGRAD_CACHE") or pathlib.Path.home() / ".cache" / "voxgrad")
    name = torch.cuda.get_device_name(device).replace(" ", "-")
    versions = f"torch{torch.__version__}-triton{triton.__version__}-voxgrad{__version__}-{_KERNELS}"
    return folder / f"conv-{name}-{versions}.json"


@lru_cache(maxsize=16)
def _stored(device: torch.device) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(_path(device).read_text())
    except (OSError, ValueError):
        return {}
    return known


def _store(device: torch.device, known: dict[str, Any]) -> None:
    path = _path(device)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(known, indent=1, sort_keys=True))
        partial.replace(path)
    except OSError:
        pass  # A cache that cannot be written costs a measurement next time, nothing else.


def _read(entry: dict[str, Any]) -> Choice:
    config = entry.get("config")
    return Choice(entry["engine"], Config(**config) if config else None, entry.get("ms"))


def candidates(problem: Problem, dtype: torch.dtype) -> list[Choice]:
    """What may run a problem, the likely best first: measured on an H200."""
    mine = [Choice("voxgrad", config) for config in _configs(problem, dtype)]
    # cuDNN may be asked for anything, and is then watched, or for what it itself calls deterministic.
    theirs = [Choice("cudnn deterministic"), Choice("cudnn")]
    first = ENGINE.takes("cuDNN", problem, dtype)
    if ENGINE["cuDNN"] not in ENGINE.may(problem, dtype):
        return mine
    return [*theirs, *mine] if first else [*mine, *theirs]


def _reduced(problem: Problem, dtype: torch.dtype) -> bool:
    # Of TF32, ours has the better filter gradients.
    return dtype == torch.float32 and allows_tf32() and problem.map.output is not Side.TAPS


def _columns(problem: Problem) -> int:
    return problem.in_channels if problem.map.output is Side.CELLS else problem.out_channels


ENGINE = Fork(
    "engine", "whose kernels are tried first",
    Path("cuDNN", cudnn.NEEDS, (
        Need("16 bits, or TF32", lambda problem, dtype: dtype.itemsize == 2 or _reduced(problem, dtype)),
        Need("more than 4 channels", lambda problem, dtype: problem.in_channels > FEW_CHANNELS),
        Need("more than 32 columns, or windows of one cell",
             lambda problem, dtype: _columns(problem) > 32 or all(axis.window == 1 for axis in problem.axes)),
        Need("stride 1", lambda problem, dtype: all(axis.stride == 1 for axis in problem.axes)),
        Need("at least 1e8 operations", lambda problem, dtype: operations(problem) >= TINY),
    ), device=True),
    Path("voxgrad"),
)  # fmt: skip
SIZE = Fork(
    "size", "whether a convolution is one launch",
    Path("tiny", worth=(Need("fewer than 1e8 operations", lambda count: count < TINY),)),
    Path("tuned"),
)  # fmt: skip


def possible(problem: Problem, configs: list[Config]) -> list[Config]:
    """Those that could run it."""
    fork = ours.CONVS[KERNELS[problem.op]]
    return [config for config in configs if met(fork[config.kind].needs, problem, config.bk)]


def _configs(problem: Problem, dtype: torch.dtype) -> list[Config]:
    """Those that are tried; a kind that is forced alone, if it is one that large problems like this have."""
    wanted = forced_at(KERNELS[problem.op])
    if not wanted and SIZE.takes("tiny", operations(problem)):
        positions = problem.batch * math.prod(axis.out for axis in problem.axes)
        return [Config(32, 32, 32, 4, 2, int(positions <= _ONE_SPLIT), "whole")]
    configs = _tuned_configs(problem, dtype)
    return [config for config in configs if config.kind == wanted] or configs


def _tuned_configs(problem: Problem, dtype: torch.dtype) -> list[Config]:
    few = problem.in_channels <= FEW_CHANNELS and problem.groups == 1
    if problem.map.output is Side.TAPS:
        return _filter_configs(problem, dtype, few)
    if few:
        return _few_configs(problem, dtype)
    forward = problem.map.output is Side.WINDOWS
    columns = (problem.out_channels if forward else problem.in_channels) // problem.groups
    source = (problem.in_channels if forward else problem.out_channels) // problem.groups
    tiles = _TILES[_family(dtype)][_width(columns)]
    configs = [Config(bm, bn, min(bk, max(16, triton.next_power_of_2(source))), w, s) for bm, bn, bk, w, s in tiles]
    boxed = possible(problem, _box_configs(problem, dtype, columns))
    if dtype.itemsize == 2 and columns <= 64:
        wide = columns > 32
        deep = min(64 if wide else 32, _block(source))
        rows = [Config(128, 64 if wide else 32, deep, 8 if wide else 4, 3, 0, "rows")] if deep >= 16 else []
        configs = [*possible(problem, rows), *configs]
    # Where boxes do it, one of the others is enough to compare with.
    return [*boxed, *configs[:1]] if boxed else configs


def _box_configs(problem: Problem, dtype: torch.dtype, columns: int) -> list[Config]:
    """Tiles for a forward convolution or an input gradient whose source the copy engine can read."""
    configs, deep = [], boxes.depth(problem)
    if columns <= 32:
        configs.append(Config(128, columns, min(32, deep), 4, 2, 0, "box stack"))
    if problem.map.output is Side.CELLS:
        configs += [
            Config(bm, bn, bk, warps, stages, 0, "box pairs", across=across)
            for bm, bn, bk, warps, stages, across in _PAIRS[_width(columns)] if bk <= deep
        ]  # fmt: skip
    single = dtype == torch.float32
    for bm, bn, bk, warps, stages, across in _BOXES[_family(dtype)][_width(columns)]:
        block = min(bk, deep) if bk <= 64 else bk
        if block >= 16:
            configs.append(Config(bm, bn, block, warps, stages, 0, "boxes", single and allows_tf32(), across))
    if single and columns <= 32:
        configs.append(Config(128, columns, min(32, deep), 4, 3, 0, "box rows", allows_tf32()))
    return [config for config in dict.fromkeys(configs) if config.bk >= 16]


def _few_configs(problem: Problem, dtype: torch.dtype) -> list[Config]:
    taps = math.prod(axis.window for axis in problem.axes) * problem.in_channels
    columns = min(64, max(16, triton.next_power_of_2(problem.out_channels)))
    tf32 = dtype == torch.float32 and allows_tf32()
    if problem.map.output is Side.CELLS:
        deep = min(32, max(16, triton.next_power_of_2(problem.out_channels)))
        plain = [Config(128, 32, deep, 4, 3, 0, "few"), Config(64, 32, deep, 4, 2, 0, "few")]
        boxed = [(256, 32, 32, 8, 4), (256, 32, 64, 8, 3)]
        block = max(16, triton.next_power_of_2(problem.out_channels))
        planes = [Config(128, 16, block, 4, 3, 0, "planes"), Config(64, 16, block, 4, 3, 0, "planes")]
        rows = [Config(*tile, 0, "few boxes", tf32) for tile in boxed if taps > 32]
        taps_alone = Config(128, 32, deep, 4, 3), Config(64, 32, deep, 4, 2)
        return possible(problem, [*planes, *rows, *plain]) or list(taps_alone)
    if taps <= 64:
        return [Config(128, min(32, columns), 32, 4, 1, 0, "direct"), Config(64, columns, 32, 4, 3, 0, "strip")]
    strips = [Config(bm, columns, 32, warps, 3, 0, "strip") for bm, warps in ((128, 4), (64, 4))]
    # Of 16 bits the product is turned over, where it has the rows for that.
    across = columns >= 64 and dtype.itemsize == 2
    unfolded = [(128, columns, 32, 4, 4), (256, columns, 32, 4 if across else 8, 3)]
    return possible(problem, [*(Config(*tile, 0, "unfold", tf32, across) for tile in unfolded), *strips])


def _filter_configs(problem: Problem, dtype: torch.dtype, few: bool) -> list[Config]:
    columns = problem.out_channels // problem.groups
    rows = math.prod(axis.window for axis in problem.axes) * problem.in_channels // problem.groups
    family, tf32 = _family(dtype), dtype == torch.float32 and allows_tf32()
    configs = []
    for bm, bn, bk, warps, stages in _FILTER_TILES[family][_width(columns)]:
        # A long sum in the tensor cores drifts, so real float32 keeps its splits short.
        for scale in {"half": (4, 2, 1), "single": (4, 8), "double": (4, 8)}[family]:
            tall = min(bm, max(32, triton.next_power_of_2(rows)))
            blocks = triton.cdiv(rows, tall) * triton.cdiv(columns, bn) * problem.groups
            # Few channels make every address expensive: longer inner tiles then.
            deep = 64 if few and family == "single" else bk
            configs.append(Config(tall, bn, deep, warps, stages, max(1, scale * 132 // blocks), "taps", tf32))
    if family == "half" and not few and columns <= 64:
        bm, bn = (64, 64) if columns > 32 else (128, 32)
        blocks = triton.cdiv(rows // 3, bm) * triton.cdiv(columns, bn)
        by_rows = Config(bm, bn, 64, 4, 3, max(1, 2 * 132 // blocks), "rows")
        configs = [*possible(problem, [by_rows]), *configs]
    boxed = possible(problem, _filter_box_configs(problem, dtype, few, columns))
    # Where boxes do it, a few of the others are enough to compare with.
    return [*boxed, *configs[:3]] if boxed else configs


def _filter_box_configs(problem: Problem, dtype: torch.dtype, few: bool, columns: int) -> list[Config]:
    """Tiles for a filter gradient whose operands the copy engine can read."""
    tf32 = dtype == torch.float32 and allows_tf32()
    taps, configs = math.prod(axis.window for axis in problem.axes), []
    if few:
        bn = 64 if columns > 32 else 32
        blocks = problem.axes[0].window * triton.cdiv(columns, bn)
        # Two float32 sums per tap and number: boxes of half the size leave more room for them.
        bk, most = (64, (3, 4)) if dtype.itemsize == 2 else (32, (2, 4))
        across = bn >= 64
        return [Config(bn, bn, bk, 4, 2, max(1, n * 132 // blocks), "unfold", tf32, across) for n in most]
    family = "pair" if tf32 else _family(dtype)
    for bm, bn, bk, warps, stages, across in _FILTER_BOXES[family]:
        if problem.in_channels % bm or columns <= bn // 2:
            continue
        blocks = taps * (problem.in_channels // bm) * triton.cdiv(columns, bn)
        # Programs of float64 take long: there must be many for all multiprocessors to end at about the same time.
        waves = (8, 6, 9) if family == "double" else (1, 2, 4)
        scales = dict.fromkeys(max(1, n * 132 // blocks) for n in waves)
        configs += [Config(bm, bn, bk, warps, stages, splits, "boxes", tf32, across) for splits in scales]
    return configs


def _family(dtype: torch.dtype) -> str:
    return {torch.float32: "single", torch.float64: "double"}.get(dtype, "half")


def _width(columns: int) -> int:
    return 32 if columns <= 32 else 64 if columns <= 64 else 128


def _block(channels: int) -> int:
    """The largest power of two that divides the channels."""
    return channels & -channels


_TILES = {
    "half": {
        32: [(256, 32, 32, 4, 4), (128, 32, 32, 4, 4)],
        64: [(128, 64, 32, 4, 4), (128, 64, 64, 4, 4), (64, 64, 64, 4, 4)],
        128: [
            (128, 128, 64, 4, 3),
            (128, 128, 64, 8, 3),
            (64, 256, 64, 4, 3),
            (64, 64, 64, 4, 4),
            (128, 128, 128, 8, 3),
        ],
    },
    "single": {
        32: [(128, 32, 32, 4, 3)],
        64: [(128, 64, 32, 4, 3), (64, 64, 32, 4, 3)],
        128: [(64, 128, 32, 4, 3), (128, 64, 32, 4, 3), (128, 128, 32, 8, 3)],
    },
    "double": {
        32: [(64, 32, 16, 4, 3)],
        64: [(64, 64, 16, 4, 3), (128, 64, 16, 4, 3)],
        128: [(128, 64, 16, 4, 3), (32, 128, 32, 4, 3), (64, 64, 16, 4, 3)],
    },
}
# Tile, warps, stages, and whether the product is turned over.
_BOXES = {
    "half": {
        32: [(256, 32, 64, 8, 3, False), (256, 32, 32, 4, 4, False)],
        64: [(256, 64, 32, 4, 4, True), (128, 64, 64, 4, 4, True)],
        128: [(128, 128, 64, 4, 4, True), (256, 128, 64, 8, 3, True), (128, 128, 64, 8, 4, True)],
    },
    "single": {
        32: [(256, 32, 32, 8, 4, False), (128, 32, 32, 4, 4, False)],
        64: [(128, 64, 64, 8, 3, False), (128, 64, 32, 4, 4, True)],
        128: [(128, 64, 64, 8, 3, False), (128, 64, 64, 4, 3, True), (128, 128, 32, 8, 4, True)],
    },
    "double": {
        32: [(64, 32, 16, 4, 4, False)],
        64: [(64, 64, 16, 4, 3, False)],
        128: [(64, 64, 16, 4, 3, False), (128, 64, 16, 8, 3, False)],
    },
}
_PAIRS = {
    32: [(128, 32, 64, 4, 2, False)],
    64: [(128, 64, 64, 4, 2, True), (128, 64, 64, 4, 3, True)],
    128: [],
}
_FILTER_BOXES = {
    "half": [
        (128, 128, 64, 4, 4, True),
        (128, 128, 64, 8, 4, True),
        (128, 64, 128, 4, 4, True),
        (64, 64, 128, 4, 3, True),
        (64, 64, 64, 4, 4, True),
    ],
    "single": [(64, 64, 64, 4, 3, True), (128, 128, 32, 8, 4, False), (64, 128, 64, 4, 3, False)],
    "pair": [(128, 128, 64, 4, 3, True), (64, 64, 64, 4, 3, True), (128, 64, 64, 4, 3, True)],
    "double": [(64, 64, 16, 4, 3, False)],
}
_FILTER_TILES = {
    "half": {
        32: [(128, 32, 64, 4, 3)],
        64: [(128, 64, 64, 4, 3), (256, 64, 64, 8, 3)],
        128: [(128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (128, 64, 64, 4, 3)],
    },
    "single": {
        32: [(128, 32, 32, 4, 3)],
        64: [(128, 64, 32, 4, 3), (64, 64, 32, 4, 3)],
        128: [(128, 64, 32, 4, 3), (64, 64, 32, 4, 3)],
    },
    "double": {
        32: [(64, 32, 16, 4, 3)],
        64: [(64, 64, 16, 4, 3), (128, 64, 16, 4, 3)],
        128: [(64, 64, 16, 4, 3), (32, 128, 16, 4, 4)],
    },
}
