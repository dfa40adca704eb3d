# SPDX-License-Identifier: Apache-2.0
"""Whole networks in torch, as they are and converted: `python3 run bench networks --peers [--device cuda]`.

A training step (cross entropy, SGD), inference, the first step and the peak of memory, of torch eager and compiled, in
both layouts, and of the same model behind `vt.from_torch`. Every engine is a process of its own; they take turns. The
losses of the first steps are compared with torch's before anything is timed. Results go to bench/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
TURNS = 6
STEPS = 20
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}
"""How far losses may be apart after twenty steps: sums are in another order, and steps carry that on."""


@dataclass(frozen=True)
class Engine:
    """Who computes a network, and how."""

    ours: bool
    compiled: bool
    channels_last: bool
    graphed: bool = False

    @property
    def label(self) -> str:
        """A short name."""
        way = "compiled" if self.compiled else "graphed" if self.graphed else "eager"
        words = ["voxgrad" if self.ours else "torch", way]
        return " ".join([*words, "NDHWC" if self.channels_last else "NCDHW"])


def engines(compiled: bool, device: str) -> list[Engine]:
    """All that are compared, torch's own first; ours on a GPU as `vt.graphed`, too."""
    ways = [(late, last) for late in ((False, True) if compiled else (False,)) for last in (False, True)]
    graphed = [Engine(True, False, last, True) for last in (False, True)] if device == "cuda" else []
    return [*(Engine(ours, late, last) for ours in (False, True) for late, last in ways), *graphed]


@dataclass(frozen=True)
class Task:
    """A network on a device, in a type."""

    network: str
    device: str
    dtype: str
    seed: int = 7


class Trainer:
    """A network with its data, as an engine has it."""

    def __init__(self, task: Task, engine: Engine):
        import torch

        from bench.network_models import NETWORKS

        torch.manual_seed(task.seed)
        network = NETWORKS[task.network]
        features, shape = network.large if task.device == "cuda" else network.small
        layout = torch.channels_last_3d if engine.channels_last else torch.contiguous_format
        self.model = network.make(features).to(task.device, memory_format=layout)
        self.x = torch.randn(shape).to(task.device, memory_format=layout)
        with torch.no_grad():
            made = self.model.eval()(self.x)
        self.target = torch.randint(0, made.shape[1], (made.shape[0], *made.shape[2:])).to(task.device)
        if engine.ours:
            import voxgrad.torch as vt

            self.model = vt.from_torch(self.model)
        self.sgd = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.run: Any = torch.compile(self.model) if engine.compiled else self.model
        self.low = torch.autocast(task.device, torch.bfloat16, enabled=task.dtype == "bfloat16")
        self.on_gpu, self.graphed = task.device == "cuda", engine.graphed

    def record(self) -> None:
        """Have what comes next replayed, if it is to be: the first time in a mode."""
        if not self.graphed:
            return
        import voxgrad.torch as vt

        if self.run is self.model:
            self.run = vt.graphed(self.model, self.x)
        elif self.run.why_not(self.x):
            self.run.add(self.x)

    def step(self) -> float:
        """A training step; its loss."""
        from torch.nn import functional

        self.model.train()
        self.sgd.zero_grad()
        with self.low:
            self.record()
            loss = functional.cross_entropy(self.run(self.x).float(), self.target)
        loss.backward()
        self.sgd.step()
        return float(loss.detach())  # waits for a GPU

    def infer(self) -> float:
        """A forward pass."""
        import torch

        self.model.eval()
        with torch.no_grad(), self.low:
            self.record()
            return float(self.run(self.x).flatten()[0])

    def peak(self) -> int:
        """The most memory so far, in bytes: of the GPU, or of this process."""
        import torch

        return torch.cuda.max_memory_allocated() if self.on_gpu else 1024 * resource.getrusage(
            resource.RUSAGE_SELF).ru_maxrss  # fmt: skip


def timed(work: Callable[[], Any], count: int) -> list[float]:
    """Seconds of each of so many runs."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def serve(pipe: Connection, task: Task, engine: Engine, threads: int) -> None:
    """An engine's process: the first steps at once, then what it is asked for."""
    import torch

    torch.set_num_threads(threads)
    trainer = Trainer(task, engine)
    start = time.perf_counter()
    losses = [trainer.step()]
    first = time.perf_counter() - start
    losses += [trainer.step() for _ in range(STEPS - 1)]
    trainer.infer()
    pipe.send({"losses": losses, "first": first, "peak": trainer.peak()})
    while (what := pipe.recv()) is not None:
        pipe.send(timed(trainer.step if what == "step" else trainer.infer, 3))


def measure(task: Task, chosen: list[Engine], threads: int) -> list[dict[str, Any]]:
    """A row for each engine that lives: its first answer, and the lower half of the times of its turns."""
    context, rows = multiprocessing.get_context("spawn"), {}
    for engine in chosen:
        pipe, other = context.Pipe()
        context.Process(target=serve, args=(other, task, engine, threads), daemon=True).start()
        other.close()
        try:
            rows[pipe] = {"engine": engine.label, "ours": engine.ours, "step": [], "inference": [], **pipe.recv()}
        except EOFError:  # torch's own norms crash in some layouts
            print(f"{task.network}: {engine.label} died")
    for _ in range(TURNS):
        for pipe, row in rows.items():
            for what in ("step", "inference"):
                pipe.send(what)
                row[what] += pipe.recv()
    for pipe, row in rows.items():
        pipe.send(None)
        row |= {what: statistics.median(sorted(row[what])[: len(row[what]) // 2]) for what in ("step", "inference")}
    return list(rows.values())


def differs(losses: list[float], wanted: list[float], tolerance: float) -> str:
    """What is wrong with losses; "" where they are those of torch."""
    gaps = [abs(one - two) / max(1.0, abs(two)) for one, two in zip(losses, wanted, strict=True)]
    worst = max(gaps)
    return "" if worst <= tolerance else f"the loss of step {gaps.index(worst) + 1} is off by {worst:.2g}"


def compare(task: Task, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Ours against the best of torch."""
    theirs, own = ([row for row in rows if row["ours"] is side] for side in (False, True))
    made: dict[str, Any] = {"network": task.network, "dtype": task.dtype, "rows": rows, "wrong": ""}
    for row in own:
        made["wrong"] = made["wrong"] or differs(row["losses"], theirs[0]["losses"], TOLERANCE[task.dtype])
    for what in ("step", "inference", "peak", "first"):
        best = [min(row[what] for row in side) for side in (theirs, own)]
        made[what] = best[0] / best[1]
    return made


def show(made: dict[str, Any]) -> None:
    """The table of a network."""
    print(f"\n{made['network']} {made['dtype']}" + (f": WRONG, {made['wrong']}" if made["wrong"] else ""))
    for row in made["rows"]:
        times = f"step {row['step'] * 1e3:8.1f} ms  inference {row['inference'] * 1e3:8.1f} ms"
        print(f"  {row['engine']:24} {times}  first {row['first']:6.1f} s  peak {row['peak'] / 2**20:7.0f} MiB")
    print(f"  times as fast as the best of torch: step {made['step']:.2f}, inference {made['inference']:.2f}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="run bench networks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--network", action="append", help="only this one; may be given several times")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=tuple(TOLERANCE), default="float32")
    parser.add_argument("--compiled", action="store_true", help="under torch.compile, too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", action="store_true", help="for `run`: installs torch")
    given = parser.parse_args()
    from bench.network_models import NETWORKS

    if unknown := [name for name in given.network or () if name not in NETWORKS]:
        parser.error(f"--network must be one of {', '.join(NETWORKS)}; got {', '.join(unknown)}")
    found = []
    for name in given.network or NETWORKS:
        task = Task(name, given.device, given.dtype)
        found.append(compare(task, measure(task, engines(given.compiled, given.device), given.threads)))
        show(found[-1])
    for what in ("step", "inference"):
        mean = math.exp(statistics.fmean(math.log(one[what]) for one in found))
        print(f"{what}: geometric mean {mean:.2f}, least {min(one[what] for one in found):.2f}")
    RESULTS.joinpath(f"networks-{given.device}.json").write_text(
        json.dumps(
            {"machine": platform.processor() or platform.machine(), "threads": given.threads, "networks": found},
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
