# SPDX-License-Identifier: Apache-2.0
"""A page touches files outside of its folder only where the person has allowed it, for the page as it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.serving import Server
from tests.studio.test_files import npy
from voxgrad.formats import page_file


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "in.txt").write_text("in")
    (tmp_path / "scans" / ".key").write_text("key")
    (tmp_path / "scans" / "scan.npy").write_bytes(npy(np.ones((2, 3, 4), np.float32)))
    found = Server(tmp_path / "project", "--memory", "1")
    yield found
    found.stop()


def stranger(scans: Path) -> dict:
    page = vg.Page("stranger")
    text = np.array(str(scans / "in.txt").encode(), object)
    name = page.add("Const", attrs={"value": text, "dtype": "string"}, name="n")
    page.add("ReadFile", {"filename": name}, name="read")
    page.add("WriteFile", {"filename": "../../scans/out.txt", "contents": "out"}, name="write")
    page.add("Volume", attrs={"path": str(scans / "scan.npy")}, name="scan")
    return page_file.to_data(page)


def test_files_outside_are_named_allowed_and_remembered_for_the_page_as_it_is(studio: Server, tmp_path: Path) -> None:
    scans = tmp_path / "scans"
    document = stranger(scans)
    asked = studio.post("files", {"document": document})
    assert asked["allowed"] == []
    assert [(one["block"], one["op"], one["write"], one["folder"]) for one in asked["wanted"]] == [
        ("read", "ReadFile", False, str(scans)), ("write", "WriteFile", True, str(scans)),
        ("scan", "Volume", False, str(scans)),
    ]  # fmt: skip

    def refused(one: dict) -> bool:
        answer = studio.client.post("/api/runs", json={"page_id": "p", "document": one})
        assert answer.status_code in (200, 422), answer.text
        return answer.status_code == 422 and {f["code"] for f in answer.json()["error"]["faults"]} == {"VG056"}

    assert refused(document) and not (scans / "out.txt").exists()
    granted = studio.put("files", {"document": document, "folders": [str(scans)]})
    assert granted == {"wanted": [], "allowed": [str(scans)]}
    run = studio.run(document)
    assert run["state"] == "done", run
    assert (scans / "out.txt").read_text() == "out"
    assert studio.post("analyse", {"document": document})["problems"] == []

    # It is not in the page, and nobody else can read it.
    assert not [path for path in studio.folder.rglob("*") if path.is_file() and b'"folders"' in path.read_bytes()]
    kept = tmp_path / "config" / "voxgrad" / "grants.json"
    assert kept.stat().st_mode & 0o777 == 0o600

    moved, changed, hidden = copy.deepcopy(document), copy.deepcopy(document), copy.deepcopy(document)
    moved["blocks"][0]["position"] = [500, 500]
    assert not refused(moved), "where a block stands does not matter"
    changed["blocks"][2]["inputs"]["contents"] = [{"value": "something else"}]
    assert refused(changed)
    hidden["blocks"][2]["inputs"]["filename"] = [{"value": "../../scans/.key"}]
    studio.put("files", {"document": hidden, "folders": [str(scans)]})
    assert refused(hidden) and (scans / ".key").read_text() == "key"

    assert studio.put("files", {"document": document, "folders": []})["allowed"] == []
    assert refused(document)
    assert str(scans) not in json.dumps([one for one in json.loads(kept.read_text())["grants"] if not one["folders"]])


def test_a_grant_names_a_folder_that_is_there(studio: Server, tmp_path: Path) -> None:
    document = stranger(tmp_path / "scans")
    for folder in ("/", "scans", "", str(tmp_path / "none"), str(tmp_path / "scans" / "in.txt"), "/\0"):
        answer = studio.client.put("/api/files", json={"document": document, "folders": [folder]})
        assert answer.status_code == 422, folder
    (tmp_path / "config" / "voxgrad").mkdir(parents=True, exist_ok=True)
    (tmp_path / "config" / "voxgrad" / "grants.json").write_text("[broken")
    assert len(studio.post("files", {"document": document})["wanted"]) == 3
