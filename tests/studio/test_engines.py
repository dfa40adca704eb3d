# SPDX-License-Identifier: Apache-2.0
"""Other frameworks in workers of their own, side by side with ours; where they are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.serving import Server
from voxgrad.formats import page_file


def network() -> dict[str, Any]:
    """Every op of the family, first and second order, among ordinary ops."""
    rng = np.random.default_rng(0)
    page, ops = vg.Page("network"), vg.ops
    x = ops.Const(page, rng.standard_normal((2, 5, 6, 7, 4)).astype(np.float32), name="x")
    w = ops.Const(page, rng.standard_normal((3, 2, 3, 4, 6)).astype(np.float32), name="w")
    y = ops.Conv3D(page, x, w, strides=[1, 2, 1, 2, 1], padding="SAME", name="conv")
    y = ops.MaxPool3D(page, y, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME", name="max")
    y = ops.AvgPool3D(page, y, ksize=[1, 2, 2, 3, 1], strides=[1, 1, 1, 2, 1], padding="SAME", name="avg")
    loss = ops.Mean(page, ops.Square(page, ops.Relu(page, y)), [0, 1, 2, 3, 4], name="loss")
    dx, dw = vg.gradients([loss], [x, w])
    assert dx is not None and dw is not None
    vg.gradients([dw], [x, w])
    return page_file.to_data(page)


@pytest.mark.parity
@pytest.mark.parametrize("engine", ["tensorflow", "torch"])
def test_an_engine_gives_what_ours_gives(server: Server, engine: str) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    document = network()
    ours, theirs = server.run(document, "ours"), server.run(document, "theirs", engine=engine)
    assert theirs["state"] == "done", theirs["error"]
    found = server.post("compare/runs", {"runs": [ours["id"], theirs["id"]]})["rows"]
    assert {row["sides"][0]["dtype"] for row in found if row["sides"][0]} >= {"float32"} and len(found) > 40
    for row in found:
        side = row["sides"][1]
        assert side["same"] or side["max_abs"] < 1e-4, row
        assert side["seconds"] is not None


@pytest.mark.parity
def test_tensorflow_says_which_block_it_cannot_run(server: Server) -> None:
    if find_spec("tensorflow") is None:
        pytest.skip("tensorflow is not installed")
    from tests.studio.documents import counter_page

    run = server.run(counter_page(), "count", engine="tensorflow")
    assert run["state"] == "failed" and "state" in run["error"]["message"]
