# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels that read boxes for a Hopper GPU, without one, and prints what their inner loops do.

    TRITON_INTERPRET=0 python -m tests.cuda.compiled

A line per kernel: its name, how many products take their left operand from registers, how many of its loops have such
products, and how many of these wait for all products at some point of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from voxgrad.catalog import dtypes, geometry
from voxgrad.catalog.problem import Problem
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.cuda import boxes
from voxgrad.kernels.cuda.conv_common import data_strides
from voxgrad.kernels.cuda.conv_parts import ONE
from voxgrad.kernels.cuda.launch import Launch

_PRODUCT = re.compile(r"wgmma\.mma_async\S* \{[^}]*\}, \{")
"""A product whose second operand, the left one, is a list of registers."""

_LOOP = re.compile(r"^(\$L__BB\w+):[^\n]*Loop Header.*?bra\S*\s+\1;", re.DOTALL | re.MULTILINE)
"""From the head of a loop to the jump back to it."""


def problem(op_name: str, inner: int, outer: int) -> Problem:
    """A convolution with windows of 3^3 and stride 2 over 32^3 cells."""
    axis = geometry.axis(32, 3, 2, 1, geometry.SAME)
    assert isinstance(axis, geometry.Axis)
    kind = dtypes.BFLOAT16
    op = OPS[op_name]
    return Problem(op.name, op.map, kind, kind, (), True, 2, inner, outer, 1, (axis, axis, axis))


def launches() -> Iterator[tuple[str, Launch, int]]:
    """Kernels with both kinds of left operands, and how many tensors they take."""
    for across in (False, True):
        for kernel in ("Conv3D", "Conv3DBackpropInputV2"):
            made = problem(kernel, 64, 64)
            tiling = boxes.Tiling(128, 64, 64, 4, 3, across)
            outs = data_strides(made.output_extent if kernel == "Conv3D" else made.input_extent, True)
            yield f"{kernel} {across}", boxes.positions(made, tiling, outs, False)(ONE, 1), 4
        made = problem("Conv3DBackpropFilterV2", 64, 64)
        tiling = boxes.Tiling(64, 64, 64, 4, 3, across)
        yield f"conv3d_filter {across}", boxes.filters(made, tiling, (64, 1), 2)(ONE, 1), 4
    made = problem("Conv3DBackpropInputV2", 32, 64)
    outs = data_strides(made.input_extent, True)
    yield "pairs False", boxes.pairs(made, boxes.Tiling(128, 32, 64, 4, 2), outs, False), 3


def compiled(launch: Launch, tensors: int, kinds: tuple[str, ...] = ()) -> str:
    """The kernel in PTX, as Triton would compile it for this launch; tensors are bfloat16, or of these kinds."""
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for place, name in enumerate(launch.kernel.arg_names):
        if place < len(launch.boxes):
            signature[name] = f"tensordesc<bf16{list(launch.boxes[place].block)}>"
        elif place < tensors:
            signature[name] = f"*{kinds[place]}" if kinds else "*bf16"
        else:
            value = (*launch.scalars, *[None] * 99)[place - tensors]
            fixed = value is None or value == 1
            signature[name] = "constexpr" if fixed else "i32" if value < 2**31 else "i64"
            if fixed:
                constants[name] = launch.constants[name] if value is None else 1
    wanted = ("num_warps", "num_stages", "maxnreg")
    options = {name: launch.constants[name] for name in wanted if name in launch.constants}
    made = triton.compile(
        ASTSource(launch.kernel, signature, constants, {}), target=GPUTarget("cuda", 90, 32), options=options
    )
    text: str = made.asm["ptx"]
    return text


def main() -> None:
    """Print a line per kernel."""
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    for name, launch, tensors in launches():
        text = compiled(launch, tensors)
        bodies = [found[0] for found in _LOOP.finditer(text)]
        held = [body for body in bodies if _PRODUCT.search(body)]
        waiting = sum("wgmma.wait_group.sync.aligned 0;" in body for body in held)
        print(name, len(_PRODUCT.findall(text)), len(held), waiting, sep=",", flush=True)


if __name__ == "__main__":
    main()
