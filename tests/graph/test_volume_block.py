# SPDX-License-Identifier: Apache-2.0
"""A page can start from a volume in a file: its shape is known before a run, and it is read from one folder only."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog.dtypes import FLOAT32

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 99, shape).astype(np.int16)


def page_with(**attrs: Any) -> tuple[vg.Page, Any, Any]:
    page = vg.Page("scan")
    scan = vg.ops.Volume(page, **attrs, name="scan")
    return page, scan, vg.ops.MaxPool3D(page, scan, **POOL, name="half")


def test_a_page_starts_from_a_file(tmp_path: Path) -> None:
    data = numbers(4, 6, 8)
    np.save(tmp_path / "scan.npy", data)
    page, scan, half = page_with(path="scan.npy")
    session = vg.ClientSession(page, allow_files=tmp_path)
    assert page.infer().spec(scan).shape == (1, 4, 6, 8, 1)
    assert page.infer().spec(half).shape == (1, 2, 3, 4, 1)
    read, pooled = session.run([scan, half])
    np.testing.assert_array_equal(read[0, ..., 0], data.astype(np.float32))
    np.testing.assert_array_equal(pooled[0, ..., 0], data.reshape(2, 2, 3, 2, 4, 2).max((1, 3, 5)))
    assert read.dtype == np.float32


def test_axes_box_and_type(tmp_path: Path) -> None:
    data = numbers(8, 6, 4)
    np.save(tmp_path / "scan.npy", data)
    page, scan, _ = page_with(path="scan.npy", axes="xyz", box=[1, 3, 0, 6, 2, 7], dtype="float64")
    session = vg.ClientSession(page, allow_files=tmp_path)
    assert page.infer().spec(scan).shape == (1, 2, 6, 5, 1)
    read = session.run(scan)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read[0, ..., 0], data.T[1:3, :, 2:7])


def test_a_member_of_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", one=numbers(2, 2, 2), two=numbers(4, 4, 4))
    page, scan, _ = page_with(path="both.npz:two")
    assert vg.ClientSession(page, allow_files=tmp_path).run(scan).shape == (1, 4, 4, 4, 1)


def test_without_a_folder_the_sizes_are_open(tmp_path: Path) -> None:
    page, scan, half = page_with(path="scan.npy")
    shape = page.infer().spec(scan).shape
    assert shape is not None and len(shape) == 5 and not any(isinstance(size, int) for size in shape)
    assert not page.problems()
    with pytest.raises(vg.VoxgradError, match=r"VG056.*a page without one"):
        vg.ClientSession(page).run(half)


def test_a_file_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    np.save(tmp_path / "scan.npy", numbers(4, 6, 8))
    page, scan, half = page_with(path="scan.npy")
    session = vg.ClientSession(page, allow_files=tmp_path)
    assert session.run(half).shape == (1, 2, 3, 4, 1)
    data = numbers(6, 6, 6)
    np.save(tmp_path / "scan.npy", data)
    os.utime(tmp_path / "scan.npy", ns=(1, 1))
    assert page.infer().spec(half).shape == (1, 3, 3, 3, 1)
    assert session.run(half).shape == (1, 3, 3, 3, 1)
    (tmp_path / "scan.npy").unlink()
    (problem,) = page.problems()
    assert (problem.block, problem.pin, problem.code) == ("scan", "path", "VG051")
    assert page.infer().spec(scan).dtype == FLOAT32


def test_a_page_inside_a_page_looks_into_the_same_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "scan.npy", numbers(4, 6, 8))
    inner, _, half = page_with(path="scan.npy")
    inner.expose({"half": half})
    page = vg.Page("outer")
    page.pages["inner"] = inner
    used = page.use("inner", name="use")
    page.allow_files(tmp_path)
    assert page.infer().spec(used.output(0)).shape == (1, 2, 3, 4, 1)
    np.save(tmp_path / "scan.npy", numbers(6, 6, 6))
    os.utime(tmp_path / "scan.npy", ns=(1, 1))
    assert page.infer().spec(used.output(0)).shape == (1, 3, 3, 3, 1)


@pytest.mark.parametrize(
    "name", ["../out.npy", "link.npy", "/etc/passwd", "", "a\0.npy", "link.npz:x", "folder/../../out.npy"]
)
def test_only_the_folder_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "out.npy", numbers(2, 2, 2))
    np.savez(tmp_path / "out.npz", x=numbers(2, 2, 2))
    (tmp_path / "in" / "link.npy").symlink_to(tmp_path / "out.npy")
    (tmp_path / "in" / "link.npz").symlink_to(tmp_path / "out.npz")
    page, scan, _ = page_with(path=name)
    page.allow_files(tmp_path / "in")
    (problem,) = page.problems()
    assert problem.code == "VG056"
    with pytest.raises(vg.VoxgradError, match="VG056"):
        vg.ClientSession(page, allow_files=tmp_path / "in").run(scan)


@pytest.mark.parametrize(
    ("box", "code"), [([0, 1], "VG004"), ([0, 5, 0, 1, 0, 1], "VG003"), ([2, 1, 0, 1, 0, 1], "VG003")]
)
def test_boxes_that_cannot_be(tmp_path: Path, box: list[int], code: str) -> None:
    np.save(tmp_path / "scan.npy", numbers(4, 6, 8))
    page, _, _ = page_with(path="scan.npy", box=box)
    page.allow_files(tmp_path)
    (problem,) = page.problems()
    assert (problem.pin, problem.code) == ("box", code)


def test_it_is_kept_in_the_page_file(tmp_path: Path) -> None:
    page, _, _ = page_with(path="scan.npy", box=[0, 2, 0, 2, 0, 2])
    (tmp_path / "files").mkdir()
    np.save(tmp_path / "files" / "scan.npy", numbers(4, 6, 8))
    page.save(tmp_path / "page.vox.json")
    again = vg.Page.load(tmp_path / "page.vox.json")
    assert again.infer().spec(again.output("half")).shape == (1, 1, 1, 1, 1)
    assert "scan.npy" in (tmp_path / "page.vox.json").read_text()


def test_gradients_stop_at_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "scan.npy", numbers(4, 6, 8))
    page, scan, half = page_with(path="scan.npy")
    (dx,) = vg.gradients([half], [scan])
    found = vg.ClientSession(page, allow_files=tmp_path).run(dx)
    assert found.shape == (1, 4, 6, 8, 1)
    assert found.sum() == 24


def test_tensorflow_has_no_such_op(tmp_path: Path) -> None:
    from voxgrad.formats.graphdef import export_graph
    from voxgrad.formats.script import export_script

    np.save(tmp_path / "scan.npy", numbers(4, 6, 8))
    page, _, _ = page_with(path="scan.npy")
    page.allow_files(tmp_path)
    assert "ops.Volume(page, path='scan.npy'" in export_script(page).text
    for export in (export_graph, lambda page: export_script(page, "tensorflow")):
        with pytest.raises(vg.VoxgradError, match="VG054 export: scan must be an op of TensorFlow"):
            export(page)
