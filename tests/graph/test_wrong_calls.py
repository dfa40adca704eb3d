# SPDX-License-Identifier: Apache-2.0
"""Every public function with every kind of wrong argument: an error of ours, or a right answer; never a raw one."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.errors import CODES


class Mute:
    """What cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no name")


def ring() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def deep() -> Any:
    made: Any = 1
    for _ in range(500):
        made = [made]
    return made


WRONG: dict[str, Any] = {
    "None": None, "True": True, "0": 0, "-1": -1, "2**31": 2**31, "2**70": 2**70, "0.5": 0.5, "nan": math.nan,
    "inf": math.inf, "1j": 1j, "''": "", "text": "no such thing", "path": "a/../b:0", "\\0": "\0", "long": "x" * 9999,
    "bytes": b"\xff", "[]": [], "[None]": [None], "[0]": [0], "['x']": ["x"], "()": (), "nested": [[["x"]]],
    "ragged": [[1], [1, 2]], "ring": ring(), "deep": deep(), "{}": {}, "{1: 2}": {1: 2}, "{None}": {None: None},
    "{'do'}": {"do": "add"}, "set": {1}, "object": object(), "Mute": Mute(), "[Mute]": [Mute()], "class": int,
    "lambda": lambda *a, **k: None, "raises": lambda *a, **k: 1 / 0, "generator": (x for x in [1]), "array": np.ones(3),
    "empty": np.ones((0, 2)), "scalar": np.float32(2), "masked": np.ma.ones(2), "objects": np.array([object()]),
    "structured": np.zeros(2, "i4,f4"), "complex": np.ones(2, complex), "module": math, "error": ValueError("x"),
    "slice": slice(3), "Ellipsis": ..., "range": range(3), "Path": Path("none"), "Page": vg.Page("other"),
    "Output": vg.ops.Const(vg.Page("other"), 1.0),
}  # fmt: skip


class Stage:
    """A page, its session and right arguments, made anew for every call."""

    def __init__(self) -> None:
        self.page = vg.Page("stage")
        self.x = vg.ops.Placeholder(self.page, dtype="float32", shape=[2], name="x")
        self.y = vg.ops.Square(self.page, self.x, name="y")
        self.v = vg.ops.VariableV2(self.page, shape=[2], dtype="float32", name="v")
        inner = vg.Page("inner")
        inner.expose({"out": vg.ops.Relu(inner, vg.ops.Placeholder(inner, dtype="float32", shape=[2], name="in"))})
        self.page.define("inner", inner)
        self.page.use("inner", {"in": self.x}, name="used")
        self.session = vg.ClientSession(self.page)

    def right(self) -> dict[str, Any]:
        """One right value for every name of an argument."""
        return {
            "name": "z", "block": "y", "blocks": ["y"], "which": "y", "pin": "x", "source": "x", "value": [1.0, 2.0],
            "op": "Relu", "page": "inner", "fetches": "y", "feeds": {"x": [1.0, 2.0]}, "variable": "v", "x": 1.0,
            "outputs": {"o": "y"}, "fix": [], "data": self.page.to_dict(), "count": 1,
            "earlier": vg.ClientSession(self.page), "y": 2.0,
            "semantics": "documented", "device": "cpu", "unique": True, "ys": [self.y], "xs": [self.x], "given": 1.0,
        }  # fmt: skip


def methods(kind: type, make: Callable[[Stage], Any], skip: set[str]) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and name not in skip and callable(member):
            yield (
                f"{kind.__name__}.{name}",
                (inspect.signature(member), lambda stage, name=name: getattr(make(stage), name)),
            )


SAVES = {"save", "load", "allow_files"}
CALLS: dict[str, Any] = {
    **dict(methods(vg.Page, lambda stage: stage.page, SAVES)),
    **dict(methods(vg.ClientSession, lambda stage: stage.session, set())),
    **{
        name: (inspect.signature(function), lambda stage, function=function: function)
        for name, function in {
            "Page": vg.Page, "ClientSession": vg.ClientSession, "gradients": vg.gradients, "limits": vg.limits,
            "check_gradients": vg.check_gradients, "semantics": vg.semantics, "explain": vg.explain,
            "open_volume": vg.open_volume, "from_dict": vg.Page.from_dict, "load": vg.Page.load,
        }.items()
    },
}  # fmt: skip
ONLY_RIGHT = {("ClientSession.loop", "count", "2**31"), ("ClientSession.loop", "count", "2**70")}
"""As many cycles as were asked for."""


def wrongly(call: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> str:
    """What is wrong with how a call ends, or nothing."""
    try:
        call(*positional, **named)
    except vg.VoxgradError as error:
        faults = error.faults
        told = faults and all(fault.code in CODES and fault.op and fault.wanted and fault.got for fault in faults)
        return "" if told else f"an error without a fault: {error!r}"
    except (ZeroDivisionError, RuntimeError) as error:
        # The caller's own function.
        return "" if "division by zero" in str(error) else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def arguments(signature: inspect.Signature, stage: Stage, about: str) -> tuple[list[Any], dict[str, Any]]:
    right = stage.right()
    if about == "ClientSession" or about == "check_gradients":
        right["page"] = stage.page
    if about == "Page.define":
        right["page"] = vg.Page("more")
    if about == "Page.inline":
        right["block"] = "used"
    positional, named = [], {}
    for parameter in signature.parameters.values():
        if parameter.name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty or parameter.name == "feeds":
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = right.get(parameter.name, 1)
            else:
                positional.append(right.get(parameter.name, "y"))
    return positional, named


@pytest.mark.parametrize("about", CALLS)
def test_wrong_values(about: str, tmp_path: Path) -> None:
    signature, of = CALLS[about]
    names = [one for one in signature.parameters.values() if one.name != "self"]
    found = []
    with contextlib.chdir(tmp_path):
        for parameter in names:
            for kind, value in WRONG.items():
                if (about, parameter.name, kind) in ONLY_RIGHT:
                    continue
                stage = Stage()
                positional, named = arguments(signature, stage, about)
                order = [one.name for one in names if one.kind is not one.KEYWORD_ONLY]
                if parameter.kind is parameter.VAR_POSITIONAL:
                    positional.append(value)
                elif parameter.kind is parameter.VAR_KEYWORD:
                    named["more"] = value
                elif parameter.name in order and order.index(parameter.name) < len(positional):
                    positional[order.index(parameter.name)] = value
                else:
                    named[parameter.name] = value
                problem = wrongly(of(stage), positional, named)
                if problem:
                    found.append(f"{parameter.name}={kind}: {problem}"[:160])
        stage = Stage()
        positional, named = arguments(signature, stage, about)
        for wrong in ([*positional, *[1] * 9], {"no_such_argument": 1}):
            positional_, named_ = (wrong, named) if isinstance(wrong, list) else (positional, {**named, **wrong})
            if problem := wrongly(of(Stage()), positional_, named_):
                found.append(f"{wrong}: {problem}"[:160])
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "name", ["Const", "Placeholder", "AddV2", "MaxPool3D", "Pack", "Assign", "Sum", "Cast", "FIFOQueueV2"]
)
def test_wrong_values_for_ops(name: str) -> None:
    """On a page what is wrong is told at once, or as a problem of the page, or when it is run."""
    function = getattr(vg.ops, name)
    signature = inspect.signature(function)
    found = []
    for parameter in list(signature.parameters.values()):
        for kind, value in WRONG.items():
            stage = Stage()

            def call(parameter: Any = parameter, value: Any = value, stage: Stage = stage) -> None:
                named = {}
                for one in list(signature.parameters.values())[1:]:
                    if one.default is one.empty:
                        named[one.name] = [1] * 5 if one.name[-1] == "s" else stage.x
                page = stage.page
                if parameter.name == "page":
                    page = value
                else:
                    named[parameter.name] = value
                made = function(page, **named)
                page.problems()
                outputs = made if isinstance(made, (list, tuple)) else [made]
                vg.ClientSession(page).run([], {"x": [1.0, 2.0]}, outputs)

            if problem := wrongly(call, [], {}):
                found.append(f"{parameter.name}={kind}: {problem}"[:160])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["Relu", "AddV2", "MaxPool3D", "Pack", "Sum", "Cast", "Const", "Split", "Fill"])
def test_wrong_values_for_raw_ops(name: str) -> None:
    function = getattr(vg.raw_ops, name)
    signature = inspect.signature(function)
    given = {"ksize": [1] * 5, "strides": [1] * 5, "padding": "SAME", "DstT": "int32", "dtype": "float32", "axis": 0,
             "dims": [2], "num_split": 1}  # fmt: skip
    found = []
    for parameter in signature.parameters.values():
        for kind, value in WRONG.items():
            named = {
                one.name: given.get(one.name, [1.0])
                for one in signature.parameters.values()
                if one.default is one.empty
            }
            named[parameter.name] = value
            if problem := wrongly(function, [], named):
                found.append(f"{parameter.name}={kind}: {problem}"[:160])
    assert not found, "\n".join(found)


PLAIN: dict[str, Any] = {"strides": 1, "padding": "SAME", "data_format": "NDHWC"}
FILTER: dict[str, Any] = {"filter": np.ones((2, 2, 2, 2, 2), np.float32), "bias": None, "dilations": 1, **PLAIN}
PLAIN_CALLS: dict[str, dict[str, Any]] = {
    vg.nn.avg_pool3d.__name__: {"ksize": 2, **PLAIN},
    vg.nn.max_pool3d.__name__: {"ksize": 2, **PLAIN},
    vg.nn.conv3d.__name__: FILTER,
    vg.nn.conv3d_transpose.__name__: {"groups": 1, "output_padding": 0, **FILTER},
}


def wrong_plain_calls(function: Callable[..., Any], right: dict[str, Any]) -> list[str]:
    """What is wrong with how a function takes every wrong value for every argument, and too few or too many of them."""
    found = []
    for name in right:
        for kind, value in WRONG.items():
            if problem := wrongly(function, [], right | {name: value}):
                found.append(f"{name}={kind}: {problem}"[:160])
    for wrong in ({}, right | {"no_such_argument": 1}):
        if problem := wrongly(function, [], wrong):
            found.append(f"{list(wrong)}: {problem}"[:160])
    return found


@pytest.mark.parametrize("name", PLAIN_CALLS)
def test_wrong_values_for_plain_functions(name: str) -> None:
    x = np.ones((1, 3, 3, 3, 2), np.float32)
    assert not wrong_plain_calls(getattr(vg.nn, name), {"input": x} | PLAIN_CALLS[name])


def test_everything_that_is_wrong_with_a_call_is_told_together() -> None:
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.ClientSession(vg.Page()).run(5, feeds=7, targets=object())  # type: ignore[arg-type]
    assert [(one.code, one.op, one.argument) for one in caught.value.faults] == [
        ("VG002", "ClientSession.run", name) for name in ("fetches", "feeds", "targets")
    ]
    with pytest.raises(TypeError, match="VG001 gradients: arguments must be ys, xs, grad_ys"):
        vg.gradients()  # type: ignore[call-arg]
