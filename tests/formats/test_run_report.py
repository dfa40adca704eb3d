# SPDX-License-Identifier: Apache-2.0
"""Reports of runs: everything that is known is in them, nothing in them is executed or fetched."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import voxgrad as vg
from examples.make_pages import FOLDER
from voxgrad.cli import main
from voxgrad.formats.run_report import BlockFacts, OutputFacts, RunFacts, report_html

HOSTILE = '</title></style><script>alert(1)</script><img src=x onerror="alert(1)"> "\' & \x07‮'


class Parsed(HTMLParser):
    """The tags with their attributes, and the text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def pictures(self) -> list[str]:
        """The drawings, as SVG text."""
        found = [attrs["src"] or "" for tag, attrs in self.tags if tag == "img"]
        return [base64.b64decode(one.removeprefix("data:image/svg+xml;base64,")).decode() for one in found]


def harmless(text: str) -> Parsed:
    """The report, if it can do nothing: no script, no handler, no address but data, and pictures that are as quiet."""
    found = Parsed(text)
    assert {tag for tag, _ in found.tags} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "img", "table", "thead", "tbody",
        "tr", "th", "td", "b", "code", "ul", "li", "pre", "p", "figure", "figcaption", "footer",
    }  # fmt: skip
    for _, attrs in found.tags:
        assert not any(name.startswith("on") for name in attrs) and "href" not in attrs
        assert (attrs.get("src") or "data:").startswith("data:image/svg+xml;base64,") or "src" not in attrs
    policies = [attrs["content"] for tag, attrs in found.tags if tag == "meta" and "http-equiv" in attrs]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    for picture in found.pictures:
        for element in ElementTree.fromstring(picture).iter():
            name = element.tag.rpartition("}")[2]
            assert name in ("svg", "title", "style", "rect", "g", "text", "tspan", "path", "circle", "polygon",
                            "polyline", "image"), name  # fmt: skip
            assert not any(key.lower().startswith("on") for key in element.attrib)
            href = element.attrib.get("href", "data:image/png;base64,")
            assert href.startswith("data:image/png;base64,")
        assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|@import|url\(", text)
    return found


def test_a_run_of_the_command_line_as_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.html"
    page = FOLDER / "conv3d_backprop_input.vox.json"
    assert main(["run", str(page), "--report", str(file)]) == 0
    plain = capsys.readouterr().out
    assert main(["run", str(page)]) == 0
    assert capsys.readouterr().out == plain, "the report changes nothing else"
    found = harmless(file.read_text())
    loaded = vg.Page.load(page)
    output = list(loaded.outputs.values())[-1]
    value = vg.ClientSession(loaded).run(output)
    for told in ("semantics", "documented", "done", "cpu", output.block.op_name, f"{value.mean():.6g}", "UTC", "NumPy", "No problems"):
        assert told in found.text, told
    picture = found.pictures[0]
    assert output.block.name in picture and f"{value.min():.6g} .. {value.mean():.6g} .. {value.max():.6g}" in picture


def test_a_run_that_fails_is_reported_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = vg.Page("fails")
    x = vg.ops.Const(page, np.array([b"one"], object), name="x")
    page.add("StringToNumber", {"string_tensor": x}, name="number")
    page.save(tmp_path / "fails.vox.json")
    assert main(["run", str(tmp_path / "fails.vox.json"), "--report", str(tmp_path / "run.html")]) == 1
    capsys.readouterr()
    found = harmless((tmp_path / "run.html").read_text())
    assert "Why it did not run to its end" in found.text and "failed" in found.text and "number" in found.text
    for wrong in (["--report", str(tmp_path / "run.txt")], ["--report", "run.html", "--volume", "x=a.zarr"]):
        assert main(["run", str(tmp_path / "fails.vox.json"), *wrong]) != 0
        assert not (tmp_path / "run.txt").exists()
        assert "html" in capsys.readouterr().err


def test_a_report_shows_curves_kept_results_and_what_is_not_finite(tmp_path: Path) -> None:
    page = vg.Page("loop")
    w = page.add("VariableV2", attrs={"shape": [], "dtype": "float32"}, name="w")
    page.start_with([page.add("Assign", {"ref": w, "value": np.float32(8)}, name="first")])
    half = page.add("Mul", {"x": w, "y": np.float32(0.5)}, name="half")
    page.execute([page.add("Assign", {"ref": w, "value": half}, name="step")])
    bad = vg.ops.Const(page, np.array([1, np.nan, np.inf], np.float32), name="bad")
    page.add("Neg", {"x": bad}, name="negative")
    page.apply({"do": "add", "display": "trend", "name": "curve", "of": [{"from": "half.z"}]})
    page.save(tmp_path / "loop.vox.json")
    given = [str(tmp_path / "loop.vox.json"), "--cycles", "3", "--fetch", "negative", "--report"]
    assert main(["run", *given, str(tmp_path / "run.html")]) == 0
    found = harmless((tmp_path / "run.html").read_text())
    assert len(found.pictures) == 2 and "polyline" in found.pictures[1] and "curve: half.z = 1" in found.text
    rows = (tmp_path / "run.html").read_text().split("<tr>")
    negative = next(row for row in rows if "<b>negative</b>" in row)
    assert ">cached<" in negative and '<td rowspan="1" class="number"></td>' in negative, "kept: no time"
    assert '<td class="number warn">2</td>' in negative and "-1, nan, -inf" in negative
    assert ">w<" in next(row for row in rows if "<b>w</b>" in row) and "Displays" in found.text


@pytest.mark.parametrize("text", [HOSTILE, "javascript:alert(1)", "]]><svg onload=alert(1)>", "&lt;script&gt;"])
def test_texts_of_a_page_do_nothing(text: str) -> None:
    printable = "".join(letter for letter in text if letter.isprintable())
    page = vg.Page(printable)
    name = "".join(letter for letter in printable if letter not in ":/^.").strip()
    x = vg.ops.Const(page, np.array([text.encode()], object), name=name)
    page.add("StringToNumber", {"string_tensor": x}, name="number")
    page.notes.append({"text": text, "position": [0, 0]})
    page.apply({"do": "add", "display": "value", "name": name, "of": [{"from": "number.output", "label": text}]})
    facts: Any = [
        BlockFacts("number", text, text, 1.0, (OutputFacts(text, text, (1,), first=(text,)),), error=text),
        BlockFacts(text, "ran", outputs=(OutputFacts.of(text, np.array([text.encode()], object)),)),
    ]
    found = harmless(report_html(page, RunFacts(text, text, 0.0, None, 1, facts, versions={text: text})))
    assert "alert(1)" in found.text or "script" in found.text
    assert "\x07" not in found.text and "‮" not in found.text
