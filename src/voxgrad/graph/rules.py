# SPDX-License-Identifier: Apache-2.0
"""What follows from one block alone: its attributes in canonical form, and what is known of its results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from voxgrad.arrays.literals import make_arrays
from voxgrad.catalog import attributes, problem
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.model import Call, Op, Spec
from voxgrad.catalog.shapes import FOLDED, text
from voxgrad.errors import Faults
from voxgrad.graph.block import MAX_LIST, Block

MAX_RANK = 64
"""Arrays have no more dimensions."""


def given_attributes(block: Block, op: Op, faults: Faults) -> dict[str, Any]:
    """The attributes of a block in canonical form; what is wrong goes to `faults` and is left out."""
    values = attributes.canonical(op, block.attrs, faults)
    known = {attr.name for attr in op.attrs}
    for name in block.attrs:
        if name not in known:
            listed = ", ".join(attr.name for attr in op.attrs) or "none"
            faults.add("VG001", name, wanted=f"be an attribute of {op.name}: {listed}", got="an unknown one")
    make_arrays(op, values, faults)
    return values


def check_pins(block: Block, op: Op, faults: Faults) -> None:
    """Note wires and values on pins that the op does not have."""
    known = {item.name for item in op.inputs}
    for name in block.sources:
        if name not in known:
            listed = ", ".join(item.name for item in op.inputs) or "none"
            faults.add("VG001", name, wanted=f"be an input of {op.name}: {listed}", got="an unknown one")


def infer_call(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """The specs of all outputs, those of a list one after the other; None where they do not follow."""
    op = call.op
    problem.check_types(op, call.inputs, faults)
    if not _countable_lists(call, faults):
        return None
    if op.problem is not None:
        specs: Any = problem.infer(call, faults)
    elif op.infer is None or not all(attr.name in call.attrs for attr in op.attrs):
        return None
    else:
        specs = op.infer(call, faults)
        specs = None if specs is None else _flat(op, specs)
    return None if specs is None else _bounded(call, specs, faults)


def _bounded(call: Call, specs: tuple[Spec, ...], faults: Faults) -> tuple[Spec, ...] | None:
    """The specs, if a tensor can be so: sizes that are made from sizes could grow with every block of a page."""
    for spec in specs:
        shape = spec.shape or ()
        if len(shape) > MAX_RANK or (all_known(shape) and math.prod(shape) >= 2**63):
            wanted = f"have at most {MAX_RANK} dimensions and fewer than 2**63 elements"
            got = f"{len(shape)} dimensions" if len(shape) > MAX_RANK else text(shape)
            faults.add("VG015", "output", wanted=wanted, got=got)
            return None
    if any(isinstance(spec.value, tuple) and len(spec.value) > FOLDED for spec in specs):
        return tuple(replace(spec, value=None) if isinstance(spec.value, tuple) else spec for spec in specs)
    return specs


def _countable_lists(call: Call, faults: Faults) -> bool:
    """A list of outputs is counted by an attribute: a slip of the keyboard must not fill the memory."""
    for item in call.op.outputs:
        counted = call.attrs.get(item.count) if item.many else None
        if isinstance(counted, int) and counted > MAX_LIST:
            faults.add("VG003", item.count, wanted=f"be at most {MAX_LIST}", got=counted)
            return False
    return True


def _flat(op: Op, specs: tuple[Any, ...]) -> tuple[Spec, ...]:
    if not any(item.many for item in op.outputs):
        return specs
    flat: list[Spec] = []
    for item, spec in zip(op.outputs, specs, strict=True):
        flat.extend(spec) if item.many else flat.append(spec)
    return tuple(flat)


def host_values(value: Any) -> tuple[Any, ...]:
    """The elements of a small vector as Python integers or symbols."""
    if hasattr(value, "ravel"):
        return tuple(value.ravel().tolist())
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)
