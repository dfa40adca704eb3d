# SPDX-License-Identifier: Apache-2.0
"""The example pages are what their maker makes, and compute what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from examples.make_pages import FOLDER, PAGES
from voxgrad.cli.check import fix_all
from voxgrad.cli.run import run_page
from voxgrad.formats.page_file import SCHEMA, load
from voxgrad.graph.page import Page
from voxgrad.graph.session import ClientSession


def open_example(name: str) -> Page:
    return load(FOLDER / f"{name}.vox.json")


@pytest.mark.parametrize("name", PAGES)
def test_the_file_is_up_to_date(name: str, tmp_path: Path) -> None:
    PAGES[name]().save(tmp_path / f"{name}.vox.json")
    made, kept = ((folder / f"{name}.vox.json").read_text() for folder in (tmp_path, FOLDER))
    assert made == kept, "run python -m examples.make_pages"


@pytest.mark.parametrize("name", PAGES)
def test_the_file_follows_the_schema(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    data = json.loads((FOLDER / f"{name}.vox.json").read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)


@pytest.mark.parametrize("name", PAGES)
def test_it_is_right_or_says_what_is_wrong(name: str) -> None:
    page = open_example(name)
    assert bool(page.problems()) == name.endswith("_mistake")
    assert all(block.position is not None for block in page)
    fix_all(page)
    assert page.problems() == []
    assert run_page(ClientSession(page), [], {})


def outputs(name: str, cycles: int = 1) -> dict[str, np.ndarray]:
    page = open_example(name)
    values = ClientSession(page).loop(cycles, list(page.outputs.values()), targets=page.targets)
    return dict(zip(page.outputs, values, strict=True))


def test_the_seed_pages_give_the_numbers_of_the_old_pictures() -> None:
    found = outputs("conv3d_backprop_input")
    assert found["conv"].ravel().tolist() == [2856, 2992, 6952, 7344]
    assert found["dx"].ravel()[[0, 1, -1]].tolist() == [8840, 20536, 450520]
    found = outputs("conv3d_backprop_filter")
    assert found["dfilter"].ravel()[[0, 1, -1]].tolist() == [121040, 127840, 282880]
    found = outputs("max_pool3d_grad_grad")
    assert found["pool"].ravel().tolist() == [15, 16, 31, 32]
    assert found["grad_grad"].ravel().tolist() == [150, 160, 310, 320]
    assert outputs("avg_pool3d_grad")["dx"][:, 1, 1, 1].ravel().tolist() == [1, 9 / 8, 3, 25 / 8]


def test_the_second_order_page_agrees_with_finite_differences() -> None:
    page = open_example("second_order")
    x, v = (page[name].attrs["value"].astype(np.float64) for name in ("x", "v"))
    session = ClientSession(page)
    step = 1e-3
    ahead, back = (session.run(page.outputs["dx"], {"x": (x + sign * step * v).astype(np.float32)}) for sign in (1, -1))
    numeric = (ahead.astype(np.float64) - back) / (2 * step)
    np.testing.assert_allclose(session.run(page.outputs["hvp"]), numeric, atol=0.3, rtol=0.02)


def test_training_pages_learn() -> None:
    assert outputs("gradient_descent", 20)["w"] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(outputs("xor", 500)["output"].ravel(), [0, 1, 1, 0], atol=0.1)
    first, last = outputs("train_classifier", 1), outputs("train_classifier", 60)
    assert float(first["loss"]) > 0.6
    assert float(last["loss"]) < 0.1
    assert float(last["accuracy"]) == 1
