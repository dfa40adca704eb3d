# SPDX-License-Identifier: Apache-2.0
"""Floats rounded to what a few bits could hold, so that a network learns to live with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import differ
from voxgrad.catalog.gradients import nothing
from voxgrad.catalog.locality import elementwise
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Shape, Spec
from voxgrad.catalog.shapes import axis_in, check_same, has_rank, same_shapes, shaped, specs, text
from voxgrad.errors import Faults

_F32 = dtypes.FLOAT32
_ATTRS = (Attr("num_bits", "int", "How many bits; from 2 to 16.", 8),
          Attr("narrow_range", "bool", "The lowest of the steps is left out.", False))  # fmt: skip
_RANGE = (Attr("min", "float", "The least number that is kept.", -6.0),
          Attr("max", "float", "The greatest number that is kept.", 6.0))  # fmt: skip
_NUDGED = (Law("zero", "The range is shifted a little so that 0 is one of its steps."),
           Law("gradient", "Passes where the input lies in the range, as if nothing were rounded."))  # fmt: skip


def _checked(call: Call, faults: Faults, *names: str) -> Shape | None:
    bits = call.attrs.get("num_bits", 8)
    if not 2 <= bits <= 16:
        faults.add("VG003", "num_bits", wanted="be from 2 to 16", got=bits)
    low, high = call.attrs.get("min", 0.0), call.attrs.get("max", 1.0)
    if not low < high:
        faults.add("VG003", "max", wanted=f"be above min, {low}", got=high)
    return same_shapes(call, names, faults)


def _args(*names: str) -> Any:
    return shaped(lambda call, faults: _checked(call, faults, *names))


def _vars(names: tuple[str, ...], channels: bool) -> Any:
    def infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
        shape = _checked(call, faults, *names)
        bound: Shape | None = ()
        if channels:
            has_rank(call, "inputs", 1, faults, at_least=True)
            bound = None if shape is None or faults else (shape[-1],)
            for name in ("min", "max"):
                has_rank(call, name, 1, faults)
                check_same(name, call.inputs[name].shape, bound, "one number per channel", faults)
        return None if faults else specs(call, shape, *([bound] * (len(call.op.outputs) - 1)))

    return infer


def _args_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    return (build.FakeQuantWithMinMaxArgsGradient(dys[0], node.inputs[0], **node.attrs),)


def _vars_gradient(name: str) -> Any:
    def gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
        return tuple(getattr(build, name)(dys[0], *node.inputs, **node.attrs))

    return gradient


def _family(name: str, bounds: tuple[Input, ...], channels: bool) -> tuple[Op, Op]:
    """A rounding whose range are inputs, and its gradient."""
    x, size = Input("inputs", _F32, "The numbers.", "[..., channels]" if channels else ""), bounds[0].shape
    dy = Input("gradients", _F32, "The gradient with respect to the output.", "shape of inputs")
    return (
        Op(name, "array", "Numbers rounded to the steps of a range, which is learnt.", (x, *bounds), _ATTRS,
           (Output("outputs", _F32, "The rounded numbers.", "shape of inputs"),), infer=_vars(("inputs",), channels),
           kernel="fake_quant.rounded", gradient=_vars_gradient(f"{name}Gradient"), laws=_NUDGED),
        Op(f"{name}Gradient", "array", f"Gradients of {name}.", (dy, x, *bounds), _ATTRS,
           (Output("backprops_wrt_input", _F32, "With respect to inputs.", "shape of inputs"),
            Output("backprop_wrt_min", _F32, "With respect to min.", size),
            Output("backprop_wrt_max", _F32, "With respect to max.", size)),
           infer=_vars(("gradients", "inputs"), channels), kernel="fake_quant.rounded_grad", gradient=nothing),
    )  # fmt: skip


def _bounds(shape: str) -> tuple[Input, ...]:
    return (Input("min", _F32, "The least number that is kept.", shape),
            Input("max", _F32, "The greatest number that is kept.", shape))  # fmt: skip


def _steps_rule(call: Call, faults: Faults) -> Shape | None:
    shape: Shape | None = call.inputs["input"].shape
    bits, axis = call.attrs.get("num_bits", 8), call.attrs.get("axis", -1)
    most = 61 if call.attrs.get("signed_input", True) else 62
    if not 1 <= bits <= most:
        faults.add("VG003", "num_bits", wanted=f"be from 1 to {most}", got=bits)
    if bits == 1 and most == 61 and call.attrs.get("narrow_range"):
        faults.add("VG003", "narrow_range", wanted="leave a step: one bit with a sign has two", got=True)
    if axis < -1:
        faults.add("VG003", "axis", wanted="be -1 or more", got=axis)
    if faults or shape is None:
        return shape
    bound: Shape = ()
    if axis != -1:
        if axis_in(call, "axis", axis, len(shape), faults) is None:
            return shape
        bound = (shape[axis],)
    for name in ("input_min", "input_max") if call.attrs.get("range_given") else ():
        given = call.inputs[name].shape
        if given is not None and (len(given) != len(bound) or any(map(differ, given, bound))):
            faults.add("VG012", name, wanted=f"have the shape {text(bound)}", got=text(given))
    return shape


OPS = (
    Op("FakeQuantWithMinMaxArgs", "array", "Numbers rounded to the steps of a fixed range.",
       (Input("inputs", _F32, "The numbers."),), (*_RANGE, *_ATTRS),
       (Output("outputs", _F32, "The rounded numbers.", "shape of inputs"),), infer=_args("inputs"),
       kernel="fake_quant.rounded", gradient=_args_gradient, laws=_NUDGED, follows=elementwise),
    Op("FakeQuantWithMinMaxArgsGradient", "array", "Gradient of FakeQuantWithMinMaxArgs.",
       (Input("gradients", _F32, "The gradient with respect to the output."),
        Input("inputs", _F32, "The numbers.", "shape of gradients")), (*_RANGE, *_ATTRS),
       (Output("backprops", _F32, "The gradient.", "shape of inputs"),), infer=_args("gradients", "inputs"),
       kernel="fake_quant.rounded_grad", gradient=nothing, follows=elementwise),
    *_family("FakeQuantWithMinMaxVars", _bounds("[]"), False),
    *_family("FakeQuantWithMinMaxVarsPerChannel", _bounds("[channels]"), True),
    Op("QuantizeAndDequantizeV2", "array", "Numbers rounded to the steps that so many bits have for their range.",
       (Input("input", "T", "The numbers."), Input("input_min", "T", "The least, where range_given."),
        Input("input_max", "T", "The greatest, where range_given.")),
       (Attr("signed_input", "bool", "Steps are numbered from below 0.", True),
        Attr("num_bits", "int", "How many bits.", 8),
        Attr("range_given", "bool", "The range is given, and not that of the input.", False),
        Attr("round_mode", "string", "What becomes of halves.", "HALF_TO_EVEN", choices=("HALF_TO_EVEN", "HALF_UP")),
        Attr("narrow_range", "bool", "The lowest of the steps is left out.", False),
        Attr("axis", "int", "An axis along which each slice has a range of its own; -1 for one range.", -1)),
       (Output("output", "T", "The rounded numbers.", "shape of input"),), {"T": dtypes.FLOATING},
       infer=shaped(_steps_rule), kernel="fake_quant.stepped",
       gradient=lambda build, node, dys: (dys[0], None, None),
       laws=(Law("gradient", "Passes, as if nothing were rounded."),)),
)  # fmt: skip
