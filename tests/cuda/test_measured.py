# SPDX-License-Identifier: Apache-2.0
"""The table of what was fastest: its names are those of today's choices, and a layer that it has is run by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

from bench import choices  # noqa: E402
from bench.gpu import TORCH  # noqa: E402
from voxgrad.kernels.cuda import measured, tune  # noqa: E402

pytestmark = pytest.mark.parity


def test_what_is_in_the_table_can_be_chosen() -> None:
    """A choice that is called otherwise since, or gone, would leave its rows without effect."""
    table, found = measured.read(), 0
    for dtype in ("bfloat16", "float32"):
        for problem in choices.problems(dtype):
            rows = table.get(measured.kind(problem, False), [])
            row = next((row for row in rows if tuple(row[:3]) == measured.extent(problem)), None)
            if row is None:
                continue
            options = [
                one for one in tune.candidates(problem, TORCH.get(dtype, torch.float32)) if one.engine != "cudnn"
            ]
            fastest = min(row[3], key=lambda name: row[3][name])
            assert measured.label(tune._by_table(problem, options), options) == fastest, (problem, row)
            found += 1
    assert found == sum(len(rows) for rows in table.values())


def test_layers_that_were_not_measured_keep_the_order() -> None:
    """A table row speaks for its channels, and for up to twice or half as many positions."""
    problem = next(choices.problems("bfloat16"))
    options = tune.candidates(problem, torch.bfloat16)
    last = measured.label(options[-1], options)
    positions, *channels = measured.extent(problem)
    for times, moved in ((2.0, True), (0.5, True), (2.1, False), (0.4, False)):
        assert (
            measured.ranked(problem, options, [(int(positions * times), *channels, {last: 1.0})])[0] == options[-1]
        ) is moved
    other = replace(problem, in_channels=problem.in_channels * 2)
    assert measured.ranked(other, options, [(positions, *channels, {last: 1.0})]) == options
