# SPDX-License-Identifier: Apache-2.0
"""From a typed `1,2,2,2,1` to the kernel one problem is made: inference keeps it, and all others ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog.model import Call
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Faults
from voxgrad.formats.text import parse_attr
from voxgrad.studio.analyse import analyse
from voxgrad.studio.limits import RunLimits

POOL = {"ksize": [1, 1, 1, 1, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
X = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1)
CHAIN = ("MaxPool3D", "MaxPool3DGrad", "AvgPool3D", "AvgPool3DGrad", "Conv3D")


@pytest.fixture
def made() -> Iterator[list[str]]:
    """The ops whose problems were made, in order."""
    found: list[str] = []
    originals = {name: OPS[name].problem for name in CHAIN}

    def counted(name: str) -> object:
        def problem(call: Call, faults: Faults) -> object:
            found.append(name)
            solve = originals[name]
            assert solve is not None
            return solve(call, faults)

        return problem

    for name in CHAIN:
        object.__setattr__(OPS[name], "problem", counted(name))
    yield found
    for name, original in originals.items():
        object.__setattr__(OPS[name], "problem", original)


def test_from_a_typed_text_to_the_kernel(made: list[str]) -> None:
    page = vg.Page()
    pool = page.add("AvgPool3D", {"input": vg.ops.Const(page, X)}, POOL, name="pool")
    page.infer()
    made.clear()
    page.set_attr(pool, "ksize", parse_attr(OPS["AvgPool3D"].attr("ksize"), "1,2,2,2,1"))
    analyse(page, RunLimits(2**30))
    page.estimate()
    y = vg.ClientSession(page).run(pool)
    assert made == ["AvgPool3D"]
    assert np.array_equal(y, vg.raw_ops.AvgPool3D(input=X, **{**POOL, "ksize": [1, 2, 2, 2, 1]}))


def test_feeds_that_are_what_was_known_make_no_other(made: list[str]) -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 4, 4, 4, 1])
    y = vg.ops.MaxPool3D(page, x, **{**POOL, "ksize": [1, 2, 2, 2, 1]})
    (dx,) = vg.gradients([y], [x])
    page.infer()
    session = vg.ClientSession(page, cache=False)
    made.clear()
    first = session.run([y, dx], {x: X})
    session.run([y, dx], {x: X + 1})
    assert made == []
    assert first[0].tolist() == vg.raw_ops.MaxPool3D(input=X, **{**POOL, "ksize": [1, 2, 2, 2, 1]}).tolist()


def test_what_only_the_run_knows_is_made_there(made: list[str]) -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32")
    y = vg.ops.AvgPool3D(page, x, **POOL)
    session = vg.ClientSession(page)
    for size in (4, 6):
        fed = np.ones((1, size, size, size, 1), np.float32)
        assert session.run(y, {x: fed}).shape == (1, size // 2, size // 2, size // 2, 1)
    with pytest.raises(vg.InvalidArgumentError, match="VG010"):
        session.run(y, {x: np.ones(3, np.float32)})
    assert "AvgPool3D" in made
