# SPDX-License-Identifier: Apache-2.0
"""Ordinary ops on Dask arrays: lazy where they work cell by cell, refused where they would load everything."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from voxgrad.arrays import ordinary
from voxgrad.catalog.locality import elementwise
from voxgrad.catalog.registry import OPS


def loaded(*_: Any, **__: Any) -> Any:
    raise AssertionError("a chunk was loaded")


def lazy(dtype: Any = np.float32) -> Any:
    return da.map_blocks(loaded, chunks=((2, 2), (3,)), dtype=dtype, meta=np.empty((0, 0), dtype))


@grouped("name", vg.raw_ops.__all__, by=lambda name: OPS[name].group)
def test_no_op_loads_a_dask_array(name: str) -> None:
    """Planned without a look at a number, or refused; the plan has the type and shape that the op gives."""
    op = OPS[name]
    tensors = [item for item in op.inputs if not item.host]
    dtype = next((one for item in tensors for one in op.allowed(item.type) if one.kind in ("float", "bool")), None)
    if not tensors or dtype is None:
        return
    x = lazy(np.bool_ if dtype.kind == "bool" else np.float32)
    arguments = {item.name: [x, x] if item.many else [1] if item.host else x for item in op.inputs}
    attrs = {
        attr.name: {"type": "float32", "int": 1, "ints": [1] * 5}.get(attr.kind, "VALID")
        for attr in op.attrs
        if attr.required
    }
    try:
        made = ordinary.execute(op, {**arguments, **attrs}) if op.problem is None else None
    except vg.VoxgradError:
        return
    assert made is None or (isinstance(made, da.Array) and op.follows is elementwise)


def test_lazy_results_are_those_of_the_op() -> None:
    values = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    x = da.from_array(values, chunks=(2, 3))
    for made, wanted in [
        (vg.raw_ops.Relu(features=x), vg.raw_ops.Relu(features=values)),
        (vg.raw_ops.Mul(x=x, y=2), values * 2),
        (vg.raw_ops.Mul(x=np.ones(3, np.float32), y=x), values),
        (vg.raw_ops.AddN(inputs=[x, x]), values + values),
        (vg.raw_ops.Cast(x=x, DstT="int32"), values.astype(np.int32)),
        (vg.raw_ops.Less(x=x, y=0.0), values < 0),
    ]:
        got = made.compute(scheduler="synchronous")
        assert made.dtype == got.dtype == wanted.dtype and (got == wanted).all()


def test_what_needs_the_whole_array_says_so() -> None:
    for op, given in {"Sum": {"input": lazy(), "axis": 0}, "Reshape": {"tensor": lazy(), "shape": [12]}}.items():
        with pytest.raises(vg.UnimplementedError, match=r"VG032 .*compute\(\)"):
            getattr(vg.raw_ops, op)(**given)
    with pytest.raises(vg.InvalidArgumentError, match="VG011"):
        vg.raw_ops.Mul(x=lazy(), y=1j)
    page = vg.Page()
    x = vg.ops.Placeholder(page, dtype="float32", name="x")
    with pytest.raises(vg.InvalidArgumentError, match=r"VG030 .*compute\(\)"):
        vg.ClientSession(page).run(x, {"x": lazy()})
    with pytest.raises(vg.InvalidArgumentError, match=r"VG030 .*compute\(\)"):
        vg.ops.Relu(page, lazy())
    masked = vg.raw_ops.Relu(features=da.from_array(np.ma.ones((2, 2))))
    with pytest.raises(vg.InvalidArgumentError, match="masked"):
        masked.compute(scheduler="synchronous")
