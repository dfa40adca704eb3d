# SPDX-License-Identifier: Apache-2.0
"""Where values enter a page, and how they pass through it unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import symbolic
from voxgrad.catalog.gradients import nothing, of_unary
from voxgrad.catalog.locality import elementwise, kept_each
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Spec
from voxgrad.catalog.shapes import FOLDED, check_same, like
from voxgrad.errors import Faults

_SAME = of_unary(lambda build, x, y, dy: dy)


def _const_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    value, dtype = call.attrs.get("value"), call.attrs.get("dtype")
    shape = _shape_of(value)
    if shape is None:
        return (Spec(dtype),)
    small = dtype is not None and dtype.kind in ("int", "uint") and _count(shape) <= FOLDED
    return (Spec(dtype, shape, _flat(value) if small else None),)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array, a number or nested lists, without making an array of it."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, (list, tuple)):
        return ()
    inner = _shape_of(value[0]) if value else ()
    return None if inner is None else (len(value), *inner)


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _flat(value: Any) -> tuple[Any, ...]:
    if hasattr(value, "ravel"):
        return tuple(value.ravel().tolist())
    if isinstance(value, (list, tuple)):
        return tuple(one for item in value for one in _flat(item))
    return (value,)


def _placeholder_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = symbolic(call.attrs.get("shape"), call.block or "Placeholder")
    return (Spec(call.attrs.get("dtype"), shape),)


def _default_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shape = symbolic(call.attrs.get("shape"), call.block or "PlaceholderWithDefault")
    given = call.inputs["input"]
    fits = check_same("input", given.shape, shape, "a shape that fits the attribute shape", faults)
    return (Spec(given.dtype, shape),) if fits else None


def _identity_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return (call.inputs["input"],)


def _identities_infer(call: Call, faults: Faults) -> tuple[Any, ...] | None:
    return (tuple(call.inputs["input"]),)


def _prevent(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    message = node.attrs.get("message") or "PreventGradient stands on the way"
    raise LookupError(f"no gradient may be taken here: {message}")


_SHAPE = Attr("shape", "shape", "The shape; None or a name for a size that is open, None alone for any rank.", None)

OPS = (
    Op("Const", "core", "A constant.", (), (
           Attr("value", "tensor", "The values: an array, a number or nested lists."),
           Attr("dtype", "type", "Their type.")),
       (Output("output", "dtype", "The constant.", "shape of value"),), {"dtype": dtypes.ALL}, infer=_const_infer,
       kernel="core.const", aliases=("Const_ex",),
       example="print(vg.raw_ops.Const(value=[[1, 2], [3, 4]], dtype='float32'))  # [[1. 2.] [3. 4.]]"),
    Op("Placeholder", "core", "A value that each run is given.", (), (
           Attr("dtype", "type", "The type of the values."), _SHAPE),
       (Output("output", "dtype", "What was fed.", "shape"),), {"dtype": dtypes.ALL}, infer=_placeholder_infer,
       kernel="core.placeholder", laws=(Law("missing", "A run that needs it and is not given it fails."),)),
    Op("PlaceholderWithDefault", "core", "A value that a run may be given; else its input.",
       (Input("input", "dtype", "The value where none is fed."),),
       (Attr("shape", "shape", "The shape; None or a name for a size that is open."),),
       (Output("output", "dtype", "What was fed, or the input.", "shape"),), {"dtype": dtypes.ALL},
       infer=_default_infer, kernel="core.identity", gradient=_SAME, follows=elementwise),
    Op("Identity", "core", "The input, unchanged.", (Input("input", "T", "Any tensor."),),
       outputs=(Output("output", "T", "The same tensor.", "shape of input"),), types={"T": dtypes.ALL},
       infer=_identity_infer, kernel="core.identity", gradient=_SAME, linear_in=("input",), follows=elementwise),
    Op("IdentityN", "core", "All inputs, unchanged.",
       (Input("input", "T", "Any tensors.", many=True, mixed=True),),
       outputs=(Output("output", "T", "The same tensors.", many=True, mixed=True, count="input"),),
       types={"T": dtypes.ALL}, infer=_identities_infer, kernel="core.identities",
       gradient=lambda build, node, dys: (list(dys[0]),), lies=kept_each),
    Op("StopGradient", "core", "The input, unchanged; no gradient flows back through it.",
       (Input("input", "T", "Any tensor."),),
       outputs=(Output("output", "T", "The same tensor.", "shape of input"),), types={"T": dtypes.ALL},
       infer=_identity_infer, kernel="core.identity", gradient=nothing, follows=elementwise),
    Op("PreventGradient", "core", "The input, unchanged; asking for a gradient through it is an error.",
       (Input("input", "T", "Any tensor."),), (Attr("message", "string", "What the error says.", ""),),
       (Output("output", "T", "The same tensor.", "shape of input"),), {"T": dtypes.ALL}, infer=like("input"),
       kernel="core.identity", gradient=_prevent, follows=elementwise),
    Op("NoOp", "core", "Does nothing; a place for control edges to meet.", (), infer=lambda call, faults: (),
       kernel="core.no_op"),
)  # fmt: skip
