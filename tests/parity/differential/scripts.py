# SPDX-License-Identifier: Apache-2.0
"""Ops that need a session: short programs, drawn at random, that both sides run step by step.

A script is a list of steps; an input of a step is an array, or a Wire from an earlier step.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.catalog import dtypes, staging
from voxgrad.catalog.registry import OPS
from voxgrad.kernels.element_types import numpy_type

from .draw import Draw
from .hints import HINTS, _bounds
from .images import distorted
from .values import text_array


@dataclass(frozen=True)
class Wire:
    """An output of an earlier step."""

    step: str
    index: int = 0


@dataclass(frozen=True)
class Step:
    """A use of an op. `shown`: its results are compared, those of the last of so many `times` that it runs."""

    op: str
    name: str
    inputs: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    shown: bool = True
    times: int = 1


Script = list[Step]


def _attrs(d: Draw) -> dict[str, Any]:
    return {attr.name: d[attr.name] for attr in d.op.attrs}


# Variables

_RATES = {"alpha": 0.1, "lr": 0.1, "momentum": 0.9, "beta1_power": 0.9, "beta2_power": 0.999, "beta1": 0.9,
          "beta2": 0.999, "epsilon": 1e-3, "rho": 0.8, "l1": 0.05, "l2": 0.02, "lr_power": -0.5}  # fmt: skip
_DECAYS = ("momentum", "beta1_power", "beta2_power", "beta1", "beta2", "rho", "epsilon")
"""Below 0 they make differences of what should be sums, and nothing of them is left."""


def variables(d: Draw) -> Script:
    """Variables of the op's `ref` inputs, given values; the op twice; what they hold then."""
    by_handle = d.op.name.startswith("Resource")
    refs = [item for item in d.op.inputs if item.ref or (by_handle and item.type is dtypes.RESOURCE)]
    steps, shape = Script(), d.shape(0 if d.chance(0.5) else 1, 3)
    if "Sparse" in d.op.name and d.chance(0.9):
        shape = (max(1, d.size()), *shape[1:])
    if d.op.name == "CountUpTo":
        shape = ()
    made: dict[str, Any] = {}
    kind = d.type("T") if by_handle else d.type(refs[0])
    for index, item in enumerate(refs):
        value = d.array(kind, shape, "" if d.op.group == "state" else "positive")
        if item.name == "mg":
            value = (value * 0.1).astype(value.dtype)  # its square must stay below ms
        wider = shape if d.chance(0.95) else (*shape, 2)
        attrs = {"shape": list(shape), "dtype": kind, "container": "", "shared_name": ""}
        if by_handle:
            attrs |= {"debug_name": "", "allowed_devices": [], "shared_name": f"v{index}"}
        steps.append(Step("VarHandleOp" if by_handle else d.pick("VariableV2", "Variable"), f"v{index}", {}, attrs,
                          shown=False))  # fmt: skip
        if index or d.chance(0.95):
            value = value if wider == shape else np.broadcast_to(value[..., None], wider).copy()
            given = {"resource" if by_handle else "ref": Wire(f"v{index}"), "value": value}
            more = {"validate_shape": False} if by_handle else {"validate_shape": True, "use_locking": True}
            steps.append(Step("AssignVariableOp" if by_handle else "Assign", f"a{index}", given, more))
        made[item.name] = Wire(f"v{index}")
    for item in sorted(d.op.inputs, key=lambda item: item.name != "indices"):
        if item not in refs:
            made[item.name] = _beside(d, item, kind, shape)
    # Half precision rounds what the first step leaves: the second starts elsewhere than the one to compare it with.
    times = 1 if d.op.group == "training" and kind.itemsize == 2 else 2
    steps += [Step(d.op.name, f"s{index}", made, _attrs(d)) for index in range(times)]
    if by_handle:
        return steps + [Step("ReadVariableOp", f"r{index}", {"resource": Wire(f"v{index}")}, {"dtype": kind})
                        for index in range(len(refs))]  # fmt: skip
    return steps + [Step("Identity", f"r{index}", {"input": Wire(f"v{index}")}) for index in range(len(refs))]


def _beside(d: Draw, item: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    name = item.name
    if name in _RATES:
        other = 0.0 if name in _DECAYS else -1.0
        return d.number(_RATES[name] if d.chance(0.9) else other, kind)
    if name == "global_step":
        return d.number(d.integer(1, 5), dtypes.INT64)
    if name == "indices" and "Nd" not in d.op.name:
        outer = (d.size(),) if d.op.group == "training" and d.chance(0.95) else d.shape(0, 2)
        d.made["indices"] = d.ints(0 if d.chance(0.9) else -1, (shape or (1,))[0] - 1, outer, "Tindices")
        if d.op.group == "training" and kind.itemsize == 2:
            d.made["indices"] = np.unique(d.made["indices"])  # a row that is changed twice is rounded twice
        return d.made["indices"]
    if name == "indices":
        depth = d.integer(1, max(1, len(shape)))
        columns = [d.ints(0, (shape[i] if i < len(shape) else 1) - 1, (3, 1), "Tindices") for i in range(depth)]
        d.made["indices"] = np.concatenate(columns, axis=-1)
        return d.made["indices"]
    if name == "updates":
        ids = d.made["indices"].shape
        inner = (*ids[:-1], *shape[ids[-1] :]) if "Nd" in d.op.name else (*ids, *shape[1:])
        inner = inner if d.chance(0.9) else d.pick((), (*inner, 1))
        return d.array(kind, inner, "positive" if d.op.name == "ScatterDiv" and d.chance(0.9) else "")
    if name == "grad" and "indices" in d.made:
        return d.array(kind, (*d.made["indices"].shape, *shape[1:], *(() if d.chance(0.9) else (1,))))
    if name == "pred":
        return d.array(dtypes.BOOL, ())
    return d.array(kind, shape if d.chance(0.9) else (*shape, 1))


def temporary(d: Draw) -> Script:
    """A variable of one run: made, given a value, destroyed."""
    kind, shape = d.pick(dtypes.FLOAT32, dtypes.INT32, dtypes.FLOAT64), d.shape(0, 2)
    name = d.pick("t", "t", "other")
    return [
        Step("TemporaryVariable", "t", {}, {"shape": list(shape), "dtype": kind, "var_name": "t"}, shown=False),
        Step("Assign", "a", {"ref": Wire("t"), "value": d.array(kind, shape)},
             {"validate_shape": True, "use_locking": True}, shown=False),
        Step("DestroyTemporaryVariable", "d", {"ref": Wire("a")}, {"var_name": name}),
    ]  # fmt: skip


# Queues


def queues(d: Draw) -> Script:
    """A queue and a few things done to it."""
    kinds = ("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2")
    kind = d.op.name if d.op.name in kinds else d.pick(*kinds)
    types = [d.pick(dtypes.INT32, dtypes.FLOAT32, dtypes.STRING) for _ in range(d.integer(1, 2))]
    shape: list[Any] = [d.integer(1, 2)] if d.chance(0.5) else []
    attrs = {"component_types": types, "shapes": [shape for _ in types], "capacity": d.pick(-1, 4, 3),
             "container": "", "shared_name": ""}  # fmt: skip
    full = list(types)
    if kind == "PriorityQueueV2":
        full = [dtypes.INT64, *types]
    if kind == "RandomShuffleQueueV2":
        attrs |= {"min_after_dequeue": 0, "seed": d.integer(1, 3), "seed2": d.integer(0, 3)}
    if kind == "PaddingFIFOQueueV2" and shape and d.chance(0.5):
        attrs["shapes"] = [[None] for _ in types]
    if kind == "FIFOQueueV2" and d.chance(0.2):
        attrs["shapes"] = []
    steps, held = [Step(kind, "q", {}, attrs, shown=False)], 0
    room = attrs["capacity"] if attrs["capacity"] > 0 else 99
    for index in range(d.integer(3, 8)):
        step, change = _queue_step(d, index, full, shape, attrs["shapes"], kind)
        # What would wait for ever costs time on one side: a few of them are enough.
        if not 0 <= held + change <= room and d.chance(0.85):
            continue
        held = min(room, max(0, held + change))
        steps.append(step)
    if d.op.name.startswith("Queue") and d.op.name not in {step.op for step in steps}:
        steps.append(_queue_step(d, 99, full, shape, attrs["shapes"], kind, d.op.name)[0])
    return [
        *steps,
        Step("QueueSizeV2", "size", {"handle": Wire("q")}),
        Step("QueueIsClosedV2", "end", {"handle": Wire("q")}),
    ]


def _queue_step(
    d: Draw, index: int, types: list[Any], shape: list[Any], stated: list[Any], kind: str, op: str = ""
) -> tuple[Step, int]:
    op = op or d.pick("QueueEnqueueV2", "QueueEnqueueV2", "QueueDequeueV2", "QueueSizeV2", "QueueIsClosedV2",
                      "QueueEnqueueManyV2", "QueueDequeueManyV2", "QueueDequeueUpToV2",
                      *(("QueueCloseV2",) if d.chance(0.3) else ()))  # fmt: skip
    handle, name = {"handle": Wire("q")}, f"s{index}"
    inner = [d.integer(0, 3)] if stated and stated[0] == [None] else shape
    if op.startswith("QueueEnqueue"):
        outer = [d.integer(0, 2)] if "Many" in op else []
        wrong = d.chance(0.08)
        parts = [
            d.array(one, (*outer, *(() if one == dtypes.INT64 else inner), *((1,) if wrong else ())), "integers")
            for one in types
        ]
        return Step(op, name, {**handle, "components": parts}, {"timeout_ms": -1}), outer[0] if outer else 1
    if op.startswith("QueueDequeue"):
        count = d.integer(0, 2) if d.chance(0.9) else -1
        given = {"n": d.number(count)} if op != "QueueDequeueV2" else {}
        wrong_types = [dtypes.FLOAT64, *types[1:]] if d.chance(0.05) else types
        attrs = {"component_types": wrong_types, "timeout_ms": -1}
        return Step(op, name, {**handle, **given}, attrs), -count if given else -1
    return Step(op, name, handle, {"cancel_pending_enqueues": d.chance(0.3)} if op == "QueueCloseV2" else {}), 0


# Arrays of tensors, all in one run


def tensor_arrays(d: Draw) -> Script:
    """An array of tensors, filled and read; each step waits for the one before."""
    kind, inner, size = d.pick(dtypes.FLOAT32, dtypes.FLOAT64, dtypes.INT32), list(d.shape(1, 2)), d.integer(1, 3)
    element = d.pick(None, None, inner)
    attrs = {"dtype": kind, "element_shape": element, "dynamic_size": d.chance(0.3), "identical_element_shapes":
             d.chance(0.3), "clear_after_read": d.chance(0.5), "tensor_array_name": ""}  # fmt: skip
    steps = [Step("TensorArrayV3", "ta", {"size": d.number(size)}, attrs, shown=False)]
    flow, handle = Wire("ta", 1), Wire("ta")

    def add(op: str, name: str, more: dict[str, Any], extra: dict[str, Any], moves: bool) -> None:
        nonlocal flow
        steps.append(Step(op, name, {"handle": handle, **more, "flow_in": flow}, extra, shown=not moves))
        flow = Wire(name) if moves else flow

    fill = d.pick("write", "scatter", "split")
    if fill == "write":
        for index in range(size if d.chance(0.9) else size + 1):
            value = d.array(kind, tuple(inner), "integers")
            add("TensorArrayWriteV3", f"w{index}", {"index": d.number(index), "value": value}, {}, True)
    elif fill == "scatter":
        value = d.array(kind, (size, *inner), "integers")
        add("TensorArrayScatterV3", "w", {"indices": d.vector(range(size)), "value": value}, {}, True)
    else:
        lengths = [d.integer(0, 2) for _ in range(size)]
        value = d.array(kind, (sum(lengths), *inner[1:]), "integers")
        add("TensorArraySplitV3", "w", {"value": value, "lengths": d.vector(lengths, dtypes.INT64)}, {}, True)
    wanted = kind if d.chance(0.95) else dtypes.INT64
    add("TensorArraySizeV3", "n", {}, {}, False)
    read = d.pick("read", "gather", "concat")
    if read == "read":
        for index in range(size):
            add("TensorArrayReadV3", f"r{index}", {"index": d.number(index)}, {"dtype": wanted}, False)
    elif read == "gather":
        ids = d.vector(d.random.sample(range(size), size))
        add("TensorArrayGatherV3", "r", {"indices": ids}, {"dtype": wanted, "element_shape": None}, False)
    else:
        add("TensorArrayConcatV3", "r", {}, {"dtype": wanted, "element_shape_except0": None}, False)
    if d.op.name == "TensorArrayGradV3" and kind != dtypes.INT32:
        steps.append(Step("TensorArrayGradV3", "g", {"handle": handle, "flow_in": flow}, {"source": "g"}, shown=False))
        steps.append(Step("TensorArraySizeV3", "gn", {"handle": Wire("g"), "flow_in": Wire("g", 1)}))
    if d.op.name == "TensorArrayCloseV3":
        steps.append(Step("TensorArrayCloseV3", "c", {"handle": handle}))
    return steps


# Where values wait


_WAITS = (dtypes.INT32, dtypes.FLOAT32, dtypes.STRING)


def stages(d: Draw) -> Script:
    """A stage and a few things done to it."""
    types = [d.pick(*_WAITS) for _ in range(d.integer(1, 2))]
    common = {"capacity": d.pick(0, 0, 3), "memory_limit": 0, "container": "", "shared_name": "s"}
    stated, steps, held = {"dtypes": types, **common}, Script(), 0
    for index in range(d.integer(4, 8)):
        op = d.pick("Stage", "Stage", "Unstage", "StagePeek", "StageSize", *(("StageClear",) if d.chance(0.2) else ()))
        waits = held >= (common["capacity"] or 99) if op == "Stage" else not held
        if op in ("Stage", "Unstage", "StagePeek") and waits:
            continue  # nothing ends there what waits, not even the end of the session
        given: dict[str, Any] = {}
        if op == "Stage":
            given["values"] = [d.array(one, d.shape(0, 2), "integers") for one in types]
        if op == "StagePeek":
            given["index"] = d.number(d.integer(0, held - 1))
        steps.append(Step(op, f"s{index}", given, common if op == "Stage" else stated))
        held = 0 if op == "StageClear" else max(0, held + {"Stage": 1, "Unstage": -1}.get(op, 0))
    if d.op.name in ("StageSize", "StageClear"):
        steps.append(Step(d.op.name, "last", {}, stated))
    return [*steps, Step("StageSize", "size", {}, stated)]


def maps(d: Draw) -> Script:
    """A map by keys and a few things done to it."""
    prefix = "OrderedMap" if d.op.name.startswith("Ordered") else "Map"
    types = [d.pick(*_WAITS) for _ in range(d.integer(1, 3))]
    common = {"capacity": d.pick(0, 0, 2), "memory_limit": 0, "container": "", "shared_name": "m"}
    steps, ready, parts = Script(), dict[int, set[int]](), dict[int, set[int]]()
    for index in range(d.integer(4, 9)):
        kind = d.pick("Stage", "Stage", "Stage", "Peek", "Unstage", "UnstageNoKey", "Size", "IncompleteSize",
                      *(("Clear",) if d.chance(0.2) else ()))  # fmt: skip
        key = d.integer(0, 2) if kind == "Stage" or not ready else d.pick(*ready)
        places = list(range(len(types))) if d.chance(0.6) else sorted(d.random.sample(
            range(len(types)), d.integer(1, len(types))))  # fmt: skip
        given: dict[str, Any] = {}
        attrs = {"dtypes": types, **common}
        if kind == "Stage":
            partial = len(places) < len(types)
            if len(ready) >= (common["capacity"] or 99) or (partial and parts.get(key, set()) & set(places)):
                continue  # after an error the rest would wait
            values = [d.array(types[place], d.shape(0, 2), "integers") for place in places]
            given = {"key": d.number(key, dtypes.INT64), "indices": d.vector(places), "values": values}
            there = parts.get(key, set()) | set(places) if len(places) < len(types) else set(places)
            if len(there) == len(types):
                ready.setdefault(key, there)
                parts.pop(key, None) if len(places) < len(types) else None
            else:
                parts[key] = there
        elif kind in ("Peek", "Unstage", "UnstageNoKey"):
            if (not ready and d.chance(0.9)) or (kind == "UnstageNoKey" and prefix == "Map" and len(ready) != 1):
                continue
            key = min(ready) if kind == "UnstageNoKey" and ready else key
            if not set(places) <= ready.get(key, set()):
                continue
            given = {"indices": d.vector(places)} | ({} if kind == "UnstageNoKey" else {
                "key": d.number(key, dtypes.INT64)})  # fmt: skip
            attrs["dtypes"] = [types[place] for place in places]
            if kind != "Peek" and key in ready:
                ready[key] = ready[key] - set(places)
                if not ready[key]:
                    del ready[key]
        elif kind == "Clear":
            ready, parts = {}, {}
        steps.append(Step(prefix + kind, f"s{index}", given, attrs))
    whole = {"dtypes": types, **common}
    if d.chance(0.2):  # an error at the end: what comes after it would wait
        given = {"key": d.number(5, dtypes.INT64), "indices": d.vector(d.pick([1, 0], [0, 0], [7], [-1])), "values": [
            d.array(types[0], (), "integers")] * 2}  # fmt: skip
        steps.append(Step(f"{prefix}Stage", "wrong", given, whole))
    return [*steps, Step(f"{prefix}Size", "size", {}, whole), Step(f"{prefix}IncompleteSize", "rest", {}, whole)]


def barriers(d: Draw) -> Script:
    """A barrier and a few things done to it."""
    types, inner = [d.pick(*_WAITS) for _ in range(d.integer(1, 2))], d.shape(0, 1)
    stated = {"component_types": types, "shapes": [list(inner) for _ in types], "capacity": -1, "container": "",
              "shared_name": "b"}  # fmt: skip
    steps, handle, counts = [Step("Barrier", "b", {}, stated, shown=False)], {"handle": Wire("b")}, [0] * len(types)
    for index in range(d.integer(4, 8)):
        op = d.pick(*["BarrierInsertMany"] * 3, "BarrierTakeMany", "BarrierReadySize", "BarrierIncompleteSize",
                    *(("BarrierClose",) if d.chance(0.2) else ()))  # fmt: skip
        if op == "BarrierInsertMany":
            part, count = d.integer(0, len(types) - 1), d.integer(not d.chance(0.1), 1)  # of several any comes first
            begin = counts[part] if d.chance(0.95) else max(0, counts[part] - 1)
            keys = text_array([f"k{number}".encode() for number in range(begin, begin + count)], (count,))
            counts[part] = begin + count
            values = d.array(types[part], (count, *inner, *((1,) if d.chance(0.05) else ())), "integers")
            steps.append(Step(op, f"s{index}", {**handle, "keys": keys, "values": values}, {"component_index": part}))
        elif op == "BarrierTakeMany":
            count = d.integer(0, max(0, min(counts))) if d.chance(0.9) else d.integer(1, 3)
            attrs = {"component_types": types, "allow_small_batch": d.chance(0.3), "wait_for_incomplete": False,
                     "timeout_ms": -1}  # fmt: skip
            steps.append(Step(op, f"s{index}", {**handle, "num_elements": d.number(count)}, attrs))
        else:
            more = {"cancel_pending_enqueues": d.chance(0.5)} if op == "BarrierClose" else {}
            steps.append(Step(op, f"s{index}", handle, more))
    return [*steps, Step("BarrierReadySize", "ready", handle), Step("BarrierIncompleteSize", "rest", handle)]


def accumulators(d: Draw) -> Script:
    """An accumulator of gradients and a few things done to it."""
    rows = d.op.name.startswith("Sparse") or (not d.op.name.startswith(("Conditional", "AccumulatorT", "AccumulatorA"))
                                              and d.chance(0.5))  # fmt: skip
    prefix, kind = "Sparse" if rows else "", d.pick(dtypes.FLOAT32, dtypes.FLOAT64)
    shape = (d.integer(2, 4), *d.shape(0, 1)) if rows else d.shape(0, 2)
    stated = {"dtype": kind, "shape": d.pick(None, list(shape)), "container": "", "shared_name": "a",
              "reduction_type": d.pick("MEAN", "SUM")}  # fmt: skip
    steps = [Step(f"{prefix}ConditionalAccumulator", "a", {}, stated, shown=False)]
    handle, held = {"handle": Wire("a")}, 0
    for index in range(d.integer(4, 8)):
        op = d.pick("Apply", "Apply", "Apply", "Take", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep")
        name, step = f"s{index}", {"local_step": d.number(d.integer(0, 3) if d.chance(0.3) else 9, dtypes.INT64)}
        if op == "Apply" and rows:
            places = sorted(d.random.sample(range(shape[0]), d.integer(1, shape[0])))
            values = d.array(kind, (len(places), *shape[1:], *((1,) if d.chance(0.05) else ())), "normal")
            given = {"gradient_indices": d.vector(places, dtypes.INT64), "gradient_values": values,
                     "gradient_shape": d.vector(shape, dtypes.INT64)}  # fmt: skip
            steps.append(Step("SparseAccumulatorApplyGradient", name, handle | step | given,
                              {"has_known_shape": d.chance(0.5)}))  # fmt: skip
        elif op == "Apply":
            value = d.array(kind, shape if d.chance(0.95) else (*shape, 1), "normal")
            steps.append(Step("AccumulatorApplyGradient", name, {**handle, **step, "gradient": value}))
        elif op == "Take":
            if not held and d.chance(0.9):
                continue
            given = {"num_required": d.number(1 if d.chance(0.9) else d.integer(0, 2))}
            steps.append(Step(f"{prefix}AccumulatorTakeGradient", name, handle | given, {"dtype": kind}))
            held = -1
        elif op == "AccumulatorSetGlobalStep":
            steps.append(Step(op, name, {**handle, "new_global_step": d.number(d.integer(0, 4), dtypes.INT64)}))
        else:
            steps.append(Step(op, name, handle))
        held += op in ("Apply", "Take")
    return [*steps, Step("AccumulatorNumAccumulated", "count", handle)]


def kept_sparse(d: Draw) -> Script:
    """Sparse tensors kept under numbers, and taken again."""
    kind, shared = d.pick(dtypes.FLOAT32, dtypes.INT64, dtypes.STRING), {"container": "", "shared_name": "k"}
    shape, steps, count = (d.integer(1, 3), d.integer(1, 3)), Script(), 0
    for index in range(d.integer(1, 3)):
        many = d.chance(0.5)
        own = (d.integer(1, 3), *shape) if many else shape
        places = sorted({tuple(d.integer(0, size - 1) for size in own) for _ in range(4)})
        given = {"sparse_indices": np.array(places, np.int64), "sparse_values": d.array(kind, (len(places),), "normal"),
                 "sparse_shape": d.vector(own, dtypes.INT64)}  # fmt: skip
        steps.append(Step("AddManySparseToTensorsMap" if many else "AddSparseToTensorsMap", f"s{index}", given, shared))
        count += own[0] if many else 1
    numbers = d.random.sample(range(count), d.integer(1, count)) if d.chance(0.95) else [count]
    taken = {"sparse_handles": d.vector(numbers, dtypes.INT64)}
    wanted = kind if d.chance(0.95) else dtypes.INT8
    return [*steps, *(Step("TakeManySparseFromTensorsMap", f"t{index}", taken, {"dtype": wanted, **shared})
                      for index in range(2 if d.chance(0.2) else 1))]  # fmt: skip


def chosen_variables(d: Draw) -> Script:
    """Variables, one of them chosen and changed."""
    kind, shape, steps = d.pick(dtypes.FLOAT32, dtypes.INT32), d.shape(0, 2), Script()
    for index in range(2):
        steps.append(Step("VariableV2", f"v{index}", {}, {"shape": list(shape), "dtype": kind, "container": "",
                                                         "shared_name": ""}, shown=False))  # fmt: skip
        given = {"ref": Wire(f"v{index}"), "value": d.array(kind, shape, "integers")}
        steps.append(Step("Assign", f"a{index}", given, {"validate_shape": True, "use_locking": True}))
    if d.op.name == "RefNextIteration":
        steps.append(Step("RefNextIteration", "c", {"data": Wire("v0")}))
    else:
        index = d.integer(0, 1) if d.chance(0.9) else d.pick(-1, 2)
        steps.append(Step("RefSelect", "c", {"index": d.number(index), "inputs": [Wire("v0"), Wire("v1")]}))
    more = {"ref": Wire("c"), "value": d.array(kind, shape, "integers")}
    steps.append(Step("AssignAdd", "d", more, {"use_locking": False}))
    return steps + [Step("Identity", f"r{index}", {"input": Wire(f"v{index}")}) for index in range(2)]


# Files


def _tfrecord(*records: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = _crc32c(data)
        return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)

    parts = []
    for record in records:
        head = struct.pack("<Q", len(record))
        parts += [head, masked(head), record, masked(record)]
    return b"".join(parts)


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


FILES = {
    "a.txt": b"head\nx\r\n\nlast", "b.txt": b"one\ntwo\n", "empty": b"", "a.bin": b"HHaabbccF", "b.bin": b"HHddF",
    "r.tfrecord": _tfrecord(b"data", b"", b"more"), "z.tfrecord": zlib.compress(_tfrecord(b"packed")),
    "vocabulary": b"the,9.5\nof,4\nand,0.5\nso,2e0\n",
    "one.tfrecord": _tfrecord(b"only"), "raw": bytes(range(40)),
    "g.bin": gzip.compress(b"HHaabbF", mtime=0), "cut.tfrecord": _tfrecord(b"data")[:-2],
}  # fmt: skip
"""The files that scripts find in their folder."""

_OF_READER = {
    "FixedLengthRecordReaderV2": (("a.bin", "b.bin", "empty", "a.txt"), lambda d: {
        "record_bytes": d.integer(1, 3), "header_bytes": d.integer(0, 2), "footer_bytes": d.integer(0, 1),
        "hop_bytes": d.pick(0, 0, 1, 2), "encoding": ""}),
    "TextLineReaderV2": (("a.txt", "b.txt", "empty"), lambda d: {"skip_header_lines": d.integer(0, 2)}),
    "WholeFileReaderV2": (("a.txt", "b.bin", "empty"), lambda d: {}),
    "IdentityReaderV2": (("a.txt", "nothing"), lambda d: {}),
    "TFRecordReaderV2": (("r.tfrecord", "z.tfrecord"), lambda d: {"compression_type": d.pick("", "", "ZLIB")}),
}  # fmt: skip


def readers(d: Draw) -> Script:
    """A queue of names, a reader, and what it gives."""
    kind = d.op.name if d.op.name in _OF_READER else d.pick(*_OF_READER)
    names, attrs = _OF_READER[kind]
    listed = [d.pick(*names).encode() for _ in range(d.integer(1, 3))]
    queue = {"component_types": [dtypes.STRING], "shapes": [[]], "capacity": 9, "container": "", "shared_name": ""}
    wires = {"reader_handle": Wire("r"), "queue_handle": Wire("q")}
    steps = [
        Step("FIFOQueueV2", "q", {}, queue, shown=False),
        Step("QueueEnqueueManyV2", "e", {"handle": Wire("q"), "components": [text_array(listed, (len(listed),))]},
             {"timeout_ms": -1}),
        Step("QueueCloseV2", "c", {"handle": Wire("q")}, {"cancel_pending_enqueues": False}),
        Step(kind, "r", {}, {**attrs(d), "container": "", "shared_name": ""}, shown=False),
    ]  # fmt: skip
    for index in range(d.integer(2, 5)):
        op = d.pick("ReaderReadV2", "ReaderReadUpToV2", "ReaderReadV2", "ReaderNumRecordsProducedV2",
                    "ReaderNumWorkUnitsCompletedV2", *(("ReaderResetV2",) if d.chance(0.3) else ()),
                    *(("ReaderSerializeStateV2",) if d.chance(0.3) else ()))  # fmt: skip
        given: dict[str, Any] = dict(wires) if "Read" in op[6:] else {"reader_handle": Wire("r")}
        if op == "ReaderReadUpToV2":
            given["num_records"] = d.number(d.integer(0, 4) if d.chance(0.9) else -1, dtypes.INT64)
        steps.append(Step(op, f"s{index}", given))
    if d.op.name == "ReaderRestoreStateV2":
        state = _one(d.pick(b'\x08\x02\x10\x02\x18\x05"\x05a.txt', b"\x08\x01\x10\x02", b"\xff", b""))
        steps.append(Step(d.op.name, "set", {"reader_handle": Wire("r"), "state": state}))
        steps.append(Step("ReaderReadV2", "after", dict(wires)))
    for op in ("ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2"):
        steps.append(Step(op, op, {"reader_handle": Wire("r")}))
    return steps


def _one(text: bytes) -> Any:
    return text_array([text], ())


def whole_files(d: Draw) -> Script:
    """Files written, read and found."""
    name = d.pick(b"new.txt", b"sub/new.txt", b"a.txt")
    return [
        Step("WriteFile", "w", {"filename": _one(name), "contents": d.texts(shape=() if d.chance(0.9) else (1,))}),
        Step("ReadFile", "r", {"filename": _one(d.pick(name, b"a.bin", b"none", b"empty"))}),
        Step("MatchingFiles", "m", {"pattern": d.texts(b"*.txt", b"a.*", b"none", b"?.bin", shape=d.pick((), (2,)))}),
    ]


def saved(d: Draw) -> Script:
    """Tensors saved and restored; the files differ, what comes back does not."""
    kinds = [d.pick(dtypes.FLOAT32, dtypes.INT64, dtypes.STRING, dtypes.BOOL, dtypes.HALF) for _ in range(2)]
    names, tensors = text_array([b"w", b"scope/n"], (2,)), [d.array(one, d.shape(0, 2), "normal") for one in kinds]
    blank = text_array([b"", b""], (2,))
    ask = [kinds[0] if d.chance(0.9) else dtypes.INT8, kinds[1]]
    if d.op.name in ("SaveV2", "RestoreV2"):
        return [
            Step("SaveV2", "s", {"prefix": _one(b"kept"), "tensor_names": names, "shape_and_slices": blank,
                                 "tensors": tensors}),
            Step("RestoreV2", "r", {"prefix": _one(d.pick(b"kept", b"kept", b"lost")), "tensor_names": names,
                                    "shape_and_slices": blank}, {"dtypes": ask}),
        ]  # fmt: skip
    return [
        Step("Save", "s", {"filename": _one(b"kept"), "tensor_names": names, "data": tensors}),
        Step("Restore", "r", {"file_pattern": _one(b"kept"), "tensor_name": _one(d.pick(b"w", b"w", b"x"))},
             {"dt": ask[0], "preferred_shard": -1}),
    ]  # fmt: skip


def sliced(d: Draw) -> Script:
    """Parts of a tensor saved and others restored."""
    whole, kind = d.array(dtypes.FLOAT32, (4, 3), "normal"), d.pick(dtypes.FLOAT32, dtypes.FLOAT32, dtypes.INT32)
    texts = d.pick([b"4 3 0,2:-", b"4 3 2,2:-"], [b"4 3 -:0,1", b"4 3 -:1,2"], [b"4 3 0,1:-", b"4 3 2,2:-"])
    cut = {b"4 3 0,2:-": np.s_[:2], b"4 3 2,2:-": np.s_[2:], b"4 3 -:0,1": np.s_[:, :1], b"4 3 -:1,2": np.s_[:, 1:],
           b"4 3 0,1:-": np.s_[:1]}  # fmt: skip
    ask = d.pick(b"", b"4 3 1,2:-", b"4 3 -:2,1", b"4 3 3,1:0,2", b"4 3 -:-", b"4 4 -:-", b"4 3 3,2:-", b"x")
    data = [np.ascontiguousarray(whole[cut[text]]) for text in texts]
    names = text_array([b"w", b"w", b"v"], (3,))
    given = {"filename": _one(b"kept"), "tensor_names": names, "data": [*data, whole[0]],
             "shapes_and_slices": text_array([*texts, d.pick(b"", b"", b"3 0,3")], (3,))}  # fmt: skip
    return [
        Step("SaveSlices", "s", given),
        *(Step("RestoreSlice", f"r{name.decode()}",
               {"file_pattern": _one(b"kept"), "tensor_name": _one(name), "shape_and_slice": _one(part)},
               {"dt": kind, "preferred_shard": -1})
          for name, part in ((b"w", ask), (b"v", d.pick(b"", b"3 1,2"))))]  # fmt: skip


def merged(d: Draw) -> Script:
    """Two files of tensors put into one."""
    tensors, blank = [d.array(dtypes.FLOAT32, d.shape(0, 2), "normal") for _ in range(2)], text_array([b""], (1,))
    steps = [Step("SaveV2", f"s{at}", {"prefix": _one(f"part{at}".encode()), "tensor_names": text_array([name], (1,)),
                                       "shape_and_slices": blank, "tensors": [tensors[at]]})
             for at, name in enumerate((b"a", b"b"))]  # fmt: skip
    files = d.pick([b"part0", b"part1"], [b"part0", b"part1"], [b"part0"], [b"part0", b"none"])
    attrs = {"delete_old_dirs": False, "allow_missing_files": d.chance(0.3)}
    steps.append(Step("MergeV2Checkpoints", "m", {"checkpoint_prefixes": text_array(files, (len(files),)),
                                                  "destination_prefix": _one(b"all")}, attrs))  # fmt: skip
    ask = {"prefix": _one(b"all"), "tensor_names": text_array([d.pick(b"a", b"b")], (1,)), "shape_and_slices": blank}
    return [*steps, Step("RestoreV2", "r", ask, {"dtypes": [dtypes.FLOAT32]})]


def in_bytes(d: Draw) -> Script:
    """A tensor from a file, or the one record of another."""
    if d.op.name == "RecordInput":
        attrs = {attr.name: attr.default for attr in d.op.attrs if not attr.required}
        attrs |= {"file_pattern": d.pick("one.tfrecord", "one.tfr*", "none"), "batch_size": d.integer(1, 3)}
        return [Step("RecordInput", "x", {}, attrs, times=d.integer(1, 2))]
    kind = d.pick(dtypes.UINT8, dtypes.INT32, dtypes.FLOAT64, dtypes.BFLOAT16)
    attrs = {"dtype": kind, "shape": d.pick([2, 2], [5], [], [0], [41]),
             "memory_region_name": d.pick("raw", "raw", "none")}  # fmt: skip
    return [Step("ImmutableConst", "x", {}, attrs)]


def messages(d: Draw) -> Script:
    """Print, Assert and Abort."""
    data = [d.array(d.pick(dtypes.FLOAT32, dtypes.STRING, dtypes.BOOL), d.shape(0, 2)) for _ in range(d.integer(0, 2))]
    if d.op.name == "Print":
        attrs = {"message": "m", "first_n": d.pick(-1, 1), "summarize": 3}
        return [Step("Print", "p", {"input": d.array(dtypes.FLOAT32, d.shape()), "data": data}, attrs)]
    if d.op.name == "Assert":
        condition = d.array(dtypes.BOOL, d.pick((), (), (1,), (2,)))
        return [Step("Assert", "p", {"condition": condition, "data": data}, {"summarize": 3})]
    return [Step("Abort", "p", {}, {"error_msg": "stop", "exit_without_error": False})]


def numbers(d: Draw) -> Script:
    """Random numbers: the same ones, by their seeds."""
    inputs: dict[str, Any] = {}
    for item in d.op.inputs:
        if item.name in _PARAMETERS:
            inputs[item.name] = _PARAMETERS[item.name](d)
        elif item.name == "shape":
            inputs[item.name] = d.vector(d.shape(0, 3) if d.chance(0.6) else (40, 50), item.type)
        elif item.name == "value":
            inputs[item.name] = d.array(d.type(item), d.shape(0, 3), "normal")
        else:
            low = d.integer(-5, 5)
            inputs |= {"minval": d.number(low, "Tout"), "maxval": d.number(low + d.pick(1, 7, 1, 0), "Tout")}
    attrs = _attrs(d) | {"seed": d.integer(1, 9), "seed2": d.integer(1, 9)}
    return [Step(d.op.name, "x", inputs, attrs, times=d.integer(1, 2))]


def _of(d: Draw, variable: str, low: float, high: float, shape: tuple[int, ...] | None = None) -> Any:
    size = d.shape(0, 2) if shape is None else shape
    made = d.rng.uniform(low, high, size) if np.isfinite(low) else np.full(size, low)
    return np.asarray(made).astype(numpy_type(d.type(variable)))


def _bound(low: float, high: float) -> Callable[[Draw], Any]:
    """A parameter for all rows or one for each of them: the numbers of rows are few, and some parameters do not fit."""
    return lambda d: _of(d, "dtype", low, high, d.pick((), (), (1,), (2,), (3,)))


_PARAMETERS: dict[str, Callable[[Draw], Any]] = {
    "logits": lambda d: d.array(d.type("T"), (d.integer(0, 3), d.integer(1, 5)) if d.chance(0.95) else d.shape()),
    "num_samples": lambda d: d.number(d.integer(0, 9) if d.chance(0.95) else -1),
    "alpha": lambda d: d.pick(_of(d, "T", 0.05, 1), _of(d, "T", 0.5, 20), _of(d, "T", 0.02, 0.1), _of(d, "T", 1, 1)),
    "rate": lambda d: d.pick(_of(d, "dtype", -1, 9.9), _of(d, "dtype", 10, 60), _of(d, "dtype", 50, 2000)),
    "means": _bound(-1, 1), "stdevs": lambda d: _bound(0.1 if d.chance(0.95) else -0.5, 2)(d),
    "minvals": lambda d: d.pick(_bound(-4, 0), _bound(0, 4), _bound(-np.inf, -np.inf))(d),
    "maxvals": lambda d: d.pick(_bound(0, 4), _bound(1, 9), _bound(np.inf, np.inf))(d),
}  # fmt: skip
"""What distributions take."""


def candidates(d: Draw) -> Script:
    """Candidates: the same ones, by their seeds; the second time after the first."""
    classes, count = d.integer(1, 60), d.integer(1, 8)
    sampled = d.integer(1, classes) if d.chance(0.9) else d.integer(1, 80)
    attrs = {"num_true": count, "num_sampled": sampled, "unique": d.chance(0.6), "range_max": classes,
             "seed": d.integer(1, 9), "seed2": d.integer(1, 9)}  # fmt: skip
    if d.op.name.startswith("All"):
        classes = attrs["num_sampled"]
        del attrs["range_max"]
    if d.op.name.startswith("Fixed"):
        shards, reserved = d.pick(1, 1, 2, 3), d.integer(0, 2)
        shard = d.integer(0, shards - 1)
        weights = [float(one) for one in d.rng.integers(1, 50, classes)]
        own = len(range(shard, reserved, shards))
        attrs |= {"unigrams": weights, "distortion": d.pick(1.0, 0.75), "vocab_file": "", "num_shards": shards,
                  "shard": shard, "num_reserved_ids": reserved,
                  "range_max": own + len(weights[(shard - own) % shards :: shards]) + (not d.chance(0.95))}  # fmt: skip
        classes = attrs["range_max"]
        attrs["num_sampled"] = d.integer(1, max(1, classes - own))
        if d.chance(0.3):
            attrs |= {"unigrams": [], "vocab_file": "vocabulary"}
            attrs |= {"range_max": 4, "num_shards": 1, "shard": 0, "num_reserved_ids": 0, "num_sampled": 3}
            classes = 4
    true = d.ints(0, classes - 1, (d.integer(0, 3), count if d.chance(0.95) else count + 1), dtypes.INT64)
    true = true if d.chance(0.95) else true + 1
    return [Step(d.op.name, "x", {"true_classes": true}, attrs, times=d.integer(1, 3))]


def assigned_slices(d: Draw) -> Script:
    """A variable whose cells are changed by slices."""
    kind, shape = d.pick(dtypes.FLOAT32, dtypes.INT32, dtypes.FLOAT64), d.shape(1, 3)
    by_handle, cut = d.op.name.startswith("Resource"), _bounds(d, shape)
    cut |= {"new_axis_mask": 0, "ellipsis_mask": 0}
    try:
        inner = np.zeros(shape)[0:0].shape if 0 in shape else vg.raw_ops.StridedSlice(
            input=np.zeros(shape, np.float32), **cut).shape  # fmt: skip
    except vg.VoxgradError:
        inner = shape
    value = d.array(kind, inner if d.chance(0.9) else (*inner, 2), "integers")
    masks = {name: one for name, one in cut.items() if name.endswith("mask")}
    bounds = {name: one for name, one in cut.items() if name not in masks}
    held = {"shape": list(shape), "dtype": kind, "container": "", "shared_name": "v" if by_handle else ""}
    first = {"resource" if by_handle else "ref": Wire("v"), "value": d.array(kind, shape, "integers")}
    return [
        Step("VarHandleOp", "v", {}, {**held, "debug_name": "", "allowed_devices": []}, shown=False) if by_handle
        else Step("VariableV2", "v", {}, held, shown=False),
        Step("AssignVariableOp", "a", first, {"validate_shape": False}) if by_handle
        else Step("Assign", "a", first, {"validate_shape": True, "use_locking": True}),
        Step(d.op.name, "s", {"ref": Wire("v"), **bounds, "value": value}, masks),
        Step("ReadVariableOp", "r", {"resource": Wire("v")}, {"dtype": kind}) if by_handle
        else Step("Identity", "r", {"input": Wire("v")}),
    ]  # fmt: skip


def parts_of_images(d: Draw) -> Script:
    """Random parts of images: the same ones, by their seeds."""
    attrs = {"seed": d.integer(1, 9), "seed2": d.integer(1, 9), "max_attempts": d.pick(1, 3, 100),
             "use_image_if_no_bounding_boxes": d.chance(0.7), "area_range": d.pick([0.05, 1.0], [0.3, 0.4]),
             "aspect_ratio_range": d.pick([0.75, 1.33], [1.0, 1.0], [0.2, 3.0])}  # fmt: skip
    attrs |= {} if d.op.name.endswith("V2") else {"min_object_covered": d.pick(0.1, 0.5, 1.0)}
    return [Step(d.op.name, "x", distorted(d), attrs)]


_VARIABLES = ("Assign", "AssignAdd", "AssignSub", "IsVariableInitialized", "CountUpTo", "RefSwitch",
              "VariableV2", "Variable")  # fmt: skip
FAMILIES: dict[str, Callable[[Draw], Script]] = {}
for _name, _op in OPS.items():
    if _op.group == "training" or (_name.startswith("Scatter") and _op.stateful) or _name in _VARIABLES:
        FAMILIES[_name] = variables
    elif _name.startswith("Queue") or _name.endswith("QueueV2"):
        FAMILIES[_name] = queues
    elif _name.startswith("TensorArray"):
        FAMILIES[_name] = tensor_arrays
    elif _name.startswith("Reader") or _name.endswith("ReaderV2"):
        FAMILIES[_name] = readers
    elif _name.endswith("StridedSliceAssign"):
        FAMILIES[_name] = assigned_slices
    elif _name.startswith("SampleDistorted"):
        FAMILIES[_name] = parts_of_images
    elif _op.group == "random" and _op.stateful:
        FAMILIES[_name] = numbers
    elif _name.endswith("CandidateSampler"):
        FAMILIES[_name] = candidates
FAMILIES |= {op.name: family for ops, family in ((staging.STAGES, stages), (staging.MAPS, maps),
             (staging.BARRIERS, barriers), (staging.ACCUMULATORS, accumulators)) for op in ops}  # fmt: skip
FAMILIES |= {name: kept_sparse for name in OPS if name.endswith("TensorsMap")}
FAMILIES |= {"RefSelect": chosen_variables, "RefNextIteration": chosen_variables}
FAMILIES |= {"TemporaryVariable": temporary, "DestroyTemporaryVariable": temporary, "ReadFile": whole_files,
             "WriteFile": whole_files, "MatchingFiles": whole_files, "Save": saved, "Restore": saved,
             "VarHandleOp": variables, "ReadVariableOp": variables, "AssignVariableOp": variables,
             "SaveSlices": sliced, "RestoreSlice": sliced, "MergeV2Checkpoints": merged,
             "RecordInput": in_bytes, "ImmutableConst": in_bytes, "SaveV2": saved, "RestoreV2": saved,
             "Print": messages, "Assert": messages, "Abort": messages,
             "Placeholder": lambda d: [Step("Placeholder", "p", {}, {"dtype": dtypes.FLOAT32, "shape": None})],
             }  # fmt: skip
ONE_RUN = (tensor_arrays, temporary)
"""Families whose resources live as long as a run: all steps are asked for at once."""
WITH_FILES = (readers, whole_files, candidates, in_bytes)
"""Families that find FILES in their folder."""


_SHOWN_BY = {"VariableV2": "Assign", "Variable": "Assign"} | dict.fromkeys(
    ("VarHandleOp", "ReadVariableOp", "AssignVariableOp"), "ResourceApplyGradientDescent"
)
"""Ops that only make or read a variable, by the op whose scripts use them."""


def script_of(name: str, label: str) -> Script:
    """A random script around an op."""
    op = OPS[_SHOWN_BY.get(name, name)]
    return FAMILIES[name](Draw(op, label, {**HINTS.get(name, {}), "limit": lambda d: d.integer(0, 4)}))


__all__ = ["FAMILIES", "FILES", "ONE_RUN", "WITH_FILES", "Script", "Step", "Wire", "script_of"]
