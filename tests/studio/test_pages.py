# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

import voxgrad as vg
from tests.studio.documents import pool_page
from tests.studio.serving import Server, environment
from voxgrad.formats import page_file
from voxgrad.studio.journal import Journal
from voxgrad.studio.pages import StaleRevision


def moved(document: dict, x: float) -> dict:
    """The document with its first block somewhere else."""
    changed = json.loads(json.dumps(document))
    changed["blocks"][0]["position"] = [x, 0]
    return changed


def test_a_page_is_made_saved_and_read_from_its_file(server: Server) -> None:
    made = server.post("pages", {"name": "first page", "document": pool_page()})
    assert made["revision"] == 1 and made["file"] == "first-page.vox.json"
    saved = server.put(f"pages/{made['id']}", {"revision": 1, "document": moved(made["document"], 7)})
    assert saved["revision"] == 2
    assert page_file.load(server.folder / made["file"]).block("x").position == (7, 0)
    assert server.get(f"pages/{made['id']}")["document"] == moved(made["document"], 7)
    assert made["id"] in [entry["id"] for entry in server.get("pages")["pages"]]


def test_a_stale_save_is_refused_with_the_newest_revision(server: Server) -> None:
    made = server.post("pages", {"name": "two tabs", "document": pool_page()})
    path = f"/api/pages/{made['id']}"
    server.put(f"pages/{made['id']}", {"revision": 1, "document": moved(made["document"], 1)})
    answer = server.client.put(path, json={"revision": 1, "document": moved(made["document"], 2)})
    assert answer.status_code == 409
    assert answer.json()["revision"] == 2 and answer.json()["error"]["faults"][0]["code"] == "VG055"
    assert server.get(f"pages/{made['id']}")["document"]["blocks"][0]["position"] == [1, 0]


def test_a_save_whose_answer_was_lost_can_be_repeated(server: Server) -> None:
    made = server.post("pages", {"name": "repeated", "document": pool_page()})
    body = {"revision": 1, "document": moved(made["document"], 3)}
    assert server.put(f"pages/{made['id']}", body)["revision"] == 2
    assert server.put(f"pages/{made['id']}", body)["revision"] == 2


def test_a_change_by_another_program_makes_a_save_stale_and_is_told(server: Server) -> None:
    made = server.post("pages", {"name": "outside", "document": pool_page()})
    events = server.listen()
    page = vg.Page("outside")
    page.add("NoOp", name="other")
    page.save(server.folder / made["file"])
    assert events.until(type="page", id=made["id"])[-1]["revision"] == 2
    events.close()
    answer = server.client.put(f"/api/pages/{made['id']}", json={"revision": 1, "document": made["document"]})
    assert answer.status_code == 409


def test_drafts_are_kept_apart_from_the_page(server: Server) -> None:
    made = server.post("pages", {"name": "typing", "document": pool_page()})
    name = f"pages/{made['id']}"
    server.put(f"{name}/draft", {"base_revision": 1, "document": moved(made["document"], 9)})
    found = server.get(name)
    assert found["document"] == made["document"]
    assert found["draft"]["document"] == moved(made["document"], 9) and found["draft"]["base_revision"] == 1
    assert next(one for one in server.get("pages")["pages"] if one["id"] == made["id"])["has_draft"]
    server.put(name, {"revision": 1, "document": moved(made["document"], 9)})
    assert server.get(name)["draft"] is None
    server.put(f"{name}/draft", {"base_revision": 2, "document": {"anything": "half typed"}})
    assert server.get(name)["draft"]["document"] == {"anything": "half typed"}
    server.client.delete(f"/api/{name}/draft")
    assert server.get(name)["draft"] is None


def test_large_constants_stay_out_of_documents(server: Server) -> None:
    page = vg.Page("large")
    array = np.random.default_rng(0).standard_normal((1, 24, 24, 24, 2)).astype(np.float32)
    vg.ops.Const(page, array, name="x")
    made = server.post("pages", {"name": "large", "document": page_file.to_data(page)})
    assert len(json.dumps(made["document"])) < 2000
    server.put(f"pages/{made['id']}", {"revision": 1, "document": moved(made["document"], 1)})
    (value,) = vg.ClientSession(page_file.load(server.folder / made["file"])).run(["x"])
    assert (value == array).all()
    run = server.run(made["document"])
    assert run["blocks"][0]["outputs"][0]["shape"] == [1, 24, 24, 24, 2]


def test_a_deleted_page_is_in_the_trash(server: Server) -> None:
    made = server.post("pages", {"name": "away", "document": pool_page()})
    server.client.delete(f"/api/pages/{made['id']}")
    assert server.client.get(f"/api/pages/{made['id']}").status_code == 404
    assert list((server.folder / ".voxgrad" / "trash").glob("*/away.vox.json"))
    assert server.post("pages", {"name": "away"})["revision"] != made["revision"]


def test_snapshots(server: Server) -> None:
    made = server.post("pages", {"name": "named", "document": pool_page()})
    name = f"pages/{made['id']}"
    assert server.post(f"{name}/snapshots", {"name": "before"})["number"] == 1
    server.put(name, {"revision": 1, "document": moved(made["document"], 4)})
    server.post(f"{name}/snapshots", {"name": "after"})
    assert [one["name"] for one in server.get(f"{name}/snapshots")["snapshots"]] == ["before", "after"]
    assert server.get(f"{name}/snapshots/1")["document"] == made["document"]
    assert server.client.get(f"/api/{name}/snapshots/9").status_code == 404


def test_a_file_that_is_no_page_is_listed_with_the_reason(server: Server) -> None:
    (server.folder / "broken.vox.json").write_text('{"format": "voxg')
    entry = next(one for one in server.get("pages")["pages"] if one["file"] == "broken.vox.json")
    assert entry["error"]
    assert server.client.get(f"/api/pages/{entry['id']}").status_code == 422


def test_one_studio_per_folder(server: Server) -> None:
    command = [sys.executable, "-m", "voxgrad", "studio", str(server.folder), "--no-browser", "--port", "0"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    assert second.returncode == 3 and "another one has it" in second.stderr


def test_a_journal_forgives_a_cut_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    assert journal.last() is None
    journal.append({"n": 1})
    journal.append({"n": 2})
    whole = journal.path.read_bytes()
    for cut in range(len(whole)):
        journal.path.write_bytes(whole[:cut])
        found = journal.last()
        assert found == (None if cut < len(whole) // 2 - 1 else {"n": 2} if cut >= len(whole) - 1 else {"n": 1})
        journal.append({"n": 3})
        assert journal.last() == {"n": 3}


def test_a_stale_revision_is_the_same_after_a_journey() -> None:
    error = StaleRevision(3, 2)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (StaleRevision, str(error), vars(error))
