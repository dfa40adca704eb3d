# SPDX-License-Identifier: Apache-2.0
"""All declared ops."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import replace
from functools import cache

from voxgrad.catalog import (
    array,
    avg_pool3d,
    batch_norm,
    candidate_sampling,
    control_flow,
    conv3d,
    core,
    data_flow,
    fake_quant,
    image,
    io,
    logging,
    math,
    matrix,
    max_pool3d,
    nn,
    packages,
    parsing,
    patches,
    quantised,
    random,
    reductions,
    slicing,
    spaces,
    sparse,
    sparse_algebra,
    special,
    staging,
    state,
    string,
    training,
    windows2d,
)  # fmt: skip
from voxgrad.catalog.model import Op
from voxgrad.catalog.shapes import checked
from voxgrad.errors import Fault, InvalidArgumentError, show

FAMILY: tuple[Op, ...] = (*conv3d.OPS, *avg_pool3d.OPS, *max_pool3d.OPS)
"""The 3-D windowed family, closed under differentiation."""

ORDINARY: tuple[Op, ...] = tuple(
    replace(op, infer=checked(op))
    for module in (
        core, array, slicing, spaces, math, special, matrix, reductions, nn, batch_norm, windows2d, sparse,
        sparse_algebra, state, training, random, control_flow, data_flow, staging, io, string, logging,
        image, patches, fake_quant, quantised, candidate_sampling, parsing,
    )
    for op in module.OPS
)  # fmt: skip
"""The ops that pages need beside the family; they run on any array library."""

OPS: dict[str, Op] = {op.name: op for op in (*FAMILY, *ORDINARY)}
"""Every op under its name."""

ALIASES: dict[str, str] = {alias: op.name for op in ORDINARY for alias in op.aliases}
"""The names of enuSpace's blocks that are not the names of their ops."""


def get(name: str) -> Op | None:
    """The op with this name, of the catalogue or `package.Name` of an installed package; None for a wrong one."""
    return OPS.get(name) or (packages.op(name) if "." in name else None)


def find(name: str) -> Op:
    """The op with this name or alias; the error for a wrong one names the nearest."""
    found = get(name) or OPS.get(ALIASES.get(name, ""))
    if found is not None:
        return found
    fault = packages.missing(name)
    if fault is None:
        fault = Fault("VG050", "catalog", "op", "be the name of an op", show(repr(name)), nearest(name))
    raise InvalidArgumentError(replace(fault, argument="op"))


def everything() -> tuple[Op, ...]:
    """Every op of the catalogue, and of all installed packages."""
    return (*OPS.values(), *(op for package in packages.everything() for op in package.ops.values()))


def nearest(name: str) -> str:
    """What to say of a name that no op has. Looks only at ops that share runs of three letters with it."""
    counts = Counter(op for part in _triples(name[:80]) for op in _with_triples().get(part, ()))
    likely = [op for op, _ in counts.most_common(8)]
    near = difflib.get_close_matches(name[:80], likely, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else "`voxgrad ops` lists the ops that exist."


def _triples(name: str) -> set[str]:
    folded = f"^{name.lower()}"
    return {folded[at : at + 3] for at in range(len(folded) - 2)}


@cache
def _with_triples() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in OPS:
        for part in _triples(name):
            found.setdefault(part, []).append(name)
    return found
