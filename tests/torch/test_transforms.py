# SPDX-License-Identifier: Apache-2.0
"""Every operator under every transform of torch.func, against the same transform of torch's own ops."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch import func  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.nn import functional  # noqa: E402

import voxgrad as vg  # noqa: E402
import voxgrad.torch as vt  # noqa: E402
from voxgrad.torch.operators import call  # noqa: E402

# torch is installed by `python3 run test --parity`; its forward mode warns of itself when it is first used.
pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
]

F64 = torch.float64
Function = Callable[..., Any]
GROUPS, STRIDES, DILATIONS, WINDOW = 2, [2, 1, 1], [1, 2, 1], [1, 2, 3]
CONV = (STRIDES, DILATIONS, "VALID", False, "documented")
POOL = (WINDOW, STRIDES, "VALID", False, "documented")
CELLS, TAPS = (2, 4, 3, 4, 3), (2, 2, 1, 2, 6)


def draw(*shape: int, seed: int = 0) -> Any:
    """Random float64."""
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def conv(x: Any, w: Any) -> Any:
    """torch's convolution with a filter as TensorFlow has it."""
    return functional.conv3d(x, w.permute(4, 3, 0, 1, 2), stride=STRIDES, dilation=DILATIONS, groups=GROUPS)


def pool(kind: Function) -> Function:
    """A pool of torch's."""
    return lambda x: kind(x, WINDOW, STRIDES)


def back(function: Function, at: int, *primals: Any) -> Any:
    """What torch carries back to an operand of its function; the last primal is the gradient."""
    fixed = primals[:-1]

    def of_one(value: Any) -> Any:
        return function(*fixed[:at], value, *fixed[at + 1 :])

    return func.vjp(of_one, fixed[at])[1](primals[-1])[0]


X, W = draw(*CELLS), draw(*TAPS, seed=1)
DY, MEAN = draw(*conv(X, W).shape, seed=2), draw(*pool(functional.avg_pool3d)(X).shape, seed=3)
AVERAGE, MAXIMUM = pool(functional.avg_pool3d), pool(functional.max_pool3d)
TOP, BY_WINNER = MAXIMUM(X), draw(*CELLS, seed=4)
CASES: dict[str, tuple[Function, Function, tuple[Any, ...]]] = {
    "Conv3D": (lambda x, w: call.conv3d(x, w, *CONV), conv, (X, W)),
    "Conv3DBackpropInputV2": (
        lambda w, dy: call.conv3d_input(list(CELLS), w, dy, *CONV),
        lambda w, dy: back(conv, 0, torch.zeros(CELLS, dtype=F64), w, dy),
        (W, DY),
    ),
    "Conv3DBackpropFilterV2": (
        lambda x, dy: call.conv3d_filter(x, list(TAPS), dy, *CONV),
        lambda x, dy: back(conv, 1, x, torch.zeros(TAPS, dtype=F64), dy),
        (X, DY),
    ),
    "AvgPool3D": (lambda x: call.avg_pool(x, *POOL), AVERAGE, (X,)),
    "AvgPool3DGrad": (
        lambda dy: call.avg_pool_grad(list(CELLS), dy, *POOL),
        lambda dy: back(AVERAGE, 0, torch.zeros(CELLS, dtype=F64), dy),
        (MEAN,),
    ),
    "MaxPool3D": (lambda x: call.max_pool(x, *POOL), MAXIMUM, (X,)),
    "MaxPool3DGrad": (
        lambda x, dy: call.max_pool_grad(x, call.max_pool(x, *POOL), dy, *POOL),
        lambda x, dy: back(MAXIMUM, 0, x, dy),
        (X, MEAN),
    ),
    "MaxPool3DGradGrad": (
        lambda g: call.max_pool_grad_grad(X, TOP, g, *POOL),
        lambda g: winners(g),
        (BY_WINNER,),
    ),
}


def winners(g: Any) -> Any:
    """The values of g where X has its maxima, by torch's indices."""
    _, at = functional.max_pool3d(X, WINDOW, STRIDES, return_indices=True)
    return g.flatten(2).gather(2, at.flatten(2)).reshape(at.shape)


def scalar(function: Function) -> Function:
    """A number whose derivatives of every order are not zero."""
    return lambda *operands: function(*operands).sin().sum()


def tangents(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """A direction for every operand."""
    return tuple(draw(*value.shape, seed=10 + index) for index, value in enumerate(operands))


def dual(function: Function, operands: tuple[Any, ...]) -> Any:
    """Forward mode without torch.func, and the gradient of its tangent."""
    leaves = tuple(value.clone().requires_grad_() for value in (*operands, *tangents(operands)))
    with forward_ad.dual_level():
        made = function(*map(forward_ad.make_dual, leaves[: len(operands)], leaves[len(operands) :]))
        primal, tangent = forward_ad.unpack_dual(made)
        slopes = torch.autograd.grad(tangent.sin().sum(), leaves, allow_unused=True, materialize_grads=True)
    return primal.detach(), tangent.detach(), slopes


def twice(function: Function, operands: tuple[Any, ...]) -> Any:
    """Gradients of gradients without torch.func."""
    leaves = tuple(value.clone().requires_grad_() for value in operands)
    first = torch.autograd.grad(scalar(function)(*leaves), leaves, create_graph=True)
    total = sum(value.cos().sum() for value in first)
    return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)


def every(operands: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of all operands."""
    return tuple(range(len(operands)))


def stacked(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Three samples of every operand, along an axis of its own."""
    return tuple(torch.stack([value, value.flip(0), -value], index + 1) for index, value in enumerate(operands))


def mapped(function: Function, operands: tuple[Any, ...]) -> Any:
    """vmap over every choice of operands."""
    made, samples = [], stacked(operands)
    for chosen in range(1, 2 ** len(operands)):
        on = [bool(chosen >> index & 1) for index in every(operands)]
        given = [some if yes else one for some, one, yes in zip(samples, operands, on, strict=True)]
        made.append(func.vmap(function, tuple(i + 1 if yes else None for i, yes in enumerate(on)))(*given))
    return made


TRANSFORMS: dict[str, Callable[[Function, tuple[Any, ...]], Any]] = {
    "value": lambda f, at: f(*at),
    "grad": lambda f, at: func.grad(scalar(f), every(at))(*at),
    "vjp": lambda f, at: func.vjp(f, *at)[1](f(*at).cos()),
    "jvp": lambda f, at: func.jvp(f, at, tangents(at)),
    "jacrev": lambda f, at: func.jacrev(f, every(at))(*at),
    "jacfwd": lambda f, at: func.jacfwd(f, every(at))(*at),
    "hessian": lambda f, at: func.hessian(scalar(f), len(at) - 1)(*at),
    "vmap": mapped,
    "vmap of vmap": lambda f, at: func.vmap(func.vmap(f), 1)(*(torch.stack([value, -value])[:, None] for value in at)),
    "per sample": lambda f, at: func.vmap(
        func.grad(scalar(f), every(at)), tuple(index + 1 for index in every(at)))(*stacked(at)),
    "grad of vmap": lambda f, at: func.grad(scalar(func.vmap(f)), every(at))(*(value[None] for value in at)),
    "jvp of grad": lambda f, at: func.jvp(func.grad(scalar(f), every(at)), at, tangents(at)),
    "grad of jvp": lambda f, at: func.grad(lambda *a: func.jvp(scalar(f), a, tangents(at))[1], every(at))(*at),
    "jvp of jvp": lambda f, at: func.jvp(lambda *a: func.jvp(f, a, tangents(at))[1], at, tangents(at)),
    "forward mode": dual,
    "double backward": twice,
}  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", CASES)
def test_transform(name: str, transform: str) -> None:
    """It gives what it gives for torch's own op."""
    ours, theirs, operands = CASES[name]
    made, wanted = (TRANSFORMS[transform](function, operands) for function in (ours, theirs))
    torch.testing.assert_close(made, wanted)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_finite_differences(name: str, last: bool) -> None:
    """Reverse, forward, batched and mixed modes agree with differences, with SAME padding and in both layouts."""
    x, w = draw(1, 2, 3, 2, 2), draw(2, 1, 2, 1, 2, seed=1)
    conv_attrs, pool_attrs = (
        ([1, 2, 1], [1, 1, 1], "SAME", last, "documented"),
        (WINDOW, STRIDES, "SAME", last, "documented"),
    )
    y, top = call.conv3d(x, w, *conv_attrs), call.max_pool(x, *pool_attrs)
    dy, small = draw(*y.shape, seed=2), draw(*top.shape, seed=3)
    functions: dict[str, tuple[Function, tuple[Any, ...]]] = {
        "Conv3D": (lambda x, w: call.conv3d(x, w, *conv_attrs), (x, w)),
        "Conv3DBackpropInputV2": (lambda w, dy: call.conv3d_input(x.shape, w, dy, *conv_attrs), (w, dy)),
        "Conv3DBackpropFilterV2": (lambda x, dy: call.conv3d_filter(x, w.shape, dy, *conv_attrs), (x, dy)),
        "AvgPool3D": (lambda x: call.avg_pool(x, *pool_attrs), (x,)),
        "AvgPool3DGrad": (lambda dy: call.avg_pool_grad(x.shape, dy, *pool_attrs), (small,)),
        "MaxPool3D": (lambda x: call.max_pool(x, *pool_attrs), (x,)),
        "MaxPool3DGrad": (lambda dy: call.max_pool_grad(x, top, dy, *pool_attrs), (small,)),
        "MaxPool3DGradGrad": (lambda g: call.max_pool_grad_grad(x, top, g, *pool_attrs), (x.sin(),)),
    }  # fmt: skip
    function, operands = functions[name]
    leaves = tuple(value.clone().requires_grad_() for value in operands)
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(function, leaves, **modes)
    assert torch.autograd.gradgradcheck(function, leaves, check_fwd_over_rev=True, check_rev_over_rev=True)


def network() -> Any:
    """Layers of ours, and torch's own that compute the same."""
    torch.manual_seed(0)
    ours = torch.nn.Sequential(
        vt.Conv3dSame(2, 4, 3, groups=2),
        torch.nn.Tanh(),
        vt.AvgPool3dSame(2, 1, "VALID"),
        vt.MaxPool3dSame(2, 2, "VALID"),
    )
    theirs = torch.nn.Sequential(
        torch.nn.Conv3d(2, 4, 3, padding=1, groups=2),
        torch.nn.Tanh(),
        torch.nn.AvgPool3d(2, 1),
        torch.nn.MaxPool3d(2, 2),
    )
    theirs.load_state_dict(ours.state_dict())
    return ours.double(), theirs.double()


LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "functional_call": lambda model, weights, x: func.functional_call(model, weights, (x,)),
    "gradients": lambda model, weights, x: func.grad(
        lambda w: func.functional_call(model, w, (x,)).square().sum())(weights),
    "per sample": lambda model, weights, x: func.vmap(
        func.grad(lambda w, one: func.functional_call(model, w, (one[None],)).square().sum()), (None, 0))(weights, x),
    "one volume": lambda model, weights, x: func.vmap(
        lambda one: func.functional_call(model, weights, (one,)))(x),
    "tangent": lambda model, weights, x: func.jvp(
        lambda w: func.functional_call(model, w, (x,)), (weights,), ({k: v.sin() for k, v in weights.items()},)),
}  # fmt: skip


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
@pytest.mark.parametrize("loss", LOSSES)
def test_models(loss: str, backend: str | None) -> None:
    """Transforms of whole models, also compiled in one graph."""
    torch._dynamo.reset()
    x, made = draw(2, 2, 5, 4, 4), []
    for model in network():
        weights = {name: value.detach() for name, value in model.named_parameters()}

        def run(weights: Any, x: Any, model: Any = model) -> Any:
            return LOSSES[loss](model, weights, x)

        made.append((torch.compile(run, backend=backend, fullgraph=True) if backend else run)(weights, x))
    torch.testing.assert_close(*made)


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_autocast_of_transforms(device: str) -> None:
    """Under autocast a convolution's tangents and gradients come in autocast's type and the parameters' own."""
    x, layer = torch.randn(2, 2, 4, 4, 4, device=device), vt.Conv3dSame(2, 3, 3).to(device)
    weights = {name: value.detach() for name, value in layer.named_parameters()}
    with torch.autocast(device, dtype=torch.bfloat16):
        y, dy = func.jvp(lambda x: layer(x), (x,), (x.sin(),))
        grads = func.grad(lambda w: func.functional_call(layer, w, (x,)).float().sum())(weights)
    assert y.dtype is dy.dtype is torch.bfloat16 and dy.abs().sum() > 0
    assert grads["weight"].dtype is torch.float32 and grads["weight"].abs().sum() > 0


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_limits(device: str) -> None:
    """`vg.limits` holds for results and for gradients, also for those that another thread computes."""
    x = torch.ones(1, 4, 4, 4, 1, device=device, requires_grad=True)
    with pytest.raises(ValueError, match="VG020"), vg.limits(bytes=3):
        vt.avg_pool3d(x, 4, data_format="NDHWC")
    with vg.limits(bytes=63):
        y = vt.avg_pool3d(x, 4, data_format="NDHWC")
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="VG020"):
        pool.submit(y.sum().backward).result()
