# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can show: raw ops on its arrays, the same bits every time, volumes past 2**31 elements."""

from __future__ import annotations

import copy
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")
if not torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("needs a GPU", allow_module_level=True)

import voxgrad as vg  # noqa: E402
import voxgrad.torch as vt  # noqa: E402
from tests.cuda.test_convs import operands, run  # noqa: E402
from voxgrad.arrays import gpu  # noqa: E402
from voxgrad.kernels.cuda import launch  # noqa: E402
from voxgrad.kernels.cuda.conv_common import Config  # noqa: E402

POOL = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
CONV = {"strides": [1, 2, 1, 1, 1], "padding": "SAME"}


def calls(module: Any = torch) -> list[tuple[str, dict[str, Any]]]:
    """One call of every op, as names and arguments on the GPU."""
    made = torch.randn(1, 6, 7, 8, 4, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    w = torch.randn(3, 3, 3, 4, 6, device="cuda")
    y = vg.raw_ops.MaxPool3D(input=made, **POOL)
    z = vg.raw_ops.Conv3D(input=made, filter=w, **CONV)
    x = [1, 6, 7, 8, 4]
    return [
        ("AvgPool3D", {"input": made, **POOL}),
        ("AvgPool3DGrad", {"orig_input_shape": x, "grad": y, **POOL}),
        ("MaxPool3D", {"input": made, **POOL}),
        ("MaxPool3DGrad", {"orig_input": made, "orig_output": y, "grad": y, **POOL}),
        ("MaxPool3DGradGrad", {"orig_input": made, "orig_output": y, "grad": made, **POOL}),
        ("Conv3D", {"input": made, "filter": w, **CONV}),
        ("Conv3DBackpropInputV2", {"input_sizes": x, "filter": w, "out_backprop": z, **CONV}),
        ("Conv3DBackpropFilterV2", {"input": made, "filter_sizes": [3, 3, 3, 4, 6], "out_backprop": z, **CONV}),
    ]


def test_raw_ops_on_cuda_tensors() -> None:
    """Every raw op answers on the device, with the numbers of the CPU, ten times the same bits."""
    for name, arguments in calls():
        op = getattr(vg.raw_ops, name)
        result = op(**arguments)
        assert result.is_cuda
        host = {key: value.cpu() if isinstance(value, torch.Tensor) else value for key, value in arguments.items()}
        wanted = op(**host)
        torch.testing.assert_close(result.cpu(), wanted, rtol=0, atol=1e-6 * float(wanted.abs().max()))
        assert all(torch.equal(op(**arguments), result) for _ in range(10)), name
        assert "kernel" in str(vg.explain(op, **arguments))


def test_a_call_like_one_before_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validated once: the same signature runs at once, any other is looked at again."""
    made = calls()
    wanted = {name: getattr(vg.raw_ops, name)(**arguments) for name, arguments in made}
    looked_at = []
    whole = gpu.plan_on_gpu
    monkeypatch.setattr(gpu, "plan_on_gpu", lambda op, given: looked_at.append(op.name) or whole(op, given))
    for name, arguments in made:
        assert torch.equal(getattr(vg.raw_ops, name)(**arguments), wanted[name])
    assert not looked_at
    x = made[0][1]["input"]
    pool = vg.raw_ops.MaxPool3D
    with pytest.raises(vg.errors.InvalidArgumentError):
        pool(input=x, **{**POOL, "ksize": [1.0, 3, 3, 3, 1]})
    with pytest.raises(vg.errors.InvalidArgumentError):
        pool(input=x.clone().requires_grad_(), **POOL)
    pool(input=x.double(), **POOL)
    pool(input=x[:, 1:], **POOL)
    with vg.semantics("tf_cpu"):
        pool(input=x, **POOL)
    assert looked_at == ["MaxPool3D"] * 5


def test_launches_after_the_first_do_not_ask_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver takes every kernel as prepared, boxes included, and does the same."""
    config = replace(Config(64, 64, 16, splits=2, kind="boxes"), across=True)
    made = operands(((2, 8, 8), (3, 3, 3), (2, 2, 2), (1, 1, 1), "SAME", 64, 64, 1), "bfloat16", True, "cuda")
    raw = [(getattr(vg.raw_ops, name), arguments) for name, arguments in calls()]
    wanted = [run(problem, tensors, config) for problem, tensors in made], [op(**given) for op, given in raw]
    monkeypatch.setattr(launch.Launch, "_launch", lambda *_: pytest.fail("the long way"))
    found = [run(problem, tensors, config) for problem, tensors in made], [op(**given) for op, given in raw]
    for ours, theirs in zip(found, wanted, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_threads_and_streams_share_a_launch() -> None:
    """Prepared launches are used by one thread at a time, and go to the stream that is current there."""
    arguments = dict(calls())["Conv3D"]
    wanted, found = vg.raw_ops.Conv3D(**arguments), {}
    torch.cuda.synchronize()

    def work(factor: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = arguments["input"] * factor
            for _ in range(500):
                found[factor] = vg.raw_ops.Conv3D(**{**arguments, "input": x})
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(2**index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(result, wanted * factor) for factor, result in found.items()) and len(found) == 4


def test_a_cuda_graph_replays_the_calls() -> None:
    """Launches are captured like any other, and read the tensors again when replayed."""
    made = calls()
    wanted = [getattr(vg.raw_ops, name)(**arguments) for name, arguments in made]
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = [getattr(vg.raw_ops, name)(**arguments) for name, arguments in made]
    made[5][1]["input"].mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured[0], wanted[0] * 2) and torch.equal(captured[5], wanted[5] * 2)
    assert torch.equal(captured[6], wanted[6])


def test_a_limit_holds_on_the_gpu_too() -> None:
    """`vg.limits` is asked before a result is allocated, also by a call like one before."""
    name, arguments = calls()[2]
    op = getattr(vg.raw_ops, name)
    op(**arguments)
    with vg.limits(bytes=64), pytest.raises(vg.errors.VoxgradError, match="at most 64 bytes"):
        op(**arguments)
    op(**arguments)


@pytest.mark.parametrize("module", ["cupy", "jax"])
def test_arrays_through_dlpack(module: str) -> None:
    """CuPy and JAX arrays give CuPy and JAX arrays on the same device."""
    library = pytest.importorskip(module, reason=f"needs {module}")
    for name, arguments in calls():
        there = {
            key: library.from_dlpack(value) if module == "cupy" else library.dlpack.from_dlpack(value)
            for key, value in arguments.items() if isinstance(value, torch.Tensor)
        }  # fmt: skip
        result = getattr(vg.raw_ops, name)(**{**arguments, **there})
        assert type(result).__module__.partition(".")[0] in (module, "jaxlib")
        plain = getattr(vg.raw_ops, name)(**arguments)
        torch.testing.assert_close(torch.from_dlpack(result), plain)


def test_misaligned_tensors() -> None:
    """A view that starts off a 16-byte boundary runs another compilation, not a wrong one."""
    whole = torch.randn(1 + 2 * 4 * 4 * 4 * 8, device="cuda")
    aligned, shifted = whole[:-1].clone().view(2, 4, 4, 4, 8), whole[:-1].view(2, 4, 4, 4, 8)
    odd = whole[1:].view(2, 4, 4, 4, 8)
    for x in (aligned, shifted, odd, aligned):
        y = vg.raw_ops.AvgPool3D(input=x, **POOL)
        torch.testing.assert_close(y.cpu(), vg.raw_ops.AvgPool3D(input=x.cpu().clone(), **POOL))


def small_integers(*shape: int) -> Any:
    """Numbers that are summed without rounding, whatever the order."""
    return torch.randint(-3, 4, shape, device="cuda", dtype=torch.bfloat16)


@pytest.fixture
def huge() -> tuple[Any, Any]:
    """A volume of more than 2**31 elements, and its far end as a volume of its own."""
    x = small_integers(1, 1040, 1024, 1024, 2)
    assert x.numel() > 2**31
    return x, x[:, -8:].contiguous()


PAIRS = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
TAPS = {"strides": [1, 1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.slow
def test_pools_past_two_to_the_31(huge: tuple[Any, Any]) -> None:
    """The far end of a huge volume is pooled like a small one, and so are the gradients."""
    x, tail = huge
    y, small = (vg.raw_ops.MaxPool3D(input=data, **PAIRS) for data in huge)
    assert torch.equal(y[:, -4:], small)
    assert torch.equal(vg.raw_ops.AvgPool3D(input=x, **PAIRS)[:, -4:], vg.raw_ops.AvgPool3D(input=tail, **PAIRS))
    dx = vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=y, **PAIRS)
    assert torch.equal(dx[:, -8:], vg.raw_ops.MaxPool3DGrad(orig_input=tail, orig_output=small, grad=small, **PAIRS))
    dx = vg.raw_ops.AvgPool3DGrad(orig_input_shape=list(x.shape), grad=y, **PAIRS)
    assert torch.equal(dx[:, -8:], vg.raw_ops.AvgPool3DGrad(orig_input_shape=list(tail.shape), grad=small, **PAIRS))
    assert torch.equal(vg.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=x, **PAIRS), y)


@pytest.mark.slow
def test_a_convolution_past_two_to_the_31(huge: tuple[Any, Any]) -> None:
    """The far end of a huge volume gives what it gives alone."""
    w = small_integers(2, 2, 2, 2, 2)
    y, near = (vg.raw_ops.Conv3D(input=data, filter=w, **TAPS) for data in huge)
    assert torch.equal(y[:, -7:], near)


@pytest.mark.slow
def test_an_input_gradient_past_two_to_the_31(huge: tuple[Any, Any]) -> None:
    """Cells that only windows of the far end read get the gradient that they get alone."""
    w = small_integers(2, 2, 2, 2, 2)
    dx, near = (
        vg.raw_ops.Conv3DBackpropInputV2(
            input_sizes=list(data.shape), filter=w, out_backprop=data[:, 1:, 1:, 1:].contiguous(), **TAPS
        )
        for data in huge
    )
    assert torch.equal(dx[:, -7:], near[:, -7:])


@pytest.mark.slow
def test_a_filter_gradient_past_two_to_the_31(huge: tuple[Any, Any]) -> None:
    """A gradient that is zero but for the far end sums over that end alone."""
    small = small_integers(1, 7, 1023, 1023, 2)
    y = torch.zeros(1, 1039, 1023, 1023, 2, device="cuda", dtype=torch.bfloat16)
    y[:, -7:] = small
    dw, near = (
        vg.raw_ops.Conv3DBackpropFilterV2(input=data, filter_sizes=[2, 2, 2, 2, 2], out_backprop=dy, **TAPS)
        for data, dy in zip(huge, (y, small), strict=True)
    )
    assert torch.equal(dw, near)


def small_network() -> Any:
    """Layers of every kind that a network has, in the layout that the kernels like."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv3d(2, 16, 3, padding=1), nn.InstanceNorm3d(16, affine=True), nn.LeakyReLU(0.01),
        nn.Conv3d(16, 32, 3, 2, 1), nn.BatchNorm3d(32), nn.PReLU(32), nn.Conv3d(32, 32, 3, padding=1),
        nn.GroupNorm(4, 32), nn.SiLU(), nn.ConvTranspose3d(32, 16, 2, 2), nn.Conv3d(16, 3, 1),
    )  # fmt: skip
    return vt.from_torch(model.to("cuda", memory_format=torch.channels_last_3d))


def test_layers_keep_the_order_of_their_weights() -> None:
    """Channels last all the way, as torch's own, whatever comes in."""
    model = small_network()
    x = torch.randn(2, 2, 8, 8, 8, device="cuda")
    for given in (x, x.to(memory_format=torch.channels_last_3d)):
        for layer in model:
            given = layer(given)
            assert given.is_contiguous(memory_format=torch.channels_last_3d), layer


def slopes(run: Any, model: Any, x: Any, low: bool) -> list[Any]:
    with torch.autocast("cuda", torch.bfloat16, enabled=low):
        y = run(x)
    return [y, *torch.autograd.grad(y.float().square().mean(), [x, *model.parameters()])]


@pytest.mark.parametrize("low", [False, True])
def test_a_recorded_model_gives_the_same_bits(low: bool) -> None:
    """Forward, gradients, running statistics, changed weights, other calls; results are the caller's own."""
    model = small_network()
    twin, x = copy.deepcopy(model), torch.randn(2, 2, 12, 12, 12, device="cuda", requires_grad=True)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.autocast("cuda", torch.bfloat16, enabled=low):
        run = vt.graphed(model, x)
        assert run.why_not(x) == ""
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    kept = []
    for step in range(3):
        given = torch.randn_like(x).requires_grad_()
        made, wanted = (slopes(one, layers, given, low) for one, layers in ((run, model), (twin, twin)))
        assert all(torch.equal(a, b) for a, b in zip(made, wanted, strict=True)), step
        assert all(torch.equal(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True))
        kept.append((made, [one.clone() for one in made]))
        with torch.no_grad():
            for value in (*model.parameters(), *twin.parameters()):
                value.mul_(0.9)
    assert all(torch.equal(a, b) for made, copies in kept for a, b in zip(made, copies, strict=True))
    assert "inputs" in run.why_not(x[:1]) and run(x[:1]).shape == (1, 3, 12, 12, 12)


def test_gradients_of_a_recorded_call_are_taken_once_and_in_time() -> None:
    model = small_network()
    x = torch.randn(2, 2, 8, 8, 8, device="cuda")
    run = vt.graphed(model, x)
    first, second = run(x), run(x * 2)
    with pytest.raises(vg.VoxgradError, match="belong to the latest call"):
        first.sum().backward()
    second.sum().backward(retain_graph=True)
    with pytest.raises(vg.VoxgradError, match="belong to the latest call"):
        second.sum().backward()
    with pytest.raises(vg.VoxgradError, match="be differentiated once"):
        torch.autograd.grad(run(x).sum(), model[0].weight, create_graph=True)


def test_a_model_that_waits_for_the_gpu_cannot_be_recorded() -> None:
    class Waits(torch.nn.Linear):
        def forward(self, input: Any) -> Any:
            return super().forward(input) * float(input.sum())

    with pytest.raises(vg.VoxgradError, match="VG032 graphed: model must be one that can be recorded"):
        vt.graphed(Waits(2, 2, device="cuda"), torch.ones(2, 2, device="cuda"))
    assert torch.randn(3, device="cuda").shape == (3,)  # torch goes on


def test_kernels_are_compiled_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is compiled after a warm-up, and the model is as it was."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    model, x = small_network(), torch.randn(1, 2, 10, 10, 10, device="cuda")
    state = {key: value.clone() for key, value in model.state_dict().items()}
    vt.warm_up(model, x)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    monkeypatch.setattr(launch.Launch, "_launch", lambda *_: pytest.fail("the long way"))
    model(x).sum().backward()
