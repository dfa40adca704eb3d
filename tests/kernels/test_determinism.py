# SPDX-License-Identifier: Apache-2.0
"""The same input gives the same bits: for every number of threads, and every time."""

from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.kernels.oracle import run
from voxgrad.catalog.dtypes import FLOATING, DType
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing.calls import SeededChooser, draw_call

LARGE = np.random.default_rng(0).standard_normal((2, 13, 14, 15, 24))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_bits_do_not_depend_on_threads(op: Op, dtype: DType, isa: str, threads: None) -> None:
    calls = [draw_call(op, SeededChooser(seed), dtype=dtype, style="normal") for seed in range(4)]
    calls.append(_large_call(op, dtype))
    for call in calls:
        results = []
        for count in (1, 2, 3, 2):
            vg.set_num_threads(count)
            results.append(run(op.name, call))
        for result in results[1:]:
            assert result.tobytes() == results[0].tobytes()


def _large_call(op: Op, dtype: DType) -> dict:  # type: ignore[type-arg]
    """Large enough for the work to be split."""
    from voxgrad.arrays.kinds import numpy_type

    x = LARGE.astype(numpy_type(dtype))
    if op.map.has_taps:
        attrs = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
        w = np.random.default_rng(1).standard_normal((3, 3, 3, 24, 24)).astype(x.dtype)
        known = {
            "input": x,
            "filter": w,
            "out_backprop": x,
            "input_sizes": list(x.shape),
            "filter_sizes": list(w.shape),
        }
    else:
        attrs = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
        y = vg.raw_ops.MaxPool3D(input=x, **attrs)
        known = {"input": x, "orig_input": x, "orig_output": y, "grad": x, "orig_input_shape": list(x.shape)}
    return {item.name: known[item.name] for item in op.inputs} | attrs


@pytest.mark.parametrize(("window", "step"), [(3, 1), (2, 1), (4, 2), (3, 2)])
@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D", "AvgPool3DGrad"])
def test_bits_do_not_depend_on_where_rows_are_cut(op: str, window: int, step: int, isa: str, threads: None) -> None:
    """Zeros of both signs, whose maximum depends on the order, and sums that round, in windows that share rows."""
    random = np.random.default_rng(window)
    x = random.standard_normal((1, 11, 37, 12, 32)).astype(np.float32)
    if op == "MaxPool3D":
        x = np.where(x > 0, np.float32(0.0), np.float32(-0.0))
    attrs: dict[str, Any] = {"ksize": [1, *[window] * 3, 1], "strides": [1, *[step] * 3, 1], "padding": "SAME"}
    call = {"input": x} | attrs
    if op == "AvgPool3DGrad":
        call = {"orig_input_shape": list(x.shape), "grad": vg.raw_ops.AvgPool3D(input=x, **attrs)} | attrs
    results = []
    for count in (1, 2, 3, 5):
        vg.set_num_threads(count)
        results.append(run(op, call).tobytes())
    assert results.count(results[0]) == len(results)
