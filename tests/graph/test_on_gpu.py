# SPDX-License-Identifier: Apache-2.0
"""A session on a GPU gives what a session on the CPU gives: forward, gradients to second order, training."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="a session on a GPU needs torch")
if not torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("needs a GPU", allow_module_level=True)

import voxgrad as vg  # noqa: E402
from voxgrad import ops  # noqa: E402
from voxgrad.graph.page import Page  # noqa: E402

POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
CONV: dict[str, Any] = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 8, 8, 8, 4)).astype(np.float32)
W = RNG.standard_normal((3, 3, 3, 4, 8)).astype(np.float32)


def training_page(dtype: str) -> Page:
    page = Page("train")
    x = ops.Placeholder(page, dtype=dtype, shape=["N", "D", "H", "W", 4], name="x")
    w = ops.VariableV2(page, shape=list(W.shape), dtype=dtype, name="w")
    page.start_with([ops.Assign(page, w, ops.Cast(page, W, DstT=dtype), name="first").block])
    pool = ops.MaxPool3D(page, ops.Conv3D(page, x, w, **CONV, name="conv"), **POOL, name="pool")
    mean = ops.AvgPool3D(page, ops.Square(page, pool), **POOL, name="mean")
    loss = ops.Mean(page, mean, [0, 1, 2, 3, 4], name="loss")
    dx, dw = vg.gradients([loss], [x, w])
    assert dx is not None and dw is not None
    (ddx,) = vg.gradients([dx], [x])
    assert ddx is not None
    page.expose({"pool": pool, "loss": loss, "dx": dx, "dw": dw, "ddx": ddx})
    ops.ApplyGradientDescent(page, w, 0.01, dw, name="step")
    return page


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 2e-3), ("bfloat16", 0.1)])
def test_a_gpu_gives_what_the_cpu_gives(dtype: str, tolerance: float) -> None:
    page = training_page(dtype)
    assert page.problems() == []
    sessions = [vg.ClientSession(page, device) for device in ("cpu", "cuda")]
    for _ in range(3):
        here, there = (one.run(list(page.outputs.values()), {"x": X}, targets=["step"]) for one in sessions)
        for name, wanted, found in zip(page.outputs, here, there, strict=True):
            assert isinstance(found, np.ndarray) and found.dtype == wanted.dtype and found.shape == wanted.shape
            scale = max(float(np.abs(np.float64(wanted)).max()), 1e-3)
            gap = float(np.abs(np.float64(found) - np.float64(wanted)).max())
            assert gap <= tolerance * scale, (name, gap, scale)
    assert sessions[1].state.variables["w"].is_cuda, "the variable stays on the device"


def test_reasons_and_results_on_a_gpu() -> None:
    page = training_page("float32")
    session = vg.ClientSession(page, "cuda")
    session.run("pool", {"x": X})
    session.run("pool", {"x": X})
    assert {one.block: one.state for one in session.report}["pool"] == "cached", "the variable was not assigned"
    plain = Page("plain")
    y = ops.Conv3D(plain, ops.Const(plain, X), W, **CONV, name="conv")
    session = vg.ClientSession(plain, "cuda:0")
    first = session.run(y)
    assert session.run(y).tolist() == first.tolist()
    assert {one.block: one.state for one in session.report}["conv"] == "cached"
    value = session.value(y)
    assert value is not None and value.tolist() == first.tolist()
    wrong = Page("wrong")
    ops.FloorDiv(wrong, ops.Const(wrong, [1]), ops.Const(wrong, [0]), name="quotient")
    with pytest.raises(vg.VoxgradError, match="quotient"):
        vg.ClientSession(wrong, "cuda").run("quotient")
