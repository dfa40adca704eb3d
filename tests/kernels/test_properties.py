# SPDX-License-Identifier: Apache-2.0
"""Properties that hold for every call: memory form, layout and sub-volumes do not change the numbers."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from tests.kernels.oracle import run, run_poisoned, truth
from voxgrad.catalog import geometry
from voxgrad.catalog.dtypes import FLOATING
from voxgrad.catalog.model import Op
from voxgrad.catalog.problem import DATA_FORMATS
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing.strategies import calls, odd_memory

QUICK = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
@given(data=st.data())
@QUICK
def test_any_memory_gives_the_same_bits(op: Op, data: st.DataObject) -> None:
    call = data.draw(calls(op, data.draw(st.sampled_from(FLOATING))))
    moved = {
        name: data.draw(odd_memory(value)) if isinstance(value, np.ndarray) else value for name, value in call.items()
    }
    plain = run(op.name, call)
    kept = {name: value.copy() for name, value in moved.items() if isinstance(value, np.ndarray)}
    assert run(op.name, moved).tobytes() == plain.tobytes()
    for name, value in kept.items():
        assert value.tobytes() == moved[name].tobytes(), f"{name} was written to"
    truth(op.name, call).check(run_poisoned(op.name, call))


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
@given(data=st.data())
@QUICK
def test_layouts_agree(op: Op, data: st.DataObject) -> None:
    call = data.draw(calls(op, data.draw(st.sampled_from(FLOATING)), formats=DATA_FORMATS[:1]))
    turned = dict(call, data_format=DATA_FORMATS[1])
    for item in op.parameters:
        value = call.get(item.name)
        if isinstance(value, np.ndarray) and item.layout == "data":
            turned[item.name] = np.ascontiguousarray(np.moveaxis(value, -1, 1))
        elif item.name in ("strides", "ksize", "dilations", "orig_input_shape", "input_sizes") and value is not None:
            turned[item.name] = [value[0], value[4], *value[1:4]]
    result = run(op.name, turned)
    back = np.moveaxis(result, 1, -1) if op.outputs[0].layout == "data" else result
    truth(op.name, call).check(np.ascontiguousarray(back))


@given(
    size=st.integers(0, 12), window=st.integers(1, 6), stride=st.integers(1, 5), dilation=st.integers(1, 3),
    padding=st.sampled_from(geometry.PADDINGS), late=st.booleans(),
)  # fmt: skip
@settings(max_examples=400, deadline=None, derandomize=True)
def test_boxes_are_the_cells_that_taps_read(
    size: int, window: int, stride: int, dilation: int, padding: str, late: bool
) -> None:
    axis = geometry.axis(size, window, stride, dilation, padding, late_start=late)
    reads = {o: {axis.start(o) + t * dilation for t in range(window)} for o in range(max(axis.out, 0))}
    for o0 in range(max(axis.out, 0)):
        for o1 in range(o0 + 1, axis.out + 1):
            wanted = set().union(*(reads[o] for o in range(o0, o1)))
            assert geometry.input_box(axis, o0, o1) == (min(wanted), max(wanted) + 1)
    for i0 in range(size):
        for i1 in range(i0 + 1, size + 1):
            reach = [o for o, cells in reads.items() if min(cells) < i1 and max(cells) >= i0]
            box = geometry.output_box(axis, i0, i1)
            assert set(reach) == set(range(*box))
    for t in range(window):
        hits = [o for o in reads if 0 <= axis.start(o) + t * dilation < size]
        assert list(range(*axis.outputs_of_tap(t))) == hits


@given(size=st.integers(0, 12), window=st.integers(1, 14), stride=st.integers(1, 6), over=st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_coverings_invert_spans(size: int, window: int, stride: int, over: bool) -> None:
    axis = geometry.axis(size, window, stride, 1, geometry.SAME, overreach=over)
    los, his = geometry.spans(axis)
    firsts, lasts = geometry.coverings(axis)
    for cell in range(size):
        covering = [o for o in range(axis.out) if los[o] <= cell < his[o]]
        assert covering == list(range(firsts[cell], lasts[cell]))
