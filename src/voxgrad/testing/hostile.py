# SPDX-License-Identifier: Apache-2.0
"""Random hostile calls: whatever comes, a call ends in the right numbers or in an error of this package.

    python -m voxgrad.testing.hostile --calls 20000 --seed 1

Every answer is compared with the reference. Run it in a process of its own, so that a crash is seen as one.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import Any

import ml_dtypes
import numpy as np

import voxgrad as vg
from voxgrad import reference
from voxgrad.arrays.kinds import numpy_type
from voxgrad.arrays.plan import make_plan
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.testing.calls import SeededChooser, draw_call
from voxgrad.testing.compare import EPSILON

LIMIT = 2**22
ODD_NUMBERS: list[Any] = [
    0, -1, 1, 2, 3, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63, -(2**63), 2**64, 10**30, True, 1.5, "2", None,
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, "", "SAME", b"VALID", "same", "NHWC", 3, -1, 1.5, [], [[]], {}, (), object(), np.float32(2), "\x00",
    [1, 1, 1, 1, 1], [1, 2, 2, 2, 1], [0] * 5, np.array([1, 1, 1, 1, 1]), float("nan"), [None] * 5, 10**400,
]  # fmt: skip
ODD_TYPES: list[Any] = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.uint8, np.bool_, np.complex64,
    ">f4", "U1", object,
]  # fmt: skip


def odd_list(pick: random.Random) -> list[Any]:
    """A list that could be a window, a stride or a shape, and mostly is not."""
    return [pick.choice(ODD_NUMBERS) for _ in range(pick.choice([5, 5, 5, 5, 0, 1, 4, 6, 40]))]


def odd_array(pick: random.Random) -> Any:
    """An array of any rank, type and memory."""
    shape = [pick.choice([0, 1, 1, 2, 3, 5]) for _ in range(pick.choice([5, 5, 5, 5, 0, 1, 4, 6]))]
    array = np.ones(shape).astype(pick.choice(ODD_TYPES))
    form = pick.randrange(5)
    if form == 0 and array.ndim:
        return array[::-1]
    if form == 1:
        return np.asfortranarray(array)
    if form == 2:
        return array.tolist()
    return np.broadcast_to(array, (2, *shape)) if form == 3 else array


def spoil(call: dict[str, Any], op: Op, pick: random.Random) -> dict[str, Any]:
    """A valid call with some of its arguments made hostile."""
    spoiled = dict(call)
    for _ in range(pick.choice([0, 1, 1, 1, 2, 3])):
        item = pick.choice(op.parameters)
        kind = pick.randrange(8)
        current = spoiled.get(item.name)
        if kind == 0:
            spoiled.pop(item.name, None)
        elif kind == 1:
            spoiled[item.name] = pick.choice(ODD_VALUES)
        elif kind == 2:
            spoiled[item.name] = odd_list(pick)
        elif kind in (3, 4) and isinstance(current, list) and current:
            changed = list(current)
            changed[pick.randrange(len(changed))] = pick.choice(ODD_NUMBERS)
            spoiled[item.name] = changed
        elif kind == 5 and not isinstance(item, Attr):
            spoiled[item.name] = odd_array(pick)
        elif kind == 6:
            spoiled[pick.choice(["name", "nmae", "data_format", "T"])] = pick.choice(ODD_VALUES)
        elif isinstance(current, np.ndarray) and current.ndim == 5 and current.dtype.kind in "fV":
            spoiled[item.name] = (
                current.astype(pick.choice(ODD_TYPES[:4])) if pick.random() < 0.5 else current[:, :, ::-1]
            )
    return spoiled


def is_right(op: Op, call: dict[str, Any], result: Any) -> bool:
    """The result is the reference's, up to a few roundings."""
    plan = make_plan(op, {name: value for name, value in call.items() if name != "name"})
    with np.errstate(all="ignore"):
        exact = reference.evaluate(plan.problem, *plan.tensors.values())
        if result.dtype != numpy_type(plan.problem.output_dtype) or result.shape != exact.shape:
            return False
        value, rounded = result.astype(np.float64), exact.astype(result.dtype).astype(np.float64)
        slack = (
            64
            * EPSILON.get(plan.problem.output_dtype, 0.0)
            * max(1.0, float(np.abs(np.nan_to_num(rounded)).max(initial=0)))
        )
        same = (value == rounded) | (np.isnan(value) & np.isnan(rounded)) | (np.abs(value - rounded) <= slack)
    return bool(same.all())


def attack(calls: int, seed: int) -> tuple[int, int]:
    """Make hostile calls; returns how many gave numbers and how many were refused. Raises at the first wrong one."""
    pick = random.Random(seed)
    answered = refused = 0
    for number in range(calls):
        op = pick.choice(FAMILY)
        dtype = pick.choice(dtypes.FLOATING)
        call = draw_call(op, SeededChooser(pick.randrange(2**31)), dtype=dtype)
        if number:
            call = spoil(call, op, pick)
        try:
            with vg.limits(bytes=LIMIT), vg.semantics(pick.choice(["documented", "tf_cpu"])):
                result = getattr(vg.raw_ops, op.name)(**call)
                if not is_right(op, call, result):
                    raise AssertionError(f"call {number} of seed {seed} gave a wrong number: {op.name} {call}")
            answered += 1
        except vg.VoxgradError:
            refused += 1
    return answered, refused


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Make random hostile calls and compare every answer.")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    answered, refused = attack(options.calls, options.seed)
    sys.stdout.write(f"{answered} answered, {refused} refused, seed {options.seed}\n")


if __name__ == "__main__":
    main()
