# SPDX-License-Identifier: Apache-2.0
"""Variables and what changes them."""

from __future__ import annotations

from typing import Any

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import symbolic
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Call, Input, Law, Op, Output, Spec
from voxgrad.catalog.shapes import check_same, check_updates, elements, fixed, like, merged, specs, text
from voxgrad.errors import Faults

_REF = Input("ref", "T", "The variable.", ref=True)
_OUT = Output("output_ref", "T", "The variable, after the change.", "shape of ref", ref=True)
_TIME = Law("time", "Who reads a variable gets what it holds at that time.")
_LOCKING = "Changes of one variable never overlap here, whatever this says."


def _locking(default: bool) -> Attr:
    return Attr("use_locking", "bool", _LOCKING, default)


def _variable_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    return (Spec(call.attrs.get("dtype"), symbolic(call.attrs.get("shape"), call.block or "Variable")),)


_VARIABLE_ATTRS = (
    Attr("shape", "shape", "Its shape; None for any."),
    Attr("dtype", "type", "Its type."),
    Attr("container", "string", "A name space for shared variables.", ""),
    Attr("shared_name", "string", "Variables of one such name are one variable.", ""),
)


def _variable(name: str, **more: Any) -> Op:
    return Op(
        name, "state", "A value that a session keeps from run to run.", (), _VARIABLE_ATTRS,
        (Output("ref", "dtype", "The variable.", "shape", ref=True),), {"dtype": dtypes.ALL}, infer=_variable_infer,
        kernel="state.variable", stateful=True, laws=(_TIME, Law("first", "Reading it before an Assign is an error.")),
        **more,
    )  # fmt: skip


def _assign_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    ref, value = call.inputs["ref"], call.inputs["value"]
    if call.attrs.get("validate_shape", True):
        check_same("value", value.shape, ref.shape, "the shape of the variable", faults)
        return None if faults else specs(call, merged(ref.shape, value.shape))
    return specs(call, value.shape)


def _update(name: str, summary: str, kernel: str) -> Op:
    return Op(
        name, "state", summary, (_REF, Input("value", "T", "The amount, like ref.")), (_locking(False),), (_OUT,),
        {"T": dtypes.NUMBER}, infer=_assign_infer, kernel=f"state.{kernel}", stateful=True, laws=(_TIME,),
    )  # fmt: skip


def _rows_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    ref, indices, updates = (call.inputs[name].shape for name in ("ref", "indices", "updates"))
    if ref is not None and indices is not None and updates != ():
        check_same("updates", updates, (*indices, *ref[1:]), "the shape of the chosen rows", faults)
    rows = elements(call.inputs["indices"])
    if ref and rows is not None and any(isinstance(ref[0], int) and not 0 <= row < ref[0] for row in rows):
        faults.add("VG043", "indices", wanted=f"be in [0, {ref[0]})", got=text(rows))
    return None if faults else specs(call, ref)


def _rows(name: str, summary: str, kernel: str, types: tuple[DType, ...], locking: bool) -> Op:
    return Op(
        name, "state", summary,
        (_REF, Input("indices", "Tindices", "The rows."),
         Input("updates", "T", "Their values.", "[indices shape, ...]")),
        (_locking(locking),), (_OUT,), {"T": types, "Tindices": dtypes.INDEX}, infer=_rows_infer,
        kernel=f"state.{kernel}", stateful=True, laws=(_TIME, Law("twice", "A row named twice is changed twice.")),
    )  # fmt: skip


def _nd_infer(call: Call, faults: Faults) -> tuple[Spec, ...] | None:
    ref = call.inputs["ref"].shape
    check_updates(call, ref, faults)
    return None if faults else specs(call, ref)


def _nd(name: str, summary: str, kernel: str, types: tuple[DType, ...], locking: bool) -> Op:
    return Op(
        name, "state", summary,
        (_REF, Input("indices", "Tindices", "Positions in ref.", "[..., depth]"),
         Input("updates", "T", "The values there.", "[..., ref.shape[depth:]]")),
        (_locking(locking), Attr("bad_indices_policy", "string", "What a position outside does: an error.", "",
                                  choices=("", "DEFAULT", "ERROR"))),
        (_OUT,),
        {"T": types, "Tindices": dtypes.INDEX}, infer=_nd_infer, kernel=f"state.{kernel}", stateful=True, laws=(_TIME,),
    )  # fmt: skip


_RESOURCE = Input("resource", dtypes.RESOURCE, "The handle of a variable.")

HANDLES = (
    Op("VarHandleOp", "state", "The handle of a value that a session keeps from run to run.", (),
       (_VARIABLE_ATTRS[1], _VARIABLE_ATTRS[0], *_VARIABLE_ATTRS[2:],
        Attr("debug_name", "string", "A name for messages.", ""),
        Attr("allowed_devices", "strings", "Without effect here.", ())),
       (Output("resource", dtypes.RESOURCE, "The handle of the variable.", "[]"),), {"dtype": dtypes.ALL},
       infer=fixed(()), kernel="state.handle", stateful=True),
    Op("ReadVariableOp", "state", "The value of the variable behind a handle.", (_RESOURCE,),
       (Attr("dtype", "type", "Its type."),), (Output("value", "dtype", "What it holds at that time."),),
       {"dtype": dtypes.ALL}, infer=lambda call, faults: specs(call, None), kernel="state.read_handle", stateful=True,
       laws=(_TIME,)),
    Op("AssignVariableOp", "state", "Give the variable behind a handle a value.",
       (_RESOURCE, Input("value", "dtype", "The value.")),
       (Attr("validate_shape", "bool", "The value must fit the shape of the variable, whatever this says.", False),),
       types={"dtype": dtypes.ALL}, infer=lambda call, faults: (), kernel="state.assign_handle", stateful=True,
       laws=(_TIME,)),
)  # fmt: skip

OPS = (
    _variable("VariableV2"),
    _variable("Variable"),
    *HANDLES,
    Op("Assign", "state", "Give a variable a value.", (_REF, Input("value", "T", "The value.")),
       (Attr("validate_shape", "bool", "The value must have the shape of the variable.", True), _locking(True)),
       (_OUT,), {"T": dtypes.ALL}, infer=_assign_infer, kernel="state.assign", stateful=True, laws=(_TIME,)),
    _update("AssignAdd", "Add to a variable.", "assign_add"),
    _update("AssignSub", "Subtract from a variable.", "assign_sub"),
    Op("IsVariableInitialized", "state", "Whether a variable has a value.",
       (Input("ref", "dtype", "The variable.", ref=True),),
       outputs=(Output("is_initialized", dtypes.BOOL, "True once it was assigned.", "[]"),),
       types={"dtype": dtypes.ALL}, infer=fixed(()), kernel="state.is_initialized", stateful=True),
    Op("CountUpTo", "state", "Count a variable up, one by one, until a limit.",
       (Input("ref", "T", "A scalar variable.", "[]", ref=True),),
       (Attr("limit", "int", "Where the count ends with an error."),),
       (Output("output", "T", "The count before it was raised.", "[]"),), {"T": dtypes.INDEX}, infer=like("ref"),
       kernel="state.count_up_to", stateful=True),
    Op("TemporaryVariable", "state", "A variable for one run.", (),
       (Attr("shape", "shape", "Its shape."), Attr("dtype", "type", "Its type."),
        Attr("var_name", "string", "Its name; the block's where empty.", "")),
       (Output("ref", "dtype", "The variable.", "shape", ref=True),), {"dtype": dtypes.ALL}, infer=_variable_infer,
       kernel="state.temporary_variable", stateful=True),
    Op("DestroyTemporaryVariable", "state", "The last value of a temporary variable, which ends here.",
       (_REF,), (Attr("var_name", "string", "The name of the temporary variable."),),
       (Output("value", "T", "Its value.", "shape of ref"),), {"T": dtypes.ALL}, infer=like("ref"),
       kernel="state.destroy_temporary_variable", stateful=True),
    _rows("ScatterUpdate", "Set rows of a variable.", "scatter_update", dtypes.ALL, True),
    _rows("ScatterAdd", "Add to rows of a variable.", "scatter_add", dtypes.NUMBER, False),
    _rows("ScatterSub", "Subtract from rows of a variable.", "scatter_sub", dtypes.NUMBER, False),
    _rows("ScatterMul", "Multiply rows of a variable.", "scatter_mul", dtypes.NUMBER, False),
    _rows("ScatterDiv", "Divide rows of a variable.", "scatter_div", dtypes.NUMBER, False),
    _nd("ScatterNdUpdate", "Set slices of a variable.", "scatter_nd_update", dtypes.ALL, True),
    _nd("ScatterNdAdd", "Add to slices of a variable.", "scatter_nd_add", dtypes.NUMBER, False),
    _nd("ScatterNdSub", "Subtract from slices of a variable.", "scatter_nd_sub", dtypes.NUMBER, False),
)  # fmt: skip
