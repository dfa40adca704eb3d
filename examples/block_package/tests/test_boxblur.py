"""python -m pytest: the block at once, on a page, and its gradient against differences."""

import numpy as np
import pytest

import voxgrad as vg

X = np.random.default_rng(0).standard_normal((2, 3, 4, 5, 2))


def test_it_blurs() -> None:
    blur = vg.blocks.raw_ops.boxblur.BoxBlur
    assert np.array_equal(blur(x=X, radius=0), X)
    middle = blur(x=X, radius=1)[:, 1, 1, 1]
    assert np.allclose(middle, X[:, :3, :3, :3].mean(axis=(1, 2, 3)))


def test_it_says_what_is_wrong() -> None:
    with pytest.raises(vg.InvalidArgumentError, match="radius must be 0 or more"):
        vg.blocks.raw_ops.boxblur.BoxBlur(x=X, radius=-1)


def test_its_gradient_is_that_of_what_it_computes() -> None:
    page = vg.Page("blur")
    x = vg.ops.Const(page, X, name="x")
    y = vg.blocks.ops.boxblur.BoxBlur(page, x, radius=1, name="y")
    loss = vg.ops.Sum(page, vg.ops.Square(page, y), [0, 1, 2, 3, 4], name="loss")
    assert all(check.passed for check in vg.check_gradients(page, [loss]))
