# SPDX-License-Identifier: Apache-2.0
"""Scripts here: blocks on a page, run by a session; and the comparison of what the steps gave."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from tests.catalogue.tolerance import distance
from voxgrad.catalog.registry import OPS

from .scripts import FAMILIES, FILES, ONE_RUN, WITH_FILES, Wire, script_of

Job = dict[str, Any]
NARROW = ("float16", "bfloat16", "float32", "complex64")
"""Types in which TensorFlow may round after every operation; here once, at the end."""


def script_job(name: str, label: str, folder: str) -> Job:
    """A script around an op, to be run on both sides, in folders of their own."""
    return {"op": name, "kind": "script", "label": label, "call": {}, "steps": script_of(name, label), "folder": folder,
            "files": FILES if FAMILIES[name] in WITH_FILES else {}, "one_run": FAMILIES[name] in ONE_RUN,
            "patience": 300}  # fmt: skip


def write_files(folder: str, files: dict[str, bytes]) -> None:
    """The files that a script reads."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (Path(folder) / name).write_bytes(data)


def run_script(job: Job) -> Job:
    """What every step gave, or the first error where all are one run."""
    folder = f"{job['folder']}/here"
    write_files(folder, job["files"])
    page = vg.Page("script")
    session = vg.ClientSession(page, cache=False, allow_files=folder, log=lambda line: None)
    made: dict[str, Any] = {}
    answers: list[Job] = []
    shown: list[Any] = []
    for step in job["steps"]:
        block = page.add(OPS[step.op], {name: _source(page, value, made) for name, value in step.inputs.items()},
                         step.attrs, name=step.name)  # fmt: skip
        made[step.name] = block
        if step.shown:
            shown.append(block)
        if step.shown and not job["one_run"]:
            answers.append([_ran(session, [block]) for _ in range(step.times)][-1])
    if job["one_run"]:
        whole = _ran(session, shown)
        if "error" in whole:
            return {"error": whole["error"]}
        rest = iter(whole["outputs"])
        answers = [{"outputs": [next(rest) for _ in block.outputs]} for block in shown]
    return {"steps": answers}


def _source(page: vg.Page, value: Any, made: Job) -> Any:
    if isinstance(value, Wire):
        return made[value.step].output(value.index)
    if isinstance(value, list):
        return [_source(page, one, made) for one in value]
    return vg.ops.Const(page, value)


def _ran(session: vg.ClientSession, blocks: list[Any]) -> Job:
    outputs = [output for block in blocks for output in block.outputs]
    try:
        if len(blocks) == 1 and blocks[0].op_name == "RefSwitch":
            return {"outputs": [_way(session, output) for output in outputs]}
        return {"outputs": session.run(outputs, targets=[block for block in blocks if not block.outputs])}
    except vg.VoxgradError as error:
        return {"error": str(error)}


def _way(session: vg.ClientSession, output: Any) -> Any:
    try:
        return session.run(output)
    except vg.VoxgradError as error:
        if "dead" in str(error):
            return None
        raise


def steps_differ(job: Job, ours: Job, theirs: Job, ask: Callable[[Job], Job]) -> str:
    """The first step whose results or refusal differ, in words. `ask` puts another question to TensorFlow."""
    found = _first_difference(job, ours, theirs, ask)
    if "DeadlineExceeded" in found:
        # What waits for ever is refused here at once. Whatever else took too long met a busy machine.
        found = _first_difference(job, ours, ask({**job, "patience": 20_000}), ask)
    return found


def _first_difference(job: Job, ours: Job, theirs: Job, ask: Callable[[Job], Job]) -> str:
    if "error" in ours or "error" in theirs:
        refused = ["error" in one or any("error" in step for step in one["steps"]) for one in (ours, theirs)]
        return "" if all(refused) else f"script: {ours!r:.600}\nTensorFlow: {theirs!r:.600}"
    shown = [step for step in job["steps"] if step.shown]
    wide = cache(lambda: ask({**job, "kind": "wide script"}))
    for index, (step, one, two) in enumerate(zip(shown, ours["steps"], theirs["steps"], strict=True)):
        found = _step_differs(job["op"], one, two)
        if found.startswith("value") and _rounded_once(one, index, wide):
            continue
        if found:
            return f"step {step.name} {step.op}: {found}"
        if "error" in one or "error" in two:
            return ""  # what the state is after an error is not promised
    return ""


def _step_differs(op: str, ours: Job, theirs: Job) -> str:
    if "No OpKernel" in theirs.get("error", ""):
        return ""  # declared there, and not on its CPU
    if "error" in ours or "error" in theirs:
        return "" if "error" in ours and "error" in theirs else f"{ours!r:.500}\nTensorFlow: {theirs!r:.500}"
    if len(ours["outputs"]) != len(theirs["outputs"]):
        return f"{ours!r:.500}\nTensorFlow: {theirs!r:.500}"
    for one, two in zip(ours["outputs"], theirs["outputs"], strict=True):
        if one is None or two is None:
            if one is not two:
                return f"{one!r}\nTensorFlow: {two!r}"
            continue
        one, two = np.asarray(one), np.asarray(two)
        if one.dtype != two.dtype or one.shape != two.shape:
            return f"{one!r:.300}\nTensorFlow: {two!r:.300}"
        if distance(one, two, op) > 16:
            return f"value {one!r:.400}\nTensorFlow: {two!r:.400}"
    return ""


def _rounded_once(ours: Job, index: int, wide: Callable[[], Job]) -> bool:
    """Whether a step gave here what TensorFlow gives in double precision, rounded at the end."""
    if any(np.asarray(one).dtype.name not in NARROW for one in ours["outputs"]):
        return False
    steps = wide().get("steps", ())
    if len(steps) <= index or "error" in steps[index]:
        return False
    for one, two in zip(map(np.asarray, ours["outputs"]), map(np.asarray, steps[index]["outputs"]), strict=True):
        with np.errstate(all="ignore"):
            rounded = two.astype(one.dtype)
        if distance(one, rounded, "AddV2") > 2:
            return False
    return True
