# SPDX-License-Identifier: Apache-2.0
"""The family on one GPU: ours against cuDNN (both layouts) and XLA, on the same tensors, in one run.

    python -m bench.gpu --out bench/results/gpu.json           # everything
    python -m bench.gpu --warm 0/14                            # compile a share of the kernels, time nothing
    python -m bench.gpu --only MaxPool3DGrad,p3s2 --no-xla
    python -m bench.gpu --only Conv3D --out bench/results/gpu.json --merge   # the other rows stay, with their dates

A result is compared with a float64 (or torch) reference first; a wrong one has no time. Times are medians of
triton.testing.do_bench, or lower quartiles of turns where the best peer is within a tenth. Ceilings are measured in the
same run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import torch
import torch.nn.functional as F  # noqa: N812
import triton
from triton.testing import do_bench

from bench.gpu_rows import CONVS, POOLS, rows
from bench.rows import POOL, Row
from voxgrad import raw_ops
from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.kernels.cuda import cudnn, dispatch, tune
from voxgrad.kernels.names import KERNELS
from voxgrad.testing.calls import operands

TOLERANCE = {"bfloat16": 8e-3, "float16": 2e-3, "float32": 3e-6, "float32_tf32": 2e-3, "float64": 1e-12}
TORCH = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


@dataclass
class Timing:
    """One line of the table: op, type, shape; milliseconds by engine and layout."""

    op: str
    dtype: str
    shape: str
    work: float
    unit: str
    error: float = float("nan")
    same_bits: bool = False
    chosen: dict[str, str] = field(default_factory=dict)
    ours: dict[str, float] = field(default_factory=dict)
    peers: dict[str, float] = field(default_factory=dict)
    run: str = ""
    """The date of the run that the row comes from."""

    def line(self, ceilings: dict[str, float]) -> str:
        """The row as text."""
        mine, best = min(self.ours.values(), default=float("nan")), min(self.peers.values(), default=float("nan"))
        peer = min(self.peers, key=lambda name: self.peers[name]) if self.peers else "-"
        ceiling = ceilings["copy"] if self.unit == "GB/s" else ceilings[self.dtype]
        rate = self.work / mine / (1e6 if self.unit == "GB/s" else 1e9)
        layouts = " ".join(f"{name}={value:.4f}" for name, value in self.ours.items())
        return (
            f"{self.op:22} {self.dtype:12} {self.shape:15} {mine:8.4f} ms {rate:7.0f} {self.unit:8} "
            f"{100 * rate / ceiling:4.0f}% | {peer:11} {best:8.4f} ms x{best / mine:6.2f} | err {self.error:.1e} "
            f"{'same bits' if self.same_bits else 'BITS DIFFER'} | {layouts} | {'; '.join(set(self.chosen.values()))}"
        )


def problem_of(op_name: str, shape: str, dtype: str, last: bool) -> Problem:
    """The problem of a row; SAME padding."""
    if shape in CONVS:
        n, sizes, ci, co, k, s = CONVS[shape]
    else:
        n, sizes, ci, k, s = POOLS[shape]
        co = ci
    axes = [geometry.axis(size, k, s, 1, geometry.SAME) for size in sizes]
    declared = dtypes.named(dtype.removesuffix("_tf32"))
    assert declared is not None
    op, three = OPS[op_name], (axes[0], axes[1], axes[2])
    return Problem(op.name, op.map, declared, declared, (), last, n, ci, co, 1, three).part(three)


def tensors_of(problem: Problem, dtype: torch.dtype) -> list[torch.Tensor]:
    """Fresh random inputs in the layout of the problem; filters lie in memory as torch wants them, for all alike."""
    op, pool = OPS[problem.op], OPS[problem.map.of]
    taps = problem.filter_shape if op.map.has_taps else ()

    def draw(extent: tuple[int, ...]) -> torch.Tensor:
        made = torch.randn(extent, device="cuda", dtype=torch.float32).to(dtype)
        return made.permute(4, 0, 1, 2, 3).contiguous().permute(1, 2, 3, 4, 0) if extent == taps else made

    forward = replace(problem, op=pool.name, map=pool.map).part(problem.axes)
    made = operands(op, {side: problem.extent(side) for side in Side}, draw, lambda x: dispatch.run(forward, x))
    return [made[item.name] for item in op.inputs if not item.host]


def turned(x: torch.Tensor, problem: Problem, first: bool = True) -> torch.Tensor:
    """Data of a problem as torch sees it, channels first."""
    return x.permute(0, 4, 1, 2, 3) if problem.channels_last else x


def reference(problem: Problem, tensors: list[torch.Tensor]) -> torch.Tensor:
    """The result by other means, in float64 where that is affordable: cuDNN for convolutions, torch for pools."""
    exact = [tensor.double() for tensor in tensors]
    if problem.map.has_taps:
        result: torch.Tensor = getattr(cudnn, KERNELS[problem.op])(problem, *exact, cudnn.Switches())
        return result
    x = turned(exact[0], problem)
    if Side.CELLS not in problem.map.inputs:
        x = torch.zeros(turned(torch.empty(problem.input_extent, device="meta"), problem).shape, device="cuda").double()
    x = x.detach().requires_grad_()
    result = _pooled(problem, x)
    if problem.map.output is Side.CELLS:
        (result,) = torch.autograd.grad(result, x, turned(exact[-1], problem))
    if problem.op == "MaxPool3DGradGrad":
        _, where = F.max_pool3d(_padded(problem, x, float("-inf")), *_window(problem), return_indices=True)
        padded = _padded(problem, turned(exact[2], problem), 0.0)
        result = padded.flatten(2).gather(2, where.flatten(2)).view(where.shape)
    return (result.permute(0, 2, 3, 4, 1) if problem.channels_last else result).detach()


def _window(problem: Problem) -> tuple[list[int], list[int]]:
    return [axis.window for axis in problem.axes], [axis.stride for axis in problem.axes]


def _padded(problem: Problem, x: torch.Tensor, value: float) -> torch.Tensor:
    pads = []
    for axis in reversed(problem.axes):
        missing = geometry.missing_cells(axis.size, axis.out, axis.window, axis.stride, axis.dilation)
        pads += [axis.before, max(0, missing - axis.before)]
    return F.pad(x, pads, value=value)


def _pooled(problem: Problem, x: torch.Tensor) -> torch.Tensor:
    if problem.map.selects:
        return F.max_pool3d(_padded(problem, x, float("-inf")), *_window(problem))
    ones = _padded(problem, torch.ones_like(x[:1, :1]), 0.0)
    return F.avg_pool3d(_padded(problem, x, 0.0), *_window(problem)) / F.avg_pool3d(ones, *_window(problem))


def peer(problem: Problem, tensors: list[torch.Tensor]) -> Callable[[], Any]:
    """The torch call for a row. Pools pad symmetrically there, which costs torch no copy."""
    if problem.map.has_taps:
        return conv_peer(problem, tensors)
    window, strides = _window(problem)
    pad = [axis.window // 2 if axis.window % 2 else 0 for axis in problem.axes]
    aten = torch.ops.aten
    data = [turned(tensor, problem) for tensor in tensors]
    if problem.op == "AvgPool3D":
        return lambda: F.avg_pool3d(data[0], window, strides, pad, False, False)
    if problem.op == "MaxPool3D":
        return lambda: F.max_pool3d(data[0], window, strides, pad)
    if problem.op == "AvgPool3DGrad":
        x = turned(torch.empty(problem.input_extent, device="cuda", dtype=data[0].dtype), problem)
        return lambda: aten.avg_pool3d_backward(data[0], x, window, strides, pad, False, False, None)

    def find() -> torch.Tensor:
        found: torch.Tensor = F.max_pool3d(data[0], window, strides, pad, return_indices=True)[1]
        return found

    if problem.op == "MaxPool3DGrad":
        again = aten.max_pool3d_with_indices_backward
        return lambda: again(data[2], data[0], window, strides, pad, [1, 1, 1], False, find())
    return lambda: data[2].flatten(2).gather(2, find().flatten(2))


def conv_peer(problem: Problem, tensors: list[torch.Tensor]) -> Callable[[], Any]:
    """The torch call for a convolution: filters in torch's own layout, a padded copy where SAME is not symmetric."""
    order = torch.channels_last_3d if problem.channels_last else torch.contiguous_format
    strides = [axis.stride for axis in problem.axes]
    after = [geometry.missing_cells(a.size, a.out, a.window, a.stride, a.dilation) - a.before for a in problem.axes]
    even = all(axis.before == cells for axis, cells in zip(problem.axes, after, strict=True))
    pad = [axis.before if even else 0 for axis in problem.axes]

    def whole(x: torch.Tensor) -> torch.Tensor:
        return x if even else _padded(problem, x, 0.0)

    def backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, wanted: list[bool]) -> Any:
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, strides, pad, [1, 1, 1], False, [0, 0, 0], problem.groups, wanted
        )

    if problem.map.output is Side.WINDOWS:
        x, w = turned(tensors[0], problem), tensors[1].permute(4, 3, 0, 1, 2).contiguous(memory_format=order)
        return lambda: F.conv3d(whole(x), w, None, strides, pad)
    if problem.map.output is Side.CELLS:
        w, dy = tensors[0].permute(4, 3, 0, 1, 2).contiguous(memory_format=order), turned(tensors[1], problem)
        like = turned(torch.empty(problem.input_extent, device="cuda", dtype=dy.dtype), problem)
        like = whole(like)
        crop = (..., *(slice(axis.before, axis.before + axis.size) for axis in problem.axes))
        if even:
            return lambda: backward(dy, like, w, [True, False, False])[0]
        return lambda: backward(dy, like, w, [True, False, False])[0][crop].contiguous(memory_format=order)
    x, dy = (turned(tensor, problem) for tensor in tensors)
    shape = (problem.out_channels, problem.in_channels // problem.groups, *(axis.window for axis in problem.axes))
    like = torch.empty(shape, device="cuda", dtype=x.dtype, memory_format=order)
    return lambda: backward(dy, whole(x), like, [False, True, False])[1]


def xla(problem: Problem, tensors: list[torch.Tensor]) -> Callable[[], Any] | None:
    """The JAX call for a row in NDHWC, on the same memory; None where there is no JAX."""
    try:
        import jax
    except ImportError:
        return None
    data = [jax.dlpack.from_dlpack(tensor.contiguous()) for tensor in tensors]
    compiled = jax.jit(partial(xla_conv if problem.map.has_taps else xla_pool, problem))
    compiled(*data).block_until_ready()
    return lambda: compiled(*data)


def xla_conv(problem: Problem, *arrays: Any) -> Any:
    """A convolution or one of its gradients, in JAX."""
    import jax

    def conv(x: Any, w: Any) -> Any:
        strides = _window(problem)[1]
        return jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))

    if problem.map.output is Side.WINDOWS:
        return conv(*arrays)
    if problem.map.output is Side.CELLS:
        like = jax.ShapeDtypeStruct(problem.input_extent, arrays[0].dtype)
        return jax.linear_transpose(lambda x: conv(x, arrays[0]), like)(arrays[1])[0]
    like = jax.ShapeDtypeStruct(problem.filter_shape, arrays[0].dtype)
    return jax.linear_transpose(lambda w: conv(arrays[0], w), like)(arrays[1])[0]


def xla_pool(problem: Problem, *arrays: Any) -> Any:
    """A pool or one of its gradients, in JAX."""
    import jax
    from jax import lax

    window, strides = ((1, *values, 1) for values in _window(problem))

    def pool(x: Any) -> Any:
        # Plain Python numbers as start values: only then JAX recognises a maximum or a sum, which it can differentiate.
        if problem.map.selects:
            return lax.reduce_window(x, -float("inf"), lax.max, window, strides, "SAME")
        return lax.reduce_window(x, 0.0, lax.add, window, strides, "SAME") / (problem.axes[0].window ** 3)

    if not OPS[problem.op].of:
        return pool(arrays[0])
    if problem.op == "AvgPool3DGrad":
        zeros = jax.ShapeDtypeStruct(problem.input_extent, arrays[0].dtype)
        return jax.linear_transpose(pool, zeros)(arrays[0])[0]
    if problem.op == "MaxPool3DGrad":
        return jax.vjp(pool, arrays[0])[1](arrays[2])[0]
    return jax.jvp(pool, (arrays[0],), (arrays[2],))[1]


def wall(call: Callable[[], Any]) -> float:
    """Milliseconds per call of a library that launches on its own stream: the best of 5 batches of 10."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(9):
            call()
        call().block_until_ready()
        times.append((time.perf_counter() - start) * 100)
    return min(times)


def measure(op_name: str, dtype: str, shape: str, with_xla: bool) -> Timing:
    """Check a row, then time it."""
    plain = TORCH.get(dtype, torch.float32)
    torch.set_float32_matmul_precision("high" if dtype == "float32_tf32" else "highest")
    problem = problem_of(op_name, shape, dtype, True)
    pool = shape in POOLS
    large, small, size = 1.0, 1.0, torch.empty(0, dtype=plain).element_size()
    for value in problem.input_extent:
        large *= value
    for value in problem.output_extent:
        small *= value
    copies = 2 if OPS[op_name].maxima else 1
    work = copies * (large + small) * size if pool else tune.operations(problem)
    row = Timing(op_name, dtype, shape, work, "GB/s" if pool else "TFLOP/s")
    tensors = tensors_of(problem, plain)
    wanted = reference(problem, tensors)
    for last in (True, False) if pool else (True,):
        one = problem if last else problem_of(op_name, shape, dtype, False)
        mine = tensors if last else [tensor.permute(0, 4, 1, 2, 3).contiguous() for tensor in tensors]
        result = dispatch.run(one, *mine)
        plainly = result if last else result.permute(0, 2, 3, 4, 1)
        row.error = float((plainly.double() - wanted).norm() / wanted.norm())
        if not row.error <= TOLERANCE[dtype]:
            print(f"WRONG {row.op} {dtype} {shape} {'NDHWC' if last else 'NCDHW'}: error {row.error:.1e}", flush=True)
            continue
        row.same_bits = all(torch.equal(dispatch.run(one, *mine), result) for _ in range(10))
        layout = "NDHWC" if last else "NCDHW"
        row.chosen[layout] = dispatch.describe(one, *mine)
        row.ours[layout] = do_bench(lambda one=one, mine=mine: dispatch.run(one, *mine), 10, 60, return_mode="median")
    del wanted
    time_peers(row, problem, tensors, with_xla)
    return row


def time_peers(row: Timing, problem: Problem, tensors: list[torch.Tensor], with_xla: bool) -> None:
    """Torch in both layouts, XLA in NDHWC."""
    tf32 = cudnn.switches(tensors[0].dtype, deterministic=False).tf32
    flags = torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=tf32)
    calls = {}
    with flags:
        for last in (True, False):
            one = problem if last else problem_of(problem.op, row.shape, row.dtype, False)
            mine = [
                t if last or tuple(t.shape) == problem.filter_shape else t.permute(0, 4, 1, 2, 3).contiguous()
                for t in tensors
            ]
            name = "torch NDHWC" if last else "torch NCDHW"
            try:
                calls[name] = peer(one, mine)
                row.peers[name] = do_bench(calls[name], 5, 40, return_mode="median")
            except RuntimeError as error:
                print(f"torch refuses {row.op} {row.dtype} {row.shape}: {str(error)[:80]}", flush=True)
        race_again(row, partial(dispatch.run, problem, *tensors), calls)
    call_xla = xla(problem, tensors) if with_xla else None
    if call_xla is not None:
        row.peers["xla NDHWC"] = wall(call_xla)


def race_again(row: Timing, ours: Callable[[], Any], peers: dict[str, Callable[[], Any]]) -> None:
    """Time ours and the best peer again, by turns, where they are close: a GPU at its power limit slows as it works.

    Lower quartiles, of a turn's times and then of the turns: a host that is late now and then is nobody's time.
    """
    best = min(row.peers, key=lambda name: row.peers[name], default="")
    if not best or "NDHWC" not in row.ours or not 0.9 < row.peers[best] / row.ours["NDHWC"] < 1.1:
        return
    times = [[do_bench(call, 5, 20, quantiles=[0.25]) for call in (ours, peers[best])] for _ in range(9)]
    row.ours["NDHWC"], row.peers[best] = (statistics.quantiles(turns)[0] for turns in zip(*times, strict=True))


def ceilings() -> dict[str, float]:
    """Copy bandwidth in GB/s and matrix rates in TFLOP/s, measured now."""
    source = torch.randn(2**28, device="cuda")
    target = torch.empty_like(source)
    made = {"copy": 2 * source.numel() * 4 / do_bench(lambda: target.copy_(source), return_mode="median") / 1e6}
    for name, dtype, n in (
        ("bfloat16", torch.bfloat16, 8192), ("float16", torch.float16, 8192), ("float32", torch.float32, 4096),
        ("float32_tf32", torch.float32, 8192), ("float64", torch.float64, 4096),
    ):  # fmt: skip
        torch.set_float32_matmul_precision("high" if name.endswith("tf32") else "highest")
        a = torch.randn(n, n, device="cuda").to(dtype)
        made[name] = 2 * n**3 / do_bench(lambda a=a: a @ a, return_mode="median") / 1e9
    return made


def tiny_calls(device: str = "cuda") -> dict[str, Callable[[], Any]]:
    """Every raw op on a volume of 4^3 cells and 4 channels."""
    made: dict[str, Callable[[], Any]] = {}
    for op in FAMILY:
        taps, step = ((2, 2, 2), (2, 2, 2)) if op in POOL else ((3, 3, 3), (1, 1, 1))
        given = Row(op.name, 1, (4, 4, 4), 4, 4, taps, step).call()
        tensors = {name: torch.from_numpy(value).to(device) for name, value in given.items() if hasattr(value, "dtype")}
        made[op.name] = partial(getattr(raw_ops, op.name), **given | tensors)
    return made


def launch_overhead() -> dict[str, float]:
    """Microseconds that a tiny call of every raw op takes in Python: medians over batches of 200 calls, by turns."""
    calls = tiny_calls()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(25):
        for name, call in calls.items():
            call()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            times[name].append((time.perf_counter() - start) / 200 * 1e6)
    torch.cuda.synchronize()
    return {name: statistics.median(made) for name, made in times.items()}


def warm(share: str, only: list[str]) -> None:
    """Compile what a share of the rows needs, so that the timing run finds it in Triton's cache."""
    index, count = map(int, share.split("/"))
    for op_name, dtype, shape in list(rows(only))[index::count]:
        for last in (True, False) if shape in POOLS else (True,):
            problem = problem_of(op_name, shape, dtype, last)
            tensors = tensors_of(problem, TORCH.get(dtype, torch.float32))
            if shape in POOLS:
                dispatch.run(problem, *tensors)
                continue
            for choice in tune.candidates(problem, tensors[0].dtype):
                # Tuning leaves out a tile that the device has no room for, too.
                with suppress(triton.runtime.errors.OutOfResources):
                    if choice.engine == "voxgrad":
                        tune.run_choice(choice, problem, tuple(tensors))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="", help="JSON file to write")
    parser.add_argument("--only", default="", help="words, comma-separated, that a row's op, type or shape must be")
    parser.add_argument("--warm", default="", help="i/n: compile a share and leave")
    parser.add_argument("--no-xla", action="store_true")
    parser.add_argument("--merge", action="store_true", help="keep the rows of --out that are not measured now")
    arguments = parser.parse_args()
    only = [word for word in arguments.only.split(",") if word]
    if arguments.warm:
        warm(arguments.warm, only)
        return
    tops = ceilings()
    print(" ".join(f"{name} {value:.0f}" for name, value in tops.items()), flush=True)
    overhead = launch_overhead()
    print("tiny calls, us:", ", ".join(f"{name} {us:.1f}" for name, us in overhead.items()), flush=True)
    about = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(), "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "ceilings": tops,
        "launch_overhead_us": overhead,
    }  # fmt: skip
    made, runs = kept(arguments.out) if arguments.merge else ({}, {})
    runs[about["date"]] = about
    for op_name, dtype, shape in rows(only):
        row = measure(op_name, dtype, shape, not arguments.no_xla and dtype == "bfloat16")
        row.run = about["date"]
        made[name(asdict(row))] = asdict(row)
        print(row.line(tops), flush=True)
        write(arguments.out, about, made, runs)


def name(row: dict[str, Any]) -> tuple[str, str, str]:
    """What tells a row from the others."""
    return row["op"], row["dtype"], row["shape"]


Rows = dict[tuple[str, str, str], dict[str, Any]]


def kept(path: str) -> tuple[Rows, dict[str, Any]]:
    """The rows of a file, and the runs they come from: device, versions and ceilings by date."""
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    about = {key: value for key, value in whole.items() if key not in ("rows", "runs")}
    found = {name(row): {"run": about["date"]} | row for row in whole["rows"]}
    return found, whole.get("runs", {about["date"]: about})


def write(path: str, about: dict[str, Any], made: Rows, runs: dict[str, Any]) -> None:
    """Results so far, in the order of the table, under the last run's device, versions and date."""
    if not path:
        return
    order = list(rows([]))
    listed = [made[key] for key in order if key in made]
    used = {date: run for date, run in runs.items() if any(row["run"] == date for row in listed)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(about | {"runs": used, "rows": listed}, file, indent=1)


if __name__ == "__main__":
    main()
