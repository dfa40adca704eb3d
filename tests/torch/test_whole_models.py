# SPDX-License-Identifier: Apache-2.0
"""Converted models in what people do with models: compiled, exported, checkpointed, in parallel, from MONAI."""

from __future__ import annotations

import copy
import io
import socket
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch import func, nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import voxgrad.torch as vt  # noqa: E402

# torch is installed by `python3 run test --parity`; it warns of its own parts when they are first used.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def pair() -> tuple[Any, Any]:
    """A model of every layer that is converted, and the converted one."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3, 2, 1), nn.LeakyReLU(), nn.MaxPool3d(2), nn.AvgPool3d(2, 1, 1),
        nn.ConvTranspose3d(4, 2, 2, 2), nn.AdaptiveAvgPool3d((2, None, 1)),
    )  # fmt: skip
    ours = vt.from_torch(copy.deepcopy(model))
    assert len(vt.report(ours).converted) == 5
    return model, ours


X = torch.randn(2, 1, 8, 8, 8, generator=torch.Generator().manual_seed(0))


def test_linearize() -> None:
    model, ours = pair()
    torch.testing.assert_close(func.linearize(ours, X)[1](X.sin()), func.jvp(model, (X,), (X.sin(),))[1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    made = []
    for model in pair():
        x = X.clone().requires_grad_()
        checkpoint(model, x, use_reentrant=reentrant).square().sum().backward()
        made.append((x.grad, [value.grad for value in model.parameters()]))
    torch.testing.assert_close(*made)


def test_autocast_gives_the_types_of_torch() -> None:
    model, ours = pair()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for theirs, own in zip(model, ours, strict=True):
            x = torch.randn(2, getattr(theirs, "in_channels", 4), 4, 4, 4)
            for given in (x, x.bfloat16(), x.double() if not hasattr(theirs, "weight") else x):
                assert own(given).dtype is theirs(given).dtype
        torch.testing.assert_close(ours(X), model(X), rtol=0.05, atol=0.02)


def test_compiled_for_any_size() -> None:
    model, ours = (one[:5] for one in pair())
    torch._dynamo.reset()
    compiled = torch.compile(ours, dynamic=True, fullgraph=True, backend="aot_eager")
    for shape in ((2, 1, 8, 8, 8), (3, 1, 12, 8, 16)):
        x, made = torch.randn(shape, requires_grad=True), []
        for one in (model, compiled):
            y = one(x)
            made.append((y, torch.autograd.grad(y.square().sum(), x)))
        torch.testing.assert_close(*made)


def test_exported_and_loaded() -> None:
    model, ours = pair()
    batch = {0: torch.export.Dim("batch", min=1, max=64)}
    file = io.BytesIO()
    torch.export.save(torch.export.export(ours, (X,), dynamic_shapes=(batch,)), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for x in (X, X[:1], torch.cat([X, X.sin()])):
        torch.testing.assert_close(loaded(x), model(x))


def test_traced_for_torchscript() -> None:
    """There a layer is torch's own."""
    model, ours = pair()
    torch.testing.assert_close(torch.jit.trace(ours, X)(X[:1]), model(X[:1]))


def in_parallel(rank: int, port: int, wanted: list[Any]) -> None:
    """One of two processes: a half of the batch; the mean of the gradients is that of the whole."""
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    _, ours = pair()
    model = nn.parallel.DistributedDataParallel(ours)
    model(X[rank : rank + 1]).square().mean().backward()
    for value, whole in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(value.grad, whole)
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes() -> None:
    model, _ = pair()
    model(X).square().mean().backward()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wanted = [value.grad for value in model.parameters()]
    torch.multiprocessing.spawn(in_parallel, (port, wanted), nprocs=2)


NETWORKS: dict[str, Any] = {
    "UNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "channels": (4, 8, 8), "strides": (2, 2),
             "num_res_units": 1},
    "SegResNet": {"spatial_dims": 3, "init_filters": 8, "in_channels": 1, "out_channels": 2, "blocks_down": (1, 1),
                  "blocks_up": (1,)},
    "DynUNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "kernel_size": [3, 3, 3],
                "strides": [1, 2, 2], "upsample_kernel_size": [2, 2], "filters": [4, 8, 8]},
    "VNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_monai(name: str) -> None:
    """Every convolution, pool and norm is converted; what is left has no kernel here."""
    networks = pytest.importorskip("monai.networks.nets", reason="MONAI's networks are only for comparison")
    torch.manual_seed(0)
    model = getattr(networks, name)(**NETWORKS[name]).eval()
    ours = vt.from_torch(copy.deepcopy(model))
    assert {line.why for line in vt.report(ours).left} == {"no kernel here"}
    named = ("Conv3d", "ConvTranspose3d", "MaxPool3d", "InstanceNorm3d", "BatchNorm3d", "GroupNorm")
    wanted = {name for name, layer in model.named_modules() if type(layer).__name__ in named}
    assert wanted <= {line.name for line in vt.report(ours).converted}
    x, made = torch.randn(1, 1, 16, 16, 16), []
    for one in (model, ours):
        y = one(x)
        y.square().sum().backward()
        made.append((y, [value.grad for value in one.parameters()]))
    torch.testing.assert_close(*made, rtol=1e-3, atol=1e-3)
