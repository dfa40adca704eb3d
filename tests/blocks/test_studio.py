# SPDX-License-Identifier: Apache-2.0
"""The studio with packages of blocks: everything is derived from the declaration, and nothing of theirs ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio is an optional extra")

import voxgrad as vg
from tests.blocks.installing import install, install_template
from tests.blocks.test_packages import X, blurred, declared, page_of
from tests.studio.serving import Server
from voxgrad.formats import page_file

pytestmark = pytest.mark.processes


@contextmanager
def studio(folder: Path, *options: str) -> Iterator[Server]:
    server = Server(folder, *options)
    try:
        yield server
    finally:
        server.stop()


def document_of(op: str = "twice.Twice") -> Any:
    return page_file.to_data(page_of(op))


def test_the_studio_has_the_ops_of_a_package(site: Path, tmp_path: Path) -> None:
    install_template(site)
    document = document_of("boxblur.BoxBlur")
    with studio(tmp_path / "work") as server:
        ops = {op["name"]: op for op in server.get("ops")["ops"]}
        assert ops["boxblur.BoxBlur"]["package"] == "boxblur 1.0" and ops["boxblur.BoxBlur"]["differentiable"]
        assert ops["Conv3D"]["package"] == ""
        help_ = server.get("ops/boxblur.BoxBlur")
        assert "BoxBlur" in help_["block_svg"] and help_["forms"]["radius"]
        found = server.post("analyse", {"document": document})
        assert found["pins"]["y"]["y"]["text"] == "float64 [1,3,4,5,2]" and found["problems"] == []
        typed = {"do": "set_text", "block": "y", "name": "radius", "text": "2"}
        edits = [typed, {"do": "gradients", "of": ["y"]}]
        document = server.post("edit", {"document": document, "path": [], "edits": edits})["document"]
        slope = [block["name"] for block in document["blocks"] if block.get("op") == "boxblur.BoxBlur"][1]
        rows = {row["block"]: row for row in server.run(document)["blocks"]}
        assert rows["y"]["outputs"][0]["summary"]["max"] == pytest.approx(blurred(X, 2).max())
        assert rows[slope]["state"] == "done"
        assert all(row["ok"] for row in server.post("check", {"document": document, "of": ["y"]})["rows"])


def test_a_page_of_a_missing_package_opens_and_is_kept(site: Path, tmp_path: Path) -> None:
    install_template(site)
    page = page_of("boxblur.BoxBlur")
    (tmp_path / "work").mkdir()
    page.save(tmp_path / "work" / "own.vox.json")
    before = (tmp_path / "work" / "own.vox.json").read_bytes()
    for place in site.iterdir():
        place.rename(tmp_path / place.name)
    with studio(tmp_path / "work") as server:
        (entry,) = server.get("pages")["pages"]
        found = server.get(f"pages/{entry['id']}")
        (problem,) = server.post("analyse", {"document": found["document"]})["problems"]
        assert problem["block"] == "y" and problem["op"] == "boxblur.BoxBlur" and "not installed" in problem["message"]
        server.put(f"pages/{entry['id']}", {"revision": entry["revision"], "document": found["document"]})
    assert (tmp_path / "work" / "own.vox.json").read_bytes() == before


def test_a_worker_that_dies_is_an_error_of_the_block(site: Path, tmp_path: Path) -> None:
    install(site, "twice", declared(), "import os\ndef twice(x): os._exit(9)")
    with studio(tmp_path / "work") as server:
        run = server.run(document_of())
        (fault,) = run["error"]["faults"]
        assert run["state"] == "failed" and (fault["code"], fault["op"], fault["argument"]) == (
            "VG068", "twice.Twice", "y",
        )  # fmt: skip
        assert "exit code 9, in this block of the package twice 0.1" in fault["got"]
        (row,) = (one for one in run["blocks"] if one["block"] == "y")
        assert row["state"] == "failed" and "twice 0.1" in row["error"]["message"]
        document = page_file.to_data(vg.Page("next"))
        assert server.run(document)["state"] == "done"


def test_a_function_that_does_not_end_is_an_error_of_the_block(site: Path, tmp_path: Path) -> None:
    install(site, "twice", declared(), "import time\ndef twice(x): time.sleep(600)")
    with studio(tmp_path / "work", "--time-limit", "1") as server:
        run = server.run(document_of())
        (fault,) = run["error"]["faults"]
        assert (fault["code"], fault["argument"]) == ("VG021", "y") and "twice 0.1" in fault["got"]


def test_a_function_that_raises_is_an_error_of_the_block(site: Path, tmp_path: Path) -> None:
    install(site, "twice", declared(), "def twice(x): return 1 / 0")
    with studio(tmp_path / "work") as server:
        run = server.run(document_of())
        (row,) = (one for one in run["blocks"] if one["block"] == "y")
        assert row["state"] == "failed" and "twice 0.1 has it; got ZeroDivisionError" in row["error"]["message"]


def test_a_package_that_crashes_when_it_is_imported_does_not_take_the_studio_along(site: Path, tmp_path: Path) -> None:
    install_template(site)
    install(site, "twice", "import os\nos.abort()")
    with studio(tmp_path / "work") as server:
        names = {op["name"] for op in server.get("ops")["ops"]}
        assert "boxblur.BoxBlur" in names and "twice.Twice" not in names
        (problem,) = server.post("analyse", {"document": document_of_text()})["problems"]
        assert problem["code"] == "VG090" and "twice 0.1, which does not load: its import ended in" in problem["got"]


def document_of_text() -> Any:
    """As `document_of`, made where the package is not looked at."""
    made = document_of("no_such.Op")
    made["blocks"][1]["op"] = "twice.Twice"
    return made
