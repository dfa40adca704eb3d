# SPDX-License-Identifier: Apache-2.0
"""One page contract: the browser's own edits are those of the server, and no sequence of them spoils a page."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import voxgrad as vg
from voxgrad.formats import page_file
from voxgrad.graph.block import Output
from voxgrad.graph.page import Page

WEB = Path(__file__).resolve().parents[2] / "web"
EXAMPLES = sorted((WEB.parent / "examples").glob("*.vox.json"))
SEQUENCES = int(os.environ.get("VOXGRAD_EDIT_SEQUENCES", "300"))
"""10,000 of them, in two minutes, hold the bar of the contract; a few hundred find what is broken."""
NAMES = ["x", "입력 1", "scope/y", "scope", "w.1", "a b", "a:b", " a", "", "x_1", "a//b", "deep/er/z", "\u0007"]


def document(page: Page) -> dict[str, Any]:
    """The page as the browser holds it: without the head of the file, and large constants in place."""
    data = page_file.to_data(page)
    return {key: value for key, value in data.items() if key not in ("format", "version")}


def random_edit(page: Page, chance: random.Random) -> dict[str, Any]:
    """Something that a person can do to a page in the browser without asking the server."""
    names = [block.name for block in page.blocks] or ["nobody"]
    outputs = [output for block in page.blocks for output in block.outputs]
    one = chance.choice(names)
    kind = chance.choice(["add", "remove", "rename", "rename", "move", "set_attr", "connect", "connect", "disconnect"])
    if kind == "remove" or not outputs:
        return {"do": "remove", "block": one}
    if kind == "rename":
        return {"do": "rename", "block": one, "name": chance.choice([*NAMES, chance.choice(names)])}
    if kind == "move":
        return {"do": "move", "block": one, "position": [chance.randrange(-500, 500), chance.randrange(-500, 500)]}
    if kind == "set_attr":
        value = chance.choice(["SAME", [1, 2, 2, 2, 1], None, 3])
        return {"do": "set_attr", "block": one, "attr": chance.choice(["padding", "ksize"]), "value": value}
    wired = [wire for wire in page.wires if isinstance(wire.source, Output)]
    if kind == "disconnect" and wired:
        wire = chance.choice(wired)
        return {"do": "disconnect", "from": wire.source.path, "block": wire.block.name, "pin": wire.pin, "at": wire.at}
    if kind == "connect" and (pins := [item for block in page.blocks if block.name == one for item in block.inputs]):
        pin = chance.choice(pins)
        return {
            "do": "connect", "from": chance.choice(outputs).path, "block": one, "pin": pin.name, "many": pin.many
        }  # fmt: skip
    op = chance.choice(["Neg", "AddN", "MaxPool3D", "Placeholder", "NoOp"])
    taken = [name for name in [*NAMES[:6], chance.choice(names)] if name]
    return {"do": "add", "op": op, "name": chance.choice(taken), "position": [chance.randrange(500), 0]}


def sequence(seed: int) -> dict[str, Any]:
    """A page, edits of it, and what the server makes of each; at every step the page can be saved and opened."""
    chance = random.Random(seed)
    page = Page.load(chance.choice(EXAMPLES))
    before, steps = document(page), []
    for _ in range(chance.randrange(1, 12)):
        edit = random_edit(page, chance)
        page = Page.from_dict(page.to_dict())  # as the server has it, which is asked anew each time
        try:
            page.apply({key: value for key, value in edit.items() if key != "many"})
            after: dict[str, Any] | None = document(page)
        except vg.VoxgradError:
            after = None
        steps.append({"edit": edit, "after": after})
    assert page_file.dumps(page_file.loads(page_file.dumps(page))) == page_file.dumps(page)
    page.problems()
    return {"before": before, "steps": steps}


def test_the_browser_edits_pages_as_the_server_does(tmp_path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules" / "vitest").is_dir():
        pytest.skip("the packages of the front end are not installed: npm ci --ignore-scripts in web/")
    seed = int(os.environ.get("VOXGRAD_SEED", "1"))
    recorded = tmp_path / "sequences.json"
    recorded.write_text(json.dumps([sequence(seed + number) for number in range(SEQUENCES)]))
    done = subprocess.run(
        [npx, "vitest", "run", "src/core/replay.test.ts", "--testTimeout=600000"], cwd=WEB, capture_output=True,
        text=True, env=os.environ | {"VOXGRAD_REPLAY": str(recorded)},
    )  # fmt: skip
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
