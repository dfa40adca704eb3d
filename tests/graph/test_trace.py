# SPDX-License-Identifier: Apache-2.0
"""What is told of a voxel is what happens: ops run with one cell changed, and the result moves or does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Op, Side
from voxgrad.catalog.registry import OPS
from voxgrad.graph.reach import Reached
from voxgrad.graph.trace import Window
from voxgrad.testing.calls import SeededChooser, draw_call

FAMILY = [
    op for op in OPS.values() if op.problem is not None and op.name.startswith(("Conv3D", "AvgPool3D", "MaxPool3D"))
]
TRACED = [op for op in FAMILY if op.map.output is not Side.TAPS]


def drawn(op: Op, seed: int, semantics: str) -> tuple[dict[str, Any], np.ndarray[Any, Any], vg.Page]:
    choose = SeededChooser(seed)
    # Windows that are longer than the axis by half are where TensorFlow's gradients reach beyond them.
    settings: dict[str, Any] = {"explicit": semantics == "documented", "largest": 4 + 3 * (seed % 2)}
    call = draw_call(op, choose, dtype=dtypes.named("float64"), style="integers", **settings)
    page = vg.Page("traced", semantics=semantics)
    with vg.semantics(semantics):
        getattr(vg.ops, op.name)(page, **call, name="y")
        return call, getattr(vg.raw_ops, op.name)(**call), page


def cells_of(window: Window | Reached) -> list[tuple[int, ...]]:
    grid = zip(window.lo, window.hi, window.steps, strict=True)
    return list(itertools.product(*(range(lo, hi, step) for lo, hi, step in grid)))


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
@pytest.mark.parametrize("op", TRACED, ids=lambda op: op.name)
def test_windows_and_shares_are_what_a_one_in_each_cell_does(op: Op, semantics: str) -> None:
    told = 0
    for seed in range(40):
        call, result, page = drawn(op, seed, semantics)
        if not result.size:
            continue
        random = np.random.default_rng(seed)
        index = [int(at) for at in np.unravel_index(random.integers(result.size), result.shape)]
        windows = {one.pin: one for one in page.trace("y", index).windows if one.block == "y"}
        for item in op.inputs:
            if item.host or item.name not in op.linear_in:
                continue
            cells = cells_of(windows[item.name])
            shares = {tuple(one.index): one.share for one in windows[item.name].shares}
            assert item.side is Side.TAPS or set(shares) == set(cells)
            told += len(shares)
            value = call[item.name]
            others = {tuple(map(int, np.unravel_index(at, value.shape))) for at in random.integers(value.size, size=12)}
            for cell in [*cells[:60], *(others - set(cells))]:
                ones = np.zeros_like(value)
                ones[cell] = 1
                with vg.semantics(semantics):
                    found = getattr(vg.raw_ops, op.name)(**call | {item.name: ones})[tuple(index)]
                # What is not in the window does nothing; of a filter it is only told what is read.
                wanted = shares.get(cell, 0.0 if cell not in cells else found)
                assert found == pytest.approx(wanted, abs=1e-12), (seed, item.name, cell)
    assert told or op.name == "MaxPool3D"


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
def test_the_winner_of_a_pool_is_the_voxel_whose_change_changes_it(semantics: str) -> None:
    ties = 0
    for seed in range(60):
        call, result, page = drawn(OPS["MaxPool3D"], seed, semantics)
        if not result.size:
            continue
        index = [int(at) for at in np.unravel_index(seed % result.size, result.shape)]
        (window,) = page.trace("y", index, values={"y/input.output": call["input"]}).windows
        cells = cells_of(window)
        best = max((call["input"][cell] for cell in cells), default=-np.inf)
        equal = [list(cell) for cell in cells if call["input"][cell] == best]
        assert result[tuple(index)] == best
        assert window.winner == (equal[0] if equal else None)
        assert window.ties == (equal if len(equal) > 1 else [])
        ties += len(equal) > 1
        if window.winner:
            raised = call["input"].copy()
            raised[tuple(window.winner)] += 1
            with vg.semantics(semantics):
                assert vg.raw_ops.MaxPool3D(**call | {"input": raised})[tuple(index)] == best + 1
    assert ties


@pytest.mark.parametrize("op", [one for one in TRACED if one.map.output is Side.WINDOWS], ids=lambda op: op.name)
def test_a_window_and_its_padding_are_all_its_taps(op: Op) -> None:
    padded = 0
    for seed in range(40):
        call, result, page = drawn(op, seed, "documented")
        if not result.size:
            continue
        index = [int(at) for at in np.unravel_index(seed * 7 % result.size, result.shape)]
        window = page.trace("y", index).windows[0]
        last = call["data_format"] == "NDHWC"
        sizes = call.get("ksize")
        for axis in range(1, 4) if last else range(2, 5):
            there = len(range(window.lo[axis], window.hi[axis], window.steps[axis]))
            beside = window.padding.before[axis] + window.padding.after[axis]
            taps = sizes[axis] if sizes else call["filter"].shape[axis - (1 if last else 2)]
            if there:
                assert there + beside == taps, (seed, axis)
                padded += beside > 0
    assert padded


def test_shares_of_a_large_window_and_of_unknown_values_are_not_told() -> None:
    page = vg.Page("large")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 16, 16, 16, 1], name="x")
    vg.ops.AvgPool3D(page, x, ksize=[1, 9, 9, 9, 1], strides=[1, 1, 1, 1, 1], padding="VALID", name="large")
    vg.ops.AvgPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME", name="small")
    weights = vg.ops.Placeholder(page, dtype="float32", shape=[2, 2, 2, 1, 1], name="weights")
    vg.ops.Conv3D(page, x, weights, strides=[1, 1, 1, 1, 1], padding="VALID", name="fed")
    assert page.trace("large", [0, 0, 0, 0, 0]).windows[0].shares == []
    assert page.trace("fed", [0, 0, 0, 0, 0]).windows[0].shares == []
    # At the end of SAME padding a window has fewer cells, and each counts for more.
    corner = page.trace("small", [0, 15, 15, 3, 0]).windows[0].shares
    assert [(one.index, one.share) for one in corner] == [([0, 15, 15, 3, 0], 0.5), ([0, 15, 15, 4, 0], 0.5)]


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
@pytest.mark.parametrize("op", TRACED, ids=lambda op: op.name)
def test_what_a_voxel_reaches_is_what_its_change_can_change(op: Op, semantics: str) -> None:
    """Every element that moves is told; of sums over windows, every one that is told moves."""
    moved = 0
    for seed in range(40):
        call, result, page = drawn(op, seed, semantics)
        if not result.size:
            continue
        # Weights that are not zero, and numbers that are no multiples of each other.
        random = np.random.default_rng(seed)
        for item in op.inputs:
            if item.host or item.side is Side.TAPS:
                continue
            values = {one.name: random.uniform(1, 2, call[one.name].shape) for one in op.inputs if not one.host}
            if op.maxima:
                data = {name: call[name] for name in ("ksize", "strides", "padding", "data_format")}
                with vg.semantics(semantics):
                    values["orig_output"] = vg.raw_ops.MaxPool3D(input=values["orig_input"], **data)
            value = values[item.name]
            if not value.size:
                continue
            index = [int(at) for at in np.unravel_index(random.integers(value.size), value.shape)]
            reached = [one for one in page.reach(page.block("y").sources[item.name][0], index) if one.block == "y"]
            told = {cell for one in reached for cell in cells_of(one)}
            raised = {**values, item.name: value.copy()}
            raised[item.name][tuple(index)] += 3
            with vg.semantics(semantics):
                before, after = (getattr(vg.raw_ops, op.name)(**call | one) for one in (values, raised))
            changed = {tuple(map(int, cell)) for cell in np.argwhere(before != after)}
            assert changed <= told, (seed, item.name)
            assert changed == told or not op.name.startswith(("Conv3D", "AvgPool3D")), (seed, item.name)
            moved += len(changed)
    assert moved


def test_the_way_on_goes_through_several_blocks() -> None:
    page = vg.Page("on")
    x = vg.ops.Const(page, np.zeros((1, 8, 8, 8, 2), np.float32), name="x")
    windows = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    pool = vg.ops.MaxPool3D(page, x, **windows, name="pool")
    relu = vg.ops.Relu(page, pool, name="relu")
    vg.ops.Sum(page, relu, [4], name="sum")
    vg.ops.Transpose(page, relu, [0, 4, 1, 2, 3], name="turned")
    found = {one.output: one for one in page.reach("x", [0, 5, 3, 0, 1], depth=3)}
    assert list(found) == ["pool.output", "relu.activations", "sum.output", "turned.y"]
    assert found["pool.output"].lo == [0, 2, 1, 0, 1] and found["pool.output"].count == 1
    assert found["sum.output"].lo == [0, 2, 1, 0] and found["turned.y"].lo == [0, 1, 2, 1, 0]
    assert [one.depth for one in found.values()] == [1, 2, 3, 3]
    with pytest.raises(vg.errors.InvalidArgumentError, match="VG012"):
        page.reach("x", [0, 8, 0, 0, 0])
