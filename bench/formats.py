# SPDX-License-Identifier: Apache-2.0
"""How long volumes of each format take to open and to read: a box for the first time and again, and all of it.

    python3 run bench formats [--size 256]

The box has 64 voxels a side. The files were just written, so that the disk itself is not measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.volumes.stores import open_volume, save_volume

NAMES = ("a.npy", "a.npz", "a.zarr", "a.ome.zarr", "a.nii", "a.nii.gz", "a.tif", "a.ome.tif", "a.h5")
BOX = (slice(None), slice(32, 96), slice(32, 96), slice(32, 96), slice(None))


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256, help="voxels along each axis")
    size = parser.parse_args().size
    data = np.random.default_rng(0).standard_normal((1, size, size, size, 1)).astype(np.float32)
    print(f"{data.nbytes / 2**20:.0f} MiB of float32\n")
    print(f"{'':<11}{'open':>9}{'first box':>12}{'box':>10}{'all':>10}{'all MiB/s':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            path = Path(folder) / name
            save_volume(path, data, chunks=(1, 64, 64, 64, 1))
            opened = seconds(lambda p=path: open_volume(p))
            store = open_volume(path)
            first = seconds(lambda s=store: s.read(BOX), 1)
            box, whole = seconds(lambda s=store: s.read(BOX)), seconds(store.read)
            rate = data.nbytes / 2**20 / whole
            times = f"{opened * 1e3:>6.2f} ms{first * 1e3:>9.2f} ms{box * 1e3:>7.2f} ms{whole * 1e3:>7.0f} ms"
            print(f"{name:<11}{times}{rate:>11.0f}")


if __name__ == "__main__":
    main()
