# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot hurt each other: one inside another, from a collector, in a forked child, interrupted."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays import fast, memory
from voxgrad.kernels import cpu

POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
X = np.random.default_rng(0).standard_normal((1, 5, 6, 7, 3)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((2, 2, 2, 3, 4)).astype(np.float32)
ROOMS = (str(Path(fast.__file__).parent), str(Path(cpu.__file__).parent))


def at_every_opcode(call: Callable[[], Any], inside: Callable[[], Any], step: int = 1) -> Iterator[Any]:
    """The results of a call with another one inside, before each of its opcodes in turn, as a signal handler runs.

    Or before every so manieth one, where there are many.
    """
    place = 0
    while True:
        left = place

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.startswith(ROOMS):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                left -= 1
                if left == -1:
                    inside()
            return trace

        sys.settrace(trace)
        try:
            result = call()
        finally:
            sys.settrace(None)
        if left >= 0:
            return
        yield result
        place += step


@pytest.mark.parametrize("known", [True, False], ids=["short way", "long way"])
def test_a_call_inside_another_changes_nothing(known: bool) -> None:
    def call() -> Any:
        if not known:
            fast.forget()
        return vg.raw_ops.AvgPool3D(input=X, **POOL)

    def inside() -> None:
        vg.raw_ops.Conv3D(input=X, filter=W, strides=[1] * 5, padding="SAME")
        vg.raw_ops.MaxPool3D(input=X, **POOL)

    wanted = call()
    for _ in range(2):
        inside()
    places = 0
    for result in at_every_opcode(call, inside, 1 if known else 97):
        assert np.array_equal(result, wanted), places
        places += 1
    assert places > 20


def test_other_threads_settings_do_not_reach_a_call(threads: None, isa: str) -> None:
    """A call that is under way keeps the number of threads and the instruction set that it began with."""

    def inside() -> None:
        cpu.set_num_threads(cpu.get_num_threads() % 5 + 1)
        vg.raw_ops.Conv3D(input=X, filter=W, strides=[1] * 5, padding="VALID")

    def call() -> Any:
        return vg.raw_ops.Conv3D(input=X, filter=W, strides=[1] * 5, padding="SAME")

    wanted = call()
    assert all(np.array_equal(result, wanted) for result in at_every_opcode(call, inside))


def script(text: str, seconds: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program that may hang."""
    code = "import gc, os, signal, sys, threading, time\nimport numpy as np, voxgrad as vg\n" + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=seconds,
        env=os.environ | variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_memory_may_be_given_back_while_it_is_asked_for() -> None:
    """By the collector, say, or asked for by a signal handler: it hung on its own lock."""
    script("""
        from tests.kernels.test_calls import at_every_opcode
        from voxgrad.arrays import memory
        one = np.dtype(np.uint8)
        def inside():
            memory.empty((3 * 2**20,), one)
        def call():
            memory._waiting.clear()  # else there would be more to look through each time
            memory.empty((2**20,), one)
            return memory.empty((3 * 2**20,), one)
        places = sum(1 for _ in at_every_opcode(call, inside))
        assert places > 50, places
    """)


def test_regions_are_handed_to_one_at_a_time() -> None:
    one, shape = np.dtype(np.uint8), (memory.SMALLEST,)
    held: list[Any] = []

    def call() -> Any:
        held.clear()
        memory._waiting.clear()  # else there would be more to look through each time
        memory.empty(shape, one)
        return memory.empty(shape, one)

    for result in at_every_opcode(call, lambda: held.append(memory.empty(shape, one))):
        assert result.ctypes.data not in [array.ctypes.data for array in held]
    held.clear()
    del result
    assert memory.release_memory() > 0
    assert memory.release_memory() == 0


def test_children_that_were_forked_under_load_compute() -> None:
    script("""
        x = np.ones((1, 33, 64, 64, 2), np.float32)
        pool = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
        wanted = vg.raw_ops.MaxPool3D(input=x, **pool)
        stop = []
        def load():
            while not stop:
                cycle = [vg.raw_ops.MaxPool3D(input=x, **pool)]
                cycle.append(cycle)
        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads: thread.start()
        for number in range(60):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                os._exit(0 if np.array_equal(vg.raw_ops.MaxPool3D(input=x, **pool), wanted) else 3)
            assert os.waitpid(child, 0)[1] == 0, number
        stop.append(1)
        for thread in threads: thread.join()
    """)


def test_a_child_runs_a_session_that_another_thread_was_running() -> None:
    script("""
        page = vg.Page("p")
        vg.ops.Neg(page, vg.ops.Const(page, 2.0, dtype="float32"), name="y")
        inside, go_on = threading.Event(), threading.Event()
        def stay(progress):
            if progress.state == "started" and threading.current_thread() is not threading.main_thread():
                inside.set(); go_on.wait()
        session = vg.ClientSession(page, on_progress=stay)
        thread = threading.Thread(target=session.run, args=("y",))
        thread.start(); inside.wait()
        with session.cache._lock, page.store.lock:
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if session.run("y") == -2 else 3)
            assert os.waitpid(child, 0)[1] == 0
        go_on.set(); thread.join()
    """)
