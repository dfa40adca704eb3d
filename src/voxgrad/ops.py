# SPDX-License-Identifier: Apache-2.0
"""The ops as functions that put a block on a page, after TensorFlow's C++ API: the page is the scope.

    page = vg.Page("example")
    x = vg.ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 1], name="x")
    y = vg.ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
    y.shape  # (N, floor(D/2), floor(H/2), floor(W/2), 1)

Inputs come by position or by name: outputs of other blocks, or arrays and numbers, which become Const blocks of the
type that the other inputs ask for. One output comes back as an Output, several as a tuple, a list of outputs as a list,
none as the Block. The functions are made from the declarations in `voxgrad.catalog` when they are first used.
"""

from __future__ import annotations

import typing
from collections.abc import Callable

from voxgrad.catalog import registry
from voxgrad.catalog.describe import docstring
from voxgrad.catalog.model import Op
from voxgrad.errors import InvalidArgumentError
from voxgrad.graph.build import add_block, signature
from voxgrad.graph.page import Page

# Names here must not be names of ops: `Any` is one.
__all__ = list(registry.OPS)


def __getattr__(name: str) -> Callable[..., typing.Any]:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        op = registry.find(name)
    except InvalidArgumentError as error:
        raise AttributeError(str(error)) from None
    function = make_function(op)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(__all__)


def make_function(op: Op) -> Callable[..., typing.Any]:
    """The function of an op, with its signature and documentation."""

    def function(page: Page, /, *arguments: typing.Any, name: str | None = None, **named: typing.Any) -> typing.Any:
        return add_block(page, op, arguments, named, name)

    function.__name__ = function.__qualname__ = op.name
    function.__module__ = __name__
    function.__doc__ = docstring(op)
    function.__signature__ = signature(op)  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function
