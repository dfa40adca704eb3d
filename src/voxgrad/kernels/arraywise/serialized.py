# SPDX-License-Identifier: Apache-2.0
"""Tensors as texts, and back: the bytes of TensorProto messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from voxgrad.catalog.dtypes import INT64
from voxgrad.errors import VoxgradError
from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, element_type, integers, to_numpy
from voxgrad.kernels.arraywise.sparse_algebra import rows_of, stack_sparse
from voxgrad.kernels.tensor_proto import is_reference, tensor, tensor_bytes
from voxgrad.kernels.wire import parse

Numbers = np.ndarray[Any, Any]


def _read(run: Run, argument: str, data: bytes) -> Numbers:
    """The tensor of a text; a view of one value where the text has only one, however large it says to be."""
    try:
        message = parse(data, run.op.name)
        made = tensor(message)
    except VoxgradError as error:
        run.fail(argument, wanted="be the bytes of a TensorProto", got=error.faults[0].got, code="VG053")
    if is_reference(message):
        run.fail(argument, wanted="be a tensor, no reference to one", got="a reference", code="VG053")
    return made


@kernel()
def parse_tensor(run: Run, serialized: Array) -> Array:
    """The tensor of a text."""
    made, wanted = _read(run, "serialized", to_numpy(serialized).item()), run.attrs["out_type"]
    if element_type(made) != wanted:
        run.fail("out_type", wanted=f"be {element_type(made)}, as the text says", got=wanted.name, code="VG011")
    run.room("serialized", made.shape, made)
    return run.make(made.copy(), wanted)


def _texts(places: Numbers, values: Numbers, sizes: list[int]) -> list[bytes]:
    """A sparse tensor as three texts."""
    shape = np.array(sizes, np.int64)
    return [tensor_bytes(places, INT64), tensor_bytes(values, element_type(values)), tensor_bytes(shape, INT64)]


@kernel()
def sparse(run: Run, indices: Array, values: Array, shape: Array) -> Array:
    """A sparse tensor as three texts."""
    made = np.empty(3, object)
    made[:] = _texts(to_numpy(indices), to_numpy(values), integers(shape))
    return made


@kernel()
def sparse_rows(run: Run, indices: Array, values: Array, shape: Array) -> Array:
    """Every row as three texts."""
    sizes, numbers = integers(shape), to_numpy(values)
    places, cuts = rows_of(run, indices, sizes)
    steps = np.diff(places, axis=0)
    leading = np.take_along_axis(steps, (steps != 0).argmax(axis=1)[:, None], axis=1)
    if bool((leading <= 0).any()):
        run.fail("sparse_indices", wanted="be in order, each once", got=places[:8].tolist())
    made = np.empty((sizes[0], 3), object)
    for row in range(sizes[0]):
        part = slice(cuts[row], cuts[row + 1])
        made[row] = _texts(places[part, 1:], numbers[part], sizes[1:])
    return made


def _entry(run: Run, row: int, texts: list[bytes]) -> tuple[Numbers, Numbers, list[int]]:
    """A sparse tensor from its three texts."""
    argument = f"serialized_sparse[{row}]"
    places, values, sizes = (_read(run, argument, one) for one in texts)
    for part, rank, what in ((places, 2, "positions"), (values, 1, "values"), (sizes, 1, "a shape")):
        if part.ndim != rank:
            run.fail(argument, wanted=f"hold {what} of rank {rank}", got=f"shape {list(part.shape)}", code="VG012")
    if not element_type(places) == element_type(sizes) == INT64:
        run.fail(argument, wanted="hold positions and sizes of int64", got=element_type(places).name, code="VG011")
    if places.shape != (len(values), len(sizes)):
        wanted = f"hold {len(values)} positions of {len(sizes)} numbers"
        run.fail(argument, wanted=wanted, got=f"shape {list(places.shape)}", code="VG012")
    if bool((sizes < 0).any()):
        run.fail(argument, wanted="hold sizes of 0 or more", got=integers(sizes[:8]), code="VG014")
    return places, values, integers(sizes)


@kernel()
def stacked(run: Run, serialized: Array) -> Any:
    """Sparse tensors from their texts, one behind the other."""
    parts, cells = [], 0
    for row, texts in enumerate(to_numpy(serialized).tolist()):
        parts.append(_entry(run, row, texts))
        cells += parts[-1][0].size + 2 * len(parts[-1][1])
        run.room("serialized_sparse", (cells,), parts[-1][0])
    return stack_sparse(run, "serialized_sparse", parts)
