# SPDX-License-Identifier: Apache-2.0
"""What a trace names is what an element depends on: it is asked of the op itself, window by window."""

import numpy as np
import pytest

import voxgrad as vg

SHAPE = (1, 2, 4, 4, 1)


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
@pytest.mark.parametrize(
    ("window", "stride", "padding"), [((1, 5, 5), 1, "SAME"), ((2, 2, 2), 4, "SAME"), ((2, 3, 3), 2, "0,1,1")]
)
def test_a_cell_is_traced_to_the_windows_that_reach_it(
    semantics: str, window: tuple[int, ...], stride: int, padding: str
) -> None:
    """Too large gradient windows of tf_cpu reach to the end of the axis (quirk B3)."""
    attrs = {"ksize": [1, *window, 1], "strides": [1, *[stride] * 3, 1], "padding": padding}
    page = vg.Page("trace", semantics)
    x = vg.ops.Const(page, np.ones(SHAPE, np.float32), name="x")
    y = vg.ops.AvgPool3D(page, x, name="y", **attrs)
    (dx,) = vg.gradients([y], [x])
    assert dx is not None and y.shape is not None
    reached: dict[tuple[int, ...], set[tuple[int, ...]]] = {at: set() for at in np.ndindex(*SHAPE)}
    for place in np.ndindex(*y.shape):
        one = np.zeros(y.shape, np.float32)
        one[place] = 1
        with vg.semantics(semantics):
            found = vg.raw_ops.AvgPool3DGrad(orig_input_shape=SHAPE, grad=one, **attrs)
        for at in np.argwhere(found):
            reached[tuple(at.tolist())].add(place)
    for at, places in reached.items():
        traced = next(one for one in page.trace(dx.path, at).windows if one.pin == "grad")
        ranges = [range(lo, hi, step) for lo, hi, step in zip(traced.lo, traced.hi, traced.steps, strict=True)]
        inside = {place for place in np.ndindex(*y.shape) if all(n in r for n, r in zip(place, ranges, strict=True))}
        assert inside == places, at
