# SPDX-License-Identifier: Apache-2.0
"""The engines that are compared, each in a process of its own: `python -m bench.engines NAME` serves one over pipes.

A server is told a row, builds its call, and answers `check` with the result and `time` with seconds per run. Only one
server works at a time, so that they do not take the cores from each other.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.rows import Row

Array = np.ndarray[Any, Any]
TUNED = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=8589934592:glibc.malloc.mmap_max=0"

ENGINES: dict[str, dict[str, str]] = {
    "voxgrad": {},
    "torch_last": {},
    "torch_first": {},
    "torch_last_tuned": {"GLIBC_TUNABLES": TUNED},
    "torch_first_tuned": {"GLIBC_TUNABLES": TUNED},
    "tensorflow_onednn": {"TF_ENABLE_ONEDNN_OPTS": "1"},
    "tensorflow": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "jax": {},
}
"""Every engine with the environment that makes it fast."""

HELD: dict[str, dict[str, str]] = {
    "avx2": {
        "VOXGRAD_ISA": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
}
"""What holds every engine to an instruction set, to see how they compare on processors that have no wider one."""


class Server:
    """The driver's side of an engine's process."""

    def __init__(self, name: str, threads: int):
        settings = {"OMP_NUM_THREADS": str(threads), "VOXGRAD_NUM_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.engines", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | settings | ENGINES[name],
        )

    def ask(self, *question: Any) -> Any:
        """Send a question and wait for the answer; an error of the engine comes back as a text."""
        assert self._process.stdin and self._process.stdout
        try:
            _send(self._process.stdin, question)
            return _receive(self._process.stdout)
        except (EOFError, BrokenPipeError, OSError):
            return f"died with {self._process.poll()}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _send(pipe: Any, value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    pipe.write(struct.pack("<q", len(data)) + data)
    pipe.flush()


def _receive(pipe: Any) -> Any:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(pipe.read(struct.unpack("<q", head)[0]))


def voxgrad_call(row: Row, call: dict[str, Any]) -> Callable[[], Any]:
    """Our own raw op."""
    import voxgrad as vg

    function = getattr(vg.raw_ops, row.op)
    return lambda: function(**call)


def tensorflow_call(row: Row, call: dict[str, Any]) -> Callable[[], Any]:
    """The eager raw op on tensors that are there already."""
    import tensorflow as tf

    given = {name: tf.constant(value) if isinstance(value, np.ndarray) else value for name, value in call.items()}
    given |= {name: tf.constant(value, tf.int32) for name, value in call.items() if name.endswith(("_sizes", "_shape"))}
    function = getattr(tf.raw_ops, row.op)
    return lambda: function(**given)


def load(name: str, row: Row) -> tuple[Callable[[], Any], Callable[[Any], Array]]:
    """The call of an engine, and what turns its result into NDHWC NumPy."""
    call = row.call()
    if name == "voxgrad":
        return voxgrad_call(row, call), np.asarray
    if name.startswith("tensorflow"):
        return tensorflow_call(row, call), lambda result: result.numpy()
    if name.startswith("torch"):
        from bench.torch_peer import torch_call

        return torch_call(row, call, last="last" in name)
    from bench.jax_peer import jax_call

    return jax_call(row, call), np.asarray


def serve(name: str) -> None:
    """Answer questions until the driver closes the pipe."""
    pipe_in, pipe_out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    run: Callable[[], Any] = lambda: None  # noqa: E731
    back: Callable[[Any], Array] = np.asarray
    while True:
        try:
            what, *rest = _receive(pipe_in)
        except EOFError:
            return
        try:
            if what == "row":
                run, back = load(name, rest[0])
                answer: Any = True
            elif what == "check":
                answer = np.asarray(back(run()))
            else:
                answer = timed(run, rest[0])
        except Exception as error:  # an engine that cannot run a row says so and stays for the next
            answer = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        _send(pipe_out, answer)


def timed(run: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds of each run, for about as long as asked, at least one."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        _wait(run())
        times.append(time.perf_counter() - start)
    return times


def _wait(result: Any) -> None:
    """JAX returns before it has computed."""
    ready = getattr(result, "block_until_ready", None)
    if ready:
        ready()


if __name__ == "__main__":
    serve(sys.argv[1])
