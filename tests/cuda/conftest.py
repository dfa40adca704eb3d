# SPDX-License-Identifier: Apache-2.0
"""Kernels for the GPU, run without one: Triton's interpreter executes them on CPU tensors.

With a GPU they are compiled and run there; TRITON_INTERPRET=1 chooses the interpreter there too.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest


def _has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def pytest_ignore_collect() -> None:
    """Triton reads the switch when a kernel is declared: set it before any module of this folder is imported."""
    if "TRITON_INTERPRET" not in os.environ:
        os.environ["TRITON_INTERPRET"] = "0" if _has_gpu() else "1"


@pytest.fixture
def device() -> str:
    """Where tensors live: on the CPU for the interpreter, else on the GPU."""
    return "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"


@pytest.fixture(autouse=True)
def poison() -> Iterator[None]:
    """New memory is NaN, or the largest integer, so that what a kernel does not write is seen."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("triton") is None:
        yield
        return
    from tests.cuda.sweep import poisoned

    with poisoned():
        yield
