# SPDX-License-Identifier: Apache-2.0
"""Scripts here: blocks on a page, run by a session; and the comparison of what the steps gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from tests.catalogue.tolerance import distance
from voxgrad.catalog.registry import OPS

from .scripts import FAMILIES, FILES, ONE_RUN, Step, Wire, numbers, script_of


def script_job(name: str, label: str) -> dict[str, Any]:
    """A script around an op, to be run on both sides."""
    family = FAMILIES[name]
    return {"op": name, "kind": "script", "label": label, "call": {}, "steps": script_of(name, label),
            "one_run": family in ONE_RUN, "random": family is numbers}  # fmt: skip


def write_files(folder: str) -> None:
    """The files that scripts read."""
    for name, data in FILES.items():
        (Path(folder) / name).write_bytes(data)


def run_script(job: dict[str, Any]) -> dict[str, Any]:
    """What every step gave, or the first error where all are one run."""
    write_files(job["folder"])
    page = vg.Page("script")
    session = vg.ClientSession(page, cache=False, allow_files=job["folder"], log=lambda line: None)
    made: dict[str, Any] = {}
    answers: list[dict[str, Any]] = []
    shown: list[Any] = []
    for step in job["steps"]:
        block = page.add(OPS[step.op], {name: _source(page, value, made) for name, value in step.inputs.items()},
                         step.attrs, name=step.name)  # fmt: skip
        made[step.name] = block
        if step.shown:
            shown.append(block)
        if step.shown and not job["one_run"]:
            answers.append(_ran(session, [block]))
    if job["one_run"]:
        whole = _ran(session, shown)
        if "error" in whole:
            return {"error": whole["error"]}
        rest = iter(whole["outputs"])
        answers = [{"outputs": [next(rest) for _ in block.outputs]} for block in shown]
    return {"steps": answers}


def _source(page: vg.Page, value: Any, made: dict[str, Any]) -> Any:
    if isinstance(value, Wire):
        return made[value.step].output(value.index)
    if isinstance(value, list):
        return [_source(page, one, made) for one in value]
    return vg.ops.Const(page, value)


def _ran(session: vg.ClientSession, blocks: list[Any]) -> dict[str, Any]:
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


def steps_differ(job: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The first step whose results or refusal differ, in words."""
    if "error" in ours or "error" in theirs:
        refused = ["error" in one or any("error" in step for step in one["steps"]) for one in (ours, theirs)]
        return "" if all(refused) else f"script: {ours!r:.600}\nTensorFlow: {theirs!r:.600}"
    shown = [step for step in job["steps"] if step.shown]
    for step, one, two in zip(shown, ours["steps"], theirs["steps"], strict=True):
        found = _step_differs(job, step, one, two)
        if found:
            return f"step {step.name} {step.op}: {found}"
        if "error" in one or "error" in two:
            return ""  # what the state is after an error is not promised
    return ""


def _step_differs(job: dict[str, Any], step: Step, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
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
        if job["random"]:
            found = _moments_differ(one, two)
            if found:
                return found
        elif distance(one, two, "AddV2") > 16:
            return f"{one!r:.400}\nTensorFlow: {two!r:.400}"
    return ""


def _moments_differ(ours: Any, theirs: Any) -> str:
    """Mean, deviation and range of many random numbers; the same elements where they were only shuffled."""
    if ours.dtype == object or ours.dtype == bool or ours.size < 1000:
        return ""
    left, right = ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel()
    scale = max(1e-9, float(right.std()))
    for name, one, two in (("mean", left.mean(), right.mean()), ("deviation", left.std(), right.std()),
                           ("middle", np.median(left), np.median(right))):  # fmt: skip
        if abs(one - two) > 0.2 * scale:
            return f"{name} {one}, TensorFlow {two}"
    edges = (left.min(), left.max()), (right.min(), right.max())
    return "" if np.allclose(edges[0], edges[1], atol=2 * scale) else f"range {edges[0]}, TensorFlow {edges[1]}"
