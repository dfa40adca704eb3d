# SPDX-License-Identifier: Apache-2.0
"""Volumes as Dask's and xarray's arrays, and back into files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.volumes.space import Space, placed
from voxgrad.volumes.stores import open_volume, save_volume

da = pytest.importorskip("dask.array")
pytest.importorskip("zarr")
X = np.random.default_rng(0).integers(-3000, 3000, (2, 6, 5, 7, 3)).astype(np.int16)
AFFINE = np.array([[0, 2.0, 0, 5], [-1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])


@pytest.mark.parametrize("suffix", [".zarr", ".nrrd", ".h5", ".npy"])
def test_dask_out_and_in(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("h5py")
    source, target = tmp_path / f"a{suffix}", tmp_path / "b.zarr"
    save_volume(source, X, chunks=(1, 4, 5, 7, 3), like=placed(AFFINE))
    lazy = open_volume(source).to_dask()
    assert isinstance(lazy, da.Array)
    if suffix == ".zarr":
        assert lazy.chunksize == (1, 4, 5, 7, 3)
    np.testing.assert_array_equal(lazy[:, 1:3].compute(), X[:, 1:3])
    # A worker elsewhere has nothing but what is sent to it.
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy)).compute(scheduler="synchronous"), X)
    found = vg.volumes.convert(lazy * 2, target, chunks=(4, 3, 5))
    np.testing.assert_array_equal(found.read(), X * 2)


def test_a_box_is_read_as_a_box(tmp_path: Path) -> None:
    save_volume(tmp_path / "a.zarr", X)
    np.testing.assert_array_equal(open_volume(tmp_path / "a.zarr").boxed((1, 4, 0, 5, 2, 6)).to_dask().compute(),
                                  X[:, 1:4, 0:5, 2:6])  # fmt: skip


def test_shards_of_an_array(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    vg.volumes.convert(da.from_array(X, chunks=3), tmp_path / "a.zarr", chunks=(4, 4, 4), inner_chunks=(2, 2, 2))
    made = zarr.open(tmp_path / "a.zarr", mode="r")
    assert (made.shards, made.chunks) == ((1, 4, 4, 4, 3), (1, 2, 2, 2, 3))
    np.testing.assert_array_equal(made[...], X)


def test_what_cannot_come_in(tmp_path: Path) -> None:
    save_volume(tmp_path / "a.npy", X)
    with pytest.raises(vg.VoxgradError, match="VG051 convert: output must not exist yet"):
        vg.volumes.convert(X, tmp_path / "a.npy")
    with pytest.raises(vg.VoxgradError, match="VG030 convert: volume must be a file, or an array of"):
        vg.volumes.convert(object(), tmp_path / "b.npy")
    with pytest.raises(vg.VoxgradError, match="VG043"):
        vg.volumes.convert(X, tmp_path / "b.npy", output_dtype="uint8")


class TestXarray:
    @pytest.fixture(autouse=True)
    def xarray(self) -> Any:
        return pytest.importorskip("xarray", reason="xarray is an optional extra")

    def test_out_and_in(self, tmp_path: Path) -> None:
        for number, space in enumerate((placed(AFFINE), Space((3.0, 2.0, 0.5), "um", None, (1.0, -2.0, 4.0)))):
            save_volume(tmp_path / f"{number}.zarr", X, like=space)
            one = open_volume(tmp_path / f"{number}.zarr").to_xarray()
            assert one.dims == ("t", "z", "y", "x", "c")
            np.testing.assert_allclose(np.diff(one.z), 3)
            assert one.x.attrs["units"] == space.unit
            found = vg.volumes.convert(one.transpose("c", "x", "z", "y", "t"), tmp_path / f"{number}.nrrd")
            np.testing.assert_array_equal(found.read(), X)
            assert found.space.equals(space) or np.allclose(found.affine, space.affine)
            part = vg.volumes.convert(one[:, 1::2, 2:], tmp_path / f"{number}-part.zarr").space
            wanted = space.matrix @ [[1, 0, 0, 0], [0, 1, 0, 2], [0, 0, 2, 1], [0, 0, 0, 1]]
            np.testing.assert_allclose(part.matrix, wanted, atol=1e-9)
            assert (part.affine is None) == (space.affine is None)
            assert part.unit == space.unit

    def test_without_places(self, xarray: Any, tmp_path: Path) -> None:
        plain = xarray.DataArray(X[0, ..., 0], dims=("z", "y", "x"))
        assert not vg.volumes.convert(plain, tmp_path / "a.zarr").space.is_known
        odd = xarray.DataArray(X[0, ..., 0], {"z": [0, 1, 2, 3, 4, 9]}, ("z", "y", "x"))
        with pytest.raises(vg.VoxgradError, match="VG003 convert: z must have cells at even, growing places"):
            vg.volumes.convert(odd, tmp_path / "b.zarr")
