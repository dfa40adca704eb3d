# SPDX-License-Identifier: Apache-2.0
"""The library of the studio: kept, listed as blocks, put into documents, and told where it has something newer."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio is an optional extra")

import voxgrad as vg
from tests.studio.serving import Server
from voxgrad.formats import page_file

pytestmark = pytest.mark.processes


def folded() -> vg.Page:
    page = vg.Page("user")
    x = vg.ops.Const(page, [1.0, 2.0], dtype="float32", name="x")
    y = vg.ops.Square(page, x, name="square")
    vg.ops.Neg(page, y, name="out")
    page.fold(["square"], "layer")
    return page


def test_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXGRAD_PAGES", str(tmp_path / "own"))
    server = Server(tmp_path / "work")
    document = page_file.to_data(folded())
    try:
        kept = server.post("library", {"document": document, "path": ["layer"], "name": "squared"})
        document = kept["document"]
        assert document["pages"]["layer"]["origin"]["name"] == "squared"
        assert (tmp_path / "work" / "library" / "squared.vox.json").exists()
        (entry,) = server.get("library")["pages"]
        assert entry["group"] == "library" and [pin["types"] for pin in entry["inputs"]] == [["float32"]]
        assert server.post("analyse", {"document": document})["warnings"] == []

        stored = server.get("library/squared")["document"]
        inner = {key: value for key, value in stored.items() if key not in ("format", "version")}
        blocks = [{"name": "again", "page": "squared", "inputs": {"x": [{"from": "layer.square"}]}}]
        edits = [{"do": "paste", "blocks": blocks, "pages": {"squared": inner}}]
        used = server.post("edit", {"document": document, "edits": edits})
        assert used["added"] == ["again"] and server.post("analyse", {"document": used["document"]})["problems"] == []

        newer = vg.Page("squared")
        x = vg.ops.Placeholder(newer, dtype="float32", shape=[2], name="x")
        newer.expose({"square": vg.ops.Mul(newer, x, 10.0)})
        ask = {"document": page_file.to_data(newer), "name": "squared"}
        refused = server.client.post("/api/library", json=ask)
        assert refused.status_code == 422 and "VG060" in refused.text
        server.post("library", ask | {"replace": True})
        (warning,) = server.post("analyse", {"document": document})["warnings"]
        assert warning["code"] == "VG085" and warning["block"] == "layer"
        (fix,) = warning["fixes"]
        updated = server.post("edit", {"document": document, "edits": fix["edits"]})["document"]
        assert server.post("analyse", {"document": updated})["warnings"] == []
        rows = {row["block"]: row for row in server.run(updated)["blocks"]}
        assert rows["out"]["outputs"][0]["summary"]["min"] == -20.0

        (tmp_path / "work" / "library" / "broken.vox.json").write_text("{")
        found = server.get("library")
        assert [one["name"] for one in found["broken"]] == ["broken"] and len(found["pages"]) == 1
    finally:
        server.stop()
