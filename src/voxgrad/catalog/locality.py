# SPDX-License-Identifier: Apache-2.0
"""Which dimension of a result each dimension of an input follows: what a part of the result needs of the inputs.

A rule gets a call and the shape of its first result, and returns one entry per tensor of the call, those of a list one
after the other. The entry of a tensor has one place per dimension: the dimension of the result that it follows, cell by
cell, or None where any cell of the result may need all of it. A host input is None, or STATED where it states the shape
of the result, so that a part of the result is made by stating the shape of the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from voxgrad.catalog.model import Call, Shape, Spec
from voxgrad.catalog.shapes import elements, scalar_value
from voxgrad.catalog.slices import MASKS, Cut, cuts
from voxgrad.errors import Faults

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
    """Reshape and its kin: followed where a dimension stays whole; what is split, or goes into one, is not."""
    shape = tensors_of(call)[0].shape or ()
    inner, outer = ([at for at, size in enumerate(sizes) if size != 1] for sizes in (shape, result))
    places: dict[int, int] = {}
    while inner and outer and 0 not in (*shape, *result):
        ours, theirs = [inner.pop(0)], [outer.pop(0)]
        while (held := _count(shape, ours)) != (made := _count(result, theirs)):
            ours += [inner.pop(0)] if held < made else []
            theirs += [outer.pop(0)] if made < held else []
        places |= {ours[0]: theirs[0]} if len(ours) == len(theirs) == 1 else {}
    hosts = [STATED if item.name == "shape" else None for item in call.op.inputs[1:]]
    return [tuple(places.get(at) for at in range(len(shape))), *hosts]


def _count(shape: Shape, dims: Sequence[int]) -> int:
    return math.prod(shape[at] for at in dims)


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


def images(call: Call, result: Shape) -> list[Any]:
    """Resizing and its kin: images of a batch, and their channels, are worked on one by one."""
    return [None if item.host else (0, None, None, 3) for item in call.op.inputs]


def unpadded(call: Call, result: Shape) -> list[Any]:
    """MirrorPad and its gradient: dimensions that get nothing are followed."""
    amounts = elements(call.inputs["paddings"])
    return [
        tuple(None if amounts is None or any(amounts[2 * at : 2 * at + 2]) else at for at in range(len(result))),
        None,
    ]


def packed(call: Call, result: Shape) -> list[Any]:
    """Pack: all dimensions but the new one."""
    return packed_along(call, result, 0)


# Where cells of the result lie in the inputs, where an op moves them, or needs more than it follows.


class Shift(NamedTuple):
    """Cell i along dimension `place` of the result lies at cell `start + i * step` of the input, if there is one.

    Without a place, all of the result lies at cell `start`.
    """

    place: int | None
    start: int
    step: int = 1


Lies = Callable[[Call, Shape, int], list[Any]]
"""`lies(call, shape, at)`: the places, or Shifts, of every tensor in result `at`, which has this shape."""


def lies(call: Call, result: Shape, at: int) -> list[Any]:
    """Where the cells of a result lie in the inputs: as the op says, else as it follows them, else nowhere."""
    if call.op.lies is not None:
        return call.op.lies(call, result, at)
    return [None] * len(tensors_of(call)) if call.op.follows is None else list(call.op.follows(call, result))


def _only(call: Call, **places: Any) -> list[Any]:
    """The places of named inputs; the others say nothing."""
    return [places.get(item.name) for item in call.op.inputs for _ in _each(call.inputs[item.name])]


def kept(*names: str) -> Lies:
    """The first result lies where these inputs lie, though its values may need all of them."""

    def rule(call: Call, result: Shape, at: int) -> list[Any]:
        return _only(call, **{name: None if at else tuple(range(len(result))) for name in names})

    return rule


def kept_each(call: Call, result: Shape, at: int) -> list[Any]:
    """IdentityN: every result lies where its own input lies."""
    return [tuple(range(len(result))) if one == at else None for one in range(len(tensors_of(call)))]


def boxed(call: Call, result: Shape, at: int) -> list[Any]:
    """Slice: from `begin` on."""
    begin = elements(call.inputs["begin"])
    return _only(call, input=None if begin is None else tuple(Shift(i, first) for i, first in enumerate(begin)))


def padded(sign: int) -> Lies:
    """Pad and its kin: as many cells before as they say; the gradients take them away again."""

    def rule(call: Call, result: Shape, at: int) -> list[Any]:
        amounts = elements(call.inputs["paddings"])
        return _only(
            call, input=None if amounts is None else tuple(Shift(i, -sign * n) for i, n in enumerate(amounts[::2]))
        )

    return rule


def reversed_along(call: Call, result: Shape, at: int) -> list[Any]:
    """ReverseV2: from the last cell back."""
    axes, rank = elements(call.inputs["axis"]), len(result)
    if axes is None:
        return _only(call)
    turned = {axis % rank for axis in axes}
    return _only(call, tensor=tuple(Shift(i, result[i] - 1, -1) if i in turned else i for i in range(rank)))


def joined_along(axis_name: str) -> Lies:
    """Concat: each tensor begins where the one before it ends."""

    def rule(call: Call, result: Shape, at: int) -> list[Any]:
        axis = scalar_value(call.inputs[axis_name])
        if axis is None:
            return _only(call)
        along, begin = axis % len(result), 0
        made: list[Any] = []
        for spec in call.inputs["values"]:
            made.append(tuple(Shift(i, -begin) if i == along else i for i in range(len(result))))
            begin += (spec.shape or result)[along]
        places = iter(made)
        return [next(places) if item.many else None for item in call.op.inputs for _ in _each(call.inputs[item.name])]

    return rule


def split_along(call: Call, result: Shape, at: int) -> list[Any]:
    """Split and SplitV: each part begins where the one before it ends."""
    axis, shape = scalar_value(call.inputs["axis"]), call.inputs["value"].shape
    if axis is None or shape is None:
        return _only(call)
    along = axis % len(result)
    begin = at * result[along]
    if "size_splits" in call.inputs:
        sizes = list(elements(call.inputs["size_splits"]) or ())
        sizes = [shape[along] - sum(sizes) - 1 if size == -1 else size for size in sizes]
        begin = sum(sizes[:at])
    return _only(call, value=tuple(Shift(i, begin) if i == along else i for i in range(len(result))))


def packed_along(call: Call, result: Shape, at: int) -> list[Any]:
    """Pack: the new axis lies nowhere."""
    new = call.attrs["axis"] % len(result)
    return [tuple(i for i in range(len(result)) if i != new) for _ in tensors_of(call)]


def unpacked_along(call: Call, result: Shape, at: int) -> list[Any]:
    """Unpack: the axis goes, and each result is one cell of it."""
    gone = call.attrs["axis"] % (len(result) + 1)
    return [tuple(Shift(None, at) if i == gone else i - (i > gone) for i in range(len(result) + 1))]


def one_hot(call: Call, result: Shape, at: int) -> list[Any]:
    """OneHot: the rows are a new axis."""
    new = call.attrs["axis"] % len(result)
    return _only(call, indices=tuple(i for i in range(len(result)) if i != new))


def _strides(call: Call, shape: Shape | None) -> list[Cut] | None:
    bounds = [elements(call.inputs[name]) for name in ("begin", "end", "strides")]
    if shape is None or None in bounds:
        return None
    begin, end, strides = (one or () for one in bounds)
    return cuts(shape, (begin, end, strides), {name: call.attrs[name] for name in MASKS}, Faults(call.op.name))


def strided(call: Call, result: Shape, at: int) -> list[Any]:
    """StridedSlice: every dimension from its first cell on, in its step; of some, a single cell."""
    shape = call.inputs["input"].shape
    made = _strides(call, shape)
    if shape is None or made is None:
        return _only(call)
    stay = [cut for cut in made if not cut.shrink]
    places = {cut.axis: Shift(i, cut.start, cut.step) for i, cut in enumerate(stay)}
    places |= {cut.axis: Shift(None, cut.start) for cut in made if cut.shrink}
    return _only(call, input=tuple(places[i] for i in range(len(shape))))


def strided_back(call: Call, result: Shape, at: int) -> list[Any]:
    """StridedSliceGrad: the other way round, where no cell is left out."""
    made = _strides(call, result)
    if made is None:
        return _only(call)
    stay = [cut for cut in made if not cut.shrink]
    places = [
        Shift(cut.axis, -cut.start * cut.step, cut.step) if cut.axis is not None and abs(cut.step) == 1 else None
        for cut in stay
    ]
    return _only(call, dy=tuple(places))
