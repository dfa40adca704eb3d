# SPDX-License-Identifier: Apache-2.0
"""Random hostile calls in a process of their own. VOXGRAD_FUZZ sets their number."""

import os
import subprocess
import sys

import pytest

CALLS = os.environ.get("VOXGRAD_FUZZ", "5000")


@pytest.mark.parametrize("calls", [CALLS, pytest.param("20000", marks=pytest.mark.slow)])
def test_hostile_calls(calls: str) -> None:
    seed = os.environ.get("VOXGRAD_FUZZ_SEED", "1")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "voxgrad.testing.hostile", "--calls", calls, "--seed", seed],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    answered, refused = int(done.stdout.split()[0]), int(done.stdout.split()[2])
    assert answered + refused == int(calls)
    assert min(answered, refused) > int(calls) // 5
