# SPDX-License-Identifier: Apache-2.0
"""One page contract: Python, the server and the browser make the same edits, and no sequence of them spoils a page."""

from __future__ import annotations

import shutil

import pytest

from tests.studio import edit_sequences


def test_python_the_server_and_the_browser_make_the_same_edits() -> None:
    if shutil.which("node") is None or not (edit_sequences.ROOT / "web" / "node_modules" / "rolldown").is_dir():
        pytest.skip("the packages of the front end are not installed: npm ci --ignore-scripts in web/")
    seed = edit_sequences.today()
    print(f"seed {seed}")
    found, counted = edit_sequences.go(seed, 0, edit_sequences.SHARE)
    assert not found, "\n".join(found)
    assert counted["sequences"] == edit_sequences.SHARE
    rare = {kind: counted[kind] for kind in edit_sequences.KINDS if kind not in ("undo", "redo")}
    assert rare.pop("insert") + min(rare.values()) > 0, rare
