# SPDX-License-Identifier: Apache-2.0
"""Places of maxima, the way back from them, and adaptive pools, beside torch's own, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="voxgrad.torch needs torch")

from torch import func  # noqa: E402
from torch.nn import functional  # noqa: E402

import voxgrad as vg  # noqa: E402
from voxgrad import nn  # noqa: E402

# torch is installed by `python3 run test --parity`; its forward mode warns of itself when it is first used.
pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
]

OPTIONS: dict[str, Any] = {"strides": 2, "padding": 1, "data_format": "NCDHW"}


def slopes(made: Any, x: Any) -> Any:
    """The first and the second gradient of numbers that have both."""
    (one,) = torch.autograd.grad((made**3).sum(), x, create_graph=True)
    return one, torch.autograd.grad((one**2).sum(), x)[0]


def there_and_back(x: Any, ksize: int = 3) -> Any:
    """What is left of a volume at its maxima."""
    y, indices = nn.max_pool3d_with_argmax(x, ksize, **OPTIONS)
    return nn.max_unpool3d(y, indices, ksize, output_size=x.shape[-3:], **OPTIONS)


def means(x: Any) -> Any:
    """Windows of one and of two sizes, and such that are as many as cells."""
    return nn.adaptive_avg_pool3d(x, (3, None, 4), data_format="NCDHW")


def their_means(x: Any) -> Any:
    return functional.adaptive_avg_pool3d(x, (3, None, 4))


def draw(*shape: int, ties: bool = False) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    made = torch.randn(shape, dtype=torch.float64, generator=generator)
    return (2 * made).round() if ties else made


@pytest.mark.parametrize("case", range(16))
def test_beside_torch(case: int) -> None:
    random = np.random.default_rng(case)
    sizes, outs = (tuple(random.integers(low, 9, 3).tolist()) for low in (4, 1))
    window, strides = (tuple(random.integers(1, 4, 3).tolist()) for _ in range(2))
    padding = tuple(int(random.integers(0, k // 2 + 1)) for k in window)
    x = draw(2, 3, *sizes, ties=case % 2 == 0).requires_grad_()
    options: Any = {"strides": strides, "padding": padding, "data_format": "NCDHW"}
    top, at = functional.max_pool3d(x, window, strides, padding, return_indices=True)
    y, indices = nn.max_pool3d_with_argmax(x, window, **options)
    assert torch.equal(y, top) and torch.equal(indices, at)
    theirs = functional.max_unpool3d(top, at, window, strides, padding, sizes)
    ours = nn.max_unpool3d(y, indices, window, output_size=sizes, **options)
    assert torch.equal(ours, theirs) and ours.is_contiguous()
    # Of a cell that several windows name torch's gradient goes to all of them, though only one value was taken.
    apart = all(step >= k for k, step in zip(window, strides, strict=True))
    pairs = [(ours, theirs) if apart else (y, top)]
    for name in ("adaptive_avg_pool3d", "adaptive_max_pool3d"):
        pairs.append((getattr(nn, name)(x, outs, data_format="NCDHW"), getattr(functional, name)(x, outs)))
    for one, other in pairs:
        torch.testing.assert_close(one, other)
        for slope, wanted in zip(slopes(one, x), slopes(other, x), strict=True):
            torch.testing.assert_close(slope, wanted)


def test_the_last_value_for_a_cell_is_taken_and_gets_the_gradient() -> None:
    y = torch.arange(1.0, 5).reshape(1, 1, 1, 4, 1).requires_grad_()
    made = nn.max_unpool3d(y, torch.tensor([3, 1, 3, -1]).reshape(1, 1, 1, 4, 1), (1, 1, 2), strides=1)
    assert made.flatten().tolist() == [0, 2, 0, 3, 0]
    assert torch.autograd.grad(made.sum(), y)[0].flatten().tolist() == [0, 1, 1, 0]
    x = draw(1, 1, 3, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(there_and_back, (x,)) and torch.autograd.gradgradcheck(there_and_back, (x,))


def hessian(function: Callable[..., Any]) -> Any:
    return func.hessian(lambda x: (function(x) ** 3).sum())


@pytest.mark.parametrize("transform", [func.vmap, func.jacrev, func.jacfwd, hessian])
def test_under_transforms(transform: Callable[..., Any]) -> None:
    samples = draw(2, 2, 2, 5, 3, 4) if transform is func.vmap else draw(1, 1, 4, 2, 5)
    torch.testing.assert_close(transform(means)(samples), transform(their_means)(samples))
    made = transform(there_and_back)(samples)
    if transform is func.vmap:
        assert torch.equal(made, torch.stack([there_and_back(one) for one in samples]))
        y, indices = nn.max_pool3d_with_argmax(samples[0], 3, **OPTIONS)
        unpool = lambda y, indices: nn.max_unpool3d(y, indices, 3, output_size=(5, 3, 4), **OPTIONS)  # noqa: E731
        for dims, places in (((2, None), indices), ((2, 3), torch.stack([indices, indices], 3))):
            assert torch.equal(func.vmap(unpool, dims)(torch.stack([y, -y], 2), places)[1], -there_and_back(samples[0]))
    else:  # What is left of a volume is the volume, where it is left.
        kept = there_and_back(samples) != 0
        torch.testing.assert_close(made, transform(lambda x: x * kept)(samples))


@pytest.mark.parametrize("function", [there_and_back, means, lambda x: nn.max_pool3d_with_argmax(x, 3, **OPTIONS)[1]])
def test_compiled_in_one_graph(function: Callable[..., Any]) -> None:
    for x in (draw(2, 2, 5, 3, 4), draw(2, 2, 6, 5, 4)):
        torch._dynamo.reset()
        assert torch.equal(torch.compile(function, fullgraph=True, backend="aot_eager")(x), function(x))


def test_tensors_of_any_form() -> None:
    x = draw(2, 3, 6, 5, 7)
    wanted = *nn.max_pool3d_with_argmax(x, 3, **OPTIONS), there_and_back(x), means(x)
    turned = x.permute(0, 2, 3, 4, 1).contiguous().permute(0, 4, 1, 2, 3)
    for given in (turned, torch.stack([x, x], -1)[..., 0], x.clone().requires_grad_()):
        with torch.no_grad():
            made = *nn.max_pool3d_with_argmax(given, 3, **OPTIONS), there_and_back(given), means(given)
        for one, other in zip(made, wanted, strict=True):
            assert torch.equal(one, other) and not one.requires_grad
    alone = *nn.max_pool3d_with_argmax(x[1], 3, **OPTIONS), there_and_back(x[1]), means(x[1])
    assert all(torch.equal(one, other[1]) for one, other in zip(alone, wanted, strict=True))
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        small = x.round().to(dtype)
        y, at = functional.max_pool3d(small.float(), 3, 2, 1, return_indices=True)
        made = nn.max_pool3d_with_argmax(small, 3, **OPTIONS)
        assert made[0].dtype is dtype and torch.equal(made[0].float(), y) and torch.equal(made[1], at)
        assert there_and_back(small).dtype is dtype and torch.equal(means(small), means(small.float()).to(dtype))
    empty = nn.max_pool3d_with_argmax(x[:0], 3, **OPTIONS)
    assert empty[1].shape == (0, 3, 3, 3, 4)
    assert nn.max_unpool3d(*empty, 3, output_size=(6, 5, 7), **OPTIONS).shape == (0, 3, 6, 5, 7)


def test_what_is_wrong_is_told() -> None:
    y, at = nn.max_pool3d_with_argmax(draw(1, 2, 4, 4, 4), 2, data_format="NCDHW")
    options: Any = {"ksize": 2, "data_format": "NCDHW"}
    beyond = at.clone()
    beyond[0, 1, 0, 1, 0] = 64
    with pytest.raises(vg.InvalidArgumentError, match=r"one of the 64 cells.* got 64 at \[0,1,0,1,0\]"):
        nn.max_unpool3d(y, beyond, **options)
    with pytest.raises(vg.InvalidArgumentError, match="indices must be of type int32, int64; got float"):
        nn.max_unpool3d(y, at.double(), **options)
    with pytest.raises(vg.InvalidArgumentError, match="indices must be a Tensor; got ndarray"):
        nn.max_unpool3d(y, at.numpy(), **options)
    with pytest.raises(vg.InvalidArgumentError, match="indices must be of the kind of input, numpy; got a torch"):
        nn.max_unpool3d(y.numpy(), at, **options)
    with pytest.raises(vg.InvalidArgumentError, match="indices must name one of the 64 cells"):
        func.vmap(lambda y, at: nn.max_unpool3d(y, at, **options))(y[None], at[None] + 64)
    with pytest.raises(vg.InvalidArgumentError, match="input must be of type half"):
        nn.adaptive_avg_pool3d(at, 2)
    with pytest.raises(vg.InvalidArgumentError, match="output_size must be at least 1 in depth"):
        nn.adaptive_max_pool3d(y, (0, 1, 1), data_format="NCDHW")
    with vg.limits(bytes=100), pytest.raises(vg.ResourceExhaustedError, match="VG020"):
        nn.max_unpool3d(y, at, **options)
