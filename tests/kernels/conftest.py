# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Iterator

import pytest

from voxgrad.kernels import cpu


@pytest.fixture(params=cpu.instruction_sets() or ["none"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set that this CPU has, one after the other; the NumPy path where nothing was built."""
    loaded = cpu.library()
    if loaded is not None:
        cpu.use_isa(request.param)
        yield request.param
        cpu.use_isa(os.environ.get("VOXGRAD_ISA", ""))
    else:
        yield request.param


@pytest.fixture
def threads() -> Iterator[None]:
    """Puts the number of threads back."""
    before = cpu.get_num_threads()
    yield
    cpu.set_num_threads(before)
