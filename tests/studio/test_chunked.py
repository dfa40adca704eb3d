# SPDX-License-Identifier: Apache-2.0
"""Volumes of a studio's folder, and pages that run over them chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.serving import Server
from voxgrad.formats import page_file
from voxgrad.volumes.watch import Record, folder_of

POOL = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("project"), "--memory", "1")
    (found.folder / "files").mkdir(exist_ok=True)
    yield found
    found.stop()


@pytest.fixture
def files(server: Server) -> Path:
    return server.folder / "files"


def volume(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 99, shape).astype(np.float32)


def document(**more: Any) -> dict[str, Any]:
    page = vg.Page("pooling")
    scan = vg.ops.Volume(page, path="scan.npy", **more, name="scan")
    vg.ops.MaxPool3D(page, scan, **POOL, name="pool")
    data: dict[str, Any] = page_file.to_data(page, Path("unused"))
    return data


def ask(server: Server, output: str, **changed: Any) -> Any:
    body = {"document": document(), "volumes": {"scan": "scan.npy"}, "outputs": {"pool": output}, "chunks": [4, 8, 8]}
    body["workers"] = 1
    return server.client.post("/api/volumes/runs", json=body | changed)


def wait(server: Server, name: str, *phases: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        run: dict[str, Any] = next(one for one in server.get("volumes/runs")["runs"] if one["name"] == name)
        if run["phase"] in phases:
            return run
        time.sleep(0.05)
    raise AssertionError(run)


def test_volumes_are_listed_from_their_headers(server: Server, files: Path) -> None:
    np.save(files / "scan.npy", volume(8, 16, 24))
    (files / "broken.npy").write_bytes(b"no array")
    (files / "notes.txt").write_text("no volume")
    (files / "sub").mkdir(exist_ok=True)
    np.savez(files / "sub" / "a.npz", volume(2, 2, 2))
    (files / "link.npy").symlink_to("/etc/hostname")
    found = {one["name"]: one for one in server.get("volumes")["volumes"]}
    assert set(found) == {"scan.npy", "broken.npy", "sub/a.npz"}
    assert found["scan.npy"]["shape"] == [1, 8, 16, 24, 1] and found["scan.npy"]["bytes"] == 8 * 16 * 24 * 4
    assert "VG051" in found["broken.npy"]["error"] and str(files) not in found["broken.npy"]["error"]
    for name in ("broken.npy", "link.npy"):
        (files / name).unlink()


def test_a_page_runs_over_a_volume(server: Server, files: Path) -> None:
    x = volume(8, 16, 24)
    np.save(files / "scan.npy", x)
    answer = ask(server, "pooled.npy", workers=None)
    assert answer.status_code == 200, answer.text
    assert answer.json()["grid"] == [2, 2, 3]
    run = wait(server, "pooled.npy", "finished")
    assert run["cells"] == "d" * 12 and run["done"] == run["total"] == 12 and not run["stoppable"]
    dense = vg.raw_ops.MaxPool3D(input=x[None, ..., None], **POOL)
    np.testing.assert_array_equal(vg.open_volume(files / "pooled.npy").read(), dense)


def test_the_block_says_how_its_file_is_read(server: Server, files: Path) -> None:
    x = volume(24, 16, 8)
    np.save(files / "scan.npy", x)
    answer = ask(server, "turned.npy", document=document(axes="xyz"))
    assert answer.status_code == 200, answer.text
    wait(server, "turned.npy", "finished")
    dense = vg.raw_ops.MaxPool3D(input=x.T[None, ..., None], **POOL)
    np.testing.assert_array_equal(vg.open_volume(files / "turned.npy").read(), dense)
    np.save(files / "other.npy", x.T)
    ask(server, "other-turned.npy", document=document(axes="xyz"), volumes={"scan": "other.npy"})
    wait(server, "other-turned.npy", "finished")
    np.testing.assert_array_equal(vg.open_volume(files / "other-turned.npy").read(), dense)


def test_a_run_that_is_stopped_goes_on(server: Server, files: Path) -> None:
    x = volume(24, 48, 48)
    np.save(files / "scan.npy", x)
    started = ask(server, "stopped.npy", chunks=[2, 4, 4]).json()
    stopped = server.post(f"volumes/runs/{started['id']}/stop")
    assert stopped["phase"] == "stopped" and not stopped["stoppable"]
    done = stopped["done"]
    assert done < stopped["total"] == 12 * 12 * 12
    ask(server, "stopped.npy", chunks=[2, 4, 4])
    finished = wait(server, "stopped.npy", "finished")
    assert finished["done"] == finished["total"]
    dense = vg.raw_ops.MaxPool3D(input=x[None, ..., None], **POOL)
    np.testing.assert_array_equal(vg.open_volume(files / "stopped.npy").read(), dense)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"outputs": {"pool": "../out.npy"}}, "must be a plain name"),
        ({"outputs": {"pool": "/tmp/out.npy"}}, "must be a plain name"),
        ({"outputs": {"pool": "out.exe"}}, "must be a plain name"),
        ({"volumes": {"scan": "../../secret.npy"}}, "without '..'"),
        ({"volumes": {"scan": "missing.npy"}}, "must exist"),
        ({"volumes": {"nobody": "scan.npy"}}, "nobody"),
        ({"outputs": {"nobody": "out.npy"}}, "nobody"),
        ({"chunks": [0, 1, 1]}, "malformed"),
    ],
)
def test_what_cannot_run_is_refused_at_once(server: Server, files: Path, changed: dict[str, Any], told: str) -> None:
    np.save(files / "scan.npy", volume(8, 16, 24))
    answer = ask(server, "refused.npy", **changed)
    assert answer.status_code == 422
    assert told in answer.json()["error"]["message"], answer.text


def test_runs_of_other_programs_are_shown(server: Server, files: Path) -> None:
    folder = folder_of(files / "theirs.zarr")
    folder.mkdir()
    record = Record(folder)
    with record.run([1, 2, 2], [8, 8, 8]):
        with pytest.raises(ValueError), record.chunk(3):
            raise ValueError("bad numbers")
        (folder / "done").write_text("\n0;")
        with record.chunk(1):
            run = next(one for one in server.get("volumes/runs")["runs"] if one["name"] == "theirs.zarr")
    assert run["cells"] == "dr0f" and run["phase"] == "running" and not run["stoppable"]
    assert run["failed"] == [{"chunk": 3, "message": "ValueError: bad numbers"}]
    assert server.client.post(f"/api/volumes/runs/{run['id']}/stop", json={}).status_code == 404
    (folder / "begun.json").write_text('{"grid": [1000000, 1000000, 1000000], "chunks": [1, 1, 1]}')
    assert all(one["name"] != "theirs.zarr" for one in server.get("volumes/runs")["runs"])
