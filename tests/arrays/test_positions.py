# SPDX-License-Identifier: Apache-2.0
"""Max pools that keep positions: the same numbers as the ops that look for them anew."""

import gc
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.conftest import isa as isa  # every instruction set
from voxgrad import ops
from voxgrad.arrays import positions as module
from voxgrad.arrays.positions import Positions
from voxgrad.catalog.dtypes import FLOATING, DType
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.catalog.registry import OPS
from voxgrad.kernels import cpu
from voxgrad.testing import SeededChooser, draw_call
from voxgrad.testing.calls import STYLES

native = pytest.mark.skipif(cpu.library() is None, reason="needs the native kernels")


def both_ways(call: dict[str, Any], kept: Positions) -> None:
    """The pool and its two gradients, with kept positions and without."""
    attrs = {name: call[name] for name in ("ksize", "strides", "padding", "data_format") if name in call}
    x = call["input"]
    y = kept.execute(OPS["MaxPool3D"], {"input": x, **attrs})
    np.testing.assert_array_equal(y, vg.raw_ops.MaxPool3D(input=x, **attrs))
    random = np.random.default_rng(y.size)
    for name, shape in (("MaxPool3DGrad", y.shape), ("MaxPool3DGradGrad", x.shape)):
        given = {"orig_input": x, "orig_output": y, "grad": random.integers(-4, 5, shape).astype(x.dtype), **attrs}
        np.testing.assert_array_equal(kept.execute(OPS[name], given), getattr(vg.raw_ops, name)(**given), str(attrs))


@native
@pytest.mark.parametrize("layout", DATA_FORMATS)
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_same_as_without(dtype: DType, layout: str, isa: str) -> None:
    kept = Positions(least_overlap=0)
    for seed in range(24):
        style = STYLES[seed % len(STYLES)]
        both_ways(draw_call(OPS["MaxPool3D"], SeededChooser(seed), dtype=dtype, formats=(layout,), style=style), kept)


@native
def test_nan_infinity_and_ties(isa: str) -> None:
    random = np.random.default_rng(0)
    values = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0], np.float32)
    for channels in (1, 3, 32):
        x = random.choice(values, (2, 5, 6, 7, channels))
        for k, s in ((2, 2), (3, 1), (3, 2), (2, 3)):
            both_ways(
                {"input": x, "ksize": [1, k, k, k, 1], "strides": [1, s, s, s, 1], "padding": "SAME"}, Positions()
            )


def pool_page() -> vg.Page:
    """A pool and its gradient, of its own output."""
    page = vg.Page("pools")
    attrs: dict[str, Any] = {"ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"}
    x = ops.Placeholder(page, dtype="float32", shape=[1, 6, 6, 6, 4], name="x")
    y = ops.MaxPool3D(page, input=x, **attrs, name="y")
    ops.MaxPool3DGrad(page, orig_input=x, orig_output=y, grad=y, **attrs, name="dx")
    return page


@native
def test_sessions_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    plain = cpu.run

    def spy(problem: Any, *rest: Any, positions: bool = False, **more: Any) -> bool:
        used.append(problem.op + ("+" if positions else ""))
        return plain(problem, *rest, positions=positions, **more)

    monkeypatch.setattr(module.cpu, "run", spy)
    x = np.random.default_rng(1).standard_normal((1, 6, 6, 6, 4)).astype(np.float32)
    session = vg.ClientSession(pool_page(), cache=False)
    dx = session.run("dx", {"x": x})
    assert used == ["MaxPool3D+", "MaxPool3DGrad+"]
    attrs = {"ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"}
    y = vg.raw_ops.MaxPool3D(input=x, **attrs)
    np.testing.assert_array_equal(dx, vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=y, **attrs))
    used.clear()
    session.run("y", {"x": x})
    assert "MaxPool3D+" not in used, "without a gradient in the run nothing is kept"


@native
def test_windows_that_hardly_overlap_are_looked_at_anew() -> None:
    kept = Positions()
    x = np.zeros((1, 4, 4, 4, 2), np.float32)
    y = kept.execute(
        OPS["MaxPool3D"],
        {"input": x, "ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"},
    )
    assert y.shape == (1, 2, 2, 2, 2)
    assert not kept._kept


@native
def test_entries_go_with_their_outputs() -> None:
    kept = Positions(least_overlap=0)
    x = np.zeros((1, 2, 2, 2, 1), np.float32)
    y = kept.execute(OPS["MaxPool3D"], {"input": x, "ksize": [1] * 5, "strides": [1] * 5, "padding": "SAME"})
    assert len(kept._kept) == 1
    del y
    gc.collect()
    assert not kept._kept
