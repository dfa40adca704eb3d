# SPDX-License-Identifier: Apache-2.0
"""The example of an op as a page that runs, and what it gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.arrays.intake import read
from voxgrad.arrays.literals import type_of
from voxgrad.catalog import dtypes
from voxgrad.catalog.examples import Counted, Example, Line, Typed, Wire, example_of
from voxgrad.catalog.model import Input, Op, Spec
from voxgrad.catalog.model import Output as Declared
from voxgrad.catalog.registry import OPS
from voxgrad.errors import Faults, UnimplementedError
from voxgrad.graph.block import Block, Output
from voxgrad.graph.gradients import gradients
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession
from voxgrad.graph.values import Array
from voxgrad.kernels.element_types import numpy_type

MOST_TYPED = 6
"""Elements of a value that stands on its pin; a larger one, and every tensor that a gradient may follow, is a block."""


@dataclass(frozen=True, slots=True)
class ExamplePage:
    """A page, the block that it is about, and the outputs that it shows."""

    page: Page
    block: Block
    shown: tuple[Output, ...]
    feeds: Mapping[str, Any]

    def run(self) -> dict[str, Array]:
        """What the outputs that it shows hold after one run, by their paths; a dead one has none. Files that the
        example writes are gone afterwards."""
        found: dict[str, Array] = {}
        wanted = {(one.block.name, one.index): one.path for one in self.shown}

        def take(name: str, results: list[Array | None]) -> None:
            for index, value in enumerate(results):
                if value is not None and (name, index) in wanted:
                    found[wanted[name, index]] = np.array(value)

        with tempfile.TemporaryDirectory() as folder:
            session = ClientSession(self.page, allow_files=Path(folder), on_values=take, log=lambda line: None)
            session.run([], self.feeds, self.page.targets)
        return {path: found[path] for path in wanted.values() if path in found}


def example_page(op: Op) -> ExamplePage | None:
    """The page of an op's example, where it has one."""
    example = example_of(op.name)
    return None if example is None else page_of(op.name, example)


def page_of(title: str, example: Example, floats: bool = False) -> ExamplePage:
    """The page of an example. It is about the block of the op that the title names, else about the last."""
    page = _page(title, example, floats)
    named = [page[line.name] for line in example.lines if line.op == title and not line.first]
    about = named[0] if named else page[example.lines[-1].name]
    lines = [page[line.name] for line in example.lines if not line.first]
    late = lines[lines.index(about) :]
    own = [
        one for block in late for one in block.outputs if _has_value(one) and (block is about or not _declared(one).ref)
    ]
    shown = own or [one for block in lines for one in block.outputs if _has_value(one)]
    return ExamplePage(page, about, tuple(shown), example.feeds)


def gradient_page(op: Op) -> Page | None:
    """The example of an op, with fractions where it has whole numbers, and the blocks of its gradient; None where no
    gradient flows."""
    written = example_of(op.name)
    if written is None or op.gradient is None:
        return None
    example = page_of(op.name, written, floats=True)
    page = example.page
    floats = [one for one in example.block.outputs if one.spec.dtype is not None and one.spec.dtype.kind == "float"]
    starts = [
        one
        for sources in example.block.sources.values()
        for one in sources
        if isinstance(one, Output) and _is_differentiable(one)
    ]
    ys = floats or [one for one in example.block.outputs if _is_differentiable(one)]
    if not ys or not starts:
        return None
    try:
        found = gradients(ys[:1], starts)
    except UnimplementedError:
        return None
    return page if any(one is not None for one in found) else None


def _is_differentiable(output: Output) -> bool:
    return output.spec.dtype is not None and output.spec.dtype.kind in ("float", "complex")


def _page(title: str, example: Example, floats: bool) -> Page:
    page = Page(title)
    for line in example.lines:
        _add(page, line, floats)
    started = [page[line.name] for line in example.lines if line.first]
    page.start_with(started)
    fed = example.feeds
    page.execute([page[line.name] for line in example.lines if not line.first and line.name not in fed])
    return page


def _has_value(output: Output) -> bool:
    """False for what only names something: handles, variables, the order of writing to an array of tensors."""
    item = _declared(output)
    names = item.type is dtypes.RESOURCE or (item.ref and not output.block.input_names)
    return not names and "flow" not in item.name and "handle" not in item.name


def _declared(output: Output) -> Declared:
    assert output.block.op is not None
    return next(one for one in output.block.op.outputs if output.pin.startswith(one.name))


def _add(page: Page, line: Line, floats: bool) -> Block:
    op = OPS[line.op]
    attrs = {attr.name: line.arguments[attr.name] for attr in op.attrs if attr.name in line.arguments}
    if line.op == "Const":
        value = _plain(page, attrs["value"], floats=False)
        attrs["value"] = value if isinstance(value, np.ndarray) else _array(attrs["dtype"], value)
    given = {
        item.name: [
            _plain(page, one, floats and not item.host and dtypes.FLOAT32 in op.allowed(item.type))
            for one in (line.arguments[item.name] if item.many else [line.arguments[item.name]])
        ]
        for item in op.inputs
    }
    block = page.add(op, _sources(page, op, given, _most_typed(line, floats)), attrs, name=line.name)
    for other in line.after:
        page.run_after(block, page[other])
    return block


def _array(type_: str, value: Any) -> Array:
    dtype = dtypes.named(type_)
    assert dtype is not None, type_
    return np.array(value, numpy_type(dtype))


def _plain(page: Page, value: Any, floats: bool) -> Any:
    if isinstance(value, Wire):
        return page[value.line].output(value.output)
    if isinstance(value, Typed):
        return _array(value.dtype, value.value)
    if isinstance(value, Counted):
        return (value.start + np.arange(np.prod(value.shape), dtype=np.float32)).reshape(value.shape)
    array = np.array(value) if floats else None
    return value if array is None or array.dtype.kind != "i" else array.astype(np.float32)


def _most_typed(line: Line, floats: bool) -> Callable[[Input, Array], int]:
    """How many elements of a value stand on its pin: none where a gradient may follow it."""

    def most(item: Input, array: Array) -> int:
        followed = floats and array.dtype.kind == "f" and not item.host
        return MOST_TYPED if not followed and (item.host or array.ndim == 0 or line.first) else -1

    return most


def _sources(
    page: Page, op: Op, given: Mapping[str, list[Any]], most: Callable[[Input, Array], int]
) -> dict[str, list[Any]]:
    """Values as blocks, those of a few elements that nothing is derived by on their pins."""
    faults = Faults(op.name)
    known = {name: [one.spec if isinstance(one, Output) else one for one in some] for name, some in given.items()}
    arrays = read(op, known, faults)
    faults.raise_if_any()
    return {
        item.name: list(_wired(page, item, given[item.name], arrays[item.name], most))
        for item in op.inputs
        if given[item.name]
    }


def _wired(
    page: Page, item: Input, given: list[Any], arrays: list[Any], most: Callable[[Input, Array], int]
) -> Iterator[Any]:
    for at, (value, array) in enumerate(zip(given, arrays, strict=True)):
        if isinstance(array, Spec):
            yield value
        elif array.size <= most(item, array):
            yield array
        else:
            name = f"{item.name}_{at}" if item.many else item.name
            yield page.add("Const", attrs={"value": array, "dtype": type_of(array)}, name=name).output(0)
