# SPDX-License-Identifier: Apache-2.0
"""`voxgrad convert`: voxels, types and places in every format, read by the libraries of others where they can."""

from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_command import voxgrad
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import open_volume, save_volume

WRITTEN = (".nii", ".nii.gz", ".nrrd", ".mha", ".mhd", ".h5", ".zarr", ".ome.zarr", ".tif", ".npy", ".npz")
NO_PLACE = (".npy", ".npz")
X = np.random.default_rng(0).integers(-3000, 3000, (1, 6, 5, 7, 1)).astype(np.int16)
AFFINE = np.array([[0, 2.0, 0, 5], [-1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])


def test_from_every_format_to_the_next(tmp_path: Path) -> None:
    """Round all of them, so that each is read and written; NumPy's go last, for they hold no place."""
    save_volume(tmp_path / "0.nii", X, like=placed(AFFINE))
    before = tmp_path / "0.nii"
    for number, suffix in enumerate(WRITTEN, 1):
        target = tmp_path / f"{number}{suffix}"
        done = voxgrad("convert", str(before), str(target), "--chunks", "4,5,3")
        assert done.returncode == 0, done.stderr
        found = open_volume(target)
        assert found.dtype == np.int16, suffix
        assert np.array_equal(found.read(), X), suffix
        if suffix not in NO_PLACE:
            np.testing.assert_allclose(found.affine, AFFINE, atol=1e-5, err_msg=suffix)
        before = target


def test_others_read_them(tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK", reason="SimpleITK is an optional extra")
    save_volume(tmp_path / "0.h5", X, like=placed(AFFINE))
    for suffix in (".nii", ".nii.gz", ".nrrd", ".mha", ".mhd"):
        vg.volumes.convert(tmp_path / "0.h5", tmp_path / f"a{suffix}", chunks=(4, 5, 3))
        image = itk.ReadImage(str(tmp_path / f"a{suffix}"))
        assert np.array_equal(itk.GetArrayFromImage(image), X[0, ..., 0]), suffix
        lps = np.array(image.TransformIndexToPhysicalPoint((6, 4, 5)))
        np.testing.assert_allclose(lps * [-1, -1, 1], (AFFINE @ [6, 4, 5, 1])[:3], atol=1e-4, err_msg=suffix)


def test_types_and_what_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X[0, ..., 0].T)
    done = voxgrad("convert", str(tmp_path / "x.npy"), str(tmp_path / "y.nii.gz"), "--axes", "xyz", "--output-dtype",
                   "float32")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.array_equal(open_volume(tmp_path / "y.nii.gz").read(), X.astype(np.float32))
    for suffix in (".nrrd", ".nii.gz"):
        name = str(tmp_path / f"small{suffix}")
        assert "VG043" in voxgrad("convert", str(tmp_path / "x.npy"), name, "--output-dtype", "uint8").stderr
    assert "VG004" in voxgrad("convert", str(tmp_path / "x.npy"), str(tmp_path / "z.nrrd"), "--chunks", "4").stderr
    for name in ("x.npy", "y.nii.gz"):
        assert "VG051" in voxgrad("convert", str(tmp_path / "x.npy"), str(tmp_path / name)).stderr
