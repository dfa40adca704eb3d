# SPDX-License-Identifier: Apache-2.0
"""Paths of the native kernels: the list, what is asked and forced, and a share of the sweep that is always the same."""

import ctypes
import random
from fnmatch import fnmatchcase

import numpy as np
import pytest

from tests.kernels import sweep
from voxgrad.catalog.dtypes import FLOAT32
from voxgrad.kernels import cpu, paths

pytestmark = pytest.mark.skipif(cpu.library() is None, reason="without the native library there are no paths")
POOL = sweep.Case("pool", (sweep.regular(6, 3), sweep.regular(6, 2, 2), sweep.regular(9, 3)), channels=16)


def test_every_path_has_a_condition_and_kernels() -> None:
    listed = paths.catalogue()
    assert len({path.bit for path in listed.values()}) == len(listed) > 30
    for path in listed.values():
        assert path.possible and path.vectors & 112 == path.vectors > 0
        assert any(path.concerns(kernel) for kernel in sweep.KERNELS), path.name
        for pattern in path.kernels:
            assert any(fnmatchcase(kernel, pattern) for kernel in sweep.KERNELS), (path.name, pattern)


def test_a_problem_can_be_asked_for_its_paths_and_another_forced(isa: str) -> None:
    problem = POOL.problem("max_pool", FLOAT32)
    assert "sweep" in paths.taken(problem)
    forced = paths.Forced(problem)
    x = np.random.default_rng(0).integers(-8, 9, problem.input_extent).astype(np.float32)
    results = []
    for way in ({}, {"avoid": ["sweep"]}, {"force": ["flat"], "avoid": ["sweep"]}, {"force": ["pairs"]}):
        result = np.full(problem.output_shape, np.nan, np.float32)
        settings = {name: paths.bits(chosen) for name, chosen in way.items()}
        assert forced([ctypes.c_void_p(one.ctypes.data) for one in (x, result)], **settings) == 0
        taken = set(paths.names(forced.seen.taken))
        assert taken.isdisjoint(way.get("avoid", [])) and taken.issuperset(set(way.get("force", [])) - {"pairs"})
        results.append(result)
    assert not np.isnan(results[0]).any()
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_what_is_impossible_is_not_taken_though_it_is_forced() -> None:
    problem = POOL.problem("max_pool_grad", FLOAT32)
    seen = paths.Forced(problem).decide(force=paths.bits(["tiles", "near"]))
    assert not seen.taken & paths.bits(["tiles", "near"])
    assert seen.impossible & paths.bits(["tiles"])


def test_forcing_leaves_ordinary_calls_alone() -> None:
    """The struct of a forced problem is its own."""
    problem = POOL.problem("max_pool", FLOAT32)
    paths.Forced(problem).decide(avoid=paths.bits(["sweep"]), grain=1)
    how = cpu.prepare(problem).struct.how
    assert (how.force, how.avoid, how.grain, bool(how.seen)) == (0, 0, 0, False)


@pytest.mark.parametrize("share", range(8))
@pytest.mark.parametrize("family", ["conv", "pool"])
def test_a_share_of_the_sweep(family: str, share: int) -> None:
    """The first shapes of a fixed seed: edges of all conditions, single axes and triples."""
    shapes, one = sweep.Shapes("tests"), sweep.Sweep("tests")
    cases = [(index, shapes[index]) for index in range(96) if shapes[index].family == family]
    for index, case in cases[share::8]:
        one.run(case, str(index))
    report = one.finish()
    assert not report.faults, "\n".join(report.faults[:5])
    assert report.runs > 20 * len(cases[share::8]) * len(one.isas) > 0


def test_parts_of_volumes_and_near_maxima() -> None:
    """Edges that few shapes of a seed come to."""
    one = sweep.Sweep("parts")
    for index, case in enumerate(sweep.edges()):
        if case.near_ties or any(axis.below for axis in case.axes):
            one.run(case, str(index))
    report = one.finish()
    assert report.cases > 20 and not report.faults, "\n".join(report.faults[:5])


TALL = [
    sweep.Case("conv", (sweep.IDLE, sweep.regular(1500, 2), sweep.regular(9, 3)), channels=3, outs=2),
    sweep.Case("conv", (sweep.IDLE, sweep.regular(16, 1), sweep.regular(1100, 3)), channels=3, outs=1),
]
"""More rows, or longer ones, than a tile of strips along the width has, in each of many tasks."""


@pytest.mark.parametrize("case", TALL, ids=["rows", "columns"])
def test_shapes_larger_than_those_of_the_shares(case: sweep.Case) -> None:
    one = sweep.Sweep("larger")
    one.run(case, str(case))
    assert not one.finish().faults, "\n".join(one.report.faults[:5])


def test_the_sweep_finds_what_is_wrong() -> None:
    """A result that differs in one element, and a write beside it, show."""
    want = np.arange(24, dtype=np.float32).reshape(2, 12)
    memory = sweep.Memory(want, 1)
    memory.clear()
    assert not memory.is_right()
    memory.array[...] = want
    assert memory.is_right() and memory.is_near(want, 1e-6)
    memory.array[1, 3] += 1
    assert not memory.is_right() and not memory.is_near(want, 1e-3)
    memory.array[...] = want
    memory._part[-1] = 0
    assert not memory.is_right() and not memory.is_near(want, 1e-3)


def test_cases_of_a_seed_are_always_the_same() -> None:
    one, two, other = sweep.Shapes("a"), sweep.Shapes("a"), sweep.Shapes("b")
    assert [one[k] for k in range(40)] == [two[k] for k in range(40)] != [other[k] for k in range(40)]
    assert random.Random("a/1").random() == random.Random("a/1").random()
