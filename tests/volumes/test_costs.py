# SPDX-License-Identifier: Apache-2.0
"""What a plan promises: exact sums over all chunks, and chunks that fit a memory limit."""

import math
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.volumes.test_pages import saved, small_unet, volumes_of_unet
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Spec
from voxgrad.graph.block import Value
from voxgrad.volumes.costs import parse_bytes
from voxgrad.volumes.layout import lay_out
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.work import Worker


def plan_of(tmp_path: Path, chunks: tuple[int, int, int]) -> PagePlan:
    return vg.volumes.plan_page(small_unet(), saved(tmp_path, **volumes_of_unet()), ["y", "loss"], chunks=chunks)


@pytest.mark.parametrize("chunks", [(9, 10, 7), (4, 3, 5), (1, 2, 1)])
def test_bytes_are_those_of_every_single_box(chunks: tuple[int, int, int], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, chunks)
    found = vg.volumes.cost(plan)
    read = sum(
        math.prod(high - low for low, high in plan.box(slot, at)) * 4
        for slot in plan.layout.volumes.values()
        for at in plan
    )
    written = sum(
        math.prod(high - low for low, high in plan.root_box(root, at)) * 4
        for root in plan.roots
        for at in plan
        if root.piece is None
    )
    assert (found.tasks, found.bytes_read, found.bytes_written) == (len(plan), read, written)
    assert found.recomputed >= 0
    if chunks == (9, 10, 7):
        assert found.reread == found.recomputed == 0


def test_one_window_op_costs_what_it_multiplies(tmp_path: Path) -> None:
    files = saved(tmp_path, input=np.zeros((1, 8, 8, 8, 2), np.float32), filter=np.zeros((3, 3, 3, 2, 5), np.float32))
    plan = vg.volumes.plan_op("Conv3D", files, chunks=(4, 4, 4), strides=[1] * 5, padding="SAME")
    assert vg.volumes.cost(plan).flops == 2 * 8**3 * 27 * 2 * 5
    assert vg.volumes.cost(plan).bytes_read == (5 * 2) ** 3 * 2 * 4, "every half reads one cell of the other"


def big_layout(size: int) -> tuple[vg.Page, object]:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.Const(page, np.zeros((3, 3, 3, 1, 4), np.float32))
    y = vg.ops.Relu(page, vg.ops.Conv3D(page, x, w, strides=[1] * 5, padding="SAME"))
    y = vg.ops.MaxPool3D(page, y, ksize=[1, 3, 3, 3, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    return page, lay_out(page, {x: Spec(dtypes.FLOAT32, (1, size, size, size, 1))}, {}, [y])


def test_advice_fits_the_limit_and_the_file() -> None:
    _, layout = big_layout(4096)
    plan = PagePlan(layout, (128, 128, 128))  # type: ignore[arg-type]
    costs = []
    for limit in ("400 MiB", "1.5GiB", "16GB"):
        advice = vg.volumes.advise(plan, limit, align=(64, 64, 64))
        assert advice.cost.peak_bytes < parse_bytes(limit)
        assert all(chunk % 64 == 0 for chunk in advice.chunks)
        costs.append(advice.cost.recomputed)
    assert costs == sorted(costs, reverse=True), "more memory, larger chunks, less done twice"
    with pytest.raises(vg.InvalidArgumentError, match="VG020 advise: memory"):
        vg.volumes.advise(plan, "1MiB")
    with pytest.raises(vg.InvalidArgumentError, match="VG052"):
        vg.volumes.advise(plan, "much")


def test_a_task_holds_no_more_than_the_plan_says(tmp_path: Path) -> None:
    """The peak of a task, with what the next one reads meanwhile, against what NumPy really allocates."""
    page, data = small_unet(), {name: np.repeat(one, 4, 1) for name, one in volumes_of_unet().items()}
    files = saved(tmp_path, **data)
    vg.volumes.run_page(page, files, {"y": tmp_path / "y.npy"}, chunks=(18, 10, 7), workers=0)
    worker = Worker(tmp_path / "y.npy.voxgrad-run")
    worker.do(0)
    said = vg.volumes.cost(worker.plan).peak_bytes
    tracemalloc.start()
    for number in range(len(worker.plan)):
        worker.do(number, number + 1 if number + 1 < len(worker.plan) else None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    worker.close()
    assert said / 2 < peak < said + 2**15


@pytest.mark.parametrize("axes", [[1, 2, 3, 4], [0, 1, 2, 3, 4]])
def test_images_are_chunks_of_their_own(axes: list[int]) -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    layout = lay_out(page, {x: Spec(dtypes.FLOAT32, (3, 4, 4, 4, 2))}, {}, [vg.ops.Sum(page, x, axes)])
    assert PagePlan(layout, (4, 4, 2)).grid == (3, 1, 1, 2)


def filtered(filter_shape: tuple[int, ...], typed: bool) -> None:
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="x")
    w = vg.ops.Placeholder(page, dtype="float32", shape=[None] * 5, name="w")
    used = Value(np.ones(filter_shape, np.float32), "float32") if typed else w
    y = page.add("Conv3D", {"input": [x], "filter": [used]}, {"strides": [1] * 5, "padding": "SAME"})
    given = {} if typed else {w: Spec(dtypes.FLOAT32, filter_shape)}
    lay_out(page, {x: Spec(dtypes.FLOAT32, (1, 4, 4, 4, 1))}, given, [y.output()])


def test_what_every_worker_holds_is_not_larger_than_256_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters of 64 float32 for every channel that comes out."""
    filtered((4, 4, 4, 1, 2**20), typed=False)
    with pytest.raises(vg.InvalidArgumentError, match=r"VG072 page: w.output must have .*; got 268,435,712 bytes"):
        filtered((4, 4, 4, 1, 2**20 + 1), typed=False)
    monkeypatch.setattr("voxgrad.volumes.layout.MOST_WHOLE", 256)
    filtered((4, 4, 4, 1, 1), typed=True)
    with pytest.raises(vg.InvalidArgumentError, match=r"VG072 page: a value must have at most 256 .*; got 512 bytes"):
        filtered((4, 4, 4, 1, 2), typed=True)


def test_a_million_chunks_of_a_page_are_planned_at_once() -> None:
    tracemalloc.start()
    start = time.perf_counter()
    _, layout = big_layout(100 * 256)
    plan = PagePlan(layout, (128, 128, 128))  # type: ignore[arg-type]
    assert len(plan) == 1_000_000
    assert vg.volumes.cost(plan).tasks == 1_000_000
    box = plan.root_box(plan.roots[0], plan.at(999_999))
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert box == ((0, 1), *((12672, 12800),) * 3, (0, 4))
    assert peak < 2**24, f"{peak} bytes, {seconds} s"
