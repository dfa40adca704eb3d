# SPDX-License-Identifier: Apache-2.0
"""The time of a plan, from rates that are given: no clock is asked here but whether a trial finds rates at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.graph.block import Output
from voxgrad.volumes import trial
from voxgrad.volumes.amounts import fetched
from voxgrad.volumes.executors import ThisProcess
from voxgrad.volumes.job import Job
from voxgrad.volumes.layout import lay_out
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.times import PassRates, Rates, Took, predicted
from voxgrad.volumes.trial import chunks_within, measured

SIZE = 64


def conv_plan(chunks: tuple[int, int, int]) -> tuple[PagePlan, Output, int, int]:
    """A convolution from 4 channels to 4: its plan, its input, and the slots of both."""
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.Const(page, np.zeros((3, 3, 3, 4, 4), np.float32))
    y = vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME")
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (1, SIZE, SIZE, SIZE, 4))}, {}, [y])
    return PagePlan(layout, chunks), x, layout.volumes[x], layout.fetches[y]


NONE = Took()


def rates(x: int, y: int, read: Took = NONE, made: float = 0.0, write: Took = NONE, **more: Any) -> Rates:
    chunk = more.pop("chunk", 0.0)
    return Rates((PassRates({x: read}, {0: made}, {y: write}, chunk),), **more)


BYTES = SIZE**3 * 4 * 4
WORK = 2 * SIZE**3 * 27 * 4 * 4


def test_workers_share_what_processors_do() -> None:
    plan, _, x, y = conv_plan((SIZE, SIZE, 32))
    for workers, processors, wanted in ((1, 1, 10.0), (2, 2, 5.0), (2, 1, 10.0), (8, 8, 5.0)):
        found = predicted(plan, rates(x, y, made=10 / WORK, workers=workers, processors=processors))
        assert found.seconds == pytest.approx(wanted), "two chunks are shared by no more than two"
        assert (found.limit, found.compute) == ("compute", pytest.approx(10))


def test_one_worker_of_all_threads_computes_with_all_processors() -> None:
    plan, _, x, y = conv_plan((SIZE,) * 3)
    found = predicted(plan, rates(x, y, made=5 / WORK, write=Took(1 / BYTES), workers=1, threads=2, processors=2))
    assert found.seconds == pytest.approx(6)


def test_the_disk_is_one_for_all_workers() -> None:
    plan, _, x, y = conv_plan((SIZE, SIZE, 8))
    read, write = Took(waits=3 / fetched(plan, x, None)), Took(waits=5 / BYTES)
    found = predicted(plan, rates(x, y, read, write=write, workers=8, processors=8))
    assert found.seconds == pytest.approx(8)
    assert found.limit == "the disk"


def test_reading_hides_behind_computing() -> None:
    plan, _, x, y = conv_plan((SIZE, SIZE, 1))
    read = Took(waits=4 / fetched(plan, x, None))
    found = predicted(plan, rates(x, y, read, made=10 / WORK, processors=2, start=1, begin=2))
    assert found.seconds == pytest.approx(10 + 4 / SIZE + 1 + 2), "all but the first chunk's, behind what begins it"


def test_small_chunks_pay_for_themselves() -> None:
    large, _, x, y = conv_plan((SIZE,) * 3)
    small, *_ = conv_plan((8, 8, 8))
    told = rates(x, y, made=1 / WORK, chunk=0.01)
    assert predicted(small, told).seconds - predicted(large, told).seconds == pytest.approx(0.01 * (8**3 - 1))


def test_of_a_file_that_is_cut_whole_chunks_are_unpacked() -> None:
    plan, output, x, y = conv_plan((32, SIZE, SIZE))
    cut = {output: (1, 32, SIZE, SIZE, 4)}
    read = Took(1 / BYTES)
    assert predicted(plan, rates(x, y, read)).files == pytest.approx(66 / 64)
    assert predicted(plan, rates(x, y, read, cuts=cut)).files == pytest.approx(2), "the neighbour's, for a plane of it"


def test_pools_and_sums_are_memory_traffic() -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 8, 8, 8, 1))}, {}, [y])
    found = predicted(PagePlan(layout, (4, 4, 4)), Rates((PassRates({}, {0: 1.0}, {}, 0.0),)))
    assert found.limit == "memory traffic"
    assert "limited by memory traffic" in str(found)


def test_advice_is_the_quickest_that_fits() -> None:
    plan, output, x, y = conv_plan((SIZE,) * 3)
    largest = vg.volumes.advise(plan, "153 MiB")
    # A file cut into slabs of one plane each: cubes unpack every plane many times, slabs do not.
    cut = {output: (1, 1, SIZE, SIZE, 4)}
    told = rates(x, y, Took(1 / BYTES), cuts=cut)
    quickest = vg.volumes.advise(plan, "153 MiB", rates=told)
    assert quickest.chunks[1:] == (SIZE, SIZE) != largest.chunks[1:]
    assert quickest.cost.time is not None
    assert quickest.cost.time.seconds < predicted(plan.cut(largest.chunks), told).seconds
    assert "takes:" in str(quickest)


class Elsewhere:
    """Workers of whom nothing is known."""

    def go(self, folder: str, run: str, numbers: Any, done: Any) -> None:
        """Nothing."""


def norm_job(folder: Path) -> Job:
    page = vg.Page("norm")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    page.expose({"y": vg.ops.Sub(page, x, vg.ops.Mean(page, x, [1, 2, 3], keep_dims=True))})
    np.save(folder / "x.npy", np.arange(12 * 10 * 8, dtype=np.int16).reshape(1, 12, 10, 8, 1))
    return Job.make(page, {"x": folder / "x.npy"}, {}, {"y": folder / "y.npy"}, [], (6, 10, 8))


def test_a_trial_tells_the_rates_of_every_pass_and_leaves_nothing(tmp_path: Path) -> None:
    job = norm_job(tmp_path)
    found = measured(job, ThisProcess())
    assert found is not None
    assert len(found.passes) == 2
    assert all(one.read and one.made for one in found.passes)
    assert not found.passes[0].write
    assert found.passes[1].write
    assert vg.volumes.cost(job.plan(), found).time is not None
    assert [one.name for one in tmp_path.iterdir()] == ["x.npy"]
    assert measured(job, Elsewhere()) is None, "who works elsewhere is not known"


def test_a_run_that_goes_on_keeps_its_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, folder = norm_job(tmp_path), tmp_path / "y.npy.voxgrad-run"
    page = job.page

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vg.volumes.predict(page, tmp_path / "x.npy", tmp_path / "y.npy", chunks=(6, 5, 4), workers=0, progress=stop)
    monkeypatch.setattr(trial, "measured", lambda *_: pytest.fail("the chunks are settled"))
    assert chunks_within(job, "1 GiB", folder, ThisProcess()) == ((6, 5, 4), None)
    found = vg.volumes.predict(page, tmp_path / "x.npy", tmp_path / "y.npy", memory="1 GiB", workers=0).read()
    x = np.load(tmp_path / "x.npy").astype(np.float32)
    np.testing.assert_allclose(found, x - x.mean(), atol=1e-4)
