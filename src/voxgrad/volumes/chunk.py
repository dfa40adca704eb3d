# SPDX-License-Identifier: Apache-2.0
"""Computes one chunk of a page: reads its boxes, runs the pieces on them, hands over its part of every result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxgrad.arrays.execute import compute
from voxgrad.catalog.locality import STATED
from voxgrad.catalog.problem import Problem
from voxgrad.graph.block import Output
from voxgrad.graph.device import Device
from voxgrad.graph.run import flattened
from voxgrad.kernels.arraywise import Context, evaluate
from voxgrad.kernels.element_types import numpy_type
from voxgrad.volumes.layout import VOLUME, Piece
from voxgrad.volumes.moves import copy_cells
from voxgrad.volumes.page_plan import Boxes, PagePlan, Root
from voxgrad.volumes.sums import joined, nothing_in, sum_over, wide
from voxgrad.volumes.tiles import Part, Stretch, Tile, part, stretches, tiles

Array = np.ndarray[Any, Any]
Index = tuple[slice, ...]
Read = Callable[[Output, Index], Array]
Held = MutableMapping[int, tuple[Boxes, Any]]
"""What is there of tensors, by slot: a box, and what is in it."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A piece of a stretch, and what it reads and makes for a chunk."""

    index: int
    piece: Piece
    reads: list[Part]
    makes: list[Part]


class Chunks:
    """Computes chunks of a plan, one after the other, on one device.

    `values` holds what is not cut, by slot; `read` gives a box of a volume.
    """

    def __init__(self, plan: PagePlan, values: Mapping[int, Array], read: Read, device: Device):
        self.plan = plan
        self.read = read
        self.device = device
        self._smalls: Held = {
            slot: (tuple((0, size) for size in array.shape), device.put(array)) for slot, array in values.items()
        }
        self._stretches = stretches(plan)

    def compute(self, number: int) -> list[Any]:
        """The part of every root that a chunk makes, in the order of the roots; None where it has none."""
        plan = self.plan
        at = plan.at(number)
        held, sums = dict(self._smalls), dict[int, Array]()
        for output, slot in plan.layout.volumes.items():
            if is_some(box := plan.box(slot, at)):
                held[slot] = box, self._taken(output, slot, box)
        for stretch in self._stretches:
            self.run(stretch, at, held, sums)
            for slot in stretch.frees:
                held.pop(slot, None)
        return [
            self._summed(root.piece, at, sums) if root.piece is not None else self._kept(root, at, held)
            for root in plan.roots
        ]

    def run(self, stretch: Stretch, at: Sequence[int], held: Held, sums: dict[int, Array]) -> None:
        """Run a stretch: what it makes goes to `held` and `sums`."""
        if stretch.is_tiled:
            self._go_over(stretch, at, held, sums)
        else:
            self._run_whole(stretch.pieces[0], at, held, sums)

    def _taken(self, output: Output, slot: int, box: Boxes) -> Any:
        return self.device.put(np.ascontiguousarray(self.read(output, index_of(box)), dtype=self._type(slot)))

    def _type(self, slot: int) -> np.dtype[Any]:
        dtype = self.plan.layout.specs[slot].dtype
        assert dtype is not None
        return np.dtype(numpy_type(dtype))

    def _kept(self, root: Root, at: Sequence[int], held: Held) -> Array | None:
        box = self.plan.root_box(root, at)
        return np.asarray(self.device.to_host(self._cut(root.slot, box, held))) if is_some(box) else None

    def _cut(self, slot: int, box: Boxes, held: Held) -> Any:
        """A box of a tensor, out of what of it is there."""
        if slot not in held:
            # Windows that lie in gaps of a stride read nothing.
            return self.device.put(np.zeros(sizes_in(box), self._type(slot)))
        there, value = held[slot]
        return value if there == box else value[index_of(_from(there, box))]

    def _run_whole(self, index: int, at: Sequence[int], held: Held, sums: dict[int, Array]) -> None:
        """Run a piece on all that the chunk needs: one with windows, one that moves cells or needs whole directions."""
        plan, piece = self.plan, self.plan.layout.pieces[index]
        boxes = [plan.input_box(index, one, at) for one in range(len(piece.inputs))]
        if piece.adds:
            if self._is_there(piece, boxes) and plan.takes_part(index, at):
                operands = self._operands(piece, boxes, held)
                sums[index] = wide(self.device.to_host(self._windowed(index, piece, at, operands)))
            return
        made = [plan.box(slot, at) for slot in piece.outputs]
        if not any(map(is_some, made)):
            return
        operands = self._operands(piece, boxes, held)
        if piece.problem is not None:
            results = [self._windowed(index, piece, at, operands)]
        elif piece.shifts:
            results = self._moved(piece, boxes, operands, made)
        else:
            results = self._evaluated(piece, operands, made[0])
        held.update(zip(piece.outputs, zip(made, results, strict=True), strict=True))

    def _go_over(self, stretch: Stretch, at: Sequence[int], held: Held, sums: dict[int, Array]) -> None:
        """Run the pieces of a stretch, tile by tile; an accelerator takes all at once."""
        steps = self._steps(stretch, at)
        parts = [one for step in steps for one in (*step.reads, *step.makes)]
        cuts: Sequence[Tile | None] = tiles(parts) if self.device.place is None else [None]
        whole: Held = {}
        if len(cuts) > 1:
            made = {one.slot: one.box for step in steps for one in step.makes if one.slot in stretch.leaves}
            whole = {slot: (box, np.empty(sizes_in(box), self._type(slot))) for slot, box in made.items()}
        for tile in cuts:
            here = dict(held)
            for step in steps:
                self._run_in(tile, step, here, sums)
            for slot, (box, value) in whole.items():
                if slot in here:
                    there, cells = here[slot]
                    value[index_of(_from(box, there))] = cells
        held.update(whole if len(cuts) > 1 else {slot: here[slot] for slot in stretch.leaves if slot in here})

    def _steps(self, stretch: Stretch, at: Sequence[int]) -> list[_Step]:
        """What the pieces of a stretch read and make for a chunk, those that make anything."""
        plan, found = self.plan, []
        for index in stretch.pieces:
            piece = plan.layout.pieces[index]
            reads = [part(plan, slot, plan.input_box(index, one, at)) for one, slot in enumerate(piece.inputs)]
            makes = [] if piece.adds else [part(plan, slot, plan.box(slot, at)) for slot in piece.outputs]
            if plan.takes_part(index, at) if piece.adds else any(is_some(one.box) for one in makes):
                found.append(_Step(index, piece, reads, makes))
        return found

    def _run_in(self, tile: Tile | None, step: _Step, held: Held, sums: dict[int, Array]) -> None:
        """Run a piece that works cell by cell, or that adds up, on the part of a chunk that lies in a tile."""
        index, piece = step.index, step.piece
        boxes, made = (
            [one.box if tile is None else one.within(tile) for one in some] for some in (step.reads, step.makes)
        )
        if piece.adds:
            if self._is_there(piece, boxes):
                added = self._added(piece, self._operands(piece, boxes, held))
                sums[index] = joined(piece.adds, sums[index], added) if index in sums else added
        elif any(map(is_some, made)):
            results = self._evaluated(piece, self._operands(piece, boxes, held), made[0])
            held.update(zip(piece.outputs, zip(made, results, strict=True), strict=True))

    def _operands(self, piece: Piece, boxes: Sequence[Boxes], held: Held) -> list[Any]:
        return [self._cut(slot, box, held) for slot, box in zip(piece.inputs, boxes, strict=True)]

    def _evaluated(self, piece: Piece, operands: list[Any], made: Boxes) -> list[Any]:
        for one, places in enumerate(piece.places):
            if isinstance(places, str) and places == STATED:
                operands[one] = np.array(sizes_in(made), operands[one].dtype)
        context = Context(block=piece.step.name, place=self.device.place)
        return flattened(evaluate(piece.step.op, _grouped(piece, operands), piece.step.attrs, context))

    def _moved(self, piece: Piece, boxes: Sequence[Boxes], operands: Sequence[Any], made: Sequence[Boxes]) -> list[Any]:
        """Copy cells to where they go, on the host: an accelerator has no faster way to turn them round."""
        sources = [self.device.to_host(one) for one in operands]
        names = [item.name for item in piece.step.op.inputs]
        fill = sources[names.index(piece.step.op.fill)] if piece.step.op.fill else 0
        shapes = [self.plan.layout.specs[slot].shape or () for slot in piece.inputs]
        results = []
        for slot, box, moved in zip(piece.outputs, made, piece.shifts, strict=True):
            target = np.full(sizes_in(box), fill, self._type(slot))
            for one, shifts in enumerate(moved):
                if shifts is not None:
                    copy_cells(target, box, shifts, sources[one], boxes[one], shapes[one])
            results.append(self.device.put(target))
        return results

    def _windowed(self, index: int, piece: Piece, at: Sequence[int], operands: Sequence[Any]) -> Any:
        problem, crop = self.plan.problem(index, at)
        data = [one for one, item in zip(operands, piece.step.op.inputs, strict=True) if not item.host]
        result = run_problem(problem, data)
        return result if crop is None else result[index_of(crop)]

    def _added(self, piece: Piece, operands: Sequence[Any]) -> Array:
        """What cells add to a sum, in the widest type of its kind; of a mean, the sum behind it."""
        given = [wide(self.device.to_host(one)) if self._is_volume(slot) else one
                 for one, slot in zip(operands, piece.inputs, strict=True)]  # fmt: skip
        if piece.adds == "mean":
            result = sum_over(given[0], [dim for dim, place in enumerate(piece.places[0]) if place is None])
        else:
            (result,) = evaluate(piece.step.op, _grouped(piece, given), piece.step.attrs, Context())
        return wide(np.asarray(result))

    def _summed(self, index: int, at: Sequence[int], sums: Mapping[int, Array]) -> Array | None:
        """A chunk's part of a sum; where the images of a batch stay apart, with what adds nothing for the others."""
        if index not in sums:
            return None
        piece, part = self.plan.layout.pieces[index], sums[index]
        (slot,) = piece.outputs
        shape, dim = self.plan.layout.specs[slot].shape or (), self.plan.layout.role_dim(slot, 0)
        if dim is None or shape[dim] == 1 or piece.problem is not None:
            return part.reshape(shape)
        low, high = self.plan.rows[0][at[0]].kept[index]
        made = np.full(shape, nothing_in(piece.adds, part.dtype), part.dtype)
        images = made[(slice(None),) * dim + (slice(low, high),)]
        images[...] = part.reshape(images.shape)
        return made

    def _is_there(self, piece: Piece, boxes: Sequence[Boxes]) -> bool:
        """Whether there are cells of every volume that a piece adds up."""
        return all(is_some(box) for box, slot in zip(boxes, piece.inputs, strict=True) if self._is_volume(slot))

    def _is_volume(self, slot: int) -> bool:
        return self.plan.layout.kinds[slot] == VOLUME


def run_problem(problem: Problem, tensors: Sequence[Any]) -> Any:
    """The result of a problem on dense tensors, where they live: NumPy arrays, or torch tensors on a GPU."""
    if not isinstance(tensors[0], np.ndarray):
        import torch

        from voxgrad.kernels.cuda import dispatch

        if not all(tensor.numel() for tensor in tensors):
            # Cells that no window covers.
            return tensors[0].new_zeros(problem.output_shape)
        with torch.no_grad():
            return dispatch.run(problem, *tensors)
    dense = [np.ascontiguousarray(array, dtype=numpy_type(problem.dtype)) for array in tensors]
    result = np.empty(problem.output_shape, numpy_type(problem.dtype))
    compute(problem, dense, result)
    return result.astype(numpy_type(problem.output_dtype), copy=False)


def index_of(box: Boxes) -> Index:
    """The slices that a box stands for."""
    return tuple(slice(low, high) for low, high in box)


def sizes_in(box: Boxes) -> list[int]:
    """The sizes of a box."""
    return [high - low for low, high in box]


def _from(there: Boxes, box: Boxes) -> Boxes:
    """Where a box lies in another one."""
    return tuple((low - first, high - first) for (low, high), (first, _) in zip(box, there, strict=True))


def is_some(box: Boxes) -> bool:
    """False for a box without cells."""
    return all(high > low for low, high in box)


def _grouped(piece: Piece, flat: Sequence[Any]) -> list[Any]:
    """One entry per declared input; lists of tensors as lists."""
    rest = iter(flat)
    return [next(rest) if isinstance(slots, int) else [next(rest) for _ in slots] for slots in piece.step.inputs]
