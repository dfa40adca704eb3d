# SPDX-License-Identifier: Apache-2.0
"""Convolutions with the kernels of `conv_boxes` and `filter_boxes`: problems they take, tiles, float32 in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

from voxgrad.catalog.geometry import Axis
from voxgrad.catalog.model import Side
from voxgrad.catalog.problem import Problem
from voxgrad.kernels.cuda import conv_boxes, filter_boxes
from voxgrad.kernels.cuda.launch import Boxes, Launch
from voxgrad.kernels.cuda.parts import Make
from voxgrad.kernels.cuda.paths import Fork, Need, Needs, Path

Tile = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile of a product as the kernels of boxes want it."""

    bm: int
    bn: int
    bk: int
    warps: int
    stages: int
    across: bool = False


def elements(problem: Problem) -> int:
    """Elements of the larger of its tensors."""
    return max(math.prod(problem.input_extent), math.prod(problem.output_extent))


def columns_of(problem: Problem) -> int:
    """Channels of what a convolution or its input gradient writes."""
    return problem.out_channels if problem.map.output is Side.WINDOWS else problem.in_channels


ONE_GROUP = Need("one group", lambda problem, bk: problem.groups == 1)
FEWER = Need("fewer than 2**31 numbers", lambda problem, bk: elements(problem) < 2**31, huge=True)
_SHARED = (
    ONE_GROUP,
    Need("multiples of 8 channels", lambda problem, bk: problem.in_channels % 8 == problem.out_channels % 8 == 0),
    FEWER,
)
_DIVIDED = Need("strides that divide height and width",
                lambda problem, bk: all(axis.size % axis.stride == 0 for axis in problem.axes[1:]))  # fmt: skip
WHOLE_BLOCKS = Need("blocks that divide the channels of the source", lambda problem, bk: source_of(problem) % bk == 0)
FITS: dict[str, Needs] = {
    "conv3d": (*_SHARED, WHOLE_BLOCKS, _DIVIDED),
    "conv3d_input": (*_SHARED, WHOLE_BLOCKS, Need("no axis with a stride and a dilation", lambda problem, bk: all(
        axis.stride == 1 or axis.dilation == 1 for axis in problem.axes))),
    "conv3d_filter": (*_SHARED, _DIVIDED, Need("outputs in whole boxes", lambda problem, bk: box(
        bk, _outs(problem.axes), flat=_flat(problem.axes), exact=True) is not None)),
    "filter_fan": (*_SHARED, _DIVIDED, Need("planes of outputs in whole boxes", lambda problem, bk: box(
        bk, _outs(problem.axes), flat=True, exact=True) is not None)),
}  # fmt: skip
"""What the kernels of boxes need: rows of 16 bytes, whole blocks, boxes that begin with a stride."""

_BITS = Need("16 bits", lambda problem, bk: problem.dtype.itemsize == 2)
_THIN = (
    ONE_GROUP, FEWER, WHOLE_BLOCKS,
    Need("stride 1", lambda problem, bk: not _flat(problem.axes)),
    Need("16, 32 or 64 columns", lambda problem, bk: columns_of(problem) in (16, 32, 64)),
)  # fmt: skip
_WIDE = Need("windows 3 wide", lambda problem, bk: problem.axes[2].window == 3)
FITS_ROWS: Needs = (*_THIN, _WIDE, Need("no dilation in width", lambda problem, bk: problem.axes[2].dilation == 1))
FITS_STACK: Needs = (
    *_THIN, _BITS, Need("windows 3 high", lambda problem, bk: problem.axes[1].window == 3),
    Need("no dilation in height", lambda problem, bk: problem.axes[1].dilation == 1),
)  # fmt: skip
FITS_PAIRS: Needs = (
    *_SHARED, WHOLE_BLOCKS, _BITS, _WIDE, Need("stride 2 in width", lambda problem, bk: problem.axes[2].stride == 2),
    Need("no dilation", lambda problem, bk: all(axis.dilation == 1 for axis in problem.axes)),
)  # fmt: skip
"""What `conv_box_rows`, `conv_box_stack` and `conv_box_pairs` need."""

ROW = Fork(
    "rows", "how a row is cut where three width taps are taken at once",
    Path("whole", worth=(Need("at most 128 cells and windows", lambda width: width <= 128),)),
    Path("overlapping"),
)  # fmt: skip


def row_tile(width: int) -> tuple[int, int]:
    """The tile of a row, and how far the next one is."""
    return (triton.next_power_of_2(width),) * 2 if ROW.takes("whole", width) else (128, 126)


def source_of(problem: Problem) -> int:
    """Channels of what a convolution or its input gradient reads."""
    return problem.in_channels if problem.map.output is Side.WINDOWS else problem.out_channels


def depth(problem: Problem) -> int:
    """The largest block of source channels, up to 64, that divides them."""
    source = source_of(problem)
    return min(64, source & -source)


def _flat(axes: tuple[Axis, ...]) -> bool:
    return any(axis.stride > 1 for axis in axes)


def _outs(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(axis.out for axis in axes)


def _shares(count: int, axes: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a power of two as a product of powers of two."""
    if axes == 1:
        yield (count,)
        return
    first = 1
    while first <= count:
        for rest in _shares(count // first, axes - 1):
            yield (first, *rest)
        first *= 2


def box(count: int, extents: tuple[int, ...], *, flat: bool, exact: bool = False) -> Tile | None:
    """The box of `count` positions with the least overhang over the extents, long in width; `flat` in one plane."""
    best: tuple[int, int, Tile] | None = None
    for sides in _shares(count, 3):
        over = [-(-extent // side) * side for extent, side in zip(extents, sides, strict=True)]
        if max(sides) > 256 or (flat and sides[0] > 1) or (exact and over != list(extents)):
            continue
        ranked = (math.prod(over), -sides[2], (sides[0], sides[1], sides[2]))
        best = ranked if best is None else min(best, ranked)
    return None if best is None else best[2]


def _read(problem: Problem, sizes: tuple[int, ...], channels: int, parts: int, tile: Tile, block: int,
          strides: tuple[int, int, int] | None) -> Boxes:  # fmt: skip
    """Data with its channels last, in parts, as boxes; with `strides`, taken apart by height and width."""
    d, h, w = sizes
    if strides is None:
        return Boxes((parts * problem.batch, d, h, w, channels), (1, *tile, block))
    _, sh, sw = strides
    return Boxes((parts * problem.batch * d, h // sh, sh, w // sw, sw * channels), (1, tile[1], 1, tile[2], block))


def _tiles(extents: tuple[int, ...], tile: Tile) -> list[int]:
    return [triton.cdiv(extent, side) for extent, side in zip(extents, tile, strict=True)]


def _constants(problem: Problem, tile: Tile) -> dict[str, Any]:
    names = ("D", "H", "W")
    values = {f"B{name}": side for name, side in zip(names, tile, strict=True)}
    for name, axis in zip(names, problem.axes, strict=True):
        values |= {f"K_{name}": axis.window, f"S_{name}": axis.stride, f"L_{name}": axis.dilation}
    return values | {"ACC": tl.float64 if problem.dtype.name == "float64" else tl.float32}


def _product(problem: Problem, across: bool) -> dict[str, bool]:
    """How the product of a kernel lies; what must settle is what tensor cores read from registers, see `box_reads`."""
    return {"ACROSS": across, "SETTLE": not across and problem.dtype.itemsize < 8 and _has_warpgroups()}


@lru_cache(maxsize=1)
def _has_warpgroups() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9)


def positions(problem: Problem, tiling: Tiling, outs: tuple[int, ...], turned: bool) -> Make:
    """The launch of `conv_boxes`: the forward convolution or the gradient of its input."""
    forward, axes = problem.map.output is Side.WINDOWS, problem.axes
    ci, co = (problem.in_channels, problem.out_channels)[:: 1 if forward else -1]
    flat = forward and _flat(axes)
    read, written = _sides(problem)
    extents = written if forward else tuple(triton.cdiv(axis.size, axis.stride) for axis in axes)
    tile = box(tiling.bm, extents, flat=flat)
    assert tile is not None
    tiles, columns = _tiles(extents, tile), triton.cdiv(co, tiling.bn)
    phases = 1 if forward else math.prod(axis.stride for axis in axes)
    strides = (axes[0].stride, axes[1].stride, axes[2].stride)
    scalars = (problem.batch, read[0], *written, *(axis.before for axis in axes), *outs, *tiles, columns)
    constants = _constants(problem, tile) | _blocks(tiling) | {
        "CI": ci, "CO": co, "FORWARD": forward, "FLAT": flat, "TURNED": turned, "BN": tiling.bn,
    } | _product(problem, tiling.across)  # fmt: skip
    grid = (math.prod(tiles) * columns * problem.batch * phases,)

    def launch(how: Any, parts: int) -> Launch:
        source = _read(problem, read, ci, parts, tile, tiling.bk, strides if flat else None)
        filters = _filters(problem, tiling.bn, tiling.bk, turned, parts)
        return Launch(conv_boxes.conv_boxes, grid, scalars, constants | {"HOW": how}, (source, filters))

    return launch


def _sides(problem: Problem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of what is read and of what is written."""
    large, small = tuple(axis.size for axis in problem.axes), tuple(axis.out for axis in problem.axes)
    return (large, small) if problem.map.output is Side.WINDOWS else (small, large)


def _blocks(tiling: Tiling) -> dict[str, Any]:
    return {"BK": tiling.bk, "num_warps": tiling.warps, "num_stages": tiling.stages}


def _filters(problem: Problem, bn: int, bk: int, turned: bool, parts: int = 1) -> Boxes:
    """The filter as a matrix, as it lies in memory, in blocks of columns and source channels."""
    inner = math.prod(axis.window for axis in problem.axes) * problem.in_channels
    shape = (problem.out_channels, inner) if turned else (inner, problem.out_channels)
    across = turned == (problem.map.output is Side.WINDOWS)
    return Boxes((parts * shape[0], shape[1]), (bn, bk) if across else (bk, bn))


def pairs(problem: Problem, tiling: Tiling, outs: tuple[int, ...], turned: bool) -> Launch:
    """The launch of `conv_box_pairs`."""
    axes, ci, co = problem.axes, problem.out_channels, problem.in_channels
    read, written = _sides(problem)
    extents = tuple(triton.cdiv(axis.size, axis.stride) for axis in axes)
    tile = box(tiling.bm, extents, flat=False)
    assert tile is not None
    tiles, columns = _tiles(extents, tile), triton.cdiv(co, tiling.bn)
    before = axes[2].before
    first, middle = ((tap + before) % 2 + before - tap for tap in (0, 1))
    scalars = (problem.batch, *written, *(axis.before for axis in axes), *outs, *tiles, columns)
    unused = ("K_W", "S_W", "L_D", "L_H", "L_W")
    constants = {name: value for name, value in _constants(problem, tile).items() if name not in unused}
    constants |= _blocks(tiling) | {"CI": ci, "CO": co, "TURNED": turned, "BN": tiling.bn, "LATE": first != middle}
    constants |= _product(problem, tiling.across)
    grid = (math.prod(tiles) * columns * problem.batch * axes[0].stride * axes[1].stride,)
    reading = (_read(problem, read, ci, 1, tile, tiling.bk, None), _filters(problem, tiling.bn, tiling.bk, turned))
    return Launch(conv_boxes.conv_box_pairs, grid, scalars, constants, reading)


def stack(problem: Problem, tiling: Tiling, outs: tuple[int, ...], turned: bool) -> Launch:
    """The launch of `conv_box_stack`."""
    forward = problem.map.output is Side.WINDOWS
    ci, co = (problem.in_channels, problem.out_channels)[:: 1 if forward else -1]
    read, written = _sides(problem)
    tile = box(tiling.bm, (written[0], 1, written[2]), flat=False)
    assert tile is not None
    tiles = [triton.cdiv(written[0], tile[0]), triton.cdiv(written[1], 4), triton.cdiv(written[2], tile[2])]
    scalars = (problem.batch, *written, *_leads(problem), *outs, *tiles)
    unused = ("BH", "K_H", "S_D", "S_H", "S_W", "L_H")
    constants = {name: value for name, value in _constants(problem, tile).items() if name not in unused}
    constants |= _blocks(tiling) | {"CI": ci, "CO": co, "FORWARD": forward, "TURNED": turned, "BN": co}
    constants |= {"SETTLE": _product(problem, False)["SETTLE"]}
    reading = (_read(problem, read, ci, 1, tile, tiling.bk, None), _filters(problem, co, tiling.bk, turned))
    return Launch(conv_boxes.conv_box_stack, (math.prod(tiles) * problem.batch,), scalars, constants, reading)


def _leads(problem: Problem) -> list[int]:
    """Where the window of output 0 begins, with stride 1 and taps in the order of the cells."""
    if problem.map.output is Side.WINDOWS:
        return [-axis.before for axis in problem.axes]
    return [axis.before - (axis.window - 1) * axis.dilation for axis in problem.axes]


def rows(problem: Problem, tiling: Tiling, outs: tuple[int, ...]) -> Make:
    """The launch of `conv_box_rows`."""
    forward = problem.map.output is Side.WINDOWS
    ci, co = (problem.in_channels, problem.out_channels)[:: 1 if forward else -1]
    read, written = _sides(problem)
    bw, step = row_tile(max(read[2], written[2]))
    plane = box(max(1, tiling.bm // bw), (*written[:2], 1), flat=False)
    assert plane is not None
    tile = (plane[0], plane[1] * plane[2], bw)
    tiles = [*_tiles((*written[:2], 1), (tile[0], tile[1], 1))[:2], triton.cdiv(written[2], step)]
    scalars = (problem.batch, *written, *_leads(problem), *outs, *tiles, step)
    unused = ("K_W", "S_D", "S_H", "S_W", "L_W")
    constants = {name: value for name, value in _constants(problem, tile).items() if name not in unused}
    constants |= _blocks(tiling) | {"CI": ci, "CO": co, "BN": co, "SETTLE": _product(problem, False)["SETTLE"]}
    grid = (math.prod(tiles) * problem.batch,)
    inner = problem.axes[0].window * problem.axes[1].window * ci

    def launch(how: Any, parts: int) -> Launch:
        source = _read(problem, read, ci, parts, tile, tiling.bk, None)
        shape = (parts * inner, 3 * co)
        boxes = (source, Boxes(shape, (tiling.bk, 2 * co)), Boxes(shape, (tiling.bk, co)))
        return Launch(conv_boxes.conv_box_rows, grid, scalars, constants | {"HOW": how}, boxes)

    return launch


def side_by_side(problem: Problem, w: torch.Tensor) -> torch.Tensor:
    """A filter as `conv_box_rows` reads it: [depth, height, source channel, width, column], in the cells' order."""
    if problem.map.output is Side.WINDOWS:
        return w.permute(0, 1, 3, 2, 4).contiguous()
    return w.permute(0, 1, 4, 2, 3).flip(0, 1, 3).contiguous()


GRADIENT = Fork(
    "gradient", "how filter gradients in boxes read the gradient of the outputs",
    Path("lines", (
        Need("products turned over", lambda across, tile, outs: across),
        Need("boxes as wide as the outputs, or one high",
             lambda across, tile, outs: tile[1] == 1 or tile[2] == outs[2]),
        Need("boxes as high and wide, or one deep", lambda across, tile, outs: tile[0] == 1 or tile[1:] == outs[1:]),
    )),
    Path("boxes"),
)  # fmt: skip
"""Boxes that lie in memory without gaps are lines of a matrix."""


def _gradient(problem: Problem, parts: int, tile: Tile, block: int, *, lines: bool) -> Boxes:
    """The gradient of the outputs as boxes of positions or, where these are pieces of memory, as a matrix."""
    outs, channels = _outs(problem.axes), problem.out_channels
    if lines:
        return Boxes((parts * problem.batch * math.prod(outs), channels), (math.prod(tile), block))
    return _read(problem, outs, channels, parts, tile, block, None)


def filters(problem: Problem, tiling: Tiling, placed: tuple[int, int], splits: int) -> Make:
    """The launch of `filter_boxes`, to `splits` sums one after the other, with rows and columns placed as given."""
    axes, ci, co = problem.axes, problem.in_channels, problem.out_channels
    flat = _flat(axes)
    outs = _outs(axes)
    tile = box(tiling.bk, outs, flat=flat, exact=True)
    assert tile is not None
    tiles = _tiles(outs, tile)
    boxes = math.prod(tiles) * problem.batch
    taps = math.prod(axis.window for axis in axes)
    blocks, columns = triton.cdiv(ci, tiling.bm), triton.cdiv(co, tiling.bn)
    scalars = (
        problem.batch, axes[0].size, boxes, triton.cdiv(boxes, splits), *(axis.before for axis in axes), *tiles,
        taps * ci * co, *placed, blocks, columns,
    )  # fmt: skip
    constants = {name: value for name, value in _constants(problem, tile).items() if name != "K_D"} | {
        "CI": ci, "CO": co, "FLAT": flat, "BM": tiling.bm, "BN": tiling.bn, "num_warps": tiling.warps,
        "num_stages": tiling.stages,
    }  # fmt: skip
    constants |= _product(problem, GRADIENT.takes("lines", tiling.across, tile, outs))
    strides = (axes[0].stride, axes[1].stride, axes[2].stride)
    sizes = tuple(axis.size for axis in axes)

    def launch(how: Any, parts: int) -> Launch:
        source = _read(problem, sizes, ci, parts, tile, tiling.bm, strides if flat else None)
        gradient = _gradient(problem, parts, tile, tiling.bn, lines=constants["ACROSS"])
        grid = (taps * blocks * columns, splits)
        return Launch(filter_boxes.filter_boxes, grid, scalars, constants | {"HOW": how}, (source, gradient))

    return launch


def fan(problem: Problem, tiling: Tiling, placed: tuple[int, int], splits: int) -> Make:
    """The launch of `filter_fan`."""
    axes, ci, co = problem.axes, problem.in_channels, problem.out_channels
    tile = box(tiling.bk, _outs(axes), flat=True, exact=True)
    assert tile is not None
    tiles = _tiles(_outs(axes), tile)
    boxes, columns = math.prod(tiles) * problem.batch, triton.cdiv(co, tiling.bn)
    scalars = (
        problem.batch, axes[0].size, boxes, triton.cdiv(boxes, splits), axes[0].before, axes[1].before, *tiles,
        math.prod(problem.filter_shape), *placed, columns,
    )  # fmt: skip
    unused = ("BD", "K_D", "K_W", "S_W", "L_W")
    constants = {name: value for name, value in _constants(problem, tile).items() if name not in unused}
    constants |= {"CI": ci, "CO": co, "BN": tiling.bn, "num_warps": tiling.warps, "num_stages": tiling.stages}
    constants |= _product(problem, GRADIENT.takes("lines", tiling.across, tile, _outs(axes)))
    sizes, strides = tuple(axis.size for axis in axes), (axes[0].stride, axes[1].stride, 1)

    def launch(how: Any, parts: int) -> Launch:
        source = _read(problem, sizes, ci, parts, tile, ci, strides)
        gradient = _gradient(problem, parts, tile, tiling.bn, lines=constants["ACROSS"])
        grid = (axes[0].window * columns, splits)
        return Launch(filter_boxes.filter_fan, grid, scalars, constants | {"HOW": how}, (source, gradient))

    return launch
