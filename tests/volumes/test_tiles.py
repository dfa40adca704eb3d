# SPDX-License-Identifier: Apache-2.0
"""Pieces that work cell by cell run tile by tile: the numbers are those of the whole chunk, whatever the tiles are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.volumes import tiles
from voxgrad.volumes.layout import lay_out
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.sums import sum_over
from voxgrad.volumes.tiles import stretches

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).standard_normal((2, 9, 7, 11, 3)).astype(np.float32)
PLANE = np.random.default_rng(1).standard_normal((1, 1, 7, 1, 3)).astype(np.float32)


def norm_page() -> vg.Page:
    """A convolution with what stands around one: broadcasts, a stated shape, joined channels, sums of three kinds."""
    page = vg.Page("tiles")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.Const(page, np.random.default_rng(2).standard_normal((3, 3, 3, 3, 3)).astype(np.float32))
    scaled = vg.ops.Relu(page, vg.ops.AddV2(page, vg.ops.Mul(page, x, vg.ops.Const(page, PLANE)), 0.25))
    y = vg.ops.Conv3D(page, scaled, w, strides=[1, 2, 1, 1, 1], padding="SAME")
    wide = vg.ops.ConcatV2(page, [y, vg.ops.Neg(page, y)], 4)
    filled = vg.ops.AddV2(page, wide, vg.ops.Fill(page, vg.ops.Shape(page, wide), np.float32(2)))
    page.expose({
        "y": vg.ops.LeakyRelu(page, filled, alpha=0.1),
        "mean": vg.ops.Mean(page, wide, [1, 2, 3], keep_dims=True),
        "most": vg.ops.Max(page, filled, [1, 2, 3]),
        "apart": vg.ops.Sum(page, vg.ops.Square(page, x), [1, 2, 3, 4]),
    })  # fmt: skip
    return page


def run(folder: Path, cells: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(tiles, "CELLS", cells)
    np.save(folder / "x.npy", X)
    found = vg.volumes.run_page(norm_page(), {"x": folder / "x.npy"}, {"y": folder / f"y{cells}.npy"},
                                ["mean", "most", "apart"], chunks=(3, 7, 5), workers=0)  # fmt: skip
    return {name: np.asarray(value) for name, value in found.items()}


@pytest.mark.parametrize("cells", [1, 40, 333])
def test_tiles_give_what_whole_chunks_give(tmp_path: Path, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, found = run(tmp_path, 10**9, monkeypatch), run(tmp_path, cells, monkeypatch)
    for name in ("y", "most"):
        np.testing.assert_array_equal(found[name], whole[name])
    for name in ("mean", "apart"):
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-6)
    page = norm_page()
    dense = dict(zip(whole, vg.ClientSession(page).run(list(page.outputs.values()), feeds={"x": X}), strict=True))
    for name in whole:
        np.testing.assert_allclose(found[name], dense[name], rtol=1e-5, atol=1e-5)


def test_sums_over_all_but_the_channels() -> None:
    for shape in ((3, 5, 7, 4, 3), (1, 1, 1, 1, 2000), (1, 0, 4, 4, 2), (1, 50, 1, 7, 1)):
        x = np.random.default_rng(3).standard_normal(shape)
        np.testing.assert_allclose(sum_over(x, [0, 1, 2, 3]), x.sum((0, 1, 2, 3)), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(sum_over(x, [1, 2, 3]).shape, (shape[0], shape[4]))


def test_what_stays_in_a_stretch_takes_no_memory_of_a_box() -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    y = x
    for _ in range(5):
        y = vg.ops.Tanh(page, y)
    y = vg.ops.Cast(page, y, DstT="float64")
    plan = PagePlan(lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 64, 64, 64, 1))}, {}, [y]), (64, 64, 64))
    (stretch,) = stretches(plan)
    assert len(stretch.pieces) == 6
    # What is read, for this chunk and for the next, and the result.
    assert vg.volumes.cost(plan).peak_bytes == 64**3 * (2 * 4 + 8)
