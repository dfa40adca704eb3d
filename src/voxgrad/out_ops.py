# SPDX-License-Identifier: Apache-2.0
"""The 3-D family as functions that write to an array of yours, for loops that own their buffers.

    y = np.empty((1, 2, 2, 2, 1), np.float32)
    vg.out_ops.MaxPool3D(out=y, input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")

Arguments as in `voxgrad.raw_ops`, and `out`: an array of the kind, type and shape of the result, dense, writable and
apart from the inputs. It comes back.
"""

from __future__ import annotations

from typing import Any

from voxgrad.arrays.execute import execute_into
from voxgrad.arrays.functions import RawOp, bind, dress
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY
from voxgrad.errors import Faults


def make_function(op: Op) -> RawOp:
    """The function of an op that writes to `out`."""

    def function(*positional: Any, **arguments: Any) -> Any:
        if "out" not in arguments:
            faults = Faults(op.name)
            faults.add("VG001", "out", wanted="be given", got="no value", remedy="Without a buffer use vg.raw_ops.")
            raise faults.error()
        out = arguments.pop("out")
        return execute_into(op, bind(op, positional, arguments), out)

    return dress(function, op, __name__, "out")


globals().update({op.name: make_function(op) for op in FAMILY})
__all__ = [op.name for op in FAMILY]
