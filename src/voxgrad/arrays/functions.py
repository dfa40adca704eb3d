# SPDX-License-Identifier: Apache-2.0
"""Declarations as Python functions: the names of their arguments, their signatures and their documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from voxgrad.catalog.describe import docstring, shown_default
from voxgrad.catalog.model import Attr, Op
from voxgrad.errors import Faults

RawOp = Callable[..., Any]


def bind(op: Op, positional: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, after a check of the names."""
    names = [item.name for item in op.parameters]
    faults = Faults(op.name)
    if positional:
        remedy = f"Name them: {op.name}({', '.join(f'{name}=...' for name in names[: len(positional)])})."
        faults.add("VG001", "arguments", wanted="be given by name", got=f"{len(positional)} by position", remedy=remedy)
    for name in given:
        if name not in names and name != "name":
            faults.add("VG001", name, wanted=f"be one of {', '.join([*names, 'name'])}", got="an unknown argument")
    for item in op.parameters:
        if item.name not in given and not (isinstance(item, Attr) and not item.required) and not positional:
            faults.add("VG001", item.name, wanted="be given", got="no value", remedy=item.doc)
    faults.raise_if_any()
    return given


def dress(function: RawOp, op: Op, module: str, *more: str) -> RawOp:
    """Give a function the name, signature and documentation of an op; `more` are arguments of its own, asked first."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword) for name in more]
    for item in op.parameters:
        default = shown_default(item) if isinstance(item, Attr) else inspect.Parameter.empty
        parameters.append(inspect.Parameter(item.name, keyword, default=default))
    parameters.append(inspect.Parameter("name", keyword, default=None))
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = module
    function.__doc__ = docstring(op)
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function
