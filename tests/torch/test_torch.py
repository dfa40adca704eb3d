# SPDX-License-Identifier: Apache-2.0
"""voxgrad.torch: custom ops that torch itself checks, gradients of gradients, compilation, autocast, layers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

import voxgrad.torch as vt  # noqa: E402
from voxgrad.torch.operators import call  # noqa: E402

# torch is installed by `python3 run test --parity`.
pytestmark = pytest.mark.parity

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CONV = ([1, 2, 1], [1, 1, 1], "SAME", True, "documented")
POOL = ([2, 2, 3], [2, 1, 2], "SAME", True, "documented")


def draw(*shape: int, device: str, seed: int = 0) -> Any:
    """Random float64 that wants a gradient."""
    made = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.to(device).requires_grad_()


def samples(device: str) -> dict[str, tuple[Any, ...]]:
    """One call of every op."""
    x, w = draw(1, 3, 4, 4, 2, device=device), draw(3, 2, 3, 2, 3, device=device, seed=1)
    y = call.conv3d(x, w, *CONV).detach()
    top = call.max_pool(x, *POOL).detach()
    dy = draw(*y.shape, device=device, seed=2)
    small = draw(*top.shape, device=device, seed=3)
    return {
        "conv3d": (x, w, *CONV),
        "conv3d_input": (list(x.shape), w, dy, *CONV),
        "conv3d_filter": (x, list(w.shape), dy, *CONV),
        "avg_pool": (x, *POOL),
        "avg_pool_grad": (list(x.shape), small, *POOL),
        "max_pool": (x, *POOL),
        "max_pool_grad": (x.detach(), top, small, *POOL),
        "max_pool_grad_grad": (x.detach(), top, x, *POOL),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["conv3d", "conv3d_input", "conv3d_filter", "avg_pool", "avg_pool_grad", "max_pool",
                                  "max_pool_grad", "max_pool_grad_grad"])  # fmt: skip
def test_opcheck(name: str, device: str) -> None:
    """torch's own tests of a custom op: schema, autograd registration, fake tensors, dynamic shapes."""
    torch.library.opcheck(getattr(call, name).default, samples(device)[name])


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_gradients(device: str) -> None:
    """First and second order through convolution, pool, convolution equal finite differences in float64."""
    x = draw(1, 2, 4, 4, 4, device=device)
    first, second = draw(3, 3, 3, 2, 2, device=device, seed=1), draw(1, 2, 2, 2, 1, device=device, seed=2)

    def network(x: Any, first: Any, second: Any) -> Any:
        middle = vt.max_pool3d(vt.conv3d(x, first), 2, 2)
        return vt.conv3d(vt.avg_pool3d(middle, 2, 1).tanh(), second, strides=2)

    assert torch.autograd.gradcheck(network, (x, first, second))
    assert torch.autograd.gradgradcheck(network, (x, first, second))


@pytest.mark.parametrize("device", DEVICES)
def test_same_padding_where_torch_agrees(device: str) -> None:
    """With odd windows and stride 1 SAME is torch's padding, so torch is an independent reference there."""
    x, layer = torch.randn(2, 4, 5, 6, 7, device=device), torch.nn.Conv3d(4, 8, 3, padding=1).to(device)
    ours = vt.from_torch(torch.nn.Sequential(layer))
    assert isinstance(ours[0], vt.Conv3dSame) and ours[0].weight is layer.weight
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        torch.testing.assert_close(ours(x), layer(x), rtol=1e-4, atol=1e-4)
    pool = torch.nn.MaxPool3d(2, 2)
    torch.testing.assert_close(vt.from_torch(torch.nn.Sequential(pool))(x), pool(x))


@pytest.mark.parametrize("device", DEVICES)
def test_channels_last_memory(device: str) -> None:
    """A tensor in channels_last_3d order gives the same numbers, again in that order."""
    x = torch.randn(2, 4, 5, 6, 7, device=device)
    y = vt.max_pool3d(x.to(memory_format=torch.channels_last_3d), 3, 2)
    assert y.is_contiguous(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(y.contiguous(), vt.max_pool3d(x, 3, 2))


@pytest.mark.parametrize("device", DEVICES)
def test_autocast(device: str) -> None:
    """Convolutions run in the type of autocast, pools in that of their input."""
    x, layer = torch.randn(1, 2, 4, 4, 4, device=device), vt.Conv3dSame(2, 3, 3).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = layer(x)
        assert y.dtype is torch.bfloat16
        assert vt.max_pool3d(x, 2).dtype is torch.float32
    y.float().sum().backward()
    assert layer.weight.grad.dtype is torch.float32


@pytest.mark.parametrize("device", DEVICES)
def test_compile(device: str) -> None:
    """torch.compile takes the ops without a graph break."""
    layer = torch.nn.Sequential(vt.Conv3dSame(2, 4, 3, stride=2), vt.AvgPool3dSame(2), vt.MaxPool3dSame(2)).to(device)
    x = torch.randn(1, 2, 8, 8, 8, device=device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    compiled(x).sum().backward()
    assert layer[0].weight.grad is not None


def test_wrong_calls() -> None:
    """Mistakes are voxgrad's errors, with its codes."""
    with pytest.raises(ValueError, match="VG"):
        vt.max_pool3d(torch.zeros(1, 1, 4, 4, 4), (2, 2))
    with pytest.raises(ValueError, match="VG"):
        vt.conv3d(torch.zeros(1, 3, 4, 4, 4), torch.zeros(3, 3, 3, 2, 4))
