# SPDX-License-Identifier: Apache-2.0
"""Warnings: what runs and means nothing is said, with a fix that makes it mean something."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from voxgrad.cli import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WINDOW: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
X = np.random.default_rng(1).permutation(64).astype(np.float32).reshape(1, 4, 4, 4, 1)


def gradient_page(orig_output: Any = None, **pool: Any) -> vg.Page:
    """A max pool and its gradient; the pool may be another one, or its output a constant."""
    page = vg.Page("page")
    x = vg.ops.Const(page, X, name="x")
    y = vg.ops.MaxPool3D(page, x, **(WINDOW | pool), name="y") if orig_output is None else vg.ops.Const(
        page, orig_output, name="y"
    )  # fmt: skip
    dy = vg.ops.Const(page, np.ones((1, 2, 2, 2, 1), np.float32), name="dy")
    vg.ops.MaxPool3DGrad(page, x, y, dy, **WINDOW, name="dx")
    return page


MAXIMA = vg.raw_ops.MaxPool3D(input=X, **WINDOW)


@pytest.mark.parametrize("page", [gradient_page(), gradient_page(MAXIMA), gradient_page(data_format="NDHWC")])
def test_what_is_meant_is_quiet(page: vg.Page) -> None:
    assert page.problems() == []
    assert page.warnings() == []


def test_a_constant_that_is_not_the_pool() -> None:
    wrong = MAXIMA.copy()
    wrong[0, 1, 0, 1, 0] -= 1
    page = gradient_page(wrong)
    (warning,) = page.warnings()
    assert (warning.block, warning.pin, warning.code) == ("dx", "orig_output", "VG080")
    assert "at [0,1,0,1,0], where the pool is" in warning.got
    assert vg.ClientSession(page).run("dx").sum() == 7  # it runs all the same: the cell that is not found gets nothing
    page.apply(warning.fix)
    assert page.warnings() == []
    assert vg.ClientSession(page).run("dx").sum() == 8


def test_nan_is_equal_to_nan() -> None:
    x = X.copy()
    x[0, :2, :2, :2] = np.nan
    page = gradient_page(vg.raw_ops.MaxPool3D(input=x, **WINDOW))
    page.set_attr("x", "value", x)
    assert {one.code for one in page.warnings()} == {"VG082"}  # and no VG080


@pytest.mark.parametrize("changed", [{"ksize": [1, 1, 2, 2, 1]}, {"padding": "VALID"}, {"ksize": [1, 2, 2, 1, 1]}])
def test_a_pool_with_other_attributes(changed: dict[str, Any]) -> None:
    page = gradient_page(**changed)
    (warning,) = page.warnings()
    (name,) = changed
    assert f"y, which has {name}" in warning.got
    assert [fix.title.partition(" [")[0] for fix in warning.fixes][1:] == ["Compute orig_output with MaxPool3D"]
    page.apply(warning.fixes[0])
    assert page["dx"].attrs[name] == changed[name]
    assert page.warnings() == []


def test_a_pool_that_is_wrong_is_told_once() -> None:
    page = gradient_page()
    page.set_attr("y", "padding", 3)
    assert [one.block for one in page.problems()] == ["y"] and page.warnings() == []


def test_the_pool_of_something_else() -> None:
    page = gradient_page()
    page.connect(vg.ops.Const(page, X + 1, name="other"), "y", "input")
    (warning,) = page.warnings()
    assert warning.got == "y, the pool of another input"


def test_a_page_inside_a_page_names_the_way_and_has_no_fix() -> None:
    page = gradient_page(MAXIMA + 1)
    page.fold(["x", "y", "dy", "dx"], "part")
    (warning,) = page.warnings()
    assert warning.block == "part/dx"
    assert warning.fixes == ()


def test_maxima_that_are_computed_from_constants() -> None:
    page = gradient_page(MAXIMA / 2)
    page.connect(vg.ops.AddV2(page, page["y"].outputs[0], page["y"].outputs[0], name="twice"), "dx", "orig_output")
    assert page.warnings() == []
    page.set_attr("y", "value", MAXIMA / 4)
    (warning,) = page.warnings()
    assert (warning.code, warning.pin) == ("VG080", "orig_output")


def average_page(**gradient: Any) -> vg.Page:
    """An average pool and its gradient, which may have other attributes."""
    page = vg.Page("page")
    x = vg.ops.Const(page, X, name="x")
    window = WINDOW | {"strides": [1] * 5}
    y = vg.ops.AvgPool3D(page, x, **window, name="y")
    vg.ops.AvgPool3DGrad(page, vg.ops.Shape(page, x), y, **(window | gradient), name="dx")
    return page


def test_a_gradient_with_the_window_of_no_pool_on_the_page() -> None:
    assert average_page().warnings() == []
    page = average_page(ksize=[1, 3, 2, 2, 1])
    (warning,) = page.warnings()
    assert (warning.block, warning.pin, warning.code) == ("dx", "ksize", "VG080")
    assert warning.got == "[1,3,2,2,1], where y has ksize [1,2,2,2,1]"
    page.apply(warning.fix)
    assert page.warnings() == []
    y = vg.raw_ops.AvgPool3D(input=X, **(WINDOW | {"strides": [1] * 5}))
    expected = vg.raw_ops.AvgPool3DGrad(orig_input_shape=X.shape, grad=y, **(WINDOW | {"strides": [1] * 5}))
    np.testing.assert_array_equal(vg.ClientSession(page).run("dx"), expected)


def test_a_gradient_that_is_zero_says_why() -> None:
    page = gradient_page()
    page.set_attr("dy", "value", np.zeros((1, 2, 2, 2, 1), np.float32))
    vg.ops.MaxPool3DGradGrad(page, page["x"].outputs[0], page["y"].outputs[0], page["dx"].outputs[0], **WINDOW)
    (warning,) = page.warnings()  # told where it begins, and not again behind it
    assert (warning.block, warning.pin, warning.code) == ("dx", "grad", "VG081")
    assert warning.got == "zero everywhere, because grad is"
    page.apply(warning.fix)
    assert page.warnings() == []
    assert vg.ClientSession(page).run("dx").sum() == 8
    dead = vg.Page("relu")
    vg.ops.ReluGrad(dead, vg.ops.Const(dead, X + 1), vg.ops.Const(dead, -X), name="dx")
    (warning,) = dead.warnings()
    assert warning.got == "zero everywhere, because no element of features is above 0"


def test_a_constant_that_is_not_a_number() -> None:
    page = vg.Page("page")
    x = vg.ops.Const(page, np.array([1, np.nan, np.nan], np.float32), name="x")
    vg.ops.AddN(page, [x, x], name="y")
    (warning,) = page.warnings()
    assert (warning.block, warning.pin, warning.code, warning.got) == ("x", "value", "VG082", "nan at [1], 2 of 3")
    page.apply(warning.fix)
    assert vg.ClientSession(page).run("y").tolist() == [2, 0, 0]
    assert page.warnings() == [] and str(page["x"].outputs[0].dtype) == "float32"


def test_nan_that_begins_in_a_block_says_where_and_of_what() -> None:
    page = vg.Page("page")
    x = vg.ops.Const(page, np.array([4, -9, 1], np.float32), name="x")
    root = vg.ops.Sqrt(page, x, name="root")
    vg.ops.Neg(page, root, name="minus")
    (warning,) = page.warnings()  # told where it begins
    assert (warning.block, warning.code, warning.got) == ("root", "VG082", "nan at [1], 1 of 3")
    assert warning.remedy == "There, x is -9.0."
    page.set_attr("x", "value", np.array([4, 9, 1], np.float32))
    assert page.warnings() == []


def test_who_asks_for_nan_is_not_warned_of_it() -> None:
    page = vg.Page("page")
    x = vg.ops.Const(page, np.array([1, np.nan], np.float32), name="x")
    vg.ops.IsNan(page, x)
    assert page.warnings() == []
    vg.ops.Neg(page, x)
    assert [one.code for one in page.warnings()] == ["VG082"]


@pytest.mark.parametrize(
    ("op", "wrong", "pin"),
    [
        ("Tanh", "x", "y"),
        ("Sigmoid", "x", "y"),
        ("Sqrt", "x", "y"),
        ("Elu", "x", "outputs"),
        ("Softplus", "f", "features"),
    ],
)
def test_a_gradient_that_takes_the_wrong_end(op: str, wrong: str, pin: str) -> None:
    page = vg.Page("page")
    values = [-2, -0.5, 3] if op == "Elu" else [0.25, 0.5, 3]
    x = vg.ops.Const(page, np.array(values, np.float32), name="x")
    y = getattr(vg.ops, op)(page, x, name="f")
    (right,) = vg.gradients([y], [x])
    assert page.warnings() == []
    expected = vg.ClientSession(page).run(right)
    page.connect({"x": x, "f": y}[wrong], right.block, pin)
    (warning,) = page.warnings()
    assert (warning.block, warning.pin, warning.code) == (right.block.name, pin, "VG080")
    assert not np.array_equal(vg.ClientSession(page).run(right), expected)
    page.apply(warning.fix)
    assert page.warnings() == []
    np.testing.assert_array_equal(vg.ClientSession(page).run(right), expected)


def test_the_ends_of_relu_are_both_right() -> None:
    page = vg.Page("page")
    x = vg.ops.Const(page, np.array([-1, 2], np.float32), name="x")
    y = vg.ops.Relu(page, x)
    for end in (x, y):
        vg.ops.ReluGrad(page, vg.ops.OnesLike(page, x), end)
    assert page.warnings() == []
    twice = vg.Page("twice")
    inner = vg.ops.Tanh(twice, vg.ops.Const(twice, np.float32([1, 2])))
    vg.ops.TanhGrad(twice, inner, vg.ops.Tanh(twice, inner))  # its input is the output of another
    assert twice.warnings() == []


def idle_page(op: str) -> vg.Page:
    """A block whose result is the same whatever comes in."""
    page = vg.Page("page")
    shape = [1, 4, 4, 4, 1] if op.endswith("Pool3D") else [2, 1]
    x = vg.ops.Placeholder(page, dtype="float32", shape=shape, name="x")
    if op == "Mul":
        vg.ops.Mul(page, x, vg.ops.Const(page, np.zeros((2, 1), np.float32), name="nothing"), name="it")
    elif op == "SelectV2":
        truth = vg.ops.Const(page, np.array([[True], [True]]), name="truth")
        chosen = vg.ops.SelectV2(page, truth, x, vg.ops.Neg(page, x), name="it")
        vg.ops.Exp(page, chosen, name="after")
    elif op == "Softmax":
        vg.ops.Exp(page, vg.ops.Softmax(page, x, name="it"), name="after")
    elif op == "ApplyGradientDescent":
        w = vg.ops.Variable(page, shape=[2, 1], dtype="float32", name="w")
        page.start_with([vg.ops.Assign(page, w, np.ones((2, 1), np.float32), name="first")])
        vg.ops.ApplyGradientDescent(page, w, np.float32(0), x, name="it")
    else:
        getattr(vg.ops, op)(page, x, ksize=[1] * 5, strides=[1] * 5, padding="VALID", name="it")
    return page


@pytest.mark.parametrize(
    ("op", "code", "pin", "title"),
    [
        ("Mul", "VG081", "y", "Make y ones"),
        ("SelectV2", "VG084", "condition", "Take t in its place"),
        ("Softmax", "VG084", "logits", "Make it a Sigmoid"),
        ("ApplyGradientDescent", "VG084", "alpha", "Set alpha to 0.01"),
        ("MaxPool3D", "VG084", "ksize", "Set ksize to [1,2,2,2,1]"),
        ("AvgPool3D", "VG084", "ksize", "Set ksize to [1,2,2,2,1]"),
    ],
)
def test_a_result_that_does_not_depend_on_what_comes_in(op: str, code: str, pin: str, title: str) -> None:
    page = idle_page(op)
    (warning,) = page.warnings()
    assert (warning.block, warning.pin, warning.code) == ("it", pin, code)
    assert [fix.title for fix in warning.fixes] == [title]
    page.apply(warning.fix)
    assert page.problems() == [] and page.warnings() == []


def test_a_choice_that_is_computed_is_a_choice() -> None:
    page = vg.Page("page")
    x = vg.ops.Const(page, np.float32([1, 2]), name="x")
    vg.ops.SelectV2(page, vg.ops.Greater(page, x, np.float32(0)), x, vg.ops.Neg(page, x))
    vg.ops.Mul(page, x, vg.ops.Sub(page, x, x))
    assert page.warnings() == []


def test_what_a_display_shows_is_of_use() -> None:
    page = gradient_page()
    spare = vg.ops.Const(page, X, name="spare")
    page.displays.add("heat", [spare])
    assert page.warnings() == []


def test_what_feeds_nothing() -> None:
    page = gradient_page()
    vg.ops.Const(page, X, name="spare")
    (warning,) = page.warnings()
    assert (warning.block, warning.code) == ("spare", "VG083")
    page.apply(warning.fix)
    assert "spare" not in page and page.warnings() == []
    page.fold(["x", "y", "dy", "dx"], "part")
    vg.ops.Neg(page.pages["part"], page.pages["part"]["y"].outputs[0], name="unseen")
    assert [(one.block, one.code) for one in page.warnings()] == [("part/unseen", "VG083")]


def test_an_unwired_block_stops_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = gradient_page()
    page.add("Relu", name="later")
    page.save(tmp_path / "page.vox.json")
    assert main(["run", str(tmp_path / "page.vox.json"), "--json"]) == 0
    told = capsys.readouterr()
    assert "warning: VG001 Relu: later.features must be connected" in told.err and "dx" in told.out
    page.connect(page["later"].outputs[0], vg.ops.Neg(page, X, name="minus").block, "x")
    page.save(tmp_path / "page.vox.json")
    assert main(["run", str(tmp_path / "page.vox.json")]) == 1


def fixed(name: str, folder: Path) -> vg.Page:
    """An example after all that `check --fix` does by itself."""
    file = folder / "fixed.vox.json"
    assert main(["check", str(EXAMPLES / f"{name}.vox.json"), "--fix", "-o", str(file)]) == 0
    return vg.Page.load(file)


def test_the_card_with_a_mistake_ends_in_the_maxima(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = fixed("max_pool3d_grad_grad_mistake", tmp_path)
    assert page.problems() == page.warnings() == []
    pool = next(block for block in page.blocks if block.op_name == "MaxPool3D")
    run = vg.ClientSession(page).run
    assert run(pool.outputs[0]).ravel().tolist() == [15, 16, 31, 32]
    assert run("grad_grad").ravel().tolist() == [2, 2, 2, 2]  # the direction of the card is 2 everywhere
    assert "no problems;" in capsys.readouterr().out


def test_the_card_of_the_average_ends_as_the_right_one(tmp_path: Path) -> None:
    page = fixed("avg_pool3d_grad_mistake", tmp_path)
    assert page.problems() == page.warnings() == []
    right = vg.ClientSession(vg.Page.load(EXAMPLES / "avg_pool3d_grad.vox.json")).run("grad")
    np.testing.assert_array_equal(vg.ClientSession(page).run("grad"), right)
    pool = next(block for block in page.blocks if block.op_name == "AvgPool3D")
    assert vg.ClientSession(page).run(pool.outputs[0]).ravel().tolist() == [8, 9, 24, 25]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.vox.json")), ids=lambda path: path.name)
def test_no_example_has_something_to_look_at(path: Path) -> None:
    assert vg.Page.load(path).warnings() == []


def test_commands_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = gradient_page(MAXIMA + 1)
    page.save(tmp_path / "page.vox.json")
    assert main(["check", str(tmp_path / "page.vox.json")]) == 0
    told = capsys.readouterr().out
    assert "warning: VG080 MaxPool3DGrad: dx.orig_output must be the MaxPool3D of orig_input; got" in told
    assert "no problems, 1 to look at" in told
    assert main(["run", str(tmp_path / "page.vox.json")]) == 0
    assert "warning: VG080" in capsys.readouterr().err


def test_what_is_wrong_is_looked_at_no_further_whatever_it_is_called() -> None:
    """A name with a slash is no way into another page: values of the wrong shape were compared."""
    page = gradient_page(MAXIMA)
    sizes = vg.ops.Shape(page, vg.ops.Const(page, np.float32(2)))
    page.connect(sizes, "dx", "orig_output")
    page.rename("dx", "gradients/dx")
    assert {problem.block for problem in page.problems()} == {"gradients/dx"}
    assert [one.block for one in page.warnings()] == ["y"], "of which nothing is used now"
    page.fold(["x", "gradients/dx"], "part")
    assert {problem.block for problem in page.problems()} == {"part/gradients/dx"}
    assert not [one for one in page.warnings() if one.block.startswith("part")]
