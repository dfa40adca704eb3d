# SPDX-License-Identifier: Apache-2.0
"""The page of every op: its example runs as a page and as the program that is printed, and gives what is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.grouped import grouped
from voxgrad.catalog.examples import example_of, names
from voxgrad.catalog.model import Attr
from voxgrad.catalog.registry import OPS
from voxgrad.cli.main import main
from voxgrad.formats.enuspace.helpers import HELPER_PAGES
from voxgrad.formats.enuspace.library import library, op_of, symbols_of
from voxgrad.formats.op_page import example_as_page, op_page, results_of
from voxgrad.formats.page_file import dumps, loads
from voxgrad.formats.text import parse_attr, parse_value
from voxgrad.formats.text.forms import forms_of

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def _agree(one: str, other: str) -> bool:
    """Texts are the same, numbers in them to the last digit but one."""
    numbers = [[float(part) for part in _NUMBER.findall(text)] for text in (one, other)]
    return _NUMBER.sub("#", one) == _NUMBER.sub("#", other) and np.allclose(*numbers, rtol=2e-5, atol=0)


def _printed(name: str) -> tuple[str, dict[str, str]]:
    """The program on a page of the reference, and the values below it."""
    text = (REFERENCE / f"{name}.md").read_text()
    code = text.partition("```python\nimport numpy as np, voxgrad as vg\n\n")[2].partition("\n```")[0]
    rows = re.findall(r"^\| ([^|*`]+) \| [a-z0-9\[\]]+ \| `(.*)` \|$", text, re.MULTILINE)
    return code, {path: value.replace(r"\|", "|") for path, value in rows}


def test_every_op_of_tensorflow_has_an_example() -> None:
    assert {name for name, op in OPS.items() if not op.own} == names()


def test_every_block_of_the_original_has_its_page_with_a_picture_and_an_example() -> None:
    assert len(library()) == 486
    index = (REFERENCE / "enuspace.md").read_text()
    for symbol in library().values():
        op = op_of(symbol)
        name = symbol.name if op is None else op.name
        text = (REFERENCE / f"{name}.md").read_text()
        assert f"| {symbol.name} | [{name}]({name}.md) |" in index, symbol.name
        for picture in re.findall(r"\]\((img/[^)]+)\)", text):
            assert (REFERENCE / picture).read_text().startswith("<svg "), picture
        assert f"(img/{name}.svg)" in text and f"(img/{name}.example.svg)" in text, name
        assert op is None or op.gradient is None or f"(img/{name}.gradient.svg)" in text or "No gradient flows" in text


@grouped("name", sorted(names()), by=lambda name: OPS[name].group)
def test_the_printed_program_gives_the_printed_values(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program stands alone: what it leaves is what the page has below it."""
    code, printed = _printed(name)
    assert printed, name
    monkeypatch.chdir(tmp_path)
    room: dict[str, Any] = {"np": np, "vg": vg}
    exec(code, room)  # a page of our own reference
    (only, *_) = (path.rpartition(".")[2] for path in printed)
    found = room["results"] if "results" in room else room[only]
    flat = [one for part in (found if isinstance(found, (list, tuple)) else [found])
            for one in (part if isinstance(part, list) else [part])]  # fmt: skip
    made = results_of({path: np.asarray(value) for path, value in zip(printed, flat, strict=True)})
    wrong = [(one.path, one.text, printed[one.path]) for one in made if not _agree(one.text, printed[one.path])]
    assert wrong == [], name


@grouped("name", sorted(names()), by=lambda name: OPS[name].group)
def test_the_example_is_a_page_that_runs_after_a_save(name: str, tmp_path: Path) -> None:
    page = example_as_page(OPS[name])
    assert page is not None
    again = loads(dumps(page))
    assert again.problems() == [] and dumps(again) == dumps(page)
    example = example_of(name)
    assert example is not None
    session = vg.ClientSession(again, allow_files=tmp_path, log=lambda line: None)
    session.run([], example.feeds, again.targets)
    _, printed = _printed(name)
    shown = {one.path for display in again.displays for one in display.of}
    assert printed.keys() <= shown and printed.keys() <= session.readings.last.keys()


@pytest.mark.parametrize("helper", HELPER_PAGES.values(), ids=HELPER_PAGES)
def test_a_helper_of_the_original_has_its_page(helper: Any) -> None:
    text = (REFERENCE / f"{helper.name}.md").read_text()
    for result in results_of(helper.page().run()):
        assert f"| {result.path} | {result.spec} | `{result.text}` |" in text


def test_a_gradient_that_is_drawn_is_made_of_ops() -> None:
    page = op_page(OPS["MaxPool3DGradGrad"])
    assert "MaxPool3DGrad" in page.slopes and "MaxPool3DGrad" in page.gradient_picture()
    assert op_page(OPS["Shape"]).gradient_picture() == ""
    assert set(page.slopes) <= set(OPS)


def test_forms_that_are_shown_are_read() -> None:
    for op in OPS.values():
        for item in op.parameters:
            for form in forms_of(item):
                if isinstance(item, Attr) and not (item.choices or item.length):
                    parse_attr(item, form, op.name)
                elif not isinstance(item, Attr):
                    parse_value(form)


def test_differences_from_the_original_are_told() -> None:
    told = " ".join(op_page(OPS["MaxPool3D"]).differences)
    assert "MaxPool::Attrs" in told and "NHWC, which TensorFlow refuses" in told
    assert "could not make it" in " ".join(op_page(OPS["Any"]).differences)
    assert "called Multiply" in " ".join(op_page(OPS["Mul"]).differences)
    assert "alpha was cut to a whole number" in " ".join(op_page(OPS["LRN"]).differences)
    assert [symbol.name for symbol in symbols_of(OPS["Const"])] == ["Const", "Const_ex"]


def test_the_command_line_shows_the_page_and_writes_the_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ops", "ApplyMomentum"]) == 0
    said = capsys.readouterr().out
    assert "accum = momentum * accum + grad\n    var -= lr * accum" in said
    assert "step.out float32[2]\n        {0.3, 1.675}" in said.replace("0.300000", "0.3")
    assert main(["ops", "TopK"]) == 0
    assert "Deprecated in TensorFlow: Use TopKV2 instead." in capsys.readouterr().out
    file = tmp_path / "add.vox.json"
    assert main(["ops", "Add", "--page", str(file)]) == 0
    assert main(["run", str(file)]) == 0
    assert "11  22" in capsys.readouterr().out
