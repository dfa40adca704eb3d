# SPDX-License-Identifier: Apache-2.0
"""Dask arrays: lazy results with the numbers of dense ones, on threads and on a cluster of processes."""

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_pages import saved, small_unet, volumes_of_unet
from voxgrad.catalog.dtypes import FLOAT32
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing import SeededChooser, assert_close, draw_call

da = pytest.importorskip("dask.array", reason="dask is an optional extra")


def chunked(call: dict, chunk: int) -> dict:  # type: ignore[type-arg]
    return {
        name: da.from_array(value, chunks=chunk) if isinstance(value, np.ndarray) and name != "filter" else value
        for name, value in call.items()
    }


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_lazy_equals_dense(op: Op) -> None:
    for seed in range(6):
        call = draw_call(op, SeededChooser(seed), dtype=FLOAT32, style="integers", largest=2)
        dense = getattr(vg.raw_ops, op.name)(**call)
        lazy = getattr(vg.raw_ops, op.name)(**chunked(call, 2 + seed % 3))
        assert isinstance(lazy, da.Array)
        assert lazy.shape == dense.shape
        assert lazy.dtype == dense.dtype
        assert_close(lazy.compute(scheduler="synchronous"), dense, label=f"{op.name} seed {seed}")


def test_same_chunks_same_bits() -> None:
    random = np.random.default_rng(0)
    x = da.from_array(random.standard_normal((2, 9, 10, 11, 3)).astype(np.float32), chunks=(1, 4, 4, 4, 3))
    dy = da.from_array(random.standard_normal((2, 9, 10, 11, 4)).astype(np.float32), chunks=(1, 4, 4, 4, 4))
    dw = vg.raw_ops.Conv3DBackpropFilterV2(
        input=x, filter_sizes=[3, 3, 3, 3, 4], out_backprop=dy, strides=[1] * 5, padding="SAME"
    )
    bits = {dw.compute(scheduler=name).tobytes() for name in ("synchronous", "threads", "threads")}
    assert len(bits) == 1
    dense = vg.raw_ops.Conv3DBackpropFilterV2(
        input=x.compute(), filter_sizes=[3, 3, 3, 3, 4], out_backprop=dy.compute(), strides=[1] * 5, padding="SAME"
    )
    assert_close(dw.compute(), dense, terms=2 * 9 * 10 * 11, scale=float(np.abs(dense).max()))


def test_errors_come_before_anything_is_computed() -> None:
    x = da.zeros((1, 4, 4, 4, 1), dtype=np.float32, chunks=2)
    with pytest.raises(vg.InvalidArgumentError, match="VG006"):
        vg.raw_ops.MaxPool3D(input=x, ksize=[1, 0, 2, 2, 1], strides=[1] * 5, padding="SAME")
    unknown = x[x[:, 0, 0, 0, 0] == 0]
    with pytest.raises(vg.InvalidArgumentError, match="compute_chunk_sizes"):
        vg.raw_ops.MaxPool3D(input=unknown, ksize=[1] * 5, strides=[1] * 5, padding="SAME")


def spread(values: list[int], last: bool) -> list[int]:
    return [1, *values, 1] if last else [1, 1, *values]


@pytest.mark.parametrize("last", [True, False], ids=["NDHWC", "NCDHW"])
def test_one_task_per_chunk_of_the_result(last: bool) -> None:
    """Ragged chunks, several along the channels too: what a task needs it cuts out of the chunks themselves."""
    data = np.random.default_rng(0).integers(-4, 5, (3, 11, 10, 9, 6)).astype(np.float32)
    chunks: tuple[Any, ...] = ((1, 2), (5, 4, 2), (3, 7), (9,), (4, 2))
    if not last:
        data, chunks = np.ascontiguousarray(np.moveaxis(data, -1, 1)), (chunks[0], chunks[4], *chunks[1:4])
    x = da.from_array(data, chunks=chunks)
    pool = {"ksize": spread([3, 2, 3], last), "strides": spread([2, 1, 2], last), "padding": "SAME",
            "data_format": "NDHWC" if last else "NCDHW"}  # fmt: skip
    y = vg.raw_ops.MaxPool3D(input=x, **pool)
    assert own_tasks(y) == len(list(np.ndindex(*y.numblocks))) == 2 * 2 * 2 * 1
    assert np.array_equal(y.compute(scheduler="synchronous"), vg.raw_ops.MaxPool3D(input=data, **pool))
    assert [sum(sizes) for sizes in y.chunks] == list(y.shape)


def own_tasks(array: Any) -> int:
    """The tasks that a call has added."""
    return len([key for key in array.__dask_graph__() if str(key[0]).startswith(array.name)])


def test_a_filter_gradient_is_partial_sums_and_a_tree() -> None:
    x = da.ones((2, 8, 8, 8, 3), chunks=(1, 4, 4, 8, 3), dtype=np.float32)
    dy = da.ones((2, 8, 8, 8, 4), chunks=(2, 8, 3, 8, 2), dtype=np.float32)
    dw = vg.raw_ops.Conv3DBackpropFilterV2(
        input=x, filter_sizes=[3, 3, 3, 3, 4], out_backprop=dy, strides=[1] * 5, padding="SAME"
    )
    assert own_tasks(dw) == 8 + 7 + 1, "one per chunk, the sums of the tree, and the rounding at the end"
    whole = [np.ones(one.shape, np.float32) for one in (x, dy)]
    assert np.array_equal(
        dw.compute(scheduler="threads"),
        vg.raw_ops.Conv3DBackpropFilterV2(
            input=whole[0], filter_sizes=[3, 3, 3, 3, 4], out_backprop=whole[1], strides=[1] * 5, padding="SAME"
        ),
    )


def test_chunks_that_windows_jump_over() -> None:
    """A stride larger than the window leaves chunks of the gradient that no window covers."""
    dy = da.ones((1, 3, 1, 1, 1), chunks=1, dtype=np.float32)
    dx = vg.raw_ops.AvgPool3DGrad(
        orig_input_shape=[1, 12, 1, 1, 1], grad=dy, ksize=[1, 1, 1, 1, 1], strides=[1, 4, 1, 1, 1], padding="VALID"
    )
    assert dx.compute(scheduler="synchronous").ravel().tolist() == [1, 0, 0, 0] * 3


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="distributed is an optional extra")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as one,
        ):
            yield one


@pytest.mark.filterwarnings("ignore")
def test_lazy_arrays_on_a_cluster(client: Any) -> None:
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 16, 2)).astype(np.float32)
    pool = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    y = vg.raw_ops.MaxPool3D(input=da.from_array(x, chunks=(1, 8, 8, 8, 2)), **pool)
    assert np.array_equal(client.compute(y).result(), vg.raw_ops.MaxPool3D(input=x, **pool))


def count_tasks(client: Any) -> int:
    """Chunks that the scheduler has seen, each once."""

    def count(dask_scheduler: Any) -> int:
        return len({entry[0] for entry in dask_scheduler.transition_log if str(entry[0]).startswith("voxgrad-")})

    return int(client.run_on_scheduler(count))


@pytest.mark.filterwarnings("ignore")
def test_a_page_from_store_to_store_on_a_cluster(client: Any, tmp_path: Path) -> None:
    page, data = small_unet(), volumes_of_unet()
    files = saved(tmp_path, **data)
    before = count_tasks(client)
    found = vg.volumes.run_page(
        page, files, {"y": tmp_path / "y.npy"}, ["loss"], chunks=(4, 4, 4), client=client, folder=tmp_path / "cluster"
    )
    assert count_tasks(client) - before == 2 * 3 * 3 * 2, "a task per chunk: images, depth, height, width"
    here = vg.volumes.run_page(page, files, {"y": tmp_path / "here.npy"}, ["loss"], chunks=(4, 4, 4), workers=0)
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "here.npy"))
    assert found["loss"].tobytes() == here["loss"].tobytes()


@pytest.mark.filterwarnings("ignore")
def test_the_command_takes_the_address_of_a_scheduler(client: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 9, 9, 9, 1)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ["apply", "MaxPool3D", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy"),
                 "--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "SAME", "--chunks", "2,2,2",
                 "--scheduler", client.scheduler.address]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "voxgrad", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pool = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    assert np.array_equal(np.load(tmp_path / "y.npy"), vg.raw_ops.MaxPool3D(input=x, **pool))
    nowhere = subprocess.run(
        [sys.executable, "-m", "voxgrad", *arguments[:-1], "tcp://127.0.0.1:1"], capture_output=True, text=True
    )
    assert "be the address of a Dask scheduler" in nowhere.stderr


@pytest.mark.filterwarnings("ignore")
def test_gradients_on_a_cluster_whose_worker_is_killed(client: Any, tmp_path: Path) -> None:
    page, files = small_unet(), saved(tmp_path, **volumes_of_unet())
    wanted = vg.volumes.value_and_gradients(page, "loss", ["w1"], files, chunks=(2, 2, 4), workers=0)
    victims = list(client.run(os.getpid).values())

    def kill_once(done: int, total: int, seconds: float) -> None:
        if done >= 5 and victims:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    loss, (dw,) = vg.volumes.value_and_gradients(
        page, "loss", ["w1"], files, chunks=(2, 2, 4), client=client, folder=tmp_path / "run", progress=kill_once
    )
    assert not victims
    assert loss.tobytes() == wanted[0].tobytes()
    assert dw.tobytes() == wanted[1][0].tobytes()
