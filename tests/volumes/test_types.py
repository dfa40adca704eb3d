# SPDX-License-Identifier: Apache-2.0
"""Volumes of integers: maxima are integers again, other results have a stated type, and nothing is cut off silently."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main
from voxgrad.volumes.stores import fitted, open_volume, save_volume

WORDS = ["--ksize", "1,2,2,2,1", "--strides", "1,2,2,2,1", "--padding", "VALID"]


def blocks(x: Any) -> Any:
    """The eight voxels of every window, written down without windows."""
    n, d, h, w, c = x.shape
    parts = x.reshape(n, d // 2, 2, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 7, 2, 4, 6)
    return parts.reshape(*parts.shape[:5], 8)


def extremes(dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x = rng.integers(limits.min, limits.max, (1, 4, 6, 4, 1), dtype, endpoint=True)
    x.flat[:4] = limits.max, limits.max - 1, limits.min, limits.min + 1
    return x


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("suffix", [".npy", ".mha"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_maxima_of_integers(tmp_path: Path, dtype: str, suffix: str, chunked: bool) -> None:
    x = extremes(dtype)
    save_volume(tmp_path / f"x{suffix}", x)
    more = ["--chunks", "1,2,2", "--workers", "0"] if chunked else []
    files = ["--input", str(tmp_path / f"x{suffix}"), "--output", str(tmp_path / f"y{suffix}")]
    assert main(["apply", "MaxPool3D", *files, *WORDS, *more]) == 0
    made = open_volume(tmp_path / f"y{suffix}")
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.read(), blocks(x).max(-1))


@pytest.mark.parametrize("chunked", [False, True])
def test_results_in_the_type_that_was_asked_for(
    tmp_path: Path, chunked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).integers(0, 1000, (1, 4, 6, 4, 1)).astype(np.int16)
    save_volume(tmp_path / "x.npy", x)
    more = ["--chunks", "1,2,2", "--workers", "0"] if chunked else []
    run = ["apply", "AvgPool3D", "--input", str(tmp_path / "x.npy"), *WORDS, *more, "--output"]
    assert main([*run, str(tmp_path / "y.npy")]) == 0
    assert open_volume(tmp_path / "y.npy").dtype == np.float32
    assert "int16, read as float32" in capsys.readouterr().err
    mean = blocks(x).mean(-1)
    assert main([*run, str(tmp_path / "i.npy"), "--output-dtype", "uint16"]) == 0
    made = open_volume(tmp_path / "i.npy")
    assert made.dtype == np.uint16
    np.testing.assert_array_equal(made.read(), np.rint(mean))
    assert main([*run, str(tmp_path / "u.npy"), "--output-dtype", "uint8"]) == 1
    told = capsys.readouterr().err
    assert "u.npy must hold values from 0 to 255 to be written as uint8; got" in told
    assert "VG043" in told


def test_slope_and_intercept_are_applied_once(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.arange(64, dtype=np.int16).reshape(4, 4, 4), np.eye(4))
    image.header.set_slope_inter(0.5, -10)
    nibabel.save(image, tmp_path / "x.nii")
    scaled = np.asarray(nibabel.load(tmp_path / "x.nii").dataobj)
    for more in ([], ["--chunks", "1,2,2", "--workers", "0"]):
        out = tmp_path / f"y{len(more)}.nii"
        assert (
            main(["apply", "MaxPool3D", "--input", str(tmp_path / "x.nii"), "--output", str(out), *WORDS, *more]) == 0
        )
        made = np.asarray(nibabel.load(out).dataobj)
        np.testing.assert_array_equal(made, scaled[1::2, 1::2, 1::2])


@pytest.mark.parametrize(
    ("values", "kind"),
    [([np.nan], "int16"), ([np.inf], "uint8"), ([-0.6], "uint8"), ([2.0**31], "int32"), ([70000.0], "float16"),
     ([1e300], "float32")],
)  # fmt: skip
def test_what_does_not_fit(values: list[float], kind: str) -> None:
    with pytest.raises(vg.VoxgradError, match="VG043 volumes: y must hold values"):
        fitted(np.array(values), np.dtype(kind), "y")


def test_what_fits() -> None:
    assert fitted(np.array([-0.5, 254.5, 255.4]), np.dtype("uint8"), "y").tolist() == [0, 254, 255]
    assert fitted(np.array([np.inf, np.nan, 1.0]), np.dtype("float32"), "y").dtype == np.float32
    assert fitted(np.zeros((0,)), np.dtype("uint8"), "y").size == 0
