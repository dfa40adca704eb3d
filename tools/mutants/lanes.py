# SPDX-License-Identifier: Apache-2.0
"""Copies of the tree in which changes are made, built and tested, one after the other in each copy."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.mutants.areas import ROOT, Area
from tools.mutants.change import Change

MEMORY = 24 * 2**30
"""Bytes of addresses that a changed program may ask for."""
FIRST_LIMIT = 900.0
PASSED, FAILED = 0, 1


def _fit_for_a_change() -> None:
    """In the child: a group of its own, so that all of it can be ended; no core files; not all of the memory."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(command: Sequence[str], folder: Path, variables: dict[str, str], limit: float) -> tuple[int | None, str]:
    """The exit status and the end of the output; no status where it took longer than the limit."""
    child = subprocess.Popen(
        command, cwd=folder, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", preexec_fn=_fit_for_a_change,
    )  # fmt: skip
    try:
        output, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        output = ""
    status = child.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    return status, output[-4000:]


class Lane:
    """One copy of the tree, and an area whose tests run in it."""

    def __init__(self, folder: Path, area: Area):
        self.folder = folder
        self.area = area
        self.limit = FIRST_LIMIT
        self.forks: subprocess.Popen[bytes] | None = None
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE,
            check=True,
        ).stdout.decode()  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and not name.startswith(("web/", "docs/")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for library in (ROOT / "src/voxgrad/kernels").glob("*voxgrad.*"):
            shutil.copy2(library, folder / "src/voxgrad/kernels")

    def _command(self, more: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
        """The arguments for pytest and the variables under which it runs."""
        tests = [name for name in (*self.area.tests, *more) if (self.folder / name).exists()]
        variables = {
            "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "VOXGRAD_NUM_THREADS": "2",
            "CI": "true",  # Hypothesis makes the same choices every time then
        } | dict(self.area.variables)
        return ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", *self.area.options, *tests], variables

    def test(self, more: tuple[str, ...], without: str) -> tuple[int | None, str]:
        """Run the tests of the area in a process of their own, up to the first that fails."""
        arguments, variables = self._command(more)
        kept = [one for one in arguments if not (without and one.startswith("tests/") and without in one)]
        return run([sys.executable, "-m", "pytest", *kept], self.folder, variables, 10 * self.limit)

    def load(self) -> None:
        """Start the process that loads the tests, from sources without a change."""
        arguments, variables = self._command()
        ours, theirs = os.pipe(), os.pipe()
        command = [sys.executable, "-m", "tools.mutants.forked", str(ours[0]), str(theirs[1]), *arguments]
        self.forks = subprocess.Popen(
            command, cwd=self.folder, env=os.environ | variables, stdout=subprocess.DEVNULL,
            pass_fds=(ours[0], theirs[1]),
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self.requests, self.answers = os.fdopen(ours[1], "w"), os.fdopen(theirs[0])
        self.ask(nothing=True)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Run the tests in a child of the process that has loaded them."""
        self.requests.write(json.dumps({"limit": self.limit, "first": []} | request) + "\n")
        self.requests.flush()
        line = self.answers.readline()
        if not line:
            raise SystemExit(f"the tests cannot be loaded: {' '.join(self._command()[0])}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def begin(self, taken: float) -> float:
        """The tests without a change must pass; a change gets twice their processor time, once known."""
        self.load()
        if not taken:
            answer = self.ask()
            if not answer["passed"]:
                raise SystemExit(f"the tests fail without a change: {answer['by']}")
            taken = answer["used"]
        self.limit = 10 + 2 * taken
        return taken

    def adopt(self, other: Lane) -> None:
        """Take over what the first lane found out."""
        self.load()
        self.limit = other.limit

    def end(self) -> None:
        """Nothing is asked for any more."""
        if self.forks is not None:
            self.requests.close()
            self.forks.wait()

    def try_out(self, change: Change, first: list[str], apart: bool) -> tuple[str, str]:
        """What becomes of a change: killed, hung (killed too), stalled, survived, stillborn (cannot be built).

        Hung is what runs on; what only waits has stalled, and may have met a busy machine. `first`: tests to begin
        with. `apart`: in a process of its own where nothing notices in a child, as what is computed while modules load
        is not computed again there.
        """
        path = self.folder / change.path
        times = path.stat()
        try:
            path.write_bytes(change.changed)
            return self.decide(change, first, apart)
        finally:
            path.write_bytes(change.source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def decide(self, change: Change, first: list[str], apart: bool) -> tuple[str, str]:
        """With the changed file in its place: what becomes of it."""
        answer = self.ask(first=first, **self.request(change))
        found = verdict(answer)
        if found[0] != "survived" or not (apart or answer["unchanged"]):
            return found
        status, output = self.test(self.area.more if apart else (), self.without(change))
        if status is None:
            return "stalled", ""
        return ("survived", "") if status == PASSED else ("killed", _first_failure(output))

    def without(self, change: Change) -> str:
        """Whose tests cannot notice: convolutions and pools share few files, which are named after neither."""
        other = {"conv": "pool", "pool": "conv"} if self.area.by_family else {}
        return other.get(Path(change.path).name[:4], "")

    def request(self, change: Change) -> dict[str, Any]:
        """What a child needs to know of a change."""
        path = self.folder / change.path
        return {"path": str(path), "before": change.source.hex(), "without": self.without(change)}


def verdict(answer: dict[str, Any]) -> tuple[str, str]:
    """What the answer of a child means."""
    for state in ("stalled", "hung"):
        if answer[state]:
            return state, answer["by"]
    return ("survived", "") if answer["unchanged"] or answer["passed"] else ("killed", answer["by"])


def _first_failure(output: str) -> str:
    """The test that noticed, as pytest names it."""
    failed = [line.split(" ", 1)[1] for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else output.strip()[-200:]
