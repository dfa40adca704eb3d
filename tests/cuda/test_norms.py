# SPDX-License-Identifier: Apache-2.0
"""The norm kernels against torch's own functions in float64, and the layers that take them."""

from __future__ import annotations

import copy
import io
import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from torch import func, nn  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import voxgrad as vg  # noqa: E402
import voxgrad.torch as vt  # noqa: E402
from voxgrad.kernels.cuda.launch import Launch  # noqa: E402
from voxgrad.kernels.cuda.norm import passes, plain  # noqa: E402
from voxgrad.kernels.cuda.norm.plain import ACTIVATIONS, Given, Norm  # noqa: E402
from voxgrad.torch import norms, sequences  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`. NumPy warns inside the interpreter, on NaN.
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
OVER = (("image", 0), ("batch", 0), ("stated", 0), ("image", 2), ("image", 1))


@pytest.fixture(params=[True, False], ids=["whole", "small chunks"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one program, or tiles of 256 numbers and many chunks, which go on from tile to tile."""
    if not request.param:
        for name, value in (("_REDUCED", 256), ("_APPLIED", 256), ("_FINISHED", 64), ("_PROGRAMS", 16)):
            monkeypatch.setattr(passes, name, value)
    passes._passes.cache_clear()
    request.addfinalizer(passes._passes.cache_clear)


@pytest.fixture
def taken(device: str, monkeypatch: pytest.MonkeyPatch) -> list[Norm]:
    """Layers run on the kernels, wherever these are; what they were asked for."""
    seen: list[Norm] = []
    apply = norms.Fused.apply
    monkeypatch.setattr(norms, "_DEVICES", frozenset([device]))
    monkeypatch.setattr(norms.Fused, "apply", lambda how, *rest: (seen.append(how), apply(how, *rest))[1])
    return seen


def drawn(case: int, device: str) -> tuple[Norm, Any, list[Any]]:
    """A norm with data and tensors, all different from case to case."""
    random = torch.Generator().manual_seed(case)
    pick = lambda values: values[int(torch.randint(len(values), (), generator=random))]  # noqa: E731
    (over, groups), activation, dtype = OVER[case % 5], pick(tuple(ACTIVATIONS)), TYPES[case // 5 % 4]
    channels = pick((1, 2, 3, 4, 6, 8, 17, 34)) * (groups or 1)
    shape = (pick((1, 2, 3)), channels, pick((1, 2, 5)), pick((3, 4, 7)), pick((2, 5, 8)))
    x = 3 * torch.randn(shape, generator=random) + 10
    x = x.to(device, dtype, memory_format=pick((torch.contiguous_format, torch.channels_last_3d)))
    wide = dtype if dtype is torch.float64 else torch.float32
    vectors = [torch.randn(channels, generator=random).to(device, wide).requires_grad_() for _ in range(4)]
    given: list[Any] = [one if pick((True, True, False)) else None for one in vectors]
    if groups:  # torch's own has both or neither
        given[1:3] = [None if given[0] is None else vectors[1], None]
    if activation != "leaky":
        given[3] = None
    elif given[3] is not None and pick((True, False)):
        given[3] = given[3][:1].detach().requires_grad_()
    stated = [torch.randn(channels, generator=random), torch.rand(channels, generator=random) + 0.1]
    given += [one.to(device, wide) if over == "stated" else None for one in stated]
    return Norm(over, groups, 1e-3, activation, 0.3), x.requires_grad_(), given


def computed(how: Norm, x: Any, given: list[Any], dy: Any, kernels: bool) -> list[Any]:
    y = norms.Fused.apply(how, x, *given)[0] if kernels else plain.norm(x, Given(*given), how)
    wanted = [x, *(one for one in given if one is not None and one.requires_grad)]
    return [y, *torch.autograd.grad(y, wanted, dy, allow_unused=True)]


def check(how: Norm, x: Any, given: list[Any]) -> None:
    """Forward and gradient, within one rounding of the type and a few of the sums; twice, the same bits."""
    dy = torch.randn(x.shape, device=x.device).to(x.dtype)
    ours, again = (computed(how, x, given, dy, True) for _ in range(2))
    double = [None if one is None else one.detach().double().requires_grad_(one.requires_grad) for one in (x, *given)]
    truth = computed(how, double[0], double[1:], dy.double(), False)
    wide = torch.finfo(torch.float64 if x.dtype is torch.float64 else torch.float32).eps
    for place, (one, same, wanted) in enumerate(zip(ours, again, truth, strict=True)):
        assert torch.equal(one, same)
        beside = wide * 2000 * max(1.0, float(wanted.abs().max()) if place < 2 else x.numel() ** 0.5)
        allowed = torch.finfo(one.dtype).eps * wanted.abs() + beside
        assert float(((one.double() - wanted).abs() / allowed).max()) <= 1, place
    assert ours[0].stride() == ours[1].stride() == x.stride() or not x.numel()


@pytest.mark.parametrize("cases", [range(first, first + 10) for first in range(0, 40, 10)], ids=str)
def test_random_norms(cases: range, device: str, chunks: None) -> None:
    for case in cases:
        how, x, given = drawn(case, device)
        try:
            check(how, x, given)
        except BaseException as error:
            error.add_note(f"case {case}: {how}, {tuple(x.shape)}, {x.dtype}, {x.stride()}")
            raise


@pytest.mark.slow
@pytest.mark.parametrize("cases", [range(first, first + 30) for first in range(40, 340, 30)], ids=str)
def test_more_random_norms(cases: range, device: str, chunks: None) -> None:
    for case in cases:
        check(*drawn(case, device))


def test_a_launch_is_for_tensors_of_the_same_types(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU it keeps the kernel that was compiled for the first ones."""
    seen: dict[int, set[Any]] = {}
    launched, held = Launch.__call__, []

    def note(self: Launch, *tensors: Any) -> None:
        held.append(self)
        seen.setdefault(id(self), set()).add(tuple(one.dtype for one in tensors))
        launched(self, *tensors)

    monkeypatch.setattr(Launch, "__call__", note)
    for dtype, wide, result in itertools.product(TYPES, (torch.float32, torch.float64), (None, torch.float32)):
        x = torch.randn(1, 2, 2, 2, 2, device=device).to(dtype)
        for weight in (None, torch.ones(2, dtype=wide, device=device)):
            given, how = Given(weight), Norm("image", dtype=result)
            y, table = passes.forward(x, given, how)
            passes.backward(y, x, table, given, how)
    assert seen and all(len(types) == 1 for types in seen.values())


@pytest.mark.parametrize("over", OVER, ids=str)
def test_numbers_that_are_none_go_where_torch_s_go(over: tuple[str, int], device: str, chunks: None) -> None:
    """NaN and infinities of a channel or group make it NaN, and leave the others alone; an activation keeps NaN."""
    how = Norm(over[0], over[1], 1e-5, "relu")
    x = torch.randn(2, 4, 3, 5, 4, device=device)
    x[0, 0, 1, 1, 1], x[0, 2, 0, 0, 0] = torch.nan, -torch.inf
    stated = [torch.zeros(4, device=device), torch.ones(4, device=device)] if over[0] == "stated" else [None, None]
    shift = None if over[1] else torch.tensor([0.0, torch.inf, 1.0, 2.0], device=device)
    ours, theirs = (computed(how, x.requires_grad_(), [None, None, shift, None, *stated], torch.ones_like(x), kernels)
                    for kernels in (True, False))  # fmt: skip
    torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=1e-5, atol=1e-5)
    assert ours[0].isnan().any() and not ours[0].isnan().all()


def test_gradients_of_gradients(device: str) -> None:
    how, given = Norm("image", 0, 1e-3, "silu"), [None] * 6
    x = torch.randn(1, 2, 2, 2, 3, device=device, dtype=torch.float64, requires_grad=True)
    weight, bias, shift = (torch.randn(2, device=device, dtype=torch.float64, requires_grad=True) for _ in range(3))
    call = lambda *tensors: norms.Fused.apply(how, *tensors, *given[3:])[0]  # noqa: E731
    assert torch.autograd.gradcheck(call, (x, weight, bias, shift))
    assert torch.autograd.gradgradcheck(call, (x, weight, bias, shift))


LAYERS: dict[str, Any] = {
    "instance": lambda: nn.InstanceNorm3d(4, affine=True),
    "instance that follows": lambda: nn.InstanceNorm3d(4, track_running_stats=True),
    "batch": lambda: nn.BatchNorm3d(4),
    "batch of all": lambda: nn.BatchNorm3d(4, momentum=None),
    "batch alone": lambda: nn.BatchNorm3d(4, affine=False, track_running_stats=False),
    "group": lambda: nn.GroupNorm(2, 4),
}
BEHIND: dict[str, Any] = {
    "relu": lambda: nn.ReLU(inplace=True), "leaky": lambda: nn.LeakyReLU(0.2), "gelu": nn.GELU, "silu": nn.SiLU,
    "tanh": lambda: nn.GELU("tanh"), "prelu": nn.PReLU, "prelus": lambda: nn.PReLU(4), "none": nn.Identity,
}  # fmt: skip


def block(norm: str, activation: str, device: str) -> Any:
    """A convolution, a norm and an activation, as networks have them."""
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), LAYERS[norm](), BEHIND[activation](), nn.Conv3d(4, 1, 1))
    for value in made.parameters():
        nn.init.normal_(value)
    return made.to(device, torch.float64)


@pytest.mark.parametrize("norm", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_blocks_are_torch_s(norm: str, training: bool, device: str, taken: list[Norm]) -> None:
    """Numbers, gradients and what the layers remember, for every activation; also of what was copied and loaded."""
    for activation in BEHIND:
        model = block(norm, activation, device)
        ours = vt.from_torch(copy.deepcopy(model))
        assert repr(ours) == repr(model)
        file = io.BytesIO()
        torch.save(ours, file)
        file.seek(0)
        ours = copy.deepcopy(torch.load(file, weights_only=False))
        made, before = [], len(taken)
        for one in (model.train(training), ours.train(training)):
            one(torch.ones(2, 2, 3, 3, 3, device=device, dtype=torch.float64) * torch.arange(27).reshape(3, 3, 3))
            x = torch.randn(2, 2, 3, 4, 5, generator=torch.Generator().manual_seed(1)).to(device, torch.float64)
            y = one(x.requires_grad_())
            made.append((y, torch.autograd.grad(y.square().sum(), (x, *one.parameters())), one.state_dict()))
        torch.testing.assert_close(*made, rtol=1e-9, atol=1e-8)
        own = norm == "instance that follows" and training
        assert len(taken) - before == (0 if own else 2), (norm, activation)
        assert own or (taken[-1].activation == "none") is (activation == "none")
        model.load_state_dict(ours.state_dict())


def test_what_is_heard_on_the_way_is_heard(device: str, taken: list[Norm]) -> None:
    """Layers with hooks are called by themselves, whenever the hooks came."""
    model = block("instance", "leaky", device)
    ours, x = vt.from_torch(copy.deepcopy(model)), torch.randn(1, 2, 3, 3, 3, device=device, dtype=torch.float64)
    for place in range(4):
        heard: list[Any] = []
        hear = lambda layer, into, out: heard.append(out)  # noqa: E731, B023
        hooks = [one[place].register_forward_hook(hear) for one in (model, ours)]
        torch.testing.assert_close(ours(x), model(x))
        torch.testing.assert_close(*heard)
        for hook in hooks:
            hook.remove()
    torch.testing.assert_close(ours[:2](x), model[:2](x))
    torch.testing.assert_close(ours[1](x[:, :1].expand(1, 4, 3, 3, 3)), model[1](x[:, :1].expand(1, 4, 3, 3, 3)))
    ours[2].forward = lambda input: input * 2
    assert not torch.equal(ours(x), model(x))


def test_transforms_are_torch_s(device: str, taken: list[Norm]) -> None:
    """Forward mode, `torch.func`, compiled graphs, second order: through torch's functions."""
    for norm in ("instance", "group"):
        model = block(norm, "gelu", device)
        ours, x = vt.from_torch(copy.deepcopy(model)), torch.randn(2, 2, 2, 3, 2, device=device, dtype=torch.float64)
        made = []
        for one in (model, ours):
            with forward_ad.dual_level():
                dual = forward_ad.unpack_dual(one(forward_ad.make_dual(x, x.sin()))).tangent
            first = torch.autograd.grad(one(x.requires_grad_()).sin().sum(), x, create_graph=True)[0]
            made.append((
                dual, func.grad(lambda x: one(x).square().sum())(x), torch.autograd.grad(first.square().sum(), x),  # noqa: B023
                func.vmap(one)(x.detach()[:, None]), func.jvp(one, (x.detach(),), (x.detach().cos(),)),
                torch.compile(one, backend="aot_eager", fullgraph=True)(x.detach()),
            ))  # fmt: skip
        torch.testing.assert_close(*made)
    assert taken  # by the second order


def test_what_the_kernels_do_not_take_is_torch_s(device: str, taken: list[Norm]) -> None:
    """Shapes, types and calls that torch refuses, it refuses; empty volumes and single ones are torch's own."""
    layer, other = vt.from_torch(nn.InstanceNorm3d(4).to(device)), vt.from_torch(nn.BatchNorm3d(4).to(device))
    assert layer(torch.randn(4, 3, 3, 3, device=device)).shape == (4, 3, 3, 3)
    assert layer(torch.randn(0, 4, 3, 3, 3, device=device)).shape == (0, 4, 3, 3, 3)
    for wrong, model in (((1, 4, 1, 1, 1), layer), ((1, 4, 1, 1, 1), other), ((1, 3, 2, 2, 2), other)):
        with pytest.raises((ValueError, RuntimeError)):
            model(torch.randn(wrong, device=device))
    assert not taken
    with vg.limits(bytes=100), pytest.raises(vg.ResourceExhaustedError, match=r"InstanceNorm3d: input"):
        layer(torch.randn(1, 4, 3, 3, 3, device=device))


def test_autocast_gives_the_types_of_torch(device: str, taken: list[Norm]) -> None:
    for norm, activation in itertools.product(LAYERS, ("relu", "prelu")):
        made = []
        model = block(norm, activation, device).float()[1:3]
        for one in (model, vt.from_torch(copy.deepcopy(model))):
            assert isinstance(one, sequences.Joined) is (one is not model)
            x = torch.linspace(-2, 2, 2 * 4 * 27, device=device).reshape(2, 4, 3, 3, 3).bfloat16().requires_grad_()
            with torch.autocast(device, torch.bfloat16):
                y = one(x)
            y.float().square().sum().backward()
            made.append(y)
            assert x.grad.dtype is x.dtype and x.grad.stride() == x.stride()
        torch.testing.assert_close(*made, rtol=2e-2, atol=2e-2)
    assert taken
