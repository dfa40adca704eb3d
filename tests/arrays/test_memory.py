# SPDX-License-Identifier: Apache-2.0
"""Buffers of the caller's, recycled memory, and the short way of repeated calls."""

import gc
import threading

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays import fast, memory
from voxgrad.catalog.dtypes import FLOATING, DType
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing import SeededChooser, draw_call

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
X = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_out_gets_what_would_be_returned(op: Op, dtype: DType) -> None:
    for seed in range(6):
        call = draw_call(op, SeededChooser(seed), dtype=dtype)
        wanted = getattr(vg.raw_ops, op.name)(**call)
        out = np.full(wanted.shape, 77, wanted.dtype)
        assert getattr(vg.out_ops, op.name)(out=out, **call) is out
        assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "out",
    [
        None,
        np.empty((1, 2, 2, 2, 1), np.float64),
        np.empty((1, 2, 2, 2, 2), np.float32),
        np.empty((1, 2, 2, 2, 2), np.float32)[..., :1],
        np.broadcast_to(np.float32(0), (1, 2, 2, 2, 1)),
        X[:, :2, :2, :2],
    ],
    ids=["none", "type", "shape", "strided", "read-only", "overlap"],
)
def test_out_that_does_not_fit_is_refused(out: object) -> None:
    before = X.copy()
    with pytest.raises(vg.InvalidArgumentError, match="VG033 MaxPool3D: out"):
        vg.out_ops.MaxPool3D(out=out, input=X, **POOL)
    assert np.array_equal(before, X)
    with pytest.raises(TypeError, match="VG001 MaxPool3D: out must be given"):
        vg.out_ops.MaxPool3D(input=X, **POOL)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_the_short_way_is_the_long_way(op: Op, dtype: DType) -> None:
    """Fresh numbers in a call that went the long way before: the same bits as without that memory of it."""
    function = getattr(vg.raw_ops, op.name)
    for seed in range(6):
        first = draw_call(op, SeededChooser(seed), dtype=dtype, style="integers", formats=("NDHWC",))
        second = draw_call(op, SeededChooser(seed), dtype=dtype, style="special", formats=("NDHWC",))
        assert [v.shape for v in first.values() if isinstance(v, np.ndarray)] == [
            v.shape for v in second.values() if isinstance(v, np.ndarray)
        ]
        fast.forget()
        plain = [function(**call).tobytes() for call in (first, second) if not fast.forget()]
        fast.forget()
        function(**first)
        assert [function(**call).tobytes() for call in (first, second)] == plain


def test_the_short_way_tells_numbers_apart() -> None:
    """1, True and 1.0 are equal, but not the same attribute."""
    vg.raw_ops.MaxPool3D(input=X, ksize=[1, 1, 1, 1, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    with pytest.raises(vg.InvalidArgumentError, match="VG002"):
        vg.raw_ops.MaxPool3D(input=X, ksize=[1, 1, 1.0, 1, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    with pytest.raises(vg.InvalidArgumentError, match="VG001"):
        vg.raw_ops.MaxPool3D(input=X, ksize=[1] * 5, strides=[1] * 5, padding="SAME", extra=None)
    with vg.limits(bytes=8), pytest.raises(vg.ResourceExhaustedError):
        vg.raw_ops.MaxPool3D(input=X, ksize=[1, 1, 1, 1, 1], strides=[1, 1, 1, 1, 1], padding="SAME")


def test_large_results_reuse_memory_only_when_nobody_looks() -> None:
    memory.release_memory()
    first = memory.empty((2**20,), np.dtype(np.float32))
    first[:] = 1
    view = first[10:20]
    address = first.ctypes.data
    assert address % 2**21 == 0
    del first
    gc.collect()
    other = memory.empty((2**20,), np.dtype(np.float32))
    assert other.ctypes.data != address, "a view still looked at the memory"
    assert view.tolist() == [1] * 10
    del view
    gc.collect()
    again = memory.empty((2**20,), np.dtype(np.float32))
    assert again.ctypes.data == address
    del again, other
    gc.collect()
    assert memory.release_memory() >= 2**23
    assert memory.release_memory() == 0


def test_the_memory_given_back_last_is_taken_first() -> None:
    memory.release_memory()
    one, two = (memory.empty((2**22,), np.dtype(np.uint8)) for _ in range(2))
    first, last = one.ctypes.data, two.ctypes.data
    del one
    del two
    again = [memory.empty((2**22,), np.dtype(np.uint8)) for _ in range(2)]
    assert [block.ctypes.data for block in again] == [last, first]


def test_waiting_memory_is_bounded() -> None:
    memory.release_memory()
    blocks = [memory.empty((2**26,), np.dtype(np.uint8)) for _ in range(20)]
    del blocks
    gc.collect()
    assert memory.release_memory() <= 2**30


def test_memory_from_many_threads() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            array = memory.empty((2**18,), np.dtype(np.float64))
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
