# SPDX-License-Identifier: Apache-2.0
"""Shape rules of ordinary ops. They complain only about what is certain: a symbol may still turn out to fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from voxgrad.catalog.dims import Dim, all_known, differ, known
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Call, Op, Shape, Spec
from voxgrad.errors import Faults, show

POINTER = 8
"""Bytes of a text in a tensor, without its letters."""
MOST_OUTPUTS = 2**16
"""A list of more outputs is a slip of the keyboard, which must not fill the memory."""
Infer = Callable[[Call, Faults], tuple[Any, ...] | None]
Rule = Callable[[Call, Faults], Shape | None]

FOLDED = 64
"""Constants of up to this many elements are followed through shape arithmetic."""


def type_of(call: Call, type_: str | DType) -> DType | None:
    """The element type behind a fixed type, an attribute or a type variable of this call."""
    if isinstance(type_, DType):
        return type_
    stated = call.attrs.get(type_)
    if isinstance(stated, DType):
        return stated
    for item in call.op.inputs:
        if item.type == type_ and not item.mixed:
            given = call.inputs[item.name]
            known_types = (spec.dtype for spec in (given if item.many else (given,)) if spec.dtype is not None)
            found: DType | None = next(known_types, None)
            if found is not None:
                return call.op.taken(type_, found)
    return None


def specs(call: Call, *shapes: Shape | None, value: Any = None) -> tuple[Spec, ...]:
    """The specs of outputs with these shapes; their types follow from the declaration."""
    return tuple(
        Spec(type_of(call, output.type), shape, value) for output, shape in zip(call.op.outputs, shapes, strict=True)
    )


def shaped(rule: Rule) -> Infer:
    """The inference of an op with one output, from a rule for its shape."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        before = len(faults.found)
        shape = rule(call, faults)
        return None if len(faults.found) > before else specs(call, shape)

    return infer


def like(name: str) -> Infer:
    """Every output has the shape of this input."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        return specs(call, *(call.inputs[name].shape for _ in call.op.outputs))

    return infer


def fixed(*shapes: Shape) -> Infer:
    """Outputs whose shapes never change."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        return specs(call, *shapes)

    return infer


def unknown(call: Call, what: str) -> Dim:
    """A size that only a run can tell, named after the block."""
    return Dim(f"{call.block or call.op.name}:{what}")


def unknowns(call: Call, rank: int, what: str) -> Shape:
    """A shape of known rank whose sizes only a run can tell."""
    return tuple(unknown(call, f"{what}[{index}]") for index in range(rank))


def elements(spec: Spec) -> tuple[Any, ...] | None:
    """The elements of a constant in row-major order, or None where they are not known."""
    value = spec.value
    if value is None:
        return None
    if hasattr(value, "ravel"):
        return tuple(value.ravel().tolist())
    return tuple(_flat(value)) if isinstance(value, (list, tuple)) else (value,)


def _flat(value: Any) -> list[Any]:
    return [one for item in value for one in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def scalar_value(spec: Spec) -> Any:
    """The one element of a constant, or None."""
    found = elements(spec)
    return found[0] if found is not None and len(found) == 1 else None


def counted(call: Call, name: str, faults: Faults) -> Any:
    """The number that a scalar input states, 0 or more; None where it is not known."""
    count = scalar_value(call.inputs[name])
    if known(count) and count < 0:
        faults.add("VG003", name, wanted="be 0 or more", got=count)
    return count


def length(spec: Spec) -> Any:
    """The length of a vector, or None where it is not a number yet."""
    found = elements(spec)
    if found is not None:
        return len(found)
    return spec.shape[0] if spec.shape is not None and len(spec.shape) == 1 and known(spec.shape[0]) else None


def size_of(shape: Sequence[Any]) -> Any:
    """The number of elements of a shape, an int or a symbol."""
    return math.prod(shape) if all_known(shape) else _product(shape)


def memory_of(spec: Spec) -> int:
    """The bytes that a tensor of known shape takes, and an empty one as if it had one cell along its empty axes.

    What is computed beside an empty tensor, such as a number for each of its rows, is not empty.
    """
    assert spec.shape is not None and spec.dtype is not None
    return math.prod(size or 1 for size in spec.shape) * (spec.dtype.itemsize or POINTER)


def _product(shape: Sequence[Any]) -> Any:
    total: Any = 1
    for size in shape:
        total = total * size
    return total


def text(shape: Sequence[Any] | None) -> str:
    """A shape as messages show it."""
    return "an unknown shape" if shape is None else show(tuple(str(size) for size in shape[:40]))


def has_rank(call: Call, name: str, rank: int, faults: Faults, *, at_least: bool = False) -> bool:
    """Note a tensor of a wrong rank; True where its shape is known and right."""
    shape = call.inputs[name].shape
    if shape is None:
        return False
    if len(shape) == rank or (at_least and len(shape) > rank):
        return True
    wanted = f"have rank {rank}" + (" or more" if at_least else "")
    faults.add("VG010", name, wanted=wanted, got=f"rank {len(shape)}, shape {text(shape)}")
    return False


def scalar(call: Call, name: str, faults: Faults) -> None:
    """Note a tensor that should be a scalar and is none."""
    has_rank(call, name, 0, faults)


def checked(op: Op) -> Infer | None:
    """The inference of an op between checks of what its inputs and outputs declare.

    Before it: inputs declared as scalars, [], are such and no list is empty; the rule may read such an input as one
    number; no list of outputs is endless. After it: inputs declared as vectors, such as [n], are such, where the rule
    had nothing to say.
    """
    infer = op.infer
    if infer is None:
        return None
    vectors = [item.name for item in op.inputs if not item.many and _is_vector(item.shape)]
    counts = [item.count for item in op.outputs if item.many]

    def inferred(call: Call, faults: Faults) -> tuple[Any, ...] | None:
        before = len(faults.found)
        for name in counts:
            count = call.attrs.get(name)
            if isinstance(count, int) and count > MOST_OUTPUTS:
                faults.add("VG003", name, wanted=f"be at most {MOST_OUTPUTS}", got=count)
        for item in call.op.inputs:
            if item.shape == "[]" and not item.many:
                has_rank(call, item.name, 0, faults)
            if item.many and len(call.inputs[item.name]) < item.least:
                faults.add("VG004", item.name, wanted="hold a tensor at least", got="none")
        if len(faults.found) > before:
            return None
        made = infer(call, faults)
        if len(faults.found) == before:
            for name in vectors:
                has_rank(call, name, 1, faults)
        return made

    return inferred


def _is_vector(shape: str) -> bool:
    size = shape[1:-1]
    return shape == f"[{size}]" and (size.isidentifier() or size.isdigit())


def axis_in(call: Call, name: str, axis: Any, rank: int, faults: Faults) -> int | None:
    """An axis counted from the front, or None after noting that there is none such."""
    if not known(axis) or -rank <= axis < rank:
        return axis % rank if known(axis) and rank else None
    wanted = f"be in [{-rank}, {rank})" if rank else "be left out for a scalar"
    faults.add("VG003", name, wanted=wanted, got=axis)
    return None


def merged_sizes(a: Any, b: Any) -> Any:
    """Of two sizes that must agree, the better known one."""
    return a if known(a) else b


def merged(a: Shape | None, b: Shape | None) -> Shape | None:
    """Of two shapes that must agree, what both know together."""
    if a is None or b is None or len(a) != len(b):
        return b if a is None else a
    return tuple(merged_sizes(one, two) for one, two in zip(a, b, strict=True))


def same_shapes(call: Call, names: Sequence[str], faults: Faults) -> Shape | None:
    """The shape that all these inputs must have."""
    first = names[0]
    shape: Shape | None = call.inputs[first].shape
    for name in names[1:]:
        other = call.inputs[name].shape
        check_same(name, other, shape, f"the shape of {first}", faults)
        shape = merged(shape, other)
    return shape


def check_same(name: str, got: Shape | None, wanted: Shape | None, why: str, faults: Faults) -> bool:
    """Note a shape that is certainly not the wanted one."""
    if got is None or wanted is None:
        return True
    if len(got) == len(wanted) and not any(differ(one, two) for one, two in zip(got, wanted, strict=True)):
        return True
    faults.add("VG012", name, wanted=f"have {why}, {text(wanted)}", got=text(got))
    return False


def check_updates(call: Call, shape: Shape | None, faults: Faults) -> None:
    """Note indices and updates that do not go with a tensor of this shape."""
    has_rank(call, "indices", 1, faults, at_least=True)
    indices, updates = call.inputs["indices"].shape, call.inputs["updates"].shape
    if shape is None or indices is None or updates is None or not indices or not known(indices[-1]):
        return
    if indices[-1] > len(shape):
        faults.add("VG012", "indices", wanted=f"have a last size of at most {len(shape)}", got=text(indices))
        return
    if indices[-1] == 0 and all_known(shape) and 0 not in shape:
        faults.add("VG012", "indices", wanted="have a last size of 1 or more", got=text(indices))
        return
    if all_known((*indices, *updates)) and (0 in indices) != (0 in updates):
        faults.add("VG012", "indices", wanted=f"be empty where updates are, {text(updates)}", got=text(indices))
        return
    check_same("updates", updates, (*indices[:-1], *shape[indices[-1] :]), "the shape of the chosen slices", faults)


def alike(*names: str) -> Infer:
    """All inputs and outputs have one shape."""

    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        before = len(faults.found)
        shape = same_shapes(call, names, faults)
        return None if len(faults.found) > before else specs(call, *(shape for _ in call.op.outputs))

    return infer


def broadcast(call: Call, names: Sequence[str], faults: Faults) -> Shape | None:
    """The shape of an elementwise op over these inputs."""
    shape: Shape | None = ()
    for name in names:
        other = call.inputs[name].shape
        if shape is None or other is None:
            shape = None
            continue
        made = broadcast_shapes(shape, other)
        if made is None:
            wanted = f"broadcast with {text(shape)}: sizes equal or 1, counted from the last"
            faults.add("VG012", name, wanted=wanted, got=text(other))
            return None
        shape = made
    return shape


def broadcast_shapes(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two that broadcast, or None where they certainly do not."""
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    made = []
    for one, two in zip(left, right, strict=True):
        size = _broadcast_sizes(one, two)
        if size is None:
            return None
        made.append(size)
    return tuple(made)


def _broadcast_sizes(a: Any, b: Any) -> Any:
    if a == b or (known(b) and b == 1):
        return a
    if known(a) and a == 1:
        return b
    if known(a) and known(b):
        return None
    if known(a) or known(b):
        return a if known(a) else b
    return Dim(f"max({a},{b})")


def broadcasting(*names: str) -> Infer:
    """The inference of an elementwise op over these inputs."""
    return shaped(lambda call, faults: broadcast(call, names, faults))


def stated_shape(call: Call, name: str, faults: Faults) -> Shape | None:
    """The shape that a vector input states; its rank alone where only that is known."""
    spec = call.inputs[name]
    if spec.shape is not None and len(spec.shape) != 1:
        faults.add(
            "VG014", name, wanted="be a vector of sizes", got=f"rank {len(spec.shape)}, shape {text(spec.shape)}"
        )
        return None
    found = elements(spec)
    if found is None:
        rank = length(spec)
        return None if rank is None else unknowns(call, rank, name)
    for index, size in enumerate(found):
        if known(size) and size < 0:
            faults.add("VG014", f"{name}[{index}]", wanted="be 0 or more", got=size)
            return None
    if all_known(found) and math.prod(found) > 2**63 - 1:
        faults.add("VG015", name, wanted="state fewer than 2**63 elements", got=text(found))
        return None
    return found
