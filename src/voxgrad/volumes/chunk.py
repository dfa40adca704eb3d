# SPDX-License-Identifier: Apache-2.0
"""Computes one chunk of a page: reads its boxes, runs the pieces on them, hands over its part of every result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from voxgrad.volumes.page_plan import Boxes, PagePlan
from voxgrad.volumes.sums import nothing_in, wide

Array = np.ndarray[Any, Any]
Index = tuple[slice, ...]
Read = Callable[[Output, Index], Array]


class Chunks:
    """Computes chunks of a plan, one after the other, on one device.

    `values` holds what is not cut, by slot; `read` gives a box of a volume.
    """

    def __init__(self, plan: PagePlan, values: Mapping[int, Array], read: Read, device: Device):
        self.plan = plan
        self.read = read
        self.device = device
        self.values = {slot: device.put(array) for slot, array in values.items()}
        self._frees = last_reads(plan)

    def compute(self, number: int) -> list[Any]:
        """The part of every root that a chunk makes, in the order of the roots; None where it has none."""
        plan, layout = self.plan, self.plan.layout
        at = plan.at(number)
        held: dict[int, Any] = {}
        sums: dict[int, Any] = {}
        for output, slot in layout.volumes.items():
            if is_some(box := plan.box(slot, at)):
                held[slot] = self._taken(output, slot, box)
        for index, piece in enumerate(layout.pieces):
            if piece.adds:
                sums[index] = self._added(index, piece, at, held)
            elif any(is_some(plan.box(slot, at)) for slot in piece.outputs):
                self._run(index, piece, at, held)
            for slot in self._frees[index]:
                held.pop(slot, None)
        return [sums[root.piece] if root.piece is not None else self._kept(root, at, held) for root in plan.roots]

    def _taken(self, output: Output, slot: int, box: Boxes) -> Any:
        dtype = self.plan.layout.specs[slot].dtype
        assert dtype is not None
        part = self.read(output, index_of(box))
        return self.device.put(np.ascontiguousarray(part, dtype=numpy_type(dtype)))

    def _kept(self, root: Any, at: Sequence[int], held: Mapping[int, Any]) -> Array | None:
        box = self.plan.root_box(root, at)
        return np.asarray(self.device.to_host(self._cut(root.slot, box, at, held))) if is_some(box) else None

    def _cut(self, slot: int, box: Boxes, at: Sequence[int], held: Mapping[int, Any]) -> Any:
        """A box of a tensor, out of what of it is there."""
        layout = self.plan.layout
        if layout.kinds[slot] != VOLUME:
            value = self.values[slot]
            whole = all(low == 0 and high == size for (low, high), size in zip(box, value.shape, strict=True))
            return value if whole else value[index_of(box)]
        there = self.plan.box(slot, at)
        if slot not in held:
            dtype = layout.specs[slot].dtype
            assert dtype is not None
            # Windows that lie in gaps of a stride read nothing.
            return self.device.put(np.zeros([high - low for low, high in box], numpy_type(dtype)))
        if there == box:
            return held[slot]
        return held[slot][index_of(tuple((a - c, b - c) for (a, b), (c, _) in zip(box, there, strict=True)))]

    def _operands(self, index: int, piece: Piece, at: Sequence[int], held: Mapping[int, Any]) -> list[Any]:
        return [self._cut(slot, self.plan.input_box(index, one, at), at, held) for one, slot in enumerate(piece.inputs)]

    def _run(self, index: int, piece: Piece, at: Sequence[int], held: dict[int, Any]) -> None:
        """Run a piece; its results are the boxes that the chunk needs of them."""
        operands = self._operands(index, piece, at, held)
        if piece.problem is not None:
            held[piece.outputs[0]] = self._windowed(index, piece, at, operands)
            return
        if piece.shifts:
            self._move(index, piece, at, operands, held)
            return
        shape = [high - low for low, high in self.plan.box(piece.outputs[0], at)]
        for one, places in enumerate(piece.places):
            if isinstance(places, str) and places == STATED:
                operands[one] = np.array(shape, operands[one].dtype)
        results = evaluate(piece.step.op, _grouped(piece, operands), piece.step.attrs, self._context(piece))
        held.update(zip(piece.outputs, flattened(results), strict=True))

    def _move(self, index: int, piece: Piece, at: Sequence[int], operands: Sequence[Any], held: dict[int, Any]) -> None:
        """Copy cells to where they go, on the host: an accelerator has no faster way to turn them round."""
        sources = [self.device.to_host(one) for one in operands]
        names = [item.name for item in piece.step.op.inputs]
        fill = sources[names.index(piece.step.op.fill)] if piece.step.op.fill else 0
        boxes = [self.plan.input_box(index, one, at) for one in range(len(piece.inputs))]
        shapes = [self.plan.layout.specs[slot].shape or () for slot in piece.inputs]
        for slot, moved in zip(piece.outputs, piece.shifts, strict=True):
            box, dtype = self.plan.box(slot, at), self.plan.layout.specs[slot].dtype
            assert dtype is not None
            made = np.full([high - low for low, high in box], fill, numpy_type(dtype))
            for one, shifts in enumerate(moved):
                if shifts is not None:
                    copy_cells(made, box, shifts, sources[one], boxes[one], shapes[one])
            held[slot] = self.device.put(made)

    def _context(self, piece: Piece) -> Context:
        return Context(block=piece.step.name, place=self.device.place)

    def _windowed(self, index: int, piece: Piece, at: Sequence[int], operands: Sequence[Any]) -> Any:
        problem, crop = self.plan.problem(index, at)
        data = [one for one, item in zip(operands, piece.step.op.inputs, strict=True) if not item.host]
        result = run_problem(problem, data)
        return result if crop is None else result[index_of(crop)]

    def _added(self, index: int, piece: Piece, at: Sequence[int], held: Mapping[int, Any]) -> Array | None:
        """What a chunk adds to a sum, in the widest type of its kind; of a mean, the sum behind it."""
        boxes = [self.plan.input_box(index, one, at) for one in range(len(piece.inputs))]
        there = [is_some(box) for box, slot in zip(boxes, piece.inputs, strict=True) if self._is_volume(slot)]
        if not all(there) or not self.plan.takes_part(index, at):
            return None
        operands = self._operands(index, piece, at, held)
        if piece.problem is not None:
            return wide(self.device.to_host(self._windowed(index, piece, at, operands)))
        operands = [wide(self.device.to_host(one)) if self._is_volume(slot) else one
                    for one, slot in zip(operands, piece.inputs, strict=True)]  # fmt: skip
        if piece.adds == "mean":
            gone = tuple(dim for dim, place in enumerate(piece.places[0]) if place is None)
            result = np.add.reduce(operands[0], axis=gone)
        else:
            (result,) = evaluate(piece.step.op, _grouped(piece, operands), piece.step.attrs, Context())
        return self._among_images(index, piece, at, wide(np.asarray(result)))

    def _among_images(self, index: int, piece: Piece, at: Sequence[int], part: Array) -> Array:
        """A part of a sum that keeps the images of a batch apart, with what adds nothing for the others."""
        (slot,) = piece.outputs
        shape, dim = self.plan.layout.specs[slot].shape or (), self.plan.layout.role_dim(slot, 0)
        if dim is None or shape[dim] == 1:
            return part.reshape(shape)
        low, high = self.plan.rows[0][at[0]].kept[index]
        made = np.full(shape, nothing_in(piece.adds, part.dtype), part.dtype)
        images = made[(slice(None),) * dim + (slice(low, high),)]
        images[...] = part.reshape(images.shape)
        return made

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


def is_some(box: Boxes) -> bool:
    """False for a box without cells."""
    return all(high > low for low, high in box)


def _grouped(piece: Piece, flat: Sequence[Any]) -> list[Any]:
    """One entry per declared input; lists of tensors as lists."""
    rest = iter(flat)
    return [next(rest) if isinstance(slots, int) else [next(rest) for _ in slots] for slots in piece.step.inputs]


def last_reads(plan: PagePlan) -> list[list[int]]:
    """The tensors that nobody reads behind each piece."""
    kept = {root.slot for root in plan.roots if root.piece is None}
    frees: list[list[int]] = [[] for _ in plan.layout.pieces]
    for index, piece in reversed(list(enumerate(plan.layout.pieces))):
        for slot in dict.fromkeys((*piece.inputs, *piece.outputs)):
            if slot not in kept:
                kept.add(slot)
                frees[index].append(slot)
    return frees
