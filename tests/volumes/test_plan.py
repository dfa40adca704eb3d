# SPDX-License-Identifier: Apache-2.0
"""Chunked equals dense: every op, padding, stride, dilation and chunk size, ragged ones down to 1."""

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.arrays.execute import compute
from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog import geometry
from voxgrad.catalog.dtypes import FLOAT32, FLOAT64
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.testing import SeededChooser, assert_close, draw_call, terms_of
from voxgrad.volumes.plan import Box, Plan
from voxgrad.volumes.windows import segment

Array = np.ndarray[Any, Any]
SPATIAL = {True: (1, 2, 3), False: (2, 3, 4)}


def cut(array: Array, box: Box | None, last: bool) -> Array:
    if box is None:
        return array
    index: list[slice] = [slice(None)] * 5
    for axis, (a, b) in zip(SPATIAL[last], box, strict=True):
        index[axis] = slice(a, b)
    return array[tuple(index)]


def run_chunked(op: Op, call: dict[str, Any], chunks: tuple[int, ...]) -> Array:
    """The result of a plan, chunk by chunk, in memory full of NaN."""
    whole = make_plan(op, call).problem
    kind = numpy_type(whole.dtype)
    plan = Plan(whole, chunks)
    result = np.zeros(whole.output_shape, kind) if plan.is_partial else np.full(whole.output_shape, np.nan, kind)
    for task in plan:
        tensors = [np.ascontiguousarray(cut(call[name], box, whole.channels_last)) for name, box in task.reads.items()]
        part = np.full(task.problem.output_shape, np.nan, kind)
        compute(task.problem, tensors, part)
        if task.writes is None:
            result += part
        else:
            cut(result, task.writes, whole.channels_last)[...] = cut(part, task.crop, whole.channels_last)
    return result


@pytest.mark.parametrize("semantics", ["documented", "tf_cpu"])
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_chunked_equals_dense(op: Op, semantics: str) -> None:
    with vg.semantics(semantics):
        for seed in range(32):
            choose = SeededChooser(seed)
            style = ("integers", "ties", "normal")[seed % 3]
            call = draw_call(op, choose, dtype=FLOAT32 if seed % 2 else FLOAT64, style=style)
            dense = getattr(vg.raw_ops, op.name)(**call)
            chunked = run_chunked(op, call, (choose.integer(1, 5), choose.integer(1, 5), choose.integer(1, 5)))
            exact = op.selects or (style != "normal" and op.map.of != "AvgPool3D")
            terms = 0 if exact else terms_of(make_plan(op, call).problem)
            assert_close(chunked, dense, terms=terms, scale=float(np.abs(dense).max(initial=0)), label=f"seed {seed}")


def test_a_task_reads_only_what_its_windows_touch() -> None:
    x = np.zeros((1, 64, 64, 64, 1), np.float32)
    w = np.zeros((3, 3, 3, 1, 1), np.float32)
    problem = make_plan(OPS["Conv3D"], {"input": x, "filter": w, "strides": [1] * 5, "padding": "SAME"}).problem
    plan = Plan(problem, (16, 16, 16))
    assert len(plan) == 64
    assert plan.task(0).reads["input"] == ((0, 17), (0, 17), (0, 17))
    assert plan.task(21).reads["input"] == ((15, 33), (15, 33), (15, 33))
    assert plan.task(21) == list(plan)[21]


@pytest.mark.parametrize(
    ("op", "cells"), [("AvgPool3DGrad", (16, 32)), ("Conv3DBackpropInputV2", (16, 32)), ("MaxPool3DGrad", (14, 34))]
)
def test_only_the_gradient_of_maxima_looks_at_whole_windows(op: str, cells: tuple[int, int]) -> None:
    found = segment(OPS[op].map, geometry.axis(64, 3, 1, 1, geometry.SAME), (16, 32))
    assert (found.cells, found.windows, found.kept) == (cells, (15, 33), (16, 32))


def test_a_million_chunks_are_planned_quickly() -> None:
    axis = geometry.axis(100 * 128, 3, 1, 1, geometry.SAME)
    x = np.broadcast_to(np.float32(0), (1, 4, 4, 4, 1))
    small = make_plan(OPS["AvgPool3D"], {"input": x, "ksize": [1, 3, 3, 3, 1], "strides": [1] * 5, "padding": "SAME"})
    from dataclasses import replace

    tracemalloc.start()
    start = time.perf_counter()
    plan = Plan(replace(small.problem, axes=(axis, axis, axis)), (128, 128, 128))
    assert len(plan) == 1_000_000
    last = plan.task(999_999)
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert last.writes == ((12672, 12800),) * 3
    assert peak < 2**24, f"{peak} bytes, {seconds} s"
