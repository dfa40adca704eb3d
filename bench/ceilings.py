# SPDX-License-Identifier: Apache-2.0
"""What this machine can do at most, measured: matrix products, a copy, and the units that multiply and add."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from native import build as native

TURNS = 2_000_000
"""Rounds of the loop that tells what the units can do: some tens of milliseconds."""


def ceilings(threads: int, isa: str) -> dict[str, float]:
    """GFLOP/s of large matrix products and of the bare units, GB/s of a copy, best of several."""
    found = {}
    for name, size in (("float32", 2048), ("float64", 1536)):
        a = np.random.default_rng(0).standard_normal((size, size)).astype(name)
        times = []
        for _ in range(8):
            start = time.perf_counter()
            a @ a
            times.append(time.perf_counter() - start)
        found[name] = 2 * size**3 / min(times) / 1e9
    found["copy"] = _copy_rate(threads)
    return found | units(threads, isa)


def _together(threads: int, work: Callable[[int], object]) -> float:
    """Seconds that `work(thread)` takes on all threads at once."""
    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def _copy_rate(threads: int) -> float:
    """GB/s, reads and writes counted, of all threads copying blocks that do not fit the cache."""
    source, target = np.ones((threads, 2**25), np.float32), np.empty((threads, 2**25), np.float32)
    best = min(_together(threads, lambda i: np.copyto(target[i], source[i])) for _ in range(6))
    return 2 * source.nbytes / best / 1e9


def _turn(function: Callable[[int], float], _thread: int) -> float:
    return function(TURNS)


def units(threads: int, isa: str) -> dict[str, float]:
    """GFLOP/s of multiplications and additions that never leave the registers; empty without a compiler."""
    cxx = native.compiler()
    if cxx is None:
        return {}
    flags = native.ISA.get(isa, [])
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "fma.so"
        source = Path(__file__).with_name("fma.cpp")
        common = ["-O2", "-shared", "-fPIC", "-ffp-contract=fast", f"-DVECTOR_BYTES={native.VECTOR_BYTES.get(isa, 16)}"]
        subprocess.run([cxx, *common, *flags, str(source), "-o", str(made)], check=True)
        library = ctypes.CDLL(str(made))
    found = {}
    for name in ("float32", "float64"):
        function = library[f"flop_{name}"]
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_long]
        best = min(_together(threads, partial(_turn, function)) for _ in range(8))
        found[f"{name}_units"] = threads * function(1) * TURNS / best / 1e9
    return found
