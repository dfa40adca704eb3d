# SPDX-License-Identifier: Apache-2.0
"""Kernels for the GPU, run without one: Triton's interpreter executes them on CPU tensors.

The interpreter is chosen when Triton is imported, so the whole folder is skipped where somebody imported it before
without TRITON_INTERPRET=1. `tests/cuda/test_in_interpreter.py` runs the folder in a process of its own then.
"""

from __future__ import annotations

import os
import sys

import pytest


def pytest_ignore_collect() -> None:
    """Set the switch before any module of this folder is imported."""
    if "triton" not in sys.modules:
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def device() -> str:
    """Where tensors live: the GPU if the interpreter was switched off by hand, else the CPU."""
    return "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
