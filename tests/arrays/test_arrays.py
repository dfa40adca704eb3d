# SPDX-License-Identifier: Apache-2.0
"""What goes in comes out: kinds of arrays, element types, plans, limits, semantics, threads."""

import asyncio
import threading
import time
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays.execute import execute
from voxgrad.catalog.registry import OPS
from voxgrad.catalog.semantics import current_semantics
from voxgrad.kernels import cpu

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
X = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1)


def test_lists_become_float32() -> None:
    y = vg.raw_ops.MaxPool3D(input=X.tolist(), **POOL)
    assert isinstance(y, np.ndarray)
    assert y.dtype == np.float32
    assert y.ravel().tolist() == [21, 23, 29, 31, 53, 55, 61, 63]


def test_lists_take_the_type_of_an_array_before_them() -> None:
    x = X.astype(np.float64)
    y = vg.raw_ops.MaxPool3D(input=x, **POOL)
    dx = vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y.tolist(), grad=y.tolist(), **POOL)
    assert dx.dtype == np.float32  # TInput is bound by orig_input, T only by grad, which is a list
    gg = vg.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y.tolist(), grad=X.tolist(), **POOL)
    assert gg.dtype == np.float64


def test_bfloat16_of_ml_dtypes() -> None:
    y = vg.raw_ops.AvgPool3D(input=X.astype(ml_dtypes.bfloat16), **POOL)
    assert y.dtype == ml_dtypes.bfloat16


def test_numbers_in_big_endian_come_back_in_native_order() -> None:
    y = vg.raw_ops.MaxPool3D(input=X.astype(">f8"), **POOL)
    assert y.dtype == np.float64
    assert y.dtype.isnative


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (np.ma.masked_array(X, X > 3), "VG030"),
        (X.astype(object), "VG011"),
        (X.astype("U1"), "VG011"),
        (X.astype(bool), "VG011"),
        ("text", "VG011"),
        ({}, "VG030"),
        ([[1, 2], [3]], "VG002"),
        ([["a"]], "VG011"),
    ],
)
def test_what_is_no_tensor_is_refused(value: object, code: str) -> None:
    with pytest.raises(vg.InvalidArgumentError, match=code):
        vg.raw_ops.MaxPool3D(input=value, **POOL)


def test_explain_says_what_would_be_copied() -> None:
    plan = vg.explain(vg.raw_ops.MaxPool3D, input=X.astype(">f4")[:, ::-1], **POOL)
    assert plan.copies == ("input, 256 bytes (byte order and strides)",)
    assert "kernel" in str(plan)
    assert plan.kernel.startswith("NumPy" if cpu.library() is None else f"native {cpu.isa_name()}, ")
    assert vg.explain("MaxPool3D", input=X, **POOL).copies == ()
    with pytest.raises(vg.InvalidArgumentError, match="Did you mean MaxPool3D"):
        vg.explain("MaxPool3d", input=X, **POOL)


def test_compat_v1_holds_the_same_functions() -> None:
    assert vg.compat.v1.raw_ops.AvgPool3DGrad is vg.raw_ops.AvgPool3DGrad


def _shifted() -> float:
    """1 where the first window starts late (tf_cpu), else 0."""
    x = np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1, 1)
    y = vg.raw_ops.MaxPool3D(input=x, ksize=[1, 1, 1, 1, 1], strides=[1, 3, 1, 1, 1], padding="SAME")
    return float(y.ravel()[0])


def test_semantics_nest_and_return() -> None:
    assert _shifted() == 0
    with vg.semantics("tf_cpu"):
        assert _shifted() == 1
        with vg.semantics("documented"):
            assert _shifted() == 0
        assert _shifted() == 1
    assert current_semantics() == "documented"
    with pytest.raises(vg.InvalidArgumentError, match="documented"):
        vg.semantics("tf_gpu")


def test_semantics_are_per_thread_and_task() -> None:
    seen: list[float] = []
    with vg.semantics("tf_cpu"):
        thread = threading.Thread(target=lambda: seen.append(_shifted()))
        thread.start()
        thread.join()
    assert seen == [0]

    async def task(name: str) -> float:
        with vg.semantics(name):
            await asyncio.sleep(0.01)
            return _shifted()

    async def both() -> list[float]:
        return list(await asyncio.gather(task("tf_cpu"), task("documented"), task("tf_cpu")))

    assert asyncio.run(both()) == [1, 0, 1]


@pytest.fixture
def threads_put_back() -> Iterator[None]:
    before = vg.get_num_threads()
    yield
    vg.set_num_threads(before)


def test_threads_are_settable(threads_put_back: None) -> None:
    vg.set_num_threads(3)
    assert vg.get_num_threads() == 3
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(vg.InvalidArgumentError):
            vg.set_num_threads(wrong)  # type: ignore[arg-type]


def test_many_threads_may_call_at_once() -> None:
    x = np.random.default_rng(0).standard_normal((2, 16, 16, 16, 8)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((3, 3, 3, 8, 8)).astype(np.float32)
    wanted = vg.raw_ops.Conv3D(input=x, filter=w, strides=[1] * 5, padding="SAME").tobytes()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            if vg.raw_ops.Conv3D(input=x, filter=w, strides=[1] * 5, padding="SAME").tobytes() != wanted:
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_long_call_can_be_cancelled() -> None:
    if cpu.library() is None:
        pytest.skip("the NumPy path has no cancel")
    x = np.zeros((2, 96, 96, 96, 32), np.float32)
    w = np.zeros((5, 5, 5, 32, 32), np.float32)
    flag = cpu.CancelFlag()
    timer = threading.Timer(0.05, flag.set)
    timer.start()
    start = time.perf_counter()
    with pytest.raises(vg.CancelledError, match="VG040"):
        execute(OPS["Conv3D"], {"input": x, "filter": w, "strides": [1] * 5, "padding": "SAME"}, cancel=flag)
    assert time.perf_counter() - start < 5, "the call went on after it was cancelled"
