# SPDX-License-Identifier: Apache-2.0
"""Random edits of pages, made three times: in Python, by the studio's server and by the browser's own code.

python -m tests.studio.edit_sequences                          the share of today
python -m tests.studio.edit_sequences --sequences 10000        more
python -m tests.studio.edit_sequences --seed 20261118 --first 17 --sequences 1       one again

After every edit the three documents are equal, and an edit that is refused has changed nothing. After every sequence
the page is saved, opened, checked and, where nothing is wrong with it, run.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.arrays.kinds import numpy_type
from voxgrad.catalog import dtypes
from voxgrad.cli.run import what_runs
from voxgrad.formats import page_file
from voxgrad.graph.block import Output
from voxgrad.graph.display_kinds import KINDS as DISPLAYS
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio.analyse import plain_json
from voxgrad.studio.documents import Documents

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.vox.json"))
SHARE = 60
MOST_BLOCKS = 30
"""A page of more gets no copies and gradients."""
LOOK_BACK = (1, 6)
ASKED = 0.2
"""How many of the edits the server makes as well. It reads and writes the whole page for each."""
MAY_REFUSE = {
    "VG040": "stopped",
    "VG041": "a variable has no value yet",
    "VG043": "a value that was computed is out of range",
    "VG056": "a file is not there for it",
}
OF_FEEDS = ("VG003", "VG017")
"""Axes that name one twice, sizes of 0: a page cannot know what it will be fed."""
RUN_SECONDS = 20
"""A run that takes longer is stopped, which is no fault of the page."""
NAMES = [
    "x", "입력 1", "scope/y", "scope", "w.1", "a b", "a:b", " a", "", "x_1", "a//b", "deep/er/z", "é", "e\u0301",
    "toString", "__proto__", "constructor", "0", "1.5", "\u0007", "\u200b", "\U0001f9ea", "\ue000", "\u0378",
    "x\u00a0y", "\u3000", "from", "a[2]", "#/%",
]  # fmt: skip
TEXTS = [
    "1,2,2,2,1", "{1,2,2,2,1}", "SAME", "VALID", "NCDHW", "DT_FLOAT", "float32", "{{1,2},{3,4}}", "3", "-1", "0.5",
    "true", "[2][3]", "", "  ", "1,2,x", "{1,2", "nan", "1e999", "abc", "입력", "0", "9999999999999", "half", "1;2",
]  # fmt: skip
OPS = [
    "Neg", "AddN", "MaxPool3D", "AvgPool3D", "Conv3D", "Placeholder", "NoOp", "Const", "Mul", "Unstack", "Split",
    "Shape", "IdentityN", "Concat", "Variable", "Assign", "Relu", "Mean", "Cast", "Reshape", "Mystery",
]  # fmt: skip
TENSOR = {"tensor": {"dtype": "float32", "shape": [1, 2, 2, 2, 1], "values": list(range(8))}}
ATTRS: dict[str, dict[str, Any]] = {
    "Const": {
        "value": {"tensor": {"dtype": "float32", "shape": [1, 2, 2, 2, 1], "values": list(range(8))}},
        "dtype": "float32",
    },
    "Placeholder": {"dtype": "float32", "shape": ["N", 4, 4, 4, 1]},
    "MaxPool3D": {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"},
    "AvgPool3D": {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"},
    "Conv3D": {"strides": [1, 1, 1, 1, 1], "padding": "SAME"},
    "Unstack": {"num": 2, "axis": 1},
    "Split": {"num_split": 2},
    "Variable": {"shape": [2], "dtype": "float32"},
    "Cast": {"DstT": "float32"},
}
KINDS = {
    "add": 4, "connect": 6, "disconnect": 3, "insert": 1, "move": 1, "set_attr": 2, "rename": 4, "remove": 2, "copy": 2,
    "paste": 1, "fold": 2, "inline": 2, "set_text": 3, "gradients": 1, "fix": 2, "semantics": 1, "run_after": 1,
    "undo": 2, "redo": 1, "display": 4, "place": 1, "expose": 1, "listed": 1,
    "group": 2, "mode": 2,
}  # fmt: skip
GENTLE = {
    "move": 1, "rename": 3, "copy": 2, "fold": 3, "inline": 3, "set_text": 1, "gradients": 2, "fix": 1, "semantics": 1,
    "remove": 1, "undo": 1, "redo": 1, "display": 3, "place": 1, "expose": 1, "group": 1, "mode": 1,
}  # fmt: skip
"""Kinds that seldom make a page wrong."""
OWN = ("add", "connect", "disconnect", "insert", "move", "place", "set_attr", "rename", "paste")
"""What the browser does itself, or judges before it asks."""

Edit = dict[str, Any]


class Browser:
    """The browser's code in a process of its own."""

    def __init__(self, folder: Path):
        bundle = folder / "replay.mjs"
        made = ["tools/replay.ts", "--file", str(bundle), "--platform", "node", "--format", "esm"]
        rolldown = ROOT / "web" / "node_modules" / ".bin" / "rolldown"
        subprocess.run([str(rolldown), *made], cwd=ROOT / "web", check=True, capture_output=True)
        self._node = subprocess.Popen(["node", str(bundle)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def replay(self, before: Edit, steps: list[Edit]) -> str:
        """What differs; nothing where all is the same."""
        assert self._node.stdin is not None and self._node.stdout is not None
        self._node.stdin.write(json.dumps({"before": before, "steps": steps}).encode() + b"\n")
        self._node.stdin.flush()
        said = self._node.stdout.readline().decode()
        return said.strip() if said.endswith("\n") else "the browser's code has ended"

    def close(self) -> None:
        """End the process."""
        self._node.communicate()


def random_page(chance: random.Random) -> Page:
    """Blocks of some ops, wired at random; some of them unknown, some for pages that are not there."""
    page = Page(chance.choice(["page", "페이지", "a/b: c"]), chance.choice(["documented", "tf_cpu"]))
    if chance.random() < 0.5:
        inner = Page("inner")
        x = inner.add("Placeholder", attrs={"dtype": "float32"}, name="x")
        inner.expose({"y": inner.add("Neg", {"x": x}, name="y"), "again": inner.add("Relu", {"features": x}, name="z")})
        page.define("layer", inner)
    for _ in range(chance.randrange(8)):
        name = chance.choice(NAMES[:6])
        if chance.random() < 0.2:
            page.use(chance.choice(["layer", "gone"]), name=name)
        else:
            op = chance.choice(OPS)
            attrs = page_file.edits_from_data({"attrs": ATTRS.get(op, {})})[0]["attrs"]
            page.add(op, attrs=attrs, name=name, position=(float(chance.randrange(500)), 0.0))
    for block in page.blocks:
        for pin in block.inputs:
            if outputs := [one for other in page.blocks for one in other.outputs]:
                page.connect(chance.choice(outputs), block, pin.name)
    return page


class Chooser:
    """Draws edits that fit a page, and some that do not."""

    def __init__(self, page: Page, chance: random.Random):
        self.page, self.chance = page, chance
        self.blocks = page.blocks
        self.names = [block.name for block in self.blocks] or ["nobody"]
        self.outputs = [output.path for block in self.blocks for output in block.outputs]

    def edit(self, kind: str) -> Edit | list[Edit] | None:
        """An edit of this kind; None where the page has nothing for it."""
        found: Edit | list[Edit] | None = getattr(self, "_place_display" if kind == "place" else f"_{kind}")()
        return found

    def _some(self) -> list[str]:
        return self.chance.sample(self.names, min(len(self.names), self.chance.choice([1, 1, 2, 3])))

    def _name(self) -> str:
        return self.chance.choice([*NAMES, *self._some()])

    def _place(self) -> list[int]:
        return [self.chance.randrange(-500, 500), self.chance.randrange(-500, 500)]

    def _add(self) -> Edit:
        op = self.chance.choice(OPS)
        name = self.chance.choice([op, *self._some(), *(one for one in NAMES if _is_name(one))])
        made: Edit = {"do": "add", "name": name, "op": op, "position": self._place()}
        return made | {"attrs": ATTRS[op]} if op in ATTRS and self.chance.random() < 0.8 else made

    def _connect(self) -> Edit | None:
        block = self.chance.choice(self.blocks) if self.blocks else None
        # The browser shows the pins that a block has while it works.
        if block is None or block.mode or not block.inputs or not self.outputs:
            return None
        pin = self.chance.choice(block.inputs)
        return {
            "do": "connect", "from": self.chance.choice(self.outputs), "block": block.name, "pin": pin.name,
            "many": pin.many,
        }  # fmt: skip

    def _wire(self) -> Edit | None:
        wires = self.page.wires
        if not wires:
            return None
        wire = self.chance.choice(wires)
        return {"from": wire.source.path, "block": wire.block.name, "pin": wire.pin, "at": wire.at}

    def _mode(self) -> Edit:
        return {"do": "mode", "block": self._some()[0], "value": self.chance.choice(["bypassed", "muted", "", "off"])}

    def _disconnect(self) -> Edit | None:
        wire = self._wire()
        return wire and {"do": "disconnect", **wire}

    def _insert(self) -> Edit | None:
        wire = self._wire()
        alone = [
            one for one in self.blocks if not (one.sources or one.readers or one.mode) and one.inputs and one.outputs
        ]
        if wire is None or not alone:
            return None
        block = self.chance.choice(alone)
        return {
            "do": "insert", **wire, "name": block.name, "input": block.inputs[0].name, "output": block.outputs[0].pin
        }  # fmt: skip

    def _move(self) -> Edit | None:
        return (
            {"do": "move", "block": self.chance.choice(self.names), "position": self._place()} if self.blocks else None
        )

    def _set_attr(self) -> Edit | None:
        blocks = [block.name for block in self.blocks if not block.uses]
        if not blocks:
            return None
        value = self.chance.choice(["SAME", "", [1, 2, 2, 2, 1], None, 3, True, {"float": "nan"}, TENSOR])
        attr = self.chance.choice(["padding", "ksize", "num", "value", "data_format", "__proto__", "shape", "N"])
        return {"do": "set_attr", "block": self.chance.choice(blocks), "attr": attr, "value": value}

    def _rename(self) -> Edit | None:
        return {"do": "rename", "block": self.chance.choice(self.names), "name": self._name()} if self.blocks else None

    def _remove(self) -> list[Edit]:
        return [{"do": "remove", "block": name} for name in self._some()]

    def _copy(self) -> Edit | None:
        shown = [f"display:{one.name}" for one in self.page.displays if self.chance.random() < 0.5]
        return _copied(self.page, self._some() + shown) | {"shift": self._place()} if self.blocks or shown else None

    def _display(self) -> Edit:
        """An edit of a display, or one more of them."""
        known = [one.name for one in self.page.displays]
        kind = self.chance.choice(["add", "set_attr", "show", "rename", "remove"]) if known else "add"
        edit: Edit = {"do": kind, "display": self.chance.choice(known or ["nobody"])}
        declared = self.chance.choice(list(DISPLAYS.values()))
        if kind == "add":
            edit |= {"display": declared.name, "position": self._place(), "of": self._shown()[: declared.takes]}
            edit |= {"attrs": dict([self._display_attr(declared.name)])} if self.chance.random() < 0.5 else {}
        elif kind == "set_attr":
            edit |= dict(zip(("attr", "value"), self._display_attr(declared.name), strict=True))
        elif kind == "show":
            edit["of"] = self._shown()
        elif kind == "rename":
            edit["name"] = self.chance.choice([*NAMES, *known])
        return edit

    def _shown(self) -> list[Edit]:
        found = [{"from": one} for one in self.chance.sample(self.outputs, min(len(self.outputs), 2))]
        more: list[Edit] = [{}, {"at": [0]}, {"at": [1, 2], "label": "입력"}, {"at": [-1]}, {"label": ""}]
        return [one | self.chance.choice(more) for one in found]

    def _display_attr(self, kind: str) -> tuple[str, Any]:
        attr = self.chance.choice(DISPLAYS[kind].attrs)
        fitting = {"bool": True, "int": 8, "number": 0.25, "choice": (*attr.choices, "")[0]}.get(attr.type, "a\nb")
        return attr.name, self.chance.choice([fitting, fitting, attr.default, None, 1e999, "x" * 9, -1])

    def _place_display(self) -> Edit | None:
        known = [one.name for one in self.page.displays]
        edit: Edit = {"do": "place", "display": self.chance.choice(known or [""])}
        edit |= {} if self.chance.random() < 0.3 else {"position": self._place()}
        return (
            edit | ({"size": [self.chance.randrange(1, 600), 80]} if self.chance.random() < 0.5 else {})
            if known
            else None
        )

    def _paste(self) -> Edit:
        other = Page.load(self.chance.choice(EXAMPLES)) if self.chance.random() < 0.7 else random_page(self.chance)
        chosen = self.chance.sample(other.blocks, min(len(other), 4))
        return _copied(other, [one.name for one in chosen]) | {"shift": [40, 40], "copied": None}

    def _fold(self) -> Edit:
        start = self.chance.choice(self.blocks) if self.blocks else None
        near = [start.name, *(one.name for one in start.readers)] if start is not None else []
        blocks = list(dict.fromkeys(self.chance.choice([near, self._some(), near + self._some()])))
        return {"do": "fold", "blocks": blocks, "name": self.chance.choice(["page", "layer", self._name()])}

    def _inline(self) -> Edit:
        users = [block.name for block in self.blocks if block.uses]
        return {"do": "inline", "block": self.chance.choice(users or self.names)}

    def _set_text(self) -> Edit:
        block = self.chance.choice(self.blocks) if self.blocks else None
        entries = [one.name for one in block.op.parameters] if block is not None and block.op is not None else []
        name = self.chance.choice([*entries, "padding"])
        return {"do": "set_text", "block": self.chance.choice([block.name if block else "x"]), "name": name,
                "text": self.chance.choice(TEXTS)}  # fmt: skip

    def _gradients(self) -> Edit | None:
        if len(self.blocks) > MOST_BLOCKS:
            return None
        return {"do": "gradients", "of": self._some(), "order": self.chance.choice([1, 1, 2])}

    def _fix(self) -> list[Edit] | None:
        found = [fix for problem in (*self.page.problems(), *self.page.warnings()) for fix in problem.fixes]
        return (
            [{key: plain_json(one[key]) for key in one} for one in self.chance.choice(found).edits] if found else None
        )

    def _semantics(self) -> Edit:
        return {"do": "semantics", "value": self.chance.choice(["documented", "tf_cpu", "other"])}

    def _run_after(self) -> Edit:
        kind = self.chance.choice(["run_after", "run_after", "no_longer_after"])
        return {"do": kind, "block": self.chance.choice(self.names), "others": self._some()}

    def _expose(self) -> Edit:
        given: Edit = {}
        if self.outputs and self.chance.random() < 0.7:
            outputs = self.chance.sample(self.outputs, min(len(self.outputs), self.chance.randrange(3)))
            given["outputs"] = {self.chance.choice(NAMES): output for output in outputs}
        if self.chance.random() < 0.4:
            given["inputs"] = [one.name for one in self.blocks if one.op_name == "Placeholder"][:2] or self._some()
        return {"do": "expose", **given}

    def _group(self) -> Edit:
        """A group that comes, changes or goes; titles hold anything."""
        titles = [one.title for one in self.page.groups]
        title = self.chance.choice([*titles, *titles, *NAMES])
        if titles and self.chance.random() < 0.2:
            return {"do": "ungroup", "title": title}
        changes: Edit = {"colour": self.chance.choice(["blue", "green", "purple", "mauve", 3])}
        changes |= {"collapsed": self.chance.choice([True, False, None]), "name": self._name(), "blocks": self._some()}
        kept = self.chance.sample(list(changes), self.chance.randrange(1, 4))
        return {"do": "group", "title": title, **{key: changes[key] for key in kept}}

    def _listed(self) -> Edit:
        return {"do": self.chance.choice(["execute", "start_with"]), "blocks": self._some()[: self.chance.randrange(3)]}


def _is_name(name: str) -> bool:
    try:
        Page().add("NoOp", name=name)
    except vg.VoxgradError:
        return False
    return name != ""


def _copied(page: Page, names: list[str]) -> Edit:
    """What the browser copies."""
    data = page_file.to_data(page)
    blocks = [block for block in data["blocks"] if block["name"] in names]
    used = {one["page"] for one in blocks if "page" in one}
    pages = {name: inner for name, inner in data.get("pages", {}).items() if name in used}
    displays = [one for one in data.get("displays", []) if f"display:{one['name']}" in names]
    made = {"do": "paste", "blocks": blocks, "pages": pages, "copied": names}
    return made | {"displays": displays} if displays else made


def as_edits(edit: Edit | list[Edit]) -> list[Edit]:
    """What the server is asked for."""
    if isinstance(edit, list):
        return edit
    if edit["do"] == "insert":
        wire = {"do": "connect", "from": f"{edit['name']}.{edit['output']}", "block": edit["block"], "pin": edit["pin"]}
        entry = {"do": "connect", "from": edit["from"], "block": edit["name"], "pin": edit["input"]}
        return [wire | {"at": edit["at"]}, entry]
    # The mouse moves and sizes displays by one command.
    as_said = edit | {"do": "move"} if edit["do"] == "place" else edit
    return [{key: value for key, value in as_said.items() if key not in ("many", "copied")}]


class DifferenceError(AssertionError):
    """Two who edit a page come to different documents, or a page is spoilt."""


class Sequence:
    """One page and random edits of it."""

    def __init__(self, seed: int, number: int, folder: Path):
        self.chance = random.Random(f"{seed} {number}")
        self.folder = folder
        self.documents = Documents(folder / "constants.data", Files())
        page = random_page(self.chance) if self.chance.random() < 0.3 else Page.load(self.chance.choice(EXAMPLES))
        self.before = self.now = self._written(page)
        self.page = self.documents.read(self.now)
        self.past, self.future = [self.now], list[Edit]()
        self.steps: list[Edit] = []
        self.count: collections.Counter[str] = collections.Counter()

    def _written(self, page: Page) -> Edit:
        return _bare(self.documents.write(page))

    def go(self) -> None:
        """Draw the edits and make them, here and on the server."""
        drawn = GENTLE if self.chance.random() < 0.4 else KINDS
        kinds, weights = list(drawn), list(drawn.values())
        for _ in range(self.chance.randrange(10, 31)):
            kind = self.chance.choices(kinds, weights)[0]
            if kind in ("undo", "redo"):
                self._turn_back(kind)
                continue
            path = self._path() if kind != "fix" else []
            edit = Chooser(_at(self.page, path), self.chance).edit(kind)
            if edit is not None and (kind not in ("paste", "copy", "gradients") or len(self.page) < MOST_BLOCKS):
                self._make(kind, edit, path)
        self._keep()

    def _path(self) -> list[str]:
        path: list[str] = []
        while self.chance.random() < 0.35 and (pages := list(_at(self.page, path).pages)):
            path.append(self.chance.choice(pages))
        return path

    def _turn_back(self, kind: str) -> None:
        if kind == "undo" and len(self.past) > 1:
            self.future.append(self.past.pop())
        elif kind == "redo" and self.future:
            self.past.append(self.future.pop())
        self.now = self.past[-1]
        self.page = self.documents.read(self.now)
        self._note({"do": kind}, [], self.now)

    def _make(self, kind: str, edit: Edit | list[Edit], path: list[str]) -> None:
        edits = json.loads(json.dumps(as_edits(edit)))
        refused = self._refused(edits, path)
        made = self._written(self.page)
        if refused and made != self.now:
            raise DifferenceError(f"{edits} at {path} is refused, and has changed the page:\n{_two(made, self.now)}")
        if self.chance.random() < ASKED:
            try:
                wanted = _bare(self.documents.edit(self.now, path, edits)[0])
            except vg.VoxgradError as error:
                wanted = self.now if refused else {"refused": str(error)}
            if made != wanted:
                raise DifferenceError(f"{edits} at {path}, in Python and by the server:\n{_two(made, wanted)}")
        self.count[f"{kind} refused" if refused else kind] += 1
        own = edit if isinstance(edit, dict) and edit["do"] in OWN and kind != "display" else {"do": "server"}
        self._note(own, path, None if refused else made)
        if made != self.now:
            self.now, self.future = made, []
            self.past.append(made)

    def _refused(self, edits: list[Edit], path: list[str]) -> bool:
        try:
            _at(self.page, path).apply(page_file.edits_from_data(edits, self.folder))
        except vg.VoxgradError:
            return True
        return False

    def _note(self, edit: Edit, path: list[str], after: Edit | None) -> None:
        self.steps.append({"edit": edit, "path": path, "after": after})

    def _keep(self) -> None:
        """Save the page, open it, look at it, and run it."""
        file = self.folder / "page.vox.json"
        self.page.save(file)
        opened = Page.load(file)
        opened.files = self.page.files
        if self._written(opened) != self.now:
            raise DifferenceError("the page is another one when it is opened")
        if self.chance.random() < ASKED:
            here, there = (sorted(str(one) for one in page.problems()) for page in (self.page, opened))
            # Of rings that share blocks any one may be told.
            if here != there and not any("VG062" in one for one in here + there):
                raise DifferenceError(f"other problems when the page is opened:\n{here}\n{there}")
        self.count["pages with problems" if opened.problems() else "pages without"] += 1
        # The page, or as it was when nothing was wrong with it.
        for back in LOOK_BACK[: len(self.past)]:
            page = self.documents.read(self.past[-min(back, len(self.past))]) if back > 1 else opened
            if not page.problems():
                self.count[run_outcome(page, self.chance)] += 1
                break


def _bare(document: Edit) -> Edit:
    return {key: value for key, value in document.items() if key not in ("format", "version")}


def _two(one: Edit, other: Edit) -> str:
    return f"{json.dumps(one)}\n{json.dumps(other)}"


def _at(page: Page, path: list[str]) -> Page:
    for name in path:
        page = page.pages[name]
    return page


def run_outcome(page: Page, chance: random.Random) -> str:
    """Run a page without problems as `voxgrad run` does, with numbers for its entries."""
    feeds = {Output(one, 0): _numbers(one.output(0), chance) for one in page.blocks if one.op_name == "Placeholder"}
    session = vg.ClientSession(page)
    timer = threading.Timer(RUN_SECONDS, session.cancel)
    timer.start()
    fetches, targets = what_runs(page, [])
    try:
        session.run(fetches, feeds, targets=targets)
    except vg.VoxgradError as error:
        code = error.faults[0].code
        if code not in MAY_REFUSE and not (code in OF_FEEDS and feeds):
            raise DifferenceError(f"a page without problems does not run: {error}") from error
        return f"pages not run, {MAY_REFUSE.get(code, 'a value that was fed is none of those that are allowed')}"
    finally:
        timer.cancel()
    return "pages run"


def _numbers(output: Output, chance: random.Random) -> Any:
    """Something of the type and shape of an output; open sizes are 4."""
    dtype = output.dtype or dtypes.FLOAT32
    shape = [size if isinstance(size, int) else 4 for size in output.shape or ()]
    if dtype == dtypes.STRING:
        return np.full(shape, b"text", object)
    return np.array(chance.choices(range(3), k=int(np.prod(shape))), numpy_type(dtype)).reshape(shape)


@contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), vg.limits(bytes=2**26):
        yield


def go(seed: int, first: int, count: int, most: int = 5) -> tuple[list[str], collections.Counter[str]]:
    """Run sequences; what was found, at most some, and what was counted."""
    found: list[str] = []
    counted: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name, _quiet():
        browser = Browser(Path(name))
        for number in range(first, first + count):
            sequence = Sequence(seed, number, Path(name))
            try:
                sequence.go()
                said = browser.replay(sequence.before, sequence.steps)
                counted += sequence.count
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            if said:
                found.append(f"--seed {seed} --first {number} --sequences 1\n    {said}")
                if len(found) == most:
                    break
            counted["sequences"] += 1
        browser.close()
    return found, counted


def today() -> int:
    """The seed of the day."""
    return int(os.environ.get("VOXGRAD_SEED", datetime.date.today().strftime("%Y%m%d")))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=today())
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sequences", type=int, default=SHARE)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    found, counted = go(given.seed, given.first, given.sequences)
    for what, times in sorted(counted.items()):
        print(f"{times:8,}  {what}")
    print("\n".join(found) or "no difference")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
