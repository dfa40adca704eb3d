# SPDX-License-Identifier: Apache-2.0
"""Branches: a Switch sends a value down one of two ways, the other stays dead; a Merge takes what arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.gradients import of_unary
from voxgrad.catalog.model import Attr, Call, Input, Law, Node, Op, Output, Spec
from voxgrad.catalog.shapes import has_rank, like, specs
from voxgrad.errors import Faults

_ANY = {"T": dtypes.ALL}
_DEAD = Law("dead", "What depends on the way not taken is not run; fetching it is an error.")


def _switch_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "pred", 0, faults)
    data = call.inputs["data"]
    return None if faults else (Spec(data.dtype, data.shape), Spec(data.dtype, data.shape))


def _merge_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    shapes = [spec.shape for spec in call.inputs["inputs"]]
    common = shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else None
    return specs(call, common, ())


def _select_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    has_rank(call, "index", 0, faults)
    shapes = [spec.shape for spec in call.inputs["inputs"]]
    return None if faults else specs(call, shapes[0] if all(shape == shapes[0] for shape in shapes) else None)


def _switch_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    data, pred = node.inputs
    ways = [build.Switch(build.ZerosLike(data) if dy is None else dy, pred)[way] for way, dy in enumerate(dys)]
    return build.Merge(ways)[0], None


def _merge_gradient(build: Any, node: Node, dys: Sequence[Any]) -> Sequence[Any]:
    taken = node.outputs[1]
    return ([build.Switch(dys[0], build.Equal(taken, index))[1] for index in range(len(node.inputs[0]))],)


def _passing(name: str, summary: str, type_: Any, argument: str, types: Any, shape: str = "") -> Op:
    return Op(
        name, "control_flow", summary, (Input(argument, type_, "Any value.", shape),),
        outputs=(Output("output", type_, "The same value.", f"shape of {argument}"),), types=types,
        infer=like(argument),
        kernel="core.identity", gradient=of_unary(lambda build, x, y, dy: dy),
    )  # fmt: skip


OPS = (
    Op("Switch", "control_flow", "Sends a value to output_true or output_false; the other one stays dead.",
       (Input("data", "T", "Any value."), Input("pred", dtypes.BOOL, "Which way.", "[]")),
       outputs=(Output("output_false", "T", "The value where pred is False.", "shape of data"),
                Output("output_true", "T", "The value where pred is True.", "shape of data")),
       types=_ANY, infer=_switch_infer, kernel="control_flow.switch", gradient=_switch_gradient, laws=(_DEAD,)),
    Op("RefSwitch", "control_flow", "A Switch for variables.",
       (Input("data", "T", "The variable.", ref=True), Input("pred", dtypes.BOOL, "Which way.", "[]")),
       outputs=(Output("output_false", "T", "The variable where pred is False.", "shape of data", ref=True),
                Output("output_true", "T", "The variable where pred is True.", "shape of data", ref=True)),
       types=_ANY, infer=_switch_infer, kernel="control_flow.switch", laws=(_DEAD,), stateful=True),
    Op("Merge", "control_flow", "The first of its inputs that is not dead.",
       (Input("inputs", "T", "Ends of branches.", many=True),),
       outputs=(Output("output", "T", "The live value."),
                Output("value_index", dtypes.INT32, "Which input it was.", "[]")),
       types=_ANY, infer=_merge_infer, kernel="control_flow.merge", gradient=_merge_gradient,
       laws=(Law("dead", "Dead only where all inputs are."),)),
    _passing("NextIteration", "Passes a value on to the next round of a loop.", "T", "data", _ANY),
    Op("RefNextIteration", "control_flow", "Passes a variable on to the next round of a loop.",
       (Input("data", "T", "The variable.", ref=True),),
       outputs=(Output("output", "T", "The same variable.", "shape of data", ref=True),), types=_ANY,
       infer=like("data"), kernel="core.identity", stateful=True),
    Op("RefSelect", "control_flow", "One of several variables.",
       (Input("index", dtypes.INT32, "Which one.", "[]"), Input("inputs", "T", "Variables.", many=True, ref=True)),
       outputs=(Output("output", "T", "The chosen variable.", ref=True),), types=_ANY, infer=_select_infer,
       kernel="control_flow.select_variable", stateful=True),
    _passing("LoopCond", "Passes on the condition of a loop.", dtypes.BOOL, "input", {}, "[]"),
    Op("ControlTrigger", "control_flow", "Does nothing; a place for control edges to meet.", (),
       infer=lambda call, faults: (), kernel="core.no_op"),
    Op("Abort", "control_flow", "Ends the run with an error when it is reached.", (),
       (Attr("error_msg", "string", "What the error says.", ""),
        Attr("exit_without_error", "bool", "End the run without a message of its own.", False)),
       infer=lambda call, faults: (), kernel="control_flow.abort", stateful=True),
)  # fmt: skip
