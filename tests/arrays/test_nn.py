# SPDX-License-Identifier: Apache-2.0
"""`vg.nn`: plain arguments mean what they say, on every kind of array, beside torch where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad import nn

RANDOM = np.random.default_rng(7)


def integers(*shape: int) -> Any:
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


X, W = integers(2, 5, 6, 7, 4), integers(3, 2, 3, 2, 6)


def test_numbers_stand_for_all_axes() -> None:
    raw = {"strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    assert np.array_equal(nn.conv3d(X, W, strides=2), vg.raw_ops.Conv3D(input=X, filter=W, **raw))
    windows = {"ksize": [1, 1, 2, 3, 1], "strides": [1, 1, 2, 3, 1], "padding": "VALID"}
    assert np.array_equal(nn.max_pool3d(X, (1, 2, 3)), vg.raw_ops.MaxPool3D(input=X, **windows))
    last, first = nn.avg_pool3d(X, 2, strides=1), nn.avg_pool3d(np.moveaxis(X, 4, 1), 2, strides=1, data_format="NCDHW")
    assert np.array_equal(last, np.moveaxis(first, 1, 4))


@pytest.mark.parametrize("padding", [1, (1, 0, 2), ((1, 0), (2, 2), (0, 3)), "1:0,2:2,0:3"], ids=str)
def test_stated_padding_is_that_of_a_padded_volume(padding: Any) -> None:
    entries = {1: [(1, 1)] * 3, (1, 0, 2): [(1, 1), (0, 0), (2, 2)]}.get(padding, [(1, 0), (2, 2), (0, 3)])
    padded = np.pad(X, [(0, 0), *entries, (0, 0)])
    for strides in (1, (1, 2, 3)):
        whole = nn.conv3d(padded, W, strides=strides, padding="VALID", dilations=(1, 2, 1))
        assert np.array_equal(nn.conv3d(X, W, strides=strides, padding=padding, dilations=(1, 2, 1)), whole)
    lowest = np.pad(X, [(0, 0), *entries, (0, 0)], constant_values=-np.inf)
    assert np.array_equal(nn.max_pool3d(X, 4, strides=2, padding=padding), nn.max_pool3d(lowest, 4, strides=2))


def test_a_mean_does_not_count_padding() -> None:
    ones = np.ones((1, 3, 3, 3, 1), np.float32)
    assert (nn.avg_pool3d(ones, 3, strides=1, padding=1) == 1).all()


@pytest.mark.parametrize("more", [0, (0, 1, 1)], ids=str)
@pytest.mark.parametrize("padding", ["VALID", 1, ((0, 1), (1, 0), (1, 1))], ids=str)
def test_a_transposed_convolution_is_the_adjoint(padding: Any, more: Any) -> None:
    y, options = integers(2, 3, 4, 3, 6), {"strides": (1, 2, 2), "padding": padding}
    x = nn.conv3d_transpose(y, W, output_padding=more, groups=2, **options)
    other = integers(*x.shape)
    assert nn.conv3d(other, W, **options).shape == y.shape
    assert (nn.conv3d(other, W, **options) * y).sum() == (other * x).sum()


def test_the_bias_is_added_per_channel() -> None:
    bias = np.arange(6, dtype=np.float32)
    assert np.array_equal(nn.conv3d(X, W, bias), nn.conv3d(X, W) + bias)
    first = np.moveaxis(X, 4, 1)
    made = nn.conv3d(first, W, bias, data_format="NCDHW")
    assert np.array_equal(made, nn.conv3d(first, W, data_format="NCDHW") + bias[:, None, None, None])


@pytest.mark.parametrize(
    "wrong", ["1,2", "1:2:3", "same", "", -1, 1.5, (1, 2), ((1, 2), (3, 4)), None, True, "१"], ids=str
)
def test_wrong_padding_is_told(wrong: Any) -> None:
    with pytest.raises(vg.InvalidArgumentError, match=r"conv3d: padding must be ('SAME'|text or an integer)"):
        nn.conv3d(X, W, padding=wrong)


def test_other_wrong_arguments_are_told() -> None:
    with pytest.raises(vg.InvalidArgumentError, match=r"ksize must be a number or three of them; got \(1, 2\)"):
        nn.max_pool3d(X, (1, 2))
    with pytest.raises(vg.InvalidArgumentError, match="padding must be less than the window, 2 cells in height"):
        nn.max_pool3d(X, 2, padding=(1, 2, 0))
    with pytest.raises(vg.InvalidArgumentError, match=r"input must have cells in height; got none\. There is no mean"):
        nn.avg_pool3d(X[:, :, :0], 2, padding=1)
    assert nn.avg_pool3d(X[:, :, :0], (1, 4, 1), padding=(0, 1, 0)).shape == (2, 5, 0, 7, 4)
    assert nn.avg_pool3d(X[:0], 2, padding=1).shape == (0, 3, 4, 4, 4)
    with pytest.raises(vg.InvalidArgumentError, match="rank 5"):
        nn.conv3d_transpose(X[0], W)
    with pytest.raises(vg.InvalidArgumentError, match="as large as the window under 1:1,1:1,1:1 padding, 9 cells"):
        nn.avg_pool3d(X, (9, 2, 2), strides=1, padding=1)


def test_a_page_takes_numbers_too() -> None:
    page = vg.Page()
    x = vg.ops.Const(page, value=X, dtype="float32")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="1")
    (dx,) = vg.gradients(y, [x])
    found, back = vg.ClientSession(page).run([y, dx])
    assert np.array_equal(found, nn.max_pool3d(X, 3, strides=2, padding=1))
    assert back.sum() == found.size and back.shape == X.shape


def _second_order(made: Any, *inputs: Any) -> Any:
    import torch

    first = torch.autograd.grad((made**3).sum(), inputs, create_graph=True)
    return torch.autograd.grad(sum((one**2).sum() for one in first), inputs)


@pytest.mark.parity
@pytest.mark.parametrize("case", range(24))
def test_beside_torch(case: int) -> None:
    """The same arguments, values and gradients to the second order."""
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(case)
    draw = lambda high: tuple(int(n) for n in random.integers(1, high, 3))  # noqa: E731
    window, strides, dilations = draw(4), draw(3), draw(3)
    padding = tuple(int(n) for n in random.integers(0, 4, 3))
    groups = int(random.integers(1, 3))
    x = torch.randn(2, 2 * groups, 7, 8, 9, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3 * groups, 2, *window, dtype=torch.float64, requires_grad=True)
    theirs = torch.nn.functional.conv3d(x, w, None, strides, padding, dilations, groups)
    options = {"strides": strides, "padding": padding, "dilations": dilations, "data_format": "NCDHW"}
    ours = nn.conv3d(x, w.permute(2, 3, 4, 1, 0), **options)
    torch.testing.assert_close(ours, theirs)
    for one, other in zip(_second_order(ours, x, w), _second_order(theirs, x, w), strict=True):
        torch.testing.assert_close(one, other)
    more = tuple(int(random.integers(0, step)) for step in strides)
    back = torch.nn.functional.conv_transpose3d(theirs, w, None, strides, padding, more, groups, dilations)
    mine = nn.conv3d_transpose(theirs, w.permute(2, 3, 4, 1, 0), output_padding=more, groups=groups, **options)
    torch.testing.assert_close(mine, back)
