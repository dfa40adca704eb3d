# SPDX-License-Identifier: Apache-2.0
"""Declarations equal TensorFlow's: names, order, types, attributes, defaults. Each is documented and has a kernel."""

from __future__ import annotations

import ast
import base64
import inspect
from typing import Any

import pytest

import voxgrad as vg
from tests.grouped import grouped
from tests.vectors.catalogue.load import declarations
from voxgrad.catalog import dtypes
from voxgrad.catalog.describe import docstring
from voxgrad.catalog.model import Attr, Op
from voxgrad.catalog.registry import ALIASES, OPS, ORDINARY, find
from voxgrad.kernels.arraywise.evaluation import find_kernel
from voxgrad.raw_ops import callable_at_once

NAMES = [op.name for op in ORDINARY]
THEIRS = [op.name for op in ORDINARY if not op.own]
_KINDS = {"int": "int", "float": "float", "bool": "bool", "string": "string", "type": "type", "shape": "shape",
          "tensor": "tensor",
          "list(int)": "ints", "list(float)": "floats", "list(string)": "strings", "list(type)": "types",
          "list(shape)": "shapes"}  # fmt: skip

NARROWER = {
    # Only layouts of images as they are usually kept; the packed one is of one GPU library.
    "SpaceToDepth", "DepthToSpace", "MaxPool",
}  # fmt: skip
FEWER_TYPES = {"SparseTensorDenseMatMul", "QuantizedConcat", "QuantizedReshape"}
"""TensorFlow's declaration allows any type, its kernels numbers, or quantised ones only."""
HANDLES = {"LMDBReader"}
"""Its newer form, whose handle is no variable, is missing in TensorFlow; here it goes with the other readers."""
_QUANTISED = {dtype.enum_name for dtype in dtypes.QUANTISED}


def _types(attr: dict[str, Any] | None, fixed: str | None = None) -> set[str]:
    """The types of ours that a TensorFlow attribute or argument allows."""
    if fixed is not None:
        return {fixed}
    listed = (attr or {}).get("allowedValues", {}).get("list", {}).get("type")
    known = {dtype.enum_name for dtype in dtypes.ALL}
    if listed is None:
        return known
    # Where plain integers may go, quantised ones go as these.
    return known & set(listed) if "DT_INT32" in listed else (known | _QUANTISED) & set(listed)


def _ours(op: Op, type_: Any) -> set[str]:
    return {dtype.enum_name for dtype in op.allowed(type_)}


def test_what_is_ours_is_not_theirs() -> None:
    assert not {op.name for op in ORDINARY if op.own} & set(declarations())


@grouped("name", THEIRS, by=lambda name: OPS[name].group)
def test_arguments(name: str) -> None:
    op, declared = OPS[name], declarations()[name]
    attrs = {attr["name"]: attr for attr in declared.get("attr", [])}
    arguments = declared.get("inputArg", [])
    assert len(op.inputs) == len(arguments)
    for item, argument in zip(op.inputs, arguments, strict=True):
        key = argument.get("typeAttr") or argument.get("typeListAttr")
        assert item.many == bool(argument.get("numberAttr") or argument.get("typeListAttr")), item.name
        assert item.mixed == bool(argument.get("typeListAttr")), item.name
        assert item.ref == bool(argument.get("isRef")), item.name
        if name not in FEWER_TYPES:
            assert _ours(op, item.type) == _types(attrs.get(key), argument.get("type")), item.name
    for output, argument in zip(op.outputs, declared.get("outputArg", []), strict=True):
        assert output.name == argument["name"]
        assert output.many == bool(argument.get("numberAttr") or argument.get("typeListAttr")), output.name
        assert output.ref == bool(argument.get("isRef")) or name in HANDLES, output.name
        assert not output.many or output.count, output.name


@grouped("name", THEIRS, by=lambda name: OPS[name].group)
def test_what_tensorflow_would_rather_not_have_is_marked(name: str) -> None:
    assert OPS[name].deprecated == declarations()[name].get("deprecation", {}).get("explanation", "")


def _default(attr: dict[str, Any]) -> Any:
    """The default of a TensorFlow attribute, as ours holds it."""
    value = attr["defaultValue"]
    kind, is_list = attr["type"], attr["type"].startswith("list")
    if is_list:
        listed = value.get("list", {})
        if "f" in listed:
            return tuple(float(one) for one in listed["f"])
        return tuple(int(one) for one in listed["i"]) if "i" in listed else ()
    if kind == "shape":
        return None if value["shape"].get("unknownRank") else ()
    if kind == "type":
        return dtypes.named(value["type"])
    if kind == "string":
        return base64.b64decode(value.get("s", "")).decode()
    return {"int": lambda: int(value["i"]), "float": lambda: float(value["f"]), "bool": lambda: value.get("b", False)}[
        kind
    ]()


@grouped("name", THEIRS, by=lambda name: OPS[name].group)
def test_attributes(name: str) -> None:
    op, declared = OPS[name], {attr["name"]: attr for attr in declarations()[name].get("attr", [])}
    for attr in op.attrs:
        theirs = declared[{("Squeeze", "axis"): "squeeze_dims"}.get((name, attr.name), attr.name)]
        assert attr.kind == _KINDS[theirs["type"]]
        assert attr.required == ("defaultValue" not in theirs), attr.name
        if not attr.required:
            wanted = _default(theirs)
            assert attr.default == (pytest.approx(wanted, rel=1e-6) if "float" in attr.kind else wanted), attr.name
        listed = theirs.get("allowedValues", {}).get("list", {})
        if "s" in listed:
            texts = {base64.b64decode(one).decode() for one in listed["s"]}
            assert set(attr.choices) <= texts if name in NARROWER else set(attr.choices) == texts, attr.name
        if "type" in listed and attr.kind == "type":
            assert {dtype.enum_name for dtype in attr.choices} == _types(theirs), attr.name


@grouped("name", THEIRS, by=lambda name: OPS[name].group)
def test_signature(name: str) -> None:
    """The raw op is called as `tf.raw_ops` calls it."""
    signature = declarations()[name].get("signature")
    if signature is None:
        return
    op = OPS[name]
    assert [item.name for item in op.parameters] == [key for key in signature if key != "name"]
    for item in op.attrs:
        written = signature[item.name]
        assert (written is None) == item.required, item.name
    for variable, default in op.type_defaults.items():
        theirs = next(attr for attr in declarations()[name]["attr"] if attr["name"] == variable)
        assert theirs["defaultValue"]["type"] == default.enum_name


@grouped("name", NAMES, by=lambda name: OPS[name].group)
def test_is_documented_and_runs(name: str) -> None:
    op = OPS[name]
    assert op.summary.endswith(".") and op.infer is not None
    assert all(item.doc.endswith((".", ";")) or ". " in item.doc for item in (*op.inputs, *op.attrs, *op.outputs)), name
    assert op.summary in docstring(op)
    assert callable(find_kernel(op.kernel).function)
    if callable_at_once(op):
        function = getattr(vg.raw_ops, name)
        assert list(inspect.signature(function).parameters) == [*(item.name for item in op.parameters), "name"]


def test_defaults_are_shown() -> None:
    shown = inspect.signature(vg.raw_ops.Squeeze).parameters["axis"].default
    assert shown == ast.literal_eval(declarations()["Squeeze"]["signature"]["axis"])


def test_aliases_do_not_hide_ops() -> None:
    assert not set(ALIASES) & set(OPS)
    assert find("Multiply") is OPS["Mul"] and find("Where3") is OPS["Select"]


def test_examples_run() -> None:
    import numpy as np

    for op in ORDINARY:
        if op.example:
            exec(op.example, {"np": np, "vg": vg})  # the example of a declaration, not a user's text


def test_attributes_have_kinds() -> None:
    assert {item.kind for op in ORDINARY for item in op.parameters if isinstance(item, Attr)} <= set(_KINDS.values())
