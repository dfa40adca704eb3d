# SPDX-License-Identifier: Apache-2.0
"""Chunks of a page where the GPU kernels compute them: the same numbers as on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

import voxgrad as vg  # noqa: E402
from tests.volumes.test_pages import saved, small_unet, volumes_of_unet  # noqa: E402
from voxgrad.graph.device import Device  # noqa: E402
from voxgrad.kernels.arraywise.namespace import moved_to  # noqa: E402
from voxgrad.volumes import work  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`. NumPy warns inside the interpreter.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def make_page() -> vg.Page:
    page = vg.Page("pools")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    pool = {"ksize": [1, 3, 2, 3, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}
    y = vg.ops.MaxPool3D(page, vg.ops.Relu(page, x), **pool)
    back = vg.ops.MaxPool3DGrad(page, x, y, vg.ops.Mul(page, y, np.float32(2)), **pool)
    smooth = vg.ops.AvgPool3D(page, back, ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding="SAME")
    page.expose({"y": vg.ops.Add(page, smooth, x), "sum": vg.ops.Sum(page, smooth, [0, 1, 2, 3, 4])})
    return page


def test_gradients_over_a_volume_on_a_gpu(tmp_path: Path, device: str) -> None:
    if device != "cuda":
        pytest.skip("convolutions choose their kernel by measuring on a GPU")
    page, files = small_unet(), saved(tmp_path, **volumes_of_unet())
    on_cpu, (dw,) = vg.volumes.value_and_gradients(page, "loss", ["w1"], files, chunks=(4, 3, 5), workers=0)
    on_gpu, (dv,) = vg.volumes.value_and_gradients(
        page, "loss", ["w1"], files, chunks=(4, 3, 5), workers=0, device="cuda"
    )
    assert np.allclose(on_gpu, on_cpu, rtol=1e-5)
    assert np.abs(dv - dw).max() <= 1e-4 * np.abs(dw).max()


def test_a_worker_with_a_gpu_uses_its_kernels(tmp_path: Path, device: str, monkeypatch: Any) -> None:
    x = np.random.default_rng(0).standard_normal((1, 6, 5, 7, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    page, files = make_page(), {"x": tmp_path / "x.npy"}
    on_cpu = vg.volumes.run_page(page, files, {"y": tmp_path / "cpu.npy"}, ["sum"], chunks=(4, 3, 5), workers=0)
    seen = []
    # The interpreter's tensors are on the CPU: the way to the kernels is the same.
    monkeypatch.setattr(
        work, "device_named", lambda name: Device(name, lambda array: moved_to(array, torch.empty((), device=device)))
    )
    from voxgrad.kernels.cuda import dispatch

    whole = dispatch.run
    monkeypatch.setattr(dispatch, "run", lambda problem, *tensors: seen.append(problem.op) or whole(problem, *tensors))
    on_gpu = vg.volumes.run_page(
        page, files, {"y": tmp_path / "gpu.npy"}, ["sum"], chunks=(4, 3, 5), workers=0, device="cuda"
    )
    assert {"MaxPool3D", "MaxPool3DGrad", "AvgPool3D"} <= set(seen)
    assert np.allclose(np.load(tmp_path / "gpu.npy"), np.load(tmp_path / "cpu.npy"), rtol=1e-6, atol=1e-6)
    assert np.allclose(on_gpu["sum"], on_cpu["sum"], rtol=1e-5)
