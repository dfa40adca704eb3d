# SPDX-License-Identifier: Apache-2.0
"""voxgrad.torch: custom ops that torch itself checks, gradients of gradients, compilation, autocast, layers."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

import voxgrad.torch as vt  # noqa: E402
from tests.graph.test_wrong_calls import PLAIN_CALLS, wrong_plain_calls  # noqa: E402
from voxgrad.catalog.model import Op, Side  # noqa: E402
from voxgrad.catalog.registry import FAMILY, OPS  # noqa: E402
from voxgrad.testing.calls import operands  # noqa: E402
from voxgrad.torch.rules import operator  # noqa: E402

# torch is installed by `python3 run test --parity`.
pytestmark = pytest.mark.parity

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CONV = ([1, 2, 1], [1, 1, 1], "SAME", True, "documented")
POOL = ([2, 2, 3], [2, 1, 2], "SAME", True, "documented")


def draw(*shape: int, device: str, seed: int = 0) -> Any:
    """Random float64 that wants a gradient."""
    made = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.to(device).requires_grad_()


def sample(op: Op, device: str) -> tuple[Any, ...]:
    """A call of an op."""
    attrs, windows = (CONV, (1, 3, 2, 4, 3)) if op.map.has_taps else (POOL, (1, 2, 4, 2, 2))
    shapes, seeds = {Side.CELLS: (1, 3, 4, 4, 2), Side.WINDOWS: windows, Side.TAPS: (3, 2, 3, 2, 3)}, count()
    made = operands(
        op, shapes, lambda shape: draw(*shape, device=device, seed=next(seeds)),
        lambda x: operator(OPS[op.map.of])(x, *attrs),
    )  # fmt: skip
    given = [made[item.name] if item.host or item.name in op.linear_in or not op.of else made[item.name].detach()
             for item in op.inputs]  # fmt: skip
    return (*given, *attrs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_opcheck(op: Op, device: str) -> None:
    """torch's own tests of a custom op: schema, autograd registration, fake tensors, dynamic shapes."""
    torch.library.opcheck(operator(op).default, sample(op, device))


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


def test_beside_tensorflow() -> None:
    """After TensorFlow, Triton would end the process: its LLVM and TensorFlow's do not go together."""
    code = """if True:
        import sys, tensorflow, torch, voxgrad.torch as vt
        layer = vt.from_torch(torch.nn.Conv3d(1, 2, 3))
        layer(torch.ones(1, 1, 4, 4, 4)).sum().backward()
        assert "triton" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("data_format", ["NCDHW", "NDHWC"])
def test_channels_of_a_layer(data_format: str) -> None:
    """A layer takes the channels that it was made for, and no multiple of them."""
    layer = vt.Conv3dSame(4, 6, 3, data_format=data_format)
    for channels in (8, 2):
        shape = (1, channels, 4, 4, 4) if data_format == "NCDHW" else (1, 4, 4, 4, channels)
        with pytest.raises(ValueError, match=r"VG013 Conv3dSame: input must have 4 channels"):
            layer(torch.zeros(shape))
    with pytest.raises(ValueError, match="VG013 Conv3dSame: groups must divide"):
        vt.Conv3dSame(4, 6, 3, groups=4)


def test_wrong_calls() -> None:
    """Mistakes are voxgrad's errors, with its codes."""
    with pytest.raises(ValueError, match="VG"):
        vt.max_pool3d(torch.zeros(1, 1, 4, 4, 4), (2, 2))
    with pytest.raises(ValueError, match="VG"):
        vt.conv3d(torch.zeros(1, 3, 4, 4, 4), torch.zeros(3, 3, 3, 2, 4))


LAYER: dict[str, Any] = {"kernel_size": 2, "stride": 1, "padding": "SAME", "data_format": "NCDHW"}
CONVOLUTION: dict[str, Any] = {
    "weight": torch.ones(2, 2, 2, 2, 2), "bias": torch.ones(2), "stride": 1, "padding": 1, "dilation": 1, "groups": 1,
}  # fmt: skip
WINDOW: dict[str, Any] = {"kernel_size": 2, "stride": 1, "padding": 1, "ceil_mode": True}
MADE: dict[str, tuple[Any, dict[str, Any]]] = {
    **{name: (getattr(vt, name), {"input": torch.ones(1, 3, 3, 3, 2)} | right) for name, right in PLAIN_CALLS.items()},
    "from_torch": (vt.from_torch, {"model": torch.nn.Conv3d(2, 2, 3)}),
    "MaxPool3dSame": (vt.MaxPool3dSame, LAYER),
    "Conv3dSame": (vt.Conv3dSame, {"in_channels": 2, "out_channels": 2, "dilation": 1, "groups": 1, **LAYER}),
    **{
        f"functional.{function.__name__}": (function, {"input": torch.ones(1, 2, 3, 3, 3)} | right)
        for function, right in (
            (vt.functional.conv3d, CONVOLUTION), (vt.functional.conv_transpose3d, CONVOLUTION | {"output_padding": 0}),
            (vt.functional.max_pool3d, WINDOW | {"dilation": 1, "return_indices": False}),
            (vt.functional.avg_pool3d, WINDOW | {"count_include_pad": True, "divisor_override": None}),
            (vt.functional.adaptive_avg_pool3d, {"output_size": 1}),
            (vt.functional.adaptive_max_pool3d, {"output_size": 1, "return_indices": False}),
        )
    },
    "report": (vt.report, {"model": torch.nn.Conv3d(2, 2, 3)}),
    "forward": (vt.Conv3dSame(2, 2, 3).forward, {"input": torch.ones(1, 2, 3, 3, 3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_every_wrong_value(name: str) -> None:
    function, right = MADE[name]
    if "filter" in right:
        right = right | {"filter": torch.ones(2, 2, 2, 2, 2)}
    assert not wrong_plain_calls(function, right)
