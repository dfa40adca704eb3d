# SPDX-License-Identifier: Apache-2.0
"""The explainers of the documentation: what they hold is what the definition gives, and is data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxgrad.catalog import dtypes
from voxgrad.catalog.model import Op, Side, Spec
from voxgrad.catalog.problem import Problem, parse
from voxgrad.catalog.registry import FAMILY, OPS
from voxgrad.cli.main import main
from voxgrad.errors import InvalidArgumentError
from voxgrad.formats.explainer.asked import asked_lesson, lesson_page
from voxgrad.formats.explainer.choices import choices_of, forward_of
from voxgrad.formats.explainer.html import explainer_html, words
from voxgrad.formats.explainer.packing import SHOWN_LAWS
from voxgrad.reference import evaluate
from voxgrad.reference.pooling import NEAR

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "explain"
FORWARD = ("AvgPool3D", "MaxPool3D", "Conv3D")
MOST_BYTES = 150_000
Array = np.ndarray[Any, Any]


class _Elements(HTMLParser):
    """All elements of a page with their attributes, and the text in each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)

    def one(self, tag: str, **attrs: str) -> str:
        """The text of the element with these attributes."""
        (text,) = [text for name, given, text in self.found if name == tag and attrs.items() <= given.items()]
        return text


@cache
def _page(name: str) -> _Elements:
    return _Elements((FOLDER / f"{name}.html").read_text())


@cache
def _pack(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_page(name).one("script", id="lessons"))
    return found


def _states(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every choice that the page offers, and what it shows; the choices are counted here anew."""
    pack = _pack(name)
    kinds = ("window", "stride", "padding", "case", "semantics")
    for at, chosen in enumerate(product(*(pack["choices"][kind] for kind in kinds))):
        yield dict(zip(kinds, chosen, strict=True)), pack["states"][pack["at"][at]]


def _tensors(pack: dict[str, Any], state: dict[str, Any]) -> dict[str, tuple[dict[str, Any], Array]]:
    pairs = zip(state["tensors"][::2], state["tensors"][1::2], strict=True)
    found = {}
    for kind, values in pairs:
        about = pack["tensors"][kind]
        found[about["name"]] = (about, np.array([float(one) for one in pack["values"][values]]).reshape(about["sizes"]))
    return found


def _attrs(op: Op, chosen: dict[str, Any]) -> dict[str, Any]:
    window, dilation = chosen["window"][:3], chosen["window"][3:] or [1, 1, 1]
    given = {"ksize": window, "strides": chosen["stride"], "dilations": dilation}
    attrs: dict[str, Any] = {
        name: [1, *value, 1] for name, value in given.items() if name in {a.name for a in op.attrs}
    }
    return attrs | {"padding": chosen["padding"]}


def _problem(op: Op, chosen: dict[str, Any], semantics: str) -> Problem:
    """The problem of a call, from shapes alone: the volume is 2x4x4, the filter as large as the window."""
    volume, window = (1, 2, 4, 4, 1), (*chosen["window"][:3], 1, 1)
    forward = forward_of(op)
    specs = {item.name: Spec(dtypes.FLOAT32, volume if item.side is Side.CELLS else window) for item in forward.inputs}
    small = parse(forward, specs, _attrs(forward, chosen), semantics).output_shape
    shapes = {Side.CELLS: volume, Side.TAPS: window, Side.WINDOWS: small}
    specs = {
        item.name: Spec(dtypes.INT32, (5,), shapes[item.side]) if item.host else Spec(dtypes.FLOAT32, shapes[item.side])
        for item in op.inputs if item.side is not None
    }  # fmt: skip
    return parse(op, specs, _attrs(op, chosen), semantics)


def _lift(about: dict[str, Any], values: Array) -> Array:
    """With batch and channels, or with the channels of a filter."""
    return values[..., None, None] if about["side"] == "taps" else values[None, ..., None]


@pytest.mark.parametrize("name", FORWARD)
def test_every_embedded_number_is_what_the_definition_gives(name: str) -> None:
    pack, seen = _pack(name), 0
    for chosen, state in _states(name):
        if "steps" not in state:
            continue
        tensors = _tensors(pack, state)
        for at, *_ in state["steps"]:
            step = pack["steps"][at]
            op = OPS[step["op"]]
            operands = [_lift(*tensors[tensor]) for tensor in step["operands"].values()]
            with np.errstate(invalid="ignore"):
                wanted = evaluate(_problem(op, chosen, chosen["semantics"]), *operands)
            np.testing.assert_allclose(
                _lift(*tensors[step["output"]]), wanted, rtol=2e-6, atol=1e-6, err_msg=f"{step} {chosen}"
            )
            seen += 1
    assert seen > 300


def _offset(size: int, window: int, dilation: int, stride: int, padding: str, late: bool) -> int:
    """Where the first window starts, written down once more from TensorFlow's documentation."""
    reach = (window - 1) * dilation + 1
    if padding == "VALID":
        return 0
    if padding != "SAME":
        return -1 if size > 2 else 0
    missing = (-(-size // stride) - 1) * stride + reach - size
    return -(missing // 2) if missing > 0 else -missing // 2 if late else 0


def _covered(chosen: dict[str, Any], op: Op, at: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Of a window, every real cell with the tap that lies on it, by brute force."""
    window, dilation = chosen["window"][:3], chosen["window"][3:] or [1, 1, 1]
    compat = chosen["semantics"] == "tf_cpu"
    pairs: list[list[tuple[int, int]]] = []
    for size, k, d, s, place in zip((2, 4, 4), window, dilation, chosen["stride"], at, strict=True):
        first = place * s + _offset(
            size, k, d, s, chosen["padding"], compat and op.map.output is Side.WINDOWS and not op.of
        )
        cells = [(first + tap * d, tap) for tap in range(k) if 0 <= first + tap * d < size]
        if (
            compat
            and op.map.output is Side.CELLS
            and not op.map.has_taps
            and k > size
            and chosen["padding"] in ("SAME", "VALID")
        ):
            cells = [(cell, 0) for cell in range(max(first, 0), size)]
        pairs.append(cells)
    return [((d, h, w), (i, j, k)) for (d, i), (h, j), (w, k) in product(*pairs)]


def _boxes(
    pack: dict[str, Any], step: dict[str, Any], pin: str
) -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """What every element reads, as the view unfolds it."""
    axes = [pack["spans"][axis] for axis in step["reads"][pin]]
    for at in np.ndindex(*map(len, axes)):
        yield at, list(product(*(range(*axis[one][:3]) for axis, one in zip(axes, at, strict=True))))


@pytest.mark.parametrize("name", FORWARD)
def test_windows_lie_where_brute_force_finds_them(name: str) -> None:
    """Forward, the cells of every window; backward, the windows of every cell: both from the same list of pairs."""
    pack = _pack(name)
    for chosen, state in _states(name):
        for at, *_ in state.get("steps", ()):
            step = pack["steps"][at]
            op, read = OPS[step["op"]], {item.side: item.name for item in OPS[step["op"]].inputs if not item.host}
            tensors = _tensors(pack, state)
            windows = tensors["y"][0]["sizes"]
            met = [(place, cell, tap) for place in np.ndindex(*windows) for cell, tap in _covered(chosen, op, place)]
            side = {Side.WINDOWS: 0, Side.CELLS: 1, Side.TAPS: 2}
            mine = side[op.map.output]
            other = next(one for one in (Side.CELLS, Side.WINDOWS) if one in read and one is not op.map.output)
            if op.map.output is Side.CELLS:
                other = Side.WINDOWS
            pins = [item.name for item in op.inputs if item.side is other and not item.host]
            for pin in pins:
                for place, box in _boxes(pack, step, pin):
                    wanted = sorted({one[side[other]] for one in met if one[mine] == place})
                    assert sorted(box) == wanted, (step["op"], chosen, pin, place)


@pytest.mark.parametrize("name", ["AvgPool3D", "MaxPool3D"])
def test_what_arrives_adds_up_to_the_result(name: str) -> None:
    """Shares times values are the result: of averages by their divisors, of maxima by their winners."""
    pack = _pack(name)
    for chosen, state in _states(name):
        tensors = _tensors(pack, state) if "steps" in state else {}
        for at, *places in state.get("steps", ()):
            step = pack["steps"][at]
            values = tensors[step["operands"][step["part"]]][1]
            rows = [pack["rows"][row] for row in pack["lists"][places[0]]]
            result = tensors[step["output"]][1]
            for (place, box), row in zip(_boxes(pack, step, step["part"]), rows, strict=True):
                shares = row if isinstance(row, list) else [row] * len(box)
                taken = [float(share * values[cell]) for share, cell in zip(shares, box, strict=True) if share]
                if step["kind"] == "maximum" and not taken:
                    assert result[place] == -np.inf
                else:
                    np.testing.assert_allclose(
                        sum(taken), result[place], rtol=2e-6, atol=1e-6, err_msg=f"{step} {chosen}"
                    )


def test_winners_and_ties_are_found_by_brute_force() -> None:
    """The first of the largest, in depth, height, width order; under tf_cpu all that are near take the gradient."""
    pack, ties, shared = _pack("MaxPool3D"), 0, 0
    for chosen, state in _states("MaxPool3D"):
        if "steps" not in state:
            continue
        tensors = _tensors(pack, state)
        x, y = tensors["x"][1], tensors["y"][1]
        for at, *places in state["steps"]:
            step = pack["steps"][at]
            rows = [pack["rows"][row] for row in pack["lists"][places[0]]]
            for number, (place, box) in enumerate(_boxes(pack, step, step["part"])):
                row = rows[number] if isinstance(rows[number], list) else [rows[number]] * len(box)
                if step["kind"] == "scatter":
                    near = chosen["semantics"] == "tf_cpu"
                    op = OPS["MaxPool3DGrad"]
                    for window, share in zip(box, row, strict=True):
                        cells = [cell for cell, _ in _covered(chosen, op, window)]
                        hits = [
                            cell
                            for cell in cells
                            if (
                                abs(np.float32(x[cell]) - np.float32(y[window])) < NEAR
                                if near
                                else x[cell] == y[window]
                            )
                        ]
                        takers = hits if near else hits[:1]
                        shared += len(takers) > 1
                        assert share == (1 if place in takers else 0), (chosen, place, window)
                    continue
                found = [cell for cell in box if x[cell] == y[place]]
                assert row == [1 if cell == (found[0] if found else None) else 0 for cell in box], (chosen, place)
                equal = pack["rows"][pack["lists"][places[1]][number]]
                marked = equal if isinstance(equal, list) else [equal] * len(box)
                assert marked == [1 if cell in found and len(found) > 1 else 0 for cell in box]
                ties += len(found) > 1
    assert ties > 100 and shared > 100


def test_pairs_of_a_convolution_are_a_cell_and_its_tap() -> None:
    pack = _pack("Conv3D")
    for chosen, state in _states("Conv3D"):
        for (at,) in state.get("steps", ()):
            step = pack["steps"][at]
            op = OPS[step["op"]]
            sides = {item.name: item.side for item in op.inputs}
            place_of = {Side.WINDOWS: 0, Side.CELLS: 1, Side.TAPS: 2}
            windows = _tensors(pack, state)["y"][0]["sizes"]
            met = {(one, *pair) for one in np.ndindex(*windows) for pair in _covered(chosen, op, one)}
            first, second = step["pairs"]
            boxes = zip(_boxes(pack, step, first), _boxes(pack, step, second), strict=True)
            found = set()
            for (place, ones), (_, others) in boxes:
                for one, other in zip(ones, others[::-1] if step["flipped"] else others, strict=True):
                    triple: list[Any] = [None] * 3
                    triple[place_of[op.map.output]] = place
                    triple[place_of[sides[first]]], triple[place_of[sides[second]]] = one, other
                    found.add(tuple(triple))
            assert found == met, (step["op"], chosen)


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_a_page_has_every_state_and_is_small(op: Op) -> None:
    text = (FOLDER / f"{op.name}.html").read_text()
    assert len(text.encode()) < MOST_BYTES
    pack = _pack(op.name)
    assert pack["op"] == op.name
    assert len(pack["at"]) == len(list(choices_of(forward_of(op)))) == len(list(_states(op.name))) >= 200
    shown = [state for _, state in _states(op.name) if "steps" in state]
    assert len(shown) > 0.7 * len(pack["at"])
    assert all(op.name in {pack["steps"][at]["op"] for at, *_ in state["steps"]} for state in shown)
    orders = {pack["steps"][at]["order"] for at, *_ in shown[0]["steps"]}
    assert orders == {0, 1, 2}
    link = f"(explain/{op.name}.html)"
    assert link in (FOLDER.parent / f"{op.name}.md").read_text()


@pytest.mark.parametrize("op", FAMILY, ids=lambda op: op.name)
def test_a_page_asks_nobody_and_runs_nothing_but_its_own_script(op: Op) -> None:
    page = _page(op.name)
    policy = next(given["content"] for tag, given, _ in page.found if tag == "meta" and "http-equiv" in given)
    assert policy is not None
    hashes = re.findall(r"(script|style)-src 'sha256-([^']+)'", policy)
    assert "default-src 'none'" in policy and len(hashes) == 2
    texts = {"script": page.one("script", type="module"), "style": page.one("style")}
    for kind, wanted in hashes:
        assert base64.b64encode(hashlib.sha256(texts[kind].encode()).digest()).decode() == wanted
    for tag, given, _ in page.found:
        assert tag not in ("link", "img", "iframe", "object", "form")
        assert not [name for name in given if name.startswith("on") or name in ("src", "href", "style")], (tag, given)
    addresses = set(re.findall(r"https?://[^\"'\s]+", texts["script"] + texts["style"]))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"innerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp|import\(", texts["script"]
    )


def test_data_cannot_end_the_script_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = {"states": [], "text": "</script><script>alert(1)</script><!--"}
    monkeypatch.setattr("voxgrad.formats.explainer.html.all_lessons", lambda op: hostile)
    page = _Elements(explainer_html(OPS["Conv3D"]))
    assert json.loads(page.one("script", id="lessons")) == hostile
    assert [tag for tag, _, _ in page.found].count("script") == 3


def test_both_languages_say_the_same() -> None:
    said = words()
    assert said["en"].keys() == said["ko"].keys()
    for key, text in said["en"].items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", said["ko"][key])), key
    declared = {op.summary for op in FAMILY} | {law.text for op in FAMILY for law in op.laws if law.name in SHOWN_LAWS}
    assert declared == said["texts"]["ko"].keys()
    script = (Path(__file__).parents[2] / "src/voxgrad/formats/explainer/view.js").read_text()
    assert set(re.findall(r'say\("([\w.]+)"', script)) <= said["en"].keys()


def test_typed_numbers_are_computed() -> None:
    typed = [str(number) for number in range(31)] + ["nan"]
    pack = asked_lesson(OPS["MaxPool3D"], [1, 1, 0, 0, 0], {"x": typed})
    assert _tensors(pack, pack["states"][0])["y"][1].ravel().tolist() == [21, 23, 29, 30]
    page = lesson_page(OPS["MaxPool3D"], [1, 1, 0, 0, 0], {"x": typed})
    assert page.problems() == [] and all(block.position is not None for block in page.blocks)
    for places, wrong, code in [
        ([1, 1, 0, 0, 0], {"x": ["1"]}, "VG012"),
        ([1, 1, 0, 0, 0], {"x": ["1x"] * 32}, "VG052"),
        ([1, 1, 0, 0, 0], {"z": ["1"]}, "VG050"),
        ([1, 1, 0, 0, 9], {}, "VG003"),
        ([1, 1], {}, "VG003"),
    ]:
        with pytest.raises(InvalidArgumentError) as error:
            asked_lesson(OPS["MaxPool3D"], places, wrong)
        assert error.value.faults[0].code == code
    with pytest.raises(InvalidArgumentError, match="MaxPool3DGradGrad"):
        asked_lesson(OPS["Relu"], [0] * 5, {})


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "explained.html"
    assert main(["ops", "AvgPool3DGrad", "--explain", str(file)]) == 0
    assert file.read_text() == (FOLDER / "AvgPool3DGrad.html").read_text()
    assert main(["ops", "Relu", "--explain", str(file)]) != 0
    assert "VG003 Relu" in capsys.readouterr().err
