# SPDX-License-Identifier: Apache-2.0
"""The script at the root: what it installs for which tests, and that it leaves the machine alone unless it is asked."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


DEFAULT = "not parity and (browser or not slow)"


class Machine:
    """Notes every command instead of running it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, tools: tuple[str, ...] = ("npm", "apt-get")):
        self.commands: list[list[str]] = []
        self.built: list[str] = []
        self.script = runpy.run_path(str(ROOT / "run"), run_name="script")
        functions = self.script["test"].__globals__
        for name in ("tests", "web", "pyproject.toml", "setup.py"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv/bin").mkdir(parents=True)
        (folder / "native").mkdir()
        (folder / ".venv/bin/python").touch()
        monkeypatch.chdir(ROOT)
        monkeypatch.delenv("CHROMIUM", raising=False)
        monkeypatch.setattr(subprocess, "run", self._run)
        monkeypatch.setitem(functions, "kernels", self._kernels)
        monkeypatch.setitem(functions, "ROOT", folder)
        monkeypatch.setattr(functions["shutil"], "which", lambda name: name if name in tools else None)

    def _kernels(self, kind: str = "", sets: list[str] | None = None) -> Path:
        self.built.append(kind or " ".join(sets or ["all"]))
        return ROOT / "library"

    def _run(self, command: list[str], **_: Any) -> Any:
        self.commands.append(list(map(str, command)))
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    def test(self, *arguments: str) -> list[str]:
        """The last command: pytest's."""
        self.script["test"](list(arguments))
        return self.commands[-1]

    def ran(self, *words: str) -> bool:
        return any(all(word in command for word in words) for command in self.commands)

    @property
    def extras(self) -> set[str]:
        targets = [command[-1] for command in self.commands if "install" in command and "pip" in command]
        return {one for target in targets for one in target.partition("[")[2].rstrip("]").split(",")}


def test_a_file_installs_no_more_than_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    command = machine.test("tests/kernels/test_bad_calls.py::test_verdict", "-k", "studio")
    named = "tests/kernels/test_bad_calls.py::test_verdict"
    assert command[1:] == ["-m", "pytest", "-m", DEFAULT, named, "-k", "studio"]
    assert machine.extras == {"test"} and not machine.ran("npm") and not machine.ran("apt-get")


def test_the_fast_lane_installs_pytest_and_hypothesis_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    command = machine.test("--fast", "-x")
    assert "--fast" not in command and "-x" in command and "tests/graph/test_page.py" in command
    assert all((ROOT / name).exists() for name in command if name.startswith("tests/"))
    assert machine.extras == {"test"} and not machine.ran("npm") and not machine.ran("apt-get")


def test_the_machine_is_changed_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert machine.test()[1:] == ["-m", "pytest", "-m", DEFAULT, "-n", "3", *machine.script["IN_PARALLEL"]]
    assert machine.test("--fast")[-4] == "2"
    assert machine.extras == {"dev", "studio", "volumes"} and not machine.ran("apt-get")
    machine.test("tests/studio")
    assert not machine.ran("apt-get")
    assert DEFAULT in machine.test("--browser-setup")
    assert machine.ran("apt-get", "install", "chromium")
    assert "run test --browser-setup" in (ROOT / ".ci/run").read_text()


def test_what_is_installed_already_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    machine.test()
    machine.commands.clear()
    machine.test("--fast")
    machine.test("tests/formats")
    assert machine.extras == set()
    machine.test("--parity")
    assert machine.extras == {"dev", "studio", "volumes", "parity"}


def test_random_calls_are_others_every_day(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine, seeds = Machine(monkeypatch, tmp_path), list[str | None]()
    functions = machine.script["test"].__globals__
    monkeypatch.delenv("VOXGRAD_SEED", raising=False)
    monkeypatch.setitem(functions, "call", lambda *_, **variables: seeds.append(variables.get("VOXGRAD_SEED")))
    for lane in ("--parity", "--differential"):
        machine.script["test"]([lane])
    assert int(seeds[0] or 0) > 739_000 and seeds[1] == seeds[0]
    assert f"VOXGRAD_SEED={seeds[0]} repeats them" in capsys.readouterr().err
    monkeypatch.setenv("VOXGRAD_SEED", "7")
    machine.script["test"](["--parity"])
    assert seeds[2] is None
    assert machine.script["LANES"]["--parity"].marker == "parity and not slow"
    assert "run test --parity" in (ROOT / ".ci/run").read_text()


def test_the_library_is_built_beside_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    monkeypatch.setattr(machine.script["native"], "runnable", lambda: ["baseline", "avx2", "avx512"])
    for command in ("demo", "studio"):
        machine.script[command]([])
    machine.test("tests/formats")
    machine.test("--sanitize=thread")
    assert machine.built == ["avx2", "avx512", "all", "thread"]


def test_the_tour_takes_the_kernels_that_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, tmp_path)
    sources = tmp_path / "native"
    (sources / "kernel.hpp").write_text("int a;")
    (tmp_path / "build").mkdir()
    monkeypatch.setattr(machine.script["native"], "PLACE", tmp_path / "library")
    monkeypatch.setattr(machine.script["native"], "runnable", lambda: ["baseline", "avx2", "avx512"])
    made = machine.script["fingerprint"](sources)
    (tmp_path / "build/kernels.stamp").write_text(f"{made} avx512")
    machine.script["demo"]([])
    (tmp_path / "library").touch()
    machine.script["demo"]([])
    (sources / "kernel.hpp").write_text("int b;")
    machine.script["demo"]([])
    assert machine.built == ["avx2", "avx512", "avx2"]


def test_tests_are_collected_without_plugins() -> None:
    """As `run mutants` loads them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/house/test_grouped.py"]
    told = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True
    )
    assert told.returncode == 0, told.stdout.decode()
