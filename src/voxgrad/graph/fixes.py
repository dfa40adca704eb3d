# SPDX-License-Identifier: Apache-2.0
"""Repairs for what is wrong on a page: each a title for people and edits as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from voxgrad.arrays.kinds import dtype_of
from voxgrad.catalog import problem, registry
from voxgrad.catalog.dims import all_known
from voxgrad.catalog.dtypes import FLOAT32, DType
from voxgrad.catalog.model import Attr, Call, Input, Side, Spec
from voxgrad.errors import Fault, Faults, show
from voxgrad.graph.block import Block, Output, Value
from voxgrad.graph.data import plain
from voxgrad.graph.order import downstream
from voxgrad.graph.problems import Fix
from voxgrad.graph.rules import host_values, infer_call

if TYPE_CHECKING:
    from voxgrad.graph.infer import Inference

MAX_CANDIDATES = 256
"""On larger pages a missing wire is left to the person."""
MAX_TYPED = 4096
"""Elements of a constant that a fix writes anew."""

Fixes = Sequence[Fix]
_Maker = Callable[["Inference", Block, Fault, Any], Fixes]


def fixes_for(inference: Inference, block: Block, fault: Fault, expected: Any) -> tuple[Fix, ...]:
    """The repairs of one fault, the best one first."""
    maker = _MAKERS.get(fault.code)
    return tuple(maker(inference, block, fault, expected)) if maker is not None and block.op is not None else ()


def _attr(block: Block, name: str) -> Attr | None:
    return next((attr for attr in block.op.attrs if attr.name == name), None) if block.op is not None else None


def _item(block: Block, name: str) -> Input | None:
    """The input behind an argument; `inputs[2]` is an entry of `inputs`."""
    pin = name.partition("[")[0]
    return next((item for item in block.op.inputs if item.name == pin), None) if block.op is not None else None


def _entry(name: str) -> int | None:
    inside = name.partition("[")[2].rstrip("]")
    return int(inside) if inside.isdecimal() else None


def _set(block: Block, attr: str, value: Any) -> Fix:
    title = f"Set {attr} to {value if isinstance(value, str) else show(value)}"
    return Fix(title, ({"do": "set_attr", "block": block.name, "attr": attr, "value": value},))


def _missing(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG001: an argument that is missing, unknown, or there too often."""
    name = fault.argument
    attr, item = _attr(block, name), _item(block, name)
    if attr is not None:
        if attr.choices:
            return [_set(block, name, choice) for choice in attr.choices]
        return [_set(block, name, [1] * attr.length)] if attr.kind == "ints" and attr.length else []
    if item is None:
        if name in block.attrs:
            return [Fix(f"Take {name} away", ({"do": "set_attr", "block": block.name, "attr": name, "value": None},))]
        return [Fix(f"Take {name} away", ({"do": "disconnect", "block": block.name, "pin": name},))]
    if block.sources.get(name):
        extra = range(len(block.sources[name]) - 1, 0, -1)
        edits = tuple({"do": "disconnect", "block": block.name, "pin": name, "at": at} for at in extra)
        return [Fix(f"Keep the first wire of {name}", edits)]
    fitting = _fitting(inference, block, item)
    if len(fitting) != 1:
        return []
    edit = {"do": "connect", "from": fitting[0].path, "block": block.name, "pin": name}
    return [Fix(f"Connect {name} to {fitting[0].path}, the only one that fits", (edit,))]


def _fitting(inference: Inference, block: Block, item: Input) -> list[Output]:
    """All outputs that could be wired to a pin without making a ring or a new problem."""
    call = inference.calls.get(block)
    if call is None or len(inference.specs) > MAX_CANDIDATES:
        return []
    behind = downstream([block])
    return [
        Output(other, index)
        for other in inference.store.blocks.values()
        if other not in behind
        for index, spec in enumerate(inference.specs.get(other, ()))
        if spec.dtype is not None and spec.shape is not None and _fits(call, item, spec)
    ]


def _fits(call: Call, item: Input, spec: Spec) -> bool:
    if item.host and spec.value is not None:
        spec = replace(spec, value=host_values(spec.value))
    trial = replace(call, inputs={**call.inputs, item.name: (spec,) if item.many else spec})
    faults = Faults(call.op.name)
    infer_call(trial, faults)
    return not any(fault.argument.startswith(item.name) for fault in faults.found)


def _choice(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG003: a value outside the list of allowed ones."""
    attr = _attr(block, fault.argument)
    if attr is None or not attr.choices:
        return []
    given = str(block.attrs.get(attr.name)).strip().lower()
    near = [choice for choice in attr.choices if str(choice).lower() == given]
    likely = near or ([attr.default] if attr.default in attr.choices else list(attr.choices))
    return [_set(block, attr.name, choice) for choice in likely]


def _length(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG004: three spatial entries, or one for all, where every dimension has its own."""
    attr, given = _attr(block, fault.argument), block.attrs.get(fault.argument)
    if attr is None or attr.length != 5 or not isinstance(given, (list, tuple)) or len(given) not in (1, 3):
        return []
    inner = list(given) * 3 if len(given) == 1 else list(given)
    last = str(block.attrs.get("data_format")) != problem.DATA_FORMATS[1]
    return [_set(block, attr.name, [1, *inner, 1] if last else [1, 1, *inner])]


def _one(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG006, VG007: an entry of a window that can only be 1, or must be positive."""
    name, at = fault.argument.partition("[")[0], _entry(fault.argument)
    given = block.attrs.get(name)
    if at is None or not isinstance(given, (list, tuple)) or at >= len(given):
        return []
    return [_set(block, name, [1 if index == at else value for index, value in enumerate(given)])]


def _cast(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG011: a Cast between the wire and the pin."""
    item, at = _item(block, fault.argument), _entry(fault.argument) or 0
    sources = block.sources.get(item.name, []) if item is not None else []
    if item is None or block.op is None or at >= len(sources) or "Cast" not in registry.OPS:
        return []
    allowed = block.op.allowed(item.type)
    wanted = expected if isinstance(expected, DType) else FLOAT32 if FLOAT32 in allowed else allowed[0]
    title = f"Cast {fault.argument} to {wanted}"
    source = sources[at]
    if isinstance(source, Value):
        edit = {"do": "set_value", "block": block.name, "pin": item.name, "value": source.value, "dtype": wanted.name}
        return [] if item.many else [Fix(title, (edit,))]
    name = inference.store.root.unique_name(f"{block.name}_{item.name}_cast")
    add = {"do": "add", "op": "Cast", "name": name, "attrs": {"DstT": wanted.name},
           "inputs": {"x": [{"from": source.path}]}}  # fmt: skip
    return [Fix(title, (add, _connect(block, item, at, f"{name}.y")))]


def _connect(block: Block, item: Input, at: int, path: str) -> dict[str, Any]:
    edit: dict[str, Any] = {"do": "connect", "from": path, "block": block.name, "pin": item.name}
    return edit | {"at": at} if item.many else edit


def _shape(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG012: a tensor of the shape that follows from the other arguments."""
    item, call = _item(block, fault.argument), inference.calls.get(block)
    if item is None or call is None or block.op is None or item.many or expected is None:
        return []
    computed = computed_pool(inference, block) if item.name == block.op.maxima else []
    fixes = [*computed, *_alike(inference, block, item, call, expected)]
    if not fixes and all_known(expected):
        fixes.extend(_filled(inference, block, item, call, expected))
    exchanged = _exchanged(inference, block, item)
    # Where the shape that is stated is the one of the pool's output, input and output were exchanged.
    return [*exchanged, *fixes] if exchanged and _is_exchanged(call, item) else [*fixes, *exchanged]


def computed_pool(inference: Inference, block: Block) -> Fixes:
    """The output of the pool that a gradient belongs to, from its input."""
    op = block.op
    sources = block.sources.get(op.inputs[0].name, []) if op is not None and op.maxima else []
    if op is None or len(sources) != 1 or not isinstance(sources[0], Output):
        return []
    forward, item = registry.OPS[op.of], op.input(op.maxima)
    name = inference.store.root.unique_name(f"{block.name}_{forward.name}")
    add = {"do": "add", "op": forward.name, "name": name, "attrs": dict(block.attrs),
           "inputs": {forward.inputs[0].name: [{"from": sources[0].path}]}}  # fmt: skip
    edits = (add, _connect(block, item, 0, f"{name}.output"), *without_the_old(block, item.name))
    return [Fix(f"Compute {item.name} with {forward.name}", edits)]


def without_the_old(block: Block, pin: str) -> list[dict[str, Any]]:
    """A constant that only this pin read goes with its wire."""
    source = block.sources[pin][0] if block.sources.get(pin) else None
    if not isinstance(source, Output) or source.block.op_name != "Const" or not _only_reader(source, block, pin):
        return []
    return [{"do": "remove", "block": source.block.name}]


def _only_reader(source: Output, block: Block, pin: str) -> bool:
    store = source.block.store
    named = {one.block for one in store.outputs.values()} | {*store.targets, *store.initializers}
    uses = sum(one == source for sources in block.sources.values() for one in sources)
    return source.block.readers == (block,) and uses == len(block.sources[pin]) == 1 and source.block not in named


def as_the_pool(block: Block, forward: Block, attrs: Mapping[str, Any]) -> Fix:
    """The attributes of a gradient as the block has them that it is the gradient of."""
    listed = ", ".join(f"{name} {value if isinstance(value, str) else show(value)}" for name, value in attrs.items())
    edits = [
        {"do": "set_attr", "block": block.name, "attr": name, "value": plain(value)} for name, value in attrs.items()
    ]
    return Fix(f"Take {listed} from {forward.name}", tuple(edits))


def ones_instead(inference: Inference, block: Block, pin: str) -> Fixes:
    """Ones in place of a tensor that is zero everywhere."""
    sources = block.sources.get(pin, [])
    if block.op is None or len(sources) != 1 or not isinstance(sources[0], Output):
        return []
    name = inference.store.root.unique_name(f"{block.name}_{pin}")
    add = {"do": "add", "op": "OnesLike", "name": name, "inputs": {"x": [{"from": sources[0].path}]}}
    return [Fix(f"Make {pin} ones", (add, _connect(block, block.op.input(pin), 0, f"{name}.y")))]


def finite(block: Block, value: np.ndarray[Any, Any]) -> Fixes:
    """A small constant with zeros in the place of what is not finite."""
    dtype = dtype_of(value.dtype)
    if dtype is None or value.size > MAX_TYPED:
        return []
    numbers = np.where(np.isfinite(value), value, 0).tolist()
    edits = [("value", numbers), ("dtype", dtype.name)]
    return [
        Fix(
            "Put 0 in the place of what is not finite",
            tuple({"do": "set_attr", "block": block.name, "attr": name, "value": new} for name, new in edits),
        )
    ]


def removed(block: Block) -> Fix:
    """The page without a block."""
    return Fix(f"Remove {block.name}", ({"do": "remove", "block": block.name},))


def bypassed(inference: Inference, block: Block, pin: str) -> Fixes:
    """The page without a block that only hands one of its inputs on; where shape and type stay what they are."""
    sources, call = block.sources.get(pin, []), inference.calls.get(block)
    made = inference.specs.get(block, ())
    if len(sources) != 1 or not isinstance(sources[0], Output) or call is None or len(made) != 1:
        return []
    given = call.inputs[pin]
    same = not isinstance(given, Sequence) and (given.dtype, given.shape) == (made[0].dtype, made[0].shape)
    if not same or made[0].shape is None or _is_named(block):
        return []
    gone = [edit for other in block.sources if other != pin for edit in without_the_old(block, other)]
    edits = [*_rewired(block, sources[0].path), {"do": "remove", "block": block.name}, *gone]
    return [Fix(f"Take {pin} in its place", tuple(edits))]


def replaced(block: Block, op: str, pin: str) -> Fixes:
    """Another op of one input and one output in the place of a block."""
    sources = block.sources.get(pin, [])
    if len(sources) != 1 or not isinstance(sources[0], Output) or _is_named(block):
        return []
    name, declared = block.store.root.unique_name(op.lower()), registry.OPS[op]
    add = {"do": "add", "op": op, "name": name, "inputs": {declared.inputs[0].name: [{"from": sources[0].path}]}}
    edits = [add, *_rewired(block, f"{name}.{declared.outputs[0].name}"), {"do": "remove", "block": block.name}]
    return [Fix(f"Make it a {op}", tuple(edits))]


def _rewired(block: Block, path: str) -> list[dict[str, Any]]:
    """The readers of a block of one output, reading something else."""
    edits = []
    for reader in block.readers:
        for pin, sources in reader.sources.items():
            item = reader.op.input(pin) if reader.op is not None else None
            for at, one in enumerate(sources):
                if isinstance(one, Output) and one.block is block:
                    edit: dict[str, Any] = {"do": "connect", "from": path, "block": reader.name, "pin": pin}
                    edits.append(edit | {"at": at} if item is not None and item.many else edit)
    return edits


def _is_named(block: Block) -> bool:
    """Whether the page itself names a block, or others wait for it: it cannot go then."""
    store = block.store
    named = {one.block for one in store.outputs.values()} | {*store.targets, *store.initializers}
    return block in named or any(block in reader.control for reader in block.readers)


def rewire(title: str, source: Output, block: Block, pin: str) -> Fix:
    """A wire from somewhere else."""
    return Fix(title, ({"do": "connect", "from": source.path, "block": block.name, "pin": pin},))


def _alike(inference: Inference, block: Block, item: Input, call: Call, expected: Any) -> Fixes:
    """A tensor of ones like a neighbour that has the wanted shape and type."""
    for other in call.op.inputs:
        spec, sources = call.inputs[other.name], block.sources.get(other.name, [])
        alike = other.name != item.name and other.type == item.type and not other.many
        fits = alike and spec.shape is not None and tuple(spec.shape) == tuple(expected)
        if fits and sources and isinstance(sources[0], Output):
            title = f"Make {item.name} like {other.name}"
            if all_known(expected) and _same_everywhere(block, item) not in (None, 1):
                return [replace(one, title=title) for one in _filled(inference, block, item, call, expected)]
            name = inference.store.root.unique_name(f"{block.name}_{item.name}")
            add = {"do": "add", "op": "OnesLike", "name": name, "inputs": {"x": [{"from": sources[0].path}]}}
            return [Fix(title, (add, _connect(block, item, 0, f"{name}.y"), *without_the_old(block, item.name)))]
    return []


def _same_everywhere(block: Block, item: Input) -> float | int | None:
    """The value of a constant that has one value only: it is kept when the constant changes its shape."""
    sources = block.sources.get(item.name, [])
    value = sources[0].block.attrs.get("value") if sources and isinstance(sources[0], Output) else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or not value.size:
        return None
    first = value.reshape(-1)[0]
    return first.item() if np.isfinite(first) and (value == first).all() else None


def _filled(inference: Inference, block: Block, item: Input, call: Call, expected: Any) -> Fixes:
    """Ones of the wanted shape, or what the constant had everywhere that was there."""
    name = inference.store.root.unique_name(f"{block.name}_{item.name}")
    dtype, same = call.inputs[item.name].dtype or FLOAT32, _same_everywhere(block, item)
    kept = 1 if same is None else same
    inputs = {"dims": [{"value": list(expected), "dtype": "int32"}], "value": [{"value": kept, "dtype": dtype.name}]}
    add = {"do": "add", "op": "Fill", "name": name, "inputs": inputs}
    edits = (add, _connect(block, item, 0, f"{name}.output"), *without_the_old(block, item.name))
    return [Fix(f"Make {item.name} of shape {show(list(expected))}", edits)]


def _is_exchanged(call: Call, item: Input) -> bool:
    """Whether the pool of what is given as the gradient has the shape that is stated for the pool's input."""
    host = next(one for one in call.op.inputs if one.host)
    stated, forward = call.inputs[host.name].value, registry.OPS[call.op.of]
    attrs = {attr.name: call.attrs[attr.name] for attr in forward.attrs if attr.name in call.attrs}
    pooled = infer_call(
        replace(call, op=forward, inputs={forward.inputs[0].name: call.inputs[item.name]}, attrs=attrs),
        Faults(forward.name),
    )
    return (
        pooled is not None
        and pooled[0].shape is not None
        and stated is not None
        and tuple(pooled[0].shape) == tuple(stated)
    )


def _exchanged(inference: Inference, block: Block, item: Input) -> Fixes:
    """For a gradient whose `grad` is really the input of the pool: state its shape, and pool it."""
    sources, op = block.sources.get(item.name, []), block.op
    stated = [one for one in op.inputs if one.host] if op is not None and item.side is Side.WINDOWS else []
    if op is None or not stated or op.map.has_taps or not sources or not isinstance(sources[0], Output):
        return []
    host, forward = stated[0], registry.OPS[op.of]
    unique, path = inference.store.root.unique_name, sources[0].path
    shape, pool = unique(f"{block.name}_shape"), unique(f"{block.name}_{forward.name}")
    return [
        Fix(
            f"Take {path} for the input of the pool: its shape as {host.name}, its pool as {item.name}",
            (
                {"do": "add", "op": "Shape", "name": shape, "inputs": {"input": [{"from": path}]}},
                {"do": "add", "op": forward.name, "name": pool, "attrs": dict(block.attrs),
                 "inputs": {forward.inputs[0].name: [{"from": path}]}},
                {"do": "connect", "from": f"{shape}.output", "block": block.name, "pin": host.name},
                {"do": "connect", "from": f"{pool}.output", "block": block.name, "pin": item.name},
                *without_the_old(block, host.name),
            ),
        )
    ]  # fmt: skip


def _window(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG016: a VALID window that is too large."""
    return [_set(block, "padding", "SAME")]


def _no_output(inference: Inference, block: Block, fault: Fault, expected: Any) -> Fixes:
    """VG063: a wire from nowhere."""
    return [
        Fix(
            f"Take the wire of {fault.argument} away",
            ({"do": "disconnect", "block": block.name, "pin": fault.argument},),
        )
    ]


_MAKERS: dict[str, _Maker] = {
    "VG001": _missing,
    "VG003": _choice,
    "VG004": _length,
    "VG006": _one,
    "VG007": _one,
    "VG011": _cast,
    "VG012": _shape,
    "VG016": _window,
    "VG063": _no_output,
}
