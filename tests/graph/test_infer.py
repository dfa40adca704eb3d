# SPDX-License-Identifier: Apache-2.0
"""Live inference: types and shapes without running, all problems at once, and fixes that repair them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad import ops
from voxgrad.catalog import registry
from voxgrad.catalog.dims import Dim
from voxgrad.catalog.model import Spec
from voxgrad.catalog.problem import parse
from voxgrad.graph.block import Value
from voxgrad.graph.page import Page

POOL: dict[str, Any] = {"ksize": [1, 4, 3, 2, 1], "strides": [1, 4, 3, 2, 1], "padding": "SAME"}


def volume(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def codes(page: Page) -> list[tuple[str, str, str]]:
    return [(one.block, one.pin, one.code) for one in page.problems()]


def test_without_a_padding_nothing_is_said_of_windows_that_may_fit() -> None:
    page = Page("open")
    x = ops.Const(page, np.ones((1, 4, 4, 4, 1), np.float32), name="x")
    page.add("MaxPool3D", {"input": [x]}, {"ksize": [1, 9, 9, 9, 1], "strides": [1] * 5}, name="b")
    assert codes(page) == [("b", "padding", "VG001")]


def test_symbols_flow_through_a_network() -> None:
    page = Page("unet")
    x = ops.Placeholder(page, dtype="float32", shape=["N", "D", "H", "W", 1], name="x")
    pooled = ops.MaxPool3D(page, x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    conv = ops.Conv3D(page, pooled, np.ones((3, 3, 3, 1, 8), np.float32), strides=[1] * 5, padding="VALID")
    up = ops.Conv3DBackpropInputV2(
        page, ops.Shape(page, x), np.ones((2, 2, 2, 1, 8), np.float32), conv, strides=[1, 2, 2, 2, 1], padding="SAME"
    )
    assert [str(size) for size in pooled.shape or ()] == ["N", "ceil(D/2)", "ceil(H/2)", "ceil(W/2)", "1"]
    assert conv.shape is not None and str(conv.shape[1]) == "ceil(D/2)-2" and conv.shape[4] == 8
    assert up.shape is None and codes(page)[0][1:] == ("out_backprop", "VG012"), (
        "ceil(D/2)-2 is certainly not ceil(D/2)"
    )
    page.set_attr(conv.block, "padding", "SAME")
    assert page.problems() == [] and up.shape == x.shape


def family_calls(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Random calls of the family, right and wrong ones."""
    rng = random.Random(5)

    def size() -> int:
        return rng.choice([1, 2, 3, 4, 5])

    calls = []
    for _ in range(count):
        attrs: dict[str, Any] = {"strides": [1, size(), size(), size(), 1], "padding": rng.choice(["SAME", "VALID"])}
        shape, channels = (size(), size(), size(), size(), 2), rng.choice([1, 2, 3])
        calls.append(("AvgPool3D", attrs | {"ksize": [1, size(), size(), size(), 1], "input": shape}))
        calls.append(("Conv3D", attrs | {"input": shape, "filter": (size(), size(), size(), channels, 2)}))
    return calls


def test_a_symbolic_answer_agrees_with_the_numbers() -> None:
    """For every call: infer with symbols, put the numbers in, and compare with the call itself."""
    agreed = 0
    for name, arguments in family_calls(150):
        op = registry.find(name)
        shapes = {item.name: arguments[item.name] for item in op.inputs}
        attrs = {attr.name: arguments[attr.name] for attr in op.attrs if attr.name in arguments}
        specs = {pin: Spec(registry.find("Conv3D").types["T"][2], shape) for pin, shape in shapes.items()}
        try:
            exact: tuple[int, ...] | None = parse(op, specs, attrs, "documented").output_shape
        except vg.VoxgradError:
            exact = None
        page = Page("symbols")
        letters = ["N", "D", "H", "W"]
        x = ops.Placeholder(page, dtype="float32", shape=[*letters, shapes["input"][4]])
        others = [np.ones(shapes[item.name], np.float32) for item in op.inputs[1:]]
        y = getattr(ops, name)(page, x, *others, **attrs)
        if exact is None or 0 in exact:
            # A symbol stands for a size that the window fits into.
            continue
        assert page.problems() == [] and y.shape is not None
        numbers = dict(zip(letters, shapes["input"], strict=False))
        found = tuple(size.at(numbers) if isinstance(size, Dim) else size for size in y.shape)
        assert found == exact, (name, arguments)
        agreed += 1
    assert agreed > 100


def test_every_problem_of_a_page_comes_at_once() -> None:
    page = Page("wrong")
    x = ops.Const(page, volume(2, 2, 2, 2, 2), name="x")
    page.add("AvgPool3D", {"input": x}, {"ksize": [1, 2, 2], "strides": [1, 2, 2, 2, 1], "padding": "same"}, name="a")
    page.add("Conv3D", {"input": x}, {"strides": [1, 1, 1, 1, 1], "data_format": "NHWC", "colour": 3}, name="b")
    page.add("MaxPool3", name="c")
    page.add("AddV2", {"x": x, "y": page.add("Const", attrs={"value": [1.0], "dtype": "float64"}, name="d")}, name="e")
    page.add("Neg", {"x": [x, x], "z": x}, name="f")
    assert codes(page) == [
        ("a", "ksize", "VG004"), ("a", "padding", "VG003"),
        ("b", "padding", "VG001"), ("b", "data_format", "VG003"), ("b", "colour", "VG001"), ("b", "filter", "VG001"),
        ("c", "", "VG050"), ("e", "y", "VG011"), ("f", "z", "VG001"), ("f", "x", "VG001"),
    ]  # fmt: skip
    first = page.problems()[0]
    assert first.as_dict()["fixes"][0]["edits"][0]["do"] == "set_attr"
    assert str(first).startswith("VG004 AvgPool3D: a.ksize must have 5 entries")


def test_one_click_repairs() -> None:
    """Applying the first fix again and again ends with a page that has nothing wrong and runs."""
    page = Page("repair")
    x = ops.Const(page, volume(2, 2, 2, 2, 2), name="x")
    page.add(
        "MaxPool3D", {"input": x}, {"ksize": [2], "strides": [1, 2, 2], "padding": "same", "colour": 1}, name="pool"
    )
    page.add("Conv3D", {"input": x}, {"strides": [1, 1, 1, 1, 0], "data_format": "NHWC"}, name="conv")
    w = page.add("Const", attrs={"value": np.ones((1, 1, 1, 2, 3)), "dtype": "float64"}, name="w")
    page.connect(w.output(0), "conv", "filter")
    page.add("Neg", {"x": [page["conv"], page["pool"]]}, name="neg")
    for _ in range(20):
        found = page.problems()
        if not found:
            break
        fix = next(one.fix for one in found if one.fix is not None)
        page.apply(fix)
    assert page.problems() == []
    assert page["conv"].attrs["strides"] == [1, 1, 1, 1, 1] and page["conv_filter_cast"].op_name == "Cast"
    assert vg.ClientSession(page).run("neg").shape == (2, 2, 2, 2, 3)


def seed_page() -> tuple[Page, dict[str, Any]]:
    """The old page of the second-order max-pool, with its mistakes: grad and orig_output do not fit orig_input."""
    page = Page("MaxPool3DGradGrad")
    x = ops.Const(page, volume(2, 2, 2, 2, 2), name="x")
    small = np.array([1, 2, 3, 4], np.float32).reshape(2, 1, 1, 1, 2)
    ops.MaxPool3DGradGrad(
        page, x, ops.Const(page, small, name="y"), ops.Const(page, small, name="g"), **POOL, name="second"
    )
    return page, POOL


def test_make_grad_like_orig_input() -> None:
    page, _ = seed_page()
    (problem,) = page.problems()
    assert (problem.block, problem.pin, problem.code) == ("second", "grad", "VG012")
    assert "[2,2,2,2,2]" in problem.wanted and problem.got == "[2,1,1,1,2]"
    assert problem.fix is not None and problem.fix.title == "Make grad like orig_input"
    page.apply(problem.fix)
    assert page.problems() == []
    assert page["second"].sources["grad"][0].block.op_name == "OnesLike"  # type: ignore[union-attr]


def test_compute_orig_output_from_orig_input() -> None:
    page, _ = seed_page()
    page.connect("x.output", "second", "orig_output")
    page.apply(next(one.fix for one in page.problems() if one.pin == "orig_output" and one.fix))
    page.apply(page.problems()[0].fix or [])
    session = vg.ClientSession(page)
    assert session.run(page["second"].sources["orig_output"][0]).ravel().tolist() == [15, 16, 31, 32]  # type: ignore[arg-type]
    assert session.run("second").ravel().tolist() == [1, 1, 1, 1]


def test_the_old_average_page_can_be_repaired_in_two_ways() -> None:
    def make() -> Page:
        page = Page("AvgPool3DGrad")
        grad = ops.Const(page, volume(2, 2, 2, 2, 2).astype(np.float64), name="g")
        ops.AvgPool3DGrad(page, [2, 1, 1, 1, 2], grad, **POOL, name="back")
        return page

    (problem,) = make().problems()
    assert [fix.title for fix in problem.fixes] == [
        "Take g.output for the input of the pool: its shape as orig_input_shape, its pool as grad",
        "Make grad of shape [2,1,1,1,2]",
    ]
    for fix, shape in zip(problem.fixes, [(2, 2, 2, 2, 2), (2, 1, 1, 1, 2)], strict=True):
        page = make()
        page.apply(fix.as_dict())
        assert page.problems() == []
        made = vg.ClientSession(page).run("back")
        assert (made.shape, made.dtype) == (shape, np.float64)


def test_a_missing_wire_is_offered_where_only_one_fits() -> None:
    page = Page("wire")
    page.add("Const", attrs={"value": [1, 2], "dtype": "int32"}, name="sizes")
    x = ops.Const(page, volume(1, 2, 2, 2, 1), name="x")
    page.add("AvgPool3D", attrs={"ksize": [1] * 5, "strides": [1] * 5, "padding": "SAME"}, name="pool")
    (problem,) = page.problems()
    assert problem.fix is not None
    page.apply(problem.fix)
    assert page["pool"].sources["input"] == [x] and page.problems() == []


@pytest.mark.parametrize("length", [1, 2, 5])
def test_rings_are_named_and_nothing_hangs(length: int) -> None:
    page = Page("ring")
    blocks = [page.add("Neg", name=f"n{index}") for index in range(length)]
    for one, other in itertools.pairwise([*blocks, blocks[0]]):
        page.connect(one.output("y"), other, "x")
    tail = page.add("Neg", {"x": blocks[0].output("y")}, name="tail")
    found = page.problems()
    assert [one.code for one in found] == ["VG062"] and found[0].got.count("n") >= length
    with pytest.raises(vg.InvalidArgumentError, match="VG062"):
        vg.ClientSession(page).run(tail)
    page.set_value(blocks[0], "x", 1.0)
    assert page.problems() == [] and tail.output(0).dtype is not None
    page.connect(blocks[-1].output("y"), blocks[0], "x")
    assert [one.code for one in page.problems()] == ["VG062"], "a ring that closes again is found again"


def test_inference_is_incremental() -> None:
    page = Page("long")
    x = ops.Placeholder(page, dtype="float32", shape=[4], name="x")
    last = x
    for _ in range(50):
        last = ops.Neg(page, last)
    page.infer()
    looked = []
    inference = page.infer()
    original = inference._infer
    inference._infer = lambda block: looked.append(block.name) or original(block)  # type: ignore
    page.move("x", 1, 1)
    page.infer()
    assert looked == []
    tail = ops.Identity(page, last, name="tail")
    assert tail.shape == (4,) and looked == ["tail"]
    looked.clear()
    page.set_attr("x", "shape", [5])
    assert tail.shape == (5,) and len(looked) == 52
    looked.clear()
    page.set_attr("x", "shape", [5])
    page.infer()
    assert looked == ["x"], "a change that changes nothing stops where it is"


def test_removing_blocks_is_seen_at_once() -> None:
    page = Page("remove")
    ops.Neg(page, ops.Const(page, 1.0, name="x"), name="y")

    def shape() -> Any:
        return page.output("y").shape

    assert page.problems() == [] and shape() == ()
    page.remove("x")
    assert codes(page) == [("y", "x", "VG001")] and shape() is None
    page.connect(ops.Const(page, [1.0, 2.0], name="x"), "y", "x")
    assert page.problems() == [] and shape() == (2,)


def test_typed_values_take_the_type_of_their_neighbours() -> None:
    page = Page("typed")
    x = ops.Const(page, np.ones(3, np.float64), name="x")
    page.add("Mul", {"x": x, "y": 2}, name="a")
    page.add("Mul", {"x": 1, "y": 2}, name="b")
    page.add("Mul", {"x": x, "y": "text"}, name="c")
    page.add("Mul", {"x": x, "y": Value([[1], [2, 3]])}, name="d")
    assert str(page["a"].output(0).dtype) == "float64" and str(page["b"].output(0).dtype) == "int32"
    assert [(one.block, one.pin) for one in page.problems()][:1] == [("c", "y")]
    assert ("d", "y", "VG002") in codes(page)


def test_a_wire_from_a_list_that_became_shorter() -> None:
    page = Page("list")
    rows = ops.IdentityN(page, [[1.0, 2.0], ops.Const(page, 3.0)], name="rows")
    last = ops.Neg(page, rows[1], name="last")
    assert rows[1].path == "rows.output[1]" and last.shape == ()
    again = Page.from_dict(page.to_dict())
    assert again["last"].sources["x"] == [again["rows"].output(1)]
    page.disconnect("rows", "input", 1)
    assert ("last", "x", "VG063") in codes(page)


def test_a_page_inside_a_page() -> None:
    inner = Page("inner")
    inner.expose(
        {"y": ops.MaxPool3D(inner, ops.Placeholder(inner, dtype="float32", name="x"), **POOL, name="pool")}, ["x"]
    )
    page = Page("outer")
    page.define("half", inner)
    x = ops.Placeholder(page, dtype="float32", shape=["N", 8, 6, 4, 1], name="x")
    one = page.use("half", {"x": x}, name="one")
    two = page.use("half", {"x": one}, name="two")
    assert page.problems() == []
    assert one.output("y").shape == (Dim("N"), 2, 2, 2, 1) and two.output("y").shape == (Dim("N"), 1, 1, 1, 1)
    inner.apply([{"do": "set_attr", "block": "pool", "attr": "padding", "value": "VALID"},
                 {"do": "set_attr", "block": "pool", "attr": "strides", "value": [1, 1, 1, 1, 1]},
                 {"do": "set_attr", "block": "pool", "attr": "ksize", "value": [1, 6, 1, 1, 1]}])  # fmt: skip
    assert codes(page) == [("two/pool", "input", "VG016")], "the same page is right in one place and wrong in another"


def test_inference_as_data() -> None:
    page = Page("data")
    x = ops.Placeholder(page, dtype="half", shape=["N", None, 2], name="x")
    ops.AddN(page, [x, x], name="sum")
    page.add("Neg", name="open")
    assert page.infer().as_dict() == {
        "x": {"inputs": {}, "outputs": {"output": {"dtype": "half", "shape": ["N", "x[1]", 2]}}},
        "sum": {
            "inputs": {"inputs": [{"dtype": "half", "shape": ["N", "x[1]", 2]}] * 2},
            "outputs": {"sum": {"dtype": "half", "shape": ["N", "x[1]", 2]}},
        },
        "open": {
            "inputs": {"x": [{"dtype": None, "shape": None}]},
            "outputs": {"y": {"dtype": None, "shape": None}},
        },
    }


def test_estimates() -> None:
    page = Page("cost")
    x = ops.Placeholder(page, dtype="float32", shape=["N", 8, 8, 8, 2], name="x")
    y = ops.Conv3D(page, x, np.ones((3, 3, 3, 2, 4), np.float32), strides=[1] * 5, padding="SAME", name="conv")
    ops.Neg(page, y, name="neg")
    found = page.estimate()
    flops = 2 * 512 * 27 * 2 * 4
    assert str(found.blocks["conv"].bytes) == "8192*N" and str(found.blocks["conv"].flops) == f"{flops}*N"
    assert not found.complete and found.blocks["conv/filter"].bytes == 27 * 8 * 4
    known = page.estimate({"N": 2})
    assert known.complete and known.blocks["conv"].flops == 2 * flops
    # x, filter and the result of the convolution are held together; then the result and its negative.
    assert known.peak_bytes == max(2 * 4096 + 27 * 32 + 2 * 8192, 4 * 8192)
    assert known.as_dict()["blocks"]["neg"] == {"bytes": 16384, "flops": 4096}


def test_estimates_of_planes_and_matrices() -> None:
    page = Page("cost")
    x = ops.Const(page, np.ones((2, 8, 8, 3), np.float32))
    y = ops.Conv2D(page, x, np.ones((3, 3, 3, 5), np.float32), strides=[1, 1, 1, 1], padding="SAME", name="conv")
    dx, dw = vg.gradients([y], [x, page["conv/filter"].output(0)])
    ops.MaxPool(page, y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", name="pool")
    ops.MatMul(page, np.ones((4, 6), np.float32), np.ones((6, 7), np.float32), name="product")
    flops = {name: cost.flops for name, cost in page.estimate().blocks.items()}
    multiplied = 2 * (2 * 8 * 8 * 5) * (3 * 3 * 3)
    assert dx is not None and dw is not None
    assert flops["conv"] == flops[dx.block.name] == flops[dw.block.name] == multiplied
    assert flops["pool"] == 2 * 4 * 4 * 5 * 4 and flops["product"] == 2 * 4 * 6 * 7


def test_small_integers_are_followed_through_arithmetic() -> None:
    """Sizes flow: a shape that was computed on the page is known before the run, and broadcast as the run does."""
    page = Page("sizes")
    column, row = ops.Const(page, [[1], [2]]), ops.Const(page, [[10, 20]])
    empty = ops.Const(page, np.zeros((0,), np.int32))
    for made in (ops.AddV2(page, column, row), ops.Mul(page, column, column), ops.Sub(page, row, 1)):
        value = made.spec.value
        assert value is None or list(value) == vg.ClientSession(page).run(made).ravel().tolist()
    assert ops.AddV2(page, empty, 1).shape == (0,)
    x = ops.Placeholder(page, dtype="float32", shape=["N", 6], name="x")
    half = ops.FloorDiv(page, ops.Shape(page, x), 2)
    assert [str(size) for size in ops.Fill(page, half, 1.0).shape or ()] == ["floor(N/2)", "3"]


def test_a_constant_without_a_value_is_told_once() -> None:
    page = Page("empty")
    page.add("Const", name="c")
    assert codes(page) == [("c", "value", "VG001"), ("c", "dtype", "VG001")]
