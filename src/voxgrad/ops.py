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

import inspect
import typing
from collections.abc import Callable

from voxgrad.catalog import registry
from voxgrad.catalog.describe import docstring, shown_default
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Attr, Input, Op
from voxgrad.errors import Faults, InvalidArgumentError
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.page import Page
from voxgrad.graph.values import Array, literal, spec_of, to_array

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

    kinds = inspect.Parameter
    parameters = [kinds("page", kinds.POSITIONAL_ONLY)]
    for item in op.parameters:
        default = shown_default(item) if isinstance(item, Attr) else kinds.empty
        if not isinstance(item, Attr) or op.inputs == ():
            parameters.append(kinds(item.name, kinds.POSITIONAL_OR_KEYWORD))
        else:
            parameters.append(kinds(item.name, kinds.KEYWORD_ONLY, default=default))
    parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None))
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = __name__
    function.__doc__ = docstring(op)
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function


def add_block(
    page: Page, op: Op, arguments: tuple[typing.Any, ...], named: dict[str, typing.Any], name: str | None
) -> typing.Any:
    """Put an op on a page and return its outputs."""
    given = _bound(op, arguments, named)
    attrs = {attr.name: given[attr.name] for attr in op.attrs if given.get(attr.name) is not None}
    _complete_constant(op, attrs)
    block = page.add(op, attrs=attrs, name=name)
    inputs = {item: _listed(item, given[item.name]) for item in op.inputs}
    if not all(isinstance(one, Output) for values in inputs.values() for one in values):
        _make_constants(page, block, op, inputs)
    for item, values in inputs.items():
        for one in values:
            page.attach(block, item.name, one)
    return results_of(block, op)


def _bound(op: Op, arguments: tuple[typing.Any, ...], named: dict[str, typing.Any]) -> dict[str, typing.Any]:
    names = [item.name for item in op.parameters]
    faults = Faults(op.name)
    if len(arguments) > len(names):
        faults.add("VG001", "arguments", wanted=f"be at most {len(names)}", got=f"{len(arguments)} by position")
    given = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        if name not in names:
            faults.add("VG001", name, wanted=f"be one of {', '.join([*names, 'name'])}", got="an unknown argument")
        elif name in given:
            faults.add("VG001", name, wanted="be given once", got="twice")
        given[name] = value
    for item in op.inputs:
        if item.name not in given:
            faults.add("VG001", item.name, wanted="be given", got="no value", remedy=item.doc)
    faults.raise_if_any()
    return given


def _complete_constant(op: Op, attrs: dict[str, typing.Any]) -> None:
    """A constant without a stated type has the type of its value."""
    if op.name != "Const" or "value" not in attrs:
        return
    faults = Faults(op.name)
    dtype = attrs.get("dtype")
    if dtype is None:
        array = literal(op, Input("value", "dtype", ""), Value(attrs["value"]), None, faults)
        faults.raise_if_any()
        if array is not None:
            attrs["value"], attrs["dtype"] = array, spec_of(array).dtype


def _listed(item: Input, value: typing.Any) -> list[typing.Any]:
    if not item.many:
        return [_output(value)]
    values = value if isinstance(value, (list, tuple)) else [value]
    return [_output(one) for one in values]


def _output(value: typing.Any) -> typing.Any:
    return value.output(0) if isinstance(value, Block) else value


def _make_constants(page: Page, block: Block, op: Op, inputs: dict[Input, list[typing.Any]]) -> None:
    """Arrays and numbers become Const blocks, `block/pin`, of the type that the wires ask for."""
    bound: dict[str, DType] = {}
    for item, values in inputs.items():
        for one in values:
            dtype = one.dtype if isinstance(one, Output) and isinstance(item.type, str) and not item.mixed else None
            if dtype is not None:
                bound.setdefault(str(item.type), dtype)
    faults = Faults(op.name)
    root = page.store.root
    for item, values in inputs.items():
        for at, one in enumerate(values):
            if isinstance(one, Output):
                continue
            array = _constant(op, item, one, bound, faults)
            if array is not None:
                attrs = {"value": array, "dtype": spec_of(array).dtype}
                pin = f"{item.name}_{at}" if item.many else item.name
                values[at] = root.add("Const", attrs=attrs, name=f"{block.name}/{pin}").output(0)
    if faults:
        page.remove(block)
    faults.raise_if_any()


def _constant(op: Op, item: Input, value: typing.Any, bound: dict[str, DType], faults: Faults) -> Array | None:
    wanted = bound.get(str(item.type))
    array = literal(op, item, Value(value), wanted, faults)
    if array is None:
        return None
    dtype = spec_of(array).dtype
    allowed = op.allowed(item.type)
    if dtype is not None and dtype not in allowed and not hasattr(value, "dtype"):
        # A Python number is of no type yet: the nearest allowed one will do.
        array = to_array(value, next((one for one in allowed if one.kind == dtype.kind), allowed[0]))
        dtype = spec_of(array).dtype
    if isinstance(item.type, str) and dtype is not None and not item.mixed:
        bound.setdefault(item.type, dtype)
    return array


def results_of(block: Block, op: Op) -> typing.Any:
    """What a function returns: one Output, a tuple of several, lists where the op has lists, or the block itself."""
    found: list[typing.Any] = []
    index = 0
    for item in op.outputs:
        outputs = [Output(block, index + offset) for offset in range(block.count_of(item))]
        index += len(outputs)
        found.append(outputs if item.many else outputs[0])
    if not found:
        return block
    return found[0] if len(found) == 1 else tuple(found)
