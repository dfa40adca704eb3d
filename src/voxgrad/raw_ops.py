# SPDX-License-Identifier: Apache-2.0
"""The ops as functions that compute at once: keyword arguments, names and defaults as in `tf.raw_ops`.

    import numpy as np, voxgrad as vg
    y = vg.raw_ops.MaxPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")

Any kind of array goes in (NumPy, torch, JAX, nested lists) and the same kind comes back. The functions are made from
the declarations in `voxgrad.catalog`; `raw_ops.pyi` shows their signatures to editors and is generated.
"""

from __future__ import annotations

import typing

from voxgrad.arrays import execute, fast, gpu, ordinary
from voxgrad.arrays.functions import RawOp, bind, dress
from voxgrad.catalog.model import Op
from voxgrad.catalog.registry import FAMILY, OPS, ORDINARY


def make_function(op: Op) -> RawOp:
    """The function of an op, with its signature and documentation."""

    calls, on_gpu = fast.known(op), gpu.kept(op)

    def windowed(*positional: typing.Any, **arguments: typing.Any) -> typing.Any:
        if not positional:
            result = fast.call(calls, arguments) if calls else fast.MISS
            if result is not fast.MISS:
                return result
            result = on_gpu.call(arguments)
            if result is not fast.MISS:
                return result
        return execute.execute(op, bind(op, positional, arguments))

    def plain(*positional: typing.Any, **arguments: typing.Any) -> typing.Any:
        return ordinary.execute(op, bind(op, positional, arguments))

    function = windowed if op.problem is not None else plain

    return dress(function, op, __name__)


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
