# SPDX-License-Identifier: Apache-2.0
"""Levels of OME-Zarr, shards and packed folders: written here, read by zarr itself, and at addresses."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_command import voxgrad
from voxgrad.volumes.run import apply
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import create_volume, open_volume, save_volume

zarr = pytest.importorskip("zarr")
AFFINE = np.array([[0, 2.0, 0, 5], [-1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])
RNG = np.random.default_rng(0)
X = RNG.random((1, 131, 70, 20, 2)).astype(np.float32)
LABELS = RNG.integers(0, 9, (2, 70, 129, 5, 1)).astype(np.uint8)
COPY: dict[str, Any] = {"ksize": [1] * 5, "strides": [1] * 5, "padding": "VALID", "chunks": (64, 64, 20), "workers": 0}


def listed(path: Path) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads((path / "zarr.json").read_text())["attributes"]["ome"]["multiscales"][0][
        "datasets"
    ]
    return told


def halved(x: Any, axis: int) -> Any:
    """Means of pairs, and a last cell that has no neighbour, slice by slice."""
    cells = [np.take(x, range(at, min(at + 2, x.shape[axis])), axis).mean(axis) for at in range(0, x.shape[axis], 2)]
    return np.stack(cells, axis)


def test_results_get_levels(tmp_path: Path) -> None:
    save_volume(tmp_path / "x.nii", X, like=placed(AFFINE))
    apply("MaxPool3D", {"input": tmp_path / "x.nii"}, tmp_path / "y.ome.zarr", **COPY)
    assert [one["path"] for one in listed(tmp_path / "y.ome.zarr")] == ["0", "1", "2"]
    one = halved(halved(X, 1), 2)
    for name, wanted in (("0", X), ("1", one), ("2", halved(one, 1))):
        np.testing.assert_allclose(open_volume(f"{tmp_path}/y.ome.zarr:{name}").read(), wanted, rtol=1e-6)
        raw = zarr.open(f"{tmp_path}/y.ome.zarr/{name}", mode="r")
        np.testing.assert_allclose(np.moveaxis(raw[...], 0, -1)[None], wanted, rtol=1e-6)


def test_levels_lie_where_their_cells_do(tmp_path: Path) -> None:
    """The mean of the places of the cells that one stands for, by OME's own words."""
    for number, (x, first) in enumerate(((X, False), (LABELS, True))):
        path = tmp_path / f"{number}.ome.zarr"
        save_volume(path, x, like=placed(AFFINE), chunks=(1, 64, 64, 64, 1))
        for level, told in enumerate(listed(path)):
            scale, shift = (np.array(one[kind][-3:]) for one, kind in zip(
                told["coordinateTransformations"], ("scale", "translation"), strict=True))  # fmt: skip
            whole = listed(path)[0]["coordinateTransformations"]
            times = scale / whole[0]["scale"][-3:]
            middle = shift - whole[1]["translation"][-3:]
            wanted = 0 if first else (times - 1) / 2 * whole[0]["scale"][-3:]
            np.testing.assert_allclose(middle, np.broadcast_to(wanted, 3), atol=1e-9)
            found = open_volume(f"{path}:{level}").affine
            corner = AFFINE @ [*([0] * 3 if first else (times[::-1] - 1) / 2), 1]
            np.testing.assert_allclose(found[:3, 3], corner[:3], atol=1e-9)
            np.testing.assert_allclose(found[:3, :3], AFFINE[:3, :3] * times[::-1], atol=1e-9)
    np.testing.assert_array_equal(open_volume(f"{tmp_path}/1.ome.zarr:2").read(), LABELS[:, ::2, ::4])


def test_levels_follow_what_is_written_again(tmp_path: Path) -> None:
    save_volume(tmp_path / "x.npy", X)
    out = tmp_path / "y.ome.zarr"
    apply("MaxPool3D", {"input": tmp_path / "x.npy"}, out, **COPY)
    wanted = open_volume(f"{out}:1").read()
    (out / "0" / "c" / "0" / "1" / "0" / "0").unlink()
    seen: list[int] = []
    apply("MaxPool3D", {"input": tmp_path / "x.npy"}, out, **COPY,
          progress=lambda done, total, seconds: seen.append(len(listed(out))))  # fmt: skip
    assert seen[-1] == 1, "while voxels are written, only they are listed"
    np.testing.assert_array_equal(open_volume(f"{out}:1").read(), wanted)


def test_a_level_that_was_begun_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from voxgrad.volumes import pyramids

    save_volume(tmp_path / "x.npy", X)
    out = tmp_path / "y.ome.zarr"

    def stop(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pyramids, "_halved", stop)
        apply("MaxPool3D", {"input": tmp_path / "x.npy"}, out, **COPY)
    assert len(listed(out)) == 1
    apply("MaxPool3D", {"input": tmp_path / "x.npy"}, out, **COPY)
    assert len(listed(out)) == 3
    np.testing.assert_allclose(open_volume(f"{out}:1").read(), halved(halved(X, 1), 2), rtol=1e-6)


@pytest.mark.parametrize("name", ["a.zarr.zip", "a.ome.zarr.zip"])
def test_packed_folders(tmp_path: Path, name: str) -> None:
    save_volume(tmp_path / "x.nii", X, like=placed(AFFINE))
    found = vg.volumes.convert(tmp_path / "x.nii", tmp_path / name)
    np.testing.assert_array_equal(found.read(), X)
    np.testing.assert_allclose(found.affine, AFFINE)
    raw = zarr.open(store=zarr.storage.ZipStore(tmp_path / name, mode="r"), mode="r")
    assert (raw["0"] if "ome" in name else raw).dtype == np.float32
    done = voxgrad("convert", str(tmp_path / name), str(tmp_path / "back.nrrd"))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(open_volume(tmp_path / "back.nrrd").read(), X)
    pooled = apply("MaxPool3D", {"input": tmp_path / name}, tmp_path / "y.zarr", **{**COPY, "workers": 1})
    np.testing.assert_array_equal(pooled.read(), X)
    for what in (lambda: create_volume(tmp_path / "new.zarr.zip", X.shape, X.dtype),
                 lambda: open_volume(tmp_path / name, write=True)):  # fmt: skip
        with pytest.raises(vg.VoxgradError, match=r"must be a file that can be written in parts; got a packed one"):
            what()


def test_a_packed_folder_that_is_a_bomb(tmp_path: Path) -> None:
    save_volume(tmp_path / "a.zarr", X)
    with zipfile.ZipFile(tmp_path / "a.zarr.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(one for one in (tmp_path / "a.zarr").rglob("*") if one.is_file()):
            inside = file.relative_to(tmp_path / "a.zarr").as_posix()
            packed.writestr(inside, file.read_bytes() if file.name == "zarr.json" else bytes(2**28))
    assert (tmp_path / "a.zarr.zip").stat().st_size < 2**22
    with pytest.raises(vg.VoxgradError, match=r"must hold the chunks that its header promises; got 268,435,456 bytes"):
        open_volume(tmp_path / "a.zarr.zip").read()


def test_shards(tmp_path: Path) -> None:
    save_volume(tmp_path / "x.npy", X)
    for name in ("y.zarr", "y.ome.zarr"):
        done = voxgrad(
            "apply", "MaxPool3D", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / name), "--ksize",
            "1,1,1,1,1", "--strides", "1,1,1,1,1", "--padding", "VALID", "--chunks", "64,70,20", "--inner-chunks",
            "16,35,10",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        raw = zarr.open(tmp_path / name / "0" if "ome" in name else tmp_path / name, mode="r")
        assert (raw.shards[-3:], raw.chunks[-3:]) in (((64, 70, 20), (16, 35, 10)), ((70, 20, 2), (35, 10, 2)))
        np.testing.assert_array_equal(open_volume(tmp_path / name).read(), X)
    made = open_volume(f"{tmp_path}/y.ome.zarr:1")
    np.testing.assert_allclose(made.read(), halved(halved(X, 1), 2), rtol=1e-6)
    with pytest.raises(vg.VoxgradError, match=r"VG003 .*inner_chunks must divide the chunks of the result"):
        apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "z.zarr", **COPY, inner_chunks=(24, 16, 16))
    with pytest.raises(vg.VoxgradError, match=r"VG004 .*inner_chunks must be depth, height, width"):
        apply("MaxPool3D", {"input": tmp_path / "x.npy"}, tmp_path / "z.zarr", **COPY, inner_chunks=(24, 16))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The files of the test, over HTTP."""
    pytest.importorskip("aiohttp", reason="fsspec's HTTP is an optional extra")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


def test_over_http(tmp_path: Path, server: str) -> None:
    save_volume(tmp_path / "x.ome.zarr", X, like=placed(AFFINE))
    for level, wanted in (("", X), (":1", halved(halved(X, 1), 2))):
        found = open_volume(f"{server}/x.ome.zarr{level}")
        np.testing.assert_allclose(found.read(), wanted, rtol=1e-6)
    np.testing.assert_allclose(open_volume(f"{server}/x.ome.zarr").affine, AFFINE)
    pooled = apply("MaxPool3D", {"input": f"{server}/x.ome.zarr"}, tmp_path / "y.nii", **COPY)
    np.testing.assert_array_equal(pooled.read(), X)
    np.testing.assert_allclose(pooled.affine, AFFINE)
    with pytest.raises(vg.VoxgradError, match="VG051"):
        open_volume(f"{server}/none.zarr")
