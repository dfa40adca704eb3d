# SPDX-License-Identifier: Apache-2.0
"""Spoiled calls of ordinary ops give an error that names the fault, or a result; never another exception."""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.catalogue.test_vectors import by_op
from tests.grouped import grouped
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.arraywise.evaluation import UNFORESEEN

ODD: tuple[Any, ...] = (
    None, "text", 3, -1, 1.5, True, [], [[]], [1, [2]], {}, object(), 10**30, float("nan"), b"bytes", "float32",
    (1, 2, 3),
)  # fmt: skip
TYPES = (np.float16, np.float64, np.int8, np.int64, np.uint8, bool, np.complex64, ">f4", object, "U3")


def _spoiled_array(pick: random.Random, array: Any) -> Any:
    kind = pick.randrange(8)
    if array is None:
        return None  # spoiled before
    if kind == 0:
        return array[None]
    if kind == 1:
        return array[..., :0] if array.ndim else array
    if kind == 2:
        return array.reshape(-1)
    if kind == 3:
        return array[..., None]
    if kind == 4 and array.dtype.kind in "iu":
        return array - np.asarray(pick.choice([1, 7, 100]), array.dtype)
    if kind == 5 and array.dtype.kind in "iu":
        return np.full_like(array, pick.choice([0, 127, np.iinfo(array.dtype).max, np.iinfo(array.dtype).min]))
    if kind == 6:
        return np.concatenate([array, array]) if array.ndim else array
    try:
        with np.errstate(all="ignore"):
            return array.astype(pick.choice(TYPES))
    except (ValueError, TypeError, OverflowError):
        return None


def spoiled(pick: random.Random, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with one or two of them broken."""
    made = dict(arguments)
    for _ in range(pick.choice([1, 1, 2])):
        if not made:
            break
        name = pick.choice(list(made))
        value = made[name]
        if pick.random() < 0.15:
            del made[name]
        elif isinstance(value, np.ndarray) and pick.random() < 0.8:
            made[name] = _spoiled_array(pick, value)
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray) and pick.random() < 0.8:
            place = pick.randrange(len(value))
            made[name] = [_spoiled_array(pick, one) if i == place else one for i, one in enumerate(value)][
                : pick.choice([1, 9])
            ]
        else:
            made[name] = pick.choice(ODD)
    return made


def _attributes(op: str) -> dict[str, Any]:
    return {attr.name: attr.default for attr in OPS[op].attrs if not attr.required}


@pytest.mark.filterwarnings("ignore")
@grouped("op", [name for name in by_op() if name in vg.raw_ops.__all__], by=lambda op: OPS[op].group)
def test_spoiled_calls(op: str) -> None:
    pick = random.Random(zlib.crc32(op.encode()))
    function = getattr(vg.raw_ops, op)
    cases = by_op()[op]
    with vg.limits(bytes=2**26):
        for _ in range(25):
            case = pick.choice(cases).case
            arguments = spoiled(pick, {**_attributes(op), **case.attrs, **case.inputs})
            try:
                function(**arguments)
            except vg.VoxgradError as error:
                assert all(fault.op == op and fault.argument != UNFORESEEN for fault in error.faults), str(error)
