# SPDX-License-Identifier: Apache-2.0
"""The step of a torch module over a volume in chunks, held against torch's own on the whole of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_predict import NORMS, UNet

torch = pytest.importorskip("torch", reason="the networks are torch's")
pytestmark = pytest.mark.parity
nn, functional = torch.nn, torch.nn.functional
RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 16, 12, 8, 2))
LABELS = RNG.integers(0, 3, (1, 16, 12, 8, 1)).astype(np.int16)
T = RNG.random((1, 16, 12, 8, 3))


def whole(model: Any, loss: Callable[..., Any], *volumes: Any) -> tuple[float, dict[str, Any]]:
    """torch's own loss and gradients."""
    model.zero_grad()
    given = [torch.from_numpy(one.transpose(0, 4, 1, 2, 3).copy()) for one in volumes]
    given = [one if one.is_floating_point() else one.long() for one in given]
    value = loss(model(given[0]), *given[1:])
    value.backward()
    return float(value.detach()), {name: one.grad.numpy() for name, one in model.named_parameters()
                                   if one.grad is not None}  # fmt: skip


def dice(y: Any, t: Any) -> Any:
    p = torch.softmax(y, dim=1)
    above, below = (p * t).sum((2, 3, 4)), (p + t).sum((2, 3, 4))
    return (1 - 2 * above / (below + 1e-5)).mean()


def ignoring(y: Any, t: Any) -> Any:
    return functional.cross_entropy(y, t[:, 0], ignore_index=1) + (y.clamp(-1, 1) ** 2).mean() * 3


class Weighed(nn.Module):  # type: ignore[misc, name-defined]
    """A loss with numbers of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64), ignore_index=0)

    def forward(self, y: Any, t: Any) -> Any:
        return self.each(y, t[:, 0])


LOSSES: dict[str, tuple[Callable[..., Any], Any]] = {
    "mse": (functional.mse_loss, T),
    "l1": (functional.l1_loss, T),
    "logits": (functional.binary_cross_entropy_with_logits, T),
    "sum": (lambda y, t: functional.mse_loss(y, t, reduction="sum") / 7, T),
    "labels": (lambda y, t: functional.cross_entropy(y, t[:, 0].long()), LABELS),
    "ignored": (ignoring, LABELS),
    "weighed": (Weighed(), LABELS),
    "shares": (lambda y, t: functional.cross_entropy(y, t / t.sum(1, keepdim=True)), T),
    "dice": (dice, T),
    "alone": (lambda y: (y**2 + 1).log().mean(), None),
    "apart": (lambda y, t: ((y - y.detach() * t) ** 2).mean(), T),
}


def network(norm: str) -> Any:
    torch.manual_seed(0)
    model = UNet(*NORMS[norm]).double()
    for one in model.modules():
        if isinstance(one, nn.Dropout3d):
            one.p = 0.0
    return model


@pytest.mark.parametrize("norm", NORMS)
def test_the_step_of_a_network(tmp_path: Path, norm: str) -> None:
    """Norms in training take their statistics from the volume, also those of batches."""
    model = network(norm).train()
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "t.npy", LABELS)
    loss = LOSSES["labels"][0]
    value, grads = vg.volumes.value_and_gradients(
        model, loss, volumes={"x": tmp_path / "x.npy", "t": tmp_path / "t.npy"}, chunks=(9, 12, 8), workers=0
    )
    names = [name for name, _ in model.named_parameters()]
    before = {name: one.clone() for name, one in model.named_buffers()}
    wanted, slopes = whole(model, loss, X, LABELS)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    assert len(grads) == len(names)
    for name, found in zip(names, grads, strict=True):
        np.testing.assert_allclose(found, slopes[name], rtol=1e-8, atol=1e-11, err_msg=name)
    assert norm != "batch" or any(not torch.equal(before[name], one) for name, one in model.named_buffers())


@pytest.mark.parametrize("name", LOSSES)
def test_losses(tmp_path: Path, name: str) -> None:
    loss, target = LOSSES[name]
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv3d(2, 3, 3, padding=1), nn.InstanceNorm3d(3, affine=True)).double()
    volumes = [X] if target is None else [X, target]
    files = {}
    for at, one in enumerate(volumes):
        np.save(tmp_path / f"{at}.npy", one)
        files[f"v{at}"] = tmp_path / f"{at}.npy"
    value, (grad,) = vg.volumes.value_and_gradients(model, loss, ["0.weight"], files, chunks=(9, 12, 8), workers=0)
    wanted, slopes = whole(model, loss, *volumes)
    np.testing.assert_allclose(value, wanted, rtol=1e-11)
    np.testing.assert_allclose(grad, slopes["0.weight"], rtol=1e-8, atol=1e-12)


def test_labels_that_are_no_class_are_seen(tmp_path: Path) -> None:
    model = nn.Conv3d(2, 3, 1).double()
    wrong = LABELS.copy()
    wrong[0, 3, 3, 3, 0] = 3
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "t.npy", wrong)
    files = {"x": tmp_path / "x.npy", "t": tmp_path / "t.npy"}
    value, _ = vg.volumes.value_and_gradients(model, LOSSES["labels"][0], volumes=files, chunks=(9, 12, 8), workers=0)
    assert np.isnan(value)


class Shared(nn.Module):  # type: ignore[misc, name-defined]
    """One weight under two names, one that nothing uses, and one that is fixed."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.idle = nn.Conv3d(2, 2, 3, padding=1), nn.Conv3d(2, 2, 3, padding=1), nn.Conv3d(1, 1, 1)
        self.two.weight = self.one.weight
        self.one.bias.requires_grad = False
        for one in self.idle.parameters():
            one.requires_grad = False

    def forward(self, x: Any) -> Any:
        return self.two(torch.relu(self.one(x)))


def test_weights_by_name(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model = Shared().double()
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "t.npy", T[..., :2])
    files = {"x": tmp_path / "x.npy", "t": tmp_path / "t.npy"}
    value, grads = vg.volumes.value_and_gradients(model, functional.mse_loss, volumes=files, workers=0)
    wanted, slopes = whole(model, functional.mse_loss, X, T[..., :2])
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    assert list(slopes) == ["one.weight", "two.bias"]
    for found, slope in zip(grads, slopes.values(), strict=True):
        np.testing.assert_allclose(found, slope, rtol=1e-9, atol=1e-12)
    _, (again,) = vg.volumes.value_and_gradients(model, functional.mse_loss, ["two.weight"], files, workers=0)
    np.testing.assert_array_equal(again, grads[0])
    for wrt, text in ((["three"], "VG067 .*wrt must name parameters of Shared; got 'three'"),
                      (["idle.weight"], r"VG064 .*idle\.weight must be something that")):  # fmt: skip
        with pytest.raises(vg.VoxgradError, match=text):
            vg.volumes.value_and_gradients(model, functional.mse_loss, wrt, files)
    with pytest.raises(vg.VoxgradError, match=r"VG030 .*page must be a page"):
        vg.volumes.value_and_gradients(len, functional.mse_loss, [], files)
    with pytest.raises(vg.VoxgradError, match=r"VG072 .*in training: it draws"):
        vg.volumes.value_and_gradients(nn.Sequential(model, nn.Dropout3d(0.5)), functional.mse_loss, volumes=files)
