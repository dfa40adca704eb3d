# SPDX-License-Identifier: Apache-2.0
"""The ops as functions that compute at once: keyword arguments, names and defaults as in `tf.raw_ops`.

    import numpy as np, voxgrad as vg
    y = vg.raw_ops.MaxPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")

Any kind of array goes in (NumPy, torch, JAX, nested lists) and the same kind comes back. The functions are made from
the declarations in `voxgrad.catalog`; `raw_ops.pyi` shows their signatures to editors and is generated.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable

from voxgrad.arrays import execute, fast, ordinary
from voxgrad.catalog.describe import docstring, shown_default
from voxgrad.catalog.model import Attr, Op
from voxgrad.catalog.registry import FAMILY, OPS, ORDINARY
from voxgrad.errors import Faults

RawOp = Callable[..., typing.Any]


def bind(op: Op, positional: tuple[typing.Any, ...], given: dict[str, typing.Any]) -> dict[str, typing.Any]:
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


def make_function(op: Op) -> RawOp:
    """The function of an op, with its signature and documentation."""

    def windowed(*positional: typing.Any, **arguments: typing.Any) -> typing.Any:
        if not positional:
            result = fast.call(op, arguments)
            if result is not fast.MISS:
                return result
        return execute.execute(op, bind(op, positional, arguments))

    def plain(*positional: typing.Any, **arguments: typing.Any) -> typing.Any:
        return ordinary.execute(op, bind(op, positional, arguments))

    function = windowed if op.problem is not None else plain

    return dress(function, op, __name__)


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


def callable_at_once(op: Op) -> bool:
    """True for ops that need no session: no variables, queues, files or fed values."""
    return not op.stateful and op.name not in _SESSION_ONLY


_SESSION_ONLY = ("Placeholder",)
__all__ = [op.name for op in (*FAMILY, *ORDINARY) if callable_at_once(op)]
globals().update({op.name: make_function(op) for op in FAMILY})


def __getattr__(name: str) -> RawOp:
    """Functions of ordinary ops are made when they are first asked for, which keeps the import quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = make_function(OPS[name])
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
