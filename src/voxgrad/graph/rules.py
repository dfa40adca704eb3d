# SPDX-License-Identifier: Apache-2.0
"""What follows from one block alone: its attributes in canonical form, and what is known of its results."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import attributes, problem
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Op, Spec
from voxgrad.errors import Faults
from voxgrad.graph.block import MAX_LIST, Block
from voxgrad.graph.values import to_array


def given_attributes(block: Block, op: Op, faults: Faults) -> dict[str, Any]:
    """The attributes of a block in canonical form; what is wrong goes to `faults` and is left out."""
    values = attributes.canonical(op, block.attrs, faults)
    known = {attr.name for attr in op.attrs}
    for name in block.attrs:
        if name not in known:
            listed = ", ".join(attr.name for attr in op.attrs) or "none"
            faults.add("VG001", name, wanted=f"be an attribute of {op.name}: {listed}", got="an unknown one")
    for attr in op.attrs:
        if attr.kind == "tensor" and attr.name in values:
            _make_array(attr.name, values, faults)
    return values


def _make_array(name: str, values: dict[str, Any], faults: Faults) -> None:
    """A tensor among the attributes becomes an array of the type that stands beside it."""
    dtype = values.get("dtype")
    try:
        values[name] = to_array(values[name], dtype if isinstance(dtype, DType) else None)
    except (ValueError, TypeError, OverflowError) as error:
        wanted = f"be values of type {dtype}" if isinstance(dtype, DType) else "be numbers or text"
        faults.add("VG002", name, wanted=wanted, got=f"{str(values.pop(name))[:60]!r}: {str(error).splitlines()[0]}")


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
        return problem.infer(call, faults)
    if op.infer is None or not all(attr.name in call.attrs for attr in op.attrs):
        return None
    specs = op.infer(call, faults)
    return None if specs is None else _flat(op, specs)


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
