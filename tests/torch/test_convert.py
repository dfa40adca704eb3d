# SPDX-License-Identifier: Apache-2.0
"""`vt.from_torch`: a converted layer gives torch's numbers, others stay, and the report tells which."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch import func, nn  # noqa: E402
from torch.nn import functional as theirs  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402

import voxgrad as vg  # noqa: E402
import voxgrad.torch as vt  # noqa: E402

# torch is installed by `python3 run test --parity`; its forward mode warns of itself when it is first used.
pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`torch.nn.utils.(weight|spectral)_norm` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning"),
]

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
Draw = Callable[[int, int], tuple[int, ...]]


def three_of(random: Any) -> Draw:
    return lambda low, high: tuple(random.integers(low, high + 1, 3).tolist())


def convolution(random: Any, draw: Draw) -> Any:
    groups = int(random.integers(1, 4))
    into, out = (groups * int(random.integers(1, 5)) for _ in range(2))
    padding = random.choice(["numbers", "same", "valid"])
    stated = draw(0, 3) if padding == "numbers" else str(padding)
    stride = (1, 1, 1) if padding == "same" else draw(1, 3)
    options = {"groups": groups, "dilation": draw(1, 2), "padding": stated, "bias": bool(random.integers(2))}
    return nn.Conv3d(into, out, draw(1, 4), stride, **options), (into, *draw(7, 9))


def transposed(random: Any, draw: Draw) -> Any:
    groups, stride = int(random.integers(1, 4)), draw(1, 3)
    into, out = (groups * int(random.integers(1, 5)) for _ in range(2))
    more = tuple(int(random.integers(step)) for step in stride)
    options = {"groups": groups, "dilation": draw(1, 2), "bias": bool(random.integers(2)), "output_padding": more}
    return nn.ConvTranspose3d(into, out, draw(1, 3), stride, draw(0, 1), **options), (into, *draw(3, 5))


def pool(kind: Any) -> Callable[[Any, Draw], Any]:
    def make(random: Any, draw: Draw) -> Any:
        window = draw(1, 4)
        padding = tuple(int(random.integers(0, each // 2 + 1)) for each in window)
        options: dict[str, Any] = {"padding": padding, "ceil_mode": bool(random.integers(2))}
        if kind is nn.AvgPool3d:
            options["count_include_pad"] = bool(random.integers(2))
        stride = None if random.integers(3) == 0 else draw(1, 4)
        return kind(window, stride, **options), (int(random.integers(1, 5)), *draw(4, 8))

    return make


def adaptive(kind: Any) -> Callable[[Any, Draw], Any]:
    def make(random: Any, draw: Draw) -> Any:
        outs, times = draw(1, 3), draw(1, 3)
        spatial = (out * more for out, more in zip(outs, times, strict=True))
        return kind((outs[0], None, outs[2])), (int(random.integers(1, 5)), *spatial)

    return make


KINDS = (
    convolution, transposed, pool(nn.MaxPool3d), pool(nn.AvgPool3d), adaptive(nn.AdaptiveAvgPool3d),
    adaptive(nn.AdaptiveMaxPool3d),
)  # fmt: skip


def drawn(case: int) -> tuple[Any, Any, Any]:
    """A layer of torch's in float64, data for it, and the type that it is converted in, which holds all numbers."""
    random = np.random.default_rng((20261118, case))
    torch.manual_seed(case)
    layer, shape = KINDS[case % len(KINDS)](random, three_of(random))
    dtype = TYPES[int(random.integers(len(TYPES)))]
    x = torch.randn(shape if random.integers(5) == 0 else (2, *shape)).to(dtype)
    x = x.to(memory_format=torch.channels_last_3d) if x.dim() == 5 and random.integers(2) else x
    return layer.to(dtype), x, dtype


def absolute(layer: Any) -> Any:
    made = copy.deepcopy(layer).double()
    for value in made.parameters():
        value.data.abs_()
    return made


def backward(layer: Any, x: Any, dy: Any) -> list[Any]:
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = layer(x)
    return [y.detach(), *torch.autograd.grad(y, (x, *layer.parameters()), dy)]


def within_one_rounding(ours: Any, truth: Any, terms: Any, beside: Any, dtype: Any) -> None:
    """One rounding of the type beside the error of a sum in float32, or in float64, of terms of these sizes."""
    summed = torch.finfo(torch.float64 if dtype is torch.float64 else torch.float32).eps
    allowed = torch.finfo(dtype).eps * (truth.abs() + beside) + 8 * summed * terms.abs() + torch.finfo(dtype).tiny
    assert ours.dtype is dtype and ours.shape == truth.shape
    assert float(((ours.double() - truth).abs() / allowed).max()) <= 1


def check_case(case: int) -> None:
    """Forward and backward in the drawn type; forward mode and second order in float64, beside torch's own."""
    layer, x, dtype = drawn(case)
    exact, ours = copy.deepcopy(layer).double(), vt.from_torch(copy.deepcopy(layer))
    assert vt.report(ours).converted and repr(ours) == repr(layer)
    dy = torch.randn(exact(x.double()).shape).to(dtype)
    large = absolute(layer)
    by_value = x.double() if isinstance(layer, (nn.MaxPool3d, nn.AdaptiveMaxPool3d)) else x.double().abs()
    bias = next((value.detach().double().abs().max() for name, value in layer.named_parameters() if name == "bias"), 0)
    results = (backward(model, at, by) for model, at, by in (
        (ours, x, dy), (exact, x.double(), dy.double()), (large, by_value, dy.double().abs())))  # fmt: skip
    for place, (one, truth, terms) in enumerate(zip(*results, strict=True)):
        within_one_rounding(one, truth, terms, 0 if place else bias, dtype)
    ours, x = ours.double(), x.double()
    weights, tangents = ({n: f(v.detach()) for n, v in exact.named_parameters()} for f in (torch.clone, torch.sin))

    def slopes(model: Any) -> Any:
        call = lambda w, x: func.functional_call(model, w, (x,))  # noqa: E731
        first = func.grad(lambda w, x: call(w, x).sin().sum(), (0, 1))
        total = lambda w, x: sum(one.square().sum() for one in (*first(w, x)[0].values(), first(w, x)[1]))  # noqa: E731
        return func.jvp(call, (weights, x), (tangents, x.cos())), func.grad(total, (0, 1))(weights, x)

    torch.testing.assert_close(slopes(ours), slopes(exact), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("cases", [range(first, first + 6) for first in range(0, 36, 6)], ids=str)
def test_random_layers(cases: range) -> None:
    for case in cases:
        try:
            check_case(case)
        except BaseException as error:
            error.add_note(f"case {case}: {drawn(case)[0]}, {drawn(case)[1].shape}, {drawn(case)[2]}")
            raise


@pytest.mark.slow
@pytest.mark.parametrize("cases", [range(first, first + 25) for first in range(36, 336, 25)], ids=str)
def test_more_random_layers(cases: range) -> None:
    for case in cases:
        try:
            check_case(case)
        except BaseException as error:
            error.add_note(f"case {case}: {drawn(case)[0]}, {drawn(case)[1].shape}, {drawn(case)[2]}")
            raise


SMALL: dict[str, Any] = {
    "convolution": lambda: nn.Conv3d(2, 2, (1, 2, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2), groups=2),
    "same": lambda: nn.Conv3d(1, 2, (1, 2, 2), padding="same"),
    "transposed": lambda: nn.ConvTranspose3d(2, 1, (1, 2, 2), (2, 1, 2), (0, 1, 0), (1, 0, 1)),
    "maximum": lambda: nn.MaxPool3d(2, (1, 2, 1), (0, 1, 1), ceil_mode=True),
    "mean": lambda: nn.AvgPool3d((1, 2, 2), 2, (0, 1, 1), ceil_mode=True),
    "adaptive": lambda: nn.AdaptiveMaxPool3d((1, None, 3)),
}


@pytest.mark.parametrize("name", SMALL)
def test_finite_differences(name: str) -> None:
    layer = vt.from_torch(SMALL[name]()).double()
    x = torch.randn(1, layer.in_channels if "in_channels" in vars(layer) else 1, 2, 3, 3, dtype=torch.float64)
    weights = {key: value.detach() for key, value in layer.named_parameters()}
    given = tuple(value.requires_grad_() for value in (x, *weights.values()))
    call = lambda x, *values: func.functional_call(layer, dict(zip(weights, values, strict=True)), (x,))  # noqa: E731
    assert torch.autograd.gradcheck(call, given, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, given, check_fwd_over_rev=True, fast_mode=True)


class Standardised(nn.Conv3d):
    """A subclass that computes something else."""

    def forward(self, input: Any) -> Any:
        """With weights of mean 0."""
        return self._conv_forward(input, self.weight - self.weight.mean(), self.bias)


def patched() -> Any:
    """A layer with a forward of its own."""
    layer = nn.AvgPool3d(2)
    layer.forward = lambda input: input * 2  # type: ignore[method-assign]
    return layer


LEFT: dict[str, tuple[Any, str]] = {
    "divisor": (lambda: nn.AvgPool3d(2, divisor_override=1), "divisor_override=1"),
    "dilated": (lambda: nn.MaxPool3d(2, 1, dilation=(1, 2, 1)), "dilation=(1, 2, 1)"),
    "indices": (lambda: nn.MaxPool3d(2, return_indices=True), "return_indices=True"),
    "adaptive indices": (lambda: nn.AdaptiveMaxPool3d(2, return_indices=True), "return_indices=True"),
    "subclass": (lambda: Standardised(2, 2, 3, padding=1), "a subclass of nn.Conv3d"),
    "patched": (patched, "a forward of its own"),
    "weight_norm": (lambda: parametrizations.weight_norm(nn.Conv3d(2, 2, 3)), "parametrised (weight): convert first"),
    "spectral_norm": (lambda: parametrizations.spectral_norm(nn.Conv3d(2, 2, 3)).eval(), "parametrised (weight)"),
    "circular": (lambda: nn.Conv3d(2, 2, 3, padding=1, padding_mode="circular"), "padding_mode='circular'"),
    "complex": (lambda: nn.Conv3d(2, 2, 1, dtype=torch.complex64), "weights of torch.complex64"),
    "beyond the stride": (
        lambda: nn.ConvTranspose3d(2, 2, 3, dilation=2, output_padding=1), "output_padding=(1, 1, 1), not less than"),
    "lazy": (lambda: nn.LazyConv3d(2, 3), "a subclass of nn.Conv3d"),
    "another": (lambda: nn.LocalResponseNorm(2), "no kernel here"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_stays(name: str) -> None:
    """A layer that ours would not equal stays, with the numbers that it had, and the report says why."""
    make, why = LEFT[name]
    layer, x = make(), torch.randn(1, 2, 4, 5, 6)
    x[0, 0, 0, 0, 0] = float("nan")
    x = x.to(torch.complex64) if name == "complex" else x
    kind, model = type(layer), nn.Sequential(layer)
    before = None if name == "lazy" else layer(x)
    assert vt.from_torch(model)[0] is layer and type(layer) is kind
    (line,) = vt.report(model).left
    assert line.name == "0" and line.layer == kind.__name__ and line.why.startswith(why)
    torch.testing.assert_close(model(x) if before is not None else before, before, equal_nan=True)


def doubled(layer: Any) -> Any:
    layer.register_forward_hook(lambda module, inputs, output: output * 2)
    layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    layer.register_full_backward_hook(lambda module, into, out: tuple(one * 3 for one in into))
    return layer


def pruned(layer: Any) -> Any:
    prune.l1_unstructured(layer, "weight", 3)
    return layer


KEPT: dict[str, Any] = {
    "hooks": doubled,
    "pruned": pruned,
    "weight_norm of old": nn.utils.weight_norm,
    "spectral_norm of old": lambda layer: nn.utils.spectral_norm(layer).eval(),
    "frozen": lambda layer: layer.requires_grad_(False),
}


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("name", [*KEPT, "weight_norm", "spectral_norm"])
def test_what_is_added_to_a_layer_works_on(name: str, order: str) -> None:
    """Hooks and what they are made for; a parametrisation, if it comes after the conversion."""
    add = KEPT.get(name) or (lambda layer: getattr(parametrizations, name)(layer).eval())
    made, x = [], torch.randn(2, 4, 5, 5, 5, dtype=torch.float64)
    for convert in (False, True):
        torch.manual_seed(0)
        layer = nn.Conv3d(4, 6, 3, 2, 1, dtype=torch.float64)
        for step in (add, vt.from_torch) if order == "before" else (vt.from_torch, add):
            layer = step(layer) if convert or step is add else layer
        left = [line.why for line in vt.report(layer).left]
        assert not convert or bool(left) is (order == "before" and name not in KEPT)
        given = x.clone().requires_grad_()
        layer(given).square().sum().backward()
        slopes = {key: value.grad for key, value in layer.named_parameters() if value.requires_grad}
        made.append((layer(given), given.grad, slopes, layer.state_dict()))
    torch.testing.assert_close(*made)


@pytest.mark.parametrize("kind", [nn.MaxPool3d, nn.AdaptiveMaxPool3d])
@pytest.mark.parametrize("last", [False, True])
def test_nan_wins_a_maximum(kind: Any, last: bool) -> None:
    """The last of a window, and takes the gradient, in every order and mode, also where infinities are."""
    layer = nn.MaxPool3d(3, 2, 1, ceil_mode=True) if kind is nn.MaxPool3d else nn.AdaptiveMaxPool3d(3)
    x = torch.randn(2, 3, 6, 6, 6, dtype=torch.float64)
    x[torch.rand(x.shape) < 0.05] = torch.nan
    x[torch.rand(x.shape) < 0.05] = torch.inf
    if not last:  # Of a window of -inf alone torch names a cell of another depth, with channels last.
        x[torch.rand(x.shape) < 0.1] = -torch.inf
    x = x.to(memory_format=torch.channels_last_3d) if last else x
    made = []
    for model in (layer, vt.from_torch(copy.deepcopy(layer))):
        weight = torch.randn(model(x).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        slope = func.grad(lambda x: (model(x).nan_to_num(1, 1, 1) * weight).sum())  # noqa: B023
        y, back = func.vjp(model, x)
        again = func.vjp(lambda dy: back(dy)[0], weight)  # noqa: B023
        forward = func.jvp(model, (x,), (x.nan_to_num(2, 3, 4),))
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
        made.append(
            (y, back(weight), slope(x), forward, again[1](torch.ones_like(x)), compiled, func.vmap(model)(x[None]))
        )
    torch.testing.assert_close(*made, equal_nan=True)
    assert made[0][0].isnan().any() and not made[0][0].isnan().all()


def test_types_and_devices_without_kernels_stay_torch_s() -> None:
    labels = torch.randint(0, 9, (1, 2, 5, 5, 5))
    assert torch.equal(vt.MaxPool3d(2)(labels), theirs.max_pool3d(labels, 2))
    z = torch.randn(1, 2, 5, 5, 5, dtype=torch.complex64)
    layer = vt.Conv3d(2, 3, 3, dtype=torch.complex64)
    assert torch.equal(layer(z), theirs.conv3d(z, layer.weight, layer.bias))
    x = torch.randn(1, 2, 5, 7, 4, dtype=torch.bfloat16)
    assert torch.equal(vt.AdaptiveAvgPool3d((2, None, 3))(x), theirs.adaptive_avg_pool3d(x, (2, None, 3)))
    assert vt.Conv3d(2, 3, 3, device="meta")(torch.empty(1, 2, 5, 5, 5, device="meta")).shape == (1, 3, 3, 3, 3)


def network() -> Any:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Conv3d(3, 3, 3, padding="same"), nn.ReLU())
    return nn.ModuleDict({
        "down": nn.Sequential(nn.Conv3d(1, 3, 3, 2, 1), nn.InstanceNorm3d(3), block),
        "middle": block,  # a layer that is used twice stays one
        "pool": nn.Sequential(nn.MaxPool3d(2), nn.AvgPool3d(2, divisor_override=3)),
        "up": nn.ConvTranspose3d(3, 1, 2, 2),
    })  # fmt: skip


def test_a_model_is_changed_in_place_and_the_report_prints_as_a_table() -> None:
    model = network()
    state, known = torch.get_rng_state(), dict(model.named_modules())
    assert {line.why for line in vt.report(model).lines} == {
        "can be converted: vt.from_torch(model)", "divisor_override=3", "no kernel here"}  # fmt: skip
    assert vt.from_torch(model) is model and dict(model.named_modules()) == known
    assert torch.equal(torch.get_rng_state(), state) and model["middle"][0] is model["down"][2][0]
    assert (
        str(vt.report(model))
        == """\
5 of the 7 layers run in voxgrad

name        layer            runs in  why
down.0      Conv3d           voxgrad
down.1      InstanceNorm3d   voxgrad  on a CPU torch's own
down.2.0    Conv3d           voxgrad
pool.0      MaxPool3d        voxgrad  on a GPU torch's own
pool.1      AvgPool3d        torch    divisor_override=3
up          ConvTranspose3d  voxgrad
(1 layers)  ReLU             torch    no kernel here"""
    )


def test_converted_models_copy_pickle_and_load() -> None:
    model = nn.Sequential(nn.Conv3d(1, 3, 3, 2, 1), nn.ReLU(), nn.ConvTranspose3d(3, 1, 2, 2), nn.MaxPool3d(2))
    x, plain = torch.randn(2, 1, 6, 6, 6), copy.deepcopy(model)
    ours = vt.from_torch(model).eval()
    saved = io.BytesIO()
    torch.save(ours, saved)
    saved.seek(0)
    made = [copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(saved, weights_only=False)]
    loaded = vt.from_torch(nn.Sequential(nn.Conv3d(1, 3, 3, 2, 1), nn.ReLU(), nn.ConvTranspose3d(3, 1, 2, 2)))
    loaded.load_state_dict(plain.state_dict())
    plain.load_state_dict(ours.state_dict())
    for one in made:
        assert [type(layer) for layer in one] == [type(layer) for layer in ours] and not one.training
        assert torch.equal(one(x), ours(x)) and one[0].weight is not ours[0].weight
    torch.testing.assert_close(plain(x), ours(x))
    torch.testing.assert_close(ours[3](loaded(x)), ours(x))


def test_layers_are_made_as_torch_s() -> None:
    layer = vt.ConvTranspose3d(2, 4, 3, 2, 1, groups=2, device="cpu", dtype=torch.bfloat16)
    assert repr(layer) == repr(nn.ConvTranspose3d(2, 4, 3, 2, 1, groups=2)) and layer.weight.dtype is torch.bfloat16
    x = torch.randn(2, 4, 4, 4, dtype=torch.bfloat16)
    assert layer(x, output_size=(8, 7, 8)).shape == (4, 8, 7, 8)
    same = vt.Conv3dSame(4, 6, (1, 3, 3), stride=2, groups=2, bias=False, device="cpu", dtype=torch.float64)
    assert same.weight.dtype is torch.float64 and repr(same) == (
        "Conv3dSame(4, 6, kernel_size=(1, 3, 3), stride=(2, 2, 2), padding=SAME, groups=2, bias=False, "
        "data_format=NCDHW)"
    )
    x = torch.randn(4, 4, 4, 4, dtype=torch.float64)
    assert torch.equal(copy.deepcopy(same)(x), same(x[None])[0])
    assert repr(vt.MaxPool3dSame(2)) == (
        "MaxPool3dSame(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=SAME, data_format=NCDHW)")  # fmt: skip
    for wrong in (vt.Conv3d(4, 6, 3), vt.ConvTranspose3d(4, 6, 3), vt.Conv3dSame(4, 6, 3)):
        for channels in (2, 8):
            with pytest.raises(vg.InvalidArgumentError, match=r"VG013 .* input must have 4 channels; got"):
                wrong(torch.zeros(1, channels, 4, 4, 4))


def test_functions_are_torch_s_and_refuse_what_they_do_not_compute() -> None:
    x, w = torch.randn(2, 4, 5, 6, 7), torch.randn(4, 2, 3, 3, 3)
    given = (x, w, torch.ones(4), 2, 1)
    torch.testing.assert_close(vt.functional.conv3d(*given, 2, 2), theirs.conv3d(*given, 2, 2))
    torch.testing.assert_close(vt.conv_transpose3d(*given, 1, 2), theirs.conv_transpose3d(*given, 1, 2))
    made = vt.conv3d(x, w.permute(2, 3, 4, 1, 0), padding=1)
    torch.testing.assert_close(made, theirs.conv3d(x, w, padding=1, groups=2))
    for call, words in (
        (
            lambda f: f.max_pool3d(x, 2, dilation=2),
            "VG003 functional.max_pool3d: .* got dilation=2. torch.nn.functional",
        ),
        (lambda f: f.max_pool3d(x, 2, return_indices=True), "return_indices=True"),
        (lambda f: f.avg_pool3d(x, 2, divisor_override=3), "divisor_override=3"),
        (lambda f: f.conv_transpose3d(x, w, dilation=2, output_padding=1, groups=2), "output_padding=1, not less"),
    ):
        call(theirs)
        with pytest.raises(vg.InvalidArgumentError, match=words):
            call(vt.functional)
    with pytest.raises(vg.InvalidArgumentError, match=r"padding must be .*'same' where the stride is 1"):
        vt.functional.conv3d(x, w, stride=2, padding="same", groups=2)


def test_how_a_weight_lies() -> None:
    """Where its channels are last, a GPU's results have theirs last; one cell of one channel tells nothing."""
    for shape, tells in (((4, 3, 3, 3, 3), True), ((4, 1, 3, 3, 3), True), ((4, 3, 1, 1, 1), True),
                         ((1, 3, 1, 2, 1), True), ((4, 1, 1, 1, 1), False)):  # fmt: skip
        weight = torch.randn(shape)
        assert not vt.functional.lies_last(weight), shape
        assert vt.functional.lies_last(weight.to(memory_format=torch.channels_last_3d)) is tells, shape


def test_settings_hold() -> None:
    """`vg.limits` bounds results and copies; semantics are those of torch, whatever else is in force."""
    x = torch.zeros(1, 1, 4, 4, 4)
    for layer in (vt.Conv3d(1, 1, 3), vt.ConvTranspose3d(1, 1, 2), vt.MaxPool3d(2), vt.AvgPool3d(3, 1, 1)):
        with vg.limits(bytes=31), pytest.raises(vg.ResourceExhaustedError, match="VG020"):
            layer(x)
    with vg.limits(bytes=600), pytest.raises(vg.ResourceExhaustedError, match=r"avg_pool3d: input .*864 bytes"):
        vt.AvgPool3d(3, 3, 1)(x)
    ties = torch.ones(1, 1, 4, 4, 4, requires_grad=True)
    with vg.semantics("tf_cpu"):
        vt.MaxPool3d(2)(ties).sum().backward()
    assert ties.grad.sum() == 8
