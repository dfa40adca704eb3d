# SPDX-License-Identifier: Apache-2.0
"""voxgrad.torch: custom ops that torch itself checks, gradients of gradients, compilation, autocast, layers."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch.nn.utils import prune  # noqa: E402

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
def test_same_padding_where_torch_agrees(device: str) -> None:
    """With odd windows and stride 1 SAME is torch's padding, so torch is an independent reference there."""
    x, layer = torch.randn(2, 4, 5, 6, 7, device=device), torch.nn.Conv3d(4, 8, 3, padding=1).to(device)
    ours = vt.from_torch(torch.nn.Sequential(layer))
    assert isinstance(ours[0], vt.Conv3dSame) and ours[0].weight is layer.weight
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        torch.testing.assert_close(ours(x), layer(x), rtol=1e-4, atol=1e-4)
    pool = torch.nn.AvgPool3d(2, 2)
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


class Standardised(torch.nn.Conv3d):
    """A subclass that computes something else."""

    def forward(self, input: Any) -> Any:
        """With weights of mean 0."""
        return self._conv_forward(input, self.weight - self.weight.mean(), self.bias)


def hooked() -> Any:
    """A layer whose result a hook changes."""
    layer = torch.nn.Conv3d(2, 2, 1)
    layer.register_forward_hook(lambda module, inputs, output: output + 1)
    return layer


def pruned() -> Any:
    """A layer whose weights are made before every call."""
    layer = torch.nn.Conv3d(2, 2, 3, padding=1)
    prune.l1_unstructured(layer, "weight", 3)
    return layer


def patched() -> Any:
    """A layer with a forward of its own."""
    layer = torch.nn.AvgPool3d(2)
    layer.forward = lambda input: input * 2  # type: ignore[method-assign]
    return layer


LEFT: dict[str, Any] = {
    "divisor": lambda: torch.nn.AvgPool3d(2, divisor_override=1),
    "ceil": lambda: torch.nn.AvgPool3d(2, ceil_mode=True),
    "padded pool": lambda: torch.nn.AvgPool3d(3, 1, 1),
    "subclass": lambda: Standardised(2, 2, 3, padding=1),
    "hook": hooked,
    "pruned": pruned,
    "patched": patched,
    "parametrised": lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv3d(2, 2, 3, padding=1)),
    "maximum": lambda: torch.nn.MaxPool3d(2),
    "circular": lambda: torch.nn.Conv3d(2, 2, 3, padding=1, padding_mode="circular"),
    "complex": lambda: torch.nn.Conv3d(2, 2, 1, dtype=torch.complex64),
}


@pytest.mark.parametrize("name", LEFT)
def test_from_torch_leaves(name: str) -> None:
    """A layer that ours would not equal stays, with the numbers that it had."""
    layer, x = LEFT[name](), torch.randn(1, 2, 4, 5, 6)
    x[0, 0, 0, 0, 0] = float("nan")
    x = x.to(torch.complex64) if name == "complex" else x
    before, model = layer(x), torch.nn.Sequential(layer)
    assert vt.from_torch(model)[0] is layer and vt.from_torch(layer) is layer
    torch.testing.assert_close(model(x), before, equal_nan=True)


REPLACED: dict[str, Any] = {
    "same": lambda: torch.nn.Conv3d(4, 6, (2, 3, 4), padding="same", dilation=(1, 2, 1)),
    "valid": lambda: torch.nn.Conv3d(4, 6, 2, 2, padding="valid", groups=2),
    "odd": lambda: torch.nn.Conv3d(4, 6, (1, 3, 5), padding=(0, 1, 2), bias=False),
    "stride and padding": lambda: torch.nn.Conv3d(4, 6, 3, 2, 1),
    "much padding": lambda: torch.nn.Conv3d(4, 6, (1, 2, 3), (1, 3, 2), (2, 0, 5), (1, 1, 2), groups=2),
    "pool": lambda: torch.nn.AvgPool3d(2, (1, 2, 1)),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning")
@pytest.mark.parametrize("name", REPLACED)
def test_from_torch_replaces(name: str) -> None:
    """A layer alone, or twice in a model, becomes ours: no random number is drawn, one volume may come alone."""
    layer, x = REPLACED[name]().double().eval(), torch.randn(2, 4, 5, 6, 7, dtype=torch.float64)
    state = torch.get_rng_state()
    ours = vt.from_torch(layer)
    twice = vt.from_torch(torch.nn.ModuleDict({"a": layer, "b": torch.nn.Sequential(layer)}))
    assert torch.equal(torch.get_rng_state(), state)
    assert type(ours) in (vt.Conv3dSame, vt.AvgPool3dSame) and not ours.training
    assert twice["a"] is twice["b"][0] and type(twice["a"]) is type(ours)
    torch.testing.assert_close(ours(x), layer(x))
    torch.testing.assert_close(ours(x[0]), layer(x[0]))
    assert dict(ours.named_parameters()).keys() == dict(layer.named_parameters()).keys()


def test_layers_say_what_they_are() -> None:
    """`print` shows the parameters."""
    shown = repr(vt.Conv3dSame(4, 6, (1, 3, 3), stride=2, groups=2, bias=False))
    wanted = "4, 6, kernel_size=[1, 3, 3], stride=[2, 2, 2], groups=2, bias=False, padding='SAME', data_format='NCDHW'"
    assert shown == f"Conv3dSame({wanted})"
    wanted = "kernel_size=[2, 2, 2], stride=[2, 2, 2], padding='VALID', data_format='NDHWC'"
    assert repr(vt.MaxPool3dSame(2, padding="VALID", data_format="NDHWC")) == f"MaxPool3dSame({wanted})"


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
MADE: dict[str, tuple[Any, dict[str, Any]]] = {
    **{name: (getattr(vt, name), {"input": torch.ones(1, 3, 3, 3, 2)} | right) for name, right in PLAIN_CALLS.items()},
    "from_torch": (vt.from_torch, {"model": torch.nn.Conv3d(2, 2, 3)}),
    "MaxPool3dSame": (vt.MaxPool3dSame, LAYER),
    "Conv3dSame": (vt.Conv3dSame, {"in_channels": 2, "out_channels": 2, "dilation": 1, "groups": 1, **LAYER}),
    "forward": (vt.Conv3dSame(2, 2, 3).forward, {"input": torch.ones(1, 2, 3, 3, 3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_every_wrong_value(name: str) -> None:
    function, right = MADE[name]
    if "filter" in right:
        right = right | {"filter": torch.ones(2, 2, 2, 2, 2)}
    assert not wrong_plain_calls(function, right)
