"""What the package declares. Whoever only looks at its blocks loads this file, and not what computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.blocks import FLOATING, Attr, Call, Faults, Input, Law, Node, Op, Output, Spec, has_rank, specs


def _rule(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    """The result is as large as the volume. Sizes may be symbols of a page here, such as N and D-1."""
    has_rank(call, "x", 5, faults)
    if call.attrs["radius"] < 0:
        faults.add("VG003", "radius", wanted="be 0 or more", got=call.attrs["radius"])
    return None if faults else specs(call, call.inputs["x"].shape)


def _gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    """One value per input. Every cell gives as much to another as it gets from it, so a blur is its own transpose."""
    return (build.boxblur.BoxBlur(dys[0], **node.attrs),)


BOX_BLUR = Op(
    name="BoxBlur",
    group="",
    summary="The mean of the cells around each cell of a volume.",
    inputs=(Input("x", "T", "The volume.", "[N, D, H, W, C]"),),
    attrs=(Attr("radius", "int", "So many cells to either side, in depth, height and width.", 1),),
    outputs=(Output("y", "T", "The blurred volume.", "shape of x"),),
    types={"T": FLOATING},
    doc="Every channel is blurred by itself, over a cube of 2 * radius + 1 cells in each direction.",
    laws=(Law("border", "Cells outside of the volume are 0, and count: the sum is always divided by the whole cube."),),
    example="""\
x = np.zeros((1, 1, 1, 5, 1), np.float32)
x[0, 0, 0, 2] = 27
print(vg.blocks.raw_ops.boxblur.BoxBlur(x=x, radius=1).ravel())  # [0. 1. 1. 1. 0.]""",
    infer=_rule,
    kernel="boxblur.compute:box_blur",
    gradient=_gradient,
    linear_in=("x",),
)

OPS = (BOX_BLUR,)
