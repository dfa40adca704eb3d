# SPDX-License-Identifier: Apache-2.0
"""Calls from many threads at once, with others that are cancelled: python3 run test --sanitize=thread reports races."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog.registry import OPS
from voxgrad.kernels import cpu

pytestmark = [
    pytest.mark.races,
    pytest.mark.skipif(cpu.library() is None, reason="needs the native kernels"),
]
X = np.random.default_rng(0).standard_normal((2, 9, 17, 18, 8)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((3, 3, 3, 8, 8)).astype(np.float32)
POOL: dict[str, Any] = {"ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"}
CONV: dict[str, Any] = {"strides": [1] * 5, "padding": "SAME"}
CALLS: dict[str, Callable[[], Any]] = {
    "Conv3D": lambda: vg.raw_ops.Conv3D(input=X, filter=W, **CONV),
    "Conv3DBackpropFilterV2": lambda: vg.raw_ops.Conv3DBackpropFilterV2(
        input=X, filter_sizes=W.shape, out_backprop=X, **CONV
    ),
    "AvgPool3D": lambda: vg.raw_ops.AvgPool3D(input=X, **POOL),
    "MaxPool3DGrad": lambda: vg.raw_ops.MaxPool3DGrad(orig_input=X, orig_output=X, grad=X, **POOL),
}


def at_once(*works: Callable[[], None]) -> None:
    """All of them in threads; what one raises is raised."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("count", [2, 5])
def test_calls_from_many_threads_are_those_of_one(count: int, threads: None) -> None:
    vg.set_num_threads(count)
    wanted = {name: call() for name, call in CALLS.items()}

    def work() -> None:
        for _ in range(6):
            for name, call in CALLS.items():
                assert np.array_equal(call(), wanted[name]), name

    at_once(*[work] * 4)


def test_calls_beside_others_that_are_cancelled(threads: None) -> None:
    vg.set_num_threads(4)
    wanted = CALLS["Conv3D"]()
    problem = make_plan(OPS["Conv3D"], {"input": X, "filter": W, **CONV}).problem
    flags: list[cpu.CancelFlag] = []

    def cancelled() -> None:
        for _ in range(20):
            flag, out = cpu.CancelFlag(), np.empty_like(wanted)
            flags.append(flag)
            try:
                cpu.run(problem, [X, W, out], flag)
            except vg.CancelledError:
                continue
            assert np.array_equal(out, wanted)

    def cancel() -> None:
        for _ in range(2000):
            if flags:
                flags.pop().set()

    def settings() -> None:
        for number in range(40):
            vg.set_num_threads(1 + number % 4)
            vg.release_memory()
            assert np.array_equal(CALLS["Conv3D"](), wanted)

    at_once(cancelled, cancelled, cancel, settings)
