# SPDX-License-Identifier: Apache-2.0
"""What can run a page on this machine, found out without importing it: frameworks are loaded in workers only."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import subprocess
import sys

from voxgrad import __version__
from voxgrad.kernels import cpu
from voxgrad.studio import messages

_PROBE = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 3)"


def found() -> list[messages.EngineData]:
    """All engines, also those that cannot run here, with the reason."""
    native = cpu.library() is not None
    kernels = f"native {cpu.isa_name()}" if native else "NumPy reference"
    return [
        messages.EngineData(name="cpu", available=True, why_not="", version=f"voxgrad {__version__}, {kernels}"),
        _cuda(),
        _package("tensorflow", ("tensorflow", "tensorflow-cpu")),
        _package("torch", ("torch",)),
    ]


def _version(names: tuple[str, ...]) -> str:
    for name in names:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _package(name: messages.Engine, packages: tuple[str, ...]) -> messages.EngineData:
    there = importlib.util.find_spec(name) is not None
    why = "" if there else f"{name} is not installed: pip install {packages[-1]}"
    return messages.EngineData(name=name, available=there, why_not=why, version=_version(packages) if there else "")


def _cuda() -> messages.EngineData:
    if importlib.util.find_spec("torch") is None:
        why = "torch is not installed: pip install 'voxgrad[cuda]'"
        return messages.EngineData(name="cuda", available=False, why_not=why, version="")
    there = _cuda_is_there()
    why = "" if there else "torch sees no CUDA device"
    return messages.EngineData(name="cuda", available=there, why_not=why, version=_version(("torch",)) if there else "")


@functools.cache
def _cuda_is_there() -> bool:
    """Asks torch in a process of its own, once."""
    try:
        return subprocess.run([sys.executable, "-c", _PROBE], timeout=60, capture_output=True).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
