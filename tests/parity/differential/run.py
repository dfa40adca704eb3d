# SPDX-License-Identifier: Apache-2.0
"""Runs calls of ops here and in TensorFlow and collects what differs."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import voxgrad as vg
from voxgrad.catalog.registry import OPS

from . import ours as here
from .child import TensorFlow
from .compare import NO_KERNEL, difference
from .coverage import Reach
from .draw import Draw, Kernels, as_arrays
from .hints import HINTS
from .known import explain
from .scripts import FAMILIES
from .session import run_script, script_job, steps_differ
from .slopes import Job, against_differences, differentiable, gradient_jobs, slopes_differ
from .spoil import spoiled

SEED = int(os.environ.get("VOXGRAD_SEED", "1"))
CALLS = int(os.environ.get("VOXGRAD_PARITY_CALLS", "30"))


def pure_ops() -> list[str]:
    """The ops that need no session."""
    return list(vg.raw_ops.__all__)


@dataclass
class Report:
    """What a run found."""

    calls: int = 0
    accepted: int = 0
    found: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    reached: dict[str, Reach] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Join another report."""
        self.calls, self.accepted = self.calls + other.calls, self.accepted + other.accepted
        self.found += other.found
        self.explained += other.explained
        for name, reach in other.reached.items():
            self.reached.setdefault(name, Reach()).add(reach)

    def note(self, job: Job, ours: Job, theirs: Job) -> None:
        """Count an answered call."""
        self.calls += 1
        self.accepted += not _refused(theirs)
        if job["kind"] == "run":
            computed = not _refused(ours) and not _refused(theirs)
            no_kernel = any(words in theirs.get("error", "") for words in NO_KERNEL)
            self.reached.setdefault(job["op"], Reach()).note(job, computed, no_kernel)


def _refused(answer: Job) -> bool:
    return any("error" in one for one in (answer, *answer.get("steps", ())))


def jobs_of(name: str, seed: int, calls: int, kernels: Kernels = ()) -> list[Job]:
    """Calls of an op; a third of them broken."""
    made = []
    for number in range(calls):
        label = f"{name}/{seed}/{number}"
        call = Draw(OPS[name], label, HINTS.get(name, {}), kernels=kernels).call()
        broken = number % 3 == 2
        if broken:
            call = spoiled(OPS[name], call, label)
        made.append({"op": name, "call": as_arrays(call), "kind": "run", "label": label, "broken": broken})
    return made


def run_op(tensorflow: TensorFlow, name: str, seed: int, calls: int) -> Report:
    """Results and refusals of an op."""
    jobs = jobs_of(name, seed, calls, tensorflow.ask({"op": name, "kind": "kernels"})[0]["outputs"])
    return _run(tensorflow, jobs, lambda *found: [difference(*found, _asked(tensorflow))])


def run_slopes(tensorflow: TensorFlow, name: str, seed: int, calls: int) -> Report:
    """Derivatives of an op."""
    jobs = gradient_jobs(name, seed, calls)
    return _run(tensorflow, jobs, lambda *found: [slopes_differ(*found), against_differences(found[0], found[2])])


def run_scripts(tensorflow: TensorFlow, name: str, seed: int, calls: int) -> Report:
    """Scripts around an op that needs a session, step by step."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [script_job(name, f"{name}/{seed}/s{number}", f"{folder}/{number}") for number in range(calls)]
        return _run(tensorflow, jobs, lambda *found: [steps_differ(*found, _asked(tensorflow))])


def _asked(tensorflow: TensorFlow) -> Callable[[Job], Any]:
    return lambda job: tensorflow.ask(job)[0]


def _run(tensorflow: TensorFlow, jobs: list[Job], differences: Callable[[Job, Job, Job], list[str]]) -> Report:
    """Have jobs answered on both sides at once, and sort what differs into explained and found."""
    report = Report()
    tensorflow.send(jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = [run_script(job) if job["kind"] == "script" else here.answer(job) for job in jobs]
        for job, ours, theirs in zip(jobs, mine, tensorflow.answers(), strict=True):
            report.note(job, ours, theirs)
            for found in filter(None, differences(job, ours, theirs)):
                reason = explain(job, ours, theirs, found)
                if reason:
                    report.explained[reason] += 1
                else:
                    report.found.append(f"{job['label']}\n{show(job)}\n{found}")
    return report


PARTS: dict[str, tuple[Any, list[str], int]] = {
    "values": (run_op, pure_ops(), 1),
    "slopes": (run_slopes, [name for name in pure_ops() if differentiable(name)], 6),
    "scripts": (run_scripts, list(FAMILIES), 3),
}
"""What can be run, on which ops, and how many calls there are to one of it."""


def show(job: Job) -> str:
    """A call or a script, to be read."""
    if job["kind"] == "script":
        return "\n".join(f"  {step}" for step in job["steps"])
    return "  " + ", ".join(f"{name}={value!r}" for name, value in job["call"].items()).replace("\n", "\n  ")
