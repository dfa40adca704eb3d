# SPDX-License-Identifier: Apache-2.0
"""Sessions: values, feeds, state, cache reasons, progress, cancel, dead branches, threads."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad import ops
from voxgrad.errors import VoxgradError
from voxgrad.graph.cache import Cache
from voxgrad.graph.page import Page
from voxgrad.graph.report import Progress

POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
RNG = np.random.default_rng(3)


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def small_network() -> tuple[Page, dict[str, np.ndarray[Any, Any]]]:
    page = Page("network")
    w = noise(3, 3, 3, 2, 4)
    x = ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 2], name="x")
    conv = ops.Conv3D(page, x, ops.Const(page, w, name="w"), strides=[1] * 5, padding="SAME", name="conv")
    pool = ops.MaxPool3D(page, conv, **POOL, name="pool")
    ops.AvgPool3D(page, ops.Mul(page, pool, 0.5, name="half"), **POOL, name="mean")
    return page, {"w": w}


def by_hand(x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> Any:
    conv = vg.raw_ops.Conv3D(input=x, filter=w, strides=[1] * 5, padding="SAME")
    return vg.raw_ops.AvgPool3D(input=vg.raw_ops.MaxPool3D(input=conv, **POOL) * np.float32(0.5), **POOL)


def states(session: vg.ClientSession) -> dict[str, str]:
    return {one.block: one.state for one in session.report}


def reasons(session: vg.ClientSession) -> dict[str, str]:
    return {one.block: one.reason for one in session.report}


def test_a_page_gives_what_the_raw_ops_give() -> None:
    page, known = small_network()
    session = vg.ClientSession(page)
    for size in (4, 5):
        x = noise(2, size, size, 3, 2)
        np.testing.assert_array_equal(session.run("mean", {"x": x}), by_hand(x, known["w"]))


def test_fetches_by_any_name_and_feeds_in_the_middle() -> None:
    page, _ = small_network()
    session = vg.ClientSession(page)
    fed = noise(1, 2, 2, 2, 4)
    half, mean = session.run([page["half"].output("z"), "mean:0"], {"pool.output": fed})
    np.testing.assert_array_equal(half, fed * np.float32(0.5))
    assert mean.shape == (1, 1, 1, 1, 4)
    assert states(session)["conv"] == "not needed" and states(session)["pool"] == "fed"
    (again,) = session.run_to("half", {page["pool"].output(0): fed.tolist()})
    np.testing.assert_array_equal(again, half)
    assert session.run([], {"x": noise(1, 2, 2, 2, 2)}, targets=["mean"]) == []


def test_page_semantics_reach_the_kernels() -> None:
    page = Page("ties", semantics="tf_cpu")
    x = np.ones((1, 2, 2, 2, 1), np.float32)
    y = np.ones((1, 1, 1, 1, 1), np.float32)
    ops.MaxPool3DGrad(page, x, y, y, **POOL, name="back")
    session = vg.ClientSession(page)
    assert session.run("back").sum() == 8, "every tied cell takes the gradient"
    page.semantics = "documented"
    assert session.run("back").sum() == 1
    assert reasons(session)["back"] == "the semantics or the device changed"


def test_results_belong_to_the_caller() -> None:
    page = Page("own")
    value = np.ones(3, np.float32)
    ops.Neg(page, ops.Const(page, value, name="x"), name="y")
    session = vg.ClientSession(page)
    for name in ("x", "y"):
        first = session.run(name)
        first[:] = 7
        assert session.run(name).tolist() != [7, 7, 7]
    assert value.tolist() == [1, 1, 1]
    kept = session.value("y")
    assert kept is not None and not kept.flags.writeable


def test_all_problems_are_raised_before_anything_runs() -> None:
    page, _ = small_network()
    page.set_attr("pool", "padding", "same")
    page.disconnect("half", "y")
    ops.Neg(page, page["x"].output(0), name="fine")
    ran: list[str] = []
    session = vg.ClientSession(page, on_progress=lambda event: ran.append(event.block))
    with pytest.raises(vg.InvalidArgumentError) as caught:
        session.run("mean")
    text = str(caught.value)
    assert "pool.padding" in text and "half.y" in text and "x must be fed" in text and ran == []
    assert len(caught.value.faults) == 3
    assert session.run("fine", {"x": noise(1, 1, 1, 1, 2)}).shape == (1, 1, 1, 1, 2), (
        "what is not needed does not matter"
    )


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": np.ones((1, 2, 2, 2, 3))}, "of shape [N,D,H,W,2]; got [1,2,2,2,3]"),
        ({"x": np.ones((2, 2))}, "of shape"),
        ({"x": "text"}, "values of type float32"),
        ({"nobody": 1.0}, "nobody must be a block"),
        ({"x": np.ones((1, 2, 2, 2, 2)), "z": np.ones((3, 1))}, "N = 1, as x has"),
    ],
)
def test_wrong_feeds_are_told(feeds: dict[str, Any], words: str) -> None:
    page, _ = small_network()
    ops.Placeholder(page, dtype="float32", shape=["N", 1], name="z")
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.ClientSession(page).run("mean", feeds)
    assert words in str(caught.value)


def test_unknown_fetches_are_told_together() -> None:
    page, _ = small_network()
    page.add("NoOp", name="idle")
    with pytest.raises(vg.InvalidArgumentError) as caught:
        vg.ClientSession(page).run(["one", "two", "idle"], targets=["three"])
    assert len(caught.value.faults) == 4 and "targets" in str(caught.value)


def test_a_failing_block_names_itself_and_leaves_no_results() -> None:
    page = Page("fails")
    x = ops.Placeholder(page, dtype="int32", name="x")
    y = ops.Neg(page, x, name="y")
    ops.FloorDiv(page, y, ops.Placeholder(page, dtype="int32", name="d"), name="quotient")
    session = vg.ClientSession(page)
    assert session.run("quotient", {"x": [4], "d": [2]}).tolist() == [-2]
    with pytest.raises(VoxgradError, match="quotient"):
        session.run("quotient", {"x": [5], "d": [0]})
    assert states(session)["quotient"] == "failed" and states(session)["y"] == "ran"
    assert session.value("y") is None and session.value("quotient") is None


def test_why_a_block_ran_or_did_not() -> None:
    page, _ = small_network()
    session = vg.ClientSession(page)
    x = noise(1, 4, 4, 4, 2)
    session.run("mean", {"x": x})
    assert set(states(session).values()) == {"ran", "fed"} and reasons(session)["pool"] == "it had not run before"
    session.run("mean", {"x": x.copy()})
    assert {one.state for one in session.report} == {"cached", "fed"}
    assert reasons(session)["pool"] == "nothing changed since run 1"
    page.set_attr("pool", "padding", "VALID")
    session.run("mean", {"x": x})
    assert states(session) == {"x": "fed", "w": "cached", "conv": "cached", "pool": "ran", "half/y": "cached",
                               "half": "ran", "mean": "ran"}  # fmt: skip
    assert reasons(session)["pool"] == "padding changed"
    page.set_attr("pool", "strides", [1, 1, 1, 1, 1])
    session.run("mean", {"x": x})
    assert (reasons(session)["half"], states(session)["half"]) == ("x changed", "ran")
    page.set_attr("pool", "strides", [1, 2, 2, 2, 1])
    session.run("mean", {"x": x})
    assert states(session)["pool"] == "cached" and reasons(session)["pool"] == "the same was computed before"
    session.run("mean", {"x": x + 1})
    assert states(session)["w"] == "cached" and reasons(session)["conv"] == "input changed"
    page.add("Neg", {"x": page["x"]}, name="aside")
    session.run("mean", {"x": x + 1})
    assert states(session)["aside"] == "not needed"


def test_a_cache_can_be_shared_by_a_page_that_was_loaded_again() -> None:
    page, _ = small_network()
    cache = Cache()
    x = noise(1, 4, 4, 4, 2)
    vg.ClientSession(page, cache=cache).run("mean", {"x": x})
    later = vg.ClientSession(Page.from_dict(page.to_dict()), cache=cache)
    later.run("mean", {"x": x})
    assert set(states(later).values()) == {"fed", "cached"}


def test_the_cache_stays_within_its_bytes() -> None:
    page = Page("bytes")
    x = ops.Placeholder(page, dtype="float32", shape=["n"], name="x")
    y = ops.Neg(page, ops.Neg(page, x), name="y")
    cache = Cache(max_bytes=100_000)
    session = vg.ClientSession(page, cache=cache)
    for size in range(1000, 40_000, 3000):
        assert session.run(y, {"x": np.ones(size)}).sum() == size
        assert cache.bytes <= 100_000
    off = vg.ClientSession(page, cache=False)
    off.run(y, {"x": [1.0]})
    off.run(y, {"x": [1.0]})
    assert states(off)["y"] == "ran" and off.value("y") is None


def counter_page() -> Page:
    page = Page("counter")
    count = ops.VariableV2(page, shape=[], dtype="float32", name="count")
    ops.Assign(page, count, 0.0, name="start")
    ops.AssignAdd(page, count, 1.0, name="more")
    ops.Mul(page, count, 10.0, name="tenfold")
    return page


def test_variables_live_in_the_session() -> None:
    page = counter_page()
    one, two = vg.ClientSession(page), vg.ClientSession(page)
    with pytest.raises(VoxgradError, match="VG041"):
        one.run("tenfold")
    for session in (one, two):
        session.run([], targets=["start"])
    for _ in range(3):
        one.run("more")
    assert one.run("tenfold") == 30 and two.run("tenfold") == 0
    one.run("tenfold")
    assert states(one)["tenfold"] == "cached", "the variable is as it was"
    one.run("more")
    assert states(one)["more"] == "ran" and "state" in reasons(one)["more"]
    assert one.run("tenfold") == 40 and reasons(one)["tenfold"] == "x changed"
    one.assign("count", 7)
    assert one.run("tenfold") == 70
    with pytest.raises(vg.InvalidArgumentError, match="of shape"):
        one.assign("count", [1, 2])
    with pytest.raises(vg.InvalidArgumentError, match="be a variable"):
        one.assign("tenfold", 1)
    one.forget()
    with pytest.raises(VoxgradError, match="VG041"):
        one.run("tenfold")


def test_the_page_says_how_a_session_starts() -> None:
    page = counter_page()
    page.start_with(["start"])
    session = vg.ClientSession(page)
    assert session.run("more") == 1 and session.run("more") == 2, "started once"


def test_control_edges_order_what_wires_do_not() -> None:
    page = counter_page()
    read = ops.Mul(page, page["count"].output(0), 1.0, name="read")
    session = vg.ClientSession(page)
    session.run([], targets=["start"])
    page.run_after(read.block, "more")
    assert session.run(read) == 1
    page.no_longer_after(read.block, "more")
    page.run_after("more", read)
    assert session.run([read, "more"])[0] == 1 and session.run(read) == 2


def test_a_training_loop_learns() -> None:
    """Gradient descent on least squares, against the same in NumPy."""
    data, target = noise(32, 3), noise(32, 1)
    page = Page("train")
    w = ops.VariableV2(page, shape=[3, 1], dtype="float32", name="w")
    page.start_with([ops.Assign(page, w, np.zeros((3, 1), np.float32), name="zero").block])
    error = ops.Sub(page, ops.MatMul(page, data, w), target, name="error")
    loss = ops.Mean(page, ops.Square(page, error), [0, 1], name="loss")
    (grad,) = vg.gradients([loss], [w])
    assert grad is not None
    ops.ApplyGradientDescent(page, w, 0.1, grad, name="step")
    losses: list[float] = []
    session = vg.ClientSession(page)
    session.loop(20, "loss", targets=["step"], on_cycle=lambda _, found: losses.append(float(found)))
    by_numpy = np.zeros((3, 1), np.float32)
    for cycle in range(20):
        rest = data @ by_numpy - target
        assert losses[cycle] == pytest.approx(float(np.mean(rest**2)), rel=1e-4)
        by_numpy -= np.float32(0.1) * 2 * data.T @ rest / 32
    np.testing.assert_allclose(session.run(w), by_numpy, rtol=1e-4, atol=1e-6)
    assert len(session.cache or ()) < 100, "a loop does not fill the cache"
    before = session.runs
    session.loop(50, "loss", targets=["step"], until=lambda found: session.runs == before + 5)
    assert session.runs == before + 5


def test_feeds_may_change_with_every_cycle() -> None:
    page = Page("cycles")
    x = ops.Placeholder(page, dtype="float32", shape=[], name="x")
    found: list[float] = []
    last = vg.ClientSession(page).loop(
        4, ops.Square(page, x), lambda cycle: {"x": cycle}, on_cycle=lambda _, value: found.append(float(value))
    )
    assert found == [0, 1, 4, 9] and last == 9


def test_dead_branches() -> None:
    page = counter_page()
    page.start_with(["start"])
    chosen = ops.Placeholder(page, dtype="bool", shape=[], name="chosen")
    no, yes = ops.Switch(page, ops.Const(page, 5.0, name="data"), chosen, name="switch")
    left = ops.Neg(page, no, name="left")
    right = ops.Square(page, yes, name="right")
    merged, which = ops.Merge(page, [left, right], name="merge")
    page.run_after("more", right)
    session = vg.ClientSession(page)
    assert [float(one) for one in session.run([merged, which], {"chosen": True}, targets=["more"])] == [25, 1]
    assert states(session)["left"] == "dead" and states(session)["more"] == "ran"
    assert [float(one) for one in session.run([merged, which], {"chosen": False}, targets=["more"])] == [-5, 0]
    assert states(session)["right"] == "dead" and states(session)["more"] == "dead", "who waits for the dead is dead"
    assert session.run("count") == 1
    with pytest.raises(VoxgradError, match="VG065"):
        session.run(right, {"chosen": False})
    assert session.run([], {"chosen": False}, targets=[right]) == []


def test_progress_tells_every_block() -> None:
    page, _ = small_network()
    events: list[Progress] = []
    session = vg.ClientSession(page, on_progress=events.append)
    x = noise(1, 4, 4, 4, 2)
    session.run("pool", {"x": x})
    assert [(one.block, one.state) for one in events] == [
        ("w", "queued"), ("conv", "queued"), ("pool", "queued"),
        ("w", "started"), ("w", "done"), ("conv", "started"), ("conv", "done"), ("pool", "started"), ("pool", "done"),
    ]  # fmt: skip
    assert events[-1].seconds > 0 and events[-1].total == 3 and events[-1].as_dict()["index"] == 2
    events.clear()
    session.run("pool", {"x": x})
    assert [one.state for one in events[3:]] == ["cached"] * 3


def test_cancel_between_blocks() -> None:
    page = Page("many")
    last = ops.Const(page, np.ones(10, np.float32))
    for _ in range(200):
        last = ops.Neg(page, last)
    session = vg.ClientSession(page)
    seen: list[str] = []

    def stop(event: Progress) -> None:
        if event.state == "done":
            seen.append(event.block)
            if len(seen) == 50:
                session.cancel()

    session.on_progress = stop
    with pytest.raises(vg.CancelledError, match="VG040"):
        session.run(last)
    assert len(seen) == 50 and states(session)[last.block.name] == "waiting"
    assert session.value(last) is None
    session.on_progress = None
    assert session.run(last).tolist() == [1] * 10, "and the next run is a new one"


def test_cancel_inside_a_long_kernel() -> None:
    page = Page("long")
    x = ops.Const(page, np.ones((1, 40, 160, 160, 16), np.float32), name="x")
    conv = ops.Conv3D(page, x, np.ones((5, 5, 5, 16, 32), np.float32), strides=[1] * 5, padding="SAME", name="conv")
    session = vg.ClientSession(page)
    times: list[float] = []

    def stop() -> None:
        time.sleep(0.1)
        times.append(time.perf_counter())
        session.cancel()

    def started(event: Progress) -> None:
        if (event.block, event.state) == ("conv", "started"):
            threading.Thread(target=stop).start()

    session.on_progress = started
    with pytest.raises(vg.CancelledError):
        session.run(conv)
    assert time.perf_counter() - times[0] < 2, "far less than the convolution takes; the bar on a free machine is 0.1 s"


def test_a_loop_ends_with_cancel() -> None:
    page = counter_page()
    page.start_with(["start"])
    session = vg.ClientSession(page)
    with pytest.raises(vg.CancelledError):
        session.loop(1000, "more", on_cycle=lambda cycle, _: session.cancel() if cycle == 9 else None)
    assert session.run("count") == 10


def test_threads_share_a_session() -> None:
    page = counter_page()
    page.start_with(["start"])
    session = vg.ClientSession(page)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                session.run("more")
                _ = session.report
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and session.run("count") == 200


def test_sessions_in_threads_do_not_mix() -> None:
    page, known = small_network()
    cache = Cache()
    inputs = [noise(1, 4, 4, 4, 2) for _ in range(3)]
    wrong: list[int] = []

    def work(index: int) -> None:
        session = vg.ClientSession(page, cache=cache)
        for turn in range(12):
            x = inputs[(index + turn) % 3]
            if not np.array_equal(session.run("mean", {"x": x}), by_hand(x, known["w"])):
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_ten_thousand_blocks_run() -> None:
    page = Page("chain")
    last = ops.Placeholder(page, dtype="float32", shape=["n"], name="x")
    for _ in range(10_000):
        last = ops.Neg(page, last)
    again = Page.from_dict(page.to_dict())
    assert again.problems() == [] and str(again.output(last.name).shape) == "(n,)"
    assert vg.ClientSession(again, cache=False).run(last.name, {"x": [3.0]}).tolist() == [3.0]
    (grad,) = vg.gradients([again.output(last.name)], [again.output("x")])
    assert grad is not None and vg.ClientSession(again).run(grad, {"x": [3.0]}).tolist() == [1.0]


def test_a_page_used_as_a_block_runs_in_place() -> None:
    inner = Page("scale")
    factor = ops.VariableV2(inner, shape=[], dtype="float32", name="factor")
    x = ops.Placeholder(inner, dtype="float32", name="x")
    inner.expose({"y": ops.Mul(inner, x, ops.Assign(inner, factor, 3.0)), "same": x}, ["x"])
    page = Page("outer")
    page.define("scale", inner)
    one = page.use("scale", {"x": ops.Const(page, [1.0, 2.0])}, name="one")
    two = page.use("scale", {"x": one.output("y")}, name="two")
    ops.Neg(page, two.output("same"), name="out")
    session = vg.ClientSession(page)
    assert session.run(two.output("y")).tolist() == [9, 18] and session.run("out").tolist() == [-3, -6]
    assert sorted(session.state.variables) == ["one/factor", "two/factor"], "each use has its own variable"
    with pytest.raises(VoxgradError, match=r"page.inline\('two'\)"):
        vg.gradients([two.output("y")], [one.output("y")])
    page.inline("one")
    page.inline("two")
    assert "two/Mul" in page and page.problems() == []
    assert vg.ClientSession(page).run("out").tolist() == [-3, -6]


def test_unknown_devices_are_told() -> None:
    page, _ = small_network()
    assert vg.ClientSession(page, "/cpu:0").device.name == "cpu"
    with pytest.raises(vg.InvalidArgumentError, match="VG003"):
        vg.ClientSession(page, "abacus")
    with pytest.raises(vg.UnimplementedError, match="VG032"):
        vg.ClientSession(page, "cuda:77")


def test_a_variable_that_enters_a_page_is_read_anew() -> None:
    inner = Page("twice")
    inner.expose({"y": ops.Mul(inner, ops.Placeholder(inner, dtype="float32", shape=[], name="x"), 2.0)}, ["x"])
    page = counter_page()
    page.start_with(["start"])
    page.define("twice", inner)
    doubled = page.use("twice", {"x": page["count"].output(0)}, name="doubled").output("y")
    session = vg.ClientSession(page)
    found = []
    for _ in range(3):
        session.run("more")
        found.append(float(session.run(doubled)))
    assert found == [2, 4, 6]


def test_the_page_owns_its_constants() -> None:
    page = Page("own")
    value = np.zeros(5000, np.float32)
    ops.Neg(page, ops.Const(page, value, name="x"), name="y")
    session = vg.ClientSession(page)
    session.run("y")
    value[2500] = 1
    assert session.run("y").sum() == 0
    page.set_attr("x", "value", value)
    assert session.run("y").sum() == -1
    assert reasons(session)["x"] == "value changed", "also in the middle of a large array"
