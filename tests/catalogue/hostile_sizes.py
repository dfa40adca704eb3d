# SPDX-License-Identifier: Apache-2.0
"""Calls of every op with hostile sizes in their values, shapes and attributes; run by itself, in a child with limits.

    python -m tests.catalogue.hostile_sizes [--all] [--skip N] [OP ...]

A valid call of each op comes from the recorded ones, or from its declaration; then every number in it that could be a
size becomes a huge one. Each call must end within the limit of time and of memory, in a result or in an error of ours.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import voxgrad as vg
from tests.vectors.catalogue.load import recorded
from voxgrad.arrays import execute, ordinary
from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Attr, Input, Op
from voxgrad.catalog.registry import OPS
from voxgrad.graph.block import Output
from voxgrad.graph.page import Page
from voxgrad.graph.values import spec_of
from voxgrad.isolation import confine
from voxgrad.kernels.element_types import NUMBERS, numpy_type

LIMIT = 2**26
"""Bytes that a result may have."""
SECONDS = 2.0
"""Of processor time, that a call may take besides its results."""
PER_CELL = 2.5e-7
"""Seconds for every cell of a result, on a core that another thread shares: a drawn number takes half of it.
What is refused, or takes its time for few cells, has none of this."""
ROOM = 2**29
"""Bytes that a call may take in all: its result, copies and tables."""
HUGE = (300_000, 10**9, 2**31 - 1, 2**62, -(2**31))
FLOATS = (1e30, 1e-30, float("inf"), float("nan"))
Arguments = tuple[dict[str, Any], dict[str, Any]]

_MAKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Queue": ("FIFOQueueV2", {"component_types": ["float32"]}),
    "TensorArray": ("TensorArrayV3", {"dtype": "float32"}),
    "Reader": ("WholeFileReaderV2", {}),
    "Resource": ("VarHandleOp", {"dtype": "float32", "shape": None}),
    "AssignVariableOp": ("VarHandleOp", {"dtype": "float32", "shape": None}),
    "ReadVariableOp": ("VarHandleOp", {"dtype": "float32", "shape": None}),
}


class TooLong(BaseException):
    """Raised by the alarm; no op may catch it."""


def valid_calls(op: Op, count: int) -> list[Arguments]:
    """Some calls that mean something: recorded ones of different attributes and ranks, or one from the declaration."""
    found: dict[str, Arguments] = {}
    for one in recorded():
        if one.case.op == op.name:
            ranks = {name: _rank(value) for name, value in one.case.inputs.items()}
            found.setdefault(repr((one.case.attrs, ranks)), (one.case.inputs, one.case.attrs))
    return list(found.values())[:count] or [_declared_call(op)]


def _rank(value: Any) -> Any:
    return [one.ndim for one in value] if isinstance(value, list) else value.ndim


def _declared_call(op: Op) -> Arguments:
    inputs = {item.name: [_declared(op, item)] if item.many else _declared(op, item) for item in op.inputs}
    attrs = {attr.name: _attribute(op, attr) for attr in op.attrs if attr.required}
    return inputs, attrs


def _declared(op: Op, item: Input) -> Any:
    dtype = next((one for one in op.allowed(item.type) if one in NUMBERS), dtypes.FLOAT32)
    if dtypes.STRING in op.allowed(item.type) and op.allowed(item.type)[0] not in NUMBERS:
        return np.array(b"text", dtype=object)
    shape = (
        ()
        if item.shape == "[]"
        else (2,)
        if item.host or (item.shape.count(",") == 0 and item.shape)
        else (1, 4, 4, 4, 2)
    )
    return np.ones(shape, numpy_type(dtype))


def _attribute(op: Op, attr: Attr) -> Any:
    made: dict[str, Any] = {
        "int": 1, "ints": [1, 2, 2, 2, 1], "float": 1.0, "floats": [1.0], "bool": False, "string": "x",
        "strings": ["x"],
        "shape": [2, 3], "shapes": [[2, 3]], "tensor": np.ones((2, 3), np.float32),
    }  # fmt: skip
    if attr.choices:
        return attr.choices[0]
    if attr.kind in ("type", "types"):
        allowed = op.types.get(attr.name, (dtypes.FLOAT32,))
        one = (dtypes.FLOAT32 if dtypes.FLOAT32 in allowed else allowed[0]).name
        return one if attr.kind == "type" else [one]
    return made[attr.kind]


def hostile(op: Op, call: Arguments) -> Iterator[tuple[str, Arguments]]:
    """The call with one of its sizes made huge, in every way."""
    inputs, attrs = call
    for item in op.inputs:
        for label, value in _huge_inputs(inputs[item.name]):
            yield f"{item.name}={label}", (inputs | {item.name: value}, attrs)
    for attr in op.attrs:
        for value in _huge_attributes(attr, attrs.get(attr.name, attr.default)):
            yield f"{attr.name}={value!r:.40}", (inputs, attrs | {attr.name: value})
    host = [item.name for item in op.inputs if _whole(inputs[item.name])]
    for huge in (300_000, 2**31 - 1):
        if len(host) > 1:
            yield f"all={huge}", (inputs | {name: _filled(inputs[name], huge) for name in host}, attrs)


def _whole(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def _filled(array: Any, huge: Any) -> Any:
    info = np.iinfo(array.dtype)
    return np.full_like(array, min(max(huge, info.min), info.max))


def _huge_inputs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for label, one in _huge_inputs(value[-1]) if value else ():
            yield f"[..., {label}]", [*value[:-1], one]
        for count in (300,):
            yield f"{count} of them", (value * count)[:count]
        return
    if value.dtype.kind in "iu":
        for huge in HUGE:
            yield f"{huge}", _filled(value, huge)
            for at in {0, value.size - 1} if value.size > 1 else ():
                flat = value.ravel().copy()
                flat[at] = _filled(flat[:1], huge)[0]
                yield f"[{at}]:{huge}", flat.reshape(value.shape)
    if value.dtype.kind == "f" and value.size == 1:
        for huge in FLOATS:
            yield f"{huge}", np.full_like(value, huge)
    if value.dtype == object:
        return
    # Views of one element cost nothing, whatever they say of their size; and neither do empty arrays.
    for axis in range(value.ndim):
        if value.shape[axis]:
            cut = value[tuple(slice(0, 1) if at == axis else slice(None) for at in range(value.ndim))]
            yield (
                f"{10**9} along {axis}",
                np.broadcast_to(cut, [10**9 if at == axis else n for at, n in enumerate(value.shape)]),
            )
    if value.ndim > 1:
        yield "empty, 2**40 rows", np.empty((2**40, 0, *value.shape[2:]), value.dtype)


def _huge_attributes(attr: Attr, value: Any) -> Iterator[Any]:
    if attr.kind == "int":
        yield from HUGE
    elif attr.kind in ("ints", "shape"):
        sizes = list(value) if isinstance(value, (list, tuple)) else [1]
        for huge in HUGE:
            yield [huge] * len(sizes)
            for at in range(len(sizes)):
                yield [huge if at == i else one for i, one in enumerate(sizes)]
        yield [2] * 1000
    elif attr.kind == "shapes":
        for huge in HUGE:
            yield [[huge, huge]]
    elif attr.kind == "float":
        yield from FLOATS


def run_raw(op: Op, call: Arguments) -> list[Any]:
    """The call as a raw op makes it."""
    inputs, attrs = call
    run = execute.execute if op.problem is not None else ordinary.execute
    return _flat(run(op, {attr.name: attr.default for attr in op.attrs if not attr.required} | inputs | attrs))


def run_page(op: Op, call: Arguments, *, computed: bool) -> list[Any]:
    """The call as a block; `computed`: what enters is known only when the page runs."""
    inputs, attrs = call
    page = Page("case")
    feeds: dict[str, Any] = {}
    wires = {item.name: [_wire(page, op, item, one, feeds, computed) for one in inputs[item.name]] if item.many
             else _wire(page, op, item, inputs[item.name], feeds, computed) for item in op.inputs}  # fmt: skip
    block = page.add(op, wires, attrs, name="tested")
    problems = page.problems()
    page.infer().as_dict()
    if problems:
        raise vg.InvalidArgumentError([problem.fault for problem in problems])
    session = vg.ClientSession(page, cache=False)
    held = any(one.ref or one.type is dtypes.RESOURCE for one in op.outputs)
    return list(session.run([] if held else list(block.outputs), feeds, [block]))


def _wire(page: Page, op: Op, item: Input, value: Any, feeds: dict[str, Any], computed: bool) -> Output:
    if item.type is dtypes.RESOURCE:
        maker, attrs = next(made for name, made in _MAKERS.items() if op.name.startswith(name))
        entry = {"size": 4} if maker == "TensorArrayV3" else {}
        return page.add(maker, entry, attrs).output(0)
    spec = spec_of(value)
    if item.ref:
        variable = page.add("Variable", attrs={"shape": list(value.shape)[:8], "dtype": spec.dtype})
        page.start_with([page.add("Assign", {"ref": variable.output(0), "value": value})])
        return variable.output(0)
    made = page.add("Placeholder", attrs={"dtype": spec.dtype, "shape": [None] * value.ndim})
    feeds[made.name] = value
    if computed and value.dtype.kind in "iu":
        # What a page computes, inference does not know.
        ones = page.add("Const", attrs={"value": np.ones((), value.dtype), "dtype": spec.dtype})
        return page.add(
            "Maximum",
            {"x": made.output(0), "y": page.add("Minimum", {"x": ones.output(0), "y": made.output(0)}).output(0)},
        ).output(0)
    return made.output(0)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in _flat(part)]
    return [result]


WAYS = {
    "raw": run_raw,
    "page": lambda op, call: run_page(op, call, computed=False),
    "computed": lambda op, call: run_page(op, call, computed=True),
}


def ways_of(op: Op, every: bool) -> list[str]:
    """How an op can be called: raw or as a block, and as a block whose inputs only the run knows."""
    raw = op.name in vg.raw_ops.__all__
    return [*(["raw"] if raw else []), *(["page"] if every or not raw else []), "computed"]


def tried(op: Op, way: str, call: Arguments) -> str:
    """What is wrong with the outcome of a call; empty where nothing is."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS + LIMIT * PER_CELL)
    wrong, cells = "", 0
    try:
        with vg.limits(bytes=LIMIT):
            results = WAYS[way](op, call)
        cells = min(sum(one.size for one in results if isinstance(one, np.ndarray)), LIMIT)
        sizes = [one.nbytes for one in results if isinstance(one, np.ndarray) and one.base is None]
        if sum(sizes) > LIMIT:
            wrong = f"a result of {sum(sizes):,} bytes"
    except vg.VoxgradError as error:
        # Found out by the system, which is later than before.
        if "fit into memory" in str(error) or "MemoryError" in str(error):
            wrong = str(error)[:200]
    except TooLong:
        wrong = "no end"
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    took, grown = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if not wrong and grown * 1024 > ROOM:
        wrong = f"{grown * 1024:,} bytes taken"
    return wrong or (f"{took:.1f} s" if took > SECONDS + cells * PER_CELL else "")


def calls(names: list[str], count: int) -> Iterator[tuple[str, Op, str, Arguments]]:
    """All hostile calls of these ops, with their labels."""
    for name in names:
        op = OPS[name]
        if op.name == "Abort":
            continue
        for at, call in enumerate(valid_calls(op, count)):
            for label, changed in itertools.chain([("plain", call)], hostile(op, call)):
                for way in ways_of(op, count > 1):
                    yield f"{name}#{at} {way} {label}", op, way, changed


def main(names: list[str], skip: int, cases: int) -> None:
    """Try everything; one line of JSON before each call, and one with what was wrong."""
    confine(ROOM)

    def ring(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, ring)
    for number, (label, op, way, call) in enumerate(calls(names or list(OPS), cases)):
        if number < skip:
            continue
        sys.stdout.write(json.dumps({"at": number, "label": label}) + "\n")
        sys.stdout.flush()
        with contextlib.suppress(TooLong):
            wrong = tried(op, way, call)
            if wrong:
                sys.stdout.write(json.dumps({"at": number, "wrong": wrong}) + "\n")
    sys.stdout.write(json.dumps({"done": True}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="two calls of each op and every way to call it")
    options = parser.parse_args()
    main(options.names, options.skip, 2 if options.all else 1)
