# SPDX-License-Identifier: Apache-2.0
"""Numbers that no recording holds well enough, from elsewhere; and arrays of unusual making."""

from __future__ import annotations

import numpy as np
import pytest

import voxgrad as vg

# d/da of the regularised lower incomplete gamma function, by mpmath with 40 digits.
IGAMMA_GRAD_A = (
    (5, 1e-06, -1.2934679432907653e-31), (10, 0.001, -2.5493557782424276e-36), (20, 0.1, -1.9893098575756317e-38),
    (50, 0.1, -1.8554976819377834e-114), (100, 1, -1.8354743026556828e-158), (50, 45, -0.04554329214012388),
    (100, 100, -0.03992749785778605), (2.5, 7, -0.021723057738324142), (0.25, 3, -0.027841007106276593),
    (0.001, 0.1, -1.8210559392083066), (0.001, 45, -6.280707554421356e-22), (7, 7.5, -0.1449027549511783),
    (1000, 1000, -0.012616713994069625), (30000, 30000, -0.002303300727864703),
)  # fmt: skip


def test_igamma_grad_a_where_a_is_far_from_x() -> None:
    a, x, wanted = np.array(IGAMMA_GRAD_A).T
    found = vg.raw_ops.IgammaGradA(a=a, x=x)
    # The logarithm of the density loses digits as it grows with a.
    assert (np.abs(found - wanted) <= 2e-15 * np.maximum(100, a) * np.abs(wanted)).all()
    odd = vg.raw_ops.IgammaGradA(a=[-1.0, 0.0, 1.0, np.nan, 2.0, 2.5], x=[1.0, 1.0, 0.0, 1.0, np.inf, 1e38])
    np.testing.assert_array_equal(odd, np.array([np.nan, np.nan, 0, np.nan, 0, 0], np.float32))
    assert vg.raw_ops.IgammaGradA(a=np.array([2.5]), x=np.array([1e308])) == 0


@pytest.mark.parametrize("op", ["Sum", "Mean", "Prod", "Max", "Cumsum"])
def test_arrays_of_the_other_byte_order(op: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    arguments = {"x" if op == "Cumsum" else "input": x.astype(">f4"), "axis": 1}
    plain = {name: value.astype("<f4") if name != "axis" else value for name, value in arguments.items()}  # type: ignore[attr-defined]
    found = getattr(vg.raw_ops, op)(**arguments)
    assert found.dtype.isnative and np.array_equal(found, getattr(vg.raw_ops, op)(**plain))


def test_the_darkest_colours_have_a_hue() -> None:
    """Of channels that differ by less than a reciprocal can hold."""
    dark = np.float32([[1e-45, 0, 0], [0, 1e-45, 0], [0, 0, 1e-45], [1e-44, 1e-44, 0], [0, 0, 0]])
    hues = vg.raw_ops.RGBToHSV(images=dark)[:, 0]
    assert np.allclose(hues, [0, 1 / 3, 2 / 3, 1 / 6, 0])
    assert (vg.raw_ops.AdjustSaturation(images=dark[None], scale=np.float32(1)) == dark).all()
