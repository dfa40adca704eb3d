# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs a convolution: one of ours or cuDNN. Measured once per problem, kept on disk.

The file lies under VOXGRAD_CACHE (default ~/.cache/voxgrad), one per device and per versions of torch, Triton and
voxgrad. VOXGRAD_CUDA_ENGINE=voxgrad or cudnn overrides the choice; VOXGRAD_CUDA_TUNE=0 measures nothing and takes
what was fastest on an H200 for problems of that kind.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
import triton

from voxgrad._version import __version__
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import conv3d as ours
from voxgrad.kernels.cuda import cudnn
from voxgrad.kernels.cuda.conv3d import FEW_CHANNELS, Config, fits_rows
from voxgrad.kernels.cuda.cudnn import allows_tf32
from voxgrad.kernels.cuda.launch import per_problem

WORTH_MEASURING = 1e9
"""Floating-point operations from which a problem is worth a measurement."""


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
            text = f"voxgrad Triton {c.kind} {c.bm}x{c.bn}x{c.bk}, {c.warps} warps, {c.stages} stages"
        return text + (f", {self.milliseconds:.3f} ms when measured" if self.milliseconds else "")


def run(problem: Problem, *tensors: torch.Tensor) -> torch.Tensor:
    """A convolution with the chosen kernel."""
    return run_choice(choose(problem, tensors), problem, tensors)


def run_choice(choice: Choice, problem: Problem, tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """A convolution with a given choice."""
    if choice.config is not None:
        made: torch.Tensor = getattr(ours, problem.kernel)(problem, *tensors, choice.config)
        return made
    may = cudnn.switches(tensors[0].dtype, deterministic=choice.engine != "cudnn")
    result: torch.Tensor = getattr(cudnn, problem.kernel)(problem, *tensors, may)
    return result


def choose(problem: Problem, tensors: tuple[torch.Tensor, ...]) -> Choice:
    """The choice for a problem: overridden, remembered, on disk, measured, or by rule."""
    slot = _slot(problem, tensors[0].device, allows_tf32(), os.environ.get("VOXGRAD_CUDA_ENGINE", ""))
    if not slot:
        slot.append(_decide(problem, tensors, os.environ.get("VOXGRAD_CUDA_ENGINE", "")))
    return slot[0]


@per_problem
def _slot(problem: Problem, device: torch.device, tf32: bool, forced: str) -> list[Choice]:
    """The place where the choice for these circumstances is kept."""
    return []


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
    measuring = os.environ.get("VOXGRAD_CUDA_TUNE", "1") != "0" and not torch.cuda.is_current_stream_capturing()
    if not measuring or operations(problem) < WORTH_MEASURING:
        return options[0]
    best = _fastest(problem, tensors, options)
    known[name] = {"engine": best.engine, "config": best.config and asdict(best.config), "ms": best.milliseconds}
    _store(tensors[0].device, known)
    return best


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
    return f"{problem.kernel} {problem.dtype.name} {layout} {shape} {axes}"


def _fastest(problem: Problem, tensors: tuple[torch.Tensor, ...], options: list[Choice]) -> Choice:
    timed = []
    for option in options:
        try:
            if option.engine == "cudnn" and not _repeats(option, problem, tensors):
                continue
            timed.append((_time(partial(run_choice, option, problem, tensors)), option))
        except (RuntimeError, triton.runtime.errors.OutOfResources):
            continue  # A tile that this device has no room for, or a problem that cuDNN refuses.
    if not timed:
        return options[0]
    milliseconds, best = min(timed, key=lambda pair: pair[0])
    return Choice(best.engine, best.config, milliseconds)


def _repeats(option: Choice, problem: Problem, tensors: tuple[torch.Tensor, ...]) -> bool:
    """Does it give the same bits every time?"""
    first = run_choice(option, problem, tensors)
    return all(torch.equal(run_choice(option, problem, tensors), first) for _ in range(8))


def _time(call: Callable[[], torch.Tensor]) -> float:
    """Milliseconds on the device: the best of three batches, each long enough to hide the launches."""
    event: Any = torch.cuda.Event
    for _ in range(3):
        call()
    count, times = 3, []
    for _ in range(4):
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / count)
        count = max(3, min(100, int(4.0 / max(times[-1], 1e-3))))
    return min(times[1:])


def _path(device: torch.device) -> Path:
    folder = Path(os.environ.get("VOXGRAD_CACHE") or Path.home() / ".cache" / "voxgrad")
    name = torch.cuda.get_device_name(device).replace(" ", "-")
    return folder / f"conv-{name}-torch{torch.__version__}-triton{triton.__version__}-voxgrad{__version__}.json"


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
    if not cudnn.supports(problem):
        return mine
    theirs = Choice("cudnn deterministic")
    half = dtype in (torch.float16, torch.bfloat16)
    wide = problem.in_channels > FEW_CHANNELS and all(axis.stride == 1 for axis in problem.axes)
    thin_filter = problem.kernel == "conv3d_filter" and problem.out_channels <= 32
    cudnn_first = (half or (allows_tf32() and dtype == torch.float32)) and wide and not thin_filter
    # cuDNN may be asked for anything, and is then watched, or for what it itself calls deterministic.
    return [theirs, Choice("cudnn"), *mine] if cudnn_first else [*mine, theirs, Choice("cudnn")]


def _configs(problem: Problem, dtype: torch.dtype) -> list[Config]:
    few = problem.in_channels <= FEW_CHANNELS and problem.groups == 1
    if problem.kernel == "conv3d_filter":
        return _filter_configs(problem, dtype, few)
    if few:
        return _few_configs(problem)
    forward = problem.kernel == "conv3d"
    columns = (problem.out_channels if forward else problem.in_channels) // problem.groups
    source = (problem.in_channels if forward else problem.out_channels) // problem.groups
    tiles = _TILES[_family(dtype)][_width(columns)]
    configs = [Config(bm, bn, min(bk, max(16, triton.next_power_of_2(source))), w, s) for bm, bn, bk, w, s in tiles]
    if dtype in (torch.float16, torch.bfloat16) and columns <= 64 and fits_rows(problem, channels=source):
        wide = columns > 32
        configs.insert(
            0, Config(128, 64 if wide else 32, min(64 if wide else 32, _block(source)), 8 if wide else 4, 3, 0, "rows")
        )
    return configs


def _few_configs(problem: Problem) -> list[Config]:
    taps = math.prod(axis.window for axis in problem.axes) * problem.in_channels
    columns = min(64, max(16, triton.next_power_of_2(problem.out_channels)))
    if problem.kernel == "conv3d_input":
        deep = min(32, max(16, triton.next_power_of_2(problem.out_channels)))
        return [Config(128, 32, deep, 4, 3), Config(64, 32, deep, 4, 2)]
    if taps <= 64:
        return [Config(128, min(32, columns), 32, 4, 1, 0, "direct"), Config(64, columns, 32, 4, 3, 0, "strip")]
    return [Config(bm, columns, 32, warps, 3, 0, "strip") for bm, warps in ((128, 4), (64, 4), (128, 8))]


def _filter_configs(problem: Problem, dtype: torch.dtype, few: bool) -> list[Config]:
    columns = problem.out_channels // problem.groups
    rows = math.prod(axis.window for axis in problem.axes) * problem.in_channels // problem.groups
    family = _family(dtype)
    configs = []
    for bm, bn, bk, warps, stages in _FILTER_TILES[family][_width(columns)]:
        # A long sum in the tensor cores drifts, so real float32 keeps its splits short.
        for scale in {"half": (4, 2, 1), "single": (4, 8), "double": (4, 8)}[family]:
            tall = min(bm, max(32, triton.next_power_of_2(rows)))
            blocks = triton.cdiv(rows, tall) * triton.cdiv(columns, bn) * problem.groups
            # Few channels make every address expensive: longer inner tiles then.
            deep = 64 if few and family == "single" else bk
            configs.append(Config(tall, bn, deep, warps, stages, max(1, scale * 132 // blocks)))
    if family == "half" and not few and columns <= 64 and fits_rows(problem, channels=problem.in_channels):
        bm, bn = (64, 64) if columns > 32 else (128, 32)
        blocks = triton.cdiv(rows // 3, bm) * triton.cdiv(columns, bn)
        configs.insert(0, Config(bm, bn, 64, 4, 3, max(1, 2 * 132 // blocks), "rows"))
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
