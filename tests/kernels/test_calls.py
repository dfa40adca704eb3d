# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot hurt each other: one inside another, from a collector, in a forked child, interrupted."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays import fast, memory
from voxgrad.kernels import cpu, interrupt

pytestmark = pytest.mark.processes

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


def script(text: str, seconds: float = 60, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program that may hang."""
    code = "import gc, os, signal, sys, threading, time\nimport numpy as np, voxgrad as vg\n" + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=seconds,
        env=os.environ | variables,
    )  # fmt: skip
    assert done.returncode == status, done.stderr[-3000:]
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


def test_a_forked_process_does_not_write_into_results() -> None:
    """In a process of its own, as all forks here: JAX, where another test has loaded it, warns of each."""
    script("""
        from voxgrad.arrays import memory
        ours = memory.empty((2**22,), np.dtype(np.uint8))
        ours[:] = 1
        child = os.fork()
        if child == 0:
            ours[:] = 2
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (ours == 1).all()
    """)


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


def test_a_first_call_loads_nothing() -> None:
    """What one thread is loading when another forks, the child could never load."""
    script("""
        known = set(sys.modules)
        vg.raw_ops.Conv3D(input=np.ones((1, 2, 2, 2, 1), "f"), filter=np.ones((1, 1, 1, 1, 1), "f"), strides=[1] * 5,
                          padding="SAME")
        assert set(sys.modules) == known, set(sys.modules) - known
    """)


def test_a_fork_waits_for_what_another_thread_loads() -> None:
    script("""
        inside = threading.Event()
        class Slow:
            @staticmethod
            def find_spec(name, *_):
                if name == "voxgrad.kernels.arraywise.nn":
                    inside.set()
                    time.sleep(0.3)
        sys.meta_path.insert(0, Slow)
        thread = threading.Thread(target=lambda: vg.raw_ops.Relu(features=[-1.0]))
        thread.start(); inside.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if vg.raw_ops.Relu(features=[2.0]) == 2 else 3)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
    """)


def test_a_child_solves_what_another_thread_was_solving() -> None:
    script("""
        from voxgrad.catalog import problem
        inside, go_on, join = threading.Event(), threading.Event(), problem._join
        def slow(*arguments):
            if threading.current_thread() is not threading.main_thread():
                inside.set(); go_on.wait()
            return join(*arguments)
        problem._join = slow
        def pooled(size):
            x = np.ones((1, size, 2, 2, 1), "f")
            return vg.raw_ops.AvgPool3D(input=x, ksize=[1, 1, 2, 2, 1], strides=[1] * 5, padding="VALID").shape
        thread = threading.Thread(target=pooled, args=(3,))
        thread.start(); inside.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if pooled(4) == (1, 4, 1, 1, 1) else 3)
        assert os.waitpid(child, 0)[1] == 0
        go_on.set(); thread.join()
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


# Interrupts

BIG = np.zeros((1, 48, 96, 96, 32), np.float32)
WIDE = np.zeros((7, 7, 7, 32, 64), np.float32)
STEPS: dict[str, Any] = {"strides": [1] * 5, "padding": "SAME"}


def convolve() -> Any:
    """Many seconds of one kernel."""
    return vg.raw_ops.Conv3D(input=BIG, filter=WIDE, **STEPS)


def test_what_is_known_to_be_quick_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for one setting: fewer threads may take longer."""
    x, watched = np.zeros((1, 48, 48, 48, 16), np.float32), []
    real = cpu._run_at
    monkeypatch.setattr(cpu, "_run_at", lambda *given: watched.append(given) or real(*given))
    monkeypatch.setattr(interrupt, "LONG", 60.0)
    before = vg.get_num_threads()
    try:
        for threads, calls in ((before, 1), (before + 1, 2), (before, 2)):
            vg.set_num_threads(threads)
            vg.raw_ops.AvgPool3D(input=x, **POOL)
            vg.raw_ops.AvgPool3D(input=x, **POOL)
            assert len(watched) == calls
        monkeypatch.setattr(interrupt, "LONG", 0.0)
        vg.raw_ops.AvgPool3D(input=x, **POOL)
        assert len(watched) == 3
    finally:
        vg.set_num_threads(before)


def session_of(op: str, *values: Any, **attrs: Any) -> Callable[[], Any]:
    """A run of one block."""
    page = vg.Page("long")
    inputs = [
        vg.ops.Placeholder(page, dtype=str(value.dtype), shape=value.shape, name=f"x{at}")
        for at, value in enumerate(values)
    ]
    getattr(vg.ops, op)(page, *inputs, **attrs, name="y")
    session = vg.ClientSession(page, cache=False)
    return lambda: session.run("y", {f"x{at}": value for at, value in enumerate(values)})


def matmul() -> Callable[[], Any]:
    """A second of one call of NumPy, which goes on in its thread after the interrupt."""
    return session_of("MatMul", *[np.zeros((2560, 2560), np.float64)] * 2)


class StopError(Exception):
    """What a handler of somebody's own raises."""


def seconds_to_stop(call: Callable[[], Any], error: type[BaseException], after: float = 0.05) -> float:
    """How long a call goes on after a signal whose handler raises."""
    sent = [0.0]

    def handler(number: int, frame: Any) -> None:
        sent[0] = time.perf_counter()
        raise error

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        with pytest.raises(error):
            call()
        return time.perf_counter() - sent[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, StopError])
@pytest.mark.parametrize("what", ["raw op", "out op", "session", "block"])
def test_a_signal_stops_what_takes_long(what: str, error: type[BaseException]) -> None:
    out = np.empty((1, 48, 96, 96, 64), np.float32)
    calls: dict[str, Callable[[], Any]] = {
        "raw op": convolve,
        "out op": lambda: vg.out_ops.__dict__["Conv3D"](out=out, input=BIG, filter=WIDE, **STEPS),
        "session": session_of("Conv3D", BIG, WIDE, **STEPS),
        "block": matmul(),
    }
    started = time.perf_counter()
    # The bar is 0.1 s (python -m tools.soak --kind interrupts); a machine that does something else as well gets more.
    assert seconds_to_stop(calls[what], error) < 0.7
    assert time.perf_counter() - started < 4, "it was not interrupted, it ended"
    if what == "out op":
        now = out.copy()
        time.sleep(0.1)
        assert np.array_equal(out, now), "a kernel writes to memory that is the caller's again"


@pytest.mark.processes
@pytest.mark.parametrize("again", [False, True])
def test_the_end_of_the_program_waits_for_what_was_left(again: bool) -> None:
    """OpenBLAS hangs for ever if it is taken down in the middle of a call. A second Ctrl-C does not wait."""
    done = script(
        f"""
        from voxgrad.kernels import interrupt
        def work():
            time.sleep(1)
            print("ended", flush=True)
        def handler(number, frame):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1, {0.2 * again})
        try:
            interrupt.watched(work, lambda: None, 0)
        except KeyboardInterrupt:
            print("left", flush=True)
    """,
        status=130 if again else 0,
    )
    assert done.stdout.split() == (["left"] if again else ["left", "ended"])


def test_a_handler_that_does_not_raise_changes_nothing() -> None:
    seen: list[int] = []
    x = np.random.default_rng(0).standard_normal((1, 24, 40, 40, 8)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((5, 5, 5, 8, 16)).astype(np.float32)

    def handler(number: int, frame: Any) -> None:
        seen.append(number)
        vg.raw_ops.MaxPool3D(input=X, **POOL)

    wanted = vg.raw_ops.Conv3D(input=x, filter=w, **STEPS)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.002)
    try:
        for _ in range(5):
            assert np.array_equal(vg.raw_ops.Conv3D(input=x, filter=w, **STEPS), wanted)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen


def test_no_variable_is_written_after_an_interrupt() -> None:
    page = vg.Page("variables")
    variable = vg.ops.Variable(page, shape=[], dtype="float64", name="v")
    vg.ops.Assign(page, variable, 1.0, name="start")
    slow = vg.ops.Sum(page, vg.ops.MatMul(page, *[vg.ops.Placeholder(page, dtype="float64", name="x")] * 2), [0, 1])
    vg.ops.AssignAdd(page, variable, slow, name="more")
    session = vg.ClientSession(page)
    session.run(targets=["start"])
    x = np.ones((2048, 2048))
    seconds_to_stop(lambda: session.run("more", {"x": x}), KeyboardInterrupt)
    assert session.run("v") == 1.0
    assert session.run("more", {"x": np.ones((2, 2))}) == 1 + 8


def test_other_threads_compute_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the main thread takes signals: elsewhere nothing is handed to another thread."""
    monkeypatch.setattr(interrupt, "watched", None)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(vg.raw_ops.AvgPool3D(input=BIG, **POOL)))
    thread.start()
    thread.join()
    assert found and not found[0].any()


# Limits


def test_limits_count_copies_of_inputs() -> None:
    x = np.broadcast_to(np.float32(1), (1, 500, 500, 500, 12))
    pool: dict[str, Any] = {"ksize": [1, 100, 100, 100, 1], "strides": [1, 100, 100, 100, 1], "padding": "VALID"}
    with vg.limits(bytes=10**6), pytest.raises(vg.ResourceExhaustedError, match="copies of inputs of 6,000,000,000"):
        vg.raw_ops.MaxPool3D(input=x, **pool)
    small = np.ones((1, 8, 8, 8, 2), np.float64)[..., ::2]
    with vg.limits(bytes=small.size * 8 - 1), pytest.raises(vg.ResourceExhaustedError, match="copies of inputs"):
        vg.raw_ops.AvgPool3D(input=small, **POOL | {"strides": [1, 8, 8, 8, 1]})


def test_a_repeated_call_without_memory_raises_our_error() -> None:
    script("""
        import resource
        x = np.ones((1, 32, 64, 64, 8), np.float32)
        pool = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
        for _ in range(3): vg.raw_ops.MaxPool3D(input=x, **pool)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        held = []
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, -1))
        try:
            for _ in range(50): held.append(vg.raw_ops.MaxPool3D(input=x, **pool))
        except vg.ResourceExhaustedError as error:
            assert "VG020" in str(error)
        else:
            raise SystemExit("there was memory")
    """)


def test_tables_of_long_axes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu._prepared.clear()
    fast.forget()
    monkeypatch.setattr(cpu, "KEPT_BYTES", cpu.KEPT_BYTES // 16)
    for size in range(25_000, 37_000, 1_000):
        vg.raw_ops.MaxPool3D(input=np.zeros((1, 1, 1, size, 1), np.float16), ksize=[1, 1, 1, 3, 1], **STEPS)
    assert sum(one.bytes for one in cpu._prepared.values()) <= cpu.KEPT_BYTES
    kept = {id(ready.prepared): ready.prepared.bytes for named in fast._known["MaxPool3D"].values()
            for ready in named.ready.values()}  # fmt: skip
    assert 0 < sum(kept.values()) <= cpu.KEPT_BYTES


def test_nonsense_in_the_number_of_threads_is_told() -> None:
    values = ["4294967296", "0", "-1", "two", "1e3", "1025"]
    done = script(f"""
        for name in [name for name in sys.modules if name.partition(".")[0] == "voxgrad"]: del sys.modules[name]
        for value in {values}:
            child = os.fork()
            if child == 0:
                os.environ["VOXGRAD_NUM_THREADS"] = value
                import voxgrad as vg
                vg.raw_ops.MaxPool3D(input=np.ones((1, 1, 1, 1, 1)), ksize=[1] * 5, strides=[1] * 5, padding="SAME")
                os._exit(0 if vg.get_num_threads() >= 1 else 3)
            assert os.waitpid(child, 0)[1] == 0, value
    """)
    for value in values:
        assert f"VOXGRAD_NUM_THREADS must be an integer from 1 to 1024; got {value!r}" in done.stderr, value
