# SPDX-License-Identifier: Apache-2.0
"""A U-Net over a cube: torch on all of it at once, against `vg.volumes.predict`, each in a process of its own.

`python -m bench.volume_networks dense|predict ...` is such a process; `bench/volumes.py` starts them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]


def unet(features: tuple[int, ...]) -> Any:
    """As nnU-Net's: two convolutions, instance norms and leaky ReLUs a level, the same weights every time."""
    import torch
    from torch import nn

    def block(inner: int, outer: int, step: int = 1) -> Any:
        layers: list[Any] = []
        for channels, stride in ((inner, step), (outer, 1)):
            layers += [nn.Conv3d(channels, outer, 3, stride, 1), nn.InstanceNorm3d(outer, affine=True), nn.LeakyReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            pairs = list(pairwise(features))
            self.first = block(1, features[0])
            self.down = nn.ModuleList(block(small, large, 2) for small, large in pairs)
            self.up = nn.ModuleList(nn.ConvTranspose3d(large, small, 2, 2) for small, large in reversed(pairs))
            self.join = nn.ModuleList(block(2 * small, small) for small, _ in reversed(pairs))
            self.head = nn.Conv3d(features[0], 3, 1)

        def forward(self, x: Any) -> Any:
            levels = [self.first(x)]
            for down in self.down:
                levels.append(down(levels[-1]))
            made = levels.pop()
            for up, join in zip(self.up, self.join, strict=True):
                made = join(torch.cat([up(made), levels.pop()], dim=1))
            return self.head(made)

    torch.manual_seed(0)
    return UNet().eval()


def make_cube(path: Path, side: int) -> None:
    """Noise on a slow wave, [1, D, H, W, 1]."""
    wave = np.sin(np.arange(side, dtype=np.float32) / 9)
    noise = np.random.default_rng(0).standard_normal((1, side, side, side, 1), np.float32)
    noise += 2 * (wave[:, None, None] + wave[:, None] * wave)[None, ..., None]
    np.save(path, noise)


def dense(folder: Path, features: tuple[int, ...], threads: int) -> float:
    """Torch's result for all of it; the seconds that it took, reading and writing included."""
    import torch

    torch.set_num_threads(threads)
    model = unet(features)
    start = time.perf_counter()
    with torch.no_grad():
        x = torch.from_numpy(np.load(folder / "x.npy"))
        made = model(x.movedim(4, 1)).movedim(1, 4)
        np.save(folder / "dense.npy", made.numpy())
    return time.perf_counter() - start


def predicted(folder: Path, features: tuple[int, ...], memory: int, workers: int) -> float:
    """The same by chunks, in so much memory for all workers together, and this process, which holds torch."""
    import voxgrad as vg

    model = unet(features)
    memory -= held(os.getpid())[0]
    start = time.perf_counter()
    vg.volumes.predict(model, folder / "x.npy", folder / "y.npy", memory=memory // workers, workers=workers)
    return time.perf_counter() - start


def run(*what: Any) -> Result:
    """One such process: its seconds, and the most memory that it and its children held at one time."""
    told = [sys.executable, "-m", "bench.volume_networks", *map(str, what)]
    process = subprocess.Popen(told, stdout=subprocess.PIPE, text=True)
    peak, over = [0, 0], threading.Event()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def look() -> None:
        while not over.wait(0.05):
            pids = [process.pid, *children_of(process.pid)]
            own, mapped = (sum(some) for some in zip(*map(held, pids), strict=True))
            peak[:] = [max(peak[0], own), max(peak[1], own + mapped)]

    watcher = threading.Thread(target=look)
    watcher.start()
    text = process.communicate()[0]
    over.set()
    watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(told)}: ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    gib = {"peak_gib": peak[0] / 2**30, "with_mapped_gib": peak[1] / 2**30}
    return {"seconds": json.loads(text), "processor_s": worked, **gib}


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        texts = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(one) for text in texts for one in text.split()]


def held(pid: int) -> tuple[int, int]:
    """The memory of a process: its own, and pages of files that it has mapped, which the system may take back."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        own, files = (int(lines[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
    except (OSError, KeyError, ValueError):
        return 0, 0
    return own, files


def difference(folder: Path) -> Result:
    """How far the two results are apart, plane by plane, and how large they are."""
    ours, theirs = (np.load(folder / name, mmap_mode="r") for name in ("y.npy", "dense.npy"))
    apart = max(float(np.abs(a - b).max()) for a, b in zip(ours[0], theirs[0], strict=True))
    return {"apart": apart, "largest": max(float(np.abs(one).max()) for one in theirs[0])}


def main() -> None:
    kind, folder, features, *rest = sys.argv[1:]
    how: Callable[..., float] = dense if kind == "dense" else predicted
    seconds = how(Path(folder), tuple(int(one) for one in features.split(",")), *(int(one) for one in rest))
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
