# SPDX-License-Identifier: Apache-2.0
"""Blocks of cells moved between space, depth and batch."""

from __future__ import annotations

import math
from typing import Any

from voxgrad.kernels.arraywise.evaluation import Run, kernel
from voxgrad.kernels.arraywise.namespace import Array, integers, to_numpy
from voxgrad.kernels.arraywise.slicing import pad


def _last(run: Run, x: Array) -> Array:
    return run.xp.permute_dims(x, (0, 2, 3, 1)) if run.attrs["data_format"] == "NCHW" else x


def _back(run: Run, x: Array) -> Array:
    return run.xp.permute_dims(x, (0, 3, 1, 2)) if run.attrs["data_format"] == "NCHW" else x


@kernel()
def space_to_depth(run: Run, x: Array) -> Array:
    """Blocks of cells into the channels."""
    x, b = _last(run, x), run.attrs["block_size"]
    n, h, w, c = x.shape
    split = run.xp.permute_dims(run.xp.reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
    return _back(run, run.xp.reshape(split, (n, h // b, w // b, b * b * c)))


@kernel()
def depth_to_space(run: Run, x: Array) -> Array:
    """Channels into blocks of cells."""
    x, b = _last(run, x), run.attrs["block_size"]
    n, h, w, c = x.shape
    split = run.xp.permute_dims(run.xp.reshape(x, (n, h, w, b, b, c // (b * b))), (0, 1, 3, 2, 4, 5))
    return _back(run, run.xp.reshape(split, (n, h * b, w * b, c // (b * b))))


def _blocks(run: Run, given: tuple[Array, ...]) -> tuple[list[int], Any]:
    """The block sizes, and the amounts before and after: [dims, 2]."""
    blocks = [run.attrs["block_size"]] * 2 if "block_size" in run.attrs else integers(given[0])
    return blocks, to_numpy(given[-1]).reshape(-1, 2)


@kernel()
def space_to_batch(run: Run, x: Array, *given: Array) -> Array:
    """Blocks of cells into the batch."""
    blocks, amounts = _blocks(run, given)
    rest = len(x.shape) - 1 - len(blocks)
    x = pad(run, x, [[0, 0], *amounts.tolist(), *([[0, 0]] * rest)])
    inner, tail = x.shape[1 : len(blocks) + 1], tuple(x.shape[len(blocks) + 1 :])
    for size, block in zip(inner, blocks, strict=True):
        if size % block:
            run.fail("paddings", wanted=f"make {size} cells divide by {block}", got=amounts.tolist(), code="VG012")
    split = [part for size, block in zip(inner, blocks, strict=True) for part in (size // block, block)]
    count = len(blocks)
    order = [
        *range(2, 2 * count + 1, 2),
        0,
        *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, 2 * count + 1 + len(tail)),
    ]
    turned = run.xp.permute_dims(run.xp.reshape(x, (x.shape[0], *split, *tail)), tuple(order))
    outer = tuple(size // block for size, block in zip(inner, blocks, strict=True))
    return run.xp.reshape(turned, (x.shape[0] * math.prod(blocks), *outer, *tail))


@kernel()
def batch_to_space(run: Run, x: Array, *given: Array) -> Array:
    """The batch into blocks of cells."""
    blocks, amounts = _blocks(run, given)
    count, inner, tail = len(blocks), x.shape[1 : len(blocks) + 1], tuple(x.shape[len(blocks) + 1 :])
    batch = x.shape[0] // math.prod(blocks)
    if batch * math.prod(blocks) != x.shape[0]:
        run.fail("input", wanted=f"have a batch that {math.prod(blocks)} divides", got=list(x.shape), code="VG012")
    split = run.xp.reshape(x, (*blocks, batch, *inner, *tail))
    pairs = [part for index in range(count) for part in (count + 1 + index, index)]
    order = (count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(tail)))
    grown = tuple(size * block for size, block in zip(inner, blocks, strict=True))
    whole = run.xp.reshape(run.xp.permute_dims(split, order), (batch, *grown, *tail))
    spans = [slice(before, size - after) for size, (before, after) in zip(grown, amounts.tolist(), strict=True)]
    cut = whole[(slice(None), *spans)]
    return cut.copy() if hasattr(cut, "copy") else cut
