# SPDX-License-Identifier: Apache-2.0
"""An op is declared once: one file adds two to the family, and every room has them, and its tests hold them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Some rooms need torch, which is installed by `python3 run test --parity`.
pytestmark = pytest.mark.parity
ROOT = Path(__file__).resolve().parents[2]
GRIDS = (
    "arrays/test_memory.py", "bench/test_cpu.py", "house/test_house.py", "kernels/test_derivatives.py",
    "kernels/test_properties.py", "torch/test_torch.py", "volumes/test_dask.py", "volumes/test_plan.py",
    "volumes/test_run.py",
)  # fmt: skip


def run(folder: Path, *arguments: str) -> None:
    """Tests in a process in which the op is declared from its start, as it is in all that it starts."""
    (folder / "sitecustomize.py").write_text("import tests.house.ninth_op\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "src")))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    made = subprocess.run(command, env=clean | {"PYTHONPATH": path}, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-1000:]


def test_every_room_has_it(tmp_path: Path) -> None:
    run(tmp_path, "tests/house/ninth_op_checks.py")


def test_the_grids_of_tests_hold_it(tmp_path: Path) -> None:
    run(tmp_path, *(f"tests/{name}" for name in GRIDS), "-k", "SumPool3D", "-m", "not slow")
