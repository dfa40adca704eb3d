# SPDX-License-Identifier: Apache-2.0
"""Which dimension of a result each dimension of an input follows: what a part of the result needs of the inputs.

A rule gets a call and the shape of its first result, and returns one entry per tensor of the call, those of a list one
after the other. The entry of a tensor has one place per dimension: the dimension of the result that it follows, cell by
cell, or None where any cell of the result may need all of it. A host input is None, or STATED where it states the shape
of the result, so that a part of the result is made by stating the shape of the part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from voxgrad.catalog.model import Call, Shape, Spec
from voxgrad.catalog.shapes import elements, scalar_value

STATED = "stated"
Places = tuple[int | None, ...]
Follows = Callable[[Call, Shape], list[Any]]


def tensors_of(call: Call) -> list[Spec]:
    """The specs of all inputs in order, those of lists one after the other."""
    return [one for item in call.op.inputs for one in _each(call.inputs[item.name])]


def _each(given: Any) -> Sequence[Spec]:
    return given if isinstance(given, tuple) else (given,)


def aligned(shape: Shape, result: Shape) -> Places:
    """The places of a tensor that broadcasts to a result: counted from the last; a repeated one follows nothing."""
    shift = len(result) - len(shape)
    return tuple(at + shift if size == result[at + shift] else None for at, size in enumerate(shape))


def elementwise(call: Call, result: Shape) -> list[Any]:
    """Each cell of the result needs the same cell of every input; inputs broadcast."""
    hosts = [item.host for item in call.op.inputs for _ in _each(call.inputs[item.name])]
    return [
        None if host else aligned(spec.shape or (), result)
        for host, spec in zip(hosts, tensors_of(call), strict=True)
    ]  # fmt: skip


def rows(call: Call, result: Shape) -> list[Any]:
    """As elementwise, but a cell needs its whole row, the last dimension."""
    return [None if places is None else (*places[:-1], None) for places in elementwise(call, result)]


def per_channel(call: Call, result: Shape) -> list[Any]:
    """The first input is followed cell by cell; the second is one number per channel."""
    return [tuple(range(len(result))), (None,)]


def choice(call: Call, result: Shape) -> list[Any]:
    """Select: a condition of rank 1 goes with the first dimension, one of no rank with all."""
    condition = call.inputs["condition"].shape or ()
    first: Places = (0,) if len(condition) == 1 and len(result) > 1 else aligned(condition, result)
    return [first, *(tuple(range(len(result))) for _ in range(2))]


def without(axis_name: str) -> Follows:
    """The axis that an input names is needed whole, in inputs and results of one rank: joining and splitting."""

    def rule(call: Call, result: Shape) -> list[Any]:
        axis, rank = scalar_value(call.inputs[axis_name]), len(result)
        kept = tuple(None if axis is None or at == axis % rank else at for at in range(rank))
        return [None if item.host else kept for item in call.op.inputs for _ in _each(call.inputs[item.name])]

    return rule


def sliced(call: Call, result: Shape) -> list[Any]:
    """Slice: dimensions that are kept whole are followed."""
    shape, begin = call.inputs["input"].shape or (), elements(call.inputs["begin"])
    kept = tuple(
        at if begin is not None and begin[at] == 0 and size == result[at] else None for at, size in enumerate(shape)
    )
    return [kept, None, STATED]


def reduced(call: Call, result: Shape) -> list[Any]:
    """Reductions: the axes that stay are followed."""
    shape, keep = call.inputs["input"].shape or (), call.attrs.get("keep_dims", False)
    axis = call.op.inputs[1].name
    gone = elements(call.inputs[axis])
    if gone is None:
        return [(None,) * len(shape), None]
    axes = {at % len(shape) for at in gone} if shape else set()
    places: list[int | None] = []
    for at in range(len(shape)):
        dropped = len([one for one in axes if one < at])
        places.append(None if at in axes else at if keep else at - dropped)
    return [tuple(places), None]


def nothing(call: Call, result: Shape) -> list[Any]:
    """All of the inputs are needed for any of the result, which has no dimension that follows them."""
    return [(None,) * len(spec.shape or ()) for spec in tensors_of(call)]


def channels(call: Call, result: Shape) -> list[Any]:
    """BiasAddGrad: only the channels stay."""
    (spec,) = tensors_of(call)
    rank = len(spec.shape or ())
    at = 1 if call.attrs.get("data_format") == "NCHW" else rank - 1
    return [tuple(0 if index == at else None for index in range(rank))]


def repeated(call: Call, result: Shape) -> list[Any]:
    """BroadcastTo: the stated shape may be that of a part."""
    return [aligned(call.inputs["input"].shape or (), result), STATED]


def filled(call: Call, result: Shape) -> list[Any]:
    """Fill: any part can be made alone."""
    return [STATED, ()]


def tiled(call: Call, result: Shape) -> list[Any]:
    """Tile: dimensions that are not repeated are followed."""
    return [aligned(call.inputs["input"].shape or (), result), None]


def reshaped(call: Call, result: Shape) -> list[Any]:
    """Reshape and its kin: followed where only dimensions of size 1 come or go."""
    shape = tensors_of(call)[0].shape or ()
    inner, outer = ([at for at, size in enumerate(sizes) if size != 1] for sizes in (shape, result))
    same = [shape[at] for at in inner] == [result[at] for at in outer]
    places = dict(zip(inner, outer, strict=True)) if same else {}
    hosts = [STATED if item.name == "shape" else None for item in call.op.inputs[1:]]
    return [tuple(places.get(at) for at in range(len(shape))), *hosts]


def squeezed(call: Call, result: Shape) -> list[Any]:
    """Squeeze: only where it says which dimensions go; otherwise a part that is 1 wide would lose more."""
    (spec,) = tensors_of(call)
    return reshaped(call, result) if call.attrs.get("axis") else [(None,) * len(spec.shape or ())]


def transposed(call: Call, result: Shape) -> list[Any]:
    """Transpose: each dimension goes where the permutation puts it."""
    order = elements(call.inputs["perm"])
    rank = len(call.inputs["x"].shape or ())
    places = (None,) * rank if order is None else tuple(order.index(at) for at in range(rank))
    return [places, None]
