# SPDX-License-Identifier: Apache-2.0
"""Networks over volumes: torch's own result for the whole volume, and MONAI's for windows that are blended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import save_volume

torch = pytest.importorskip("torch", reason="the networks are torch's")
pytestmark = pytest.mark.parity
nn = torch.nn
Array = np.ndarray[Any, Any]


class UNet(nn.Module):  # type: ignore[misc, name-defined]
    """Two levels down and up, as nnU-Net's, with every kind of layer that is promised."""

    def __init__(self, norm: Any, up: str = "transposed") -> None:
        super().__init__()

        def block(inner: int, outer: int) -> Any:
            first = nn.Conv3d(inner, outer, 3, padding=1, bias=False)
            second = nn.Conv3d(outer, outer, (3, 1, 3), padding=(1, 0, 1))
            return nn.Sequential(first, norm(outer), nn.LeakyReLU(0.01, inplace=True), nn.Dropout3d(0.5), second,
                                 norm(outer), nn.PReLU())  # fmt: skip

        self.first, self.second, self.third = block(2, 4), block(4, 8), block(8, 8)
        self.shrink = nn.Conv3d(8, 8, 3, stride=2, padding=1) if up == "transposed" else nn.AvgPool3d(3, 2, 1)
        self.pool = nn.MaxPool3d(2)
        ways = {
            "transposed": nn.ConvTranspose3d(8, 8, 3, stride=2, padding=1, output_padding=1),
            "trilinear": nn.Upsample(scale_factor=2, mode="trilinear"),
            "nearest": nn.Upsample(scale_factor=2, mode="nearest"),
        }
        self.up, self.last = ways[up], block(12, 4)
        self.head = nn.Conv3d(4, 3, 1)

    def forward(self, x: Any) -> Any:
        near = self.first(x)
        middle = self.second(self.pool(near))
        far = self.third(self.shrink(middle))
        back = nn.functional.silu(self.up(far)) + torch.sigmoid(middle) * 2
        wide = nn.functional.interpolate(back, size=near.shape[2:], mode="nearest")
        return torch.softmax(self.head(self.last(torch.cat([wide, near], dim=1))), dim=1)


NORMS: dict[str, tuple[Any, str]] = {
    "instance": (lambda channels: nn.InstanceNorm3d(channels, affine=True), "transposed"),
    "group": (lambda channels: nn.GroupNorm(2, channels), "trilinear"),
    "batch": (lambda channels: nn.BatchNorm3d(channels), "nearest"),
}
X = np.random.default_rng(0).standard_normal((1, 16, 12, 8, 2)).astype(np.float32)


def network(norm: str) -> Any:
    torch.manual_seed(0)
    model = UNet(*NORMS[norm])
    for one in model.modules():
        if hasattr(one, "running_mean") and one.running_mean is not None:
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2)
    return model.eval()


def whole(model: Any, x: Array) -> Array:
    """The dense result [N, D, H, W, C]."""
    with torch.no_grad():
        made = model(torch.from_numpy(x.transpose(0, 4, 1, 2, 3).copy()))
    return np.asarray(made.numpy().transpose(0, 2, 3, 4, 1))


@pytest.mark.parametrize("norm", NORMS)
def test_the_result_of_the_whole_volume(tmp_path: Path, norm: str) -> None:
    model = network(norm)
    affine = np.array([[0, 2.0, 0, 5], [-1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])
    save_volume(tmp_path / "x.nii", X, like=placed(affine))
    import voxgrad.torch as vt

    given = vt.from_torch(network(norm)) if norm == "instance" else model
    found = vg.volumes.predict(given, tmp_path / "x.nii", tmp_path / "y.nii", chunks=(9, 12, 8), workers=0)
    wanted = whole(model, X)
    assert found.shape == wanted.shape
    # 4 ulp times the square root of the terms of the largest convolution, of values around 1.
    np.testing.assert_allclose(found.read(), wanted, atol=4 * 2**-24 * np.sqrt(27 * 12), rtol=0)
    np.testing.assert_allclose(found.affine, affine)


def test_a_limit_of_memory_chooses_chunks(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4), nn.Conv3d(4, 1, 3)).eval()
    x = np.random.default_rng(1).standard_normal((1, 40, 40, 40, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    seen: list[int] = []
    limit = 150 * 2**20 + 40**3 * 4 * 8
    found = vg.volumes.predict(
        model, tmp_path / "x.npy", tmp_path / "y.npy", memory=limit, workers=0,
        progress=lambda done, total, _: seen.append(total),
    )  # fmt: skip
    assert seen[-1] > 2, "one chunk a pass would not fit"
    np.testing.assert_allclose(found.read(), whole(model, x), atol=1e-5)


def test_a_page_is_a_network_too(tmp_path: Path) -> None:
    page = vg.Page("net")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="scan")
    page.expose({"flat": vg.ops.Sub(page, x, vg.ops.Mean(page, x, [1, 2, 3], keep_dims=True))})
    np.save(tmp_path / "x.npy", X)
    found = vg.volumes.predict(page, tmp_path / "x.npy", tmp_path / "y.npy", chunks=(9, 12, 8), workers=0)
    np.testing.assert_allclose(found.read(), X - X.mean((1, 2, 3), keepdims=True), atol=1e-6)
    page.expose({"flat": page.outputs["flat"], "x": x})
    with pytest.raises(vg.InvalidArgumentError, match="one placeholder and one output"):
        vg.volumes.predict(page, tmp_path / "x.npy", tmp_path / "z.npy")


class Odd(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Any) -> Any:
        return self.what(x)


REFUSED = {
    "fft": lambda x: torch.fft.fftn(x).real,
    "ceil_mode": lambda x: nn.functional.max_pool3d(x, 3, ceil_mode=True),
    "align_corners": lambda x: nn.functional.interpolate(x, scale_factor=2, mode="trilinear", align_corners=True),
    "2 results": lambda x: (x, x + 1),
    "RuntimeError": lambda x: nn.functional.conv3d(x, torch.zeros(1, 7, 1, 1, 1, device=x.device)),
}


def test_what_has_no_block_is_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for word, what in REFUSED.items():
        with pytest.raises(vg.errors.VoxgradError, match=word) as caught:
            vg.volumes.predict(Odd(what), tmp_path / "x.npy", tmp_path / "y.npy")
        assert "window=" in str(caught.value), word
    with pytest.raises(vg.InvalidArgumentError, match="VG030"):
        vg.volumes.predict(len, tmp_path / "x.npy", tmp_path / "y.npy")
    with pytest.raises(vg.InvalidArgumentError, match="weights of one type"):
        vg.volumes.predict(nn.Conv3d(2, 1, 1).half(), tmp_path / "x.npy", tmp_path / "y.npy")
    with pytest.raises(vg.InvalidArgumentError, match="be given with window"):
        vg.volumes.predict(nn.Conv3d(2, 1, 1), tmp_path / "x.npy", tmp_path / "y.npy", blend="gaussian")
    assert not (tmp_path / "y.npy").exists()


WAYS: list[tuple[tuple[int, ...], float, str]] = [
    ((8, 8, 8), 0.25, "constant"), ((8, 12, 4), 0.5, "gaussian"), ((24, 8, 16), 0.6, "gaussian"),
]  # fmt: skip


def test_windows_are_monai_s(tmp_path: Path) -> None:
    inferers = pytest.importorskip("monai.inferers", reason="an independent implementation, where it is installed")
    model = nn.Sequential(nn.Conv3d(2, 3, 3, padding=1), nn.InstanceNorm3d(3), nn.ReLU()).train()
    x = np.concatenate([X, X[:, ::-1]])
    np.save(tmp_path / "x.npy", x)
    for number, (window, overlap, blend) in enumerate(WAYS):
        found = vg.volumes.predict(
            model, tmp_path / "x.npy", tmp_path / f"{number}.npy", window=window, overlap=overlap, blend=blend
        )
        wanted = whole(lambda given, how=(window, 1, model, overlap, blend): inferers.sliding_window_inference(
            given, *how), x)  # fmt: skip
        np.testing.assert_allclose(found.read(), wanted, atol=1e-6, err_msg=f"{window} {blend}")
    assert model.training, "the model is left as it was"


def test_mirrors_are_the_mean_over_all_turns(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = nn.Conv3d(2, 3, 3, padding=1).eval()
    np.save(tmp_path / "x.npy", X)
    found = vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "y.npy", window=X.shape[1:4], mirror=(0, 2))
    turns = [np.flip(whole(model, np.flip(X, axes).copy()), axes) for axes in ((), (1,), (3,), (1, 3))]
    np.testing.assert_allclose(found.read(), np.mean(turns, axis=0), atol=1e-6)


class StopError(Exception):
    """Raised where a test stops a run."""


def test_windows_go_on_where_they_were_stopped(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = nn.Conv3d(2, 3, 3, padding=1).eval()
    np.save(tmp_path / "x.npy", X)
    how: dict[str, Any] = {"window": (6, 8, 8), "overlap": 0.5, "blend": "gaussian"}
    wanted = vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "whole.npy", **how).read()

    def stop(done: int, total: int, seconds: float) -> None:
        raise StopError

    for _ in range(3):
        with pytest.raises(StopError):
            vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "y.npy", progress=stop, **how)
    with pytest.raises(vg.InvalidArgumentError, match="belong to this very run"):
        vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "y.npy", window=(8, 8, 8))
    found = vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "y.npy", **how)
    assert found.read().tobytes() == wanted.tobytes()
    with pytest.raises(StopError):
        vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "z.npy", progress=stop, **how)
    damaged = np.load(tmp_path / "z.npy", mmap_mode="r+")
    damaged[0, 0] += 1
    damaged.flush()
    with pytest.raises(vg.InvalidArgumentError, match="VG075"):
        vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "z.npy", **how)
    with pytest.raises(vg.InvalidArgumentError, match="VG051 predict: memory"):
        vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "m.npy", memory=1000, **how)
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.volumes.predict(model, tmp_path / "x.npy", tmp_path / "n.npy", window=(6, 8), overlap=1.0, blend="mean",
                           mirror=(3,))  # fmt: skip
    assert {fault.argument for fault in caught.value.faults} == {"window", "overlap", "blend", "mirror"}
