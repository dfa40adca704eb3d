# SPDX-License-Identifier: Apache-2.0
"""All declared ops."""

from __future__ import annotations

import difflib

from voxgrad.catalog import avg_pool3d, conv3d, max_pool3d
from voxgrad.catalog.model import Op
from voxgrad.errors import Fault, InvalidArgumentError

FAMILY: tuple[Op, ...] = (*conv3d.OPS, *avg_pool3d.OPS, *max_pool3d.OPS)
"""The 3-D windowed family, closed under differentiation."""

OPS: dict[str, Op] = {op.name: op for op in FAMILY}
"""Every op under its name."""


def find(name: str) -> Op:
    """The op with this name; the error for a wrong one names the nearest."""
    if name in OPS:
        return OPS[name]
    near = difflib.get_close_matches(name, OPS, n=3, cutoff=0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else "`voxgrad ops` lists them."
    raise InvalidArgumentError(Fault("VG050", "catalog", "op", "be the name of an op", repr(name), remedy))
