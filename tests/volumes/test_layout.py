# SPDX-License-Identifier: Apache-2.0
"""How a page lies over volumes: what depends on them, what is cut along what, and what every worker holds whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.volumes.layout import VOLUME, lay_out


def test_windows_behind_other_ops_say_what_is_cut(tmp_path: Path) -> None:
    """A volume with channels in front, which only a pool further on says."""
    x = np.random.default_rng(0).integers(-9, 10, (1, 6, 5, 4, 7)).astype(np.float32)
    page = vg.Page("first")
    given = vg.ops.Placeholder(page, dtype="float32", shape=[None, 6, None, None, None], name="x")
    steep = vg.ops.Mul(page, given, np.float32(2))
    windows = {"ksize": [1, 1, 3, 2, 3], "strides": [1, 1, 1, 2, 1], "padding": "SAME", "data_format": "NCDHW"}
    y = vg.ops.MaxPool3D(page, vg.ops.Relu(page, steep), **windows)
    layout = lay_out(page, {given: Spec(dtypes.FLOAT32, x.shape)}, {}, [y])
    assert layout.roles[layout.plan.feeds[given]] == (0, None, 1, 2, 3)
    page.expose({"y": y})
    np.save(tmp_path / "x.npy", x)
    files = {"x": str(tmp_path / "x.npy")}
    found = vg.volumes.run_page(page, files, {"y": tmp_path / "y.npy"}, chunks=(2, 1, 3), workers=0)
    (wanted,) = vg.ClientSession(page).run([y], feeds={"x": x})
    assert np.array_equal(found["y"].read(), wanted)


def test_a_shape_that_only_the_run_knows_is_told_where_it_arises() -> None:
    page = vg.Page("open")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    size = vg.ops.Cast(page, vg.ops.Max(page, x, [0, 1, 2, 3, 4]), DstT="int32")
    y = vg.ops.Relu(
        page, vg.ops.Reshape(page, x, vg.ops.Pack(page, [size, np.int32(-1)]), name="culprit"), name="behind"
    )
    with pytest.raises(vg.InvalidArgumentError) as caught:
        lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 4, 4, 4, 1))}, {}, [y])
    wanted = "have a shape that is known before the run"
    assert [(one.argument, one.wanted) for one in caught.value.faults] == [("culprit", wanted), ("behind", wanted)]


def test_a_gradient_that_is_the_same_everywhere_is_made_chunk_by_chunk() -> None:
    """It depends on no volume, but is as large as one, and lies as the windows behind it do: nobody holds it whole."""
    page = vg.Page("even")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None, None, None, None, 1], name="x")
    windows = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    shape = vg.ops.Shape(page, x)
    even = vg.ops.Fill(page, vg.ops.Shape(page, vg.ops.AvgPool3D(page, x, **windows)), np.float32(1), name="even")
    spread = vg.ops.AvgPool3DGrad(page, shape, even, **windows, name="spread")
    dw = vg.ops.Conv3DBackpropFilterV2(page, x, [3, 3, 3, 1, 1], spread, strides=[1] * 5, padding="SAME")
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 64, 64, 64, 1))}, {}, [dw])
    slots = {output.path: slot for slot, output in layout.sources.items()}
    for name in (even.path, spread.path):
        assert layout.kinds[slots[name]] == VOLUME
        assert layout.roles[slots[name]] == (0, 1, 2, 3, None)


def test_roles_that_are_told_hold_where_no_window_says_them() -> None:
    page = vg.Page("told")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    told = (0, None, 1, 2, 3)
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 2, 4, 5, 6))}, {}, [vg.ops.Neg(page, x)], {x: told})
    assert {layout.roles[slot] for slot in layout.kinds} == {told}


def test_dimensions_that_a_slice_drops_have_nothing_to_do_with_each_other() -> None:
    page = vg.Page("dropped")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    y = vg.ops.StridedSlice(
        page, x, [0, 0, 0, 0, 0], [1, 4, 5, 6, 1], [1, 1, 1, 1, 1], begin_mask=14, end_mask=14, shrink_axis_mask=17
    )
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 4, 5, 6, 2))}, {}, [y])
    assert layout.roles[layout.plan.feeds[x]] == (0, 1, 2, 3, None)
