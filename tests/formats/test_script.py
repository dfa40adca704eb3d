# SPDX-License-Identifier: Apache-2.0
"""Exported scripts run by themselves and give the numbers of the page."""

from __future__ import annotations

import builtins
import keyword
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from examples.make_pages import FOLDER
from voxgrad.errors import VoxgradError
from voxgrad.formats.enuspace import import_page
from voxgrad.formats.page_file import load
from voxgrad.formats.script import export_script, write_script
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession

ENUSPACE = Path(__file__).with_name("enuspace")
CYCLES = 3
PAGES = [
    "avg_pool3d_grad", "max_pool3d_grad_grad", "conv3d_backprop_input", "conv3d_backprop_filter",
    "conv3d_and_gradients", "unet_block", "second_order", "train_classifier", "gradient_descent", "xor",
]  # fmt: skip
OLD_PAGES = ["basic", "basic_v4", "one_hot", "gradient_descent_xw_sub"]
SAVE = """
import sys, numpy as np
sys.path.insert(0, {folder!r})
import {module} as script
np.savez({target!r}, **{{name.replace("/", "|"): value for name, value in script.run({cycles}).items()}})
"""


def run_script(page: Page, target: str, folder: Path) -> dict[str, np.ndarray]:
    """What a process of its own gets from the script."""
    write_script(page, folder / "exported.py", target)
    saved = folder / "results.npz"
    program = SAVE.format(folder=str(folder), module="exported", target=str(saved), cycles=CYCLES)
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    with np.load(saved) as results:
        return {name.replace("|", "/"): results[name] for name in results.files}


def run_page(page: Page) -> dict[str, np.ndarray]:
    values = ClientSession(page).loop(CYCLES, list(page.outputs.values()), targets=page.targets)
    return dict(zip(page.outputs, values, strict=True))


def open_page(name: str) -> Page:
    return import_page(ENUSPACE / f"{name}.svg").page if name in OLD_PAGES else load(FOLDER / f"{name}.vox.json")


def odd_page() -> Page:
    """Names, types and structures that a script must survive."""
    page = Page('a "strange" \\ page')
    c = page.add("Const", attrs={"value": np.array([1, np.nan, np.inf]), "dtype": "float64"}, name="class")
    page.add("Neg", {"x": c}, name="scope/lambda")
    page.add("Neg", {"x": page["scope/lambda"]}, name="scope_lambda")
    big = np.arange(1000).astype(ml_dtypes.bfloat16)
    large = page.add("Const", attrs={"value": big, "dtype": "bfloat16"}, name="0 big")
    cast = page.add("Cast", {"x": large}, {"DstT": "float32"}, name="np")
    parts = page.add("Split", {"axis": 0, "value": cast}, {"num_split": 4}, name="parts")
    page.add("AddN", {"inputs": [parts.output(1), parts.output(3)]}, name="sum")
    inner = Page("twice")
    p = inner.add("Placeholder", attrs={"dtype": "float32", "shape": ["n"]}, name="p")
    inner.expose({"r": inner.add("Add", {"x": p, "y": p}, name="q")}, ["p"])
    page.define("twice", inner)
    used = page.add("Identity", {"input": page.use("twice", {"p": page["sum"]}, name="used")}, name="out")
    page.run_after("out", "class")
    page.expose({"sum": page["sum"], "out": used, "odd": page["scope_lambda"], "inner": page["used"]})
    return page


@pytest.mark.parametrize("name", [*PAGES, *OLD_PAGES])
def test_voxgrad_scripts_give_the_same_bits(name: str, tmp_path: Path) -> None:
    page = open_page(name)
    made, wanted = run_script(page, "voxgrad", tmp_path), run_page(page)
    assert set(made) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_array_equal(made[key], value, err_msg=key)


def test_odd_pages_survive(tmp_path: Path) -> None:
    page = odd_page()
    made, wanted = run_script(page, "voxgrad", tmp_path), run_page(page)
    for key, value in wanted.items():
        np.testing.assert_array_equal(made[key], value, err_msg=key)


def nasty_page() -> Page:
    """Blocks called as everything that a script could need, and large values whose names run into each other."""
    page = Page("nasty")
    own = ["sys", "Path", "ml_dtypes", "np", "vg", "ops", "tf", "data", "page", "graph", "run", "OUTPUTS", "TARGETS",
           "INITIALIZERS", "PLACEHOLDERS", "name", "value", "values", "session", "fed", "feeds", "cycles"]  # fmt: skip
    names = sorted({*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *own})
    start = page.add("Placeholder", attrs={"dtype": "float32", "shape": []}, name="start")
    made = [page.add("AddV2", {"x": start, "y": np.float32(at)}, name=name) for at, name in enumerate(names)]
    nan = page.add("Const", attrs={"value": np.array([np.nan, -np.inf]), "dtype": "float64"}, name="const")
    text = page.add("Const", attrs={"value": np.array([b"a"], dtype=object), "dtype": "string"}, name="text")
    pool = {"ksize": [1, 2, 1, 1, 1], "strides": [1, 2, 1, 1, 1], "padding": "VALID"}
    x, y, g = (np.full((1, size, 1, 1, 1), at, np.float32) for at, size in enumerate((800, 400, 400)))
    first = page.add("MaxPool3DGrad", {"orig_input": x, "orig_output": y, "grad": g}, pool, name="a")
    second = page.add("MaxPool3D", {"input": x + 5}, pool, name="a_orig")
    total = page.add("AddN", {"inputs": made}, name="all of them")
    page.expose({"all": total, "nan": nan, "text": text, "first": first, "second": second})
    return page


@pytest.mark.parametrize("target", ["voxgrad", pytest.param("tensorflow", marks=pytest.mark.parity)])
def test_blocks_may_be_called_as_what_the_script_needs(target: str, tmp_path: Path) -> None:
    page = nasty_page()
    write_script(page, tmp_path / "exported.py", target)
    program = """
import exported
for cycles in (1, 2):
    found = exported.run(cycles, {"start": 0.5})
print(*(found[name].sum().item() for name in ("all", "first", "second")), found["text"].tolist())
"""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    outputs = [page.outputs[name] for name in ("all", "first", "second")]
    wanted = ClientSession(page).run(outputs, {"start": np.float32(0.5)})
    assert done.stdout.split() == [*(str(float(value.sum())) for value in wanted), "[b'a']"]


@pytest.mark.parity
@pytest.mark.parametrize("name", [*PAGES, *OLD_PAGES, "odd"])
def test_tensorflow_scripts_give_the_same_values(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    page = odd_page() if name == "odd" else open_page(name)
    made, wanted = run_script(page, "tensorflow", tmp_path), run_page(page)
    assert set(made) == set(wanted)
    for key, value in wanted.items():
        assert made[key].dtype == value.dtype
        if value.dtype.kind != "f":
            np.testing.assert_array_equal(made[key], value, err_msg=key)
        else:
            scale = float(np.abs(value[np.isfinite(value)]).max(initial=0))
            np.testing.assert_allclose(made[key], value, rtol=2e-5, atol=2e-6 * scale, err_msg=key)


def test_pages_that_are_wrong_are_not_exported() -> None:
    with pytest.raises(VoxgradError, match="VG012"):
        export_script(load(FOLDER / "avg_pool3d_grad_mistake.vox.json"))
    with pytest.raises(VoxgradError, match="VG003"):
        export_script(Page("p"), "pytorch")


def test_values_cannot_become_code() -> None:
    page = Page("'''+exit(1)+'''")
    hostile: Any = '"); import os; ("'
    page.add("PreventGradient", {"input": 1.0}, {"message": hostile}, name="x); exit(1)#")
    for target in ("voxgrad", "tensorflow"):
        text = export_script(page, target).text
        compile(text, "exported.py", "exec")
        assert repr(hostile) in text
