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
    assert page.warnings() == []


@pytest.mark.parametrize("changed", [{"ksize": [1, 1, 2, 2, 1]}, {"padding": "VALID"}, {"ksize": [1, 2, 2, 1, 1]}])
def test_a_pool_with_other_attributes(changed: dict[str, Any]) -> None:
    (warning,) = gradient_page(**changed).warnings()
    (name,) = changed
    assert f"y, which has {name}" in warning.got


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


def test_the_card_with_a_mistake_ends_in_the_maxima(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = tmp_path / "fixed.vox.json"
    name = str(EXAMPLES / "max_pool3d_grad_grad_mistake.vox.json")
    assert main(["check", name, "--fix", "-o", str(fixed)]) == 0
    page = vg.Page.load(fixed)
    assert page.problems() == page.warnings() == []
    pool = next(block for block in page.blocks if block.op_name == "MaxPool3D")
    assert vg.ClientSession(page).run(pool.outputs[0]).ravel().tolist() == [15, 16, 31, 32]
    assert "no problems;" in capsys.readouterr().out


def test_commands_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = gradient_page(MAXIMA + 1)
    page.save(tmp_path / "page.vox.json")
    assert main(["check", str(tmp_path / "page.vox.json")]) == 0
    told = capsys.readouterr().out
    assert "warning: VG080 MaxPool3DGrad: dx.orig_output must be the MaxPool3D of orig_input; got" in told
    assert "no problems, 1 to look at" in told
    assert main(["run", str(tmp_path / "page.vox.json")]) == 0
    assert "warning: VG080" in capsys.readouterr().err
