# SPDX-License-Identifier: Apache-2.0
"""What only compiled kernels show: products on tensor cores that read registers are waited for before the next load.

Triton loads the left operand of the next step while products of this one may still read it. The interpreter, which
does one thing after the other, cannot show that, and a GPU shows it in one run of many.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

# torch and Triton are installed by `python3 run test --parity`.
pytestmark = pytest.mark.parity


def lines_of(module: str) -> list[list[str]]:
    """What a module of this folder prints, which compiles kernels instead of interpreting them."""
    command = [sys.executable, "-W", "ignore", "-m", f"tests.cuda.{module}"]
    made = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "0"}, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return [line.split(",") for line in made.stdout.splitlines()]


def test_no_register_is_loaded_while_a_product_reads_it() -> None:
    """Upright products read registers, and every loop with such a product waits; products turned over read none."""
    lines = lines_of("compiled")
    assert len(lines) == 7
    for name, products, loops, waiting in lines:
        assert (products == "0") == name.endswith("True"), name
        assert loops == waiting, name


def test_gradients_of_pools_compile_in_every_type() -> None:
    """The interpreter takes steps where compiled kernels have assembly: that must compile, and decides bit by bit.

    Windows of one cell read as much as they write; what they would prefetch would be gone from the cache when read.
    """
    lines = lines_of("compiled_pools")
    assert len(lines) == 20
    for kind, last, what, decided, prefetched, touched in lines:
        if what == "back":
            assert (int(decided) > 0) == (kind != "fp64"), kind
            assert (int(prefetched) > 0) == (kind != "fp64"), kind
            assert (int(touched) > 0) == (last == "True" and kind in ("bf16", "fp16")), kind
        else:
            assert int(prefetched) == (what == "side by side 2"), (kind, last, what)
