# SPDX-License-Identifier: Apache-2.0
"""The benchmark times nothing that is wrong, and counts what a row needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench import ceilings
from bench.cpu import OURS, alike, limit_seconds, measure, measure_types, race, summary, typical
from bench.rows import CONV, POOL, Row, work
from voxgrad import raw_ops
from voxgrad.catalog.registry import FAMILY

SMALL = Row("Conv3D", 1, (4, 5, 6), 2, 3, (3, 3, 3), (2, 2, 2))
CEILING = {"float32": 100.0, "float64": 50.0, "copy": 10.0, "float32_units": 200.0, "float64_units": 100.0}


class Stand:
    """An engine in this process: the true result times `factor`, every run taking `seconds`."""

    def __init__(self, factor: float, seconds: float):
        self.factor, self.seconds, self.timed = factor, seconds, False

    def ask(self, what: str, *rest: Any) -> Any:
        if what == "row":
            self.row = rest[0]
            return True
        if what == "check":
            return getattr(raw_ops, self.row.op)(**self.row.call()) * self.factor
        self.timed = True
        return [self.seconds] * 4


@pytest.mark.parametrize("op", [op.name for op in FAMILY])
def test_a_wrong_peer_is_reported_and_not_timed(op: str) -> None:
    engines = {OURS: Stand(1, 2e-3), "wrong": Stand(1.01, 1e-3), "right": Stand(1, 4e-3)}
    found = measure(replace(SMALL, op=op, out_channels=2), engines, CEILING, 0.0)  # type: ignore[arg-type]
    assert found["best_peer"] == "right" and found["ratio"] == pytest.approx(2)
    assert "wrong by" in found["refused"]["wrong"] and not engines["wrong"].timed


def test_a_wrong_result_of_ours_is_an_error_and_not_a_time() -> None:
    found = measure(SMALL, {OURS: Stand(1.001, 1e-3)}, CEILING, 0.0)  # type: ignore[dict-item]
    assert "wrong" in found["error"] and "ms" not in found


def test_one_slow_run_does_not_put_an_engine_out_of_the_race() -> None:
    class Hiccup(Stand):
        runs = 0

        def ask(self, what: str, *rest: Any) -> Any:
            self.runs += what == "time"
            return [0.5] if self.runs == 2 else super().ask(what, *rest)

    engines = {OURS: Stand(1, 2e-3), "best": Hiccup(1, 3e-3), "other": Stand(1, 5e-3), "slow": Stand(1, 1.0)}
    times = race(engines, 0.0)  # type: ignore[arg-type]
    assert len(times["best"]) > len(times["slow"]) and typical(times["best"]) == 3e-3


def test_types_of_a_row_are_compared_with_float32() -> None:
    other = replace(SMALL, batch=2)
    (group,) = alike([SMALL, other, replace(SMALL, dtype="half")])
    assert list(group) == ["float32", "half"]
    engines = {"float32": Stand(1, 4e-3), "half": Stand(1, 3e-3), "float64": Stand(1, 9e-3)}
    single, half = measure_types(group, engines, CEILING, 0.0)  # type: ignore[arg-type]
    assert (single["of_float32"], half["of_float32"]) == (1, pytest.approx(0.75)) and half["ms"] == pytest.approx(3)
    engines["half"] = Stand(1.1, 1e-3)
    (wrong,) = measure_types(group, engines, CEILING, 0.0)  # type: ignore[arg-type]
    assert "half" in wrong["row"] and "wrong" in wrong["error"] and not engines["half"].timed


@pytest.mark.parametrize("op", [op.name for op in CONV])
def test_products_are_counted_without_those_of_the_padding(op: str) -> None:
    row = replace(SMALL, op=op)
    given = replace(row, op="Conv3D").call()
    pairs = raw_ops.Conv3D(**given | {name: np.ones_like(given[name]) for name in ("input", "filter")}).sum()
    assert work(row, row.call())[0] == 2 * pairs


@pytest.mark.parametrize("op", [op.name for op in POOL])
def test_pools_are_bound_by_memory_alone(op: str) -> None:
    row = replace(SMALL, op=op, out_channels=2)
    limit, least = limit_seconds(row, row.call(), CEILING)
    assert least == 0 and limit == pytest.approx(work(row, row.call())[1] / 10e9)


def test_the_summary_names_the_most_that_the_units_allow() -> None:
    found = measure(SMALL, {OURS: Stand(1, 2e-3), "peer": Stand(1, 4e-3)}, CEILING, 0.0)  # type: ignore[dict-item]
    assert found["most"] == pytest.approx(4e-3 / (work(SMALL, SMALL.call())[0] / 200e9))
    (text,) = summary([found])
    assert "2.00x over 1 rows" in text and f"at most {found['most']:.2f}x" in text


def test_what_the_units_can_do_is_measured_where_there_is_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "TURNS", 1000)
    monkeypatch.delenv("CXX", raising=False)
    found = ceilings.units(1, "baseline")
    assert found.keys() == {"float32_units", "float64_units"} and all(rate > 0 for rate in found.values())
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert ceilings.units(1, "baseline") == {}
