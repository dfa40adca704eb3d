# SPDX-License-Identifier: Apache-2.0
"""Nobody's memory is anybody else's: callers may fill anew what they gave and write to what they got, in every op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.graph.test_every_op import CASES, put_on_page
from tests.grouped import grouped
from tests.vectors.catalogue.cases import Case
from tests.vectors.catalogue.load import recorded_steps
from voxgrad.arrays import execute, ordinary
from voxgrad.catalog import dtypes
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.graph.page import Page
from voxgrad.kernels.arraywise.namespace import to_numpy
from voxgrad.testing import SeededChooser, draw_call

ONES = np.ones((1, 1), np.float32)
MORE = {
    "PreventGradient": Case("PreventGradient", {"input": ONES}),
    "CheckNumerics": Case("CheckNumerics", {"tensor": ONES}, {"message": "m"}),
    "TopK": Case("TopK", {"input": np.array([[1, 3, 2.0]])}, {"k": 1}),
    "NextIteration": Case("NextIteration", {"data": ONES}),
    "LoopCond": Case("LoopCond", {"input": np.array(True)}),
    "Merge": Case("Merge", {"inputs": [ONES]}),
    "Switch": Case("Switch", {"data": ONES, "pred": np.array(True)}),
    "Print": Case("Print", {"input": ONES, "data": [ONES]}),
    "ParallelConcat": Case("ParallelConcat", {"values": [np.ones((1, 2)), np.zeros((1, 2))]}, {"shape": [2, 2]}),
    "EncodePng": Case("EncodePng", {"image": np.full((2, 3, 1), 7, np.uint8)}),
    "MaxPoolGradGradWithArgmax": Case("MaxPoolGradGradWithArgmax", {
        "input": np.arange(4.0).reshape(1, 2, 2, 1), "grad": np.ones((1, 2, 2, 1)), "argmax": np.full((1, 1, 1, 1), 3)},
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}),
}  # fmt: skip
KEEPERS = {
    "QueueEnqueueV2", "QueueEnqueueManyV2", "TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3", "Stage",
    "MapStage", "OrderedMapStage", "BarrierInsertMany", "AccumulatorApplyGradient", "AssignVariableOp",
}  # fmt: skip
"""Ops that put tensors into what outlives a run, beside those that change variables."""


def flat(value: Any) -> list[Any]:
    return [deep for one in value for deep in flat(one)] if isinstance(value, (list, tuple)) else [value]


def scribble(array: Any) -> None:
    """Other numbers in the same memory."""
    if array.dtype == object:
        array[...] = b"scribbled"
    elif array.dtype == bool:
        np.logical_not(array, out=array)
    else:
        with np.errstate(all="ignore"):
            array[...] = array + np.asarray(1).astype(array.dtype)


def writable(case: Case) -> dict[str, Any]:
    return {
        name: [np.array(one) for one in value] if isinstance(value, (list, tuple)) else np.array(value)
        for name, value in case.inputs.items()
    }


def same(one: Any, two: Any) -> bool:
    return len(one) == len(two) and all(
        a.shape == b.shape and a.dtype == b.dtype and (a.tobytes() == b.tobytes() or (a == b).all())
        for a, b in zip(map(to_numpy, one), map(to_numpy, two), strict=True)
    )


def cases_of(name: str) -> list[Case]:
    if name in CASES or name in MORE:
        return [*CASES.get(name, ()), *([MORE[name]] if name in MORE else [])]
    op = OPS[name]
    calls = [draw_call(op, SeededChooser(seed), dtype=dtypes.FLOAT32) for seed in range(4)] if op in FAMILY else []
    return [
        Case(
            name,
            {item.name: np.asarray(call[item.name], np.int32 if item.host else None) for item in op.inputs},
            {attr.name: call[attr.name] for attr in op.attrs if attr.name in call},
        )
        for call in calls
    ]


WITH_CASES = [name for name in OPS if cases_of(name)]
STATELESS = [name for name in WITH_CASES if not OPS[name].stateful]


def test_every_op_that_takes_tensors_is_tried() -> None:
    tried = {*WITH_CASES, *(one.step.op for one in recorded_steps()), *KEEPERS}
    reads_only = {
        item.name for item in OPS.values() if not any(i.type is not dtypes.RESOURCE and not i.ref for i in item.inputs)
    }
    handles = {name for name in OPS if OPS[name].group == "data_flow" or "TensorsMap" in name}
    files = {name for name in OPS if OPS[name].group == "io" or "File" in name or name == "EncodeJpeg"}
    variables = {"StridedSliceAssign", "ResourceStridedSliceAssign", "RefSelect", "RefSwitch"}
    drawn = {"SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"}
    without_kernel = {"QuantizedReluX"}  # in TensorFlow; tests/catalogue/test_edges.py has it
    assert set(OPS) - tried - reads_only - handles - files - variables - drawn - without_kernel == {"Assert"}
    assert {name for name in handles if OPS[name].stateful and "Stage" in name} >= {"Stage", "MapStage"}


@grouped("name", STATELESS, by=lambda name: OPS[name].group)
def test_results_of_raw_ops_are_the_callers_alone(name: str) -> None:
    op = OPS[name]
    run = ordinary.execute if op.problem is None else execute.execute
    for case in cases_of(name):
        inputs = writable(case)
        made = flat(run(op, {**inputs, **case.attrs}))
        before = [np.array(one) for one in made]
        given = flat(list(inputs.values()))
        kept = [one.copy() for one in given]
        for at, one in enumerate(made):
            if isinstance(one, np.ndarray):
                scribble(one)
                assert same(given, kept), "a result was a view of an input"
                assert same(made[at + 1 :], before[at + 1 :]), "a result was a view of another"
        made = flat(run(op, {**inputs, **case.attrs}))
        for one in given:
            scribble(one)
        assert same(made, before), "a result changed with an input"


@grouped("name", sorted({*STATELESS, "Print"}), by=lambda name: OPS[name].group)
def test_a_session_keeps_no_number_of_the_caller(name: str) -> None:
    for case in cases_of(name):
        for symbolic in (True, False):
            owned = Case(case.op, writable(case), case.attrs)
            page = Page("case")
            outputs, feeds = put_on_page(page, owned, symbolic)
            outputs = outputs[1:] if name == "Switch" else outputs
            behind = [vg.ops.Identity(page, one) for one in outputs]
            session = vg.ClientSession(page, log=lambda line: None)
            first = session.run(outputs + behind, feeds)
            wanted = [one.copy() for one in first]
            for array in (*flat(list(owned.inputs.values())), *first):
                scribble(array)
            fresh = vg.ClientSession(page, log=lambda line: None)
            now = outcome(session, outputs + behind, feeds)
            assert same(now, outcome(fresh, outputs + behind, feeds)), "fed the same array, with other numbers in it"
            assert symbolic or same(now, wanted)
            if symbolic:
                page_feeds = dict(zip(feeds, original_feeds(case), strict=True))
                assert same(session.run(outputs + behind, page_feeds), wanted), "fed the first numbers again"


def outcome(session: vg.ClientSession, fetches: Any, feeds: Any) -> list[Any]:
    """Results, or the error: other numbers may be no call."""
    try:
        return list(session.run(fetches, feeds))
    except vg.VoxgradError as error:
        return [np.array(str(error))]


def original_feeds(case: Case) -> list[Any]:
    _, feeds = put_on_page(Page("again"), case, symbolic=True)
    return list(feeds.values())


@grouped("step", recorded_steps(), name=lambda one: one.id)
def test_variables_are_the_sessions(step: Any) -> None:
    step = step.step
    page, feeds, refs = Page("step"), {}, {}

    def fed(array: Any) -> Any:
        made = vg.ops.Placeholder(page, dtype=array.dtype, shape=list(array.shape))
        feeds[made] = np.array(array)
        return made

    assigns, reads = [], []
    for name, value in step.variables.items():
        kind = {"shape": list(value.shape), "dtype": value.dtype, "name": name}
        if OPS[step.op].input(name).type is dtypes.RESOURCE:
            refs[name] = vg.ops.VarHandleOp(page, **kind)
            assigns.append(vg.ops.AssignVariableOp(page, refs[name], fed(value)))
            reads.append(vg.ops.ReadVariableOp(page, refs[name], dtype=value.dtype))
        else:
            refs[name] = vg.ops.VariableV2(page, **kind)
            assigns.append(vg.ops.Assign(page, refs[name], fed(value)))
            reads.append(refs[name])
    changed = page.add(
        step.op,
        {item.name: refs.get(item.name) or fed(step.inputs[item.name]) for item in OPS[step.op].inputs},
        step.attrs,
    )
    session = vg.ClientSession(page)
    session.run([], feeds, assigns)
    for array in feeds.values():
        scribble(array)
    read = session.run(reads)
    assert same(read, list(step.variables.values()))
    for array, (_, value) in zip(read, step.variables.items(), strict=True):
        scribble(array)
        assert not same([array], [value]) or not array.size
    feeds.update({key: np.array(value) for key, value in zip(list(feeds)[len(refs) :], step_inputs(step), strict=True)})
    session.run([], feeds, [changed])
    before = session.run(reads)
    for array in feeds.values():
        scribble(array)
    assert same(session.run(reads), before)


def step_inputs(step: Any) -> list[Any]:
    return [step.inputs[item.name] for item in OPS[step.op].inputs if item.name in step.inputs]


def keepers(page: Page, x: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """Blocks that put x somewhere, and the outputs that read it back."""
    for name in ("QueueEnqueueV2", "QueueEnqueueManyV2"):
        queue = vg.ops.FIFOQueueV2(page, component_types=["float32"], name=f"queue {name}")
        yield (
            name,
            getattr(vg.ops, name)(page, queue, [x]),
            vg.ops.QueueDequeueV2(page, queue, component_types=["float32"]),
        )
    for name, more in {
        "TensorArrayWriteV3": {"index": 0, "value": x},
        "TensorArrayScatterV3": {"indices": [0, 1], "value": x},
        "TensorArraySplitV3": {"value": x, "lengths": np.array([1, 1], np.int64)},
    }.items():
        handle, flow = vg.ops.TensorArrayV3(page, 2, dtype="float32", name=f"array {name}")
        out = getattr(vg.ops, name)(page, handle, flow_in=flow, **more)
        yield name, out, [vg.ops.TensorArrayReadV3(page, handle, 0, out, dtype="float32")]
    types: dict[str, Any] = {"dtypes": ["float32"]}
    key, first = np.array(7, np.int64), np.zeros(1, np.int32)
    yield "Stage", vg.ops.Stage(page, [x], shared_name="s"), vg.ops.Unstage(page, **types, shared_name="s")
    for kind in ("Map", "OrderedMap"):
        put, take = getattr(vg.ops, f"{kind}Stage"), getattr(vg.ops, f"{kind}Unstage")
        types["shared_name"] = kind
        yield f"{kind}Stage", put(page, key, first, [x], **types), take(page, key, first, **types)
    barrier = vg.ops.Barrier(page, component_types=["float32"])
    yield (
        "BarrierInsertMany",
        vg.ops.BarrierInsertMany(page, barrier, [b"a", b"b"], x, component_index=0),
        vg.ops.BarrierTakeMany(page, barrier, 2, component_types=["float32"])[2],
    )
    sums = vg.ops.ConditionalAccumulator(page, dtype="float32", shape=[2, 2])
    yield (
        "AccumulatorApplyGradient",
        vg.ops.AccumulatorApplyGradient(page, sums, np.array(0, np.int64), x),
        [vg.ops.AccumulatorTakeGradient(page, sums, 1, dtype="float32")],
    )
    handle = vg.ops.VarHandleOp(page, dtype="float32", shape=[2, 2])
    yield (
        "AssignVariableOp",
        vg.ops.AssignVariableOp(page, handle, x),
        [vg.ops.ReadVariableOp(page, handle, dtype="float32")],
    )


@pytest.mark.parametrize("name", sorted(KEEPERS))
def test_queues_and_arrays_of_tensors_are_the_sessions(name: str) -> None:
    page = Page("kept")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[2, 2], name="x")
    found = {made: (put, read) for made, put, read in keepers(page, x)}
    put, read = found[name]
    given = np.ones((2, 2), np.float32)
    session = vg.ClientSession(page)
    if not name.startswith("TensorArray"):
        session.run([], {"x": given}, [put])
        scribble(given)
        (got,) = session.run(read)
    else:
        # An array of tensors lives while a page runs: the caller's numbers change from inside.
        seen: list[Any] = []
        session.on_values = lambda block, values: scribble(given) if block == put.block.name else seen.append(block)
        (got,) = session.run(read, {"x": given})
    assert (got == 1).all() and got.size


def test_a_page_owns_its_constants() -> None:
    """Whatever door an array or a list came through."""
    page = Page("constants")
    arrays = [np.ones(2, np.float32) for _ in range(8)]
    x = vg.ops.Const(page, arrays[0], name="a")
    outputs = [
        x,
        vg.ops.Const(page, arrays[1], dtype="float32"),
        vg.ops.AddV2(page, x, arrays[2]),
        page.add("Const", attrs={"value": arrays[3], "dtype": "float32"}).output(0),
        page.add("Neg", {"x": arrays[4]}).output(0),
        page.add("Exp").output(0),
        page.add("Sin").output(0),
        page.add("Const", attrs={"dtype": "float32"}).output(0),
    ]
    page.set_value(outputs[5].block, "x", arrays[5])
    page.connect(arrays[6], outputs[6].block, "x")
    page.set_attr(outputs[7].block, "value", arrays[7])
    sizes = [1, 2]
    filled = vg.ops.Const(page, sizes, dtype="int32")
    wanted = vg.ClientSession(page, cache=False).run([*outputs, filled])
    for array in arrays:
        scribble(array)
    sizes.append(3)
    assert same(vg.ClientSession(page, cache=False).run([*outputs, filled]), wanted)
    handed_out = page.to_dict()["blocks"][0]["attrs"]["value"]
    with pytest.raises(ValueError, match="read-only"):
        handed_out[0] = 5
    again = Page.from_dict(page.to_dict())
    assert again["a"].attrs["value"] is page["a"].attrs["value"], "what cannot change need not be copied"


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["torch", "jax", "dlpack"])
def test_feeds_and_values_of_other_libraries(kind: str) -> None:
    library = pytest.importorskip("jax.numpy" if kind == "jax" else "torch")
    page = Page("kinds")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[2], name="x")
    v = vg.ops.VariableV2(page, shape=[2], dtype="float32", name="v")
    put, y = vg.ops.Assign(page, v, x), vg.ops.Squeeze(page, x)
    given = library.ones(2, dtype=library.float32)
    session = vg.ClientSession(page)
    got = session.run([y, put], {"x": np.from_dlpack(given) if kind == "dlpack" else given})
    if kind != "jax":
        given += 1
    for one in got:
        scribble(one)
    assert session.run(v).tolist() == [1, 1]
    assert session.run(y, {"x": np.ones(2, np.float32)}).tolist() == [1, 1]
    if kind == "torch":
        constant = vg.ops.Const(page, given)
        given += 1
        assert session.run(constant).tolist() == [2, 2]


@pytest.mark.parity
@pytest.mark.parametrize(
    "name", ["Identity", "Reshape", "Squeeze", "Cast", "StopGradient", "Fill", "BroadcastTo", "Split"]
)
def test_torch_results_have_memory_of_their_own(name: str) -> None:
    torch = pytest.importorskip("torch")
    for case in CASES.get(name, []):
        given = {
            item.name: torch.from_numpy(np.array(case.inputs[item.name]))
            for item in OPS[name].inputs
            if case.inputs[item.name].dtype in (np.float32, np.int32)
        }
        if len(given) < len(OPS[name].inputs):
            continue
        made = flat(ordinary.execute(OPS[name], {**given, **case.attrs}))
        before = [one.clone() for one in made]
        for one in given.values():
            one.add_(1)
        assert same(made, before)
        for at, one in enumerate(made):
            one.zero_()
            assert same(made[at + 1 :], before[at + 1 :])


def test_large_feeds_are_not_copied_where_nothing_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("large")
    x = vg.ops.Placeholder(page, dtype="float32", shape=[4], name="x")
    y = vg.ops.Relu(page, vg.ops.Squeeze(page, x))
    seen: list[Any] = []
    given = np.ones(4, np.float32)
    for cache in (False, None):
        session = vg.ClientSession(page, cache=cache, on_values=lambda block, values: seen.append(values[0]))
        session.run(y, {"x": given})
    assert np.may_share_memory(seen[0], given), "without a cache the view itself goes on"
    assert not np.may_share_memory(seen[2], given)
    assert not any(one.flags.writeable for one in seen)
