# SPDX-License-Identifier: Apache-2.0
"""Float32 in parts for the tensor cores: which parts, and the launches that make them. See `conv_parts`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import triton

from voxgrad.kernels.cuda import conv_parts as kernels
from voxgrad.kernels.cuda.launch import Launch
from voxgrad.kernels.cuda.paths import Fork, Need, Path

ENOUGH_TERMS = 64
"""Sums of fewer products hold every float32 exactly: a rounding more per number would show there."""

Make = Callable[[Any, int], Launch]
"""The launch of a kernel for numbers in a given way, HOW, and number of parts."""


def bf16_parts(x: torch.Tensor) -> torch.Tensor:
    """Float32 as three bfloat16 planes; other types as they are."""
    if x.dtype != torch.float32:
        return x
    parts = torch.empty((3, *x.shape), dtype=torch.bfloat16, device=x.device)
    _parts_launch(x.numel())(x, parts)
    return parts


@lru_cache(maxsize=4096)
def _parts_launch(count: int) -> Launch:
    return Launch(kernels.split_parts, (triton.cdiv(count, 2048),), (count,), {"BLOCK": 2048})


def launched(make: Make, dtype: torch.dtype, *, terms: int, tf32: bool = False, reads: int = 1,
             whole: bool = False) -> Callable[..., None]:  # fmt: skip
    """A kernel on (first operand, second operand, result), in the parts that sums of `terms` products want.

    `reads` is how often the kernel takes the second operand. Its last tensor is the guard. `whole` takes nothing apart,
    and needs nothing aligned.
    """
    how = PARTS.taken(dtype, terms, tf32, whole).name
    if how == "as they are":
        plain, lain = make(kernels.ONE, 1), _as_it_lies if whole else aligned
        return lambda a, b, out: plain(lain(a), *(lain(b),) * reads, out, out)
    if how == "bf16x3":
        bf16x3 = make(kernels.BF16X3, 2)
        return lambda a, b, out: bf16x3(_pair(a), *(_pair(b),) * reads, out, out)
    bf16x6 = make(kernels.BF16X6, 3)
    if how == "bf16x6":
        return lambda a, b, out: bf16x6(bf16_parts(a), *(bf16_parts(b),) * reads, out, torch.ones(3, device=a.device))
    fp16x3 = make(kernels.FP16X3, 2)

    def run(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        parts_a, parts_b, guard = split(a, b)
        fp16x3(parts_a.view(torch.float16), *(parts_b.view(torch.float16),) * reads, out, guard)
        bf16x6(parts_a, *(parts_b,) * reads, out, guard)

    return run


def _is_apart(dtype: torch.dtype, terms: int, tf32: bool, whole: bool) -> bool:
    return dtype == torch.float32 and not whole


_APART = Need("float32 that is taken apart", _is_apart)
PARTS = Fork(
    "parts", "what tensor cores get of a number",
    Path("as they are", (Need("another type, or nothing taken apart", lambda *case: not _is_apart(*case)),)),
    Path("bf16x3", (_APART, Need("TF32 allowed", lambda dtype, terms, tf32, whole: tf32))),
    Path("bf16x6", (_APART,), (Need("sums of fewer than 64 products",
                                    lambda dtype, terms, tf32, whole: terms < ENOUGH_TERMS),)),
    Path("fp16x3, or bf16x6", (_APART,)),
)  # fmt: skip


def _as_it_lies(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """The copy engine reads from multiples of 16 bytes."""
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _pair(x: torch.Tensor) -> torch.Tensor:
    parts = torch.empty((2, x.numel()), dtype=torch.bfloat16, device=x.device)
    _pair_launch(x.numel())(x, parts)
    return parts


@lru_cache(maxsize=4096)
def _pair_launch(count: int) -> Launch:
    return Launch(kernels.split_pair, (triton.cdiv(count, 2048),), (count,), {"BLOCK": 2048})


_SHARES, _ROWS, _BLOCK, _SPLIT = 256, 4, 1024, 8192


def split(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Both operands in parts, two float16 or three bfloat16 each, and the guard that says which."""
    find, part = _splitter(a.numel(), b.numel())
    # One allocation for the small ones: the guard is read as float32, what was found as integers.
    small = torch.empty(8 + 4 * _SHARES, dtype=torch.int32, device=a.device)
    guard, stats = small[:8].view(torch.float32), small[8:]
    find(a, b, stats)
    parts_a, parts_b = (torch.empty((3, x.numel()), dtype=torch.bfloat16, device=x.device) for x in (a, b))
    part(a, b, parts_a, parts_a.view(torch.float16), parts_b, parts_b.view(torch.float16), guard, stats)
    return parts_a, parts_b, guard


@lru_cache(maxsize=4096)
def _splitter(first: int, second: int) -> tuple[Launch, Launch]:
    """What looks at two operands of these sizes, and what takes them apart."""
    piece = _ROWS * _BLOCK
    per = [triton.cdiv(triton.cdiv(count, _SHARES), piece) * piece for count in (first, second)]
    shares = [triton.cdiv(count, size) for count, size in zip((first, second), per, strict=True)]
    constants = {"SHARES": _SHARES, "ROWS": _ROWS, "BLOCK": _BLOCK}
    find = Launch(kernels.largest_bits, (sum(shares),), (first, second, *per, shares[0]), constants)
    blocks = [triton.cdiv(count, _SPLIT) for count in (first, second)]
    constants = {"SHARES": _SHARES, "BLOCK": _SPLIT, "num_warps": 8}
    part = Launch(kernels.split_both, (sum(blocks),), (first, second, blocks[0], *shares), constants)
    return find, part
