# SPDX-License-Identifier: Apache-2.0
"""What the average and the maximum pools share: attributes, and the problem of a pooled volume."""

from __future__ import annotations

from dataclasses import replace

from voxgrad.catalog import geometry
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Call, Law
from voxgrad.catalog.problem import (
    DATA_FORMATS,
    Problem,
    Volume,
    countable,
    is_channels_last,
    spatial_attr,
    volume,
    window_axes,
)
from voxgrad.errors import Faults

DATA = "[N, D, H, W, C], or [N, C, D, H, W] for NCDHW"

ATTRS = (
    Attr("ksize", "ints", "Size of the window in every dimension of the data; 1 for batch and channels.", length=5),
    Attr("strides", "ints", "Step of the window in every dimension of the data; 1 for batch and channels.", length=5),
    Attr("padding", "string", "SAME gives out = ceil(size / stride); VALID keeps windows inside the data.",
         choices=geometry.PADDINGS),
    Attr("data_format", "string", "Order of the dimensions of the data.", DATA_FORMATS[0], choices=DATA_FORMATS),
)  # fmt: skip

LAWS = (
    Law("padding", "Cells outside the data are absent: they are never read and never counted."),
    Law("determinism", "The same input gives the same bits, whatever the number of threads."),
)


def pool_problem(
    call: Call, sized: tuple[str, Volume | None], types: tuple[DType, DType] | None, faults: Faults, **quirks: bool
) -> Problem | None:
    """The problem of pooling the volume named in `sized`; `types` are those to compute in and to return."""
    window = spatial_attr(call, "ksize", faults, pool=True)
    strides = spatial_attr(call, "strides", faults, pool=True)
    name, data = sized
    if data is None or window is None or strides is None or types is None:
        return None
    near_ties = quirks.pop("near_ties", False)
    axes = window_axes(call, (name, data), ("ksize", window), strides, (1, 1, 1), faults, **quirks)
    if axes is None:
        return None
    batch, _, channels = data
    return Problem(
        call.op.name, call.op.kernel, *types, (), is_channels_last(call), batch, channels, channels, 1, axes, near_ties
    )  # fmt: skip


def finished(problem: Problem | None, *, forward: bool, faults: Faults) -> Problem | None:
    """The problem with its output shape: the pooled extent of a forward op, the full extent of a gradient."""
    if problem is None:
        return None
    made = replace(problem, output_shape=problem.output_extent if forward else problem.input_extent)
    countable(made, faults)
    return made


def forward_problem(call: Call, faults: Faults) -> Problem | None:
    """The problem of a pool itself."""
    dtype = call.inputs["input"].dtype
    types = None if dtype is None else (dtype, dtype)
    late = call.semantics == "tf_cpu"
    made = pool_problem(call, ("input", volume(call, "input", faults)), types, faults, late_start=late)
    return finished(made, forward=True, faults=faults)
