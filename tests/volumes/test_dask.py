# SPDX-License-Identifier: Apache-2.0
"""Dask arrays: lazy results with the numbers of dense ones, on threads and on a cluster of processes."""

import numpy as np
import pytest

import voxgrad as vg
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


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_processes() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is an optional extra")
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 16, 2)).astype(np.float32)
    pool = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        y = vg.raw_ops.MaxPool3D(input=da.from_array(x, chunks=(1, 8, 8, 8, 2)), **pool)
        assert np.array_equal(y.compute(), vg.raw_ops.MaxPool3D(input=x, **pool))
