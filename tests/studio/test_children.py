# SPDX-License-Identifier: Apache-2.0
"""Files are parsed in children of the studio: a file that kills its parser is an error that names it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.documents import pool_page
from tests.studio.serving import Server
from tests.studio.test_files import npy
from voxgrad.formats import page_file
from voxgrad.graph import volume_files
from voxgrad.kernels.arraywise.files import Files

CRASH = "import os, signal\ndef __getattr__(name):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
SLEEP = "import time\ndef __getattr__(name):\n    time.sleep(600)\n"


def volume_page(name: str) -> dict:
    page = vg.Page("scan")
    vg.ops.Identity(page, page.add("Volume", attrs={"path": name}, name="scan").output(0))
    return page_file.to_data(page)


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules take the place of installed ones: the library of HDF5 crashes at its first use."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "h5py.py").write_text(CRASH)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    return folder


@pytest.fixture
def studio(tmp_path: Path, libraries: Path) -> Iterator[Server]:
    files = tmp_path / "project" / "files"
    files.mkdir(parents=True)
    (files / "damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for at in range(5):
        (files / f"good{at}.npy").write_bytes(npy(np.zeros((2, 3, 4), np.float32)))
    found = Server(tmp_path / "project", "--memory", "1")
    yield found
    found.stop()


def test_a_file_that_kills_its_parser_does_not_kill_the_studio(studio: Server) -> None:
    listed = {one["name"]: one for one in studio.get("volumes")["volumes"]}
    assert len(listed) == 6 and all(listed[f"good{at}.npy"]["shape"] == [1, 2, 3, 4, 1] for at in range(5))
    assert "damaged.h5" in listed["damaged.h5"]["error"] and "SIGSEGV" in listed["damaged.h5"]["error"]

    analysis = studio.post("analyse", {"document": volume_page("damaged.h5")})
    (problem,) = analysis["problems"]
    assert problem["block"] == "scan" and "damaged.h5" in problem["message"]
    assert studio.post("analyse", {"document": volume_page("good0.npy")})["problems"] == []
    began = time.monotonic()
    studio.post("analyse", {"document": volume_page("damaged.h5") | {"name": "again"}})
    assert time.monotonic() - began < 1, "a header is read once"

    kind = {"content-type": "application/octet-stream"}
    answer = studio.client.post("/api/import", params={"name": "hurt.h5"}, content=bytes(64), headers=kind)
    assert answer.status_code == 422 and "hurt.h5" in answer.text and ".voxgrad" not in answer.text
    asked = {"document": pool_page(), "volumes": {"x": "damaged.h5"}, "outputs": {"pool": "y.npy"}, "chunks": [2, 2, 2]}
    answer = studio.client.post("/api/volumes/runs", json=asked)
    assert answer.status_code == 422 and "damaged.h5" in answer.text
    assert studio.run(pool_page())["state"] == "done" and studio.process.poll() is None


def test_a_header_without_an_end_is_given_up(tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (libraries / "h5py.py").write_text(SLEEP)
    monkeypatch.setattr(volume_files, "HEADER_SECONDS", 1.0)
    (tmp_path / "slow.h5").write_bytes(bytes(64))
    with pytest.raises(vg.VoxgradError, match=r"VG021.*slow\.h5"):
        volume_files.header(Files(tmp_path, apart=True), "slow.h5", "")


def test_an_upload_that_a_killed_studio_has_left_is_taken_away(tmp_path: Path) -> None:
    left = tmp_path / ".voxgrad" / "uploads" / "0123"
    left.mkdir(parents=True)
    (left / "scan.npy").write_bytes(b"half")
    Server(tmp_path).stop()
    assert not left.exists()
