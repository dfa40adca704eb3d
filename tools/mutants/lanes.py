# SPDX-License-Identifier: Apache-2.0
"""Copies of the tree in which changes are made, built and tested, one after the other in each copy."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

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

    def test(self) -> tuple[int | None, str]:
        """Run the tests of the area up to the first that fails."""
        tests = [name for name in self.area.tests if (self.folder / name).exists()]
        quiet = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", *self.area.options]
        variables = {
            "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "VOXGRAD_NUM_THREADS": "2",
            "CI": "true",  # Hypothesis makes the same choices every time then
        } | dict(self.area.variables)
        return run([sys.executable, "-m", "pytest", *quiet, *tests], self.folder, variables, self.limit)

    def begin(self) -> float:
        """The tests without a change must pass; their time is what a change gets several times over."""
        began = time.monotonic()
        status, output = self.test()
        if status != PASSED:
            raise SystemExit(f"the tests fail without a change:\n{output}")
        taken = time.monotonic() - began
        self.limit = 60 + 4 * taken
        return taken

    def adopt(self, other: Lane) -> None:
        """Take over what the first lane found out."""
        self.limit = other.limit

    def try_out(self, change: Change) -> tuple[str, str]:
        """What becomes of a change: killed, hung (killed too), survived, or stillborn where it cannot be built."""
        path = self.folder / change.path
        times = path.stat()
        try:
            path.write_bytes(change.changed)
            found = self.build(change)
            if found:
                return found, ""
            status, output = self.test()
        finally:
            path.write_bytes(change.source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if status is None:
            return "hung", ""
        return ("survived", "") if status == PASSED else ("killed", _first_failure(output))

    def build(self, change: Change) -> str:
        """Nothing to do for Python; otherwise why there is nothing to test."""
        return ""


def _first_failure(output: str) -> str:
    """The test that noticed, as pytest names it."""
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:200] if failed else output.strip().splitlines()[-1][:200] if output.strip() else "no output"
