"""What computes the blocks. It is loaded when one of them first runs, in the process that runs it."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def box_blur(x: Array, radius: int) -> Array:
    """The mean over a cube around every cell. Inputs come in their order, and are not to be written to; attributes by
    name. What is returned has the type and the shape that the declaration says."""
    wide = x.astype(np.promote_types(x.dtype, np.float32))  # half and bfloat16 are summed in float32, rounded once
    for axis in (1, 2, 3):
        width, room = x.shape[axis], [(0, 0)] * 5
        room[axis] = (radius, radius)
        padded = np.pad(wide, room)
        parts = [padded.take(range(at, at + width), axis) for at in range(2 * radius + 1)]
        wide = np.sum(parts, axis=0, dtype=wide.dtype)
    return (wide / (2 * radius + 1) ** 3).astype(x.dtype)
