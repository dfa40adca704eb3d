# SPDX-License-Identifier: Apache-2.0
"""The problems of calls on a GPU are kept: a repeated call finds what its kernels prepared."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voxgrad.arrays.fast import MISS
from voxgrad.arrays.gpu import Kept, plan_on_gpu
from voxgrad.arrays.limits import limits
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.catalog.registry import OPS
from voxgrad.catalog.semantics import semantics
from voxgrad.errors import VoxgradError

POOL = OPS["MaxPool3D"]
ATTRS: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
KEPT = Kept(POOL)


@dataclass(frozen=True)
class Described:
    """What is looked at of a tensor."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class Tensor:
    """What the short way looks at of a tensor of torch on a GPU."""

    shape, dtype, is_cuda, requires_grad = (1, 4, 4, 4, 2), "float32", True, False

    def get_device(self) -> int:
        return 0


def problem(sizes: tuple[int, ...] = (1, 4, 4, 4, 2), **attrs: Any) -> Any:
    x = Described(sizes)
    return KEPT.problem(POOL, {"input": x} | ATTRS | attrs, [x], {"input": Spec(dtypes.FLOAT32, sizes)})


def test_the_same_call_is_the_same_problem() -> None:
    assert problem() is problem()
    assert problem() is not problem((1, 4, 4, 4, 3))
    assert problem() is not problem(padding="VALID")


def test_settings_hold_for_kept_problems() -> None:
    plain = problem()
    with semantics("tf_cpu"):
        assert problem() is not plain
    torch = SimpleNamespace(Tensor=Tensor, cuda=SimpleNamespace(OutOfMemoryError=MemoryError))
    calls, given = Kept(POOL), {"input": Tensor()} | ATTRS
    calls.open(torch, lambda kept, tensor: kept)
    assert calls.call(given) is MISS
    made = calls.problem(POOL, given, [given["input"]], {"input": Spec(dtypes.FLOAT32, Tensor.shape)})
    assert calls.call(given) is made
    with limits(bytes=2**40):
        assert calls.call(given) is MISS  # the long way asks how large the result is
    with semantics("tf_cpu"):
        assert calls.call(given) is MISS


def test_a_kept_problem_does_not_hide_a_mistake() -> None:
    problem()
    for strides in ([1.0, 2.0, 2.0, 2.0, 1.0], (1.0, 2.0, 2.0, 2.0, 1.0), np.array(ATTRS["strides"])):
        with pytest.raises(VoxgradError):
            problem(strides=strides)


class OnGpu:
    """An array that says it is CuPy's; nobody looks at more of it."""


OnGpu.__module__ = "cupy"


@pytest.mark.parametrize("name", ["VOXGRAD_CUDA_ENGINE", "VOXGRAD_CUDA_TUNE"])
def test_nonsense_in_the_environment_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "cuDMM")
    with pytest.raises(VoxgradError, match=f"VG003 MaxPool3D: {name} must be .* got 'cuDMM'"):
        plan_on_gpu(POOL, {"input": OnGpu()} | ATTRS)
